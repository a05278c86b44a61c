"""Compile the kernels of recommended learners for a level of processors, to go into a wheel.

    python tools/ship_kernels.py build/kernels

Numba is told the processor by its name and features, so that the code runs on every processor that
has them, whatever this machine has besides. The wheel's kernels are used where processor, Python,
numba and sources are the same; elsewhere kernels are compiled as ever.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from hopefear.core.kernel_cache import LEVEL_FILE
from hopefear.core.numba_private import process_triple
from hopefear.tasks import TASKS

# x86-64-v3, the level of processors since about 2015; without a table for other machines, theirs.
NAME = "x86-64-v3"
FEATURES = (
    "+cx16,+sahf,+popcnt,+sse3,+ssse3,+sse4.1,+sse4.2,"
    "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("tasks", nargs="*", help="tasks (default: all)")
    parser.add_argument("--learner", nargs="+", help="learners in place of the recommended")
    args = parser.parse_args()
    triple = process_triple()
    if not triple.startswith("x86_64-"):
        raise SystemExit(f"ship_kernels.py: no level of processors is set down for {triple}")
    shutil.rmtree(args.folder, ignore_errors=True)
    env = {
        **os.environ,
        "HOPEFEAR_CACHE": str(args.folder.parent.resolve()),
        "NUMBA_CPU_NAME": NAME,
        "NUMBA_CPU_FEATURES": FEATURES,
    }
    selected = ["--learner", *args.learner] if args.learner else ["--recommended"]
    words = [sys.executable, "-m", "hopefear", "warm-up"]
    # Tasks share few kernels, and files of kernels need no locks: one process for each task.
    runs = [subprocess.Popen([*words, task, *selected], env=env) for task in args.tasks or TASKS]
    statuses = [run.wait() for run in runs]
    if any(statuses):
        raise SystemExit("ship_kernels.py: not all kernels were compiled")
    level = {"processor": [triple, NAME, FEATURES]}
    (args.folder / LEVEL_FILE).write_text(json.dumps(level) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
