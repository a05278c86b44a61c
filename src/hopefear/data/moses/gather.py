"""Candidates of Moses files gathered block by block, then put into lists."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hopefear.core.arrays import Strings, frozen, stretches
from hopefear.core.hashing import StringTable
from hopefear.data.moses.input import Blocks, RawBlock
from hopefear.data.moses.kernel import candidate_keys, first_of_each, repeated_name
from hopefear.data.moses.lists import NamedEntries, TuningLists
from hopefear.data.moses.order import Putter
from hopefear.data.moses.phrases import PhraseReader
from hopefear.data.moses.pile import Pile
from hopefear.data.moses.references import References
from hopefear.data.moses.words import NEWLINE, line_spans
from hopefear.errors import InputError


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
