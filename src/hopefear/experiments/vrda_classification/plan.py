"""What is run: learners, the grids their parameters are chosen from, sizes and seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SEED = 1
HELD_OUT = 0.2  # share of the training rows on which parameters are chosen
MARGIN = 0.5  # points of accuracy within which two predictors count as equally good
LOSSES = {"hinge": "hinge", "log": "logistic"}
SWING = 1.5  # deviations over passes count as different from this ratio on


def short(value: float) -> str:
    """A strength in few letters.

    >>> short(3e-4), short(0.0)
    ('3e-4', '0')
    """
    return f"{value:.0e}".replace("e-0", "e-") if value else "0"


@dataclass(frozen=True)
class Spec:
    """A learner of the comparison, and the values its two parameters may take."""

    key: str
    title: str
    recipe: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    strength: str = ""  # name of the parameter that makes weights zero
    strengths: tuple[float, ...] = (0.0,)
    rates: tuple[float, ...] = ()

    def settings(self) -> list[dict[str, float]]:
        """Every point of the grid, weaker regularisation first."""
        if not self.strength:
            return [{}]
        return [
            {self.strength: s, **({"rate": r} if r else {})}
            for s in self.strengths
            for r in self.rates or (0.0,)
        ]


@dataclass(frozen=True)
class Plan:
    """How much is run."""

    specs: tuple[Spec, ...]
    passes: int  # as many as the paper's Table 1 averages over
    tuning_passes: int
    paths: tuple[float, ...]  # strengths of Figures 1 and 3
    vote_rows: int  # test examples that are voted on
    repeats: int  # of every timing; the minimum counts
    timed_passes: int
    bound_rows: int

    @property
    def settled(self) -> slice:
        """The second half of the passes, when the first steep gains are over."""
        return slice(self.passes // 2, None)


_VRDA = (0.0, 1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3)
_EVERY = (0.0, 1e-7, 1e-6, 3e-6, 1e-5, 3e-5, 1e-4)
_GRAVITY = (0.0, 1e-6, 1e-5, 3e-5, 1e-4, 3e-4)


Values = tuple[float, ...]


def _specs(
    vrda: Values, every: Values, gravity: Values, log: Values, rda: Values, tg: Values, ada: Values
) -> tuple[Spec, ...]:
    kept = {"readout": "averaged"}
    made = [Spec("perceptron", "Perceptron", "perceptron")]
    for name, loss in LOSSES.items():
        made.append(
            Spec(f"tg-{name}", f"TG ({name})", "tg", {"loss": loss, **kept}, "gravity", gravity, tg)
        )
    for name, loss in LOSSES.items():
        made.append(
            Spec(f"rda-{name}", f"RDA ({name})", "rda", {"loss": loss, **kept}, "l1", every, rda)
        )
    # On mistakes the force of the hinge is always one, so its rate changes no prediction.
    made.append(
        Spec("vrda-hinge", "vRDA (hinge)", "vrda", {"loss": "hinge", "rate": 1.0}, "l1", vrda)
    )
    made.append(Spec("vrda-log", "vRDA (log)", "vrda", {"loss": "logistic"}, "l1", vrda, log))
    made.append(Spec("adagrad-rda", "AdaGrad-RDA (log)", "adagrad-rda", kept, "l1", every, ada))
    return tuple(made)


FULL = Plan(
    _specs(
        _VRDA,
        _EVERY,
        _GRAVITY,
        (1.0, 10.0, 100.0),
        (10.0, 100.0, 1000.0),
        (5.0, 30.0, 200.0),
        (0.2, 1.0, 5.0),
    ),
    passes=20,
    tuning_passes=10,
    paths=(0.0, 1e-6, 1e-5, 1e-4, 3e-4),
    vote_rows=25_000,
    repeats=7,
    timed_passes=3,
    bound_rows=20_000,
)

QUICK = Plan(
    _specs(
        (0.0, 1e-4, 1e-3), (0.0, 1e-4), (0.0, 1e-4), (1.0, 100.0), (10.0, 100.0), (100.0,), (0.5,)
    ),
    passes=6,
    tuning_passes=2,
    paths=(0.0, 1e-4, 1e-3),
    vote_rows=500,
    repeats=3,
    timed_passes=1,
    bound_rows=1000,
)
