"""Read N-best lists of Moses: ``ID ||| words ||| Name= v v … ||| score [||| phrase pairs]``."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hopefear.core.arrays import Strings, Texts, frozen, gathered, stretches
from hopefear.core.hashing import StringTable
from hopefear.data.files import ReadReport, check_on_error
from hopefear.data.lists.candidates import CandidateLists, NamedEntries, concatenated, merged
from hopefear.data.moses.parsing import (
    BLOCK_BYTES,
    MosesLayout,
    RawBlock,
    candidate_keys,
    first_of_each,
    raw_blocks,
    repeated_name,
)
from hopefear.data.moses.phrases import PhraseReader
from hopefear.data.moses.word_hashes import (
    NEWLINE,
    HashedText,
    References,
    check_parallel,
    line_spans,
    parallel_sentences,
    read_sentences,
)
from hopefear.errors import HopefearError, InputError, Problem
from hopefear.metrics.base import ListMetric

Path = str | os.PathLike[str]
BLOCK_CANDIDATES = 20_000


def read_moses(
    paths: Path | Sequence[Path],
    refs: Path | Sequence[Path | HashedText] | None = None,
    *,
    metric: ListMetric | None = None,
    texts: bool = False,
    derivations: bool = False,
    source: Path | None = None,
    phrases: bool = False,
    dedup: str = "first",
    absent: str = "raise",
    dense: Collection[str] = (),
    sparse: Collection[str] = (),
    on_error: str = "raise",
    report: ReadReport | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> CandidateLists:
    """Reads whole files of candidates, with the statistics of a metric.

    Names on the first line are dense and every line must have them, with as many numbers; a name
    with an underscore and one number is sparse and may come and go. Candidates of the same id in
    several files, as of several runs of a decoder, make one list. A hypothesis without words is a
    candidate like others.

    Parameters
    ----------
    paths : path or sequence of paths
        Plain or compressed UTF-8 files; ``-`` is standard input.
    refs : path or sequence of paths, optional
        References, one file for each: line i, from 0, belongs to the list with id i.
    metric : ListMetric, optional
        Counts candidates against references. BLEU of words as they are is counted from their
        hashes, other metrics from texts.
    texts : bool
        Keep the words of candidates, which takes most of the memory then.
    derivations : bool
        Keep the fields after the score as well.
    source : path, optional
        The sentences that were translated, for phrase pairs.
    phrases : bool
        Read phrase pairs from the field behind the score (``0-1=0-2 3=4 …``).
    dedup : {"first", "none"}
        Of the candidates of a list with equal words and features, keep the first, or all.
    absent : {"raise", "skip"}
        What to do about a reference without a list, or about a gap among the ids.
    dense : collection of str
        Names that are dense although they have an underscore.
    sparse : collection of str
        Names that candidates may lack although they have no underscore.
    on_error : {"raise", "skip"}
        What to do with a bad line: end with an InputError, or leave the candidate out.
    report : ReadReport, optional
        Filled with the number of candidates read, and of lines skipped, with messages.
    block_bytes : int
        Text to hold at a time.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as f:
    ...     _ = f.write("0 ||| hope and fear ||| LM0= -3 TM0= -1 -2 ||| -1.5\\n"
    ...                 "0 ||| hope ||| LM0= -1 TM0= -1 -4 pp_x~y= 1 ||| -2\\n")
    ...     f.flush()
    ...     lists = read_moses(f.name)
    >>> lists.names, lists.dense.tolist(), lists.starts.tolist()
    (('LM0', 'TM0.0', 'TM0.1'), [[-3.0, -1.0, -2.0], [-1.0, -1.0, -4.0]], [0, 2])
    >>> lists.sparse.indptr.tolist(), lists.sparse.names[0]
    ([0, 0, 1], 'pp_x~y')
    """
    options = metric, texts, derivations, source, phrases, dedup, absent, on_error, report
    plan = _Settings(paths, refs, *options)
    builder = _ListBuilder(plan, MosesLayout(dense, sparse))
    for path in plan.paths:
        for _ in builder.read(path, block_bytes):
            pass
    lists = builder.take()
    plan.check_end(int(lists.ids[-1]) + 1)
    return lists


def moses_blocks(
    path: Path,
    refs: Path | Sequence[Path | HashedText] | None = None,
    *,
    block_candidates: int = BLOCK_CANDIDATES,
    block_bytes: int = BLOCK_BYTES,
    dense: Collection[str] = (),
    sparse: Collection[str] = (),
    **options: Any,
) -> Iterator[CandidateLists]:
    """Yields whole lists of one file, block by block; memory stays bounded.

    Sparse names and phrase pairs have the same numbers in all blocks. Parameters as for
    :func:`read_moses`.

    Parameters
    ----------
    block_candidates : int
        Candidates in a block, more where a list is longer; larger needs more memory.
    """
    plan = _Settings([path], refs, **options)
    if block_candidates < 1:
        raise HopefearError(f"block_candidates={block_candidates}: a block holds at least 1")
    return _blocks(_ListBuilder(plan, MosesLayout(dense, sparse)), block_candidates, block_bytes)


def _blocks(builder: _ListBuilder, max_rows: int, block_bytes: int) -> Iterator[CandidateLists]:
    for _ in builder.read(builder.plan.paths[0], block_bytes):
        if builder.rows >= max_rows and builder.n_lists > 1:
            yield builder.take(open_end=True)
    block = builder.take()
    builder.plan.check_end(int(block.ids[-1]) + 1)
    yield block


class _ListBuilder:
    """Candidates so far, block by block, and the lists that they make.

    Parameters
    ----------
    plan : _Settings
        What is kept of candidates, and what is counted.
    layout : MosesLayout
        The dense features.
    """

    def __init__(self, plan: _Settings, layout: MosesLayout) -> None:
        self.plan, self.layout = plan, layout
        self.rows = self.n_lists = 0
        self._names = StringTable()
        self._pieces: list[CandidateLists] = []
        self._keys: list[np.ndarray] = []  # uint64, of words and features
        self._last = np.full(16, -1, np.int64)  # candidate of each sparse name
        self._file, self._last_id, self._next_id = -1, -1, 0
        self._n_candidates = 0  # candidates
        self._file_of: dict[str, int] = {}  # the first that has a list, where there are several

    def read(self, path: Path, block_bytes: int) -> Iterator[None]:
        """Takes the candidates of a file; stops behind every block of text."""
        self._file, self._last_id = self._file + 1, -1
        plan = self.plan
        # Whoever takes a block finds what is wrong with it too, but cannot give half of it back.
        careful: dict[str, Any] = {"check": self.check, "report": plan.report} if plan.skip else {}
        for raw in raw_blocks(path, self.layout, block_bytes, **careful):
            self.add(raw)
            plan.report.rows += raw.rows
            yield

    def check(self, raw: RawBlock) -> None:
        """InputError where `add` would end in one; nothing is taken."""
        self._check_ids(raw)
        if self.plan.phrases is not None:
            self.plan.phrases.spans(raw)
        if named := int(raw.scratch.named_ptr[raw.rows]):
            names = StringTable()
            numbers = _interned(names, raw, named)
            _check_names(raw, numbers, np.full(names.size, -1, np.int64), 0)

    def add(self, raw: RawBlock) -> None:
        """Takes the candidates of a block."""
        plan, scratch, rows = self.plan, raw.scratch, raw.rows
        self._check_ids(raw)
        ids = scratch.ids[:rows]
        first = np.flatnonzero(np.diff(ids, prepend=-1))
        dense = scratch.dense[: rows * self.layout.width].copy()
        sparse = self._sparse(raw)
        if plan.dedup:
            self._keys.append(_keys(raw, dense, sparse))
        piece = CandidateLists(
            [str(i) for i in ids[first].tolist()],
            frozen(np.append(first, rows)),
            (),
            frozen(scratch.scores[:rows].copy()),
            layout=self.layout.blocks or (),
            dense=frozen(dense.reshape(rows, -1)),
            sparse=sparse,
            source=plan.name,
            lines=frozen(np.array([raw.line(row) for row in first.tolist()], np.int64)),
        )
        if plan.references is not None and plan.references.metric is not None:
            piece = replace(piece, counts=_narrow(plan.references.counts(raw)))
        if plan.phrases is not None:
            sizes, numbers = plan.phrases.read(raw)
            indptr = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
            piece = replace(piece, phrases=NamedEntries((), indptr, numbers))
        if plan.texts:
            spans = line_spans(scratch.word_ptr[: rows + 1], scratch.starts, scratch.ends)
            piece = replace(piece, texts=_texts(raw, *spans))
        if plan.derivations:
            piece = replace(piece, derivations=_texts(raw, *_tail_spans(raw)))
        self._pieces.append(piece)
        self.n_lists += len(piece) - (self._last_id == ids[0])
        self.rows += rows
        self._n_candidates += rows
        self._last_id = int(ids[-1])
        if len(plan.paths) > 1:
            for name in piece.ids:
                self._file_of.setdefault(name, self._file)

    def take(self, open_end: bool = False) -> CandidateLists:
        """Returns the lists so far and forgets them.

        Where the end is open the last list stays, since more of its candidates may come.
        """
        plan = self.plan
        lists = concatenated(self._pieces)
        numbers = np.array(lists.ids, np.int64)
        keys = None
        if plan.dedup:
            order = np.argsort(numbers, kind="stable")
            keys = np.concatenate(self._keys)[gathered(lists.starts, order)[1]]
        lists = merged(lists, numbers)
        self._keys.clear()
        self._check_gaps(lists)
        self.rows = self.n_lists = 0
        if open_end:
            last, begin = len(lists) - 1, int(lists.starts[-2])
            self._pieces.append(lists.take(np.array([last])))
            self.rows, self.n_lists = lists.n_candidates - begin, 1
            if keys is not None:
                self._keys.append(keys[begin:])
                keys = keys[:begin]
            lists = lists.take(np.arange(last))
        self._next_id = int(lists.ids[-1]) + 1
        if keys is not None:
            mask = np.ones(len(keys), bool)
            longest = int(np.diff(lists.starts).max(initial=0))
            n_kept = first_of_each(keys, lists.starts, longest, mask)
            if n_kept < len(keys):
                lists = replace(lists.keep(mask), dropped=len(keys) - n_kept)
        if lists.sparse is not None:
            named = lists.sparse._replace(names=Texts(self._names.strings()))
            lists = replace(lists, sparse=named if len(named.ids) else None)
        if lists.phrases is not None and plan.phrases is not None:
            pairs = Texts(plan.phrases.table.strings())
            lists = replace(lists, phrases=lists.phrases._replace(names=pairs))
        if plan.references is not None and plan.references.metric is not None:
            metric, several = plan.references.metric.name, plan.references.n_references
            lists = replace(lists, metric=metric, n_references=several)
        return lists

    def _check_ids(self, raw: RawBlock) -> None:
        if self.plan.references is not None:  # an id too large makes the next ones look small
            self.plan.references.check(raw)
        ids = raw.scratch.ids[: raw.rows]
        if (falls := np.flatnonzero(np.diff(ids, prepend=self._last_id) < 0)).size:
            row = int(falls[0])
            before = ids[row - 1] if row else self._last_id
            raise InputError(
                raw.path,
                raw.line(row),
                f"lists in the order of their ids, so {before} or more",
                Problem(f"this one is list {ids[row]}"),
            )

    def _check_gaps(self, lists: CandidateLists) -> None:
        """InputError where an id is left out."""
        if self.plan.absent == "skip":
            return
        ids = np.array(lists.ids, np.int64)
        gaps = np.flatnonzero(np.diff(ids, prepend=self._next_id - 1) != 1)
        if len(gaps):
            i = int(gaps[0])
            expected_id = int(ids[i - 1]) + 1 if i else self._next_id
            raise InputError(
                os.fspath(self.plan.paths[self._file_of.get(lists.ids[i], 0)]),
                lists.line_of(i),
                f"list {expected_id}, for ids go up by one (--absent skip leaves lists out)",
                Problem(f"this one is list {ids[i]}"),
            )

    def _sparse(self, raw: RawBlock) -> NamedEntries:
        scratch = raw.scratch
        named_ptr = scratch.named_ptr[: raw.rows + 1].copy()
        named = int(named_ptr[-1])
        numbers = _interned(self._names, raw, named) if named else np.empty(0, np.int32)
        if self._names.size > len(self._last):
            room = np.full(2 * self._names.size, -1, np.int64)
            room[: len(self._last)] = self._last
            self._last = room
        _check_names(raw, numbers, self._last, self._n_candidates)
        return NamedEntries((), named_ptr, numbers, scratch.values[:named].copy())


def _keys(raw: RawBlock, dense: np.ndarray, sparse: NamedEntries) -> np.ndarray:
    """A hash of the words and features of each candidate."""
    scratch, keys = raw.scratch, np.empty(raw.rows, np.uint64)
    assert sparse.values is not None
    with np.errstate(over="ignore"):
        candidate_keys(
            *(scratch.word_ptr[: raw.rows + 1], scratch.words, _bits(dense)),
            *(sparse.indptr, sparse.ids, _bits(sparse.values), keys),
        )
    return keys


def _bits(values: np.ndarray) -> np.ndarray:
    """Bits of float32 numbers, with one zero."""
    return (values + np.float32(0.0)).view(np.uint32)


def _narrow(counts: np.ndarray) -> np.ndarray:
    """Statistics in as few bytes as hold them."""
    if counts.dtype.kind == "f":
        return frozen(counts)
    large = counts.size and counts.max() > np.iinfo(np.uint8).max
    return frozen(counts.astype(np.int32 if large else np.uint8))


def _texts(raw: RawBlock, starts: np.ndarray, ends: np.ndarray) -> Texts:
    offsets = np.concatenate([[0], np.cumsum(ends - starts)])
    return Texts(Strings(frozen(raw.buffer[stretches(starts, ends - starts)]), frozen(offsets)))


def _tail_spans(raw: RawBlock) -> tuple[np.ndarray, np.ndarray]:
    """From behind the bars that follow the score to the end of the line."""
    starts = raw.scratch.tails[: raw.rows]
    newlines = np.flatnonzero(raw.buffer == NEWLINE)
    return starts, newlines[np.searchsorted(newlines, starts)]


def _interned(names: StringTable, raw: RawBlock, named: int) -> np.ndarray:
    scratch = raw.scratch
    return names.intern_spans(raw.buffer, scratch.name_begins[:named], scratch.name_ends[:named])


def _check_names(raw: RawBlock, numbers: np.ndarray, last: np.ndarray, before: int) -> None:
    """InputError where a line has a sparse name twice; parameters as for `repeated_name`."""
    scratch = raw.scratch
    offsets = scratch.named_ptr[: raw.rows + 1]
    repeated = repeated_name(offsets, numbers, last, before)
    if repeated >= 0:
        row = int(np.searchsorted(offsets, repeated, "right")) - 1
        name = raw.buffer[scratch.name_begins[repeated] : scratch.name_ends[repeated]]
        excerpt = name.tobytes().decode("utf-8", "replace")
        raise InputError(
            raw.path, raw.line(row), "every name once in a line", Problem(f"{excerpt}= comes again")
        )


class _Settings:
    """Options of reading, checked before anything is read."""

    def __init__(
        self,
        paths: Any,
        refs: Any,
        metric: ListMetric | None = None,
        texts: bool = False,
        derivations: bool = False,
        source: Path | None = None,
        phrases: bool = False,
        dedup: str = "first",
        absent: str = "raise",
        on_error: str = "raise",
        report: ReadReport | None = None,
    ) -> None:
        self.paths = _several(paths, "paths")
        self.name = ", ".join(os.fspath(path) for path in self.paths)
        check_on_error(on_error)
        self.skip, self.report = on_error == "skip", report or ReadReport()
        _check_word("dedup", dedup, ("first", "none"))
        _check_word("absent", absent, ("raise", "skip"))
        if refs is None and metric is not None:
            raise HopefearError(
                "metric without refs: a metric counts candidates against references; give both"
            )
        if phrases and source is None:
            raise HopefearError(
                "phrases needs source: phrase pairs are positions in the sentences that were "
                "translated; give their file"
            )
        self.texts, self.derivations, self.absent = texts, derivations, absent
        self.dedup = dedup == "first"
        files: list[HashedText] = []
        if refs is not None:
            files = parallel_sentences(refs)
        self.references = References(files, metric) if files else None
        self.source = read_sentences(source) if phrases and source is not None else None
        if files and self.source is not None:
            check_parallel([files[0], self.source])
        self.phrases = None if self.source is None else PhraseReader(self.source)

    def check_end(self, following: int) -> None:
        """InputError where references are left over."""
        lines: HashedText | References | None = self.references or self.source
        if lines is not None and following < lines.size and self.absent == "raise":
            raise InputError(
                lines.name,
                following + 1,
                f"list {following} in {self.name} for this line",
                Problem("there is no such list (--absent skip leaves lines without a list out)"),
            )


def _several(paths: Path | Sequence[Path], name: str) -> list[Path]:
    if isinstance(paths, str | os.PathLike):
        return [paths]
    if not paths:
        raise HopefearError(f"{name}: expected at least one file, found none")
    return list(paths)


def _check_word(name: str, word: str, allowed: tuple[str, ...]) -> None:
    if word not in allowed:
        raise HopefearError(f"{name} must be {' or '.join(allowed)}, not {word!r}")
