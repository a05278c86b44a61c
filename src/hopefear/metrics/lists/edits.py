"""Error rates: words (WER), characters, and translation edits (TER; Snover et al., 2006).

TER searches for moves as sacreBLEU does, which took it from Tercom. A move takes up to ten words
that the reference has elsewhere to one of the places they align with. Of all moves the one that
saves most edits is made, for one edit, until none saves any.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear.core.component import helper, kernel
from hopefear.errors import HopefearError
from hopefear.metrics.interface import Scores, plain, ratio
from hopefear.metrics.lists.base import Counts, columns_of, signed
from hopefear.metrics.lists.text import Lines, OneByOne, TextMetric

LONGEST_MOVE, FARTHEST_MOVE, BEAM, MOST_MOVES = 10, 50, 25, 1000
_LARGEST = 1 << 27  # cells of a table of edits
_FAR = np.int32(1 << 29)
_SAME, _OTHER, _DELETED, _INSERTED, _UNKNOWN = range(5)


class _Room(NamedTuple):
    """Work space for one candidate of at most h words and one reference of at most r."""

    words: np.ndarray  # uint64[h]: the candidate, after the moves so far
    moved: np.ndarray  # uint64[h]: the same with one move tried
    edits: np.ndarray  # int32[(h + 1) * (r + 1)]: of the first i words into the first j
    steps: np.ndarray  # uint8[(h + 1) * (r + 1)]: the last of those edits
    rows: np.ndarray  # int32[2, r + 1]
    align: np.ndarray  # int64[r]: word of the candidate that each word aligns with, or the last one
    wrong: np.ndarray  # bool[h]: which words of the candidate are inserted or replaced
    missed: np.ndarray  # bool[r]: the same for the reference


def ter_counts(ours: Lines, gold: Lines, which: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Edits and mean lengths of references: int32, or float64 where a mean is no whole number.

    Parameters
    ----------
    ours, gold, which, starts
        As in :meth:`hopefear.metrics.lists.text.TextMetric.line_counts`.

    Examples
    --------
    >>> sides = Lines.packed(["c a b", "a b"]), Lines.packed(["a b c"])
    >>> ter_counts(*sides, np.array([0, 0]), np.array([0, 1])).tolist()
    [[1, 3], [1, 3]]
    """
    mine, theirs = ours.units(), gold.units()
    edits = np.zeros(len(which), np.int32)
    lengths = np.zeros(len(which), np.int64)
    room = _room(*(int(np.diff(units.word_ptr).max(initial=0)) for units in (mine, theirs)))
    _count(
        *(mine.word_numbers(), mine.word_ptr, theirs.word_numbers(), theirs.word_ptr),
        *(which, starts, room, edits, lengths),
    )
    means = lengths / np.diff(starts)[which]
    counts = np.column_stack([edits, means])
    return counts if (means % 1.0).any() else counts.astype(np.int32)


def _room(ours: int, gold: int) -> _Room:
    cells = (ours + 1) * (gold + 1)
    if cells > _LARGEST:
        raise HopefearError(
            f"ter of a candidate of {ours} words and a reference of {gold}: the product may be at "
            f"most {_LARGEST}; cut them into sentences"
        )
    return _Room(
        np.zeros(ours, np.uint64),
        np.zeros(ours, np.uint64),
        np.zeros(cells, np.int32),
        np.zeros(cells, np.uint8),
        np.zeros((2, gold + 1), np.int32),
        np.zeros(gold, np.int64),
        np.zeros(ours, np.bool_),
        np.zeros(gold, np.bool_),
    )


@kernel
def _count(words, ptr, gold, gold_ptr, which, starts, room, edits, lengths):
    """Edits to the closest reference, and the length of all together."""
    for c in range(len(which)):
        best = -1
        for r in range(starts[which[c]], starts[which[c] + 1]):
            reference = gold[gold_ptr[r] : gold_ptr[r + 1]]
            count = _edits(words[ptr[c] : ptr[c + 1]], reference, room)
            if best < 0 or count < best:
                best = count
            lengths[c] += len(reference)
        edits[c] = best


@kernel
def _edits(ours, gold, room):
    """Fewest edits and moves that the search finds."""
    h, width = len(ours), len(gold) + 1
    if len(gold) == 0:
        return h
    for k in range(h):
        room.words[k] = ours[k]
    _fill(h, gold, room, 0)
    moves, tried = 0, 0
    while room.edits[h * width + width - 1] > 0:
        _align(h, width, room)
        gain, begin, length, target, tried = _best_move(h, gold, room, tried)
        if tried >= MOST_MOVES or gain <= 0:
            break
        _move(room.words, h, begin, length, target, room.moved)
        for k in range(h):
            room.words[k] = room.moved[k]
        _fill(h, gold, room, min(begin, target))
        moves += 1
    return moves + room.edits[h * width + width - 1]


