"""Reasons of a parser: features are named as the kernel numbers them, and gains add up."""

from __future__ import annotations

from itertools import product

import pytest

from hopefear.core.workspace import Example
from hopefear.errors import HopefearError
from hopefear.features.arcs import naming
from tests.support import small_trees
from tests.support.small_trees import dataset, train

pytestmark = [pytest.mark.interpreted, pytest.mark.filterwarnings("ignore:overflow")]
quick = small_trees.quick


@pytest.fixture(scope="module")
def bank():
    return small_trees.written_treebank(4, seed=3)


@pytest.fixture(scope="module", params=[(1, "nonprojective"), (2, "projective")])
def model(request, bank):
    order, tree = request.param
    features = "light" if order == 1 else "standard"
    data = dataset(bank, order, tree, features=features, hash_bits=12)
    return train(data, "perceptron", epochs=1).model


def test_names_have_the_keys_of_the_kernel(bank):
    data = dataset(bank, order=1)
    component, i = data.features.component(), 1
    x, pad = Example(data.rows, i), component.new_buffer(data.rows)
    sentence = naming.Sentence(data.features, bank.sentences, i)
    n = sentence.n

    def same(part, count):
        assert [key for _, key in sentence.features_of(part)] == pad.keys[:count].tolist(), part

    for h, m in product(range(n + 1), range(1, n + 1)):
        if h == m:
            continue
        same(naming.arc_part("arc", h, m), component.arc_keys(x, h, m, pad))
        same(naming.arc_part("label", h, m), component.label_keys(x, h, m, pad))
        same(naming.last_part(h, m, n), component.outermost_child_keys(x, h, m, pad))
        between = (h + m) // 2
        for s in {0, between} - {h, m}:
            same(naming.sibling_part(h, s, m), component.sibling_keys(x, h, s, m, pad))
        for g in {0, 1, between, n} - {h, m} if h else ():
            same(naming.grandparent_part(g, h, m), component.grandparent_keys(x, g, h, m, pad))


def test_features_of_tags_are_those_of_arcs(bank):
    data = dataset(bank, order=1)
    sentence = naming.Sentence(data.features, bank.sentences, 0)
    listed = {family: dict(naming.tag_features(data.features, family)) for family in
              ("arc", "label")}  # fmt: skip
    hits = 0
    for family, m in product(listed, range(1, sentence.n + 1)):
        for name, key in sentence.features_of(naming.arc_part(family, int(bank.heads[m - 1]), m)):
            if name in listed[family]:
                assert listed[family][name] == key
                hits += 1
    assert hits > 20


def test_gains_add_up_to_the_difference_of_the_scores(model, bank):
    one = bank.take([0])
    best = model.parse(one)[0]
    for word in range(one.n_tokens):
        try:
            reason = model.explain(bank, 0, word)
        except HopefearError as error:
            assert "no other head of this word is looked at" in str(error)  # noqa: PT017 - whether there is one, the pruner says
            continue
        assert reason.label[0] == best[word] != reason.runner_up[0]
        allowed = [None] * one.n_tokens
        allowed[word] = [reason.runner_up[0]]
        runner_up = model.encode(one, allowed)
        scores = [model.decoder().scores(rows)[0] for rows in (model.encode(one).rows,
                                                               runner_up.rows)]  # fmt: skip
        assert reason.gap == pytest.approx(scores[0] - scores[1], abs=1e-3)
        assert reason.gap > -1e-3
        if word == 0:
            names = [name for name, _ in reason.contributions]
            assert any("h.tag=" in name and "m.tag=" in name for name in names)


def test_there_must_be_something_to_explain(model, bank):
    with pytest.raises(HopefearError, match="no word 1 in a sentence 9"):
        model.explain(bank, 8, 0)
    with pytest.raises(HopefearError, match="no word"):
        model.explain(bank, 0, 500)


def test_the_heaviest_features_of_tags_are_listed(model):
    rows = model.heaviest_features(4)
    assert [abs(row[2]) for row in rows] == sorted((abs(row[2]) for row in rows), reverse=True)
    assert all("tag=" in row[0] or "coarse=" in row[0] for row in rows) and len(rows) == 4
