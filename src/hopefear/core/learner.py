"""A learner: a loss, an update rule, an averaging, and which examples update weights."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopefear import __version__
from hopefear.core.interfaces import inferences_of
from hopefear.errors import CombinationError


@dataclass(frozen=True)
class Learner:
    """Loss x rule x averaging.

    Parameters
    ----------
    loss, rule, averaging
        Components of the three packages of that name.
    update_on : {"all", "mistakes"}
        ``"all"``: the clock ticks on every example, and every example with a force moves the
        weights. ``"mistakes"``: both happen only when the prediction is wrong (a tie is wrong).

    Examples
    --------
    >>> from hopefear.losses.hinge import Hinge
    >>> from hopefear.rules.rda import RDA
    >>> from hopefear.averaging.averaged import Averaged
    >>> Learner(Hinge(), RDA(rate=2, l1=1e-5), Averaged(), update_on="mistakes").signature()
    'loss:hinge(asked=1)|rule:rda(rate=2,l1=1e-05,l2=0)|update_on:mistakes|averaging:averaged|v:0.1.0'
    """

    loss: Any
    rule: Any
    averaging: Any
    update_on: str = "all"

    batch = False
    # Passes without a better score on held-out data before training stops; None: by their number.
    patience = None

    def __post_init__(self) -> None:
        if self.update_on not in ("all", "mistakes"):
            raise CombinationError(
                f"update_on={self.update_on!r}: updates happen on 'all' or 'mistakes'"
            )
        for part in (self.loss, self.rule, self.averaging):
            check_part(part)
        if reason := self.rule.incompatible_with(self.loss, self.update_on):
            loss, rule = type(self.loss).__name__, type(self.rule).__name__
            raise CombinationError(f"{rule} and {loss}: {reason}")

    def signature(self, **more: Any) -> str:
        """One line that says exactly what this learner is; goes into models and reports."""
        parts = {
            "loss": describe(self.loss),
            "rule": describe(self.rule),
            "update_on": self.update_on,
            "averaging": describe(self.averaging, defaults=False),
            **more,
            "v": __version__,
        }
        return "|".join(f"{key}:{value}" for key, value in parts.items())


def parameters_by_part(learner: Any) -> dict[str, dict[str, Any]]:
    """All parameters of a learner, online or in batch, as JSON has them.

    >>> from hopefear.losses.ramp import Ramp
    >>> from hopefear.rules.sgd import SGD
    >>> from hopefear.averaging.last import Last
    >>> found = parameters_by_part(Learner(Ramp(), SGD(rate=2), Last()))
    >>> found["loss"]["cost"], found["rule"]["rate"]
    ({'name': 'hamming', 'each': 1.0}, 2.0)
    """
    if learner.batch:
        # Learners that know what is observed have the loss of their kind, as signatures say.
        loss = {"loss": _fields(learner.loss)} if learner.observed is None else {}
        return {**loss, "batch": learner.parameters()}
    if hasattr(learner, "trainer"):
        return {"loss": _fields(learner.loss), "network": learner.parameters()}
    return {part: _fields(getattr(learner, part)) for part in ("loss", "rule", "averaging")}


def _fields(part: Any) -> dict[str, Any]:
    """Parameters of a component by name; parts among them with theirs, arrays left out."""
    found: dict[str, Any] = {}
    for key, value in part._asdict().items():
        if hasattr(value, "parameter_error"):
            found[key] = {"name": part_name(type(value)), **_fields(value)}
        elif hasattr(value, "spelled"):
            if text := value.spelled():
                found[key] = text
        elif is_plain(value):
            shown = named(type(part), key, value)
            plain = isinstance(shown, str | int) or math.isfinite(shown)
            found[key] = shown if plain else str(shown)  # JSON has no word for infinity
    return found


def check_part(part: Any) -> None:
    """Refuse parameters that no formula makes sense for.

    >>> from hopefear.rules.rda import RDA
    >>> check_part(RDA(l1=-1.0))
    Traceback (most recent call last):
    hopefear.errors.CombinationError: RDA: l1 must not be negative or NaN, but is -1.0
    """
    name = type(part).__name__
    endless: tuple[str, ...] = getattr(part, "may_be_infinite", ())
    for key, value in part._asdict().items():
        if hasattr(value, "parameter_error"):
            check_part(value)
        if isinstance(value, float) and not value >= 0.0:
            raise CombinationError(f"{name}: {key} must not be negative or NaN, but is {value!r}")
        if isinstance(value, float) and value == math.inf and key not in endless:
            raise CombinationError(f"{name}: {key} must be finite")
        if isinstance(value, int) and not -(2**31) <= value < 2**31:
            raise CombinationError(f"{name}: {key} must lie within 32 bits, but is {value}")
    if fault := part.parameter_error():
        raise CombinationError(f"{name}: {fault}")


def check_served(structure: Any, loss: Any) -> None:
    """Refuse a loss that asks for what a structure does not have."""
    shape = type(structure).__name__
    priced = loss.cost.n_labels if hasattr(loss, "cost") else 0
    if priced not in (0, structure.n_labels):
        raise CombinationError(
            f"{type(loss).__name__} has prices for {priced} labels, the structure "
            f"{shape} has {structure.n_labels}; give a price for every pair"
        )
    if missing := sorted(set(loss.requires()) - inferences_of(structure)):
        reason = structure.why_unsupported(missing[-1])  # risk asks for more than expectation
        raise CombinationError(
            f"the loss {describe(loss)} needs {', '.join(missing)}, which {shape} does not offer: "
            f"{reason}"
        )


def describe(part: Any, defaults: bool = True) -> str:
    """``name(field=value, ...)`` of a component, as signatures write it."""
    plain = type(part)._field_defaults
    fields = [
        f"{name}={shown}"
        for name, value in part._asdict().items()
        if (defaults or not is_plain(value) or value != plain.get(name))
        and (shown := _short(named(type(part), name, value) if is_plain(value) else value))
    ]
    return part_name(type(part)) + (f"({','.join(fields)})" if fields else "")


def named(cls: type, key: str, value: Any) -> Any:
    """A parameter as people write it: choices by name, parts by theirs.

    >>> from hopefear.losses.swvp import SWVP
    >>> named(SWVP, "approach", 1)
    'balanced'
    """
    choices = getattr(cls, "choices", {}).get(key)
    if choices is not None:
        return choices[value]
    return part_name(type(value)) if hasattr(value, "parameter_error") else value


def part_name(cls: type) -> str:
    """Name of a component in signatures and on the command line.

    >>> from hopefear.losses.squared_hinge import SquaredHinge
    >>> from hopefear.rules.adagrad_rda import AdaGradRDA
    >>> part_name(SquaredHinge), part_name(AdaGradRDA)
    ('squared-hinge', 'adagrad-rda')
    """
    name = cls.__name__.replace("AdaGrad", "Adagrad").replace("NBest", "Nbest")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


def is_plain(value: Any) -> bool:
    """Whether a parameter is a number or a choice, not a part or arrays."""
    return not isinstance(value, tuple | np.ndarray)


def _short(value: Any) -> str:
    if hasattr(value, "parameter_error"):
        return describe(value, defaults=False)
    if not is_plain(value):  # arrays: what they hold, in a few letters
        arrays = value if isinstance(value, tuple) else (value,)
        content = b"".join(np.asarray(array).tobytes() for array in arrays)
        return hashlib.sha256(content).hexdigest()[:8] if content else ""
    return f"{value:.10g}" if isinstance(value, float) else str(value).lower()
