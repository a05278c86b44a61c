"""What is run: losses and rules, the grids their parameters are chosen from, seeds, levels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product

LOSSES = {"risk": "Bayes risk", "hinge": "hinge", "logistic": "logistic", "log": "log"}
RULES = {"sgd": "SGD", "vrda": "VRDA", "tg": "TG"}
TABLE = tuple(f"{rule}-{loss}" for loss in LOSSES for rule in ("sgd", "vrda"))
GOAL = 0.10  # share of the weights that should be enough


def at(l1: float) -> str:
    """The choice at a strength."""
    return f"vrda-risk, λ {l1:g}"


@dataclass(frozen=True)
class Spec:
    """A rule with a loss, and the values its parameters may take."""

    key: str
    grid: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def rule(self) -> str:
        return self.key.split("-")[0]

    @property
    def loss(self) -> str:
        return self.key.split("-")[1]

    @property
    def title(self) -> str:
        """As tables have it.

        >>> Spec("vrda-risk").title
        'VRDA, Bayes risk'
        """
        return f"{RULES[self.rule]}, {LOSSES[self.loss]}"

    def settings(self) -> list[dict[str, float]]:
        """Every point of the grid.

        >>> Spec("sgd-log", {"sharp": (1.0, 3.0), "rate": (0.1,)}).settings()
        [{'sharp': 1.0, 'rate': 0.1}, {'sharp': 3.0, 'rate': 0.1}]
        """
        return [dict(zip(self.grid, point, strict=True)) for point in product(*self.grid.values())]


@dataclass(frozen=True)
class Plan:
    """How much is run."""

    table: tuple[Spec, ...]  # Table 3: no regularisation
    sweeps: tuple[Spec, ...]  # Bayes risk with an L1 penalty: VRDA and TG
    strengths: tuple[float, ...]  # Table 4, from 0
    levels: tuple[int, ...] = (100, 300, 1_000, 3_000, 10_000, 50_000)  # Figures 7 and 8
    sparse_levels: int = 3_000  # up to here models count as sparse
    marks: tuple[int, ...] = (1, 2, 5, 10, 20)  # passes to choose from
    tuning_seeds: tuple[int, ...] = (1, 2)
    sweep_seeds: tuple[int, ...] = (1,)
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)  # of the order of lists, and of MERT
    level_seeds: tuple[int, ...] = (1, 2, 3)
    restarts: int = 5  # of MERT
    replicates: int = 2000

    @property
    def main(self) -> tuple[str, ...]:
        """Choices that are tested with all seeds."""
        return (*TABLE, *(at(l1) for l1 in self.strengths))


def _table(sharps: tuple[float, ...], rates: Mapping[str, tuple[float, ...]]) -> tuple[Spec, ...]:
    return tuple(Spec(key, {"sharp": sharps, "rate": rates[key]}) for key in TABLE)


_SMALL, _MIDDLE = (0.001, 0.01, 0.1), (0.03, 0.3, 3.0)
_RATES: dict[str, tuple[float, ...]] = {
    "sgd-risk": (1.0, 10.0, 100.0),
    "vrda-risk": (1.0, 10.0, 1e3, 1e4),
    **{f"sgd-{loss}": _SMALL for loss in LOSSES if loss != "risk"},
    **{f"vrda-{loss}": _MIDDLE for loss in LOSSES if loss != "risk"},
}
_STRENGTHS = (0.0, 1e-7, 1e-6, 3e-6, 1e-5, 3e-5, 1e-4)
_WIDE = (3.0, 10.0, 30.0)

FULL = Plan(
    _table((1.0, *_WIDE), _RATES),
    (
        Spec("vrda-risk", {"l1": _STRENGTHS, "sharp": _WIDE, "rate": (10.0, 1e3, 1e4)}),
        Spec(
            "tg-risk",
            {
                "l1": (0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3),
                "sharp": _WIDE,
                "rate": (1.0, 100.0),
                "every": (10, 100),
            },
        ),
    ),
    _STRENGTHS,
)

QUICK = Plan(
    _table((1.0, 10.0), {key: rates[1:2] for key, rates in _RATES.items()}),
    (
        Spec("vrda-risk", {"l1": (0.0, 1e-4, 1e-3), "sharp": (10.0,), "rate": (10.0,)}),
        Spec(
            "tg-risk",
            {"l1": (0.0, 1e-4, 1e-3), "sharp": (10.0,), "rate": (1.0,), "every": (10,)},
        ),
    ),
    (0.0, 1e-4, 1e-3),
    levels=(10, 100),
    sparse_levels=10,
    marks=(1, 3),
    tuning_seeds=(1,),
    seeds=(1, 2),
    level_seeds=(1,),
    restarts=2,
    replicates=200,
)
