"""``hopefear warm-up``: compile kernels now, so that nobody waits for them later."""

from __future__ import annotations

import argparse
import contextlib
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
# What people do with a learner, on next to nothing.
_LEARNERS = {
    "classify": [
        f"{verb} {more}"
        for file in ("two.svm", "six.svm")
        for verb, more in (
            ("train classify", f"--train {file} --dev {file} --epochs 2 --model m"),
            ("predict", f"--model m --input {file} --output out"),
            ("predict", f"--model m --input {file} --output out --proba"),
            ("evaluate", f"--model m --data {file} --json"),
        )
    ],
    "tag": [
        "train tag --train words.txt --dev words.txt --epochs 2 --model m",
        "predict --model m --input words.txt --output out",
        "predict --model m --input words.txt --output out --proba",
        "predict --model m --input words.txt --output out --nbest 5",
        "predict --model m --input words.txt --output out --nbest 5 --proba",
        "evaluate --model m --data words.txt --json",
    ],
    "rerank": [
        "train rerank --train lists.jsonl --dev lists.jsonl --epochs 2 --model m",
        "predict --model m --input lists.jsonl --output out",
        "predict --model m --input lists.jsonl --output out --proba",
        "evaluate --model m --data lists.jsonl --json",
    ],
    "tune": [
        "tune --nbest nbest.txt --refs refs.txt --weights w.txt",
        "evaluate --nbest nbest.txt --refs refs.txt --weights w.txt --json",
    ],
}
# What does not depend on the learner: other formats, features and outputs.
_ONCE = {
    "classify": [
        "train classify --train texts.tsv --dev texts.tsv --epochs 2 --model m",
        "predict --model m --input texts.tsv --output out",
        "inspect --model m",
    ],
    "tag": [
        "train tag --train words.conllu --epochs 1 --model m",
        "train tag --train words.crfsuite --epochs 1 --model m",
        "train tag --train words.txt --epochs 1 --model m",
        "predict --model m --input words.txt --output out --explain",
        "inspect --model m",
    ],
    "rerank": [
        "train rerank --train trees.jsonl --features rich --epochs 1 --model m",
        "predict --model m --input trees.jsonl --output out",
        "train rerank --train nbest.txt --refs refs.txt --epochs 1 --model m",
        "inspect --model m",
    ],
    "tune": [
        "evaluate --nbest nbest.txt --refs refs.txt --metric chrf --weights start.txt --json",
        "evaluate --nbest nbest.txt --refs refs.txt --metric ter --weights start.txt --json",
        "predict --input nbest.txt --weights start.txt --output out",
    ],
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"of {', '.join(_LEARNERS)}")
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
    tasks = tasks or tuple(_LEARNERS)
    for task in tasks:
        if task not in _LEARNERS:
            raise HopefearError(f"warm-up has no task {task!r}; there are {', '.join(_LEARNERS)}")
    jobs = []
    for task in tasks:
        table = recipes_of(task)
        # The default first: the others then find the kernels that all share.
        names = sorted(table, key=[TASKS[task].learner, *table].index)
        names = [name for name in names if learners is None or name in learners]
        jobs += [(task, name) for name in names] + [(task, "")] * bool(names)
    known = {name for _, name in jobs}
    for name in learners or ():
        if name not in known:
            raise HopefearError(
                f"no task of {', '.join(tasks)} has a learner {name!r}; see `hopefear learners`"
            )
    return jobs


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
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

        words = TextColumn("{task.description}")
        return BarColumn(), MofNCompleteColumn(), words, TimeElapsedColumn()

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
    lines = _LEARNERS[task] if learner else _ONCE[task]
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
    for i in range(12):
        tokens = [words[(i + 3 * j) % 8] for j in range(5)]
        kinds = ["NN" if len(word) == 4 else "VB" for word in tokens]
        labels = ["B-NP" if kind == "NN" else "O" for kind in kinds]
        rows = list(zip(tokens, kinds, labels, strict=True))
        columns += [*(f"{w} {k} {y}\n" for w, k, y in rows), "\n"]
        conllu += [f"{j}\t{w}\t_\t{k}\t_\t_\t_\t_\t_\t_\n" for j, (w, k, _) in enumerate(rows, 1)]
        conllu.append("\n")
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
    yield from (("words.txt", columns), ("words.conllu", conllu), ("words.crfsuite", attributes))
    yield from (("lists.jsonl", lists), ("trees.jsonl", trees), ("nbest.txt", nbest))
    yield from (("refs.txt", references), ("start.txt", ["LM0= 0.5\n", "TM0= 0.2\n"]))
