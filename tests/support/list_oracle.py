"""Lists of candidates in plain NumPy: features as a dense matrix, losses as their papers' formulas.

Nothing here knows scopes, columns or workspaces. A ``ListWorld`` holds one list under given
weights.
"""

from __future__ import annotations

import numpy as np
from chain_oracle import Sums

from hopefear import testing
from hopefear.core.workspace import DenseWeights, Example
from hopefear.data.lists.dataset import ListDataset, ListRows, cheapest
from hopefear.structures.nbest import NBest


def rows_of(matrices, costs, offsets=None, oracles=None, weights=None) -> ListRows:
    """Arrays of lists whose candidates are the rows of dense matrices."""
    starts = np.concatenate([[0], np.cumsum([len(m) for m in matrices])])
    scopes, features, indptr, columns, values = [0], [], [0], [], []
    for m in matrices:
        m = np.asarray(m, np.float64)
        spoken = np.flatnonzero(m.any(axis=0))
        features += spoken.tolist()
        scopes.append(len(features))
        for row in m[:, spoken]:
            columns += np.flatnonzero(row).tolist()
            values += row[row != 0].tolist()
            indptr.append(len(columns))
    costs = np.concatenate([np.asarray(c, np.float64) for c in costs])
    return ListDataset(
        ListRows(
            starts,
            np.array(scopes),
            np.array(features, np.int32),
            np.array(indptr),
            np.array(columns, np.int32),
            np.array(values),
            np.zeros(len(costs)) if offsets is None else np.concatenate(offsets),
            costs,
            cheapest(costs, starts) if oracles is None else np.array(oracles),
            np.ones(len(matrices)) if weights is None else np.array(weights),
        )
    ).rows


def tiny_lists(seed, sizes=(3, 1, 4, 2, 5, 3, 4, 2), features=6, offsets=True, weights=None):
    """Random lists; values are odd numbers, so that scores tie only where weights are zero.

    Some candidates cost the same, and the cheapest of a list may be several.
    """
    rng = np.random.default_rng(seed)
    matrices = [
        (rng.normal(size=(n, features)) * (rng.random((n, features)) < 0.6)).astype(np.float32)
        for n in sizes
    ]
    costs = [rng.choice([0.0, 0.25, 0.25, 0.5, 1.25], n) + rng.integers(0, 2) for n in sizes]
    fixed = [0.3 * rng.normal(size=n) for n in sizes] if offsets else None
    return rows_of(matrices, costs, fixed, None, weights)


class ListWorld(testing.World):
    """One list: features, scores, and which candidate is to win against which."""

    def __init__(self, structure: NBest, rows: ListRows, i: int, w: np.ndarray) -> None:
        super().__init__(testing.outputs_of(structure, rows, i), w, float(rows.weights[i]))
        self.paid = rows.costs[rows.starts[i] : rows.starts[i + 1]]


def lists_of(rows: ListRows) -> int:
    return len(rows.weights)


class Asked:
    """A loss at work on every list of a tiny dataset; one workspace for all, as in training."""

    def __init__(self, loss, rows, tied=False, features=6):
        self.structure, self.rows, self.loss = NBest(features, tied), rows, loss
        self.work = self.structure.workspace(rows, loss, np.float64)

    def answer(self, i, w):
        """(forced, loss, gap, direction)."""
        x, work = Example(self.rows, i), self.work
        self.structure.score(x, DenseWeights(w), work.theta)
        forced = self.loss.subgradient(self.structure, x, work) > 0
        row = Sums(np.zeros(w.size), np.zeros(w.size, np.int64), False)
        if forced:
            self.structure.scatter(x, work.mu, row)
        assert row.times.max(initial=0) <= 1
        assert not work.mu.local.any()
        return forced, float(work.loss[0]), float(work.gold_margin[0]), row.g

    def weights(self, seed=2, scale=1.0):
        rng = np.random.default_rng(seed)
        for i in range(lists_of(self.rows)):
            yield i, scale * rng.normal(size=self.structure.features)

    def world(self, i, w):
        return ListWorld(self.structure, self.rows, i, w)
