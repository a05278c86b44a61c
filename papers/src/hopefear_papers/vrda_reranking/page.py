"""The page: verdicts first, then the paper's tables and figures beside ours, then our own."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from hopefear.metrics.lists import Parseval
from hopefear.report import Page
from hopefear.report.plot import Plot
from hopefear_papers.claims import Verdict, tally, verdict_section, verdict_table
from hopefear_papers.frame import (
    Call,
    at_most,
    crossed,
    frontier,
    plain,
    short,
    spread,
)
from hopefear_papers.parses import FEATURES, MIN_COUNT, f_score
from hopefear_papers.vrda_reranking import claims
from hopefear_papers.vrda_reranking.plan import (
    AVERAGED,
    GOAL,
    KEPT,
    LOSSES,
    SUPPORT,
    TG,
    Plan,
)
from hopefear_papers.vrda_reranking.runs import (
    TABLE,
    TOP,
    VOTED,
    Results,
    Scored,
    at,
    edges,
    sparse,
    tenth,
    text_of,
    truncated,
)

TITLE = "Voted dual averaging on lists of parses, run again"
PAPER = (
    "Gao, Xiao, Xu and He, A Voted Regularized Dual Averaging Method for Large-Scale "
    "Discriminative Training in Natural Language Processing: section 4"
)
RULES = {"vrda": "VRDA", **{tg: f"TG, {rate}" for tg, rate in TG.items()}}


def signature(plan: Plan) -> dict[str, object]:
    return {
        "features": FEATURES,
        "min_count": MIN_COUNT,
        "passes": "/".join(map(str, plan.marks)),
        "seeds": ",".join(map(str, plan.seeds)),
        "folds": plan.folds,
        "metric": Parseval().signature,
    }


def scores_of(counts: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """F, precision and recall of each seed."""
    scores = [Parseval().scores(c.sum(axis=0)) for c in counts]
    return {name: np.array([s[name] for s in scores]) for name in ("f1", "precision", "recall")}


def table_text(results: Results) -> str:
    """Table 1, for a terminal."""
    lines = [f"{'':18}{'dev F':>9}{'test F':>16}{'weights':>10}"]
    for name in ("baseline", *TABLE, TOP):
        f1 = f_scores(results, name, "test")
        if name == "baseline":
            lines.append(f"{name:18}{'':9}{f1.mean():>16.2f}")
            continue
        dev = mean_dev(results, name)
        lines.append(f"{name:18}{dev:>9.2f}{spread(f1):>16}{results.nnz(name):>10,.0f}")
    return "\n".join(lines)


def content(results: Results, call: Call) -> dict[str, Any]:
    return {
        "settings": asdict(call.plan),
        "lists": results.lists,
        "features": results.features,
        "baseline": {where: f_score(results.baseline[where]) for where in claims.PLACES},
        "oracle": {where: f_score(results.oracle[where]) for where in claims.PLACES},
        "trials": {
            key: [{**t._asdict(), "kept": KEPT[t.kept]} for t in trials]
            for key, trials in results.trials.items()
        },
        "choices": {name: _choice(results, name) for name in results.choices},
        "published": {name: _scored(scored) for name, scored in results.published.items()},
        "votes": {k: [f_score(c) for c in counts] for k, counts in results.votes.items()},
        "trails": {key: [plain(t) for t in trails] for key, trails in results.trails.items()},
        "bounds": {key: [plain(b) for b in runs] for key, runs in results.bounds.items()},
        "tests": results.against.plain(),
    }


def _choice(results: Results, name: str) -> dict[str, Any]:
    trial = results.choices[name]
    numbers: dict[str, Any] = {**trial._asdict(), "kept": KEPT[trial.kept]}
    numbers["test"] = _scored(results.test[name])
    if name in results.folds:
        (whole,) = results.counts(name, "folds")
        numbers["folds"] = {**_scored(results.folds[name]), "f1_of_all": f_score(whole)}
    return numbers


def _scored(scored: Sequence[Scored]) -> dict[str, Any]:
    return {
        "signature": scored[0].signature,
        "dev": [s.dev for s in scored],
        "nnz": [s.nnz for s in scored],
        **{k: values.tolist() for k, values in scores_of([s.counts for s in scored]).items()},
    }


def title_of(results: Results, name: str) -> str:
    """Name of the learner of a choice."""
    title = results.plan.spec(results.choices[name].spec).title
    return f"Best by dev: {title}" if name == TOP else title


def f_scores(results: Results, name: str, where: str) -> np.ndarray:
    """F of a choice, by seed."""
    return scores_of(results.counts(name, where))["f1"]


def mean_f(results: Results, name: str, where: str) -> float:
    """F of a choice, mean over seeds."""
    return float(f_scores(results, name, where).mean())


def mean_dev(results: Results, name: str) -> float:
    """F of a choice on development lists, mean over seeds."""
    return float(np.mean([s.dev for s in results.test[name]]))


def all_settings(results: Results, loss: str) -> Plot:
    """Every setting that was tried, on development lists."""
    title = f"{loss}: all settings"
    plot = Plot(title, "non-zero weights", "F on development lists, %", "log", "linear")
    for look, (rule, name) in enumerate(RULES.items()):
        trials = [t for t in results.trials[f"{rule}-{loss}"] if t.nnz > 0 and t.dev > 82.0]
        plot.points([t.nnz for t in trials], [t.dev for t in trials], name, look=look)
    return plot


def frontiers(results: Results, loss: str, where: str) -> Plot:
    """The best of each with at most so many weights, as chosen on development lists."""
    plan = results.plan
    title = "test lists" if where == "test" else f"{plan.folds} folds"
    plot = Plot(f"{loss}: {title}", "non-zero weights, mean", "F, %", "log", "linear")
    curves = {
        title: [
            (results.nnz(key, where), f_scores(results, key, where))
            for key in (at_most(f"{rule}-{loss}", level) for level in plan.levels)
            if key in getattr(results, where)
        ]
        for rule, title in RULES.items()
    }
    lines = {name: mean_f(results, name, where) for name in ("baseline", "perceptron")}
    return frontier(plot, curves, lines)


def trails_plot(plot: Plot, results: Results, loss: str, what: str) -> Plot:
    """Weights or mistakes while training, by strength, and the perceptron's."""
    trails = results.trails[loss]
    for look, trail in enumerate(trails):
        trail.draw(plot, what, f"VRDA, λ = {short(trail.strength)}", look)
    return results.trails["perceptron"][0].draw(plot, what, "perceptron", len(trails), True)


