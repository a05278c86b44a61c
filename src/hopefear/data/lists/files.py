"""Files of candidate lists, read block by block: JSON lines, and trees as BLLIP prints them.

JSON has one object to a line, of trees or of anything with named features. BLLIP's lists are::

    2<TAB>wsj_0001.0
    -105.2
    (S1 (S …))
    -107.9
    (S1 (S …))

The first line says how many candidates follow; a blank line ends the list.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from msgspec import UNSET, DecodeError, Meta, Struct, UnsetType, ValidationError
from msgspec import json as msgspec_json

from hopefear.data.files import ReadReport
from hopefear.data.lists.candidates import CandidateLists, check_policy, deduplicated
from hopefear.data.lists.input import (
    GIVEN,
    MOSES,
    FeatureNames,
    ListInput,
    RawList,
    UnjudgedError,
    check_metric,
    counted,
    finite,
    number_wanted,
    same_kind,
    text_block,
    where,
)
from hopefear.data.lists.trees import Symbols, tree_block
from hopefear.data.parse_numbers import LARGEST
from hopefear.errors import HopefearError, InputError, Problem
from hopefear.metrics.base import ListMetric

Number = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
Count = Annotated[int, Meta(ge=0, lt=2**31)]
Weight = Annotated[float, Meta(ge=0.0, le=LARGEST)]


class _Candidate(Struct):
    score: Number | UnsetType = UNSET
    features: dict[str, Number | bool | str] | UnsetType = UNSET
    derivation: str | None = None


class _Text(_Candidate):
    text: str | UnsetType = UNSET


class _JudgedText(_Text):
    cost: Number | UnsetType = UNSET


class _Tree(_Candidate, kw_only=True):
    tree: str
    logprob: Number | UnsetType = UNSET


class _JudgedTree(_Tree):
    cost: Number | UnsetType = UNSET
    matched: Count | UnsetType = UNSET
    gold_brackets: Count | UnsetType = UNSET
    test_brackets: Count | UnsetType = UNSET


class _List(Struct, kw_only=True):
    id: Annotated[str, Meta(min_length=1)] | int | UnsetType = UNSET
    weight: Weight | UnsetType = UNSET


class _Texts(_List):
    candidates: Annotated[list[_Text], Meta(min_length=1)]


class _JudgedTexts(_List):
    candidates: Annotated[list[_JudgedText], Meta(min_length=1)]
    reference: str | None = None
    references: Annotated[list[str], Meta(min_length=1)] | None = None


class _Trees(_List):
    candidates: Annotated[list[_Tree], Meta(min_length=1)]
    tokens: list[str] | None = None


class _JudgedTrees(_List):
    candidates: Annotated[list[_JudgedTree], Meta(min_length=1)]
    tokens: list[str] | None = None
    gold: str | None = None


_FORMS = {
    (False, False): _Texts,
    (False, True): _JudgedTexts,
    (True, False): _Trees,
    (True, True): _JudgedTrees,
}


def json_lists(
    source: ListInput, lines: Iterable[tuple[int, bytes]], trees: bool, judged: bool = True
) -> Iterator[RawList]:
    """Yields the lists of a file; ``source`` refuses bad ones.

    Parameters
    ----------
    source : ListInput
        The file, for messages.
    lines : iterable of (int, bytes)
        Its lines and their numbers.
    trees : bool
        Whether candidates are trees (``tree``, ``logprob``), else texts.
    judged : bool
        Whether costs, and what they are made of, are looked at.
    """
    decoder: Any = msgspec_json.Decoder(_FORMS[trees, judged])
    full = (line for line in lines if line[1].strip())
    for position, (number, line) in enumerate(full):
        try:
            source.text(number, line)
            try:
                record = decoder.decode(line)
            except (DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise _decoding_error(source, number, line, position, error) from None
            raw = _raw_list(source, number, record, position)
            source.enter(raw.id, number)
        except InputError as error:
            source.refuse(error)
            continue
        yield raw


def holds_trees(line: bytes) -> bool | None:
    """Returns whether a line is a list of trees; None where it is no list at all."""
    try:
        first = msgspec_json.decode(line)["candidates"][0]
        return "tree" in first if isinstance(first, dict) else None
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def _raw_list(source: ListInput, number: int, record: Any, position: int) -> RawList:
    """A decoded list; InputError where its candidates do not go together."""
    candidates = record.candidates
    name = str(position if record.id is UNSET else record.id)

    def several(key: str) -> list[Any] | None:
        """The values of all candidates, None where none has one."""
        values = [getattr(candidate, key) for candidate in candidates]
        missing = values.count(UNSET)
        if missing == len(values):
            return None
        if missing:
            c = values.index(UNSET)
            expected = f"a {key}, as other candidates have, in {where(name, c)}"
            raise source.error(number, expected, Problem("it has none"))
        return values

    trees = isinstance(candidates[0], _Tree)
    scores = (several("logprob") if trees else None) or several("score")
    raw = RawList(
        name,
        number,
        [candidate.tree for candidate in candidates] if trees else [],
        scores or [0.0] * len(candidates),
        weight=None if record.weight is UNSET else record.weight,
        features=_features(source, number, name, candidates),
        derivations=[candidate.derivation for candidate in candidates],
    )
    if not any(raw.derivations or ()):
        raw.derivations = None
    if trees:
        raw.tokens = record.tokens
    else:
        texts = [candidate.text for candidate in candidates]
        raw.unspoken = texts.index(UNSET) if UNSET in texts else None
        raw.texts = ["" if text is UNSET else text for text in texts]
    if isinstance(record, _JudgedTrees):
        raw.references = None if record.gold is None else [record.gold]
        counts = [several(key) for key in ("matched", "gold_brackets", "test_brackets")]
        raw.counts = _counts(source, number, name, counts)
    elif isinstance(record, _JudgedTexts):
        raw.references = record.references if record.reference is None else [record.reference]
    if isinstance(record, _JudgedTrees | _JudgedTexts):
        raw.costs = several("cost")
    return raw


def _features(
    source: ListInput, number: int, name: str, candidates: Sequence[Any]
) -> list[dict[str, Any]] | None:
    """Features of all candidates; a string as value becomes part of the name."""
    features = [
        {} if candidate.features is UNSET else candidate.features for candidate in candidates
    ]
    if not any(features) and all(candidate.features is UNSET for candidate in candidates):
        return None
    for c, values in enumerate(features):
        if str not in set(map(type, values.values())):
            continue
        features[c] = {}
        for key, value in values.items():
            if type(value) is str:
                key, value = f"{key}={value}", 1.0
            if key in features[c]:
                raise source.error(number, f"every feature once in {where(name, c)}", key)
            features[c][key] = value
    return features


def _counts(source: ListInput, number: int, name: str, columns: list[Any]) -> np.ndarray | None:
    if not any(columns):
        return None
    if all(columns):
        counts = np.array(columns, np.int64).T
        good = counts[:, 0] <= counts[:, 1:].min(axis=1)
        if good.all():
            return np.ascontiguousarray(counts)
        c = int(np.argmin(good))
        excerpt = ", ".join(map(str, counts[c].tolist()))
    else:
        c, excerpt = 0, ", ".join("-" if not column else str(column[0]) for column in columns)
    expected = "matched, gold_brackets and test_brackets as counts that fit together"
    raise source.error(number, f"{expected} in {where(name, c)}", excerpt)


_BEYOND = re.compile(r"`float` [<>]= -?1000000000000000\.0|Number out of range")
_AT = re.compile(r" - at `\$\.?(.*)`$")
_CANDIDATE = re.compile(r"candidates\[([0-9]+)\]\.?")
_KINDS = {
    "`bool | float | str`": "a number or a string",
    "`float`": "a number",
    "`int | str`": "a string or a whole number",
    "`int`": "a whole number",
    "`str`": "a string",
    "`bool`": "true or false",
    "`array`": "a list",
    "`object`": "an object",
    "`null`": "null",
}


def _decoding_error(
    source: ListInput, number: int, line: bytes, position: int, error: Exception
) -> InputError:
    """The decoder's error in plain words, with the list and the candidate."""
    if not isinstance(error, ValidationError):
        return source.error(number, "a list as JSON, with finite numbers", str(error))
    message, path = str(error), ""
    if match := _AT.search(message):
        message, path = message[: match.start()], match[1]
    expected, _, actual = message.removeprefix("Expected ").partition(", got ")
    expected = _BEYOND.sub("`float` of at most 1e15 in size", expected).replace(" | null", "")
    expected = expected.replace("Object missing required field", "the field")
    expected = expected.replace(" of length >= 1", " that is not empty")
    for kind, name in _KINDS.items():
        expected, actual = expected.replace(kind, name), actual.replace(kind, name)
    candidate = None
    if match := _CANDIDATE.match(path):
        candidate, path = int(match[1]), path[match.end() :]
    path = path.replace("features[...]", "a feature")
    name_of_list = None
    with suppress(ValueError, AttributeError, RecursionError):
        name_of_list = msgspec_json.decode(line).get("id", position)
    of = where(str(name_of_list) if type(name_of_list) in (int, str) else None, candidate)
    return source.error(
        number, f"{expected}{f' as {path}' if path else ''} in {of}", actual or None
    )


