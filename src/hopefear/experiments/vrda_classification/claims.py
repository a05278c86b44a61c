"""What Xu, Gao, Xiao and Regan report, and each claim judged by what was measured.

A difference of accuracy counts only when a paired bootstrap over test examples gives p < 0.05, and
"as good" means that the 95 % interval of the difference stays above minus half a point. Claims on
numbers of weights are judged at the sparsest settings that are about as good, others at the best.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hopefear.experiments.claims import (
    AGREES,
    DISAGREES,
    OPEN,
    Claim,
    Difference,
    Verdict,
    all_of,
    better,
    clearly_more,
    not_worse,
    order_of,
    p_text,
)
from hopefear.experiments.vrda_classification.plan import LOSSES, MARGIN, SWING, short
from hopefear.experiments.vrda_classification.runs import (
    BoundCurve,
    Measurement,
    Results,
    Scores,
    compare_right,
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


PLACE = "problem"
as_good = partial(not_worse, margin=MARGIN)
swings_more = partial(clearly_more, ratio=SWING)  # ten passes give deviations to a quarter


_Check = Callable[[Results], tuple[str, str]]


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
    holds = all(r.holds and r.mistakes <= r.theorem1 for r in reports)
    return Verdict(
        "Theorem 1 bounds the mistakes",
        "generated for the bound",
        AGREES if holds else DISAGREES,
        f"{len(reports)} places checked, mistakes at most {worst:.0%} of the bound; {ends}",
    )


def _points(difference: Difference) -> str:
    return (
        f"{difference.first:.2f} against {difference.second:.2f} % "
        f"({difference.points:+.2f}, p {p_text(difference.p)})"
    )


def _accuracy(first: Scores, second: Scores, late: slice = slice(None)) -> Difference:
    return compare_right(first.right[late], second.right[late])


def _as_perceptron(loss: str) -> _Check:
    def check(results: Results) -> tuple[str, str]:
        ours, theirs = results.sparse[f"vrda-{loss}"], results.best["perceptron"]
        difference = _accuracy(ours.averaged, theirs.averaged)
        average = ours.averaged.nnz.mean() / theirs.averaged.nnz.mean()
        last = ours.last.nnz.mean() / theirs.last.nnz.mean()
        fewer = AGREES if average < 1.0 and last < 1.0 else DISAGREES if last >= 1.0 else OPEN
        return all_of([as_good(difference), fewer]), (
            f"accuracy {_points(difference)}; {average:.0%} of the perceptron's averaged weights, "
            f"{last:.0%} of its last"
        )

    return check


def _beats_tg(loss: str) -> _Check:
    def check(results: Results) -> tuple[str, str]:
        ours, theirs = results.sparse[f"vrda-{loss}"], results.sparse[f"tg-{loss}"]
        difference = _accuracy(ours.averaged, theirs.averaged)
        average = ours.averaged.nnz.mean() / theirs.averaged.nnz.mean()
        return (
            all_of([better(difference), AGREES if average < 1.0 else DISAGREES]),
            f"accuracy {_points(difference)}; {average:.0%} of TG's averaged weights",
        )

    return check


def _log_is_sparser(results: Results) -> tuple[str, str]:
    log, hinge = results.sparse["vrda-log"], results.sparse["vrda-hinge"]
    counts = [
        (log.averaged.nnz.mean(), hinge.averaged.nnz.mean()),
        (log.last.nnz.mean(), hinge.last.nnz.mean()),
    ]
    fewer = [a < b for a, b in counts]
    word = AGREES if all(fewer) else OPEN if any(fewer) else DISAGREES
    return word, "; ".join(
        f"{name}: log {a:,.0f}, hinge {b:,.0f}"
        for name, (a, b) in zip(("averaged", "last"), counts, strict=True)
    )


def _unregularised(loss: str) -> _Check:
    def check(results: Results) -> tuple[str, str]:
        free = next(t for t in results.trails[loss] if t.strength == 0.0)
        ours, theirs = int(free.mistakes[-1]), int(results.trails["perceptron"][0].mistakes[-1])
        change = ours / max(1, theirs) - 1.0
        word = AGREES if change < -0.01 else DISAGREES if change > 0.01 else OPEN
        evidence = f"{ours:,} mistakes, perceptron {theirs:,} ({change:+.1%})"
        if loss == "hinge" and abs(change) < 1e-3:
            word = DISAGREES
            evidence += (
                "; they are the same learner: with λ = 0 equation (4) is a positive "
                "multiple of the perceptron's weights"
            )
        return word, evidence

    return check


def _more_mistakes(loss: str) -> _Check:
    def check(results: Results) -> tuple[str, str]:
        trails = results.trails[loss]
        counts = [int(t.mistakes[-1]) for t in trails]
        rho = order_of([t.strength for t in trails], counts)
        word = AGREES if rho > 0.89 else DISAGREES if rho <= 0.0 else OPEN
        return word, ", ".join(
            f"λ = {short(t.strength)}: {c:,}" for t, c in zip(trails, counts, strict=True)
        )

    return check


def _sublinear(results: Results) -> tuple[str, str]:
    n, words, parts = len(results.problem.train), [], []
    for loss in LOSSES:
        trail = results.trails[loss][0]
        b, per_pass = trail.exponent(n), trail.by_pass(n, results.plan.passes)
        words.append(
            AGREES if b < 0.95 and per_pass[-1] < per_pass[0] else DISAGREES if b >= 1.0 else OPEN
        )
        parts.append(
            f"{loss}: mistakes grow like samples^{b:.2f} in the first pass, "
            f"{per_pass[0]:,} in it, {per_pass[-1]:,} in pass {results.plan.passes}"
        )
    return all_of(words), "; ".join(parts)


def _average_helps(loss: str) -> _Check:
    def check(results: Results) -> tuple[str, str]:
        done, late = results.best[f"vrda-{loss}"], results.plan.settled
        difference = _accuracy(done.averaged, done.last, late)
        calm, wild = (s.series("accuracy")[late].std() for s in (done.averaged, done.last))
        steadier = swings_more(wild, calm)
        return (
            all_of([better(difference), steadier]),
            f"accuracy {_points(difference)}; deviation over passes {calm:.2f} against {wild:.2f}",
        )

    return check


def _log_swings(results: Results) -> tuple[str, str]:
    swing = {
        name: [
            results.best[f"vrda-{loss}"].last.series(name)[results.plan.settled].std()
            for loss in ("log", "hinge")
        ]
        for name in ("accuracy", "f1")
    }
    log, hinge = swing["accuracy"]
    return (
        swings_more(log, hinge),
        f"deviation of the last weights' accuracy: log {log:.2f}, hinge {hinge:.2f}; of their "
        f"F: log {swing['f1'][0]:.2f}, hinge {swing['f1'][1]:.2f}",
    )


def _conservative(loss: str, first: str, second: str) -> _Check:
    def check(results: Results) -> tuple[str, str]:
        ours, theirs = (results.best[f"{rule}-{loss}"].averaged for rule in (first, second))
        difference = _accuracy(ours, theirs)
        return better(difference), f"accuracy {_points(difference)}"

    return check


def _saves_time(results: Results) -> tuple[str, str]:
    words, parts = [], []
    for loss in LOSSES:
        average, bare = results.ratio(loss, "averaged"), results.ratio(loss, "last")
        words.append(AGREES if average < 0.95 else DISAGREES if average > 1.05 else OPEN)
        parts.append(
            f"{loss}: {average:.0%} of RDA's CPU time with averages, {bare:.0%} without "
            f"(paper {TIME_RATIO[loss]:.1%})"
        )
    return all_of(words), "; ".join(parts)


def _votes(results: Results) -> tuple[str, str]:
    words, parts = [], []
    for loss, votes in results.votes.items():
        difference = compare_right(votes.averaged, votes.voted)
        words.append(as_good(difference))
        parts.append(
            f"{loss}: averaged {_points(difference)} voted, on {len(votes.voted):,} examples"
        )
    return all_of(words), "; ".join(parts)


TABLE_CLAIMS = [
    *(
        Claim(
            f"vRDA ({loss}) is as good as the perceptron, with fewer weights", _as_perceptron(loss)
        )
        for loss in LOSSES
    ),
    *(Claim(f"vRDA ({loss}) is better and sparser than TG", _beats_tg(loss)) for loss in LOSSES),
    Claim("log loss needs fewer weights than hinge", _log_is_sparser),
]
FIGURE_CLAIMS = [
    *(
        Claim(
            f"λ = 0 makes fewer training mistakes than the perceptron ({loss})",
            _unregularised(loss),
        )
        for loss in LOSSES
    ),
    *(Claim(f"more λ, more training mistakes ({loss})", _more_mistakes(loss)) for loss in LOSSES),
    Claim("mistakes grow more slowly than samples", _sublinear),
    *(
        Claim(
            f"the average is better and steadier than the last weights ({loss})",
            _average_helps(loss),
        )
        for loss in LOSSES
    ),
    Claim("the last weights swing most under log loss", _log_swings),
    Claim("hinge: vRDA is better than RDA", _conservative("hinge", "vrda", "rda")),
    Claim("log: RDA is better than vRDA", _conservative("log", "rda", "vrda")),
    Claim("vRDA trains faster than RDA", _saves_time),
    Claim("averaging does as well as voting", _votes),
]
