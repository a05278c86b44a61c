"""Tagging scores: equal to the recorded script, to plain counting, and to themselves in parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopefear.data.sequences import Column
from hopefear.errors import HopefearError
from hopefear.metrics import (
    Tagging,
    best_temperature,
    chunk_scores,
    compare_outputs,
    label_confusion,
    reliability,
    span_errors,
    unknown_word_accuracy,
    unknown_words,
)

pytestmark = pytest.mark.interpreted

RECORDED = Path(__file__).parent / "conlleval"
OPTIONS = {
    "raw": {"raw": True},
    "raw-outside": {"raw": True, "outside": "N"},
    "random-raw": {"raw": True, "outside": "O-"},
}
LABELS = ["O", "B-X", "I-X", "B-Y", "I-Y"]
taggings = st.lists(
    st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), max_size=6),
    min_size=1,
    max_size=5,
)


def recorded(name):
    """Reference and output of a recorded input, sentence by sentence."""
    gold, found = [[]], [[]]
    for line in (RECORDED / f"{name}.in").read_text(encoding="utf-8").splitlines():
        if not line:
            gold.append([])
            found.append([])
            continue
        _, one, two = line.split(" ")
        gold[-1].append(one)
        found[-1].append(two)
    return gold, found


@pytest.mark.parametrize("name", sorted(p.stem for p in RECORDED.glob("*.in")))
def test_report_is_the_text_the_script_printed(name):
    scores = chunk_scores(*recorded(name), **OPTIONS.get(name, {}))
    assert scores.report() == (RECORDED / f"{name}.out").read_text(encoding="utf-8")


def spans_of(labels):
    """Chunks by the definition: B begins, so does I after anything but its own type."""
    found, open_ = set(), None
    for k, label in enumerate([*labels, "O"]):
        tag, _, kind = label.partition("-")
        goes_on = tag == "I" and open_ is not None and open_[1] == kind
        if open_ is not None and not goes_on:
            found.add((open_[0], k, open_[1]))
            open_ = None
        if tag != "O" and not goes_on:
            open_ = (k, kind)
    return found


@settings(max_examples=150, deadline=None)
@given(taggings)
def test_counts_equal_sets_of_spans(pairs):
    gold = [[a for a, _ in s] for s in pairs]
    output = [[b for _, b in s] for s in pairs]
    counts = Tagging().statistics(gold, output)
    for row, one, two in zip(counts, gold, output, strict=True):
        a, b = spans_of(one), spans_of(two)
        right = sum(x == y for x, y in zip(one, two, strict=True))
        whole = int(right == len(one) > 0)
        assert row.tolist() == [
            len(a & b), len(b), len(a), right, len(one), whole, int(len(one) > 0)
        ]  # fmt: skip
    scores = chunk_scores(gold, output)
    assert np.array_equal(scores.statistics, counts)
    assert np.array_equal(scores.counts.sum(axis=0), counts.sum(axis=0)[:3])


@settings(max_examples=80, deadline=None)
@given(taggings)
def test_span_errors_account_for_every_span(pairs):
    gold = [[a for a, _ in s] for s in pairs]
    output = [[b for _, b in s] for s in pairs]
    found = span_errors(gold, output)
    correct, n_output, n_gold = Tagging().statistics(gold, output).sum(axis=0)[:3]
    assert found.correct == correct
    assert n_gold == found.correct + found.type + found.bounds + found.both + found.missed
    touching = spurious = 0
    for one, two in zip(gold, output, strict=True):
        a = spans_of(one)
        for first, after, _ in spans_of(two):
            overlaps = any(f < after and first < e for f, e, _ in a)
            touching, spurious = touching + overlaps, spurious + (not overlaps)
    assert found.spurious == spurious
    assert touching + spurious == n_output


def test_every_form_of_labels_gives_the_same_scores():
    gold, output = recorded("random-bio")
    report = chunk_scores(gold, output).report()
    starts = np.cumsum([0, *map(len, gold)])
    one, two = ([x for s in t for x in s] for t in (gold, output))
    assert chunk_scores(one, two, starts).report() == report
    assert chunk_scores(Column.of(one), Column.of(two), starts).report() == report
    names = sorted(set(one) | set(two))
    codes = [np.array([names.index(x) for x in t], np.int32) for t in (one, two)]
    assert chunk_scores(*codes, starts, labels=names).report() == report


def test_iobes_reading_knows_single_and_last_tokens():
    gold = ["S-X", "S-X", "B-X", "E-X", "B-X", "I-X", "E-X", "O", "B-Y", "E-Y"]
    assert chunk_scores(gold, gold, reading="iobes").as_dict()["gold"] == 5
    bilou = [x.replace("S-", "U-").replace("E-", "L-") for x in gold]
    scores = chunk_scores(bilou, bilou, reading="iobes")
    assert scores.as_dict()["f1"] == 100.0 and scores.as_dict()["gold"] == 5
    assert "chunks:iobes" in scores.as_dict()["signature"]
    # The script takes the five for fewer: that is its answer, and it is kept.
    assert chunk_scores(gold, gold).as_dict()["gold"] == 2


def test_iobes_reading_equals_the_script_on_bio():
    gold, output = recorded("random-bio")
    other = chunk_scores(gold, output, reading="iobes")
    assert other.report() == chunk_scores(gold, output).report()


def test_scores_by_name():
    scores = chunk_scores(["B-X", "I-X", "O", "B-Y"], ["B-X", "I-X", "O", "O"])
    found = scores.as_dict()
    assert (found["precision"], found["recall"], found["accuracy"]) == (100.0, 50.0, 75.0)
    assert found["f1"] == pytest.approx(200 / 3)
    assert scores.per_type()["Y"] == {
        "precision": 0.0, "recall": 0.0, "f1": 0.0, "correct": 0, "found": 0, "gold": 1
    }  # fmt: skip


def test_no_tokens():
    scores = chunk_scores([], [])
    assert scores.report().startswith("processed 0 tokens with 0 phrases; found: 0 phrases;")
    assert chunk_scores([], [], [0]).as_dict()["f1"] == 0.0
    assert span_errors([], []).missed == 0


def test_values_of_many_sums_at_once():
    metric = Tagging()
    rows = Tagging().statistics(*recorded("random-bio"))
    sums = np.stack([rows[:30].sum(axis=0), rows.sum(axis=0)])
    many = metric.scores(sums)
    for i in range(2):
        one = metric.scores(sums[i])
        assert all(many[name][i] == one[name] for name in one)


@pytest.mark.parametrize("metric", ["f1", "accuracy", "sentence_accuracy"])
def test_comparison_finds_a_real_difference_and_no_false_one(metric):
    rng = np.random.default_rng(3)
    gold = rng.integers(0, len(LABELS), 3000)
    starts = np.arange(0, 3001, 10)

    def wrong(share):
        found = gold.copy()
        where = rng.random(3000) < share
        found[where] = rng.integers(0, len(LABELS), where.sum())
        return found

    good, bad, alike = wrong(0.05), wrong(0.25), wrong(0.05)
    settings_ = {"score": metric, "samples": 500}
    clear = compare_outputs(Tagging(), gold, good, bad, starts, LABELS, **settings_)
    assert clear["p_bootstrap"] < 0.01 and clear["p_randomisation"] < 0.01
    assert 0.0 < clear["low"] < clear["difference"] < clear["high"]
    assert clear == compare_outputs(Tagging(), gold, good, bad, starts, LABELS, **settings_)
    none = compare_outputs(Tagging(), gold, good, alike, starts, LABELS, **settings_)
    assert none["p_bootstrap"] > 0.05 and none["p_randomisation"] > 0.05
    assert clear["first"] == Tagging().scores(
        Tagging().total(gold, good, starts, LABELS)
    )[metric]  # fmt: skip


def test_confusion_and_unknown_words():
    gold, output = ["N", "V", "N", "A"], ["N", "N", "V", "A"]
    found = label_confusion(gold, output, labels=["A", "N", "V"])
    assert found.counts.tolist() == [[1, 0, 0], [0, 1, 1], [0, 1, 0]]
    assert found.top(5) == [("N", "V", 1), ("V", "N", 1)]
    mask = unknown_words(Column.of(["a", "b", "a", "c"]), ["a"])
    assert mask.tolist() == [False, True, False, True]
    scores = unknown_word_accuracy(gold, output, mask)
    assert (scores["accuracy_unknown"], scores["accuracy_known"]) == (50.0, 50.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: chunk_scores(["O"], ["O", "O"]), "taggings differ in their sentences"),
        (lambda: chunk_scores(["O"], ["O"], [0, 2]), "1 labels for 2 tokens"),
        (lambda: chunk_scores(["O"], ["O"], [1, 0]), "starts must rise"),
        (lambda: chunk_scores(["O"], [3]), "a label is 3"),
        (lambda: chunk_scores(np.array([0]), np.array([0])), "need the names"),
        (lambda: chunk_scores(np.array([0]), np.array([-1]), labels=["O"]), "position -1"),
        (lambda: chunk_scores(["O"], ["O"], reading="x"), "no reading 'x'"),
        (
            lambda: compare_outputs(Tagging(), ["O"], ["O"], ["O"], score="bleu"),
            "tagging.* has no score 'bleu'; it has accuracy, f1",
        ),
        (lambda: unknown_word_accuracy(["N"], ["N"], [1]), "one true or false each"),
        (lambda: reliability([1.5], [True]), "probability 0 is 1.5"),
        (lambda: reliability([0.5], [True, False]), "do not pair up"),
        (lambda: best_temperature(lambda t: 0.0, low=2.0, high=1.0), "give 0 < low < high"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(HopefearError, match=message):
        call()


def test_reliability_of_a_calibrated_and_of_a_boasting_model():
    rng = np.random.default_rng(5)
    p = rng.uniform(0.5, 1.0, 20_000)
    right = rng.random(20_000) < p
    honest = reliability(p, right, bins=20)
    assert honest.ece < 2.0 and honest.counts.sum() == 20_000
    assert reliability(np.ones(20_000), right).ece == pytest.approx(100 * (1 - right.mean()))
    assert reliability([0.0, 1.0], [False, True]).ece == 0.0


def test_temperature_is_recovered_from_samples():
    rng = np.random.default_rng(7)
    scores = rng.normal(0.0, 2.0, (4000, 5))
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    gold = (rng.random((4000, 1)) > p.cumsum(axis=1)).sum(axis=1)

    def log_likelihood(t):
        table = 3.0 * scores / t
        right = table[np.arange(len(gold)), gold]
        return float((right - np.log(np.exp(table).sum(axis=1))).mean())

    found = best_temperature(log_likelihood)
    assert found.value == pytest.approx(3.0, rel=0.08) and not found.at_bound
    assert best_temperature(lambda t: -t).at_bound
