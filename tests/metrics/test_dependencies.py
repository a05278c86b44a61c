"""Scores of trees against the definitions of the shared tasks, written out word by word."""

from __future__ import annotations

import unicodedata
from types import SimpleNamespace

import numpy as np
import pytest

from hopefear.data.grammar import synthetic_treebank
from hopefear.errors import HopefearError
from hopefear.metrics import compare_outputs
from hopefear.metrics.dependencies import (
    CONTENT,
    FEATURES,
    FUNCTIONAL,
    Dependencies,
    Trees,
    tree_errors,
)

pytestmark = pytest.mark.interpreted

RELATIONS = ["nsubj", "nmod", "nmod:poss", "det", "case", "aux", "aux:pass", "punct", "root", "x"]
FORMS = ["the", "cat", ".", "...", "$", "«", "U.S.", "-", "’s"]
FEATS = ["_", "Number=Sing", "Number=Sing|Typo=Yes", "Typo=Yes", "Case=Nom|Number=Sing"]


def drawn(rng: np.random.Generator, lengths: list[int]) -> Trees:
    heads: list[int] = []
    for n in lengths:
        order = (rng.permutation(n) + 1).tolist()
        tree = {m: int(rng.choice([0, *order[:k]])) for k, m in enumerate(order)}
        heads += [tree[m] for m in range(1, n + 1)]
    total = sum(lengths)
    columns = (rng.choice(names, total).tolist() for names in (RELATIONS, FORMS, ["N", "V"], FEATS))
    return Trees(np.cumsum([0, *lengths]), np.array(heads, np.int32), *columns)


def damaged(rng: np.random.Generator, trees: Trees, share: float) -> Trees:
    other = drawn(rng, np.diff(trees.starts).tolist())
    keep = rng.random(len(trees.heads)) > share

    def mixed(mine, theirs):
        return [a if k else b for a, b, k in zip(mine, theirs, keep, strict=True)]

    return trees._replace(
        heads=np.array(mixed(trees.heads, other.heads), np.int32),
        relations=mixed(trees.relations, other.relations),
        upos=mixed(trees.upos, other.upos),
        feats=mixed(trees.feats, other.feats),
    )


def sentences(trees: Trees) -> list[list[SimpleNamespace]]:
    result = []
    for a, b in zip(trees.starts[:-1], trees.starts[1:], strict=True):
        words = [
            SimpleNamespace(
                id=k - a + 1,
                form=trees.forms[k],
                upos=trees.upos[k],
                feats={f for f in trees.feats[k].split("|") if f.split("=")[0] in FEATURES},
                head=int(trees.heads[k]),
                relation=trees.relations[k],
                base=trees.relations[k].split(":")[0],
            )
            for k in range(a, b)
        ]
        for word in words:
            word.children = sorted(
                (c.id, c.base, c.upos, sorted(c.feats))
                for c in words
                if c.head == word.id and c.base in FUNCTIONAL
            )
        result.append(words)
    return result


def share(flags: list[bool]) -> float:
    return 100.0 * sum(flags) / len(flags) if flags else 0.0


