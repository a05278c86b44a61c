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

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from hopefear.data.files import ReadReport
from hopefear.data.lists.candidates import CandidateLists, check_policy, deduplicated
from hopefear.data.lists.input import (
    GIVEN,
    MOSES,
    ListInput,
    Names,
    RawList,
    UnjudgedError,
    check_metric,
    finite,
    number_wanted,
    same_kind,
    text_block,
    where,
)
from hopefear.data.lists.trees import Symbols, tree_block
from hopefear.errors import HopefearError, InputError
from hopefear.metrics.base import ListMetric

COUNTS = ("matched", "gold_brackets", "test_brackets")

_MISSING: Any = object()
_NUMBERS = {int, float}
_VALUES = {int, float, bool}


def json_lists(
    source: ListInput, lines: Iterable[tuple[int, bytes]], trees: bool, judged: bool = True
) -> Iterator[RawList]:
    """Lists of a file, bad ones refused by ``source``.

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
    spoken = (line for line in lines if line[1].strip())
    for position, (number, line) in enumerate(spoken):
        try:
            record = _Record(source, number, line, position)
            raw = record.tree_list(judged) if trees else record.text_list(judged)
            source.enter(raw.id, number)
        except InputError as error:
            source.refuse(error)
            continue
        yield raw


def holds_trees(line: bytes) -> bool | None:
    """Whether a line is a list of trees; None where it is no list at all."""
    try:
        first = json.loads(line)["candidates"][0]
        return "tree" in first if isinstance(first, dict) else None
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


class _Record:
    """One line, and the checks of what it should hold."""

    def __init__(self, source: ListInput, number: int, line: bytes, position: int) -> None:
        self.source, self.number, self.position = source, number, position
        self.id: str | None = None
        text = source.text(number, line)
        self.record = self._parsed(text)
        self.id = self._name()
        self.candidates = self._candidates()
        self._check_names(text)

    def tree_list(self, judged: bool) -> RawList:
        """The list of a parser: ``tokens``, ``gold``, ``candidates`` of ``tree``, ``logprob``."""
        raw = self._common(self._texts("tree", required=True), "logprob")
        raw.tokens = self._strings("tokens")
        if judged:
            gold = self._optional(self.record, "gold", str, "a bracketed tree as gold")
            raw.references = None if gold is None else [gold]
            raw.counts = self._counts()
            raw.costs = self._numbers("cost")
        return raw

    def text_list(self, judged: bool) -> RawList:
        """Any list: ``reference`` or ``references``, ``candidates`` of ``text``, ``cost`` …"""
        raw = self._common(self._texts("text", required=False), "score")
        if judged:
            speechless = (c for c, one in enumerate(self.candidates) if "text" not in one)
            raw.unspoken = next(speechless, None)
            reference = self._optional(self.record, "reference", str, "a string as reference")
            raw.references = [reference] if reference is not None else self._strings("references")
            if raw.references == []:
                raise self._bad("at least one reference", "[]")
            raw.costs = self._numbers("cost")
        return raw

    def _common(self, texts: list[str], score: str) -> RawList:
        scores = self._numbers(score)
        if scores is None and score != "score":
            scores = self._numbers("score")
        if scores is None:
            scores = [0.0] * len(texts)
        assert self.id is not None
        features = None
        if any("features" in candidate for candidate in self.candidates):
            features = self._all_features()
        return RawList(
            self.id,
            self.number,
            texts,
            scores,
            weight=self._weight(),
            features=features,
            derivations=self._derivations(),
        )

    def _bad(
        self, expected: str, found: Any = _MISSING, candidate: int | None = None
    ) -> HopefearError:
        shown = None if found is _MISSING else found if type(found) is str else _shown(found)
        place = f"{expected} in {where(self.id, candidate)}"
        return self.source.error(self.number, place, shown)

    def _parsed(self, text: str) -> dict[str, Any]:
        try:
            record = json.loads(text)
        except json.JSONDecodeError as error:
            at = text[error.pos : error.pos + 40] or "the end of the line"
            raise self._bad(f"JSON ({error.msg}, column {error.colno})", at) from None
        except (ValueError, RecursionError) as error:
            raise self._bad("JSON of a modest depth and with modest numbers", str(error)) from None
        if not isinstance(record, dict):
            raise self._bad('an object {"id": …, "candidates": […]}', text[:60])
        return record

    def _check_names(self, text: str) -> None:
        """Refuse an object with a name twice, of which a parser keeps the last."""
        names = len(self.record)
        for candidate in self.candidates:
            names += len(candidate)
            if type(features := candidate.get("features")) is dict:
                names += len(features)
        # Counting tells most lists to be good; the rest, some with colons in texts, are read again
        # more slowly.
        if text.count('":') + text.count('" :') != names:
            try:
                json.loads(text, object_pairs_hook=_named_once)
            except _TwiceError as error:
                raise self._bad("every name once in an object", str(error)) from None

    def _name(self) -> str:
        name = self.record.get("id", self.position)
        if type(name) is int:
            return str(name)
        if type(name) is not str or not name:
            raise self._bad("an id, a string or a whole number,", _given(name))
        return name

    def _candidates(self) -> list[dict[str, Any]]:
        candidates = self.record.get("candidates", _MISSING)
        if type(candidates) is not list:
            raise self._bad("a list of candidates", _given(candidates))
        if not candidates:
            raise self._bad("at least one candidate", "[]")
        for c, candidate in enumerate(candidates):
            if type(candidate) is not dict:
                raise self._bad("an object", candidate, c)
        return candidates

    def _texts(self, key: str, required: bool) -> list[str]:
        texts = [candidate.get(key, _MISSING) for candidate in self.candidates]
        if set(map(type, texts)) == {str}:
            return texts
        for c, text in enumerate(texts):
            if text is _MISSING and not required:
                texts[c] = ""
            elif type(text) is not str:
                raise self._bad(f"a string as {key}", _given(text), c)
        return texts

    def _numbers(self, key: str) -> list[float] | None:
        """Finite numbers of all candidates, None where none has one."""
        values = [candidate.get(key, _MISSING) for candidate in self.candidates]
        if set(map(type, values)) <= _NUMBERS and finite(values):
            return values
        if all(value is _MISSING for value in values):
            return None
        for c, value in enumerate(values):
            if value is _MISSING:
                raise self._bad(f"a {key}, as other candidates have,", "nothing", c)
            if type(value) not in _NUMBERS or not finite([value]):
                raise self._bad(f"{number_wanted(value)} as {key}", value, c)
        raise AssertionError("numbers that are bad together are bad one by one")

    def _counts(self) -> np.ndarray | None:
        rows = [[candidate.get(key, _MISSING) for key in COUNTS] for candidate in self.candidates]
        if all(value is _MISSING for row in rows for value in row):
            return None
        for c, row in enumerate(rows):
            if set(map(type, row)) != {int} or not 0 <= row[0] <= min(row[1:]) <= max(row) < 2**31:
                shown = ", ".join("nothing" if v is _MISSING else _shown(v) for v in row)
                raise self._bad(
                    "matched, gold_brackets and test_brackets as counts that fit together, in all "
                    "candidates or in none,",
                    shown,
                    c,
                )
        return np.array(rows, np.int64)

    def _weight(self) -> float | None:
        weight = self.record.get("weight", _MISSING)
        if weight is _MISSING:
            return None
        if type(weight) not in _NUMBERS or not finite([weight]) or weight < 0.0:
            raise self._bad("a weight of 0 or more (and of at most 1e15)", weight)
        return float(weight)

    def _derivations(self) -> list[str | None] | None:
        if not any("derivation" in candidate for candidate in self.candidates):
            return None
        return [
            self._optional(candidate, "derivation", str, "a string as derivation", c)
            for c, candidate in enumerate(self.candidates)
        ]

    def _all_features(self) -> list[dict[str, Any]]:
        features = [candidate.get("features", {}) for candidate in self.candidates]
        if set(map(type, features)) == {dict}:
            values = list(chain.from_iterable(map(dict.values, features)))
            # One look at numbers without fault is quicker than one at each candidate.
            if set(map(type, values)) <= _VALUES and finite(values):
                return features
        return [self._features(c) for c in range(len(features))]

    def _features(self, c: int) -> dict[str, Any]:
        features = self.candidates[c].get("features", _MISSING)
        if features is _MISSING:
            return {}
        if type(features) is not dict:
            raise self._bad('features as an object {"name": number}', features, c)
        kinds = set(map(type, features.values()))
        if kinds <= _VALUES and finite(features.values()):
            return features
        named: dict[str, Any] = {}
        for name, value in features.items():
            if type(value) is str:
                name, value = f"{name}={value}", 1.0
            elif type(value) not in _VALUES or not finite([value]):
                expected = f"{number_wanted(value)} or a string as feature {name[:40]!r}"
                raise self._bad(expected, value, c)
            if name in named:
                raise self._bad("every feature once", name, c)
            named[name] = value
        return named

    def _strings(self, key: str) -> list[str] | None:
        strings = self._optional(self.record, key, list, f"a list of strings as {key}")
        if strings is not None and not set(map(type, strings)) <= {str}:
            raise self._bad(f"a list of strings as {key}", strings)
        for text in strings or ():
            if not text.isascii() and text.encode("utf-8", "replace").decode() != text:
                raise self._bad(f"Unicode text as {key}", ascii(text))
        return strings

    def _optional(
        self, table: dict[str, Any], key: str, kind: type, expected: str, c: int | None = None
    ) -> Any:
        value = table.get(key)
        if value is not None and type(value) is not kind:
            raise self._bad(expected, value, c)
        return value


class _TwiceError(Exception):
    """A name that an object has twice."""


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [name for name, _ in pairs]
        raise _TwiceError(next(name for k, name in enumerate(names) if name in names[:k]))
    return mapping


def _given(value: Any) -> Any:
    return "nothing" if value is _MISSING else value


def _shown(value: Any) -> str:
    return json.dumps(value)[:80]


HEADER = re.compile(rb"\s*([0-9]{1,9})\s+(\S.*?)\s*$")

Line = tuple[int, bytes]


def bracket_lists(
    source: ListInput, lines: Iterable[Line], gold: ListInput | None = None
) -> Iterator[RawList]:
    """Lists of a file, bad ones refused by ``source``.

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
    reader = _Reader(source, iter(lines))
    golds = iter(()) if gold is None else _golds(gold)
    while (header := reader.skip_blank()) is not None:
        reference = None if gold is None else _next(gold, golds, header)
        try:
            raw = reader.read(header)
            source.enter(raw.id, raw.line)
        except InputError as error:
            if gold is not None and HEADER.match(header[1]) is None:
                raise  # nobody knows how many gold trees to leave out with it
            source.refuse(error)
            reader.skip_list()
            continue
        raw.references = None if reference is None else [reference]
        yield raw
    if gold is not None and (left := next(golds, None)):
        raise gold.error(left[0], f"as many trees as {source.name} has lists", left[1])


