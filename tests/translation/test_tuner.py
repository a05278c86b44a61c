"""The estimator for tuning: what it takes, finds, answers, keeps and refuses."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tuning_lists import rich, written
from tuning_plain import small_lists

import hopefear
from hopefear import Tuner
from hopefear.metrics.lists import Bleu
from hopefear.translation.examples import translations
from hopefear.translation.lists import lists_in_memory
from hopefear.translation.weights import Weights

pytestmark = pytest.mark.interpreted

NBEST, REFS = translations(40, 8, seed=3)
HELD, HELD_REFS = translations(30, 8, seed=4)
FEW = {"epochs": 3, "C": 0.05}


def texts(nbest, positions):
    return [one[int(c)]["text"] for one, c in zip(nbest, positions, strict=True)]


def test_objects_arrays_and_files_are_tuned_alike(tmp_path):
    tuner = Tuner(**FEW).fit(NBEST, REFS)
    paths = written(tmp_path, NBEST, REFS)
    for args in (
        (lists_in_memory(NBEST, REFS),),
        (lists_in_memory(NBEST), REFS),
        (lists_in_memory(NBEST), [[ref] for ref in REFS]),
        (NBEST, paths[1]),
        (NBEST, [paths[1]]),
        (NBEST, str(paths[1])),
        paths,
        ([str(paths[0])], [paths[1]]),
    ):
        again = Tuner(**FEW).fit(*args)
        assert again.weights_.layout == tuner.weights_.layout
        np.testing.assert_array_equal(again.weights_.dense, tuner.weights_.dense)
        assert again.tuning_.after == tuner.tuning_.after
    assert tuner.tuning_.before["train"] < tuner.tuning_.after["train"]
    assert len(tuner.history_) == 3


def test_answers_agree_with_each_other(tmp_path):
    tuner = Tuner(**FEW).fit(NBEST, REFS)
    paths = written(tmp_path, HELD, HELD_REFS)
    points = tuner.decision_function(HELD)
    chosen = tuner.choose(HELD)
    assert [len(one) for one in points] == [8] * 30
    assert chosen.tolist() == [int(np.argmax(one)) for one in points]
    assert tuner.predict(HELD) == texts(HELD, chosen) == tuner.predict(paths[0])
    several = tuner.predict_nbest(HELD, 3)
    order = [np.argsort(-one, kind="stable")[:3] for one in points]
    assert several == [
        [one[c]["text"] for c in best.tolist()] for one, best in zip(HELD, order, strict=True)
    ]
    assert [one[0] for one in several] == tuner.predict(lists_in_memory(HELD))
    bleu = Bleu(tokenize="none")
    wanted = bleu.scores(bleu.total([[r] for r in HELD_REFS], tuner.predict(HELD)))
    for nbest, refs in ((HELD, HELD_REFS), paths, (lists_in_memory(HELD, HELD_REFS), None)):
        assert tuner.score(nbest, refs) == pytest.approx(wanted["bleu"])
    judged = tuner.evaluate(HELD, HELD_REFS, samples=20)
    assert judged.model.scores["bleu"] == pytest.approx(wanted["bleu"])


def test_metrics_of_which_less_is_better_are_told_with_a_minus_sign():
    tuner = Tuner(metric="ter", **FEW).fit(NBEST, REFS)
    assert tuner.score(NBEST, REFS) == pytest.approx(-tuner.tuning_.after["train"])
    assert tuner.tuning_.after["train"] < tuner.tuning_.before["train"]


def test_several_references_and_tokenised_bleu():
    refs = [[ref, " ".join(ref.split()[::-1])] for ref in REFS]
    two = Tuner(**FEW).fit(NBEST, refs)
    assert two.tuning_.after["train"] >= Tuner(**FEW).fit(NBEST, REFS).tuning_.after["train"] - 5
    assert two.score(NBEST, refs) > two.score(NBEST, [r[1] for r in refs])
    mixed = [ref if i % 2 else ref[0] for i, ref in enumerate(refs)]
    assert Tuner(metric=Bleu(), **FEW).fit(NBEST, mixed).tuning_.metric.tokenize == "13a"


def test_parameters_are_the_estimators_and_the_learners():
    tuner = Tuner("mira", seeds=2, random_state=5, C=0.01)
    assert tuner.get_params()["C"] == 0.01 and tuner.get_params()["seeds"] == 2
    other = clone(tuner).set_params(C=0.02, metric="ter", background="none")
    assert other.get_params()["C"] == 0.02 and other.get_params()["background"] == "none"
    assert other.metric == "ter"
    assert "C=0.01" in repr(tuner) and "background" not in tuner.get_params()
    start = Weights((("LM0", 1),), [1.0])
    assert clone(Tuner(start=start)).start == start
    with pytest.raises(ValueError, match="did you mean"):
        Tuner("kbmira", epoch=3).fit(NBEST, REFS)
    with pytest.raises(NotFittedError):
        Tuner().predict(NBEST)


def test_seeds_and_held_out_lists():
    tuner = Tuner(seeds=2, random_state=5, held_out=0.25, **FEW).fit(NBEST, REFS)
    assert [run.seed for run in tuner.tuning_.runs] == [5, 6]
    assert set(tuner.tuning_.after) == {"train", "dev"}
    events = []
    dev = (HELD, HELD_REFS)
    told = Tuner(callbacks=[events.append], **FEW).fit(NBEST, REFS, dev=dev)
    same = Tuner(**FEW).fit(NBEST, REFS, dev=lists_in_memory(HELD, HELD_REFS))
    assert told.weights_ == same.weights_ and events == told.history_
    assert told.score(HELD, HELD_REFS) == pytest.approx(told.tuning_.after["dev"])
    with pytest.raises(ValueError, match=r"expected \(nbest, refs\)"):
        Tuner().fit(NBEST, REFS, dev=[HELD])
    with pytest.raises(ValueError, match="seeds"):
        Tuner(seeds=0).fit(NBEST, REFS)


def test_a_line_for_every_round(capsys):
    Tuner(verbose=1, **FEW).fit(NBEST, REFS, dev=(HELD, HELD_REFS))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and lines[0].startswith("epoch 1, train bleu ")
    assert ", dev bleu " in lines[0]


def test_a_further_round_starts_from_the_weights_there_are():
    tuner = Tuner(**FEW).partial_fit(NBEST, REFS)
    first = tuner.weights_
    assert first == Tuner(**FEW).fit(NBEST, REFS).weights_
    tuner.partial_fit(HELD, HELD_REFS)
    wanted = Tuner(start=first, **FEW).fit(HELD, HELD_REFS).weights_
    np.testing.assert_array_equal(tuner.weights_.dense, wanted.dense)
    assert tuner.tuning_.start.dense == pytest.approx(first.dense / np.abs(first.dense).sum())


def test_names_that_were_not_tuned_again_keep_their_weights():
    lists, fewer = rich(20), rich(5, seed=2, names=6)
    tuner = Tuner(**FEW).fit(lists)
    before = tuner.weights_
    size = np.abs(before.dense).sum()  # proportions are what weights are
    tuner.partial_fit(fewer)
    tuned = tuner.tuning_.features
    names = {tuned.name(j) for j in range(tuned.size)}
    assert len(before.sparse) > 6
    for name, value in before.sparse.items():
        if name not in names:
            assert tuner.weights_.sparse[name] == pytest.approx(value / size)
    assert before.phrases.keys() - names <= tuner.weights_.phrases.keys()


@pytest.mark.parametrize("name", ["w.txt", "w.json", "moses.ini"])
def test_weights_come_back_from_files(tmp_path, name):
    lists = rich(10)
    tuner = Tuner(**FEW).fit(lists)
    tuner.save(tmp_path / name)
    again = Tuner.load(tmp_path / name, metric="bleu", **FEW)
    assert again.learner == "kbmira"
    assert again.weights_.sparse == tuner.weights_.sparse
    assert again.predict(lists) == tuner.predict(lists)
    assert again.score(lists) == tuner.score(lists)
    from_file = Tuner(start=tmp_path / name, **FEW).fit(lists)
    np.testing.assert_array_equal(from_file.weights_.dense, again.partial_fit(lists).weights_.dense)
    with pytest.raises(ValueError, match=r"no\.txt"):
        Tuner.load(tmp_path / "no.txt")


def test_names_with_and_without_underscores_keep_their_kind_in_files(tmp_path):
    nbest, refs = translations(20, 6, seed=2)
    for candidates in nbest:
        for c, one in enumerate(candidates):
            one["features"]["lm_small"] = float(c)
            if c % 2:
                one["features"]["odd"] = 1.0
    tuner = Tuner(**FEW).fit(nbest, refs)
    assert ("lm_small", 1) in tuner.weights_.layout and "odd" in tuner.weights_.sparse
    path = written(tmp_path, nbest, refs)[0]
    assert tuner.predict(path) == tuner.predict(nbest)
    tuner.save(tmp_path / "w.txt")
    assert Tuner.load(tmp_path / "w.txt").predict(nbest) == tuner.predict(nbest)


def test_phrase_pairs_need_the_sentences_that_were_translated(tmp_path):
    nbest, refs, source = (tmp_path / name for name in ("n", "r", "s"))
    nbest.write_text(
        "0 ||| a b c d ||| LM0= -1 ||| -1 ||| 0=0-1 1=2-3\n"
        "0 ||| a b c e ||| LM0= -1 ||| -2 ||| 0=0-1 1=2-3\n"
        "1 ||| a b c d ||| LM0= -1 ||| -1 ||| 0=0-1 1=2-3\n"
        "1 ||| a b c e ||| LM0= -1 ||| -2 ||| 0=0-1 1=2-3\n"
    )
    refs.write_text("a b c e\na b c e\n")
    source.write_text("x y\nx y\n")
    with pytest.raises(ValueError, match="name dense too"):
        Tuner("perceptron", features=["phrases"]).fit(nbest, refs, source=source)
    tuner = Tuner("perceptron", features=["dense", "phrases"]).fit(nbest, refs, source=source)
    assert set(tuner.weights_.phrases) == {"y ||| c d", "y ||| c e"}
    assert tuner.predict(nbest, source=source) == ["a b c e"] * 2
    assert tuner.score(nbest, refs, source=source) == pytest.approx(100.0)
    with pytest.raises(ValueError, match="phrase pairs"):
        tuner.predict(nbest)
    with pytest.raises(ValueError, match="'phrases'"):
        Tuner().fit(NBEST, REFS, source=source)
    pairs = [[("a b c d", {"LM0": -1.0}, 0.0, [("y", "c d")])]]
    dense, pair = tuner.weights_.dense[0], tuner.weights_.phrases["y ||| c d"]
    assert tuner.decision_function(pairs)[0][0] == pytest.approx(pair - dense)


def test_copies_and_pickles_answer_the_same():
    tuner = Tuner(**FEW).fit(NBEST, REFS)
    for other in (copy.deepcopy(tuner), pickle.loads(pickle.dumps(tuner))):
        assert other.weights_ == tuner.weights_ and other.predict(HELD) == tuner.predict(HELD)
    assert hopefear.Tuner is Tuner and "Tuner" in dir(hopefear)


@pytest.mark.parametrize(
    ("nbest", "refs", "said"),
    [
        ("no-such-file", "no-such-refs", "no-such"),
        ("no-such-file", ["a", 3], "files of references"),
        (NBEST, None, "give refs"),
        (NBEST, REFS[:-1], "40 lists .* references for 39"),
        (NBEST, [*REFS, "more"], "references for 41"),
        (NBEST, [*REFS[:-1], ""], r"references\[39\] is empty"),
        (NBEST, [*REFS[:-1], []], r"references\[39\]: expected a text"),
        (NBEST, [*REFS[:-1], 3], r"references\[39\]: expected a text"),
        (NBEST, 3, "expected texts or files"),
        ([[]], ["a"], "list 0 has no candidates"),
        ([3], ["a"], "list 0: expected a list"),
        ({}, ["a"], "expected lists of candidates"),
        ([], [], "at least one list"),
        ([["a"]], ["a"], "list 0, candidate 0: expected a dict"),
        ([[{"txt": "a"}]], ["a"], "no key 'txt'"),
        ([[{"text": 3}]], ["a"], "expected a text"),
        ([[("a", [1.0])]], ["a"], "features in a dict"),
        ([[("a", {"x": "y"})]], ["a"], "feature 'x' must be a finite number"),
        ([[("a", {"x": float("nan")})]], ["a"], "finite"),
        ([[("a", {"x": 1.0}, float("inf"))]], ["a"], "score must be"),
        ([[("a", {"x": []})]], ["a"], "has no number"),
        ([[("a", {3: 1.0})]], ["a"], "names of features"),
        ([[("a", {"x": [1, 2]}), ("b", {"x": [1]})]], ["a"], "candidate 1: expected 2 numbers"),
        ([[("a", {"x": [1, 2]}), ("b", {})]], ["a"], "a sparse feature has one"),
        ([[("a", {}, 0.0, [("x",)])]], ["a"], "phrase pair"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(nbest, refs, said):
    with pytest.raises(ValueError, match=said):
        Tuner().fit(nbest, refs)


def test_lists_of_another_decoder_are_refused():
    tuner = Tuner(**FEW).fit(NBEST, REFS)
    with pytest.raises(ValueError, match="'LM0'"):
        tuner.predict([[("a", {"XM0": 1.0})]])
    with pytest.raises(ValueError, match="texts=True"):
        tuner.predict(replace(small_lists(), texts=()))
    with pytest.raises(ValueError, match="has counts of bleu, and tuning is by ter"):
        tuner.set_params(metric="ter").score(small_lists())


def test_unicode_and_empty_hypotheses():
    right = "🙂 ça va bien ü"
    nbest = [[("ça va bien ü", {"LM0": 1.0}), ("", {"LM0": 2.0}), (right, {"LM0": 0.5})]]
    tuner = Tuner("perceptron", start="uniform", rate=1.0).fit(nbest, [right])
    assert tuner.predict(nbest) == [right]
    lists = lists_in_memory(nbest, [right])
    assert lists.counts[1].tolist() == [0] * 8 + [0, 5]
