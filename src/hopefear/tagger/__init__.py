"""Taggers as scikit-learn estimators."""

from hopefear.tagger.estimator import Tagger
from hopefear.tagger.predicting import Output, SequencePredictor, Span

__all__ = ["Output", "SequencePredictor", "Span", "Tagger"]
