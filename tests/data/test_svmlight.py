"""The svmlight reader and writer: equal to scikit-learn, strict, and impossible to crash."""

from __future__ import annotations

import io
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import DATA
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from hopefear.data.files import ReadReport
from hopefear.data.sparse import SparseDataset
from hopefear.data.svmlight import iter_svmlight, read_svmlight
from hopefear.data.write_svmlight import write_svmlight
from hopefear.errors import HopefearError, InputError
from hopefear.features import IdentityFeatures, TableFeatures

pytestmark = pytest.mark.interpreted


def saved(folder: Path, text: str | bytes) -> Path:
    path = folder / "data.svm"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def same_rows(a: SparseDataset, b: SparseDataset) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a.rows, b.rows, strict=True))


def test_reads_every_form_of_line(tmp_path: Path) -> None:
    text = "\ufeff# header\n+1 qid:7 1:2\t3:.5 # c\r\n\n-1\n  1.0   2:-1e-3   10:+12.25e1  \n3 0:1"
    data = read_svmlight(saved(tmp_path, text))
    assert data.classes == ("-1", "1", "3")
    assert data.rows.labels.tolist() == [1, 0, 1, 2]
    assert data.rows.indptr.tolist() == [0, 2, 2, 4, 5]
    assert data.rows.indices.tolist() == [1, 3, 2, 10, 0]
    assert np.array_equal(data.rows.values, np.float32([2, 0.5, -1e-3, 122.5, 1]))
    assert data.n_features == 11
    assert not any(a.flags.writeable for a in data.rows)


