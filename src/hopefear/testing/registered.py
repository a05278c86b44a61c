"""All registered parts, with parameters under which checks see what they do."""

from __future__ import annotations

from typing import Any, NamedTuple

from hopefear.recipes import AVERAGINGS, COSTS, LOSSES, RULES

# Parameters under which a part shows all it does: the defaults of many penalise nothing.
SETTINGS: dict[str, dict[str, Any]] = {
    "exponential": {"limit": 2.0},
    "sapo": {"n": 3},
    "nbest-mira": {"n": 3, "C": 0.3, "rounds": 5000},
    "risk": {"inverse_temperature": 2.0},
    "weighted-log": {"inverse_temperature": 2.0},
    "sgd": {"rate": 0.5, "power": 0.5, "l1": 0.0217, "l2": 0.1},
    "passive-aggressive": {"C": 0.2},
    "adagrad": {"rate": 0.3, "l1": 0.0217},
    "adagrad-rda": {"rate": 0.5, "l1": 0.0217},
    "rda": {"rate": 0.5, "l1": 0.0217, "l2": 0.1},
    "truncated-gradient": {"rate": 0.3, "gravity": 0.0513, "every": 3, "threshold": 0.25},
    "fobos": {"rate": 0.5, "l1": 0.0217, "l2": 0.1},
    "ftrl": {"rate": 0.5, "beta": 0.5, "l1": 0.1, "l2": 0.1},
    "confidence-weighted": {"phi": 0.7},
}


class RegisteredPart(NamedTuple):
    """A part of the tables of ``hopefear.recipes``, with parameters that show all it does."""

    kind: str
    name: str
    part: Any


def registered_parts(kind: str | None = None) -> list[RegisteredPart]:
    """Everything in the tables of losses, rules and averaging, those added by users among them.

    Losses with a cost come once for every cost.

    Examples
    --------
    >>> [part.name for part in registered_parts("averaging")]
    ['last', 'averaged', 'voted']
    >>> len(registered_parts("loss")) >= len(LOSSES)
    True
    """
    parts = []
    for table in (LOSSES, RULES, AVERAGINGS):
        for name in table if kind in (None, table.kind) else ():
            part = table[name](**SETTINGS.get(name, {}))
            if hasattr(part, "cost"):
                costs = [COSTS[cost](0.7) for cost in COSTS]
                parts += [RegisteredPart(table.kind, name, part._replace(cost=c)) for c in costs]
            else:
                parts.append(RegisteredPart(table.kind, name, part))
    return parts
