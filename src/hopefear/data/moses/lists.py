"""Lists of translations ready for tuning: dense features, statistics of a metric, and more."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from hopefear.core.arrays import Strings, frozen, gathered


class NamedEntries(NamedTuple):
    """Entry e of candidate c, ``indptr[c] <= e < indptr[c + 1]``, is ``names.get(ids[e])``."""

    names: Strings
    indptr: np.ndarray  # int64[candidates + 1]
    ids: np.ndarray  # int32
    values: np.ndarray | None = None  # float32; None where every entry counts 1

    def take(self, candidates: np.ndarray) -> NamedEntries:
        """The entries of these candidates, in this order."""
        indptr, entries = gathered(self.indptr, candidates)
        return NamedEntries(
            self.names,
            frozen(indptr),
            frozen(self.ids[entries]),
            None if self.values is None else frozen(self.values[entries]),
        )

    def slice(self, begin: int, end: int) -> NamedEntries:
        """The entries of the candidates ``begin .. end - 1``."""
        a, b = int(self.indptr[begin]), int(self.indptr[end])
        return NamedEntries(
            self.names,
            frozen(self.indptr[begin : end + 1] - a),
            self.ids[a:b],
            None if self.values is None else self.values[a:b],
        )


def _taken(strings: Strings | None, which: np.ndarray) -> Strings | None:
    if strings is None:
        return None
    offsets, places = gathered(strings.offsets, which)
    return Strings(frozen(strings.text[places]), frozen(offsets))


def _sliced(strings: Strings | None, begin: int, end: int) -> Strings | None:
    if strings is None:
        return None
    offsets = strings.offsets[begin : end + 1]
    return Strings(strings.text[offsets[0] : offsets[-1]], frozen(offsets - offsets[0]))


@dataclass(frozen=True)
class TuningLists:
    """Whole lists of translations, in the order of their ids.

    Parameters
    ----------
    ids : int64 array
        Number of each list, which is that of its line among the references, from 0.
    starts : int64 array
        List i has the candidates ``starts[i] .. starts[i + 1] - 1``.
    layout : tuple of (str, int)
        Names of the dense features and how many numbers each has.
    dense : float32 array [candidates, features]
        The dense features.
    scores : float32 array
        What the decoder thought of each candidate.
    counts : uint8, int32 or float64 array [candidates, statistics], optional
        Statistics of each candidate that ``metric`` adds up; fractions only where TER has several
        references.
    metric : str
        The metric behind ``counts``.
    columns : tuple of str
        What the columns of ``counts`` hold.
    n_references : int
        References of a list; -1 where lists have different numbers.
    sparse : NamedEntries, optional
        Features that come and go, with their values.
    phrases : NamedEntries, optional
        Phrase pairs of each derivation, named ``source words ||| target words``, each
        once.
    texts : Strings, optional
        The candidates as words.
    tails : Strings, optional
        What stands behind the score of each candidate, as the file has it: the field of phrase
        pairs, and others.
    source : str
        Where the lists came from, for messages.
    lines, files : int64 arrays
        Line on which each list begins, and the number of the first file that has it, from 0.
    dropped : int
        Candidates left out because the list has the same words with the same features already.
    """

    ids: np.ndarray
    starts: np.ndarray
    layout: tuple[tuple[str, int], ...]
    dense: np.ndarray
    scores: np.ndarray
    counts: np.ndarray | None = None
    metric: str = ""
    columns: tuple[str, ...] = ()
    n_references: int = 1
    sparse: NamedEntries | None = None
    phrases: NamedEntries | None = None
    texts: Strings | None = None
    tails: Strings | None = None
    source: str = "memory"
    lines: np.ndarray | None = field(default=None, repr=False)
    files: np.ndarray | None = field(default=None, repr=False)
    dropped: int = 0

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def n_candidates(self) -> int:
        return int(self.starts[-1])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the dense features: ``LM0``, or ``TM0.0``, ``TM0.1`` … where it has several."""
        return dense_names(self.layout)

    def take(self, which: np.ndarray) -> TuningLists:
        """The lists of these numbers, in this order."""
        starts, candidates = gathered(self.starts, np.asarray(which, np.int64))
        return replace(
            self,
            ids=frozen(self.ids[which]),
            starts=frozen(starts),
            dense=frozen(self.dense[candidates]),
            scores=frozen(self.scores[candidates]),
            counts=None if self.counts is None else frozen(self.counts[candidates]),
            sparse=None if self.sparse is None else self.sparse.take(candidates),
            phrases=None if self.phrases is None else self.phrases.take(candidates),
            texts=_taken(self.texts, candidates),
            tails=_taken(self.tails, candidates),
            lines=None if self.lines is None else frozen(self.lines[which]),
            files=None if self.files is None else frozen(self.files[which]),
        )

    def slice(self, begin: int, end: int) -> TuningLists:
        """The lists ``begin .. end - 1``; arrays are shared where that is possible."""
        a, b = int(self.starts[begin]), int(self.starts[end])
        return replace(
            self,
            ids=self.ids[begin:end],
            starts=frozen(self.starts[begin : end + 1] - a),
            dense=self.dense[a:b],
            scores=self.scores[a:b],
            counts=None if self.counts is None else self.counts[a:b],
            sparse=None if self.sparse is None else self.sparse.slice(a, b),
            phrases=None if self.phrases is None else self.phrases.slice(a, b),
            texts=_sliced(self.texts, a, b),
            tails=_sliced(self.tails, a, b),
            lines=None if self.lines is None else self.lines[begin:end],
            files=None if self.files is None else self.files[begin:end],
        )


def dense_names(layout: tuple[tuple[str, int], ...]) -> tuple[str, ...]:
    """``LM0``, or ``TM0.0``, ``TM0.1`` … where a name has several numbers."""
    return tuple(
        name if width == 1 else f"{name}.{k}" for name, width in layout for k in range(width)
    )
