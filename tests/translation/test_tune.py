"""Tuning as a whole: what comes out, seeds, held-out lists, collapse, metrics, files, refusals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tuning_lists import rich, written
from tuning_plain import small_lists

from hopefear.errors import HopefearError
from hopefear.metrics.lists import Bleu, Ter, metric_named
from hopefear.translation.examples import translations
from hopefear.translation.features import learned
from hopefear.translation.lists import lists_in_memory, read, tuning_metric
from hopefear.translation.recipes import TUNE_RECIPES
from hopefear.translation.scoring import choice
from hopefear.translation.task import (
    CollapseError,
    check_collapse,
    compare,
    corpus_oracle,
    evaluate,
    tune,
)
from hopefear.translation.tuners.problem import Tuned, TuningProblem
from hopefear.translation.weights import Weights

pytestmark = pytest.mark.interpreted

LISTS = small_lists(40, 8, seed=3)
DEV = small_lists(20, 8, seed=4)
FEW = {"epochs": 3, "C": 0.05}


@dataclass(frozen=True)
class Fake:
    """A tuner that answers with what it is told, by seed."""

    answers: Any

    def tune(self, problem, *, seed=1, on_event=()):
        for listener in on_event:
            listener({"epoch": 1})
        return Tuned(np.asarray(self.answers(seed, problem), float))

    def parameters(self):
        return {}

    def signature(self, **more):
        return "fake"


def faked(monkeypatch, answers):
    made = SimpleNamespace(parameters=dict, build=lambda scale, **params: Fake(answers))
    monkeypatch.setitem(TUNE_RECIPES, "fake", made)


def bleu(lists, weights):
    found = lists.counts[lists.starts[:-1] + choice(lists, weights)].sum(axis=0)
    return tuning_metric("bleu").scores(found)["bleu"]


def test_what_is_told_is_what_the_weights_are_worth():
    found = tune(LISTS, "kbmira", FEW, dev=DEV)
    for name, lists in (("train", LISTS), ("dev", DEV)):
        assert found.before[name] == pytest.approx(bleu(lists, found.start))
        assert found.after[name] == pytest.approx(bleu(lists, found.weights))
        assert found.oracle[name] == pytest.approx(corpus_oracle(lists))
        assert found.before[name] < found.after[name] < found.oracle[name]
    assert found.history and found.history[-1]["dev"].keys() == {"bleu"}
    about = found.weights.about
    assert about["learner"] == "kbmira" and about["scores"] == found.after
    assert about["data"]["lists"] == 40 and about["signature"] == found.signature
    assert "tok:none" in about["metric"]
    again = tune(LISTS, "kbmira", FEW, dev=DEV)
    assert again.weights == found.weights


def test_sparse_features_and_phrase_pairs_get_weights_by_name():
    lists = rich(20)
    found = tune(lists, "kbmira", FEW, min_count=2).weights
    assert set(found.sparse) <= {f"s_{j}" for j in range(30)} and found.sparse
    assert found.phrases and all(" ||| " in pair for pair in found.phrases)
    bare = replace(lists, layout=(), dense=lists.dense[:, :0])
    only = tune(bare, "kbmira", FEW, features=["sparse"]).weights
    assert only.sparse and not only.layout and not only.phrases


def test_fixed_weights_are_part_of_every_score():
    lists = rich(20)
    fixed = Weights(lists.layout, [0.3, 0.1, 0.2, 0.25, 0.15])
    found = tune(lists, "kbmira", FEW, fixed=fixed, features=["phrases"])
    assert found.weights.layout == lists.layout and found.weights.dense.tolist() == [
        *(0.3, 0.1, 0.2, 0.25, 0.15)
    ]
    assert found.before["train"] == pytest.approx(bleu(lists, fixed))
    assert found.after["train"] == pytest.approx(bleu(lists, found.weights))
    assert found.weights.phrases
    with pytest.raises(HopefearError, match="start from those weights"):
        tune(lists, fixed=fixed, features=["dense", "phrases"])


def test_dense_features_are_not_forgotten():
    lists = rich(20)
    some = Weights((), [], {"s_1": 1.0})
    for groups in (["sparse"], ["phrases"], ["sparse", "phrases"]):
        for fixed in (None, some):
            with pytest.raises(HopefearError, match=r"name dense too, or give weights.*--fixed"):
                tune(lists, "kbmira", FEW, features=groups, fixed=fixed)
    assert tune(lists, "kbmira", FEW, fixed=some).weights.layout == lists.layout


def test_the_size_of_fixed_weights_changes_nothing():
    lists = rich(20)
    fixed = Weights(lists.layout, [0.3, 0.1, 0.2, 0.25, 0.15])
    found, large = (
        tune(lists, "kbmira", FEW, fixed=given, features=["phrases"])
        for given in (fixed, fixed.scaled(512.0))
    )
    assert found.after["train"] > found.before["train"]
    assert large.after == found.after and large.before == found.before
    assert large.weights.phrases == pytest.approx(found.weights.scaled(512.0).phrases)


def test_a_start_is_refused_beside_fixed_dense_weights():
    lists = rich(4)
    fixed = Weights(lists.layout, [0.3, 0.1, 0.2, 0.25, 0.15])
    for start in (fixed, "moses"):
        with pytest.raises(HopefearError, match="leave one of the two out"):
            tune(lists, "kbmira", FEW, fixed=fixed, start=start, features=["phrases"])


def test_signatures_tell_costs_apart():
    signed = [
        tune(small_lists(), "pro", metric=Bleu(tokenize="none", smoothing=name)).signature
        for name in ("add-one", "floor")
    ]
    assert signed[0] != signed[1] and "smoothing=floor" in signed[1]


def test_what_is_found_beside_fixed_weights_of_the_same_names_is_added():
    lists = rich(20)
    pairs = {lists.phrases.names[j]: 0.5 for j in range(10)}
    names = {lists.sparse.names[j]: -0.25 for j in range(10)}
    fixed = Weights(lists.layout, [0.3, 0.1, 0.2, 0.25, 0.15], names, pairs)
    found = tune(lists, "kbmira", FEW, fixed=fixed)
    assert found.before["train"] == pytest.approx(bleu(lists, fixed))
    assert found.after["train"] == pytest.approx(bleu(lists, found.weights))
    learned = Weights.of(found.features, found.chosen.tuned.weights)
    both = [name for name in learned.phrases if name in pairs]
    assert both and all(
        found.weights.phrases[name] == pytest.approx(0.5 + learned.phrases[name]) for name in both
    )
    assert set(pairs) <= found.weights.phrases.keys() and set(names) <= found.weights.sparse.keys()


def test_signatures_tell_fixed_weights_and_held_out_lists_apart():
    lists, seen = rich(20), []
    for values in ([0.3, 0.1, 0.2, 0.25, 0.15], [0.3, 0.1, 0.2, 0.25, 0.16]):
        for more in ({}, {"dev": rich(5)}, {"held_out": 0.2}, {"held_out": 0.4}):
            fixed = Weights(lists.layout, values)
            found = tune(lists, "perceptron", {"epochs": 1, "keep": "last"}, fixed=fixed, **more)
            assert "|fixed:" in found.signature and ("|dev:" in found.signature) == bool(more)
            seen.append(found.signature)
    assert len(set(seen)) == 8
    again = tune(lists, "perceptron", {"epochs": 1, "keep": "last"}, fixed=fixed, held_out=0.4)
    assert again.signature == seen[-1]


def test_the_best_seed_is_kept_by_held_out_lists_where_there_are_any(monkeypatch):
    good, poor = [0.3, 0.3, 0.3, 0.2, 0.2], [0.1, 0.0, 0.4, 0.3, 0.1]
    assert bleu(LISTS, Weights(LISTS.layout, good)) > bleu(LISTS, Weights(LISTS.layout, poor))
    faked(monkeypatch, lambda seed, problem: good if seed == 7 else poor)
    events = []
    found = tune(LISTS, "fake", seeds=(5, 7, 9), on_event=[events.append])
    assert [event["seed"] for event in events] == [5, 7, 9]
    assert found.chosen.seed == 7 == found.weights.about["seed"]
    assert [run.seed for run in found.runs] == [5, 7, 9]
    assert found.after["train"] == max(run.train for run in found.runs)
    events.clear()
    tune(LISTS, "fake", seeds=(7,), on_event=[events.append])
    assert events == [{"epoch": 1}]
    # Held-out lists that disagree are believed.
    dev = replace(DEV, dense=-DEV.dense)
    assert tune(LISTS, "fake", seeds=(5, 7), dev=dev, start="uniform").chosen.dev == max(
        bleu(dev, Weights(LISTS.layout, w)) for w in (good, poor)
    )


def test_less_is_better_where_the_metric_says_so(monkeypatch):
    lists = small_lists(40, 8, seed=3, metric="ter")
    good, poor = [0.3, 0.3, 0.3, 0.2, 0.2], [0.1, 0.0, 0.4, 0.3, 0.1]
    faked(monkeypatch, lambda seed, problem: good if seed == 2 else poor)
    found = tune(lists, "fake", seeds=(1, 2), metric="ter")
    assert found.chosen.seed == 2 and found.after["train"] < found.before["train"]
    assert found.oracle["train"] < found.after["train"]


@pytest.mark.parametrize("metric", ["chrf", "ter", "wer", Bleu(), Ter()])
def test_other_metrics_are_tuned_for_too(metric):
    lists = small_lists(40, 8, seed=3, metric=metric)
    found = tune(lists, "kbmira", FEW, metric=metric)
    sign = 1 if found.metric.higher else -1
    assert sign * found.after["train"] > sign * found.before["train"]
    if found.metric.name != "bleu":
        with pytest.raises(HopefearError, match="background=none"):
            tune(lists, "kbmira", {"background": "hope"}, metric=metric)


def test_a_share_of_the_lists_is_held_out_at_random(monkeypatch):
    sizes = []
    faked(
        monkeypatch,
        lambda seed, problem: sizes.append((len(problem.data), len(problem.dev))) or [1] * 5,
    )
    found = tune(LISTS, "fake", held_out=0.25)
    assert sizes == [(30, 10)] and found.after.keys() == {"train", "dev"}
    again = tune(LISTS, "fake", held_out=0.25)
    assert again.after == found.after
    assert tune(LISTS, "fake", held_out=0.25, seeds=(2,)).before != found.before
    for share, said in ((1.0, "from 0 to 1"), (-0.1, "from 0 to 1"), (0.01, "use more lists")):
        with pytest.raises(HopefearError, match=said):
            tune(LISTS, "fake", held_out=share)
    with pytest.raises(HopefearError, match="not both"):
        tune(LISTS, "fake", held_out=0.5, dev=DEV)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ([np.nan, 1, 1, 1, 1], "not finite"),
        ([np.inf, 1, 1, 1, 1], "not finite"),
        ([0.0] * 5, "all weights are 0"),
        ([-1, -1, -1, -0.5, -1], r"bleu fell from \d+\.\d\d to"),
    ],
)
def test_weights_that_collapsed_are_reported_and_not_returned(monkeypatch, weights, said):
    faked(monkeypatch, lambda seed, problem: weights)
    with pytest.raises(CollapseError, match=said) as error:
        tune(LISTS, "fake")
    assert "smaller C" in str(error.value)


@pytest.mark.parametrize(("began", "ended", "bad"), [(20, 40.9, 0), (20, 41, 1), (0, 0.9, 0)])
def test_a_metric_where_less_is_better_collapses_upwards(began, ended, bad):
    lists = small_lists(10, 4, seed=3, metric="ter")
    problem = TuningProblem(learned(lists, Ter(), ("dense",)), Ter(), np.ones(5))
    before = {"train": {"ter": float(began)}}
    if not bad:
        return check_collapse(problem, np.ones(5), float(ended), before)
    with pytest.raises(CollapseError, match=r"ter rose from 20\.00 to 41\.00"):
        check_collapse(problem, np.ones(5), float(ended), before)


@pytest.mark.parametrize(
    "seeds", [(), 1, "12", (-1,), (2**32,), (1.0,), (1, True), (None,), (1, "2")]
)
def test_seeds_are_whole_numbers_of_32_bits(seeds):
    with pytest.raises(HopefearError, match="whole number"):
        tune(LISTS, "kbmira", FEW, seeds=seeds)


def test_the_largest_seed_is_a_seed():
    found = tune(LISTS, "mert", {"restarts": 1}, seeds=np.array([2**32 - 1]))
    assert found.chosen.seed == 2**32 - 1 and type(found.weights.about["seed"]) is int


def test_one_seed_that_collapsed_does_not_spoil_the_others(monkeypatch):
    faked(monkeypatch, lambda seed, problem: [np.nan if seed == 1 else 0.3] * 5)
    for dev in (None, DEV):
        assert tune(LISTS, "fake", seeds=(1, 2), dev=dev).chosen.seed == 2


def test_scores_of_zero_are_a_collapse_too(monkeypatch):
    lists = lists_in_memory([[("a b", {"x": 1.0}), ("a c", {"x": 2.0})]] * 2, ["a c"] * 2)
    faked(monkeypatch, lambda seed, problem: [1.0])
    with pytest.raises(CollapseError, match="is 0, as it was at the start"):
        tune(lists, "fake")


def test_lists_that_leave_nothing_to_choose_are_refused():
    same = [[("a b c d", {"x": 1.0}), ("a b c d", {"x": 2.0})]]
    with pytest.raises(HopefearError, match="no candidate of a list is better"):
        tune(lists_in_memory(same, ["a b c d"]))
    alike = [[("a b c d", {"x": 1.0}), ("a b c e", {"x": 1.0})]]
    with pytest.raises(HopefearError, match="have the same features"):
        tune(lists_in_memory(alike, ["a b c d"]))
    # Lists may differ from each other and still leave nothing to choose.
    alike = [*same, [("a b x y", {"x": 1.0}), ("a b x y", {"x": 3.0})]]
    with pytest.raises(HopefearError, match="no candidate of a list is better"):
        tune(lists_in_memory(alike, ["a b c d"] * 2))
    fixed = Weights(LISTS.layout, np.ones(5))
    with pytest.raises(HopefearError, match="no feature is left"):
        tune(rich(4), features=["sparse"], min_count=50, fixed=fixed)
    with pytest.raises(HopefearError, match="name some of dense, sparse, phrases"):
        tune(LISTS, features=[])
    with pytest.raises(HopefearError, match="has counts of bleu, and tuning is by ter"):
        tune(LISTS, metric="ter")
    with pytest.raises(HopefearError, match="has no counts"):
        tune(replace(LISTS, counts=None))
    with pytest.raises(HopefearError, match="did you mean 'kbmira'"):
        tune(LISTS, "kbmirra")
    with pytest.raises(HopefearError, match="no parameter 'epoch'"):
        tune(LISTS, "kbmira", {"epoch": 3})


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter", Bleu(), Bleu(lowercase=True)])
def test_files_and_objects_are_the_same_lists(tmp_path, metric):
    lists, references = translations(10, 5, seed=8)
    lists[0][0]["text"] = ""
    paths = written(tmp_path, lists, references)
    found = read(*paths, metric=metric, texts=True, dedup="none")
    wanted = lists_in_memory(lists, references, metric=metric)
    np.testing.assert_array_equal(found.counts, wanted.counts)
    np.testing.assert_array_equal(found.dense, wanted.dense)
    assert found.layout == wanted.layout and found.metric == wanted.metric
    assert list(found.texts) == list(wanted.texts)
    judge = tuning_metric(metric)
    texts = [one["text"] for candidates in lists for one in candidates]
    spread = [[ref] for ref in references for _ in range(5)]
    np.testing.assert_array_equal(found.counts, judge.statistics(spread, texts))


def test_evaluation_agrees_with_tuning():
    found = tune(LISTS, "kbmira", FEW)
    judged = evaluate(LISTS, found.weights, samples=20)
    assert judged.model.scores["bleu"] == pytest.approx(found.after["train"])
    apart = compare(LISTS, found.weights, found.start, samples=50)
    difference = found.after["train"] - found.before["train"]
    assert apart["difference"] == pytest.approx(difference)
    with pytest.raises(HopefearError, match="counts of bleu"):
        evaluate(LISTS, found.weights, metric=metric_named("ter"))


def test_weights_to_start_from_stay_where_the_lists_are_silent():
    lists = rich(20)
    first = tune(lists, "kbmira", FEW)
    sparse = {**first.weights.sparse, "s_unseen": 2.0}
    start = replace(first.weights, sparse=sparse, phrases={**first.weights.phrases, "a ||| b": 3.0})
    found = tune(lists, "kbmira", FEW, start=start).weights
    size = np.abs(start.dense).sum()
    assert found.sparse["s_unseen"] == pytest.approx(2.0 / size)
    assert found.phrases["a ||| b"] == pytest.approx(3.0 / size)
    assert bleu(lists, found) == pytest.approx(
        tune(lists, "kbmira", FEW, start=start).after["train"]
    )
    # Names that are too rare get no weight, from wherever it might come.
    rare = tune(lists, "kbmira", FEW, start=start, min_count=1000).weights
    assert rare.sparse.keys() == {"s_unseen"} and rare.phrases.keys() == {"a ||| b"}


def test_weights_to_start_from_stay_where_lists_have_no_sparse_features():
    start = replace(tune(LISTS, "kbmira", FEW).weights, sparse={"a_b": 1.0})
    assert tune(LISTS, "kbmira", FEW, start=start).weights.sparse.keys() == {"a_b"}
    words = replace(start, sparse={"ng_the,house": 1.0})  # lists need not have these to use them
    with pytest.raises(HopefearError, match="some of ngrams, which are not tuned here"):
        tune(LISTS, "kbmira", FEW, start=words)


@pytest.mark.parametrize("group", ["sparse", "phrases"])
def test_weights_to_start_from_that_would_be_lost_are_refused(group):
    lists = rich(8)
    dense = tune(lists, "kbmira", FEW, features=["dense"]).weights
    start = replace(dense, **{group: {"a_b" if group == "sparse" else "a ||| b": 1.0}})
    with pytest.raises(HopefearError, match=f"some of {group}, which are not tuned here"):
        tune(lists, "kbmira", FEW, start=start, features=["dense"])
