"""What a recipe is: parts of a learner, and defaults that work."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hopefear.core.learner import Learner, named, part_name
from hopefear.costs.hamming import Hamming
from hopefear.costs.regret import Regret
from hopefear.errors import HopefearError
from hopefear.losses.exponential import Exponential
from hopefear.losses.hinge import Hinge
from hopefear.losses.hope_fear import HopeFear
from hopefear.losses.linear import Linear
from hopefear.losses.log import Log
from hopefear.losses.logistic import Logistic
from hopefear.losses.nbest_mira import NBestMIRA
from hopefear.losses.perceptron import Perceptron
from hopefear.losses.prediction_hinge import PredictionHinge
from hopefear.losses.ramp import Ramp
from hopefear.losses.risk import Risk
from hopefear.losses.sapo import SAPO
from hopefear.losses.squared_hinge import SquaredHinge
from hopefear.losses.structured_hinge import StructuredHinge
from hopefear.losses.swvp import SWVP
from hopefear.losses.weighted_log import WeightedLog
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

LOSSES = {
    part_name(c): c
    for c in (
        Perceptron,
        Hinge,
        SquaredHinge,
        Logistic,
        Exponential,
        Linear,
        StructuredHinge,
        PredictionHinge,
        NBestMIRA,
        SAPO,
        Log,
        SWVP,
        Ramp,
        HopeFear,
        Risk,
        WeightedLog,
    )
}
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
COSTS = {part_name(c): c for c in (Hamming, Regret)}
ON = ("every", "mistakes")
# Mean cost at which a unit of it has the price 1; about that of the parse lists of 1 - F.
USUAL_COST = 0.15


@dataclass(frozen=True)
class Scale:
    """The sizes of the data that good step lengths depend on.

    Parameters
    ----------
    square : float
        Mean squared length of an example.
    n : int
        Examples in a pass.
    reach : float
        Mean sum of the sizes of an example's values.
    cost : float
        What candidates of a list cost more than the cheapest, on average.
    """

    square: float = 1.0
    n: int = 1
    reach: float = 1.0
    cost: float = USUAL_COST


@dataclass(frozen=True)
class Recipe:
    """A learner of the literature: which parts, and defaults that work.

    ``rate`` may be ``"auto"``: then it is ``auto(scale)``, because the papers' rates only make
    sense relative to the lengths of the examples. ``price`` too: then costs have the same mean
    in whatever unit they come.
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
            values |= {k: named(part, k, v) for k, v in _open_fields(part).items()}
        values |= {k: shown_part(v) for k, v in self.defaults.items()}
        if "cost" in values:
            values.setdefault("price", 1.0)
        if self.auto is not None:
            values["rate"] = "auto"
        if "lam" in self.defaults:
            values["penalty"] = "l2"
            values.pop("l1", None)
            values.pop("l2", None)
        values.pop("period", None)
        return values

    def build(self, scale: Scale = Scale(), **params: Any) -> Learner:  # noqa: B008 - frozen
        """The learner, with some parameters replaced.

        Examples
        --------
        >>> from hopefear.recipes import RECIPES
        >>> RECIPES["vrda"].build(loss="logistic", l1=1e-4, rate=1).signature()[:58]
        'loss:logistic(base=2.718281828)|rule:rda(rate=1,l1=0.0001,'
        """
        params = {key.replace("-", "_"): value for key, value in params.items()}
        loss = _choose("loss", LOSSES, params.pop("loss", None), self.loss)
        readout = _choose("readout", READOUTS, params.pop("readout", None), self.readout)
        on = str(params.pop("on", self.on))
        known = [_open_fields(c) for c in (loss, self.rule, readout)]
        values = {k: v for k, v in self.defaults.items() if any(k in part for part in known)}
        values |= self._penalty(params, scale)
        values |= params
        price = values.pop("price", self.defaults.get("price"))
        if price is not None and "cost" not in known[0]:
            if "price" in params:
                raise HopefearError(f"the loss {part_name(loss)} has no cost, so there is no price")
            price = None
        if price == "auto":
            price = USUAL_COST / scale.cost
        for key in values:
            if not any(key in part for part in known):
                raise HopefearError(unknown(self.name, key, [*self.parameters(), *loss._fields]))
        if "period" in known[1]:
            values.setdefault("period", scale.n)
        if values.get("rate", "auto" if self.auto else None) == "auto":
            if self.auto is None:
                raise HopefearError(f"{self.name} has no automatic rate; give a number")
            values["rate"] = self.auto(scale)
        if price is not None:
            values["price"] = price
        parts = [made_part(cls, values) for cls in (loss, self.rule, readout)]
        return Learner(parts[0], parts[1], parts[2], on)

    def _penalty(self, params: dict[str, Any], scale: Scale) -> dict[str, Any]:
        """What ``lam`` means for one step: ``lam / n`` times the gradient of R (SAPO, eq. 5).

        R is the squared length of the weights (L2) or the sum of their sizes (L1).
        """
        if "lam" not in self.defaults:
            return {}
        given = {"lam", "penalty"} & set(params)
        if {"l1", "l2"} & set(params):
            if given:
                raise HopefearError(f"{self.name}: give either l1 and l2, or lam and penalty")
            return {}
        lam = number("lam", params.pop("lam", self.defaults["lam"]), 1.0)
        penalty = str(params.pop("penalty", "l2"))
        if penalty not in ("l1", "l2"):
            raise HopefearError(f"{self.name}: penalty is l1 or l2, not {penalty!r}")
        return {penalty: lam / scale.n * (2.0 if penalty == "l2" else 1.0)}