def bounds_plot(plot: Plot, results: Results) -> Plot:
    """Mistakes after each pass, and Theorem 1 where it says something."""
    for look, run in enumerate(results.bounds[plot.title]):
        plot.line(run.samples, run.mistakes, f"λ = {short(run.strength)}", look=look)
        some = run.theorem1 > 0.0
        if some.any():
            name = f"bound, λ = {short(run.strength)}"
            plot.line(run.samples[some], run.theorem1[some], name, dashed=True, look=look)
    return plot


def _votes(page: Page, results: Results) -> None:
    page.section("Voting and averaging").text(
        "The paper tests by the vote of all predictors there were (its Figure 2). The same runs, "
        "voted and averaged:"
    )
    rows = []
    for key, votes in results.votes.items():
        average, _, *cells = results.against(key, key + VOTED, "test").row
        rows.append([key, spread(scores_of(votes)["f1"]), average, *cells])
    heads = ["learner", "F, voted", "F, average", "average − voted [95 %]", "p"]
    page.table(heads, rows, "Test lists, settings of Table 1.", align="lr")


def _extensions(page: Page, results: Results) -> None:
    plan = results.plan
    page.section("Other losses and rules").text(
        "Not in the paper's section 4: losses over the whole list, by VRDA (on mistakes), RDA "
        "(every list) and SGD (rate falling by a tenth a pass). Settings by one seed on "
        "development lists, small grids; sorted by F on development lists, mean over seeds. "
        f"**{title_of(results, TOP)}** is what would have been chosen."
    )
    keys = sorted((s.key for s in plan.every), key=lambda key: -mean_dev(results, key))
    rows = []
    for key in keys:
        cells: list[Any] = [None, None]
        if key != "perceptron":
            cells = [*results.against(key, "perceptron", "test").cells]
        scores = [f"{mean_dev(results, key):.2f}", spread(f_scores(results, key, "test"))]
        rows.append([plan.spec(key).title, *scores, f"{results.nnz(key):,.0f}", *cells])
    heads = ["learner", "dev F", "test F", "NNZ", "− perceptron [95 %]", "p"]
    page.table(heads, rows, align="lr")


