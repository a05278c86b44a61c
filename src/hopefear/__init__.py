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
    "ParseModel",
    "Parser",
    "RerankModel",
    "Reranker",
    "SequenceModel",
    "SparseDataset",
    "Tagger",
    "Tuner",
    "__version__",
    "load",
    "load_model",
    "read",
    "recipe",
    "show",
]

# Where each name lives; imported when first used, so that ``hopefear --help`` is quick and this
# file stands below all others. Type checkers read the stub beside it.
_HOMES = {
    "Classifier": "hopefear.tasks.classify.estimator",
    "HopefearError": "hopefear.errors",
    "Learner": "hopefear.core.learner",
    "Model": "hopefear.tasks.classify.model",
    "ParseModel": "hopefear.tasks.parse.model",
    "Parser": "hopefear.tasks.parse.estimator",
    "RECIPES": "hopefear.recipes",
    "RerankModel": "hopefear.tasks.rerank.model",
    "Reranker": "hopefear.tasks.rerank.estimator",
    "SequenceModel": "hopefear.tasks.tag.model",
    "SparseDataset": "hopefear.data.sparse",
    "Tagger": "hopefear.tasks.tag.estimator",
    "Tuner": "hopefear.translation.estimator",
    "read": "hopefear.tasks.reading",
    "recipe": "hopefear.tasks",
    "show": "hopefear.tasks.showing",
}


def load(path: str | os.PathLike[str]) -> Any:
    """The estimator that ``save`` stored, or one around what the command line trained.

    A :class:`Classifier`, :class:`Tagger`, :class:`Parser` or :class:`Reranker` that predicts; it
    cannot go on learning. Any changed byte is refused. Of a task without an estimator it is the
    model.

    Examples
    --------
    >>> import tempfile, hopefear
    >>> model = hopefear.Classifier("perceptron").fit([[1.0], [-1.0]], ["fear", "hope"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model")
    ...     hopefear.load(f"{folder}/model")
    Classifier(learner='perceptron')
    """
    return importlib.import_module("hopefear.tasks").estimator_of(load_model(path))


def load_model(path: str | os.PathLike[str]) -> Any:
    """The model in a file of any task, which needs no scikit-learn; any changed byte is refused.

    Examples
    --------
    >>> import tempfile, hopefear
    >>> model = hopefear.Classifier("perceptron").fit([[1.0], [-1.0]], ["fear", "hope"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model")
    ...     hopefear.load_model(f"{folder}/model").classes
    ('fear', 'hope')
    """
    header, arrays = importlib.import_module("hopefear.storage").load(path, "model")
    return importlib.import_module("hopefear.tasks").model_from_parts(path, header, arrays)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hopefear' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