def expected(gold: Trees, output: Trees) -> dict[str, float]:
    pairs = [
        list(zip(a, b, strict=True))
        for a, b in zip(sentences(gold), sentences(output), strict=True)
        if a
    ]
    words = [pair for sentence in pairs for pair in sentence]

    def punctuation(word) -> bool:
        return all(unicodedata.category(c).startswith("P") for c in word.form)

    def head(g, s) -> bool:
        return g.head == s.head

    def labelled(g, s) -> bool:
        return g.head == s.head and g.relation == s.relation

    def universal(g, s) -> bool:
        return g.head == s.head and g.base == s.base

    def morphology(g, s) -> bool:
        same = universal(g, s) and g.upos == s.upos and g.feats == s.feats
        return same and g.children == s.children

    def f1(right, chosen) -> float:
        correct = sum(right(g, s) for g, s in words if chosen(g))
        total = sum(chosen(g) for g, _ in words) + sum(chosen(s) for _, s in words)
        return 200.0 * correct / total if total else 0.0

    def content(word) -> bool:
        return word.base in CONTENT

    bare = [(g, s) for g, s in words if not punctuation(g)]
    return {
        "uas": share([head(*p) for p in words]),
        "las": share([labelled(*p) for p in words]),
        "las_universal": share([universal(*p) for p in words]),
        "clas": f1(universal, content),
        "mlas": f1(morphology, content),
        "labels": share([g.relation == s.relation for g, s in words]),
        "uas_nopunct": share([head(*p) for p in bare]),
        "las_nopunct": share([labelled(*p) for p in bare]),
        "trees": share([all(head(*p) for p in s) for s in pairs]),
        "trees_labelled": share([all(labelled(*p) for p in s) for s in pairs]),
        "trees_nopunct": share([all(head(*p) or punctuation(p[0]) for p in s) for s in pairs]),
        "trees_labelled_nopunct": share(
            [all(labelled(*p) or punctuation(p[0]) for p in s) for s in pairs]
        ),
        "roots": f1(head, lambda word: word.head == 0),
        "words": len(words),
        "sentences": len(pairs),
    }


@pytest.mark.parametrize("seed", range(25))
def test_scores_follow_their_definitions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gold = drawn(rng, rng.integers(0, 9, int(rng.integers(1, 8))).tolist())
    output = damaged(rng, gold, float(rng.choice([0.0, 0.1, 0.4, 1.0])))
    metric = Dependencies()
    rows = metric.statistics(gold, output)
    assert rows.shape == (len(gold.starts) - 1, 20)
    assert metric.scores(rows.sum(axis=0)) == pytest.approx(expected(gold, output))


def test_a_tree_by_hand() -> None:
    gold = Trees(
        [0, 6],
        [2, 4, 4, 0, 4, 4],
        ["det", "nsubj", "aux", "root", "obl:tmod", "punct"],
        ["The", "cat", "will", "sleep", "today", "."],
        ["DET", "NOUN", "AUX", "VERB", "NOUN", "PUNCT"],
        ["_"] * 6,
    )
    output = gold._replace(
        heads=[2, 4, 2, 0, 4, 5], relations=["det", "nsubj", "aux", "root", "obl", "punct"]
    )
    metric = Dependencies()
    scores = metric.scores(metric.total(gold, output))
    assert scores["uas"] == pytest.approx(400 / 6) and scores["las"] == 50.0
    assert scores["uas_nopunct"] == 80.0 and scores["las_nopunct"] == 60.0
    assert scores["las_universal"] == pytest.approx(400 / 6)
    assert scores["clas"] == 100.0  # nsubj, root, obl
    assert scores["mlas"] == pytest.approx(100 / 3)  # cat has, sleep lacks the auxiliary
    assert scores["roots"] == 100.0 and scores["trees"] == 0.0


def test_perfect_trees_score_a_hundred_and_nothing_scores_nothing() -> None:
    trees = Trees.of(synthetic_treebank(30, seed=5))
    metric = Dependencies()
    scores = metric.scores(metric.total(trees, trees))
    assert all(scores[name] == 100.0 for name in Dependencies.reads)
    empty = Trees([0, 0], [])
    assert all(value == 0 for value in metric.scores(metric.total(empty, empty)).values())
    dots = Trees([0, 1], [0], ["punct"], ["."])
    scores = metric.scores(metric.total(dots, dots))
    assert scores["clas"] == scores["mlas"] == scores["uas_nopunct"] == 0.0
    assert scores["trees"] == scores["trees_nopunct"] == scores["uas"] == 100.0


def test_many_sums_at_once_and_parts_that_add_up() -> None:
    rng = np.random.default_rng(1)
    gold = drawn(rng, [4, 7, 0, 5])
    output = damaged(rng, gold, 0.5)
    metric = Dependencies()
    rows = metric.statistics(gold, output)
    each = metric.scores(rows)
    assert each["las"].shape == (4,) and each["las"][2] == 0.0
    assert metric.scores(rows.sum(axis=0))["words"] == 16
    assert metric.total(gold, output).tolist() == rows.sum(axis=0).tolist()


