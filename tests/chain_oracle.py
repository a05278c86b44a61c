"""Label chains by enumeration: every output has its feature vector, written out in full.

Nothing here searches, scores parts or adds directions up lazily. A ``World`` holds one sequence
under given weights; the losses below are their papers' formulas on the list of all outputs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from reference import Trace, dense_loss, dense_rule

from hopefear.core.component import component
from hopefear.core.interfaces import Row
from hopefear.core.learner import Learner
from hopefear.data.sequences import SequenceDataset, TokenRows
from hopefear.features.attributes import AttributeFeatures, AttributeRows
from hopefear.structures.chain.chain import Chain
from hopefear.structures.chain.theta import Limits

# Margin of a list without rivals: any loss that margins can end has ended there.
ALONE = 1e30
MARGIN_LOSSES = ("Perceptron", "Hinge", "SquaredHinge", "Logistic", "Exponential", "Linear")


@component(Row)
class Sums(NamedTuple):
    """A row that adds entries up, and counts how often a coordinate came."""

    g: np.ndarray
    times: np.ndarray
    merge: bool

    def additive(self):
        return not self.merge

    def put(self, j, g):
        self.g[j] += g
        self.times[j] += g != 0.0


def tiny_rows(seed, lengths, chain: Chain, values=True, weights=None, repeat=True) -> TokenRows:
    """Random sequences; attributes come again in other tokens, with ``repeat`` also in their own.

    Values are odd, so that scores tie only where weights are equal.
    """
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    tokens = int(starts[-1])

    def attributes(size, most):
        if size == 0:
            return np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32)
        counts = rng.integers(0 if repeat else 1, most + 1, tokens)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        indices = rng.integers(0, size, indptr[-1])
        given = rng.normal(size=indptr[-1]) + 0.7 if values else np.empty(0)
        return indptr, indices, given

    rows = TokenRows(
        starts,
        *attributes(chain.attributes, 4),
        *attributes(chain.edge_attributes, 2),
        rng.integers(0, chain.labels, tokens),
        np.ones(len(lengths)) if weights is None else weights,
    )
    made = SequenceDataset(rows, [str(c) for c in range(chain.labels)], None).rows
    # Plain Python would multiply float32 values with numbers of its own in float32.
    return made._replace(values=frozen(made.values), edge_values=frozen(made.edge_values))


def frozen(array: np.ndarray) -> np.ndarray:
    """A copy in float64 that cannot be written to."""
    copy = array.astype(np.float64)
    copy.flags.writeable = False
    return copy


def corpus(seed, n=24, labels=("D", "N", "V"), longest=5) -> SequenceDataset:
    """Sentences of a small language: a hidden label chain, words that nearly give it away."""
    rng = np.random.default_rng(seed)
    move = rng.dirichlet(np.full(len(labels), 0.6), len(labels))
    texts, codes, starts = [], [], [0]
    for _ in range(n):
        c, sentence = int(rng.integers(len(labels))), []
        for _ in range(int(rng.integers(1, longest + 1))):
            c = int(rng.choice(len(labels), p=move[c]))
            word = f"w{c}{rng.integers(3)}" if rng.random() < 0.8 else f"x{rng.integers(4)}"
            sentence.append([word, "bias"])
            codes.append(c)
        texts.append([[*token, f"before={before[0]}"] for token, before in
                      zip(sentence, [["^"], *sentence], strict=False)])  # fmt: skip
        starts.append(len(codes))
    attributes = AttributeRows.of(texts)
    features = AttributeFeatures.fit(attributes)
    rows = TokenRows(np.array(starts), *features.encode(attributes), np.array(codes), np.ones(n))
    return SequenceDataset(rows, labels, features, "generated")


def feature_vector(chain: Chain, rows: TokenRows, i: int, y) -> np.ndarray:
    """F(x, y), one coordinate after the other as the class ``Chain`` says they lie."""
    W, found = chain.width, np.zeros(chain.n_coordinates())
    pairs = chain.attributes * W
    triples = pairs + (1 + chain.edge_attributes) * W * W
    for t, c in enumerate(y):
        k = rows.starts[i] + t
        for p in range(rows.indptr[k], rows.indptr[k + 1]):
            value = float(rows.values[p]) if rows.values.size else 1.0
            found[rows.indices[p] * W + c] += value
        if t == 0:
            continue
        pair = c * W + y[t - 1]
        found[pairs + pair] += 1.0
        if chain.order == 2 and t > 1:
            found[triples + pair * W + y[t - 2]] += 1.0
        if chain.edge_attributes:
            for p in range(rows.edge_indptr[k], rows.edge_indptr[k + 1]):
                value = float(rows.edge_values[p]) if rows.edge_values.size else 1.0
                found[pairs + (1 + rows.edge_indices[p]) * W * W + pair] += value
    return found


def permitted(limits: Limits, width: int, first: int, y) -> bool:
    """Whether the limits allow an output whose first token is the ``first`` of the data."""
    if limits.step.size == 0:
        return True
    total = limits.start[y[0]] + limits.end[y[-1]]
    total += sum(limits.step[b * width + a] for a, b in itertools.pairwise(y))
    if limits.tokens.size:
        total += sum(limits.tokens[(first + t) * width + c] for t, c in enumerate(y))
    return bool(total == 0.0)


class World:
    """All outputs of one sequence in lexicographic order, with features and scores."""

    def __init__(self, chain: Chain, rows: TokenRows, i: int, w: np.ndarray) -> None:
        first, last = rows.starts[i], rows.starts[i + 1]
        every = itertools.product(range(chain.labels), repeat=int(last - first))
        self.ys = [y for y in every if permitted(chain.limits, chain.width, first, y)]
        self.F = np.array([feature_vector(chain, rows, i, y) for y in self.ys])
        self.scores = self.F @ w
        self.gold = self.ys.index(tuple(rows.labels[first:last].tolist()))
        self.importance = float(rows.weights[i])
        self.rivals = np.arange(len(self.ys)) != self.gold

    def ranked(self, by=None) -> list[int]:
        """Numbers of the outputs, best first; equals in lexicographic order."""
        by = self.scores if by is None else by
        return sorted(range(len(self.ys)), key=lambda k: (-by[k], k))

    def costs(self, cost: Any) -> np.ndarray:
        gold = self.ys[self.gold]
        return np.array(
            [sum(cost.price(g, c) for g, c in zip(gold, y, strict=True)) for y in self.ys]
        )

    def top(self, n: int, ratio: float = 0.0) -> list[int]:
        found = self.ranked()[:n]
        if ratio > 0:
            found = [k for k in found if self.scores[k] >= self.scores[found[0]] - np.log(ratio)]
        return found

    def delta(self, k: int) -> np.ndarray:
        """Features of gold minus those of output ``k``."""
        return self.F[self.gold] - self.F[k]

    def lead(self, k: int) -> float:
        return float(self.scores[self.gold] - self.scores[k])

    def best_rival(self) -> int | None:
        return next((k for k in self.ranked() if self.rivals[k]), None)


class Force(NamedTuple):
    """What a loss makes of an example."""

    value: float
    mistaken: bool
    forced: bool
    margin: float
    g: np.ndarray


def softmax(v: np.ndarray) -> np.ndarray:
    e = np.exp(v - v.max())
    return e / e.sum()


def box_programme(G: np.ndarray, short: np.ndarray, C: float) -> np.ndarray:
    """The maximiser of ``a.short - a'Ga/2`` in the box, by trying every set of bounds."""
    best, found = -np.inf, np.zeros(len(short))
    for sides in itertools.product((0, 1, 2), repeat=len(short)):
        free = np.array([s == 2 for s in sides])
        a = np.where(np.array(sides) == 1, C, 0.0)
        if free.any():
            a[free] = np.linalg.lstsq(G[np.ix_(free, free)], short[free] - G[free] @ a)[0]
        value = a @ short - a @ G @ a / 2
        if (a >= -1e-12).all() and (a <= C + 1e-12).all() and value > best + 1e-13:
            best, found = value, a
    return found


