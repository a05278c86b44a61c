"""Brackets that two trees share, counted as EVALB counts them with COLLINS.prm.

A bracket is a constituent: its label and the first and last word it covers. Tags are none. Words
are deleted by their tags, brackets that are left empty are dropped, and so are those of the root.
Equal brackets of a tree are matched one to one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.component import inlined, kernel
from hopefear.errors import HopefearError
from hopefear.features.brackets.rows import Trees

ROOTS = frozenset(("", "TOP", "S1", "ROOT"))
PUNCTUATION = frozenset((",", ":", "``", "''", ".", "-NONE-"))
SAME = {"PRT": "ADVP"}

# Columns of `evaluation_counts`.
MATCHED, GOLD, TEST, WHOLE, CROSSING, UNCROSSED, FEW, TAGS, WORDS, VALID, ERRORS, EMPTY = range(12)


class _Roles(NamedTuple):
    """What each symbol of a corpus stands for; symbols of two corpora share the numbers."""

    labels: np.ndarray  # int64[symbols]: number of the label of a bracket, -1 where none is scored
    tags: np.ndarray  # int64[symbols]: number of a tag, -1 where its word is deleted


def bracket_counts(gold: Trees, trees: Trees, of: np.ndarray) -> np.ndarray:
    """Brackets of each tree that are in its gold tree, of the gold tree, and of the tree.

    Words whose *gold* tag is punctuation are deleted from both trees, so a parser that mistags a
    comma is still scored on all its sentences.

    Parameters
    ----------
    gold, trees : Trees
        They may number their symbols differently.
    of : int array
        Gold tree of each tree. Fastest where trees of one gold tree stand together.

    Returns
    -------
    int64 array [trees, 3]

    Examples
    --------
    >>> from hopefear.data.lists.trees import parse_trees
    >>> gold = parse_trees(["(S1 (S (NP (PRP it)) (VP (VBZ is)) (. .)))"])
    >>> trees = parse_trees(["(S1 (S (NP (PRP it)) (FRAG (VBZ is)) (. .)))"])
    >>> bracket_counts(gold, trees, np.array([0])).tolist()
    [[2, 3, 3]]
    """
    of = _checked(gold, trees, of)
    sizes, wanted = _lengths(trees), _lengths(gold)[of]
    if (wrong := np.flatnonzero(sizes != wanted)).size:
        t = int(wrong[0])
        raise HopefearError(
            f"tree {t + 1} has {sizes[t]} words, its gold tree {wanted[t]}; brackets are matched "
            "by position, so compare trees of the same words"
        )
    ours, theirs = _roles(gold, trees)
    counts = np.zeros((len(trees), 3), np.int64)
    _match(gold.rows, trees.rows, of, ours, theirs, _width(gold, trees), _room(gold, trees), counts)
    return counts


def evaluation_counts(gold: Trees, trees: Trees) -> np.ndarray:
    """Everything that EVALB prints, counted for each pair of trees ``[trees, 12]``.

    Each tree loses the words that its *own* tags call punctuation. A pair whose other words differ
    is an error, one without words is empty; both count in nothing else.

    The columns are brackets matched, in gold and in the tree; trees with no other brackets than
    gold; brackets that cross one of gold; trees without such, and with at most two; tags right, and
    words; pairs that are valid, errors, and empty.
    """
    of = _checked(gold, trees, np.arange(len(gold)))
    ours, theirs = _roles(gold, trees)
    known: dict[str, int] = {}
    words = [
        np.fromiter((known.setdefault(s, len(known)) for s in part.symbols), np.int64)
        for part in (gold, trees)
    ]
    counts = np.zeros((len(trees), 12), np.int64)
    room, width = _room(gold, trees), _width(gold, trees)
    _evaluate(gold.rows, trees.rows, of, ours, theirs, words[0], words[1], width, room, counts)
    return counts


def bracket_costs(counts: np.ndarray) -> np.ndarray:
    """``1 - F1`` of each row of counts, between 0 and 1; 0 where neither tree has a bracket.

    Examples
    --------
    >>> bracket_costs(np.array([[2, 3, 3], [0, 0, 0], [0, 1, 0]])).round(2).tolist()
    [0.33, 0.0, 1.0]
    """
    matched, all_ = counts[..., MATCHED], counts[..., GOLD] + counts[..., TEST]
    f1 = np.divide(2.0 * matched, all_, out=np.ones(all_.shape), where=all_ > 0)
    return 1.0 - f1


def _checked(gold: Trees, trees: Trees, of: np.ndarray) -> np.ndarray:
    of = np.ascontiguousarray(of, np.int64)
    if len(of) != len(trees):
        raise HopefearError(f"{len(trees)} trees and {len(of)} gold trees; give each tree its own")
    if len(of) and not (of.min() >= 0 and of.max() < len(gold)):
        raise HopefearError(f"gold tree {of.max()} was asked for, out of {len(gold)} from 0")
    for name, part in (("gold tree", gold), ("tree", trees)):
        if (bare := np.flatnonzero(np.diff(part.rows.starts) == 0)).size:
            raise HopefearError(f"{name} {bare[0] + 1} has no nodes; leave it out")
    return of


def _lengths(trees: Trees) -> np.ndarray:
    return trees.rows.ends[trees.rows.starts[:-1]]


def _roles(*parts: Trees) -> list[_Roles]:
    known: dict[str, int] = {}
    found = []
    for part in parts:
        size = len(part.symbols)
        roles = _Roles(np.full(size, -1, np.int64), np.full(size, -1, np.int64))
        for s in _distinct(part.rows.labels, size):
            name = part.symbols[s]
            if name in PUNCTUATION:
                continue
            roles.tags[s] = known.setdefault(SAME.get(name, name), len(known))
            label = _bare(name)
            if label not in ROOTS and label not in PUNCTUATION:
                roles.labels[s] = known.setdefault(SAME.get(label, label), len(known))
        found.append(roles)
    return found


def _bare(label: str) -> str:
    """``NP`` of ``NP-SBJ-1`` and ``NP=2``."""
    return label[:1] + label[1:].split("-", 1)[0].split("=", 1)[0]


def _distinct(numbers: np.ndarray, size: int) -> list[int]:
    seen = np.zeros(size, bool)
    seen[numbers] = True
    return np.flatnonzero(seen).tolist()


def _room(*parts: Trees) -> int:
    return max(int(np.diff(part.rows.starts).max(initial=0)) for part in parts) + 1


def _width(*parts: Trees) -> int:
    width = max(int(part.rows.ends.max(initial=0)) for part in parts) + 1
    if width * width * sum(len(part.symbols) for part in parts) >= 2**62:
        raise HopefearError(f"a tree of {width - 1} words is too long to be scored")
    return width


@inlined
def _positions(rows, t, roles, positions):
    """Where each token stands once those with deleted tags are gone; the number that is left."""
    left, token = 0, 0
    for node in range(rows.starts[t], rows.starts[t + 1]):
        if rows.words[node] >= 0:
            positions[token] = left
            token += 1
            left += roles.tags[rows.labels[node]] >= 0
    positions[token] = left
    return left


@inlined
def _brackets(rows, t, roles, positions, width, keys):
    """Sorted ``(label, begin, end)`` of the brackets of a tree, each as one number."""
    size = 0
    for node in range(rows.starts[t], rows.starts[t + 1]):
        label = roles.labels[rows.labels[node]]
        begin, end = positions[rows.begins[node]], positions[rows.ends[node]]
        if rows.words[node] < 0 and label >= 0 and begin < end:
            keys[size] = (label * width + begin) * width + end
            size += 1
    keys[:size].sort()
    return size


@inlined
def _shared(a, m, b, n):
    i, j, shared = 0, 0, 0
    while i < m and j < n:
        if a[i] == b[j]:
            i, j, shared = i + 1, j + 1, shared + 1
        elif a[i] < b[j]:
            i += 1
        else:
            j += 1
    return shared


@inlined
def _crossing(a, m, b, n, width):
    """Brackets of b that cross one of a."""
    count = 0
    for j in range(n):
        begin, end = (b[j] // width) % width, b[j] % width
        for i in range(m):
            first, last = (a[i] // width) % width, a[i] % width
            if first < begin < last < end or begin < first < end < last:
                count += 1
                break
    return count


@kernel
def _match(gold, trees, of, ours, theirs, width, room, counts):
    positions = np.empty(room, np.int64)
    wanted, found = np.empty(room, np.int64), np.empty(room, np.int64)
    before, m = -1, 0
    for t in range(len(of)):
        if of[t] != before:
            before = of[t]
            _positions(gold, before, ours, positions)
            m = _brackets(gold, before, ours, positions, width, wanted)
        n = _brackets(trees, t, theirs, positions, width, found)
        counts[t, MATCHED] = _shared(wanted, m, found, n)
        counts[t, GOLD] = m
        counts[t, TEST] = n


@kernel
def _evaluate(gold, trees, of, ours, theirs, our_words, their_words, width, room, counts):
    positions, others = np.empty(room, np.int64), np.empty(room, np.int64)
    wanted, found = np.empty(room, np.int64), np.empty(room, np.int64)
    for t in range(len(of)):
        row = counts[t]
        left = _positions(gold, of[t], ours, positions)
        right = _positions(trees, t, theirs, others)
        if right == 0:
            row[EMPTY] = 1
            continue
        tags = _tags_right(gold, of[t], trees, t, ours, theirs, our_words, their_words)
        if left != right or tags < 0:
            row[ERRORS] = 1
            continue
        m = _brackets(gold, of[t], ours, positions, width, wanted)
        n = _brackets(trees, t, theirs, others, width, found)
        row[MATCHED], row[GOLD], row[TEST] = _shared(wanted, m, found, n), m, n
        row[WHOLE] = row[MATCHED] == m and m == n
        row[CROSSING] = _crossing(wanted, m, found, n, width)
        row[UNCROSSED], row[FEW] = row[CROSSING] == 0, row[CROSSING] <= 2
        row[TAGS], row[WORDS], row[VALID] = tags, left, 1


@inlined
def _tags_right(gold, g, trees, t, ours, theirs, our_words, their_words):
    """Words with the gold tag among those left; -1 where the words differ."""
    right = 0
    j = trees.starts[t]
    for i in range(gold.starts[g], gold.starts[g + 1]):
        if gold.words[i] < 0 or ours.tags[gold.labels[i]] < 0:
            continue
        while j < trees.starts[t + 1] and (trees.words[j] < 0 or theirs.tags[trees.labels[j]] < 0):
            j += 1
        if j == trees.starts[t + 1]:
            return -1
        if our_words[gold.words[i]] != their_words[trees.words[j]]:
            return -1
        right += ours.tags[gold.labels[i]] == theirs.tags[trees.labels[j]]
        j += 1
    return right