BAD = {
    "ragged": ("1 1:2 3\n", 1, "id:value"),
    "pair without value": ("1 1:2 3:\n", 1, "a number after ':'"),
    "pair without id": ("1 :2\n", 1, "feature id"),
    "word as value": ("1 1:x\n", 1, "a number after ':'"),
    "word as label": ("1 1:1\nspam 1:1\n", 2, "a number as the label"),
    "number with a tail": ("1 1:1.5x\n", 1, "a number after ':'"),
    "two points": ("1 1:1.5.5\n", 1, "a number after ':'"),
    "empty exponent": ("1 1:1e\n", 1, "a number after ':'"),
    "sign alone": ("1 1:-\n", 1, "a number after ':'"),
    "point alone": ("1 1:.\n", 1, "a number after ':'"),
    "nan": ("1 1:1\n\n1 1:nan\n", 3, "finite"),
    "infinity": ("1 1:-Infinity\n", 1, "finite"),
    "overflow": ("1 1:1e39\n", 1, "finite"),
    "label overflow": ("1e999 1:1\n", 1, "finite"),
    "label nan": ("nan 1:1\n", 1, "a number as the label"),
    "negative id": ("1 -1:1\n", 1, "feature id"),
    "id 2**63": (f"1 {2**63}:1\n", 1, "feature id"),
    "id of 40 digits": (f"1 {'9' * 40}:1\n", 1, "feature id"),
    "bad qid": ("1 qid:x 1:1\n", 1, "qid"),
    "label missing": ("1:1 2:1\n", 1, "a number as the label"),
    "empty file": ("", 0, "at least one row"),
    "comments only": ("# a\n\n#b\n", 0, "at least one row"),
    "binary": (b"1 1:1\n\x00\x01\x02\xff\n", 2, "label"),
    "utf-16": ("1 1:1\n".encode("utf-16"), 1, "UTF-8"),
    "multilabel": ("1,2 1:1\n", 1, "a number as the label"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_names_its_line(case: str, tmp_path: Path) -> None:
    text, line, expected = BAD[case]
    path = saved(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_svmlight(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: " if line else f"{path}: ")
    assert expected in message
    assert "\n" not in message


def test_skipping_counts_and_lists(tmp_path: Path) -> None:
    lines = ["1 1:1", "x 1:1", "-1 2:2", "1 1:1 1"] * 60
    path = saved(tmp_path, "\n".join(lines))
    report = ReadReport()
    data = read_svmlight(path, on_error="skip", report=report, block_bytes=64)
    assert len(data) == report.rows == 120
    assert report.skipped == 120
    assert len(report.messages) == 100
    assert [int(m.split(":")[1]) for m in report.messages[:4]] == [2, 4, 6, 8]
    with pytest.raises(InputError, match="all 3 lines are bad and were skipped"):
        read_svmlight(saved(tmp_path, "a\nb\nc\n"), on_error="skip")


def test_large_ids_get_columns(tmp_path: Path) -> None:
    path = saved(tmp_path, f"1 5:1 {2**63 - 1}:2\n-1 {2**40}:3\n")
    data = read_svmlight(path)
    assert isinstance(data.features, TableFeatures)
    assert data.rows.indices.tolist() == [0, 2, 1]
    assert data.features.names([0, 1, 2]) == ["5", str(2**40), str(2**63 - 1)]
    report = ReadReport()
    other = read_svmlight(
        saved(tmp_path, f"1 4:1 {2**40}:2\n"),
        features=data.features,
        classes=data.classes,
        report=report,
    )
    assert other.rows.indices.tolist() == [1]
    assert report.unknown_features == 1
    assert other.n_features == 3


def test_given_classes_and_features(tmp_path: Path) -> None:
    path = saved(tmp_path, "1 1:1 9:1\n2 2:1\n3:5\n")
    options = {"features": IdentityFeatures(4), "classes": ("-1", "1")}
    report = ReadReport()
    data = read_svmlight(path, require_labels=False, report=report, **options)
    assert data.rows.labels.tolist() == [1, -1, -1]
    assert data.rows.indices.tolist() == [1, 2, 3]
    assert (report.unknown_features, report.unknown_labels) == (1, 2)
    with pytest.raises(InputError, match=r"data.svm:2: expected a label out of -1, 1, found '2'"):
        read_svmlight(saved(tmp_path, "1 1:1\n2 2:1\n"), **options)


def test_blocks_do_not_matter(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    X = sparse.random(200, 500, 0.05, "csr", np.float32, rng)
    path = tmp_path / "a.svm"
    write_svmlight(path, SparseDataset.from_csr(X, rng.integers(3, size=200)))
    whole = read_svmlight(path)
    for size in (16, 100, 1000):
        assert same_rows(whole, read_svmlight(path, block_bytes=size))
    pieces = list(iter_svmlight(path, block_bytes=1000, classes=whole.classes))
    assert len(pieces) > 5
    assert np.array_equal(np.concatenate([p.rows.values for p in pieces]), whole.rows.values)
    assert np.array_equal(np.concatenate([p.rows.labels for p in pieces]), whole.rows.labels)


def test_equals_scikit_learn_on_generated_data(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    X = sparse.random(300, 1000, 0.02, "csr", rng=rng)
    X.data *= 10.0 ** rng.integers(-30, 16, X.nnz)
    y = rng.integers(-1, 2, 300)
    path = tmp_path / "a.svm"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    theirs, labels = load_svmlight_file(str(path), zero_based=True)
    ours = read_svmlight(path)
    assert np.array_equal(ours.rows.indptr, theirs.indptr)
    assert np.array_equal(ours.rows.indices, theirs.indices)
    assert np.array_equal(ours.rows.values, theirs.data.astype(np.float32))
    assert np.array_equal(np.array(ours.classes, float)[ours.rows.labels], labels)


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["a9a/test.libsvm.gz", "amazon_mds/books.test.libsvm.gz"])
def test_equals_scikit_learn_on_real_data(name: str) -> None:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"no {name}: set HOPEFEAR_DATA to the folder of corpora")
    theirs, labels = load_svmlight_file(str(path), zero_based=True, dtype=np.float32)
    ours = read_svmlight(path)
    assert np.array_equal(ours.rows.indptr, theirs.indptr)
    assert np.array_equal(ours.rows.indices, theirs.indices)
    assert np.array_equal(ours.rows.values, theirs.data)
    assert np.array_equal(np.array(ours.classes, float)[ours.rows.labels], labels)


NUMBERS = st.one_of(
    st.floats(-1e30, 1e30, allow_nan=False).map(repr),
    st.decimals(-(10**6), 10**6, places=4).map(str),
    st.integers(-(10**25), 10**25).map(str),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(lambda v: f"{v:.9g}"),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=20))
def test_numbers_equal_float(numbers: list[str]) -> None:
    from hopefear.data.parse_numbers import parse_number

    for text in numbers:
        got, end, ok = parse_number(np.frombuffer(text.encode() + b"\n", np.uint8), 0)
        assert ok
        assert end == len(text)
        assert np.float32(got) == np.float32(float(text))


PLAIN = st.one_of(
    NUMBERS,
    st.integers(-(10**9), 10**9).map(str),
    st.decimals(-10, 10, places=7).map(str),
    st.text("0123456789.-+e", min_size=1, max_size=20),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PLAIN, min_size=1, max_size=20), st.sampled_from([" ", "\n", "x", "\t"]))
@np.errstate(over="ignore")
def test_plain_numbers_equal_the_exact_reader(numbers: list[str], behind: str) -> None:
    from hopefear.data.parse_numbers import parse_number, parse_plain

    for text in numbers:
        padded = np.frombuffer((text + behind).encode() + b"\n" * 16, np.uint8)
        value, end = parse_plain(padded, 0)
        if end >= 0:
            exact, exact_end, ok = parse_number(padded, 0)
            assert ok
            assert (value, end) == (exact, exact_end)
            assert text[end:] + behind in (" ", "\n")


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=40).filter(lambda text: b"\n" not in text), st.integers(0, 40))
@np.errstate(over="ignore")
def test_tokens_end_at_the_first_blank(text: bytes, begin: int) -> None:
    from hopefear.data.parse_numbers import token_end

    begin, padded = min(begin, len(text)), text + b"\n" * 16
    blanks = (k for k in range(begin, len(padded)) if padded[k] <= ord(" "))
    assert token_end(np.frombuffer(padded, np.uint8), begin) == next(blanks)


