"""Where costs of lists come from, and lists whose costs nobody asks for."""

from __future__ import annotations

import json

import pytest

from hopefear.data.lists.files import read_lists
from hopefear.data.lists.input import UnjudgedError
from hopefear.data.lists.trees import without_traces
from hopefear.errors import HopefearError, InputError
from hopefear.metrics.lists import metric_named

GOLD = "(S1 (S (NP (PRP it)) (VP (VBZ is)) (. .)))"
FLAT = "(S1 (FRAG (PRP it) (VBZ is) (. .)))"
COST, PARSEVAL, WER = map(metric_named, ("cost", "parseval", "wer"))


def saved(folder, *records, name="a.jsonl"):
    path = folder / name
    lines = [one if isinstance(one, str) else json.dumps(one) for one in records]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def parses(name="x", costs=(3, -2.5), **more):
    pairs = zip((GOLD, FLAT), costs, strict=True)
    return {"id": name, "candidates": [{"tree": t, "cost": cost} for t, cost in pairs], **more}


def read(path, *args, **more):
    (found,) = read_lists(path, *args, **more)
    return found


def test_costs_of_trees_count_where_there_is_no_gold_or_the_metric_is_cost(tmp_path):
    plain, judged = saved(tmp_path, parses()), saved(tmp_path, parses(gold=GOLD), name="b")
    for found in (read(plain), read(plain, metric=COST), read(judged, metric=COST)):
        assert (found.costs.tolist(), found.metric, found.counts) == ([3.0, -2.5], "cost", None)
    for found in (read(judged), read(judged, metric=PARSEVAL)):
        assert (found.costs.tolist(), found.metric) == ([0.0, 1.0], "parseval")
    with pytest.raises(UnjudgedError, match="expected a gold tree or counts of brackets in list"):
        read(plain, metric=PARSEVAL, require_costs=True)
    bare = {"id": "y", "candidates": [{"tree": GOLD}], "gold": GOLD}
    with pytest.raises(UnjudgedError, match=":2: expected costs in list 'y'"):
        read(saved(tmp_path, parses(), bare), metric=COST, require_costs=True)
    with pytest.raises(InputError, match=r":2: expected costs in list 'y', as .* 'a gold tree or"):
        read(saved(tmp_path, parses(), bare))


def test_costs_may_be_negative(tmp_path):
    record = {"id": 1, "candidates": [{"cost": -0.5}, {"cost": 0}]}
    assert read(saved(tmp_path, record), require_costs=True).costs.tolist() == [-0.5, 0.0]


def test_prediction_looks_at_no_costs(tmp_path):
    mixed = [
        {"id": "a", "candidates": [{"cost": 1}, {}], "reference": 5},
        {"id": "b", "candidates": [{"cost": "high"}], "references": []},
        {"id": "c", "candidates": [{}]},
    ]
    found = read(saved(tmp_path, *mixed), judged=False, metric=WER)
    assert (found.ids, found.costs, found.references) == (["a", "b", "c"], None, None)
    trees = [
        parses("a", gold="(not a tree"),
        {"id": "b", "candidates": [{"tree": GOLD, "matched": 5}, {"tree": FLAT, "cost": 1}]},
    ]
    found = read(saved(tmp_path, *trees), judged=False)
    assert (found.n_candidates, found.costs, found.counts) == (4, None, None)
    with pytest.raises(InputError, match="the gold tree of list 'a'"):
        read(saved(tmp_path, trees[0]))


@pytest.mark.parametrize(
    ("metric", "record", "message"),
    [
        (None, {"candidates": [{}]}, r":1: expected costs in list 'x', which training and eval"),
        (COST, {"candidates": [{}]}, r":1: expected costs in list 'x'"),
        (
            WER,
            {"candidates": [{"text": "a", "cost": 1}]},
            r":1: expected a reference or refer.* 'x'",
        ),
        (
            WER,
            {"candidates": [{"text": "a", "cost": 1}, {"cost": 1}], "reference": "a"},
            r":1: expected a text in candidate 2 of list 'x', of which wer is counted",
        ),
        (None, {"candidates": [{"tree": GOLD}]}, r"a gold tree, counts of brackets or costs in"),
    ],
)
def test_what_is_missing_is_said(tmp_path, metric, record, message):
    with pytest.raises(UnjudgedError, match=message):
        read(saved(tmp_path, {"id": "x", **record}), metric=metric, require_costs=True)


