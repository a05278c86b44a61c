"""``hopefear warm-up``: compile kernels now, so that nobody waits for them later."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hopefear.cli.console import Console
from hopefear.cli.progress import Bar
from hopefear.cli.surface import Rehearsal, surface_of
from hopefear.errors import HopefearError
from hopefear.tasks import TASKS, recipes_of

USAGE = "[TASK …] [--learner NAME …] [--jobs N]"
DESCRIPTION = """
Compile the kernels of every learner of the tasks named (all tasks by default), so that no later run
on this machine has to. Kernels are kept in ~/.cache/hopefear (HOPEFEAR_CACHE moves it), each in a
file named by all that it depends on: a new version of hopefear compiles what has changed, and what
nobody used for 30 days is deleted. In a container, run it while the image is built. A wheel made by
`make wheel` brings its kernels along and needs no warm-up on the processors it was made for.
"""
EXAMPLES = """
examples:
  hopefear warm-up
  hopefear warm-up tag --learner sapo crf
  HOPEFEAR_CACHE=/opt/hopefear hopefear warm-up classify --jobs 8
"""
_WORK = "import sys; from hopefear.cli.warm_up import work; sys.exit(work(sys.argv[1:]))"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "tasks", nargs="*", metavar="TASK", help="as `hopefear learners` lists them (default: all)"
    )
    parser.add_argument(
        "--learner", nargs="+", metavar="NAME", help="only these (default: every learner)"
    )
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="processes at once (default: one for each core)"
    )


def run(args: argparse.Namespace) -> int:
    from hopefear.core.kernel_cache import cache_folder

    jobs = args.jobs or len(os.sched_getaffinity(0))
    if jobs < 1:
        args.usage_error(f"--jobs must be at least 1, not {jobs}")
    console, began = Console(args.quiet), time.perf_counter()
    todo = _todo(args.tasks, args.learner)
    failures = _compile(todo, jobs, console)
    if failures:
        raise HopefearError(
            f"{len(failures)} of {len(todo)} could not be compiled, {failures[0]} first"
        )
    folder = cache_folder()
    sizes = [path.stat().st_size for path in folder.glob("*.kernel")] if folder.exists() else []
    console.say(
        f"{len(todo)} learners and formats ready in {time.perf_counter() - began:.0f} s: "
        f"{len(sizes):,} kernels, {sum(sizes) / 1e6:.0f} MB in {folder}"
    )
    return 0


def _todo(tasks: Sequence[str], learners: Sequence[str] | None) -> list[tuple[str, str]]:
    """(task, learner) of all jobs; without a learner, what all learners of a task share."""
    known = [task for task in TASKS if rehearsal_of(task).learning]
    tasks = tasks or known
    for task in tasks:
        if task not in known:
            raise HopefearError(f"warm-up has no task {task!r}; there are {', '.join(known)}")
    jobs = []
    for task in tasks:
        table = recipes_of(task)
        # The default first: the others then find the kernels that all share.
        names = sorted(table, key=[TASKS[task].learner, *table].index)
        usable = names if learners is not None else [n for n in names if _is_usable(table[n])]
        names = [name for name in usable if learners is None or name in learners]
        jobs += [(task, name) for name in names] + [(task, "")] * bool(names)
    for name in learners or ():
        if all(name != other for _, other in jobs):
            raise HopefearError(
                f"no task of {', '.join(tasks)} has a learner {name!r}; see `hopefear learners`"
            )
    return jobs


def _is_usable(recipe: Any) -> bool:
    """Whether what a learner needs is installed; networks need PyTorch."""
    from hopefear.recipes import NetworkRecipe

    return not isinstance(recipe, NetworkRecipe) or bool(importlib.util.find_spec("torch"))


def rehearsal_of(task: str) -> Rehearsal:
    """The commands that compile what people need of a task."""
    if TASKS[task].surface is None:
        from hopefear.cli.tune.options import REHEARSAL

        return REHEARSAL
    return surface_of(task).rehearsal


def _compile(todo: Sequence[tuple[str, str]], jobs: int, console: Console) -> list[str]:
    """Do all jobs, some processes at a time; those that failed."""
    ahead: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[str, bool]] = queue.SimpleQueue()
    for job in todo:
        ahead.put(job)
    failures: list[str] = []
    stop = threading.Event()

    def one_after_another() -> None:
        while not stop.is_set():
            try:
                task, learner = ahead.get_nowait()
            except queue.Empty:
                return
            words = [sys.executable, "-c", _WORK, task, learner]
            child = subprocess.run(words, capture_output=True, text=True)
            name = f"{task} {learner or 'formats'}"
            done.put((name, child.returncode == 0))

    threads = [threading.Thread(target=one_after_another) for _ in range(min(jobs, len(todo)))]
    for thread in threads:
        thread.start()
    try:
        with _Steps(console, len(todo)) as steps:
            for _ in todo:
                name, well = done.get()
                failures += [] if well else [name]
                steps.done(name)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return failures


class _Steps(Bar):
    """A bar of jobs done."""

    def __init__(self, console: Console, total: int) -> None:
        super().__init__(console)
        self.total, self.count, self._line = total, 0, None

    def _columns(self) -> tuple[Any, ...]:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

        words = TextColumn("{task.description}")
        return BarColumn(), MofNCompleteColumn(), words, TimeRemainingColumn()

    def _begin(self) -> None:
        self._line = self._bar.add_task("compiling", total=self.total)

    def done(self, name: str) -> None:
        self.count += 1
        if self._bar is not None:
            self._bar.update(self._line, completed=self.count, description=name)
        elif not self.console.terminal:
            self.console.say(f"{self.count}/{self.total} {name}")


def work(words: Sequence[str]) -> int:
    """One job, in a process of its own: 0 if training, or all of what is shared, went well."""
    from hopefear.cli import main

    task, learner = words
    rehearsal = rehearsal_of(task)
    lines = rehearsal.learning if learner else rehearsal.shared
    worst = 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_files(Path(folder))
        for line in lines:
            learns = learner and line.startswith(("train", "tune"))
            more = ["--learner", learner] if learns else []
            with contextlib.redirect_stdout(io.StringIO()):
                status = main([*line.split(), *more, "--quiet"])
            if learns or not learner:  # not every learner has probabilities
                worst = max(worst, status)
    return worst


def write_files(folder: Path) -> None:
    """A tiny file of every format."""
    for name, lines in _files():
        (folder / name).write_text("".join(lines), encoding="utf-8")


def _files() -> Iterator[tuple[str, list[str]]]:
    words = ["hope", "fear", "sea", "ship", "wind", "rain", "night", "day"]
    for name, classes in (("two.svm", 2), ("six.svm", 6)):
        yield name, [f"{i % classes} {1 + i % classes}:1 {9 + i % 7}:0.5\n" for i in range(48)]
    yield "texts.tsv", [f"{'ab'[i % 2]}\t{words[i % 8]} {words[i % 3]}\n" for i in range(24)]
    columns, conllu, attributes, lists, trees, nbest, references = [], [], [], [], [], [], []
    heads = []
    for i in range(12):
        tokens = [words[(i + 3 * j) % 8] for j in range(5)]
        kinds = ["NN" if len(word) == 4 else "VB" for word in tokens]
        labels = ["B-NP" if kind == "NN" else "O" for kind in kinds]
        rows = list(zip(tokens, kinds, labels, strict=True))
        columns += [*(f"{w} {k} {y}\n" for w, k, y in rows), "\n"]
        conllu += [f"{j}\t{w}\t_\t{k}\t_\t_\t_\t_\t_\t_\n" for j, (w, k, _) in enumerate(rows, 1)]
        conllu.append("\n")
        heads += [
            f"{j}\t{w}\t_\t{k}\t{k}\t_\t{j - 1}\t{'root' if j == 1 else 'dep'}\t_\t_\n"
            for j, (w, k, _) in enumerate(rows, 1)
        ]
        heads.append("\n")
        attributes += [*(f"{y}\tw={w}\tp={k}\tn:0.5\n" for w, k, y in rows), "\n"]
        candidates = [
            {"text": words[c], "cost": c / 4, "score": -c, "features": {"lm": -0.1 * (c + i % 3)}}
            for c in range(4)
        ]
        lists.append(json.dumps({"id": i, "candidates": candidates}) + "\n")
        a, b, c = tokens[:3]
        shapes = [
            f"(S1 (S (NP (DT {a}) (NN {b})) (VP (VB {c}))))",
            f"(S1 (S (NP (DT {a})) (VP (NN {b}) (VB {c}))))",
        ]
        parses = [{"tree": tree, "logprob": -1.0 - p} for p, tree in enumerate(shapes)]
        trees.append(json.dumps({"id": i, "gold": shapes[i % 2], "candidates": parses}) + "\n")
        for n in range(4):
            text = " ".join([*tokens[: 5 - n % 2], words[(i + n) % 8]])
            scores = f"LM0= {-0.4 * (n + 1) - 0.1 * (i % 3):.2f} TM0= {-0.3 * (3 - n):.2f} s_{n}= 1"
            nbest.append(f"{i} ||| {text} ||| {scores} ||| {-n - 0.5:.2f}\n")
        references.append(" ".join([*tokens, words[i % 8]]) + "\n")
    yield "heads.conllu", heads[:18]  # three trees of five words
    yield from (("words.txt", columns), ("words.conllu", conllu), ("words.crfsuite", attributes))
    yield from (("lists.jsonl", lists), ("trees.jsonl", trees), ("nbest.txt", nbest))
    yield from (("refs.txt", references), ("start.txt", ["LM0= 0.5\n", "TM0= 0.2\n"]))
