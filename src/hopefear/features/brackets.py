"""Constituent trees as arrays: read from brackets, written, taken apart and compared.

A tree is ``(LABEL child child …)`` or ``(TAG word)``; the label may be absent before a bracket, as
in ``( (S …))``. White space is free between brackets, labels and words.

Brackets that two trees share are counted as EVALB counts them with COLLINS.prm. A bracket is a
constituent: its label and the first and last word it covers. Tags are none. Words are deleted by
their tags, brackets that are left empty are dropped, and so are those of the root. Equal brackets
of a tree are matched one to one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hopefear.core.arrays import frozen, gathered
from hopefear.core.component import helper, kernel
from hopefear.errors import HopefearError


class BracketRows(NamedTuple):
    """The arrays a kernel sees; all read-only and contiguous.

    Tree t has the nodes ``starts[t] .. starts[t + 1] - 1``, in preorder: a node stands before its
    children, and its subtree is one stretch. Words are no nodes; the tag above a word carries it.
    Positions of nodes count from the root of their tree, positions of tokens from its first.
    """

    starts: np.ndarray  # int64[trees + 1]
    labels: np.ndarray  # int32[nodes]: symbol of a constituent or of a tag
    words: np.ndarray  # int32[nodes]: symbol of the word under a tag; -1 above tags
    parents: np.ndarray  # int32[nodes]: position in the tree; -1 at the root
    nexts: np.ndarray  # int32[nodes]: position behind the last node of the subtree
    begins: np.ndarray  # int32[nodes]: first token covered
    ends: np.ndarray  # int32[nodes]: behind the last token covered


@dataclass(frozen=True)
class BracketTrees:
    """Trees, and the strings of their symbols."""

    rows: BracketRows
    symbols: Sequence[str]

    def __len__(self) -> int:
        return len(self.rows.starts) - 1

    def compact(self) -> BracketTrees:
        """The same trees with only the symbols they use, in the same order.

        >>> rows = BracketRows(*map(np.array, ([0, 1], [5], [7], [-1], [1], [0], [1])))
        >>> result = BracketTrees(rows, list("abcdefgh")).compact()
        >>> result.symbols, result.rows.labels.tolist(), result.rows.words.tolist()
        (['f', 'h'], [0], [1])
        """
        rows, used = self.rows, np.zeros(len(self.symbols) + 1, bool)
        used[rows.labels] = used[rows.words] = True  # no word is -1, which is the last
        used[-1] = False
        numbers = np.cumsum(used, dtype=np.int32) - np.int32(1)
        numbers[-1] = -1
        symbols = [self.symbols[s] for s in np.flatnonzero(used).tolist()]
        return BracketTrees(
            rows._replace(labels=numbers[rows.labels], words=numbers[rows.words]), symbols
        )


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
    positions: np.ndarray  # int64[trees]: the byte at which it is


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
    >>> result = scan_trees(text, np.array([0, len(text)]))
    >>> result.parents.tolist(), result.nexts.tolist(), result.ends.tolist()
    ([-1, 0, 1, 0, 3], [5, 3, 3, 5, 5], [2, 1, 1, 2, 2])
    """
    room = int(np.count_nonzero(text == _OPEN))
    trees = len(offsets) - 1
    spans = np.empty((5, room), np.int64)
    nodes = np.empty((4, room), np.int32)
    starts = np.zeros(trees + 1, np.int64)
    codes, positions = np.zeros(trees, np.uint8), np.zeros(trees, np.int64)
    tokens = _scan(text, offsets, starts, spans, nodes, codes, positions)
    size = int(starts[-1])
    labels, words = spans[:2, :size], spans[2:, :tokens]
    return Scanned._make((starts, *labels, *words, *nodes[:, :size], codes, positions))


