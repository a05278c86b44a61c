"""What people read, on standard error, and the one JSON object, on standard output."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from hopefear.cli.guard import write_out
from hopefear.errors import HopefearError

_LISTED = 10  # bad lines
_COLUMNS = 10  # of a confusion on a screen
BEST_SCORES = {"precision": "max", "recall": "max", "F1": "max"}


class Console:
    """Standard error, unless quiet."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.terminal = not quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self.coloured = self.terminal and not os.environ.get("NO_COLOR")

    def say(self, text: str = "") -> None:
        """One or more lines."""
        if not self.quiet:
            with contextlib.suppress(OSError, ValueError):
                print(text, file=sys.stderr, flush=True)

    def pairs(self, values: Mapping[str, object]) -> None:
        """Names and values, one pair a line; None is left out."""
        rows = {k: v for k, v in values.items() if v is not None}
        width = max(map(len, rows), default=0)
        for name, value in rows.items():
            self.say(f"  {name:<{width}}  {value}")

    def table(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[object]],
        best: Mapping[str, str] | None = None,
        along: Container[str] = (),
        higher: bool = True,
    ) -> None:
        """A table; numbers stand right, and a terminal shows the best ones in bold.

        Parameters
        ----------
        columns, rows
            Heads and cells.
        best : mapping, optional
            From a column to ``"max"`` or ``"min"``: what is best in it.
        along : container of str
            Columns among which each row has a best number.
        higher : bool
            Whether that is the largest.
        """
        bold = best_cells(columns, rows, best or {})
        places = [j for j, title in enumerate(columns) if title in along]
        which = {str(i): "max" if higher else "min" for i in range(len(rows))}
        turned = [[row[j] for row in rows] for j in places]
        bold |= {(i, places[k]) for k, i in best_cells(list(which), turned, which)}
        self.say(text_table(columns, rows, bold if self.coloured else ()))


def best_cells(
    columns: Sequence[str], rows: Sequence[Sequence[object]], best: Mapping[str, str]
) -> frozenset[tuple[int, int]]:
    """Row and column of the best numbers, as they are shown; of a single row nothing is best.

    >>> rows = [["rda", "12.30", 1000], ["vrda", "9.10 %", 2000], ["none", None, "–"]]
    >>> sorted(best_cells(["learner", "error", "size"], rows, {"error": "min", "size": "max"}))
    [(1, 1), (1, 2)]
    """
    cells = set()
    for j, title in enumerate(columns):
        if title not in best:
            continue
        numbers = {i: n for i, row in enumerate(rows) if (n := _number(row[j])) is not None}
        if len(set(numbers.values())) > 1:
            limit = (max if best[title] == "max" else min)(numbers.values())
            cells |= {(i, j) for i, n in numbers.items() if n == limit}
    return frozenset(cells)


def text_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    bold: Container[tuple[int, int]] = (),
) -> str:
    """Lines of a table: text left, everything that begins with a digit or a sign right.

    Cells of ``bold``, by row and column, are written in bold for a terminal.

    >>> print(text_table(["learner", "error"], [["rda", "12.30"], ["vrda", "9.10"]]))
    learner  error
    rda      12.30
    vrda      9.10
    """
    cells = [list(map(str, columns)), *([_cell(c) for c in row] for row in rows)]
    widths = [max(len(row[j]) for row in cells) for j in range(len(columns))]
    right = [j > 0 and all(_numeric(row[j]) for row in cells[1:]) for j in range(len(columns))]
    return "\n".join(
        "  ".join(
            _placed(text, w, r, (i - 1, j) in bold)
            for j, (text, w, r) in enumerate(zip(row, widths, right, strict=True))
        ).rstrip()
        for i, row in enumerate(cells)
    )


def long_table(
    console: Console,
    heads: Sequence[str],
    rows: Sequence[Sequence[object]],
    most: int,
    what: str,
    best: Mapping[str, str] | None = None,
) -> None:
    """A table below a blank line, cut where it has more than ``most`` rows."""
    console.say()
    console.table(heads, rows[:most], best)
    if len(rows) > most:
        console.say(f"… and {len(rows) - most:,} more {what}; --json has them all")


def weights_table(
    console: Console, title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]]
) -> None:
    """Weights, which stand last in their rows, below a title; nothing where there are none."""
    if rows:
        console.say(f"\n{title}")
        cells = [[f"  {first}", *more, f"{weight:.4f}"] for first, *more, weight in rows]
        console.table([f"  {heads[0]}", *heads[1:], "weight"], cells)


