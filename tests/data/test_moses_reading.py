"""Reading Moses lists with any metric, past bad lines, and with word of how far it has come."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hopefear
from hopefear.data.files import ReadReport
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.moses.reader import moses_blocks, read_moses
from hopefear.errors import HopefearError, InputError
from hopefear.metrics.lists import Bleu, Chrf, ListMetric, Ter, WordErrors

METRICS = [
    Bleu(tokenize="none"),
    Bleu(tokenize="13a", lowercase=True),
    Chrf(word_order=2),
    Chrf(lowercase=True),
    Ter(),
    WordErrors(),
]
REFERENCES = [["Ein é Hund .", "der Hund"], ["", "x\u00a0y  z"], [" a b ", "b a a"], ["q", ""]]


def saved(folder: Path, text: str | bytes, name: str = "a.nbest") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def nbest(seed: int = 0) -> tuple[str, list[list[str]]]:
    """A file and the texts of its lists, one of them empty."""
    draw = random.Random(seed)
    words = ["Ein", "é", "Hund", ".", "x", "y", "z", "a", "b", "q", "日本"]
    lists = [[""] + [" ".join(draw.choices(words, k=k)) for k in range(1, 9)] for _ in REFERENCES]
    lines = [
        f"{i} ||| {text} ||| L= {c} T= {i} {c} s_{c}= 1 ||| {c}"
        for i, texts in enumerate(lists)
        for c, text in enumerate(texts)
    ]
    return "\n".join(lines) + "\n", lists


def references(folder: Path) -> list[Path]:
    return [
        saved(folder, "\n".join(lines[k] for lines in REFERENCES) + "\n", f"{k}.ref")
        for k in range(2)
    ]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.cost_signature())
@pytest.mark.parametrize("files", [1, 2])
def test_counts_of_any_metric(tmp_path: Path, metric: ListMetric, files: int) -> None:
    text, lists = nbest()
    path, refs = saved(tmp_path, text), references(tmp_path)[2 - files :]
    flat = [line for texts in lists for line in texts]
    gold = [lines[2 - files :] for lines in REFERENCES]
    gold = gold if files == 2 else [[lines[0] or "w"] for lines in gold]
    if files == 1:  # the only reference may not be empty
        refs = [saved(tmp_path, "\n".join(lines[0] for lines in gold) + "\n", "one.ref")]
    wanted = metric.statistics(
        [refs for refs, texts in zip(gold, lists, strict=True) for _ in texts], flat
    )
    found = read_moses(path, refs, metric=metric)
    assert found.counts is not None and np.array_equal(found.counts, wanted)
    assert found.metric == metric.name
    blocks = moses_blocks(path, refs, metric=metric, block_candidates=1, block_bytes=64)
    parts = [block.counts for block in blocks if block.counts is not None]
    assert len(parts) == 4 and np.array_equal(np.concatenate(parts), wanted)


def test_counts_take_the_room_they_need(tmp_path: Path) -> None:
    path = saved(tmp_path, "0 ||| a ||| L= 1 ||| 1\n1 ||| a b c ||| L= 1 ||| 1\n")
    one, other = saved(tmp_path, "a\na b\n", "1.ref"), saved(tmp_path, "b\na\n", "2.ref")
    bytes_ = read_moses(path, one, metric=Ter(), block_bytes=16)
    assert bytes_.counts is not None and bytes_.counts.dtype == np.uint8
    fractions = read_moses(path, [one, other], metric=Ter(), block_bytes=16)
    assert fractions.counts is not None and fractions.counts.tolist() == [[0, 1], [1, 1.5]]


EARLIER = {
    "colons": "0 ||| a|||b c: ||| d: 0 -7.6 lm: -3 x_y: 2 ||| -4\n"
    "1 ||| ||| d: 1 2 lm: 3 ||| 5 ||| 0=0\n",
    "no blanks": "0|||a b|||d: 0 -7.6 lm: -3 x_y: 2|||-4\r\n\n1||||||d: 1 2 lm: 3|||5|||0=0\n",
    "id alone": "0||| a b ||| d= 0 -7.6 lm= -3 x_y= 2 ||| -4\n1||| ||| d= 1 2 lm= 3 ||| 5\n",
    "neither": "\n0|||a b|||d= 0 -7.6 lm= -3 x_y= 2|||-4\n1 ||| ||| d= 1 2 lm= 3 ||| 5\n",
}


@pytest.mark.parametrize("form", EARLIER)
def test_lists_as_moses_once_wrote_them(tmp_path: Path, form: str) -> None:
    path = saved(tmp_path, EARLIER[form])
    for lists in (read_moses(path, texts=True), next(moses_blocks(path, texts=True))):
        assert lists.names == ("d.0", "d.1", "lm")
        assert lists.dense.tolist() == [[0.0, np.float32(-7.6), -3.0], [1.0, 2.0, 3.0]]
        assert lists.scores.tolist() == [-4.0, 5.0] and lists.sparse.names[0] == "x_y"
    X, _, names = hopefear.read(path)
    assert [c["text"] for one in X for c in one["candidates"]] == [
        "a|||b c:" if form == "colons" else "a b",
        "",
    ]
    assert names == ["d.0", "d.1", "lm", "x_y"]
    mixed = saved(tmp_path, EARLIER[form] + "2 ||| a ||| d= 1 2 lm: nan ||| 5\n")
    with pytest.raises(InputError, match=f"nbest:{3 + (form in ('no blanks', 'neither'))}: "):
        read_moses(mixed)


GOOD = [
    "0 ||| a b ||| L= 1 T= 1 2 s_a= 1 ||| 1 ||| 0=0 1=1",
    "0 ||| b ||| L= 2 T= 1 2 ||| 2 ||| 0-1=0",
    "1 ||| é ||| L= 3 T= 1 2 s_b= 2 ||| 3 ||| 0=0",
    "2 ||| ||| L= 4 T= 1 2 ||| 4 |||",
    "2 ||| a ||| L= 5 T= 1 2 s_a= 3 s_b= 4 ||| 5 ||| 1=0",
]
BAD = {
    "L= 1": "number of a list",
    "0 ||| a ||| L= 9 T= 1 2": "ID ||| words",
    "0 ||| zzz ||| L= 9 T= 1 s_z= 1 ||| 9 ||| 0=0": "2 numbers under T=",
    "0 ||| zzz ||| L= 9 T= 1 2 s_z= nan ||| 9 ||| 0=0": "finite",
    "0 ||| zzz ||| L= 9 T= 1 2 ||| nan ||| 0=0": "finite",
    "0 ||| zzz ||| L= 9 ||| 9 ||| 0=0": "2 numbers under T=, as on the first line; the line has",
    "0 ||| zzz ||| L= 9 T= 1 2 X= 1 ||| 9 ||| 0=0": "dense names",
    "0 ||| zzz ||| L= 9 T= 1 2 s_z= 1 s_z= 1 ||| 9 ||| 0=0": "every name once",
    "0 ||| zzz ||| L= 9 T= 1 2 s_z= 1 ||| 9 ||| 7=0": "source sentence",
    "0 ||| zzz ||| L= 9 T= 1 2 s_z= 1 ||| 9": "field of phrase pairs",
    "9 ||| zzz ||| L= 9 T= 1 2 s_z= 1 ||| 9 ||| 0=0": "3 lines",
}
# Nothing is wrong with these but that later lines are different.
FIRST = [bad for bad, words in BAD.items() if "T=" in words or words == "dense names"]
NOT_TEXT = b"0 ||| \xff ||| L= 9 T= 1 2 ||| 9 ||| 0=0"


def same(a: CandidateLists, b: CandidateLists) -> bool:
    """Whether lists are equal, but for the lines they are on."""
    for name in ("ids", "starts", "dense", "scores", "counts"):
        if not np.array_equal(getattr(a, name), getattr(b, name)):
            return False
    for first, second in ((a.sparse, b.sparse), (a.phrases, b.phrases)):
        assert first is not None and second is not None
        if not all(np.array_equal(x, y) for x, y in zip(first[1:3], second[1:3], strict=True)):
            return False
        if list(first.names) != list(second.names):
            return False
    return list(a.texts) == list(b.texts) and a.layout == b.layout


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    return {
        "refs": saved(tmp_path, "a b\né\na\n", "refs"),
        "source": saved(tmp_path, "A B\nÉ\nA B\n", "source"),
        "metric": Chrf(),
        "phrases": True,
        "texts": True,
    }


@pytest.mark.parametrize("block_bytes", [48, 1 << 18])
@pytest.mark.parametrize("bad", BAD)
def test_a_bad_line_is_left_out(
    tmp_path: Path, options: dict[str, Any], bad: str, block_bytes: int
) -> None:
    wanted = read_moses(saved(tmp_path, "\n".join(GOOD)), **options)
    for place in (0, 1):
        lines = [*GOOD[:place], bad, *GOOD[place:]]
        path = saved(tmp_path, "\n".join(lines), "bad.nbest")
        report = ReadReport()
        if place or bad not in FIRST:
            found = read_moses(
                path, **options, on_error="skip", report=report, block_bytes=block_bytes
            )
            assert same(found, wanted) and (report.rows, report.skipped) == (5, 1)
            assert f"bad.nbest:{place + 1}: " in report.messages[0]
        if place:
            assert BAD[bad] in report.messages[0]
            with pytest.raises(InputError) as caught:
                read_moses(path, **options, block_bytes=block_bytes)
            assert str(caught.value) == report.messages[0]


@pytest.mark.parametrize("seed", range(20))
def test_many_bad_lines_are_left_out(tmp_path: Path, options: dict[str, Any], seed: int) -> None:
    draw = random.Random(seed)
    wanted = read_moses(saved(tmp_path, "\n".join(GOOD)), **options)
    lines = [line.encode() for line in GOOD]
    for _ in range(draw.randrange(1, 9)):
        bad = draw.choice([*(line.encode() for line in BAD), NOT_TEXT])
        lines.insert(draw.randrange(1, len(lines) + 1), bad)
    lines.insert(0, NOT_TEXT)
    path = saved(tmp_path, b"\n".join(lines), "bad.nbest")
    report, size = ReadReport(), draw.choice([16, 100, 200, 1 << 18])
    found = read_moses(path, **options, on_error="skip", report=report, block_bytes=size)
    assert same(found, wanted) and report.skipped == len(lines) - len(GOOD)
    blocks = moses_blocks(path, **options, on_error="skip", block_bytes=size, block_candidates=1)
    assert np.array_equal(np.concatenate([block.dense for block in blocks]), wanted.dense)


def test_what_skipping_cannot_mend(tmp_path: Path) -> None:
    path = saved(tmp_path, "hope\nfear\n")
    with pytest.raises(InputError, match=r"a\.nbest: expected at least one .* all 2 lines are bad"):
        read_moses(path, on_error="skip")
    good = "{} ||| a ||| L= 1 ||| 1\n"
    gap = saved(tmp_path, good.format(0) + "1 ||| a ||| L= x ||| 1\n" + good.format(2), "gap")
    with pytest.raises(InputError, match=r"gap:3: expected list 1, .*--absent skip"):
        read_moses(gap, on_error="skip")
    assert read_moses(gap, on_error="skip", absent="skip").ids == ["0", "2"]
    with pytest.raises(HopefearError, match="on_error must be raise or skip"):
        read_moses(gap, on_error="no")


def test_ids_that_fall_are_skipped(tmp_path: Path) -> None:
    good = "{} ||| a ||| L= {} ||| 1\n"
    path = saved(tmp_path, "".join(good.format(*pair) for pair in ((0, 1), (1, 2), (0, 3), (1, 4))))
    for size in (8, 1 << 18):
        report = ReadReport()
        lists = read_moses(path, on_error="skip", report=report, block_bytes=size)
        assert lists.dense.ravel().tolist() == [1, 2, 4] and report.skipped == 1
        assert "a.nbest:3: expected lists in the order" in report.messages[0]


@pytest.mark.parametrize("metric", [Bleu(tokenize="none"), Chrf(), Ter()])
def test_references_that_do_not_fit(tmp_path: Path, metric: Any) -> None:
    path = saved(tmp_path, "".join(f"{i} ||| a ||| L= 1 ||| 1\n" for i in range(2)))
    good, empty = saved(tmp_path, "a\nb\n", "good"), saved(tmp_path, "", "empty")
    with pytest.raises(InputError, match=r"a\.nbest:1: .*empty has 0 lines"):
        read_moses(path, empty, metric=metric)
    with pytest.raises(InputError, match=r"empty:1: expected 2 lines, as .*good has"):
        read_moses(path, [good, empty], metric=metric)
    with pytest.raises(InputError, match=r"odd:2: expected UTF-8"):
        read_moses(path, saved(tmp_path, b"a\n\xff\n", "odd"), metric=metric)
    with pytest.raises(InputError, match=r"empty: expected at least one candidate"):
        read_moses([path, empty], good, metric=metric)
    late = saved(tmp_path, "0 ||| a ||| L= 1 ||| 1\n2 ||| a ||| L= 1 ||| 1\n", "late")
    with pytest.raises(InputError, match=r"late:2: .*good has 2 lines.* this one is list 2"):
        read_moses([path, late], good, metric=metric)