class _Reader:
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
            shown = line[:60].decode("utf-8", "backslashreplace")
            raise self.source.error(first, "a number of candidates, a tab and an id", shown)
        size, name = int(match[1]), self.source.text(first, match[2])
        if size == 0:
            raise self.source.error(first, f"at least one candidate in {where(name)}", "0")
        texts: list[str] = []
        scores: list[float] = []
        places: list[int] = []
        for c in range(size):
            scores.append(self._score(self._line(name, c, size), name, c))
            number, tree = self._line(name, c, size)
            texts.append(self.source.text(number, tree).strip())
            places.append(number)
        self.last = None  # nothing of this list is left to skip
        return RawList(name, first, texts, scores, lines=places)

    def _line(self, name: str, c: int, size: int) -> Line:
        before = self.last
        self.last = next(self.lines, None)
        if self.last is not None and self.last[1].strip():
            return self.last
        shown = "the end of the file" if self.last is None else "a blank line"
        number = self.last[0] if self.last else before[0] if before else 0
        expected = f"a score and a tree for {where(name, c)}, which promises {size}"
        raise self.source.error(number, expected, shown)

    def _score(self, line: Line, name: str, c: int) -> float:
        try:
            score = float(line[1])
        except ValueError:
            score = float("nan")
        if not finite([score]):
            shown = line[1][:60].decode("utf-8", "backslashreplace")
            expected = f"{number_wanted(score)} as score in {where(name, c)}"
            raise self.source.error(line[0], expected, shown)
        return score


