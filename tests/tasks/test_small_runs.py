"""One small run of every task, interpreted: its default learner, early stopping, probabilities.

`make check` runs this, so that whatever a run goes through is seen there.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from hopefear import Classifier, Parser, Reranker, Tagger, load
from tests.support import small_trees

pytestmark = [pytest.mark.interpreted, pytest.mark.filterwarnings("ignore:overflow")]
quick = small_trees.quick
HELD_OUT = {"early_stopping": True, "validation_fraction": 0.25, "random_state": 1}


def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6)) * (rng.random((80, 6)) < 0.7)
    return X, (X @ np.array([[2, 0, -2], [0, 2, -2]]).repeat(3, 0)).argmax(axis=1)


def texts():
    rng = np.random.default_rng(1)
    words = {"hope": ["bright", "morning", "sails"], "fear": ["dark", "night", "cliffs"]}
    y = rng.choice(list(words), 60).tolist()
    X = [
        " ".join(rng.choice([*words[name], "the", "sea", f"ship{k}"], 5))
        for k, name in enumerate(y)
    ]
    return X, y


def sentences():
    bank = small_trees.small_treebank(40, seed=2)
    words, tags = (bank.sentences.columns[name].texts() for name in ("form", "upos"))
    pairs = list(zip(bank.starts[:-1].tolist(), bank.starts[1:].tolist(), strict=True))
    return [words[a:b] for a, b in pairs], [tags[a:b] for a, b in pairs]


def trees():
    X, tags = sentences()
    bank = small_trees.small_treebank(40, seed=2)
    tokens = [list(zip(*pair, strict=True)) for pair in zip(X, tags, strict=True)]
    heads = list(zip(bank.heads.tolist(), bank.relations.texts(), strict=True))
    ends = np.cumsum([len(x) for x in X]).tolist()
    return tokens, [heads[end - len(x) : end] for x, end in zip(X, ends, strict=True)]


def lists():
    rng = np.random.default_rng(3)
    X, y = [], []
    for _ in range(40):
        values = rng.integers(0, 4, (4, 3))
        X.append([{f"f{k}": float(v) for k, v in enumerate(row)} for row in values])
        y.append((values @ [-2, 1, 0] + 9.0).tolist())  # costs: much of f0 is good
    return X, y


RUNS = {
    "classify": (Classifier(epochs=3, **HELD_OUT), rows, 0.75),
    "votes": (Classifier("vrda", epochs=3, **HELD_OUT), rows, 0.7),
    "texts": (Classifier(epochs=3, ngrams=2, **HELD_OUT), texts, 0.8),
    "tag": (Tagger(epochs=3, **HELD_OUT), sentences, 0.9),
    "parse": (Parser(epochs=3, order=1, features="light", hash_bits=12, **HELD_OUT), trees, 0.8),
    "rerank": (Reranker(epochs=3, **HELD_OUT), lists, None),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_learns_stops_and_comes_back_from_its_file(name, tmp_path):
    estimator, data, least = RUNS[name]
    X, y = data()
    model = clone(estimator).fit(X[:-10], y[:-10])
    score, again = model.score(X[-10:], y[-10:]), clone(estimator).fit(X[:-10], y[:-10])
    if least is None:  # minus the mean cost, and what chance and the best would have
        chance, best = (-np.mean([f(costs) for costs in y[-10:]]) for f in (np.mean, np.min))
        least = chance + 0.8 * (best - chance)
    assert score >= least
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    predicted = [np.asarray(one.predict(X), object).tolist() for one in (model, again, loaded)]
    assert predicted[0] == predicted[1] == predicted[2]
