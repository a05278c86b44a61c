"""Bracketed trees from text, their strings numbered by one table that outlives a block."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.core.hashing import StringTable
from hopefear.errors import HopefearError
from hopefear.features.brackets.rows import TreeRows, Trees
from hopefear.features.brackets.scan import EXPECTED, NOT_TEXT, Scanned, scan_trees


class TreeTextError(HopefearError):
    """A text that is no tree.

    Parameters
    ----------
    tree : int
        Which of the texts, from 0.
    expected : str
        What should have stood there.
    character : int
        Where, from 1.
    found : str
        What stands there.
    """

    def __init__(self, tree: int, expected: str, character: int, found: str) -> None:
        super().__init__(
            f"tree {tree + 1}: expected {expected} (character {character}: {found[:30]!r})"
        )
        self.tree, self.expected, self.character, self.found = tree, expected, character, found


class Symbols:
    """Labels, tags and words by number; a number once given stays.

    Examples
    --------
    >>> symbols = Symbols()
    >>> symbols.numbers(["NP", "dog", "NP"]).tolist(), symbols.names[1]
    ([0, 1, 0], 'dog')
    """

    def __init__(self) -> None:
        self._table = StringTable()
        self._names: list[str] = []

    @property
    def names(self) -> list[str]:
        """All strings by their numbers; the same list every time, and it only grows."""
        if len(self._names) < self._table.size:
            strings = self._table.strings()
            self._names += map(strings.get, range(len(self._names), strings.size))
        return self._names

    def numbers(self, strings: Sequence[str]) -> np.ndarray:
        """Numbers (int32) of strings; new ones get the next."""
        return self._table.intern(strings)

    def spans(self, text: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Numbers (int32) of stretches of UTF-8 bytes that follow one another."""
        return self._table.intern_spans(text, begins, ends)


def parse_trees(texts: Sequence[str], symbols: Symbols | None = None) -> Trees:
    """Trees of bracketed texts; TreeTextError for the first that is none.

    Parameters
    ----------
    texts : sequence of str
        One tree each, such as ``(S1 (S (NP (PRP it)) (VP (VBZ is))))``. A root without label, as in
        ``( (S …))``, has the label ``""``. White space does not matter.
    symbols : Symbols, optional
        Strings known already, as from other blocks of a file; new ones are added.

    Examples
    --------
    >>> trees = parse_trees(["(S (NP (PRP it)) (VP (VBZ is)))", "(NP (NN -LRB-))"])
    >>> len(trees), trees.symbols[trees.rows.words[2]], trees.rows.ends.tolist()
    (2, 'it', [2, 1, 1, 2, 2, 1, 1])
    >>> try:
    ...     parse_trees(["(S (NP it) (VP is)"])
    ... except TreeTextError as error:
    ...     print(error)
    tree 1: expected a ')' for every '(' (character 1: '(S (NP it) (VP is)')
    """
    trees, errors = scan_texts(texts, Symbols() if symbols is None else symbols)
    for error in errors:
        raise error
    return trees


def scan_texts(texts: Sequence[str], symbols: Symbols) -> tuple[Trees, list[TreeTextError]]:
    """Trees of texts, and what is wrong with those that are none and have no nodes."""
    text, offsets, broken = _joined(texts)
    found = scan_trees(text, offsets)
    found.codes[broken] = NOT_TEXT
    errors = [_error(texts, t, text, offsets, found) for t in np.flatnonzero(found.codes).tolist()]
    labels = symbols.spans(text, found.label_begins, found.label_ends)
    words = np.full(len(labels), -1, np.int32)
    words[found.tags] = symbols.spans(text, found.word_begins, found.word_ends)
    rows = TreeRows(
        frozen(found.starts),
        frozen(labels),
        frozen(words),
        *map(frozen, (found.parents, found.nexts, found.begins, found.ends)),
    )
    return Trees(rows, symbols.names), errors


def _joined(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Texts one behind the other in UTF-8, where each begins, and which cannot be written so."""
    sizes = list(map(len, texts))
    whole = "".join(texts)
    broken: list[int] = []
    if whole.isascii():
        data = whole.encode("ascii")
    else:
        pieces = []
        for t, text in enumerate(texts):
            try:
                pieces.append(text.encode())
            except UnicodeEncodeError:
                pieces.append(b"")
                broken.append(t)
        sizes = list(map(len, pieces))
        data = b"".join(pieces)
    offsets = np.fromiter(accumulate(sizes, initial=0), np.int64, len(sizes) + 1)
    return np.frombuffer(data, np.uint8), offsets, broken


def _error(
    texts: Sequence[str], t: int, text: np.ndarray, offsets: np.ndarray, found: Scanned
) -> TreeTextError:
    code = int(found.codes[t])
    if code == NOT_TEXT:
        character = next(i for i, c in enumerate(texts[t]) if "\ud800" <= c <= "\udfff")
    else:
        character = len(text[offsets[t] : found.places[t]].tobytes().decode())
    shown = texts[t][character : character + 40].encode("utf-8", "replace").decode()
    return TreeTextError(t, EXPECTED[code], character + 1, shown or "the end of the text")
