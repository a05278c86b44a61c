"""Lists of candidates in plain NumPy: features as a dense matrix, losses as their papers' formulas.

Nothing here knows scopes, columns or workspaces. A ``ListWorld`` holds one list under given
weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from chain_oracle import MARGIN_LOSSES, Force, Sums, box_programme, replayed, softmax
from reference import Trace, dense_loss

from hopefear.core.learner import Learner
from hopefear.core.workspace import Example, Plain
from hopefear.data.lists.dataset import ListDataset, ListRows, cheapest
from hopefear.structures.nbest import NBest

# Margin of a list without rivals: any loss that margins can end has ended there.
ALONE = 1e30


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


class ListWorld:
    """One list: features, scores, and which candidate is to win against which."""

    def __init__(self, structure: NBest, rows: ListRows, i: int, w: np.ndarray) -> None:
        first, last = int(rows.starts[i]), int(rows.starts[i + 1])
        self.F = np.zeros((last - first, structure.features))
        scope = rows.features[rows.scopes[i] : rows.scopes[i + 1]]
        for c in range(first, last):
            for e in range(rows.indptr[c], rows.indptr[c + 1]):
                self.F[c - first, scope[rows.columns[e]]] += float(rows.values[e])
        self.scores = self.F @ w + rows.offsets[first:last].astype(np.float64)
        self.paid = rows.costs[first:last]
        self.importance = float(rows.weights[i])
        self.gold, self.rivals = int(rows.oracles[i]), np.arange(last - first) != rows.oracles[i]
        if structure.tied:
            self.rivals = self.paid != self.paid[self.gold]
            self.gold = next(k for k in self.ranked() if not self.rivals[k])

    def ranked(self, by=None) -> list[int]:
        """Positions of the candidates, best first; equals as they stand in the list."""
        by = self.scores if by is None else by
        return sorted(range(len(by)), key=lambda k: (-by[k], k))

    def costs(self, cost: Any) -> np.ndarray:
        return np.array([cost.price(self.paid[self.gold], paid) for paid in self.paid])

    def top(self, n: int, ratio: float = 0.0) -> list[int]:
        found = self.ranked()[:n]
        least = self.scores[found[0]] - np.log(ratio) if ratio > 0 else -np.inf
        return [k for k in found if self.scores[k] >= least]

    def delta(self, k: int) -> np.ndarray:
        """Features of gold minus those of candidate ``k``."""
        return self.F[self.gold] - self.F[k]

    def lead(self, k: int) -> float:
        return float(self.scores[self.gold] - self.scores[k])

    def best_rival(self) -> int | None:
        return next((k for k in self.ranked() if self.rivals[k]), None)


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
        self.structure.score(x, Plain(w), work.theta)
        forced = self.loss.subgradient(self.structure, x, work) > 0
        row = Sums(np.zeros(w.size), np.zeros(w.size, np.int64), False)
        if forced:
            self.structure.scatter(x, work.mu, row)
        assert row.times.max(initial=0) <= 1
        assert not work.mu.local.any()
        return forced, float(work.loss[0]), float(work.gap[0]), row.g

    def weights(self, seed=2, scale=1.0):
        rng = np.random.default_rng(seed)
        for i in range(lists_of(self.rows)):
            yield i, scale * rng.normal(size=self.structure.features)

    def world(self, i, w):
        return ListWorld(self.structure, self.rows, i, w)


def programme(loss: Any, world: ListWorld) -> tuple[list[int], np.ndarray, np.ndarray]:
    """(candidates, their directions, by how much margins fall short) of n-best MIRA."""
    costs = world.costs(loss.cost)
    top = world.ranked(world.scores + costs)[: loss.n] if loss.augmented else world.top(loss.n)
    D = np.array([world.delta(k) for k in top])
    asked = np.sqrt(costs) if loss.root else costs
    return top, D, asked[top] - np.array([world.lead(k) for k in top])


def nbest_mira(loss: Any, world: ListWorld) -> tuple[float, np.ndarray]:
    _, D, short = programme(loss, world)
    value = max(0.0, short.max()) * world.importance
    if not loss.sequential:
        return value, box_programme(D @ D.T, short, loss.C * world.importance) @ D
    moved = np.zeros(D.shape[1])  # an explicit loop: weights move after every constraint
    for d, gap in zip(D, short, strict=True):
        if d @ d > 0:
            moved = moved + (gap - d @ moved) / (d @ d) * d
    return value, moved


def hope_and_fear(loss: Any, world: ListWorld) -> tuple[int, int]:
    """Positions of what ``HopeFear`` pulls up and pushes down."""
    costs, scores = world.costs(loss.cost), world.scores
    hope = {0: world.ranked(scores - costs)[0], 1: world.gold}[loss.toward]
    fears = {0: scores + costs, 1: scores, 2: costs}
    return hope, world.ranked(fears[loss.away])[0]


def force(loss: Any, world: ListWorld) -> Force:
    """Loss and direction of a list, by the formula of its paper."""
    name, gold, importance = type(loss).__name__, world.gold, world.importance
    best, scores, F = world.ranked()[0], world.scores, world.F
    mistaken = bool(world.rivals[best]) and importance > 0
    zero = np.zeros(F.shape[1])
    if name in MARGIN_LOSSES:
        rival = best if name == "Perceptron" else world.best_rival()
        if rival is None or (name == "Perceptron" and not world.rivals[best]):
            return Force(0.0, False, False, ALONE, zero)
        z = world.lead(rival)
        value, slope = dense_loss(loss)(z)
        forced = importance * slope != 0
        g = importance * slope * world.delta(rival) if forced else zero
        return Force(importance * value, bool(z <= 0 and importance > 0), forced, z, g)
    if name == "Log":
        scale, P, good = loss.force * importance, softmax(scores), ~world.rivals
        Q = np.where(good, softmax(np.where(good, scores, -np.inf)), 0.0)
        value = np.logaddexp.reduce(scores) - np.logaddexp.reduce(scores[good])
        return Force(scale * value, mistaken, scale > 0, 0.0, scale * (Q - P) @ F)
    if name == "SAPO":
        top = world.top(loss.n, loss.ratio)
        P = softmax(scores[top])
        value = np.log(np.exp(scores[top] - scores[gold]).sum())
        forced = importance > 0 and not (len(top) == 1 and not world.rivals[best])
        return Force(importance * value, mistaken, forced, 0.0, importance * (F[gold] - P @ F[top]))
    costs = world.costs(loss.cost)
    if name == "StructuredHinge":
        fear = world.ranked(scores + costs)[0]
        value = importance * max(0.0, costs[fear] - world.lead(fear))
        forced = bool(world.rivals[fear]) and importance > 0 and not (value <= 0 < costs[fear])
        mistaken = mistaken or (forced and world.lead(fear) <= 0)  # a tie with what is feared
        return Force(value, mistaken, forced, 0.0, importance * forced * world.delta(fear))
    if name == "PredictionHinge":
        if not mistaken:
            return Force(0.0, False, False, 1.0, zero)
        price = np.sqrt(costs[best]) if loss.root else costs[best]
        value = importance * (price - world.lead(best))
        return Force(value, True, True, world.lead(best), importance * world.delta(best))
    if name == "Ramp":
        fear, hope = world.ranked(scores + costs)[0], world.ranked(scores - costs)[0]
        value = importance * (scores[fear] + costs[fear] - (scores[hope] - costs[hope]))
        forced = value > 1e-12
        return Force(value, mistaken, forced, 0.0, importance * forced * (F[hope] - F[fear]))
    if name == "HopeFear":
        hope, fear = hope_and_fear(loss, world)
        asked, got = costs[fear] - costs[hope], scores[hope] - scores[fear]
        forced = importance * (asked - got) > 1e-12
        value = importance * forced * (asked - got)
        return Force(value, mistaken, forced, 0.0, importance * forced * (F[hope] - F[fear]))
    if name == "Risk":
        P = softmax(loss.sharp * scores)
        mean = P @ F
        slope = loss.sharp * sum(
            p * c * (f - mean) for p, c, f in zip(P, costs, F, strict=True)
        )  # d P_j = sharp P_j (phi_j - mean)
        return Force(importance * (P @ costs), mistaken, importance > 0, 0.0, -importance * slope)
    if name == "WeightedLog":
        P, Q = softmax(scores), softmax(-loss.sharp * costs)
        value = np.sum(Q * (np.log(np.maximum(Q, 1e-300)) - np.log(P)))
        return Force(
            importance * value, mistaken, importance > 0, 0.0, importance * (Q @ F - P @ F)
        )
    value, g = nbest_mira(loss, world)
    forced = bool(importance > 0 and np.abs(g).max() > 1e-12)
    return Force(value, mistaken, forced, 0.0, g)


def replay_lists(structure: NBest, learner: Learner, rows: ListRows, order) -> Trace:
    """Train the oracle and keep a copy of its weights after every list."""

    def force_at(i: int, w: np.ndarray) -> Force:
        return force(learner.loss, ListWorld(structure, rows, i, w))

    return replayed(learner, structure.n_coordinates(), order, force_at)
