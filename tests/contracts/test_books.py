"""Bookkeeping that must not show: windows, rebased clocks, pieces and interruptions."""

from __future__ import annotations

import numpy as np
import pytest
from learner_catalogue import AVERAGINGS, RULES, STRUCTURES, natural_loss
from reference import close, exact_weights, random_problem, replay, stepwise

from hopefear.averaging import averaged
from hopefear.averaging.averaged import Averaged
from hopefear.averaging.last import Last
from hopefear.averaging.voted import Voted
from hopefear.core.learner import Learner, describe
from hopefear.errors import HopefearError
from hopefear.losses.logistic import Logistic
from hopefear.rules.fobos import FOBOS
from hopefear.rules.sgd import SGD
from hopefear.structures.classes import Binary
from hopefear.training import online
from hopefear.training.decoders.classes import ClassDecoder
from hopefear.training.online import OnlineTrainer
from hopefear_papers.theorems import observed
from hopefear_papers.theorems.observed import Observed

ORDER = np.random.default_rng(0).permutation(np.tile(np.arange(30), 3))
FORGETFUL = {
    "sgd": SGD(rate=0.5, l2=1.5, l1=0.0217),
    "sgd-sqrt": SGD(rate=1.2, power=0.2, l2=0.8, l1=0.0217),
    "fobos": FOBOS(rate=1.0, power=0.2, l2=9, l1=0.00217),
}


def same(first, second):
    assert first.keys() == second.keys()
    for key in first:
        np.testing.assert_array_equal(first[key], second[key], err_msg=key)


def problem(structure):
    return random_problem(12, n=30, classes=structure.n_labels)


def trainer_of(rule, averaging, structure=STRUCTURES[1], update_on="all"):
    learner = Learner(natural_loss(rule), rule, averaging, update_on)
    return OnlineTrainer(structure, learner, np.float64)


