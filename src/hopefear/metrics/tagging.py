"""Scores of taggings: tokens, chunks as ``conlleval`` counts them, sentences.

Scores are percentages, 0 to 100.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear import __version__
from hopefear.metrics.chunks import Reading, agreements, chunked
from hopefear.metrics.classification import Scores, _percent, _plain
from hopefear.metrics.label_codes import coded

CORRECT, FOUND, GOLD, RIGHT, TOKENS, WHOLE, SENTENCES = range(7)
# Which counts a score is made of.
READ_BY: dict[str, tuple[int, ...]] = {
    "accuracy": (RIGHT, TOKENS),
    "precision": (CORRECT, FOUND),
    "recall": (CORRECT, GOLD),
    "f1": (CORRECT, FOUND, GOLD),
    "sentence_accuracy": (WHOLE, SENTENCES),
}


class Tagging(NamedTuple):
    """Token accuracy, chunk precision, recall and F1, sentence accuracy.

    ``precision = correct / found, recall = correct / gold, f1 = 2 p r / (p + r)``

    Parameters
    ----------
    reading : {"conlleval", "iobes"}
        As in `Reading`: the official script, or IOBES, BILOU and BMES as they are meant.
    raw : bool
        Labels are bare types, each token a chunk of its own (the script's ``-r``).
    outside : str
        With ``raw``, the label of tokens outside chunks besides ``O`` (its ``-o``).

    Notes
    -----
    Accuracy compares tag and type, as the script does: ``B-`` equals ``B``. Sentences without
    tokens are not counted.

    Examples
    --------
    >>> metric = Tagging()
    >>> gold, found = ["B-NP", "I-NP", "O", "B-VP"], ["B-NP", "I-NP", "O", "B-NP"]
    >>> scores = metric.value(metric.stats(gold, found))
    >>> scores["accuracy"], scores["f1"], scores["sentence_accuracy"]
    (75.0, 50.0, 0.0)
    """

    reading: str = "conlleval"
    raw: bool = False
    outside: str = "O"

    def rows(
        self,
        reference: Any,
        output: Any,
        starts: ArrayLike | None = None,
        labels: Sequence[str] | None = None,
    ) -> NDArray[np.int64]:
        """Counts of each sentence: chunks correct, found, gold; tokens right, all; sentences."""
        return _counted(self, reference, output, starts, labels)[0]

    def stats(
        self,
        reference: Any,
        output: Any,
        starts: ArrayLike | None = None,
        labels: Sequence[str] | None = None,
    ) -> NDArray[np.int64]:
        return self.rows(reference, output, starts, labels).sum(axis=0)

    def value(self, stats: NDArray[np.int64]) -> Scores:
        stats = np.moveaxis(np.asarray(stats), -1, 0)
        precision, recall, f1 = _prf(stats[CORRECT], stats[FOUND], stats[GOLD])
        return _plain(
            {
                "accuracy": _percent(stats[RIGHT], stats[TOKENS]),
                "precision": precision,
                "recall": recall,
                "f1": f1,
                "sentence_accuracy": _percent(stats[WHOLE], stats[SENTENCES]),
                "tokens": stats[TOKENS],
            }
        )

    @property
    def signature(self) -> str:
        raw = f"|raw:outside={self.outside}" if self.raw else ""
        return f"metric:tagging|chunks:{self.reading}{raw}|v:{__version__}"


@dataclass(frozen=True)
class ChunkScores:
    """What the official script prints, as numbers and as its text.

    Parameters
    ----------
    stats : int array
        Summed counts, as `Tagging.stats` gives.
    types : tuple of str
        Types of chunks in the reference or the output, sorted.
    counts : int array [types, 3]
        Chunks correct, found and gold of each type.
    metric : Tagging
        How the counts were made.
    """

    stats: NDArray[np.int64]
    types: tuple[str, ...]
    counts: NDArray[np.int64]
    metric: Tagging

    def as_dict(self) -> Scores:
        """Scores by their usual names, with their signature."""
        stats = self.stats.tolist()
        counts = {"correct": stats[CORRECT], "found": stats[FOUND], "gold": stats[GOLD]}
        return self.metric.value(self.stats) | counts | {"signature": self.metric.signature}

    def per_type(self) -> dict[str, Scores]:
        """Precision, recall, F1 and counts of each type."""
        correct, found, gold = self.counts.T
        table = zip(self.types, *_prf(correct, found, gold), correct, found, gold, strict=True)
        names = ("precision", "recall", "f1", "correct", "found", "gold")
        return {k: {n: v.item() for n, v in zip(names, row, strict=True)} for k, *row in table}

    def report(self) -> str:
        """The text of the official script, character for character."""
        all_ = self.as_dict()
        lines = [
            f"processed {all_['tokens']} tokens with {all_['gold']} phrases; "
            f"found: {all_['found']} phrases; correct: {all_['correct']}."
        ]
        if all_["tokens"]:
            lines.append(f"accuracy: {all_['accuracy']:6.2f}%; {_line(all_)}")
        for kind, scores in self.per_type().items():
            # The script pads bytes, not letters.
            pad = " " * (17 - len(kind.encode("utf-8", "surrogateescape")))
            line = f"{pad}{kind}: {_line(scores)}  {scores['found']}"
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
    met = sorted((kinds[i], i) for i in np.flatnonzero(counts[:, 1:].any(axis=1)))
    counts = counts[[i for _, i in met]].reshape(-1, 3)
    return ChunkScores(rows.sum(axis=0), tuple(kind for kind, _ in met), counts, metric)


def tagging_counts(
    gold: Any,
    predicted: Any,
    starts: ArrayLike | None = None,
    *,
    labels: Sequence[str] | None = None,
    reading: str = "conlleval",
) -> NDArray[np.int64]:
    """Counts of each sentence ``[sentences, 7]``: chunks correct, found and gold, tokens right and
    all, sentences right and all.

    Examples
    --------
    >>> tagging_counts([["B-X", "O"], ["O"]], [["B-X", "O"], ["B-X"]]).tolist()
    [[1, 1, 1, 2, 2, 1, 1], [0, 1, 0, 0, 1, 0, 1]]
    """
    return Tagging(reading).rows(gold, predicted, starts, labels)


def _counted(metric, reference, output, starts, labels):
    """Counts of each sentence, names of types, counts ``[types, 3]`` of each type."""
    data = coded((reference, output), starts, labels)
    found = chunked(data, Reading(*metric))
    one, two = found.taggings
    n, k = len(data.starts) - 1, len(found.kinds)
    ends = agreements(one, two) - 1
    rows = np.zeros((n, 7), np.int64)
    kinds = np.zeros((k, 3), np.int64)
    for column, where, kind in (
        (CORRECT, ends, one.kinds),
        (FOUND, np.flatnonzero(two.starts), two.kinds),
        (GOLD, np.flatnonzero(one.starts), one.kinds),
    ):
        rows[:, column] = np.bincount(found.sentence[where], minlength=n)
        kinds[:, column] = np.bincount(kind[where], minlength=k)
    right = found.same[data.codes[0]] == found.same[data.codes[1]]
    rows[:, RIGHT] = np.diff(np.concatenate([[0], np.cumsum(right)])[data.starts])
    rows[:, TOKENS] = np.diff(data.starts)
    rows[:, SENTENCES] = rows[:, TOKENS] > 0
    rows[:, WHOLE] = (rows[:, RIGHT] == rows[:, TOKENS]) & (rows[:, TOKENS] > 0)
    return rows, found.kinds, kinds


def _prf(correct, found, gold):
    precision, recall = _percent(correct, found), _percent(correct, gold)
    both = precision + recall
    # In this order: 2 correct / (found + gold) may round to another last digit than the script's.
    f1 = np.divide(2 * precision * recall, both, out=np.zeros(np.shape(both)), where=both > 0)
    return precision, recall, f1


def _line(scores: Scores) -> str:
    return (
        f"precision: {scores['precision']:6.2f}%; recall: {scores['recall']:6.2f}%; "
        f"FB1: {scores['f1']:6.2f}"
    )
