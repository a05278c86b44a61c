"""Files of candidate lists, read block by block."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain

from hopefear.data.lists.blocks import Names, TextMetric, text_block
from hopefear.data.lists.brackets import HEADER, bracket_lists
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.dedup import check_policy, deduplicated
from hopefear.data.lists.input import ListInput, RawList
from hopefear.data.lists.json_lines import holds_trees, json_lists
from hopefear.data.lists.kinds import GIVEN, check_metric, same_kind
from hopefear.data.lists.trees import tree_block
from hopefear.data.report import ReadReport
from hopefear.data.trees import Symbols
from hopefear.errors import HopefearError

FORMATS = ("auto", "json", "ptb", "bllip")
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
    metric: TextMetric | None = None,
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
    log probability and a tree for each, on lines of their own.

    Costs of trees are ``1 - F1`` of brackets where there are gold trees or counts, else those of
    the file (``cost``). Costs of texts are those of the file, or ``metric``'s where it is given and
    the file has references.

    Parameters
    ----------
    path : str or path
        Plain or compressed UTF-8 file; ``-`` is standard input.
    format : {"auto", "json", "ptb", "bllip"}
        ``auto`` goes by the first lines.
    prefer : {"auto", "json", "ptb", "bllip"}
        For ``auto``, the format to take where the first lines allow it.
    gold : str or path, optional
        For ``bllip``, the gold trees: one to a line, in the order of the lists.
    metric : TextMetric, optional
        Scores the texts of ``json`` against their references. One of the name ``cost`` takes the
        costs of the file, be there gold trees or not; one of texts is refused where lists hold
        trees, and ``parseval`` where they do not.
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
    what = format, prefer, gold, metric if judged else None, recount, judged, require_costs
    return _blocks(source, *what, dedup, symbols, block_lists)


def _blocks(
    source,
    format,
    prefer,
    gold,
    metric,
    recount,
    judged,
    require_costs,
    dedup,
    symbols,
    block_lists,
) -> Iterator[CandidateLists]:
    lines = source.lines()
    if format == "auto":
        format, lines = _guessed(source, lines)
        if (prefer == "bllip") == (format == "bllip") and prefer != "auto":
            format = prefer
    name = None if metric is None else metric.name
    check_metric(name, format != "json", source.name)
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
        if format == "bllip" or len(seen) == _LOOKED_AT:
            break
    return format or "json", chain(seen, lines)


def _family(source: ListInput, number: int, line: bytes) -> str:
    source.check_family(number, line)
    if line.startswith(b"{"):
        return "json"
    if HEADER.match(line):
        return "bllip"
    shown = line[:60].decode("utf-8", "backslashreplace")
    raise source.error(
        number, 'lists: {"id": …, "candidates": […]}, or a number of candidates and an id', shown
    )
