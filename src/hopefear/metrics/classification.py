"""Scores of class decisions and of class probabilities.

Scores are percentages, 0 to 100. Losses keep their own scales: log loss is in nats, the Brier
score between 0 and 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear import __version__
from hopefear.errors import HopefearError
from hopefear.metrics.base import Metric, Scores, percent, plain


@dataclass(frozen=True)
class Accuracy(Metric):
    """Share of outputs that equal their reference, of any kind of label.

    ``100 * right / all``

    Parameters
    ----------
    unit : str
        What is counted, for the signature: ``example``, ``token``, ...

    Examples
    --------
    >>> metric = Accuracy()
    >>> metric.scores(metric.total(["a", "b", "b"], ["a", "b", "a"]))["accuracy"]
    66.66666666666667
    """

    name: ClassVar[str] = "accuracy"
    main: ClassVar[str] = "accuracy"

    unit: str = "example"

    def statistics(self, references: ArrayLike, outputs: ArrayLike) -> NDArray[np.int64]:
        gold, predicted = _same_length(references, outputs)
        right = gold == predicted
        return np.stack((right, np.ones_like(right)), axis=1).astype(np.int64)

    def scores(self, sums: ArrayLike) -> Scores:
        right, count = np.moveaxis(np.asarray(sums), -1, 0)
        accuracy = percent(right, count)
        return plain({"accuracy": accuracy, "error": 100.0 - accuracy, "count": count})

    @property
    def signature(self) -> str:
        return f"metric:accuracy|unit:{self.unit}|v:{__version__}"


@dataclass(frozen=True)
class Classification(Metric):
    """Accuracy, precision, recall and F1 from the confusion counts.

    ``precision = TP / (TP + FP), recall = TP / (TP + FN), F1 = 2 TP / (2 TP + FP + FN)``

    Parameters
    ----------
    n_classes : int
        References and outputs are class positions below this.
    positive : int
        With two classes ``precision``, ``recall`` and ``f1`` are this class's. With more they are
        the plain mean over the classes (macro), and this is not used.

    Notes
    -----
    ``*_micro`` sum the counts over classes; with one label an example they all equal accuracy.
    A ratio with nothing to divide by is 0. The mean runs over classes that the reference or the
    output holds, as scikit-learn's does.

    Examples
    --------
    >>> metric = Classification()
    >>> scores = metric.scores(metric.total([1, 1, 0, 0], [1, 0, 0, 0]))
    >>> scores["accuracy"], scores["precision"], scores["recall"]
    (75.0, 100.0, 50.0)
    """

    name: ClassVar[str] = "classification"
    main: ClassVar[str] = "accuracy"

    n_classes: int = 2
    positive: int = 1

    def statistics(self, references: ArrayLike, outputs: ArrayLike) -> NDArray[np.int64]:
        cells = self._cells(references, outputs)
        rows = np.zeros((len(cells), self.n_classes**2), np.int64)
        rows[np.arange(len(cells)), cells] = 1
        return rows

    def total(
        self, references: ArrayLike, outputs: ArrayLike, *arguments: Any
    ) -> NDArray[np.int64]:
        # The statistics themselves are far wider than what they hold.
        return np.bincount(self._cells(references, outputs), minlength=self.n_classes**2)

    def scores(self, sums: ArrayLike) -> Scores:
        confusion = self.confusion(sums)
        count = confusion.sum(axis=(-1, -2))
        right = np.diagonal(confusion, axis1=-2, axis2=-1).sum(axis=-1)
        accuracy = percent(right, count)
        scores = {"accuracy": accuracy, "error": 100.0 - accuracy, "count": count}
        scores_by_class = self.per_class(sums)
        if self.n_classes == 2:
            for name in ("precision", "recall", "f1"):
                scores[name] = scores_by_class[name][..., self.positive]
            return plain(scores)
        present = (scores_by_class["support"] + scores_by_class["predicted"]) > 0
        for name in ("precision", "recall", "f1"):
            total = np.where(present, scores_by_class[name], 0.0).sum(axis=-1)
            scores[name] = scores[f"{name}_macro"] = total / np.maximum(present.sum(axis=-1), 1)
            # Every wrong output is one false positive and one false negative.
            scores[f"{name}_micro"] = accuracy
        return plain(scores)

    def confusion(self, sums: ArrayLike) -> NDArray[np.int64]:
        """Counts ``[reference, output]``."""
        table = np.asarray(sums)
        return table.reshape(*table.shape[:-1], self.n_classes, self.n_classes)

    def per_class(self, sums: ArrayLike) -> dict[str, NDArray[Any]]:
        """Precision, recall, F1, ``support`` (in the reference) and ``predicted``, by position."""
        confusion = self.confusion(sums)
        right = np.diagonal(confusion, axis1=-2, axis2=-1)
        support, predicted = confusion.sum(axis=-1), confusion.sum(axis=-2)
        return {
            "precision": percent(right, predicted),
            "recall": percent(right, support),
            "f1": percent(2 * right, support + predicted),
            "support": support,
            "predicted": predicted,
        }

    @property
    def signature(self) -> str:
        averaging = f"positive:{self.positive}" if self.n_classes == 2 else "average:macro"
        return f"metric:classification|classes:{self.n_classes}|{averaging}|v:{__version__}"

    def _cells(self, reference: ArrayLike, output: ArrayLike) -> NDArray[np.int64]:
        reference, output = _same_length(reference, output)
        reference = _positions(reference, self.n_classes, "reference")
        output = _positions(output, self.n_classes, "output")
        return reference * self.n_classes + output


@dataclass(frozen=True)
class Probabilities(Metric):
    """Log loss and Brier score of class probabilities.

    ``log_loss = -mean ln p(y), brier = mean of sum_k (p(k) - [k = y])^2``

    Of two classes half of the latter counts, as in scikit-learn: it ends at 1, of more at 2.

    Parameters
    ----------
    n_classes : int
        Probabilities are ``[examples, n_classes]``; with two classes ``[examples]`` may hold
        the probability of class 1 alone.

    Notes
    -----
    Probabilities of 0 count as 2.2e-16, so that one certain mistake costs 36 nats, not infinity.
    Statistics are sums of floats here, not counts.

    Examples
    --------
    >>> metric = Probabilities()
    >>> scores = metric.scores(metric.total([1, 0], [0.5, 0.5]))
    >>> round(scores["log_loss"], 4), scores["brier"]
    (0.6931, 0.25)
    """

    name: ClassVar[str] = "probabilities"
    main: ClassVar[str] = "log_loss"
    higher: ClassVar[bool] = False

    n_classes: int = 2

    def statistics(self, references: ArrayLike, outputs: ArrayLike) -> NDArray[np.float64]:
        p = np.asarray(outputs, np.float64)
        if self.n_classes == 2 and p.ndim == 1:
            p = np.stack((1.0 - p, p), axis=1)
        gold, p = _same_length(references, p)
        y = _positions(gold, self.n_classes, "reference")
        if p.ndim != 2 or p.shape[1] != self.n_classes:
            raise HopefearError(
                f"probabilities of shape {p.shape} do not fit {self.n_classes} classes; "
                f"give one column for each class"
            )
        _check_distributions(p)
        one_hot = np.zeros_like(p)
        one_hot[np.arange(len(y)), y] = 1.0
        loss = -np.log(np.maximum(p[np.arange(len(y)), y], np.finfo(np.float64).eps))
        squares = ((p - one_hot) ** 2).sum(axis=1)
        if self.n_classes == 2:
            squares /= 2.0
        return np.stack((loss, squares, np.ones(len(y))), axis=1)

    def scores(self, sums: ArrayLike) -> Scores:
        loss, squares, count = np.moveaxis(np.asarray(sums), -1, 0)
        count = np.maximum(count, 1.0)
        return plain({"log_loss": loss / count, "brier": squares / count})

    @property
    def signature(self) -> str:
        brier = "half" if self.n_classes == 2 else "sum"
        return f"metric:probabilities|classes:{self.n_classes}|log:ln|brier:{brier}|v:{__version__}"


def classification_scores(
    reference: ArrayLike,
    output: ArrayLike,
    *,
    n_classes: int = 2,
    positive: int = 1,
    probabilities: ArrayLike | None = None,
) -> Scores:
    """All scores of class decisions, and of probabilities where given, with their signature.

    Parameters
    ----------
    reference, output : array of int
        Class positions.
    n_classes, positive : int
        As in `Classification`.
    probabilities : array, optional
        As in `Probabilities`; adds ``log_loss`` and ``brier``.

    Examples
    --------
    >>> scores = classification_scores([0, 1, 1], [0, 1, 0])
    >>> scores["recall"], scores["signature"].rpartition("|v:")[0]
    (50.0, 'metric:classification|classes:2|positive:1')
    """
    metrics: list[tuple[Metric, Any]] = [(Classification(n_classes, positive), output)]
    if probabilities is not None:
        metrics.append((Probabilities(n_classes), probabilities))
    return joined_scores([(metric, metric.total(reference, value)) for metric, value in metrics])


def joined_scores(totals: Sequence[tuple[Metric, ArrayLike]]) -> Scores:
    """Returns the scores of several metrics, each from its total, with all signatures."""
    scores: Scores = {}
    for metric, total in totals:
        scores |= metric.scores(total)
    return scores | {"signature": " ".join(metric.signature for metric, _ in totals)}


def score_names(n_classes: int) -> set[str]:
    """Returns the names of a classifier's scores.

    Examples
    --------
    >>> sorted(score_names(2))
    ['accuracy', 'brier', 'error', 'f1', 'log_loss', 'precision', 'recall']
    """
    hard = Classification(n_classes).scores(np.zeros(n_classes**2, np.int64))
    return {*hard, *Probabilities(n_classes).scores(np.zeros(3))} - {"count"}


def _same_length(reference: ArrayLike, output: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    a, b = np.asarray(reference), np.asarray(output)
    if a.ndim != 1 or len(a) != len(np.atleast_1d(b)):
        raise HopefearError(
            f"references of shape {a.shape} and outputs of shape {b.shape} do not pair up; "
            "give one output for each reference"
        )
    return a, b


def _positions(labels: NDArray[Any], n_classes: int, role: str) -> NDArray[np.int64]:
    if len(labels) == 0:
        return np.zeros(0, np.int64)
    if labels.dtype.kind not in "iub":
        raise HopefearError(
            f"{role} labels of type {labels.dtype} are not class positions; "
            "replace labels by their places in the list of classes"
        )
    if labels.min() < 0 or labels.max() >= n_classes:
        bad = int(np.argmax((labels < 0) | (labels >= n_classes)))
        raise HopefearError(
            f"{role} {bad} has class position {labels[bad]}, outside 0 to {n_classes - 1}; "
            "is n_classes too small?"
        )
    return labels.astype(np.int64)


def _check_distributions(p: NDArray[np.float64]) -> None:
    wrong = ~((p >= 0.0) & (p <= 1.0)).all(axis=1) | ~(np.abs(p.sum(axis=1) - 1.0) <= 1e-5)
    if wrong.any():
        bad = int(np.argmax(wrong))
        raise HopefearError(
            f"probabilities of example {bad} are {p[bad].tolist()}; "
            "they must lie between 0 and 1 and sum to 1"
        )
