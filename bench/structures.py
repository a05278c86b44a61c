"""One timing for each structure, and the start of ``predict``: this tree beside another one.

    python bench/structures.py                              # this tree alone
    python bench/structures.py --against OTHER/src          # and the ratio to another one

Everything goes through the command line, so that any two versions can be compared. Seconds of a
pass are those in the events of ``train --run``, spent on learning, and of the CPU, since the child
is given that clock. A process trains for some passes; the quickest of all processes counts.
``predict`` is the CPU time of a whole process on a few lines. Processes of the two trees take
turns, and the one that begins changes from turn to turn. A tree against itself shows the noise.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Structure: what trains on it, and the seconds to divide.
TRAINED = {
    "binary": "classify --train binary.svm --learner adagrad-rda",
    "multiclass": "classify --train multiclass.svm --learner perceptron",
    "chain": "tag --train chain.txt --learner perceptron --features pos --no-names",
    "nbest": "rerank --train nbest.jsonl --learner mira",
}
STARTED = "predict"
# The child's program: other jobs on the machine do not count on this clock.
_CHILD = """
import sys, time
time.perf_counter = time.process_time
from hopefear.cli import main
sys.exit(main(sys.argv[1:]))
"""


def svmlight(dice: random.Random, rows: int, classes: int) -> str:
    lines = []
    for _ in range(rows):
        label = dice.randrange(classes)
        columns = {1 + dice.randrange(20000) for _ in range(60)} | {1 + 7 * label}
        lines.append(f"{label} {' '.join(f'{j}:1' for j in sorted(columns))}\n")
    return "".join(lines)


def chain(dice: random.Random, sentences: int) -> str:
    blocks = []
    for _ in range(sentences):
        words = [dice.randrange(3000) for _ in range(20)]
        blocks.append("".join(f"w{w} T{(w + (dice.random() < 0.1)) % 12}\n" for w in words))
    return "\n".join(blocks)


def nbest(dice: random.Random, lists: int) -> str:
    lines = []
    for i in range(lists):
        candidates = []
        for _ in range(30):
            cost = round(dice.random(), 3)
            names: dict[str, Any] = {f"f{dice.randrange(5000)}": 1 for _ in range(30)}
            names["lm"] = round(dice.random() - cost, 3)
            candidates.append({"cost": cost, "features": names})
        lines.append(json.dumps({"id": i, "candidates": candidates}) + "\n")
    return "".join(lines)


def write_files(folder: Path, share: float) -> None:
    dice = random.Random(1)
    makers: dict[str, Callable[[int], str]] = {
        "binary.svm": lambda n: 25 * svmlight(dice, 2 * n, 2),
        "multiclass.svm": lambda n: 5 * svmlight(dice, 2 * n, 10),
        "chain.txt": lambda n: chain(dice, n),
        "nbest.jsonl": lambda n: nbest(dice, n // 2),
        "few.txt": lambda n: chain(random.Random(2), 3),
    }
    for name, maker in makers.items():
        (folder / name).write_text(maker(max(20, int(4000 * share))), encoding="utf-8")


def seconds(structure: str, source: Path, folder: Path, passes: int, turn: int) -> float:
    """The quickest pass of a process, or the CPU seconds of one that predicts."""
    if structure == STARTED:
        line = "predict --model chain.model --input few.txt --output few.out"
        before = _used()
        _run(line, source, folder)
        return _used() - before
    run = f"run-{structure}-{turn}"
    line = f"train {TRAINED[structure]} --epochs {passes} --run {run} --model {structure}.model"
    _run(line, source, folder)
    events = (folder / run / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return min(e["seconds"] for e in map(json.loads, events) if "seconds" in e)


def _run(line: str, source: Path, folder: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"}
    words = [sys.executable, "-c", _CHILD, *line.split(), "--quiet"]
    subprocess.run(words, cwd=folder, env=env, check=True)


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    here = Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--src", type=Path, default=here / "src", help="folder of the package")
    parser.add_argument("--against", type=Path, help="folder of another version")
    parser.add_argument("--only", nargs="+", choices=[*TRAINED, STARTED])
    parser.add_argument("--repeats", type=int, default=5, help="processes of each")
    parser.add_argument("--passes", type=int, default=30, help="of a process")
    parser.add_argument("--share", type=float, default=1.0, help="size of the data")
    parser.add_argument("--json", type=Path, help="file for all figures")
    args = parser.parse_args()
    sources = {"this": args.src.resolve()}
    if args.against:
        sources["other"] = args.against.resolve()
    figures: dict[str, dict[str, Any]] = {}
    print(f"{'':<12}" + "".join(f"{name:>10}" for name in sources) + f"{'ratio':>8}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_files(folder, args.share)
        names = args.only or [*TRAINED, STARTED]
        if STARTED in names and "chain" not in names:
            line = f"train {TRAINED['chain']} --epochs 1 --model chain.model"
            _run(line, sources["this"], folder)
        for structure in names:
            times: dict[str, list[float]] = {name: [] for name in sources}
            for source in sources.values():  # kernels are compiled before clocks run
                seconds(structure, source, folder, 1, -1)
            for turn in range(args.repeats):
                order = list(sources.items())
                for name, source in order if turn % 2 else order[::-1]:
                    times[name].append(seconds(structure, source, folder, args.passes, turn))
            best = {name: min(values) for name, values in times.items()}
            ratio = best["this"] / best["other"] if args.against else None
            figures[structure] = {"seconds": best, "ratio": ratio, "all": times}
            shown = "".join(f"{value:>10.4f}" for value in best.values())
            print(f"{structure:<12}{shown}" + (f"{ratio:>8.3f}" if ratio else ""), flush=True)
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
