"""Count n-grams of words and characters in blocks of text."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from hopefear.core.arrays import Strings
from hopefear.core.hashing import (
    ENTRIES,
    TOKENS,
    NGramTables,
    empty_tables,
    fresh_marks,
    grown_tables,
)
from hopefear.data.files import (
    BLOCK_BYTES,
    PADDING,
    ReadReport,
    check_on_error,
    file_size,
    fill_blocks,
    line_of,
)
from hopefear.data.labels import sort_classes
from hopefear.data.sources import utf8_wanted
from hopefear.data.sparse import (
    drop_unknown,
    sort_count_rows,
)
from hopefear.data.text_formats import ConvertingReader
from hopefear.data.text_kernel import (
    DONE,
    EXPECTED,
    MAX_TOKEN,
    MORE_ROOM,
    count_chars,
    count_ngrams,
    hash_chars,
    hash_ngrams,
    join_rows,
    merge_repeats,
)
from hopefear.errors import HopefearError, InputError
from hopefear.features import FeatureMap, HashedFeatures, NGramFeatures
from hopefear.features.ngrams import MAX_CHARS, MAX_NAMES, Grams, empty_names, ngrams_from_tables

MAX_TEXT_LINE = 1 << 24
APOSTROPHE = "'"
_LETTER = re.compile(rb"[A-Za-z\x80-\xff]")
_NEWLINE = "\n"
_CHARS_OF_TOKEN = MAX_CHARS * (MAX_TOKEN + 2)  # n-grams of characters, at most
_OF_CHARS = 1 << 30  # columns of characters begin here until the number of those of words is known


class TextRows(NamedTuple):
    """Rows of one block; the arrays are used again for the next."""

    indptr: np.ndarray  # int64[n + 1]
    columns: np.ndarray  # int32[nnz], rising in a row
    values: np.ndarray  # float32[nnz], counts
    labels: np.ndarray  # int32[n], number in TextCounter.label_names(); -1 where a line has none
    line: Callable[[int], int]  # line number of a row
    share: float  # of the file, read by the end of this block; 0 where it is not known


class TextCounter:
    """Counts n-grams of text, with columns that grow, are given, or are hashed.

    Parameters
    ----------
    grams : Grams or int
        Which n-grams; a number is the longest n-gram of words, 1 to 3, without any others.
    hash_bits : int, optional
        Hash to ``2**hash_bits`` columns instead of keeping the n-grams.
    features : NGramFeatures or HashedFeatures, optional
        Columns to use; it then sets ``grams`` and ``hash_bits``.
    """

    def __init__(
        self,
        grams: Grams | int = 1,
        hash_bits: int | None = None,
        features: FeatureMap | None = None,
    ) -> None:
        if features is not None and not isinstance(features, NGramFeatures | HashedFeatures):
            raise HopefearError(
                "these features are numeric ids, which text lacks; give svmlight lines or rows of "
                "numbers, or train on label<TAB>text or strings"
            )
        if features is not None:
            grams = features.grams
        self.grams = (grams if isinstance(grams, Grams) else Grams(grams)).check()
        self.features = features
        self.hashed: HashedFeatures | None = None
        self._tables, self._chars = empty_tables(1, 1, 1), empty_tables(1, 1, 1)
        if isinstance(features, HashedFeatures):
            self.hashed = features
        elif hash_bits is not None and features is None:
            self.hashed = HashedFeatures(self.grams, hash_bits)
        elif isinstance(features, NGramFeatures):
            # Marks of the current row are this counter's own; the rest is shared.
            self._tables, self._chars = (
                tables._replace(seen=fresh_marks(len(tables.parent)))
                for tables in features.tables()
            )
        else:
            self._tables = empty_tables()
            if self.grams.chars is not None:
                self._chars = empty_tables()
        fresh = self.hashed is not None and features is None
        self._owners = np.zeros(self.hashed.size if fresh and self.hashed else 0, np.uint64)
        self._names = empty_names(MAX_NAMES if fresh else 0)
        self._labels = empty_tables(64, 1 << 10, 1)
        self._collision_counts = np.zeros(2, np.int64)
        self._unknown = np.zeros(1, np.int64)
        self._rows = self._all_rows = 0

    def label_names(self) -> list[str]:
        """The label strings so far, by number."""
        used = int(self._labels.used[TOKENS])
        strings = Strings(self._labels.text, self._labels.offsets[: used + 1])
        return [strings.get(i) for i in range(used)]

    def classes(self) -> tuple[str, ...]:
        """The labels so far in class order."""
        return sort_classes(self.label_names())

    def finish(
        self, min_count: int = 1, max_share: float = 1.0
    ) -> tuple[FeatureMap, Callable[[np.ndarray], np.ndarray] | None]:
        """The feature map, and what gives the final column of each column counted (None: the same).

        That column is -1 where an n-gram is in fewer rows than min_count, or in more than
        max_share of all.
        """
        if self.features is not None:
            return self.features, None
        if self.hashed is not None:
            rate = float(self._collision_counts[1] / max(1, self._collision_counts[0]))
            return HashedFeatures(self.grams, self.hashed.bits, rate, *self._names.sorted()), None
        max_rows = max_share * self._all_rows if max_share < 1.0 else np.inf
        features, words, chars = ngrams_from_tables(
            self._tables, self._chars, self.grams, min_count, max_rows
        )
        if self.grams.chars is None:
            return features, words.__getitem__

        def moved(columns: np.ndarray) -> np.ndarray:
            final = np.empty(len(columns), np.int32)
            of_chars = columns >= _OF_CHARS
            final[of_chars] = chars[columns[of_chars] - _OF_CHARS]
            final[~of_chars] = words[columns[~of_chars]]
            return final

        return features, moved

    def blocks(
        self,
        path: str | os.PathLike[str],
        *,
        block_bytes: int = BLOCK_BYTES,
        require_labels: bool = True,
        on_error: str = "raise",
        report: ReadReport,
        classes: Sequence[str] | None = None,
    ) -> Iterator[TextRows]:
        """Count the lines of a file block by block; parameters as for svmlight's raw_blocks.

        Where labels are not required and classes are known, what stands before a tab and is no
        class belongs to the text.
        """
        bare = not require_labels and classes is not None and not isinstance(path, ConvertingReader)
        class_names = {name.encode() for name in classes or ()}
        check_on_error(on_error)
        name, size, n_read = os.fspath(path), file_size(path), 0
        for buffer, length, first_line in fill_blocks(path, block_bytes, MAX_TEXT_LINE):
            n_read += length
            share = n_read / size if size else 0.0
            if bare:
                report.tabbed += _without_tabs(buffer, length, class_names)
            lower = self.grams.lowercase
            text, length = folded(buffer, length, name, first_line, on_error, report, lower)
            for rows in self._count(
                text, length, name, first_line, not require_labels, on_error, report
            ):
                yield rows._replace(share=share)

    def strings(self, texts: Sequence[str]) -> Iterator[TextRows]:
        """Count the texts of a sequence; a line break in one is a blank."""
        first = 0
        while first < len(texts):
            size, last = 0, first
            while last < len(texts) and size < BLOCK_BYTES:
                size += len(texts[last])
                last += 1
            lines = "".join(f"\t{text.replace(_NEWLINE, ' ')}\n" for text in texts[first:last])
            try:
                block = lines.encode()
            except UnicodeEncodeError:
                bad = next(i for i in range(first, last) if not _is_unicode(texts[i]))
                raise HopefearError(
                    f"text {bad} has half a surrogate pair, which is no character; take it out"
                ) from None
            buffer = np.full(len(block) + PADDING, 10, np.uint8)
            buffer[: len(block)] = np.frombuffer(block, np.uint8)
            report = ReadReport()
            text, length = folded(
                buffer, len(block), "texts", 1, "raise", report, self.grams.lowercase
            )
            yield from self._count(text, length, "texts", 1, True, "raise", report)
            first = last

    def _count(
        self,
        text: np.ndarray,
        length: int,
        name: str,
        first_line: int,
        bare: bool,
        on_error: str,
        report: ReadReport,
    ) -> Iterator[TextRows]:
        max_rows = length // 2 + 2
        if self._rows + max_rows >= 2**31:  # row numbers take 32 bits; forget which row came last
            self._tables.seen[::2] = self._chars.seen[::2] = -1
            self._rows = 0
        indptr, starts = np.zeros(max_rows, np.int64), np.empty(max_rows, np.int64)
        codes = np.empty(max_rows, np.int32)
        # A token and what separates it take 2 bytes as a rule; MORE_ROOM deals with the others.
        columns = np.empty(self.grams.order * (length // 2 + 2), np.int32)
        values = np.empty(len(columns), np.float32)
        rows = i = 0
        while True:
            with np.errstate(over="ignore"):  # hashes wrap; only uncompiled kernels warn
                code, i, rows = self._kernel(
                    text, i, length, bare, codes, starts, indptr, columns, values, rows
                )
            if code == DONE:
                break
            if code == MORE_ROOM:
                size = _line_length(text, i)
                self._grow(size)
                columns = _roomier(columns, int(indptr[rows]) + self.grams.order * size)
                values = _roomier(values, len(columns))
                continue
            size = _line_length(text, i)
            excerpt = text[i : i + min(size - 1, 80)].tobytes().decode("utf-8", "replace")
            error = InputError(name, line_of(text, i, first_line), EXPECTED[code], excerpt)
            if on_error == "raise":
                raise error
            report.skip(str(error))
            i += size
        if not rows:
            return
        indptr, columns, values = self._in_order(indptr[: rows + 1], columns, values)
        if self.grams.chars is not None:
            indptr, columns, values = join_rows(
                indptr,
                columns,
                values,
                *self._count_chars(text, length, bare, starts, rows),
                0 if self.hashed is not None else self._first_of_chars(),
            )
        if isinstance(self.features, NGramFeatures) and self.features.ignored.size:
            columns[np.isin(columns, self.features.ignored)] = -1
            indptr, columns, values = drop_unknown(indptr, columns, values)
        self._rows += rows
        self._all_rows += rows
        report.unknown_features += int(self._unknown[0])
        self._unknown[0] = 0
        yield TextRows(
            indptr,
            columns,
            values,
            codes[:rows],
            lambda row: line_of(text, int(starts[row]), first_line),
            0.0,
        )

    def _in_order(
        self, indptr: np.ndarray, columns: np.ndarray, values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rows with rising columns, each once."""
        columns, values = columns[: indptr[-1]], values[: indptr[-1]]
        sort_count_rows(indptr, columns, values)
        if self.hashed is not None:
            indptr = merge_repeats(indptr, columns, values)
            columns, values = columns[: indptr[-1]], values[: indptr[-1]]
        return indptr, columns, values

    def _first_of_chars(self) -> int:
        if isinstance(self.features, NGramFeatures):
            return self.features.split
        if int(self._tables.used[ENTRIES]) > _OF_CHARS or self._chars.used[ENTRIES] > _OF_CHARS:
            raise HopefearError(
                "more than 2**30 distinct n-grams; use hash_bits, or shorter n-grams"
            )
        return _OF_CHARS

    def _count_chars(
        self, text: np.ndarray, length: int, bare: bool, starts: np.ndarray, rows: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of character n-grams of lines whose words have been counted."""
        low, high = self.grams.chars or (1, 1)
        indptr = np.zeros(rows + 1, np.int64)
        columns = np.empty((high - low + 1) * length + _CHARS_OF_TOKEN, np.int32)
        values = np.empty(len(columns), np.float32)
        row, i = 0, -1
        while True:
            with np.errstate(over="ignore"):  # hashes wrap; only uncompiled kernels warn
                if self.hashed is not None:
                    code, row, i = hash_chars(
                        text,
                        row,
                        i,
                        low,
                        high,
                        self.hashed.half,
                        self.grams.marks,
                        bare,
                        self._owners,
                        self._names,
                        starts,
                        indptr,
                        columns,
                        values,
                        rows,
                        self._collision_counts,
                    )
                else:
                    code, row, i = count_chars(
                        text,
                        row,
                        i,
                        low,
                        high,
                        self.grams.marks,
                        bare,
                        self._chars,
                        self.features is None,
                        starts,
                        self._rows,
                        indptr,
                        columns,
                        values,
                        rows,
                        self._unknown,
                    )
            if code == DONE:
                return self._in_order(indptr, columns, values)
            columns = _roomier(columns, int(indptr[row + 1]) + _CHARS_OF_TOKEN)
            values = _roomier(values, len(columns))
            if self.features is None and self.hashed is None:
                needed = (_CHARS_OF_TOKEN, 4 * high * _CHARS_OF_TOKEN, _CHARS_OF_TOKEN)
                if _short(self._chars, *needed):
                    self._chars = grown_tables(self._chars, *needed)

    def _kernel(
        self,
        text: np.ndarray,
        i: int,
        stop: int,
        bare: bool,
        codes: np.ndarray,
        starts: np.ndarray,
        indptr: np.ndarray,
        columns: np.ndarray,
        values: np.ndarray,
        rows: int,
    ) -> tuple[int, int, int]:
        if self.hashed is not None:
            return hash_ngrams(
                text,
                i,
                stop,
                self.grams.order,
                self.hashed.half,
                self.grams.lowercase,
                self.grams.marks,
                bare,
                self._owners,
                self._names,
                self._labels,
                codes,
                starts,
                indptr,
                columns,
                values,
                rows,
                self._collision_counts,
            )
        return count_ngrams(
            text,
            i,
            stop,
            self.grams.order,
            self.grams.lowercase,
            self.grams.marks,
            bare,
            self._tables,
            self.features is None,
            self._labels,
            codes,
            starts,
            self._rows,
            indptr,
            columns,
            values,
            rows,
            self._unknown,
        )

    def _grow(self, size: int) -> None:
        if _short(self._labels, 1, size, 0):
            self._labels = grown_tables(self._labels, 1, size, 0)
        if self.features is None and self.hashed is None:
            needed = (size, size, self.grams.order * size)
            if _short(self._tables, *needed):
                if int(self._tables.used[ENTRIES]) + needed[2] > 2**31 - 1:
                    raise HopefearError(
                        "more than 2**31 - 1 distinct n-grams; use hash_bits, or shorter n-grams"
                    )
                self._tables = grown_tables(self._tables, *needed)


def folded(
    buffer: np.ndarray,
    length: int,
    name: str,
    first_line: int,
    on_error: str,
    report: ReadReport,
    lower: bool = True,
) -> tuple[np.ndarray, int]:
    """The block with non-ASCII letters of its texts in lower case; broken UTF-8 is an error.

    Labels stay as they are, and lines stay where they are, so numbers remain right.
    """
    block = buffer[:length].tobytes()
    if block.isascii():
        return buffer, length
    lines = block.split(b"\n")
    for i, line in enumerate(lines):
        if line.isascii():
            continue
        try:
            label, tab, words = line.decode("utf-8").partition("\t")
        except UnicodeDecodeError as bad:
            excerpt = line[max(0, bad.start - 20) : bad.start + 4].decode(
                "ascii", "backslashreplace"
            )
            error = InputError(name, first_line + i, utf8_wanted(line), excerpt)
            if on_error == "raise":
                raise error from None
            report.skip(str(error))
            lines[i] = b""
            continue
        if not tab:
            label, words = "", label
        words = words.lower() if lower else words
        lines[i] = f"{label}{tab}{words.replace('’', APOSTROPHE)}".encode()
    block = b"\n".join(lines)
    text = np.full(len(block) + PADDING, 10, np.uint8)
    text[: len(block)] = np.frombuffer(block, np.uint8)
    return text, len(block)


def _without_tabs(buffer: np.ndarray, length: int, class_names: set[bytes]) -> int:
    """Replaces tabs after texts that are not labels by blanks; returns how many lines had one."""
    tabs = np.flatnonzero(buffer[:length] == 9)
    if not len(tabs):
        return 0
    newlines = np.flatnonzero(buffer[:length] == 10)
    lines, first = np.unique(np.searchsorted(newlines, tabs), return_index=True)
    line_starts = np.concatenate([[0], newlines + 1])[lines].tolist()
    count = 0
    for begin, tab in zip(line_starts, tabs[first].tolist(), strict=True):
        label = buffer[begin:tab].tobytes().strip()
        if label not in class_names and _LETTER.search(label):  # 0 and ? mean no label
            buffer[tab] = 32
            count += 1
    return count


def _line_length(text: np.ndarray, i: int) -> int:
    step = 1 << 12
    begin = i
    while True:
        position = text[begin : begin + step].tobytes().find(b"\n")
        if position >= 0:
            return begin + position + 1 - i
        begin += step


def _roomier(array: np.ndarray, room: int) -> np.ndarray:
    if room <= len(array):
        return array
    larger = np.empty(max(room, 2 * len(array)), array.dtype)
    larger[: len(array)] = array
    return larger


def _short(tables: NGramTables, tokens: int, text: int, entries: int) -> bool:
    rooms = (len(tables.token_hash), len(tables.text), len(tables.parent))
    requests = zip(tables.used, (tokens, text, entries), rooms, strict=True)
    return any(int(used) + needed > room for used, needed, room in requests)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
