"""Read N-best lists of Moses: ``ID ||| words ||| Name= v v … ||| score [||| phrase pairs]``."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np

from hopefear.core.hashing import StringTable
from hopefear.data.files import ReadReport, check_on_error
from hopefear.data.moses.lists import Gatherer, TuningLists
from hopefear.data.moses.parsing import BLOCK_BYTES, MosesLayout, RawBlock, raw_blocks
from hopefear.data.moses.phrases import PhraseReader
from hopefear.data.moses.words import (
    References,
    Sentences,
    check_parallel,
    parallel_sentences,
    read_sentences,
)
from hopefear.errors import HopefearError, InputError
from hopefear.metrics.base import ListMetric

Path = str | os.PathLike[str]
BLOCK_CANDIDATES = 20_000


def read_moses(
    paths: Path | Sequence[Path],
    refs: Path | Sequence[Path | Sentences] | None = None,
    *,
    metric: ListMetric | None = None,
    texts: bool = False,
    tails: bool = False,
    source: Path | None = None,
    phrases: bool = False,
    dedup: str = "first",
    absent: str = "raise",
    dense: Collection[str] = (),
    sparse: Collection[str] = (),
    on_error: str = "raise",
    report: ReadReport | None = None,
    on_progress: Callable[[int], None] | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> TuningLists:
    """Read whole files of candidates, with the statistics of a metric.

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
    tails : bool
        Keep what stands behind the score as well.
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
        Names that may come and go although they have none.
    on_error : {"raise", "skip"}
        What to do with a bad line: end with an InputError, or leave the candidate out.
    report : ReadReport, optional
        Filled with the number of candidates read, and of lines skipped, with messages.
    on_progress : callable, optional
        Gets the number of candidates so far, again and again.
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
    >>> lists.sparse.indptr.tolist(), lists.sparse.names.get(0)
    ([0, 0, 1], 'pp_x~y')
    """
    plan = _Plan(paths, refs, metric, texts, source, phrases, dedup, absent, tails)
    watch = _Watch(on_error, report, on_progress)
    layout = MosesLayout(dense, sparse)
    gatherer = plan.gatherer(StringTable())
    for path in plan.paths:
        gatherer.next_file()
        for raw in watch.blocks(path, layout, block_bytes, gatherer.check):
            gatherer.add(raw, layout.width)
    lists = gatherer.lists(layout.blocks or (), plan.name)
    plan.check_gaps(lists, 0)
    plan.check_end(int(lists.ids[-1]) + 1)
    return lists


def moses_blocks(
    path: Path,
    refs: Path | Sequence[Path | Sentences] | None = None,
    *,
    metric: ListMetric | None = None,
    texts: bool = False,
    tails: bool = False,
    source: Path | None = None,
    phrases: bool = False,
    dedup: str = "first",
    absent: str = "raise",
    dense: Collection[str] = (),
    sparse: Collection[str] = (),
    on_error: str = "raise",
    report: ReadReport | None = None,
    on_progress: Callable[[int], None] | None = None,
    block_candidates: int = BLOCK_CANDIDATES,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[TuningLists]:
    """Whole lists of one file, block by block; memory stays bounded.

    Sparse names and phrase pairs have the same numbers in all blocks. Parameters as for
    :func:`read_moses`.

    Parameters
    ----------
    block_candidates : int
        Candidates in a block, more where a list is longer; larger needs more memory.
    """
    plan = _Plan([path], refs, metric, texts, source, phrases, dedup, absent, tails)
    if block_candidates < 1:
        raise HopefearError(f"block_candidates={block_candidates}: a block holds at least 1")
    watch = _Watch(on_error, report, on_progress)
    layout = MosesLayout(dense, sparse)
    return _blocks(plan, watch, layout, block_candidates, block_bytes)


def _blocks(
    plan: _Plan,
    watch: _Watch,
    layout: MosesLayout,
    most: int,
    block_bytes: int,
) -> Iterator[TuningLists]:
    names = StringTable()
    gatherer = plan.gatherer(names)
    gatherer.next_file()
    following = 0

    def check(raw: RawBlock) -> None:
        gatherer.check(raw)  # there is another one for every block

    for raw in watch.blocks(plan.paths[0], layout, block_bytes, check):
        gatherer.add(raw, layout.width)
        if gatherer.rows < most or gatherer.runs[0].size < 2:
            continue
        block, gatherer = gatherer.split(layout.blocks or (), plan.name)
        plan.check_gaps(block, following)
        following = int(block.ids[-1]) + 1
        yield block
    block = gatherer.lists(layout.blocks or (), plan.name)
    plan.check_gaps(block, following)
    plan.check_end(int(block.ids[-1]) + 1)
    yield block


class _Watch:
    """What is told while files are read, and whether bad lines end it."""

    def __init__(
        self,
        on_error: str,
        report: ReadReport | None,
        on_progress: Callable[[int], None] | None,
    ) -> None:
        check_on_error(on_error)
        self.skip, self.report = on_error == "skip", report or ReadReport()
        self.tell, self.rows = on_progress, 0

    def blocks(
        self,
        path: Path,
        layout: MosesLayout,
        block_bytes: int,
        check: Callable[[RawBlock], None],
    ) -> Iterator[RawBlock]:
        """Blocks of a file; of bad lines nothing is left where they are skipped."""
        # Whoever takes a block finds what is wrong with it too, but cannot give half of it back.
        careful: dict[str, Any] = {"check": check, "report": self.report} if self.skip else {}
        for raw in raw_blocks(path, layout, block_bytes, **careful):
            yield raw
            self.report.rows += raw.rows
            self.rows += raw.rows
            if self.tell is not None:
                self.tell(self.rows)


class _Plan:
    """What is to be read, checked before anything is."""

    def __init__(
        self,
        paths: Any,
        refs: Any,
        metric: Any,
        texts: Any,
        source: Any,
        phrases: Any,
        dedup: Any,
        absent: Any,
        tails: Any,
    ) -> None:
        self.paths = _several(paths, "paths")
        self.name = ", ".join(os.fspath(path) for path in self.paths)
        _check_word("dedup", dedup, ("first", "none"))
        _check_word("absent", absent, ("raise", "skip"))
        if (refs is None) != (metric is None):
            have, lack = ("refs", "metric") if metric is None else ("metric", "refs")
            raise HopefearError(
                f"{have} without {lack}: a metric counts candidates against references; give both, "
                "or neither"
            )
        if phrases and source is None:
            raise HopefearError(
                "phrases needs source: phrase pairs are positions in the sentences that were "
                "translated; give their file"
            )
        self.texts, self.tails, self.dedup, self.absent = texts, tails, dedup, absent
        files: list[Sentences] = []
        if refs is not None:
            files = parallel_sentences(refs)
        self.references = References(files, metric) if files else None
        self.source = read_sentences(source) if phrases else None
        if files and self.source is not None:
            check_parallel([files[0], self.source])
        self.phrases = None if self.source is None else PhraseReader(self.source)

    def gatherer(self, names: StringTable) -> Gatherer:
        first = self.dedup == "first"
        return Gatherer(self.references, self.phrases, self.texts, first, names, self.tails)

    def check_gaps(self, lists: TuningLists, following: int) -> None:
        """InputError where an id is left out; ``following`` is the one to come first."""
        if self.absent == "skip":
            return
        gaps = np.flatnonzero(np.diff(lists.ids, prepend=following - 1) != 1)
        if len(gaps):
            i = int(gaps[0])
            wanted = int(lists.ids[i - 1]) + 1 if i else following
            assert lists.lines is not None and lists.files is not None
            raise InputError(
                os.fspath(self.paths[int(lists.files[i])]),
                int(lists.lines[i]),
                f"list {wanted}, for ids go up by one (--absent skip leaves lists out)",
                f"list {lists.ids[i]}",
            )

    def check_end(self, following: int) -> None:
        """InputError where references are left over."""
        lines: Sentences | References | None = self.references or self.source
        if lines is not None and following < lines.size and self.absent == "raise":
            raise InputError(
                lines.name,
                following + 1,
                f"list {following} in {self.name} for this line (--absent skip leaves lists out)",
                "no candidates",
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
