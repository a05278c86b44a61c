"""The speed and memory goals of reranking, beside the reranker of the BLLIP parser.

    python bench/reranking.py
    python bench/reranking.py --only synthetic training --repeats 7 --json figures.json
    python bench/reranking.py --quick

Lists of the 50 best parses with the features "rich,consensus", synthetic lists of the size that
the peer was timed on, and translations; one thread. Figures are CPU seconds, the minimum over the
runs; of passes pass by pass, and then their mean. Compilation is left out. The peer's figures are
published ones: its program is not run here. What is shown without a goal is there for comparison.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import common
import numpy as np
import reranking_goals as goals
import reranking_lists as lists
import reranking_passes as passes
import reranking_whole as whole

from hopefear.tasks.base import train
from hopefear.tasks.rerank.task import Reranking
from hopefear_papers.frame import find_files
from hopefear_papers.parses import FILES, FOLDER

QUICK = lists.Size(30, 1_500, 30, 150, 1_500)
SEEDS = 3


class Figures:
    """Values, notes and all that was seen, by row of the table."""

    def __init__(self) -> None:
        self.values: dict[str, float | None] = {}
        self.notes: dict[str, str] = {}
        self.seen: dict[str, Any] = {}


def main() -> None:
    chosen = arguments()
    chosen_files = [f"{name}.jsonl.xz" for name in FILES]
    folder, figures = (
        find_files(chosen.data, FOLDER, chosen_files, "the lists of parses"),
        Figures(),
    )
    with tempfile.TemporaryDirectory() as scratch:
        measure(folder, Path(scratch), chosen, figures)
    rows = [
        goals.line(key, goal, figures.values[key], figures.notes.get(key, ""))
        for group in chosen.only
        for key, goal in goals.GOALS[group].items()
    ]
    result = {
        "rows": rows,
        "repeats": chosen.repeats,
        "passes": chosen.passes,
        "seen": figures.seen,
        "machine": common.machine(),
        "versions": {name: version(name) for name in ("hopefear", "numba", "scipy")},
    }
    print(goals.table(rows), file=sys.stderr)
    print(f"load {result['machine']['load']}", file=sys.stderr)
    text = json.dumps(result, ensure_ascii=False) + "\n"
    if chosen.json == "-":
        sys.stdout.write(text)
    elif chosen.json is not None:
        Path(chosen.json).write_text(text, "utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder that holds ptb-nbest")
    parser.add_argument("--only", nargs="+", choices=list(goals.GOALS), default=list(goals.GOALS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of training in all")
    parser.add_argument("--block-lists", type=int, default=16, help="lists extracted at a time")
    parser.add_argument("--quick", action="store_true", help="a few lists, to see that it runs")
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="also write as JSON")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.repeats, chosen.passes, chosen.seeds = 1, 2, 1
    if min(chosen.passes, chosen.repeats, chosen.seeds, chosen.block_lists) < 1:
        parser.error("--passes, --repeats, --seeds and --block-lists must be 1 or more")
    return chosen


def measure(folder: Path, scratch: Path, chosen: argparse.Namespace, figures: Figures) -> None:
    """Group after group, so that a group of large arrays is gone before the next."""
    selected = set(chosen.only)
    if "synthetic" in selected:
        log("synthetic lists")
        data = lists.synthetic(QUICK if chosen.quick else lists.PEER)
        take_turns("synthetic", passes.tasks("synthetic", data, chosen.passes), chosen, figures)
        del data
    if selected & {"passes", "training", "predict"}:
        log("parses")
        parts = whole.parts(folder, 1 if chosen.quick else None)
        if "passes" in selected:
            take_turns("real", passes.tasks("real", parts.train, chosen.passes), chosen, figures)
        if "training" in selected:
            train_all(parts, range(1, chosen.seeds + 1), figures)
        if "predict" in selected:
            rank_parses(folder, parts, scratch, chosen, figures)
        del parts
    if "texts" in selected:
        log("translations")
        file = scratch / "texts.jsonl"
        n = whole.write_texts(folder.parent / whole.TEXTS, file, 20 if chosen.quick else None)
        rates(whole.text_tasks(file, scratch), n, chosen, figures)
    if "extraction" in selected:
        extract(folder, chosen, figures)


def take_turns(where: str, tasks: Any, chosen: argparse.Namespace, figures: Figures) -> None:
    """Passes of all learners, and how often the yardstick each takes."""
    log(f"{len(tasks)} tasks take turns, {chosen.repeats} times")
    times = common.interleave(tasks, chosen.repeats)
    least = {name: np.min(np.array(runs), axis=0) for name, runs in times.items()}
    yardstick = float(np.min(least[f"yardstick {where}"]))
    for name, seconds in least.items():
        figures.values[name] = float(seconds.mean())
        figures.notes[name] = f"{seconds.mean() / yardstick:.1f} × X @ w; first {seconds[0]:.3f} s"
    key = f"yardstick {where}"
    figures.values[key], figures.notes[key] = yardstick, ""
    figures.seen |= {name: seconds.tolist() for name, seconds in least.items()}


def train_all(parts: whole.Parts, seeds: range, figures: Figures) -> None:
    for name in goals.TRAINING:
        log(f"training {name}")
        key = f"training {name}"
        run = figures.seen[key] = whole.training(parts, name, seeds)
        F, spread = float(np.mean(run["test"])), float(np.std(run["test"]))
        figures.notes[key] = f"test F {F:.2f} ± {spread:.2f}, {len(seeds)} seeds"
        figures.notes[key] += f"; mean {np.mean(run['seconds']):.2f} s"
        figures.values[key] = min(run["seconds"])
        if goals.F > F:
            figures.values[key], figures.notes[key] = None, f"not reached: {figures.notes[key]}"


def rank_parses(
    folder: Path, parts: whole.Parts, scratch: Path, chosen: argparse.Namespace, figures: Figures
) -> None:
    log("predicting")
    model = train(Reranking(), parts.train, epochs=1).model
    n = sum(block.n_candidates for block in lists.read(folder, "test"))
    rates(
        whole.predict_tasks("predict", folder / "test.jsonl.xz", model, scratch), n, chosen, figures
    )


def rates(tasks: Any, n: int, chosen: argparse.Namespace, figures: Figures) -> None:
    """Candidates a second."""
    for name, seconds in common.best(common.interleave(tasks, chosen.repeats)).items():
        figures.values[name], figures.notes[name] = n / seconds, f"{n:,} in {seconds:.2f} s"


def extract(folder: Path, chosen: argparse.Namespace, figures: Figures) -> None:
    repeats = min(2, chosen.repeats)  # the first loads kernels, and compiles those that are new
    log("extraction")
    max_lists = 1 if chosen.quick else None
    run = whole.extraction(folder, chosen.block_lists, repeats, max_lists)
    last, peak = run["steps"]["test"], run["steps"]["test"]["peak_mb"]
    figures.seen["extraction"] = run
    figures.values |= {"extraction": last["cpu"], "extraction memory": peak}
    figures.notes["extraction"] = (
        f"{run['trees']:,} trees; {run['features']:,} features, {run['values']:,} values"
    )
    figures.notes["extraction memory"] = f"{chosen.block_lists} lists at a time"


def log(message: str) -> None:
    print(f"… {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