def show_confusion(console: Console, scores: Mapping[str, Any]) -> None:
    """The same for people: the counts where a screen has room for them, else the mistakes."""
    matrix = scores["confusion_matrix"]
    if matrix is not None and 1 < len(matrix["labels"]) <= _COLUMNS:
        console.say("\nconfusion: rows are right, columns predicted")
        rows = zip(matrix["labels"], matrix["counts"], strict=True)
        console.table(["", *matrix["labels"]], [[name, *counts] for name, counts in rows])
    elif scores["confusion"]:
        console.say("\ncommonest mistakes")
        rows_ = [[m["gold"], m["predicted"], m["count"]] for m in scores["confusion"]]
        console.table(["gold", "predicted", "times"], rows_)


def tell_skipped(report: Any, console: Console) -> None:
    """List what was recognised, put right and left out."""
    for note in report.notes:
        console.say(note)
    if report.unsorted or report.repeated:
        console.say(
            f"{report.unsorted:,} lines with ids out of order, which were sorted; "
            f"{report.repeated:,} ids came again in a line, and their values were summed"
        )
    if report.qids:
        console.say(
            f"{report.qids:,} lines with a qid:, which groups rows of rankings; a classifier takes "
            "each row by itself, and qid: was left out"
        )
    if report.tabbed:
        console.say(
            f"{report.tabbed:,} lines have a tab behind what is no class; they are texts as a whole"
        )
    if report.skipped:
        lines = "line" if report.skipped == 1 else "lines"
        console.say(f"{report.skipped:,} bad {lines} skipped:")
        for message in report.messages[:_LISTED]:
            console.say(f"  {message}")
        if report.skipped > _LISTED:
            console.say(f"  … and {report.skipped - _LISTED:,} more")


def print_json(value: Mapping[str, Any]) -> None:
    """One JSON object on standard output, without NaN or infinity, which JSON lacks."""
    from hopefear.training.events import plain

    write_out(json.dumps(plain(value), ensure_ascii=False, allow_nan=False) + "\n")


def check_output(path: str, inputs: Iterable[str | None] = ()) -> None:
    """Find out before the work begins that its result cannot be written, or would destroy input."""
    if path == "-":
        return
    folder = os.path.dirname(os.path.realpath(path))
    for name in inputs:
        if name and os.path.realpath(name) == os.path.realpath(path):
            raise HopefearError(f"cannot write {path}: it is also an input; give another name")
    if os.path.isdir(path):
        raise HopefearError(f"cannot write {path}: it is a folder; give the name of a file")
    if not os.path.isdir(folder):
        raise HopefearError(f"cannot write {path}: there is no folder {folder}")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise HopefearError(f"cannot write {path}: permission denied")
    from hopefear.storage import check_writable

    check_writable(path)


def check_folder(path: str | None) -> None:
    """Find out before the work begins that a folder for results cannot be made or written to."""
    place = os.path.realpath(path) if path else None
    while place is not None and not os.path.lexists(place):
        place = os.path.dirname(place)
    if place is not None and not (os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK)):
        reason = "permission denied" if os.path.isdir(place) else f"{place} is no folder"
        raise HopefearError(f"cannot write to {path}: {reason}; give another folder")


def in_percent(scores: Mapping[str, Any], name: str) -> str:
    """A score, with the interval that it stays in where there is one.

    >>> in_percent({"f1": 87.0712, "f1_interval": [85.0, 88.5]}, "f1")
    '87.07 %  (95 % of resamples: 85.00 to 88.50)'
    """
    between = scores.get(f"{name}_interval")
    more = f"  (95 % of resamples: {between[0]:.2f} to {between[1]:.2f})" if between else ""
    return f"{scores[name]:.2f} %{more}"


def labels_in_words(names: Sequence[str]) -> str:
    """How many there are, and the first of them."""
    return f"{len(names)}: {', '.join(names[:8])}" + (", …" if len(names) > 8 else "")


def scored(name: str, value: float) -> str:
    """A score with the digits that matter: most are percentages, costs often below one.

    >>> scored("f1", 87.0712), scored("cost", 0.0123)
    ('87.07', '0.0123')
    """
    return f"{value:.4f}" if name == "cost" else f"{value:.2f}"


def _cell(value: object) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _placed(text: str, width: int, right: bool, bold: bool) -> str:
    blanks = " " * (width - len(text))
    text = f"\x1b[1m{text}\x1b[22m" if bold else text
    return blanks + text if right else text + blanks


def _number(value: object) -> float | None:
    """The number that a cell begins with."""
    match = re.match(r"[-+]?\d[\d,]*(\.\d+)?", "" if value is None else str(value))
    return None if match is None else float(match[0].replace(",", ""))


def _numeric(text: str) -> bool:
    return not text or text[0].isdigit() or (text[0] in "-+<>~" and text[1:2].isdigit())