@pytest.mark.parametrize("window", [1, 7])
@pytest.mark.parametrize("on", ["all", "mistakes"])
@pytest.mark.parametrize("name", RULES)
def test_settling_the_books_changes_nothing(name, on, window, monkeypatch):
    structure = STRUCTURES[0]
    wanted = trainer_of(RULES[name], Observed(Averaged()), structure, on)
    wanted.learn(problem(structure).rows, ORDER)
    monkeypatch.setattr(online, "_WINDOW", window)
    found = trainer_of(RULES[name], Observed(Averaged()), structure, on)
    settled = []
    for module in (averaged, observed):
        monkeypatch.setattr(module, "reset_window", lambda account: settled.append(forget(account)))
    found.learn(problem(structure).rows, ORDER)
    assert len(settled) == 2 * (found.ticks // window)
    np.testing.assert_array_equal(exact_weights(found), exact_weights(wanted))
    close(found.average(), wanted.average(), 1e-12)
    for trainer in (found, wanted):
        trainer.settle()
    close(found.memory.account.total, wanted.memory.account.total, 1e-12)
    assert found.memory.absolute[0] == pytest.approx(wanted.memory.absolute[0], rel=1e-12)


def forget(account):
    """Also spoils the window: what was settled must never be read again."""
    account.closed[0] = 0
    account.drop[:] = np.nan
    account.a[1:] = np.nan
    account.b[1:] = np.nan


@pytest.mark.parametrize("structure", STRUCTURES, ids=["binary", "multiclass"])
@pytest.mark.parametrize("name", FORGETFUL)
def test_rebasing_a_worn_clock_changes_nothing(name, structure, monkeypatch):
    rule = FORGETFUL[name]
    trainer = trainer_of(rule, Observed(Averaged()), structure)
    rebased = []
    settle = online.settle
    monkeypatch.setattr(
        online,
        "settle",
        lambda r, *rest: (rebased.append(r.needs_rescaling(rest[1])), settle(r, *rest)),
    )
    trainer.learn(problem(structure).rows, ORDER)
    assert sum(rebased) >= 2
    trace = replay(structure, trainer.learner, problem(structure), ORDER)
    close(exact_weights(trainer), trace.snapshots[-1], 1e-9)


@pytest.mark.parametrize("structure", STRUCTURES, ids=["binary", "multiclass"])
@pytest.mark.parametrize("name", FORGETFUL)
def test_averages_survive_a_worn_clock(name, structure):
    trainer = trainer_of(FORGETFUL[name], Observed(Averaged()), structure)
    trainer.learn(problem(structure).rows, ORDER)
    trace = replay(structure, trainer.learner, problem(structure), ORDER)
    np.testing.assert_allclose(trainer.average(), trace.average, rtol=1e-6, atol=1e-8)
    trainer.settle()
    total = trace.ended.sum(axis=0)
    np.testing.assert_allclose(trainer.memory.account.total, total, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", FORGETFUL)
def test_votes_cannot_be_replayed_across_a_rebased_clock(name):
    trainer = trainer_of(FORGETFUL[name], Voted())
    with pytest.raises(HopefearError, match=r"cannot be replayed; use .* averaging=averaged"):
        trainer.learn(problem(STRUCTURES[1]).rows, ORDER)


@pytest.mark.parametrize("averaging", AVERAGINGS, ids=describe)
@pytest.mark.parametrize("name", RULES)
def test_pieces_equal_the_whole_bit_for_bit(name, averaging, monkeypatch):
    monkeypatch.setattr(online, "_WINDOW", 8)  # pieces end inside and at the end of windows
    rows = problem(STRUCTURES[1]).rows
    whole, pieces = (trainer_of(RULES[name], averaging) for _ in range(2))
    outcome = np.zeros((2, 90), np.uint8)
    whole.learn(rows, ORDER, outcome[0])
    for start, stop in ((0, 8), (8, 8), (8, 9), (9, 24), (24, 83), (83, 90)):
        pieces.learn(rows, ORDER[start:stop], outcome[1, start:stop])
    same(whole.arrays(), pieces.arrays())
    np.testing.assert_array_equal(*outcome)
    assert np.count_nonzero(outcome[0] & 1) == whole.mistakes
    assert np.count_nonzero(outcome[0] & 2) == whole.updates


@pytest.mark.parametrize("name", FORGETFUL)
def test_pieces_equal_the_whole_when_clocks_wear_out(name):
    rows = problem(STRUCTURES[1]).rows
    whole, pieces = (trainer_of(FORGETFUL[name], Averaged()) for _ in range(2))
    whole.learn(rows, ORDER)
    stepwise(pieces, rows, ORDER)
    same(whole.arrays(), pieces.arrays())


@pytest.mark.parametrize("averaging", AVERAGINGS, ids=describe)
@pytest.mark.parametrize("name", RULES)
def test_a_restored_trainer_ends_where_an_uninterrupted_one_does(name, averaging, monkeypatch):
    monkeypatch.setattr(online, "_WINDOW", 50)
    structure = STRUCTURES[1]
    rows = problem(structure).rows
    through = trainer_of(RULES[name], averaging)
    through.learn(rows, ORDER)
    first = trainer_of(RULES[name], averaging)
    first.learn(rows, ORDER[:37])
    saved = {key: array.copy() for key, array in first.arrays().items()}
    first.learn(rows, ORDER[37:])  # whatever the first one does later must not leak
    second = trainer_of(RULES[name], averaging)
    second.restore(saved)
    second.learn(rows, ORDER[37:])
    same(through.arrays(), second.arrays())


def test_an_average_is_not_spoilt_by_reading_it():
    trainer, other = (trainer_of(RULES["rda-l1"], Averaged()) for _ in range(2))
    rows = problem(STRUCTURES[1]).rows
    for start in range(0, 90, 10):
        trainer.learn(rows, ORDER[start : start + 10])
        trainer.average()
        trainer.predictor()
        other.learn(rows, ORDER[start : start + 10])
    same(trainer.arrays(), other.arrays())


def test_before_the_first_example_everything_is_zero():
    structure = Binary(12)
    for averaging in AVERAGINGS:
        trainer = OnlineTrainer(structure, Learner(Logistic(), RULES["rda-l1"], averaging))
        labels, scores = ClassDecoder(structure, trainer.predictor()).decide(
            problem(structure).rows
        )
        assert not labels.any()
        assert not scores.any()
        assert trainer.support() == (0, 0.0)


def test_float32_weights_are_read_as_they_are():
    structure = Binary(12)
    rows = random_problem(12, n=30, dtype=np.float32).rows
    trainer = OnlineTrainer(structure, Learner(Logistic(), RULES["sgd"], Last()))
    trainer.learn(rows, ORDER)
    np.testing.assert_array_equal(trainer.weights(), trainer.state.m)
    assert trainer.weights().dtype == np.float32
