"""The page: verdicts first, then the paper's table and figures with ours beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from hopefear.report import Page
from hopefear.report.page import Best
from hopefear.report.plot import Plot
from hopefear_papers.claims import (
    AGREES,
    DISAGREES,
    Verdict,
    tally,
    verdict_section,
    verdict_table,
)
from hopefear_papers.frame import Call, plain, short
from hopefear_papers.parses import MIN_COUNT
from hopefear_papers.vrda_classification.claims import SETTINGS, TABLE_1, TIME_RATIO
from hopefear_papers.vrda_classification.plan import (
    HELD_OUT,
    LOSSES,
    MARGIN,
    SEED,
    SWING,
    TRANSFORM,
    Plan,
)
from hopefear_papers.vrda_classification.runs import (
    SEPARATION,
    BoundCurve,
    Measurement,
    Results,
    Run,
    Scores,
    compare_scores,
)

TITLE = "Online classification with voted RDA, run again"
PAPER = (
    "Xu, Gao, Xiao and Regan, Online Classification Using a Voted RDA Method: "
    "Table 1 and Figures 1 to 5 on lists of parses and on text classification"
)
Problems = Sequence[Results]


def signature(plan: Plan) -> dict[str, object]:
    return {
        "passes": plan.passes,
        "seed": SEED,
        **TRANSFORM,
        "intercept": "none",
        "held-out": HELD_OUT,
    }


def table_text(measurement: Measurement) -> str:
    """Nothing is told at the end."""
    return ""


def content(measurement: Measurement, call: Call) -> dict[str, Any]:
    fixed = {"seed": SEED, "held_out": HELD_OUT, "transform": TRANSFORM}
    return {
        "note": call.note,
        "settings": asdict(call.plan) | fixed,
        "problems": {results.name: _problem(results) for results in measurement.problems},
        "bound": [
            {"noise": c.noise, "l1": c.strength, "reports": [r.to_dict() for r in c.reports]}
            for c in measurement.curves
        ],
    }


def _problem(results: Results) -> dict[str, Any]:
    problem = results.problem
    parts = {"train": problem.train, "test": problem.test}
    if problem.dev is not None:
        parts["dev"] = problem.dev
    order = ("best", "sparse", "edges", "trials")
    choices = {key: asdict(choice) for key, choice in results.choices.items()}
    return {
        "data": {
            "about": problem.about,
            **{name: len(part) for name, part in parts.items()},
            "features": problem.n_features,
            **({"classes": list(problem.train.classes)} if problem.task == "classify" else {}),
            **{f"{name}_digest": part.digest for name, part in parts.items()},
        },
        "baseline": None if results.baseline is None else _scores(results.baseline),
        "chosen": {key: {name: c[name] for name in order} for key, c in choices.items()},
        "best": {key: _run(r) for key, r in results.best.items()},
        "sparse": {key: _run(r) for key, r in results.sparse.items()},
        "trails": {
            key: [{"l1" if k == "strength" else k: v for k, v in plain(t).items()} for t in trails]
            for key, trails in results.trails.items()
        },
        "votes": {
            loss: {
                "voted": float(v.voted.series(results.task.main)[0]),
                "averaged": float(v.averaged.series(results.task.main)[0]),
                "examples": v.voted.choices.shape[1],
                "predictors": v.predictors,
                "seconds_per_1000": v.seconds,
                "megabytes": v.megabytes,
            }
            for loss, v in results.votes.items()
        },
        "seconds_per_pass": results.times,
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        "setting": run.setting,
        "signature": run.signature,
        "mistakes": run.mistakes.tolist(),
        "averaged": _scores(run.averaged),
        "last": _scores(run.last),
    }


def _scores(scores: Scores) -> dict[str, Any]:
    series = {name: scores.series(name).tolist() for name in scores.task.names}
    return {"mean": scores.summary(), "nnz": scores.nnz.tolist(), **series}


def figure_1(results: Results, loss: str) -> Plot:
    """Non-zero weights while training, by strength of regularisation."""
    plot = Plot(f"{results.name}, {loss}", "samples", "non-zero weights", y_scale="log")
    for look, trail in enumerate(results.trails[loss]):
        trail.draw(plot, "nnz", f"λ = {short(trail.strength)}", look)
    return plot


def figure_2(results: Results) -> Plot:
    """Sparsity against quality on the held-out rows, over the strengths."""
    size = results.problem.n_features
    heads = "non-zero weights as a share of the features", "F on held-out rows, %"
    plot = Plot(results.name, *heads, x_scale="log")
    for look, loss in enumerate(LOSSES):
        trials = results.choices[f"vrda-{loss}"].along("l1")
        average, last = [(t.nnz, t.f1) for t in trials], [(t.last_nnz, t.last_f1) for t in trials]
        for dashed, (name, pairs) in enumerate((("average", average), ("last", last))):
            nnz, f1 = np.array([pair for pair in pairs if pair[0] > 0]).reshape(-1, 2).T
            plot.line(nnz / size, f1, f"{loss}, {name}", bool(dashed), look=look + 2 * dashed)
    return plot


def figure_3(results: Results, loss: str) -> Plot:
    """Training mistakes against samples."""
    plot, trails = Plot(f"{results.name}, {loss}", "samples", "mistakes"), results.trails[loss]
    for look, trail in enumerate(trails):
        trail.draw(plot, "mistakes", f"vRDA, λ = {short(trail.strength)}", look, zeros=True)
    (other,) = results.trails["perceptron"]
    return other.draw(plot, "mistakes", "(voted) perceptron", len(trails), True, zeros=True)


def figure_4(results: Results, plan: Plan) -> Plot:
    """Last weights against the average: mean and deviation of F over the settled passes."""
    runs = [results.best[f"vrda-{loss}"] for loss in LOSSES]
    groups = {"single (last)": [r.last for r in runs], "averaged": [r.averaged for r in runs]}
    return _bars(results.name, groups, plan)


def figure_5(results: Results, plan: Plan) -> Plot:
    """RDA against voted RDA: mean and deviation of F over the settled passes."""
    groups = {
        title: [results.best[f"{key}-{loss}"].averaged for loss in LOSSES]
        for title, key in (("RDA", "rda"), ("vRDA", "vrda"))
    }
    return _bars(results.name, groups, plan)


def bound_plot(curves: list[BoundCurve], noise: float) -> Plot:
    """Mistakes, and the most that Theorem 1 allows."""
    title = "separable" if noise == 0.0 else f"{noise:.0%} of the labels wrong"
    plot = Plot(title, "samples", "mistakes", x_scale="log", y_scale="log")
    for look, curve in enumerate(c for c in curves if c.noise == noise):
        samples, mistakes, most = zip(
            *((r.samples, r.mistakes, r.theorem1) for r in curve.reports), strict=True
        )
        plot.line(samples, mistakes, f"mistakes, {curve.label}", look=2 * look)
        plot.line(samples, most, f"Theorem 1, {curve.label}", True, look=2 * look + 1)
    return plot


def _bars(title: str, groups: dict[str, list[Scores]], plan: Plan) -> Plot:
    bars = {
        name: [
            (float(v.mean()), float(v.std())) for v in (s.series("f1")[plan.settled] for s in of)
        ]
        for name, of in groups.items()
    }
    ends = [mean + sign * std for pairs in bars.values() for mean, std in pairs for sign in (-1, 1)]
    # Bars from zero would hide differences of a point; the axis says where it starts.
    room = max(0.5, 0.4 * (max(ends) - min(ends)))
    low, high = max(0.0, float(np.floor(min(ends) - room))), min(100.0, max(ends) + room)
    plot = Plot(title, "", "F, %", y_range=(low, high))
    for name, pairs in bars.items():
        means, stds = zip(*pairs, strict=True)
        plot.bars(list(LOSSES), list(means), list(stds), group=name)
    return plot


def fill(page: Page, measurement: Measurement, verdicts: Sequence[Verdict], call: Call) -> None:
    problems, plan = measurement.problems, call.plan
    whole = [results for results in problems if results.whole]
    _verdicts(page, problems, verdicts)
    _setup(page, problems, plan, call.note)
    _table_1(page, problems, plan)
    _while_training(page, whole)
    _single(page, whole, plan)
    _conservative(page, whole, plan)
    _votes(page, whole)
    _bound(page, measurement.curves)
    _settings(page, problems, plan)


def _verdicts(page: Page, problems: Problems, verdicts: Sequence[Verdict]) -> None:
    names = [results.name for results in problems]
    verdict_section(
        page,
        "",
        f"Of {len(verdicts)} checks (a claim on a problem) {tally(verdicts)}. The words are "
        "computed from the numbers below. A difference of accuracy (on lists of parses: of F) "
        "counts when a paired bootstrap over the test examples (sentences) gives p < 0.05, not "
        "corrected for the number of checks; it knows nothing of other seeds. “As good” means that "
        "the 95 % interval of the difference stays "
        f"above −{MARGIN:g} points. Deviations over passes count as different "
        f"from a ratio of {SWING:g} on. Claims about numbers of weights are judged at the sparse "
        "settings of Table 1, all others at the best ones. The paper reranks parses of the Penn "
        "Treebank; ours are of a twelfth of its sentences, by a weaker parser. The other problems "
        "are classes of texts, where a disagreement says that a finding does not carry over, not "
        "that it was wrong there.",
        *_by_task(problems, verdicts),
        *(f"**{title}**: {text}." for title, text in _summary(names, verdicts)),
    )
    verdict_table(page, verdicts, {name: name for name in names}, "problem")


def _by_task(problems: Problems, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Verdicts counted on the paper's own task, and on classes."""
    for task, title in (("rerank", "lists, the paper's own task"), ("classify", "classes")):
        places = [results.name for results in problems if results.problem.task == task]
        if places:
            yield f"On {title}: {tally([v for v in verdicts if v.where in places])}."


