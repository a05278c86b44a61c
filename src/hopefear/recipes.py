"""Published learners by name: compositions with defaults, no mathematics of their own."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hopefear.errors import HopefearError
from hopefear.learner import Learner, part_name
from hopefear.losses.exponential import Exponential
from hopefear.losses.hinge import Hinge
from hopefear.losses.linear import Linear
from hopefear.losses.logistic import Logistic
from hopefear.losses.perceptron import Perceptron
from hopefear.losses.squared_hinge import SquaredHinge
from hopefear.readouts.averaged import Averaged
from hopefear.readouts.last import Last
from hopefear.readouts.voted import Voted
from hopefear.rules.adagrad import AdaGrad
from hopefear.rules.adagrad_rda import AdaGradRDA
from hopefear.rules.arow import AROW
from hopefear.rules.confidence import ConfidenceWeighted
from hopefear.rules.fobos import FOBOS
from hopefear.rules.ftrl import FTRL
from hopefear.rules.passive_aggressive import PassiveAggressive
from hopefear.rules.rda import RDA
from hopefear.rules.sgd import SGD
from hopefear.rules.truncated import TruncatedGradient

LOSSES = {part_name(c): c for c in (Perceptron, Hinge, SquaredHinge, Logistic, Exponential, Linear)}
RULES = {
    part_name(c): c
    for c in (
        SGD,
        PassiveAggressive,
        AdaGrad,
        AdaGradRDA,
        RDA,
        TruncatedGradient,
        FOBOS,
        FTRL,
        ConfidenceWeighted,
        AROW,
    )
}
READOUTS = {part_name(c): c for c in (Last, Averaged, Voted)}
ON = ("every", "mistakes")


@dataclass(frozen=True)
class Scale:
    """The sizes of the data that good step lengths depend on.

    Parameters
    ----------
    square : float
        Mean squared length of an example.
    n : int
        Examples in a pass.
    """

    square: float = 1.0
    n: int = 1


@dataclass(frozen=True)
class Recipe:
    """A learner of the literature: which parts, and defaults that work.

    ``rate`` may be ``"auto"``: then it is ``auto(scale)``, because the papers' rates only make
    sense relative to the lengths of the examples.
    """

    name: str
    summary: str
    loss: type
    rule: type
    readout: type
    on: str = "every"
    defaults: Mapping[str, Any] = field(default_factory=dict)
    auto: Callable[[Scale], float] | None = None

    def parameters(self) -> dict[str, Any]:
        """Every parameter with its default, as ``-p`` takes them."""
        values: dict[str, Any] = {
            "loss": part_name(self.loss),
            "readout": part_name(self.readout),
            "on": self.on,
        }
        for part in (self.loss, self.rule, self.readout):
            values |= part._field_defaults  # type: ignore[attr-defined]
        values |= self.defaults
        if self.auto is not None:
            values["rate"] = "auto"
        for hidden in ("unused", "period"):
            values.pop(hidden, None)
        return values

    def build(self, scale: Scale = Scale(), **params: Any) -> Learner:  # noqa: B008 - frozen
        """The learner, with some parameters replaced.

        Examples
        --------
        >>> RECIPES["vrda"].build(loss="logistic", l1=1e-4, rate=1).signature()[:58]
        'loss:logistic(base=2.718281828)|rule:rda(rate=1,l1=0.0001,'
        """
        params = {key.replace("-", "_"): value for key, value in params.items()}
        loss = _choose("loss", LOSSES, params.pop("loss", None), self.loss)
        readout = _choose("readout", READOUTS, params.pop("readout", None), self.readout)
        on = str(params.pop("on", self.on))
        rule: Any = self.rule
        known = [
            {k: v for k, v in c._field_defaults.items() if k != "unused"}
            for c in (loss, rule, readout)
        ]
        values = {k: v for k, v in self.defaults.items() if any(k in part for part in known)}
        values |= params
        for key in values:
            if not any(key in part for part in known):
                raise HopefearError(_unknown(self.name, key, [*self.parameters(), *loss._fields]))
        if "period" in known[1]:
            values.setdefault("period", scale.n)
        if values.get("rate", "auto" if self.auto else None) == "auto":
            if self.auto is None:
                raise HopefearError(f"{self.name} has no automatic rate; give a number")
            values["rate"] = self.auto(scale)
        made = [
            cls(**{k: _number(k, v, part[k]) for k, v in values.items() if k in part})
            for cls, part in zip((loss, rule, readout), known, strict=True)
        ]
        return Learner(made[0], made[1], made[2], on)


def _recipe(name: str, summary: str, *parts: Any, auto: Any = None, **defaults: Any) -> Recipe:
    loss, rule, readout, on = parts
    return Recipe(name, summary, loss, rule, readout, on, defaults, auto)


RECIPES = {
    recipe.name: recipe
    for recipe in (
        _recipe(
            "perceptron",
            "averaged perceptron (Freund and Schapire, 1999; Collins, 2002)",
            Perceptron,
            SGD,
            Averaged,
            "mistakes",
        ),
        _recipe(
            "sgd",
            "stochastic gradient descent with L2 and cumulative L1 (Tsuruoka et al., 2009)",
            Logistic,
            SGD,
            Last,
            "every",
            power=0.5,
            l2=1e-6,
            auto=lambda s: 50.0 / s.square,
        ),
        _recipe(
            "pa",
            "passive-aggressive; variant 0, 1 (PA-I) or 2 (PA-II) (Crammer et al., 2006)",
            Hinge,
            PassiveAggressive,
            Averaged,
            "every",
        ),
        _recipe(
            "adagrad",
            "AdaGrad, composite mirror descent (Duchi et al., 2011)",
            Logistic,
            AdaGrad,
            Last,
            "every",
            rate=0.5,
        ),
        _recipe(
            "adagrad-rda",
            "adaptive dual averaging with L1 (Duchi et al., 2011): strong and sparse",
            Logistic,
            AdaGradRDA,
            Last,
            "every",
            rate=0.5,
            l1=1e-6,
        ),
        _recipe(
            "rda",
            "regularized dual averaging with L1 (Xiao, 2010)",
            Logistic,
            RDA,
            Last,
            "every",
            l1=1e-5,
            auto=lambda s: 100.0 / s.square,
        ),
        _recipe(
            "vrda",
            "voted RDA: dual averaging on mistakes (Xu, Gao, Xiao and Regan)",
            Hinge,
            RDA,
            Averaged,
            "mistakes",
            l1=1e-6,
            auto=lambda s: 100.0 / s.square,
        ),
        _recipe(
            "tg",
            "truncated gradient (Langford et al., 2009)",
            Logistic,
            TruncatedGradient,
            Last,
            "every",
            gravity=1e-6,
            power=0.5,
            auto=lambda s: 50.0 / s.square,
        ),
        _recipe(
            "fobos",
            "forward-backward splitting (Duchi and Singer, 2009)",
            Logistic,
            FOBOS,
            Last,
            "every",
            l1=1e-6,
            auto=lambda s: 50.0 / s.square,
        ),
        _recipe(
            "ftrl",
            "FTRL-proximal (McMahan et al., 2013)",
            Logistic,
            FTRL,
            Last,
            "every",
            rate=1.0,
            l1=0.0,
        ),
        _recipe(
            "cw",
            "confidence-weighted, variance form (Dredze et al., 2008)",
            Linear,
            ConfidenceWeighted,
            Last,
            "every",
        ),
        _recipe(
            "arow",
            "adaptive regularisation of weights (Crammer et al., 2009)",
            Hinge,
            AROW,
            Last,
            "every",
        ),
    )
}


def recipe(name: str) -> Recipe:
    """The recipe of that name.

    >>> recipe("arow").rule.__name__
    'AROW'
    """
    if name not in RECIPES:
        raise HopefearError(_unknown("hopefear", name, list(RECIPES), "learner"))
    return RECIPES[name]


def _choose(what: str, table: Mapping[str, type], name: Any, default: type) -> Any:
    if name is None:
        return default
    if name not in table:
        raise HopefearError(_unknown("hopefear", str(name), list(table), what))
    return table[name]


def _unknown(owner: str, name: str, known: list[str], what: str = "parameter") -> str:
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(set(known)))}"
    return f"{owner} has no {what} {name!r}; {hint}"


def _number(key: str, value: Any, like: Any) -> Any:
    try:
        if isinstance(like, bool):
            return {"true": True, "1": True, "false": False, "0": False}[str(value).lower()]
        return type(like)(value)
    except (KeyError, ValueError, TypeError) as error:
        kind = {bool: "true or false", int: "a whole number"}.get(type(like), "a number")
        raise HopefearError(f"{key} must be {kind}, not {value!r}") from error
