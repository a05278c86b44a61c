"""Statistics of texts: equal to plain Python's and to sacreBLEU's, limits included."""

from __future__ import annotations

import random
import string
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from places import DATA
from sacrebleu.metrics import BLEU, CHRF, TER

from hopefear.errors import HopefearError
from hopefear.metrics.base import ListMetric
from hopefear.metrics.lists import Bleu, Chrf, Ter, WordErrors, texts

pytestmark = pytest.mark.interpreted

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


@settings(deadline=None, max_examples=200)
@given(METRICS, st.lists(st.tuples(LINES, st.lists(LINES, min_size=1, max_size=3)), max_size=4))
@example(Chrf(), [("", ["abc"]), ("a", ["abc"]), ("ab", ["", " "])])
@example(Chrf(word_order=2), [("a", ["a b", "b a"]), ("a a", ["a b", "b a"])])  # equal scores
def test_statistics_are_those_of_plain_python(
    metric: Chrf, pairs: list[tuple[str, list[str]]]
) -> None:
    found = metric.statistics([references for _, references in pairs], [text for text, _ in pairs])
    assert found.tolist() == [plain_row(metric, *pair) for pair in pairs]


@settings(deadline=None, max_examples=100)
@given(st.sampled_from([0, 2]), LINES, st.lists(LINES, min_size=1, max_size=3))
def test_scores_are_those_of_sacrebleu(order: int, text: str, references: list[str]) -> None:
    metric = Chrf(word_order=order)
    wanted = CHRF(word_order=order).corpus_score([text], [[line] for line in references])
    found = metric.scores(metric.total([references], [text]))["chrf"]
    assert found == pytest.approx(wanted.score, abs=1e-9)


TEXTS = ["Hope, and fear.", "", "É 5,5 (x) É", "hope & fear; it's"]
REFERENCES = [["Hope and fear!", "hope"]] * 2 + [["É 5.5 x)", "é", "Hope &amp; fear"]] * 2


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("tokenize", ["13a", "none", "intl", "char"])
def test_text_is_split_as_sacrebleu_does(tokenize: str, lowercase: bool) -> None:
    counts = Bleu(tokenize=tokenize, lowercase=lowercase).statistics(REFERENCES, TEXTS)
    official = BLEU(tokenize=tokenize, lowercase=lowercase, effective_order=True)
    for c, row in enumerate(counts.tolist()):
        found = official.sentence_score(TEXTS[c], REFERENCES[c])
        assert row == [*found.counts, *found.totals, found.sys_len, found.ref_len]


@pytest.mark.parametrize("lowercase", [False, True])
def test_entities_are_mended_as_sacrebleu_does(lowercase: bool) -> None:
    counts = Ter(lowercase, normalized=True).statistics(REFERENCES, TEXTS)
    official = TER(case_sensitive=not lowercase, normalized=True)
    for c, row in enumerate(counts.tolist()):
        found = official.sentence_score(TEXTS[c], REFERENCES[c])
        assert row == [found.num_edits, found.ref_length]


@pytest.mark.parametrize("metric", [Bleu(tokenize="none"), Chrf(), Ter(), WordErrors()])
def test_half_of_a_character_is_a_character(metric: ListMetric) -> None:
    # JSON can hold one, and UTF-8 cannot.
    odd = metric.statistics([["a \ud800 b"]] * 2, ["a \ud800 b", "a c b"])
    even = metric.statistics([["a x b"]] * 2, ["a x b", "a c b"])
    assert np.array_equal(odd, even)


def test_candidates_that_come_again_are_not_counted_again() -> None:
    metric, references = Ter(), [["once upon a time", "x"]] * 3
    before = texts._row.cache_info()
    first = metric.statistics(references, ["a time", "upon", "a time"])
    assert np.array_equal(first, metric.statistics(references, ["a time", "upon", "a time"]))
    after = texts._row.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (2, 4)


@pytest.mark.skipif(not LISTS.exists(), reason="needs multi30k-nbest in HOPEFEAR_DATA")
@pytest.mark.parametrize("order", [0, 2])
def test_lines_of_a_corpus(order: int) -> None:
    lines = (LISTS / "val.en").read_text("utf-8").splitlines()
    others = (LISTS / "val.de").read_text("utf-8").splitlines()
    metric = Chrf(word_order=order)
    references = [[text, lines[i - 1]] for i, text in enumerate(others)]
    found = metric.statistics(references, lines)
    some = zip(lines[:60], references, strict=False)
    assert found[:60].tolist() == [plain_row(metric, *pair) for pair in some]
    scorer = CHRF(word_order=order)
    wanted = scorer.corpus_score(lines, [list(lines) for lines in zip(*references, strict=True)])
    assert metric.scores(found.sum(axis=0))["chrf"] == pytest.approx(wanted.score, abs=1e-9)


# --- TER

WORDS = st.lists(st.sampled_from(["a", "b", "c", "D", "é", "e"]), max_size=9).map(" ".join)


def agree(outputs: list[str], references: list[list[str]]) -> None:
    official = TER()
    for text, refs, row in zip(
        outputs, references, Ter().statistics(references, outputs).tolist(), strict=True
    ):
        found = official.sentence_score(text, refs)
        assert row == [found.num_edits, found.ref_length]


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(WORDS, st.lists(WORDS, min_size=1, max_size=3)), min_size=1, max_size=4))
@example([("", [""]), ("a", ["a", "a b c d"])])
def test_edits_are_those_of_sacrebleu(pairs: list[tuple[str, list[str]]]) -> None:
    agree([text for text, _ in pairs], [references for _, references in pairs])


def test_moved_phrases_and_far_ones() -> None:
    long = [f"w{k}" for k in range(130)]
    far = long[70:80] + long[:70] + long[80:]
    agree([" ".join(far), "a b"], [[" ".join(long)], ["b a"]])
    shuffled = random.Random(1).sample(long, 20)
    agree([" ".join(shuffled)], [[" ".join(sorted(shuffled))]])


def test_a_mean_of_lengths_need_not_be_whole() -> None:
    found = Ter().statistics([["a b", "a b c"], ["a", "b"]], ["a b", "a"])
    assert found.tolist() == [[0, 2.5], [0, 1]]
    assert Ter().scores(found.sum(axis=0)) == {"ter": 0.0}
    assert Ter().statistics([["a b", "c d"]], ["a"]).dtype == np.int64


def test_tables_that_are_too_large_are_refused() -> None:
    line = "a " * 12_000
    with pytest.raises(HopefearError, match=r"12000 words .* cut them into sentences"):
        Ter().statistics([[line]], [line])
