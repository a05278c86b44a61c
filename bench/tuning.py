"""The speed and memory goals of tuning, beside the tools of Moses on the same lists.

    python bench/tuning.py
    python bench/tuning.py --data DIR --only mert pro --repeats 5 --json figures.json

Lists are those of Multi30k, 100 translations each. Figures are CPU seconds, the minimum over the
runs, compilation left out; memory is the peak of a process that reads and does nothing else. The
peer's figures are published ones, on the same lists: its programs are not run here.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np

from hopefear.data.files import open_bytes
from hopefear.recipes.scales import scale_of
from hopefear.translation.features import learned
from hopefear.translation.lists import read
from hopefear.translation.recipes import TUNE_RECIPES
from hopefear.translation.task import start_weights
from hopefear.translation.tuners.problem import TuningProblem
from hopefear_papers.frame import find_files
from hopefear_papers.translations import FOLDER, METRIC

STARTS = 20
PASSES = 10
FILES = ("val.nbest.xz", "val.en", "train10k.nbest.xz", "train10k.en")
GROUPS = ("mert", "pro", "pass", "reading")
# Imports what reading needs, and reads, whole or block after block as a program does that passes
# features on (the peer writes files); the line of JSON goes where the parent looks for it.
CHILD = """
import json, re, resource, sys, time
from hopefear.data.moses.reader import moses_blocks, read_moses
from hopefear.metrics.lists import Bleu
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before, began = peak(), time.process_time()
whole, *files = sys.argv[1:]
if whole == "whole":
    candidates = read_moses(*files, metric=Bleu(tokenize="none")).n_candidates
else:
    blocks = moses_blocks(*files, metric=Bleu(tokenize="none"))
    candidates = sum(block.n_candidates for block in blocks)
found = {"seconds": time.process_time() - began, "peak_mb": peak(), "before_mb": before}
mapped = re.search(r"RssFile:\\s*(\\d+)", open("/proc/self/status").read())
found["files_mb"] = int(mapped[1]) / 1024 if mapped else 0.0
print(json.dumps({**found, "candidates": candidates}), file=sys.stderr)
"""


class Goal(NamedTuple):
    """A row of the table: the peer's figure (a range is its lower end), and the most of it."""

    what: str
    unit: str
    peer: float
    share: float


GOALS = {
    "mert": Goal(f"MERT on val, {STARTS} starts", "s", 57.0, 0.3),
    "pro": Goal("PRO on val, sampling and classifier, one round", "s", 5.2, 0.5),
    "pass kbmira": Goal("online MIRA (kbmira), a pass over val, 14 features", "s", 0.043, 1.0),
    "pass mira": Goal("online MIRA (mira), the same", "s", 0.043, 1.0),
    "reading xz": Goal("train10k to scored features, from xz", "s", 43.0, 0.5),
    "reading xz memory": Goal("the same, peak of the process", "MB", 390.0, 0.5),
    "reading text": Goal("train10k to scored features, from text", "s", 43.0, 0.5),
    "reading text memory": Goal("the same, peak of the process", "MB", 390.0, 0.5),
    "reading blocks": Goal("train10k to scored features, text by blocks", "s", 43.0, 0.5),
    "reading blocks memory": Goal("the same, peak of the process", "MB", 390.0, 0.5),
}


def main() -> None:
    chosen = arguments()
    folder = find_files(chosen.data, FOLDER, FILES, "lists of translations")
    values: dict[str, float] = {}
    notes: dict[str, str] = {}
    if set(chosen.only) - {"reading"}:
        tuners(folder, chosen, values, notes)
    if "reading" in chosen.only:
        reading(folder, chosen.repeats, values, notes)
    rows = [_row(key, goal, values[key], notes) for key, goal in GOALS.items() if key in values]
    print(_table(rows), file=sys.stderr)
    result = {
        "rows": rows,
        "repeats": chosen.repeats,
        "machine": common.machine(),
        "versions": {name: version(name) for name in ("hopefear", "numba")},
    }
    print(f"load {result['machine']['load']}", file=sys.stderr)
    text = json.dumps(result, ensure_ascii=False) + "\n"
    if chosen.json == "-":
        sys.stdout.write(text)
    elif chosen.json is not None:
        Path(chosen.json).write_text(text, "utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder that holds the lists")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="also write as JSON")
    chosen = parser.parse_args()
    if chosen.repeats < 1:
        parser.error("--repeats must be 1 or more")
    return chosen


