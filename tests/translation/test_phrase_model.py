"""The discriminative phrase model: features, losses, sparsity, and adding it to a decoder."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hopefear.data.lists.candidates import CandidateLists
from hopefear.errors import HopefearError
from hopefear.metrics.lists import metric_named
from hopefear.training.decoders.lists import softmax
from hopefear.translation.phrase_model import (
    LOSSES,
    RULES,
    add_phrase_model,
    kept_weights,
    phrase_data,
    phrase_learner,
    phrase_passes,
    train_phrase_model,
)
from hopefear.translation.scoring import choice, scores
from hopefear.translation.task import start_weights
from hopefear.translation.weights import Weights
from hopefear_papers.dptm.plan import _generated

pytestmark = pytest.mark.interpreted

BLEU = metric_named("bleu", tokenize="none")
PAIRS = 60


@pytest.fixture(scope="module")
def lists() -> tuple[CandidateLists, CandidateLists, CandidateLists]:
    """Training, development and test lists in which some pairs are good and others bad."""
    rng = np.random.default_rng(3)
    good = rng.normal(size=PAIRS) * (rng.random(PAIRS) < 0.5)
    one, two, three = (_generated(rng, n, good, "lists") for n in (200, 100, 100))
    return one, two, three


def worth(lists: CandidateLists, weights: Weights) -> float:
    assert lists.counts is not None
    chosen = lists.starts[:-1] + choice(lists, weights)
    return float(BLEU.scores(lists.counts[chosen].sum(axis=0))["bleu"])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rule", ["vrda", "sgd"])
def test_every_loss_and_rule_finds_good_pairs(lists, loss, rule):
    train, _, test = lists
    # Directions of the risk are short: probabilities times differences of BLEU.
    rate = 10.0 if loss == "risk" else 0.5
    model = train_phrase_model(
        train, loss=loss, rule=rule, rate=rate, epochs=3, inverse_temperature=5.0
    )
    assert not model.layout
    assert not model.sparse
    base = start_weights(test)
    joint = replace(base, phrases=model.phrases)
    assert worth(test, joint) > worth(test, base) + 1.0


def test_strength_makes_models_sparse(lists):
    train = lists[0]
    for rule, strong in (("vrda", 1e-3), ("tg", 5e-3)):
        sizes = [
            train_phrase_model(train, rule=rule, rate=1.0, l1=l1, epochs=2, kept="support").nnz
            for l1 in (0.0, 0.1 * strong, strong)
        ]
        assert sizes[0] >= sizes[1] > sizes[2] > 0, (rule, sizes)


def test_average_on_the_support_is_the_average_where_last_weights_live(lists):
    data = phrase_data(lists[0])
    *_, (epoch, trainer) = phrase_passes(data, phrase_learner(l1=1e-3, rate=1.0), 2)
    mean, support, last = (kept_weights(trainer, kept) for kept in ("average", "support", "last"))
    assert epoch == 2
    assert 0 < np.count_nonzero(last) < np.count_nonzero(mean)
    assert np.array_equal(support, np.where(last != 0.0, mean, 0.0))


def test_one_step_follows_the_gradient_of_the_risk(lists):
    """d/dw of -sum P sBleu is sum P (-sBleu - loss) phi: the paper's U has another sign."""
    train = lists[0].take(np.array([0]))
    inverse_temperature = 2.0
    data = phrase_data(train, inverse_temperature=inverse_temperature)
    *_, (_, trainer) = phrase_passes(data, phrase_learner("risk", "sgd", rate=1.0), 1)
    w = trainer.weights()
    gain = -BLEU.costs(train.counts)

    def risk(values: np.ndarray) -> float:
        weights = Weights.of(data.features, values)
        points = scores(train, weights) + inverse_temperature * train.scores
        return float(softmax(points, train.starts) @ -gain)

    for j in np.flatnonzero(w)[:5]:
        nudge = np.zeros(len(w))
        nudge[j] = 1e-5
        slope = (risk(nudge) - risk(-nudge)) / 2e-5
        assert w[j] == pytest.approx(-slope, rel=1e-3, abs=1e-6)


