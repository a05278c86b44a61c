"""A file of lists while it is read: its lines, the ids seen, bad lists, blocks of arrays.

Costs come from the file, from references or from brackets, the same way for all lists of a file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.data.files import ReadReport, check_on_error
from hopefear.data.lists.candidates import CandidateLists, NamedEntries
from hopefear.data.parse_numbers import LARGEST
from hopefear.data.sources import BOM, MAX_LINE_BYTES, Source, open_bytes, utf8_wanted
from hopefear.errors import HopefearError, InputError, Problem
from hopefear.metrics.base import ListMetric

INF = float("inf")
MOSES = re.compile(rb"\s*[0-9]+ *\|\|\|")


@dataclass(slots=True)
class RawList:
    """One list as a file has it, checked on its own; everything optional may be None."""

    id: str
    line: int
    texts: list[str]
    scores: Sequence[float]
    costs: Sequence[float] | None = None
    weight: float | None = None
    references: list[str] | None = None
    features: list[dict[str, Any]] | None = None
    tokens: list[str] | None = None
    counts: Any = None  # int64[candidates, 3]
    lines: list[int] | None = None  # of the candidates
    unspoken: int | None = None  # the first candidate without a text
    derivations: list[str | None] | None = None

    def line_of(self, candidate: int | None = None) -> int:
        """Line of a candidate, from 0, or of the list."""
        return self.line if candidate is None or self.lines is None else self.lines[candidate]

    def where(self, candidate: int | None = None) -> str:
        """Names the list or one of its candidates in a message."""
        return where(self.id, candidate)


def where(name: str | None, candidate: int | None = None) -> str:
    """``candidate 2 of list 'x'``; candidates are counted from 0 here and from 1 there."""
    label = "this list" if name is None else f"list {name[:60]!r}"
    return label if candidate is None else f"candidate {candidate + 1} of {label}"


def finite(values: Iterable[Any]) -> bool:
    """Returns whether all are finite, and none beyond what single precision can work with.

    >>> finite([1, -2.5]), finite([float("nan")]), finite([1e16]), finite([10**400]), finite([])
    (True, False, False, False, True)
    """
    return all(-LARGEST <= value <= LARGEST for value in values)  # NaN is not


def number_wanted(value: Any) -> str:
    """Returns what should have stood in the place of ``value``.

    >>> number_wanted("x"), number_wanted(1e39)
    ('a finite number', 'a number of at most 1e15 in size')
    """
    large = isinstance(value, int | float) and abs(value) > LARGEST and value not in (INF, -INF)
    return "a number of at most 1e15 in size" if large else "a finite number"


class ListInput:
    """Lines of a file of lists, and what was wrong with them.

    Parameters
    ----------
    path : str or path
        Plain or compressed UTF-8 file; ``-`` is standard input.
    on_error : {"raise", "skip"}
        Stop at the first bad list, or leave bad lists out and count them.
    report : ReadReport
        Where lists are counted.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        on_error: str = "raise",
        report: ReadReport | None = None,
    ) -> None:
        check_on_error(on_error)
        self.path, self.name = Source(path), os.fspath(path)
        self.skip = on_error == "skip"
        self.report = ReadReport() if report is None else report
        self._ids: set[str] = set()

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """``(number, line)`` of every line, from 1, without its newline; a mark is dropped."""
        with open_bytes(self.path) as stream:
            number = 0
            while line := stream.readline(MAX_LINE_BYTES):
                number += 1
                if number == 1:
                    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
                        raise InputError(
                            self.name,
                            1,
                            "UTF-8 text",
                            Problem("the file is UTF-16: say --encoding utf-16"),
                        )
                    line = line.removeprefix(BOM)
                if len(line) == MAX_LINE_BYTES:
                    limit = f"lines of fewer than {MAX_LINE_BYTES:,} bytes"
                    raise InputError(self.name, number, limit, Problem("this one is longer"))
                yield number, line.rstrip(b"\r\n")

    def text(self, number: int, line: bytes) -> str:
        """Returns a line as text, or raises InputError."""
        try:
            return line.decode()
        except UnicodeDecodeError:
            excerpt = line[:60].decode("utf-8", "backslashreplace")
            raise self.error(number, utf8_wanted(line), excerpt) from None

    def check_family(self, number: int, line: bytes) -> None:
        """InputError where a line is one of a Moses N-best list."""
        if MOSES.match(line):
            raise self.error(
                number,
                "lists as BLLIP's parser prints them (N-best lists of Moses are in the format "
                "moses, and auto knows them)",
                line[:60].decode("utf-8", "backslashreplace"),
            )

    def error(self, line: int, expected: str, found: str | None = None) -> InputError:
        return InputError(self.name, line, expected, found)

    def refuse(self, error: InputError) -> None:
        """Raise, or count the list as left out."""
        if not self.skip:
            raise error
        self.report.skip(str(error))

    def enter(self, name: str, line: int) -> None:
        """Notes an id; InputError where it was seen before."""
        if name in self._ids:
            raise self.error(
                line,
                "every id once, with all candidates of a list together",
                Problem(f"{name[:40]!r} comes again"),
            )
        self._ids.add(name)

    def emptiness(self) -> InputError:
        """Returns the error for a file that has no list."""
        skipped = self.report.skipped
        problem = (
            f"all {skipped} lists are bad and were skipped" if skipped else "the file is empty"
        )
        return self.error(0, "at least one list", Problem(problem))


