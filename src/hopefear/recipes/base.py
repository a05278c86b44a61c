"""What a recipe is: parts of a learner, and defaults that work."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any

from hopefear.core.learner import Learner, named, part_name
from hopefear.errors import HopefearError
from hopefear.recipes.parts import AVERAGINGS, COSTS, LOSSES, RULES, unknown
from hopefear.recipes.spaces import NETWORK_SPACE, Dimension, near_defaults

PARTS = ("loss", "rule", "averaging", "update_on")
ON = ("all", "mistakes")
# Mean cost at which a unit of it has the price 1; about that of the parse lists of 1 - F.
USUAL_COST = 0.15
# Of learners that several kinds of outputs have.
SUMMARIES = {
    "perceptron": "structured perceptron, averaged (Collins, 2002)",
    "nbest-mira": "n-best MIRA, averaged (McDonald et al., 2005)",
    "sapo": "probabilities over the n best (Sun et al.)",
    "ssvm": "structured SVM by stochastic subgradient (Taskar et al., 2003)",
    "swvp": "structured weighted violations perceptron (Dror and Reichart, 2016)",
    "risk": "expected cost (Smith and Eisner, 2006)",
    "sgd": "stochastic gradient descent with L2 and cumulative L1 (Tsuruoka et al., 2009)",
    "pa": "passive-aggressive against the best rival (Crammer et al., 2006)",
    "adagrad": "AdaGrad, composite mirror descent (Duchi et al., 2011)",
    "adagrad-rda": "adaptive dual averaging with L1 (Duchi et al., 2011): strong and sparse",
    "rda": "regularized dual averaging with L1 (Xiao, 2010)",
    "vrda": "voted RDA: dual averaging on mistakes (Xu, Gao, Xiao and Regan)",
    "tg": "truncated gradient (Langford et al., 2009)",
    "fobos": "forward-backward splitting (Duchi and Singer, 2009)",
    "ftrl": "FTRL-proximal (McMahan et al., 2013)",
    "cw": "confidence-weighted, variance form (Dredze et al., 2008)",
    "arow": "adaptive regularisation of weights (Crammer et al., 2009)",
}
# Positions of sets of one's own stay this near to either end: the sets stand in models' headers.
_FARTHEST = 10_000


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
class Auto:
    """A rate that depends on data and loss: ``factor / size``, less where the loss is steep.

    Papers' rates only make sense relative to the lengths of examples. Of a loss whose force grows
    without end, as that of the squared hinge does, a step must not change the force by more than
    the force itself: ``rate * size * steepness <= 1``.

    Parameters
    ----------
    factor : float
        Rate on examples of size 1.
    size : {"square", "reach"}
        Which of the sizes in ``Scale``.

    Examples
    --------
    >>> from hopefear.recipes import LOSSES
    >>> auto, scale = Auto(50.0), Scale(square=4.0)
    >>> [auto.rate(scale, LOSSES[name]()) for name in ("logistic", "squared-hinge")]
    [12.5, 0.125]
    """

    factor: float
    size: str = "square"

    def rate(self, scale: Scale, loss: Any) -> float:
        """The rate for a loss on data of this scale."""
        if self.size == "reach":  # for rules that divide by the forces they have seen
            return self.factor / scale.reach
        return min(self.factor, 1.0 / max(steepness(loss), 1e-300)) / scale.square


def times_auto(rate: Any) -> float | None:
    """What an automatic rate is multiplied by, where one is asked for: ``"auto"`` or ``"3x"``.

    >>> times_auto("auto"), times_auto("0.5x"), times_auto("0.5")
    (1.0, 0.5, None)
    """
    if rate == "auto":
        return 1.0
    if not (isinstance(rate, str) and re.fullmatch(r"[-+]?[.\d].*x", rate)):
        return None
    return number("the factor of an automatic rate, such as 3x,", rate[:-1], 1.0)


def steepness(loss: Any) -> float:
    """How fast the force grows over a unit of margin near 0; 0 where it soon grows no more.

    >>> from hopefear.recipes import LOSSES
    >>> [steepness(LOSSES[name]()) for name in ("hinge", "log", "squared-hinge")]
    [0.0, 0.0, 2.0]
    """
    if loss.negative_derivative(-50.0) <= 2.5 * loss.negative_derivative(0.0):
        return 0.0
    return float(
        max(
            loss.negative_derivative(z - 1.0) - loss.negative_derivative(z)
            for z in (-1.0, 0.0, 1.0)
        )
    )


@dataclass(frozen=True)
class Kind:
    """What good defaults depend on besides the parts: the kind of outputs.

    Parameters
    ----------
    rules : mapping
        Parameters of a rule that takes the place of a recipe's own.
    cost : str, optional
        Cost of losses that would take another one for a default.
    network : str
        Where its networks are, where it has any: ``module:class``.
    """

    rules: Mapping[str, Mapping[str, Any]]
    cost: str | None = None
    network: str = ""

    def recipe(
        self,
        name: str,
        summary: str,
        parts: str,
        space: Mapping[str, Dimension] | None = None,
        **defaults: Any,
    ) -> Recipe:
        """A recipe, its parts in the order people say them: loss, rule, averaging, when.

        >>> Kind({}).recipe("pa", "", "hinge passive-aggressive averaged all").rule.__name__
        'PassiveAggressive'
        """
        loss, rule, averaging, update_on = parts.split()
        return Recipe(
            name, summary, (loss, rule, averaging, update_on), self, defaults, space or {}
        )

    def shared_recipe(self, name: str, parts: str, *more: Any, **defaults: Any) -> Recipe:
        """A recipe that other kinds of outputs have by the same name, and the same summary."""
        return self.recipe(name, SUMMARIES[name], parts, *more, **defaults)

    def network_recipe(self, name: str, summary: str, loss: str, **defaults: Any) -> NetworkRecipe:
        """The recipe of a network that is trained with a loss."""
        usual = {"cost": self.cost, "root": True}
        return NetworkRecipe(name, summary, self.network, defaults, loss, usual)


@dataclass(frozen=True)
class Recipe:
    """A learner of the literature: which parts, and defaults that work.

    Parameters
    ----------
    name, summary : str
        What the learner is called, and who published it.
    parts : tuple of str
        Names of loss, rule and averaging, and whether "all" examples update weights, or
        "mistakes".
    kind : Kind
        Outputs it is for.
    defaults : mapping
        Parameters that differ from those of the parts. ``rate`` may be an ``Auto``, and ``price``
        may be ``"auto"``: then costs have the same mean in whatever unit they come.
    ranges : mapping
        What ``hopefear search`` tries, where that does not follow from the defaults.
    """

    name: str
    summary: str
    parts: tuple[str, ...]
    kind: Kind
    defaults: Mapping[str, Any] = field(default_factory=dict)
    ranges: Mapping[str, Dimension] = field(default_factory=dict)

    @property
    def loss(self) -> Any:
        return LOSSES[self.parts[0]]

    @property
    def rule(self) -> Any:
        return RULES[self.parts[1]]

    @property
    def averaging(self) -> Any:
        return AVERAGINGS[self.parts[2]]

    @property
    def update_on(self) -> str:
        return self.parts[3]

    def inputs(self, params: Mapping[str, Any], templates: Any) -> Any:
        """What data for this learner is encoded with: the templates."""
        return templates

    def auto(self, scale: Scale) -> float:
        """The automatic rate on data of this scale."""
        return self.defaults["rate"].rate(scale, self.loss())

    def parameters(self) -> dict[str, Any]:
        """Every parameter with its default, as ``-p`` takes them."""
        values: dict[str, Any] = dict(zip(PARTS, self.parts, strict=True))
        for part in (self.loss, self.rule, self.averaging):
            values |= {k: named(part, k, v) for k, v in open_fields(part).items()}
        if "cost" in values:
            values["cost"] = self.kind.cost or values["cost"]
        values |= {k: "auto" if isinstance(v, Auto) else v for k, v in self.defaults.items()}
        if "cost" in values:
            values.setdefault("price", 1.0)
        if "lam" in self.defaults:
            values["penalty"] = "l2"
            values.pop("l1", None)
            values.pop("l2", None)
        values.pop("period", None)
        return values

    def space(self) -> dict[str, Dimension]:
        """What ``hopefear search`` tries of each parameter.

        >>> from hopefear.recipes import CHAIN_RECIPES
        >>> sorted(CHAIN_RECIPES["sapo"].space()), CHAIN_RECIPES["sapo"].space()["rate"].high
        (['decay', 'lam', 'n', 'rate'], 1.0)
        """
        return near_defaults(self.parameters(), self.defaults) | dict(self.ranges)

    def build(self, scale: Scale = Scale(), **params: Any) -> Any:
        """The learner, with some parameters replaced.

        Examples
        --------
        >>> from hopefear.recipes import RECIPES
        >>> RECIPES["vrda"].build(loss="logistic", l1=1e-4, rate=1).signature()[:58]
        'loss:logistic(base=2.718281828)|rule:rda(rate=1,l1=0.0001,'
        >>> RECIPES["vrda"].build(rule="arow", r=2).signature()[:35]
        'loss:hinge(asked=1)|rule:arow(r=2)|'
        """
        params = {key.replace("-", "_"): value for key, value in params.items()}
        return self._swapped(params)._composed(scale, params)

    def with_parts(self, params: Mapping[str, Any]) -> Recipe:
        """The recipe with the parts that parameters name, and the defaults that suit them.

        >>> from hopefear.recipes import RECIPES
        >>> RECIPES["rda"].with_parts({"rule": "adagrad"}).parameters()["rate"]
        0.5
        """
        return self._swapped(dict(params))

    def _swapped(self, params: dict[str, Any]) -> Recipe:
        """The recipe with the parts that parameters name, which are taken from them.

        Lengths of steps belong to a rule, so another rule comes with its own.
        """
        words = [params.pop(key, None) for key in PARTS]
        for name, table in zip(words, (LOSSES, RULES, AVERAGINGS), strict=False):
            if name is not None:
                table.named(name)
        pairs = zip(self.parts, words, strict=True)
        names = [old if new is None else str(new) for old, new in pairs]
        defaults = dict(self.defaults)
        if names[1] != self.parts[1]:
            own = {*open_fields(self.rule), "lam"}
            defaults = {k: v for k, v in defaults.items() if k not in own}
            defaults |= self.kind.rules.get(names[1], {})
        return replace(self, parts=tuple(names), defaults=defaults)

    def _composed(self, scale: Scale, params: dict[str, Any]) -> Learner:
        parts = (self.loss, self.rule, self.averaging)
        known = [open_fields(part) for part in parts]
        values = {k: v for k, v in self.defaults.items() if any(k in part for part in known)}
        if self.kind.cost is not None:
            values.setdefault("cost", self.kind.cost)
        values |= self._penalty(params, scale) | params
        if "cost" not in known[0]:
            if "price" in params:
                raise HopefearError(f"the loss {self.parts[0]} has no cost, so there is no price")
            if "cost" not in params:
                values.pop("cost", None)
        else:
            values.setdefault("price", self.defaults.get("price"))
        for key in values:
            if key != "price" and not any(key in part for part in known):
                raise HopefearError(unknown(self.name, key, [*self.parameters(), *known[0]]))
        if "period" in known[1]:
            values.setdefault("period", scale.n)
        if values.get("price") == "auto":
            values["price"] = USUAL_COST / scale.cost
        rate = values.pop("rate", None)
        loss = made_part(parts[0], values)
        factor = times_auto(rate)
        if factor is not None:
            rate = self.defaults.get("rate")
            if not isinstance(rate, Auto):
                raise HopefearError(f"{self.name} has no automatic rate; give a number")
            rate = factor * rate.rate(scale, loss)
        if rate is not None:
            values["rate"] = rate.rate(scale, loss) if isinstance(rate, Auto) else rate
        rule, averaging = (made_part(part, values) for part in parts[1:])
        return Learner(loss, rule, averaging, self.update_on)

    def _penalty(self, params: dict[str, Any], scale: Scale) -> dict[str, Any]:
        """What ``lam`` means for one step: ``lam / n`` times the gradient of R (SAPO, eq. 5).

        R is the squared length of the weights (L2) or the sum of their sizes (L1).
        """
        if "lam" not in self.defaults:
            return {}
        words = {"lam", "penalty"} & set(params)
        if {"l1", "l2"} & set(params):
            if words:
                raise HopefearError(f"{self.name}: give either l1 and l2, or lam and penalty")
            return {}
        lam = number("lam", params.pop("lam", self.defaults["lam"]), 1.0)
        penalty = str(params.pop("penalty", "l2"))
        if penalty not in ("l1", "l2"):
            raise HopefearError(f"{self.name}: penalty is l1 or l2, not {penalty!r}")
        return {penalty: lam / scale.n * (2.0 if penalty == "l2" else 1.0)}


@dataclass(frozen=True)
class BatchRecipe:
    """A learner that looks at all examples before it moves, and defaults that work.

    Parameters
    ----------
    name, summary : str
        As for other recipes.
    place : str or type
        ``module:class`` of the learner, or itself: a dataclass, its fields are the parameters.
    defaults : mapping
        Parameters that differ from those of the learner.
    loss_name : str, optional
        What it minimises, where that can be chosen.
    of_loss : mapping
        Parameters that differ from those of the loss; losses that lack them do without.
    ranges : mapping
        What ``hopefear search`` tries, where that does not follow from the defaults.

    Notes
    -----
    As in other recipes, ``rate`` may be an ``Auto``, and ``price`` may be ``"auto"``.
    """

    name: str
    summary: str
    place: Any
    defaults: Mapping[str, Any] = field(default_factory=dict)
    loss_name: str | None = None
    of_loss: Mapping[str, Any] = field(default_factory=dict)
    ranges: Mapping[str, Dimension] = field(default_factory=dict)

    @property
    def learner(self) -> Any:
        if not isinstance(self.place, str):
            return self.place
        module, name = self.place.split(":")
        return getattr(importlib.import_module(module), name)

    @property
    def loss(self) -> Any:
        return None if self.loss_name is None else LOSSES[self.loss_name]

    def inputs(self, params: Mapping[str, Any], templates: Any) -> Any:
        """What data for this learner is encoded with: the templates."""
        return templates

    def loss_parameters(self, loss: Any) -> dict[str, Any]:
        """Parameters of a loss with their defaults, as ``-p`` takes them."""
        values = loss_parameters(loss)
        return values | {key: value for key, value in self.of_loss.items() if key in values}

    def own_parameters(self) -> dict[str, Any]:
        """Parameters of the learner itself, without those of its loss."""
        known = {f.name: f.default for f in fields(self.learner) if f.default is not MISSING}
        hidden = () if self.loss_name is None else ("observed",)
        values = known | dict(self.defaults)
        return {key: value for key, value in values.items() if key not in hidden}

    def parameters(self) -> dict[str, Any]:
        """Every parameter with its default, as ``-p`` takes them."""
        own = {k: "auto" if isinstance(v, Auto) else v for k, v in self.own_parameters().items()}
        if self.loss_name is None:
            return own
        return {"loss": self.loss_name, **self.loss_parameters(self.loss), **own}

    def with_parts(self, params: Mapping[str, Any]) -> BatchRecipe:
        """The recipe itself: its loss can be chosen, its defaults do not depend on it."""
        return self

    def space(self) -> dict[str, Dimension]:
        """What ``hopefear search`` tries of each parameter."""
        return near_defaults(self.parameters(), self.defaults) | dict(self.ranges)

    def build(self, scale: Scale = Scale(), **params: Any) -> Any:
        """The learner, with some parameters replaced.

        Examples
        --------
        >>> from hopefear.recipes import CHAIN_RECIPES
        >>> CHAIN_RECIPES["crf-lbfgs"].build(l2="0.5").l2
        0.5
        """
        params = {key.replace("-", "_"): value for key, value in params.items()}
        values, more = self.own_parameters(), {}
        if self.loss_name is not None:
            loss = LOSSES.named(params.pop("loss", self.loss_name))
            loss_values, given = self.loss_parameters(loss), set(params)
            known = [*loss_values, *values]
            loss_values |= {key: params.pop(key) for key in loss_values if key in params}
            if loss_values.get("price") == "auto":
                loss_values["price"] = USUAL_COST / scale.cost
            elif "price" not in given:  # a table of costs has none
                loss_values.pop("price", None)
            more = {"loss": made_part(loss, loss_values)}
        else:
            known = list(values)
        for key, value in params.items():
            if key not in values:
                raise HopefearError(unknown(self.name, key, known))
            usual, factor = values[key], times_auto(value)
            if not isinstance(usual, Auto):
                values[key] = as_like(key, value, usual)
            elif factor is None:
                values[key] = number(key, value, 1.0)
            else:
                values[key] = factor * usual.rate(scale, more["loss"])
        for key, value in values.items():
            if isinstance(value, Auto):
                values[key] = value.rate(scale, more["loss"])
        return self.learner(**more, **values)


@dataclass(frozen=True)
class NetworkRecipe(BatchRecipe):
    """A network that any loss trains, and defaults that work; not imported before it is asked for.

    Parameters
    ----------
    name, summary, place, defaults, loss_name, of_loss, ranges
        As for other learners that are dataclasses.
    """

    def space(self) -> dict[str, Dimension]:
        """What ``hopefear search`` tries of each parameter."""
        return NETWORK_SPACE | super().space()

    def inputs(self, params: Mapping[str, Any], templates: Any) -> Any:
        """How tokens become numbers that the network looks up; templates are for a wide one."""
        own = {k: v for k, v in params.items() if k.replace("-", "_") in self.own_parameters()}
        return self.build(**own).settings(templates)


def made_part(cls: Any, values: Mapping[str, Any]) -> Any:
    """A component from those of the values that it has; ``price`` is that of its cost."""
    known = open_fields(cls)
    part = cls(**{k: _value(cls, k, v, known[k]) for k, v in values.items() if k in known})
    if values.get("price") is not None and "cost" in known:
        if "each" not in part.cost._fields:
            raise HopefearError(f"price is for one unit of {' or '.join(COSTS)}, not of a table")
        each = number("price", values["price"], 1.0)
        part = part._replace(cost=part.cost._replace(each=each))
    return part


def loss_parameters(loss: Any) -> dict[str, Any]:
    """Parameters of a loss with their defaults, as ``-p`` takes them."""
    values = {k: named(loss, k, v) for k, v in open_fields(loss).items()}
    return values | ({"price": 1.0} if "cost" in values else {})


def open_fields(part: Any) -> dict[str, Any]:
    """Parameters of a component that people may set, with their defaults."""
    return {k: v for k, v in part._field_defaults.items() if k != "unused"}


def _value(cls: Any, key: str, value: Any, like: Any) -> Any:
    """A parameter in the type of its default; names of choices become their positions."""
    choices = getattr(cls, "choices", {}).get(key)
    if choices is not None and not isinstance(value, int):
        if value not in choices:
            raise HopefearError(f"{key} is one of {', '.join(choices)}, not {value!r}")
        return choices.index(value)
    if isinstance(like, tuple):  # a part, or sets of positions
        if key == "own" and isinstance(value, str | list | os.PathLike):
            return position_sets(value)
        table = COSTS if key == "cost" else getattr(cls, "parts", {}).get(key, {})
        if isinstance(value, str) and value in table:
            return table[value]()
        if not isinstance(value, tuple):
            names = " or ".join(table) or part_name(type(like))
            raise HopefearError(f"{key} must be {names} or an object, not {value!r}")
        return value
    return number(key, value, like)


def position_sets(text: str | os.PathLike[str] | list[Any]) -> Any:
    """Sets of positions from lists, from text, or from a file with a set a line.

    Positions are written like ``0-2,5`` and count from 0, or from -1 at the end, 10,000 from either
    side at most; in text ``;`` is between sets. In a file a blank line and what stands behind ``#``
    are left out.

    >>> position_sets("0-2; -1").spelled()
    '0,1,2; -1'
    """
    from hopefear.losses.swvp import substructures

    if isinstance(text, list):
        return substructures([_within(list(one), str(one), "") for one in text])
    written = isinstance(text, str) and not set(text) - set("0123456789-,; ")
    if written or not os.path.exists(text):
        return substructures([_positions(one, "") for one in str(text).split(";")])
    from hopefear.data.sources import open_bytes
    from hopefear.storage import read_small

    with open_bytes(text) as file:
        lines = read_small(file, text).decode("utf-8-sig", errors="replace").splitlines()
    wheres = [(line.partition("#")[0].strip(), f"{text}:{k}: ") for k, line in enumerate(lines, 1)]
    sets = [_positions(line, where) for line, where in wheres if line]
    if not sets:
        raise HopefearError(f"{text} has no set of positions; write one a line, like 0-2,5")
    return substructures(sets)


def _positions(text: str, where: str) -> list[int]:
    positions: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().rpartition("-")
        try:
            ends = (int(first), int(last)) if dash and first else (int(part), int(part))
        except ValueError:
            raise HopefearError(
                f"{where}a set of positions is written like 0-2,5 or -1, not {part.strip()!r}; or "
                "name a file with a set a line"
            ) from None
        _within(ends, part.strip(), where)  # before millions are written down
        if ends[1] < ends[0]:
            raise HopefearError(
                f"{where}a set of positions ends before it begins, {part.strip()!r}; write "
                f"{ends[1]}-{ends[0]}"
            )
        positions += range(ends[0], ends[1] + 1)
    return positions


def _within(positions: Sequence[int], text: str, where: str) -> Sequence[int]:
    """Positions, when there are some and an output may have them."""
    if not positions:
        raise HopefearError(f"{where}a set of positions is empty; leave it out, or write 0-2,5")
    if min(positions) < -_FARTHEST or max(positions) >= _FARTHEST:
        raise HopefearError(
            f"{where}a set of positions goes beyond the limit, {text!r}; positions go from "
            f"{-_FARTHEST} to {_FARTHEST - 1}"
        )
    return positions


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


def as_like(key: str, value: Any, like: Any) -> Any:
    """A parameter in the type of its default; words stay words, and None is a choice left open."""
    if isinstance(like, str):
        return str(value)
    if like is None:
        return None if value in (None, "auto") else number(key, value, False)
    return number(key, value, like)
