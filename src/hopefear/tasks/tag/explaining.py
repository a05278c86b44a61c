"""Why a tagger said what it said, and how sure it is of spans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.workspace import Example
from hopefear.data.schemes import spans
from hopefear.data.sequences import Column, SequenceDataset
from hopefear.errors import HopefearError
from hopefear.losses.perceptron import Perceptron
from hopefear.structures.chain.theta import limits_of_tokens
from hopefear.tasks.base import Explanation, explanation
from hopefear.training.decoders.chains import ChainDecoder
from hopefear.training.decoders.segments import SegmentDecoder


class SpanConfidence(NamedTuple):
    """Probability that a span is there, with exactly these bounds and this kind."""

    first: int  # token numbers in the dataset
    after: int
    kind: str
    probability: float


def explain(
    decoder: ChainDecoder,
    features: Any,
    labels: Sequence[str],
    data: SequenceDataset,
    i: int,
    t: int,
) -> Explanation:
    """Why token ``t`` of sequence ``i`` got its label."""
    if not 0 <= i < len(data) or not 0 <= t < data.rows.starts[i + 1] - data.rows.starts[i]:
        raise HopefearError(f"there is no token {t + 1} in a sequence {i + 1}")
    one, predictor = data.take([i]), decoder.predictor
    chain = _with_tokens_of(decoder.structure, data, np.array([i]))
    best = ChainDecoder(chain, predictor).predict(one.rows)
    excluded = np.zeros((one.n_tokens, chain.width), np.float32)
    excluded[t, best[t]] = -np.inf
    rest = chain._replace(limits=limits_of_tokens(chain.limits, chain.width, excluded))
    runner_up = ChainDecoder(rest, predictor)
    try:
        other = runner_up.predict(one.rows)
    except HopefearError:
        other = best
    if runner_up.unlimited or other[t] == best[t]:
        raise HopefearError("no other label is allowed for this token, so nothing was beaten")
    gains = _contributions(chain, predictor.weights, features, labels, one.rows, best, other, t)
    return explanation(labels[best[t]], labels[other[t]], gains)


def against(
    decoder: ChainDecoder,
    features: Any,
    labels: Sequence[str],
    one: SequenceDataset,
    best: np.ndarray,
    other: np.ndarray,
) -> Explanation:
    """Why one sentence got the labels ``best`` and not ``other`` in the first stretch that differs.

    The rest is as in ``best``, so that one error is told of and not all at once.
    """
    differ = best != other
    t = int(np.argmax(differ))
    after = t + int(np.argmin(np.append(differ[t:], False)))
    mixed = np.concatenate([best[:t], other[t:after], best[after:]])
    chain, weights = decoder.structure, decoder.predictor.weights
    if isinstance(decoder, SegmentDecoder):
        gains = segment_gains(chain, weights, one, best, other)
        return explanation(labels[best[t]], labels[other[t]], gains)
    gains = _contributions(chain, weights, features, labels, one.rows, best, mixed, t)
    return explanation(labels[best[t]], labels[other[t]], gains)


def explain_segments(decoder: SegmentDecoder, data: SequenceDataset, i: int, t: int) -> Explanation:
    """Why token ``t`` of sequence ``i`` got its label, of a tagger by segments."""
    if not 0 <= i < len(data) or not 0 <= t < data.rows.starts[i + 1] - data.rows.starts[i]:
        raise HopefearError(f"there is no token {t + 1} in a sequence {i + 1}")
    sequence, structure, labels = data.take([i]), decoder.structure, data.labels
    limits = np.zeros((sequence.n_tokens, structure.labels), np.float32)
    if structure.limits.size:
        start = data.rows.starts[i]
        table = structure.limits.reshape(-1, structure.labels)
        limits[:] = table[start : start + sequence.n_tokens]
    outputs = []
    for _ in range(2):
        limited = structure._replace(limits=limits.ravel())
        try:
            outputs.append(SegmentDecoder(limited, decoder.predictor).predict(sequence.rows))
        except HopefearError:
            raise HopefearError(
                "no other label is allowed for this token, so nothing was beaten"
            ) from None
        limits[t, outputs[0][t]] = -np.inf
    best, runner_up = outputs
    gains = segment_gains(structure, decoder.predictor.weights, sequence, best, runner_up)
    return explanation(labels[best[t]], labels[runner_up[t]], gains)


def segment_gains(
    structure: Any,
    weights: np.ndarray,
    sequence: SequenceDataset,
    best: np.ndarray,
    runner_up: np.ndarray,
) -> list[tuple[str, float]]:
    """What each feature and transition adds to the score of an output over that of another."""
    rows = sequence.rows._replace(labels=best)
    work, differences = structure.workspace(rows, Perceptron(), np.float64), _Differences()
    x = Example(rows, 0)
    structure.add_difference(x, runner_up, 1.0, work.mu, True)
    structure.scatter(x, work.mu, differences)
    gains: dict[str, float] = {}
    for j, g in differences.entries.items():
        row, lane = divmod(j, structure.width)
        if row < structure.attributes:
            name = sequence.features.name(row)
        else:
            before, label = (sequence.labels[c] for c in (lane, row - structure.attributes))
            name = f"transition {before} {label}"
        gains[name] = gains.get(name, 0.0) + g * float(weights[j])
    return list(gains.items())


class _Differences:
    """Entries of a direction by coordinate."""

    def __init__(self) -> None:
        self.entries: dict[int, float] = {}

    def additive(self) -> bool:
        return True

    def add_entry(self, j: Any, g: Any) -> None:
        self.entries[int(j)] = self.entries.get(int(j), 0.0) + float(g)


def segment_probabilities(
    decoder: SegmentDecoder, labels: Sequence[str], data: SequenceDataset, tags: np.ndarray
) -> list[SpanConfidence]:
    """Probability of every span of a tagging by segments, which are its parts."""
    starts, ends, kinds = spans(Column(labels, tags), data.rows.starts, "bio", repair=True)
    number = {label: code for code, label in enumerate(labels)}
    codes = [number.get(f"B-{kind}" if kind else "B", 0) for kind in kinds.strings]
    first = np.array(codes, int)[kinds.ids]
    shares = decoder.segment_probabilities(data.rows, starts, ends, first)
    columns = starts.tolist(), ends.tolist(), kinds.texts(), shares.tolist()
    return [SpanConfidence(*fields) for fields in zip(*columns, strict=True)]


def _with_tokens_of(chain: Any, data: SequenceDataset, which: np.ndarray) -> Any:
    """The chain for some of the sequences: limits of tokens follow them."""
    limits, starts = chain.limits, data.rows.starts
    if limits.tokens.size == 0:
        return chain
    table = limits.tokens.reshape(-1, chain.width)
    parts = [table[starts[i] : starts[i + 1]] for i in which]
    return chain._replace(limits=limits._replace(tokens=np.concatenate(parts).ravel()))


def _contributions(
    chain: Any,
    weights: Any,
    features: Any,
    labels: Sequence[str],
    rows: Any,
    best: np.ndarray,
    other: np.ndarray,
    token: int,
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
        pair = f"transition {names[0]} (not {names[1]}){where}"
        gains.append((pair, float(weights[pairs + step[0]] - weights[pairs + step[1]])))
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
    chain: Any,
    weights: Any,
    labels: Sequence[str],
    best: np.ndarray,
    other: np.ndarray,
    token: int,
    base: int,
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
    decoder: ChainDecoder,
    labels: Sequence[str],
    scheme: str,
    data: SequenceDataset,
    tags: np.ndarray,
) -> list[SpanConfidence]:
    """Probability of every span of a tagging, under the whole model.

    The outputs that have the span are those with its labels there and, in schemes where a span
    begins or ends by what stands beside it, nothing that goes on with it. Both sums are exact.
    """
    rows, chain = data.rows, decoder.structure
    table = spans(Column(labels, tags), rows.starts, scheme, repair=True)
    if len(table.first) == 0:
        return []
    number = {name: c for c, name in enumerate(labels)}
    owner = np.searchsorted(rows.starts, table.first, side="right") - 1
    # One copy of the sentence for each way to write a span down.
    ways = [
        (k, way)
        for k in range(len(table.first))
        for way in _ways(scheme, table.kinds[k], tags[table.first[k] : table.after[k]], number)
    ]
    owners = owner[[k for k, _ in ways]]
    copies = data.take(owners).rows
    tokens = np.zeros((copies.labels.size, chain.width), np.float32)
    for w, (k, (tags_inside, not_before, not_after)) in enumerate(ways):
        shift = copies.starts[w] - rows.starts[owner[k]]
        first, after = table.first[k] + shift, table.after[k] + shift
        tokens[first:after] = -np.inf
        tokens[np.arange(first, after), tags_inside] = 0.0
        if first > copies.starts[w]:
            tokens[first - 1, not_before] = -np.inf
        if after < copies.starts[w + 1]:
            tokens[after, not_after] = -np.inf
    limited = _with_tokens_of(chain, data, owners)
    limited = limited._replace(limits=limits_of_tokens(limited.limits, chain.width, tokens))
    inside = ChainDecoder(limited, decoder.predictor, decoder.temperature, decoder.n_jobs)
    with np.errstate(invalid="ignore"):  # nothing is allowed at all: no span is sure
        logs = inside.log_totals(copies) - decoder.log_totals(rows)[owners]
    share = np.nan_to_num(np.exp(np.minimum(0.0, logs)))
    shares = np.zeros(len(table.first))
    np.add.at(shares, [k for k, _ in ways], share)
    return [
        SpanConfidence(int(first), int(after), table.kinds[k], float(min(1.0, shares[k])))
        for k, (first, after) in enumerate(zip(table.first, table.after, strict=True))
    ]


def _ways(
    scheme: str, kind: str, tags: np.ndarray, number: Mapping[str, int]
) -> list[tuple[np.ndarray, list[int], list[int]]]:
    """Ways to write a span: (its labels, labels not allowed before it, labels not after it)."""
    inside, begin = number.get(f"I-{kind}"), number.get(f"B-{kind}")
    goes_on = [] if inside is None else [inside]
    if scheme == "bio":
        return [(tags, [], goes_on)]
    if scheme != "iob1":
        return [(tags, [], [])]
    ways = []
    if inside is not None:
        ways.append((np.full(tags.size, inside), [c for c in (inside, begin) if c is not None]))
    if begin is not None and (inside is not None or tags.size == 1):
        rest = [begin] + [inside] * (tags.size - 1)
        ways.append((np.array(rest, np.int64), []))
    return [(tags_inside, before, goes_on) for tags_inside, before in ways]
