"""Parts that benchmarks share: problems in memory, CPU seconds, interleaving, facts of the machine.

Times are CPU seconds, not wall-clock: other jobs then disturb less, and one thread is compared
with one thread. Tasks that are compared take turns, and the minimum of at least five turns counts.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import json
import lzma
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

Task = Callable[[], float]  # does the work once and returns its CPU seconds
Times = dict[str, list[float]]

OPENERS: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}


class Problem(NamedTuple):
    """A binary problem in memory: float32 rows of unit length, labels -1 and 1."""

    name: str
    X: csr_matrix
    y: np.ndarray
    X_test: csr_matrix
    y_test: np.ndarray

    def error(self, scores: np.ndarray) -> float:
        """Percent of test examples on the wrong side of zero."""
        return 100.0 * float(np.mean(np.where(scores > 0, 1, -1) != self.y_test))

    def facts(self) -> dict[str, Any]:
        return {
            "problem": self.name,
            "examples": self.X.shape[0],
            "features": self.X.shape[1],
            "values": int(self.X.nnz),
            "test_examples": self.X_test.shape[0],
        }


class Run(NamedTuple):
    """Resources that a child process used."""

    seconds: float
    peak_mb: float
    output: str
    wall: float


def load(data: list[str]) -> Problem:
    """A problem by name (``imdb``, ``news20``, ``synth``, ``synth:ROWSxFEATURES``) or by files.

    Files are LIBSVM text, training first, then test; without a test file the last tenth is held
    out. Names look in $HOPEFEAR_DATA, else in ``../shared/data`` beside the repository.
    """
    name = data[0]
    if name.partition(":")[0] == "synth":
        return _synth(name)
    if name in ("imdb", "news20"):
        folder = data_folder() / {"imdb": "imdb", "news20": "news20_bydate"}[name]
        files = [folder / "train.libsvm.xz", folder / "test.libsvm.xz"]
        group = _news_groups(folder / "labels.tsv") if name == "news20" else None
    else:
        files, group = [Path(f) for f in data], None
        name = files[0].name
    parts = _read(files)
    if len(parts) == 2:
        X, y = parts
        cut = X.shape[0] * 9 // 10
        parts = [X[:cut], y[:cut], X[cut:], y[cut:]]
    X, y, X_test, y_test = parts
    return Problem(name, _unit(X), _signs(y, group), _unit(X_test), _signs(y_test, group))


def cpu_seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def run(command: list[str]) -> Run:
    """CPU seconds, wall time and peak memory of a program, its start included."""
    # Linux counts the memory of the process that forks into the peak of what it starts: let a
    # small process fork.
    code = (
        "import json, resource, subprocess, sys, time;"
        "start = time.perf_counter();"
        "done = subprocess.run(sys.argv[1:], stdout=2);"
        "wall = time.perf_counter() - start;"
        "use = resource.getrusage(resource.RUSAGE_CHILDREN);"
        "cpu = use.ru_utime + use.ru_stime;"
        "print(json.dumps([done.returncode, cpu, use.ru_maxrss / 1024, wall]))"
    )
    process = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, *command], capture_output=True, text=True
    )
    status, seconds, peak, wall = json.loads(process.stdout)
    if status:
        raise SystemExit(f"{' '.join(command)} left with status {status}:\n{process.stderr}")
    return Run(seconds, peak, process.stderr, wall)


def interleave(tasks: Mapping[str, Task], repeats: int = 5) -> Times:
    """Let the tasks take turns ``repeats`` times, in a new order each turn."""
    times: Times = {name: [] for name in tasks}
    order = np.random.default_rng(0)
    for _ in range(repeats):
        for k in order.permutation(len(tasks)):
            name = list(tasks)[k]
            times[name].append(tasks[name]())
    return times


def best(times: Times) -> dict[str, float]:
    return {name: min(seconds) for name, seconds in times.items()}


def key(learner: str, passes: int) -> str:
    """Returns the name of the task that makes ``passes`` epochs."""
    return f"{learner} x{passes}"


def per_pass(times: Times, learner: str, passes: int) -> dict[str, float]:
    """Seconds of a pass after the first, and of a whole run of one pass.

    ``(best of several passes - best of one) / (passes - 1)``: set-up cancels.
    """
    first, all_epochs = min(times[key(learner, 1)]), min(times[key(learner, passes)])
    return {"seconds_pass": (all_epochs - first) / (passes - 1), "seconds_first": first}


def machine() -> dict[str, Any]:
    """Facts without which a time means nothing."""
    model = ""
    try:
        with open("/proc/cpuinfo") as info:
            model = next((x.partition(":")[2].strip() for x in info if "model name" in x), "")
    except OSError:
        pass
    return {
        "cpu": model or platform.processor(),
        "cores": os.cpu_count(),
        "load": [round(x, 2) for x in os.getloadavg()],
        "python": platform.python_version(),
        "numpy": version("numpy"),
    }


def arguments(
    description: str | None, learners: list[str], default: list[str]
) -> argparse.Namespace:
    """The options every rival's script takes."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument(
        "--data",
        nargs="+",
        default=["imdb"],
        metavar="FILE",
        help="training and test file, or imdb, news20, synth, synth:ROWSxFEATURES",
    )
    parser.add_argument("--learner", nargs="+", choices=learners, default=default)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--passes", type=int, default=6, help="passes of the longer run (>= 2)")
    chosen = parser.parse_args()
    if chosen.passes < 2 or chosen.repeats < 1:
        parser.error("--passes must be 2 or more and --repeats 1 or more")
    return chosen


