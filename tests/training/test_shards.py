"""Shards: states merge as theory has it, and models do not depend on where shards run."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from learner_catalogue import FEW_RULES, RULES, natural_loss
from shards_apart import WIDE, merged_both_ways
from sklearn.base import clone

from hopefear import Classifier
from hopefear.core.learner import Learner
from hopefear.data.generators import sparse_linear
from hopefear.errors import CombinationError, HopefearError
from hopefear.losses.hinge import Hinge
from hopefear.losses.log import Log
from hopefear.losses.sapo import SAPO
from hopefear.readouts.averaged import Averaged
from hopefear.readouts.last import Last
from hopefear.rules.adagrad_rda import AdaGradRDA
from hopefear.rules.arow import AROW
from hopefear.rules.confidence import ConfidenceWeighted
from hopefear.rules.fobos import FOBOS
from hopefear.rules.rda import RDA
from hopefear.rules.sgd import SGD
from hopefear.structures.chain.chain import Chain
from hopefear.structures.classes import Binary, Multiclass
from hopefear.tasks.classify.task import train
from hopefear.testing import tiny_rows
from hopefear.training.changes import Sparse
from hopefear.training.checkpoints import Checkpoints
from hopefear.training.marks import octets_of
from hopefear.training.passes import Passes
from hopefear.training.shards import MIXES, Shards
from hopefear.training.workers import Shard, Share, folded

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
        stride = a if a is not None else rule.stride(None, None, None, state, 0.0, 0.0, 1.0)
        for j in np.flatnonzero(g):
            rule.move(state, j, g[j], *stride)
        rule.tick(state, t)
    return state, t


def copied(state):
    return type(state)(*(array.copy() for array in state))


def changes(rule, base, state, share, clock):
    out = np.zeros((rule.change_size(), SIZE))
    for j in range(SIZE):
        change = rule.change(base, j, state, j, share, state.clock, clock)
        out[:, j] = change[: len(out)]
        assert not any(change[len(out) :])
    return out


def merged(rule, base, ends, shares, before):
    """What shards come to that ended with these states and ticks."""
    t = before + round(sum(s * (t - before) for s, (_, t) in zip(shares, ends, strict=True)))
    clock = rule.merged_clock(base, [state.clock for state, _ in ends], shares, t)
    change = folded(
        [
            changes(rule, base, state, share, clock)
            for share, (state, _) in zip(shares, ends, strict=True)
        ],
        np.add,
    )
    state = copied(base)._replace(clock=clock)
    numbers = np.concatenate([change, np.zeros((3 - len(change), SIZE))]).T
    for j in range(SIZE):
        rule.merge(base, j, *numbers[j], clock, state, j)
    return state, t


def weights(rule, state):
    reading = rule.reading(state)
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
            rule.move(state, j, g, gain * (y - g * state.w[j]), b)
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
    if not rule.sums() and not getattr(rule, "l1", 0.0) and not getattr(rule, "gravity", 0.0)
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


@pytest.mark.parametrize(
    "rule",
    [
        SGD(rate=0.5, l1=0.01, l2=0.02),
        SGD(rate=0.5, power=0.5, decay=0.9, period=10.0),
        FOBOS(rate=0.5, l1=0.01, l2=0.02),
        *(RULES[name] for name in RULES),
    ],
    ids=lambda rule: type(rule).__name__,
)
def test_what_no_shard_touched_stays_on_its_line(rule):
    steps = directions(40)
    steps[20:, 0] = 0.0
    strides = (0.3, 0.1) if hasattr(rule, "variance") or hasattr(rule, "C") else None
    if type(rule).__name__ in ("AROW", "ConfidenceWeighted"):
        strides = (0.3, 0.05)
    base, before = walked(rule, rule.init(SIZE, np.float64), steps[:20], a=strides)
    ends = [
        walked(rule, copied(base), part, before, strides) for part in (steps[20:32], steps[32:])
    ]
    shares = [0.5, 0.5]
    clock = rule.merged_clock(base, [state.clock for state, _ in ends], shares, before + 10)
    for end, _ in ends:
        assert not rule.differs(base, 0, end, 0)
        assert not changes(rule, base, end, 0.5, clock)[:, 0].any()
    means = sum(0.5 * weights(rule, end)[0] for end, _ in ends)
    line = base._replace(clock=clock)
    assert weights(rule, line)[0] == pytest.approx(means, rel=0.02, abs=1e-9)


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("name", RULES)
def test_the_average_is_that_of_all_weights_there_were(name, mix):
    rule = RULES[name]
    if mix == "sum" and not rule.sums():
        pytest.skip("states of this rule are no sums")
    learner = Learner(natural_loss(rule), rule, Averaged())
    structure, seen = Binary(20), []

    class Watched(Shard):
        def learn(self, epoch, first, last, steps):
            report = super().learn(epoch, first, last, steps)
            seen.append(self.trainer.weights().astype(float))
            return report

    shards = Shards(2, mix)
    passes = Passes(DATA, at_least=60)
    trainer = shards.trainer(structure, learner, passes, dtype=np.float64)
    pool = trainer._workers
    pool.start(structure, trainer._own, trainer._shares, np.float64)
    for shard in pool._shards:
        shard.__class__ = Watched
    pool.begin(trainer._whole.state, 0)
    trainer._started = True

    class Steps:
        n_pieces = 30  # as many as a shard has examples: a step is an example of each

    for epoch in range(3):
        for _ in trainer.learn_pieces(Steps, epoch):
            pass
    trainer.close()
    assert len(seen) == 180 and trainer.examples == 180
    np.testing.assert_allclose(trainer.average(), np.mean(seen, axis=0), rtol=1e-4, atol=1e-5)


def bytes_of(learner="vrda", data=DATA, **how):
    return train(data, learner, epochs=3, pieces=4, **how).model.to_bytes()


def test_one_shard_is_one_learner():
    plain = train(DATA, "vrda", epochs=3).model
    assert bytes_of(shards=1) == bytes_of() == bytes_of(shards=Shards(1))
    selected = train(DATA, "vrda", epochs=3, shards=Shards(1, select=21)).model
    np.testing.assert_allclose(selected.weights, plain.weights, rtol=1e-5)
    assert "shards" not in plain.signature and "shards:1|mix:" in selected.signature


@pytest.mark.parametrize("learner", ["perceptron", "vrda", "sgd", "arow"])
def test_models_do_not_depend_on_where_shards_run(learner):
    for select in (None, 12):
        threads = bytes_of(learner, shards=Shards(3, select=select))
        processes = Shards(3, select=select, workers="processes")
        assert threads == bytes_of(learner, shards=processes)
        assert threads == bytes_of(learner, shards=Shards(3, select=select))
        assert threads != bytes_of(learner, shards=Shards(2, select=select))


@pytest.mark.parametrize("window", [7, None])
@pytest.mark.parametrize("mix", ["moved", "mistakes", "sum"])
@pytest.mark.parametrize("readout", [Averaged(), Last()])
@pytest.mark.parametrize("name", [*FEW_RULES, "worn"])
def test_one_sweep_merges_as_changes_do(monkeypatch, name, readout, mix, window):
    """``window``: books are settled in the middle of rounds too."""
    rule = SGD(rate=0.5, l2=1.0, l1=0.01) if name == "worn" else RULES[name]
    if mix == "sum" and not rule.sums():
        pytest.skip("states of this rule are no sums")
    if window is not None:
        monkeypatch.setattr("hopefear.training.online._WINDOW", window)
    learner = Learner(natural_loss(rule), rule, readout)

    one, other = merged_both_ways(DATA, Binary(20), learner, 3, mix)
    assert one.alone().weights().any() and other.predictor().weights.any()


@pytest.mark.parametrize("readout", [Averaged(), Last()])
@pytest.mark.parametrize("name", FEW_RULES)
def test_two_shards_merge_whole_words_as_changes_do(name, readout):
    learner = Learner(natural_loss(RULES[name]), RULES[name], readout)
    one, _ = merged_both_ways(WIDE, Binary(150), learner, 2, "moved")
    assert np.count_nonzero(one._whole.state[0][64:128]) > 24  # vectors


def test_the_order_of_the_data_does_not_matter_by_content():
    other = DATA.take(np.random.default_rng(4).permutation(len(DATA)))
    one, two = (
        train(data, "perceptron", epochs=2, by_content=True, shards=3).model.weights
        for data in (DATA, other)
    )
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("readout", [Averaged(), Last()])
def test_selected_features_have_all_their_weights_and_others_none(readout):
    data = sparse_linear(80, 20, per_row=(3, 6), true_weights=8, seed=5).dataset()
    labels = (np.arange(80) % 3).astype(np.int32)
    data = data._with(data.rows._replace(labels=labels))
    data.classes = ("a", "b", "c")
    rule = RULES["sgd"]
    learner = Learner(natural_loss(rule), rule, readout)
    passes = Passes(data)
    trainer = Shards(3, select=7).trainer(Multiclass(20, 3), learner, passes)
    for epoch in range(3):
        trainer.learn_pass(passes, epoch)
    trainer.close()
    table = trainer.predictor().weights.reshape(20, 3)
    assert np.count_nonzero(table.any(axis=1)) == 7
    dropped = ~trainer.weights().reshape(20, 3).any(axis=1)
    fresh = rule.init(60, np.float32)
    for array, start in zip(trainer._whole.state[:-1], fresh[:-1], strict=True):
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


def test_events_say_what_rounds_cost():
    events = []
    bytes_of(shards=Shards(2, workers="processes"), on_event=[events.append])
    last = events[-1]
    assert (last["rounds"], last["samples"]) == (3, 180)
    assert last["sent"] > 1000 and last["waited"] >= 0.0
    assert [event["samples"] for event in events] == sorted(event["samples"] for event in events)


@pytest.mark.parametrize(
    ("shards", "learner", "params", "words"),
    [
        (61, "perceptron", {}, "60 examples are too few for 61 shards"),
        (2, "vrda", {"readout": "voted"}, "voted .* readout=averaged"),
        (Shards(2, "sum"), "perceptron", {}, "mix=sum .* SGD are not; use moved"),
    ],
)
def test_what_cannot_be_sharded_is_refused(shards, learner, params, words):
    with pytest.raises(HopefearError, match=words):
        train(DATA, learner, params, shards=shards)


@pytest.mark.parametrize(
    "options", [{"n": 0}, {"n": 2.5}, {"n": 2, "mix": "means"}, {"n": 2, "select": 0}]
)
def test_senseless_options_are_refused(options):
    with pytest.raises(HopefearError, match="shards: "):
        Shards(**options)


def test_rules_that_do_not_merge_say_so():
    class Own(RDA):
        def change_size(self):
            return 0

    with pytest.raises(CombinationError, match="does not say how its states merge"):
        Shards(2).words(Learner(natural_loss(RDA()), Own(), Last()))


def test_a_shard_that_fails_is_told():
    with pytest.raises(HopefearError, match="overflowed"):
        train(
            DATA,
            "sgd",
            {"rate": 1e38, "l2": 0, "loss": "squared-hinge"},
            shards=Shards(2, workers="processes"),
        )


def test_sparse_sums_have_the_entries_of_both():
    one, two = (Sparse.of(np.array(v)) for v in ([0.0, 1.0, 2.0], [3.0, 0.0, -2.0]))
    both = one.plus(two)
    assert both.ids.tolist() == [0, 1, 2] and both.values.tolist() == [[3.0, 1.0, 0.0]]


@pytest.mark.parametrize("block", [1, 4])
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_rounds_end_at_the_same_examples_however_a_pass_is_cut(rounds, block):
    how = {"epochs": 2, "shards": Shards(2, rounds=rounds)}
    weights = [
        train(DATA, "perceptron", {"block": block}, pieces=pieces, **how).fit.trainer.weights()
        for pieces in (1, 4, 7)
    ]
    assert all(np.array_equal(weights[0], other) for other in weights[1:])


@pytest.mark.parametrize("learner", ["perceptron", "vrda"])
def test_shards_learn_in_blocks(learner):
    """The same where they run as processes; other models than one example at a time gives."""
    blocks = bytes_of(learner, params={"block": 5}, shards=2)
    processes = Shards(2, workers="processes")
    assert blocks == bytes_of(learner, params={"block": 5}, shards=processes)
    assert blocks != bytes_of(learner, shards=2)


def test_a_shard_with_blocks_is_a_learner_with_blocks():
    one = train(DATA, "perceptron", {"block": 5}, epochs=2).model
    selected = train(DATA, "perceptron", {"block": 5}, epochs=2, shards=Shards(1, select=21)).model
    np.testing.assert_allclose(selected.weights, one.weights, rtol=1e-5)


def test_clocks_that_start_again_in_some_shards_change_no_units(monkeypatch):
    """A strong penalty wears clocks within a round; without restarts nothing else happens."""
    data = sparse_linear(81, 30, per_row=(5, 10), true_weights=10, seed=1).dataset()
    learner = Learner(Hinge(), SGD(rate=0.5, l2=1.0), Averaged(), on="mistakes")

    def weights(mix):
        passes = Passes(data)
        trainer = Shards(2, mix).trainer(Binary(30), learner, passes, dtype=np.float64)
        for epoch in range(4):
            trainer.learn_pass(passes, epoch)
        trainer.close()
        return trainer.weights()

    again = weights("uniform"), weights("moved")
    monkeypatch.setattr("hopefear.rules.sgd.WORN", 1e-300)
    never = weights("uniform"), weights("moved")
    np.testing.assert_allclose(again[0], never[0], atol=1e-5)
    assert np.abs(again[1]).max() < 2.0 * np.abs(never[1]).max()  # 200 times, if units were mixed


def test_mapped_data_is_dealt_by_pieces():
    parts = [DATA.take(np.arange(a, a + 12)).rows for a in range(0, 60, 12)]

    class Mapped:
        dataset = SimpleNamespace(mapping=object(), source="a cache")
        n_pieces, seed, shuffle, by_block = 5, 1, True, True

        @classmethod
        def opened(cls):
            return cls

        @staticmethod
        def cut(n):
            """Blocks stay as they are."""

        @staticmethod
        def at(epoch, places):
            for rows in parts[places]:
                yield rows, np.arange(12)

    learner = Learner(natural_loss(RULES["sgd"]), RULES["sgd"], Last())
    trainer = Shards(2).trainer(Binary(20), learner, Mapped)
    trainer.learn_pass(Mapped)
    trainer.close()
    assert trainer.examples == 60
    shares = Shards(2)._deal(Mapped, False)
    for k, share in enumerate(shares):
        dealt = [rows for rows, _ in share.stretch(0, 0, share.n)]
        assert all(rows is parts[i] for i, rows in zip(range(k, 5, 2), dealt, strict=True))
    ((rows, _),) = shares[1].stretch(0, 1, 2)
    assert rows is parts[3]


@pytest.mark.parametrize("n", [2, 3, 7, 59, 60])
def test_blocks_are_made_small_enough_for_all_shards(n):
    passes = Passes(DATA, by_block=True)
    assert passes.n_pieces == 1
    Shards(n).cut(passes)
    shares = Shards(n)._deal(passes, False)
    seen = [rows.labels[order] for share in shares for rows, order in share.stretch(0, 0, share.n)]
    assert all(share.n for share in shares) and len(shares) == n
    assert sorted(np.concatenate(seen)) == sorted(DATA.rows.labels)
    Shards(61).cut(passes)
    with pytest.raises(HopefearError, match="60 examples are too few for 61 shards"):
        Shards(61)._deal(passes, False)


def test_blocks_that_are_enough_stay_as_they_are(monkeypatch):
    monkeypatch.setattr("hopefear.training.passes._BLOCK", 500)
    passes, same = Passes(DATA, by_block=True), Passes(DATA, by_block=True)
    Shards(2).cut(passes)
    assert passes.n_pieces == same.n_pieces > 2


def test_the_signature_tells_blocks_that_were_made_for_shards():
    whole, dealt, searched = (
        train(DATA, "perceptron", {"block": 4}, epochs=1, shards=shards, by_block=by_block)
        for shards, by_block in ((2, False), (2, True), (Shards(2, mix="blocks"), True))
    )
    assert "by_block" not in whole.model.signature and "by_block" not in searched.model.signature
    assert "|by_block:true" in dealt.model.signature


def test_an_estimator_goes_on_alone():
    X, y = DATA.to_csr(), DATA.rows.labels
    classifier = Classifier("sgd", epochs=2, shards=3).fit(X, y)
    before = classifier.model_.weights.copy()
    assert "|shards:3|mix:moved" in classifier.model_.signature
    classifier = pickle.loads(pickle.dumps(classifier))
    classifier.partial_fit(X, y)
    assert classifier.score(X, y) > 0.7 and (classifier.model_.weights != before).any()
    assert clone(classifier).get_params()["shards"] == 3


@pytest.mark.parametrize("block", [1, 3])
@pytest.mark.parametrize("loss", [Log(), SAPO(n=3)])
def test_all_that_moves_is_marked(loss, block):
    """A feature moves as a whole where a loss has expectations, and is marked where it begins."""
    structure = Chain.new(40, 11)
    learner = Learner(loss, SGD(rate=0.3), Last(), "every", block)
    shard = Shard(structure, learner, Share(tiny_rows(structure), 1, True, False), np.float64)
    base = learner.rule.init(structure.n_coordinates(), np.float64)
    for t in range(2):  # a round leaves no marks behind
        shard.begin(base, 0)
        shard.learn(t, 0, 1, 1)
        shard.end()
        moved = np.unique(np.flatnonzero(shard.trainer.state.m) // 8)
        marked = octets_of(shard.trainer.memory.moved)
        assert moved.size > 5 and np.isin(moved, marked).all()
        assert marked.size < structure.n_coordinates() // 8
