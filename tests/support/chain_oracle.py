"""Label chains by enumeration: every output has its feature vector, written out in full.

Worlds, formulas of losses and dense rules are those of ``hopefear.testing``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hopefear import testing
from hopefear.core.interfaces import n_weights
from hopefear.core.learner import Learner
from hopefear.data.sequences import SequenceDataset, TokenRows
from hopefear.features.attributes import AttributeFeatures, AttributeRows
from hopefear.structures.chain.chain import Chain
from hopefear.testing.contracts import Sums
from hopefear.testing.rules import Trace, dense_rule, replay
from hopefear.testing.worlds import FORMULAS, Force, chain_features, permitted, programme, softmax

__all__ = ["Force", "Sums", "permitted", "programme", "softmax"]


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
    """F(x, y) of sequence ``i``."""
    return chain_features(chain, rows, int(rows.starts[i]), y)


class World(testing.World):
    """All outputs of one sequence in lexicographic order, with features and scores."""

    def __init__(self, chain: Chain, rows: TokenRows, i: int, w: np.ndarray) -> None:
        super().__init__(testing.outputs_of(chain, rows, i), w, float(rows.weights[i]))
        self.ys = self.outputs.ys


def force(loss: Any, world: Any) -> Force:
    """Loss and direction of a list, by the formula of its paper."""
    return FORMULAS[type(loss).__name__](loss, world)


def replay_on(structure: Any, learner: Learner, rows: Any, order) -> Trace:
    """Train the oracle and keep a copy of its weights after every example."""

    def force_at(i: int, w: np.ndarray) -> Force:
        return force(learner.loss, testing.World.at(structure, rows, i, w))

    rule = dense_rule(learner.rule, n_weights(structure))
    return replay(rule, learner.update_on, order, force_at)
