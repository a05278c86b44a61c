"""Features made from the words of candidates, against plain Python."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from places import DATA, ROOT
from tuning_lists import BLEU, differences, encoded_matrix, matrix, named_values, odd_lists, rich
from tuning_plain import slices

from hopefear.core import component
from hopefear.data.moses.reader import moses_blocks
from hopefear.errors import HopefearError
from hopefear.translation import text_features as derived_module
from hopefear.translation.examples import translations
from hopefear.translation.features import learned
from hopefear.translation.lists import lists_in_memory, read
from hopefear.translation.names import phrase_name
from hopefear.translation.scoring import choice, scores, with_scores
from hopefear.translation.task import corpus_score, tune
from hopefear.translation.text_features import (
    GramCounts,
    GramTable,
    TellingGrams,
    derived,
    needed,
    with_consensus,
    with_ngrams,
)
from hopefear.translation.weights import Weights

LISTS = odd_lists()


def grams(text, n):
    words = text.split()
    return [tuple(words[k : k + n]) for k in range(len(words) - n + 1)]


def plain_consensus(lists, inverse_temperature):
    rows = []
    for s in slices(lists):
        points = [inverse_temperature * float(score) for score in lists.scores[s]]
        shares = [math.exp(point - max(points)) for point in points]
        texts = [lists.texts[c] for c in range(s.start, s.stop)]
        sets = [[set(grams(text, n)) for n in range(1, 5)] for text in texts]
        for one in sets:
            row = []
            for n in range(4):
                having = [p * len(one[n] & other[n]) for p, other in zip(shares, sets, strict=True)]
                row.append(sum(having) / sum(shares))
            rows.append(row)
    return np.array(rows)


def plain_ngrams(lists, orders):
    """Counts by name for each candidate, without n-grams that say nothing in their list."""
    found = []
    for s in slices(lists):
        counts = []
        for c in range(s.start, s.stop):
            text = lists.texts[c]
            counts.append(Counter(g for n in range(1, orders + 1) for g in grams(text, n)))
        for one in counts:
            telling = {g: k for g, k in one.items() if any(other[g] != k for other in counts)}
            found.append({named(g): k for g, k in telling.items()})
    return found


def named(gram):
    return "ng_" + phrase_name("x ||| " + " ".join(gram)).partition("~")[2]


def ng_values(lists, c):
    values = named_values(lists.sparse, c)
    return {name: value for name, value in values.items() if name.startswith("ng_")}


@pytest.mark.parametrize("inverse_temperature", [0.0, 3.0, 40.0])
def test_consensus_is_the_sum_of_posteriors(inverse_temperature):
    found = with_consensus(LISTS, inverse_temperature)
    assert found.layout == (*LISTS.layout, ("Consensus0", 4))
    np.testing.assert_array_equal(found.dense[:, :1], LISTS.dense)
    wanted = plain_consensus(LISTS, inverse_temperature)
    np.testing.assert_allclose(found.dense[:, 1:], wanted, rtol=2e-6, atol=1e-30)


def test_all_agree_with_the_only_candidate_and_none_with_an_empty_one():
    lists = lists_in_memory([[("a a b", {"LM0": 1})], [("", {"LM0": 1}), (" \t", {"LM0": 2})]])
    found = with_consensus(lists).dense[:, 1:].tolist()
    assert found == [[2.0, 2.0, 1.0, 0.0], [0.0] * 4, [0.0] * 4]


@pytest.mark.parametrize("orders", [1, 2, 3, 5])
def test_ngrams_are_counted_where_they_tell_candidates_apart(orders):
    found = with_ngrams(LISTS, orders)
    for c, wanted in enumerate(plain_ngrams(LISTS, orders)):
        assert ng_values(found, c) == wanted


def test_sparse_features_that_were_there_stay():
    found = with_ngrams(LISTS)
    for c in range(LISTS.n_candidates):
        values = named_values(found.sparse, c)
        others = {name: value for name, value in values.items() if not name.startswith("ng_")}
        assert others == named_values(LISTS.sparse, c)
        assert len(values) == found.sparse.indptr[c + 1] - found.sparse.indptr[c]
    uncounted = replace(LISTS, sparse=LISTS.sparse._replace(values=None))
    names = [named_values(with_ngrams(uncounted).sparse, c).get("s_1") for c in range(20)]
    assert set(names) == {None, 1.0}
    bare = with_ngrams(replace(LISTS, sparse=None))
    assert [ng_values(bare, c) for c in range(20)] == [ng_values(found, c) for c in range(20)]


def test_blocks_change_nothing(monkeypatch):
    wanted = derived(LISTS, ["consensus", "ngrams"])
    monkeypatch.setattr(derived_module, "_BLOCK", 3)
    found = derived(LISTS, ["consensus", "ngrams"])
    np.testing.assert_array_equal(found.dense, wanted.dense)
    for name in ("ids", "indptr", "values"):
        mine, theirs = getattr(found.sparse, name), getattr(wanted.sparse, name)
        np.testing.assert_array_equal(mine, theirs)
        assert not mine.flags.writeable
    assert list(found.sparse.names) == list(wanted.sparse.names)


def test_lists_may_be_taken_before_or_after():
    which = np.array([5, 0, 3])
    first = derived(LISTS.take(which), ["consensus", "ngrams"])
    after = derived(LISTS, ["consensus", "ngrams"]).take(which)
    np.testing.assert_array_equal(first.dense, after.dense)
    n = first.n_candidates
    assert [ng_values(first, c) for c in range(n)] == [ng_values(after, c) for c in range(n)]
    part = derived(LISTS.take(np.arange(2, 6)), ["ngrams"])
    whole = derived(LISTS, ["ngrams"]).take(np.arange(2, 6))
    n = part.n_candidates
    assert [ng_values(part, c) for c in range(n)] == [ng_values(whole, c) for c in range(n)]


def test_what_is_wrong_is_said():
    with pytest.raises(HopefearError, match="consensus, ngrams, not 'chars'"):
        derived(LISTS, ["ngrams", "chars"])
    with pytest.raises(HopefearError, match="texts=True"):
        with_ngrams(replace(LISTS, texts=()))
    with pytest.raises(HopefearError, match=r"consensus needs the words .* texts=True"):
        with_consensus(replace(LISTS, texts=()))
    for inverse_temperature in (-1.0, math.nan, math.inf):
        with pytest.raises(HopefearError, match="inverse_temperature"):
            with_consensus(LISTS, inverse_temperature)
    with pytest.raises(HopefearError, match="orders=0"):
        with_ngrams(LISTS, 0)
    both = derived(LISTS, ["consensus", "ngrams"])
    with pytest.raises(HopefearError, match="Consensus0 already"):
        with_consensus(both)
    with pytest.raises(HopefearError, match="ng_… already"):
        with_ngrams(both)
    assert derived(both, ["ngrams", "consensus", "ngrams"]) is both


def test_weights_say_what_they_need():
    layout = (("LM0", 1), ("Consensus0", 4))
    assert needed(Weights(layout[:1], [1.0], {"wt_a": 1.0})) == ()
    assert needed(Weights(layout, np.ones(5))) == ("consensus",)
    assert needed(Weights(layout, np.ones(5), {"ng_a": 1.0})) == ("consensus", "ngrams")


@pytest.mark.parametrize("name", ["weights.txt", "weights.json", "moses.ini"])
def test_names_survive_files_of_weights(tmp_path, name):
    both = derived(LISTS, ["consensus", "ngrams"])
    data = learned(both, BLEU)
    values = np.random.default_rng(1).normal(size=data.features.size)
    weights = Weights.of(data.features, values)
    assert any("%2C" in name for name in weights.sparse)
    weights.write(tmp_path / name)
    again = Weights.read(tmp_path / name)
    assert again == weights and needed(again) == ("consensus", "ngrams")
    # Lists with words only are as good: the rest is made where scores are wanted.
    np.testing.assert_array_equal(scores(LISTS, again), scores(both, weights))
    with pytest.raises(HopefearError, match="texts=True"):
        scores(replace(LISTS, texts=()), weights)


def test_features_learned_on_some_lists_describe_others():
    train, dev = (derived(odd_lists(12, seed=k), ["consensus", "ngrams"]) for k in (1, 2))
    data = learned(train, BLEU, min_count=2)
    assert 0 < data.features.sparse.size < len(train.sparse.names)
    for lists in (train, dev):
        table = encoded_matrix(data.features.encode(lists, BLEU))
        wanted = differences(matrix(lists, data.features), lists)
        np.testing.assert_allclose(differences(table, lists), wanted, atol=1e-5)
    values = np.random.default_rng(3).normal(size=data.features.size)
    weights = Weights.of(data.features, values)
    points = encoded_matrix(data.features.encode(dev, BLEU)) @ values
    wanted = [int(np.argmax(points[s])) for s in slices(dev)]
    assert choice(dev, weights).tolist() == wanted


def test_leaving_out_what_all_have_changes_no_choice():
    rng = np.random.default_rng(5)
    sides = [grams(LISTS.texts[c], n) for c in range(LISTS.n_candidates) for n in (1, 2, 3)]
    sparse = {named(g): float(rng.normal()) for side in sides for g in side}
    points = []
    for c in range(LISTS.n_candidates):
        found = [g for n in (1, 2, 3) for g in grams(LISTS.texts[c], n)]
        points.append(sum(sparse[named(g)] for g in found))
    points = np.array(points)
    mine = scores(LISTS, Weights((), [], sparse))
    for s in slices(LISTS):
        np.testing.assert_allclose(mine[s] - mine[s][0], points[s] - points[s][0], atol=1e-9)


def test_files_are_read_with_them(tmp_path):
    nbest, refs = tmp_path / "n", tmp_path / "r"
    lines = ["0 ||| a  b , ||| LM0= -1 ||| -1", "0 ||| a c ||| LM0= -2 s_1= 1 ||| -1"]
    lines += ["1 |||  ||| LM0= -1 ||| -1", "1 ||| a ||| LM0= -2 ||| -1"]
    nbest.write_text("\n".join(lines) + "\n")
    refs.write_text("a c\na\n")
    lists = read(nbest, refs, derive=["consensus", "ngrams"])
    np.testing.assert_allclose(lists.dense[:, 1:3], [[2.0, 1.0], [1.5, 0.5], [0, 0], [0.5, 0]])
    assert [sorted(named_values(lists.sparse, c)) for c in range(4)] == [
        ["ng_%2C", "ng_a,b", "ng_a,b,%2C", "ng_b", "ng_b,%2C"],
        ["ng_a,c", "ng_c", "s_1"],
        [],
        ["ng_a"],
    ]
    with pytest.raises(HopefearError, match="not 'words'"):
        read(tmp_path / "absent", refs, derive=["words"])
    weights = Weights(lists.layout, np.arange(5.0), {"ng_a": 2.0, "ng_c": -1.0})
    blocks = [scores(b, weights) for b in moses_blocks(nbest, texts=True, block_candidates=1)]
    np.testing.assert_array_equal(np.concatenate(blocks), scores(lists, weights))


def test_a_model_of_them_is_one_feature_of_plain_lists():
    model = Weights((), [], {"ng_the": 1.0})
    found = with_scores(LISTS, {"Words0": model})
    assert found.layout == (("LM0", 1), ("Words0", 1)) and found.dense[:, 1].any()


def test_tuners_take_them():
    lists = derived(rich(15), ["consensus", "ngrams"])
    found = tune(
        lists, "mira", {"epochs": 3, "keep": "last"}, features=["dense", "sparse"], min_count=2
    )
    assert needed(found.weights) == ("consensus", "ngrams")
    plain = rich(15)
    assert corpus_score(plain, found.weights) == pytest.approx(found.after["train"])


@pytest.mark.parametrize("kind", [TellingGrams, GramTable, GramCounts])
def test_fields_of_kernels_bear_no_name_of_a_method(kind):
    # Numba would take them for the methods that learners register on all named tuples.
    assert not set(kind._fields) & set(component._SIGNATURES)


SCRIPT = """
import json, warnings
warnings.simplefilter("error")
from tuning_lists import odd_lists
from hopefear.translation.text_features import derived
found = derived(odd_lists(4, 3), ["consensus", "ngrams"])
names = [found.sparse.names[j] for j in range(len(found.sparse.names))]
print(json.dumps([found.dense.tolist(), names, found.sparse.ids.tolist()]))
"""


def test_interpreted_kernels_do_the_same():
    paths = [str(ROOT / "tests/support"), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, check=True
    )
    dense, names, ids = json.loads(run.stdout)
    found = derived(odd_lists(4, 3), ["consensus", "ngrams"])
    np.testing.assert_allclose(found.dense, dense, rtol=1e-6)
    assert names == [found.sparse.names[j] for j in range(len(found.sparse.names))]
    assert ids == found.sparse.ids.tolist()


@pytest.fixture(scope="module")
def val():
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        pytest.skip("NUMBA_DISABLE_JIT is set, and real lists take compiled kernels")
    folder = DATA / "multi30k-nbest"
    if not (folder / "val.nbest.xz").exists():
        pytest.skip(f"no lists at {folder}; set HOPEFEAR_DATA to a folder with multi30k-nbest")
    return read(folder / "val.nbest.xz", folder / "val.en", texts=True)


def test_real_lists_take_moments(val):
    derived(val.take(np.arange(0, 2)), ["consensus", "ngrams"])
    began = time.process_time()
    found = derived(val, ["consensus", "ngrams"])
    assert time.process_time() - began < 5.0
    some = val.take(np.arange(0, len(val), 300))
    part = found.take(np.arange(0, len(val), 300))
    np.testing.assert_allclose(part.dense[:, -4:], plain_consensus(some, 3.0), rtol=1e-5)
    assert [ng_values(part, c) for c in range(part.n_candidates)] == plain_ngrams(some, 3)


def test_agreement_loses_nothing_on_real_lists(val):
    plain = tune(val, "expected-bleu", start="decoder")
    agreed = tune(with_consensus(val), "expected-bleu", start="decoder")
    assert agreed.after["train"] >= plain.after["train"] - 0.02
    assert np.abs(agreed.weights.dense[-4:]).max() > 0.0


def made_up(n):
    return lists_in_memory(*translations(n, seed=3))


def test_tuning_makes_what_is_asked_of_words():
    found = tune(made_up(30), "kbmira", {"epochs": 3}, features=["dense", "consensus"])
    assert found.weights.names[-4:] == tuple(f"Consensus0.{k}" for k in range(4))
    assert "features:dense+consensus" in found.signature
    assert not found.start.dense[-4:].any() and found.weights.dense[-4:].any()
    more = tune(
        made_up(30),
        "kbmira",
        {"epochs": 3},
        features=["dense", "consensus", "ngrams"],
        start=found.weights,
    )
    assert more.start.dense[-4:].any()
    assert all(name.startswith("ng_") for name in more.weights.sparse)


def test_words_may_get_weights_beside_fixed_ones():
    lists, dev = made_up(30), made_up(10)
    fixed = Weights(lists.layout, [0.2, 0.1, 0.1, -0.5, 0.1])
    few = {"epochs": 3, "C": 0.1}
    found = tune(lists, "kbmira", few, features=["consensus"], fixed=fixed, dev=dev)
    assert found.weights.layout == (*lists.layout, ("Consensus0", 4))
    assert found.weights.dense[:5].tolist() == fixed.dense.tolist()
    assert found.features.layout == (("Consensus0", 4),) == found.start.layout
    assert not found.start.dense.any() and found.weights.dense[5:].any()
    assert found.before["train"] == pytest.approx(corpus_score(lists, fixed))
    assert found.after["train"] == pytest.approx(corpus_score(lists, found.weights))
    assert found.after["dev"] == pytest.approx(corpus_score(dev, found.weights))
    assert "features:consensus|" in found.signature
    # Lists that have the feature already are the same lists.
    again = tune(with_consensus(lists), "kbmira", few, features=["consensus"], fixed=fixed, dev=dev)
    assert again.weights.dense.tolist() == found.weights.dense.tolist()
    with pytest.raises(HopefearError, match="without Consensus0, or start"):
        tune(lists, features=["consensus"], fixed=found.weights)
    more = tune(lists, "kbmira", few, features=["ngrams"], fixed=found.weights)
    assert more.weights.layout == found.weights.layout and more.weights.sparse


def test_a_group_that_nobody_knows_is_refused():
    with pytest.raises(HopefearError, match="dense, sparse, phrases, consensus, ngrams, not 'x'"):
        tune(made_up(4), features=["x"])
