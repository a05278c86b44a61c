"""What a tagger gets wrong: labels taken for labels, spans for spans, words it never saw."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear import __version__
from hopefear.errors import HopefearError
from hopefear.metrics.chunks import Reading, chunked, spans
from hopefear.metrics.classification import Accuracy, Scores
from hopefear.metrics.label_codes import coded


class Confusion(NamedTuple):
    """How often each name of the reference was given each name of the output.

    Parameters
    ----------
    names : tuple of str
        Labels, or types of spans.
    counts : int array [names, names]
        ``counts[reference, output]``.
    """

    names: tuple[str, ...]
    counts: NDArray[np.int64]

    def top(self, n: int = 10) -> list[tuple[str, str, int]]:
        """The ``n`` commonest mistakes: reference, output, how often."""
        wrong = self.counts.copy()
        np.fill_diagonal(wrong, 0)
        order = np.argsort(-wrong, axis=None, kind="stable")[:n]
        pairs = zip(*np.unravel_index(order, wrong.shape), strict=True)
        return [(self.names[i], self.names[j], int(wrong[i, j])) for i, j in pairs if wrong[i, j]]


class SpanErrors(NamedTuple):
    """Spans by what became of them.

    Parameters
    ----------
    types : Confusion
        Types of spans whose bounds agree.
    correct, type, bounds, both, missed : int
        Spans of the reference: found; found with another type; overlapped by a span of their
        type, or only by spans of others; not touched by any. They sum to the reference.
    spurious : int
        Spans of the output that touch none of the reference.
    signature : str
        How they were counted.
    """

    types: Confusion
    correct: int
    type: int
    bounds: int
    both: int
    missed: int
    spurious: int
    signature: str


def label_confusion(
    gold: Any,
    predicted: Any,
    starts: ArrayLike | None = None,
    *,
    labels: Sequence[str] | None = None,
) -> Confusion:
    """Count labels of the reference against labels of the output.

    Parameters
    ----------
    gold, predicted : taggings
        Lists of strings, lists of such lists, `Column`, or arrays of positions in ``labels``.
    starts, labels
        As in `chunk_scores`; names come in the order of ``labels``, then as they are met.

    Examples
    --------
    >>> found = label_confusion(["N", "V", "N"], ["N", "N", "N"])
    >>> found.counts.tolist(), found.top(1)
    ([[2, 0], [1, 0]], [('V', 'N', 1)])
    """
    data = coded((gold, predicted), starts, labels)
    return _confusion(data.names, *data.codes)


def span_errors(
    gold: Any,
    predicted: Any,
    starts: ArrayLike | None = None,
    *,
    labels: Sequence[str] | None = None,
    reading: str = "conlleval",
) -> SpanErrors:
    """Sort spans into found, wrong type, wrong bounds, both wrong, missed and spurious.

    Parameters
    ----------
    gold, predicted, starts, labels, reading
        As in `chunk_scores`.

    Examples
    --------
    >>> found = span_errors(["B-X", "I-X", "O", "B-Y"], ["B-X", "O", "B-X", "B-X"])
    >>> found.type, found.bounds, found.spurious, found.types.top()
    (1, 1, 1, [('Y', 'X', 1)])
    """
    data = coded((gold, predicted), starts, labels)
    found = chunked(data, Reading(reading))
    one, two = found.taggings
    first, after, kind = spans(one)
    other_first, other_after, other_kind = spans(two)
    at = np.minimum(np.searchsorted(other_first, first), max(len(other_first) - 1, 0))
    if len(other_first):
        agree = (other_first[at] == first) & (other_after[at] == after)
    else:
        agree = np.zeros(len(first), bool)
    types = _confusion(found.kinds, kind[agree], other_kind[at[agree]])
    correct = int(np.trace(types.counts))
    own = np.zeros(len(first), bool)
    for k in range(len(found.kinds)):
        mine, theirs = kind == k, other_kind == k
        own[mine] = _touched(first[mine], after[mine], other_first[theirs], other_after[theirs])
    touched = _touched(first, after, other_first, other_after)
    spurious = ~_touched(other_first, other_after, first, after)
    return SpanErrors(
        _met(types),
        correct,
        int(agree.sum()) - correct,
        int((own & ~agree).sum()),
        int((touched & ~own & ~agree).sum()),
        int((~touched).sum()),
        int(spurious.sum()),
        f"metric:span-errors|chunks:{reading}|v:{__version__}",
    )


def unknown_words(words: Any, known: Collection[str]) -> NDArray[np.bool_]:
    """Which words are not among the known ones; looks each distinct word up once.

    Parameters
    ----------
    words : list of str or Column
        One for each token.
    known : collection of str
        Words of the training data.

    Examples
    --------
    >>> unknown_words(["the", "cat"], {"the"}).tolist()
    [False, True]
    """
    data = coded((words,))
    known = known if isinstance(known, set | frozenset | dict) else set(known)
    return np.array([word not in known for word in data.names], bool)[data.codes[0]]


def unknown_word_accuracy(
    gold: Any,
    predicted: Any,
    unknown: ArrayLike,
    *,
    labels: Sequence[str] | None = None,
) -> Scores:
    """Token accuracy on unknown and on known words.

    Parameters
    ----------
    gold, predicted : taggings
        As in `label_confusion`.
    unknown : bool array
        One for each token, as `unknown_words` gives.
    labels : sequence of str, optional
        Names of label positions.

    Examples
    --------
    >>> found = unknown_word_accuracy(["N", "V"], ["N", "N"], [False, True])
    >>> found["accuracy_known"], found["accuracy_unknown"], found["unknown"]
    (100.0, 0.0, 1)
    """
    one, two = coded((gold, predicted), None, labels).codes
    mask = np.asarray(unknown)
    if mask.dtype != bool or mask.shape != one.shape:
        raise HopefearError(
            f"unknown is an array {mask.dtype}{list(mask.shape)}; {len(one)} tokens need one "
            "true or false each"
        )
    metric = Accuracy("token")
    rare = metric.value(metric.stats(one[mask], two[mask]))
    common = metric.value(metric.stats(one[~mask], two[~mask]))
    return {
        "accuracy_unknown": rare["accuracy"],
        "accuracy_known": common["accuracy"],
        "unknown": rare["count"],
        "known": common["count"],
        "signature": metric.signature,
    }


def _confusion(names, one, two) -> Confusion:
    n = len(names)
    return Confusion(tuple(names), np.bincount(one * n + two, minlength=n * n).reshape(n, n))


def _met(found: Confusion) -> Confusion:
    """Without names that do not occur."""
    which = np.flatnonzero(found.counts.any(axis=0) | found.counts.any(axis=1))
    names = tuple(found.names[i] for i in which)
    return Confusion(names, found.counts[np.ix_(which, which)])


def _touched(first, after, other_first, other_after) -> NDArray[np.bool_]:
    """Which spans overlap one of the others; spans of one side never overlap each other."""
    if len(other_first) == 0:
        return np.zeros(len(first), bool)
    at = np.searchsorted(other_after, first, "right")
    inside = at < len(other_first)
    return inside & (other_first[np.minimum(at, len(other_first) - 1)] < after)
