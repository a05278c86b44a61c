"""Metrics of candidates: against sacreBLEU and brute force; evaluation of lists against loops."""

from __future__ import annotations

import json
import lzma
import math
import subprocess
import sys

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from places import DATA
from sacrebleu.metrics import BLEU, CHRF, TER

from hopefear.errors import HopefearError
from hopefear.metrics.lists import (
    LIST_METRICS,
    Bleu,
    CharacterErrors,
    Chrf,
    GivenCost,
    Parseval,
    Ter,
    WordErrors,
    WordF1,
    compare_lists,
    evaluate_lists,
    metric_named,
)

pytestmark = pytest.mark.interpreted

TEXT_METRICS = [
    Bleu(),
    Chrf(),
    Chrf(word_order=2),
    Ter(),
    WordErrors(),
    CharacterErrors(),
    WordF1(),
]

words = st.sampled_from(["the", "The", "cat", "cat.", "(sat)", "3,5", "'s", "a&amp;b", "é", "on"])
lines = st.lists(words, max_size=9).map(" ".join)
pairs = st.lists(st.tuples(lines, st.lists(lines, min_size=1, max_size=3)), min_size=1, max_size=4)


def padded(references):
    """References as sacreBLEU wants them: the first of all, the second of all; None for none."""
    most = max(map(len, references))
    return [[refs[k] if k < len(refs) else None for refs in references] for k in range(most)]


# --- equality with sacreBLEU


@settings(max_examples=60, deadline=None)
@given(pairs, st.sampled_from(["13a", "none", "char", "intl"]), st.booleans())
def test_corpus_bleu_is_sacrebleus(data, tokenize, lowercase):
    texts, references = map(list, zip(*data, strict=True))
    metric = Bleu(tokenize=tokenize, lowercase=lowercase)
    sums = metric.statistics(references, texts).sum(axis=0)
    official = BLEU(tokenize=tokenize, lowercase=lowercase, force=True)
    expected = official.corpus_score(texts, padded(references))
    assert metric.scores(sums)["bleu"] == expected.score
    assert sums.tolist() == [*expected.counts, *expected.totals, expected.sys_len, expected.ref_len]
    many = metric.scores(np.stack([sums, sums]))["bleu"]
    np.testing.assert_allclose(many, expected.score, rtol=1e-12, atol=1e-12)


@settings(max_examples=80, deadline=None)
@given(lines, st.lists(lines, min_size=1, max_size=2), st.data())
def test_sentence_costs_are_sacrebleus(text, references, data):
    smoothing = data.draw(st.sampled_from(["none", "floor", "add-k", "exp", "add-one"]))
    value = (
        data.draw(st.sampled_from([None, 0.3, 2.0])) if smoothing in ("floor", "add-k") else None
    )
    official = BLEU(
        smooth_method="add-k" if smoothing == "add-one" else smoothing,
        smooth_value=value,
        effective_order=True,
    )
    metric = Bleu(smoothing=smoothing, value=value)
    counts = metric.statistics([references], [text])
    expected = official.sentence_score(text, references).score
    np.testing.assert_allclose(100 * (1 - metric.costs(counts)), min(expected, 100.0), atol=1e-9)


def test_add_one_smoothing_by_hand():
    # matches 3 of 4, 1 of 3, 0 of 2, 0 of 1; as long as the reference
    counts = Bleu(tokenize="none").statistics([["a b c d"]], ["a b x d"])
    expected = 1 - (3 / 4 * 2 / 4 * 1 / 3 * 1 / 2) ** 0.25
    assert Bleu().costs(counts)[0] == pytest.approx(expected, abs=1e-12)
    assert Bleu(smoothing="none").costs(counts)[0] == 1.0