@np.errstate(over="ignore")
def test_plain_numbers_take_the_quick_way() -> None:
    from hopefear.data.parse_numbers import parse_plain

    for text in ("1", "0.110432", "-0.5", "12", "1234567", "3.123456789012345", "0.00000001"):
        value, end = parse_plain(np.frombuffer(text.encode() + b" " * 16, np.uint8), 0)
        assert (value, end) == (float(text), len(text))
    for text in (".5", "+1", "1e3", "1.", "12345678", "nan", "", "--1", "12.5"):
        assert parse_plain(np.frombuffer(text.encode() + b" " * 16, np.uint8), 0)[1] == -1


def test_what_separates_pairs_does_not_matter(tmp_path: Path) -> None:
    rng = random.Random(2)
    pairs = [
        f"{i}:{v}"
        for i, v in zip(
            [*sorted(rng.sample(range(10**6), 50)), 10**7, 10**8, 10**14, 10**15, 2**63 - 1],
            rng.choices(["1", "-2", "0.25", "12.5", "1e-3", "3.14159265358979", "77", ".5"], k=55),
            strict=True,
        )
    ]
    want = read_svmlight(saved(tmp_path, "1 " + " ".join(pairs)))
    assert [np.float32(p.split(":")[1]) for p in pairs] == want.rows.values.tolist()
    for between in ("  ", "\t", " \t ", "\x0b"):
        text = f"1{between}" + between.join(pairs) + f"{between}\r\n"
        assert same_rows(want, read_svmlight(saved(tmp_path, text)))


