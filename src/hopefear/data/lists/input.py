"""A file of lists while it is read: its lines, the ids seen, and what becomes of bad lists."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hopefear.data.files import MAX_LINE_BYTES, open_bytes
from hopefear.data.report import ReadReport
from hopefear.data.row_kernels import LARGEST
from hopefear.data.svmlight_blocks import check_on_error
from hopefear.errors import InputError

INF = float("inf")
BOM = b"\xef\xbb\xbf"
MOSES = re.compile(rb"\s*[0-9]+ *\|\|\| ")


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

    def place(self, candidate: int | None = None) -> int:
        """Line of a candidate, from 0, or of the list."""
        return self.line if candidate is None or self.lines is None else self.lines[candidate]

    def where(self, candidate: int | None = None) -> str:
        """The list or one of its candidates in the words of a message."""
        return where(self.id, candidate)


def where(name: str | None, candidate: int | None = None) -> str:
    """``candidate 2 of list 'x'``; candidates are counted from 0 here and from 1 there."""
    shown = "this list" if name is None else f"list {name[:60]!r}"
    return shown if candidate is None else f"candidate {candidate + 1} of {shown}"


def finite(values: Iterable[Any]) -> bool:
    """Whether all are finite, and none beyond what single precision can work with.

    >>> finite([1, -2.5]), finite([float("nan")]), finite([1e16]), finite([10**400]), finite([])
    (True, False, False, False, True)
    """
    return all(-LARGEST <= value <= LARGEST for value in values)  # NaN is not


def number_wanted(value: Any) -> str:
    """What to say should have stood in the place of ``value``.

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
        self.path, self.name = path, os.fspath(path)
        self.skip = on_error == "skip"
        self.report = ReadReport() if report is None else report
        self._seen: set[str] = set()

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """``(number, line)`` of every line, from 1, without its newline; a mark is dropped."""
        with open_bytes(self.path) as stream:
            number = 0
            while line := stream.readline(MAX_LINE_BYTES):
                number += 1
                if number == 1:
                    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
                        raise InputError(
                            self.name, 1, "UTF-8 text", "UTF-16 text; convert it first"
                        )
                    line = line.removeprefix(BOM)
                if len(line) == MAX_LINE_BYTES:
                    limit = f"lines of fewer than {MAX_LINE_BYTES:,} bytes"
                    raise InputError(self.name, number, limit, "more")
                yield number, line.rstrip(b"\r\n")

    def text(self, number: int, line: bytes) -> str:
        """A line as text, or InputError."""
        try:
            return line.decode()
        except UnicodeDecodeError:
            shown = line[:60].decode("utf-8", "backslashreplace")
            raise self.error(number, "UTF-8 text", shown) from None

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
        """Note an id; InputError where it was seen before, near or far."""
        if name in self._seen:
            raise self.error(
                line,
                "every id once, with all candidates of a list together",
                f"{name[:40]} again",
            )
        self._seen.add(name)

    def emptiness(self) -> InputError:
        """What to say of a file that gave no list."""
        skipped = self.report.skipped
        what = f"{skipped} bad lists, all skipped" if skipped else "an empty file"
        return self.error(0, "at least one list", what)
