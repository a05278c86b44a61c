"""Bracketed text into nodes: one pass over the bytes of many trees.

A tree is ``(LABEL child child …)`` or ``(TAG word)``; the label may be absent before a bracket, as
in ``( (S …))``. White space may stand anywhere between brackets, labels and words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.component import inlined, kernel

GOOD, NO_TREE, UNCLOSED, HOLLOW, CROWDED, MIXED, TRAILING, NOT_TEXT = range(8)
EXPECTED = (
    "",
    "a tree that begins with '('",
    "a ')' for every '('",
    "a word or a constituent between '(' and ')'",
    "one word in a bracket",
    "either words or brackets inside a bracket, not both",
    "nothing behind the tree",
    "Unicode text",
)

_OPEN, _CLOSE = 40, 41


class Scanned(NamedTuple):
    """Nodes in preorder, strings still as stretches of the text; a bad tree has no nodes."""

    starts: np.ndarray  # int64[trees + 1]
    label_begins: np.ndarray  # int64[nodes]
    label_ends: np.ndarray  # int64[nodes]
    word_begins: np.ndarray  # int64[tokens]
    word_ends: np.ndarray  # int64[tokens]
    tags: np.ndarray  # int64[tokens]: the node above each word
    parents: np.ndarray  # int32[nodes]
    nexts: np.ndarray  # int32[nodes]
    begins: np.ndarray  # int32[nodes]
    ends: np.ndarray  # int32[nodes]
    codes: np.ndarray  # uint8[trees]: what is wrong, GOOD if nothing
    places: np.ndarray  # int64[trees]: the byte at which it is


def scan_trees(text: np.ndarray, offsets: np.ndarray) -> Scanned:
    """Nodes of the trees ``text[offsets[t]:offsets[t + 1]]``.

    Parameters
    ----------
    text : uint8 array
        Trees one behind the other, in UTF-8.
    offsets : int64 array
        Where each begins, and the end of the last.

    Examples
    --------
    >>> text = np.frombuffer(b"(S (NP (PRP it)) (VP (VBZ is)))", np.uint8)
    >>> found = scan_trees(text, np.array([0, len(text)]))
    >>> found.parents.tolist(), found.nexts.tolist(), found.ends.tolist()
    ([-1, 0, 1, 0, 3], [5, 3, 3, 5, 5], [2, 1, 1, 2, 2])
    """
    room = int(np.count_nonzero(text == _OPEN))
    trees = len(offsets) - 1
    spans = np.empty((5, room), np.int64)
    nodes = np.empty((4, room), np.int32)
    starts = np.zeros(trees + 1, np.int64)
    codes, places = np.zeros(trees, np.uint8), np.zeros(trees, np.int64)
    tokens = _scan(text, offsets, starts, spans, nodes, codes, places)
    size = int(starts[-1])
    labels, words = spans[:2, :size], spans[2:, :tokens]
    return Scanned._make((starts, *labels, *words, *nodes[:, :size], codes, places))


@kernel
def _scan(text, offsets, starts, spans, nodes, codes, places):
    size, tokens = 0, 0
    for t in range(len(offsets) - 1):
        code, place, found, words = _scan_tree(
            text, offsets[t], offsets[t + 1], size, tokens, spans, nodes
        )
        codes[t], places[t] = code, place
        if code == GOOD:
            size += found
            tokens += words
        starts[t + 1] = size
    return tokens


@inlined
def _scan_tree(text, p, stop, first, first_token, spans, nodes):
    label_begins, label_ends, word_begins, word_ends, tags = spans
    parents, nexts, begins, ends = nodes
    size, tokens, node = 0, 0, -1  # node: the innermost open bracket
    p = _skip(text, p, stop)
    if p == stop or text[p] != _OPEN:
        return NO_TREE, p, 0, 0
    opened = p
    while True:
        if text[p] == _OPEN:
            opened = p
            begin = _skip(text, p + 1, stop)
            p = _word_end(text, begin, stop)
            new = first + size
            label_begins[new], label_ends[new] = begin, p
            parents[new], begins[new] = node, tokens
            node = size
            size += 1
            p = _skip(text, p, stop)
            if p == stop:
                return UNCLOSED, opened, 0, 0
            if text[p] == _CLOSE:
                return HOLLOW, opened, 0, 0
            if text[p] == _OPEN:
                continue
            token = first_token + tokens
            word_begins[token] = p
            p = _word_end(text, p, stop)
            word_ends[token] = p
            tags[token] = new
            tokens += 1
            p = _skip(text, p, stop)
            if p == stop:
                return UNCLOSED, opened, 0, 0
            if text[p] != _CLOSE:
                return (MIXED if text[p] == _OPEN else CROWDED), p, 0, 0
        elif text[p] != _CLOSE:
            return MIXED, p, 0, 0
        nexts[first + node], ends[first + node] = size, tokens
        node = parents[first + node]
        p = _skip(text, p + 1, stop)
        if node < 0:
            if p < stop:
                return TRAILING, p, 0, 0
            return GOOD, 0, size, tokens
        if p == stop:
            return UNCLOSED, label_begins[first + node] - 1, 0, 0


@inlined
def _white(byte):
    return byte == 32 or 9 <= byte <= 13


@inlined
def _skip(text, p, stop):
    while p < stop and _white(text[p]):
        p += 1
    return p


@inlined
def _word_end(text, p, stop):
    while p < stop and text[p] != _OPEN and text[p] != _CLOSE and not _white(text[p]):
        p += 1
    return p
