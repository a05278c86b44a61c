"""Files of tokens read by threads, a stretch of sentences each, as one reader would have done."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from hopefear.core.arrays import Texts
from hopefear.core.hashing import StringTable
from hopefear.core.threads import Team
from hopefear.data.files import ReadReport, count_lines
from hopefear.data.sequences import Column, ColumnTable, Sentences
from hopefear.data.sources import BOM
from hopefear.errors import HopefearError

if TYPE_CHECKING:
    from hopefear.data.token_files import Lines


class Ahead(NamedTuple):
    """Stretches of a text that was taken for one of this form, and what was said of them."""

    form: str
    stretches: list[Lines]
    parts: list[Any]


def while_read(
    pieces: Iterable[bytes],
    team: Team,
    lines_of: Callable[[bytes, ReadReport], Lines],
    form_of: Callable[[Lines], str],
    parse: Callable[[str, Lines], tuple[Sentences, bytes]],
) -> tuple[bytes, Ahead]:
    """A text that comes in pieces, and what ``parse`` says of it, by one thread as it comes.

    The caller's thread brings it, since there an interrupt ends the waiting for a pipe. When all
    has come, it parses the second half of what is left.
    """
    # Stretches that wait, from the left for who follows and from the right for who brings them; and
    # a word for each, or that no more will come.
    waiting: deque[tuple[str, Lines]] = deque()
    coming: SimpleQueue[bool] = SimpleQueue()
    tables: dict[int, StringTable] = {}

    def follow() -> list[Any]:
        done = []
        while coming.get():
            try:
                form, lines = waiting.popleft()
            except IndexError:  # the other took what was left
                break
            done.append((lines, _tried(parse, form, lines)))
        return done

    def bring() -> tuple[bytes, str, list[Any]]:
        texts: list[bytes] = []
        left: list[Lines] = []
        form = ""
        try:
            for text in _behind_blanks(pieces):
                lines = lines_of(text if texts else text.removeprefix(BOM), ReadReport())
                if not texts:
                    with suppress(HopefearError):  # there may be more to see in the whole
                        form = form_of(lines)
                texts.append(text)
                if form:
                    waiting.append((form, replace(lines, tables=tables)))
                    coming.put(True)
            with suppress(IndexError):
                for _ in range((len(waiting) + 1) // 2):
                    left.append(waiting.pop()[1])
        except BaseException:
            waiting.clear()
            raise
        finally:
            coming.put(False)
        more = []
        if left:
            rest = b"".join(lines.text for lines in reversed(left))
            last = replace(left[-1], text=rest, tables={})
            more.append((last, _tried(parse, form, last)))
        return b"".join(texts), form, more

    (text, form, more), done = team.run([bring, follow])
    stretches, parts = zip(*done, *more, strict=True) if done or more else ((), ())
    return text, Ahead(form, list(stretches), list(parts))


def _behind_blanks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Stretches of a text that comes in pieces, cut behind blank lines; they grow with it."""
    waiting: list[bytes] = []
    size = gone = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        cut = piece.rfind(b"\n\n") + 2
        if size >= gone // 16 and cut > 1:
            waiting[-1] = piece[:cut]
            yield b"".join(waiting)
            waiting = [piece[cut:]]
            gone += size - len(waiting[0])
            size = len(waiting[0])
    if size:
        yield b"".join(waiting)


def by_stretches(
    lines: Lines,
    form: str,
    team: Team,
    parse: Callable[[str, Lines], tuple[Sentences, bytes]],
    ahead: Ahead | None = None,
) -> tuple[Sentences, bytes]:
    """What ``parse`` says of the lines, by threads that read a stretch of sentences each.

    Only where there is nothing to say of them: what is odd in a stretch may be odd for what stands
    in another, and so the whole is then read by one.
    """
    if ahead is None or not ahead.parts or ahead.form != form:
        stretches = lines.stretches(team.size)
        if len(stretches) == 1:
            return parse(form, lines)
        parts = team.run([partial(_tried, parse, form, part) for part in stretches])
    else:
        _, stretches, parts = ahead
    if None in parts or any(part.report.skipped or part.report.notes for part in stretches):
        return parse(form, lines)
    if len({(separator, *part.columns) for part, separator in parts}) > 1:
        return parse(form, lines)
    lines.report.rows += sum(part.report.rows for part in stretches)
    return _joined([part for part, _ in parts], stretches, lines.before, team), parts[0][1]


def _tried(
    parse: Callable[[str, Lines], tuple[Sentences, bytes]], form: str, lines: Lines
) -> tuple[Sentences, bytes] | None:
    try:
        return parse(form, lines)
    except HopefearError:
        return None


def _joined(parts: list[Sentences], stretches: list[Lines], before: int, team: Team) -> Sentences:
    """One behind the other, with the numbers that one reader would have given."""
    first, tables = parts[0], stretches[0].tables
    sizes = [0, *accumulate(part.n_tokens for part in parts)]

    def column(c: int, name: str) -> Column:
        table, ids = tables[c], np.empty(sizes[-1], np.int32)
        for part, lines, (begin, end) in zip(parts, stretches, pairwise(sizes), strict=True):
            own = part.columns[name]
            if lines.tables is tables:
                ids[begin:end] = own.ids
            else:
                packed = cast(Texts, own.strings).packed
                new = table.intern_spans(packed.text, packed.offsets[:-1], packed.offsets[1:])
                np.take(new, own.ids, out=ids[begin:end], mode="clip")
        return Column(Texts(table.strings()), ids)

    def places() -> np.ndarray:
        begins = accumulate((count_lines(lines.buffer) for lines in stretches[:-1]), initial=before)
        return np.concatenate([p.lines + n for p, n in zip(parts, begins, strict=True)])  # type: ignore[operator]

    *columns, lines = team.run([*(partial(column, *c) for c in enumerate(first.columns)), places])
    assert isinstance(first.columns, ColumnTable)
    return Sentences(
        np.concatenate(
            [np.zeros(1, np.int64), *(p.starts[1:] + n for p, n in zip(parts, sizes, strict=False))]
        ),
        ColumnTable(dict(zip(first.columns, columns, strict=True)), first.columns.aliases),
        first.source,
        lines,
    )
