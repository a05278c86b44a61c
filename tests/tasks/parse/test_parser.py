"""The estimator ``Parser``: what it reads, what it answers, what it refuses."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_predict

import hopefear
from hopefear import Parser
from hopefear.data.treebank import Treebank
from hopefear.errors import HopefearError
from hopefear.tasks.estimator import ArgumentError
from hopefear.tasks.parse.estimator import sentences_of
from tests.support import small_trees

pytestmark = [pytest.mark.interpreted, pytest.mark.filterwarnings("ignore:overflow")]
quick = small_trees.quick
X = [[("the", "D"), ("cat", "N"), ("sleeps", "V")], [("dogs", "N"), ("bark", "V")]]
Y = [[(2, "det"), (3, "nsubj"), (0, "root")], [(2, "nsubj"), (0, "root")]]
SMALL = {"order": 1, "features": "light", "hash_bits": 12, "epochs": 2}


@pytest.fixture(scope="module")
def parser():
    return Parser("perceptron", **SMALL).fit(X, Y)


def test_trees_are_given_and_found_in_several_forms(parser):
    assert parser.predict(X) == Y and parser.relations_ == ("det", "nsubj", "root")
    pairs = [([2, 3, 0], ["det", "nsubj", "root"]), ([2, 0], ["nsubj", "root"])]
    assert parser.score(X, Y) == parser.score(X, pairs) == 1.0
    rows = [[{"form": word, "xpos": tag} for word, tag in sentence] for sentence in X]
    full = [[(word, "_", "", tag, "_") for word, tag in sentence] for sentence in X]
    for other in (rows, full):
        assert parser.predict(other) == Y
    heads = Parser("perceptron", **SMALL).fit([["It", "rains"]], [[2, 0]])
    assert heads.predict([["It", "rains"]]) == [[2, 0]] and heads.relations_ == ()
    assert heads.score([["It", "rains"]], [[0, 1]]) == 0.0


def test_treebanks_will_do(parser):
    bank = small_trees.written_treebank(12, seed=1)
    parser = Parser("perceptron", **SMALL, early_stopping=True, validation_fraction=0.4).fit(bank)
    assert parser.best_epoch_ is not None and len(parser.predict(bank)) == 12
    assert parser.metrics(bank)["words"] == bank.n_tokens


def test_the_n_best_and_probabilities(parser):
    (trees, _) = parser.predict_nbest(X, 3)
    assert trees[0].tree == Y[0] and [t.score for t in trees] == sorted(
        (t.score for t in trees), reverse=True
    )
    words = parser.predict_marginals(X)[0]
    assert [sum(word.values()) for word in words] == pytest.approx([1.0] * 3)


def test_it_is_a_scikit_learn_estimator(parser):
    copy = clone(parser)
    assert copy.get_params() == parser.get_params() and copy.fit(X, Y).predict(X) == Y
    assert copy.to_bytes() == parser.to_bytes()
    for cv in (2, 4):  # some folds have sentences of one length
        found = cross_val_predict(Parser("perceptron", **SMALL), X * 2, Y * 2, cv=cv)
        assert (found.shape, found.dtype) == ((4,), object)
        assert found.tolist() == Y * 2
    for other in (pickle.loads(pickle.dumps(parser)), Parser.from_bytes(parser.to_bytes())):
        assert other.predict(X) == Y


def test_a_file_gives_the_estimator(parser, tmp_path):
    parser.save(tmp_path / "m")
    loaded = hopefear.load(tmp_path / "m")
    assert isinstance(loaded, Parser) and loaded.predict(X) == Y
    assert (loaded.order, loaded.tree, loaded.learner) == (1, "projective", "perceptron")
    with pytest.raises(hopefear.HopefearError, match="cannot go on"):
        loaded.partial_fit(X, Y)


@pytest.mark.parametrize("order", [1, 2])
def test_streams(order):
    parser = Parser("perceptron", **{**SMALL, "order": order})
    for _ in range(3):
        parser.partial_fit(X, Y)
    assert parser.predict(X) == Y
    # A head that the first data would not have looked at.
    parser.partial_fit([[("the", "D"), ("cat", "N"), ("sleeps", "V")]], [
        [(3, "det"), (3, "nsubj"), (0, "root")]
    ])  # fmt: skip
    with pytest.raises(ArgumentError, match="the relation 'obj' is not among"):
        parser.partial_fit(X[1:], [[(2, "obj"), (0, "root")]])


def test_tags_of_a_tagger():
    words = [[word for word, _ in sentence] for sentence in X]
    tags = [[tag for _, tag in sentence] for sentence in X]
    tagger = hopefear.Tagger("perceptron", epochs=3).fit(words, tags)
    parser = Parser("perceptron", **SMALL, tagger=tagger).fit(words, Y)
    assert parser.predict(words) == Y and parser.features_.tags == ("D", "N", "V")


def test_what_a_parser_learned_from_must_be_there(tmp_path):
    words = [[word for word, _ in sentence] for sentence in X]
    parser = Parser("perceptron", **SMALL).fit(X, Y)
    for ask in (parser.predict, parser.predict_nbest, lambda words: parser.score(words, Y)):
        with pytest.raises(ArgumentError, match=r"X has no tags in the column xpos.*a tagger"):
            ask(words)
    with pytest.raises(HopefearError, match="no tags in the column xpos"):
        parser.model_.parse(Treebank.bare(sentences_of(words)))
    parser.predict([])
    Parser("perceptron", **SMALL).fit(words, Y).predict(words)  # has never seen a tag
    rich = [[{"form": w, "xpos": t, "feats": "A=b", "lemma": w} for w, t in s] for s in X]
    Parser("perceptron", order=1, hash_bits=12, epochs=2).fit(rich, Y).save(tmp_path / "m")
    tags = [[tag for _, tag in sentence] for sentence in X]
    tagger = hopefear.Tagger("perceptron", epochs=3).fit(words, tags)
    parser = hopefear.load(tmp_path / "m")
    tagged = Parser.from_model(parser.model_.with_tagger(tagger))
    with pytest.warns(UserWarning, match=r"X has no lemma and feats, .*Parser\(tagger=…\)"):
        assert tagged.predict(words) == Y
    with pytest.warns(UserWarning, match="has no feats, from which"):
        parser.predict([[("dogs", "dog", "N", "N", ""), ("bark", "bark", "V", "V", "")]])


@pytest.mark.parametrize(
    ("X_", "y_", "said"),
    [
        (X, Y[:1], "2 sentences need as many trees, not 1"),
        (X, [Y[0], [(0, "root")]], r"y\[1\] has 1 words, and X\[1\] has 2"),
        (X, [Y[0], [(2, "a"), (1, "b")]], "a cycle"),
        (X, [Y[0], [(3, "a"), (0, "b")]], "a head from 0"),
        (X, [Y[0], [2, 0]], "some have none"),
        (["the cat"], [[0]], "a sentence is a list"),
        ([[("a", "b", "c")]], [[0]], "a word is a string"),
        ([[{"word": "a"}]], [[0]], "the keys of a word"),
        (X, None, "need trees"),
        ([[3]], [[0]], "a word is a string"),
        ([["a"]], [["x"]], "whole numbers"),
    ],
)
def test_bad_input_is_a_value_error(X_, y_, said):
    with pytest.raises(ValueError, match=said):
        Parser("perceptron", **SMALL).fit(X_, y_)


def test_wrong_parameters():
    with pytest.raises(ValueError, match="order must be 1 or 2"):
        Parser(order=3).fit(X, Y)
    with pytest.raises(ValueError, match="did you mean 'order'"):
        Parser("perceptron", ordr=1).fit(X, Y)
    with pytest.raises(ValueError, match="tree"):
        Parser(tree="flat").fit(X, Y)
    assert np.isfinite(Parser("perceptron", **SMALL, rate=0.5).fit(X, Y).model_.weights).all()


def test_relations_that_differ_by_blanks_and_bytes_are_refused():
    trees = [[(2, " det"), (3, "nsubj"), (0, "root")], [(2, "det"), (0, "root")]]
    with pytest.raises(ArgumentError, match="' det' and 'det' differ by white space only"):
        Parser("perceptron", **SMALL).fit(X, trees)
    with pytest.raises(ArgumentError, match=r"X\[0\]: a word consists of strings, not of \(b'the'"):
        Parser("perceptron", **SMALL).fit([[(b"the", "D")]], [[(0, "root")]])
