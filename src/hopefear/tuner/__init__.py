"""Tuning as a scikit-learn estimator."""

from hopefear.tuner.estimator import Tuner

__all__ = ["Tuner"]
