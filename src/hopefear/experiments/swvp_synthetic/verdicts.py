"""Each claim of the paper, judged by what was measured.

A learner is better when an exact randomisation test over the datasets gives p < 0.05. Deviations
over ten datasets count as different from a ratio of 1.5 on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hopefear.experiments.common.differences import ALPHA
from hopefear.experiments.common.verdicts import AGREES, DISAGREES, OPEN, clearly_more
from hopefear.experiments.swvp_synthetic import paper
from hopefear.experiments.swvp_synthetic.measuring import Measured
from hopefear.experiments.swvp_synthetic.plan import LAST, VARIANTS, Plan
from hopefear.experiments.swvp_synthetic.tables import Cell, cell, control, patient_csp, sign_flips

RATIO = 1.5
MOST = 0.7  # share of the datasets that is a majority of the paper's size (7 of 10)


class Verdict(NamedTuple):
    """What one setting says about one claim."""

    claim: str
    setting: int
    verdict: str
    evidence: str


def better(differences: np.ndarray) -> str:
    """Are the differences above zero, beyond chance?

    >>> better(np.arange(1.0, 11.0)), better(np.array([1.0, -1.0])), better(-np.ones(10))
    ('agrees', 'not shown', 'disagrees')
    """
    if sign_flips(differences) >= ALPHA:
        return OPEN
    return AGREES if differences.mean() > 0.0 else DISAGREES


def steadier(ours: float, theirs: float) -> str:
    """Is our deviation clearly the smaller one?"""
    return clearly_more(theirs, ours, RATIO)


def opposite(word: str) -> str:
    """The verdict on the contrary claim."""
    return {AGREES: DISAGREES, DISAGREES: AGREES, OPEN: OPEN}[word]


def judge(measured: Sequence[Measured], plan: Plan) -> list[Verdict]:
    """All claims on one setting, on the last weights."""
    setting = measured[0].setting
    cells = {v.key: cell(measured, v.key, LAST) for v in VARIANTS}
    found = [_is_better(cells[v.key]) for v in VARIANTS]
    found += [_is_steadier(cells), _wins(cells, setting), _generalises(cells), _carries(cells)]
    found.append(_converges(measured, plan))
    found += [_unchecked(measured), _is_the_learner(measured)]
    return [Verdict(claim, setting, word, evidence) for claim, word, evidence in found]


def _points(found: Cell) -> str:
    return (
        f"{found.accuracy.mean():.2f} against {found.csp.mean():.2f} % ({found.gain:+.2f}, "
        f"paper {paper.gain(found.setting, found.title):+.2f}), p = {found.p_datasets:.3f} over "
        f"datasets, {found.pooled.p_value:.4f} over test items"
    )


def _is_better(found: Cell) -> tuple[str, str, str]:
    word = better(found.accuracy - found.csp)
    if paper.gain(found.setting, found.title) < 0.0:  # the paper's one exception
        word = opposite(word)
    return (f"{found.title} differs from CSP as in the paper", word, _points(found))


def _is_steadier(cells: Mapping[str, Cell]) -> tuple[str, str, str]:
    ours = {key: float(c.accuracy.std(ddof=1)) for key, c in cells.items()}
    theirs = float(next(iter(cells.values())).csp.std(ddof=1))
    evidence = ", ".join(f"{key} {value:.2f}" for key, value in ours.items())
    return (
        "SWVP varies less over datasets than CSP",
        steadier(float(np.median(list(ours.values()))), theirs),
        f"deviations: {evidence}; CSP {theirs:.2f}; the median is judged",
    )


def _wins(cells: Mapping[str, Cell], setting: int) -> tuple[str, str, str]:
    need = {key: MOST * len(c.csp) for key, c in cells.items()}
    most = [c.wins >= need[key] for key, c in cells.items()]
    word = AGREES if all(most) else OPEN if any(most) else DISAGREES
    if setting == 3:  # the paper has no majority there
        word = opposite(word)
    wins = ", ".join(f"{key} {c.wins}/{len(c.csp)}" for key, c in cells.items())
    theirs = ", ".join(f"{paper.TABLE_1[setting][key].wins}/10" for key in cells)
    return (
        "SWVP wins on a majority of datasets (7 to 10 of 10) in settings 1 and 2, not in 3",
        word,
        f"{wins} (paper {theirs})",
    )


def _generalises(cells: Mapping[str, Cell]) -> tuple[str, str, str]:
    total = sum(len(c.csp) for c in cells.values())
    good = sum(c.generalises for c in cells.values())
    worst = max(float(c.behind.max()) for c in cells.values())
    word = AGREES if good == total else DISAGREES if good < 0.9 * total else OPEN
    return (
        "the beta chosen on development items is the best on test, or within 0.5 points",
        word,
        f"{good} of {total}; the chosen beta is up to {worst:.2f} points behind",
    )


def _carries(cells: Mapping[str, Cell]) -> tuple[str, str, str]:
    total = sum(len(c.csp) for c in cells.values())
    failed = sum(c.better_on_dev_only for c in cells.values())
    word = AGREES if failed <= 1 else DISAGREES if failed > 0.1 * total else OPEN
    return (
        "what beats CSP on development items beats it on test",
        word,
        f"fails in {failed} of {total} (paper: {paper.BETTER_ON_DEV_ONLY} of 120)",
    )


def _converges(measured: Sequence[Measured], plan: Plan) -> tuple[str, str, str]:
    runs = [run for m in measured for v in VARIANTS[:2] for run in m.swvp[v.title]]
    settled = sum(int(run.mistakes[-1] == 0) for run in runs)
    wrong = np.mean([run.mistakes[-1] for run in runs])
    swing = np.mean([run.dev[LAST, plan.passes // 2 :].std() for run in runs])
    return (
        "balanced learners converge within 10 passes",
        AGREES if settled == len(runs) else DISAGREES if settled == 0 else OPEN,
        f"{settled} of {len(runs)} runs came to a pass without an update; the last pass still "
        f"makes {wrong:,.0f} on average, and accuracy varies by {swing:.2f} points over the later "
        "passes",
    )


def _unchecked(measured: Sequence[Measured]) -> tuple[str, str, str]:
    words, parts = [], []
    for variant in VARIANTS[:2]:
        free, held = (
            cell(measured, variant.key, LAST),
            cell(measured, variant.key + ", checked", LAST),
        )
        words.append(better(held.accuracy - free.accuracy))
        parts.append(
            f"{variant.key}: {free.accuracy.mean():.2f} %, checked {held.accuracy.mean():.2f} % "
            f"(p = {sign_flips(held.accuracy - free.accuracy):.3f})"
        )
    word = DISAGREES if AGREES in words else AGREES if DISAGREES in words else OPEN
    return "condition (2) need not be imposed on balanced learners", word, "; ".join(parts)


def _is_the_learner(measured: Sequence[Measured]) -> tuple[str, str, str]:
    best = paper.best_variant(measured[0].setting)
    found = cell(measured, best, LAST).accuracy - patient_csp(measured, LAST)
    parts = [
        f"{v.key} {c.gain:+.2f} (p = {c.p:.3f})"
        for v in VARIANTS
        for c in [control(measured, v.key, LAST)]
    ]
    return (
        "the gain is the learner's: it stays when CSP may choose its pass on development items",
        better(found),
        f"{'; '.join(parts)}; judged on {best}, the paper's best",
    )
