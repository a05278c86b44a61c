"""``train --stream``: learn from lines as they come, once, and write the model again and again.

Standard input is a stream without being called one, unless something asks for all of it at once.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NoReturn

from hopefear.cli import options
from hopefear.errors import HopefearError
from hopefear.tasks import TASKS

# Bits of hashed columns where --hash-bits names none.
BITS = 22
# Lines that say what there is: format, labels, scheme, the scale of values; fewer where the labels
# are named.
HEAD, SHORT_HEAD = 2000, 100
_STREAMED = ("classes", "save_every", "save_seconds")
# Options of data that can be read again.
_WHOLE = (
    "folds",
    *("checkpoint", "run", "cache", "resume", "patience", "no_shuffle", "bounds"),
    *("shards", "merge", "merges", "max_features", "cluster"),
)


def stream_options(parser: argparse.ArgumentParser, task: str) -> None:
    """``--stream`` and what belongs to it; known but not shown where it is refused."""
    group = parser.add_argument_group("streams")
    words = {
        "stream": "learn from --train line by line as it comes, once, in bounded memory: for pipes "
        "without an end; features are hashed (--hash-bits, 22 unless said). --train - is a stream "
        "by itself; --no-stream reads it to its end first",
        "classes": "streams: the labels there will be (default: those of the first 2000 lines)",
        "save_every": "streams: write the model after each N examples",
        "save_seconds": "streams: write the model when so much time has gone by; at the end and on "
        "an interrupt it is written in any case",
    }
    if not TASKS[task].larger_than_memory:
        words = dict.fromkeys(words, argparse.SUPPRESS)
    group.add_argument("--stream", action=argparse.BooleanOptionalAction, help=words["stream"])
    group.add_argument("--classes", type=options.names, metavar="A,B,…", help=words["classes"])
    options.whole(group, "--save-every", words["save_every"])
    group.add_argument(
        "--save-seconds", type=options.number, metavar="SECONDS", help=words["save_seconds"]
    )


def check(args: argparse.Namespace) -> None:
    """Wrong usage of options of streams."""
    if not args.stream and not _by_itself(args):
        for name in _STREAMED:
            if getattr(args, name) is not None:
                args.usage_error(f"--{name.replace('_', '-')} belongs to --stream")
        return
    if args.stream:
        if args.epochs not in (None, 1):
            args.usage_error(
                f"--epochs {args.epochs}: a stream comes once; leave it out with --stream"
            )
        if option := _rereading(args):
            args.usage_error(f"{option} needs data that can be read again: not with --stream")
    if args.model == "-" and (args.save_every or args.save_seconds):
        args.usage_error("--model - can be written once: leave out --save-every and --save-seconds")


def wanted(
    args: argparse.Namespace, surface: Any, learner: Any, say: Callable[[str], None]
) -> bool:
    """Whether to learn from a stream; of standard input it is said why, where it is none."""
    reason, remedy = _obstacle(args, learner)
    if args.stream:
        if reason:
            raise HopefearError(f"--stream: {reason}; {remedy}")
        return True
    if not _by_itself(args):
        return False
    if not reason and args.epochs not in (None, 1):
        reason = f"--epochs {args.epochs} needs data that can be read again"
    if not reason and (option := _rereading(args)):
        reason = f"{option} needs data that can be read again"
    if not reason and (option := surface.needs_all(args)):
        reason = f"{option} needs all of it"
    if reason:
        for name in _STREAMED:
            if getattr(args, name) is not None:
                args.usage_error(f"--{name.replace('_', '-')} belongs to streams, and {reason}")
        say(f"standard input is read to its end first: {reason}")
    else:
        say("standard input is learned from as it comes, once (--no-stream reads all of it first)")
    return not reason


def _by_itself(args: argparse.Namespace) -> bool:
    return args.stream is None and args.train == "-"


def _rereading(args: argparse.Namespace) -> str | None:
    """The first option given that is for data that can be read again."""
    if isinstance(getattr(args, "dev", None), options.Share):
        return f"--dev {args.dev}"
    for name in _WHOLE:
        if hasattr(args, name) and getattr(args, name) != args.default_of(name):
            return f"--{name.replace('_', '-')}"
    return None


def _obstacle(args: argparse.Namespace, learner: Any) -> tuple[str, str]:
    """Why task or learner cannot have a stream, and what to do about it; empty where they can."""
    if not TASKS[args.task].larger_than_memory:
        return f"the task {args.task} learns from data that is read as a whole", "leave it out"
    if learner.batch or hasattr(learner, "trainer"):
        remedy = "take an online learner such as perceptron"
        return f"{args.learner} learns from all data at once", remedy
    return "", ""


@dataclass(frozen=True)
class Incoming:
    """A stream as a task reads it.

    Parameters
    ----------
    task : Task
        The task, with the options that were typed.
    first : dataset
        What the first lines hold; they come again among the blocks.
    blocks : callable
        All blocks in the features and labels of ``first``, from the beginning on.
    held_out : callable
        Reads a file of held-out data in the same features.
    reading : mapping, optional
        What a model must know to read more of this.
    """

    task: Any
    first: Any
    blocks: Callable[[], Iterator[Any]]
    held_out: Callable[[str], Any]
    reading: Mapping[str, Any] | None = None


@contextlib.contextmanager
def head_of(args: argparse.Namespace) -> Iterator[str]:
    """A file with the first lines of a stream, which loses none of them."""
    from hopefear.data.sources import Source

    source, lines = args.train, HEAD if args.classes is None else SHORT_HEAD
    with tempfile.NamedTemporaryFile(suffix=".head") as file:
        for line in islice(Source(source).look(), lines):
            file.write(line + b"\n")
        file.flush()
        try:
            yield file.name
        except HopefearError as error:  # what is wrong is in the same line of the stream
            raise HopefearError(str(error).replace(file.name, source, 1)) from error


def run(args: argparse.Namespace, surface: Any, parameters: Mapping[str, Any]) -> int:
    """Learn until the stream ends or is interrupted."""
    from hopefear.cli.console import Console, print_json, tell_skipped
    from hopefear.cli.train import save as write
    from hopefear.core.interrupts import Interrupted, interruptible
    from hopefear.data.files import ReadReport
    from hopefear.tasks.base import begin, needs_temperature
    from hopefear.training.streams import Standing, learn_stream
    from hopefear.training.trainer import counts

    console, report, started = Console(args.quiet), ReadReport(), time.perf_counter()
    try:
        incoming = surface.stream(args, console, report)
    except HopefearError as error:
        if args.stream:
            raise
        raise HopefearError(
            f"{error}; --no-stream reads standard input to its end first"
        ) from error
    task = incoming.task
    model, trainer = begin(task, incoming.first, args.learner, dict(args.param))
    more = {"reading": incoming.reading, "config": args.settings}
    told = {key: value for key, value in more.items() if value}
    times, recent = 0, incoming.first

    def current() -> Any:
        predictor = trainer.predictor()
        about = {**model.about, **told, "training": counts(trainer)}
        changes: dict[str, Any] = {"predictor": predictor, "about": about}
        warm = hasattr(model, "temperature") and not getattr(args, "no_temperature", False)
        if warm and needs_temperature(trainer.learner, predictor):
            changes["temperature"] = task.temperature(trainer.structure, predictor, recent, 1)
        return replace(model, **changes)

    def save(data: Any) -> None:
        nonlocal times, recent
        times, recent = times + 1, data
        write(args, current())

    def blocks() -> Iterator[Any]:
        nonlocal recent
        for data in incoming.blocks():
            if len(data):
                yield task.prepared(data)
                recent = data

    def said(now: Standing, new: Standing) -> None:
        console.say(
            f"{now.mean_loss:12.6f} {new.mean_loss:12.6f} {now.examples:13,} {now.weight:13,.1f} "
            f"{now.error:8.2f} {new.error:8.2f}"
        )

    console.say(f"{'average':>12} {'since':>12} {'example':>13} {'example':>13} {'wrong':>8} since")
    console.say(f"{'loss':>12} {'last':>12} {'counter':>13} {'weight':>13} {'%':>8} last")
    now: Standing | None = None
    try:
        with interruptible(at_once=True):
            now = learn_stream(
                trainer,
                blocks(),
                report=said,
                save=save,
                every=args.save_every,
                seconds=args.save_seconds,
            )
    except Interrupted as stop:
        _stopped(args, trainer, save, recent, stop.signum)
    except HopefearError as error:
        words = [str(error)]
        if trainer.examples:
            save(recent)
            words += [f"what came before, {trainer.examples:,} examples, is in {args.model}"]
            words += ["--on-error skip leaves bad lines out"] * (args.on_error == "raise")
        if not args.stream:
            words += ["--no-stream reads standard input to its end first"]
        raise HopefearError("; ".join(words)) from error
    tell_skipped(report, console)
    assert now is not None
    if not now.examples:
        raise HopefearError(f"{args.train}: nothing came that could be learned from")
    save(recent)
    scores = _scores(args, incoming, trainer)
    result = {
        "task": args.task,
        "model": args.model,
        "learner": model.about["learner"],
        "signature": model.signature,
        "examples": now.examples,
        "weight": now.weight,
        "loss": now.mean_loss,
        "online_error": now.error,
        "updates": trainer.updates,
        "mistakes": now.mistakes,
        "nnz": trainer.support()[0],
        "saved": times,
        "skipped": report.skipped,
        "dev": scores or None,
        "seconds": round(time.perf_counter() - started, 3),
    }
    console.say()
    console.pairs(
        {
            **{f"dev {k}": f"{v:.2f}" for k, v in scores.items() if isinstance(v, float)},
            "wrong before learning": f"{now.error:.2f} % of {now.examples:,} examples",
            "model": f"{args.model}, written {times} time{'s' * (times != 1)}",
            "signature": model.signature,
        }
    )
    if args.json:
        print_json(result)
    return 0


def _scores(args: argparse.Namespace, incoming: Incoming, trainer: Any) -> dict[str, Any]:
    if args.dev is None:
        return {}
    dev = incoming.held_out(args.dev)
    task, first = incoming.task, incoming.first
    task.check(first, dev)
    return task.evaluator(trainer.structure, first, dev, 1)(trainer.predictor())


def _stopped(
    args: argparse.Namespace,
    trainer: Any,
    save: Callable[[Any], None],
    recent: Any,
    signum: int,
) -> NoReturn:
    from hopefear.training.checkpoints import InterruptedTrainingError

    place = "nothing was learnt yet"
    if trainer.examples:
        save(recent)
        place = f"the model of all of them is in {args.model}"
    reached = f"interrupted after {trainer.examples:,} examples"
    raise InterruptedTrainingError(f"{reached}; {place}", signum)


def known(labels: Sequence[str], source: str) -> None:
    """A stream needs two labels to begin with."""
    if len(labels) < 2:
        found = repr(labels[0]) if labels else "none"
        raise HopefearError(
            f"{source}: expected at least two labels in the first {HEAD} lines, found {found}; "
            "name all of them with --classes"
        )
