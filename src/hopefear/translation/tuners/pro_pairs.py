"""Pairs of candidates that differ much: drawn at random, as differences of their features."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from hopefear.core.component import kernel
from hopefear.data.lists.dataset import ListDataset
from hopefear.data.sparse import SparseDataset, SparseRows
from hopefear.training.passes import mixed


class Pairs(NamedTuple):
    """Differences ``f(better) - f(worse)`` of pairs, list after list; arrays of kernels."""

    indptr: np.ndarray  # int64[pairs + 1]
    indices: np.ndarray  # int32[nnz], rising in a pair
    values: np.ndarray  # float32[nnz]
    offsets: np.ndarray  # float64[pairs]: what fixed scores differ by
    weights: np.ndarray  # float32[pairs]: of the lists

    def square(self) -> float:
        """Mean squared length of a difference."""
        return float(np.square(self.values, dtype=np.float64).sum()) / max(1, len(self.weights))


def draw_pairs(
    data: ListDataset, samples: int, keep: int, threshold: float, seed: int, turn: int = 0
) -> np.ndarray:
    """``(better, worse)`` candidates (int64[pairs, 2]) as Hopkins and May (2011) choose them.

    Of ``samples`` pairs of a list, drawn at random, those whose costs differ by more than
    ``threshold``; of these the ``keep`` that differ most, and of equals those drawn first.

    Parameters
    ----------
    seed, turn : int
        Fix what is drawn, for each list on its own: lists before it do not matter, but its number.

    Examples
    --------
    >>> from hopefear.data.lists.dataset import ListRows
    >>> rows = ListRows([0, 2], [0, 1], [7], [0, 0, 1], [0], [1.0], [0, 0], [0.5, 0], [1], [1])
    >>> draw_pairs(ListDataset(rows), samples=20, keep=1, threshold=0.1, seed=1).tolist()
    [[1, 0]]
    """
    rows = data.rows
    n, keep = len(data), min(keep, samples)
    found, counts = np.zeros((n * keep, 2), np.int64), np.zeros(n, np.int64)
    with np.errstate(over="ignore"):
        _draw(rows.starts, rows.costs, rows.weights, samples, threshold, seed, turn, found, counts)
    place = np.arange(n * keep) % keep
    return found[place < np.repeat(counts, keep)]


def differences(data: ListDataset, pairs: np.ndarray) -> Pairs:
    """The differences of features of these pairs, both of one list each, lists rising."""
    rows = data.rows
    owners = np.searchsorted(rows.starts, pairs[:, 0], side="right") - 1
    sizes = np.diff(rows.indptr)[pairs].sum(axis=1) if len(pairs) else np.zeros(0, np.int64)
    room = np.concatenate([[0], np.cumsum(np.minimum(sizes, np.diff(rows.scopes)[owners]))])
    out = Pairs(
        np.zeros(len(pairs) + 1, np.int64),
        np.zeros(int(room[-1]), np.int32),
        np.zeros(int(room[-1]), np.float32),
        np.subtract(*rows.offsets[pairs].T.astype(np.float64)),
        rows.weights[owners],
    )
    buffer = np.zeros(int(np.diff(rows.scopes).max(initial=1)), np.float32)
    _subtract(rows, pairs, owners, buffer, out)
    used = int(out.indptr[-1])
    return out._replace(indices=out.indices[:used], values=out.values[:used])


def mirrored(pairs: Pairs, n_features: int, scale: float = 1.0) -> SparseDataset:
    """Every difference times ``scale``, labelled better, and its mirror image, labelled worse."""
    n = len(pairs.weights)
    values = (scale * pairs.values).astype(np.float32)
    rows = SparseRows(
        np.concatenate([pairs.indptr, pairs.indptr[-1] + pairs.indptr[1:]]),
        np.concatenate([pairs.indices, pairs.indices]),
        np.concatenate([values, -values]),
        np.repeat([1, 0], n),
        np.concatenate([pairs.weights, pairs.weights]),
    )
    return SparseDataset(rows, n_features, ("worse", "better"), source="pairs of candidates")


class LogLoss:
    """Log loss of pairs and their mirror images, with L2, and its gradient.

    ``2 * sum_p weight_p log(1 + exp(-w.d_p - b_p)) + l2 * sum_j w_j**2``
    """

    def __init__(self, pairs: Pairs, n_features: int, l2: float) -> None:
        self.pairs, self.n, self.l2 = pairs, n_features, l2

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        gradient = 2.0 * self.l2 * w
        value = _log_loss(self.pairs, w, gradient)
        return value + self.l2 * float(w @ w), gradient


@kernel
def _draw(starts, costs, weights, samples, threshold, seed, turn, found, counts):
    keep = found.shape[0] // max(1, counts.size)
    gaps = np.zeros(keep)
    for i in range(counts.size):
        first, n = starts[i], starts[i + 1] - starts[i]
        if n < 2 or weights[i] <= 0.0:
            continue
        # A hash of the seed, the turn, the list and the draw: no state is handed on.
        key = mixed(mixed(mixed(np.uint64(seed)) + np.uint64(turn)) + np.uint64(i))
        base, count = i * keep, 0
        for k in range(samples):
            bits = mixed(key + np.uint64(k))
            a = first + below(bits >> np.uint64(32), n)
            b = first + below(bits & np.uint64(0xFFFFFFFF), n)
            gap = abs(costs[a] - costs[b])
            if not gap > threshold or (count == keep and gap <= gaps[keep - 1]):
                continue
            at = min(count, keep - 1)
            while at > 0 and gaps[at - 1] < gap:
                gaps[at] = gaps[at - 1]
                found[base + at] = found[base + at - 1]
                at -= 1
            gaps[at] = gap
            better = a if costs[a] < costs[b] else b
            found[base + at, 0], found[base + at, 1] = better, a + b - better
            count = min(count + 1, keep)
        counts[i] = count


@register_jitable
def below(bits, n):
    """A number from 0 to n - 1, from 32 random bits."""
    return np.int64((bits * np.uint64(n)) >> np.uint64(32))


@kernel
def _subtract(rows, pairs, owners, buffer, out):
    used, order, before = 0, np.zeros(0, np.int64), -1
    for p in range(pairs.shape[0]):
        i = owners[p]
        scope = rows.features[rows.scopes[i] : rows.scopes[i + 1]]
        if i != before:
            order, before = np.argsort(scope), i
        for side in range(2):
            sign = np.float32(1.0 - 2.0 * side)
            c = pairs[p, side]
            for e in range(rows.indptr[c], rows.indptr[c + 1]):
                buffer[rows.columns[e]] += sign * rows.values[e]
        for k in order:
            if buffer[k] != 0.0:
                out.indices[used], out.values[used] = scope[k], buffer[k]
                buffer[k] = 0.0
                used += 1
        out.indptr[p + 1] = used


@kernel
def _log_loss(pairs, w, gradient):
    """Add to the gradient; returns the sum of losses."""
    total = 0.0
    for p in range(pairs.weights.size):
        z = pairs.offsets[p]
        for e in range(pairs.indptr[p], pairs.indptr[p + 1]):
            z += pairs.values[e] * w[pairs.indices[e]]
        small = np.exp(-abs(z))
        weight = 2.0 * pairs.weights[p]
        total += weight * (np.log1p(small) + max(0.0, -z))
        pull = weight * (small if z > 0.0 else 1.0) / (1.0 + small)
        for e in range(pairs.indptr[p], pairs.indptr[p + 1]):
            gradient[pairs.indices[e]] -= pull * pairs.values[e]
    return total
