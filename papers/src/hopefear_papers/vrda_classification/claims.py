"""What Xu, Gao, Xiao and Regan report, and each claim judged by what was measured.

A difference of accuracy (of F, on parses) counts only when a paired bootstrap over test examples
gives p < 0.05, and "as good" means that the 95 % interval of the difference stays above minus half
a point. Claims on numbers of weights are judged at the sparsest settings that are about as good,
others at the best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from hopefear_papers.claims import (
    DISAGREES,
    Claim,
    Difference,
    Finding,
    Verdict,
    all_of,
    better,
    clearly_more,
    not_worse,
    order_of,
    p_text,
    says,
)
from hopefear_papers.frame import short
from hopefear_papers.vrda_classification.plan import LOSSES, MARGIN, SWING
from hopefear_papers.vrda_classification.runs import (
    BoundCurve,
    Measurement,
    Results,
    Run,
    compare_scores,
)

# Parse reranking, section 22 of the Penn Treebank; means over 20 passes; thousands of weights.
TABLE_1: tuple[tuple[str, float, float, float, int | None], ...] = (
    ("Baseline", 0.8983, 0.8990, 0.8986, None),
    ("Perceptron", 0.9191, 0.9143, 0.9164, 939),
    ("TG (hinge)", 0.9198, 0.9127, 0.9172, 775),
    ("TG (log)", 0.9190, 0.9139, 0.9165, 485),
    ("vRDA (hinge)", 0.9211, 0.9150, 0.9175, 932),
    ("vRDA (log)", 0.9204, 0.9144, 0.9174, 173),
)
TIME_RATIO = {"hinge": 0.897, "log": 0.872}  # CPU time of voted RDA, as a share of RDA's
SETTINGS = "hinge: η = 0.05, λ = 1e-5; log: η = 1000, λ = 1e-4"


as_good = partial(not_worse, margin=MARGIN)
swings_more = partial(clearly_more, ratio=SWING)  # ten passes give deviations to a quarter


def judge(measurement: Measurement) -> list[Verdict]:
    """All claims on all problems, and Theorem 1 on generated data."""
    verdicts = [
        claim.judged(results.name, results)
        for results in measurement.problems
        for claim in TABLE_CLAIMS + (FIGURE_CLAIMS if results.whole else [])
    ]
    return [*verdicts, judge_bound(measurement.curves)]


def judge_bound(curves: list[BoundCurve]) -> Verdict:
    """Theorem 1 on generated data."""
    reports = [r for curve in curves for r in curve.reports]
    worst = max(r.mistakes / r.theorem1 for r in reports)
    ends = "; ".join(
        f"{c.noise:.0%} noise, {c.label}: {c.reports[-1].mistakes:,} mistakes, bound "
        f"{c.reports[-1].theorem1:,.0f}"
        for c in curves
    )
    word = says(all(r.holds and r.mistakes <= r.theorem1 for r in reports))
    places = f"{len(reports)} places checked, mistakes at most {worst:.0%} of the bound"
    where = "generated for the bound"
    return Verdict("Theorem 1 bounds the mistakes", where, word, f"{places}; {ends}")


def _points(difference: Difference) -> str:
    return (
        f"{difference.first:.2f} against {difference.second:.2f} % "
        f"({difference.gap}, p {p_text(difference.p)})"
    )


def _shares(ours: Run, theirs: Run) -> tuple[float, float]:
    """Weights of one run as a share of another's: averaged, and last."""
    averaged = ours.averaged.nnz.mean() / theirs.averaged.nnz.mean()
    return float(averaged), float(ours.last.nnz.mean() / theirs.last.nnz.mean())


def _as_perceptron(results: Results, loss: str) -> Finding:
    ours, theirs = results.sparse[f"vrda-{loss}"], results.best["perceptron"]
    difference = compare_scores(ours.averaged, theirs.averaged)
    average, last = _shares(ours, theirs)
    fewer = says(average < 1.0 and last < 1.0, last >= 1.0)
    return all_of([as_good(difference), fewer]), (
        f"{results.task.title} {_points(difference)}; {average:.0%} of the perceptron's averaged "
        f"weights, {last:.0%} of its last"
    )


def _beats_tg(results: Results, loss: str) -> Finding:
    ours, theirs = results.sparse[f"vrda-{loss}"], results.sparse[f"tg-{loss}"]
    difference = compare_scores(ours.averaged, theirs.averaged)
    average, _ = _shares(ours, theirs)
    title = results.task.title
    evidence = f"{title} {_points(difference)}; {average:.0%} of TG's averaged weights"
    return all_of([better(difference), says(average < 1.0)]), evidence


def _log_is_sparser(results: Results) -> Finding:
    log, hinge = results.sparse["vrda-log"], results.sparse["vrda-hinge"]
    counts = {
        "averaged": (log.averaged.nnz.mean(), hinge.averaged.nnz.mean()),
        "last": (log.last.nnz.mean(), hinge.last.nnz.mean()),
    }
    fewer = [a < b for a, b in counts.values()]
    return says(all(fewer), not any(fewer)), "; ".join(
        f"{name}: log {a:,.0f}, hinge {b:,.0f}" for name, (a, b) in counts.items()
    )


