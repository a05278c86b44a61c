"""Scores from a network: every loss of the library on top of PyTorch.

Scores of a structure's parts are ``theta``, a loss gives ``mu``, and ``-mu`` is the gradient of the
loss with respect to the scores. So whatever makes the scores of a chain, a tree, a list or classes
can be trained with any loss of the grid.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import re
from typing import Any

from hopefear.errors import HopefearError

_OLDEST = (2, 6)
# Where each name lives; imported when first used.
_HOMES = {
    "ChainLoss": "structured_loss",
    "ClassLoss": "structured_loss",
    "ListLoss": "structured_loss",
    "StructuredLoss": "structured_loss",
    "TreeLoss": "tree_loss",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    check_torch()
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])


def check_torch() -> None:
    """Refuse to go on without PyTorch, or with an old one, and say where it comes from."""
    if importlib.util.find_spec("torch") is None:
        raise HopefearError(
            "networks need PyTorch, which is not installed; pip install 'hopefear[neural]'"
        )
    installed = importlib.metadata.version("torch")
    numbers = tuple(int(part) for part in re.findall(r"\d+", installed)[:2])
    if numbers < _OLDEST:
        raise HopefearError(
            f"networks need PyTorch {'.'.join(map(str, _OLDEST))} or newer, and {installed} is "
            "installed; pip install -U 'hopefear[neural]'"
        )