def _summary(names: Sequence[str], verdicts: Sequence[Verdict]) -> list[tuple[str, str]]:
    """Claims sorted into those that hold on every problem, on none, and on some."""
    claims: dict[str, set[str]] = {}
    for v in verdicts:
        if v.where in names:
            claims.setdefault(v.claim, set()).add(v.verdict)
    piles = {
        "Holds on all problems": [c for c, words in claims.items() if words == {AGREES}],
        "Contradicted on all problems": [c for c, words in claims.items() if words == {DISAGREES}],
        "Depends on the problem, or is not shown": [
            c for c, words in claims.items() if words not in ({AGREES}, {DISAGREES})
        ],
    }
    return [(title, "; ".join(pile)) for title, pile in piles.items() if pile]


def _setup(page: Page, problems: Problems, plan: Plan, note: str) -> None:
    page.section("How it was done")
    if note:
        page.text(f"**{note}**")
    rows: list[list[object]] = []
    for p in (results.problem for results in problems):
        values = round(p.train.rows.values.size / len(p.train), 1)
        rows.append([p.name, p.about, len(p.train), len(p.test), p.n_features, values])
    heads = ["problem", "what", "train", "test", "features", "values a row"]
    page.table(heads, rows, "Data.")
    page.text(
        "Rows of texts hold 1 for a feature that is present and are scaled to unit length; there "
        f"is no intercept. {HELD_OUT:.0%} of the training rows were held out once, every setting "
        f"of the grids at the end of the page was trained on the rest for {plan.tuning_passes} "
        "passes, and the one with the highest held-out accuracy (of the average, mean over the "
        f"passes) was then trained on all training rows for {plan.passes} passes and scored on the "
        "test rows after each; no setting was chosen on test rows. Passes are shuffled from a "
        "fixed seed, the same throughout. The logarithm of the log loss is natural, λ is `l1` (TG: "
        "gravity, every 10 steps, no threshold), and the rate is 1/η. **The rate of TG falls like "
        "η′/√k**, on texts and on lists, as eqs. 12 to 14 of Gao, Xiao, Xu and He have it; "
        "`reproduce vrda-reranking` has the constant rate beside it. Every learner updates as its "
        "paper says: perceptron and vRDA on mistakes, TG, RDA and AdaGrad-RDA on every example."
    )
    page.text(
        "Lists of parses are those of `reproduce vrda-reranking`: features that tell candidates "
        f"apart in {MIN_COUNT} training lists or more, as they are. The candidate of least cost is "
        "the right one, the best other one its rival, as in the paper. F of labelled brackets "
        "takes the place of accuracy, settings are chosen on development lists, and the training "
        "lists stay the same for the test. Grids are their own. AdaGrad-RDA was run on texts only."
    )


