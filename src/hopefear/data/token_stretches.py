"""Files of tokens read by threads, a stretch of sentences each, as one reader would have done."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from hopefear.core.arrays import Texts
from hopefear.core.hashing import StringTable
from hopefear.core.threads import Team
from hopefear.data.files import count_lines
from hopefear.data.sequences import Column, ColumnTable, Sentences
from hopefear.errors import HopefearError

if TYPE_CHECKING:
    from hopefear.data.token_files import Lines


def by_stretches(
    lines: Lines, n_jobs: int, parse: Callable[[Lines], tuple[Sentences, bytes]]
) -> tuple[Sentences, bytes]:
    """What ``parse`` says of the lines, by threads that read a stretch of sentences each.

    Only where there is nothing to say of them: what is odd in a stretch may be odd for what stands
    in another, and so the whole is then read by one.
    """
    stretches = lines.stretches(n_jobs)
    if len(stretches) == 1:
        return parse(lines)
    with Team(len(stretches)) as team:
        try:
            parts = team.run(partial(parse, part) for part in stretches)
        except HopefearError:
            return parse(lines)
        kinds = {(separator, *part.columns) for part, separator in parts}
        if len(kinds) > 1 or any(part.report.skipped or part.report.notes for part in stretches):
            return parse(lines)
        lines.report.rows += sum(part.report.rows for part in stretches)
        before = accumulate((count_lines(p.buffer) for p in stretches[:-1]), initial=lines.before)
        return _joined([part for part, _ in parts], list(before), team), parts[0][1]


def _joined(parts: list[Sentences], before: list[int], team: Team) -> Sentences:
    """One behind the other, with the numbers that one reader would have given."""
    first = parts[0]
    sizes = [0, *accumulate(part.n_tokens for part in parts)]

    def column(name: str) -> Column:
        table, ids = StringTable(), np.empty(sizes[-1], np.int32)
        for part, (begin, end) in zip(parts, pairwise(sizes), strict=True):
            strings: Any = part.columns[name].strings
            new = table.intern_spans(
                strings.packed.text, strings.packed.offsets[:-1], strings.packed.offsets[1:]
            )
            np.take(new, part.columns[name].ids, out=ids[begin:end], mode="clip")
        return Column(Texts(table.strings()), ids)

    def places() -> np.ndarray:
        return np.concatenate([p.lines + n for p, n in zip(parts, before, strict=True)])  # type: ignore[operator]

    *columns, lines = team.run([*(partial(column, name) for name in first.columns), places])
    assert isinstance(first.columns, ColumnTable)
    return Sentences(
        np.concatenate(
            [np.zeros(1, np.int64), *(p.starts[1:] + n for p, n in zip(parts, sizes, strict=False))]
        ),
        ColumnTable(dict(zip(first.columns, columns, strict=True)), first.columns.aliases),
        first.source,
        lines,
    )
