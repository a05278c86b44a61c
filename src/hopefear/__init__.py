"""Linear structured prediction: any learner on any structure."""

from __future__ import annotations

import importlib
import os
from typing import Any

__version__ = "0.1.0"

__all__ = [
    "RECIPES",
    "Classifier",
    "HopefearError",
    "Learner",
    "Model",
    "SparseDataset",
    "__version__",
    "load",
    "recipe",
]

# Where each name lives; imported when first used, so that ``hopefear --help`` is quick and this
# file stands below all others. Type checkers read the stub beside it.
_HOMES = {
    "Classifier": "hopefear.estimators",
    "HopefearError": "hopefear.errors",
    "Learner": "hopefear.learner",
    "Model": "hopefear.model",
    "RECIPES": "hopefear.recipes",
    "SparseDataset": "hopefear.data.sparse",
    "recipe": "hopefear.recipes",
}


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model file; any changed byte is refused.

    Examples
    --------
    >>> import tempfile, hopefear
    >>> model = hopefear.Classifier("perceptron").fit([[1.0], [-1.0]], ["fear", "hope"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model")
    ...     hopefear.load(f"{folder}/model").classes
    ('fear', 'hope')
    """
    return importlib.import_module("hopefear.model").Model.load(path)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hopefear' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
