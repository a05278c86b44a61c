"""Why a tagger said what it said, and how sure it is of spans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hopefear.chains.theta import Limits
from hopefear.data.schemes import spans
from hopefear.data.sequences import Column, SequenceDataset
from hopefear.errors import HopefearError
from hopefear.training.decoding import Decoder


class Explanation(NamedTuple):
    """What made one label of a token beat the runner-up.

    The runner-up is the best output with another label at that token; where it differs at other
    tokens too, their features count as well.
    """

    label: str
    runner_up: str
    gap: float  # score of the best output minus that of the best other one
    contributions: list[tuple[str, float]]  # (what fired, its share of the gap), largest first


class SpanConfidence(NamedTuple):
    """Probability that a span is there, with exactly these bounds and this kind."""

    first: int  # token numbers in the dataset
    after: int
    kind: str
    probability: float


def explain(
    decoder: Decoder, features: Any, labels: Sequence[str], data: SequenceDataset, i: int, t: int
) -> Explanation:
    """Why token ``t`` of sequence ``i`` got its label."""
    if not 0 <= i < len(data) or not 0 <= t < data.rows.starts[i + 1] - data.rows.starts[i]:
        raise HopefearError(f"there is no token {t + 1} in a sequence {i + 1}")
    one = data.take([i])
    chain, weights = decoder.structure, decoder.weights
    best = decoder.tags(one.rows)
    rest = Decoder(_without(chain, one.n_tokens, t, int(best[t])), weights)
    other = rest.tags(one.rows)
    if len(labels) < 2 or other[t] == best[t]:
        raise HopefearError("no other label is allowed for this token, so nothing was beaten")
    gains = _contributions(chain, weights, features, labels, one.rows, best, other, t)
    gains.sort(key=lambda gain: -abs(gain[1]))
    gap = float(np.sum([gain for _, gain in gains]))
    return Explanation(labels[best[t]], labels[other[t]], gap, [g for g in gains if g[1] != 0.0])


def _without(chain: Any, n_tokens: int, t: int, label: int) -> Any:
    """The chain with one label of one token forbidden."""
    width, limits = chain.width, chain.limits
    tokens = np.zeros(n_tokens * width, np.float32)
    tokens[t * width + label] = -np.inf
    if limits.step.size == 0:
        zeros = np.zeros(width, np.float32)
        limits = Limits(zeros, zeros, np.zeros(width * width, np.float32), tokens)
    return chain._replace(limits=limits._replace(tokens=tokens))


def _contributions(
    chain: Any, weights: Any, features: Any, labels: Sequence[str], rows: Any, best, other, token
) -> list[tuple[str, float]]:
    width, pairs = chain.width, chain.attributes * chain.width
    triples = pairs + (1 + chain.edge_attributes) * width * width
    gains = []
    for t in range(best.size):
        where = "" if t == token else f" at token {t - token:+d}"
        a, b = int(best[t]), int(other[t])
        if a != b:
            for p in range(rows.indptr[t], rows.indptr[t + 1]):
                k = int(rows.indices[p])
                value = float(rows.values[p]) if rows.values.size else 1.0
                gain = value * float(weights[k * width + a] - weights[k * width + b])
                gains.append((features.name(k) + where, gain))
        if t == 0 or (a == b and best[t - 1] == other[t - 1]):
            continue
        step = [int(y[t]) * width + int(y[t - 1]) for y in (best, other)]
        names = [f"{labels[y[t - 1]]} {labels[y[t]]}" for y in (best, other)]
        shown = f"transition {names[0]} (not {names[1]}){where}"
        gains.append((shown, float(weights[pairs + step[0]] - weights[pairs + step[1]])))
        if chain.edge_attributes:
            for p in range(rows.edge_indptr[t], rows.edge_indptr[t + 1]):
                k = int(rows.edge_indices[p])
                base = pairs + (1 + k) * width * width
                value = float(rows.edge_values[p]) if rows.edge_values.size else 1.0
                gain = value * float(weights[base + step[0]] - weights[base + step[1]])
                gains.append((f"{features.edge_name(k)} on {names[0]}{where}", gain))
    if chain.order == 2:
        gains += _triples(chain, weights, labels, best, other, token, triples)
    return gains


def _triples(
    chain: Any, weights: Any, labels: Sequence[str], best, other, token: int, base: int
) -> list[tuple[str, float]]:
    gains, width = [], chain.width
    for t in range(2, best.size):
        if (best[t - 2 : t + 1] == other[t - 2 : t + 1]).all():
            continue
        at = [((int(y[t]) * width + int(y[t - 1])) * width + int(y[t - 2])) for y in (best, other)]
        names = " ".join(labels[y] for y in best[t - 2 : t + 1])
        where = "" if t == token else f" at token {t - token:+d}"
        gain = float(weights[base + at[0]] - weights[base + at[1]])
        gains.append((f"labels {names}{where}", gain))
    return gains


def span_probabilities(
    decoder: Decoder, labels: Sequence[str], scheme: str, data: SequenceDataset, tags: np.ndarray
) -> list[SpanConfidence]:
    """Probability of every span of a tagging, under the whole model.

    The outputs that have the span are those with its labels there and, in schemes where a span
    ends by what follows, none that goes on with it. Both sums are exact.
    """
    rows, chain = data.rows, decoder.structure
    found = spans(Column(labels, tags), rows.starts, scheme, repair=True)
    if len(found.first) == 0:
        return []
    owner = np.searchsorted(rows.starts, found.first, side="right") - 1
    totals = decoder.log_totals(rows)
    copies = data.take(owner).rows
    width = chain.width
    tokens = np.zeros((copies.labels.size, width), np.float32)
    goes_on = {name: c for c, name in enumerate(labels)}
    for k, (first, after) in enumerate(zip(found.first, found.after, strict=True)):
        shift = copies.starts[k] - rows.starts[owner[k]]
        for token in range(first, after):
            tokens[token + shift] = -np.inf
            tokens[token + shift, tags[token]] = 0.0
        inside = goes_on.get(f"I-{found.kinds[k]}")
        if after < rows.starts[owner[k] + 1] and inside is not None and scheme in ("bio", "iob1"):
            tokens[after + shift, inside] = -np.inf
    limits = chain.limits
    if limits.step.size == 0:
        zeros = np.zeros(width, np.float32)
        limits = Limits(zeros, zeros, np.zeros(width * width, np.float32), limits.tokens)
    held = chain._replace(limits=limits._replace(tokens=tokens.ravel()))
    inside_totals = Decoder(held, decoder.weights, decoder.temperature, decoder.n_jobs).log_totals(
        copies
    )
    sure = np.exp(np.minimum(0.0, inside_totals - totals[owner]))
    return [
        SpanConfidence(int(first), int(after), found.kinds[k], float(sure[k]))
        for k, (first, after) in enumerate(zip(found.first, found.after, strict=True))
    ]
