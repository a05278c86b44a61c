"""Tokens one to a line, their columns separated by white space or tabs: the CoNLL formats."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hopefear.data.sequences import Sentences
from hopefear.data.token_lines import Lines
from hopefear.errors import HopefearError, InputError

MARKS = ("-DOCSTART-", "###MEDLINE")


def default_names(width: int) -> tuple[str, ...]:
    """Names of the columns of a file that nobody has named.

    The first is ``word``, the last of two or more ``label``, the middle one of three ``pos``; the
    others bear their number, from 0.

    Examples
    --------
    >>> default_names(3), default_names(4)
    (('word', 'pos', 'label'), ('word', '1', '2', 'label'))
    """
    if width < 2:
        return ("word",)
    inner = ("pos",) if width == 3 else tuple(str(c) for c in range(1, width - 1))
    return ("word", *inner, "label")


def parse_columns(
    lines: Lines,
    names: Sequence[str] | None = None,
    optional: int = 0,
    marks: Sequence[str] = MARKS,
    comments: bool | None = None,
) -> tuple[Sentences, bytes]:
    """Sentences of a file of columns, and what separates its columns.

    Columns are separated by tabs where the first token line has one, else by any white space of
    ASCII. A line that begins with ``# `` is a comment unless it has as many columns as a token:
    ``#`` is a word too.

    Parameters
    ----------
    lines : Lines
        The text.
    names : sequence of str, optional
        Names of the columns; :func:`default_names` without.
    optional : int
        So many of the last names may be without a column.
    marks : sequence of str
        Lines that begin with one of these end a sentence and are no tokens.
    comments : bool, optional
        Whether every line that begins with ``# `` is a comment, or none is.
    """
    broken = lines.undecodable()
    mark = lines.starting([m.encode() for m in marks])
    words = lines.words()
    boundary = (words == 0) | mark
    comment = lines.starting([b"# "]) | (lines.starting([b"#"]) & (lines.ends - lines.begins == 1))
    if comments is False:
        comment[:] = False
    content = ~boundary & ~broken
    if not (content & ~comment).any():
        return lines.sentences((), {}, [], np.zeros(len(lines), bool), boundary), b" "
    first = int(np.argmax(content & ~comment))
    separator = b"\t" if b"\t" in lines.line(first) else b" "
    counts = lines.count(lines.buffer == 9) + 1 if separator == b"\t" else words
    width = int(counts[first])
    chosen = _chosen(lines, names, optional, width, first)
    token = content & (counts == width)
    bad = content & ~token & ~comment
    if comments:
        token &= ~comment
    for k in np.flatnonzero(bad).tolist():
        lines.bad(k, f"{_columns(width)} as in line {first + 1}", f"{counts[k]}: {lines.shown(k)}")
    if separator == b"\t":
        bad |= lines.hollow(token)
    bad |= broken | lines.too_long(token, separator)
    token = lines.without_sentences(token, boundary, bad)
    token = lines.short_enough(token, boundary)
    aliases = {str(c): name for c, name in enumerate(chosen) if str(c) not in chosen}
    fields = _fields(lines, token, words == 0, separator)
    return lines.sentences(chosen, aliases, fields, token, boundary), separator


def _chosen(
    lines: Lines, names: Sequence[str] | None, optional: int, width: int, first: int
) -> tuple[str, ...]:
    if names is None:
        return default_names(width)
    if len(set(names)) < len(names) or not all(names):
        raise HopefearError(f"columns need different names, not {', '.join(map(repr, names))}")
    if not len(names) - optional <= width <= len(names):
        least = f"{len(names) - optional} to " if optional else ""
        raise InputError(
            lines.source,
            first + 1,
            f"{least}{_columns(len(names))} ({', '.join(names)})",
            f"{width}: {lines.shown(first)}",
        )
    return tuple(names[:width])


def _columns(width: int) -> str:
    return f"{width} column{'s' * (width != 1)}"


def _fields(lines: Lines, token: np.ndarray, blank: np.ndarray, separator: bytes) -> list[bytes]:
    if separator == b"\t":
        return lines.join(token, b"\t").split(b"\t")
    if (token | blank).all():
        return lines.text.split()
    return lines.join(token, b"\n").split()
