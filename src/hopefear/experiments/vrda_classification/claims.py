"""What Xu, Gao, Xiao and Regan report, and each claim judged by what was measured.

A difference of accuracy counts only when a paired bootstrap over test examples gives p < 0.05, and
"as good" means that the 95 % interval of the difference stays above minus half a point. Claims on
numbers of weights are judged at the sparsest settings that are about as good, others at the best.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from hopefear.experiments.claims import (
    AGREES,
    ALPHA,
    DISAGREES,
    OPEN,
    all_of,
    clearly_more,
    not_worse,
)
from hopefear.experiments.frame import exponent, order_of
from hopefear.experiments.vrda_classification.plan import LOSSES, MARGIN, SWING, Plan, short
from hopefear.experiments.vrda_classification.runs import BoundCurve, Measured, compare
from hopefear.metrics import Comparison

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


class Verdict(NamedTuple):
    """What one problem says about one claim."""

    claim: str
    problem: str
    verdict: str
    evidence: str


def better(found: Comparison) -> str:
    """Is the first one better, beyond chance?

    >>> better(Comparison(90.0, 88.0, 2.0, 0.001, 1.0, 3.0, ""))
    'agrees'
    >>> better(Comparison(88.0, 88.1, -0.1, 0.7, -0.4, 0.2, ""))
    'not shown'
    """
    if found.p_value >= ALPHA:
        return OPEN
    return AGREES if found.difference > 0.0 else DISAGREES


def judge(made: Measured, plan: Plan) -> list[Verdict]:
    """All claims on one problem."""
    checks = TABLE_CHECKS if made.problem.table_only else TABLE_CHECKS + FIGURE_CHECKS
    return [Verdict(claim, made.name, *check(made, plan)) for claim, check in checks]


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


def _points(found: Comparison) -> str:
    return (
        f"{found.first:.2f} against {found.second:.2f} % "
        f"({found.difference:+.2f}, p {_p(found.p_value)})"
    )


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def _as_perceptron(loss: str) -> Callable[[Measured, Plan], tuple[str, str]]:
    def check(made: Measured, plan: Plan) -> tuple[str, str]:
        ours, theirs = made.sparse[f"vrda-{loss}"], made.best["perceptron"]
        found = compare(ours.averaged.right, theirs.averaged.right)
        kept = ours.averaged.nnz.mean() / theirs.averaged.nnz.mean()
        last = ours.last.nnz.mean() / theirs.last.nnz.mean()
        fewer = AGREES if kept < 1.0 and last < 1.0 else DISAGREES if last >= 1.0 else OPEN
        return all_of([as_good(found), fewer]), (
            f"accuracy {_points(found)}; {kept:.0%} of the perceptron's averaged weights, "
            f"{last:.0%} of its last"
        )

    return check


def _beats_tg(loss: str) -> Callable[[Measured, Plan], tuple[str, str]]:
    def check(made: Measured, plan: Plan) -> tuple[str, str]:
        ours, theirs = made.sparse[f"vrda-{loss}"], made.sparse[f"tg-{loss}"]
        found = compare(ours.averaged.right, theirs.averaged.right)
        kept = ours.averaged.nnz.mean() / theirs.averaged.nnz.mean()
        return (
            all_of([better(found), AGREES if kept < 1.0 else DISAGREES]),
            f"accuracy {_points(found)}; {kept:.0%} of TG's averaged weights",
        )

    return check


def _log_is_sparser(made: Measured, plan: Plan) -> tuple[str, str]:
    log, hinge = made.sparse["vrda-log"], made.sparse["vrda-hinge"]
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


def _unregularised(loss: str) -> Callable[[Measured, Plan], tuple[str, str]]:
    def check(made: Measured, plan: Plan) -> tuple[str, str]:
        free = next(t for t in made.trails[loss] if t.strength == 0.0)
        ours, theirs = int(free.mistakes[-1]), int(made.trails["perceptron"][0].mistakes[-1])
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


def _more_mistakes(loss: str) -> Callable[[Measured, Plan], tuple[str, str]]:
    def check(made: Measured, plan: Plan) -> tuple[str, str]:
        trails = made.trails[loss]
        counts = [int(t.mistakes[-1]) for t in trails]
        rho = order_of([t.strength for t in trails], counts)
        word = AGREES if rho > 0.89 else DISAGREES if rho <= 0.0 else OPEN
        return word, ", ".join(
            f"λ = {short(t.strength)}: {c:,}" for t, c in zip(trails, counts, strict=True)
        )

    return check


def _sublinear(made: Measured, plan: Plan) -> tuple[str, str]:
    n, words, parts = len(made.problem.train), [], []
    for loss in LOSSES:
        trail = made.trails[loss][0]
        b = exponent(trail, n)
        per_pass = np.diff(
            trail.mistakes[np.searchsorted(trail.samples, n * np.arange(plan.passes + 1))]
        )
        words.append(
            AGREES if b < 0.95 and per_pass[-1] < per_pass[0] else DISAGREES if b >= 1.0 else OPEN
        )
        parts.append(
            f"{loss}: mistakes grow like samples^{b:.2f} in the first pass, "
            f"{per_pass[0]:,} in it, {per_pass[-1]:,} in pass {plan.passes}"
        )
    return all_of(words), "; ".join(parts)


def _average_helps(loss: str) -> Callable[[Measured, Plan], tuple[str, str]]:
    def check(made: Measured, plan: Plan) -> tuple[str, str]:
        done, late = made.best[f"vrda-{loss}"], plan.settled
        found = compare(done.averaged.right[late], done.last.right[late])
        calm, wild = (s.series("accuracy")[late].std() for s in (done.averaged, done.last))
        steadier = swings_more(wild, calm)
        return (
            all_of([better(found), steadier]),
            f"accuracy {_points(found)}; deviation over passes {calm:.2f} against {wild:.2f}",
        )

    return check


def _log_swings(made: Measured, plan: Plan) -> tuple[str, str]:
    swing = {
        name: [
            made.best[f"vrda-{loss}"].last.series(name)[plan.settled].std()
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


def _conservative(
    loss: str, first: str, second: str
) -> Callable[[Measured, Plan], tuple[str, str]]:
    def check(made: Measured, plan: Plan) -> tuple[str, str]:
        found = compare(
            made.best[f"{first}-{loss}"].averaged.right,
            made.best[f"{second}-{loss}"].averaged.right,
        )
        return better(found), f"accuracy {_points(found)}"

    return check


def _saves_time(made: Measured, plan: Plan) -> tuple[str, str]:
    words, parts = [], []
    for loss in LOSSES:
        kept, bare = made.ratio(loss, "averaged"), made.ratio(loss, "last")
        words.append(AGREES if kept < 0.95 else DISAGREES if kept > 1.05 else OPEN)
        parts.append(
            f"{loss}: {kept:.0%} of RDA's CPU time with averages, {bare:.0%} without "
            f"(paper {TIME_RATIO[loss]:.1%})"
        )
    return all_of(words), "; ".join(parts)


def _votes(made: Measured, plan: Plan) -> tuple[str, str]:
    words, parts = [], []
    for loss, votes in made.votes.items():
        found = compare(votes.averaged, votes.voted)
        words.append(as_good(found))
        parts.append(f"{loss}: averaged {_points(found)} voted, on {len(votes.voted):,} examples")
    return all_of(words), "; ".join(parts)


_Check = tuple[str, Callable[[Measured, Plan], tuple[str, str]]]
TABLE_CHECKS: list[_Check] = [
    ("vRDA (hinge) is as good as the perceptron, with fewer weights", _as_perceptron("hinge")),
    ("vRDA (log) is as good as the perceptron, with fewer weights", _as_perceptron("log")),
    ("vRDA (hinge) is better and sparser than TG", _beats_tg("hinge")),
    ("vRDA (log) is better and sparser than TG", _beats_tg("log")),
    ("log loss needs fewer weights than hinge", _log_is_sparser),
]
FIGURE_CHECKS: list[_Check] = [
    ("λ = 0 makes fewer training mistakes than the perceptron (hinge)", _unregularised("hinge")),
    ("λ = 0 makes fewer training mistakes than the perceptron (log)", _unregularised("log")),
    ("more λ, more training mistakes (hinge)", _more_mistakes("hinge")),
    ("more λ, more training mistakes (log)", _more_mistakes("log")),
    ("mistakes grow more slowly than samples", _sublinear),
    ("the average is better and steadier than the last weights (hinge)", _average_helps("hinge")),
    ("the average is better and steadier than the last weights (log)", _average_helps("log")),
    ("the last weights swing most under log loss", _log_swings),
    ("hinge: vRDA is better than RDA", _conservative("hinge", "vrda", "rda")),
    ("log: RDA is better than vRDA", _conservative("log", "rda", "vrda")),
    ("vRDA trains faster than RDA", _saves_time),
    ("averaging does as well as voting", _votes),
]
