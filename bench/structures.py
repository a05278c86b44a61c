"""An epoch of every structure with its learners, on one thread: this tree beside another one.

    python bench/structures.py                                   # this tree alone
    python bench/structures.py --against OTHER/src               # and the ratio to another one
    python bench/structures.py --only chain trees:mira predict   # some rows

A structure has a row for its default learner and one for each rule and way to average. Everything
goes through the command line, so that any two versions can be compared. Seconds of an epoch are
those in the events of ``train --run``, spent on learning, and of the CPU, since the child is given
that clock and one core. The quickest epoch of all processes counts. ``predict`` is the CPU time
of a whole process on a few lines. Processes of the two trees take turns, and the one that begins
changes from turn to turn. A tree against itself shows the noise.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Name of a row: the rule that it times. The default learner of a task comes first.
RULES = {
    "sgd": "sgd",
    "perceptron": "perceptron",
    "voted": "perceptron -p averaging=voted",
    "pa": "pa",
    "adagrad": "adagrad",
    "adagrad-rda": "adagrad-rda",
    "rda": "rda",
    "vrda": "vrda",
    "tg": "tg",
    "fobos": "fobos",
    "ftrl": "ftrl",
    "cw": "cw",
    "arow": "arow",
}
MARGINS = {"mira": "mira", "nbest-mira": "nbest-mira", "sapo": "sapo", "ssvm": "ssvm"}
CHAINS = {**MARGINS, "crf": "crf", "swvp": "swvp", "crf-lbfgs": "crf-lbfgs", **RULES}
# Parsers have no recipe for these rules, and trees no votes.
TREES = {
    **MARGINS,
    "crf": "crf",
    "swvp": "swvp",
    "crf-lbfgs": "crf-lbfgs",
    **{name: RULES[name] for name in ("perceptron", "pa", "adagrad", "adagrad-rda")},
    **{name: RULES[name] for name in ("rda", "vrda", "fobos")},
}
# Structure: the words behind `train`, and the learners in the order of the rows.
STRUCTURES: dict[str, tuple[str, dict[str, str]]] = {
    "binary": ("classify --train binary.svm", {"adagrad-rda": "adagrad-rda", **RULES}),
    "multiclass": (
        "classify --train multiclass.svm",
        {"adagrad-rda": "adagrad-rda", "softmax": "softmax", **MARGINS, **RULES},
    ),
    "chain": ("tag --train chain.txt --features pos --no-names", CHAINS),
    "chain-2": ("tag --train chain.txt --features pos --no-names --order 2", CHAINS),
    "tree": ("parse --train trees.conllu --order 1 --tree projective", TREES),
    "tree-nonprojective": ("parse --train trees.conllu --order 1 --tree nonprojective", TREES),
    "tree-2": ("parse --train trees.conllu --order 2 --tree projective", TREES),
    "nbest": (
        "rerank --train nbest.jsonl",
        {"risk": "risk", "maxent": "maxent", **MARGINS, **RULES},
    ),
}
STARTED = "predict"
# The child's program: other jobs on the machine do not count on this clock.
_CHILD = """
import os, sys, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
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


def trees(dice: random.Random, sentences: int) -> str:
    blocks = []
    for _ in range(sentences):
        words = [dice.randrange(3000) for _ in range(20)]
        heads = [0] * 20
        attach(dice, heads, 0, 20, 0)
        blocks.append(
            "".join(
                f"{i + 1}\tw{w}\t_\tP{w % 12}\t_\t_\t{heads[i]}\tr{w % 9 if heads[i] else 'oot'}"
                "\t_\t_\n"
                for i, w in enumerate(words)
            )
        )
    return "\n".join(blocks) + "\n"


