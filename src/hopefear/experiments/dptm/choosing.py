"""Which setting stands for a rule with a loss: the best on development lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hopefear.experiments.dptm.plan import Plan, Spec, at
from hopefear.experiments.dptm.runs import Mark
from hopefear.translation.phrase_model import KEPT

AVERAGE, SUPPORT, LAST = KEPT


class Trial(NamedTuple):
    """A setting after some passes, on development lists; means over seeds."""

    spec: str
    params: dict[str, float]
    passes: int
    kept: str
    dev: float
    plain: float
    nnz: float


def text_of(params: Mapping[str, float]) -> str:
    """Parameters in a line.

    >>> text_of({"sharp": 10.0, "l1": 1e-05})
    'sharp=10 l1=1e-05'
    """
    return " ".join(f"{name}={value:g}" for name, value in params.items())


def trials_of(spec: Spec, params: dict[str, float], runs: Sequence[Sequence[Mark]]) -> list[Trial]:
    """One for every mark and every reading, from the runs of several seeds."""
    return [
        Trial(
            spec.key,
            params,
            same[0].passes,
            same[0].kept,
            float(np.mean([mark.bleu for mark in same])),
            float(np.mean([mark.plain for mark in same])),
            float(np.mean([mark.nnz for mark in same])),
        )
        for same in zip(*runs, strict=True)
    ]


def top(trials: Iterable[Trial]) -> Trial | None:
    """The trial of highest BLEU on development lists; of equals the first."""
    return max(trials, key=lambda trial: trial.dev, default=None)


def choose(
    table: Mapping[str, list[Trial]], sweeps: Mapping[str, list[Trial]], plan: Plan
) -> dict[str, Trial]:
    """All choices by name."""
    made: dict[str, Trial | None] = {}
    for spec in plan.table:
        found = [t for t in table[spec.key] if t.kept != SUPPORT]
        made[spec.key] = top(found)
        made[as_is(spec.key)] = top(t for t in found if t.params["sharp"] == 1.0)
    voted = [t for t in sweeps["vrda-risk"] if t.kept != AVERAGE]
    for l1 in plan.strengths:
        made[at(l1)] = top([t for t in voted if t.params["l1"] == l1])
    for key, found in sweeps.items():
        for level in plan.levels:
            made[at_most(key, level)] = top([t for t in found if 0 < t.nnz <= level])
    return {name: trial for name, trial in made.items() if trial is not None}


def as_is(key: str) -> str:
    """The baseline's score not scaled."""
    return f"{key}, b as is"


def at_most(key: str, level: int) -> str:
    return f"{key} ≤ {level}"


def edges(trial: Trial, spec: Spec, marks: Sequence[int]) -> list[str]:
    """Parameters whose chosen value is an end of its grid."""
    values = {name: (trial.params[name], grid) for name, grid in spec.grid.items()}
    values["passes"] = (trial.passes, tuple(marks))
    return [name for name, (v, of) in values.items() if len(of) > 1 and v in (of[0], of[-1])]
