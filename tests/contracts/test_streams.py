"""Random small streams: what is lazy, replayed or permuted equals what is done by hand."""

from __future__ import annotations

from unittest import mock

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from learner_catalogue import RULES, hole, natural_loss
from reference import brute_votes, replay, sparse_problem, stepwise

from hopefear.averaging.averaged import Averaged
from hopefear.averaging.last import Last
from hopefear.averaging.voted import Voted
from hopefear.core.learner import Learner
from hopefear.losses.exponential import Exponential
from hopefear.losses.hinge import Hinge
from hopefear.losses.logistic import Logistic
from hopefear.structures.classes import Binary, Multiclass
from hopefear.training import online
from hopefear.training.decoders.classes import ClassDecoder
from hopefear.training.online import OnlineTrainer
from hopefear_papers.theorems.observed import Observed

# Signs and places are drawn by hypothesis, sizes by a generator: no exact ties but those of zeros.
LOSSES = [Hinge(asked=0.7), Logistic(), Exponential(limit=1)]


@st.composite
def streams(draw):
    """(structure, learner parts, problem, order): few features, so that weights live and die."""
    classes, d = draw(st.integers(2, 4)), draw(st.integers(1, 5))
    n = draw(st.integers(1, 6))
    cells = draw(st.lists(st.sampled_from([-1, 0, 0, 1]), min_size=n * d, max_size=n * d))
    sizes = np.random.default_rng(draw(st.integers(0, 99))).uniform(0.2, 1, (n, d))
    labels = draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n))
    weights = draw(st.lists(st.sampled_from([1.0, 1.0, 0.0, 2.0]), min_size=n, max_size=n))
    order = np.array(draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=40)))
    bias = draw(st.sampled_from([0.0, 0.6180339887]))
    structure = Binary(d, bias) if classes == 2 else Multiclass(d, classes, bias)
    rule = RULES[draw(st.sampled_from(sorted(RULES)))]
    on = draw(st.sampled_from(["all", "mistakes"]))
    loss = draw(st.sampled_from(LOSSES))
    if hole(loss, rule, on) or type(rule).__name__ in ("PassiveAggressive", "AROW"):
        loss = natural_loss(rule)
    plain = type(rule).__name__ in ("PassiveAggressive", "AROW", "ConfidenceWeighted")
    problem = sparse_problem(np.reshape(cells, (n, d)) * sizes, labels, None if plain else weights)
    return structure, (loss, rule, on), problem, order


def trainer_of(structure, parts, averaging):
    loss, rule, on = parts
    return OnlineTrainer(structure, Learner(loss, rule, averaging, on), np.float64)


def rounding_decides(structure, problem, order, copies):
    """Whether two rivals come so close that the last digit says which of them is feared."""
    if structure.n_parts() == 1:
        return False
    X = np.hstack([problem.X, np.full((len(problem.X), 1), structure.bias)])
    X = X if structure.bias else problem.X
    before = copies[:-1].reshape(order.size - 1, X.shape[1], structure.n_parts())
    scores = np.einsum("td,tdc->tc", X[order[1:]], before)
    scores[np.arange(len(scores)), problem.rows.labels[order[1:]]] = -np.inf
    first, second = np.sort(scores, axis=1)[:, :-3:-1].T
    return bool(((first - second > 0.0) & (first - second < 1e-9)).any())


@settings(max_examples=150, deadline=None)
@given(stream=streams(), window=st.integers(1, 9))
def test_lazy_equals_dense_and_averages_equal_the_mean_of_copies(stream, window):
    structure, parts, problem, order = stream
    with mock.patch.object(online, "_WINDOW", window):
        trainer = trainer_of(structure, parts, Observed(Averaged()))
    copies = stepwise(trainer, problem.rows, order)
    assume(not rounding_decides(structure, problem, order, copies))
    trace = replay(structure, trainer.learner, problem, order)
    np.testing.assert_allclose(copies, trace.snapshots, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(trainer.average(), copies.mean(axis=0), rtol=1e-9, atol=1e-9)
    never = ~copies.any(axis=0)
    assert not trainer.average()[never].any()
    assert (trainer.mistakes, trainer.updates, trainer.ticks) == trace[3:6]
    trainer.settle()
    size = 0.0 if trace.ticks == 0 else np.abs(trace.ended).sum()
    np.testing.assert_allclose(trainer.memory.absolute[0], size, rtol=1e-9, atol=1e-9)


@settings(max_examples=100, deadline=None)
@given(stream=streams())
def test_votes_equal_those_of_stored_copies(stream):
    structure, parts, problem, order = stream
    copies = stepwise(trainer_of(structure, parts, Last()), problem.rows, order)
    trainer = trainer_of(structure, parts, Voted())
    trainer.learn(problem.rows, order)
    # Rows no training row equals: there a score can be zero by cancellation, up to rounding.
    X = np.random.default_rng(1).normal(size=(4, structure.n_features))
    X[3, 1:] = 0.0
    wanted = np.array([brute_votes(structure, copies, x) for x in X])
    labels, shares = ClassDecoder(structure, trainer.predictor()).decide(
        sparse_problem(X, [0] * 4).rows
    )
    shown = wanted[:, 1:] - wanted[:, :1] if structure.n_parts() == 1 else wanted
    np.testing.assert_array_equal(np.rint(shares * order.size), shown)
    np.testing.assert_array_equal(labels, wanted.argmax(axis=1))


@settings(max_examples=60, deadline=None)
@given(stream=streams(), seed=st.integers(0, 9))
def test_permuted_features_have_permuted_weights(stream, seed):
    structure, parts, problem, order = stream
    d = structure.n_features
    shuffle = np.random.default_rng(seed).permutation(d)
    weights = problem.rows.weights
    other = sparse_problem(problem.X[:, shuffle], problem.rows.labels, weights)
    wanted, found = (
        stepwise(trainer_of(structure, parts, Last()), p.rows, order) for p in (problem, other)
    )
    columns = np.append(shuffle, d) if structure.bias else shuffle
    shape = (order.size, columns.size, -1)
    expected = wanted.reshape(shape)[:, columns]
    np.testing.assert_allclose(found.reshape(shape), expected, rtol=1e-9, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(stream=streams())
def test_features_that_are_never_seen_stay_at_zero(stream):
    structure, parts, problem, order = stream
    d = structure.n_features
    trainer = trainer_of(structure._replace(n_features=d + 3), parts, Averaged())
    copies = stepwise(trainer, problem.rows, order)
    columns = d + 3 + (structure.bias != 0)
    assert not copies.reshape(order.size, columns, -1)[:, d : d + 3].any()
    assert not trainer.average().reshape(columns, -1)[d : d + 3].any()
