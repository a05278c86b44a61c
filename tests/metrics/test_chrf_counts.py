"""Counts of text in kernels: equal to plain Python's and to sacreBLEU's."""

from __future__ import annotations

import os
import string
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from places import DATA
from sacrebleu.metrics import BLEU, CHRF, TER

from hopefear.errors import HopefearError
from hopefear.metrics.lists import (
    Bleu,
    Brackets,
    CharacterErrors,
    Chrf,
    GivenCost,
    ListMetric,
    Ter,
    WordErrors,
    WordF1,
)
from hopefear.metrics.lists.bleu import BleuCounts
from hopefear.metrics.lists.table import ChrfCounts, TerCounts, counts_for
from hopefear.metrics.lists.text import LineCounts, Lines

LISTS = DATA / "multi30k-nbest"
# Letters that change in length with their case, combining marks, marks of punctuation, characters
# of one to four bytes, and blanks of one to three.
PIECES = ["a", "B", "ab", "é", "e\u0301", "İ", "Σ", "ß", "日本", "𝒳", "\0", "|", "(a)", ",", "5."]
BLANKS = [" ", " ", "  ", "\u00a0", "\u2009", "\u3000", "\t", "\x85", "\x1d"]
LINES = st.lists(st.sampled_from(PIECES + BLANKS), max_size=12).map("".join)
METRICS = st.builds(
    Chrf,
    char_order=st.integers(1, 7),
    word_order=st.integers(0, 3),
    beta=st.integers(1, 3),
    lowercase=st.booleans(),
)


def plain_grams(metric: Chrf, text: str) -> list[Counter]:
    """N-grams of each order, characters first."""
    text = text.lower() if metric.lowercase else text
    line, words = "".join(text.split()), []
    for word in text.split():
        if len(word) > 1 and word[-1] in string.punctuation:
            words += [word[:-1], word[-1]]
        elif len(word) > 1 and word[0] in string.punctuation:
            words += [word[0], word[1:]]
        else:
            words.append(word)
    return [
        Counter(tuple(units[k : k + n]) for k in range(len(units) - n + 1))
        for units, orders in ((line, metric.char_order), (words, metric.word_order))
        for n in range(1, orders + 1)
    ]


def plain_row(metric: Chrf, text: str, references: list[str]) -> list[int]:
    """Counts against the reference of the highest chrF, the first of equals."""
    rows = []
    for line in references:
        row: list[int] = []
        pairs = zip(plain_grams(metric, text), plain_grams(metric, line), strict=True)
        for ours, gold in pairs:
            # An order that the reference is too short for says nothing about the candidate.
            row += [ours.total() if gold else 0, gold.total(), (ours & gold).total()]
        rows.append(row)
    return rows[int(np.argmin(metric.costs(np.array(rows))))]


def plain_counts(
    metric: Chrf, texts: list[str], starts: list[int], references: list[list[str]]
) -> list[list[int]]:
    which = np.repeat(np.arange(len(references)), np.diff(starts))
    return [plain_row(metric, text, references[i]) for text, i in zip(texts, which, strict=True)]


@settings(deadline=None, max_examples=200)
@given(
    METRICS,
    st.lists(LINES, min_size=3, max_size=6),
    st.lists(st.lists(LINES, min_size=1, max_size=3), min_size=2, max_size=2),
)
@example(Chrf(), ["", "a", "ab"], [["abc"], ["", " "]])
@example(Chrf(word_order=2), ["a", "a a", "aa."], [["a b", "b a"], ["a"]])  # equal scores
def test_counts_are_those_of_plain_python(
    metric: Chrf, texts: list[str], references: list[list[str]]
) -> None:
    starts = [0, 2, len(texts)]
    found = metric.counts_by_list(texts, starts, references)
    assert found.tolist() == plain_counts(metric, texts, starts, references)
    assert ChrfCounts(metric).columns == metric.columns and ChrfCounts(metric).name == "chrf"


@settings(deadline=None, max_examples=100)
@given(st.sampled_from([0, 2]), LINES, st.lists(LINES, min_size=1, max_size=3))
def test_scores_are_those_of_sacrebleu(order: int, text: str, references: list[str]) -> None:
    metric = Chrf(word_order=order)
    counts = metric.counts_by_list([text], [0, 1], [references])
    wanted = CHRF(word_order=order).corpus_score([text], [[line] for line in references])
    assert metric.scores(counts.sum(axis=0))["chrf"] == pytest.approx(wanted.score, abs=1e-9)


TEXTS = ["Hope, and fear.", "", "É 5,5 (x) É", "hope & fear; it's"]
REFERENCES = [["Hope and fear!", "hope"], ["É 5.5 x)", "é", "Hope &amp; fear"]]


