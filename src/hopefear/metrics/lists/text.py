"""Counting over many texts: what is asked of references is asked once."""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from hopefear.errors import HopefearError
from hopefear.metrics.lists.base import Counts, ListMetric, checked_starts
from hopefear.metrics.lists.lines import Lines


@dataclass(frozen=True)
class TextMetric(ListMetric):
    """A metric that counts candidates itself, from their texts and the references."""

    whole: ClassVar[bool] = True  # whether counts are whole numbers

    @abstractmethod
    def line_counts(
        self, ours: Lines, which: np.ndarray, gold: Lines, starts: np.ndarray
    ) -> Counts:
        """Counts of many lines at a time, in as few bytes as they need.

        Parameters
        ----------
        ours : Lines
            The candidates.
        which : int64 array
            The set of references of each. Neighbours of the same set share the work on it.
        gold : Lines
            The references.
        starts : int64 array
            Set i has the references ``starts[i] .. starts[i + 1] - 1``.
        """

    def counts(self, texts: Sequence[str], references: Sequence[Sequence[str]]) -> Counts:
        """Counts ``[m, S]`` of candidates, each with its own references.

        Neighbours with equal references share the work on them.
        """
        _same_number(len(texts), "texts", len(references), "sets of references")
        which: list[int] = []
        sets: list[Sequence[str]] = []
        for i, shared in enumerate(references):
            if not sets or (shared is not sets[-1] and shared != sets[-1]):
                sets.append(_checked(shared, i))
            which.append(len(sets) - 1)
        return self._counted(texts, which, sets)

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
        bounds = checked_starts(starts, len(texts))
        _same_number(len(bounds) - 1, "lists", len(references), "sets of references")
        sets = [_checked(shared, int(bounds[i])) for i, shared in enumerate(references)]
        return self._counted(texts, np.repeat(np.arange(len(sets)), np.diff(bounds)), sets)

    def _counted(
        self, texts: Sequence[str], which: ArrayLike, sets: Sequence[Sequence[str]]
    ) -> Counts:
        gold = Lines.packed(line for lines in sets for line in lines)
        bounds = np.cumsum([0, *map(len, sets)], dtype=np.int64)
        found = self.line_counts(Lines.packed(texts), np.asarray(which, np.int64), gold, bounds)
        return found.astype(np.int64 if self.whole else np.float64, copy=False)


@dataclass(frozen=True)
class OneByOne(TextMetric):
    """A metric that looks at one candidate after the other, in Python."""

    @abstractmethod
    def _prepared(self, references: Sequence[str]) -> Any:
        """What is asked of references, once for all candidates that share them."""

    @abstractmethod
    def _row(self, text: str, prepared: Any) -> Iterable[int]:
        """Counts of one candidate."""

    def line_counts(
        self, ours: Lines, which: np.ndarray, gold: Lines, starts: np.ndarray
    ) -> Counts:
        lines, found = gold.strings(), array("q")
        last, prepared = -1, None
        for text, i in zip(ours.strings(), which.tolist(), strict=True):
            if i != last:
                prepared, last = self._prepared(lines[starts[i] : starts[i + 1]]), i
            found.extend(self._row(text, prepared))
        return np.array(found, np.int64).reshape(-1, len(self.columns))


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