@kernel
def _fill(h, gold, room, done):
    """Edits and their last steps, but for the first ``done`` words, which are as they were."""
    width = len(gold) + 1
    edits, steps = room.edits, room.steps
    if done == 0:
        for j in range(width):
            edits[j] = j
            steps[j] = _INSERTED
    for i in range(done + 1, h + 1):
        low, high = _beam(i, h, width)
        at, above = i * width, (i - 1) * width
        for j in range(width):
            edits[at + j] = _FAR
            steps[at + j] = _UNKNOWN
        for j in range(low, high):
            if j == 0:
                edits[at] = edits[above] + 1
                steps[at] = _DELETED
                continue
            same = room.words[i - 1] == gold[j - 1]
            best, step = edits[above + j - 1], _SAME
            if not same:
                best, step = best + 1, _OTHER
            if edits[above + j] + 1 < best:
                best, step = edits[above + j] + 1, _DELETED
            if edits[at + j - 1] + 1 < best:
                best, step = edits[at + j - 1] + 1, _INSERTED
            if best < _FAR:
                edits[at + j] = best
                steps[at + j] = step


@helper(inline=True)
def _beam(i, h, width):
    """The columns of row i that are looked at: ``low .. high - 1``."""
    ratio = (width - 1) / h
    beam = BEAM
    if ratio / 2 > BEAM:
        beam = np.int64(np.ceil(ratio / 2 + BEAM))
    middle = np.int64(np.floor(i * ratio))
    return max(0, middle - beam), width if i == h else min(width, middle + beam)


@kernel
def _align(h, width, room):
    """Which words of the candidate those of the reference align with, and which are wrong."""
    i, j = h, width - 1
    while i > 0 or j > 0:
        step = room.steps[i * width + j]
        if step == _DELETED:
            i -= 1
            room.wrong[i] = True
        elif step == _INSERTED:
            j -= 1
            room.align[j] = i - 1
            room.missed[j] = True
        else:
            i -= 1
            j -= 1
            room.align[j] = i
            room.wrong[i] = room.missed[j] = step == _OTHER


@kernel
def _best_move(h, gold, room, tried):
    """``(edits saved, first word, words, where to, moves tried so far)`` of the best move."""
    gain, length, begin, target = 0, 0, 0, 0
    before = room.edits[h * (len(gold) + 1) + len(gold)]
    for s in range(h):
        for r in range(max(0, s - FARTHEST_MOVE), min(len(gold), s + FARTHEST_MOVE + 1)):
            wrong, missed = False, False
            for size in range(1, min(LONGEST_MOVE, h - s, len(gold) - r) + 1):
                if room.words[s + size - 1] != gold[r + size - 1]:
                    break
                wrong = wrong or room.wrong[s + size - 1]
                missed = missed or room.missed[r + size - 1]
                if not wrong or not missed or s <= room.align[r] < s + size:
                    continue
                last = -1
                for k in range(r - 1, r + size):
                    to = 0 if k < 0 else room.align[k] + 1
                    if to == last:
                        continue
                    last = to
                    tried += 1
                    _move(room.words, h, s, size, to, room.moved)
                    saved = before - _moved_edits(h, gold, room, min(s, to), before - max(gain, 1))
                    # Of moves that save as much: the longest, then the first, then the nearest to
                    # the beginning.
                    better = saved > gain
                    if saved == gain and gain > 0:
                        better = size > length
                        if size == length:
                            better = s < begin or (s == begin and to < target)
                    if better:
                        gain, length, begin, target = saved, size, s, to
                if tried >= MOST_MOVES:
                    return gain, begin, length, target, tried
    return gain, begin, length, target, tried


@kernel
def _move(words, h, begin, length, target, out):
    """``words`` with some of them taken to ``target``; within themselves, that far ahead."""
    if target < begin:
        first, stop, ahead = target, begin + length, begin - target
    elif target > begin + length:
        first, stop, ahead = begin, target, length
    else:
        first, stop, ahead = begin, min(h, target + length), length
    # Words ``first + ahead .. stop - 1`` change places with those before them.
    size = stop - first - ahead
    for k in range(h):
        if k < first or k >= stop:
            out[k] = words[k]
        else:
            out[k] = words[k + ahead if k < first + size else k - size]


@kernel
def _moved_edits(h, gold, room, done, most):
    """Edits of the moved words; something above ``most`` as soon as they must be more than that."""
    width = len(gold) + 1
    above, at = 0, 1
    rows = room.rows
    for j in range(width):
        rows[above, j] = room.edits[done * width + j]
    for i in range(done + 1, h + 1):
        low, high = _beam(i, h, width)
        for j in range(low):
            rows[at, j] = _FAR
        for j in range(high, width):
            rows[at, j] = _FAR
        word = room.moved[i - 1]
        least = _FAR
        behind = (width - 1) - (h - i)
        for j in range(low, high):
            if j == 0:
                best = rows[above, 0] + 1
            else:
                best = rows[above, j - 1] + (0 if word == gold[j - 1] else 1)
                best = min(best, rows[above, j] + 1, rows[at, j - 1] + 1)
                best = min(best, _FAR)
            rows[at, j] = best
            least = min(least, best + abs(behind - j))
        if least > most:  # what is left differs in length by as much at least
            return most + 1
        above, at = at, above
    return rows[above, width - 1]


