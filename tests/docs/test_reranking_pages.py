"""The pages about reranking: examples run, commands parse, tables are complete, theory holds."""

from __future__ import annotations

import re
from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest
from doc_pages import (
    named_tests_exist,
    table,
    text_of,
)
from list_oracle import tiny_lists

from hopefear.core.learner import part_name
from hopefear.core.workspace import DenseWeights, Example
from hopefear.costs.regret import Regret
from hopefear.data.lists.objects import ListReader
from hopefear.data.lists.trees import parse_trees
from hopefear.features.lists.extraction import EXPECTED, consensus_keys, consensus_names
from hopefear.features.lists.numbering import key_of
from hopefear.features.trees import FAMILIES
from hopefear.features.trees.families import EXTENSIONS
from hopefear.losses.hope_fear import HopeFear
from hopefear.losses.ramp import Ramp
from hopefear.metrics.lists import LIST_METRICS
from hopefear.recipes import LIST_RECIPES, LOSSES, Recipe
from hopefear.structures.nbest import NBest
from hopefear.tasks.base import train
from hopefear.tasks.rerank.prepare import dataset
from hopefear.tasks.rerank.task import Reranking

PAGE = text_of("docs/reranking.md")


def test_the_table_of_learners_is_that_of_the_recipes():
    expected = {}
    for name, made in LIST_RECIPES.items():
        if isinstance(made, Recipe):
            expected[name] = [
                *map(part_name, (made.loss, made.rule, made.averaging)),
                made.update_on,
            ]
        else:
            assert made.loss is not None
            expected[name] = [part_name(made.loss), "batch", "last", "all at once"]
    shown = table(PAGE, "learner | loss")
    assert {name: cells[:4] for name, cells in shown.items()} == expected


def test_every_loss_that_lists_can_have_is_described():
    assert set(table(PAGE, "loss | candidates")) == set(LOSSES) - {"swvp"}
    theory = text_of("docs/theory.md").split("\n## Candidate lists\n")[1]
    named = set(re.findall(r"`([a-z-]+)`", theory.split("### Losses on lists")[1]))
    assert {part_name(made.loss) for made in LIST_RECIPES.values()} - {"linear"} <= named


def test_every_family_of_tree_features_is_described():
    shown = table(PAGE, "family")
    assert tuple(shown) == FAMILIES
    assert {name for name, cells in shown.items() if "our own" in cells[0]} == set(EXTENSIONS)


def test_metrics_and_their_options_are_those_there_are():
    shown = {
        name: re.findall(r"`([a-z_]+)`", re.sub(r"\([^)]*\)", "", cells[2].strip("| ")))
        for name, cells in table(PAGE, "`--metric`").items()
    }
    expected = {name: [f.name for f in fields(kind)] for name, kind in LIST_METRICS.items()}
    assert shown == expected


def test_tests_that_the_theory_names_exist():
    named_tests_exist("Candidate lists", 12)


def test_what_all_candidates_share_changes_nothing():
    rng = np.random.default_rng(3)
    X = [
        [{f"f{j}": int(rng.integers(-2, 3)) for j in range(5)} for _ in range(4)] for _ in "ab" * 9
    ]
    y = rng.random((len(X), 4)).tolist()
    shifted = [
        [{name: value + i % 3 for name, value in one.items()} | {"same": i} for one in candidates]
        for i, candidates in enumerate(X)
    ]
    found = []
    for lists in (X, shifted):
        data = dataset(ListReader(False).read(lists, y), "named")
        weights = train(Reranking(), data, "perceptron", epochs=3, dtype=np.float64).model.weights
        found.append(dict(zip(data.features.names(range(5)), weights.tolist(), strict=True)))
        assert data.features.size == 5  # what is the same for all is no feature at all
    assert found[0] == pytest.approx(found[1], abs=1e-9)
    assert any(found[0].values())


def test_ramp_and_hope_fear_differ_by_twice_the_hope():
    rows, structure = tiny_lists(2), NBest(6)
    rng, costly = np.random.default_rng(4), 0
    for i in range(len(rows.weights)):
        for w in rng.normal(size=(5, 6)):
            first, after = rows.starts[i : i + 2]
            prices = rows.costs[first:after] - rows.costs[first + rows.oracles[i]]
            values, directions = [], []
            for loss in (Ramp(Regret()), HopeFear(Regret())):
                x, work = Example(rows, i), structure.workspace(rows, loss, np.float64)
                structure.score(x, DenseWeights(w), work.theta)
                loss.subgradient(structure, x, work)
                values.append(work.loss[0] / rows.weights[i])
                directions.append(work.mu.parts[: after - first].copy())
            hope = prices[np.argmax(work.theta.points[: after - first] - prices)]
            assert values[0] - values[1] == pytest.approx(2.0 * hope, abs=1e-9)
            assert values[1] >= -1e-12
            np.testing.assert_allclose(directions[0], directions[1], atol=1e-12)
            costly += hope > 0.0
    assert costly >= 3


def brackets(text):
    """Labels and spans of a tree but its root and its tags, by a stack."""
    found, stack, at = [], [], 0
    for token in re.findall(r"\(|\)|[^\s()]+", text):
        if token == "(":
            stack.append([None, at])
        elif token == ")":
            label, begin = stack.pop()
            if stack and label is not None and label[1]:
                found.append((label[0], begin, at))
        elif stack[-1][0] is None:
            stack[-1][0] = (token, False)
            if len(stack) > 1:
                stack[-2][0] = (stack[-2][0][0], True)
        else:
            at += 1
    return found


def test_consensus_is_the_f_of_expected_counts():
    texts = [
        "(S1 (S (NP (DT a) (NN b)) (VP (VBZ c) (NP (NN d)))))",
        "(S1 (S (NP (DT a)) (VP (NN b) (VBZ c) (NP (NN d)))))",
        "(S1 (FRAG (NP (DT a) (NN b)) (VBZ c) (NN d)))",
        "(S1 (S (NP (DT a) (NN b)) (VP (VBZ c) (NN d))))",
        "(S1 (S (NP (NN a)) (VP (VBZ c))))",
    ]
    scores, inverse_temperature, starts = (
        np.array([-1.0, -3.0, -2.0, -1.5, 0.0]),
        0.4,
        np.array([0, 4, 5]),
    )
    keyed = consensus_keys(parse_trees(texts), starts, scores, inverse_temperature)
    names = consensus_names(["S", "NP", "VP", "FRAG"])
    for begin, end in pairwise(starts.tolist()):
        P = np.exp(inverse_temperature * scores[begin:end])
        P /= P.sum()
        trees = [brackets(text) for text in texts[begin:end]]
        mean = sum(p * len(tree) for p, tree in zip(P, trees, strict=True))
        for c, tree in enumerate(trees, begin):
            span = slice(keyed.indptr[c], keyed.indptr[c + 1])
            keys, values = keyed.keys[span].tolist(), keyed.values[span].tolist()
            shares = [sum(p for p, other in zip(P, trees, strict=True) if b in other) for b in tree]
            wanted = 200.0 * sum(shares) / (len(tree) + mean)
            assert values[keys.index(key_of(EXPECTED))] == pytest.approx(wanted, rel=1e-6)
            counted = [names[key].split("|")[1:] for key in keys if key != key_of(EXPECTED)]
            assert sorted(label for label, _ in counted) == sorted(b[0] for b in tree)
            for (_, interval), share in zip(
                sorted(counted, key=lambda one: float(one[1].split("-")[0])),
                sorted(shares),
                strict=True,
            ):
                low, high = map(float, interval.split("-"))
                assert low - 1e-9 <= share <= high + 1e-9