def _published(page: Page, results: Results) -> None:
    page.section("Families of features").text(
        f"All above uses `{FEATURES}`: the families of Charniak and Johnson (2005), our own "
        "families of spans and subcategories, and agreement with the rest of the list. With the "
        "published families alone (`ptb`), settings unchanged:"
    )
    whole, alone = results.features["split"], results.features["published"]
    rows = []
    for name in (*TABLE, TOP):
        row = [title_of(results, name)]
        for scored in (results.test[name], results.published[name]):
            f1 = scores_of([s.counts for s in scored])["f1"]
            row += [f"{np.mean([s.dev for s in scored]):.2f}", spread(f1)]
        rows.append([*row, f"{np.mean([s.nnz for s in scored]):,.0f}"])
    caption = f"{whole:,} features in all, {alone:,} of the published families."
    heads = ["learner", "all: dev F", "all: test F", "ptb: dev F", "ptb: test F", "ptb: NNZ"]
    page.table(heads, rows, caption, align="lr")


def _setup(page: Page, results: Results) -> None:
    page.section("How it was done")
    sizes = results.lists
    page.text(
        f"Lists of the 50 best parses of {sizes['train']:,} training, {sizes['dev']:,} development "
        f"and {sizes['test']:,} test sentences (the part of the Penn Treebank that NLTK has), made "
        "by a first-stage parser that was itself trained on those sentences, by jackknife. The "
        "paper has sections 2 to 19, 20 to 21 and 22, parsed by one trained on 40,000 sentences: "
        "its baseline is four points higher, and it has 1.2 million features where we have "
        f"{results.features['split']:,}. A feature is kept when it tells candidates apart in "
        f"{MIN_COUNT} training lists or more; values are relative within a list. F is that of "
        "labelled brackets as EVALB counts them with COLLINS.prm."
    )
    page.text(
        "The oracle is the cheapest parse, the first of equals, and any other is a mistake, as in "
        "the paper. The perceptron is averaged. TG moves on every list with loss and pulls every K "
        "lists; its rate is constant, as Langford, Li and Zhang (2009) have it, or η′/√k at the "
        "k-th list, as eqs. 12 to 14 of the paper have it. The paper does not say which of them "
        "its tables used, so all claims on TG are judged against both. VRDA moves on mistakes "
        "only; under the hinge its rate changes nothing. Folds take the settings chosen on the "
        "development lists, which are not scored in them; features are counted anew in every fold."
    )


def _settings(page: Page, results: Results) -> None:
    plan = results.plan
    page.section("Settings")
    rows = []
    for key, trial in results.choices.items():
        ends = " and ".join(edges(trial, plan.spec(trial.spec).grid, plan.marks))
        setting = [key, text_of(trial.params) or None, trial.passes, KEPT[trial.kept]]
        rows.append([*setting, f"{trial.dev:.2f}", f"{trial.nnz:,.0f}", ends or None])
    heads = ["name", "parameters", "passes", "kept", "dev F", "NNZ", "at the edge of its grid"]
    with page.details("Everything that was chosen on development lists"):
        page.table(heads, rows, align="llrlrrl")
    with page.details("Signatures of the runs"):
        page.code("\n".join(scored[0].signature for scored in results.test.values()))


def fill(page: Page, results: Results, verdicts: Sequence[Verdict], call: Call) -> None:
    _verdicts(page, results, verdicts, call.note)
    for section in (
        *(_table_1, _sparse, _table_2, _frontiers, _training),
        *(_votes, _extensions, _published, _setup, _settings),
    ):
        section(page, results)


def _verdicts(page: Page, results: Results, verdicts: Sequence[Verdict], note: str) -> None:
    plan, lists = results.plan, results.lists
    theirs = [v for v in verdicts if not v.claim.startswith(claims.OURS)]
    verdict_section(
        page,
        note,
        f"Of {len(theirs)} checks {tally(theirs)}. The paper learns from 36,000 sentences of the "
        f"Penn Treebank and tests on 1,700; ours are far fewer ({lists['train']:,}, and "
        f"{lists['test']:,} for the test), so every comparison is made twice: on the **test** "
        f"lists, {len(plan.seeds)} seeds pooled, and over **{plan.folds} folds** of whole "
        f"documents ({lists['folds']:,} lists, one seed; development lists are learnt from but not "
        "scored). One model is better than another when a paired bootstrap and approximate "
        "randomisation both give p < 0.05; “as good” means that the 95 % interval of the "
        f"difference stays above −{claims.MARGIN:g} points of F. A number follows λ when their "
        f"rank correlation is {claims.ORDERED:g} or more. NNZ has settled when it stays within "
        f"{claims.ROOM:.0%} of the perceptron's weights from its end. Nothing is corrected for the "
        "number of checks.",
    )
    places = {where: where for where in (*claims.PLACES, "training")}
    verdict_table(page, verdicts, places, "lists", "claim")


