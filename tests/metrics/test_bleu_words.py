"""BLEU statistics in a kernel: equal to sacreBLEU's, for one and for several references."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU

from hopefear.errors import HopefearError
from hopefear.metrics.lists.bleu import Bleu

SENTENCES = st.lists(st.sampled_from("abc"), max_size=9).map(" ".join)


def numbered(lines: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Words as numbers, and where lines begin."""
    words = [ord(word) for line in lines for word in line.split()]
    ptr = np.cumsum([0, *(len(line.split()) for line in lines)])
    return np.array(words, np.uint64), ptr


def counted(texts: list[str], which: list[int], references: list[list[str]]) -> np.ndarray:
    flat = [line for lines in references for line in lines]
    starts = np.cumsum([0, *map(len, references)])
    return Bleu(tokenize="none").word_statistics(*numbered(texts), which, *numbered(flat), starts)


def by_sacrebleu(text: str, references: list[str]) -> list[int]:
    metric = BLEU(tokenize="none")
    found = metric.corpus_score([text], [[line] for line in references])
    return [*found.counts, *found.totals, found.sys_len, found.ref_len]


@settings(deadline=None)
@given(st.lists(SENTENCES, min_size=1, max_size=4), st.lists(SENTENCES, min_size=1, max_size=3))
@example(["a a a"], ["a", "a a"])  # clipped at the most in one reference
@example(["a b a"], ["a b", "b a c c"])  # equally close in length: the shorter
@example([""], ["a"])
def test_counts_are_those_of_sacrebleu(texts: list[str], references: list[str]) -> None:
    found = counted(texts, [0] * len(texts), [references])
    assert found.tolist() == [by_sacrebleu(text, references) for text in texts]


def test_lists_keep_to_their_own_references() -> None:
    references = [["a b c d"], ["c c", "d"], ["b"]]
    texts, which = ["a b c d", "c c c", "a", "b b", "c c d"], [0, 1, 1, 2, 1]
    wanted = [by_sacrebleu(t, references[i]) for t, i in zip(texts, which, strict=True)]
    assert counted(texts, which, references).tolist() == wanted


def test_columns_and_counts_go_with_the_metric() -> None:
    metric = Bleu(tokenize="none")
    counts = counted(["a b c", "c a"], [0, 0], [["a b c d"]])
    assert np.array_equal(counts, metric.statistics([["a b c d"]] * 2, ["a b c", "c a"]))


def test_interpreted_counts_are_the_compiled_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    from hopefear.metrics.lists import bleu

    case = (["a b a b", "c"], [0, 1], [["a b", "b a b a"], ["c c"]])
    compiled = counted(*case)
    monkeypatch.setattr(bleu, "_count", bleu._count.py_func)
    with np.errstate(over="ignore"):  # of hashes; compiled, they go round without a word
        assert np.array_equal(counted(*case), compiled)


def test_lists_without_references_are_refused() -> None:
    with pytest.raises(HopefearError, match="give a set for every list"):
        counted(["a"], [1], [["a"]])
    with pytest.raises(HopefearError, match="list 1 has no reference"):
        counted(["a"], [0], [["a"], []])