def _table_1(page: Page, problems: Problems, plan: Plan) -> None:
    page.section("Table 1: quality and non-zero weights")
    page.table(
        ["learner", "precision", "recall", "F", "weights"],
        [[name, p, r, f, None if n is None else f"{n} K"] for name, p, r, f, n in TABLE_1],
        "The paper's own Table 1: **parse reranking** (labelled brackets), 1.2 M features.",
        align="lr",
        notes=f"Their settings: {SETTINGS}.",
    )
    for results in problems:
        titles = {spec.key: spec.title for spec in plan.learners(results.problem)}
        rows = [_row(titles[key], run) for key, run in results.best.items()]
        if results.baseline is not None:
            rows.insert(0, _baseline(results.baseline))
        problem = results.problem
        many = problem.task == "classify" and len(problem.train.classes) > 2
        title = results.task.title
        page.table(
            _columns(results),
            rows,
            f"**{results.name}**: test scores in percent"
            f"{', macro over the classes' if many else ''}, mean ± "
            f"deviation over {plan.passes} passes.",
            highlight={**_best(results), "F": "max", f"last: {title}": "max"},
        )
    page.text(
        "“weights” are the non-zeros of the average, which is what is kept and scored, as in "
        "the paper; the average has every weight that was ever used. “last” is the final "
        "weight vector of each pass, which is where the sparsity of RDA is. AdaGrad-RDA is "
        "not in the paper; it shows what an adaptive rate gives."
    )
    page.section("The sparsest settings that are about as good", level=3).text(
        "Chosen on the same held-out rows (development lists): the fewest last weights within one "
        "standard error of the best accuracy (F, by bootstrap). (The best may be λ = 0, which says "
        "nothing on sparsity.)"
    )
    for results in problems:
        titles = {spec.key: spec.title for spec in plan.learners(results.problem)}
        rows = [_row(titles[key], run) for key, run in results.sparse.items()]
        page.table(
            _columns(results),
            rows,
            f"**{results.name}**, sparsest within one standard error.",
            highlight=_best(results),
        )


