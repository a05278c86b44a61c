"""Each claim of the paper, judged by what was measured.

The thresholds were set before the first full run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from hopefear_papers.claims import (
    Claim,
    Difference,
    Finding,
    Verdict,
    all_of,
    better,
    between,
    not_worse,
    pairwise,
    says,
)
from hopefear_papers.sapo.plan import (
    AVERAGES,
    CRF,
    LAST,
    NAIVE,
    NETWORKS,
    SAPO,
    SEARCHERS,
    Entry,
)
from hopefear_papers.sapo.runs import Results

MARGIN = 0.2  # points within which two scores count as equally good
as_good = partial(not_worse, margin=MARGIN)
FALLS = 0.3  # points below the best passes from which a curve counts as falling
SETTLES = 0.1  # points below the best passes, and swing over passes, up to which it has settled
LINEAR, FLAT = 0.9, 0.5  # exponents of growth: linear from here, not linear below
STILL = 0.05  # growth over the second half of the passes up to which weights have settled
TIMES = 2.0  # "several times" is at least twice
COMPARABLE = 1.5  # ratio up to which times are "almost" the same
TAIL = 3  # passes in a row whose mean stands for where a curve is


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


def alike(difference: Difference) -> str:
    """Does the interval of the difference stay within the margin on both sides?"""
    inside = difference.low > -MARGIN and difference.high < MARGIN
    return says(inside, difference.significant and abs(difference.points) > MARGIN)


def judge(tasks: Sequence[Results]) -> list[Verdict]:
    """All claims on all tasks."""
    return [
        claim.judged(task.name, task)
        for task in tasks
        for claim in [
            *CLAIMS,
            *(LIST_CLAIMS if task.by_n else []),
            *(NETWORK_CLAIMS if task.networks else []),
        ]
    ]


def _sapo(task: Results, word: Callable[[Difference], str], second: Entry) -> Finding:
    difference = task.against(SAPO, second)
    return word(difference), difference.text()


def _crf_beats(task: Results, entries: Sequence[Entry]) -> Finding:
    return pairwise({e.title: task.against(CRF, e) for e in entries})


def _converges(task: Results, entry: Entry) -> Finding:
    down, wave = fall(task.curve(entry)), swing(task.curve(entry))
    word = says(max(down, wave) <= SETTLES, down >= FALLS)
    return word, f"ends {down:.2f} points below its best, swings by {wave:.2f}"


def _diverges(task: Results, entries: Sequence[Entry]) -> Iterator[Finding]:
    for e in entries:
        down, wave = fall(task.curve(e)), swing(task.curve(e))
        evidence = f"{e.title} ends {down:.2f} below its best, swings by {wave:.2f}"
        yield between(down, FALLS, SETTLES), evidence


def _explodes(task: Results) -> Iterator[Finding]:
    for e in NAIVE:
        b = exponent(task.magnitude(e))
        yield between(b, LINEAR, FLAT), f"{e.title} grows like pass^{b:.2f}"


def _weights_settle(task: Results) -> Finding:
    sizes = task.magnitude(SAPO)
    growth = late_growth(sizes)
    return says(growth <= STILL, growth > 4 * STILL), (
        f"mean size {sizes[0]:.3g} after one pass, {sizes[-1]:.3g} after {sizes.size}; "
        f"{growth:+.0%} in the second half"
    )


def _weights_small(task: Results) -> Finding:
    ours = task.magnitude(SAPO)[-1]
    theirs = {e.title: task.magnitude(e)[-1] for e in NAIVE}
    word = all_of(says(bool(ours < size)) for size in theirs.values())
    return word, f"SAPO {ours:.3g}; " + ", ".join(f"{t} {s:.3g}" for t, s in theirs.items())


def _faster_than_crf(task: Results) -> Finding:
    ours, theirs = task.seconds(SAPO), task.seconds(CRF)
    ratio = theirs / ours
    return between(ratio, TIMES, 1.2), (
        f"{ours:.3f} CPU seconds a pass, CRF {theirs:.3f}: {ratio:.1f} times as fast"
    )


def _faster_than(task: Results, entries: Sequence[Entry]) -> Iterator[Finding]:
    for e in entries:
        ratio = task.seconds(e) / task.seconds(SAPO)
        yield between(ratio, TIMES, 1.2), f"{ratio:.1f} times as fast as {e.title}"


def _fast_as_searchers(task: Results) -> Iterator[Finding]:
    for e in NAIVE:
        ratio = task.seconds(SAPO) / task.seconds(e)
        word = says(ratio <= COMPARABLE, ratio > 2 * COMPARABLE)
        yield word, f"{ratio:.2f} times the time of {e.title}"


def _searches_alike(task: Results) -> Finding:
    difference = task.compare(task.by_search["astar"], task.by_search["beam"], (LAST, LAST))
    return alike(difference), f"A* {difference.text()} beam"


def _few_are_enough(task: Results, n: int) -> Finding:
    most = max(task.by_n)
    difference = task.compare(task.by_n[n], task.by_n[most], (LAST, LAST))
    return as_good(difference), f"n = {n} {difference.text()} n = {most}"


CLAIMS = [
    Claim("SAPO is as good as the CRF, or better", _sapo, as_good, CRF),
    Claim("SAPO is better than the CRF", _sapo, better, CRF),
    *(Claim(f"SAPO is better than {entry.title}", _sapo, better, entry) for entry in SEARCHERS),
    Claim("the CRF is better than perceptron and MIRA, naive", _crf_beats, NAIVE),
    Claim("the CRF is better than perceptron and MIRA, averaged", _crf_beats, AVERAGES),
    Claim("SAPO converges", _converges, SAPO),
    Claim("the CRF converges", _converges, CRF),
    Claim("perceptron and MIRA, naive, diverge: scores fall", _diverges, NAIVE),
    Claim("perceptron and MIRA, averaged, diverge: scores fall", _diverges, AVERAGES),
    Claim("SAPO's weights settle", _weights_settle),
    Claim("SAPO's weights stay smaller than those of perceptron and MIRA", _weights_small),
    Claim("weights of perceptron and MIRA grow linearly or faster", _explodes),
    Claim("SAPO is several times as fast as the CRF", _faster_than_crf),
    Claim("SAPO is almost as fast as perceptron and MIRA", _fast_as_searchers),
]
LIST_CLAIMS = [
    Claim("a beam of 50 does as well as A*", _searches_alike),
    Claim("n = 5 is enough", _few_are_enough, 5),
]
NETWORK_CLAIMS = [
    *(Claim(f"SAPO is better than {entry.title}", _sapo, better, entry) for entry in NETWORKS),
    Claim("SAPO is several times as fast as networks", _faster_than, NETWORKS),
    Claim("networks diverge: scores fall", _diverges, NETWORKS),
]
