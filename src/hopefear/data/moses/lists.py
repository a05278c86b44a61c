"""Lists of translations ready for tuning, and how blocks of a file become such lists.

Candidates are gathered block by block and put into lists without ever being in memory twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.arrays import Growing, Strings, frozen, gathered, stretches
from hopefear.core.hashing import StringTable
from hopefear.data.moses.parsing import (
    Blocks,
    RawBlock,
    candidate_keys,
    first_of_each,
    repeated_name,
)
from hopefear.data.moses.phrases import PhraseReader
from hopefear.data.moses.words import NEWLINE, References, line_spans
from hopefear.errors import InputError


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


class Pile(Growing):
    """A vector one appends arrays to; it grows by little, in its place where the system can.

    Growing by doubling holds the old array beside the new one, which is where a large file needs
    most. Here the system moves pages instead of bytes.

    Examples
    --------
    >>> ids = Pile(np.int32)
    >>> ids.append(np.array([1, 2])); ids.append(np.array([3])); ids.take()
    array([1, 2, 3], dtype=int32)
    """

    def append(self, more: np.ndarray, share: float = 0.0) -> None:
        """Add an array; ``share`` is not needed here."""
        end = self.size + len(more)
        if end > len(self._array):
            room = max(end, len(self._array) + len(self._array) // 16)
            try:
                self._array.resize(room)
            except ValueError:  # somebody looks at it
                larger = np.empty(room, self.dtype)
                larger[: self.size] = self.take()
                self._array = larger
        self._array[self.size : end] = more
        self.size = end


_CHUNK = 1 << 16  # rows to move at a time


class Putter:
    """Moves candidates to their lists and leaves copies out, in little memory."""

    def __init__(self, moved: np.ndarray | None, keep: np.ndarray | None) -> None:
        self.moved, self.keep = moved, keep

    def starts(self, starts: np.ndarray) -> np.ndarray:
        if self.keep is None:
            return starts
        return np.concatenate([[0], np.cumsum(self.keep)])[starts]

    def rows(self, array: np.ndarray) -> np.ndarray:
        if self.moved is not None:
            array = array[self.moved if self.keep is None else self.moved[self.keep]]
        elif self.keep is not None:
            array = _squeezed(array, self.keep)
        return frozen(array)

    def entries(self, sizes: np.ndarray, *arrays: np.ndarray) -> tuple[Any, ...]:
        """Offsets, and arrays with so many entries for each candidate."""
        indptr = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        if self.moved is not None:
            chosen = self.moved if self.keep is None else self.moved[self.keep]
            indptr, places = gathered(indptr, chosen)
            return frozen(indptr), *(frozen(a[places]) for a in arrays)
        if self.keep is not None:
            entries = np.repeat(self.keep, sizes)
            indptr = np.concatenate([[0], np.cumsum(sizes[self.keep], dtype=np.int64)])
            return frozen(indptr), *(frozen(_squeezed(a, entries)) for a in arrays)
        return frozen(indptr), *(frozen(a) for a in arrays)


def _squeezed(array: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """The rows to keep, moved to the front of the same memory."""
    used = 0
    for begin in range(0, len(array), _CHUNK):
        rows = array[begin : begin + _CHUNK][keep[begin : begin + _CHUNK]]
        array[used : used + len(rows)] = rows
        used += len(rows)
    return array[:used]


class Gatherer:
    """Candidates so far.

    Parameters
    ----------
    references : References, optional
        Makes counts.
    phrases : PhraseReader, optional
        Makes phrase pairs.
    texts, tails : bool
        Whether words are kept, and what stands behind the score.
    dedup : bool
        Whether of candidates with equal words and features only the first is kept.
    names : StringTable
        Numbers for sparse names; new ones are added.
    """

    def __init__(
        self,
        references: References | None,
        phrases: PhraseReader | None,
        texts: bool,
        dedup: bool,
        names: StringTable,
        tails: bool = False,
    ) -> None:
        self.references, self.phrases, self.dedup, self.names = references, phrases, dedup, names
        self.rows = 0
        self.dense, self.scores = Pile(np.float32), Pile(np.float32)
        self.counts, self.keys = Pile(np.uint8), Pile(np.uint64)
        self.sparse = (Pile(np.int32), Pile(np.int32), Pile(np.float32))
        self.pairs = (Pile(np.int32), Pile(np.int32))
        self.texts = (Pile(np.int32), Pile(np.uint8)) if texts else None
        self.tails = (Pile(np.int32), Pile(np.uint8)) if tails else None
        self.runs = tuple(Pile(np.int64) for _ in range(4))  # id, size, file, line
        self._last = np.full(16, -1, np.int64)  # candidate of each sparse name
        self._file, self._last_id = -1, -1

    def next_file(self) -> None:
        """Say that another file begins, whose ids begin anew."""
        self._file, self._last_id = self._file + 1, -1

    def add(self, raw: RawBlock, width: int) -> None:
        """Take the candidates of a block."""
        scratch, rows = raw.scratch, raw.rows
        self._check_ids(raw)
        self._add_runs(raw)
        dense = scratch.dense[: rows * width]
        self.dense.append(dense)
        self.scores.append(scratch.scores[:rows])
        named_ptr = scratch.named_ptr[: rows + 1]
        named = int(named_ptr[-1])
        values = scratch.values[:named]
        numbers = self._numbers(raw, named)
        if named or self.sparse[1].size:
            self._pad_sparse()
            self.sparse[0].append(np.diff(named_ptr))
            self.sparse[1].append(numbers)
            self.sparse[2].append(values)
        if self.dedup:
            keys = np.empty(rows, np.uint64)
            with np.errstate(over="ignore"):
                candidate_keys(
                    *(scratch.word_ptr[: rows + 1], scratch.words, _bits(dense), named_ptr),
                    *(numbers, _bits(values), keys),
                )
            self.keys.append(keys)
        if self.references is not None:
            self._add_counts(self.references.counts(raw))
        if self.phrases is not None:
            for pile, more in zip(self.pairs, self.phrases.read(raw), strict=True):
                pile.append(more)
        if self.texts is not None:
            word_ptr = scratch.word_ptr[: rows + 1]
            _add_spans(raw, self.texts, *line_spans(word_ptr, scratch.begins, scratch.ends))
        if self.tails is not None:
            _add_spans(raw, self.tails, *_tail_spans(raw))
        self.rows += rows

    def check(self, raw: RawBlock) -> None:
        """InputError where `add` would end in one; nothing is taken."""
        self._check_ids(raw)
        if self.phrases is not None:
            self.phrases.spans(raw)
        if named := int(raw.scratch.named_ptr[raw.rows]):
            names = StringTable()
            numbers = _interned(names, raw, named)
            _check_names(raw, numbers, np.full(names.size, -1, np.int64), 0)

    def lists(self, layout: Blocks, source: str) -> TuningLists:
        """Everything so far as lists; they live in the memory of what was gathered."""
        ids, sizes, files, lines = (run.take() for run in self.runs)
        order = np.argsort(ids, kind="stable")
        moved: np.ndarray | None = None
        if (np.diff(order) != 1).any():
            begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
            moved = stretches(begins[order], sizes[order])
            ids, sizes, files, lines = (run[order] for run in (ids, sizes, files, lines))
        new = np.flatnonzero(np.diff(ids, prepend=-1))
        ends = np.cumsum(sizes)
        starts = np.concatenate([[0], ends[np.append(new[1:], len(ids)) - 1]]).astype(np.int64)
        keep = self._kept(starts, moved)
        width = sum(size for _, size in layout)
        put = Putter(moved, keep)
        metric = None if self.references is None else self.references.metric
        columns = () if metric is None else metric.columns
        return TuningLists(
            ids=frozen(ids[new]),
            starts=frozen(put.starts(starts)),
            layout=layout,
            dense=put.rows(self.dense.take().reshape(self.rows, width)),
            scores=put.rows(self.scores.take()),
            counts=put.rows(self.counts.take().reshape(self.rows, -1)) if columns else None,
            metric="" if metric is None else metric.name,
            columns=columns,
            n_references=1 if self.references is None else self.references.n_references,
            sparse=self._sparse(put),
            phrases=self._phrases(put),
            texts=_strings(put, self.texts),
            tails=_strings(put, self.tails),
            source=source,
            lines=frozen(lines[new]),
            files=frozen(files[new]),
            dropped=0 if keep is None else len(keep) - int(np.count_nonzero(keep)),
        )

    def split(self, layout: Blocks, source: str) -> tuple[TuningLists, Gatherer]:
        """All lists but the last, which may go on, and who gathers that one."""
        texts, tails = self.texts is not None, self.tails is not None
        rest = Gatherer(self.references, self.phrases, texts, self.dedup, self.names, tails)
        rest._file, rest._last_id = self._file, self._last_id
        tail = int(self.runs[1].take()[-1])
        first = self.rows - tail
        rest.counts = Pile(self.counts.dtype.type)
        for mine, other in ((self.dense, rest.dense), (self.counts, rest.counts)):
            _move(mine, other, mine.size // self.rows * first)
        _move(self.scores, rest.scores, first)
        _move(self.keys, rest.keys, first if self.dedup else 0)
        if self.sparse[1].size:
            _move_entries(self.sparse, rest.sparse, first)
        if self.phrases is not None:
            _move_entries(self.pairs, rest.pairs, first)
        for kept, other_kept in ((self.texts, rest.texts), (self.tails, rest.tails)):
            if kept is not None and other_kept is not None:
                _move_entries(kept, other_kept, first)
        for run, other in zip(self.runs, rest.runs, strict=True):
            _move(run, other, run.size - 1)
        self.rows, rest.rows = first, tail
        return self.lists(layout, source), rest

    def _check_ids(self, raw: RawBlock) -> None:
        if self.references is not None:  # an id that is too large makes the next ones look small
            self.references.check(raw)
        ids = raw.scratch.ids[: raw.rows]
        if (falls := np.flatnonzero(np.diff(ids, prepend=self._last_id) < 0)).size:
            row = int(falls[0])
            before = ids[row - 1] if row else self._last_id
            raise InputError(
                raw.path,
                raw.line(row),
                f"lists in the order of their ids, so {before} or more",
                f"list {ids[row]}",
            )

    def _add_runs(self, raw: RawBlock) -> None:
        ids = raw.scratch.ids[: raw.rows]
        changes = np.flatnonzero(np.diff(ids, prepend=-1))
        sizes = np.diff(changes, append=len(ids))
        if self._last_id == ids[0]:
            self.runs[1].take()[-1] += sizes[0]
            changes, sizes = changes[1:], sizes[1:]
        self.runs[0].append(ids[changes])
        self.runs[1].append(sizes)
        self.runs[2].append(np.full(len(sizes), self._file))
        self.runs[3].append(np.array([raw.line(row) for row in changes.tolist()], np.int64))
        self._last_id = int(ids[-1])

    def _numbers(self, raw: RawBlock, named: int) -> np.ndarray:
        if not named:
            return np.empty(0, np.int32)
        numbers = _interned(self.names, raw, named)
        if self.names.size > len(self._last):
            room = np.full(2 * self.names.size, -1, np.int64)
            room[: len(self._last)] = self._last
            self._last = room
        _check_names(raw, numbers, self._last, self.rows)
        return numbers

    def _add_counts(self, counts: np.ndarray) -> None:
        """Counts go into bytes as long as they fit."""
        dtype = self.counts.dtype
        if counts.dtype.kind == "f":
            dtype = np.dtype(np.float64)
        elif counts.size and counts.max() > np.iinfo(np.uint8).max:
            dtype = np.promote_types(dtype, np.int32)
        if dtype != self.counts.dtype:
            narrow, self.counts = self.counts, Pile(dtype.type, max(1, self.counts.size))
            self.counts.append(narrow.take())
        self.counts.append(counts.ravel())

    def _pad_sparse(self) -> None:
        """Candidates before the first sparse feature had none."""
        missing = self.rows - self.sparse[0].size
        if missing:
            self.sparse[0].append(np.zeros(missing, np.int32))

    def _kept(self, starts: np.ndarray, moved: np.ndarray | None) -> np.ndarray | None:
        """Which candidates stay, None for all."""
        if not self.dedup:
            return None
        keys = self.keys.take() if moved is None else self.keys.take()[moved]
        keep = np.ones(len(keys), bool)
        longest = int(np.diff(starts).max(initial=0))
        return None if first_of_each(keys, starts, longest, keep) == len(keys) else keep

    def _sparse(self, put: Putter) -> NamedEntries | None:
        if not self.sparse[1].size:
            return None
        indptr, ids, values = put.entries(*(pile.take() for pile in self.sparse))
        return NamedEntries(self.names.strings(), indptr, ids, values)

    def _phrases(self, put: Putter) -> NamedEntries | None:
        if self.phrases is None:
            return None
        indptr, ids = put.entries(*(pile.take() for pile in self.pairs))
        return NamedEntries(self.phrases.table.strings(), indptr, ids)


def _add_spans(
    raw: RawBlock, piles: tuple[Pile, Pile], begins: np.ndarray, ends: np.ndarray
) -> None:
    piles[0].append(ends - begins)
    piles[1].append(raw.buffer[stretches(begins, ends - begins)])


def _tail_spans(raw: RawBlock) -> tuple[np.ndarray, np.ndarray]:
    """From behind the bars that follow the score to the end of the line."""
    begins = raw.scratch.tails[: raw.rows]
    newlines = np.flatnonzero(raw.buffer == NEWLINE)
    return begins, newlines[np.searchsorted(newlines, begins)]


def _strings(put: Putter, piles: tuple[Pile, Pile] | None) -> Strings | None:
    if piles is None:
        return None
    offsets, text = put.entries(*(pile.take() for pile in piles))
    return Strings(text, offsets)


def _interned(names: StringTable, raw: RawBlock, named: int) -> np.ndarray:
    scratch = raw.scratch
    return names.intern_spans(raw.buffer, scratch.name_begins[:named], scratch.name_ends[:named])


def _check_names(raw: RawBlock, numbers: np.ndarray, last: np.ndarray, before: int) -> None:
    """InputError where a line has a sparse name twice; the others as for `repeated_name`."""
    scratch = raw.scratch
    ptr = scratch.named_ptr[: raw.rows + 1]
    twice = repeated_name(ptr, numbers, last, before)
    if twice >= 0:
        row = int(np.searchsorted(ptr, twice, "right")) - 1
        name = raw.buffer[scratch.name_begins[twice] : scratch.name_ends[twice]]
        shown = name.tobytes().decode("utf-8", "replace")
        raise InputError(raw.path, raw.line(row), "every name once in a line", f"{shown}= again")


def _move(pile: Pile, other: Pile, first: int) -> None:
    """Move everything from ``first`` on to another pile."""
    other.append(pile.take()[first:])
    pile.size = first


def _move_entries(piles: Sequence[Pile], others: Sequence[Pile], first: int) -> None:
    """The same for sizes and what they speak of."""
    entries = int(piles[0].take()[:first].sum(dtype=np.int64))
    for k, (pile, other) in enumerate(zip(piles, others, strict=True)):
        _move(pile, other, first if k == 0 else entries)


def _bits(values: np.ndarray) -> np.ndarray:
    """Bits of float32 numbers, with one zero."""
    return (values + np.float32(0.0)).view(np.uint32)
