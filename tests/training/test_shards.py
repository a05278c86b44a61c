"""Shards: states merge as theory has it, and models do not depend on where shards run."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from classes import train
from learner_catalogue import RULES, natural_loss
from sklearn.base import clone

from hopefear import Classifier
from hopefear.averaging.averaged import Averaged
from hopefear.averaging.last import Last
from hopefear.core.learner import Learner
from hopefear.data.generators import sparse_linear
from hopefear.errors import CombinationError, HopefearError
from hopefear.losses.hinge import Hinge
from hopefear.rules.adagrad_rda import AdaGradRDA
from hopefear.rules.arow import AROW
from hopefear.rules.confidence import ConfidenceWeighted
from hopefear.rules.fobos import FOBOS
from hopefear.rules.rda import RDA
from hopefear.rules.sgd import SGD
from hopefear.structures.classes import Binary, Multiclass
from hopefear.training.checkpoints import Checkpoints
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes
from hopefear.training.shards import MERGES, Shards, ShardTrainer, merge_into, tree_sum

pytestmark = pytest.mark.interpreted

DATA = sparse_linear(60, 20, per_row=(3, 6), true_weights=8, seed=2).dataset()
SIZE = 6


def directions(n, seed=3):
    """Sparse directions that depend on no weights."""
    dice = np.random.default_rng(seed)
    return dice.normal(size=(n, SIZE)) * (dice.random((n, SIZE)) < 0.5)


def walked(rule, state, steps, t=0, a=None):
    """The state after these directions, and its ticks."""
    for g in steps:
        t += 1
        stride = a if a is not None else rule.step_size(None, None, None, state, 0.0, 0.0, 1.0)
        for j in np.flatnonzero(g):
            rule.update(state, j, g[j], *stride)
        rule.tick(state, t)
    return state, t


def copied(state):
    return type(state)(*(array.copy() for array in state))


def merged(rule, base, ends, shares, before):
    """The state and ticks of shards that ended with these states and ticks."""
    t = before + round(sum(s * (t - before) for s, (_, t) in zip(shares, ends, strict=True)))
    clock = rule.merged_clock(base, [state.clock for state, _ in ends], shares, t)
    terms = []
    for share, (end, _) in zip(shares, ends, strict=True):
        pairs = zip(rule.to_sums(end, end.clock), rule.to_sums(base, end.clock), strict=True)
        rows = [share * (after - before) for after, before in pairs]
        terms.append(np.stack([*rows, np.full(SIZE, share)]))
    state = copied(base)
    merge_into(state, rule, tree_sum(terms), clock, False)
    return state._replace(clock=clock), t


def weights(rule, state):
    reading = rule.weight_view(state)
    return np.array([reading.at(j) for j in range(SIZE)])


@pytest.mark.parametrize("rule", [RDA(rate=2.0, l1=0.05, l2=0.01), AdaGradRDA(l1=0.05)])
def test_sums_of_the_parts_of_a_stream_are_those_of_the_whole(rule):
    steps = directions(90)
    base, before = walked(rule, rule.init(SIZE, np.float64), steps[:30])
    ends = [walked(rule, copied(base), part, before) for part in (steps[30:50], steps[50:])]
    state, t = merged(rule, base, ends, [1.0, 1.0], before)
    whole, ticks = walked(rule, copied(base), steps[30:], before)
    assert t == ticks
    for one, other in zip(state, whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("rule", [AROW(r=0.7), ConfidenceWeighted()])
def test_gaussians_multiply(rule):
    """With one feature an example, updates are those of least squares, whose evidence adds up."""

    def learned(state, steps):
        for j, g, y in steps:
            v = state.variance[j] * g * g
            b = 1.0 / (v + rule.r) if isinstance(rule, AROW) else 0.6
            gain = b if isinstance(rule, AROW) else b / (1.0 + b * v)
            rule.update(state, j, g, gain * (y - g * state.w[j]), b)
        return state

    dice = np.random.default_rng(1)
    steps = [(int(dice.integers(SIZE)), *dice.normal(size=2)) for _ in range(60)]
    base = learned(rule.init(SIZE, np.float64), steps[:20])
    parts = (steps[20:35], steps[35:45], steps[45:])
    ends = [(learned(copied(base), part), 0) for part in parts]
    state, _ = merged(rule, base, ends, [1.0] * 3, 0)
    whole = learned(copied(base), steps[20:])
    np.testing.assert_allclose(state.w, whole.w, rtol=1e-10)
    np.testing.assert_allclose(state.variance, whole.variance, rtol=1e-10)


PLAIN = {
    name: rule
    for name, rule in RULES.items()
    if not rule.is_sum_over_examples
    and not getattr(rule, "l1", 0.0)
    and not getattr(rule, "gravity", 0.0)
}


@pytest.mark.parametrize("name", PLAIN)
def test_mixing_takes_means_of_weights(name):
    rule, steps = PLAIN[name], directions(60)
    strides = (0.3, 0.0) if hasattr(rule, "C") else None
    base, before = walked(rule, rule.init(SIZE, np.float64), steps[:20], a=strides)
    parts = (steps[20:30], steps[30:])
    ends = [walked(rule, copied(base), part, before, strides) for part in parts]
    shares = [0.25, 0.75]
    state, t = merged(rule, base, ends, shares, before)
    means = sum(s * weights(rule, end) for s, (end, _) in zip(shares, ends, strict=True))
    np.testing.assert_allclose(weights(rule, state), means, rtol=1e-9, atol=1e-12)
    assert t == before + round(0.25 * 10 + 0.75 * 30)


@pytest.mark.parametrize("merge", MERGES)
@pytest.mark.parametrize("name", RULES)
def test_the_average_is_that_of_all_weights_there_were(monkeypatch, name, merge):
    rule = RULES[name]
    if merge == "sum" and not rule.is_sum_over_examples:
        pytest.skip("states of this rule are no sums")
    learner = Learner(natural_loss(rule), rule, Averaged())
    learn, seen = ShardTrainer.learn, []

    def watched(shard, *steps):
        report = learn(shard, *steps)
        seen.append(shard.online.weights().astype(float))
        return report

    monkeypatch.setattr(ShardTrainer, "learn", watched)
    trainer = Shards(2, merge).trainer(Binary(20), learner, Passes(DATA), dtype=np.float64)

    class Steps:
        n_pieces = 30  # as many as a shard has examples: a step is an example of each

    for epoch in range(3):
        for _ in trainer.learn_pieces(Steps, epoch):
            pass
    trainer.close()
    assert len(seen) == 180 and trainer.examples == 180
    np.testing.assert_allclose(trainer.average(), np.mean(seen, axis=0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("merge", ["mean-of-updated", "mean"])
def test_merged_weights_are_those_of_a_simulation(merge):
    """Perceptrons whose weights are merged by hand after every epoch."""
    learner, passes = Learner(Hinge(), RULES["pa"], Last()), Passes(DATA)
    trainer = Shards(3, merge).trainer(Binary(20), learner, passes, dtype=np.float64)
    examples = Shards(3, merge)._deal(passes, False)
    by_hand = np.zeros(20)
    for epoch in range(3):
        trainer.learn_pass(passes, epoch)
        ends = []
        for one in examples:
            alone = OnlineTrainer(Binary(20), learner, np.float64)
            alone.state.w[:] = by_hand
            for rows, order in one.visits(epoch, 0, one.n):
                alone.learn(rows, order)
            ends.append(alone.state.w)
        changes = np.array(ends) - by_hand
        updated = np.count_nonzero(changes, axis=0) if merge == "mean-of-updated" else 3
        by_hand = by_hand + changes.sum(axis=0) / np.maximum(updated, 1)
        np.testing.assert_allclose(trainer._common.state.w, by_hand, rtol=1e-12)
    trainer.close()


@pytest.mark.parametrize("rule", [SGD(rate=0.5, l2=0.02), FOBOS(rate=0.5, l2=0.02)])
def test_weights_that_no_shard_updates_decay_as_in_one_learner(rule):
    steps = directions(40)
    steps[20:, 0] = 0.0
    base, before = walked(rule, rule.init(SIZE, np.float64), steps[:20])
    ends = [walked(rule, copied(base), part, before) for part in (steps[20:30], steps[30:])]
    state, _ = merged(rule, base, ends, [0.5, 0.5], before)
    assert weights(rule, state)[0] == pytest.approx(weights(rule, ends[0][0])[0], rel=1e-9)


def bytes_of(learner="vrda", data=DATA, **how):
    return train(data, learner, epochs=3, pieces=4, **how).model.to_bytes()


def test_one_shard_is_one_learner():
    plain = train(DATA, "vrda", epochs=3).model
    assert bytes_of(shards=1) == bytes_of() == bytes_of(shards=Shards(1))
    selected = train(DATA, "vrda", epochs=3, shards=Shards(1, max_features=21)).model
    np.testing.assert_allclose(selected.weights, plain.weights, rtol=1e-5)
    assert "shards" not in plain.signature and "shards:1|merge:" in selected.signature


@pytest.mark.parametrize("learner", ["perceptron", "vrda", "sgd", "arow"])
def test_models_depend_on_the_number_of_shards_and_on_nothing_else(monkeypatch, learner):
    for most in (None, 12):
        made = bytes_of(learner, shards=Shards(3, max_features=most))
        assert made == bytes_of(learner, shards=Shards(3, max_features=most))
        assert made != bytes_of(learner, shards=Shards(2, max_features=most))
        with monkeypatch.context() as patch:  # weights are merged in slices
            patch.setattr("hopefear.training.shards._SLICE", 7)
            assert made == bytes_of(learner, shards=Shards(3, max_features=most))


def test_the_order_of_the_data_does_not_matter_by_content():
    other = DATA.take(np.random.default_rng(4).permutation(len(DATA)))
    one, two = (
        train(data, "perceptron", epochs=2, by_content=True, shards=3).model.weights
        for data in (DATA, other)
    )
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("averaging", [Averaged(), Last()])
def test_selected_features_have_all_their_weights_and_others_none(averaging):
    data = sparse_linear(80, 20, per_row=(3, 6), true_weights=8, seed=5).dataset()
    labels = (np.arange(80) % 3).astype(np.int32)
    data = data._with(data.rows._replace(labels=labels))
    data.classes = ("a", "b", "c")
    rule = RULES["sgd"]
    learner = Learner(natural_loss(rule), rule, averaging)
    passes = Passes(data)
    trainer = Shards(3, max_features=7).trainer(Multiclass(20, 3), learner, passes)
    for epoch in range(3):
        trainer.learn_pass(passes, epoch)
    trainer.close()
    table = trainer.predictor().weights.reshape(20, 3)
    assert np.count_nonzero(table.any(axis=1)) == 7
    dropped = ~trainer.weights().reshape(20, 3).any(axis=1)
    fresh = rule.init(60, np.float32)
    for array, start in zip(trainer._common.state[:-1], fresh[:-1], strict=True):
        np.testing.assert_array_equal(
            array.reshape(20, -1)[dropped], start.reshape(20, -1)[dropped]
        )


@pytest.mark.parametrize("learner", ["perceptron", "vrda", "adagrad"])
def test_a_run_that_was_broken_off_ends_in_the_same_model(tmp_path, learner):
    whole = bytes_of(learner, shards=3)
    checkpoints = Checkpoints(tmp_path, every=0.0)

    class StopError(Exception):
        pass

    for stop in (2, 3, 4):  # in the middle of passes and at their ends

        def broken(event, countdown=[stop]):  # noqa: B006 - one for each run
            countdown[0] -= 1
            if countdown[0] < 0:
                raise StopError

        with pytest.raises(StopError):
            bytes_of(learner, shards=3, checkpoints=checkpoints, resume=True, on_event=[broken])
    assert checkpoints.exist()
    assert bytes_of(learner, shards=3, checkpoints=checkpoints, resume=True) == whole
    with pytest.raises(HopefearError, match="another run"):
        bytes_of(learner, shards=2, checkpoints=checkpoints, resume=True)


def test_events_count_merges_and_waiting():
    events = []
    bytes_of(shards=Shards(2, merges=2), on_event=[events.append])
    last = events[-1]
    assert (last["merges"], last["samples"]) == (6, 180) and last["waited"] >= 0.0
    assert [event["samples"] for event in events] == sorted(event["samples"] for event in events)


@pytest.mark.parametrize(
    ("shards", "learner", "params", "words"),
    [
        (61, "perceptron", {}, "60 examples are too few for 61 shards"),
        (2, "vrda", {"averaging": "voted"}, "voted .* averaging=averaged"),
        (Shards(2, "sum"), "perceptron", {}, "merge=sum .* SGD are not; use mean-of-updated"),
    ],
)
def test_what_cannot_be_sharded_is_refused(shards, learner, params, words):
    with pytest.raises(HopefearError, match=words):
        train(DATA, learner, params, shards=shards)


@pytest.mark.parametrize(
    "options", [{"n": 0}, {"n": 2.5}, {"n": 2, "merge": "moved"}, {"n": 2, "max_features": 0}]
)
def test_senseless_options_are_refused(options):
    with pytest.raises(HopefearError, match="shards: "):
        Shards(**options)


def test_rules_that_do_not_merge_say_so():
    class Own(RDA):
        def to_sums(self, state, clock):
            return None

    with pytest.raises(CombinationError, match="does not say how its states merge"):
        Shards(2).words(Learner(natural_loss(RDA()), Own(), Last()))


def test_a_shard_that_fails_is_told():
    with pytest.raises(HopefearError, match="overflowed"):
        train(
            DATA,
            "sgd",
            {"rate": 1e38, "l2": 0, "loss": "squared-hinge"},
            shards=2,
        )


@pytest.mark.parametrize("merges", [1, 2, 3])
def test_rounds_end_at_the_same_examples_however_an_epoch_is_cut(merges):
    how = {"epochs": 2, "shards": Shards(2, merges=merges)}
    weights = [
        train(DATA, "perceptron", pieces=pieces, **how).fit.trainer.weights()
        for pieces in (1, 4, 7)
    ]
    assert all(np.array_equal(weights[0], other) for other in weights[1:])


def test_clocks_that_start_again_in_some_shards_change_no_units(monkeypatch):
    """A strong penalty wears clocks within a round; without restarts nothing else happens."""
    data = sparse_linear(81, 30, per_row=(5, 10), true_weights=10, seed=1).dataset()
    learner = Learner(Hinge(), SGD(rate=0.5, l2=1.0), Averaged(), update_on="mistakes")

    def weights(merge):
        passes = Passes(data)
        trainer = Shards(2, merge).trainer(Binary(30), learner, passes, dtype=np.float64)
        for epoch in range(4):
            trainer.learn_pass(passes, epoch)
        trainer.close()
        return trainer.weights()

    again = weights("mean"), weights("mean-of-updated")
    monkeypatch.setattr("hopefear.rules.sgd.MIN_SCALE", 1e-300)
    never = weights("mean"), weights("mean-of-updated")
    np.testing.assert_allclose(again[0], never[0], atol=1e-5)
    assert np.abs(again[1]).max() < 2.0 * np.abs(never[1]).max()  # 200 times, if units were mixed


@pytest.mark.parametrize("n", [2, 3, 7, 59, 60])
def test_data_visited_by_blocks_is_dealt_by_blocks(n):
    passes = Passes(DATA, by_block=True)
    assert passes.n_pieces == 1
    passes.cut(n)
    seen = [
        rows.labels[order]
        for one in Shards(n)._deal(passes, False)
        for rows, order in one.visits(0, 0, one.n)
    ]
    assert len(seen) >= n and sorted(np.concatenate(seen)) == sorted(DATA.rows.labels)
    passes.cut(61)
    with pytest.raises(HopefearError, match="60 examples are too few for 61 shards"):
        Shards(61)._deal(passes, False)


def test_blocks_that_are_enough_stay_as_they_are(monkeypatch):
    monkeypatch.setattr("hopefear.training.passes._BLOCK", 500)
    passes, same = Passes(DATA, by_block=True), Passes(DATA, by_block=True)
    passes.cut(2)
    assert passes.n_pieces == same.n_pieces > 2


def test_the_signature_tells_blocks_that_were_made_for_shards():
    whole, dealt = (
        train(DATA, "perceptron", epochs=1, shards=2, by_block=by_block)
        for by_block in (False, True)
    )
    assert "by_block" not in whole.model.signature
    assert "|by_block:true" in dealt.model.signature


def test_an_estimator_goes_on_alone():
    X, y = DATA.to_csr(), DATA.rows.labels
    classifier = Classifier("sgd", epochs=2, shards=3).fit(X, y)
    before = classifier.model_.weights.copy()
    assert "|shards:3|merge:mean-of-updated" in classifier.model_.signature
    classifier = pickle.loads(pickle.dumps(classifier))
    classifier.partial_fit(X, y)
    assert classifier.score(X, y) > 0.7 and (classifier.model_.weights != before).any()
    assert clone(classifier).get_params()["shards"] == 3
