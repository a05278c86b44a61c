"""Scores of taggings: tokens, chunks as ``conlleval`` counts them, sentences, and errors.

Scores are percentages, 0 to 100.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear import __version__
from hopefear.errors import HopefearError
from hopefear.metrics.base import Metric, Scores, percent, plain
from hopefear.metrics.chunks import agreements, chunked, coded, spans
from hopefear.metrics.classification import Accuracy

CORRECT, PREDICTED, GOLD, RIGHT, TOKENS, CORRECT_SENTENCES, SENTENCES = range(7)


@dataclass(frozen=True)
class Tagging(Metric):
    """Token accuracy, chunk precision, recall and F1, sentence accuracy.

    ``precision = correct / found, recall = correct / gold, f1 = 2 p r / (p + r)``

    Parameters
    ----------
    reading : {"conlleval", "iobes"}
        ``conlleval`` is the official script, in everything: it does not know ``S``, ``L`` and
        ``U``, and lets ``B`` go on after ``E``. ``iobes`` reads single and last tokens of IOBES,
        BILOU and BMES as their schemes mean them, and B, I, O as the script does.
    raw : bool
        Labels are bare types, each token a separate chunk (the script's ``-r``).
    outside : str
        With ``raw``, the label of tokens outside chunks besides ``O`` (its ``-o``).

    Notes
    -----
    Accuracy compares tag and type, as the script does: ``B-`` equals ``B``. Sentences without
    tokens are not counted.

    Examples
    --------
    >>> metric = Tagging()
    >>> gold, result = ["B-NP", "I-NP", "O", "B-VP"], ["B-NP", "I-NP", "O", "B-NP"]
    >>> scores = metric.scores(metric.total(gold, result))
    >>> scores["accuracy"], scores["f1"], scores["sentence_accuracy"]
    (75.0, 50.0, 0.0)
    """

    name: ClassVar[str] = "tagging"
    main: ClassVar[str] = "f1"
    reads: ClassVar[Mapping[str, tuple[int, ...]]] = {
        "accuracy": (RIGHT, TOKENS),
        "precision": (CORRECT, PREDICTED),
        "recall": (CORRECT, GOLD),
        "f1": (CORRECT, PREDICTED, GOLD),
        "sentence_accuracy": (CORRECT_SENTENCES, SENTENCES),
    }

    reading: str = "conlleval"
    raw: bool = False
    outside: str = "O"

    def statistics(
        self,
        references: Any,
        outputs: Any,
        starts: ArrayLike | None = None,
        labels: Sequence[str] | None = None,
    ) -> NDArray[np.int64]:
        """Returns the counts of each sentence ``[sentences, 7]``.

        Chunks correct, found and gold, tokens right and all, sentences right and all.

        Examples
        --------
        >>> Tagging().statistics([["B-X", "O"], ["O"]], [["B-X", "O"], ["B-X"]]).tolist()
        [[1, 1, 1, 2, 2, 1, 1], [0, 1, 0, 0, 1, 0, 1]]
        """
        return _counted(self, references, outputs, starts, labels)[0]

    def scores(self, sums: ArrayLike) -> Scores:
        columns = np.moveaxis(np.asarray(sums), -1, 0)
        precision, recall, f1 = _prf(columns[CORRECT], columns[PREDICTED], columns[GOLD])
        return plain(
            {
                "accuracy": percent(columns[RIGHT], columns[TOKENS]),
                "precision": precision,
                "recall": recall,
                "f1": f1,
                "sentence_accuracy": percent(columns[CORRECT_SENTENCES], columns[SENTENCES]),
                "tokens": columns[TOKENS],
            }
        )

    @property
    def signature(self) -> str:
        raw = f"|raw:outside={self.outside}" if self.raw else ""
        return f"metric:tagging|chunks:{self.reading}{raw}|v:{__version__}"


@dataclass(frozen=True)
class ChunkScores:
    """Scores that the official script prints, as numbers and as its text.

    Parameters
    ----------
    statistics : int array [sentences, 7]
        Counts of each sentence, as `Tagging.statistics` gives.
    types : tuple of str
        Types of chunks in the reference or the output, sorted.
    counts : int array [types, 3]
        Chunks correct, found and gold of each type.
    metric : Tagging
        How the counts were made.
    """

    statistics: NDArray[np.int64]
    types: tuple[str, ...]
    counts: NDArray[np.int64]
    metric: Tagging

    def as_dict(self) -> Scores:
        """Scores by their usual names, with their signature."""
        sums = self.statistics.sum(axis=0)
        names = ("correct", "found", "gold")
        counts = dict(zip(names, sums[[CORRECT, PREDICTED, GOLD]].tolist(), strict=True))
        return self.metric.scores(sums) | counts | {"signature": self.metric.signature}

    def per_type(self) -> dict[str, Scores]:
        """Precision, recall, F1 and counts of each type."""
        correct, output, gold = self.counts.T
        table = zip(self.types, *_prf(correct, output, gold), correct, output, gold, strict=True)
        names = ("precision", "recall", "f1", "correct", "found", "gold")
        return {k: {n: v.item() for n, v in zip(names, row, strict=True)} for k, *row in table}

    def report(self) -> str:
        """The text of the official script, character for character."""
        totals = self.as_dict()
        lines = [
            f"processed {totals['tokens']} tokens with {totals['gold']} phrases; "
            f"found: {totals['found']} phrases; correct: {totals['correct']}."
        ]
        if totals["tokens"]:
            lines.append(f"accuracy: {totals['accuracy']:6.2f}%; {_line(totals)}")
        for kind, scores in self.per_type().items():
            # The script pads bytes, not letters.
            padding = " " * (17 - len(kind.encode("utf-8", "surrogateescape")))
            line = f"{padding}{kind}: {_line(scores)}  {scores['found']}"
            # It meets the empty type in reference and output without seeing that it is one.
            twice = kind == "" and scores["found"] and scores["gold"]
            lines += [line, line] if twice else [line]
        return "\n".join(lines) + "\n"


def chunk_scores(
    gold: Any,
    predicted: Any,
    starts: ArrayLike | None = None,
    *,
    labels: Sequence[str] | None = None,
    reading: str = "conlleval",
    raw: bool = False,
    outside: str = "O",
) -> ChunkScores:
    """Score chunks as ``conlleval`` does, digit for digit.

    Parameters
    ----------
    gold, predicted : taggings
        Lists of strings, lists of such lists, `Column`, or arrays of positions in ``labels``.
    starts : int array, optional
        Where sentences begin, and the number of tokens; chunks never cross sentences. Not
        needed with lists of lists; without it a flat list is one sentence.
    labels : sequence of str, optional
        Names of label positions.
    reading, raw, outside
        As in `Tagging`.

    Examples
    --------
    >>> scores = chunk_scores([["B-NP", "I-NP"], ["B-VP"]], [["B-NP", "I-NP"], ["I-NP"]])
    >>> print(scores.report(), end="")
    processed 3 tokens with 2 phrases; found: 2 phrases; correct: 1.
    accuracy:  66.67%; precision:  50.00%; recall:  50.00%; FB1:  50.00
                   NP: precision:  50.00%; recall: 100.00%; FB1:  66.67  2
                   VP: precision:   0.00%; recall:   0.00%; FB1:   0.00  0
    """
    metric = Tagging(reading, raw, outside)
    rows, kinds, counts = _counted(metric, gold, predicted, starts, labels)
    types = sorted((kinds[i], i) for i in np.flatnonzero(counts[:, 1:].any(axis=1)))
    counts = counts[[i for _, i in types]].reshape(-1, 3)
    return ChunkScores(rows, tuple(kind for kind, _ in types), counts, metric)


def span_f1(estimator: Any, X: Any, y: Any) -> float:
    """F1 of the spans that an estimator finds, from 0 to 1: a scorer for scikit-learn's searches.

    Spans are read as `chunk_scores` does with ``reading="iobes"``, which for B, I and O is as the
    official script does.

    Parameters
    ----------
    estimator : estimator
        Anything whose ``predict(X)`` gives a list of labels for every sequence.
    X, y
        Sequences, and lists of labels such as ``B-PER`` and ``O``.

    Examples
    --------
    >>> from hopefear import Tagger
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = [["Ann", "sings"], ["Bo", "sings"]] * 4, [["B-P", "O"], ["B-P", "O"]] * 4
    >>> cross_val_score(Tagger("perceptron"), X, y, scoring=span_f1, cv=2).tolist()
    [1.0, 1.0]
    """
    gold = [list(map(str, labels)) for labels in y]
    names = {label for labels in gold for label in labels}
    if names and not any(name == "O" or "-" in name for name in names):
        raise HopefearError(
            f"span_f1 needs labels that spell spans, such as B-PER and O, not {min(names)!r}; use "
            "the estimator's own score, which is accuracy there"
        )
    output = [list(map(str, labels)) for labels in estimator.predict(X)]
    metric = Tagging("iobes")
    return float(metric.scores(metric.total(gold, output))["f1"]) / 100.0


def _counted(metric: Any, reference: Any, output: Any, starts: Any, labels: Any) -> Any:
    """Counts of each sentence, names of types, counts ``[types, 3]`` of each type."""
    data = coded((reference, output), starts, labels)
    chunks = chunked(data, metric.reading, metric.raw, metric.outside)
    gold, predicted = chunks.taggings
    n, k = len(data.starts) - 1, len(chunks.kinds)
    ends = agreements(gold, predicted) - 1
    rows = np.zeros((n, 7), np.int64)
    kinds = np.zeros((k, 3), np.int64)
    for column, where, kind in (
        (CORRECT, ends, gold.kinds),
        (PREDICTED, np.flatnonzero(predicted.starts), predicted.kinds),
        (GOLD, np.flatnonzero(gold.starts), gold.kinds),
    ):
        rows[:, column] = np.bincount(chunks.sentence[where], minlength=n)
        kinds[:, column] = np.bincount(kind[where], minlength=k)
    right = chunks.label_groups[data.codes[0]] == chunks.label_groups[data.codes[1]]
    rows[:, RIGHT] = np.diff(np.concatenate([[0], np.cumsum(right)])[data.starts])
    rows[:, TOKENS] = np.diff(data.starts)
    rows[:, SENTENCES] = rows[:, TOKENS] > 0
    rows[:, CORRECT_SENTENCES] = (rows[:, RIGHT] == rows[:, TOKENS]) & (rows[:, TOKENS] > 0)
    return rows, chunks.kinds, kinds


def _prf(
    correct: np.ndarray, output: np.ndarray, gold: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    precision, recall = percent(correct, output), percent(correct, gold)
    total = precision + recall
    # In this order: 2 correct / (found + gold) may round to another last digit than the script's.
    f1 = np.divide(2 * precision * recall, total, out=np.zeros(np.shape(total)), where=total > 0)
    return precision, recall, f1


def _line(scores: Scores) -> str:
    return (
        f"precision: {scores['precision']:6.2f}%; recall: {scores['recall']:6.2f}%; "
        f"FB1: {scores['f1']:6.2f}"
    )


class Confusion(NamedTuple):
    """Counts of each pair of reference name and output name.

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

    def as_dict(self, mistakes: int = 10, labels: int = 40) -> dict[str, Any]:
        """``confusion``, the commonest mistakes, and ``confusion_matrix``, all counts.

        The matrix is of the names that occur, and None where they are more than ``labels``.

        Examples
        --------
        >>> facts = Confusion(("a", "b"), np.array([[3, 1], [0, 2]])).as_dict()
        >>> facts["confusion"], facts["confusion_matrix"]["labels"]
        ([{'gold': 'a', 'predicted': 'b', 'count': 1}], ['a', 'b'])
        """
        pairs = [{"gold": a, "predicted": b, "count": n} for a, b, n in self.top(mistakes)]
        used = np.flatnonzero(self.counts.sum(axis=0) + self.counts.sum(axis=1))
        matrix = None
        if len(used) <= labels:
            counts = self.counts[np.ix_(used, used)].tolist()
            matrix = {"labels": [self.names[i] for i in used], "counts": counts}
        return {"confusion": pairs, "confusion_matrix": matrix}


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
    >>> result = label_confusion(["N", "V", "N"], ["N", "N", "N"])
    >>> result.counts.tolist(), result.top(1)
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
    >>> result = span_errors(["B-X", "I-X", "O", "B-Y"], ["B-X", "O", "B-X", "B-X"])
    >>> result.type, result.bounds, result.spurious, result.types.top()
    (1, 1, 1, [('Y', 'X', 1)])
    """
    data = coded((gold, predicted), starts, labels)
    chunks = chunked(data, reading)
    first, after, kind = spans(chunks.taggings[0])
    other_first, other_after, other_kind = spans(chunks.taggings[1])
    at = np.minimum(np.searchsorted(other_first, first), max(len(other_first) - 1, 0))
    if len(other_first):
        agree = (other_first[at] == first) & (other_after[at] == after)
    else:
        agree = np.zeros(len(first), bool)
    types = _confusion(chunks.kinds, kind[agree], other_kind[at[agree]])
    correct = int(np.trace(types.counts))
    is_matched = np.zeros(len(first), bool)
    for k in range(len(chunks.kinds)):
        of_kind, others_of_kind = kind == k, other_kind == k
        is_matched[of_kind] = _touched(
            first[of_kind], after[of_kind], other_first[others_of_kind], other_after[others_of_kind]
        )
    touched = _touched(first, after, other_first, other_after)
    spurious = ~_touched(other_first, other_after, first, after)
    return SpanErrors(
        _used(types),
        correct,
        int(agree.sum()) - correct,
        int((is_matched & ~agree).sum()),
        int((touched & ~is_matched & ~agree).sum()),
        int((~touched).sum()),
        int(spurious.sum()),
        f"metric:span-errors|chunks:{reading}|v:{__version__}",
    )


def unknown_words(words: Any, vocabulary: Collection[str]) -> NDArray[np.bool_]:
    """Returns which words are not in ``vocabulary``; looks each distinct word up once.

    Parameters
    ----------
    words : list of str or Column
        One for each token.
    vocabulary : collection of str
        Words of the training data.

    Examples
    --------
    >>> unknown_words(["the", "cat"], {"the"}).tolist()
    [False, True]
    """
    data = coded((words,))
    vocabulary = vocabulary if isinstance(vocabulary, set | frozenset | dict) else set(vocabulary)
    return np.array([word not in vocabulary for word in data.names], bool)[data.codes[0]]


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
    >>> result = unknown_word_accuracy(["N", "V"], ["N", "N"], [False, True])
    >>> result["accuracy_known"], result["accuracy_unknown"], result["unknown"]
    (100.0, 0.0, 1)
    """
    gold_codes, predicted_codes = coded((gold, predicted), None, labels).codes
    mask = np.asarray(unknown)
    if mask.dtype != bool or mask.shape != gold_codes.shape:
        raise HopefearError(
            f"unknown is an array {mask.dtype}{list(mask.shape)}; {len(gold_codes)} tokens need "
            "one true or false each"
        )
    metric = Accuracy("token")
    rare = metric.scores(metric.total(gold_codes[mask], predicted_codes[mask]))
    common = metric.scores(metric.total(gold_codes[~mask], predicted_codes[~mask]))
    return {
        "accuracy_unknown": rare["accuracy"],
        "accuracy_known": common["accuracy"],
        "unknown": rare["count"],
        "known": common["count"],
        "signature": metric.signature,
    }


def _confusion(names: Sequence[str], gold: np.ndarray, predicted: np.ndarray) -> Confusion:
    n = len(names)
    return Confusion(tuple(names), np.bincount(gold * n + predicted, minlength=n * n).reshape(n, n))


def _used(confusion: Confusion) -> Confusion:
    """Without names that do not occur."""
    used = np.flatnonzero(confusion.counts.any(axis=0) | confusion.counts.any(axis=1))
    names = tuple(confusion.names[i] for i in used)
    return Confusion(names, confusion.counts[np.ix_(used, used)])


def _touched(
    first: np.ndarray, after: np.ndarray, other_first: np.ndarray, other_after: np.ndarray
) -> NDArray[np.bool_]:
    """Returns which spans overlap one of the other side; spans of one side never overlap."""
    if len(other_first) == 0:
        return np.zeros(len(first), bool)
    at = np.searchsorted(other_after, first, "right")
    inside = at < len(other_first)
    return inside & (other_first[np.minimum(at, len(other_first) - 1)] < after)
