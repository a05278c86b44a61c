"""Caches of lists: what all lists give in memory, in the memory of a block."""

from __future__ import annotations

import gc
import json
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hopefear.data.cache import cache_header, open_cache, source_of
from hopefear.data.generators import candidate_lists
from hopefear.data.lists import input as lists_input
from hopefear.data.lists.files import read_lists
from hopefear.errors import HopefearError, InputError
from hopefear.metrics.lists import metric_named
from hopefear.tasks.rerank.cached import ListCache
from hopefear.tasks.rerank.task import dataset

pytestmark = pytest.mark.interpreted


def written(path: Path, blocks, **options):
    with ListCache(path, **options) as cache:
        for block in blocks:
            cache.add(block)
        cache.write({"source": source_of("-"), "options": {}, "facts": {"seen": cache.seen}})
    return open_cache(path, verify=True)


def lines(n: int) -> str:
    """Lists with texts, references, scores and weights; some teach nothing, rare names abound."""
    rng, rows = np.random.default_rng(2), []
    for i in range(n):
        words = [" ".join(rng.choice(["a", "b", "c"], 4)) for _ in range(rng.integers(1, 5))]
        candidates = [
            {
                "text": f"{text} {k}",
                "score": float(rng.integers(5)),
                "cost": float(rng.integers(2)),
                "features": {f"f{rng.integers(9)}": 1.5, f"rare{rng.integers(400)}": k},
            }
            for k, text in enumerate(words)
        ]
        one = {"id": f"l{i}", "candidates": candidates, "reference": "a b c a"}
        rows.append(json.dumps(one | ({"weight": 2.5} if i % 4 == 0 else {})))
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"min_count": 3, "baseline": "offset"},
        {"oracle": "score", "baseline": "none"},
        {"metric": metric_named("bleu")},
    ],
)
def test_a_cache_holds_what_memory_would(tmp_path: Path, options) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(lines(40))
    metric = options.get("metric")
    memory = dataset(read_lists(path, metric=metric), **options)
    cached = written(tmp_path / "c", read_lists(path, metric=metric, block_lists=7), **options)
    for name, array in memory.rows._asdict().items():
        other = getattr(cached.rows, name)
        assert array.dtype == other.dtype and np.array_equal(array, other), name
    assert (cached.digest, cached.metric) == (memory.digest, memory.metric)
    assert (memory.counts is None) == (cached.counts is None) == (metric is None)
    assert metric is None or np.array_equal(memory.counts, cached.counts)
    names = [data.features.names(range(data.features.size)) for data in (memory, cached)]
    assert names[0] == names[1]
    assert cache_header(tmp_path / "c")["facts"]["seen"] == memory.features.seen
    assert (memory.rows.weights == 0.0).any() and "ids" not in cache_header(tmp_path / "c")


@pytest.mark.parametrize(("min_count", "columns"), [(1, "i4"), (2, "u2")])
def test_columns_are_as_long_as_those_of_memory(tmp_path: Path, min_count, columns) -> None:
    wide = {f"f{k}": 1 for k in range(65_540)}
    small = {"f0": 1}
    path = tmp_path / "a.jsonl"
    with path.open("w") as file:
        for features in (wide, small, small):
            pair = [{"cost": 0, "features": features}, {"cost": 1, "features": {}}]
            file.write(json.dumps({"candidates": pair}) + "\n")
    memory = dataset(read_lists(path), min_count=min_count)
    cached = written(tmp_path / "c", read_lists(path, block_lists=1), min_count=min_count)
    assert memory.rows.columns.dtype == cached.rows.columns.dtype == np.dtype(columns)
    assert memory.digest == cached.digest


def test_memory_does_not_grow_with_the_lists(tmp_path: Path) -> None:
    block, sizes = candidate_lists(200, candidates=8, features=12), []
    with ListCache(tmp_path / "c") as cache:
        tracemalloc.start()
        for _ in range(6):
            cache.add(block)
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
    assert sizes[-1] - sizes[1] < 4 * block.n_candidates  # a byte for each


def test_metrics_do_not_mix_and_nothing_is_nothing(tmp_path: Path) -> None:
    block = candidate_lists(5)
    with ListCache(tmp_path / "c") as cache:
        with pytest.raises(HopefearError, match="there are no lists to learn from"):
            cache.write({})
        cache.add(block)
        with pytest.raises(HopefearError, match=r"judged by cost, other, .*name one metric"):
            cache.add(replace(block, metric="other"))
    assert list(tmp_path.iterdir()) == []


def test_an_id_that_comes_again_is_refused_however_far_it_is(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(lists_input, "_RECENT", 3)
    path = tmp_path / "a.jsonl"
    rows = [json.dumps({"id": f"l{i}", "candidates": [{"cost": 0}]}) for i in range(20)]
    path.write_text("\n".join(rows))
    assert sum(map(len, read_lists(path))) == 20
    for again in (0, 7, 19):
        path.write_text("\n".join([*rows, rows[again]]))
        with pytest.raises(InputError, match=rf":21: .*every id once.*l{again} again"):
            list(read_lists(path))
