"""References of lists of translations, for any metric that compares words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from hopefear.data.arrays import gathered
from hopefear.data.moses_input import RawBlock
from hopefear.data.moses_words import Sentences
from hopefear.errors import InputError


class WordMetric(Protocol):
    """What is needed of a metric here: statistics of candidates from the hashes of their words."""

    @property
    def name(self) -> str: ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    def word_counts(
        self,
        words: np.ndarray,
        ptr: np.ndarray,
        which: np.ndarray,
        reference_words: np.ndarray,
        reference_ptr: np.ndarray,
        reference_starts: np.ndarray,
    ) -> np.ndarray: ...


class References:
    """References of all lists, and the metric that compares candidates with them."""

    def __init__(self, files: Sequence[Sentences], metric: WordMetric) -> None:
        self.metric, self.name, self.size = metric, files[0].name, files[0].size
        # Those of one line lie side by side: first those of the first file, then of the others.
        ptr = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(f.ptr) for f in files]))])
        order = np.arange(self.size * len(files)).reshape(len(files), -1).T.ravel()
        self.ptr, words = gathered(ptr, order)
        self.words = np.concatenate([f.words for f in files])[words]
        self.starts = np.arange(self.size + 1) * len(files)

    def counts(self, raw: RawBlock) -> np.ndarray:
        """Statistics of the candidates of a block; InputError where one has no reference."""
        scratch, rows = raw.scratch, raw.rows
        ids = scratch.ids[:rows]
        beyond = np.flatnonzero(ids >= self.size)
        if len(beyond):
            raise InputError(
                raw.path,
                raw.line(int(beyond[0])),
                f"a list with a reference: {self.name} has {self.size} lines (ids from 0)",
                f"list {ids[beyond[0]]}",
            )
        words = scratch.words[: scratch.word_ptr[rows]]
        ptr = scratch.word_ptr[: rows + 1]
        return self.metric.word_counts(words, ptr, ids, self.words, self.ptr, self.starts)