HEADER = re.compile(rb"\s*([0-9]{1,9})\s+(\S.*?)\s*$")

Line = tuple[int, bytes]


def bracket_lists(
    source: ListInput, lines: Iterable[Line], gold: ListInput | None = None
) -> Iterator[RawList]:
    """Yields the lists of a file; ``source`` refuses bad ones.

    Parameters
    ----------
    source : ListInput
        The file, for messages.
    lines : iterable of (int, bytes)
        Its lines and their numbers.
    gold : ListInput, optional
        One gold tree to a line, in the order of the lists; blank lines do not count. Where a list
        has no readable first line, the order is lost, which is never skipped.
    """
    reader = _BllipReader(source, iter(lines))
    golds = iter(()) if gold is None else _golds(gold)
    while (header := reader.skip_blank()) is not None:
        reference = None if gold is None else _next(gold, golds, header)
        try:
            raw = reader.read(header)
            source.enter(raw.id, raw.line)
        except InputError as error:
            if gold is not None and HEADER.match(header[1]) is None:
                raise  # the number of gold trees to skip with it is unknown
            source.refuse(error)
            reader.skip_list()
            continue
        raw.references = None if reference is None else [reference]
        yield raw
    if gold is not None and (extra := next(golds, None)):
        raise gold.error(extra[0], f"as many trees as {source.name} has lists", extra[1])


