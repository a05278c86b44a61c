"""Files of candidate lists, read block by block."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from hopefear.data.lists.blocks import Names, TextMetric, text_block
from hopefear.data.lists.brackets import HEADER, bracket_lists
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.dedup import check_policy, deduplicated
from hopefear.data.lists.input import MOSES, ListInput, RawList
from hopefear.data.lists.json_lines import holds_trees, json_lists
from hopefear.data.lists.kinds import GIVEN, UnjudgedError, check_metric, same_kind
from hopefear.data.lists.trees import tree_block
from hopefear.data.report import ReadReport
from hopefear.data.trees import Symbols
from hopefear.errors import HopefearError

FORMATS = ("auto", "json", "ptb", "bllip", "moses")
TEXTS = ("json", "moses")  # formats whose candidates are texts
BLOCK_LISTS = 256
BLOCK_CANDIDATES = 20_000
BLOCK_TREES = 1_000  # over a thousand features each come of them

_LOOKED_AT = 10  # lines by which a format is known


def read_lists(
    path: str | os.PathLike[str],
    format: str = "auto",
    *,
    prefer: str = "auto",
    gold: str | os.PathLike[str] | None = None,
    refs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    metric: TextMetric | None = None,
    counter: Any = None,
    recount: bool = False,
    judged: bool = True,
    require_costs: bool = False,
    dedup: str = "first",
    symbols: Symbols | None = None,
    on_error: str = "raise",
    report: ReadReport | None = None,
    block_lists: int = BLOCK_LISTS,
) -> Iterator[CandidateLists]:
    """Lists of candidates in blocks; a block is free as soon as it is used.

    *json* has one object to a line: ``{"id", "candidates": [{"features": {"name": number}, "cost",
    "score", "text", "derivation"}]}``, all but ``candidates`` and ``id`` optional, and for the list
    ``reference`` or ``references``, and ``weight``. A string as the value of a feature means the
    feature ``name=value``. *ptb* has one object to a line too: ``{"id", "tokens", "gold",
    "candidates": [{"tree", "logprob", "matched", "gold_brackets", "test_brackets"}]}``, ``tree``
    alone required. *bllip* is what that parser prints: the number of candidates and an id, then a
    log probability and a tree for each, on lines of their own. *moses* is what that decoder prints,
    ``ID ||| words ||| Name= numbers … ||| score``, a line for each candidate; see
    :func:`hopefear.data.moses.candidates.moses_candidates`.

    Costs of trees are ``1 - F1`` of brackets where there are gold trees or counts, else those of
    the file (``cost``). Costs of texts are those of the file, or ``metric``'s where it is given and
    the file has references.

    Parameters
    ----------
    path : str or path
        Plain or compressed UTF-8 file; ``-`` is standard input.
    format : {"auto", "json", "ptb", "bllip", "moses"}
        ``auto`` goes by the first lines.
    prefer : {"auto", "json", "ptb", "bllip", "moses"}
        For ``auto``, the format to take where the first lines allow it.
    gold : str or path, optional
        For ``bllip``, the gold trees: one to a line, in the order of the lists.
    refs : path or sequence of paths, optional
        For ``moses``, references, one file for each: line i, from 0, is of the list with id i.
    metric : TextMetric, optional
        Scores the texts of ``json`` and ``moses`` against their references. One of the name
        ``cost`` takes the costs of the file, be there gold trees or not; one of texts is refused
        where lists hold trees, and ``parseval`` where they do not.
    counter : WordMetric or TextCounts, optional
        For ``moses``, counts for the metric while the file is read, which is faster.
    recount : bool
        Count the brackets of trees even where the file gives their counts.
    judged : bool
        Whether costs are looked at, and gold trees, counts and references. Without, lists may have
        them or not, as for prediction.
    require_costs : bool
        A list without costs is an error, as in training; else costs are there for all lists of a
        file or for none.
    dedup : {"first", "best", "none"}
        Which of the candidates with equal texts to keep, as in `deduplicated`.
    symbols : Symbols, optional
        Numbers for labels and words of trees, to go on with those of another file.
    on_error : {"raise", "skip"}
        Stop at the first bad list, or leave bad lists out and count them.
    report : ReadReport, optional
        Filled in with the number of lists and the messages of bad ones.
    block_lists : int
        Lists in a block, fewer where there are over 20,000 candidates; more need more memory.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as f:
    ...     _ = f.write('{"id": "a", "candidates": [{"text": "hope", "cost": 0, "features": '
    ...                 '{"lm": -1.5}}, {"text": "fear", "cost": 1, "features": {"lm": -1}}]}')
    ...     f.flush()
    ...     lists = next(read_lists(f.name))
    >>> lists.ids, lists.texts, lists.costs.tolist(), lists.named.values.tolist()
    (['a'], ['hope', 'fear'], [0.0, 1.0], [-1.5, -1.0])
    """
    source = ListInput(path, on_error, report)
    check_policy(dedup)
    for name, found in (("format", format), ("prefer", prefer)):
        if found not in FORMATS:
            raise HopefearError(f"{name} must be one of {', '.join(FORMATS)}, not {found!r}")
    if block_lists < 1:
        raise HopefearError(f"block_lists={block_lists}: a block holds at least 1 list")
    if not judged:
        refs = counter = metric = None
    what = format, prefer, gold, refs, counter, metric, recount, judged, require_costs
    return _blocks(source, *what, dedup, symbols, block_lists)


def _blocks(
    source,
    format,
    prefer,
    gold,
    refs,
    counter,
    metric,
    recount,
    judged,
    require_costs,
    dedup,
    symbols,
    block_lists,
) -> Iterator[CandidateLists]:
    lines, piped = source.lines(), format == "auto" and source.name == "-"
    if format == "auto":
        format, lines = _guessed(source, lines)
        lined = {prefer, format} & {"bllip", "moses"}
        if prefer != "auto" and (not lined or prefer == format):
            format = prefer
    name = None if metric is None else metric.name
    check_metric(name, format not in TEXTS, source.name)
    if format == "moses":
        # Other files than pipes are opened anew.
        rest, needed = lines if piped else None, judged and require_costs
        yield from _moses(source, rest, refs, counter, metric, needed, dedup)
        return
    if refs is not None:
        raise HopefearError(
            f"{source.name}: its lists hold their own references; files of references go with "
            "lists in the format moses"
        )
    if gold is not None and format != "bllip":
        raise HopefearError(
            f"{source.name}: its lists hold their own gold trees; a file of gold trees goes with "
            "lists in the format bllip"
        )
    names = Names()
    symbols = Symbols() if symbols is None else symbols
    if format == "bllip":
        golds = ListInput(gold) if judged and gold is not None else None
        raws = bracket_lists(source, lines, golds)
    else:
        raws = json_lists(source, lines, format == "ptb", judged)
    if judged:
        raws = same_kind(source, raws, format, name, require_costs)
    count = 0
    candidates = BLOCK_CANDIDATES if format == "json" else BLOCK_TREES
    for group in _groups(raws, block_lists, candidates):
        block: CandidateLists | None
        if format == "json":
            block = text_block(source, group, names, None if name == GIVEN else metric)
        else:
            block = tree_block(source, group, names, symbols, recount, name == GIVEN)
        group.clear()
        # Taken out of the list while it is handed over: a name would keep it alive.
        ready = [deduplicated(block, dedup)] if block is not None else []
        del block
        if ready:
            count += len(ready[0])
            source.report.rows += len(ready[0])
            yield ready.pop()
    if count == 0:
        raise source.emptiness()


def _moses(source, lines, refs, counter, metric, require_costs, dedup) -> Iterator[CandidateLists]:
    """Lists of Moses, whose reader knows its lines itself."""
    from hopefear.data.moses.candidates import moses_candidates

    own, before = ReadReport(messages=source.report.messages), source.report.skipped
    judge = None if metric is None or metric.name == GIVEN else metric
    for block in moses_candidates(
        source.path,
        refs,
        metric=judge,
        counter=None if judge is None else counter,
        on_error="skip" if source.skip else "raise",
        report=own,
        block_candidates=BLOCK_CANDIDATES,
        lines=lines,
    ):
        source.report.skipped = before + own.skipped
        if require_costs and block.costs is None:
            wanted = "references, from which lists of Moses get the costs that are needed here"
            if refs is not None:
                wanted = "a metric of texts, such as bleu, to make costs from the references"
            error = UnjudgedError(source.name, 0, wanted, "none")
            error.format = "moses"
            raise error
        ready = deduplicated(block, dedup)
        source.report.rows += len(ready)
        yield ready


def _groups(raws: Iterator[RawList], most: int, candidates: int) -> Iterator[list[RawList]]:
    group: list[RawList] = []
    size = 0
    for raw in raws:
        group.append(raw)
        size += len(raw.texts)
        if len(group) == most or size >= candidates:
            yield group
            group, size = [], 0
    if group:
        yield group


def _guessed(
    source: ListInput, lines: Iterator[tuple[int, bytes]]
) -> tuple[str, Iterator[tuple[int, bytes]]]:
    """The format that the first lines tell, and all lines."""
    seen: list[tuple[int, bytes]] = []
    format = ""
    for number, line in lines:
        seen.append((number, line))
        text = line.strip()
        if not format and text:
            format = _family(source, number, text)
        if format == "json" and text and (trees := holds_trees(text)) is not None:
            format = "ptb" if trees else "json"
            break
        if format in ("bllip", "moses") or len(seen) == _LOOKED_AT:
            break
    return format or "json", chain(seen, lines)


def _family(source: ListInput, number: int, line: bytes) -> str:
    if MOSES.match(line):
        return "moses"
    if line.startswith(b"{"):
        return "json"
    if HEADER.match(line):
        return "bllip"
    shown = line[:60].decode("utf-8", "backslashreplace")
    raise source.error(
        number,
        'lists: {"id": …, "candidates": […]}, a number of candidates and an id, or lines of Moses '
        "(ID ||| words ||| …)",
        shown,
    )
