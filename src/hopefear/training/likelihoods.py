"""Log-likelihoods of label chains at many temperatures, by NumPy: nothing is compiled for them.

All sequences take a step together, as ``structures/lattice/marginals.py`` has one after another do:

    alpha[t, u] = n[t, u] sum_i alpha[t-1, i] E[u, i] / z_t,   log Z = sum_t log z_t + what was
    taken off before the exponentials n and E were formed

and those whose sums leave float64 take their steps in logarithms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hopefear.errors import HopefearError
from hopefear.structures.chain.theta import pair_base

# Steps are taken in Python; in longer sequences there would be too many.
MOST_TOKENS = 500
# Products that stay above this lose nothing.
_SMALLEST = -575.0
# Entries of edge tables that are looked at together in logarithms.
_TOGETHER = 1 << 22


class Likelihoods:
    """How probable weights make the labels that sequences have, at any temperature.

    Scores do not depend on the temperature and are summed once. The likelihoods are those of
    :class:`~hopefear.training.decoding.Decoder`, which is quicker where its kernels are compiled
    and sequences are long.

    Parameters
    ----------
    chain : Chain
        Of first order, without edge attributes; its limits are left out.
    weights : float array
        One for each coordinate.
    rows : TokenRows
        The sequences and their labels.

    Examples
    --------
    >>> from hopefear.data.sequences import SequenceDataset, TokenRows
    >>> from hopefear.structures.chain.chain import Chain
    >>> none = np.empty(0)
    >>> rows = TokenRows([0, 2], [0, 1, 2], [0, 0], none, [0], none, none, [0, 1], [1.0])
    >>> chain, rows = Chain.new(1, 2), SequenceDataset(rows, ["a", "b"], None).rows
    >>> weights = np.zeros(chain.n_coordinates(), np.float32)
    >>> weights[0] = np.log(3.0)
    >>> Likelihoods(chain, weights, rows).at(1.0).round(3).tolist()  # 3 / 4 times 1 / 4
    [-1.674]
    """

    def __init__(self, chain: Any, weights: np.ndarray, rows: Any) -> None:
        lengths, known = np.diff(rows.starts), (rows.labels >= 0) & (rows.labels < chain.labels)
        self._by_length = np.argsort(-lengths, kind="stable")
        self._sizes = lengths[self._by_length]
        first = rows.starts[self._by_length]
        # Step t has token t of every sequence that is so long, the longest sequence first.
        steps = range(int(lengths.max(initial=0)))
        self._places = [first[: np.count_nonzero(self._sizes > t)] + t for t in steps]
        self._nodes = _node_scores(chain, weights, rows)
        base, size = pair_base(chain), chain.width * chain.width
        table = weights[base : base + size].reshape(chain.width, chain.width)
        self._edges = table[: chain.labels, : chain.labels]
        if not (np.isfinite(self._nodes).all() and np.isfinite(self._edges).all()):
            raise HopefearError("scores are not finite; the model's weights are unusable")
        self._labels = np.where(known, rows.labels, 0)
        unknown = np.concatenate([[0], np.cumsum(~known)])
        self._impossible = (unknown[rows.starts[1:]] > unknown[rows.starts[:-1]])[self._by_length]

    def at(self, temperature: float) -> np.ndarray:
        """Log probability of the labels of every sequence; minus infinity where one is unknown."""
        nodes, edges = _cooled(self._nodes, temperature), _cooled(self._edges, temperature)
        logs = np.zeros(len(self._sizes))
        for t, places in enumerate(self._places):
            here = self._labels[places]
            logs[: len(places)] += nodes[places, here]
            if t:
                logs[: len(places)] += edges[here, self._labels[places - 1]]
        logs -= self._log_totals(nodes, edges)
        logs[self._impossible] = -np.inf
        return logs[np.argsort(self._by_length, kind="stable")]

    def _log_totals(self, nodes: np.ndarray, edges: np.ndarray) -> np.ndarray:
        totals, narrow = np.zeros(len(self._sizes)), np.ones(len(self._sizes), bool)
        top = edges.max(initial=-np.inf)
        lowest, table = edges.min(initial=np.inf) - top, np.exp(edges - top).T
        alpha, least = np.zeros(0), np.zeros(0)
        with np.errstate(divide="ignore", invalid="ignore"):  # of those that are not narrow
            for t, places in enumerate(self._places):
                n = len(places)
                scores = nodes[places]
                tops = scores.max(axis=1)
                shares = np.exp(scores - tops[:, None])
                floor = scores.min(axis=1) - tops
                if t:
                    shares *= alpha[:n] @ table
                    floor += least[:n] + lowest
                    tops += top
                narrow[:n] &= floor >= _SMALLEST
                z = shares.sum(axis=1)
                alpha, logs = shares / z[:, None], np.log(z)
                least = np.log(shares.min(axis=1)) - logs
                totals[:n] += logs + tops
        wide = np.flatnonzero(~narrow)
        together = max(1, _TOGETHER // max(1, edges.size))
        for k in range(0, len(wide), together):
            some = wide[k : k + together]
            totals[some] = self._log_totals_in_logs(some, nodes, edges)
        return totals

    def _log_totals_in_logs(
        self, which: np.ndarray, nodes: np.ndarray, edges: np.ndarray
    ) -> np.ndarray:
        """The same of some sequences, longest first."""
        alpha = np.zeros((len(which), len(edges)))
        for t, places in enumerate(self._places):
            n = int(np.searchsorted(which, len(places)))
            if n == 0:
                break
            scores = nodes[places[which[:n]]]
            alpha[:n] = scores if t == 0 else scores + _log_sums(alpha[:n, None, :] + edges)
        return _log_sums(alpha)


def _cooled(scores: np.ndarray, temperature: float) -> np.ndarray:
    """Scores divided by the temperature, rounded as those are that decoders divide in place."""
    return (scores * np.float64(1.0 / temperature)).astype(scores.dtype).astype(np.float64)


def _log_sums(values: np.ndarray) -> np.ndarray:
    """``log sum exp`` over the last axis."""
    tops = values.max(axis=-1)
    return tops + np.log(np.exp(values - tops[..., None]).sum(axis=-1))


def _node_scores(chain: Any, weights: np.ndarray, rows: Any) -> np.ndarray:
    """Score of every label at every token, summed in the order and precision of the kernels."""
    counts = np.diff(rows.indptr)
    table = weights[: pair_base(chain)].reshape(chain.attributes, chain.width)[:, : chain.labels]
    scores = np.zeros((len(counts), chain.labels), weights.dtype)
    by_count = np.argsort(-counts, kind="stable")
    falling = counts[by_count]
    for k in range(int(counts.max(initial=0))):
        tokens = by_count[: np.count_nonzero(falling > k)]
        entries = rows.indptr[tokens] + k
        more = table[rows.indices[entries]]
        scores[tokens] += more * rows.values[entries][:, None] if rows.values.size else more
    return scores