def report(
    rival: str, package: str, problem: Problem, results: dict[str, Any], **extra: Any
) -> None:
    """Print one line of JSON."""
    line = {"rival": rival, "version": version(package), **problem.facts(), **extra}
    print(json.dumps({**line, "results": _rounded(results), "machine": machine()}))


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    return round(value, 5) if isinstance(value, float) else value


def data_folder() -> Path:
    root = Path(__file__).resolve().parent.parent
    folder = Path(os.environ.get("HOPEFEAR_DATA", root.parent / "shared" / "data"))
    if not folder.is_dir():
        raise SystemExit(f"no data in {folder}; set HOPEFEAR_DATA, or give files to --data")
    return folder


def _read(files: list[Path]) -> list[Any]:
    from sklearn.datasets import load_svmlight_files

    streams = [OPENERS.get(f.suffix, open)(f, "rb") for f in files]
    try:
        return load_svmlight_files(streams, dtype=np.float32)
    finally:
        for stream in streams:
            stream.close()


def _news_groups(path: Path) -> dict[int, int]:
    lines = (line.split("\t") for line in path.read_text().splitlines())
    return {int(label): int(side) for label, _, side in lines}


def _signs(y: np.ndarray, group: dict[int, int] | None) -> np.ndarray:
    if group is not None:
        return np.array([group[int(label)] for label in y], np.int8)
    labels = set(y.tolist())
    if len(labels) != 2:
        raise SystemExit(f"these benchmarks need two classes, found {len(labels)}")
    return np.where(y == max(labels), 1, -1).astype(np.int8)


def _unit(X: csr_matrix) -> csr_matrix:
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    scale = np.repeat(1.0 / np.maximum(lengths, 1e-30), np.diff(X.indptr))
    X.data = (X.data * scale).astype(np.float32)
    return _narrow(X)


def _narrow(X: csr_matrix) -> csr_matrix:
    """32-bit ids and offsets, which scikit-learn's kernels ask for."""
    X.indptr, X.indices = X.indptr.astype(np.int32), X.indices.astype(np.int32)
    return X


def _synth(name: str) -> Problem:
    from hopefear.data.generators import sparse_linear

    n, d = (int(x) for x in (name.partition(":")[2] or "1000000x1000000").split("x"))
    parts = []
    for p in sparse_linear(n + n // 10, d, seed=1).split(n):
        X = csr_matrix((p.values, p.indices, p.indptr), (p.n_examples, d))
        parts += [_narrow(X), (2 * p.labels - 1).astype(np.int8)]
    return Problem(f"synth:{n}x{d}", *parts)