@settings(max_examples=60, deadline=None)
@given(pairs, st.sampled_from([0, 2]), st.booleans())
def test_chrf_is_sacrebleus(data, word_order, lowercase):
    texts, references = map(list, zip(*data, strict=True))
    metric = Chrf(word_order=word_order, lowercase=lowercase)
    official = CHRF(word_order=word_order, lowercase=lowercase)
    counts = metric.statistics(references, texts)
    expected = official.corpus_score(texts, padded(references)).score
    assert metric.scores(counts.sum(axis=0))["chrf"] == pytest.approx(expected, abs=1e-12)
    each = [official.sentence_score(*pair).score for pair in data]
    np.testing.assert_allclose(100 * (1 - metric.costs(counts)), each, atol=1e-10)


@settings(max_examples=25, deadline=None)
@given(pairs, st.booleans())
def test_ter_is_sacrebleus(data, lowercase):
    texts, references = map(list, zip(*data, strict=True))
    metric, official = Ter(lowercase=lowercase), TER(case_sensitive=not lowercase)
    counts = metric.statistics(references, texts)
    expected = official.corpus_score(texts, padded(references)).score
    assert metric.scores(counts.sum(axis=0))["ter"] == expected
    each = [official.sentence_score(*pair).score for pair in data]
    np.testing.assert_allclose(100 * metric.costs(counts), each, rtol=1e-12)


def test_signatures_are_those_sacrebleu_prints():
    texts, references = ["a b c d e"], [["a b c d f"], ["a c b d e"]]
    for official, metric in [
        (BLEU(lowercase=True), Bleu(lowercase=True)),
        (CHRF(word_order=2), Chrf(word_order=2)),
        (TER(), Ter()),
    ]:
        score = official.corpus_score(texts, references)
        assert metric.signature_for(2) == f"{score.name}|{official.get_signature()}"
    assert "nrefs:var" in Bleu().signature_for(-1)


# --- edit distances and F-measures by brute force


def distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


@settings(max_examples=60, deadline=None)
@given(pairs, st.booleans())
def test_error_rates_by_brute_force(data, lowercase):
    texts, references = map(list, zip(*data, strict=True))
    for metric, cut in ((WordErrors(lowercase), str.split), (CharacterErrors(lowercase), list)):
        rows = metric.statistics(references, texts)
        for text, refs, (edits, length) in zip(texts, references, rows.tolist(), strict=True):
            a = cut(text.lower() if lowercase else text)
            golds = [cut(ref.lower() if lowercase else ref) for ref in refs]
            best = min(distance(a, gold) / max(len(gold), 1) for gold in golds)
            assert edits / max(length, 1) == best
            assert (edits, length) in [(distance(a, gold), len(gold)) for gold in golds]
        edits, length = rows.sum(axis=0).tolist()
        assert metric.scores([edits, length])[metric.main] == 100.0 * edits / max(length, 1)


@settings(max_examples=60, deadline=None)
@given(lines, st.lists(lines, min_size=1, max_size=3))
def test_word_f1_by_brute_force(text, references):
    ours, best = text.split(), -1.0
    for line in references:
        rest, hits = line.split(), 0
        total = len(rest) + len(ours)
        for word in ours:
            if word in rest:
                rest.remove(word)
                hits += 1
        best = max(best, 2 * hits / total if total else 1.0)
    metric = WordF1()
    assert metric.costs(metric.statistics([references], [text]))[0] == pytest.approx(1 - best)


def test_costs_of_parses():
    rows = np.random.default_rng(1).integers(0, 9, (50, 3))
    rows[:, 1:] += rows[:, :1]
    rows[0] = 0
    metric = Parseval()
    expected = 1 - metric.scores(rows)["f1"] / 100
    expected[0] = 0.0  # nothing to find, nothing found
    np.testing.assert_allclose(metric.costs(rows), expected, atol=1e-15)
    assert metric.scores([0, 0, 0])["f1"] == 0.0
    errors = Parseval(cost="errors").costs(rows)
    assert errors.tolist() == (rows[:, 1] + rows[:, 2] - 2 * rows[:, 0]).tolist()


# --- every metric


