"""What a CRF in batch minimises: minus the log likelihood of all sentences, and its gradient.

Sentences write P - gold of all their labels into one array, in any order. Then every row of
weights belongs to one task, which adds up what the tokens of its attribute wrote, in the order of
the tokens. So the number of threads changes no bit of the result.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import helper, kernel, prefetch
from hopefear.core.interfaces import n_weights
from hopefear.core.parallel import parallel
from hopefear.core.workspace import DenseWeights, Example
from hopefear.errors import HopefearError
from hopefear.structures.chain.searches import AStar
from hopefear.structures.chain.theta import (
    cell,
    chain_shape,
    is_gold,
    length,
    limit_scores,
    pair_base,
    score_edges,
    score_nodes,
    table_size,
    tables_used,
    triple_base,
)
from hopefear.structures.lattice import (
    Scores,
    marginals,
    new_forward,
    new_scores,
    path_score,
    states,
    viterbi,
)
from hopefear.structures.lattice.lanes import add_to

# Rows of an attribute lie all over memory: ask for them ahead of time. Measured on CoNLL-2000.
_AHEAD = 24
_RUN = 64  # float32 additions before the sum goes on in float64

# Work is cut into this many parts whatever the number of threads: sums must not depend on it.
_PARTS = 16
_WAVE = 1 << 22  # label pairs of tokens that are kept at a time, for edge attributes


class CRFObjective:
    """Minus the log likelihood, plus ``l2`` times the squared length of the weights.

    ``sum_i weight_i (log Z_i - score_i(gold)) + l2 * sum_j w_j**2``

    Call it with a weight vector to get the value and the gradient. The result is the same, byte
    for byte, whatever the number of threads.

    Parameters
    ----------
    structure : Chain
        The label chain.
    rows : TokenRows
        Sentences with gold labels.
    l2 : float
        Strength of the penalty, with the meaning of CRFsuite's ``c2``.
    observed : bool or uint8 array
        Give weights only to pairs of attribute and label, and pairs of labels, that occur; the
        weights of all others are 0. An array, as wide as the structure, marks the coordinates that
        get a weight.
    n_jobs : int
        Threads.

    Attributes
    ----------
    coordinates : int64 array
        Where the weights of the vector lie among all coordinates of the structure.
    loss, mistakes : float, int
        At the last call: the value without penalty; sentences whose best labels are not gold.
    """

    def __init__(
        self,
        structure: Any,
        rows: Any,
        l2: float = 1.0,
        observed: bool | np.ndarray = True,
        n_jobs: int = 1,
    ) -> None:
        if rows.labels.size and not 0 <= rows.labels.min() <= rows.labels.max() < structure.labels:
            raise HopefearError(
                f"a CRF learns from gold labels, numbers from 0 to {structure.labels - 1}; "
                f"the data has {rows.labels.min()} to {rows.labels.max()}"
            )
        # No search is needed, and chains with different ones would compile again.
        structure = structure._replace(search=AStar())
        self.structure, self.rows, self.l2 = structure, rows, float(l2)
        self.columns = _columns(structure, rows, observed)
        self.n = self.columns.lanes.size
        self.loss, self.mistakes = 0.0, 0
        width = structure.width
        self._turned = _turned(structure, rows)
        self._weights = np.zeros(n_weights(structure), np.float32)
        self._mu = np.zeros(rows.labels.size * width, np.float32)
        self._edges = np.zeros(structure.edge_attributes * width * width)
        self._waves = _waves(structure, rows)
        longest = max((int(last - first) for first, last, _ in self._waves), default=0)
        self._pairs = np.zeros(longest * width * width if self._edges.size else 0, np.float32)
        self._ranges = _ranges(self._turned.ptr, _PARTS)
        self._n_jobs = max(1, n_jobs)
        self._scratch = [_scratch(structure, rows) for _ in range(self._n_jobs)]

    @property
    def coordinates(self) -> np.ndarray:
        rows = np.repeat(np.arange(self.columns.ptr.size - 1), np.diff(self.columns.ptr))
        return rows * self.structure.width + self.columns.lanes

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        chain, width = self.structure, self.structure.width
        spread(w, self.columns, width, self._weights)
        square = width * width
        plain = np.zeros(square + (table_size(chain) if chain.order == 2 else 0))
        self._edges[:] = 0.0
        loss = mistakes = 0.0
        for begin, end, blocks in self._waves:
            for sums in self._each(self._expect, [(*block, begin) for block in blocks]):
                plain += sums.edges
                loss += sums.totals[0]
                mistakes += sums.totals[1]
            if self._edges.size:
                self._each(self._add_edges, [(begin, end, part) for part in _labels(chain)])
        g = np.empty(self.n)
        self._each(self._add_attributes, [(*span, g) for span in self._ranges])
        first = pair_base(chain) // width
        gather(plain[:square], self.columns, width, first, g)
        gather(self._edges, self.columns, width, first + width, g)
        gather(plain[square:], self.columns, width, first + width + self._edges.size // width, g)
        self.loss, self.mistakes = loss, int(mistakes)
        if self.l2 > 0.0:
            loss += add_penalty(self.l2, w, g)
        return loss, g

    def spread(self, w: np.ndarray) -> np.ndarray:
        """The weights at all coordinates of the structure, in float32."""
        weights = np.zeros(n_weights(self.structure), np.float32)
        spread(w, self.columns, self.structure.width, weights)
        return weights

    def gather(self, weights: np.ndarray) -> np.ndarray:
        """The reverse: of all weights those that are trained."""
        w = np.empty(self.n)
        weights = np.asarray(weights, np.float64)
        gather(weights, self.columns, self.structure.width, 0, w)
        return w

    def _each(self, task: Any, jobs: list[Any]) -> list[Any]:
        """Returns the results of all jobs, in order."""
        return list(parallel(jobs, lambda job: task(*job), self._n_jobs))

    def _expect(self, first: int, last: int, base: int) -> Sums:
        scratch = self._scratch.pop()  # no more jobs run at a time than there are threads
        chain, width = self.structure, self.structure.width
        size = width * width + (table_size(chain) if chain.order == 2 else 0)
        sums = Sums(np.zeros(size), np.zeros(2))
        expect_block(
            *(chain, self.rows, first, last, self._weights, scratch),
            *(self._mu, base, self._pairs, sums),
        )
        self._scratch.append(scratch)
        return sums

    def _add_edges(self, begin: int, end: int, labels: tuple[int, int]) -> None:
        add_edge_attributes(self.structure, self.rows, begin, end, labels, self._pairs, self._edges)

    def _add_attributes(self, first: int, last: int, g: np.ndarray) -> None:
        add_attributes(self._turned, self._mu, self.structure.width, first, last, self.columns, g)


def _columns(structure: Any, rows: Any, observed: bool | np.ndarray) -> Columns:
    """Rows and lanes of the weights that are trained."""
    width, labels = structure.width, structure.labels
    n_rows = n_weights(structure) // width
    marks = np.zeros((n_rows, width), np.uint8)
    if isinstance(observed, np.ndarray):
        marks = observed.reshape(n_rows, width)
    elif observed:
        mark_observed(structure, rows, marks.reshape(-1))
    else:
        marks[:, :labels] = 1
        # Behind the attributes a row belongs to a label, or to a pair of them; some are padding.
        behind = np.arange(n_rows - structure.attributes)
        pairs = (1 + structure.edge_attributes) * width
        padding = behind % width >= labels
        padding |= (behind >= pairs) & ((behind - pairs) // width >= labels)
        marks[structure.attributes :][padding] = 0
    ptr = np.zeros(n_rows + 1, np.int64)
    np.cumsum(marks.sum(axis=1), out=ptr[1:])
    lanes = (np.flatnonzero(marks) % width).astype(np.int16)
    return Columns(ptr, lanes)


def _turned(structure: Any, rows: Any) -> Turned:
    ptr = np.zeros(structure.attributes + 1, np.int64)
    turned = Turned(ptr, np.empty(rows.indices.size, np.int32), np.empty_like(rows.values))
    turn(rows.indptr, rows.indices, rows.values, turned.ptr, turned.tokens, turned.values)
    return turned


def _scratch(structure: Any, rows: Any) -> Scratch:
    shape, longest = chain_shape(structure), int(np.diff(rows.starts).max(initial=1))
    scores = new_scores(shape, longest)
    table = np.zeros(longest * states(shape), np.float32)
    path = np.zeros(longest, np.int32)
    return Scratch(scores, np.zeros_like(scores.edges), new_forward(shape, longest), table, path)


def _waves(structure: Any, rows: Any) -> list[tuple[int, int, list[tuple[int, int]]]]:
    """(first token, end, blocks of sentences) of what is expected before edges are added up."""
    starts = rows.starts
    if starts.size < 2:
        return []
    cuts = [0, starts.size - 1]
    if structure.edge_attributes:
        most = max(1, _WAVE // structure.width**2)
        cuts = [0]
        while cuts[-1] < starts.size - 1:
            reach = np.searchsorted(starts, starts[cuts[-1]] + most, side="right") - 1
            cuts.append(max(cuts[-1] + 1, int(reach)))
    return [
        (int(starts[a]), int(starts[b]), [(a + c, a + d) for c, d in _ranges(starts[a : b + 1])])
        for a, b in pairwise(cuts)
    ]


def _ranges(ptr: np.ndarray, parts: int = _PARTS) -> list[tuple[int, int]]:
    """Cut rows into stretches with about as many entries (and rows) each."""
    load = ptr - ptr[0] + np.arange(ptr.size)
    cuts = np.searchsorted(load, np.linspace(0, load[-1], parts + 1)).tolist()
    return [(a, b) for a, b in pairwise(cuts) if a < b]


def _labels(chain: Any) -> list[tuple[int, int]]:
    """The labels in groups of four."""
    return [(a, min(a + 4, chain.labels)) for a in range(0, chain.labels, 4)]


class Columns(NamedTuple):
    """Which coordinates have a weight: of row r the lanes ``lanes[ptr[r]:ptr[r + 1]]``."""

    ptr: np.ndarray  # int64[rows + 1]
    lanes: np.ndarray  # int16[weights]


class Turned(NamedTuple):
    """The attributes of all tokens, turned: which tokens have an attribute."""

    ptr: np.ndarray  # int64[attributes + 1]
    tokens: np.ndarray  # int32[nnz], ascending within an attribute
    values: np.ndarray  # float32[nnz] or float32[0]


class Sums(NamedTuple):
    """What one block of sentences adds up by itself."""

    edges: np.ndarray  # float64: label pairs, then triples for second order
    totals: np.ndarray  # float64[2]: loss; sentences whose best labels are not gold


class Scratch(NamedTuple):
    """Working memory of one thread."""

    scores: Scores
    expected: np.ndarray  # as the edges of scores
    forward: Any
    table: np.ndarray  # float32[longest * states]
    path: np.ndarray  # int32[longest]: the best labels


@kernel
def turn(indptr, indices, values, ptr, tokens, turned_values):
    """Counting sort of entries by attribute; ``ptr`` comes in as zeros."""
    for p in range(indices.size):
        ptr[indices[p] + 1] += 1
    for a in range(ptr.size - 1):
        ptr[a + 1] += ptr[a]
    # While filling, ptr[a] is the next free place, so afterwards it is the end of attribute a.
    for k in range(indptr.size - 1):
        for p in range(indptr[k], indptr[k + 1]):
            place = ptr[indices[p]]
            tokens[place] = k
            if values.size:
                turned_values[place] = values[p]
            ptr[indices[p]] = place + 1
    for a in range(ptr.size - 1, 0, -1):
        ptr[a] = ptr[a - 1]
    ptr[0] = 0


@kernel
def mark_observed(chain, data, marks):
    """Set the marks of all coordinates that gold label sequences use; weight 0 is absence."""
    shape, width = chain_shape(chain), chain.width
    size = table_size(chain)
    for i in range(data.starts.size - 1):
        if data.weights[i] == 0.0:
            continue
        start = data.starts[i]
        for t in range(data.starts[i + 1] - start):
            k = start + t
            for p in range(data.indptr[k], data.indptr[k + 1]):
                marks[np.int64(data.indices[p]) * width + data.labels[k]] = 1
            if t == 0:
                continue
            inside = cell(shape, t, data.labels, start) % size
            pair = inside if chain.order == 1 else inside // width
            marks[pair_base(chain) + pair] = 1
            if chain.order == 2 and t > 1:
                marks[triple_base(chain) + inside] = 1
            if chain.edge_attributes > 0:
                for p in range(data.edge_indptr[k], data.edge_indptr[k + 1]):
                    edge = 1 + np.int64(data.edge_indices[p])
                    marks[pair_base(chain) + edge * width * width + pair] = 1


@kernel
def spread(w, columns, width, weights):
    """Put the weights of ``columns`` at their coordinates."""
    ptr, lanes = columns.ptr, columns.lanes
    for r in range(ptr.size - 1):
        for e in range(ptr[r], ptr[r + 1]):
            weights[r * width + lanes[e]] = w[e]


@kernel
def gather(values, columns, width, first, g):
    """The reverse, for rows from ``first`` on whose coordinates ``values`` holds."""
    ptr, lanes = columns.ptr, columns.lanes
    for r in range(values.size // width):
        for e in range(ptr[first + r], ptr[first + r + 1]):
            g[e] = values[r * width + lanes[e]]


@kernel
def expect_block(chain, data, first, last, weights, scratch, mu, base, pairs, sums):
    """P - gold of the labels (``mu``) and label pairs of the sentences ``first .. last - 1``.

    ``mu`` has a row a token. ``pairs``, needed for edge attributes only, has one for every token
    from ``base`` on.
    """
    width, shape = chain.width, chain_shape(chain)
    for i in range(first, last):
        x = Example(data, i)
        T, start = length(x), data.starts[i]
        if T == 0:
            continue
        if data.values.size == 0:
            _score_units(chain, x, weights, scratch.scores.nodes)
        else:
            score_nodes(chain, x, DenseWeights(weights), scratch.scores.nodes)
        score_edges(chain, x, DenseWeights(weights), scratch.scores.edges)
        if chain.limits.step.size:
            limit_scores(chain, x, scratch.scores)
        out = Scores(mu[start * width : (start + T) * width], scratch.expected)
        loss = marginals(shape, T, scratch.scores, scratch.forward, out)
        loss -= path_score(shape, T, scratch.scores, data.labels, start)
        weight = data.weights[i]
        for t in range(T):
            out.nodes[t * width + data.labels[start + t]] -= np.float32(1.0)
            if t > 0:
                out.edges[cell(shape, t, data.labels, start)] -= np.float32(1.0)
        if weight != np.float32(1.0):
            for q in range(T * width):
                out.nodes[q] *= weight
        _add_edges(chain, T, out.edges, np.float64(weight), sums.edges)
        if chain.edge_attributes > 0:
            _keep_pairs(chain, T, out.edges, weight, (start - base) * width * width, pairs)
        sums.totals[0] += np.float64(weight) * loss
        # Over half of the probability is more than any other output can have.
        if weight > 0.0 and not loss < 0.6931471805599453:
            viterbi(shape, T, scratch.scores, scratch.table, scratch.path)
            sums.totals[1] += not is_gold(x, scratch.path)


@helper(inline=True)
def _score_units(chain, x, weights, nodes):
    """``score_nodes`` for attributes without values, with rows of weights asked for in advance."""
    data, width = x.data, chain.width
    indices, indptr = data.indices, data.indptr
    start = data.starts[x.i]
    end = indices.size - 1
    for t in range(length(x)):
        at = t * width
        for c in range(at, at + width):
            nodes[c] = 0.0
        for p in range(indptr[start + t], indptr[start + t + 1]):
            ahead = np.int64(indices[min(p + _AHEAD, end)]) * width
            prefetch(weights, ahead)
            prefetch(weights, ahead + width - 1)
            add_to(nodes, at, weights, np.int64(indices[p]) * width, width)


@helper(inline=True)
def _add_edges(chain, T, edges, weight, total):
    """Add the tables of a sentence to those of label pairs and triples."""
    width, size = chain.width, table_size(chain)
    for table in range(tables_used(chain, T)):
        at = table * size
        if chain.order == 1:
            for q in range(size):
                total[q] += weight * edges[at + q]
            continue
        for u in range(width * width):
            for i in range(width):
                total[u] += weight * edges[at + u * width + i]
        if table > 0:
            for q in range(size):
                total[width * width + q] += weight * edges[at + q]


@helper(inline=True)
def _keep_pairs(chain, T, edges, weight, place, pairs):
    """Write down the label pairs of every token; the first of a sentence has none."""
    width, size = chain.width, table_size(chain)
    square = width * width
    for q in range(square):
        pairs[place + q] = 0.0
    for table in range(T - 1):
        at, to = table * size, place + (table + 1) * square
        for u in range(square):
            if chain.order == 1:
                pairs[to + u] = weight * edges[at + u]
            else:
                total = np.float32(0.0)
                for i in range(width):
                    total += edges[at + u * width + i]
                pairs[to + u] = weight * total


@kernel
def add_attributes(turned, mu, width, first, last, columns, g):
    """Gradient of the weights of the attributes ``first .. last - 1``."""
    ptr, tokens, values = turned.ptr, turned.tokens, turned.values
    part, total = np.zeros(width, np.float32), np.zeros(width)
    end = tokens.size - 1
    for a in range(first, last):
        for c in range(width):
            total[c] = 0.0
        for run in range(ptr[a], ptr[a + 1], _RUN):
            for c in range(width):
                part[c] = 0.0
            for p in range(run, min(run + _RUN, ptr[a + 1])):
                ahead = np.int64(tokens[min(p + _AHEAD, end)]) * width
                prefetch(mu, ahead)
                prefetch(mu, ahead + width - 1)
                at = np.int64(tokens[p]) * width
                if values.size == 0:
                    add_to(part, 0, mu, at, width)
                else:
                    for c in range(width):
                        part[c] += values[p] * mu[at + c]
            for c in range(width):
                total[c] += part[c]
        for e in range(columns.ptr[a], columns.ptr[a + 1]):
            g[e] = total[columns.lanes[e]]


@kernel
def add_edge_attributes(chain, data, begin, end, labels, pairs, g):
    """Add the pairs of the tokens ``begin .. end - 1`` to those of their edge attributes.

    Only for the labels ``labels[0] .. labels[1] - 1``: another task has the others.
    """
    width = chain.width
    square = width * width
    low, high = labels[0] * width, labels[1] * width
    for k in range(begin, end):
        place = (k - begin) * square
        for p in range(data.edge_indptr[k], data.edge_indptr[k + 1]):
            value = np.float64(data.edge_values[p]) if data.edge_values.size else 1.0
            base = np.int64(data.edge_indices[p]) * square
            for q in range(low, high):
                g[base + q] += value * pairs[place + q]


@kernel
def add_penalty(l2, w, g):
    """``l2 * sum_j w_j**2``, and its gradient added to ``g``."""
    total = 0.0
    for j in range(w.size):
        total += w[j] * w[j]
        g[j] += 2.0 * l2 * w[j]
    return l2 * total
