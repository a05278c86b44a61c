"""Rerankers as scikit-learn estimators."""

from hopefear.reranker.estimator import Reranker
from hopefear.reranker.predicting import ListPredictor

__all__ = ["ListPredictor", "Reranker"]
