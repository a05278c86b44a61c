"""scikit-learn's scores over the tokens of all sequences.

For spans, use :func:`hopefear.metrics.chunk_scores`: a span that is half right is wrong there.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

from sklearn import metrics

from hopefear.tasks.estimator import ArgumentError


def flat_accuracy_score(y_true: Any, y_pred: Any) -> float:
    """Share of the tokens with the right label.

    >>> flat_accuracy_score([["A", "B"], ["A"]], [["A", "A"], ["A"]]) == 2 / 3
    True
    """
    return metrics.accuracy_score(*_flat(y_true, y_pred))


def flat_precision_score(y_true: Any, y_pred: Any, **options: Any) -> Any:
    """``sklearn.metrics.precision_score`` of the tokens."""
    return metrics.precision_score(*_flat(y_true, y_pred), **options)


def flat_recall_score(y_true: Any, y_pred: Any, **options: Any) -> Any:
    """``sklearn.metrics.recall_score`` of the tokens."""
    return metrics.recall_score(*_flat(y_true, y_pred), **options)


def flat_f1_score(y_true: Any, y_pred: Any, **options: Any) -> Any:
    """``sklearn.metrics.f1_score`` of the tokens.

    >>> float(flat_f1_score([["A", "B"]], [["A", "A"]], labels=["A"], average="micro")) == 2 / 3
    True
    """
    return metrics.f1_score(*_flat(y_true, y_pred), **options)


def flat_fbeta_score(y_true: Any, y_pred: Any, beta: float, **options: Any) -> Any:
    """``sklearn.metrics.fbeta_score`` of the tokens."""
    return metrics.fbeta_score(*_flat(y_true, y_pred), beta=beta, **options)


def flat_classification_report(
    y_true: Any, y_pred: Any, labels: Any = None, **options: Any
) -> str | dict[str, Any]:
    """``sklearn.metrics.classification_report`` of the tokens."""
    return metrics.classification_report(*_flat(y_true, y_pred), labels=labels, **options)


def sequence_accuracy_score(y_true: Any, y_pred: Any) -> float:
    """Share of the sequences whose labels are all right; 0 without sequences.

    >>> sequence_accuracy_score([["A", "B"], ["A"]], [["A", "A"], ["A"]])
    0.5
    """
    pairs = list(_pairs(y_true, y_pred))
    return sum(list(gold) == list(predicted) for gold, predicted in pairs) / max(1, len(pairs))


def _flat(y_true: Any, y_pred: Any) -> tuple[list[Any], list[Any]]:
    for i, (gold, predicted) in enumerate(_pairs(y_true, y_pred)):
        if len(gold) != len(predicted):
            raise ArgumentError(
                f"sequence {i}: {len(gold)} true labels, but {len(predicted)} predicted"
            )
    return list(chain.from_iterable(y_true)), list(chain.from_iterable(y_pred))


def _pairs(y_true: Any, y_pred: Any) -> Any:
    if len(y_true) != len(y_pred):
        raise ArgumentError(f"{len(y_true)} sequences of true labels, but {len(y_pred)} predicted")
    return zip(y_true, y_pred, strict=True)
