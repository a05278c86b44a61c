"""CoNLL-U: words with their ids, and the columns that CoNLL-U Plus files declare."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from hopefear.data.sequences import Column, Sentences
from hopefear.errors import InputError, Problem

if TYPE_CHECKING:
    from hopefear.data.token_files import Lines

NAMES = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")

_BLANK, _WORD, _RANGE, _NODE = range(4)
_COMMENTS = re.compile(rb"(?:(?:#[^\n]*)?\n)*")
_DECLARED = re.compile(rb"^#[ \t]*global\.columns[ \t]*=([^\n]*)", re.MULTILINE)
_ID = re.compile(r"(0|[1-9][0-9]{0,8})(?:([-.])(0|[1-9][0-9]{0,8}))?")


def declaration(text: bytes) -> re.Match[bytes] | None:
    """The comment before the first word that names the columns, as in CoNLL-U Plus.

    >>> declaration(b"# sent_id = 1\\n# global.columns = ID FORM\\n1\\tHi\\n")[1]
    b' ID FORM'
    """
    comments = _COMMENTS.match(text)
    return None if comments is None else _DECLARED.search(text, 0, comments.end())


def declared_names(lines: Lines) -> tuple[str, ...]:
    """Names of the columns: those that CoNLL-U Plus declares, else :data:`NAMES`.

    The ten of CoNLL-U come in lower case, others as the file has them.
    """
    match = declaration(lines.text)
    if match is None:
        return NAMES
    declared = match[1].decode("utf-8", "replace").split()
    names = tuple(name.lower() if name.lower() in NAMES else name for name in declared)
    if "form" not in names or len(set(names)) < len(names):
        raise InputError(
            lines.source,
            _line_of(match, lines),
            "different names of columns in global.columns, FORM among them",
            " ".join(declared),
        )
    return names


def _check_declared(lines: Lines, names: Sequence[str]) -> None:
    """Raises InputError where a concatenated file declares other columns."""
    if b"global.columns" not in lines.text:
        return
    plain = [name.lower() for name in names]
    for match in _DECLARED.finditer(lines.text):
        declared = match[1].decode("utf-8", "replace")
        if declared.lower().split() != plain:
            expected = f"the columns of the whole file, {' '.join(names)}"
            raise InputError(lines.source, _line_of(match, lines), expected, declared.strip())


def _line_of(match: re.Match[bytes], lines: Lines) -> int:
    return lines.before + lines.text.count(b"\n", 0, match.start()) + 1


def parse_conllu(lines: Lines, names: Sequence[str] = NAMES) -> Sentences:
    """Words of a CoNLL-U file; ``word`` is another name of the column ``form``.

    Multiword tokens (``1-2``), which do not overlap, and empty nodes (``8.1``, ``8.2``) must stand
    where their ids say, and are no words.

    Parameters
    ----------
    lines : Lines
        The text.
    names : sequence of str
        Names of the columns; older formats have fewer than ten, and CoNLL-U Plus has any. Where
        there is no ``id`` every row is a word.
    """
    _check_declared(lines, names)
    broken = lines.undecodable()
    blank = lines.words() == 0
    row = ~blank & ~lines.starting([b"#"]) & ~broken
    counts = lines.count(lines.buffer == 9) + 1
    bad = row & (counts != len(names))
    for k in np.flatnonzero(bad).tolist():
        lines.bad(
            k,
            f"{len(names)} columns separated by tabs",
            Problem(f"this line has {counts[k]}: {lines.shown(k)!r}"),
        )
    row &= ~bad
    bad |= broken | lines.hollow(row) | lines.too_long(row, b"\t")
    row = lines.without_sentences(row, blank, bad)
    if "id" in names:
        kind, misplaced = _checked_ids(lines, row, blank, names.index("id"))
        row = lines.without_sentences(row & (kind == _WORD), blank, misplaced)
    token = lines.short_enough(row, blank)
    fields = lines.fields_in(token)
    aliases = {"word": "form"} | {str(c): name for c, name in enumerate(names)}
    return lines.sentences(names, aliases, fields, token, blank)


def _checked_ids(
    lines: Lines, row: np.ndarray, blank: np.ndarray, at: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the kind of each line, and the first line of each sentence whose id is wrong."""
    kind, first, last = _ids(lines, row, at)
    sentence = np.cumsum(blank)
    word = kind == _WORD
    sizes = np.bincount(sentence[word], minlength=int(sentence[-1]) + 1)
    before = np.cumsum(word) - word - (np.cumsum(sizes) - sizes)[sentence]
    good = word & (first == before + 1)
    good |= (kind == _NODE) & (first == before) & (last > 0)
    good |= (kind == _RANGE) & (first == before + 1) & (last > first) & (last <= sizes[sentence])
    # A multiword token begins behind the end of the one before; empty nodes of a word rise.
    good[_falling(kind == _RANGE, sentence, last, first)] = False
    good[_falling(kind == _NODE, sentence, first << 32 | last, first << 32 | last)] = False
    wrong = row & ~good
    mask = np.zeros(len(lines), bool)
    positions = np.flatnonzero(wrong)
    is_first = np.append(True, np.diff(sentence[positions]) > 0)[: len(positions)]
    for k in positions[is_first].tolist():
        excerpt = lines.line(k).split(b"\t")[at].decode()
        lines.bad(k, _expected(int(kind[k]), int(before[k]), int(sizes[sentence[k]])), excerpt)
        mask[k] = True
    return kind, mask


def _falling(
    mask: np.ndarray, sentence: np.ndarray, ends: np.ndarray, starts: np.ndarray
) -> np.ndarray:
    """The marked lines that begin no later than the marked one before them ends."""
    k = np.flatnonzero(mask)
    continued = sentence[k[1:]] == sentence[k[:-1]]
    return k[1:][continued & (starts[k[1:]] <= ends[k[:-1]])]


def _expected(kind: int, before: int, size: int) -> str:
    if kind == _RANGE:
        return (
            f"a multiword token that spans words from {before + 1} up to {size} at most, none of "
            "them in another"
        )
    if kind == _NODE:
        return f"the id {before}.1, or a later one behind the same word"
    return f"the id {before + 1}"


def _ids(lines: Lines, row: np.ndarray, at: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns, for each line, the kind of its id and the two numbers in it."""
    texts = compress(lines.text.split(b"\n"), row.tolist())
    column = Column.of([text.split(b"\t", at + 1)[at].decode() for text in texts])
    table = np.array([_read_id(text) for text in column.strings], np.int64).reshape(-1, 3)
    numbers = np.zeros((3, len(lines)), np.int64)
    numbers[:, row] = table[column.ids].T
    return numbers[0], numbers[1], numbers[2]


def _read_id(text: str) -> tuple[int, int, int]:
    match = _ID.fullmatch(text)
    if not match:
        return _BLANK, 0, 0
    kind = {None: _WORD, "-": _RANGE, ".": _NODE}[match[2]]
    return kind, int(match[1]), int(match[3] or 0)
