"""Segments against the list of all segmentations: searches, sums, answers, limits."""

from __future__ import annotations

import numpy as np
import pytest

from hopefear.averaging.averaged import Averaged
from hopefear.averaging.last import Last
from hopefear.core.interfaces import n_weights
from hopefear.core.learner import Learner
from hopefear.core.workspace import DenseWeights, Example
from hopefear.costs.hamming import Hamming
from hopefear.errors import CombinationError, HopefearError
from hopefear.losses.log import Log
from hopefear.losses.swvp import SWVP
from hopefear.rules.sgd import SGD
from hopefear.structures.segments.segments import Segments
from hopefear.testing import World, check_structure, outputs_of, tiny_rows
from hopefear.training.decoders.segments import SegmentDecoder
from hopefear.training.online import OnlineTrainer
from hopefear.training.predictors import LinearPredictor

pytestmark = pytest.mark.interpreted

SHAPES = {
    "outside and one kind": Segments.new(4, [0, 1], [-1, 2], 3),
    "codes in any order": Segments.new(4, [1, 0, 4], [3, -1, 2], 2),
    "single tokens": Segments.new(3, [0, 1], [-1, -1], 1),
    "one label, longer than any sequence": Segments.new(3, [0], [1], 6),
}


@pytest.mark.parametrize("unit", [False, True], ids=["values", "unit"])
@pytest.mark.parametrize("name", SHAPES)
def test_every_shape(name, unit):
    structure = SHAPES[name]
    rows = tiny_rows(structure, seed=7)
    check_structure(structure, rows._replace(values=np.empty(0)) if unit else rows, seed=2)


def test_limits_of_tokens():
    structure = SHAPES["outside and one kind"]
    rows, rng = tiny_rows(structure, seed=3), np.random.default_rng(3)
    limits = np.where(rng.random((rows.labels.size, structure.labels)) < 0.3, -np.inf, 0.0)
    limits[np.arange(rows.labels.size), rows.labels] = 0.0
    check_structure(structure._replace(limits=limits.astype(np.float32).ravel()), rows)


def test_mixtures_of_segmentations_are_refused():
    structure = SHAPES["single tokens"]
    with pytest.raises(CombinationError, match="a mixture of two segmentations is none"):
        OnlineTrainer(structure, Learner(SWVP(), SGD(), Last(), "mistakes"))


def test_single_precision_stays_near():
    structure = SHAPES["outside and one kind"]
    rows, order = tiny_rows(structure, seed=5), np.tile(np.arange(5), 3)
    learner = Learner(Log(), SGD(rate=0.3, l2=0.05), Averaged())
    narrow, wide = (OnlineTrainer(structure, learner, dtype) for dtype in (np.float32, np.float64))
    for trainer in (narrow, wide):
        trainer.learn(rows, order)
    np.testing.assert_allclose(narrow.average(), wide.average(), atol=2e-5)


@pytest.mark.parametrize("weight", [np.inf, np.nan])
def test_scores_that_are_no_numbers_are_seen(weight):
    structure = SHAPES["outside and one kind"]
    rows = tiny_rows(structure)._replace(values=np.empty(0))
    work = structure.workspace(rows, Log(), np.float64)
    with np.errstate(all="ignore"):
        x, w = Example(rows, 3), np.full(n_weights(structure), weight)
        structure.score(x, DenseWeights(w), work.theta)
        assert not np.isfinite(structure.margin(x, work.theta, work.y, False))
        assert not np.isfinite(structure.kl_and_gradient(x, work.theta, None, 1.0, 1.0, work.mu)[0])


# --- answers ------------------------------------------------------------------------------------


def decoder_of(name, seed=1, temperature=1.0):
    structure = SHAPES[name]
    rows = tiny_rows(structure, seed)
    w = np.random.default_rng(seed).normal(size=n_weights(structure)).astype(np.float32)
    worlds = [
        World(outputs_of(structure, rows, i), w.astype(float)) for i in range(len(rows.weights))
    ]
    return SegmentDecoder(structure, LinearPredictor(w), temperature, n_jobs=2), rows, worlds


@pytest.mark.parametrize("name", SHAPES)
def test_answers_are_those_of_enumeration(name):
    decoder, rows, worlds = decoder_of(name, temperature=1.5)
    codes, scores = decoder.predict(rows), decoder.scores(rows)
    logs, lists = decoder.log_likelihoods(rows), decoder.k_best(rows, 4)
    probabilities = decoder.probabilities(rows)
    for i, world in enumerate(worlds):
        first, last = rows.starts[i : i + 2]
        best, ys = world.ranked()[:4], world.outputs.ys
        assert tuple(codes[first:last]) == ys[best[0]]
        assert scores[i] == pytest.approx(world.scores[best[0]], rel=1e-5)
        shares = np.exp(world.scores / 1.5 - np.logaddexp.reduce(world.scores / 1.5))
        assert logs[i] == pytest.approx(np.log(shares[world.gold]), rel=1e-4)
        assert [tuple(y) for y in lists[i].labels] == [ys[k] for k in best]
        np.testing.assert_allclose(lists[i].probabilities, shares[best], rtol=1e-4)
        wanted = np.zeros((last - first, decoder.structure.labels))
        for y, share in zip(ys, shares, strict=True):
            wanted[np.arange(last - first), y] += share
        np.testing.assert_allclose(probabilities[first:last], wanted, rtol=1e-4, atol=1e-7)


def test_probabilities_of_segments():
    """A segment is there with exactly its tokens: those that go on are others."""
    decoder, rows, worlds = decoder_of("outside and one kind")
    start, end = (np.repeat(rows.starts[:-1], 2), np.repeat(rows.starts[:-1] + 1, 2))
    end[1::2] = np.minimum(end[1::2] + 1, rows.starts[1:])
    found = decoder.segment_probabilities(rows, start, end, np.ones(start.size, int))
    for k, share in enumerate(found):
        world = worlds[k // 2]
        shares = np.exp(world.scores - np.logaddexp.reduce(world.scores))
        size = end[k] - start[k]
        inside = [
            (*y, 0)[:size] == (1, *[2] * (size - 1)) and (*y, 0)[size] != 2
            for y in world.outputs.ys
        ]
        assert share == pytest.approx(shares[inside].sum(), rel=1e-4)


def test_sequences_without_any_output_and_weights_without_sense_are_refused():
    decoder, rows, _ = decoder_of("single tokens")
    limits = np.zeros((rows.labels.size, 2), np.float32)
    limits[0] = -np.inf
    limited = decoder.structure._replace(limits=limits.ravel())
    with pytest.raises(HopefearError, match="sequence 1 has no segments"):
        SegmentDecoder(limited, decoder.predictor).predict(rows)
    short = SegmentDecoder(limited._replace(limits=np.zeros(2, np.float32)), decoder.predictor)
    with pytest.raises(HopefearError, match="allowed for 1 tokens, but there are 12"):
        short.predict(rows)
    bad = LinearPredictor(np.full(n_weights(limited), np.nan, np.float32))
    with pytest.raises(HopefearError, match="weights are unusable"):
        SegmentDecoder(decoder.structure, bad).predict(rows)


def test_costs_are_those_of_codes():
    structure = SHAPES["outside and one kind"]
    rows = tiny_rows(structure)
    x, cost = Example(rows, 2), Hamming(0.5)
    gold = rows.labels[rows.starts[2] : rows.starts[3]].astype(np.int32)
    assert structure.output_cost(x, cost, gold) == 0.0
    assert structure.output_cost(x, cost, (gold + 1) % 3) == 0.5 * gold.size
