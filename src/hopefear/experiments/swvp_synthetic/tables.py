"""Cells of Table 1, from the runs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hopefear.experiments.swvp_synthetic.measuring import Measured
from hopefear.experiments.swvp_synthetic.plan import LENGTH, TOLERANCE
from hopefear.losses.swvp import BACKED_OFF, CONDITION_BROKEN, MISTAKES, NONE_USABLE
from hopefear.metrics import Accuracy, Comparison, paired_bootstrap


@dataclass(frozen=True)
class Cell:
    """A variant in a setting: one number a dataset, and what the paper counts."""

    setting: int
    title: str
    accuracy: np.ndarray  # float64[datasets], test, percent
    csp: np.ndarray
    betas: np.ndarray  # chosen on the development items
    behind: np.ndarray  # points the chosen beta loses on test against the best one
    wins: int
    generalises: int
    better_on_dev_only: int
    pooled: Comparison  # over the test sequences of all datasets
    p_datasets: float  # over the differences of the datasets

    @property
    def gain(self) -> float:
        return float((self.accuracy - self.csp).mean())


@dataclass(frozen=True)
class Conditions:
    """How often updates kept the conditions, over all runs of a variant in a setting; shares."""

    none_usable: float
    broken: float
    backed_off: float


def cell(measured: Sequence[Measured], title: str, kept: int) -> Cell:
    """A cell for the last weights or for the average; beta is chosen for the same weights."""
    chosen = [m.chosen(title, kept) for m in measured]
    ours = np.array([run.test[kept, -1] for run in chosen])
    csp = np.array([m.csp.test[kept, -1] for m in measured])
    best = np.array([max(run.test[kept, -1] for run in m.swvp[title]) for m in measured])
    on_dev = np.array(
        [run.dev[kept, -1] > m.csp.dev[kept, -1] for m, run in zip(measured, chosen, strict=True)]
    )
    return Cell(
        measured[0].setting,
        title,
        ours,
        csp,
        np.array([run.beta for run in chosen]),
        best - ours,
        int((ours > csp).sum()),
        # Accuracies are multiples of a token, so a difference of just the tolerance must count.
        int((best - ours <= TOLERANCE + 1e-9).sum()),
        int((on_dev & (ours <= csp)).sum()),
        pooled([run.right[kept] for run in chosen], [m.csp.right[kept] for m in measured]),
        sign_flips(ours - csp),
    )


@dataclass(frozen=True)
class Control:
    """What a choice among as many models is worth by itself."""

    csp: np.ndarray  # float64[datasets], test: CSP after the pass that does best on development
    gain: float  # of the variant over that
    p: float
    unchosen: float  # gain over plain CSP of the mean over all betas, nothing chosen
    p_unchosen: float


def patient_csp(measured: Sequence[Measured], kept: int) -> np.ndarray:
    """Test accuracy of CSP after the pass that does best on the development items."""
    return np.array(
        [m.csp.test[kept, int(np.argmax(m.csp.dev[kept]))] for m in measured], np.float64
    )


def control(measured: Sequence[Measured], title: str, kept: int) -> Control:
    """A variant against a CSP that may choose as well, and without any choice."""
    ours, csp = cell(measured, title, kept), patient_csp(measured, kept)
    means = np.array([np.mean([run.test[kept, -1] for run in m.swvp[title]]) for m in measured])
    chosen, unchosen = ours.accuracy - csp, means - ours.csp
    return Control(
        csp, float(chosen.mean()), sign_flips(chosen), float(unchosen.mean()), sign_flips(unchosen)
    )


def conditions(measured: Sequence[Measured], title: str) -> Conditions:
    """Over all values of beta and all datasets."""
    counts = np.sum([run.counts for m in measured for run in m.swvp[title]], axis=0)
    mistakes = max(1, int(counts[MISTAKES]))
    return Conditions(
        float(counts[NONE_USABLE] / mistakes),
        float(counts[CONDITION_BROKEN] / mistakes),
        float(counts[BACKED_OFF] / mistakes),
    )


def pooled(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> Comparison:
    """Paired bootstrap over the sequences of all test sets.

    >>> found = pooled([np.full(50, 8)], [np.arange(50) % 8])
    >>> found.first, found.p_value < 0.01
    (100.0, True)
    """
    ours, theirs = (
        np.stack((right, np.full_like(right, LENGTH)), axis=1)
        for right in (np.concatenate(first), np.concatenate(second))
    )
    return paired_bootstrap(Accuracy(), ours, theirs, "accuracy", replicates=2000, seed=1)


def sign_flips(differences: np.ndarray) -> float:
    """Exact two-sided randomisation test of a mean difference: every choice of signs is tried.

    >>> sign_flips(np.array([1.0, 2.0, 3.0])), sign_flips(np.array([1.0, -1.0]))
    (0.25, 1.0)
    """
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=len(differences))))
    sums = np.abs(signs @ differences)
    return float((sums >= abs(differences.sum()) - 1e-9).mean())
