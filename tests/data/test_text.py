"""The text reader against a plain Python count of n-grams."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopefear.data.files import ReadReport
from hopefear.data.text import iter_text, read_text
from hopefear.data.text_counter import TextCounter
from hopefear.errors import HopefearError, InputError, ModelError
from hopefear.features import HashedFeatures, from_parts

TOKEN = re.compile(r"[^\W_]+(?:['_][^\W_]+)*|[!?$]", re.UNICODE)


def plain_counts(text: str, order: int) -> Counter[str]:
    words = TOKEN.findall(text.lower())
    return Counter(
        " ".join(words[i : i + n]) for n in range(1, order + 1) for i in range(len(words) - n + 1)
    )


def counts(data, i: int) -> dict[str, int]:
    a, b = data.rows.indptr[i : i + 2]
    assert (np.diff(data.rows.indices[a:b]) > 0).all()
    names = data.features.names(data.rows.indices[a:b])
    return dict(zip(names, data.rows.values[a:b].astype(int).tolist(), strict=True))


def saved(folder: Path, lines: list[tuple[str, str]]) -> Path:
    path = folder / "data.tsv"
    path.write_text("".join(f"{label}\t{text}\n" for label, text in lines), encoding="utf-8")
    return path


LINES = [
    ("pos", "Good, GOOD fun! Isn't it? ÉTÉ naïve — “quoted” snake_case 'tis rock'n'roll"),
    ("neg", ""),
    ("Ärger", "$5 not good... not good at all\tsecond tab is text"),
    ("pos", "the don’t of été"),
]


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("block", [16, 1 << 20])
def test_equals_a_plain_count(order: int, block: int, tmp_path: Path) -> None:
    data = read_text(saved(tmp_path, LINES), ngrams=order, block_bytes=block)
    assert data.classes == ("neg", "pos", "Ärger")
    assert data.rows.labels.tolist() == [1, 0, 2, 1]
    for i, (_, text) in enumerate(LINES):
        assert counts(data, i) == plain_counts(text.replace("’", "'"), order)


WORDS = st.lists(st.sampled_from(["a", "b", "C", "don't", "!", "é", "x_y", "--"]), max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=8), st.integers(1, 3), st.integers(1, 3))
def test_cut_off_keeps_what_enough_lines_have(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], order: int, cut: int
) -> None:
    lines = [("1", " ".join(words)) for words in rows]
    path = saved(tmp_path_factory.getbasetemp(), lines)
    data = read_text(path, ngrams=order, min_count=cut, block_bytes=32)
    wanted = [plain_counts(text, order) for _, text in lines]
    seen = Counter(name for row in wanted for name in row)
    for i, row in enumerate(wanted):
        assert counts(data, i) == {n: c for n, c in row.items() if seen[n] >= cut}
    back = from_parts(data.features.to_header(), data.features.arrays())
    again = read_text(path, features=back, classes=data.classes)
    assert again.digest == data.digest


def test_growth_of_the_tables(tmp_path: Path) -> None:
    rng = random.Random(2)
    texts = [" ".join(f"w{rng.randrange(9000)}" for _ in range(60)) for _ in range(600)]
    lines = [(f"class{i % 300}", text) for i, text in enumerate(texts)]
    data = read_text(saved(tmp_path, lines), ngrams=2, block_bytes=5000)
    assert data.n_features == len({n for t in texts for n in plain_counts(t, 2)})
    assert len(data.classes) == 300
    for i in rng.sample(range(600), 20):
        assert counts(data, i) == plain_counts(texts[i], 2)
        assert data.classes[data.rows.labels[i]] == lines[i][0]


def test_given_features_drop_the_unknown(tmp_path: Path) -> None:
    train = read_text(saved(tmp_path, [("a", "one two three"), ("b", "two")]), ngrams=2)
    report = ReadReport()
    path = saved(tmp_path, [("a", "one two new one two")])
    data = read_text(path, features=train.features, classes=train.classes, report=report)
    assert counts(data, 0) == {"one": 2, "two": 2, "one two": 2}
    assert report.unknown_features == 1
    with pytest.raises(InputError, match=r"data.tsv:1: expected a label out of a, b, found 'c'"):
        read_text(saved(tmp_path, [("c", "x")]), features=train.features, classes=train.classes)
    path.write_text("no tab here two\n\tempty label one\nz\ttwo\n")
    free = read_text(path, features=train.features, classes=train.classes, require_labels=False)
    assert free.rows.labels.tolist() == [-1, -1, -1]
    assert [counts(free, i) for i in range(3)] == [{"two": 1}, {"one": 1}, {"two": 1}]


def test_hashing_reports_collisions(tmp_path: Path) -> None:
    words = [f"w{i}" for i in range(2000)]
    path = saved(tmp_path, [("1", " ".join(words)), ("2", "w1 w1 w2")])
    exact = read_text(path, ngrams=2)
    small, large = (read_text(path, ngrams=2, hash_bits=b) for b in (8, 24))
    assert isinstance(small.features, HashedFeatures)
    assert small.n_features == 256
    assert small.features.collisions > 0.9
    assert large.features.collisions < 0.01
    assert large.rows.values[large.rows.indptr[1] :].sum() == 5
    assert np.array_equal(
        np.add.reduceat(large.rows.values, large.rows.indptr[:-1]),
        np.add.reduceat(exact.rows.values, exact.rows.indptr[:-1]),
    )
    back = from_parts(large.features.to_header(), large.features.arrays())
    assert read_text(path, features=back, classes=large.classes).digest == large.digest


def test_hashed_columns_keep_the_names_that_came_first(tmp_path: Path) -> None:
    path = saved(tmp_path, [("1", "Not good , not GOOD fun"), ("2", "fun")])
    data = read_text(path, ngrams=2, hash_bits=24)
    names = {"not": 2, "good": 2, "fun": 1, "not good": 2, "good not": 1, "good fun": 1}
    assert counts(data, 0) == names
    back = from_parts(data.features.to_header(), data.features.arrays())
    assert back.names(data.rows.indices) == data.features.names(data.rows.indices)
    assert back.name(int(np.setdiff1d(np.arange(20), data.rows.indices)[0])).startswith("#")
    parts = data.features.arrays()
    for bad in (
        {**parts, "columns": parts["columns"][::-1]},
        {**parts, "columns": parts["columns"][:-1]},
        {**parts, "columns": parts["columns"] + (1 << 24)},
        {},
    ):
        with pytest.raises(ModelError):
            from_parts(data.features.to_header(), bad)


def test_hashed_names_are_limited(tmp_path: Path) -> None:
    words = [f"{i:x}" + "y" * (i % 70) for i in range(70_000)]
    data = read_text(saved(tmp_path, [("1", " ".join(words)), ("2", "x")]), hash_bits=22)
    shown = data.features.names(data.rows.indices)
    known = [name for name in shown if not name.startswith("#")]
    assert 30_000 < len(known) <= 1 << 16
    assert set(known) <= {*words, "x"}
    assert "0" in known


def test_long_and_short_tokens_stay_apart(tmp_path: Path) -> None:
    stem = "abcdefgh" * 200
    words = [stem[:n] for n in (*range(1, 40), 1023, 1024)] + [stem[:15] + "x", stem[:16] + "x"]
    data = read_text(saved(tmp_path, [("1", " ".join(words)), ("2", stem)]))
    assert counts(data, 0) == dict.fromkeys(words, 1)
    assert counts(data, 1) == {stem[:1024]: 1}


@pytest.mark.parametrize("hash_bits", [None, 18])
def test_blocks_of_given_columns_equal_the_whole(tmp_path: Path, hash_bits: int | None) -> None:
    rng = random.Random(4)
    words = ["good", "bad", "don't", "été", "x" * 30, "?", "of", "the"]
    texts = [" ".join(rng.choices(words, k=rng.randint(0, 90))) for _ in range(300)]
    lines = [(rng.choice("ab"), text) for text in texts]
    path = saved(tmp_path, lines)
    whole = read_text(path, ngrams=3, hash_bits=hash_bits)
    report = ReadReport()
    parts = list(
        iter_text(
            path, features=whole.features, classes=whole.classes, block_bytes=900, report=report
        )
    )
    assert len(parts) > 20
    assert report.rows == 300
    for key in ("indices", "values", "labels", "weights"):
        joined = np.concatenate([getattr(p.rows, key) for p in parts])
        assert np.array_equal(joined, getattr(whole.rows, key))
    path.write_text("a\tgood\nc\tbad\n")
    with pytest.raises(InputError, match="expected a label out of a, b, found 'c'"):
        list(iter_text(path, features=whole.features, classes=whole.classes))
    free = iter_text(path, features=whole.features, classes=("a",), require_labels=False)
    assert [p.rows.labels.tolist() for p in free] == [[0, -1]]
    path.write_text("")
    with pytest.raises(InputError, match="at least one row"):
        list(iter_text(path, features=whole.features))


def test_row_numbers_may_run_out(tmp_path: Path) -> None:
    counter = TextCounter(1)
    counter._rows = 2**31 - 20
    rows = [("1", "good good fun")] * 40
    blocks = counter.blocks(saved(tmp_path, rows), block_bytes=64, report=ReadReport())
    assert all((raw.values.reshape(-1, 2) == [2, 1]).all() for raw in blocks)
    assert counter._rows < 100


def test_rows_of_any_length_are_sorted() -> None:
    from hopefear.data.sparse import sort_count_rows

    rng = np.random.default_rng(0)
    lengths = np.array([0, 1, 5, 39, 40, 41, 300, 0, 2000])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    for largest in (1, 255, 256, 70_000, 2**31 - 1):
        columns = rng.integers(0, largest + 1, indptr[-1]).astype(np.int32)
        values = rng.integers(1, 2**24, len(columns)).astype(np.float32)
        new_columns, new_values = columns.copy(), values.copy()
        sort_count_rows(indptr, new_columns, new_values)
        for a, b in itertools.pairwise(indptr):
            assert (np.diff(new_columns[a:b]) >= 0).all()
            pairs = [(columns[a:b], values[a:b]), (new_columns[a:b], new_values[a:b])]
            old, new = (sorted(zip(c.tolist(), v.tolist(), strict=True)) for c, v in pairs)
            assert old == new


BAD = {
    "no tab": (b"a\tx\nno tab\n", 2, "label<TAB>text"),
    "empty label": (b"\tx\n", 1, "a label before the tab"),
    "broken UTF-8": (b"a\tx\nb\t\xff\xfe\n", 2, "UTF-8"),
    "cut UTF-8": (b"a\tx\xc3\n", 1, "UTF-8"),
    "empty": (b"", 0, "at least one row"),
    "blank": (b"\n\r\n", 0, "at least one row"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_names_its_line(case: str, tmp_path: Path) -> None:
    text, line, expected = BAD[case]
    path = tmp_path / "bad.tsv"
    path.write_bytes(text)
    with pytest.raises(InputError) as caught:
        read_text(path)
    assert str(caught.value).startswith(f"{path}:{line}: " if line else f"{path}: ")
    assert expected in str(caught.value)


def test_skipping_keeps_line_numbers(tmp_path: Path) -> None:
    path = tmp_path / "bad.tsv"
    path.write_bytes(b"a\tx\nb\t\xff\n\nnone\nb\ty\n")
    report = ReadReport()
    data = read_text(path, on_error="skip", report=report)
    assert (len(data), report.skipped) == (2, 2)
    assert [int(m.split(":")[1]) for m in report.messages] == [2, 4]


def test_wrong_settings(tmp_path: Path) -> None:
    from hopefear.features import IdentityFeatures

    path = saved(tmp_path, LINES)
    for options in ({"ngrams": 4}, {"hash_bits": 40}, {"min_count": 0}, {"on_error": "x"}):
        with pytest.raises(HopefearError):
            read_text(path, **options)
    with pytest.raises(HopefearError, match="numeric ids, which text lacks"):
        read_text(path, features=IdentityFeatures(3))


def test_mutated_files_never_crash(tmp_path: Path) -> None:
    rng = random.Random(5)
    good = "".join(f"{label}\t{text}\n" for label, text in LINES).encode()
    path = tmp_path / "fuzz.tsv"
    read = 0
    for _ in range(500):
        text = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            text[rng.randrange(len(text))] = rng.choice(b"\t\n\r '\xc2\xe2\x80!a")
        path.write_bytes(text)
        try:
            data = read_text(path, ngrams=3, block_bytes=rng.choice([16, 4096]))
        except HopefearError:
            continue
        read += 1
        data.features.names(range(data.n_features))
        assert data.rows.indices.max(initial=-1) < data.n_features
    assert read > 20