class _BllipReader:
    def __init__(self, source: ListInput, lines: Iterator[Line]) -> None:
        self.source, self.lines = source, lines
        self.last: Line | None = None  # the line read last; None at the end of the file

    def skip_blank(self) -> Line | None:
        """The next line with something on it."""
        self.last = next((line for line in self.lines if line[1].strip()), None)
        return self.last

    def skip_list(self) -> None:
        """Go on behind the next blank line."""
        while self.last is not None and self.last[1].strip():
            self.last = next(self.lines, None)

    def read(self, header: Line) -> RawList:
        first, line = header
        self.source.check_family(first, line)
        match = HEADER.match(line)
        if match is None:
            excerpt = line[:60].decode("utf-8", "backslashreplace")
            raise self.source.error(first, "a number of candidates, a tab and an id", excerpt)
        size, name = int(match[1]), self.source.text(first, match[2])
        if size == 0:
            raise self.source.error(first, f"at least one candidate in {where(name)}", "0")
        texts: list[str] = []
        scores: list[float] = []
        line_numbers: list[int] = []
        for c in range(size):
            scores.append(self._score(self._line(name, c, size), name, c))
            number, tree = self._line(name, c, size)
            texts.append(self.source.text(number, tree).strip())
            line_numbers.append(number)
        self.last = None  # nothing of this list is left to skip
        return RawList(name, first, texts, scores, lines=line_numbers)

    def _line(self, name: str, c: int, size: int) -> Line:
        before = self.last
        self.last = next(self.lines, None)
        if self.last is not None and self.last[1].strip():
            return self.last
        excerpt = "the end of the file" if self.last is None else "a blank line"
        number = self.last[0] if self.last else before[0] if before else 0
        expected = f"a score and a tree for {where(name, c)}, which promises {size}"
        raise self.source.error(number, expected, excerpt)

    def _score(self, line: Line, name: str, c: int) -> float:
        try:
            score = float(line[1])
        except ValueError:
            score = float("nan")
        if not finite([score]):
            excerpt = line[1][:60].decode("utf-8", "backslashreplace")
            expected = f"{number_wanted(score)} as score in {where(name, c)}"
            raise self.source.error(line[0], expected, excerpt)
        return score


