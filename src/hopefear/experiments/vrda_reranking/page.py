"""The page: verdicts first, then the paper's tables and figures beside ours, then our own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from hopefear.experiments.claims import gap_text, p_values, tally, verdict_table
from hopefear.experiments.frame import results_file, signature_of, signed, spread
from hopefear.experiments.vrda_reranking.claims import (
    MARGIN,
    ORDERED,
    OURS,
    PLACES,
    ROOM,
    TABLE_1,
    TABLE_2,
    WORSE,
    Judge,
    Verdict,
    levels,
)
from hopefear.experiments.vrda_reranking.plan import (
    AVERAGED,
    FEATURES,
    GOAL,
    KEPT,
    LOSSES,
    MIN_COUNT,
    SUPPORT,
    Plan,
    short,
)
from hopefear.experiments.vrda_reranking.runs import (
    TABLE,
    TOP,
    Measured,
    Scored,
    at,
    at_most,
    edges,
    f_score,
    sparse,
    tenth,
    text_of,
)
from hopefear.metrics.lists.fmeasure import Brackets
from hopefear.report import Page
from hopefear.report.plot import Plot


def signature(plan: Plan) -> str:
    """What the numbers came from, in one line."""
    parts = {
        "experiment": "vrda-reranking",
        "features": FEATURES,
        "min_count": MIN_COUNT,
        "passes": "/".join(map(str, plan.marks)),
        "seeds": ",".join(map(str, plan.seeds)),
        "folds": plan.folds,
        "metric": Brackets().signature(),
    }
    return signature_of(**parts)


def scores_of(counts: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """F, precision and recall of each seed."""
    found = [Brackets().scores(c.sum(axis=0)) for c in counts]
    return {name: np.array([f[name] for f in found]) for name in ("f1", "precision", "recall")}


def table_text(made: Measured) -> str:
    """Table 1, for a terminal."""
    lines = [f"{'':18}{'dev F':>9}{'test F':>16}{'weights':>10}"]
    for name in ("baseline", *TABLE, TOP):
        f1 = scores_of(made.counts(name, "test"))["f1"]
        if name == "baseline":
            lines.append(f"{name:18}{'':9}{f1.mean():>16.2f}")
            continue
        dev = np.mean([s.dev for s in made.test[name]])
        lines.append(f"{name:18}{dev:>9.2f}{spread(f1):>16}{made.nnz(name):>10,.0f}")
    return "\n".join(lines)


def to_json(
    made: Measured, judge: Judge, verdicts: Sequence[Verdict], plan: Plan, quick: bool
) -> bytes:
    """The file ``results.json``."""
    content = {
        "settings": asdict(plan),
        "lists": made.lists,
        "features": made.features,
        "baseline": {where: f_score(made.baseline[where]) for where in PLACES},
        "oracle": {where: f_score(made.oracle[where]) for where in PLACES},
        "trials": {
            key: [{**t._asdict(), "kept": KEPT[t.kept]} for t in found]
            for key, found in made.trials.items()
        },
        "choices": {name: _choice(made, name) for name in made.choices},
        "published": {name: _scored(found) for name, found in made.published.items()},
        "votes": {k: [f_score(c) for c in found] for k, found in made.votes.items()},
        "trails": {
            key: [
                {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in asdict(t).items()}
                for t in found
            ]
            for key, found in made.trails.items()
        },
        "tests": judge.to_json(),
    }
    return results_file(signature(plan), quick, content, verdicts)


def _choice(made: Measured, name: str) -> dict[str, Any]:
    trial = made.choices[name]
    found: dict[str, Any] = {**trial._asdict(), "kept": KEPT[trial.kept]}
    found["test"] = _scored(made.test[name])
    if name in made.folds:
        (whole,) = made.counts(name, "folds")
        found["folds"] = {**_scored(made.folds[name]), "f1_of_all": f_score(whole)}
    return found


def _scored(found: Sequence[Scored]) -> dict[str, Any]:
    scores = scores_of([s.counts for s in found])
    return {
        "signature": found[0].signature,
        "dev": [s.dev for s in found],
        "nnz": [s.nnz for s in found],
        **{name: values.tolist() for name, values in scores.items()},
    }


def title_of(made: Measured, plan: Plan, name: str) -> str:
    """Name of the learner of a choice."""
    title = plan.spec(made.choices[name].spec).title
    return f"Best by dev: {title}" if name == TOP else title


def mean_f(made: Measured, name: str, where: str) -> float:
    """F of a choice, mean over seeds."""
    return float(scores_of(made.counts(name, where))["f1"].mean())


def mean_dev(made: Measured, name: str) -> float:
    """F of a choice on development lists, mean over seeds."""
    return float(np.mean([s.dev for s in made.test[name]]))


RULES = {"vrda": "VRDA", "tg": "TG"}


def all_settings(made: Measured, loss: str) -> Plot:
    """Every setting that was tried, on development lists."""
    plot = Plot(
        f"{loss}: all settings", "non-zero weights", "F on development lists, %", "log", "linear"
    )
    for look, (rule, title) in enumerate(RULES.items()):
        found = [t for t in made.trials[f"{rule}-{loss}"] if t.nnz > 0 and t.dev > 82.0]
        plot.points([t.nnz for t in found], [t.dev for t in found], title, look=look)
    return plot


def frontier(made: Measured, plan: Plan, loss: str, where: str) -> Plot:
    """The best of each with at most so many weights, as chosen on development lists."""
    title = "test lists" if where == "test" else f"{plan.folds} folds"
    plot = Plot(f"{loss}: {title}", "non-zero weights, mean", "F, %", "log", "linear")
    for look, (rule, name) in enumerate(RULES.items()):
        x, y, spread = [], [], []
        for level in plan.levels:
            key = at_most(f"{rule}-{loss}", level)
            if key not in getattr(made, where):
                continue
            scores = np.array([f_score(c) for c in made.counts(key, where)])
            x.append(made.nnz(key, where))
            y.append(float(scores.mean()))
            spread.append(float(scores.std()))
        low, high = (np.array(y) + sign * np.array(spread) for sign in (-1.0, 1.0))
        plot.line(x, y, name, band=(low, high), look=look)
    for name in ("baseline", "perceptron"):
        scores = np.array([f_score(c) for c in made.counts(name, where)])
        plot.hline(float(scores.mean()), name)
    return plot


def figure_5(made: Measured, loss: str) -> Plot:
    """Non-zero weights while training."""
    plot = Plot(f"{loss}", "samples", "non-zero weights", y_scale="log")
    return _trails(plot, made, loss, "nnz")


def figure_6(made: Measured, loss: str) -> Plot:
    """Mistakes while training."""
    return _trails(Plot(f"{loss}", "samples", "mistakes"), made, loss, "mistakes")


def _trails(plot: Plot, made: Measured, loss: str, what: str) -> Plot:
    for look, trail in enumerate(made.trails[loss]):
        values = getattr(trail, what)
        use = values > 0
        plot.line(trail.samples[use], values[use], f"VRDA, λ = {short(trail.strength)}", look=look)
    other = made.trails["perceptron"][0]
    values = getattr(other, what)
    use = values > 0
    look = len(made.trails[loss])
    return plot.line(other.samples[use], values[use], "perceptron", True, look=look)


def votes(page: Page, made: Measured, judge: Judge) -> None:
    page.section("Voting and averaging")
    page.text(
        "The paper tests by the vote of all predictors there were (its Figure 2). The same runs, "
        "voted and averaged:"
    )
    rows = []
    for key, voted in made.votes.items():
        found = judge.votes(key)
        rows.append(
            [
                key,
                spread(scores_of(voted)["f1"]),
                f"{found.first:.2f}",
                gap_text(found),
                p_values(found),
            ]
        )
    page.table(
        ["learner", "F, voted", "F, average", "average − voted [95 %]", "p"],
        rows,
        "Test lists, settings of Table 1.",
        align="lrrrr",
    )


def extensions(page: Page, made: Measured, judge: Judge, plan: Plan) -> None:
    page.section("Other losses and rules")
    page.text(
        "Not in the paper's section 4: losses over the whole list, by VRDA (on mistakes), RDA "
        "(every list) and SGD (rate falling by a tenth a pass). Settings by one seed on "
        "development lists, small grids; sorted by F on development lists, mean over seeds. "
        f"**{title_of(made, plan, TOP)}** is what would have been chosen."
    )
    keys = sorted((s.key for s in plan.every), key=lambda key: -mean_dev(made, key))
    rows = []
    for key in keys:
        f1 = scores_of(made.counts(key, "test"))["f1"]
        found = None if key == "perceptron" else judge.against(key, "perceptron", "test")
        rows.append(
            [
                plan.spec(key).title,
                f"{mean_dev(made, key):.2f}",
                spread(f1),
                f"{made.nnz(key):,.0f}",
                None if found is None else gap_text(found),
                None if found is None else p_values(found),
            ]
        )
    page.table(
        ["learner", "dev F", "test F", "NNZ", "− perceptron [95 %]", "p"], rows, align="l" + "r" * 5
    )


def published(page: Page, made: Measured, plan: Plan) -> None:
    page.section("Families of features")
    page.text(
        f"All above uses `{FEATURES}`: the families of Charniak and Johnson (2005), our own "
        "families of spans and subcategories, and agreement with the rest of the list. With the "
        "published families alone (`ptb`), settings unchanged:"
    )
    whole, alone = made.features["split"], made.features["published"]
    rows = []
    for name in (*TABLE, TOP):
        few = made.published[name]
        rows.append(
            [
                title_of(made, plan, name),
                f"{mean_dev(made, name):.2f}",
                spread(scores_of(made.counts(name, "test"))["f1"]),
                f"{np.mean([s.dev for s in few]):.2f}",
                spread(scores_of([s.counts for s in few])["f1"]),
                f"{np.mean([s.nnz for s in few]):,.0f}",
            ]
        )
    page.table(
        ["learner", "all: dev F", "all: test F", "ptb: dev F", "ptb: test F", "ptb: NNZ"],
        rows,
        f"{whole:,} features in all, {alone:,} of the published families.",
        align="l" + "r" * 5,
    )


def setup(page: Page, made: Measured, plan: Plan) -> None:
    page.section("How it was done")
    sizes = made.lists
    page.text(
        f"Lists of the 50 best parses of {sizes['train']:,} training, {sizes['dev']:,} development "
        f"and {sizes['test']:,} test sentences (the part of the Penn Treebank that NLTK has), made "
        "by a first-stage parser that was itself trained on those sentences, by jackknife. The "
        "paper has sections 2 to 19, 20 to 21 and 22, parsed by one trained on 40,000 sentences: "
        "its baseline is four points higher, and it has 1.2 million features where we have "
        f"{made.features['split']:,}. A feature is kept when it tells candidates apart in "
        f"{MIN_COUNT} training lists or more; values are relative within a list. F is that of "
        "labelled brackets as EVALB counts them with COLLINS.prm."
    )
    page.text(
        "The oracle is the cheapest parse, the first of equals, and any other is a mistake, as in "
        "the paper. The perceptron is averaged. TG moves on every list with loss, with a constant "
        "rate, and pulls every K lists. VRDA moves on mistakes only; under the hinge its rate "
        "changes nothing. Folds take the settings chosen on the development lists, which are not "
        "scored in them; features are counted anew in every fold."
    )


def settings(page: Page, made: Measured, plan: Plan) -> None:
    page.section("Settings")
    rows = []
    for key, trial in made.choices.items():
        spec = plan.spec(trial.spec)
        rows.append(
            [
                key,
                text_of(trial.params) or None,
                trial.passes,
                KEPT[trial.kept],
                f"{trial.dev:.2f}",
                f"{trial.nnz:,.0f}",
                " and ".join(edges(trial, spec.grid, plan.marks)) or None,
            ]
        )
    with page.details("Everything that was chosen on development lists"):
        page.table(
            ["name", "parameters", "passes", "kept", "dev F", "NNZ", "at the edge of its grid"],
            rows,
            align="llrlrrl",
        )
    with page.details("Signatures of the runs"):
        page.code("\n".join(found[0].signature for found in made.test.values()))


TITLE = "Voted dual averaging on lists of parses, run again"


def write_page(
    made: Measured, judge: Judge, verdicts: Sequence[Verdict], plan: Plan, quick: bool
) -> Page:
    """Build the whole page."""
    page = Page(
        TITLE,
        "Gao, Xiao, Xu and He, A Voted Regularized Dual Averaging Method for Large-Scale "
        "Discriminative Training in Natural Language Processing: section 4",
        signature=signed(signature(plan)),
    )
    _verdicts(page, made, verdicts, plan, quick)
    _table_1(page, made, judge, plan)
    _sparse(page, made, judge, plan)
    _table_2(page, made, judge, plan)
    _frontiers(page, made, judge, plan)
    _training(page, made, plan)
    votes(page, made, judge)
    extensions(page, made, judge, plan)
    published(page, made, plan)
    setup(page, made, plan)
    settings(page, made, plan)
    return page


def _verdicts(
    page: Page, made: Measured, verdicts: Sequence[Verdict], plan: Plan, quick: bool
) -> None:
    theirs = [v for v in verdicts if not v.claim.startswith(OURS)]
    page.section("What agrees and what does not")
    if quick:
        page.text("**This version reads a few lists only: too few to conclude from.**")
    page.text(
        f"Of {len(theirs)} checks {tally(theirs)}. The paper learns from "
        "36,000 sentences of the Penn Treebank and tests on 1,700; ours are far fewer "
        f"({made.lists['train']:,}, and {made.lists['test']:,} for the test), so every comparison "
        f"is made twice: on the **test** lists, {len(plan.seeds)} seeds pooled, and over "
        f"**{plan.folds} folds** of whole documents ({made.lists['folds']:,} lists, one seed; "
        "development lists are learnt from but not scored). One model is better than another when "
        "a paired bootstrap and approximate randomisation both give p < 0.05; “as good” means that "
        f"the 95 % interval of the difference stays above −{MARGIN:g} points of F. A number "
        f"follows λ when their rank correlation is {ORDERED:g} or more. NNZ has settled when it "
        f"stays within {ROOM:.0%} of the perceptron's weights from its end. Nothing is corrected "
        "for the number of checks."
    )
    places = {where: where for where in (*PLACES, "training")}
    verdict_table(page, verdicts, places, "lists", "claim")


def _table_1(page: Page, made: Measured, judge: Judge, plan: Plan) -> None:
    page.section("Table 1: learners at their best")
    page.text(
        "Settings (strength, rate, passes, and what is kept of the weights) have the highest F on "
        f"development lists, mean over {len(plan.tuning_seeds)} seeds. F, precision and recall in "
        "percent on test lists, mean and deviation over seeds; * marks p < 0.05 against the "
        "baseline by both tests."
    )
    theirs = {name: row for name, *row in TABLE_1}
    rows: list[list[object]] = []
    for name in ("baseline", *TABLE, TOP):
        scores = scores_of(made.counts(name, "test"))
        title, nnz, star, folds = "Baseline", None, "", None
        if name != "baseline":
            title, nnz = title_of(made, plan, name), f"{made.nnz(name):,.0f}"
            star = "*" if judge.against(name, "baseline", "test").significant else ""
        if made.has(name, "folds"):
            folds = f"{scores_of(made.counts(name, 'folds'))['f1'].mean():.2f}"
        f, p, r, k = theirs.get(name, (None,) * 4)
        rows.append(
            [
                title,
                f"{scores['f1'].mean():.2f}" if nnz is None else f"{spread(scores['f1'])}{star}",
                f"{scores['precision'].mean():.2f}",
                f"{scores['recall'].mean():.2f}",
                nnz,
                folds,
                *(None if v is None else f"{100 * v:.2f}" for v in (f, p, r)),
                None if k is None else f"{k}K",
            ]
        )
    heads = ["learner", "F", "P", "R", "NNZ", "F, folds"]
    page.table(
        [*heads, "paper: F", "paper: P", "paper: R", "paper: NNZ"],
        rows,
        f"The oracle of the lists has F {mean_f(made, 'oracle', 'test'):.2f} on test lists and "
        f"{mean_f(made, 'oracle', 'folds'):.2f} over folds.",
        align="l" + "r" * 9,
    )
    pairs = [(name, "perceptron") for name in (*TABLE[1:], TOP)]
    pairs += [(f"vrda-{loss}", f"tg-{loss}") for loss in LOSSES]
    _differences(page, made, judge, plan, pairs)


def _sparse(page: Page, made: Measured, judge: Judge, plan: Plan) -> None:
    page.section("Few weights at the perceptron's F")
    floor = made.choices["perceptron"].dev
    page.text(
        f"Of the settings with at least the perceptron's F on development lists ({floor:.2f}), the "
        "one with the fewest weights (the best, where none has that F). Then the best setting with "
        f"at most {GOAL:.0%} of the perceptron's weights: our goal is an F no worse than its. "
        "Losses other than hinge and logistic are not the paper's."
    )
    keys = (*(spec.key for spec in plan.voted), *(f"tg-{loss}" for loss in LOSSES))
    for naming, caption in (
        (sparse, "Fewest weights at the perceptron's F on development lists"),
        (tenth, f"Best with at most {GOAL:.0%} of the perceptron's weights"),
    ):
        rows = []
        for where in PLACES:
            for key in keys:
                name = naming(key)
                found = judge.against(name, "perceptron", where)
                rows.append(
                    [
                        plan.spec(key).title,
                        where,
                        f"{made.nnz(name, where):,.0f}",
                        f"{judge.share(name, 'perceptron', where):.1%}",
                        f"{found.first:.2f}",
                        gap_text(found),
                        p_values(found),
                    ]
                )
        page.table(
            ["learner", "lists", "NNZ", "share", "F", "F − perceptron's [95 %]", "p"],
            rows,
            f"{caption}; p by paired bootstrap / approximate randomisation.",
            align="llrrrrr",
        )


def _table_2(page: Page, made: Measured, judge: Judge, plan: Plan) -> None:
    page.section("Table 2: strength of regularisation")
    page.text(
        "VRDA at each λ; rate and passes have the highest F on development lists for that λ. An "
        "average has a weight wherever any of its predictors had one, so its NNZ falls late; "
        "**on the last support** it is kept only where the last weights are not zero, and for the "
        "two features that all candidates have (score and expected agreement). * marks p < 0.05 "
        "against λ = 0 by both tests. Sums of directions are compared with λ times their number, "
        "and the paper has twelve times our lists: its λ prunes more than the same λ here."
    )
    for n, loss in enumerate(LOSSES):
        rows = []
        for l1 in plan.sweep:
            row: list[object] = [short(l1)]
            for kept in (AVERAGED, SUPPORT):
                name, free = at(loss, l1, kept), at(loss, 0.0, kept)
                star = ""
                if l1:
                    star = "*" if judge.against(name, free, "test").significant else ""
                f1 = scores_of(made.counts(name, "test"))["f1"]
                row += [f"{spread(f1)}{star}", f"{made.nnz(name):,.0f}"]
            row.append(
                f"{mean_f(made, at(loss, l1), 'folds'):.2f}"
                if made.has(at(loss, l1), "folds")
                else None
            )
            theirs = TABLE_2.get(l1)
            mark = "*" if l1 in WORSE else ""
            row += (
                [None, None]
                if theirs is None
                else [f"{100 * theirs[2 * n]:.2f}{mark}", f"{theirs[2 * n + 1]}K"]
            )
            rows.append(row)
        ours = ["average: F", "NNZ", "last support: F", "NNZ", "last support: F, folds"]
        page.table(["λ", *ours, "paper: F", "paper: NNZ"], rows, f"**{loss} loss**.", align="r" * 8)


def _frontiers(page: Page, made: Measured, judge: Judge, plan: Plan) -> None:
    page.section("Figures 3 and 4: F against the number of weights")
    page.text(
        "The paper: where sparse models are wanted, VRDA loses less F than TG. Ours: at each "
        "number of weights the setting of highest F on development lists that has at most so many "
        "(grids: λ, rate and passes for VRDA; gravity, K, rate and passes for TG; average or the "
        "average on the last support for both, last weights for TG). **Axes do not start at 0.**"
    )
    page.figures(
        [frontier(made, plan, loss, where) for where in PLACES for loss in LOSSES]
        + [all_settings(made, loss) for loss in LOSSES]
    )
    for where in PLACES:
        rows = []
        for loss in LOSSES:
            for level, found in levels(judge, loss, where):
                names = [at_most(f"{rule}-{loss}", level) for rule in ("vrda", "tg")]
                rows.append(
                    [
                        loss,
                        f"{level:,}",
                        *(f"{made.nnz(name, where):,.0f}" for name in names),
                        f"{found.first:.2f}",
                        f"{found.second:.2f}",
                        gap_text(found),
                        p_values(found),
                    ]
                )
        page.table(
            ["loss", "at most", "VRDA: NNZ", "TG: NNZ", "VRDA: F", "TG: F", "difference", "p"],
            rows,
            f"VRDA against TG, {'test lists, seeds pooled' if where == 'test' else 'folds'}.",
            align="l" + "r" * 7,
        )


def _training(page: Page, made: Measured, plan: Plan) -> None:
    page.section("Figure 5: weights while training")
    page.text(
        "The paper: more λ, sparser models that converge more quickly. Ours: non-zero weights of "
        f"the predictor at that moment, one seed, {plan.trail_passes} passes."
    )
    page.figures([figure_5(made, loss) for loss in LOSSES])
    page.section("Figure 6: mistakes while training")
    page.text(
        "The paper: mistakes grow more slowly than samples; λ = 0 makes no more of them than the "
        "perceptron, and more λ makes more."
    )
    page.figures([figure_6(made, loss) for loss in LOSSES])


def _differences(
    page: Page, made: Measured, judge: Judge, plan: Plan, pairs: Sequence[tuple[str, str]]
) -> None:
    rows = []
    for first, second in pairs:
        row: list[object] = [f"{title_of(made, plan, first)} − {title_of(made, plan, second)}"]
        for where in PLACES:
            found = judge.against(first, second, where)
            row += [gap_text(found), p_values(found)]
        rows.append(row)
    page.table(
        ["difference of F", *(head for where in PLACES for head in (f"{where} [95 %]", "p"))],
        rows,
        f"p by paired bootstrap / approximate randomisation ({plan.replicates:,} draws each).",
        align="lrrrr",
    )
