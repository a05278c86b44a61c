"""Peak memory of training from a file that is streamed, beside Vowpal Wabbit on the same examples.

    python bench/memory.py --data synth:300000x1000000

Every line is a process of its own: the interpreter with its imports, the same with its kernels
loaded (twenty examples), building a cache from text, training from that cache, Vowpal Wabbit from
text. ``peak_mb`` is the most that was resident. ``anonymous_mb`` leaves out pages of files, which
the system may drop and read again: libraries, above all the compiler's 70 MB, and the cache itself.
It is sampled every 2 ms, so it may miss a short peak. Linux only.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import common
import text_to_model
import vowpal

IMPORTS = "import hopefear.cli.classify, hopefear.tasks.classify.prepare"
BUILD = (
    "import sys; from hopefear.data.cached_examples import cache_examples; "
    "cache_examples(*sys.argv[1:3])"
)
STATE_BYTES = 8  # per weight of adagrad-rda


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", nargs="+", default=["synth:300000x1000000"], metavar="FILE")
    parser.add_argument("--folder", help="where text and cache lie while they are measured")
    chosen = parser.parse_args()
    problem = text_to_model.prepared(common.load(chosen.data))
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        text, files = text_to_model.write(problem, Path(folder))
        few = text_to_model.first_lines(text)
        cache, caches = text.with_suffix(".cache"), Path(folder) / "caches"
        command = [sys.executable, "-c", BUILD]
        for lines in (few, text):  # builds caches, and compiles what is not on disk yet
            measured(train(lines, caches))
        results: dict[str, Any] = {
            "imports": measured([sys.executable, "-c", IMPORTS]),
            "kernels": measured(train(few, caches)),
            "build": measured([*command, str(text), str(cache)]),
            "train": measured(train(text, caches)),
            "vw": measured(vw(files)),
        }
        sizes = {"text_mb": text.stat().st_size / 2**20, "cache_mb": cache.stat().st_size / 2**20}
    weights = problem.X.shape[1] * STATE_BYTES / 2**20
    results["own"] = {k: results["train"][k] - results["kernels"][k] for k in results["train"]}
    limits = {k: weights + 2 * v for k, v in results["vw"].items()}
    results |= {"weights_mb": weights, "goal": limits}
    common.report("peak memory", "vowpalwabbit", problem, results, **sizes)


def train(text: Path, caches: Path) -> list[str]:
    model = str(text.with_suffix(".model"))
    options = [*text_to_model.TRAIN, *text_to_model.QUIET, "--cache", str(caches)]
    return [sys.executable, *options, "--train", str(text), "--model", model]


def vw(files: vowpal.Files) -> list[str]:
    options = ["-b", str(files.bits), *vowpal.LEARNERS["logistic"]]
    return [*vowpal.PROGRAM, *options, "--data", str(files.train), "-f", str(files.folder / "vw")]


def measured(command: list[str]) -> dict[str, float]:
    """Most memory of a program in MB: resident, and without pages of files."""
    peak = anonymous = 0.0
    with subprocess.Popen(command) as process:
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            sizes = dict(re.findall(r"(VmHWM|RssAnon):\s+(\d+)", status.read_text()))
            peak = max(peak, int(sizes.get("VmHWM", 0)) / 1024)
            anonymous = max(anonymous, int(sizes.get("RssAnon", 0)) / 1024)
            time.sleep(0.002)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} left with status {process.returncode}")
    return {"peak_mb": peak, "anonymous_mb": anonymous}


if __name__ == "__main__":
    main()
