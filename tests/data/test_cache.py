"""The cache: the same data as the reader's, in bounded memory, and never silently wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hopefear.data.blocks import blocks
from hopefear.data.cache import cache_header, open_cache, source_of, write_cache
from hopefear.data.cached_examples import cache_examples
from hopefear.data.files import ReadReport
from hopefear.data.svmlight import read_svmlight
from hopefear.data.text import read_text
from hopefear.errors import HopefearError
from hopefear.features import IdentityFeatures
from hopefear.training.passes import Passes


@pytest.fixture
def svm(tmp_path: Path) -> Path:
    rng = np.random.default_rng(4)
    path = tmp_path / "a.svm"
    with open(path, "w") as out:
        for _ in range(400):
            ids = np.sort(rng.choice(900, 12, replace=False))
            pairs = " ".join(f"{i}:{rng.integers(1, 30) / 4}" for i in ids)
            out.write(f"{rng.integers(-1, 3)} {pairs}\n")
    return path


@pytest.mark.parametrize("options", [{}, {"values": "presence", "norm": "l2"}, {"values": "log"}])
def test_equals_the_reader(svm: Path, tmp_path: Path, options: dict) -> None:
    report = ReadReport()
    cache_examples(svm, tmp_path / "c", block_bytes=1000, report=report, **options)
    cached = open_cache(tmp_path / "c", verify=True)
    direct = read_svmlight(svm).transformed(**options)
    assert cached.digest == read_svmlight(svm).digest  # of the data before values and norm
    assert (cached.classes, report.rows) == (direct.classes, 400)
    assert all(np.array_equal(a, b) for a, b in zip(cached.rows, direct.rows, strict=True))
    assert all(not a.flags.writeable and a.flags.c_contiguous for a in cached.rows)
    assert cache_header(tmp_path / "c")["options"]["values"] == options.get("values", "counts")
    assert sorted(os.listdir(tmp_path)) == ["a.svm", "c"]


def test_large_ids(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_text("".join(f"1 {i}:1 {2**50 + i}:2\n" for i in range(50)))
    cache_examples(path, tmp_path / "c", block_bytes=100)
    cached = open_cache(tmp_path / "c", verify=True)
    assert cached.digest == read_svmlight(path).digest
    assert cached.features.name(99) == str(2**50 + 49)


@pytest.mark.parametrize("options", [{"ngrams": 2, "min_count": 2}, {"hash_bits": 10}])
def test_text(tmp_path: Path, options: dict) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"k{i % 3}\tword{i % 7} and w{i} again\n" for i in range(100)))
    cache_examples(path, tmp_path / "c", format="text", block_bytes=300, **options)
    cached, direct = open_cache(tmp_path / "c", verify=True), read_text(path, **options)
    assert cached.digest == direct.digest
    assert cached.features.names(range(9)) == direct.features.names(range(9))


def test_a_bad_line_leaves_no_cache(svm: Path, tmp_path: Path) -> None:
    svm.write_text(svm.read_text() + "1:1\n")
    with pytest.raises(HopefearError, match=r"a\.svm:401"):
        cache_examples(svm, tmp_path / "d")
    assert os.listdir(tmp_path) == ["a.svm"]


@pytest.mark.parametrize("cached", [True, False])
def test_blocks_cover_every_row_once(svm: Path, tmp_path: Path, cached: bool) -> None:
    cache_examples(svm, tmp_path / "c")
    data = open_cache(tmp_path / "c") if cached else read_svmlight(svm)
    for _ in range(2):
        parts = [(b.indptr[-1], b.values.copy(), b.labels.copy()) for b in blocks(data, 33)]
        assert len(parts) == 13
        assert sum(int(p[0]) for p in parts) == len(data.rows.values)
        assert np.array_equal(np.concatenate([p[1] for p in parts]), data.rows.values)
        assert np.array_equal(np.concatenate([p[2] for p in parts]), data.rows.labels)


def test_a_changed_source_is_noticed(svm: Path, tmp_path: Path) -> None:
    cache_examples(svm, tmp_path / "c")
    with open(svm, "a") as out:
        out.write("1 1:1\n")
    with pytest.raises(HopefearError, match="has changed since"):
        open_cache(tmp_path / "c")
    assert len(open_cache(tmp_path / "c", check_source=False)) == 400
    svm.unlink()
    assert len(open_cache(tmp_path / "c")) == 400


def test_damage_is_noticed(svm: Path, tmp_path: Path) -> None:
    path = tmp_path / "c"
    cache_examples(svm, path)
    rng = np.random.default_rng(9)
    for file in sorted(path.iterdir()):
        good = file.read_bytes()
        for _ in range(20):
            bad = bytearray(good)
            where = int(rng.integers(len(bad)))
            bad[where] ^= int(rng.integers(1, 256))
            file.write_bytes(bad)
            with pytest.raises(HopefearError, match=r"damaged|another format"):
                open_cache(path, verify=True)
        for size in (0, 10, 128, len(good) - 1):
            file.write_bytes(good[:size])
            with pytest.raises(HopefearError, match=r"damaged|cannot be read"):
                open_cache(path)
        file.unlink()
        with pytest.raises(HopefearError, match=r"damaged|cannot be read"):
            open_cache(path)
        file.write_bytes(good)
    assert open_cache(path, verify=True).digest == read_svmlight(svm).digest


@pytest.mark.parametrize("end", ["cut", "longer", "other bytes"])
def test_a_cache_that_changes_while_it_is_read_is_an_error(svm, tmp_path, end) -> None:
    """Kernels read memory alone, and so the process does not die of a signal."""
    cache_examples(svm, tmp_path / "c")
    data = open_cache(tmp_path / "c")
    pieces = blocks(data, 100)
    first = next(pieces)
    file = tmp_path / "c" / "values.npy"
    if end == "cut":
        os.truncate(file, 200)
    else:
        with open(file, "r+b" if end == "other bytes" else "ab") as out:
            out.write(b"x")
        os.utime(file, ns=(1, 1))
    assert len(first.labels) == 100 and np.isfinite(first.values).all()
    for read in (lambda: next(pieces), lambda: data.take([0, 399])):
        with pytest.raises(HopefearError, match=r"values\.npy was written to while it was read"):
            read()


def test_offsets_of_a_cache_that_was_cut_are_an_error(tmp_path) -> None:
    """Far enough into the file for a signal, were they looked up where they are mapped."""
    (tmp_path / "a.svm").write_text("1 1:1\n-1 2:1\n" * 1500)
    cache_examples(tmp_path / "a.svm", tmp_path / "c")
    data = open_cache(tmp_path / "c")
    os.truncate(tmp_path / "c" / "indptr.npy", 150)
    with pytest.raises(HopefearError, match=r"indptr\.npy has become shorter"):
        Passes(data)


def test_a_cache_that_is_built_again_does_not_disturb_those_who_read_it(svm, tmp_path) -> None:
    cache_examples(svm, tmp_path / "c")
    data = open_cache(tmp_path / "c")
    cache_examples(svm, tmp_path / "c", values="presence")
    values = np.concatenate([rows.values for rows in blocks(data, 100)])
    assert np.array_equal(values, read_svmlight(svm).rows.values)


def test_arrays_are_plain_files_of_numpy(svm, tmp_path) -> None:
    cache_examples(svm, tmp_path / "c")
    rows = read_svmlight(svm).rows
    for name, array in rows._asdict().items():
        assert np.array_equal(np.load(tmp_path / "c" / f"{name}.npy"), array)
    header = json.loads((tmp_path / "c" / "header.json").read_text())
    assert header["arrays"]["values"]["count"] == rows.values.size


def test_wrong_settings(svm: Path, tmp_path: Path) -> None:
    for options in ({"format": "csv"}, {"values": "x"}, {"norm": "x"}, {"on_error": "x"}):
        with pytest.raises(HopefearError):
            cache_examples(svm, tmp_path / "c", **options)
    with pytest.raises(HopefearError, match="cannot write"):
        cache_examples(svm, tmp_path / "no" / "c")


MEASURE = """
import resource, sys
from hopefear.data.cache import open_cache
from hopefear.data.cached_examples import cache_examples
from hopefear.data.blocks import blocks

