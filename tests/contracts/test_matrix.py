"""Every loss, rule, averaging, structure and occasion against dense oracles; holes say why."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from learner_catalogue import (
    AVERAGINGS,
    LOSSES,
    RULES,
    STRUCTURES,
    hole,
)
from reference import brute_votes, close, exact_weights, random_problem, replay, stepwise

from hopefear.averaging.averaged import Averaged
from hopefear.averaging.last import Last
from hopefear.averaging.voted import Voted
from hopefear.core.learner import Learner, describe
from hopefear.errors import CombinationError
from hopefear.structures.classes import Multiclass
from hopefear.training.decoders.classes import ClassDecoder
from hopefear.training.online import OnlineTrainer

ON = ("all", "mistakes")
GRID = list(itertools.product(LOSSES, RULES, STRUCTURES, ON))


def names(grid):
    return [f"{describe(a)}-{b}-{describe(c)}-{d}" for a, b, c, d in grid]


@functools.cache
def problem(structure):
    return random_problem(3, n=45, d=12, classes=structure.n_labels)


@functools.cache
def unseen(structure):
    return random_problem(4, n=6, d=12, classes=structure.n_labels)


def trained(structure, learner, times=1):
    trainer = OnlineTrainer(structure, learner, np.float64)
    trainer.learn(problem(structure).rows, np.tile(np.arange(45), times))
    return trainer


@pytest.mark.parametrize(("loss", "name", "structure", "on"), GRID, ids=names(GRID))
def test_a_combination_equals_its_oracle_or_says_why_not(loss, name, structure, on):
    rule = RULES[name]
    reason = hole(loss, rule, on)
    if reason is not None:
        with pytest.raises(CombinationError, match=reason):
            Learner(loss, rule, Last(), on)
        return
    trace = replay(structure, Learner(loss, rule, Last(), on), problem(structure), np.arange(45))
    last, average, sparse, voted, observed = (
        trained(structure, Learner(loss, rule, averaging, on)) for averaging in AVERAGINGS
    )
    weights = exact_weights(last)
    assert np.isfinite(weights).all()
    slow = OnlineTrainer(structure, last.learner, np.float64)
    copies = stepwise(slow, problem(structure).rows, np.arange(45))
    close(copies, trace.snapshots, 1e-9)
    np.testing.assert_array_equal(copies[-1], weights)
    for other in (average, sparse, voted, observed):  # what is kept changes nothing that is learnt
        np.testing.assert_array_equal(exact_weights(other), weights)
        assert other.tally.counts.tolist() == last.tally.counts.tolist()
    assert (last.mistakes, last.updates, last.ticks) == trace[3:6]
    assert last.loss == pytest.approx(trace.loss, rel=1e-9, abs=1e-9)
    assert last.support()[0] == np.count_nonzero(weights)
    assert last.support()[1] == pytest.approx(np.abs(weights).sum())

    close(average.average(), trace.average, 1e-9)
    close(observed.average(), trace.average, 1e-9)
    kept = np.where(weights.astype(np.float32) != 0, trace.average, 0.0)
    np.testing.assert_allclose(sparse.predictor().weights, kept, rtol=1e-6, atol=1e-6)
    check_observation(observed, trace)

    test = unseen(structure)
    wanted = np.array([brute_votes(structure, copies, x) for x in test.X])
    labels, shares = ClassDecoder(structure, voted.predictor()).decide(test.rows)
    shown = wanted[:, 1:] - wanted[:, :1] if structure.n_parts() == 1 else wanted
    np.testing.assert_array_equal(np.rint(shares * 45), shown)
    np.testing.assert_array_equal(labels, wanted.argmax(axis=1))


def check_observation(trainer, trace):
    """Plain sums over the predictors that ticks ended, and the longest direction."""
    trainer.settle()
    seen = trainer.memory
    close(seen.account.total, trace.ended.sum(axis=0), 1e-9)
    size = np.abs(trace.ended).sum()
    assert seen.absolute[0] == pytest.approx(size, rel=1e-9, abs=1e-9)
    assert np.sqrt(seen.squares[1]) == pytest.approx(trace.longest, rel=1e-9)


@pytest.mark.parametrize("name", RULES)
def test_training_twice_gives_the_same_bits(name):
    structure, loss = STRUCTURES[1], LOSSES[1]
    first, second = (
        trained(structure, Learner(loss, RULES[name], Averaged()), times=2).arrays()
        for _ in range(2)
    )
    assert first.keys() == second.keys()
    for key in first:
        np.testing.assert_array_equal(first[key], second[key])


@pytest.mark.parametrize("on", ["never", "", "mistake"])
def test_an_unknown_occasion_is_refused(on):
    with pytest.raises(CombinationError, match="'all' or 'mistakes'"):
        Learner(LOSSES[1], RULES["sgd"], Last(), on)


def test_the_vote_of_two_classes_written_as_several():
    """Two classes in two parts are not the binary structure with its single part."""
    structure = Multiclass(12, 2)
    data = random_problem(22)
    trainer = OnlineTrainer(structure, Learner(LOSSES[1], RULES["rda-l1"], Voted()), np.float64)
    copies = stepwise(trainer, data.rows, np.arange(60))
    wanted = np.array([brute_votes(structure, copies, x) for x in data.X])
    _, shares = ClassDecoder(structure, trainer.predictor()).decide(data.rows)
    np.testing.assert_array_equal(np.rint(shares * 60), wanted)


@pytest.mark.parametrize("structure", STRUCTURES, ids=["binary", "multiclass"])
def test_probabilities_of_classes_are_a_softmax_of_their_scores(structure):
    trainer = trained(structure, Learner(LOSSES[3], RULES["sgd"], Last()))
    decoder = ClassDecoder(structure, trainer.predictor(), temperature=2.0)
    rows = unseen(structure).rows
    labels, scores = decoder.decide(rows)
    points = np.hstack([-scores / 2, scores / 2]) if scores.shape[1] == 1 else scores
    wanted = np.exp(points / 2.0) / np.exp(points / 2.0).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(decoder.probabilities(rows), wanted, rtol=1e-12)
    np.testing.assert_array_equal(labels, wanted.argmax(axis=1))
    logs = np.log(wanted[np.arange(labels.size), rows.labels])
    np.testing.assert_allclose(decoder.log_likelihoods(rows), logs, rtol=1e-12)
    for k, best in enumerate(decoder.k_best(rows, 2)):
        np.testing.assert_array_equal(best.labels[:, 0], np.argsort(-wanted[k], kind="stable")[:2])
        np.testing.assert_allclose(best.probabilities, np.sort(wanted[k])[::-1][:2])
        assert best.shares.sum() == pytest.approx(1.0)
