"""The names and parameters of sklearn-crfsuite on this library's learners.

Programs written for that package run after ``import sklearn_crfsuite`` has become
``from hopefear import crfsuite as sklearn_crfsuite``.
"""

from hopefear.crfsuite import metrics, scorers
from hopefear.crfsuite.estimator import CRF

__all__ = ["CRF", "metrics", "scorers"]