def now():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()

cache_examples(sys.argv[1], sys.argv[2])
top = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
cache_examples(sys.argv[3], sys.argv[2])
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - top
data = open_cache(sys.argv[2])
start, most = now(), 0
for block in blocks(data, 2000):
    float(block.values.sum()), int(block.indices.max())
    most = max(most, now() - start)
print(grown, most, data.rows.values.nbytes + data.rows.indices.nbytes)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_memory_is_bounded(tmp_path: Path) -> None:
    line = " ".join(f"{i}:1" for i in range(1, 200))
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_text(f"1 {line}\n" * 3000)
    large.write_text(f"1 {line}\n" * 40000)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(small), str(tmp_path / "c"), str(large)],
        capture_output=True,
        text=True,
        check=True,
    )
    grown, most, total = map(int, done.stdout.split())
    assert total > 60_000_000
    assert grown < 12_000_000
    assert most < 12_000_000


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("section", "place"), [("values", 3), ("weights", 4), ("values", 11)])
def test_numbers_of_a_foreign_cache_that_are_none_are_refused(
    tmp_path: Path, number: float, section: str, place: int
) -> None:
    arrays = {
        "indptr": np.array([0, 2, 4, 4, 9, 12]),
        "indices": np.arange(12, dtype=np.int32) % 5,
        "values": np.ones(12, np.float32),
        "labels": np.zeros(5, np.int32),
        "weights": np.ones(5, np.float32),
    }
    arrays[section][place] = number
    header = {"source": source_of("-"), "options": {}, "n_features": 5, "classes": ["a", "b"]}
    write_cache(tmp_path / "c", "examples", [arrays], IdentityFeatures(5), header)
    with pytest.raises(HopefearError, match=f"damaged: {section} must be finite numbers"):
        open_cache(tmp_path / "c", verify=True)


@pytest.mark.skipif(sys.platform != "linux", reason="limits that Linux keeps")
@pytest.mark.parametrize("limit", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_limits_of_the_process_count_as_memory(limit: str) -> None:
    program = (
        "import resource; from hopefear.core.memory import available_memory; "
        f"resource.setrlimit(resource.{limit}, (3 << 30, 3 << 30)); print(available_memory())"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert 0 <= int(run.stdout) <= (3 << 30) - (limit == "RLIMIT_AS")