def attach(dice: random.Random, heads: list[int], start: int, end: int, head: int) -> None:
    """Draws a projective tree of the words from ``start`` to ``end``."""
    if start < end:
        root = dice.randrange(start, end)
        heads[root] = head
        attach(dice, heads, start, root, root + 1)
        attach(dice, heads, root + 1, end, root + 1)


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
        "trees.conllu": lambda n: trees(dice, n // 8),
        "nbest.jsonl": lambda n: nbest(dice, n // 2),
        "few.txt": lambda n: chain(random.Random(2), 3),
    }
    for name, maker in makers.items():
        (folder / name).write_text(maker(max(20, int(4000 * share))), encoding="utf-8")


def seconds(row: str, source: Path, folder: Path, epochs: int, turn: int) -> float:
    """Returns the quickest epoch of a process, or the CPU seconds of one that predicts."""
    if row == STARTED:
        line = "predict --model chain.model --input few.txt --output few.out"
        before = _used()
        _run(line, source, folder)
        return _used() - before
    structure, _, learner = row.partition(":")
    words, learners = STRUCTURES[structure]
    run = f"run-{row.replace(':', '-')}-{turn}"
    line = f"train {words} --learner {learners[learner]} --epochs {epochs}"
    _run(f"{line} --run {run} --model {structure}.model", source, folder)
    events = (folder / run / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return min(e["seconds"] for e in map(json.loads, events) if "seconds" in e)


def _run(line: str, source: Path, folder: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"}
    words = [sys.executable, "-c", _CHILD, *line.split(), "--quiet"]
    subprocess.run(words, cwd=folder, env=env, check=True)


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rows_of(names: list[str]) -> list[str]:
    """Returns the rows of structures, or single rows such as ``chain:mira``."""
    rows = []
    for name in names:
        structure, _, learner = name.partition(":")
        if name == STARTED:
            rows.append(name)
        elif structure not in STRUCTURES or learner not in {"", *STRUCTURES[structure][1]}:
            sys.exit(
                f"structures.py: there is no row {name!r}; structures: {', '.join(STRUCTURES)}"
            )
        else:
            learners = [learner] if learner else STRUCTURES[structure][1]
            rows += [f"{structure}:{learner}" for learner in learners]
    return rows


def main() -> None:
    here = Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--src", type=Path, default=here / "src", help="folder of the package")
    parser.add_argument("--against", type=Path, help="folder of another version")
    parser.add_argument("--only", nargs="+", metavar="ROW", help="structures, or rows of them")
    parser.add_argument("--repeats", type=int, default=3, help="processes of each")
    parser.add_argument("--epochs", type=int, default=10, help="of a process")
    parser.add_argument("--share", type=float, default=1.0, help="size of the data")
    parser.add_argument("--json", type=Path, help="file for all figures")
    args = parser.parse_args()
    sources = {"this": args.src.resolve()}
    if args.against:
        sources["other"] = args.against.resolve()
    figures: dict[str, dict[str, Any]] = {}
    print(f"{'':<32}" + "".join(f"{name:>10}" for name in sources) + f"{'ratio':>8}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_files(folder, args.share)
        rows = rows_of(args.only or [*STRUCTURES, STARTED])
        if STARTED in rows:
            seconds("chain:perceptron", sources["this"], folder, 1, -1)
        for row in rows:
            times: dict[str, list[float]] = {name: [] for name in sources}
            for source in sources.values():  # kernels are compiled before clocks run
                seconds(row, source, folder, 1, -1)
            for turn in range(args.repeats):
                order = list(sources.items())
                for name, source in order if turn % 2 else order[::-1]:
                    times[name].append(seconds(row, source, folder, args.epochs, turn))
            best = {name: min(values) for name, values in times.items()}
            ratio = best["this"] / best["other"] if args.against else None
            figures[row] = {"seconds": best, "ratio": ratio, "all": times}
            cells = "".join(f"{value:>10.4f}" for value in best.values())
            print(f"{row:<32}{cells}" + (f"{ratio:>8.3f}" if ratio else ""), flush=True)
    ratios = [figure["ratio"] for figure in figures.values() if figure["ratio"]]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"\n{len(ratios)} rows: geometric mean {mean:.3f}, worst {max(ratios):.3f}")
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
