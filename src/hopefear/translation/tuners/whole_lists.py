"""What tuners that look at all lists before they move say about themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar

from hopefear import __version__


class WholeListsTuner:
    """A dataclass whose fields are its parameters, and whose ``tune`` gives weights.

    Examples
    --------
    >>> from hopefear.translation.tuners.mert import Mert
    >>> Mert(restarts=5).signature(seed=3)[:45]
    'tuner:mert(restarts=5,steps=turns,random=14,e'
    """

    name: ClassVar[str]

    def parameters(self) -> dict[str, Any]:
        """All parameters, as JSON has them."""
        return asdict(self)  # type: ignore[call-overload]

    def signature(self, **more: Any) -> str:
        """One line that says exactly what this tuner is; goes into weights files and reports."""
        parts = {"tuner": f"{self.name}({listed(self.parameters())})", **more, "v": __version__}
        return "|".join(f"{key}:{value}" for key, value in parts.items())


def listed(parameters: Mapping[str, Any]) -> str:
    """Parameters that have a value in one line; those with parts are left out.

    >>> listed({"rate": 0.1, "swap": True, "start": None, "rule": {"C": 1.0}})
    'rate=0.1,swap=true'
    """
    return ",".join(
        f"{name}={value:.10g}" if isinstance(value, float) else f"{name}={str(value).lower()}"
        for name, value in parameters.items()
        if value is not None and not isinstance(value, Mapping)
    )
