"""References of lists of translations, for any metric that compares words or text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from hopefear.core.arrays import gathered
from hopefear.data.moses.input import RawBlock
from hopefear.data.moses.words import Sentences, line_spans
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


@runtime_checkable
class TextCounts(Protocol):
    """The same from their text: line i is the UTF-8 text ``text[begins[i]:ends[i]]``."""

    @property
    def name(self) -> str: ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    def text_counts(
        self,
        text: np.ndarray,
        begins: np.ndarray,
        ends: np.ndarray,
        which: np.ndarray,
        reference_text: np.ndarray,
        reference_begins: np.ndarray,
        reference_ends: np.ndarray,
        reference_starts: np.ndarray,
    ) -> np.ndarray: ...


class References:
    """References of all lists, and the metric that compares candidates with them."""

    def __init__(self, files: Sequence[Sentences], metric: WordMetric | TextCounts) -> None:
        self.metric, self.name, self.size = metric, files[0].name, files[0].size
        self.n_references = len(files)
        # Those of one line lie side by side: first those of the first file, then of the others.
        order = np.arange(self.size * len(files)).reshape(len(files), -1).T.ravel()
        self.starts = np.arange(self.size + 1) * len(files)
        if isinstance(metric, TextCounts):
            self.text = np.concatenate([f.text for f in files])
            places = np.cumsum([0, *(len(f.text) for f in files)])
            spans = [line_spans(f.ptr, f.begins, f.ends) for f in files]
            self.begins, self.ends = (
                np.concatenate([s[k] + p for s, p in zip(spans, places, strict=False)])[order]
                for k in range(2)
            )
            return
        ptr = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(f.ptr) for f in files]))])
        self.ptr, words = gathered(ptr, order)
        self.words = np.concatenate([f.words for f in files])[words]

    def counts(self, raw: RawBlock) -> np.ndarray:
        """Statistics of the candidates of a block, which `check` has seen."""
        scratch, rows = raw.scratch, raw.rows
        ids, ptr = scratch.ids[:rows], scratch.word_ptr[: rows + 1]
        if isinstance(self.metric, TextCounts):
            low, high = int(ids.min()), int(ids.max()) + 1
            first, stop = self.starts[low], self.starts[high]
            return self.metric.text_counts(
                *(raw.buffer, *line_spans(ptr, scratch.begins, scratch.ends), ids - low),
                *(self.text, self.begins[first:stop], self.ends[first:stop]),
                self.starts[low : high + 1] - first,
            )
        words = scratch.words[: ptr[-1]]
        return self.metric.word_counts(words, ptr, ids, self.words, self.ptr, self.starts)

    def check(self, raw: RawBlock) -> None:
        """InputError where a candidate has no reference."""
        ids = raw.scratch.ids[: raw.rows]
        beyond = np.flatnonzero(ids >= self.size)
        if len(beyond):
            raise InputError(
                raw.path,
                raw.line(int(beyond[0])),
                f"a list with a reference: {self.name} has {self.size} lines (ids from 0)",
                f"list {ids[beyond[0]]}",
            )