@kernel
def _scan(text, offsets, starts, spans, nodes, codes, positions):
    size, tokens = 0, 0
    for t in range(len(offsets) - 1):
        code, position, n_nodes, words = _scan_tree(
            text, offsets[t], offsets[t + 1], size, tokens, spans, nodes
        )
        codes[t], positions[t] = code, position
        if code == GOOD:
            size += n_nodes
            tokens += words
        starts[t + 1] = size
    return tokens


@helper(inline=True)
def _scan_tree(text, p, stop, first, first_token, spans, nodes):
    label_begins, label_ends, word_begins, word_ends, tags = spans
    parents, nexts, starts, ends = nodes
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
            parents[new], starts[new] = node, tokens
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


@helper(inline=True)
def _white(byte):
    return byte == 32 or 9 <= byte <= 13


@helper(inline=True)
def _skip(text, p, stop):
    while p < stop and _white(text[p]):
        p += 1
    return p


@helper(inline=True)
def _word_end(text, p, stop):
    while p < stop and text[p] != _OPEN and text[p] != _CLOSE and not _white(text[p]):
        p += 1
    return p


def take_trees(trees: BracketTrees, indices: np.ndarray) -> BracketTrees:
    """Returns the trees of these numbers, in this order; symbols keep their numbers."""
    starts, nodes = gathered(trees.rows.starts, indices)
    arrays = map(frozen, (starts, *(array[nodes] for array in trees.rows[1:])))
    return BracketTrees(BracketRows(*arrays), trees.symbols)


def bracketed(trees: BracketTrees, t: int) -> str:
    """Tree ``t`` in brackets on one line, as treebanks write it.

    Examples
    --------
    >>> from hopefear.data.lists.trees import parse_trees
    >>> bracketed(parse_trees(["( (S (NP(PRP it))  (VP (VBZ is))))"]), 0)
    '( (S (NP (PRP it)) (VP (VBZ is))))'
    """
    rows, symbols = trees.rows, trees.symbols
    span = slice(int(rows.starts[t]), int(rows.starts[t + 1]))
    pieces: list[str] = []
    open_ends: list[int] = []
    nodes = zip(
        rows.labels[span].tolist(),
        rows.words[span].tolist(),
        rows.nexts[span].tolist(),
        strict=True,
    )
    for position, (label, word, behind) in enumerate(nodes):
        while open_ends and open_ends[-1] <= position:
            pieces.append(")")
            open_ends.pop()
        pieces.append(f" ({symbols[label]}" if position else f"({symbols[label]}")
        if word >= 0:
            pieces.append(f" {symbols[word]}")
        open_ends.append(behind)
    return "".join(pieces) + ")" * len(open_ends)


def words_of(trees: BracketTrees, t: int) -> list[str]:
    """The words under tree ``t``."""
    words = trees.rows.words[int(trees.rows.starts[t]) : int(trees.rows.starts[t + 1])]
    return [trees.symbols[word] for word in words[words >= 0].tolist()]


ROOTS = frozenset(("", "TOP", "S1", "ROOT"))
PUNCTUATION = frozenset((",", ":", "``", "''", ".", "-NONE-"))
EQUIVALENT_LABELS = {"PRT": "ADVP"}

# Columns of `evaluation_counts`.
MATCHED, GOLD, TEST, EXACT, CROSSING, UNCROSSED, FEW, TAGS, WORDS, VALID, ERRORS, EMPTY = range(12)


class _SymbolRoles(NamedTuple):
    """Roles of the symbols of a corpus; symbols of two corpora share the numbers."""

    labels: np.ndarray  # int64[symbols]: number of the label of a bracket, -1 where none is scored
    tags: np.ndarray  # int64[symbols]: number of a tag, -1 where its word is deleted


