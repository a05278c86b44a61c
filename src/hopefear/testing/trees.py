"""All trees of a few words, for contracts, and one small structure of every kind."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import ArcFeatures, n_weights
from hopefear.core.workspace import Example
from hopefear.data.tree_rows import TreeRows
from hopefear.structures.chain.chain import Chain
from hopefear.structures.classes import Binary, Multiclass
from hopefear.structures.nbest import NBest
from hopefear.structures.segments.segments import Segments
from hopefear.structures.tree.searches import (
    Nonprojective,
    NonprojectiveSecond,
    Projective,
    ProjectiveSecond,
)
from hopefear.structures.tree.tree import Tree
from hopefear.testing.segments import segment_outputs  # noqa: F401 - registers itself
from hopefear.testing.worlds import Outputs, outputs_of, tiny_rows


@component(ArcFeatures)
class TinyArcs(NamedTuple):
    """A few features for every part, some of them twice; no words are looked at."""

    plain: int = 12
    rows: int = 5

    def new_buffer(self, data):
        return TinyPad(np.zeros(4, np.uint32))

    def max_keys(self, data):
        return 32

    def arc_keys(self, x, h, m, pad):
        pad.keys[0] = (3 * h + 5 * m + x.i) % self.plain
        pad.keys[1] = (7 * h + 2 * m) % self.plain
        return 2

    def label_keys(self, x, h, m, pad):
        pad.keys[0] = (2 * h + m) % self.rows
        pad.keys[1] = (h + 3 * m + x.i) % self.rows
        return 2

    def sibling_keys(self, x, h, s, m, pad):
        pad.keys[0] = (5 * h + 7 * s + m) % self.plain
        return 1

    def outermost_child_keys(self, x, h, m, pad):
        pad.keys[0] = (4 * h + m) % self.plain
        return 1

    def grandparent_keys(self, x, g, h, m, pad):
        pad.keys[0] = (g + 3 * h + 11 * m) % self.plain
        return 1


class TinyPad(NamedTuple):
    """Where features are written."""

    keys: np.ndarray


@outputs_of.register(Tree)
def tree_outputs(tree: Tree, rows: TreeRows, i: int) -> Outputs:
    """All trees of candidate arcs, with all relations."""
    start, n = int(rows.starts[i]), int(rows.starts[i + 1] - rows.starts[i])
    choices = [rows.heads[rows.ptr[start + m] : rows.ptr[start + m + 1]].tolist() for m in range(n)]
    crossing = isinstance(tree.search, Nonprojective | NonprojectiveSecond)
    shapes = [
        (0, *heads)
        for heads in itertools.product(*choices)
        if is_tree((0, *heads), crossing, tree.search.single)
    ]
    relations = list(itertools.product(range(tree.labels), repeat=n))
    ys = [
        tuple(h * tree.labels + c for h, c in zip(heads[1:], names, strict=True))
        for heads in shapes
        for names in relations
    ]
    gold = tuple(rows.labels[start : start + n].tolist())

    def price(cost):
        return np.array([sum(map(cost.label_cost, gold, y)) for y in ys])

    def spell(y):
        return tree_features(tree, Example(rows, i), y)

    F = np.array([spell(y) for y in ys])
    good = np.array([y == gold for y in ys])
    return Outputs(ys, F, good, price, places=n, any_tie=True, spell=spell)


def is_tree(heads: Sequence[int], crossing: bool, single: bool) -> bool:
    """Whether all words hang together below the root, as the kind of trees has it."""
    n = len(heads) - 1
    for m in range(1, n + 1):
        above = m
        for _ in range(n):
            above = heads[above]
        if above != 0:
            return False
    arcs = [(min(heads[m], m), max(heads[m], m)) for m in range(1, n + 1)]
    crossed = any(a < c < b < d for a, b in arcs for c, d in arcs)
    return (crossing or not crossed) and (not single or list(heads[1:]).count(0) == 1)


def tree_features(tree: Tree, x: Example, y: Sequence[int]) -> np.ndarray:
    """F(x, y), part after part as the class ``Tree`` says their coordinates lie."""
    f, heads, made = np.zeros(n_weights(tree)), [0], tree.features
    pad = made.new_buffer(x.data)
    heads += [code // tree.labels for code in y]
    words = range(1, len(heads))
    for m in words:
        h, relation = heads[m], y[m - 1] % tree.labels
        np.add.at(f, pad.keys[: made.arc_keys(x, h, m, pad)], 1.0)
        if tree.labels > 1:
            keys = pad.keys[: made.label_keys(x, h, m, pad)].astype(np.int64)
            np.add.at(f, made.plain + 8 * keys + relation, 1.0)
        if tree.order == 1:
            continue
        children = [k for k in words if heads[k] == h and (k < h) == (m < h)]
        nearer = [k for k in children if abs(k - h) < abs(m - h)]
        s = max(nearer, key=lambda k: abs(k - h), default=0)
        np.add.at(f, pad.keys[: made.sibling_keys(x, h, s, m, pad)], 1.0)
        if all(abs(k - h) <= abs(m - h) for k in children):
            np.add.at(f, pad.keys[: made.outermost_child_keys(x, h, m, pad)], 1.0)
        if h > 0 and heads[h] != m:
            np.add.at(f, pad.keys[: made.grandparent_keys(x, heads[h], h, m, pad)], 1.0)
    return f


@tiny_rows.register(Tree)
def tiny_trees(tree: Tree, seed: int = 0) -> TreeRows:
    """Five short sentences, some of whose arcs are not looked at; gold is one of the trees."""
    rng = np.random.default_rng(seed)
    lengths = [1, 2, 3, 2, 3]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    ptr, heads = [0], []
    for n in lengths:
        for m in range(1, n + 1):
            heads += [h for h in range(n + 1) if h not in (m, m - 1) and rng.random() < 0.8]
            heads = [*heads[: ptr[-1]], *sorted([*heads[ptr[-1] :], m - 1])]
            ptr.append(len(heads))
    empty = np.empty(0, np.uint64)
    table = starts[-1] + 5 * len(lengths)
    rows = TreeRows(
        starts,
        empty,
        empty.astype(np.uint8),
        empty.astype(np.uint8),
        np.zeros(table + 1, np.int64),
        empty,
        np.array(ptr),
        np.array(heads, np.int32),
        np.zeros(starts[-1], np.int32),
        np.ones(len(lengths)),
    )
    for i in range(len(lengths)):
        ys = tree_outputs(tree, rows, i).ys
        rows.labels[starts[i] : starts[i + 1]] = ys[int(rng.integers(len(ys)))]
    return rows


def tiny_structures() -> dict[str, Any]:
    """One small structure of every kind, by name.

    >>> list(tiny_structures())[:4]
    ['binary', 'multiclass', 'chain', 'segments']
    """
    trees = {
        f"{name} trees": Tree.new(TinyArcs(), labels, search)
        for name, labels, search in (
            ("projective", 2, Projective(single=True)),
            ("nonprojective", 2, Nonprojective()),
            ("second-order", 1, ProjectiveSecond()),
            ("nonprojective second-order", 2, NonprojectiveSecond(single=True)),
        )
    }
    return {
        "binary": Binary(6, bias=0.6180339887),  # odd, so that scores do not tie by chance
        "multiclass": Multiclass(5, 3),
        "chain": Chain.new(attributes=4, labels=2, edge_attributes=2, order=2),
        "segments": Segments.new(4, begin=[0, 1], inside=[-1, 2], longest=3),
        "lists": NBest(6),
        "tied lists": NBest(6, tied=True),
        **trees,
    }
