"""Lists of trees as BLLIP's parser prints them.

::

    2<TAB>wsj_0001.0
    -105.2
    (S1 (S …))
    -107.9
    (S1 (S …))

The first line says how many candidates follow; a blank line ends the list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from hopefear.data.lists.input import ListInput, RawList, finite, number_wanted, where
from hopefear.errors import InputError

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
        found = "the end of the file" if self.last is None else "a blank line"
        number = self.last[0] if self.last else before[0] if before else 0
        expected = f"a score and a tree for {where(name, c)}, which promises {size}"
        raise self.source.error(number, expected, found)

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