def _golds(gold: ListInput) -> Iterator[tuple[int, str]]:
    for number, line in gold.lines():
        if line.strip():
            yield number, gold.text(number, line)


def _next(gold: ListInput, golds: Iterator[tuple[int, str]], header: Line) -> str:
    tree = next(golds, None)
    if tree is None:
        raise gold.error(0, f"a tree for every list; there is none for that of line {header[0]}")
    return tree[1]


FORMATS = ("auto", "json", "ptb", "bllip", "moses")
TEXTS = ("json", "moses")  # formats whose candidates are texts
BLOCK_LISTS = 256
BLOCK_CANDIDATES = 20_000
BLOCK_TREES = 1_000  # over a thousand features each come of them
BLOCK_FEATURES = 100_000  # that are named, of all candidates

_LOOKED_AT = 10  # lines by which a format is known


def read_lists(
    path: str | os.PathLike[str],
    format: str = "auto",
    *,
    prefer: str = "auto",
    gold: str | os.PathLike[str] | None = None,
    refs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    metric: ListMetric | None = None,
    recount: bool = False,
    judged: bool = True,
    require_costs: bool = False,
    dedup: str = "first",
    symbols: Symbols | None = None,
    on_error: str = "raise",
    report: ReadReport | None = None,
    block_lists: int = BLOCK_LISTS,
) -> Iterator[CandidateLists]:
    """Yields lists of candidates in blocks; a block is free as soon as it is used.

    *json* has one object to a line: ``{"id", "candidates": [{"features": {"name": number}, "cost",
    "score", "text", "derivation"}]}``, all but ``candidates`` optional, and for the list
    ``reference`` or ``references``, and ``weight``; without ``id`` it is the number of the list in
    the file, from 0. A string as the value of a feature means the
    feature ``name=value``. *ptb* has one object to a line too: ``{"id", "tokens", "gold",
    "candidates": [{"tree", "logprob", "matched", "gold_brackets", "test_brackets"}]}``, ``tree``
    alone required. *bllip* is what that parser prints: the number of candidates and an id, then a
    log probability and a tree for each, on lines of their own. *moses* is what that decoder prints,
    ``ID ||| words ||| Name= numbers … ||| score``, a line for each candidate; see
    :func:`hopefear.data.moses.reader.moses_blocks`.

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
    metric : ListMetric, optional
        Scores the texts of ``json`` and ``moses`` against their references. One of the name
        ``cost`` takes the costs of the file, be there gold trees or not; one of texts is refused
        where lists hold trees, and ``parseval`` where they do not.
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
    >>> lists.ids, lists.texts, lists.costs.tolist(), lists.sparse.values.tolist()
    (['a'], ['hope', 'fear'], [0.0, 1.0], [-1.5, -1.0])
    """
    source = ListInput(path, on_error, report)
    check_policy(dedup)
    for name, word in (("format", format), ("prefer", prefer)):
        if word not in FORMATS:
            raise HopefearError(f"{name} must be one of {', '.join(FORMATS)}, not {word!r}")
    if block_lists < 1:
        raise HopefearError(f"block_lists={block_lists}: a block holds at least 1 list")
    if not judged:
        refs = metric = None

    def blocks() -> Iterator[CandidateLists]:
        form = format
        if form == "auto":
            form = _guessed(source)
            lined = {prefer, form} & {"bllip", "moses"}
            if prefer != "auto" and (not lined or prefer == form):
                form = prefer
        name = None if metric is None else metric.name
        check_metric(name, form not in TEXTS, source.name)
        if form == "moses":
            needed = judged and require_costs
            yield from _moses(source, refs, metric, needed, dedup)
            return
        if refs is not None:
            raise HopefearError(
                f"{source.name}: its lists hold their own references; files of references go with "
                "lists in the format moses"
            )
        if gold is not None and form != "bllip":
            raise HopefearError(
                f"{source.name}: its lists hold their own gold trees; a file of gold trees goes "
                "with lists in the format bllip"
            )
        lines, names = source.lines(), FeatureNames()
        strings = Symbols() if symbols is None else symbols
        if form == "bllip":
            golds = ListInput(gold) if judged and gold is not None else None
            raws = bracket_lists(source, lines, golds)
        else:
            raws = json_lists(source, lines, form == "ptb", judged)
        if judged:
            raws = same_kind(source, raws, form, name, require_costs)
        count = 0
        candidates = BLOCK_CANDIDATES if form == "json" else BLOCK_TREES
        for group in _groups(raws, block_lists, candidates):
            block: CandidateLists | None
            if form == "json":
                block = text_block(source, group, names, None if name == GIVEN else metric)
            else:
                block = tree_block(source, group, names, strings, recount, name == GIVEN)
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

    return blocks()


