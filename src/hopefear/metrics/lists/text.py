"""Text as bytes, cut into characters and words by kernels, and counted: references only once."""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from hopefear.core.component import kernel
from hopefear.errors import HopefearError
from hopefear.metrics.lists.base import Counts, ListMetric, checked_sets, checked_starts

_LOWER = np.arange(256, dtype=np.uint8)
_LOWER[65:91] += 32


class Lines(NamedTuple):
    """Line i is the UTF-8 text ``text[begins[i]:ends[i]]``."""

    text: np.ndarray  # uint8
    begins: np.ndarray  # int64
    ends: np.ndarray  # int64

    @classmethod
    def of(cls, text: np.ndarray, begins: ArrayLike, ends: ArrayLike) -> Lines:
        """Lines with a copy of no more text than they have."""
        first, last = np.asarray(begins, np.int64), np.asarray(ends, np.int64)
        low = int(first.min(initial=len(text)))
        return cls(text[low : max(low, int(last.max(initial=0)))].copy(), first - low, last - low)

    @classmethod
    def packed(cls, lines: Iterable[str]) -> Lines:
        """The same of strings.

        Examples
        --------
        >>> Lines.packed(["é", "", "ab"])[1:]
        (array([0, 2, 2]), array([2, 2, 4]))
        """
        pieces = [line.encode("utf-8", "surrogatepass") for line in lines]
        stops = np.cumsum([0, *map(len, pieces)], dtype=np.int64)
        return cls(np.frombuffer(b"".join(pieces), np.uint8).copy(), stops[:-1], stops[1:])

    def strings(self) -> list[str]:
        text = self.text.tobytes()
        spans = zip(self.begins.tolist(), self.ends.tolist(), strict=True)
        return [text[begin:end].decode("utf-8", "surrogatepass") for begin, end in spans]

    def lowered(self) -> Lines:
        """Without capitals."""
        if self.text.size and self.text.max() > 127:
            return self.changed(str.lower)
        return self._replace(text=_LOWER[self.text])

    def changed(self, change: Callable[[str], str]) -> Lines:
        """What a function makes of each line; called in Python."""
        return Lines.packed([change(line) for line in self.strings()])

    def units(self) -> Units:
        """Characters and words."""
        n, sizes = len(self.begins), self.ends - self.begins
        points = np.empty(int(sizes.sum()), np.uint32)
        words = np.empty(int((sizes // 2).sum()) + n + 1, np.int64)
        ptr, word_ptr = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
        _split(self.text, self.begins, self.ends, points, ptr, words, word_ptr)
        return Units(points[: ptr[-1]], ptr, words[: word_ptr[-1] + 1], word_ptr)


class Units(NamedTuple):
    """Characters without blanks, and where among them words begin.

    Line i has the characters ``points[ptr[i]:ptr[i + 1]]`` and the words from ``word_ptr[i]`` to
    ``word_ptr[i + 1] - 1``; word k is ``points[words[k]:words[k + 1]]``.
    """

    points: np.ndarray  # uint32, code points
    ptr: np.ndarray  # int64[lines + 1]
    words: np.ndarray  # int64[words + 1]
    word_ptr: np.ndarray  # int64[lines + 1]

    def word_numbers(self) -> np.ndarray:
        """A 64-bit hash of each word."""
        numbers = np.empty(len(self.words) - 1, np.uint64)
        _number(self.points, self.words, numbers)
        return numbers


class LineMetric(Protocol):
    """What is needed of a metric here."""

    @property
    def name(self) -> str: ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    def line_counts(
        self, ours: Lines, which: np.ndarray, gold: Lines, starts: np.ndarray
    ) -> Counts: ...


@dataclass(frozen=True)
class LineCounts:
    """A counter for text as files have it, many candidates at a time.

    Parameters
    ----------
    metric : TextMetric
        What counts.
    """

    metric: LineMetric

    @property
    def name(self) -> str:
        return self.metric.name

    @property
    def columns(self) -> tuple[str, ...]:
        return self.metric.columns

    def text_counts(
        self,
        text: np.ndarray,
        begins: ArrayLike,
        ends: ArrayLike,
        which: ArrayLike,
        reference_text: np.ndarray,
        reference_begins: ArrayLike,
        reference_ends: ArrayLike,
        reference_starts: ArrayLike,
    ) -> Counts:
        """Counts, one row for each candidate.

        Parameters
        ----------
        text, begins, ends : uint8, int64, int64 arrays
            Candidate c is the UTF-8 text ``text[begins[c]:ends[c]]``.
        which : int64 array
            The set of references of each candidate. Neighbours of the same set share the work on
            it.
        reference_text, reference_begins, reference_ends : uint8, int64, int64 arrays
            The same for references.
        reference_starts : int64 array
            Set i has the references ``reference_starts[i] .. reference_starts[i + 1] - 1``.
        """
        sets, starts = checked_sets(which, reference_starts)
        references = Lines.of(reference_text, reference_begins, reference_ends)
        return self.metric.line_counts(Lines.of(text, begins, ends), sets, references, starts)


@kernel
def _split(text, begins, ends, points, ptr, words, word_ptr):
    """Code points that are no blanks, and where words begin."""
    used, n_words = 0, 0
    for line in range(len(begins)):
        i, end = begins[line], ends[line]
        inside = False
        while i < end:
            first = np.int64(text[i])
            size = 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
            point = first if size == 1 else first & (0x7F >> size)
            for k in range(i + 1, min(i + size, end)):
                point = (point << 6) | (np.int64(text[k]) & 0x3F)
            i += size
            if _is_blank(point):
                inside = False
                continue
            if not inside:
                words[n_words] = used
                n_words += 1
                inside = True
            points[used] = point
            used += 1
        ptr[line + 1] = used
        word_ptr[line + 1] = n_words
    words[n_words] = used


@kernel
def _is_blank(point):
    """Whether ``str.split`` splits here."""
    if point < 0x85:
        return point == 32 or 9 <= point <= 13 or 28 <= point <= 31
    if point < 0x1680:
        return point == 0x85 or point == 0xA0
    return (
        point == 0x1680
        or 0x2000 <= point <= 0x200A
        or point == 0x2028
        or point == 0x2029
        or point == 0x202F
        or point == 0x205F
        or point == 0x3000
    )


@kernel
def _number(points, words, numbers):
    for k in range(len(numbers)):
        h = np.uint64(words[k + 1] - words[k])
        for p in range(words[k], words[k + 1]):
            h = (h ^ np.uint64(points[p])) * np.uint64(0x9E3779B97F4A7C15)
            h ^= h >> np.uint64(32)
        h *= np.uint64(0xD6E8FEB86659FD93)
        numbers[k] = h ^ (h >> np.uint64(29))


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
        counts = self.line_counts(Lines.packed(texts), np.asarray(which, np.int64), gold, bounds)
        return counts.astype(np.int64 if self.whole else np.float64, copy=False)


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
        lines, numbers = gold.strings(), array("q")
        last, prepared = -1, None
        for text, i in zip(ours.strings(), which.tolist(), strict=True):
            if i != last:
                prepared, last = self._prepared(lines[starts[i] : starts[i + 1]]), i
            numbers.extend(self._row(text, prepared))
        return np.array(numbers, np.int64).reshape(-1, len(self.columns))


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
