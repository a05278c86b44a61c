"""Caches that are opened a second time: the same bytes, read no oftener than they must be."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopefear.data import cache
from hopefear.data.cache import open_cache
from hopefear.data.cached_examples import cache_examples
from hopefear.data.located import Located
from hopefear.data.mapped import block
from hopefear.errors import HopefearError
from hopefear.tasks.classify.task import reweighted, train
from hopefear.training import passes
from hopefear.training.shards import Shards

pytestmark = pytest.mark.interpreted


@pytest.fixture
def file(tmp_path: Path) -> Path:
    dice = np.random.default_rng(1)
    rows = (np.sort(dice.choice(30, 4, replace=False)) + 1 for _ in range(80))
    lines = (f"{ids[0] % 2} {' '.join(f'{i}:1' for i in ids)}\n" for ids in rows)
    (tmp_path / "a.svm").write_text("".join(lines))
    cache_examples(tmp_path / "a.svm", tmp_path / "c")
    return tmp_path / "c"


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the arrays that are hashed from here on."""
    sizes: list[int] = []
    update = cache.update_hash

    def counted(digest: Any, array: np.ndarray, *more: Any) -> None:
        sizes.append(array.size)
        update(digest, array, *more)

    monkeypatch.setattr(cache, "update_hash", counted)
    return sizes


def carried(data: Any) -> Any:
    return pickle.loads(pickle.dumps(Located.of(data))).open()


def flip(file: Path, name: str = "values") -> None:
    """Change a byte where it lies."""
    with open(file, "r+b") as out:
        out.seek(cache.cache_header(file)["arrays"][name]["offset"])
        byte = out.read(1)[0]
        out.seek(-1, os.SEEK_CUR)
        out.write(bytes([byte ^ 1]))


def test_rows_are_the_same_and_none_travels(file, hashed) -> None:
    data = open_cache(file)
    told = pickle.dumps(Located.of(data))
    assert len(told) < 1500 < file.stat().st_size // 4
    opened = pickle.loads(told).open()
    assert opened.mapping is not data.mapping and opened.mapping.path == str(file)
    for one, other in zip(block(opened, 7, 31), block(data, 7, 31), strict=True):
        assert one.dtype == other.dtype and not one.flags.writeable
        np.testing.assert_array_equal(one, other)
    assert hashed == []  # of the same file the header is enough


def test_what_lies_in_memory_goes_along(file) -> None:
    weights = np.arange(80, dtype=np.float32)
    opened = carried(reweighted(open_cache(file), weights))
    np.testing.assert_array_equal(opened.rows.weights, weights)
    np.testing.assert_array_equal(opened.rows.values, open_cache(file).rows.values)
    assert opened.mapping is not None


def test_arrays_that_a_place_cannot_tell_go_along(file) -> None:
    data = open_cache(file)
    table, other = data.rows.values[:6].reshape(2, 3), data.rows.values[::2]
    data.rows = data.rows._replace(values=table, indices=other)
    opened = carried(data)
    np.testing.assert_array_equal(opened.rows.values, table)
    np.testing.assert_array_equal(opened.rows.indices, other)


def test_a_place_outside_of_the_cache_is_refused_by_the_name_of_the_cache(file) -> None:
    told = Located.of(open_cache(file))
    told.arrays["values"]["count"] = 10**9
    with pytest.raises(HopefearError, match=rf"{file}: .*a section does not fit the file"):
        told.open()


def test_a_file_that_becomes_shorter_is_refused_and_not_read(file) -> None:
    data = open_cache(file)
    os.truncate(file, cache.PAGE)
    with pytest.raises(HopefearError, match="it has become shorter; build it again"):
        data.mapping.check()


def test_a_copy_is_read_whole_once(file, tmp_path, hashed) -> None:
    told = Located.of(open_cache(file))
    shutil.copy2(file, tmp_path / "copy")
    os.replace(tmp_path / "copy", file)  # same name, size and time
    opened = told.open()
    assert len(hashed) == len(cache.cache_header(file)["arrays"])
    opened.mapping.check()
    assert len(hashed) == len(cache.cache_header(file)["arrays"])
    shutil.copy2(file, tmp_path / "copy")
    stat = file.stat()
    flip(tmp_path / "copy")
    os.utime(tmp_path / "copy", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    os.replace(tmp_path / "copy", file)
    with pytest.raises(HopefearError, match="the section values has changed; workers open"):
        told.open()


def test_a_file_that_is_written_to_is_refused(file, tmp_path, hashed) -> None:
    data = open_cache(file)
    data.mapping.check()
    os.utime(file, ns=(1, 1))
    assert hashed == []
    data.mapping.check()  # another time, the same bytes
    n = len(hashed)
    data.mapping.check()
    assert n == len(hashed) > 0
    flip(file, "labels")
    with pytest.raises(HopefearError, match="the section labels has changed; build it again"):
        data.mapping.check()
    flip(file, "labels")
    header = cache.cache_header(file)
    with open(file, "r+b") as out:
        cache._write_header(out, data.mapping.find(b'{"kind"'), {**header, "digest": "0" * 64})
    assert open_cache(file).digest == "0" * 64
    with pytest.raises(HopefearError, match="its header has changed"):
        data.mapping.check()
    file.unlink()
    data.mapping.check()  # what was opened stays mapped


@pytest.mark.parametrize(
    "shards",
    [None, Shards(2), Shards(2, workers="processes"), Shards(2, "blocks", workers="processes")],
)
def test_a_cache_that_changes_under_way_ends_training(file, monkeypatch, shards) -> None:
    monkeypatch.setattr(passes, "_BLOCK", 600)

    def spoil(event, changed=[]):  # noqa: B006 - one for the run
        if not changed:
            changed.append(flip(file))

    with pytest.raises(HopefearError, match="the section values has changed; build it again"):
        train(
            open_cache(file), "perceptron", {"block": 4}, epochs=3, shards=shards, on_event=[spoil]
        )


def test_data_in_memory_that_is_visited_by_blocks_goes_along(file, monkeypatch) -> None:
    monkeypatch.setattr(passes, "_BLOCK", 600)
    memory = open_cache(file).take(np.arange(80))
    models = {
        train(data, "perceptron", epochs=2, by_block=True, shards=shards).model.to_bytes()
        for data in (memory, open_cache(file))
        for shards in (Shards(2), Shards(2, workers="processes"))
    }
    assert len({model.replace(b"a.svm", b"") for model in models}) == 1
