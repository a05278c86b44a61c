"""The reader of Moses N-best lists: equal to a plain one, strict, and true to sacreBLEU."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import DATA
from sacrebleu.metrics import BLEU

from hopefear.data.lists.candidates import CandidateLists, NamedEntries
from hopefear.data.moses.reader import moses_blocks, read_moses
from hopefear.errors import HopefearError, InputError
from hopefear.metrics.lists import Bleu

LISTS = DATA / "multi30k-nbest"
METRIC = Bleu(tokenize="none")
GOOD = "0 ||| a b ||| LM0= -1 TM0= 1 2 ||| -3\n"


def saved(folder: Path, text: str | bytes, name: str = "a.nbest") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def entries(named: NamedEntries | None, c: int) -> dict[str, float]:
    """Names and values of one candidate."""
    if named is None:
        return {}
    values = np.ones(len(named.ids)) if named.values is None else named.values
    span = range(named.indptr[c], named.indptr[c + 1])
    return {named.names[int(named.ids[e])]: float(values[e]) for e in span}


def plain_lines(text: str) -> list[tuple[int, list[str], dict[str, list[float]], float]]:
    """Each line by the means of Python alone: id, words, features, score."""
    found = []
    for line in text.split("\n"):
        if not line.strip():
            continue
        number, words, features, score = re.split(r"\s\|\|\|(?=\s)", f" {line} ")[:4]
        values: dict[str, list[float]] = {}
        for token in features.split():
            if token.endswith("="):
                name = token[:-1]
                values[name] = []
            else:
                values[name].append(float(token))
        found.append((int(number), words.split(), values, float(score)))
    return found


NUMBERS = st.one_of(
    st.integers(-999, 999).map(str),
    st.floats(-1e6, 1e6, width=32).map(repr),
    st.sampled_from(["-0.5", ".5", "1e-3", "+2", "0012", "-12.345678901", "1.", "-0", "9E2"]),
)
WORDS = st.text("ab|=_é—“0.\u3042-", min_size=1, max_size=6).filter(lambda word: word != "|||")
BLANKS = st.sampled_from([" ", " ", "  ", "\u00a0", "\u3000", "\u2009", "\x1d", "\t"])


@st.composite
def nbest_files(draw: Any) -> str:
    """Lines with two dense names and some sparse ones, in any order that is allowed."""
    lines = []
    for number in range(draw(st.integers(1, 4))):
        for _ in range(draw(st.integers(1, 3))):
            words = draw(st.lists(WORDS, max_size=5))
            text = "".join(word + draw(BLANKS) for word in words)
            dense = [f"D0= {draw(NUMBERS)}", f"T= {draw(NUMBERS)}  {draw(NUMBERS)}"]
            names = draw(st.lists(st.sampled_from(["s_a", "s_=", "é_"]), unique=True))
            sparse = [f"{name}= {draw(NUMBERS)}" for name in names]
            features = " ".join(draw(st.permutations(dense + sparse)))
            tail = draw(st.sampled_from(["", " ", "\r", " ||| 0=0", " ||| x ||| y "]))
            lines.append(f"{number} ||| {text} ||| {features} ||| {draw(NUMBERS)}{tail}")
            lines.extend([""] * draw(st.integers(0, 1)))
    return "\n".join(lines) + draw(st.sampled_from(["", "\n"]))


def agrees(lists: CandidateLists, text: str) -> None:
    """Whether lists are what the plain reader finds."""
    wanted = plain_lines(text)
    assert lists.n_candidates == len(wanted)
    assert np.array_equal(np.repeat(lists.ids, np.diff(lists.starts)), [str(w[0]) for w in wanted])
    blocks = dict(lists.layout)
    for c, (_, words, features, score) in enumerate(wanted):
        assert lists.texts[c].split() == words
        dense = [v for name in blocks for v in features[name]]
        assert np.array_equal(lists.dense[c], np.float32(dense))
        assert lists.scores[c] == np.float32(score)
        sparse = {name: float(np.float32(v[0])) for name, v in features.items() if "_" in name}
        assert entries(lists.sparse, c) == sparse


@settings(deadline=None, max_examples=50)
@given(nbest_files())
def test_reads_what_a_plain_reader_does(tmp_path_factory: Any, text: str) -> None:
    path = saved(tmp_path_factory.getbasetemp(), text)
    whole = read_moses(path, texts=True, dedup="none")
    agrees(whole, text)
    assert {name for name, _ in whole.layout} == {"D0", "T"}
    cut = read_moses(path, texts=True, dedup="none", block_bytes=40)
    assert np.array_equal(cut.dense, whole.dense) and np.array_equal(cut.starts, whole.starts)
    assert np.array_equal(cut.lines, whole.lines)


@settings(deadline=None, max_examples=30)
@given(nbest_files(), st.integers(1, 5))
def test_what_stands_behind_the_score_is_kept(tmp_path_factory: Any, text: str, most: int) -> None:
    path = saved(tmp_path_factory.getbasetemp(), text)
    more: dict[str, Any] = {"derivations": True, "dedup": "none", "block_bytes": 60}
    # Words have bars within, but none that stand alone.
    fields = [re.split(r"(?<!\S)\|\|\|(?!\S)", line, maxsplit=4) for line in text.split("\n")]
    wanted = [(found[4:] or [""])[0].strip() for found in fields if len(found) > 1]
    whole = read_moses(path, **more)
    blocks = moses_blocks(path, block_candidates=most, **more)
    assert tails_of(whole) == wanted
    assert [tail for block in blocks for tail in tails_of(block)] == wanted
    back = whole.take(np.arange(len(whole))[::-1])
    ends = zip(whole.starts[:-1][::-1].tolist(), whole.starts[1:][::-1].tolist(), strict=True)
    assert tails_of(back) == [tail for a, b in ends for tail in wanted[a:b]]


def tails_of(lists: CandidateLists) -> list[str]:
    assert lists.derivations is not None
    return [(lists.derivations[c] or "").strip() for c in range(lists.n_candidates)]


@settings(deadline=None, max_examples=30)
@given(nbest_files(), st.integers(1, 5))
def test_blocks_put_together_are_the_whole(tmp_path_factory: Any, text: str, most: int) -> None:
    path = saved(tmp_path_factory.getbasetemp(), text)
    whole = read_moses(path, texts=True)
    blocks = list(moses_blocks(path, texts=True, block_candidates=most, block_bytes=60))
    assert np.array_equal(np.concatenate([b.ids for b in blocks]), whole.ids)
    assert np.array_equal(np.concatenate([b.dense for b in blocks]), whole.dense)
    c = 0
    for block in blocks:
        for k in range(block.n_candidates):
            assert block.texts[k] == whole.texts[c]
            assert entries(block.sparse, k) == entries(whole.sparse, c)
            c += 1
    assert sum(b.dropped for b in blocks) == whole.dropped


BAD = {
    "no fields": (f"{GOOD}hope\n", 2, "number of a list"),
    "no id": (f"{GOOD}||| a ||| LM0= 1 TM0= 1 2 ||| 1\n", 2, "number of a list"),
    "negative id": ("-1 ||| a ||| L= 1 ||| 1\n", 1, "number of a list"),
    "id with a tail": ("1x ||| a ||| L= 1 ||| 1\n", 1, "number of a list"),
    "id of many digits": (f"{'1' * 30} ||| a ||| L= 1 ||| 1\n", 1, "number of a list"),
    "id alone": (f"{GOOD}\n1\n", 3, "ID ||| words"),
    "words alone": (f"{GOOD}0 ||| a\n", 2, "ID ||| words"),
    "no score field": (f"{GOOD}0 ||| a ||| LM0= 1 TM0= 1 2\n", 2, "ID ||| words"),
    "empty score": (f"{GOOD}0 ||| a ||| LM0= 1 TM0= 1 2 |||\n", 2, "ID ||| words"),
    "nan score": (f"{GOOD}0 ||| a ||| LM0= 1 TM0= 1 2 ||| nan\n", 2, "finite"),
    "huge score": ("0 ||| a ||| L= 1 ||| 1e39\n", 1, "finite"),
    "word as score": ("0 ||| a ||| L= 1 ||| x\n", 1, "a number as the score"),
    "two scores": ("0 ||| a ||| L= 1 ||| 1 2\n", 1, "behind the score"),
    "nan value": (f"{GOOD}0 ||| a ||| LM0= nan TM0= 1 2 ||| 1\n", 2, "finite"),
    "inf value": ("0 ||| a ||| L= -inf ||| 1\n", 1, "finite"),
    "word as value": (f"{GOOD}0 ||| a ||| LM0= x TM0= 1 2 ||| 1\n", 2, "a number"),
    "too few values": (f"{GOOD}0 ||| a ||| LM0= 1 TM0= 1 ||| 1\n", 2, "2 numbers under TM0="),
    "and how many": (f"{GOOD}0 ||| a ||| LM0= 1 TM0= 1 ||| 1\n", 2, "; this line has 1: 'TM0= 1'"),
    "too many values": (f"{GOOD}0 ||| a ||| LM0= 1 3 TM0= 1 2 ||| 1\n", 2, "1 number under LM0="),
    "so many": (
        f"{GOOD}0 ||| a ||| LM0= 1 3\tTM0= 1 2 ||| 1\n",
        2,
        "; this line has 2: 'LM0= 1 3'",
    ),
    "name without value": ("0 ||| a ||| L= T= 1 ||| 1\n", 1, "1 number under L="),
    "dense name vanishes": (f"{GOOD}0 ||| a ||| LM0= 1 ||| 1\n", 2, "2 numbers under TM0="),
    "all names vanish": (f"{GOOD}0 ||| a ||| ||| 1\n", 2, "1 number under LM0="),
    "dense name appears": (f"{GOOD}0 ||| a ||| LM0= 1 X= 1 TM0= 1 2 ||| 1\n", 2, "dense names"),
    "longer name": (f"{GOOD}0 ||| a ||| LM01= 1 TM0= 1 2 ||| 1\n", 2, "dense names"),
    "dense name twice": (f"{GOOD}0 ||| a ||| LM0= 1 LM0= 1 TM0= 1 2 ||| 1\n", 2, "LM0= once"),
    "sparse name twice": ("0 ||| a ||| s_x= 1 s_y= 1 s_x= 1 ||| 1\n", 1, "every name once"),
    "sparse name of two": (f"{GOOD}0 ||| a ||| LM0= 1 TM0= 1 2 s_x= 1 2 ||| 1\n", 2, "one number"),
    "sparse name of none": (f"{GOOD}0 ||| a ||| LM0= 1 TM0= 1 2 s_x= ||| 1\n", 2, "one number"),
    "value before names": ("0 ||| a ||| 3 L= 1 ||| 1\n", 1, "a name that ends in '='"),
    "name of nothing": ("0 ||| a ||| L= 1 = 1 ||| 1\n", 1, "a name that ends in '='"),
    "ids fall": (GOOD.replace("0", "1", 1) + GOOD, 2, "order of their ids"),
    "a list comes again": (GOOD + GOOD.replace("0", "1", 1) + GOOD, 3, "order of their ids"),
    "an id is absent": (GOOD + GOOD.replace("0", "2", 1), 2, "list 1"),
    "the first is absent": (GOOD.replace("0", "1", 1), 1, "list 0"),
    "not UTF-8": (GOOD.encode() + b"0 ||| \xff ||| LM0= 1 TM0= 1 2 ||| 1\n", 2, "UTF-8"),
    "nothing": ("", 0, "at least one candidate"),
    "blank lines": ("\n \n", 0, "at least one candidate"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named_with_its_place(tmp_path: Path, case: str) -> None:
    text, line, words = BAD[case]
    path = saved(tmp_path, text)
    place = f"{path}:{line}: " if line else f"{path}: "
    for read in (read_moses, lambda p: list(moses_blocks(p, block_bytes=32))):
        with pytest.raises(InputError) as caught:
            read(path)
        assert str(caught.value).startswith(place) and words in str(caught.value)


def test_names_can_be_declared(tmp_path: Path) -> None:
    text = "0 ||| a ||| big_lm= -1 w= 2 ||| 1\n0 ||| b ||| big_lm= -2 ||| 1\n"
    path = saved(tmp_path, text)
    lists = read_moses(path, dense=["big_lm"], sparse=["w"])
    assert lists.names == ("big_lm",) and lists.dense.tolist() == [[-1], [-2]]
    assert [entries(lists.sparse, c) for c in range(2)] == [{"w": 2.0}, {}]
    with pytest.raises(InputError, match="1 number under w="):
        read_moses(path)


def test_references_that_do_not_fit(tmp_path: Path) -> None:
    nbest = saved(tmp_path, GOOD + GOOD.replace("0", "1", 1))
    one, two = saved(tmp_path, "a\n", "1"), saved(tmp_path, "a\nb\n", "2")
    gap, three = saved(tmp_path, "a\n \n", "gap"), saved(tmp_path, "a\nb\nc\n", "3")
    bleu = METRIC
    with pytest.raises(InputError, match=r"a\.nbest:2: .* 1 lines .* this one is list 1"):
        read_moses(nbest, one, metric=bleu)
    with pytest.raises(InputError, match=r"1:2: expected 2 lines.*this file has 1"):
        read_moses(nbest, [two, one], metric=bleu)
    with pytest.raises(InputError, match=r"gap:2: expected a reference"):
        read_moses(nbest, gap, metric=bleu)
    with pytest.raises(InputError, match=r"3:3: expected list 2 in .*; there is no such list"):
        read_moses(nbest, three, metric=bleu)
    with pytest.raises(InputError, match=r"3:3: expected list 2"):
        list(moses_blocks(nbest, three, metric=bleu))
    assert len(read_moses(nbest, three, metric=bleu, absent="skip")) == 2
    assert len(read_moses(nbest, [two, gap], metric=bleu)) == 2
    with pytest.raises(HopefearError, match="cannot be read"):
        read_moses(nbest, tmp_path / "none", metric=bleu)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"metric": METRIC}, "metric without refs"),
        ({"refs": [], "metric": METRIC}, "refs: expected at least one file"),
        ({"phrases": True}, "phrases needs source"),
        ({"dedup": "best"}, "dedup must be first or none"),
        ({"absent": "no"}, "absent must be raise or skip"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(HopefearError, match=words):
        read_moses("x", **options)
    with pytest.raises(HopefearError, match="paths: expected at least one file"):
        read_moses([])


def test_an_empty_hypothesis_is_scored(tmp_path: Path) -> None:
    nbest = saved(tmp_path, "0 |||  ||| L= 1 ||| 1\n0 ||| ||| L= 2 ||| 1\n0 ||| a ||| L= 3 ||| 1\n")
    refs = saved(tmp_path, "a b\n", "refs")
    lists = read_moses(nbest, refs, metric=METRIC, texts=True)
    assert lists.counts is not None
    assert lists.counts.tolist() == [[0] * 9 + [2]] * 2 + [[1, 0, 0, 0, 1, 0, 0, 0, 1, 2]]
    assert [lists.texts[c] for c in range(3)] == ["", "", "a"]


def test_runs_of_a_decoder_are_merged(tmp_path: Path) -> None:
    first = "0 ||| a ||| L= 1 ||| 1\n1 ||| b ||| L= 1 s_x= 1 s_y= 2 ||| 1\n"
    again = "0 ||| c ||| L= 1 ||| 9\n0 ||| a ||| L= 1.0 ||| 9\n0 ||| a ||| L= 2 ||| 9\n"
    again += "1 ||| b ||| s_y= 2 L= 1 s_x= 1 ||| 9\n2 ||| d ||| L= 0 ||| 9\n"
    paths = [saved(tmp_path, first, "1.nbest"), saved(tmp_path, again, "2.nbest")]
    lists = read_moses(paths, texts=True)
    texts = [lists.texts[c] for c in range(lists.n_candidates)]
    assert texts == ["a", "c", "a", "b", "d"]
    assert lists.starts.tolist() == [0, 3, 4, 5] and lists.dropped == 2
    assert lists.scores.tolist() == [1, 9, 9, 1, 9] and lists.dense[:, 0].tolist() == [
        1,
        1,
        2,
        1,
        0,
    ]
    assert [entries(lists.sparse, c) for c in (2, 3, 4)] == [{}, {"s_x": 1.0, "s_y": 2.0}, {}]
    gap = saved(tmp_path, "3 ||| d ||| L= 0 ||| 9\n5 ||| d ||| L= 0 ||| 9\n", "3.nbest")
    with pytest.raises(InputError, match=r"3\.nbest:2: expected list 4, .* this one is list 5"):
        read_moses([*paths, gap])
    assert read_moses(paths, dedup="none").n_candidates == 7
    assert read_moses([paths[0]] * 2).dropped == 2
    with pytest.raises(InputError, match=r"bad:1: expected 1 number under L="):
        read_moses([*paths, saved(tmp_path, "0 ||| a ||| L= 1 2 ||| 1\n", "bad")])


def test_copies_within_a_file_are_left_out(tmp_path: Path) -> None:
    line = "{} ||| a b ||| L= {} s_x= {} ||| 1\n"
    text = "".join(line.format(i, k % 2, k % 3) for i in range(3) for k in range(9))
    lists = read_moses(saved(tmp_path, text), texts=True)
    assert lists.n_candidates == 18 and lists.dropped == 9 and lists.starts[1] == 6
    found = [(float(lists.dense[c, 0]), entries(lists.sparse, c)["s_x"]) for c in range(6)]
    assert found == [(k % 2, k % 3) for k in range(6)]


PAIRS = "0 ||| x y z ||| L= 1 ||| 1 ||| 0-1=1-2 2=0 ||| 0-0\n0 ||| z ||| L= 2 ||| 1 ||| 2=0\n"


def test_phrase_pairs_have_names(tmp_path: Path) -> None:
    source = saved(tmp_path, "das ist gut\n", "source")
    lists = read_moses(saved(tmp_path, PAIRS), source=source, phrases=True)
    assert entries(lists.phrases, 0) == {"das ist ||| y z": 1.0, "gut ||| x": 1.0}
    assert entries(lists.phrases, 1) == {"gut ||| z": 1.0}
    cut = read_moses(saved(tmp_path, PAIRS), source=source, phrases=True, block_bytes=8)
    assert entries(cut.phrases, 1) == {"gut ||| z": 1.0}


def test_a_pair_counts_once_in_a_derivation(tmp_path: Path) -> None:
    source = saved(tmp_path, "c a b a a\n", "source")
    text = (
        "0 ||| z x y x x ||| L= 1 ||| 1 ||| 0=0 1=1 2=2 3=3 4=4\n"
        "0 ||| x y x ||| L= 2 ||| 1 ||| 2=1 3=0 4=2\n"
        "0 |||  ||| L= 2 ||| 1 |||\n"
        "0 ||| x x ||| L= 3 ||| 1 ||| 1=0 4=1\n"
    )
    for block in (8, 1 << 20):
        pairs = read_moses(
            saved(tmp_path, text), source=source, phrases=True, block_bytes=block
        ).phrases
        assert pairs is not None and pairs.values is None
        assert pairs.indptr.tolist() == [0, 3, 5, 5, 6]
        names = [pairs.names[j] for j in pairs.ids.tolist()]
        assert names == ["c ||| z", "a ||| x", "b ||| y", "a ||| x", "b ||| y", "a ||| x"]


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ("0-3=0", "source sentence"),
        ("0=1-3", "hypothesis"),
        ("0-0", "phrase pair"),
        ("2-1=0", "phrase pair"),
        ("a=b", "phrase pair"),
        ("0=0x", "phrase pair"),
        ("", "field of phrase pairs"),
    ],
)
def test_bad_phrase_pairs(tmp_path: Path, pairs: str, words: str) -> None:
    text = PAIRS + f"0 ||| x y z ||| L= 3 ||| 1 ||| {pairs}\n"
    source = saved(tmp_path, "das ist gut\n", "source")
    with pytest.raises(InputError, match=rf"a\.nbest:3: .*{words}"):
        read_moses(saved(tmp_path, text), source=source, phrases=True)
    short = saved(tmp_path, "", "short")
    with pytest.raises(InputError, match=r"a\.nbest:1: .*has 0 lines"):
        read_moses(saved(tmp_path, text), source=short, phrases=True)


def test_sparse_names_that_rarely_come(tmp_path: Path) -> None:
    rare = {3: " s_a= 2", 17: " s_b= 3", 18: " s_a= 4"}
    text = "".join(f"{i} ||| a ||| L= {i}{rare.get(i, '')} ||| 1\n" for i in range(25))
    path = saved(tmp_path, text)
    found = [
        (int(block.ids[i]), entries(block.sparse, i))
        for block in moses_blocks(path, block_candidates=2, block_bytes=32)
        for i in range(len(block))
        if entries(block.sparse, i)
    ]
    assert found == [(3, {"s_a": 2.0}), (17, {"s_b": 3.0}), (18, {"s_a": 4.0})]


def test_some_lists_are_lists_of_their_own(tmp_path: Path) -> None:
    text = "".join(f"{i // 2} ||| w{i} ||| L= {i} s_{i}= 1 ||| {i} ||| 0=0\n" for i in range(8))
    lines = saved(tmp_path, "a\nb\nc\nd\n", "lines")
    whole = read_moses(
        saved(tmp_path, text),
        lines,
        metric=METRIC,
        source=lines,
        phrases=True,
        texts=True,
    )
    part = whole.take(np.arange(1, 3))
    assert part.ids == ["1", "2"] and part.starts.tolist() == [0, 2, 4]
    assert part.dense[:, 0].tolist() == part.scores.tolist() == [2, 3, 4, 5]
    assert part.counts is not None
    assert [part.texts[c] for c in range(4)] == ["w2", "w3", "w4", "w5"]
    assert entries(part.sparse, 3) == {"s_5": 1.0} and len(part.counts) == 4
    assert entries(part.phrases, 3) == {"c ||| w5": 1.0}
    short = saved(tmp_path, "a\nb\n", "short")
    with pytest.raises(InputError, match=r"short:3: expected 4 lines"):
        read_moses(saved(tmp_path, text), lines, metric=METRIC, source=short, phrases=True)


def test_counts_that_need_more_than_a_byte(tmp_path: Path) -> None:
    words = " ".join(["a"] * 300)
    text = f"{GOOD}1 ||| {words} ||| LM0= 1 TM0= 1 2 ||| 1\n"
    refs = saved(tmp_path, f"a b\n{words}\n", "refs")
    lists = read_moses(saved(tmp_path, text), refs, metric=METRIC, block_bytes=64)
    assert lists.counts is not None and lists.counts.dtype == np.int32
    assert lists.counts[0].tolist() == [2, 1, 0, 0, 2, 1, 0, 0, 2, 2]
    assert lists.counts[1].tolist() == [300, 299, 298, 297] * 2 + [300, 300]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_files(tmp_path: Path, pack: Any) -> None:
    lists = read_moses(saved(tmp_path, pack(GOOD.encode()), "packed"))
    assert lists.layout == (("LM0", 1), ("TM0", 2)) and lists.dense.tolist() == [[-1, 1, 2]]
    assert not any(
        a.flags.writeable for a in (lists.dense, lists.scores, lists.starts, lists.lines)
    )


INTERPRETED = """
import sys
from hopefear.data.moses.reader import read_moses
from hopefear.metrics.lists import Bleu
refs = sys.argv[1]
lists = read_moses(
    "-", refs, metric=Bleu(tokenize="none"), texts=True, source=refs, phrases=True, block_bytes=64
)
print(lists.dense.tolist(), lists.counts.tolist(), lists.dropped, lists.phrases.names[1])
"""


@pytest.mark.parametrize("plain", ["0", "1"])
def test_interpreted_and_from_standard_input(tmp_path: Path, plain: str) -> None:
    nbest = saved(tmp_path, PAIRS + PAIRS.splitlines(keepends=True)[1])
    refs = saved(tmp_path, "x\u00a0y q\n", "refs")
    with nbest.open("rb") as stream:
        answer = subprocess.run(
            [sys.executable, "-W", "error", "-c", INTERPRETED, str(refs)],
            env={**os.environ, "NUMBA_DISABLE_JIT": plain},
            stdin=stream,
            capture_output=True,
            text=True,
            check=False,
        )
    wanted = (
        "[[1.0], [2.0]] [[2, 1, 0, 0, 3, 2, 1, 0, 3, 3], [0, 0, 0, 0, 1, 0, 0, 0, 1, 3]] 1 q ||| x"
    )
    assert answer.stdout.strip() == wanted, answer.stderr


@pytest.mark.skipif(not LISTS.exists(), reason="needs multi30k-nbest in HOPEFEAR_DATA")
def test_val_lists_have_the_statistics_of_sacrebleu() -> None:
    refs = LISTS / "val.en"
    lists = read_moses(
        LISTS / "val.nbest.xz", refs, metric=METRIC, texts=True, source=LISTS / "val.de",
        phrases=True,
    )  # fmt: skip
    assert (len(lists), lists.n_candidates, lists.dense.shape[1]) == (1014, 97_508, 14)
    assert lists.counts is not None and lists.phrases is not None
    references = refs.read_text("utf-8").splitlines()
    metric = BLEU(tokenize="none")
    first = [lists.texts[int(c)] for c in lists.starts[:-1]]
    found = metric.corpus_score(first, [references])
    assert [*found.counts, *found.totals, found.sys_len, found.ref_len] == lists.counts[
        lists.starts[:-1]
    ].sum(axis=0).tolist()
    assert round(found.score, 2) == 41.11
    for i in range(0, 1014, 13):
        c = int(lists.starts[i + 1]) - 1
        row = metric.corpus_score([lists.texts[c]], [[references[i]]])
        assert lists.counts[c].tolist() == [*row.counts, *row.totals, row.sys_len, row.ref_len]
        targets = [name.split(" ||| ")[1] for name in entries(lists.phrases, c)]
        words = lists.texts[c]
        assert all(f" {target} " in f" {words} " for target in targets)


@pytest.mark.parametrize(
    "fields", ["{0}= 1 {0}= 2", "LM0= 1", "LM0= 1 {0}= 2 3", "LM0= 1 {0}=", "LM0= 1 {0}x= 1"]
)
def test_long_names_are_not_quoted_whole(fields, tmp_path):
    name, path = "7" * 5000, tmp_path / "lists"
    lines = [f"0 ||| a ||| {given.format(name)} ||| 0.5" for given in ("LM0= 1 {0}= 2", fields)]
    path.write_text("\n".join(lines))
    refs = tmp_path / "refs"
    refs.write_text("a\n")
    with pytest.raises(InputError, match=r"lists:2: expected .*777…") as caught:
        read_moses(path, refs, metric=METRIC)
    assert len(str(caught.value)) < 800
