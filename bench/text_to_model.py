"""Text file to saved model, one adaptive pass, whole processes; and reading alone.

    python bench/text_to_model.py --data imdb --repeats 5

The same examples as svmlight text and as Vowpal Wabbit's: presence for imdb, rows of unit length.
``hopefear train`` and ``python -m vowpalwabbit`` take turns, their CPU seconds hold the start of
the interpreter, and compiled kernels are on disk. ``start`` is the same command on twenty lines:
what no file can be faster than. Reading alone is a function call for hopefear and scikit-learn,
``-t`` less the start for Vowpal Wabbit, which also predicts.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from pathlib import Path
from typing import Any

import common
import numpy as np
import vowpal

TRAIN = ["-m", "hopefear", "train", "classify", "--learner", "adagrad-rda", "--epochs", "1"]
QUIET = ["--norm", "none", "--quiet"]


def main() -> None:
    chosen = arguments()
    problem = prepared(common.load(chosen.data))
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        text, files = write(problem, Path(folder))
        our_text, their_text = first_lines(text), first_lines(files.train)
        small = files._replace(train=their_text)
        tasks = {
            "hopefear": lambda: train(text).seconds,
            "hopefear start": lambda: train(our_text).seconds,
            "vw": lambda: vowpal.from_text(files, "logistic").seconds,
            "vw start": lambda: vowpal.from_text(small, "logistic").seconds,
        }
        if not chosen.whole_only:
            tasks |= {
                "hopefear read": lambda: common.cpu_seconds(lambda: read(text)),
                "vw read": lambda: vowpal.parse_only(files).seconds,
                "vw read start": lambda: vowpal.parse_only(small).seconds,
                "sklearn read": lambda: common.cpu_seconds(lambda: sklearn_read(text)),
            }
            read(our_text)
        train(our_text)  # compiles what is not on disk yet
        least = common.best(common.interleave(tasks, chosen.repeats))
        size = text.stat().st_size / 1e6
        peaks = {"hopefear": train(text).peak_mb, "vw": vowpal.from_text(files, "logistic").peak_mb}
        results = summary(least, size) | {"peak_mb": peaks}
    common.report("text to model", "vowpalwabbit", problem, results, text_mb=round(size, 1),
                  repeats=chosen.repeats)  # fmt: skip


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", nargs="+", default=["imdb"], metavar="FILE")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", help="where the text lies while it is measured")
    parser.add_argument("--whole-only", action="store_true", help="leave out reading alone")
    return parser.parse_args()


def prepared(problem: common.Problem) -> common.Problem:
    """imdb in its strongest form: which words there are, not how often."""
    if problem.name != "imdb":
        return problem
    scale = np.sqrt(np.maximum(np.diff(problem.X.indptr), 1))
    problem.X.data = np.repeat(1.0 / scale, np.diff(problem.X.indptr)).astype(np.float32)
    return problem


def write(problem: common.Problem, folder: Path) -> tuple[Path, vowpal.Files]:
    """The training part as (svmlight text, files of Vowpal Wabbit)."""
    text = folder / "train.svm"
    bits = max(10, int(problem.X.shape[1]).bit_length())
    empty = folder / "none"
    files = vowpal.Files(folder, folder / "train.vw", empty, empty, bits)
    vowpal.write(files.train, problem.X, problem.y)
    with open(files.train) as lines, open(text, "w") as out:
        out.writelines(line.replace(" | ", " ", 1) for line in lines)
    return text, files


def first_lines(path: Path) -> Path:
    part = path.with_name(f"start-{path.name}")
    with open(path) as lines:
        part.write_text("".join(itertools.islice(lines, 20)))
    return part


def train(path: Path) -> common.Run:
    model = path.with_suffix(".model")
    return common.run([sys.executable, *TRAIN, *QUIET, "--train", str(path), "--model", str(model)])


def read(path: Path) -> Any:
    from hopefear.data.svmlight import read_svmlight

    return read_svmlight(path)


def sklearn_read(path: Path) -> Any:
    from sklearn.datasets import load_svmlight_file

    return load_svmlight_file(str(path), dtype=np.float32)


def summary(least: dict[str, float], size: float) -> dict[str, Any]:
    """Seconds, and ratios above 1 where hopefear is faster."""
    complete = {
        "ratio": least["vw"] / least["hopefear"],
        "ratio_without_start": (least["vw"] - least["vw start"])
        / (least["hopefear"] - least["hopefear start"]),
    }
    if "hopefear read" not in least:
        return {"seconds": least, "whole": complete}
    our_seconds, their_seconds = least["hopefear read"], least["vw read"] - least["vw read start"]
    reading = {
        "mb_per_second": size / our_seconds,
        "ratio_vw": their_seconds / our_seconds,
        "ratio_sklearn": least["sklearn read"] / our_seconds,
    }
    return {"seconds": least, "whole": complete, "reading": reading}


if __name__ == "__main__":
    main()
