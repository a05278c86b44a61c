"""Classifiers of tests, trained on a dataset as it is unless they say otherwise."""

from __future__ import annotations

from typing import Any

from hopefear.tasks import base
from hopefear.tasks.classify.task import Classification

_OPTIONS = ("intercept", "values", "norm", "class_weight", "transformed", "nb_share")


def train(data: Any, learner: Any = None, params: Any = None, **how: Any) -> base.Trained:
    """Trains a classifier; what is no option of its task is one of all tasks."""
    options = {name: how.pop(name) for name in _OPTIONS if name in how}
    return base.train(Classification(**options), data, learner, params, **how)
