"""Write a token file back, every byte as it was, with columns and comments added."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from hopefear.data.sequences import Column, Sentences
from hopefear.data.sources import BOM
from hopefear.data.token_files import WHITE, TokenFile
from hopefear.errors import HopefearError
from hopefear.storage import write_atomically

Texts = Sequence[str] | Column
Comments = Sequence[Iterable[str]]

_LINES = 1 << 14


def write_with_column(
    out: str | os.PathLike[str],
    file: TokenFile,
    name: str,
    texts: Texts,
    *,
    comments: Comments | None = None,
) -> None:
    """Write the file with one more column: :func:`write_with_columns` of ``{name: texts}``."""
    write_with_columns(out, file, {name: texts}, comments=comments)


def write_with_columns(
    out: str | os.PathLike[str],
    file: TokenFile,
    columns: Mapping[str, Texts],
    *,
    comments: Comments | None = None,
    replace: bool = False,
) -> None:
    """Write the file as it was, with more columns; see :func:`with_columns`.

    Parameters
    ----------
    out : str or path
        Replaced only when all is written; ``-`` is standard output.
    file, columns, comments, replace
        As for :func:`with_columns`.
    """
    pieces = with_columns(file, columns, comments=comments, replace=replace)
    if os.fspath(out) == "-":
        sys.stdout.flush()
        sys.stdout.buffer.writelines(pieces)
        sys.stdout.buffer.flush()
    else:
        write_atomically(out, pieces)


def with_columns(
    file: TokenFile,
    columns: Mapping[str, Texts],
    *,
    comments: Comments | None = None,
    replace: bool = False,
) -> Iterator[bytes]:
    """Pieces of the file with more columns; all other bytes stay as they were.

    In a file of columns the new ones come last, in the file's own separator. In CoNLL-U one of its
    ten columns is replaced, and any other name becomes ``Name=text`` in ``misc``, in place of
    an entry of that name.

    Parameters
    ----------
    file : TokenFile
        What was read. Lines of sentences that were left out stay as they are.
    columns : mapping of str to Column or sequence of str
        A text for every token.
    comments : sequence of iterables of str, optional
        Lines to put before each sentence, with ``# `` before them; one that would have as many
        columns as a token gets a closing `` #``.
    replace : bool
        In a file of columns separated by tabs, write over a column of the same name instead of
        adding another.

    Examples
    --------
    >>> import tempfile
    >>> from hopefear.data.token_files import read_sentences
    >>> with tempfile.NamedTemporaryFile("w") as f:
    ...     _ = f.write("He PRP\\nsleeps VBZ\\n\\n")
    ...     f.flush()
    ...     file = read_sentences(f.name)
    >>> b"".join(with_columns(file, {"guess": ["B-NP", "B-VP"]}, comments=[["p = 0.5"]]))
    b'# p = 0.5\\nHe PRP B-NP\\nsleeps VBZ B-VP\\n\\n'
    """
    sentences = file.sentences
    assert sentences.lines is not None
    mark = BOM if file.text.startswith(BOM) else b""
    lines = file.text[len(mark) :].split(b"\n")
    line_indices = (sentences.lines - 1).tolist()
    table = [_encoded(file, name, texts, len(line_indices)) for name, texts in columns.items()]
    if comments is not None and len(comments) != len(sentences):
        raise HopefearError(
            f"{sentences.source}: {len(sentences)} sentences need as many lists of comments, "
            f"not {len(comments)}"
        )
    existing = tuple(sentences.columns) if file.format == "conllu" or replace else ()
    new = []
    for name, column in zip(columns, table, strict=True):
        if file.format == "conllu" or name in existing:
            _replace(lines, line_indices, existing, name, column)
        else:
            new.append(column)
    if new:
        _append(lines, line_indices, file.separator, new)
    if comments is not None:
        _comment(lines, file, comments, len(sentences.columns) + len(new))
    return _pieces(mark, lines)


def repeated(file: TokenFile, counts: Sequence[int] | np.ndarray) -> TokenFile:
    """Returns the file with every sentence, and the comments before it, repeated ``counts`` times.

    Parameters
    ----------
    file : TokenFile
        What was read.
    counts : sequence of int
        Copies of each sentence, at least 1; what stands between sentences stays once.
    """
    sentences = file.sentences
    assert sentences.lines is not None
    mark = BOM if file.text.startswith(BOM) else b""
    lines = file.text[len(mark) :].split(b"\n")
    out: list[bytes] = []
    line_numbers, tokens, sizes = [], [], [0]
    written = 0
    for (start, after), count in zip(pairwise(sentences.starts.tolist()), counts, strict=True):
        rows = sentences.lines[start:after] - 1
        begin, end = _bounds(lines, file.format, int(rows[0]), int(rows[-1]) + 1, written)
        out += lines[written:begin]
        blank = lines[end] if end < len(lines) and not lines[end].strip() else b""
        for copy in range(count):
            if copy:
                out.append(blank)
            line_numbers.append(rows - begin + len(out))
            tokens.append(np.arange(start, after))
            sizes.append(after - start)
            out += lines[begin:end]
        written = end
    out += lines[written:]
    index = np.concatenate(tokens)
    copies = Sentences(
        np.cumsum(sizes),
        {name: Column(c.strings, c.ids[index]) for name, c in sentences.columns.items()},
        sentences.source,
        np.concatenate(line_numbers) + 1,
    )
    return TokenFile(copies, file.format, file.separator, mark + b"\n".join(out))


def _bounds(lines: list[bytes], form: str, first: int, after: int, written: int) -> tuple[int, int]:
    """Lines of a sentence: with its comments and, in CoNLL-U, all that is no blank line."""
    begin = first
    while begin > written and (
        lines[begin - 1].startswith(b"#") or (form == "conllu" and lines[begin - 1].strip())
    ):
        begin -= 1
    while form == "conllu" and after < len(lines) and lines[after].strip():
        after += 1
    return begin, after


def _pieces(mark: bytes, lines: list[bytes]) -> Iterator[bytes]:
    yield mark
    for begin in range(0, len(lines), _LINES):
        end = begin + _LINES
        yield b"\n".join(lines[begin:end]) + (b"\n" if end < len(lines) else b"")


def _append(
    lines: list[bytes], line_indices: list[int], separator: bytes, table: list[list[bytes]]
) -> None:
    tail = b"\r" if separator == b"\t" else WHITE
    join = separator.join
    for k, row in zip(line_indices, zip(*table, strict=True), strict=True):
        line = lines[k]
        body = line.rstrip(tail)
        lines[k] = join((body, *row)) + line[len(body) :]


def _replace(
    lines: list[bytes],
    line_indices: list[int],
    names: Sequence[str],
    name: str,
    column: list[bytes],
) -> None:
    name_here = name if name in names else name.lower()
    is_column = name_here in names
    at = -1  # of CoNLL-X
    if is_column or "misc" in names:
        at = names.index(name_here if is_column else "misc")
    key = name.encode() + b"="
    for k, text in zip(line_indices, column, strict=True):
        line = lines[k]
        body = line.removesuffix(b"\r")
        fields = body.split(b"\t")
        fields[at] = text if is_column else _entered(fields[at], key, text)
        lines[k] = b"\t".join(fields) + line[len(body) :]


def _entered(misc: bytes, key: bytes, text: bytes) -> bytes:
    entries = [] if misc == b"_" else misc.split(b"|")
    for i, entry in enumerate(entries):
        if entry.startswith(key):
            entries[i] = key + text
            return b"|".join(entries)
    return b"|".join([*entries, key + text])


def _comment(lines: list[bytes], file: TokenFile, comments: Comments, width: int) -> None:
    sentences = file.sentences
    assert sentences.lines is not None
    for first, texts in zip(sentences.lines[sentences.starts[:-1]] - 1, comments, strict=True):
        k = int(first)
        while file.format == "conllu" and k and lines[k - 1].strip() and lines[k - 1][:1] != b"#":
            k -= 1  # the first word may be preceded by a multiword token or an empty node
        end = b"\r\n" if lines[k].endswith(b"\r") else b"\n"
        head = b"".join(_comment_line(text, file, width) + end for text in texts)
        lines[k] = head + lines[k]


def _comment_line(text: str, file: TokenFile, width: int) -> bytes:
    line = f"# {text}".encode()
    if b"\n" in line or b"\r" in line:
        raise HopefearError(f"a comment is one line, not {text!r:.60}")
    if file.format == "columns":
        fields = line.split(b"\t") if file.separator == b"\t" else line.split()
        if len(fields) == width:
            line += file.separator + b"#"
    return line


def _encoded(file: TokenFile, name: str, texts: Texts, n_tokens: int) -> list[bytes]:
    """The texts as bytes, after a check of each distinct one."""
    column = texts if isinstance(texts, Column) else Column.of(texts)
    if len(column.ids) != n_tokens:
        raise HopefearError(
            f"{file.sentences.source}: {n_tokens} tokens need as many texts in the column "
            f"{name}, not {len(column.ids)}"
        )
    existing = file.sentences.columns if file.format == "conllu" else {}
    misc = file.format == "conllu" and name not in existing and name.lower() not in existing
    if (
        misc and "misc" not in existing and list(existing)[-1] != "deprel"
    ):  # which CoNLL-X ends with
        raise HopefearError(
            f"{file.sentences.source} has neither a column {name} nor MISC, which would take it; "
            "declare and fill one of them"
        )
    if file.format == "conllu" and (name.lower() == "id" or not name or _unfit(name, b"\t", "=|")):
        raise HopefearError(f"CoNLL-U cannot take the column {name!r}; choose another name")
    for text in column.strings:
        if not text or _unfit(text, file.separator, "|" if misc else ""):
            raise HopefearError(
                f"{file.sentences.source}: the column {name} cannot hold {text!r:.60}: it is "
                "empty, holds a character that separates, or is no Unicode text"
            )
    pool = [text.encode() for text in column.strings]
    return [pool[i] for i in column.ids.tolist()]


def _unfit(text: str, separator: bytes, extra: str) -> bool:
    forbidden = "\t\n\r" if separator == b"\t" else WHITE.decode()
    surrogate = not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text)
    return surrogate or any(c in text for c in forbidden + extra)
