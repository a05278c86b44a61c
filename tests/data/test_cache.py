"""The cache: the same data as the reader's, in bounded memory, and never silently wrong."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hopefear.core.memory import in_memory
from hopefear.data import cache, mapped
from hopefear.data.cache import cache_header, open_cache, source_of, write_cache
from hopefear.data.cached_examples import cache_examples
from hopefear.data.files import ReadReport
from hopefear.data.mapped import blocks
from hopefear.data.sparse import DTYPES, SparseRows
from hopefear.data.svmlight import read_svmlight
from hopefear.data.text import read_text
from hopefear.errors import HopefearError
from hopefear.features import IdentityFeatures


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


def test_given_features_and_classes(svm: Path, tmp_path: Path) -> None:
    train = read_svmlight(svm)
    other = tmp_path / "b.svm"
    other.write_text("2 1:1 899:1 5000:1\n9 1:1\n")
    options = {
        "features": train.features,
        "classes": train.classes,
        "require_labels": False,
    }
    cache_examples(other, tmp_path / "c", **options)
    assert open_cache(tmp_path / "c").digest == read_svmlight(other, **options).digest
    with pytest.raises(HopefearError, match=r"b\.svm:2"):
        cache_examples(other, tmp_path / "d", **(options | {"require_labels": True}))
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("mapped", [True, False])
def test_blocks_cover_every_row_once(svm: Path, tmp_path: Path, mapped: bool) -> None:
    cache_examples(svm, tmp_path / "c")
    data = open_cache(tmp_path / "c") if mapped else read_svmlight(svm)
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
    good = path.read_bytes()
    used = open_cache(path).rows.values.nbytes
    assert used > 0
    rng = np.random.default_rng(9)
    caught = 0
    for _ in range(200):
        bad = bytearray(good)
        where = int(rng.integers(len(bad)))
        bad[where] ^= int(rng.integers(1, 256))
        path.write_bytes(bad)
        try:
            rows = open_cache(path, verify=True).rows
        except HopefearError:
            caught += 1
        else:  # a byte between the sections
            assert rows.values.nbytes == used
    assert caught > 150
    for size in (0, 10, 4096, len(good) - 1):
        path.write_bytes(good[:size])
        with pytest.raises(HopefearError):
            open_cache(path)
    path.write_bytes(b"1 1:1\n" * 1000)
    with pytest.raises(HopefearError, match="not a hopefear cache"):
        open_cache(path)
    with pytest.raises(HopefearError, match="cannot be read"):
        open_cache(tmp_path / "missing")


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
from hopefear.data.mapped import blocks
from hopefear.data.sparse import DTYPES, SparseRows

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
def test_numbers_of_a_foreign_cache_that_are_none_are_refused_with_their_place(
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
    room = dict(zip(SparseRows._fields, zip(DTYPES, (5, 12, 12, 5, 5), strict=True), strict=True))
    header = {"source": source_of("-"), "options": {}, "n_features": 5, "classes": ["a", "b"]}
    write_cache(tmp_path / "c", "examples", [arrays], room, IdentityFeatures(5), header)
    example = place if section == "weights" else int(np.searchsorted([2, 4, 4, 9], place, "right"))
    with pytest.raises(HopefearError, match=f"example {example + 1} has -?(nan|inf) .* {section}"):
        open_cache(tmp_path / "c", verify=True)


@pytest.mark.skipif(sys.platform != "linux", reason="limits that Linux keeps")
@pytest.mark.parametrize("limit", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_limits_of_the_process_count_as_memory(limit: str) -> None:
    program = (
        "import resource; from hopefear.data.mapped import available_memory; "
        f"resource.setrlimit(resource.{limit}, (3 << 30, 3 << 30)); print(available_memory())"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert 0 <= int(run.stdout) <= (3 << 30) - (limit == "RLIMIT_AS")


@pytest.mark.skipif(not hasattr(mmap, "MADV_RANDOM"), reason="the system takes no advice")
@pytest.mark.parametrize(("tells", "there"), [(False, True), (True, False), (True, True)])
def test_pages_of_a_block_and_no_others_are_asked_for(
    svm, tmp_path, monkeypatch, tells, there
) -> None:
    advice: list[tuple[int, ...]] = []

    class Watched(cache.CacheMap):
        def madvise(self, *which: int) -> None:
            advice.append(which)
            super().madvise(*which)

    cache_examples(svm, tmp_path / "c")
    monkeypatch.setattr(cache, "CacheMap", Watched)
    monkeypatch.setattr(cache.os, "access", lambda path, how: tells)
    monkeypatch.setattr(mapped, "in_memory", lambda address: there)
    monkeypatch.setattr(mapped, "_ASKED", mmap.PAGESIZE)
    data, page = open_cache(tmp_path / "c"), mmap.PAGESIZE
    begin = cache_header(tmp_path / "c")["arrays"]["values"]["offset"]
    assert advice[0] == (mmap.MADV_RANDOM,)
    advice.clear()
    (rows,) = blocks(data, 200, [1])
    kinds = mmap.MADV_WILLNEED, mmap.MADV_DONTNEED
    asked, done = ([pages for what, *pages in advice if what == kind] for kind in kinds)
    assert len(asked) + len(done) == len(advice)
    first, last = (begin + 4 * place for place in data.spans(200, 400)["values"])
    assert [first // page * page, (last // page - first // page) * page] in done
    every = [[at, page] for start, size in done for at in range(start, start + size, page)]
    assert asked == ([] if tells and there else every)
    assert np.array_equal(rows.labels, data.rows.labels[200:])


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not say what is in memory")
def test_the_system_says_which_pages_are_in_memory() -> None:
    with mmap.mmap(-1, 3 * mmap.PAGESIZE) as pages:
        pages[mmap.PAGESIZE] = 1
        base = np.frombuffer(pages, np.uint8).ctypes.data
        assert [in_memory(base + k * mmap.PAGESIZE + 5) for k in range(3)] == [False, True, False]


@pytest.mark.parametrize("stretch", [8, 40, 4096, 5000])
def test_how_much_is_written_at_once_changes_no_byte(svm, tmp_path, monkeypatch, stretch) -> None:
    cache_examples(svm, tmp_path / "a", block_bytes=1000)
    monkeypatch.setattr(cache, "_STRETCH", stretch)
    cache_examples(svm, tmp_path / "b", block_bytes=1000)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    open_cache(tmp_path / "b", verify=True)
