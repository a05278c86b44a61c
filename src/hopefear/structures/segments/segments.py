"""Segments: a sequence cut into labelled stretches of tokens that are scored as wholes.

These are semi-Markov chains: S. Sarawagi and W. W. Cohen, "Semi-Markov conditional random fields
for information extraction", NIPS 2004. A part is a segment (its first token, its length, its
label), or the label of a segment with the label of the segment before. The label of the segment
before meets a segment only through its first token and label, so searches and sums first choose a
label where a segment starts, then its length: they take ``tokens * labels * (longest + labels)``
steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hopefear.core.component import component, shared_kernel
from hopefear.core.interfaces import UNRIVALLED, Structure
from hopefear.core.workspace import new_workspace
from hopefear.structures.chain.mu import new_bag, put_block, scatter_nodes
from hopefear.structures.chain.theta import is_gold, length, score_nodes
from hopefear.structures.lattice import padded_width
from hopefear.structures.segments.part_gradient import (
    SegmentMu,
    add_segment_difference,
    fill_bag,
    forget_segments,
    product_with_bag,
    scatter_spans,
)
from hopefear.structures.segments.part_scores import (
    SegmentRanking,
    SegmentSums,
    SegmentTheta,
    best_segments,
    charge_spans,
    rank_segments,
    score_spans,
    segments_score,
)
from hopefear.structures.segments.sums import (
    kl_of_segments,
    nll_of_segments,
    risk_of_segments,
)


@component(Structure)
class Segments(NamedTuple):
    """Stretches of tokens with labels; a sequence is cut into them without gaps.

    An output has one number a token, its *code*: ``begin[c]`` at the first token of a segment
    labelled c, ``inside[c]`` at its other tokens. That is how BIO columns write spans, so data and
    answers are those of taggers. A segment scores what its codes do at their tokens, what fires on
    it as a whole, and its label behind the label before. Costs are those of codes, token by token.

    Coordinates lie as those of a first-order :class:`~hopefear.structures.chain.chain.Chain`: row a
    has attribute a, of tokens or of segments, with one lane a code (for a segment ``begin`` of its
    label); behind them one row a code and one lane the code before, used where both are ``begin``
    of a label.

    Parameters
    ----------
    attributes : int
        Number of attributes, those of tokens and those of segments.
    labels : int
        Number of codes.
    begin, inside : int32 arrays
        Codes of every segment label; ``inside`` is -1 for labels of single tokens, such as O.
    longest : int
        Most tokens of a segment.
    limits : float32 array
        ``[token * labels + code]``: 0, or minus infinity for what is not allowed; may be empty.
    width : int
        Set by ``new``.

    Notes
    -----
    Of outputs with equal scores searches find the one whose first segment that differs has the
    lower label, then the shorter one.
    """

    attributes: int
    labels: int
    begin: np.ndarray
    inside: np.ndarray
    longest: int
    limits: np.ndarray
    width: int

    @classmethod
    def new(
        cls,
        attributes: int,
        begin: Sequence[int],
        inside: Sequence[int],
        longest: int,
        limits: np.ndarray | None = None,
    ) -> Segments:
        """Segments; see the class for the parameters.

        Examples
        --------
        >>> Segments.new(10, begin=[0, 1], inside=[-1, 2], longest=4).weight_blocks()
        ((0, 14, 4),)
        """
        codes = sorted(c for c in (*begin, *inside) if c >= 0)
        assert codes == list(range(len(codes))), "every code belongs to one label"
        return cls(
            attributes,
            len(codes),
            np.array(begin, np.int32),
            np.array(inside, np.int32),
            longest,
            np.empty(0, np.float32) if limits is None else limits,
            padded_width(len(codes)),
        )

    @property
    def n_labels(self):
        return self.labels

    def weight_blocks(self):
        return ((0, self.attributes + self.width, self.width),)

    def why_unsupported(self, inference):
        if inference in ("cost", "labels", "nbest", "expectation", "risk"):
            return ""
        if inference == "worst":
            return "no segmentation is worse than all; use away=fear or away=prediction"
        if inference in ("places", "heads"):
            return "a mixture of two segmentations is none; use the loss perceptron"
        return "segments have no costs of their own; use the cost hamming"

    def workspace(self, data, loss, dtype):
        tokens = int(np.diff(data.starts).max(initial=1))
        n_attributes = np.diff(data.indptr[data.starts])  # of each sequence
        n_attributes = n_attributes + np.diff(data.span_indptr[data.starts * self.longest])
        theta = self.search_space(tokens, loss.n_outputs(), dtype, "risk" in loss.requires())
        mu = SegmentMu(
            np.zeros_like(theta.nodes),
            np.zeros_like(theta.spans),
            np.zeros_like(theta.pairs),
            np.zeros(tokens, np.uint8),
            np.zeros(theta.spans.size, np.uint8),
            np.zeros(theta.spans.size, np.int64),
            np.zeros(3, np.int64),
            new_bag(int(n_attributes.max(initial=0)) + self.width, self.width, dtype),
            np.zeros(1),
        )
        # Of gold and another output.
        max_nnz = 2 * (int(n_attributes.max(initial=0)) + tokens)
        return new_workspace(theta, mu, np.zeros(tokens, np.int32), loss, max_nnz)

    def search_space(self, tokens, depth, dtype, costs=False):
        """Memory for sequences of up to ``tokens``; ``costs``: to expect costs as well."""
        count, depth = self.begin.size, max(2, depth)
        spans, states = tokens * self.longest * count, (tokens + 1) * count

        def new_sums(size: int) -> SegmentSums:
            return SegmentSums(*(np.zeros(size) for _ in SegmentSums._fields))

        return SegmentTheta(
            np.zeros(tokens * self.width, dtype),
            np.zeros(spans),
            np.zeros(count * count),
            np.zeros(spans),
            np.zeros(count * count),
            np.zeros(spans if costs else 0),
            np.zeros(count),
            np.zeros(states),
            np.zeros(states),
            np.zeros(tokens, np.int32),
            SegmentRanking(
                np.zeros(depth * tokens, np.int32),
                np.zeros(depth),
                np.zeros((depth, 4), np.int64),
                np.zeros(depth),
                np.zeros((depth, 4), np.int64),
                np.zeros(depth),
                np.zeros(depth),
            ),
            new_sums(states),
            new_sums(states if costs else 0),
        )

    def score(self, x, weights, theta):
        score_nodes(self, x, weights, theta.nodes)
        score_spans(self, x, weights, theta)

    def argmax(self, x, theta, y):
        best_segments(self, length(x), theta.spans, theta.pairs, theta, y)

    def margin(self, x, theta, y, exact):
        return margin_of(self, x, theta, y, exact)

    def is_gold(self, x, y):
        return is_gold(x, y)

    def margin_over(self, x, theta, y):
        gold = segments_score(self, length(x), theta, x.data.labels, x.data.starts[x.i])
        return gold - segments_score(self, length(x), theta, y, 0)

    def output_cost(self, x, cost, y):
        start, total = x.data.starts[x.i], 0.0
        for t in range(length(x)):
            total += cost.label_cost(x.data.labels[start + t], y[t])
        return total

    def cost_augmented_argmax(self, x, theta, cost, sign, y):
        charge_spans(self, x, cost, sign, theta.spans, theta.running, theta.charged)
        best_segments(self, length(x), theta.charged, theta.pairs, theta, y)
        return self.margin_over(x, theta, y), self.output_cost(x, cost, y)

    def k_best(self, x, theta, cost, ratio, outputs):
        spans = theta.spans
        if cost is not None:
            charge_spans(self, x, cost, 1.0, theta.spans, theta.running, theta.charged)
            spans = theta.charged
        tokens = theta.path.size
        count = rank_segments(self, length(x), spans, theta, outputs.shape[0], ratio)
        for k in range(count):
            for t in range(length(x)):
                outputs[k, t] = theta.ranking.paths[k * tokens + t]
        return count

    def add_difference(self, x, y, coef, mu, clear):
        add_segment_difference(self, x, y, coef, mu, clear)

    def kl_and_gradient(self, x, theta, cost, inverse_temperature, coef, mu):
        if cost is None:
            value = nll_of_segments(self, x, theta, coef, mu)
            return value, value < 0.6  # gold has over half of the probability
        return kl_of_segments(self, x, theta, cost, inverse_temperature, coef, mu), False

    def risk_and_gradient(self, x, theta, cost, inverse_temperature, coef, mu):
        return risk_of_segments(self, x, theta, cost, inverse_temperature, coef, mu)

    def n_positions(self, x):
        return length(x)

    def scatter(self, x, mu, row):
        if row.additive():
            scatter_nodes(self, x, mu, row)
            scatter_spans(self, x, mu, row)
            return
        fill_bag(self, x, mu)
        width, bag = np.uint64(self.width), mu.bag
        for k in range(bag.used[0]):
            put_block(row, np.uint64(bag.rows[k]) * width, bag.sums, np.uint64(k) * width, width)

    def gram_matrix(self, x, outputs, count, mu, products):
        for k in range(count):
            self.add_difference(x, outputs[k], 1.0, mu, True)
            fill_bag(self, x, mu)
            for m in range(k, count):
                forget_segments(self, x, mu)
                self.add_difference(x, outputs[m], 1.0, mu, False)
                products[k, m] = product_with_bag(self, x, mu)
                products[m, k] = products[k, m]


@shared_kernel
def margin_of(structure, x, theta, y, exact):
    """Score of gold minus that of the best other output, which is left in ``y``."""
    T = length(x)
    best_segments(structure, T, theta.spans, theta.pairs, theta, y)
    if not exact:
        z = structure.margin_over(x, theta, y)
        if z == 0.0 and is_gold(x, y):
            return 1.0
        return 0.0 if z > 0.0 else z  # found before gold, so not behind it but for rounding
    if is_gold(x, y):
        if rank_segments(structure, T, theta.spans, theta, 2, 0.0) < 2:
            z = structure.margin_over(x, theta, y)
            return UNRIVALLED if z == 0.0 else z  # scores that are not finite must show
        for t in range(T):
            y[t] = theta.ranking.paths[theta.path.size + t]
    return structure.margin_over(x, theta, y)


def bytes_needed(structure: Segments, tokens: int, depth: int) -> int:
    """Roughly the memory of a search over ``tokens`` tokens."""
    spans = structure.longest * structure.begin.size
    return tokens * (8 * (6 * spans + 12 * structure.begin.size) + 8 * structure.width + 4 * depth)
