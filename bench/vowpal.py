"""Vowpal Wabbit: seconds of a text pass and of a cached pass, peak memory, error, weights.

    python bench/vowpal.py --data imdb --learner logistic

The package has no ``vw`` program; ``python -m vowpalwabbit`` takes the same arguments. Times hold
the start of that process; a cached pass is (6 passes - 1 pass) / 5 from the cache, so it does not.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np

PROGRAM = [sys.executable, "-m", "vowpalwabbit", "--quiet", "--no_stdin"]
LEARNERS = {
    "logistic": ["--loss_function", "logistic"],
    "logistic-l1": ["--loss_function", "logistic", "--l1", "1e-6"],
    "hinge": ["--loss_function", "hinge"],
    "ftrl": ["--loss_function", "logistic", "--ftrl"],
}


class Files(NamedTuple):
    """A problem as Vowpal Wabbit reads it."""

    folder: Path
    train: Path
    test: Path
    cache: Path
    bits: int


def prepare(problem: common.Problem, folder: Path) -> Files:
    """Writes text and cache. Ids are used as hashes: with enough bits none collide."""
    bits = max(10, int(problem.X.shape[1]).bit_length())
    files = Files(folder, folder / "train.vw", folder / "test.vw", folder / "train.cache", bits)
    write(files.train, problem.X, problem.y)
    write(files.test, problem.X_test, problem.y_test)
    learn(files, "logistic", ["--data", str(files.train), "--cache_file", str(files.cache)])
    return files


def write(path: Path, X: Any, y: np.ndarray) -> None:
    with open(path, "w") as out:
        for i, label in enumerate(y):
            a, b = X.indptr[i], X.indptr[i + 1]
            pairs = zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True)
            out.write(f"{label} | " + " ".join([f"{j}:{v:.6g}" for j, v in pairs]) + "\n")


def learn(files: Files, learner: str, arguments: list[str]) -> common.Run:
    return common.run([*PROGRAM, "-b", str(files.bits), *LEARNERS[learner], *arguments])


def from_text(files: Files, learner: str) -> common.Run:
    """One epoch over the text, and saving the model: the time of a user's command."""
    model = files.folder / f"{learner}.text.model"
    return learn(files, learner, ["--data", str(files.train), "-f", str(model)])


def from_cache(files: Files, learner: str, passes: int) -> common.Run:
    cached = ["--cache_file", str(files.cache), "--passes", str(passes), "--holdout_off"]
    return learn(files, learner, cached)


def parse_only(files: Files) -> common.Run:
    """Read the text and predict, without learning: the cost of reading."""
    return common.run([*PROGRAM, "-b", str(files.bits), "-t", "--data", str(files.train)])


def tasks(files: Files, learners: list[str], passes: int = 6) -> dict[str, common.Task]:
    """Cached runs of one and several passes, text runs, and reading alone."""
    tasks_by_name: dict[str, common.Task] = {"vw parse": lambda: parse_only(files).seconds}
    for name in learners:
        tasks_by_name[f"vw {name} text"] = lambda name=name: from_text(files, name).seconds
        for n in (1, passes):
            tasks_by_name[common.key(f"vw {name}", n)] = lambda name=name, n=n: (
                from_cache(files, name, n).seconds
            )
    return tasks_by_name


def quality(problem: common.Problem, files: Files, learner: str, passes: int = 1) -> dict[str, Any]:
    """Returns test error (percent) and number of non-zero weights after ``passes`` epochs."""
    model, readable = files.folder / "model", files.folder / "model.txt"
    scores = files.folder / "scores"
    # Without --predict_only_model a model trained with --l1 is saved before truncation.
    saved = ["-f", str(model), "--readable_model", str(readable), "--predict_only_model"]
    if passes == 1:
        process = learn(files, learner, ["--data", str(files.train), *saved])
    else:
        cached = ["--cache_file", str(files.cache), "--passes", str(passes), "--holdout_off"]
        process = learn(files, learner, [*cached, *saved])
    test = ["-t", "-i", str(model), "--data", str(files.test), "-r", str(scores)]
    common.run([*PROGRAM, *test])
    raw = np.array(
        [float(line.rpartition(":")[2]) for line in scores.read_text().split("\n") if line]
    )
    return {"error": problem.error(raw), "nnz": _weights(readable), "peak_mb": process.peak_mb}


def _weights(readable: Path) -> int:
    with open(readable) as lines:
        for line in lines:
            if line.startswith(":0"):
                return sum(1 for _ in lines)
    return 0


def main() -> None:
    chosen = common.arguments(__doc__, list(LEARNERS), ["logistic"])
    problem = common.load(chosen.data)
    with tempfile.TemporaryDirectory() as folder:
        files = prepare(problem, Path(folder))
        times = common.interleave(tasks(files, chosen.learner, chosen.passes), chosen.repeats)
        least = common.best(times)
        results = {
            name: common.per_pass(times, f"vw {name}", chosen.passes)
            | {"seconds_text": least[f"vw {name} text"]}
            | quality(problem, files, name)
            for name in chosen.learner
        }
        extra = {
            "seconds_parse": round(least["vw parse"], 5),
            "text_mb": round(files.train.stat().st_size / 2**20, 1),
            "repeats": chosen.repeats,
            "passes": chosen.passes,
        }
        common.report("Vowpal Wabbit", "vowpalwabbit", problem, results, **extra)


if __name__ == "__main__":
    main()
