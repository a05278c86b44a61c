"""Training from a cache that memory cannot hold: what is resident, and how fast it is.

    python bench/out_of_core.py --megabytes 2560 --limit 128

A cache of random sparse rows is written piece by piece. Then, every line a process of its own:
``kernels`` learns from the first rows (imports and kernels), ``train`` makes a pass over all,
``limited`` the same in a control group of ``--limit`` megabytes, cached parts of files among them,
so that the disk is read again. ``peak_mb`` and ``anonymous_mb`` are as in memory.py. ``speed``
compares CPU seconds of epochs over a part of the rows in memory and from the cache, which the
system holds, in the same order, which must give the same weights. Linux, and
root for the control group (version 1).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import memory
import numpy as np

GROUP = Path("/sys/fs/cgroup/memory/hopefear-bench")
PER_ROW = 100
N_FEATURES = 1_000_000
PIECE = 20_000


def pieces(n_pieces: int) -> Iterator[dict[str, np.ndarray]]:
    """Random rows, drawn once and shifted from piece to piece."""
    rng = np.random.default_rng(1)
    room = N_FEATURES - n_pieces
    drawn = np.sort(rng.integers(0, room, (PIECE, PER_ROW), np.int32), axis=1)
    values = np.full(PIECE * PER_ROW, 0.1, np.float32)
    signs = rng.choice(np.array([-1.0, 1.0], np.float32), N_FEATURES)
    weights = np.ones(PIECE, np.float32)
    indptr = np.arange(0, PIECE * PER_ROW + 1, PER_ROW, dtype=np.int64)
    for k in range(n_pieces):
        columns = drawn + np.int32(k)
        labels = (signs[columns].sum(axis=1) > 0).astype(np.int32)
        arrays = indptr, columns.reshape(-1), values, labels, weights
        yield dict(zip(("indptr", "indices", "values", "labels", "weights"), arrays, strict=True))


def build(path: str, megabytes: int) -> None:
    from hopefear.data.cache import source_of, write_cache
    from hopefear.features import IdentityFeatures

    n = max(1, (megabytes << 20) // (PIECE * (8 * PER_ROW + 16)))
    header = {"source": source_of("-"), "options": {}, "n_features": N_FEATURES}
    header["classes"] = ["-1", "1"]
    features = IdentityFeatures(N_FEATURES)
    write_cache(path, "examples", pieces(n), features, header, lambda entries: "0" * 64)


def learned(data: Any, seconds: list[float]) -> Any:
    """Weights after a pass; the CPU seconds it took are added to a list."""
    from hopefear.recipes import RECIPES
    from hopefear.structures.classes import Binary
    from hopefear.training.online import OnlineTrainer
    from hopefear.training.passes import Passes

    trainer = OnlineTrainer(Binary(N_FEATURES), RECIPES["adagrad-rda"].build())
    passes = Passes(data, by_block=True)
    started = time.process_time()
    trainer.learn_pass(passes)
    seconds.append(time.process_time() - started)
    return trainer.weights()


def train(path: str, few: int) -> None:
    from hopefear.data.cache import open_cache

    data = open_cache(path)
    seconds: list[float] = []
    learned(data.take(range(few)) if few else data, seconds)
    print(json.dumps(seconds))


def speed(path: str) -> None:
    """Epochs in memory and from the cache by turns; the least of three each."""
    from hopefear.data.cache import open_cache
    from hopefear.data.sparse import SparseDataset, SparseRows

    data = open_cache(path)
    rows = SparseRows(*map(np.array, data.rows))
    in_memory = SparseDataset(rows, data.n_features, data.classes)
    learned(data.take(range(20)), [])
    times: dict[str, list[float]] = {"memory": [], "cache": []}
    for _ in range(3):
        inside = learned(in_memory, times["memory"])
        outside = learned(data, times["cache"])
        assert np.array_equal(inside, outside)
    least = {name: min(values) for name, values in times.items()}
    print(json.dumps({**least, "speed": least["memory"] / least["cache"]}))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=2560)
    parser.add_argument("--limit", type=int, default=128, help="megabytes of the control group")
    parser.add_argument("--folder", help="where the cache lies")
    parser.add_argument("--child", nargs="*", default=[], help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        name, path, *arguments = chosen.child
        {"build": build, "train": train, "speed": speed}[name](path, *map(int, arguments))
        return
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        large, small = f"{folder}/large", f"{folder}/small"
        results: dict[str, Any] = {
            "build": memory.measured(child("build", large, chosen.megabytes))
        }
        results["cache_mb"] = sum(f.stat().st_size for f in Path(large).iterdir()) / 2**20
        memory.measured(child("train", large, 20))  # compiles what is not on disk yet
        results["kernels"] = memory.measured(child("train", large, 20))
        results["train"] = memory.measured(child("train", large, 0))
        results["limited"] = limited(child("train", large, 0), chosen.limit)
        memory.measured(child("build", small, min(chosen.megabytes, 320)))
        output = subprocess.run(child("speed", small), capture_output=True, check=True).stdout
        results["speed"] = json.loads(output)
    print(json.dumps(results, indent=1))


def child(*words: object) -> list[str]:
    return [sys.executable, __file__, "--child", *map(str, words)]


def limited(command: list[str], megabytes: int) -> dict[str, Any] | str:
    """The same in a control group; what it counted at most, and how often it had to make room."""
    try:
        GROUP.mkdir()
        (GROUP / "memory.limit_in_bytes").write_text(str(megabytes << 20))
    except OSError as error:
        return f"no control group here: {error}"
    try:
        enter = f"echo $$ > {GROUP}/cgroup.procs && exec {' '.join(command)}"
        started = time.perf_counter()
        status = subprocess.run(["sh", "-c", enter], stdout=subprocess.DEVNULL).returncode
        peak = int((GROUP / "memory.max_usage_in_bytes").read_text()) / 2**20
        return {
            "limit_mb": megabytes,
            "status": status,
            "peak_mb": peak,
            "seconds": time.perf_counter() - started,
        }
    finally:
        GROUP.rmdir()


if __name__ == "__main__":
    main()
