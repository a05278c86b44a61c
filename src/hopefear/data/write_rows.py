"""Files of examples written back as they came, with columns or fields more."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hopefear.data.examples import Examples
from hopefear.errors import HopefearError


class RowWriter:
    """Writes the rows of a file in order, each with its predictions.

    Parameters
    ----------
    file : Examples
        The file, opened with ``rows``.
    rows : list of bytes
        What its reader keeps there: rows that were read and not written yet.

    Examples
    --------
    >>> writer = RowWriter(Examples("a.csv", "csv", delimiter=","), [b"text,label\\n", b"a,x\\n"])
    >>> "".join(writer.with_columns(["label"], [["y"]]))
    'text,label,predicted_label\\na,x,y\\n'
    """

    def __init__(self, file: Examples, rows: list[bytes]) -> None:
        self.file, self.rows = file, rows
        self._names: list[str] | None = None  # of the columns or fields of the file

    def with_columns(
        self, names: Sequence[str], cells: Sequence[Sequence[object]]
    ) -> Iterator[str]:
        """Gives the next rows with a cell more for each name; a header before the first of CSV."""
        if self._names is None:
            header, self._names = None, []
            if self.file.format == "csv":
                header = self._take(1)[0]
                self._names = next(csv.reader([header], delimiter=self.file.delimiter))
                yield self._line(header, [self._free(name) for name in names])
        for row, values in zip(self._take(len(cells)), cells, strict=True):
            yield self._line(row, values)

    def with_fields(self, fields: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """Gives objects with these fields: of a file of objects its own, with fields more."""
        if self.file.format != "json":
            yield from (
                json.dumps(fields_of_row, ensure_ascii=False) + "\n" for fields_of_row in fields
            )
            return
        for row, added in zip(self._take(len(fields)), fields, strict=True):
            existing = json.loads(row)
            if self._names is None:
                self._names = list(existing)
            renamed = {self._free(name): value for name, value in added.items()}
            yield json.dumps(existing | renamed, ensure_ascii=False) + "\n"

    def _take(self, n: int) -> list[str]:
        if len(self.rows) < n:
            raise HopefearError(f"{self.file.path}: its rows cannot be told apart; mend bad lines")
        lines = [row.decode() for row in self.rows[:n]]
        del self.rows[:n]
        return lines

    def _free(self, name: str) -> str:
        return f"predicted_{name}" if name in (self._names or ()) else name

    def _line(self, row: str, cells: Sequence[object]) -> str:
        content, buffer = row.rstrip("\r\n"), io.StringIO()
        between = self.file.delimiter
        csv.writer(buffer, delimiter=between, lineterminator="").writerow(cells)
        return f"{content}{between}{buffer.getvalue()}{row[len(content) :] or chr(10)}"