def test_which_scores_there_are() -> None:
    assert set(Dependencies().names()) == set(Dependencies.reads)
    assert not {"clas", "mlas", "las_universal"} & set(Dependencies(universal=False).names())
    bare = Dependencies(labelled=False)
    assert bare.names() == ("uas", "uas_nopunct", "trees", "trees_nopunct", "roots")
    trees = Trees([0, 2], [2, 0])
    assert bare.scores(bare.total(trees, trees))["uas"] == 100.0
    signatures = {Dependencies(a, b).signature for a in (True, False) for b in (True, False)}
    assert len(signatures) == 3


@pytest.mark.parametrize(
    "output",
    [
        Trees([0, 2], [0], ["a", "b"]),
        Trees([0, 2], [0, 1], ["a"]),
        Trees([0, 2], [0, 1], ["a", "b", "c"]),
        Trees([0, 2], [0, 1]),
    ],
)
def test_trees_that_do_not_fit_are_refused(output: Trees) -> None:
    with pytest.raises(HopefearError):
        Dependencies().statistics(Trees([0, 2], [0, 1], ["a", "b"]), output)


def test_tests_of_significance_read_only_their_counts() -> None:
    rng = np.random.default_rng(2)
    gold = drawn(rng, [6] * 60)
    good, bad = damaged(rng, gold, 0.1), damaged(rng, gold, 0.6)
    for name in ("uas", "las", "clas", "mlas", "trees", "roots"):
        result = compare_outputs(Dependencies(), gold, good, bad, score=name, samples=200)
        assert result["difference"] > 0 and result["p_randomisation"] < 0.05
        assert result["metric"] == name and "metric:dependencies" in result["signature"]
    assert compare_outputs(Dependencies(), gold, good, good, samples=100)["p_randomisation"] == 1.0
    with pytest.raises(HopefearError, match="has no score 'bleu'; it has clas"):
        compare_outputs(Dependencies(), gold, good, bad, score="bleu")


def test_tables_of_errors_add_up() -> None:
    rng = np.random.default_rng(3)
    gold = drawn(rng, [3, 12, 25, 60, 1])
    output = damaged(rng, gold, 0.4)
    tables = tree_errors(gold, output)
    scores = expected(gold, output)
    for name in ("length", "direction", "relation"):
        table = tables[name]
        assert sum(row["gold"] for row in table) == sum(row["predicted"] for row in table) == 101
        right = sum(row["recall"] * row["gold"] for row in table) / 101
        assert right == pytest.approx(scores["las" if name == "relation" else "uas"])
    heads = sum(row["heads"] * row["gold"] for row in tables["relation"]) / 101
    assert heads == pytest.approx(scores["uas"])
    assert [row["sentence"] for row in tables["sentence"]] == ["1–10", "11–20", "21–30", "51+"]
    assert sum(row["uas"] * row["words"] for row in tables["sentence"]) / 101 == pytest.approx(
        scores["uas"]
    )
    errors = [
        (1 - row["f1"] / 100) * (row["gold"] + row["predicted"]) for row in tables["relation"]
    ]
    assert errors == sorted(errors, reverse=True)
    lengths = {row["length"]: row["gold"] for row in tables["length"]}
    places = np.concatenate([np.arange(1, n + 1) for n in (3, 12, 25, 60, 1)])
    far = np.abs(gold.heads - places)[gold.heads > 0]
    assert lengths["3–6"] == ((far >= 3) & (far <= 6)).sum()
    assert lengths["15+"] == (far >= 15).sum() and lengths["root"] == (gold.heads == 0).sum()
    sides = {row["direction"]: row["gold"] for row in tables["direction"]}
    assert sides["head behind"] == (gold.heads > places).sum()