@pytest.mark.parametrize("metric", TEXT_METRICS, ids=lambda metric: metric.name)
def test_candidates_are_counted_each_with_its_references(metric):
    texts = ["the cat sat", "a cat", "", "dogs ran (fast).", "the cat sat"]
    sets = [["the cat sat down"], ["dogs ran fast.", "a dog"]]
    references = [sets[i >= 3] for i in range(5)]
    together = metric.statistics(references, texts)
    single = [
        metric.statistics([refs], [text])[0] for refs, text in zip(references, texts, strict=True)
    ]
    assert together.tolist() == np.array(single).tolist()
    assert together.shape == (5, len(metric.columns))
    assert metric.total(references, texts).tolist() == together.sum(axis=0).tolist()
    assert metric.statistics([], []).shape == (0, len(metric.columns))


@pytest.mark.parametrize("metric", TEXT_METRICS, ids=lambda metric: metric.name)
def test_costs_are_zero_for_the_reference_and_scores_take_many_sums(metric):
    texts = ["The cat sat on 3 mats.", "no word alike"]
    counts = metric.statistics([[texts[0]], ["Der Hund bellt"]], texts)
    costs = metric.costs(counts)
    assert costs[0] == 0.0 and costs[1] > 0.5
    assert metric.costs(np.zeros((0, len(metric.columns)), int)).shape == (0,)
    sums = np.stack([counts[0], counts[1], counts.sum(axis=0)])
    many = metric.scores(sums)
    for k, row in enumerate(sums):
        one = metric.scores(row)
        assert metric.main in one and all(isinstance(value, float) for value in one.values())
        assert {name: many[name][k] for name in one} == pytest.approx(one)
    assert metric_named(metric.name, **metric.parameters()) == metric