@dataclass(frozen=True)
class _Edits(OneByOne):
    """Insertions, deletions and substitutions for each unit of the reference."""

    higher: ClassVar[bool] = False

    lowercase: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return ("edits", "reference_length")

    def costs(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Edits for each unit of the reference; above 1 where ours is much too long."""
        edits, length = columns_of(counts, self)
        return edits / np.maximum(length, 1)

    def scores(self, sums: ArrayLike) -> Scores:
        edits, length = columns_of(sums, self)
        return plain({self.main: 100.0 * edits / np.maximum(length, 1)})

    @abstractmethod
    def _units(self, text: str) -> Sequence[str]:
        """What is inserted, deleted and substituted."""

    def _prepared(self, references: Sequence[str]) -> tuple[Any, list[Sequence[str]]]:
        from rapidfuzz.distance import Levenshtein

        return Levenshtein.distance, [self._cut(line) for line in references]

    def _row(self, text: str, prepared: tuple[Any, list[Sequence[str]]]) -> Iterable[int]:
        distance, references = prepared
        ours = self._cut(text)
        rows: list[tuple[int, int]] = [(distance(ours, gold), len(gold)) for gold in references]
        closest: tuple[int, int] = min(rows, key=lambda row: row[0] / max(row[1], 1))
        return closest

    def _cut(self, text: str) -> Sequence[str]:
        return self._units(text.lower() if self.lowercase else text)


@dataclass(frozen=True)
class WordErrors(_Edits):
    """Word error rate; words are what white space separates.

    ``WER = (insertions + deletions + substitutions) / words of the reference``

    Parameters
    ----------
    lowercase : bool
        Ignore case.

    Notes
    -----
    With several references the one of the lowest rate counts. A reference without words counts
    as one of one word.

    Examples
    --------
    >>> wer = WordErrors()
    >>> counts = wer.counts(["a b c", "a c"], [["a b d"]] * 2)
    >>> counts.tolist(), wer.scores(counts.sum(axis=0))
    ([[1, 3], [2, 3]], {'wer': 50.0})
    """

    name: ClassVar[str] = "wer"
    main: ClassVar[str] = "wer"

    def _units(self, text: str) -> Sequence[str]:
        return text.split()


@dataclass(frozen=True)
class CharacterErrors(_Edits):
    """Edit distance in characters, for each character of the reference.

    ``CER = (insertions + deletions + substitutions) / characters of the reference``

    Parameters
    ----------
    lowercase : bool
        Ignore case.

    Notes
    -----
    White space at the ends is left out. Otherwise as `WordErrors`.

    Examples
    --------
    >>> CharacterErrors().counts(["hope"], [["rope"]]).tolist()
    [[1, 4]]
    """

    name: ClassVar[str] = "edit"
    main: ClassVar[str] = "cer"

    def _units(self, text: str) -> Sequence[str]:
        return text.strip()


@dataclass(frozen=True)
class Ter(TextMetric):
    """Translation edit rate, by sacreBLEU: as WER, but a phrase may move for one edit.

    ``TER = (insertions + deletions + substitutions + moves) / words of the reference``

    Parameters
    ----------
    lowercase : bool
        Ignore case, as Tercom does.
    normalized : bool
        Split punctuation off and mend entities first.

    Notes
    -----
    With several references the edits are those of the closest and the length is the mean, so
    counts are not always whole. A candidate and a reference may have 2**27 pairs of words.

    Examples
    --------
    >>> Ter().counts(["c a b"], [["a b c"]]).tolist()
    [[1.0, 3.0]]
    """

    name: ClassVar[str] = "ter"
    main: ClassVar[str] = "ter"
    higher: ClassVar[bool] = False
    whole: ClassVar[bool] = False

    lowercase: bool = True
    normalized: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return ("edits", "reference_length")

    def costs(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Edits for each word of the reference; above 1 where ours is much too long."""
        edits, length = columns_of(counts, self)
        return np.where(length > 0, ratio(edits, length), edits > 0)

    def scores(self, sums: ArrayLike) -> Scores:
        return plain({"ter": 100 * self.costs(sums)})

    def signature_for(self, n_references: int) -> str:
        return signed("TER", _scorer(self.lowercase, self.normalized), n_references)

    def line_counts(
        self, ours: Lines, which: np.ndarray, gold: Lines, starts: np.ndarray
    ) -> Counts:
        return ter_counts(self._side(ours), self._side(gold), which, starts)

    def _side(self, lines: Lines) -> Lines:
        if self.normalized:
            scorer = _scorer(self.lowercase, True)
            return lines.changed(lambda line: scorer.tokenizer(line.rstrip()))
        return lines.lowered() if self.lowercase else lines


@functools.cache
def _scorer(lowercase: bool, normalized: bool) -> Any:
    from sacrebleu.metrics import TER

    return TER(case_sensitive=not lowercase, normalized=normalized)