def made_part(cls: Any, values: Mapping[str, Any]) -> Any:
    """A component from those of the values that it has; ``price`` is that of its cost."""
    known = _open_fields(cls)
    part = cls(**{k: _value(cls, k, v, known[k]) for k, v in values.items() if k in known})
    if "price" in values and "cost" in known:
        if "each" not in part.cost._fields:
            raise HopefearError(f"price is for one unit of {' or '.join(COSTS)}, not of a table")
        each = number("price", values["price"], 1.0)
        part = part._replace(cost=part.cost._replace(each=each))
    return part


def loss_parameters(loss: Any) -> dict[str, Any]:
    """Parameters of a loss with their defaults, as ``-p`` takes them."""
    values = {k: named(loss, k, v) for k, v in _open_fields(loss).items()}
    return values | ({"price": 1.0} if "cost" in values else {})


def shown_part(value: Any) -> Any:
    """A default as people write it: parts by name."""
    return part_name(type(value)) if isinstance(value, tuple) else value


def _open_fields(part: Any) -> dict[str, Any]:
    """Parameters of a component that people may set, with their defaults."""
    return {k: v for k, v in part._field_defaults.items() if k != "unused"}


def made(name: str, summary: str, *parts: Any, auto: Any = None, **defaults: Any) -> Recipe:
    """A recipe, in the order people say it: loss, rule, readout, when."""
    loss, rule, readout, on = parts
    return Recipe(name, summary, loss, rule, readout, on, defaults, auto)


def _choose(what: str, table: Mapping[str, type], name: Any, default: type) -> Any:
    if name is None:
        return default
    if name not in table:
        raise HopefearError(unknown("hopefear", str(name), list(table), what))
    return table[name]


def unknown(owner: str, name: str, known: list[str], what: str = "parameter") -> str:
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(set(known)))}"
    return f"{owner} has no {what} {name!r}; {hint}"


def _value(cls: Any, key: str, value: Any, like: Any) -> Any:
    """A parameter in the type of its default; names of choices become their positions."""
    choices = getattr(cls, "choices", {}).get(key)
    if choices is not None and not isinstance(value, int):
        if value not in choices:
            raise HopefearError(f"{key} is one of {', '.join(choices)}, not {value!r}")
        return choices.index(value)
    if isinstance(like, tuple):  # a cost, or sets of positions
        if key == "cost" and isinstance(value, str) and value in COSTS:
            return COSTS[value]()
        if not isinstance(value, tuple):
            names = " or ".join(COSTS) if key == "cost" else part_name(type(like))
            raise HopefearError(f"{key} must be {names} or an object, not {value!r}")
        return value
    return number(key, value, like)


def number(key: str, value: Any, like: Any) -> Any:
    """A parameter in the type of its default.

    >>> number("l1", "0.5", 1.0)
    0.5
    """
    try:
        if isinstance(like, bool):
            return {"true": True, "1": True, "false": False, "0": False}[str(value).lower()]
        return type(like)(value)
    except (KeyError, ValueError, TypeError) as error:
        kind = {bool: "true or false", int: "a whole number"}.get(type(like), "a number")
        raise HopefearError(f"{key} must be {kind}, not {value!r}") from error