def _table_1(page: Page, results: Results) -> None:
    plan = results.plan
    page.section("Table 1: learners at their best").text(
        "Settings (strength, rate, passes, and what is kept of the weights) have the highest F on "
        f"development lists, mean over {len(plan.tuning_seeds)} seeds. F, precision and recall in "
        "percent on test lists, mean and deviation over seeds; * marks p < 0.05 against the "
        "baseline by both tests. The paper has one TG; its numbers stand beside both of ours."
    )
    theirs = {name: row for name, *row in claims.TABLE_1}
    rows: list[list[object]] = []
    for name in ("baseline", *TABLE, TOP):
        scores = scores_of(results.counts(name, "test"))
        title, nnz, star, folds = "Baseline", None, "", None
        if name != "baseline":
            title, nnz = title_of(results, name), f"{results.nnz(name):,.0f}"
            star = "*" if results.against(name, "baseline", "test").significant else ""
        if results.has(name, "folds"):
            folds = f"{mean_f(results, name, 'folds'):.2f}"
        *paper, k = theirs.get(name.replace("tg-printed", "tg"), (None,) * 4)
        f1 = f"{scores['f1'].mean():.2f}" if nnz is None else f"{spread(scores['f1'])}{star}"
        row: list[object] = [
            title,
            f1,
            *(f"{scores[key].mean():.2f}" for key in ("precision", "recall")),
        ]
        row += [nnz, folds, *(None if v is None else f"{100 * v:.2f}" for v in paper)]
        rows.append([*row, None if k is None else f"{k}K"])
    heads = ["learner", "F", "P", "R", "NNZ", "F, folds"]
    page.table(
        [*heads, "paper: F", "paper: P", "paper: R", "paper: NNZ"],
        rows,
        f"The oracle of the lists has F {mean_f(results, 'oracle', 'test'):.2f} on test lists and "
        f"{mean_f(results, 'oracle', 'folds'):.2f} over folds.",
        align="lr",
    )
    pairs = [(name, "perceptron") for name in (*TABLE[1:], TOP)]
    pairs += [(f"vrda-{loss}", f"{tg}-{loss}") for tg in TG for loss in LOSSES]
    crossed(
        page,
        "difference of F",
        {f"{title_of(results, a)} − {title_of(results, b)}": (a, b) for a, b in pairs},
        claims.PLACES,
        lambda where: (f"{where} [95 %]", "p"),
        lambda pair, where: results.against(*pair, where).cells,
        f"p by paired bootstrap / approximate randomisation ({plan.replicates:,} draws each).",
    )


def _sparse(page: Page, results: Results) -> None:
    plan = results.plan
    page.section("Few weights at the perceptron's F")
    floor = results.choices["perceptron"].dev
    page.text(
        f"Of the settings with at least the perceptron's F on development lists ({floor:.2f}), the "
        "one with the fewest weights (the best, where none has that F). Then the best setting with "
        f"at most {GOAL:.0%} of the perceptron's weights: our goal is an F no worse than its. "
        "Losses other than hinge and logistic are not the paper's."
    )
    keys = (*(spec.key for spec in plan.voted), *truncated())
    for naming, caption in (
        (sparse, "Fewest weights at the perceptron's F on development lists"),
        (tenth, f"Best with at most {GOAL:.0%} of the perceptron's weights"),
    ):
        rows = []
        for where in claims.PLACES:
            for key in keys:
                name = naming(key)
                f1, _, *cells = results.against(name, "perceptron", where).row
                nnz, share = results.nnz(name, where), results.share(name, "perceptron", where)
                row = [plan.spec(key).title, where, f"{nnz:,.0f}", f"{share:.1%}", f1, *cells]
                rows.append(row)
        page.table(
            ["learner", "lists", "NNZ", "share", "F", "F − perceptron's [95 %]", "p"],
            rows,
            f"{caption}; p by paired bootstrap / approximate randomisation.",
            align="llr",
        )


