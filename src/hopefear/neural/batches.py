"""Scores in padded arrays as a linear model sees them: every score is a weight of its own.

Features are the identity, so ``theta = F w`` copies scores into place, ``g = F' mu`` copies signed
weights out, and structures and losses need not know that a network is behind them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.arrays import frozen_as
from hopefear.core.component import component, kernel
from hopefear.core.interfaces import GradientSink, Structure, n_weights
from hopefear.core.parallel import parallel
from hopefear.core.workspace import DenseWeights, Example
from hopefear.data.lists.dataset import DTYPES as LIST_TYPES
from hopefear.data.lists.dataset import ListRows
from hopefear.data.sequences import DTYPES as TOKEN_TYPES
from hopefear.data.sequences import TokenRows
from hopefear.data.sparse import SparseRows
from hopefear.data.tree_rows import DTYPES as TREE_TYPES
from hopefear.data.tree_rows import TreeRows
from hopefear.features.arcs.token_arcs import ArcScores
from hopefear.structures.chain.chain import Chain, divergence, surprise
from hopefear.structures.chain.theta import Limits, length, pair_base, table_size, tables_used
from hopefear.structures.classes import Multiclass
from hopefear.structures.lattice import padded_width
from hopefear.structures.nbest import NBest
from hopefear.structures.tree.theta import STEP
from hopefear.structures.tree.tree import Tree, largest

# Gives parts of (own scores, shared scores of every example) in the shapes scores came in.
Views = Callable[[np.ndarray, np.ndarray], list[np.ndarray]]


class Batch(NamedTuple):
    """Examples and their scores.

    Coordinates up to ``shared`` belong to one example each; those behind to all of them.
    """

    structure: Any
    rows: Any
    weights: np.ndarray  # float[coordinates]
    shared: int
    load: np.ndarray  # int64[examples + 1]: work up to each example
    kind: tuple[Any, ...]  # what a workspace must have in common with others ...
    size: tuple[int, ...]  # ... and how much it must have room for
    views: Views


@component(GradientSink)
class Gradient(NamedTuple):
    """A row that takes a direction off the gradient of its example.

    Shared coordinates have a table for every example, so that sums over the batch have one order.
    """

    own: np.ndarray  # float[shared]
    tables: np.ndarray  # float[examples * (coordinates - shared)]
    shared: int
    begin: int  # where the table of the example begins

    def add_entry(self, j, g):
        if j < np.uint64(self.shared):
            self.own[j] -= g
        else:
            self.tables[np.uint64(self.begin) + j - np.uint64(self.shared)] -= g


@kernel
def batch_losses(structure, loss, weights, data, first, last, work, gradient, values):
    """Losses of some examples, and their gradients with respect to all scores."""
    size = weights.w.size - gradient.shared
    for i in range(first, last):
        x = Example(data, i)
        structure.score(x, weights, work.theta)
        forced = loss.subgradient(structure, x, work)
        values[i] = work.loss[0]
        if forced > 0:
            row = Gradient(gradient.own, gradient.tables, gradient.shared, i * size)
            structure.scatter(x, work.mu, row)


@component(Structure, Chain)
class ScoredChain(NamedTuple):
    """A chain whose directions are copied out as they are; a token is its own attribute.

    Nothing but the loss is wanted, so nobody asks whether gold wins where the loss does not.
    Whatever it does not say itself it has from :class:`Chain`, field by field.
    """

    attributes: int
    edge_attributes: int
    labels: int
    order: int
    search: Any
    limits: Limits
    transitions: bool
    width: int

    def kl_and_gradient(self, x, theta, cost, inverse_temperature, coef, mu):
        if cost is None:
            return surprise(self, x, theta, coef, mu), True
        return divergence(self, x, theta, cost, inverse_temperature, coef, mu), True

    def scatter(self, x, mu, row):
        data, width, size = x.data, np.uint64(self.width), table_size(self)
        start, T = data.starts[x.i], length(x)
        own, tables, nodes, edges = row.own, row.tables, mu.nodes, mu.edges
        first = np.uint64(data.indices[start]) * width  # tokens of a sequence are neighbours
        for q in range(np.uint64(T) * width):
            own[first + q] = -nodes[q]
        count = np.uint64(tables_used(self, T) * size)
        if self.transitions:
            first = np.uint64(row.begin)
            for q in range(count):
                tables[first + q] = -edges[q]
        elif self.edge_attributes > 0 and T > 1:
            first = np.uint64(pair_base(self) + (1 + np.int64(data.edge_indices[start + 1])) * size)
            for q in range(count):
                own[first + q] = -edges[q]


def losses_of(
    batch: Batch, loss: Any, spaces: dict[Any, Any], n_jobs: int
) -> tuple[np.ndarray, list[Any]]:
    """(losses of all examples, gradients by example with respect to every array of scores).

    Results do not depend on the number of threads. ``spaces`` keeps workspaces for the next call.
    """
    dtype, n, structure = batch.weights.dtype, batch.rows.weights.size, batch.structure
    if isinstance(structure, Chain):
        structure = ScoredChain(*structure)
    values = np.zeros(n)
    own = np.zeros(batch.shared, dtype)
    tables = np.zeros(n * (batch.weights.size - batch.shared), dtype)
    row = Gradient(own, tables, batch.shared, 0)
    spares = spaces.setdefault((dtype, *batch.kind), [])

    def run(block: tuple[int, int]) -> None:
        room, work = _space(batch, loss, spares)
        weights = DenseWeights(batch.weights)
        batch_losses(structure, loss, weights, batch.rows, *block, work, row, values)
        spares.append((room, work))

    for _ in parallel(blocks_of(batch.load, n_jobs), run, n_jobs):
        pass
    return values, batch.views(own, tables.reshape(n, -1))


def blocks_of(load: np.ndarray, n: int) -> list[tuple[int, int]]:
    """Examples in up to ``n`` stretches of about as much work each.

    >>> blocks_of(np.array([0, 5, 6, 7, 10]), 2)
    [(0, 1), (1, 4)]
    """
    if n == 1:
        return [(0, load.size - 1)]
    cuts = np.searchsorted(load, np.linspace(0, load[-1], n + 1))
    cuts[0], cuts[-1] = 0, load.size - 1
    return [(int(a), int(b)) for a, b in pairwise(cuts) if a < b]


def _space(batch: Batch, loss: Any, spares: list[Any]) -> tuple[tuple[int, ...], Any]:
    """A workspace that is large enough, made where none is."""
    with contextlib.suppress(IndexError):  # other threads take workspaces too
        room, work = spares.pop()
        if all(a >= b for a, b in zip(room, batch.size, strict=True)):
            return room, work
    return batch.size, batch.structure.workspace(batch.rows, loss, batch.weights.dtype)


class ChainScores(NamedTuple):
    """Scores of the parts of label sequences; transitions are from one label to another."""

    nodes: Any  # [B, T, L]
    transitions: Any = None  # [L, L], or [B, T - 1, L, L]
    start: Any = None  # [L]: more for the label of the first token
    end: Any = None  # [L]: more for that of the last


def chain_batch(
    scores: ChainScores,
    gold: np.ndarray | None,
    lengths: np.ndarray,
    limits: Limits | None = None,
) -> Batch:
    """Sequences."""
    nodes, transitions, start, end = scores
    n, longest, labels = nodes.shape
    width, tokens = padded_width(labels), n * longest
    square, rich = width * width, transitions is not None and transitions.ndim == 4
    places = _tokens(lengths, longest)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    every = np.arange(places.size + 1)
    codes = np.full(places.size, -1) if gold is None else gold.reshape(-1)[places]
    empty = np.empty(0)
    edge_rows: tuple[Any, Any, Any] = (
        (every, places, empty) if rich else (np.zeros(1), empty, empty)
    )
    rows = TokenRows(starts, every, places, empty, *edge_rows, codes, np.ones(n))
    # Behind the labels of tokens come plain transitions, then those of every token.
    plain = (tokens + width) * width
    weights = np.zeros(plain + tokens * square if rich else plain, nodes.dtype)
    shared = weights.size if rich or transitions is None else tokens * width
    last = np.arange(n), lengths - 1

    def views(own: np.ndarray, tables: np.ndarray) -> list[np.ndarray]:
        label_scores = own[: tokens * width].reshape(n, longest, width)[:, :, :labels]
        parts = [label_scores]
        if transitions is not None:
            pairs = tables.reshape(-1, width, width)
            if rich:
                pairs = own[plain:].reshape(n, longest, width, width)[:, 1:]
            parts.append(pairs[..., :labels, :labels].swapaxes(-1, -2))
        if start is not None:
            parts.append(label_scores[:, 0])
        if end is not None:
            parts.append(label_scores[last])
        return parts

    mine = views(weights[:shared], weights[shared:])
    mine[0][...] = nodes
    if transitions is not None:
        mine[1][...] = transitions
    if start is not None:
        mine[0][:, 0] += start
    if end is not None:
        mine[0][last] += end
    plain_edges, edges = transitions is not None and not rich, tokens if rich else 0
    chain = Chain.new(tokens, labels, edges, limits=limits, transitions=plain_edges)
    kind, size = (labels, rich), (int(lengths.max()),)
    return Batch(chain, _frozen(rows, TOKEN_TYPES), weights, shared, starts, kind, size, views)


def _tokens(lengths: np.ndarray, longest: int) -> np.ndarray:
    """Places of all tokens in a padded batch."""
    return np.flatnonzero(np.arange(longest) < lengths[:, None])


def _frozen(rows: Any, types: Any) -> Any:
    return type(rows)(*(frozen_as(a, t) for a, t in zip(rows, types, strict=True)))


def class_batch(scores: np.ndarray, gold: np.ndarray) -> Batch:
    """Classes: ``scores`` [B, C]."""
    n, classes = scores.shape
    every = np.arange(n + 1)
    rows = SparseRows(
        frozen_as(every, np.dtype("i8")),
        frozen_as(every[:-1], np.dtype("i4")),
        frozen_as(np.ones(n), scores.dtype),
        frozen_as(gold, np.dtype("i4")),
        frozen_as(np.ones(n), np.dtype("f4")),
    )

    def views(own: np.ndarray, tables: np.ndarray) -> list[np.ndarray]:
        return [own.reshape(n, classes)]

    weights = np.array(scores).reshape(-1)
    return Batch(Multiclass(n, classes), rows, weights, weights.size, every, (classes,), (), views)


def list_batch(
    scores: np.ndarray, costs: np.ndarray, gold: np.ndarray, lengths: np.ndarray, tied: bool
) -> Batch:
    """Lists of candidates: ``scores`` and ``costs`` [B, N]."""
    n, longest = scores.shape
    places = _tokens(lengths, longest)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    every = np.arange(places.size + 1)
    rows = ListRows(
        *(starts, starts, places, every, every[:-1] - np.repeat(starts[:-1], lengths)),
        *(np.ones(places.size), np.zeros(places.size)),
        *(costs.reshape(-1)[places], gold, np.ones(n)),
    )
    types = {**LIST_TYPES, "values": scores.dtype}

    def views(own: np.ndarray, tables: np.ndarray) -> list[np.ndarray]:
        return [own.reshape(n, longest)]

    weights = np.array(scores).reshape(-1)
    rows = _frozen(rows, types.values())
    structure = NBest(weights.size, tied)
    size = (int(lengths.max()),)
    return Batch(structure, rows, weights, weights.size, starts, (), size, views)


class TreeScores(NamedTuple):
    """Scores of the parts of trees, words and heads counted from the root, which is 0."""

    arcs: Any  # [B, N + 1, N + 1]: word, head
    relations: Any = None  # [B, N + 1, N + 1, R]: word, head, relation
    siblings: Any = None  # [B, N + 1, N + 1, N + 1]: word, head, next child nearer to it or 0
    lasts: Any = None  # [B, N + 1, N + 1]: word, head, of which it is the outermost child
    grandparents: Any = None  # [B, N + 1, N + 1, N + 1]: word, head, head of that


def tree_batch(
    scores: TreeScores,
    heads: np.ndarray | None,
    relations: np.ndarray | None,
    lengths: np.ndarray,
    search: Any,
) -> Batch:
    """Trees of several relations, or of none; arcs of minus infinity are no candidates."""
    n, side, _ = scores.arcs.shape
    labels = 1 if scores.relations is None else scores.relations.shape[3]
    lane, cells = -(-padded_width(labels) // STEP) * STEP, n * side * side
    plain, at = cells, {}
    for name in ("lasts", "siblings", "grands"):
        part = scores.grandparents if name == "grands" else getattr(scores, name)
        at[name] = -1 if part is None else plain
        plain += 0 if part is None else part.size
    pace = lane // STEP
    rows = cells * pace if labels > 1 else 0
    tree = Tree.new(ArcScores(plain, rows, side, pace, **at), labels, search)
    weights = np.zeros(n_weights(tree), scores.arcs.dtype)

    def views(own: np.ndarray, tables: np.ndarray) -> list[np.ndarray]:
        square, cube = (n, side, side), (n, side, side, side)
        parts = [own[:cells].reshape(square)]
        if labels > 1:
            lanes = own[plain : plain + cells * lane].reshape(*square, lane)
            parts.append(lanes[..., :labels])
        for name, shape in (("siblings", cube), ("lasts", square), ("grands", cube)):
            if at[name] >= 0:
                parts.append(own[at[name] :][: int(np.prod(shape))].reshape(shape))
        return parts

    words = np.arange(side)
    within = (words > 0) & (words <= lengths[:, None])  # [B, N + 1]
    allowed = (scores.arcs != -np.inf) & within[:, :, None]
    allowed &= (within | (words == 0))[:, None, :] & (words[:, None] != words)
    given = [part for part in scores if part is not None]
    for view, part in zip(views(weights, weights), given, strict=True):
        view[...] = part
    views(weights, weights)[0][~allowed] = 0.0
    starts = np.concatenate([[0], np.cumsum(lengths)])
    ptr = np.concatenate([[0], np.cumsum(allowed.sum(axis=2)[within])])
    codes = np.full(starts[-1], -1)
    if heads is not None:
        codes = heads[within] * labels
        codes += 0 if relations is None or labels == 1 else relations[within]
    empty = np.empty(0)
    data = TreeRows(
        *(starts, empty, empty, empty, np.zeros(1), empty),
        *(ptr, np.nonzero(allowed)[2], codes, np.ones(n)),
    )
    data = _frozen(data, TREE_TYPES)
    size = (int(lengths.max()), *largest(data, tree.order, np.arange(n)), weights.size)
    return Batch(tree, data, weights, weights.size, ptr[starts], (labels, search), size, views)
