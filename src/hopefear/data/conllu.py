"""CoNLL-U: ten columns, with multiword tokens and empty nodes between the words."""

from __future__ import annotations

import re
from itertools import compress

import numpy as np

from hopefear.data.sequences import Column, Sentences
from hopefear.data.token_lines import Lines

NAMES = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")

_NOTHING, _WORD, _RANGE, _NODE = range(4)
_ID = re.compile(r"([0-9]{1,9})(?:([-.])([0-9]{1,9}))?")


def parse_conllu(lines: Lines) -> Sentences:
    """Words of a CoNLL-U file; ``word`` is another name of the column ``form``.

    Multiword tokens (``1-2``) and empty nodes (``8.1``) must stand where their ids say, and are no
    words.
    """
    broken = lines.undecodable()
    blank = lines.words() == 0
    row = ~blank & ~lines.starting([b"#"]) & ~broken
    counts = lines.count(lines.buffer == 9) + 1
    bad = row & (counts != len(NAMES))
    for k in np.flatnonzero(bad).tolist():
        lines.bad(k, "10 columns separated by tabs", f"{counts[k]}: {lines.shown(k)}")
    row &= ~bad
    bad |= broken | lines.hollow(row) | lines.too_long(row, b"\t")
    row = lines.without_sentences(row, blank, bad)
    kind, misplaced = _checked_ids(lines, row, blank)
    row = lines.without_sentences(row & (kind == _WORD), blank, misplaced)
    token = lines.short_enough(row, blank)
    fields = lines.join(token, b"\t").split(b"\t")
    aliases = {"word": "form"} | {str(c): name for c, name in enumerate(NAMES)}
    return lines.sentences(NAMES, aliases, fields, token, blank)


def _checked_ids(lines: Lines, row: np.ndarray, blank: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What each line is, and the first line of each sentence whose id is wrong."""
    kind, first, last = _ids(lines, row)
    sentence = np.cumsum(blank)
    word = kind == _WORD
    sizes = np.bincount(sentence[word], minlength=int(sentence[-1]) + 1)
    before = np.cumsum(word) - word - (np.cumsum(sizes) - sizes)[sentence]
    good = word & (first == before + 1)
    good |= (kind == _NODE) & (first == before) & (last > 0)
    good |= (kind == _RANGE) & (first == before + 1) & (last > first) & (last <= sizes[sentence])
    wrong = row & ~good
    told = np.zeros(len(lines), bool)
    places = np.flatnonzero(wrong)
    for k in places[np.append(True, np.diff(sentence[places]) > 0)[: len(places)]].tolist():
        found = lines.line(k).partition(b"\t")[0].decode()
        lines.bad(k, _expected(int(kind[k]), int(before[k]), int(sizes[sentence[k]])), found)
        told[k] = True
    return kind, told


def _expected(kind: int, before: int, size: int) -> str:
    if kind == _RANGE:
        return f"a multiword token that spans words from {before + 1} up to {size} at most"
    if kind == _NODE:
        return f"the id {before}.1, or a later one behind the same word"
    return f"the id {before + 1}"


def _ids(lines: Lines, row: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each line what its id says it is, and the two numbers in it."""
    texts = compress(lines.text.split(b"\n"), row.tolist())
    column = Column.of([text.partition(b"\t")[0].decode() for text in texts])
    table = np.array([_read_id(text) for text in column.strings], np.int64).reshape(-1, 3)
    found = np.zeros((3, len(lines)), np.int64)
    found[:, row] = table[column.ids].T
    return found[0], found[1], found[2]


def _read_id(text: str) -> tuple[int, int, int]:
    match = _ID.fullmatch(text)
    if not match:
        return _NOTHING, 0, 0
    kind = {None: _WORD, "-": _RANGE, ".": _NODE}[match[2]]
    return kind, int(match[1]), int(match[3] or 0)