GIVEN, BRACKETS = "cost", "parseval"  # metrics that are not counted from texts

_WORDS = {
    "": "no costs",
    "costs": "costs",
    "references": "a reference, and texts,",
    "brackets": "a gold tree or counts of brackets",
}


class UnjudgedError(InputError):
    """A list without what its costs are made of, where they are needed.

    Attributes
    ----------
    format : str
        Format of the list; empty where it was made in memory.
    """

    format = ""


def check_metric(metric: str | None, trees: bool, source: str) -> None:
    """Refuse a metric of texts for trees, and one of trees for texts."""
    if metric is None or metric == GIVEN or (metric == BRACKETS) == trees:
        return
    if trees:
        raise HopefearError(
            f"{source}: the metric {metric} is for texts, and these candidates are trees; take "
            "parseval, F1 of brackets, or leave the metric out"
        )
    raise HopefearError(
        f"{source}: the metric parseval is for trees, and these candidates are texts; take bleu, "
        "chrf, ter, wer, edit or f1 against references, or the costs of the file"
    )


def same_kind(
    source: ListInput, raws: Iterator[RawList], format: str, metric: str | None, required: bool
) -> Iterator[RawList]:
    """Yields the lists whose costs have the source of the first list's; others are refused.

    Parameters
    ----------
    source : ListInput
        The file.
    raws : iterator of RawList
        Its lists.
    format : str
        How they are written.
    metric : str, optional
        Name of the metric that is to make the costs.
    required : bool
        A list without costs is refused too.
    """
    first_kind: str | None = None
    for raw in raws:
        kind = kind_of(raw, format != "json", metric)
        error: InputError
        if required and not _will_do(kind, format, metric):
            error = _unjudged(source, raw, format, metric, first_kind)
        elif kind == (first_kind := kind if first_kind is None else first_kind):
            yield raw
            continue
        else:
            expected = f"{_WORDS[first_kind]} in {raw.where()}, as in the lists before it"
            error = source.error(raw.line, expected, _WORDS[kind])
        source.refuse(error)


def kind_of(raw: RawList, trees: bool, metric: str | None) -> str:
    """Returns the source of costs: ``brackets``, ``references``, ``costs`` or none."""
    if trees:
        if metric != GIVEN and (raw.counts is not None or raw.references is not None):
            return "brackets"
        if metric == BRACKETS:
            return ""
    elif metric not in (None, GIVEN) and raw.references is not None and raw.unspoken is None:
        return "references"
    return "" if raw.costs is None else "costs"


def _will_do(kind: str, format: str, metric: str | None) -> bool:
    counted = format == "json" and metric not in (None, GIVEN)
    return kind == "references" if counted else bool(kind)


def _unjudged(
    source: ListInput, raw: RawList, format: str, metric: str | None, first_kind: str | None
) -> UnjudgedError:
    location, reason = raw.where(), "which training and evaluation need"
    if format == "json" and metric not in (None, GIVEN):
        expected, reason = "a reference or references", f"which {metric} is counted against"
        if raw.references is not None:
            expected, reason = "a text", f"of which {metric} is counted"
            location = raw.where(raw.unspoken)
    elif format == "json" or metric == GIVEN or first_kind == "costs":
        expected = "costs"
    elif metric == BRACKETS or first_kind == "brackets" or format == "bllip":
        expected = "a gold tree" if format == "bllip" else _WORDS["brackets"]
    else:
        expected = "a gold tree, counts of brackets or costs"
    expected = f"{expected} in {location}, {reason}"
    error = UnjudgedError(source.name, raw.line, expected, Problem("there is none"))
    error.format = format
    return error


