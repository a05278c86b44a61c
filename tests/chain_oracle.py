"""Label chains by enumeration: every output has its feature vector, written out in full.

Nothing here searches, scores parts or adds directions up lazily. A ``World`` holds one sequence
under given weights; the losses below are their papers' formulas on the list of all outputs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from reference import Trace

from hopefear.core.learner import Learner
from hopefear.data.sequences import SequenceDataset, TokenRows
from hopefear.features.attributes import AttributeFeatures, AttributeRows
from hopefear.structures.chain.chain import Chain
from hopefear.structures.chain.theta import Limits
from hopefear.testing.contracts import Sums
from hopefear.testing.rules import dense_rule
from hopefear.testing.worlds import FORMULAS, Force, programme, softmax

__all__ = ["Force", "Sums", "programme", "softmax"]


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


def force(loss: Any, world: Any) -> Force:
    """Loss and direction of a list, by the formula of its paper."""
    return FORMULAS[type(loss).__name__](loss, world)


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
