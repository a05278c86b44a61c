"""What a CRF in batch minimises: minus the log likelihood of all sentences, and its gradient."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from hopefear.errors import HopefearError
from hopefear.structures.chain.layout import chain_shape, pair_base, table_size
from hopefear.structures.chain.likelihood_kernels import (
    Columns,
    Scratch,
    Sums,
    Turned,
    add_attributes,
    add_edge_attributes,
    add_penalty,
    expect_block,
    gather,
    mark_observed,
    spread,
    turn,
)
from hopefear.structures.chain.searches import AStar
from hopefear.structures.lattice import new_forward, new_scores

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
    observed : bool
        Give weights only to pairs of attribute and label, and pairs of labels, that occur; the
        weights of all others are 0.
    n_jobs : int
        Threads.

    Attributes
    ----------
    coordinates : int64 array
        Where the weights of the vector lie among all coordinates of the structure.
    loss, mistakes : float, int
        At the last call: the value without penalty; sentences whose gold labels have at most half
        of the probability.
    """

    def __init__(
        self,
        structure: Any,
        rows: Any,
        l2: float = 1.0,
        observed: bool = True,
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
        self._weights = np.zeros(structure.n_coordinates(), np.float32)
        self._mu = np.zeros(rows.labels.size * width, np.float32)
        self._edges = np.zeros(structure.edge_attributes * width * width)
        self._waves = _waves(structure, rows)
        longest = max((int(last - first) for first, last, _ in self._waves), default=0)
        self._pairs = np.zeros(longest * width * width if self._edges.size else 0, np.float32)
        self._ranges = _ranges(self._turned.ptr, _PARTS)
        self._pool = ThreadPoolExecutor(n_jobs) if n_jobs > 1 else None
        self._scratch = [_scratch(structure, rows) for _ in range(max(1, n_jobs))]

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
        weights = np.zeros(self.structure.n_coordinates(), np.float32)
        spread(w, self.columns, self.structure.width, weights)
        return weights

    def gather(self, weights: np.ndarray) -> np.ndarray:
        """The reverse: of all weights those that are trained."""
        w = np.empty(self.n)
        weights = np.asarray(weights, np.float64)
        gather(weights, self.columns, self.structure.width, 0, w)
        return w

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _each(self, task: Any, jobs: list) -> list:
        """Do all jobs, on all threads; their results in order."""
        if self._pool is None:
            return [task(*job) for job in jobs]
        return [f.result() for f in [self._pool.submit(task, *job) for job in jobs]]

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


def _columns(structure: Any, rows: Any, observed: bool) -> Columns:
    """Rows and lanes of the weights that are trained."""
    width, labels = structure.width, structure.labels
    n_rows = structure.n_coordinates() // width
    marks = np.zeros((n_rows, width), np.uint8)
    if observed:
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
    return Scratch(scores, np.zeros_like(scores.edges), new_forward(shape, longest))


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
