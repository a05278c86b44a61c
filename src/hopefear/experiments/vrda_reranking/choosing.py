"""Settings, chosen on development lists; test lists are not looked at.

A setting is the parameters of a learner, the number of passes, and what is kept of the weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hopefear.experiments.vrda_reranking.plan import (
    AVERAGED,
    GOAL,
    KEPT,
    LOSSES,
    SUPPORT,
    Plan,
    Spec,
    short,
)
from hopefear.experiments.vrda_reranking.runs import Run

Trials = Mapping[str, Sequence["Trial"]]


class Trial(NamedTuple):
    """A setting and how it did on development lists, mean over seeds."""

    spec: str
    params: dict[str, float]
    passes: int
    kept: int
    dev: float
    nnz: float

    @property
    def run(self) -> tuple[str, str, int]:
        """What must be trained for it; settings that differ only in what is kept share a run."""
        return self.spec, text_of(self.params), self.passes


def text_of(params: Mapping[str, float]) -> str:
    """Parameters in a line.

    >>> text_of({"rate": 0.1, "l1": 1e-4})
    'rate 0.1, l1 1e-4'
    """
    shown = (f"{k} {short(v) if k in ('l1', 'gravity') else f'{v:g}'}" for k, v in params.items())
    return ", ".join(shown)


def trials_of(
    spec: Spec, params: dict[str, float], runs: Sequence[Run], marks: Sequence[int]
) -> list[Trial]:
    """All that runs of several seeds say about the settings they hold."""
    dev, nnz = (np.mean([getattr(r, name) for r in runs], axis=0) for name in ("dev", "nnz"))
    return [
        Trial(spec.key, params, passes, kept, float(dev[kept, m]), float(nnz[kept, m]))
        for kept in spec.kept
        for m, passes in enumerate(marks)
    ]


def best(trials: Sequence[Trial]) -> Trial:
    """Highest F, then fewest weights."""
    return max(trials, key=lambda t: (t.dev, -t.nnz))


def sparsest(trials: Sequence[Trial], floor: float) -> Trial:
    """Fewest weights of those with an F of ``floor`` or more; the best where there is none.

    >>> few, many = Trial("a", {}, 1, 1, 86.0, 500.0), Trial("a", {}, 1, 0, 86.5, 9000.0)
    >>> sparsest([many, few], 85.9) is few, sparsest([many, few], 86.1) is many
    (True, True)
    """
    good = [t for t in trials if t.dev >= floor]
    return min(good, key=lambda t: (t.nnz, -t.dev)) if good else best(trials)


def within(trials: Sequence[Trial], level: float) -> Trial | None:
    """The best of those with at most so many weights; None where all have more."""
    small = [t for t in trials if 0.0 < t.nnz <= level]
    return best(small) if small else None


def choose(trials: Trials, plan: Plan) -> dict[str, Trial]:
    """Everything that is then run on test lists, by name.

    ``vrda-hinge`` is the best of a learner, ``vrda-hinge sparse`` its sparsest that is no worse
    than the perceptron, ``vrda-hinge of 10%`` its best with so many of the perceptron's weights,
    ``vrda-hinge ≤ 5000`` its best with so many weights, and ``vrda-hinge λ 1e-4, average`` its best
    at a strength with the same reading of the weights.
    """
    made = {key: best(found) for key, found in trials.items()}
    floor = made["perceptron"].dev
    for key in dict.fromkeys([*(s.key for s in plan.voted), *(f"tg-{loss}" for loss in LOSSES)]):
        made[sparse(key)] = sparsest(trials[key], floor)
        made[tenth(key)] = within(trials[key], GOAL * made["perceptron"].nnz) or made[sparse(key)]
    for key in (f"{rule}-{loss}" for loss in LOSSES for rule in ("vrda", "tg")):
        found = trials[key]
        for level in plan.levels:
            small = within(found, level)
            if small is not None:
                made[at_most(key, level)] = small
    for loss in LOSSES:
        for l1 in plan.sweep:
            alike = [t for t in trials[f"vrda-{loss}"] if t.params["l1"] == l1]
            for kept in (AVERAGED, SUPPORT):
                made[at(loss, l1, kept)] = best([t for t in alike if t.kept == kept])
    return made


def sparse(key: str) -> str:
    return f"{key} sparse"


def tenth(key: str) -> str:
    return f"{key} of {GOAL:.0%}"


def at_most(key: str, level: int) -> str:
    return f"{key} ≤ {level}"


def at(loss: str, l1: float, kept: int = SUPPORT) -> str:
    return f"vrda-{loss} λ {short(l1)}, {KEPT[kept]}"


def edges(trial: Trial, grid: Mapping[str, Sequence[float]], marks: Sequence[int]) -> list[str]:
    """Parameters whose chosen value is an end of its grid."""
    values: dict[str, tuple[float, Sequence[float]]] = {
        name: (trial.params[name], grid[name]) for name in grid
    }
    values["passes"] = (trial.passes, marks)
    return [name for name, (v, of) in values.items() if len(of) > 1 and v in (of[0], of[-1])]