def test_a_table_knows_every_metric_and_says_so():
    assert list(LIST_METRICS) == ["cost", "parseval", "bleu", "chrf", "ter", "wer", "edit", "f1"]
    with pytest.raises(HopefearError, match=r"no metric 'meteor'.*cost, parseval, bleu"):
        metric_named("meteor")
    with pytest.raises(HopefearError, match=r"bleu has no parameter 'smooth'; it takes smoothing"):
        metric_named("bleu", smooth="exp")
    with pytest.raises(HopefearError, match="it takes none"):
        metric_named("cost", unit=1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bleu(smoothing="plus"), "no smoothing 'plus'.*add-one"),
        (lambda: Bleu(smoothing="exp", value=1.0), "exp takes no value"),
        (lambda: Bleu(smoothing="floor", value=math.nan), "above 0"),
        (lambda: Bleu(tokenize="words"), "no tokenize 'words'.*13a"),
        (lambda: Chrf(char_order=0), "at least 1"),
        (lambda: Parseval(cost="cross"), "f1 or errors"),
        (lambda: Bleu().statistics([], ["a"]), "1 texts and 0 sets"),
        (lambda: Bleu().statistics(["a"], ["a"]), "one string, 'a'"),
        (lambda: WordF1().statistics([[]], ["a"]), "no reference"),
        (lambda: GivenCost().statistics([["a"]], ["a"]), "file gives the cost"),
        (lambda: Parseval().statistics([["a"]], ["a"]), "readers of trees"),
        (lambda: WordErrors().costs([[1, 2, 3]]), "2 counts a row"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(HopefearError, match=message):
        make()


def test_importing_the_metrics_loads_neither_library():
    code = (
        "import sys, hopefear.metrics.lists as m; m.Parseval(); "
        "sys.exit(bool({'sacrebleu', 'rapidfuzz'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


# --- evaluation of lists


@st.composite
def scored_lists(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    m = int(starts[-1])
    small = st.integers(0, 3)
    counts = np.array(draw(st.lists(st.tuples(small, small), min_size=m, max_size=m)))
    counts[:, 1] += 1
    scores = np.array(draw(st.lists(small, min_size=m, max_size=m)), float)
    chosen = [draw(st.integers(0, size - 1)) for size in sizes]
    return counts, starts, chosen, scores


@settings(max_examples=60, deadline=None)
@given(scored_lists())
def test_evaluation_by_loops(data):
    counts, starts, chosen, scores = data
    metric = WordErrors()
    costs = metric.costs(counts)
    found = evaluate_lists(
        metric, counts, starts, chosen, scores=scores, model_scores=-scores, samples=20
    )
    sums = {who: np.zeros(2, int) for who in ("model", "baseline", "oracle", "worst")}
    exact, rank, model_rank = 0, 0, 0
    for i in range(len(chosen)):
        own = range(starts[i], starts[i + 1])
        oracle = min(own, key=lambda c: (costs[c], c))
        picked = {
            "model": starts[i] + chosen[i],
            "baseline": min(own, key=lambda c: (-scores[c], c)),
            "oracle": oracle,
            "worst": min(own, key=lambda c: (-costs[c], c)),
        }
        exact += costs[picked["model"]] == costs[oracle]
        rank += 1 + sorted(own, key=lambda c: -scores[c]).index(oracle)
        model_rank += 1 + sorted(own, key=lambda c: scores[c]).index(oracle)
        for who, c in picked.items():
            sums[who] += counts[c]
    for who, total in sums.items():
        choice = getattr(found, who)
        assert choice.scores == metric.scores(total)
        assert choice.low <= choice.high
    assert found.oracle_rate == pytest.approx(100 * exact / len(chosen))
    assert found.baseline_oracle_rank == pytest.approx(rank / len(chosen))
    assert found.oracle_rank == pytest.approx(model_rank / len(chosen))
    assert found.better + found.worse <= found.lists == len(chosen)
    json.dumps(found.as_dict(), allow_nan=False)
    assert found.text().count("\n") == 9
    assert repr(found) + "\n" == found.text()
    html = found._repr_html_()
    assert html.count("<tr>") == 5 and html.count("<p>") == 4
    rows = [line.split() for line in found.text().splitlines()[1:5]]
    assert all(f"<td>{cell}</td>" in html for row in rows for cell in row)


def test_evaluation_says_when_a_model_is_better():
    rng = np.random.default_rng(3)
    gold = rng.integers(8, 12, 300)
    right = rng.random(300) < 0.7
    counts = np.zeros((900, 3), int)
    counts[:, 1] = counts[:, 2] = np.repeat(gold, 3)
    counts[0::3, 0], counts[1::3, 0], counts[2::3, 0] = gold - 3, gold, gold - 5
    starts = np.arange(0, 901, 3)
    found = evaluate_lists(metric_named("parseval"), counts, starts, right.astype(int))
    values = found.as_dict()
    assert values["baseline_f1_high"] < values["f1_low"] <= values["f1"] <= values["f1_high"]
    assert values["oracle_f1"] == 100.0 and values["worst_f1"] < values["baseline_f1"]
    assert values["p_value"] < 0.01 and values["p_randomisation"] < 0.01
    assert values["gap_closed"] == pytest.approx(100 * right.mean(), abs=1e-9)
    assert (values["better"], values["worse"]) == (right.sum(), 0)
    assert values["oracle_rate"] == pytest.approx(100 * right.mean())
    assert {"precision", "recall", "oracle_recall", "baseline_precision"} <= set(values)
    again = evaluate_lists(metric_named("parseval"), counts, starts, right.astype(int))
    assert again.as_dict() == values
    same = compare_lists(Parseval(), counts, starts, right.astype(int), right.astype(int))
    assert (same["difference"], same["p_bootstrap"], same["p_randomisation"]) == (0.0, 1.0, 1.0)
    by_recall = compare_lists(
        Parseval(), counts, starts, right.astype(int), np.zeros(300, int), score="recall"
    )
    assert by_recall["difference"] == values["recall"] - values["baseline_recall"]


def test_given_costs():
    metric, costs = GivenCost(), [0.5, 0.0, 2.0, 1.0]
    found = evaluate_lists(metric, metric.statistics_of(costs), [0, 2, 4], [1, 0], samples=50)
    values = found.as_dict()
    assert (values["cost"], values["baseline_cost"], values["oracle_cost"]) == (1.0, 1.25, 0.5)
    assert values["worst_cost"] == 1.25 and values["oracle_rank"] is None
    assert values["gap_closed"] == pytest.approx(100 / 3)
    perfect = evaluate_lists(metric, metric.statistics_of([0.0]), [0, 1], [0], samples=5)
    assert perfect.gap_closed is None and "way to the oracle" not in perfect.text()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"chosen": [0, 2]}, r"chosen\[1\] is 2, but list 1 has the candidates 0 .. 1"),
        ({"chosen": [0]}, "one whole number for each of the 2 lists"),
        ({"chosen": [0.0, 1.0]}, "whole number"),
        ({"scores": [1.0, math.nan, 0.0, 0.0]}, r"scores\[1\] is not a number"),
        ({"costs": [1.0, 2.0]}, "costs has shape"),
        ({"starts": [0, 0, 4]}, "list 0 has no candidates"),
        ({"starts": [0, 3]}, "starts must run from 0 to the number of candidates, 4"),
        ({"counts": np.zeros((0, 2)), "starts": [0], "chosen": []}, "no lists"),
        ({"samples": 0}, "at least 1 replicate"),
    ],
)
def test_evaluation_names_what_does_not_fit(change, message):
    given = {"counts": [[0, 1]] * 4, "starts": [0, 2, 4], "chosen": [0, 0], "samples": 9} | change
    with pytest.raises(HopefearError, match=message):
        evaluate_lists(WordErrors(), **given)


