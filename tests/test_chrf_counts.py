"""Counters in kernels: equal to the metrics' own counts, which are equal to sacreBLEU's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import CHRF

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
from hopefear.metrics.lists.bleu_counts import BleuCounts
from hopefear.metrics.lists.chrf_counts import ChrfCounts
from hopefear.metrics.lists.counters import counts_for
from hopefear.metrics.lists.lines import LineCounts, Lines

DATA = Path(os.environ.get("HOPEFEAR_DATA", Path(__file__).parents[2] / "shared" / "data"))
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


@settings(deadline=None, max_examples=200)
@given(
    METRICS,
    st.lists(LINES, min_size=3, max_size=6),
    st.lists(st.lists(LINES, min_size=1, max_size=3), min_size=2, max_size=2),
)
@example(Chrf(), ["", "a", "ab"], [["abc"], ["", " "]])
@example(Chrf(word_order=2), ["a", "a a", "aa."], [["a b", "b a"], ["a"]])  # equal scores
def test_counts_are_those_of_the_metric(
    metric: Chrf, texts: list[str], references: list[list[str]]
) -> None:
    starts = [0, 2, len(texts)]
    found = ChrfCounts(metric).counts_by_list(texts, starts, references)
    assert np.array_equal(found, metric.counts_by_list(texts, starts, references))
    assert ChrfCounts(metric).columns == metric.columns and ChrfCounts(metric).name == "chrf"


@settings(deadline=None, max_examples=100)
@given(st.sampled_from([0, 2]), LINES, st.lists(LINES, min_size=1, max_size=3))
def test_scores_are_those_of_sacrebleu(order: int, text: str, references: list[str]) -> None:
    metric = Chrf(word_order=order)
    counts = ChrfCounts(metric).counts_by_list([text], [0, 1], [references])
    wanted = CHRF(word_order=order).corpus_score([text], [[line] for line in references])
    assert metric.scores(counts.sum(axis=0))["chrf"] == pytest.approx(wanted.score, abs=1e-9)


@pytest.mark.parametrize(
    "metric",
    [
        Bleu(),
        Bleu(lowercase=True),
        Bleu(tokenize="none", lowercase=True),
        Bleu(tokenize="intl"),
        Ter(normalized=True),
        WordErrors(),
        CharacterErrors(),
        WordF1(),
    ],
    ids=lambda metric: metric.cost_signature(),
)
def test_every_metric_of_text_has_a_counter(metric: ListMetric) -> None:
    texts = ["Hope, and fear.", "", "É 5,5 (x) É", "hope & fear; it's"]
    references = [["Hope and fear!", "hope"], ["É 5.5 x)", "é", "Hope &amp; fear"]]
    counter = counts_for(metric)
    assert isinstance(counter, LineCounts) and counter.name == metric.name
    found = counter.counts_by_list(texts, [0, 2, 4], references)
    assert np.array_equal(found, metric.counts_by_list(texts, [0, 2, 4], references))


def test_counters_of_metrics() -> None:
    assert counts_for(Bleu(tokenize="none", smoothing="exp")) == BleuCounts()
    assert counts_for(Chrf(beta=3)) == ChrfCounts(Chrf(beta=3))
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
from hopefear.metrics.lists import Chrf, Ter
from hopefear.metrics.lists.counters import counts_for
texts, references = ["c É a b", "", "a b c d e."], [["a b c é", "b a"], ["d e. a b c"]]
for metric in (Chrf(char_order=2, word_order=2, lowercase=True), Ter()):
    print(counts_for(metric).counts_by_list(texts, [0, 2, 3], references).tolist())
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
    found = ChrfCounts(metric).counts_by_list(texts, starts, references)
    assert np.array_equal(found, metric.counts_by_list(texts, starts, references))
    scorer = CHRF(word_order=order)
    wanted = scorer.corpus_score(texts, [list(lines) for lines in zip(*references, strict=True)])
    assert metric.scores(found.sum(axis=0))["chrf"] == pytest.approx(wanted.score, abs=1e-9)
