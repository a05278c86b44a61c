"""What is run: learners and their grids, seeds, levels, folds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hopefear_papers.frame import Entrant

AVERAGED, SUPPORT, LAST = 0, 1, 2
# On the last support the few features that every candidate has always stay in: the weight of a
# feature of large values swings, may happen to be zero at the end, and is worth points of F.
KEPT = ("average", "average on the last support", "last weights")
ALL = (AVERAGED, SUPPORT, LAST)
_VOTERS = (AVERAGED, SUPPORT)  # in VRDA all predictors have a say
LOSSES = ("hinge", "logistic")
# The rate stays (Langford, Li and Zhang, 2009), or falls as eqs. 12 to 14 of the paper have it.
TG = {"tg": "constant rate", "tg-printed": "rate η′/√k"}
GOAL = 0.10  # share of the perceptron's weights that a sparse model should do with


@dataclass(frozen=True)
class Spec(Entrant):
    """A learner of the comparison, and the values its parameters may take."""

    grid: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    strength: str = ""  # name of the parameter that makes weights zero
    kept: tuple[int, ...] = ALL  # to choose from


@dataclass(frozen=True)
class Plan:
    """How much is run."""

    specs: tuple[Spec, ...]  # of the paper: perceptron, TG (both rates) and VRDA, two losses each
    extensions: tuple[Spec, ...]
    marks: tuple[int, ...] = (1, 2, 3, 5, 10)  # passes to choose from
    seeds: tuple[int, ...] = (1, 2, 3)
    tuning_seeds: tuple[int, ...] = (1, 2, 3)  # of the paper's learners, and of all VRDA
    extension_seeds: tuple[int, ...] = (1,)
    sweep: tuple[float, ...] = (0.0, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3)  # Table 2
    fold_sweep: tuple[float, ...] = (0.0, 1e-4, 2e-4, 5e-4, 1e-3)
    levels: tuple[int, ...] = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
    fold_levels: tuple[int, ...] = (1_000, 2_000, 5_000, 10_000, 50_000)
    sparse_levels: int = 10_000  # up to here models count as sparse
    folds: int = 5
    paths: tuple[float, ...] = (0.0, 1e-4, 2e-4, 5e-4, 1e-3)  # Figures 5 and 6
    trail_passes: int = 20
    replicates: int = 2000

    @property
    def every(self) -> tuple[Spec, ...]:
        return self.specs + self.extensions

    @property
    def voted(self) -> tuple[Spec, ...]:
        """VRDA with any loss."""
        return tuple(spec for spec in self.every if spec.recipe == "vrda")

    def spec(self, key: str) -> Spec:
        return next(spec for spec in self.every if spec.key == key)


def _paper(
    l1: tuple[float, ...],
    rates: tuple[float, ...],
    gravity: tuple[float, ...],
    steps: tuple[float, ...],
    first_steps: tuple[float, ...],
    every: tuple[int, ...],
) -> tuple[Spec, ...]:
    specs = [Spec("perceptron", "Perceptron", "perceptron", kept=(AVERAGED,))]  # as the paper's
    for (rule, rate), some, power in zip(TG.items(), (steps, first_steps), (0.0, 0.5), strict=True):
        for loss in LOSSES:
            title, fixed = f"TG ({loss}, {rate})", {"loss": loss, "power": power}
            grid = {"rate": some, "every": every, "gravity": gravity}
            specs.append(Spec(f"{rule}-{loss}", title, "tg", fixed, grid, "gravity"))
    # On mistakes the force of the hinge is always one, so its rate changes no prediction.
    for loss, some in zip(LOSSES, ((1.0,), rates), strict=True):
        grid = {"rate": some, "l1": l1}
        title = f"VRDA ({loss})"
        specs.append(Spec(f"vrda-{loss}", title, "vrda", {"loss": loss}, grid, "l1", _VOTERS))
    return tuple(specs)


def _extensions(quick: bool = False) -> tuple[Spec, ...]:
    """Losses that the paper leaves to translation, by voted RDA, RDA and SGD."""
    wide: dict[str, dict[str, Any]] = {
        "structured-hinge": {
            "title": "structured hinge",
            "fixed": {"cost": "regret", "price": 10.0},
            "vrda": {"l1": (2e-4, 5e-4, 8e-4, 1e-3, 2e-3), "rate": (1.0,)},
            "rda": {"rate": (0.03, 0.1, 1.0), "l1": (1e-4, 5e-4)},
            "sgd": {"rate": (0.001, 0.003, 0.01, 0.1)},
        },
        "log": {
            "title": "log",
            "vrda": {"rate": (0.1, 1.0), "l1": (1e-4, 5e-4)},
            "rda": {"rate": (0.1, 1.0), "l1": (1e-5, 1e-4)},
            "sgd": {"rate": (0.003, 0.01, 0.03)},
        },
        "weighted-log": {
            "title": "cost-weighted log",
            "fixed": {"inverse_temperature": 10.0},
            "vrda": {"rate": (0.3, 1.0, 3.0), "l1": (1e-4, 3e-4, 5e-4, 1e-3)},
            "rda": {"rate": (0.1, 0.3, 1.0), "l1": (1e-5, 1e-4, 3e-4)},
            "sgd": {"rate": (0.001, 0.003, 0.01, 0.03)},
        },
        "risk": {
            "title": "Bayes risk",
            "vrda": {"rate": (10.0, 100.0), "l1": (1e-6, 1e-5)},
            "rda": {"rate": (10.0, 100.0), "l1": (1e-6, 1e-5)},
            "sgd": {"rate": (0.1, 0.3, 1.0, 3.0)},
        },
    }
    rules = {"vrda": "VRDA", "rda": "RDA", "sgd": "SGD"}
    specs = []
    for loss, settings in wide.items():
        for rule, name in rules.items():
            if quick and (loss, rule) not in (("weighted-log", "sgd"), ("risk", "vrda")):
                continue
            grid = {k: v[:1] if quick else v for k, v in settings[rule].items()}
            fixed = {"loss": loss, **settings.get("fixed", {})}
            if rule == "sgd":
                fixed |= {"decay": 0.9, "l2": 1e-5}
            strength = "" if rule == "sgd" else "l1"
            title = f"{name} ({settings['title']})"
            kept = _VOTERS if rule == "vrda" else ALL
            specs.append(Spec(f"{rule}-{loss}", title, rule, fixed, grid, strength, kept))
    return tuple(specs)


_L1 = (0.0, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 8e-4, 1e-3, 1.5e-3, 2e-3, 3e-3, 5e-3, 1e-2)
_GRAVITY = (0.0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)

FULL = Plan(
    _paper(_L1, (0.1, 1.0, 10.0), _GRAVITY, (0.01, 0.1), (0.01, 1.0), (10, 100)), _extensions()
)

QUICK = Plan(
    _paper((0.0, 1e-4, 1e-3, 5e-3), (1.0,), (0.0, 1e-3, 1e-2), (0.1,), (10.0,), (10,)),
    _extensions(quick=True),
    marks=(1, 3),
    seeds=(1, 2),
    tuning_seeds=(1,),
    sweep=(0.0, 1e-4, 1e-3),
    fold_sweep=(0.0, 1e-4, 1e-3),
    levels=(1_000, 10_000, 100_000),
    fold_levels=(10_000,),
    folds=2,
    paths=(0.0, 1e-4, 1e-3),
    trail_passes=3,
    replicates=200,
)
