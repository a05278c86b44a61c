"""TER in a kernel: equal to sacreBLEU's, moves, beams and limits included."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from places import DATA
from sacrebleu.metrics import TER

from hopefear.data.moses.reading import read_moses
from hopefear.errors import HopefearError
from hopefear.metrics.lists import Ter
from hopefear.metrics.lists.edits import ter_counts
from hopefear.metrics.lists.text import Lines

pytestmark = pytest.mark.interpreted

LISTS = DATA / "multi30k-nbest"
OFFICIAL = TER()
LINES = st.lists(st.sampled_from(["a", "b", "c", "D", "é", "e"]), max_size=9).map(" ".join)


def agree(texts: list[str], starts: list[int], references: list[list[str]]) -> None:
    counts = Ter().counts_by_list(texts, starts, references)
    which = np.repeat(np.arange(len(references)), np.diff(starts))
    for text, i, row in zip(texts, which, counts.tolist(), strict=True):
        found = OFFICIAL.sentence_score(text, references[i])
        assert row == [found.num_edits, found.ref_length]


def near(words: list[str], draw: random.Random) -> list[str]:
    """The same words with some phrases moved, some words lost and some put in."""
    words = list(words)
    for _ in range(draw.randrange(5)):
        begin = draw.randrange(len(words) + 1)
        phrase = words[begin : begin + draw.randrange(1, 13)]
        del words[begin : begin + len(phrase)]
        place = draw.randrange(len(words) + 1)
        words[place:place] = phrase[draw.randrange(2) :] + ["x"] * draw.randrange(2)
    return words


@settings(deadline=None, max_examples=200)
@given(
    st.lists(LINES, min_size=3, max_size=5),
    st.lists(st.lists(LINES, min_size=1, max_size=3), min_size=2, max_size=2),
)
@example(["", "a", "a b"], [[""], ["a", "a b c d"]])
@example(["a D a", "d", "D d D"], [["A d"], ["d D a", ""]])
def test_random_words(texts: list[str], references: list[list[str]]) -> None:
    agree(texts, [0, 2, len(texts)], references)


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(3))
def test_moved_phrases(seed: int) -> None:
    draw = random.Random(seed)
    texts, references = [], []
    for _ in range(400):
        size, kinds = draw.choice([5, 10, 20]), draw.choice([4, 10, 30, 200])
        words = [f"w{draw.randrange(kinds)}" for _ in range(draw.randrange(1, size))]
        references.append([" ".join(words)])
        texts.append(" ".join(near(words, draw)))
    agree(texts, list(range(401)), references)


def test_limits() -> None:
    long = [f"w{k}" for k in range(130)]
    far = long[70:80] + long[:70] + long[80:]  # moved by more than fifty words
    wide = long[:40] + long[51:70] + long[40:51] + long[70:]  # a phrase of eleven words
    few = ["a b", " ".join(long[:3]), "b " * 90]
    references = [[" ".join(long)]] * 4 + [["x " * 60 + "b a"], ["y"], ["b"]]
    texts = [" ".join(far), " ".join(wide), *few[:2], few[0], few[2], few[2]]
    agree(texts, list(range(len(texts) + 1)), references)


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(6))
def test_after_a_thousand_moves_the_search_ends(seed: int) -> None:
    draw = random.Random(seed)
    words = [f"w{draw.randrange(4)}" for _ in range(36)]
    other = draw.sample(words, len(words))
    agree([" ".join(other)], [0, 1], [[" ".join(words)]])


def test_a_mean_of_lengths_need_not_be_whole() -> None:
    found = Ter().counts_by_list(["a b", "a"], [0, 1, 2], [["a b", "a b c"], ["a", "b"]])
    assert found.tolist() == [[0, 2.5], [0, 1]]
    assert Ter().scores(found.sum(axis=0)) == {"ter": 0.0}
    gold = Lines.packed(["a b", "c d", "e"])
    for stop, dtype in ((2, np.int32), (3, np.float64)):
        few = ter_counts(Lines.packed(["a"]), gold, np.array([0]), np.array([0, stop]))
        assert few.dtype == dtype


def test_tables_that_are_too_large_are_refused() -> None:
    line = "a " * 12_000
    with pytest.raises(HopefearError, match=r"12000 words .* cut them into sentences"):
        Ter().counts_by_list([line], [0, 1], [[line]])


@pytest.mark.compiled
@pytest.mark.skipif(not LISTS.exists(), reason="needs multi30k-nbest in HOPEFEAR_DATA")
def test_lists_of_a_decoder() -> None:
    lists = read_moses(LISTS / "val.nbest.xz", texts=True)
    assert lists.texts is not None
    chosen = range(0, lists.n_candidates, 97)
    which = np.searchsorted(lists.starts, chosen, "right") - 1
    references = (LISTS / "val.en").read_text("utf-8").splitlines()
    texts = [lists.texts[c] for c in chosen]
    agree(texts, list(range(len(texts) + 1)), [[references[i]] for i in which])