def _table_2(page: Page, results: Results) -> None:
    page.section("Table 2: strength of regularisation").text(
        "VRDA at each λ; rate and passes have the highest F on development lists for that λ. An "
        "average has a weight wherever any of its predictors had one, so its NNZ falls late; "
        "**on the last support** it is kept only where the last weights are not zero, and for the "
        "two features that all candidates have (score and expected agreement). * marks p < 0.05 "
        "against λ = 0 by both tests. Sums of directions are compared with λ times their number, "
        "and the paper has twelve times our lists: its λ prunes more than the same λ here."
    )
    for n, loss in enumerate(LOSSES):
        rows = []
        for l1 in results.plan.sweep:
            row: list[object] = [short(l1)]
            for kept in (AVERAGED, SUPPORT):
                name, free = at(loss, l1, kept), at(loss, 0.0, kept)
                differs = l1 and results.against(name, free, "test").significant
                f1 = spread(f_scores(results, name, "test")) + ("*" if differs else "")
                row += [f1, f"{results.nnz(name):,.0f}"]
            on_folds = results.has(at(loss, l1), "folds")
            row.append(f"{mean_f(results, at(loss, l1), 'folds'):.2f}" if on_folds else None)
            if theirs := claims.TABLE_2.get(l1):
                f, k = theirs[2 * n : 2 * n + 2]
                row += [f"{100 * f:.2f}" + ("*" if l1 in claims.WORSE else ""), f"{k}K"]
            rows.append(row + [None] * (8 - len(row)))
        ours = ["average: F", "NNZ", "last support: F", "NNZ", "last support: F, folds"]
        page.table(["λ", *ours, "paper: F", "paper: NNZ"], rows, f"**{loss} loss**.", align="r")


def _frontiers(page: Page, results: Results) -> None:
    page.section("Figures 3 and 4: F against the number of weights").text(
        "The paper: where sparse models are wanted, VRDA loses less F than TG. Ours: at each "
        "number of weights the setting of highest F on development lists that has at most so many "
        "(grids: λ, rate and passes for VRDA; gravity, K, rate and passes for TG, with a constant "
        "rate and with η′/√k; average or the average on the last support for all, last weights for "
        "TG). **Axes do not start at 0.**"
    )
    page.figures(
        [frontiers(results, loss, where) for where in claims.PLACES for loss in LOSSES]
        + [all_settings(results, loss) for loss in LOSSES]
    )
    for where in claims.PLACES:
        rows = []
        for loss, tg in itertools.product(LOSSES, TG):
            for level, difference in claims.levels(results, loss, where, tg):
                names = [at_most(f"{rule}-{loss}", level) for rule in ("vrda", tg)]
                sizes = (f"{results.nnz(name, where):,.0f}" for name in names)
                rows.append([loss, TG[tg], f"{level:,}", *sizes, *difference.row])
        heads = ["loss", "TG's rate", "at most", "VRDA: NNZ", "TG: NNZ", "VRDA: F", "TG: F"]
        page.table(
            [*heads, "difference", "p"],
            rows,
            f"VRDA against TG, {'test lists, seeds pooled' if where == 'test' else 'folds'}.",
            align="llr",
        )


def _training(page: Page, results: Results) -> None:
    page.section("Figure 5: weights while training").text(
        "The paper: more λ, sparser models that converge more quickly. Ours: non-zero weights of "
        f"the predictor at that moment, one seed, {results.plan.trail_passes} passes."
    )
    logs = [Plot(loss, "samples", "non-zero weights", y_scale="log") for loss in LOSSES]
    page.figures([trails_plot(plot, results, plot.title, "nnz") for plot in logs])
    page.section("Figure 6: mistakes while training").text(
        "The paper: mistakes grow more slowly than samples; λ = 0 makes no more of them than the "
        "perceptron, and more λ makes more."
    )
    plots = [Plot(loss, "samples", "mistakes") for loss in LOSSES]
    page.figures([trails_plot(plot, results, plot.title, "mistakes") for plot in plots])
    page.section("Theorem 1: mistakes beside their bound").text(
        "Both papers bound the mistakes of voted RDA by those of any weights u (dashed: u is the "
        "average of the run, at the length that makes the bound smallest). Where a curve has no "
        "dashed one, the penalty of u is more than a mistake costs, and the theorem says nothing."
    )
    page.figures(
        [
            bounds_plot(Plot(loss, "samples", "mistakes", y_scale="log"), results)
            for loss in results.bounds
        ]
    )