FLOAT32 = st.floats(-(2.0**49), 2.0**49, width=32)
ROW = st.tuples(
    st.sampled_from([-1, 1, 2.5]),
    st.dictionaries(st.integers(0, 2**63 - 1) | st.integers(0, 300), FLOAT32, max_size=6),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=8))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, rows: list) -> None:
    path = tmp_path_factory.getbasetemp() / "round.svm"
    text = "".join(
        f"{label} " + " ".join(f"{i}:{v!r}" for i, v in sorted(pairs.items())) + "\n"
        for label, pairs in rows
    )
    path.write_text(text)
    first = read_svmlight(path)
    values = [np.float32(v) for _, pairs in rows for _, v in sorted(pairs.items())]
    assert first.rows.values.tolist() == [float(v) for v in values]
    out = io.BytesIO()
    write_svmlight(out, first)
    path.write_bytes(out.getvalue())
    second = read_svmlight(path)
    assert same_rows(first, second)
    assert (first.classes, first.digest) == (second.classes, second.digest)
    again = io.BytesIO()
    write_svmlight(again, second)
    assert again.getvalue() == out.getvalue()


def test_writer_refuses_what_the_format_lacks(tmp_path: Path) -> None:
    with pytest.raises(HopefearError, match="'ham' is not a number"):
        write_svmlight(io.BytesIO(), SparseDataset.from_csr([[1.0]], ["ham"]))
    with pytest.raises(HopefearError, match="cannot write"):
        write_svmlight(tmp_path / "no" / "file", SparseDataset.from_csr([[1.0]], [1]))
    out = io.BytesIO()
    write_svmlight(out, SparseDataset.from_csr([[0.0, 1.0]]))
    assert out.getvalue() == b"1:1\n"


def test_mutated_files_never_crash(tmp_path: Path) -> None:
    rng = random.Random(5)
    good = b"+1 1:2 3:.5 # c\n-1 2:1 70:1e3\r\n1 qid:3 1:1 9:12345\n"
    alphabet = b"0123456789:.-+eE# \t\r\n\x00\xff,naifq"
    path = tmp_path / "fuzz.svm"
    outcomes = {"read": 0, "refused": 0}
    for _ in range(2000):
        text = bytearray(good)
        for _ in range(rng.randint(1, 3)):
            where = rng.randrange(len(text))
            what = rng.randrange(3)
            if what == 0:
                text[where] = rng.choice(alphabet)
            elif what == 1:
                text[where:where] = bytes(rng.choices(alphabet, k=rng.randint(1, 25)))
            else:
                del text[where : where + rng.randint(1, 9)]
        path.write_bytes(text)
        try:
            data = read_svmlight(path, block_bytes=rng.choice([16, 64, 4096]))
        except HopefearError:
            outcomes["refused"] += 1
        else:
            outcomes["read"] += 1
            assert data.rows.indptr[-1] == len(data.rows.indices)
            assert np.isfinite(data.rows.values).all()
            assert data.rows.indices.max(initial=-1) < data.n_features
    assert min(outcomes.values()) > 100


def test_ids_out_of_order_are_sorted_and_repeated_ones_summed(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_text("1 3:1 2:0.5 3:2 9:1\n0 1:1\n1 5:1 5:-1 # twice\n0 4:1 12345678901:2 4:1\n")
    for size in (1 << 20, 25):
        report = ReadReport()
        data = read_svmlight(path, report=report, block_bytes=size)
        ids = data.features.ids(data.rows.indices).tolist()
        assert ids == [2, 3, 9, 1, 5, 4, 12345678901]
        assert data.rows.values.tolist() == [0.5, 3.0, 1.0, 1.0, 0.0, 2.0, 2.0]
        assert data.rows.indptr.tolist() == [0, 3, 4, 5, 7]
        assert (report.unsorted, report.repeated) == (2, 3)


@pytest.mark.parametrize("name", sorted({*BAD} - {"empty file", "comments only", "utf-16"}))
def test_bad_lines_are_the_same_for_several_threads(tmp_path: Path, name: str) -> None:
    bad, line, expected = BAD[name]
    middle = bad.encode() if isinstance(bad, str) else bad
    path = saved(tmp_path, b"1 1:1\n-1 2:1\n" * 20 + middle + b"\n" + b"1 1:1\n" * 20)
    for n in (1, 2, 3):
        with pytest.raises(InputError, match=f":{40 + line}: ") as error:
            read_svmlight(path, block_bytes=32, n_jobs=n)
        assert expected in str(error.value)