def _columns(results: Results) -> list[str]:
    title = results.task.title
    scores = dict.fromkeys(("precision", "recall", "F", title))
    return ["learner", *scores, "weights", f"last: {title}", "last: weights"]


def _best(results: Results) -> dict[str, Best]:
    return {results.task.title: "max", "weights": "min", "last: weights": "min"}


def _row(title: str, run: Run) -> list[object]:
    average, last, main = run.averaged.summary(), run.last.summary(), run.averaged.task.main
    scores = (_spread(average, name) for name in dict.fromkeys(("f1", main)))
    means = [average["precision"], average["recall"], *scores, round(average["nnz"])]
    return [title, *means, _spread(last, main), round(last["nnz"])]


def _baseline(scores: Scores) -> list[object]:
    means = scores.summary()
    row = [means["precision"], means["recall"], f"{means['f1']:.2f}"]
    return ["Baseline: the first of each list", *row, None, None, None]


def _spread(means: dict[str, float], name: str) -> str:
    return f"{means[name]:.2f} ± {means[f'{name}_std']:.2f}"


def _while_training(page: Page, whole: Problems) -> None:
    page.section("Figure 1: non-zero weights while training").text(
        "The paper: a larger λ settles soon at few weights, a smaller one takes many more "
        "samples. Ours, on all training rows, at the chosen rate:"
    )
    page.figures([figure_1(results, loss) for results in whole for loss in LOSSES])
    page.section("Figure 2: sparsity against quality").text(
        "The paper: for hinge loss a sparser model costs quality; log loss is best "
        "(F 0.9174) with 173 K of 1.2 M features, a share of 0.14. Ours, over λ, scored on "
        "the held-out rows, so that the test is not used to look around:"
    )
    page.figures([figure_2(results) for results in whole])
    page.section("Figure 3: training mistakes").text(
        "The paper: mistakes grow more slowly than samples, λ = 0 makes fewer than the perceptron "
        "and λ > 0 more. With hinge loss and λ = 0, equation (4) reads w = −s / (η √k): the "
        "perceptron's weights times a positive number. The two must make the same mistakes, so the "
        "curves lie on each other and the paper's difference must come from something else."
    )
    page.figures([figure_3(results, loss) for results in whole for loss in LOSSES])


def _single(page: Page, whole: Problems, plan: Plan) -> None:
    page.section("Figure 4: single against averaged prediction").text(
        "The paper: the average is better and varies less, and single predictions vary most under "
        f"log loss. Ours: mean and deviation of F over the last {_late(plan)} of {plan.passes} "
        "passes, so that the bars show swings and not the first gains. **Axes do not start at 0.**"
    )
    page.figures([figure_4(results, plan) for results in whole])