def _moses(
    source: Any, refs: Any, metric: Any, require_costs: Any, dedup: Any
) -> Iterator[CandidateLists]:
    """Lists of Moses, whose reader knows its lines itself."""
    from hopefear.data.moses.reader import moses_blocks
    from hopefear.data.moses.word_hashes import parallel_sentences

    files = None if refs is None else parallel_sentences(refs)
    texts = [] if files is None else list(zip(*(file.lines() for file in files), strict=True))
    judge = None if metric is None or metric.name == GIVEN else metric
    moses_report, before = ReadReport(messages=source.report.messages), source.report.skipped
    for block in moses_blocks(
        source.path,
        files,
        metric=None if files is None else judge,
        texts=True,
        dedup="none",
        absent="skip" if files is None else "raise",
        on_error="skip" if source.skip else "raise",
        report=moses_report,
        block_candidates=BLOCK_CANDIDATES,
    ):
        source.report.skipped = before + moses_report.skipped
        if files is not None:
            references = [list(texts[int(i)]) for i in block.ids]
            block = replace(block, references=references, n_references=len(files))
            block = block if judge is None else counted(block, judge)
        elif require_costs:
            raise _unjudged_moses(source, "references, from which lists of Moses get their costs")
        if require_costs and block.costs is None:
            expected = "a metric of texts, such as bleu, to make costs from the references"
            raise _unjudged_moses(source, expected)
        ready = deduplicated(block, dedup)
        source.report.rows += len(ready)
        yield ready


def _unjudged_moses(source: Any, expected: str) -> UnjudgedError:
    error = UnjudgedError(source.name, 0, expected, Problem("there is none"))
    error.format = "moses"
    return error


def _groups(raws: Iterator[RawList], max_lists: int, candidates: int) -> Iterator[list[RawList]]:
    group: list[RawList] = []
    size = features = 0
    for raw in raws:
        group.append(raw)
        size += len(raw.texts)
        features += sum(map(len, raw.features or ()))
        if len(group) == max_lists or size >= candidates or features >= BLOCK_FEATURES:
            yield group
            group, size, features = [], 0, 0
    if group:
        yield group


def _guessed(source: ListInput) -> str:
    """Guesses the format from the first lines."""
    format = ""
    for number, line in enumerate(source.path.look(), 1):
        text = line.strip()
        if not format and text:
            format = _family(source, number, text)
        if format == "json" and text and (trees := holds_trees(text)) is not None:
            format = "ptb" if trees else "json"
            break
        if format in ("bllip", "moses") or number == _LOOKED_AT:
            break
    return format or "json"


def _family(source: ListInput, number: int, line: bytes) -> str:
    if MOSES.match(line):
        return "moses"
    if line.startswith(b"{"):
        return "json"
    if HEADER.match(line):
        return "bllip"
    excerpt = line[:60].decode("utf-8", "backslashreplace")
    raise source.error(
        number,
        'lists: {"id": …, "candidates": […]}, a number of candidates and an id, or lines of Moses '
        "(ID ||| words ||| …)",
        excerpt,
    )