def counted(lists: CandidateLists, metric: ListMetric) -> CandidateLists:
    """Returns the lists with statistics of ``metric`` and costs; they have texts and references.

    Statistics that the lists have already are taken as they are.
    """
    counts = lists.counts if lists.metric == metric.name else None
    if counts is None:
        numbers = np.repeat(np.arange(len(lists)), np.diff(lists.starts)).tolist()
        references = lists.references or ()
        counts = metric.statistics([references[i] for i in numbers], lists.texts)
    counts = frozen(np.ascontiguousarray(counts))
    costs = frozen(np.asarray(metric.costs(counts), np.float64))
    return replace(lists, counts=counts, costs=costs, metric=metric.name)


class FeatureNames(dict[str, int]):
    """Numbers for the names of features, in order of first appearance.

    Examples
    --------
    >>> names = FeatureNames()
    >>> names["length"], names["lm"], names["length"], names.order
    (0, 1, 0, ['length', 'lm'])
    """

    def __init__(self) -> None:
        super().__init__()
        self.order: list[str] = []

    def __missing__(self, name: str) -> int:
        number = self[name] = len(self.order)
        self.order.append(name)
        return number


def text_block(
    source: ListInput, raws: Sequence[RawList], names: FeatureNames, metric: ListMetric | None
) -> CandidateLists:
    """Builds a block of lists of texts.

    Parameters
    ----------
    source : ListInput
        The file.
    raws : sequence of RawList
        Lists that all have references, or all have costs, or none.
    names : Names
        Numbers for names of features; new ones are added.
    metric : ListMetric, optional
        Makes costs and counts where lists have references.
    """
    lists = CandidateLists(**common_arrays(source, raws, names))
    if metric is not None and lists.references is not None:
        return counted(lists, metric)
    return replace(lists, costs=given_costs(raws))


def common_arrays(
    source: ListInput, raws: Sequence[RawList], names: FeatureNames
) -> dict[str, Any]:
    """Returns the fields that lists of every kind have."""
    starts = np.zeros(len(raws) + 1, np.int64)
    np.cumsum([len(raw.texts) for raw in raws], out=starts[1:])
    weights = None
    if any(raw.weight is not None for raw in raws):
        weights = numbers(1.0 if raw.weight is None else raw.weight for raw in raws)
    references = None
    if all(raw.references is not None for raw in raws):
        references = [raw.references or [] for raw in raws]
    several = {len(references_of_list) for references_of_list in references or [[""]]}
    return {
        "ids": [raw.id for raw in raws],
        "starts": frozen(starts),
        "texts": list(chain.from_iterable(raw.texts for raw in raws)),
        "scores": numbers(chain.from_iterable(raw.scores for raw in raws)),
        "references": references,
        "n_references": several.pop() if len(several) == 1 else -1,
        "sparse": _named_entries(raws, names),
        "weights": weights,
        "derivations": _derivations(raws),
        "source": source.name,
        "lines": frozen(np.array([raw.line for raw in raws], np.int64)),
    }


def given_costs(raws: Sequence[RawList]) -> np.ndarray | None:
    """Returns the costs of the file, where all lists have them."""
    if any(raw.costs is None for raw in raws):
        return None
    return numbers(chain.from_iterable(raw.costs or () for raw in raws))


def numbers(values: Iterable[float]) -> np.ndarray:
    """Read-only float64 array of an iterable."""
    return frozen(np.fromiter(values, np.float64))


def _derivations(raws: Sequence[RawList]) -> list[str | None] | None:
    if all(raw.derivations is None for raw in raws):
        return None
    return list(chain.from_iterable(raw.derivations or [None] * len(raw.texts) for raw in raws))


def _named_entries(raws: Sequence[RawList], names: FeatureNames) -> NamedEntries | None:
    if all(raw.features is None for raw in raws):
        return None
    sizes = [0]
    ids: list[int] = []
    values: list[float] = []
    for raw in raws:
        for features in raw.features or [{}] * len(raw.texts):
            sizes.append(len(features))
            ids.extend(map(names.__getitem__, features))
            values.extend(features.values())
    return NamedEntries(
        names.order,
        frozen(np.cumsum(sizes)),
        frozen(np.array(ids, np.int32)),
        frozen(np.array(values, np.float64)),
    )
