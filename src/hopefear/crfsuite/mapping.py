"""What the parameters of sklearn-crfsuite are called here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from hopefear.errors import HopefearError


class Choice(NamedTuple):
    """A learner, its parameters and the passes it makes."""

    learner: str
    params: dict[str, Any]
    epochs: int


# Steps of a search whose end the data decide.
_NO_LIMIT = 1_000_000
# Passes where none are asked for. After 50 passes a rate that loses a tenth in each has come to
# half a percent of its start, so the 1000 of the original would change nothing.
_PASSES = {"l2sgd": 50, "ap": 100, "pa": 100, "arow": 100}


def choice(given: Mapping[str, Any]) -> Choice:
    """The learner for some parameters of ``CRF``; None means the default.

    Examples
    --------
    >>> choice({"algorithm": "pa", "c": 0.5, "max_iterations": 10})
    Choice(learner='mira', params={'C': 0.5, 'variant': 1, 'readout': 'averaged'}, epochs=10)
    """

    def value(name: str, default: Any) -> Any:
        found = given.get(name)
        return default if found is None else found

    algorithm = value("algorithm", "lbfgs")
    passes = value("max_iterations", _PASSES.get(algorithm, _NO_LIMIT))
    if algorithm == "lbfgs":
        params = {
            "l1": value("c1", 0.0),
            "l2": value("c2", 1.0),
            "memory": value("num_memories", 6),
            "tolerance": value("delta", 1e-5),
            "period": value("period", 10),
            "observed": not (
                value("all_possible_states", False) or value("all_possible_transitions", False)
            ),
        }
        return Choice("crf-lbfgs", params, passes)
    if algorithm == "l2sgd":
        return Choice("crf", {"lam": value("c2", 1.0)}, passes)
    if algorithm == "ap":
        return Choice("perceptron", {}, passes)
    if algorithm == "pa":
        params = {
            "C": value("c", 1.0),
            "variant": value("pa_type", 1),
            "readout": "averaged" if value("averaging", True) else "last",
        }
        return Choice("mira" if value("error_sensitive", True) else "pa", params, passes)
    if algorithm == "arow":
        if value("variance", 1.0) != 1.0:
            raise HopefearError(
                f"arow starts with the variance 1, not {given['variance']}; scale gamma instead"
            )
        return Choice("arow", {"r": value("gamma", 1.0)}, passes)
    raise HopefearError(f"algorithm is one of lbfgs, {', '.join(_PASSES)}, not {algorithm!r}")


def min_count(min_freq: float | None) -> int:
    """Times an attribute must be seen.

    >>> min_count(None), min_count(2), min_count(2.5)
    (1, 2, 3)
    """
    return max(1, math.ceil(min_freq or 0))
