"""One tree as the families see it: symbols behind the specials, heads found, leaves by token."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.component import inlined, kernel
from hopefear.features.brackets.heads import NO_RANK
from hopefear.features.trees.kinds import EMPTY, N_SPECIALS, OUTSIDE, ZERO
from hopefear.features.trees.symbols import FUNCTIONAL, PUNCTUATES

NODES, TOKENS = 0, 1  # positions in Tree.size


class Scratch(NamedTuple):
    """Room for what is worked out of one tree; [2, nodes] is by kind of head."""

    labels: np.ndarray  # int32[nodes]
    words: np.ndarray  # int32[nodes]: what to show under a leaf; EMPTY above
    bits: np.ndarray  # uint8[nodes]: of the label
    depths: np.ndarray  # int32[nodes]
    lefts: np.ndarray  # int32[nodes]: sibling before; -1 where there is none
    lasts: np.ndarray  # int32[nodes]: last child; -1 where there is none
    leaves: np.ndarray  # int32[nodes]: node above each token
    heads: np.ndarray  # int32[2, nodes]: the child that is the head; -1 at leaves
    leads: np.ndarray  # int32[2, nodes]: the leaf that is the head of a node
    tops: np.ndarray  # int32[2, nodes]: the highest node a leaf is the head of
    size: np.ndarray  # int64[2]: nodes, tokens


class Tree(NamedTuple):
    """A tree: positions of nodes count from its root."""

    parents: np.ndarray
    nexts: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    labels: np.ndarray
    words: np.ndarray
    bits: np.ndarray
    depths: np.ndarray
    lefts: np.ndarray
    lasts: np.ndarray
    leaves: np.ndarray
    heads: np.ndarray
    leads: np.ndarray
    tops: np.ndarray
    size: np.ndarray


def new_scratch(nodes: int) -> Scratch:
    """Room for trees of so many nodes."""

    def one() -> np.ndarray:
        return np.zeros(nodes, np.int32)

    def two() -> np.ndarray:
        return np.zeros((2, nodes), np.int32)

    bits = np.zeros(nodes, np.uint8)
    return Scratch(
        one(), one(), bits, one(), one(), one(), one(), two(), two(), two(), np.zeros(2, np.int64)
    )


@inlined
def view(rows, t, s):
    """Tree t, with what `prepare` worked out of it."""
    a, b = rows.starts[t], rows.starts[t + 1]
    return Tree(
        rows.parents[a:b],
        rows.nexts[a:b],
        rows.begins[a:b],
        rows.ends[a:b],
        s.labels,
        s.words,
        s.bits,
        s.depths,
        s.lefts,
        s.lasts,
        s.leaves,
        s.heads,
        s.leads,
        s.tops,
        s.size,
    )


@kernel
def prepare(rows, t, bits, lower, tree):
    """Fill in the scratch arrays of tree t, but for heads."""
    a = rows.starts[t]
    n = rows.starts[t + 1] - a
    tokens = 0
    for v in range(n):
        label = N_SPECIALS + rows.labels[a + v]
        tree.labels[v] = label
        tree.bits[v] = bits[label]
        word = rows.words[a + v]
        tree.words[v] = lower[word] if word >= 0 else EMPTY
        if word >= 0:
            tree.leaves[rows.begins[a + v]] = v
            tokens += 1
        parent = rows.parents[a + v]
        tree.lasts[v] = -1
        tree.lefts[v] = -1
        tree.depths[v] = 0
        if parent >= 0:
            tree.depths[v] = tree.depths[parent] + 1
            tree.lefts[v] = tree.lasts[parent]
            tree.lasts[parent] = v
    tree.size[NODES] = n
    tree.size[TOKENS] = tokens


@kernel
def find_heads(tree, rules):
    """Fill in heads, leads and tops of a tree whose other arrays are there."""
    row, column, rank, late, joins = rules.row, rules.column, rules.rank, rules.late, rules.joins
    labels, lefts = tree.labels, tree.lefts
    for kind in range(2):
        for v in range(tree.size[NODES] - 1, -1, -1):
            rule = row[labels[v]]
            child = tree.lasts[v]
            head, best = child, NO_RANK
            while child >= 0:  # from the last to the first
                found = rank[kind, rule, column[labels[child]]]
                if found < best or (found == best < NO_RANK and not late[kind, rule, found]):
                    head, best = child, found
                child = lefts[child]
            if head >= 0 and lefts[head] >= 0 and joins[labels[lefts[head]]]:
                other = lefts[lefts[head]]
                while other >= 0 and tree.bits[other] & PUNCTUATES:
                    other = lefts[other]
                head = other if other >= 0 else head
            lead = tree.leads[kind, head] if head >= 0 else v
            tree.heads[kind, v] = head
            tree.leads[kind, v] = lead
            # Nodes of one lead are a chain, visited from below, so the highest stays.
            tree.tops[kind, lead] = v


@inlined
def inner(tree, v):
    """Whether a node has children."""
    return tree.lasts[v] >= 0


@inlined
def punctuates(tree, v):
    return (tree.bits[v] & PUNCTUATES) != 0


@inlined
def functional(tree, v):
    """Whether a node is the tag of a function word."""
    return (tree.bits[v] & FUNCTIONAL) != 0


@inlined
def label_above(tree, v):
    """Label of the parent, `OUTSIDE` above the root."""
    return tree.labels[tree.parents[v]] if v >= 0 and tree.parents[v] >= 0 else OUTSIDE


@inlined
def binned(length):
    """Number to show for a length: the least of those that count as the same."""
    if length <= 4:
        least = length
    elif length <= 6:
        least = 5
    elif length <= 9:
        least = 7
    elif length <= 14:
        least = 10
    elif length <= 21:
        least = 15
    else:
        least = 22
    return ZERO + least
