"""The one table of parts: every loss, rule, averaging and cost by the name people write."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from hopefear.errors import HopefearError


class Parts(Mapping[str, Any]):
    """Classes by name, each imported when it is asked for.

    Parameters
    ----------
    kind : str
        What they are, for errors.
    places : mapping of str to str
        ``module:class`` of each.

    Examples
    --------
    >>> LOSSES["hinge"].__name__, "hinge" in LOSSES, len(COSTS)
    ('Hinge', True, 2)
    """

    def __init__(self, kind: str, places: Mapping[str, str]) -> None:
        self.kind = kind
        self._places: dict[str, str | type] = dict(places)

    def __getitem__(self, name: str) -> Any:
        place = self._places[name]
        if not isinstance(place, str):
            return place
        module, cls = place.split(":")
        return getattr(importlib.import_module(f"hopefear.{module}"), cls)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def add(self, name: str, part: type) -> None:
        """Enter a class of one's own, so that recipes can be built with it by name.

        >>> table = Parts("loss", {})
        >>> table.add("my-hinge", LOSSES["hinge"])
        >>> table.named("my-hinge").__name__
        'Hinge'
        """
        if name in self:
            raise HopefearError(f"hopefear has a {self.kind} {name!r} already; use another name")
        self._places[name] = part

    def named(self, name: Any) -> Any:
        """The class of that name.

        >>> LOSSES.named("hing")
        Traceback (most recent call last):
        hopefear.errors.HopefearError: hopefear has no loss 'hing'; did you mean 'hinge'?
        """
        if name not in self:
            raise HopefearError(unknown("hopefear", str(name), list(self), self.kind))
        return self[name]


LOSSES = Parts(
    "loss",
    {
        "perceptron": "losses.perceptron:Perceptron",
        "hinge": "losses.hinge:Hinge",
        "squared-hinge": "losses.squared_hinge:SquaredHinge",
        "smoothed-hinge": "losses.smoothed_hinge:SmoothedHinge",
        "logistic": "losses.logistic:Logistic",
        "exponential": "losses.exponential:Exponential",
        "linear": "losses.linear:Linear",
        "structured-hinge": "losses.structured_hinge:StructuredHinge",
        "prediction-hinge": "losses.prediction_hinge:PredictionHinge",
        "nbest-mira": "losses.nbest_mira:NBestMIRA",
        "sapo": "losses.sapo:SAPO",
        "log": "losses.log:Log",
        "swvp": "losses.swvp:SWVP",
        "ramp": "losses.ramp:Ramp",
        "hope-fear": "losses.hope_fear:HopeFear",
        "risk": "losses.risk:Risk",
        "weighted-log": "losses.weighted_log:WeightedLog",
    },
)
RULES = Parts(
    "rule",
    {
        "sgd": "rules.sgd:SGD",
        "passive-aggressive": "rules.passive_aggressive:PassiveAggressive",
        "adagrad": "rules.adagrad:AdaGrad",
        "adagrad-rda": "rules.adagrad_rda:AdaGradRDA",
        "rda": "rules.rda:RDA",
        "truncated-gradient": "rules.truncated:TruncatedGradient",
        "fobos": "rules.fobos:FOBOS",
        "ftrl": "rules.ftrl:FTRL",
        "confidence-weighted": "rules.confidence:ConfidenceWeighted",
        "arow": "rules.arow:AROW",
    },
)
AVERAGINGS = Parts(
    "averaging",
    {
        "last": "averaging.last:Last",
        "averaged": "averaging.averaged:Averaged",
        "voted": "averaging.voted:Voted",
    },
)
COSTS = Parts("cost", {"hamming": "costs.hamming:Hamming", "regret": "costs.regret:Regret"})


def unknown(owner: str, name: str, known: list[str], what: str = "parameter") -> str:
    """That there is no such name, and what there is.

    >>> unknown("sgd", "ratte", ["rate", "l2"])
    "sgd has no parameter 'ratte'; did you mean 'rate'?"
    """
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(set(known)))}"
    return f"{owner} has no {what} {name!r}; {hint}"