def test_the_baseline_is_the_decoders_score_unless_weights_say_otherwise(lists):
    train = lists[0]
    own = phrase_data(train)
    given = phrase_data(train, start_weights(train))
    other = phrase_data(train, Weights(train.layout, [0.0, 0.0, 1.0]), inverse_temperature=3.0)
    assert np.allclose(own.rows.offsets, given.rows.offsets, atol=1e-4)
    raw = train.dense[:, 2].astype(float)
    top = np.repeat(np.maximum.reduceat(raw, train.starts[:-1]), np.diff(train.starts))
    assert np.allclose(other.rows.offsets, 3.0 * (raw - top), atol=1e-4)


def test_scaled_scores_give_weights_in_the_unit_of_the_baseline(lists):
    train = lists[0]
    events: list = []
    model = train_phrase_model(
        train, rate=5.0, inverse_temperature=10.0, epochs=1, on_event=[events.append]
    )
    points = train.scores.astype(float) + scores(train, model)
    chosen = train.starts[:-1] + np.array(
        [points[a:b].argmax() for a, b in zip(train.starts, train.starts[1:], strict=False)]
    )
    found = BLEU.scores(train.counts[chosen].sum(axis=0))["bleu"]
    assert found == pytest.approx(events[-1]["train"]["bleu"], abs=0.05)


def test_development_lists_choose_the_pass(lists):
    train, dev, _ = lists
    events: list = []
    model = train_phrase_model(
        train, rule="sgd", rate=30.0, epochs=5, dev=dev, on_event=[events.append]
    )
    top = max(range(5), key=lambda k: events[k]["dev"]["bleu"])
    assert f"epochs:{top + 1}|" in model.about["signature"]


@pytest.mark.parametrize("learner", ["mert", "kbmira"])
def test_an_added_model_is_tuned_with_the_rest_and_flattened(lists, learner):
    train, dev, test = lists
    model = train_phrase_model(train, rate=50.0, inverse_temperature=5.0, epochs=2)
    params = {"restarts": 1} if learner == "mert" else {"epochs": 20, "C": 0.01}
    found = add_phrase_model(dev, model, learner, params)
    assert found.layout == dev.layout
    assert set(found.phrases) == set(model.phrases)
    factor = found.about["weight of the phrase model"]
    name, value = next(iter(model.phrases.items()))
    assert found.phrases[name] == pytest.approx(factor * value)
    assert worth(test, found) > worth(test, start_weights(test)) + 1.0


def test_same_seed_same_model(lists):
    train = lists[0]
    one, two, other = (
        train_phrase_model(train, rule="sgd", rate=1.0, epochs=1, seed=seed) for seed in (1, 1, 2)
    )
    assert one == two
    assert one.phrases != other.phrases


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"loss": "ramp"}, "no loss 'ramp'"),
        ({"rule": "mira"}, "no rule 'mira'"),
        ({"kept": "voted"}, "kept is one of average, support, last"),
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"inverse_temperature": 0.0}, "inverse_temperature is a number above 0"),
        ({"min_count": 10_000}, "no feature is left"),
    ],
)
def test_what_makes_no_sense_is_refused(lists, given, message):
    with pytest.raises(HopefearError, match=message):
        train_phrase_model(lists[0], **given)


def test_lists_without_pairs_are_refused(lists):
    bare = replace(lists[0], phrases=None)
    with pytest.raises(HopefearError, match="phrase pairs were not read"):
        train_phrase_model(bare)
    with pytest.raises(HopefearError, match="phrase pairs were not read"):
        add_phrase_model(bare, Weights((), []))


def test_rules_have_names():
    for rule in RULES:
        signature = phrase_learner("risk", rule, rate=1.0).signature()
        assert ("update_on:mistakes" in signature) == (rule == "vrda")
