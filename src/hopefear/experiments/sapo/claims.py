"""Each claim of the paper, judged by what was measured.

The thresholds were set before the first full run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import numpy as np

from hopefear.experiments.claims import (
    AGREES,
    DISAGREES,
    OPEN,
    Difference,
    all_of,
    better,
    not_worse,
)
from hopefear.experiments.sapo.plan import AVERAGES, CRF, LAST, NAIVE, SAPO, SEARCHERS, Entry, Plan
from hopefear.experiments.sapo.runs import Measured
from hopefear.metrics import Tagging, approximate_randomisation, paired_bootstrap
from hopefear.metrics.tagging import READ_BY

TAIL = 3  # passes in a row whose mean stands for where a curve is


def compare(first: np.ndarray, second: np.ndarray, metric: str, replicates: int) -> Difference:
    """Paired bootstrap and approximate randomisation over sentences.

    Parameters
    ----------
    first, second : int64[sentences, 7]
        Counts as ``Tagging.rows`` gives.
    metric : str
        ``f1`` or ``accuracy``.
    replicates : int
        Of either test.
    """
    used = np.isin(np.arange(first.shape[1]), READ_BY[metric])
    # Equal counts are drawn together, so counts the score does not read are made equal.
    a, b, how = first * used, second * used, Tagging()
    drawn = paired_bootstrap(how, a, b, metric, replicates=replicates, seed=1)
    traded = approximate_randomisation(how, a, b, metric, replicates=replicates, seed=1)
    return Difference(
        drawn.first, drawn.second, drawn.low, drawn.high, drawn.p_value, traded.p_value
    )


def fall(curve: np.ndarray) -> float:
    """How far the mean over seeds ends below its best: best three passes in a row less the last.

    A single best pass would be the luckiest one, and every curve that swings would fall.

    >>> round(fall(np.array([[90.0, 93.0, 93.0, 93.0, 92.0, 92.0, 92.0]])), 6)
    1.0
    """
    mean = np.atleast_2d(curve).mean(axis=0)
    width = min(TAIL, mean.size)
    smooth = np.convolve(mean, np.full(width, 1.0 / width), "valid")
    return float(smooth.max() - smooth[-1])


def swing(curve: np.ndarray) -> float:
    """Deviation from pass to pass in the second half, within a seed, mean over seeds."""
    late = np.atleast_2d(curve)[:, curve.shape[-1] // 2 :]
    return float(late.std(axis=1).mean())


def exponent(sizes: np.ndarray) -> float:
    """b of ``size ~ pass^b``, least squares in logarithms; 1 is linear growth, 0 is none.

    >>> round(exponent(np.array([2.0, 4.0, 6.0, 8.0])), 6)
    1.0
    """
    passes = np.arange(1, sizes.size + 1)
    return float(np.polyfit(np.log(passes), np.log(np.maximum(sizes, 1e-300)), 1)[0])


def late_growth(sizes: np.ndarray) -> float:
    """Growth over the second half of the passes, as a share."""
    return float(sizes[-1] / sizes[(sizes.size - 1) // 2] - 1.0)


MARGIN = 0.2  # points within which two scores count as equally good
as_good = partial(not_worse, margin=MARGIN)
FALLS = 0.3  # points below the best passes from which a curve counts as falling
SETTLES = 0.1  # points below the best passes, and swing over passes, up to which it has settled
LINEAR, FLAT = 0.9, 0.5  # exponents of growth: linear from here, not linear below
STILL = 0.05  # growth over the second half of the passes up to which weights have settled
TIMES = 2.0  # "several times" is at least twice
COMPARABLE = 1.5  # ratio up to which times are "almost" the same


class Verdict(NamedTuple):
    """What one task says about one claim."""

    claim: str
    task: str
    verdict: str
    evidence: str


def alike(found: Difference) -> str:
    """Does the interval of the difference stay within the margin on both sides?"""
    if found.low > -MARGIN and found.high < MARGIN:
        return AGREES
    return DISAGREES if found.significant and abs(found.points) > MARGIN else OPEN


def between(value: float, agrees_from: float, disagrees_below: float) -> str:
    """Three answers from one number.

    >>> between(3.0, 2.0, 1.0), between(1.5, 2.0, 1.0), between(0.5, 2.0, 1.0)
    ('agrees', 'not shown', 'disagrees')
    """
    if value >= agrees_from:
        return AGREES
    return DISAGREES if value < disagrees_below else OPEN


def judge(made: Measured, plan: Plan) -> list[Verdict]:
    """All claims on one task."""
    checks = [*CHECKS, *(LIST_CHECKS if made.by_n else [])]
    return [Verdict(claim, made.name, *check(made, plan)) for claim, check in checks]


def against(made: Measured, plan: Plan, first: Entry, second: Entry) -> Difference:
    """Two learners at the last pass."""
    return compare(made.counts(first), made.counts(second), made.metric, plan.replicates)


_Check = Callable[[Measured, Plan], tuple[str, str]]


def _as_crf(made: Measured, plan: Plan) -> tuple[str, str]:
    found = against(made, plan, SAPO, CRF)
    return as_good(found), found.text()


def _better_than(second: Entry) -> _Check:
    def check(made: Measured, plan: Plan) -> tuple[str, str]:
        found = against(made, plan, SAPO, second)
        return better(found), found.text()

    return check


def _crf_beats(entries: Iterable[Entry]) -> _Check:
    def check(made: Measured, plan: Plan) -> tuple[str, str]:
        found = {e.title: against(made, plan, CRF, e) for e in entries}
        evidence = "; ".join(f"{title}: {f.text()}" for title, f in found.items())
        return all_of(map(better, found.values())), evidence

    return check


def _converges(entry: Entry) -> _Check:
    def check(made: Measured, plan: Plan) -> tuple[str, str]:
        curve = made.curve(entry)
        down, wave = fall(curve), swing(curve)
        word = AGREES if max(down, wave) <= SETTLES else DISAGREES if down >= FALLS else OPEN
        return word, f"ends {down:.2f} points below its best, swings by {wave:.2f}"

    return check


def _diverges(entries: Iterable[Entry]) -> _Check:
    def check(made: Measured, plan: Plan) -> tuple[str, str]:
        curves = {e.title: made.curve(e) for e in entries}
        falls = {title: fall(curve) for title, curve in curves.items()}
        evidence = "; ".join(
            f"{title} ends {falls[title]:.2f} below its best, swings by {swing(curve):.2f}"
            for title, curve in curves.items()
        )
        return all_of(between(down, FALLS, SETTLES) for down in falls.values()), evidence

    return check


def _explodes(made: Measured, plan: Plan) -> tuple[str, str]:
    found = {e.title: exponent(made.magnitude(e)) for e in NAIVE}
    evidence = "; ".join(f"{title} grows like pass^{b:.2f}" for title, b in found.items())
    return all_of(between(b, LINEAR, FLAT) for b in found.values()), evidence


def _weights_settle(made: Measured, plan: Plan) -> tuple[str, str]:
    sizes = made.magnitude(SAPO)
    growth = late_growth(sizes)
    word = AGREES if growth <= STILL else DISAGREES if growth > 4 * STILL else OPEN
    return word, (
        f"mean size {sizes[0]:.3g} after one pass, {sizes[-1]:.3g} after {sizes.size}; "
        f"{growth:+.0%} in the second half"
    )


def _weights_small(made: Measured, plan: Plan) -> tuple[str, str]:
    ours = made.magnitude(SAPO)[-1]
    theirs = {e.title: made.magnitude(e)[-1] for e in NAIVE}
    word = all_of(AGREES if ours < size else DISAGREES for size in theirs.values())
    return word, f"SAPO {ours:.3g}; " + ", ".join(f"{t} {s:.3g}" for t, s in theirs.items())


def _faster_than_crf(made: Measured, plan: Plan) -> tuple[str, str]:
    ours, theirs = made.seconds(SAPO), made.seconds(CRF)
    ratio = theirs / ours
    return between(ratio, TIMES, 1.2), (
        f"{ours:.3f} CPU seconds a pass, CRF {theirs:.3f}: {ratio:.1f} times as fast"
    )


def _fast_as_searchers(made: Measured, plan: Plan) -> tuple[str, str]:
    ours = made.seconds(SAPO)
    ratios = {e.title: ours / made.seconds(e) for e in NAIVE}
    worst = max(ratios.values())
    word = AGREES if worst <= COMPARABLE else DISAGREES if worst > 2 * COMPARABLE else OPEN
    return word, "; ".join(f"{r:.2f} times the time of {t}" for t, r in ratios.items())


def _searches_alike(made: Measured, plan: Plan) -> tuple[str, str]:
    exact, beam = (made.by_search[key][0].counts[LAST] for key in ("astar", "beam"))
    found = compare(exact, beam, made.metric, plan.replicates)
    return alike(found), f"A* {found.text()} beam"


def _few_are_enough(n: int) -> _Check:
    def check(made: Measured, plan: Plan) -> tuple[str, str]:
        most = max(made.by_n)
        few, many = (sum(r.counts[LAST] for r in made.by_n[key]) for key in (n, most))
        found = compare(few, many, made.metric, plan.replicates)
        return as_good(found), f"n = {n} {found.text()} n = {most}"

    return check


CHECKS: list[tuple[str, _Check]] = [
    ("SAPO is as good as the CRF, or better", _as_crf),
    ("SAPO is better than the CRF", _better_than(CRF)),
    *((f"SAPO is better than {entry.title}", _better_than(entry)) for entry in SEARCHERS),
    ("the CRF is better than perceptron and MIRA, naive", _crf_beats(NAIVE)),
    ("the CRF is better than perceptron and MIRA, averaged", _crf_beats(AVERAGES)),
    ("SAPO converges", _converges(SAPO)),
    ("the CRF converges", _converges(CRF)),
    ("perceptron and MIRA, naive, diverge: scores fall", _diverges(NAIVE)),
    ("perceptron and MIRA, averaged, diverge: scores fall", _diverges(AVERAGES)),
    ("SAPO's weights settle", _weights_settle),
    ("SAPO's weights stay smaller than those of perceptron and MIRA", _weights_small),
    ("weights of perceptron and MIRA grow linearly or faster", _explodes),
    ("SAPO is several times as fast as the CRF", _faster_than_crf),
    ("SAPO is almost as fast as perceptron and MIRA", _fast_as_searchers),
]
LIST_CHECKS: list[tuple[str, _Check]] = [
    ("a beam of 50 does as well as A*", _searches_alike),
    ("n = 5 is enough", _few_are_enough(5)),
]