def tuners(
    folder: Path, chosen: argparse.Namespace, values: dict[str, float], notes: dict[str, str]
) -> None:
    """MERT, PRO and passes, which take turns."""
    lists = read(folder / "val.nbest.xz", folder / "val.en")
    data = learned(lists, METRIC, ("dense",))
    problem = TuningProblem(data, METRIC, start_weights(lists, "moses").on(data.features))
    tasks: dict[str, Callable[[], float]] = {}
    for key, (name, params) in {
        "mert": ("mert", {"restarts": STARTS}),
        "pro": ("pro", {}),
        "pass kbmira": ("kbmira", {"epochs": PASSES}),
        "pass mira": ("mira", {"epochs": PASSES}),
    }.items():
        if key.partition(" ")[0] in chosen.only:
            tuner = TUNE_RECIPES[name].build(scale_of(data), **params)
            few = TuningProblem(data.take(np.arange(8)), METRIC, problem.start)
            tuner.tune(few)  # compiles what is not on disk yet
            tasks[key] = _task(key, tuner, problem, notes)
    values.update(common.best(common.interleave(tasks, chosen.repeats)))


def _task(
    key: str, tuner: Any, problem: TuningProblem, notes: dict[str, str]
) -> Callable[[], float]:
    """CPU seconds of a whole run, or of its quickest pass, which holds shuffling and learning."""
    if not key.startswith("pass"):

        def complete() -> float:
            began = time.process_time()
            tuned = tuner.tune(problem)
            seconds = time.process_time() - began
            notes[key] = f"val BLEU {problem.score(tuned.weights):.2f}"
            return seconds

        return complete

    def passes() -> float:
        clock: list[float] = []

        class Timed(TuningProblem):
            """Notes the CPU time when a pass ends and when it has been scored."""

            def report(self, weights: np.ndarray) -> dict[str, Any]:
                clock.append(time.process_time())
                scores = super().report(weights)
                clock.append(time.process_time())
                return scores

        tuner.tune(Timed(problem.data, problem.metric, problem.start))
        notes[key] = f"quickest of {PASSES} passes a run; scoring left out"
        return min(end - begin for begin, end in zip(clock[1::2], clock[2::2], strict=False))

    return passes


def reading(folder: Path, repeats: int, values: dict[str, float], notes: dict[str, str]) -> None:
    """Measures reading in child processes; start-up counts in memory, not in time."""
    packed, references = folder / "train10k.nbest.xz", folder / "train10k.en"
    with tempfile.TemporaryDirectory() as scratch:
        plain = Path(scratch, "train10k.nbest")
        with open_bytes(packed) as source, open(plain, "wb") as target:
            shutil.copyfileobj(source, target)
        for key, reader, path in (
            ("reading xz", "whole", packed),
            ("reading text", "whole", plain),
            ("reading blocks", "blocks", plain),
        ):
            command = [sys.executable, "-c", CHILD, reader, str(path), str(references)]
            runs = [json.loads(common.run(command).output) for _ in range(repeats + 1)]
            values[key] = min(run["seconds"] for run in runs)
            values[f"{key} memory"] = min(run["peak_mb"] for run in runs)
            notes[key] = f"{runs[0]['candidates']:,} candidates"
            notes[f"{key} memory"] = (
                f"{runs[0]['before_mb']:.0f} MB of it before reading, "
                f"{runs[0]['files_mb']:.0f} MB pages of libraries"
            )


def _row(key: str, goal: Goal, value: float, notes: dict[str, str]) -> dict[str, Any]:
    return {
        "key": key,
        **goal._asdict(),
        "value": round(value, 5),
        "ratio": round(value / goal.peer, 4),
        "met": value <= goal.share * goal.peer,
        "note": notes.get(key, ""),
    }


def _table(rows: list[dict[str, Any]]) -> str:
    lines = [f"{'':55}{'ours':>10}{'peer':>9}{'ratio':>8}{'must':>7}"]
    for row in rows:
        digits = 4 if row["value"] < 1.0 else 2 if row["unit"] == "s" else 0
        mark = "" if row["met"] else "  not met"
        lines.append(
            f"{row['what']:55}{row['value']:>10.{digits}f}{row['peer']:>9g}{row['ratio']:>8.3f}"
            f"{row['share']:>7g}{mark}  {row['note']}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