def _unregularised(results: Results, loss: str) -> Finding:
    free = next(t for t in results.trails[loss] if t.strength == 0.0)
    ours, theirs = int(free.mistakes[-1]), int(results.trails["perceptron"][0].mistakes[-1])
    change = ours / max(1, theirs) - 1.0
    evidence = f"{ours:,} mistakes, perceptron {theirs:,} ({change:+.1%})"
    if loss == "hinge" and abs(change) <= 0.01:
        return DISAGREES, (
            f"{evidence}; but for ties they are the same learner: with λ = 0 equation (4) is a "
            "positive multiple of the perceptron's weights"
        )
    return says(change < -0.01, change > 0.01), evidence


def _more_mistakes(results: Results, loss: str) -> Finding:
    counts = {t.strength: int(t.mistakes[-1]) for t in results.trails[loss]}
    rho = order_of(counts, counts.values())
    evidence = ", ".join(f"λ = {short(strength)}: {n:,}" for strength, n in counts.items())
    return says(rho > 0.89, rho <= 0.0), evidence


def _sublinear(results: Results) -> Iterator[Finding]:
    n, passes = results.visits, results.plan.passes
    for loss in LOSSES:
        trail = results.trails[loss][0]
        b, per_pass = trail.exponent(n), trail.by_pass(n, passes)
        evidence = (
            f"{loss}: mistakes grow like samples^{b:.2f} in the first pass, "
            f"{per_pass[0]:,} in it, {per_pass[-1]:,} in pass {passes}"
        )
        yield says(b < 0.95 and bool(per_pass[-1] < per_pass[0]), b >= 1.0), evidence


def _average_helps(results: Results, loss: str) -> Finding:
    run, late = results.best[f"vrda-{loss}"], results.plan.settled
    difference, task = compare_scores(run.averaged, run.last, late), results.task
    calm, wild = (s.series(task.main)[late].std() for s in (run.averaged, run.last))
    evidence = (
        f"{task.title} {_points(difference)}; deviation over passes {calm:.2f} against {wild:.2f}"
    )
    return all_of([better(difference), swings_more(wild, calm)]), evidence


def _log_swings(results: Results) -> Finding:
    swings = {
        name: [
            results.best[f"vrda-{loss}"].last.series(name)[results.plan.settled].std()
            for loss in ("log", "hinge")
        ]
        for name in dict.fromkeys((results.task.main, "f1"))
    }
    numbers = (
        f"{'F' if name == 'f1' else name}: log {log:.2f}, hinge {hinge:.2f}"
        for name, (log, hinge) in swings.items()
    )
    word = swings_more(*swings[results.task.main])
    return word, "deviation of the last weights' " + "; of their ".join(numbers)


def _conservative(results: Results, loss: str, first: str, second: str) -> Finding:
    ours, theirs = (results.best[f"{rule}-{loss}"].averaged for rule in (first, second))
    difference = compare_scores(ours, theirs)
    return better(difference), f"{results.task.title} {_points(difference)}"


def _saves_time(results: Results) -> Iterator[Finding]:
    for loss in LOSSES:
        average, bare = results.ratio(loss, "averaged"), results.ratio(loss, "last")
        evidence = (
            f"{loss}: {average:.0%} of RDA's CPU time with averages, {bare:.0%} without "
            f"(paper {TIME_RATIO[loss]:.1%})"
        )
        yield says(average < 0.95, average > 1.05), evidence


def _votes(results: Results) -> Iterator[Finding]:
    for loss, votes in results.votes.items():
        difference = compare_scores(votes.averaged, votes.voted)
        examples = f"on {votes.voted.choices.shape[1]:,} examples"
        yield as_good(difference), f"{loss}: averaged {_points(difference)} voted, {examples}"


def _both(text: str, check: Callable[..., Finding]) -> list[Claim]:
    """A claim for either loss."""
    return [Claim(text.replace("LOSS", loss), check, loss) for loss in LOSSES]


TABLE_CLAIMS = [
    *_both("vRDA (LOSS) is as good as the perceptron, with fewer weights", _as_perceptron),
    *_both("vRDA (LOSS) is better and sparser than TG", _beats_tg),
    Claim("log loss needs fewer weights than hinge", _log_is_sparser),
]
FIGURE_CLAIMS = [
    *_both("λ = 0 makes fewer training mistakes than the perceptron (LOSS)", _unregularised),
    *_both("more λ, more training mistakes (LOSS)", _more_mistakes),
    Claim("mistakes grow more slowly than samples", _sublinear),
    *_both("the average is better and steadier than the last weights (LOSS)", _average_helps),
    Claim("the last weights swing most under log loss", _log_swings),
    Claim("hinge: vRDA is better than RDA", _conservative, "hinge", "vrda", "rda"),
    Claim("log: RDA is better than vRDA", _conservative, "log", "rda", "vrda"),
    Claim("vRDA trains faster than RDA", _saves_time),
    Claim("averaging does as well as voting", _votes),
]