def test_metrics_of_texts_and_trees_are_not_mixed_up(tmp_path):
    with pytest.raises(HopefearError, match=r"metric wer is for texts, and these .* are trees"):
        read(saved(tmp_path, parses(gold=GOLD)), metric=WER)
    texts = saved(tmp_path, {"id": 1, "candidates": [{"text": "a", "cost": 1}]})
    with pytest.raises(HopefearError, match="parseval is for trees, and these candidates are tex"):
        read(texts, metric=PARSEVAL)


def test_lists_of_moses_are_told_apart(tmp_path):
    path = saved(tmp_path, "0 ||| it is . ||| lm= -1.5 ||| -2")
    with pytest.raises(InputError, match=r":1: .*N-best lists of Moses are in the format moses"):
        read(path, "bllip")
    assert read(path).texts == ["it is ."]


def test_a_format_is_preferred_where_it_fits(tmp_path):
    trees = saved(tmp_path, parses())
    printed = saved(tmp_path, f"1\tx\n-1.5\n{GOLD}", name="a.nbest")
    assert read(trees, prefer="bllip").trees is not None
    assert read(printed, prefer="ptb").scores.tolist() == [-1.5]
    assert read(printed, prefer="bllip").scores.tolist() == [-1.5]
    assert read(trees, prefer="json").trees is None
    with pytest.raises(HopefearError, match="prefer must be one of"):
        read_lists(trees, prefer="xml")


TRACED = "( (S (NP-SBJ (-NONE- *T*-1)) (VP (VBZ is) (SBAR (-NONE- 0) (S (-NONE- *)))) (. .)))"


def test_traces_of_gold_trees_are_no_words(tmp_path):
    assert " ".join(without_traces(TRACED).split()) == "( (S (VP (VBZ is) ) (. .)))"
    assert without_traces(GOLD) == GOLD
    same, other = "(S1 (S (VP (VBZ is)) (. .)))", "(S1 (FRAG (VBZ is) (. .)))"
    candidates = [{"tree": same}, {"tree": other}]
    for tokens in (["is", "."], None):
        record = {"id": "x", "gold": TRACED, "candidates": candidates, "tokens": tokens}
        found = read(saved(tmp_path, record))
        assert found.counts.tolist() == [[2, 2, 2], [0, 2, 1]] and found.texts == [same, other]
    gold = saved(tmp_path, TRACED, name="gold")
    printed = saved(tmp_path, f"1\tx\n-1\n{same}", name="a.nbest")
    assert read(printed, gold=gold).counts.tolist() == [[2, 2, 2]]
    kept = {"id": "x", "gold": TRACED, "candidates": [{"tree": TRACED}]}
    assert read(saved(tmp_path, kept)).counts.tolist() == [[2, 2, 2]]


def test_brackets_have_two_spellings(tmp_path):
    tree = "(S1 (NP (-LRB- {}) (NN {}) (-RRB- {})))"
    named, plain = tree.format("-LCB-", "-LSB-", "-RCB-"), tree.format("{", "[", "}")
    for tokens in (["{", "[", "}"], ["-LCB-", "-LSB-", "-RCB-"], None):
        record = {"id": "x", "gold": plain, "tokens": tokens, "candidates": [{"tree": named}]}
        assert read(saved(tmp_path, record)).counts.tolist() == [[1, 1, 1]]
    record = {"id": "x", "tokens": ["{", "]", "}"], "candidates": [{"tree": named}]}
    with pytest.raises(InputError, match=r"expected '-RSB-' as word 2.* found '-LSB-'"):
        read(saved(tmp_path, record))


def test_derivations_are_kept(tmp_path):
    texts = [("a", 1, "h1"), ("a", 2, "h2"), ("b", 0, None)]
    candidates = [{"text": t, "score": s, "derivation": h} for t, s, h in texts]
    path = saved(tmp_path, {"id": "x", "candidates": candidates}, {"id": "y", "candidates": [{}]})
    assert read(path, dedup="none").derivations == ["h1", "h2", None, None]
    assert read(path, dedup="first").derivations == ["h1", None, None]
    assert read(path, dedup="best").derivations == ["h2", None, None]
    assert read(saved(tmp_path, {"id": "y", "candidates": [{}]})).derivations is None


def test_colons_in_texts_are_no_names(tmp_path):
    record = {"id": "x", "meta": {"a": 1}, "candidates": [{"text": '":', "cost": 1}]}
    assert read(saved(tmp_path, record)).texts == ['":']
