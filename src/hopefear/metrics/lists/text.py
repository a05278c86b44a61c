"""Counting over many texts: what is asked of references is asked once."""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from hopefear.errors import HopefearError
from hopefear.metrics.lists.base import Counts, ListMetric, checked_starts


@dataclass(frozen=True)
class TextMetric(ListMetric):
    """A metric that counts candidates itself, from their texts and the references."""

    whole: ClassVar[bool] = True  # whether counts are whole numbers

    @abstractmethod
    def _prepared(self, references: Sequence[str]) -> Any:
        """What is asked of references, once for all candidates that share them."""

    @abstractmethod
    def _row(self, text: str, prepared: Any) -> Iterable[float]:
        """Counts of one candidate."""

    def counts(self, texts: Sequence[str], references: Sequence[Sequence[str]]) -> Counts:
        """Counts ``[m, S]`` of candidates, each with its own references.

        Neighbours with equal references share the work on them.
        """
        _same_number(len(texts), "texts", len(references), "sets of references")
        return self._gathered(zip(texts, references, strict=True))

    def counts_by_list(
        self, texts: Sequence[str], starts: ArrayLike, references: Sequence[Sequence[str]]
    ) -> Counts:
        """Counts ``[m, S]`` of candidates in lists; candidates of a list share its references.

        Parameters
        ----------
        texts : sequence of str
            All candidates.
        starts : int array
            List i has the candidates ``starts[i] .. starts[i + 1] - 1``.
        references : sequence of sequences of str
            The references of each list.
        """
        starts = checked_starts(starts, len(texts))
        _same_number(len(starts) - 1, "lists", len(references), "sets of references")
        return self._gathered(_by_list(texts, starts.tolist(), references))

    def _gathered(self, pairs: Iterable[tuple[str, Sequence[str]]]) -> Counts:
        found: Any = array("q" if self.whole else "d")
        last: Sequence[str] | None = None
        prepared: Any = None
        for i, (text, references) in enumerate(pairs):
            if last is None or (references is not last and references != last):
                prepared, last = self._prepared(_checked(references, i)), references
            found.extend(self._row(text, prepared))
        dtype = np.int64 if self.whole else np.float64
        return np.frombuffer(found, dtype).reshape(-1, len(self.columns))


def _by_list(texts, starts, references) -> Iterator[tuple[str, Sequence[str]]]:
    for i, shared in enumerate(references):
        for c in range(starts[i], starts[i + 1]):
            yield texts[c], shared


def _checked(references: Sequence[str], i: int) -> Sequence[str]:
    if isinstance(references, str):
        raise HopefearError(
            f"references of candidate {i} are one string, {references[:40]!r}; give a list of "
            "strings, even if it has one"
        )
    if len(references) == 0:
        raise HopefearError(f"candidate {i} has no reference; give at least one, or a cost instead")
    return references


def _same_number(a: int, first: str, b: int, second: str) -> None:
    if a != b:
        raise HopefearError(f"{a} {first} and {b} {second} do not pair up; give as many of both")