@pytest.mark.parametrize(
    "metric",
    [
        Bleu(),
        Chrf(),
        Ter(normalized=True),
        WordErrors(),
        CharacterErrors(),
        WordF1(),
    ],
    ids=lambda metric: metric.cost_signature(),
)
def test_every_metric_of_text_has_a_counter(metric: ListMetric) -> None:
    counter = counts_for(metric)
    assert isinstance(counter, LineCounts) and counter.name == metric.name
    ours, gold = Lines.packed(TEXTS), Lines.packed(REFERENCES[0] + REFERENCES[1])
    found = counter.text_counts(*ours, [0, 0, 1, 1], *gold, [0, 2, 5])
    assert np.array_equal(found, metric.counts_by_list(TEXTS, [0, 2, 4], REFERENCES))
    each = [REFERENCES[0], list(REFERENCES[0]), *REFERENCES[1:] * 2]
    assert np.array_equal(found, metric.counts(TEXTS, each))


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("tokenize", ["13a", "none", "intl", "char"])
def test_text_is_split_as_sacrebleu_does(tokenize: str, lowercase: bool) -> None:
    metric = Bleu(tokenize=tokenize, lowercase=lowercase)
    counts = metric.counts_by_list(TEXTS, [0, 2, 4], REFERENCES)
    official = BLEU(tokenize=tokenize, lowercase=lowercase, effective_order=True)
    for c, row in enumerate(counts.tolist()):
        found = official.sentence_score(TEXTS[c], REFERENCES[c // 2])
        assert row == [*found.counts, *found.totals, found.sys_len, found.ref_len]


@pytest.mark.parametrize("lowercase", [False, True])
def test_entities_are_mended_as_sacrebleu_does(lowercase: bool) -> None:
    counts = Ter(lowercase, normalized=True).counts_by_list(TEXTS, [0, 2, 4], REFERENCES)
    official = TER(case_sensitive=not lowercase, normalized=True)
    for c, row in enumerate(counts.tolist()):
        found = official.sentence_score(TEXTS[c], REFERENCES[c // 2])
        assert row == [found.num_edits, found.ref_length]


@pytest.mark.parametrize("metric", [Bleu(tokenize="none"), Chrf(), Ter(), WordErrors()])
def test_half_of_a_character_is_a_character(metric: ListMetric) -> None:
    # JSON can hold one, and UTF-8 cannot.
    odd = metric.counts(["a \ud800 b", "a c b"], [["a \ud800 b"]] * 2)
    even = metric.counts(["a x b", "a c b"], [["a x b"]] * 2)
    assert np.array_equal(odd, even)


def test_counters_of_metrics() -> None:
    assert counts_for(Bleu(tokenize="none", smoothing="exp")) == BleuCounts()
    assert counts_for(Chrf(beta=3)) == ChrfCounts(Chrf(beta=3))
    assert counts_for(Ter()) == TerCounts()
    for metric in (Brackets(), GivenCost()):
        with pytest.raises(HopefearError, match=f"{metric.name} is not counted.*choose bleu"):
            counts_for(metric)


def test_lines_anywhere_in_a_text() -> None:
    gold = Lines.packed(["xyz", "abc", "é"])
    text = np.frombuffer("-abé--é".encode(), np.uint8)
    counter = ChrfCounts(Chrf(char_order=1))
    found = counter.text_counts(text, [1, 7, 4], [5, 9, 4], [1, 2, 0], *gold, [0, 1, 2, 3])
    assert found.tolist() == [[3, 3, 2], [1, 1, 1], [0, 3, 0]]
    nothing = counter.text_counts(text, [], [], [], *gold, [0, 1, 2, 3])
    assert nothing.shape == (0, 3)
    with pytest.raises(HopefearError, match="give a set for every list"):
        counter.text_counts(text, [0], [1], [3], *gold, [0, 1, 2, 3])
    with pytest.raises(HopefearError, match="list 1 has no reference"):
        counter.text_counts(text, [0], [1], [0], *gold, [0, 1, 1, 3])


INTERPRETED = """
from hopefear.metrics.lists import Bleu, Chrf, Ter
texts, references = ["c É a b", "", "a b c d e."], [["a b c é", "b a"], ["d e. a b c"]]
for metric in (Chrf(char_order=2, word_order=2, lowercase=True), Ter(), Bleu()):
    print(metric.counts_by_list(texts, [0, 2, 3], references).tolist())
"""


def test_interpreted_counts_are_the_compiled_ones() -> None:
    answers = [
        subprocess.run(
            [sys.executable, "-W", "error", "-c", INTERPRETED],
            env={**os.environ, "NUMBA_DISABLE_JIT": plain},
            capture_output=True,
            text=True,
            check=False,
        )
        for plain in "01"
    ]
    assert answers[0].stdout == answers[1].stdout != "", answers[1].stderr


@pytest.mark.skipif(not LISTS.exists(), reason="needs multi30k-nbest in HOPEFEAR_DATA")
@pytest.mark.parametrize("order", [0, 2])
def test_lines_of_a_corpus(order: int) -> None:
    texts = (LISTS / "val.en").read_text("utf-8").splitlines()
    others = (LISTS / "val.de").read_text("utf-8").splitlines()
    metric, starts = Chrf(word_order=order), np.arange(len(texts) + 1)
    references = [[text, texts[i - 1]] for i, text in enumerate(others)]
    found = metric.counts_by_list(texts, starts, references)
    some = slice(0, 60)
    assert found[some].tolist() == plain_counts(metric, texts[some], range(61), references[some])
    scorer = CHRF(word_order=order)
    wanted = scorer.corpus_score(texts, [list(lines) for lines in zip(*references, strict=True)])
    assert metric.scores(found.sum(axis=0))["chrf"] == pytest.approx(wanted.score, abs=1e-9)
