"""What every run of training shares: checks, patience, run folders, checkpoints, its outcome."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hopefear.cli import options
from hopefear.cli.console import Console, check_folder, check_output
from hopefear.cli.guard import write_out
from hopefear.cli.surface import Corpus, Surface
from hopefear.errors import HopefearError

if TYPE_CHECKING:
    from hopefear.training.stopping import Stopping

# Events, progress and interrupts come this often in a pass; the model does not depend on it.
PIECES = 20


def check(args: argparse.Namespace, surface: Surface, verb: str, output: str) -> None:
    """Tell what cannot work before anything is read or written.

    Parameters
    ----------
    args, surface, verb
        What was typed, and for which task and verb.
    output : str
        The file that will be written.
    """
    own = ("metric",) if verb == "train" and surface.metrics else ()
    if args.dev is None and any(getattr(args, name) is not None for name in ("patience", *own)):
        wanted = "--patience and --metric need" if own else "--patience needs"
        args.usage_error(f"{wanted} held-out data: give --dev FILE")
    files = ("train", "dev", "test", *surface.files)
    options.read_once(args, *files)
    surface.check(args, verb)
    check_output(output, options.paths(args, files))
    for name in ("run", "checkpoint"):
        check_folder(getattr(args, name, None))


def stopping_of(patience: int | None, metric: str, corpus: Corpus, learner: Any) -> Stopping:
    """When to stop on held-out data."""
    from hopefear.training.stopping import Stopping

    stopping = Stopping(metric, patience)
    stopping.suit(learner)
    stopping.check(corpus.score_names())
    return stopping


def open_checkpoints(args: argparse.Namespace, console: Console) -> Any:
    """Where progress is saved, or None; an earlier run is never overwritten."""
    if not args.checkpoint:
        return None
    from hopefear.training.checkpoints import Checkpoints

    checkpoints = Checkpoints(args.checkpoint, args.checkpoint_every)
    if checkpoints.exist() and not args.resume:
        raise HopefearError(
            f"{args.checkpoint} holds a checkpoint of an earlier run; give --resume "
            "to go on with it, another folder, or remove it"
        )
    if args.resume:
        # Before the run folder is touched: what cannot be read may still be of use.
        console.say(
            f"going on from {args.checkpoint}"
            if checkpoints.find() is not None
            else f"no checkpoint in {args.checkpoint} yet: starting from the beginning"
        )
    return checkpoints


@contextlib.contextmanager
def run_folder(args: argparse.Namespace, settings: Mapping[str, Any]) -> Iterator[Any]:
    """The log of events in ``--run``, or None."""
    if not args.run:
        yield None
        return
    from hopefear.training.events import EventLog

    with EventLog(args.run, args.resume) as log:
        log.describe(settings)
        yield log


def save(args: argparse.Namespace, model: Any) -> None:
    """Write the model; checkpoints have then done their work."""
    if args.model == "-":
        write_out(model.to_bytes())
    else:
        model.save(args.model)
    if args.checkpoint:
        from hopefear.training.checkpoints import Checkpoints

        Checkpoints(args.checkpoint).clear()


def outcome(args: argparse.Namespace, trained: Any, seconds: float) -> dict[str, Any]:
    """What ``--json`` says of any run."""
    from hopefear.cli.progress import online_error

    model, fit = trained.model, trained.fit
    last, best = fit.history[-1], fit.best_epoch
    return {
        "task": args.task,
        "model": args.model,
        "learner": model.about["learner"],
        "signature": model.signature,
        "epochs": len(fit.history),
        "best_epoch": best,
        "nnz": model.nnz,
        "last_nnz": fit.trainer.support()[0],
        "updates": fit.trainer.updates,
        "mistakes": fit.trainer.mistakes,
        "online_error": online_error(last),
        "loss": last["loss"],
        "dev": next((e.get("dev") for e in fit.history if e["epoch"] == best), None),
        "seconds": round(seconds, 3),
    }


def settings(args: argparse.Namespace, learner: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """What ``run.json`` says of any run."""
    import numba
    import numpy

    from hopefear import __version__

    return {
        "task": args.task,
        "learner": learner,
        "parameters": dict(args.param),
        "seed": args.seed,
        "epochs": args.epochs,
        "data": {"path": os.path.basename(args.train), **data},
        "versions": {
            "hopefear": __version__,
            "numpy": numpy.__version__,
            "numba": numba.__version__,
            "python": sys.version.split()[0],
        },
    }


def time_taken(seconds: float, compiling: float) -> str:
    """Seconds in words."""
    text = f"{seconds:.1f} s"
    return text + (f", {compiling:.1f} s of them compiling, once" if compiling > 0.1 else "")