# --- real lists


def test_parse_lists_have_their_known_scores():
    path = DATA / "ptb-nbest" / "test.jsonl.xz"
    if not path.exists():
        pytest.skip(f"no {path.name} of ptb-nbest; set HOPEFEAR_DATA to the folder of the corpora")
    counts, starts = [], [0]
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            for c in json.loads(line)["candidates"]:
                counts.append((c["matched"], c["gold_brackets"], c["test_brackets"]))
            starts.append(len(counts))
    found = evaluate_lists(Parseval(), counts, starts, np.zeros(518, int), samples=200)
    shown = {
        who: round(getattr(found, who).scores["f1"], 2) for who in ("model", "oracle", "worst")
    }
    assert shown == {"model": 85.94, "oracle": 94.55, "worst": 64.65}
    assert found.test["p_bootstrap"] == 1.0 and found.gap_closed == 0.0


@pytest.mark.compiled
def test_translation_lists_have_sacrebleus_score():
    path = DATA / "multi30k-nbest" / "test_2016_flickr.nbest.xz"
    if not path.exists():
        pytest.skip(f"no {path.name} of multi30k-nbest; set HOPEFEAR_DATA to the corpora's folder")
    texts, starts, last = [], [], None
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            name, text, _ = line.split(" ||| ", 2)
            if name != last:
                if len(starts) == 60:
                    break
                starts.append(len(texts))
                last = name
            texts.append(text)
    starts.append(len(texts))
    gold = path.with_name("test_2016_flickr.en").read_text("utf-8").splitlines()[:60]
    metric = Bleu(tokenize="none")
    counts = metric.statistics(
        [[gold[i]] for i in np.repeat(np.arange(60), np.diff(starts))], texts
    )
    found = evaluate_lists(metric, counts, starts, np.zeros(60, int), samples=50)
    first = [texts[c] for c in starts[:-1]]
    expected = sacrebleu.corpus_bleu(first, [gold], tokenize="none", force=True).score
    assert found.model.scores["bleu"] == expected
    assert found.worst.high < expected < found.oracle.low


@pytest.mark.parametrize("metric", [*TEXT_METRICS, Parseval(), Parseval(cost="errors")], ids=str)
def test_costs_have_room_for_counts_in_bytes(metric):
    """Readers keep small counts in bytes, whose sums and products would not fit."""
    few = np.full((1, len(metric.columns)), 200)
    few[0, 0] = 150
    np.testing.assert_array_equal(metric.costs(few.astype(np.uint8)), metric.costs(few))