def bracket_counts(gold: BracketTrees, trees: BracketTrees, of: np.ndarray) -> np.ndarray:
    """Brackets of each tree that are in its gold tree, of the gold tree, and of the tree.

    Words whose *gold* tag is punctuation are deleted from both trees, so a parser that mistags a
    comma is still scored on all its sentences.

    Parameters
    ----------
    gold, trees : Trees
        They may number their symbols differently.
    of : int array
        Gold tree of each tree. Fastest where trees of one gold tree are adjacent.

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
    sizes, gold_sizes = _lengths(trees), _lengths(gold)[of]
    if (wrong := np.flatnonzero(sizes != gold_sizes)).size:
        t = int(wrong[0])
        raise HopefearError(
            f"tree {t + 1} has {sizes[t]} words, its gold tree {gold_sizes[t]}; brackets are "
            "matched by position, so compare trees of the same words"
        )
    gold_roles, tree_roles = _roles(gold, trees)
    counts = np.zeros((len(trees), 3), np.int64)
    _match(
        gold.rows,
        trees.rows,
        of,
        gold_roles,
        tree_roles,
        _width(gold, trees),
        _room(gold, trees),
        counts,
    )
    return counts


def evaluation_counts(gold: BracketTrees, trees: BracketTrees) -> np.ndarray:
    """Everything that EVALB prints, counted for each pair of trees ``[trees, 12]``.

    Each tree loses the words that its *own* tags call punctuation. A pair whose other words differ
    is an error, one without words is empty; both count in nothing else.

    The columns are brackets matched, in gold and in the tree; trees with no other brackets than
    gold; brackets that cross one of gold; trees without such, and with at most two; tags right, and
    words; pairs that are valid, errors, and empty.
    """
    of = _checked(gold, trees, np.arange(len(gold)))
    gold_roles, tree_roles = _roles(gold, trees)
    number_of: dict[str, int] = {}
    words = [
        np.fromiter((number_of.setdefault(s, len(number_of)) for s in part.symbols), np.int64)
        for part in (gold, trees)
    ]
    counts = np.zeros((len(trees), 12), np.int64)
    room, width = _room(gold, trees), _width(gold, trees)
    _evaluate(
        gold.rows, trees.rows, of, gold_roles, tree_roles, words[0], words[1], width, room, counts
    )
    return counts


def _checked(gold: BracketTrees, trees: BracketTrees, of: np.ndarray) -> np.ndarray:
    of = np.ascontiguousarray(of, np.int64)
    if len(of) != len(trees):
        raise HopefearError(f"{len(trees)} trees and {len(of)} gold trees; give each tree its own")
    if len(of) and not (of.min() >= 0 and of.max() < len(gold)):
        raise HopefearError(f"gold tree {of.max()} was asked for, out of {len(gold)} from 0")
    for name, part in (("gold tree", gold), ("tree", trees)):
        if (bare := np.flatnonzero(np.diff(part.rows.starts) == 0)).size:
            raise HopefearError(f"{name} {bare[0] + 1} has no nodes; leave it out")
    return of


def _lengths(trees: BracketTrees) -> np.ndarray:
    return trees.rows.ends[trees.rows.starts[:-1]]


def _roles(*parts: BracketTrees) -> list[_SymbolRoles]:
    number_of: dict[str, int] = {}
    rows = []
    for part in parts:
        size = len(part.symbols)
        roles = _SymbolRoles(np.full(size, -1, np.int64), np.full(size, -1, np.int64))
        for s in _distinct(part.rows.labels, size):
            name = part.symbols[s]
            if name in PUNCTUATION:
                continue
            roles.tags[s] = number_of.setdefault(EQUIVALENT_LABELS.get(name, name), len(number_of))
            label = _bare(name)
            if label not in ROOTS and label not in PUNCTUATION:
                roles.labels[s] = number_of.setdefault(
                    EQUIVALENT_LABELS.get(label, label), len(number_of)
                )
        rows.append(roles)
    return rows


def _bare(label: str) -> str:
    """``NP`` of ``NP-SBJ-1`` and ``NP=2``."""
    return label[:1] + label[1:].split("-", 1)[0].split("=", 1)[0]


def _distinct(numbers: np.ndarray, size: int) -> list[int]:
    is_used = np.zeros(size, bool)
    is_used[numbers] = True
    return np.flatnonzero(is_used).tolist()


def _room(*parts: BracketTrees) -> int:
    return max(int(np.diff(part.rows.starts).max(initial=0)) for part in parts) + 1


def _width(*parts: BracketTrees) -> int:
    width = max(int(part.rows.ends.max(initial=0)) for part in parts) + 1
    if width * width * sum(len(part.symbols) for part in parts) >= 2**62:
        raise HopefearError(f"a tree of {width - 1} words is too long to be scored")
    return width


@helper(inline=True)
def _positions(rows, t, roles, positions):
    """Numbers tokens without those of deleted tags; returns how many remain."""
    left, token = 0, 0
    for node in range(rows.starts[t], rows.starts[t + 1]):
        if rows.words[node] >= 0:
            positions[token] = left
            token += 1
            left += roles.tags[rows.labels[node]] >= 0
    positions[token] = left
    return left


@helper(inline=True)
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


@helper(inline=True)
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


@helper(inline=True)
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
def _match(gold, trees, of, gold_roles, tree_roles, width, room, counts):
    positions = np.empty(room, np.int64)
    gold_brackets, tree_brackets = np.empty(room, np.int64), np.empty(room, np.int64)
    before, m = -1, 0
    for t in range(len(of)):
        if of[t] != before:
            before = of[t]
            _positions(gold, before, gold_roles, positions)
            m = _brackets(gold, before, gold_roles, positions, width, gold_brackets)
        n = _brackets(trees, t, tree_roles, positions, width, tree_brackets)
        counts[t, MATCHED] = _shared(gold_brackets, m, tree_brackets, n)
        counts[t, GOLD] = m
        counts[t, TEST] = n


@kernel
def _evaluate(gold, trees, of, gold_roles, tree_roles, our_words, their_words, width, room, counts):
    positions, tree_positions = np.empty(room, np.int64), np.empty(room, np.int64)
    gold_brackets, tree_brackets = np.empty(room, np.int64), np.empty(room, np.int64)
    for t in range(len(of)):
        row = counts[t]
        left = _positions(gold, of[t], gold_roles, positions)
        right = _positions(trees, t, tree_roles, tree_positions)
        if right == 0:
            row[EMPTY] = 1
            continue
        tags = _tags_right(gold, of[t], trees, t, gold_roles, tree_roles, our_words, their_words)
        if left != right or tags < 0:
            row[ERRORS] = 1
            continue
        m = _brackets(gold, of[t], gold_roles, positions, width, gold_brackets)
        n = _brackets(trees, t, tree_roles, tree_positions, width, tree_brackets)
        row[MATCHED], row[GOLD], row[TEST] = _shared(gold_brackets, m, tree_brackets, n), m, n
        row[EXACT] = row[MATCHED] == m and m == n
        row[CROSSING] = _crossing(gold_brackets, m, tree_brackets, n, width)
        row[UNCROSSED], row[FEW] = row[CROSSING] == 0, row[CROSSING] <= 2
        row[TAGS], row[WORDS], row[VALID] = tags, left, 1


@helper(inline=True)
def _tags_right(gold, g, trees, t, gold_roles, tree_roles, our_words, their_words):
    """Words with the gold tag among those left; -1 where the words differ."""
    right = 0
    j = trees.starts[t]
    for i in range(gold.starts[g], gold.starts[g + 1]):
        if gold.words[i] < 0 or gold_roles.tags[gold.labels[i]] < 0:
            continue
        while j < trees.starts[t + 1] and (
            trees.words[j] < 0 or tree_roles.tags[trees.labels[j]] < 0
        ):
            j += 1
        if j == trees.starts[t + 1]:
            return -1
        if our_words[gold.words[i]] != their_words[trees.words[j]]:
            return -1
        right += gold_roles.tags[gold.labels[i]] == tree_roles.tags[trees.labels[j]]
        j += 1
    return right