def programme(loss: Any, world: Any) -> tuple[list[int], np.ndarray, np.ndarray]:
    """(candidates, their directions, by how much margins fall short) of n-best MIRA."""
    costs = world.costs(loss.cost)
    top = world.ranked(world.scores + costs)[: loss.n] if loss.augmented else world.top(loss.n)
    D = np.array([world.delta(k) for k in top])
    asked = np.sqrt(costs) if loss.root else costs
    return top, D, asked[top] - np.array([world.lead(k) for k in top])


def nbest_mira(loss: Any, world: Any) -> tuple[float, np.ndarray]:
    _, D, short = programme(loss, world)
    value = max(0.0, short.max()) * world.importance
    if not loss.sequential:
        return value, box_programme(D @ D.T, short, loss.C * world.importance) @ D
    moved = np.zeros(D.shape[1])  # an explicit loop: weights move after every constraint
    for d, gap in zip(D, short, strict=True):
        if d @ d > 0:
            moved = moved + (gap - d @ moved) / (d @ d) * d
    return value, moved


def hope_and_fear(loss: Any, world: Any) -> tuple[int, int]:
    """Positions of what ``HopeFear`` pulls up and pushes down."""
    costs, scores = world.costs(loss.cost), world.scores
    hope = {0: world.ranked(scores - costs)[0], 1: world.gold}[loss.toward]
    if loss.away == 1:
        return hope, int(np.argmax(scores))
    return hope, world.ranked(scores + costs if loss.away == 0 else costs)[0]


def force(loss: Any, world: Any) -> Force:
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


def replay_chain(chain: Chain, learner: Learner, rows: TokenRows, order) -> Trace:
    """Train the oracle and keep a copy of its weights after every example."""

    def force_at(i: int, w: np.ndarray) -> Force:
        return force(learner.loss, World(chain, rows, i, w))

    return replayed(learner, chain.n_coordinates(), order, force_at)


def replayed(
    learner: Learner, size: int, order, force_at: Callable[[int, np.ndarray], Force]
) -> Trace:
    """Train a dense rule by the force of each example under the weights there are."""
    rule = dense_rule(learner.rule, size)
    snapshots, ended, longest, mistakes, updates, total = [], [], 0.0, 0, 0, 0.0
    for i in order:
        found = force_at(i, rule.w)
        mistakes, total = mistakes + found.mistaken, total + found.value
        if learner.on == "every" or (found.mistaken and found.forced):
            ended.append(rule.w.copy())
            g = found.g if found.forced else 0 * found.g
            rule.tick(g, found.value, found.margin)
            longest = max(longest, float(np.linalg.norm(g)))
            updates += found.forced
        snapshots.append(rule.w.copy())
    return Trace(np.array(snapshots), np.array(ended), longest, mistakes, updates, rule.t, total)