def _conservative(page: Page, whole: Problems, plan: Plan) -> None:
    page.section("Figure 5: RDA against voted RDA").text(
        "The paper: updates on mistakes only are better for hinge loss, worse for log loss, and "
        f"take {TIME_RATIO['hinge']:.1%} and {TIME_RATIO['log']:.1%} of the time. Ours: mean and "
        f"deviation of F over the last {_late(plan)} passes. **Axes do not start at 0.**"
    )
    page.figures([figure_5(results, plan) for results in whole])
    rows = []
    for results in whole:
        for loss in LOSSES:
            row: list[object] = [results.name, loss]
            for readout in ("averaged", "last"):
                row += [
                    1000.0 * results.times[f"{rule}-{loss} {readout}"] for rule in ("rda", "vrda")
                ]
                row.append(f"{results.ratio(loss, readout):.1%}")
            rows.append([*row, f"{TIME_RATIO[loss]:.1%}"])
    page.table(
        [
            *("problem", "loss", "RDA", "vRDA", "share"),
            *("RDA, last", "vRDA, last", "share, last", "paper"),
        ],
        rows,
        f"CPU milliseconds a pass and vRDA's share of RDA's, with the exact average and for "
        f"the last weights only: the least of {plan.repeats} runs of {plan.timed_passes} "
        "passes, taken in turn, each learner at its chosen setting.",
        align="llr",
    )


def _votes(page: Page, whole: Problems) -> None:
    page.section("Voting against averaging").text(
        "The paper averages and calls the result very similar to the vote. Here Algorithm 2 "
        "is run for real: every predictor of one pass votes, as often as it survived."
    )
    rows = []
    for results in whole:
        for loss, votes in results.votes.items():
            test = compare_scores(votes.averaged, votes.voted)
            costs = (f"{a:.3g} / {b:.2g}" for a, b in (votes.seconds, votes.megabytes))
            scores = [test.second, test.first, test.gap]
            rows.append([results.name, loss, votes.predictors, *scores, *costs])
    page.table(
        [
            *("problem", "loss", "predictors", "voted, %", "averaged, %"),
            *("difference [95 %]", "seconds", "megabytes"),
        ],
        rows,
        "Test accuracy (lists: F) after one pass; CPU seconds for 1,000 examples and the size of "
        "what is kept, voted / averaged.",
        align="llr",
        notes="On the first "
        + ", ".join(
            f"{results.votes['hinge'].voted.choices.shape[1]:,} ({results.name})"
            for results in whole
        )
        + " test examples.",
    )


def _bound(page: Page, curves: list[BoundCurve]) -> None:
    page.section("The bound of Theorem 1").text(
        "One pass of vRDA (hinge) over generated data on which the truth is known. The "
        "comparator u is the truth, scaled to give the lowest bound; where labels are right "
        f"it separates the classes by {SEPARATION:g}. Dashed: the most mistakes allowed."
    )
    page.figures([bound_plot(curves, noise) for noise in dict.fromkeys(c.noise for c in curves)])
    rows = []
    for c in curves:
        r = c.reports[-1]
        corollary = None if r.corollary1 is None else round(r.corollary1, 3)
        bounds = [round(r.theorem1, 1), corollary, r.lam * r.delta + 0.0, r.regime]
        rows.append([f"{c.noise:.0%}", short(c.strength), r.samples, r.mistakes, *bounds])
    page.table(
        ["noise", "λ", "samples", "mistakes", "Theorem 1", "Corollary 1", "λ Δ(u)", "regime"],
        rows,
        "At the end of the pass.",
        notes="Corollary 1 bounds the probability of an error on a new example; above 1 it "
        "says nothing.",
    )


def _settings(page: Page, problems: Problems, plan: Plan) -> None:
    page.section("Settings")
    with page.details("Chosen settings"):
        rows = []
        for results in problems:
            specs = {spec.key: spec for spec in plan.learners(results.problem)}
            for key, choice in results.choices.items():
                spec, best, sparse = specs[key], choice.best, choice.sparse.setting
                values = (_value(best.setting.get(name)) for name in (spec.strength, "rate"))
                ends = [_value(sparse.get(spec.strength)), " and ".join(choice.edges) or None]
                rows.append([results.name, spec.title, *values, best.score, *ends])
        page.table(
            [
                *("problem", "learner", "λ or gravity", "rate", "held-out score", "λ, sparse"),
                "at the edge of its grid",
            ],
            rows,
            align="llrrrrl",
        )
    with page.details("Grids"):
        for name, learners in (("texts", plan.specs), ("lists", plan.list_specs)):
            page.text(f"**{name}**")
            page.keyvalues(
                {
                    s.title: {s.strength: s.strengths, "rate": s.rates or "fixed"}
                    for s in learners
                    if s.strength
                }
            )
    with page.details("Signatures of the runs"):
        for results in problems:
            page.text(f"**{results.name}**")
            page.code("\n".join(run.signature for run in results.best.values()))


def _value(value: float | None) -> str | None:
    return None if value is None else f"{value:g}"


def _late(plan: Plan) -> int:
    return len(range(plan.passes)[plan.settled])