def _golds(gold: ListInput) -> Iterator[tuple[int, str]]:
    for number, line in gold.lines():
        if line.strip():
            yield number, gold.text(number, line)


def _next(gold: ListInput, golds: Iterator[tuple[int, str]], header: Line) -> str:
    found = next(golds, None)
    if found is None:
        raise gold.error(0, f"a tree for every list; there is none for that of line {header[0]}")
    return found[1]


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
    """Lists of candidates in blocks; a block is free as soon as it is used.

    *json* has one object to a line: ``{"id", "candidates": [{"features": {"name": number}, "cost",
    "score", "text", "derivation"}]}``, all but ``candidates`` optional, and for the list
    ``reference`` or ``references``, and ``weight``; without ``id`` it is the number of the list in
    the file, from 0. A string as the value of a feature means the
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
    >>> lists.ids, lists.texts, lists.costs.tolist(), lists.named.values.tolist()
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
    what = format, prefer, gold, refs, metric, recount, judged, require_costs
    return _blocks(source, *what, dedup, symbols, block_lists)


def _blocks(
    source: Any,
    format: Any,
    prefer: Any,
    gold: Any,
    refs: Any,
    metric: Any,
    recount: Any,
    judged: Any,
    require_costs: Any,
    dedup: Any,
    symbols: Any,
    block_lists: Any,
) -> Iterator[CandidateLists]:
    if format == "auto":
        format = _guessed(source)
        lined = {prefer, format} & {"bllip", "moses"}
        if prefer != "auto" and (not lined or prefer == format):
            format = prefer
    name = None if metric is None else metric.name
    check_metric(name, format not in TEXTS, source.name)
    if format == "moses":
        needed = judged and require_costs
        yield from _moses(source, refs, metric, needed, dedup)
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
    lines, names = source.lines(), Names()
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


def _moses(
    source: Any, refs: Any, metric: Any, require_costs: Any, dedup: Any
) -> Iterator[CandidateLists]:
    """Lists of Moses, whose reader knows its lines itself."""
    from hopefear.data.moses.candidates import moses_candidates

    own, before = ReadReport(messages=source.report.messages), source.report.skipped
    judge = None if metric is None or metric.name == GIVEN else metric
    for block in moses_candidates(
        source.path,
        refs,
        metric=judge,
        on_error="skip" if source.skip else "raise",
        report=own,
        block_candidates=BLOCK_CANDIDATES,
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
    size = features = 0
    for raw in raws:
        group.append(raw)
        size += len(raw.texts)
        features += sum(map(len, raw.features or ()))
        if len(group) == most or size >= candidates or features >= BLOCK_FEATURES:
            yield group
            group, size, features = [], 0, 0
    if group:
        yield group


def _guessed(source: ListInput) -> str:
    """The format that the first lines tell."""
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
    shown = line[:60].decode("utf-8", "backslashreplace")
    raise source.error(
        number,
        'lists: {"id": …, "candidates": […]}, a number of candidates and an id, or lines of Moses '
        "(ID ||| words ||| …)",
        shown,
    )
