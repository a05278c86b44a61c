"""``hopefear warm-up``: compile kernels now, so that nobody waits for them later."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hopefear.cli.console import Console
from hopefear.cli.surface import Rehearsal, surface_of
from hopefear.core.progress import stage
from hopefear.errors import HopefearError
from hopefear.tasks import TASKS, recipes_of

USAGE = "[TASK …] [--learner NAME … | --recommended]"
DESCRIPTION = """
Compile the kernels of every learner of the tasks named (all tasks by default), so that no later run
on this machine has to. A learner that cannot run on some structure is named with the reason.
Kernels are kept in ~/.cache/hopefear (HOPEFEAR_CACHE moves it), each in a file named by all that it
depends on: a new version of hopefear compiles what has changed, and what nobody used for 30 days is
deleted. In a container, run it while the image is built; commands for different tasks can run side
by side. A wheel made by `make wheel` brings its kernels along and needs no warm-up on the
processors it was made for.
"""
EXAMPLES = """
examples:
  hopefear warm-up
  hopefear warm-up --recommended
  hopefear warm-up tag --learner sapo crf
  HOPEFEAR_CACHE=/opt/hopefear hopefear warm-up classify
"""


class Job(NamedTuple):
    """What is compiled at once: a learner of a task; without a name, what its learners share."""

    task: str
    learner: str

    def __str__(self) -> str:
        return f"{self.task} {self.learner or 'formats'}"


class Outcome(NamedTuple):
    """How a job ended.

    ``refused`` has (command, reason) of what the learner cannot do, ``failed`` of what it should.
    """

    refused: list[tuple[str, str]]
    failed: list[tuple[str, str]]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "tasks", nargs="*", metavar="TASK", help="as `hopefear learners` lists them (default: all)"
    )
    parser.add_argument(
        "--learner", nargs="+", metavar="NAME", help="only these (default: every learner)"
    )
    parser.add_argument(
        "--recommended",
        action="store_true",
        help="only the default learner of each task and the two next best",
    )


def run(args: argparse.Namespace) -> int:
    from hopefear.core.kernel_cache import cache_folder

    if args.recommended and args.learner:
        args.usage_error("give --learner or --recommended, not both")
    console, began = Console(args.quiet), time.perf_counter()
    jobs = jobs_of(args.tasks, args.learner, args.recommended)
    outcomes = {}
    with stage("compiling", len(jobs), "learners and formats") as progress:
        for number, job in enumerate(jobs, 1):
            outcomes[job] = work(job)
            progress.advance()
            console.say(f"{number}/{len(jobs)} {job}")
    for job in jobs:
        for command, reason in outcomes[job].refused:
            console.say(f"not possible: {job}: {command}: {reason}")
    failures = [(job, *failure) for job in jobs for failure in outcomes[job].failed]
    if failures:
        job, command, reason = failures[0]
        raise HopefearError(
            f"commands that failed: {len(failures)}, first of {job}: {command}: {reason}"
        )
    folder = cache_folder()
    sizes = [path.stat().st_size for path in folder.glob("*.kernel")] if folder.exists() else []
    console.say(
        f"{len(jobs)} learners and formats ready in {time.perf_counter() - began:.0f} s: "
        f"{len(sizes):,} kernels, {sum(sizes) / 1e6:.0f} MB in {folder}"
    )
    return 0


def jobs_of(
    tasks: Sequence[str], learners: Sequence[str] | None = None, recommended: bool = False
) -> list[Job]:
    """Returns all jobs, by task."""
    known = [task for task in TASKS if rehearsal_of(task).learning]
    tasks = tasks or known
    for task in tasks:
        if task not in known:
            raise HopefearError(f"warm-up has no task {task!r}; there are {', '.join(known)}")
    jobs = []
    for task in tasks:
        table = recipes_of(task)
        if recommended:
            names = list(TASKS[task].learners)
        elif learners is not None:
            names = [name for name in table if name in learners]
        else:  # the default first: the others then find the kernels that all share
            names = sorted(table, key=[TASKS[task].learner, *table].index)
            names = [name for name in names if _is_usable(table[name])]
        jobs += [Job(task, name) for name in names] + [Job(task, "")] * bool(names)
    for name in learners or ():
        if all(name != job.learner for job in jobs):
            raise HopefearError(
                f"no task of {', '.join(tasks)} has a learner {name!r}; see `hopefear learners`"
            )
    return jobs


def _is_usable(recipe: Any) -> bool:
    """Whether what a learner needs is installed; networks need PyTorch."""
    from hopefear.recipes import NetworkRecipe

    return not isinstance(recipe, NetworkRecipe) or bool(importlib.util.find_spec("torch"))


def rehearsal_of(task: str) -> Rehearsal:
    """Returns the commands that compile what people need of a task."""
    if TASKS[task].surface is None:
        from hopefear.cli.tune.options import REHEARSAL

        return REHEARSAL
    return surface_of(task).rehearsal


def work(job: Job) -> Outcome:
    """Runs the commands of one job.

    A learner may refuse what it cannot do; what all learners share must succeed.
    """
    rehearsal, outcome = rehearsal_of(job.task), Outcome([], [])
    impossible = False
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), _silence():
        write_files(Path(folder))
        for line in rehearsal.learning if job.learner else rehearsal.shared:
            trains = line.startswith(("train", "tune"))
            impossible = impossible and not trains
            if impossible:  # there is no model to ask
                continue
            try:
                _run(line, ["--learner", job.learner] if job.learner and trains else [])
            except HopefearError as error:
                (outcome.refused if job.learner else outcome.failed).append((line, str(error)))
                impossible = trains
            except (Exception, SystemExit) as error:
                outcome.failed.append((line, f"{type(error).__name__}: {error}"))
                impossible = trains
    return outcome


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keeps what commands print and warn of from the user, who has asked for none of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield


def _run(line: str, more: list[str]) -> None:
    """Runs a command; ``serve`` stands for the questions that a server would be asked."""
    from hopefear.cli import dispatch

    words = line.split()
    if words[0] == "serve":
        _answer(words[-1])
    elif status := dispatch([*words, *more, "--quiet"]):
        raise RuntimeError(f"exit status {status}")


def _answer(path: str) -> None:
    """Asks a model all that a server can be asked."""
    from hopefear import load_model
    from hopefear.tasks import service_of

    service = service_of(load_model(path))
    one = service.read(service.example)
    service.predict([one])
    service.nbest([one], 2)
    service.explain(one, 3, {})


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
