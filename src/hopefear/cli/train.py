"""``hopefear train``: from a file to a model, for any task; what other verbs that learn share."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from hopefear.cli import options, shards, streaming
from hopefear.cli.console import (
    Console,
    check_folder,
    check_output,
    print_json,
    scored,
    tell_skipped,
)
from hopefear.cli.guard import write_out
from hopefear.cli.surface import Surface, surface_of
from hopefear.errors import HopefearError
from hopefear.tasks import TASKS

USAGE = "TASK --train FILE [--dev FILE] [--learner NAME] [-p KEY=VALUE]... [OPTIONS] --model PATH"
DESCRIPTION = """
Train a model on a file and write it as one file. `hopefear train TASK --help` shows the options
of a task.
"""
EXAMPLES = """
examples:
  hopefear train classify --train train.svm --dev dev.svm --model news.model
  hopefear train tag --train train.txt --dev dev.txt --model chunks.model
  hopefear train tag --train train.conllu --column upos --learner crf --model pos.model
  hopefear train rerank --train parses.jsonl.xz --dev dev.jsonl.xz --model parses.model
  hopefear train parse --train train.conllu --dev dev.conllu --model parser.model
"""

# Events, progress and interrupts come this often in a pass; the model does not depend on it.
PIECES = 20


def configure(parser: argparse.ArgumentParser, surface: Surface | None) -> None:
    """All options are those of a task."""
    if surface is None:
        return
    group = options.data_files(parser, "train")
    surface.data_options(group, "train")
    _cache_option(group, surface.name)
    options.model_and_run(parser)
    options.learning(parser, surface, "train", lambda group: options.one_learner(group, surface))
    surface.feature_options(parser, "train")
    options.checkpoints(parser)
    streaming.stream_options(parser, surface.name)
    shards.shards(parser)
    surface.last_options(parser, "train")


def run(args: argparse.Namespace) -> int:
    surface = surface_of(args.task)
    if args.resume and not args.checkpoint:
        args.usage_error("--resume needs --checkpoint DIR: where the run was saved")
    if args.model == "-" and args.json:
        args.usage_error("--model - and --json would share standard output")
    streaming.check(args)
    _check_cache(args)
    if args.bounds:
        options.of_papers("bounds", "--bounds")
    check(args, surface, "train", args.model)
    args.learner = args.learner or TASKS[args.task].learner
    options.check_networks(args, [args.learner])
    args.param = list(options.with_network(args, args.learner, dict(args.param)).items())
    learner = surface.build(args.learner, dict(args.param), args)
    parameters = surface.parameters(args)
    console, started = Console(args.quiet), time.perf_counter()
    if streaming.wanted(args, surface, learner, console.say):
        return streaming.run(args, surface, parameters)
    from hopefear.cli.progress import announced
    from hopefear.training.checkpoints import InterruptedTrainingError

    with announced(console, "this data and learner") as compiling:
        prepared, skipped = read_train(args, surface, parameters, console)
        took = f"read in {time.perf_counter() - started:.1f} s"
        console.say(f"{surface.describe(prepared)}, {took}")
        for message in prepared.messages:
            console.say(message)
        folds = None
        if args.folds is not None:
            folds = _cross_validation(args, surface, prepared, parameters, console)
        whole, (prepared, dev) = prepared, _with_dev(args, surface, prepared, console)
        try:
            trained, last = _train(args, surface, prepared, parameters, dev, console)
            rival = None if dev is None else whole.rival()
            if rival is not None:
                console.say(surface.describe(rival))
                rival, theirs = _with_dev(args, surface, rival, console)
                second = _train(_beside(args), surface, rival, parameters, theirs, console)
                if _does_as_well(prepared.stop_on, trained.fit, second[0].fit, console):
                    prepared, (trained, last) = rival, second
        except InterruptedTrainingError as error:
            remedy = "" if args.checkpoint else "; use --checkpoint DIR to be able to go on"
            raise InterruptedTrainingError(f"{error}{remedy}", error.signum) from None
    if args.settings:
        about = {**trained.model.about, "config": args.settings}
        trained = replace(trained, model=replace(trained.model, about=about))
    save(args, trained.model)
    theory = {"theory": last["theory"]} if "theory" in last else {}
    result = {
        **outcome(args, trained, time.perf_counter() - started),
        "skipped": skipped,
        **surface.outcome(prepared, trained),
        **theory,
        **({} if folds is None else {"folds": folds}),
    }
    _summary(console, surface, prepared, result, trained, compiling.seconds)
    if args.json:
        print_json(result)
    return 0


def read_train(
    args: argparse.Namespace, surface: Surface, parameters: Mapping[str, Any], console: Console
) -> tuple[Any, int]:
    """Returns what ``--train`` holds, prepared, and the number of bad lines that were left out."""
    from hopefear.data.files import ReadReport

    report = ReadReport()
    prepared = surface.prepare(surface.examples("train", args, report), parameters)
    tell_skipped(report, console)
    return prepared, report.skipped


def held_out(
    which: str, args: argparse.Namespace, surface: Surface, prepared: Any, console: Console
) -> Any:
    """Returns the dataset of ``--dev`` or ``--test`` in the features of what is prepared."""
    from hopefear.data.files import ReadReport

    report = ReadReport()
    data = prepared.held_out(surface.examples(which, args, report, prepared))
    tell_skipped(report, console)
    return data


def _with_dev(
    args: argparse.Namespace, surface: Surface, prepared: Any, console: Console
) -> tuple[Any, Any]:
    """Returns what is left to learn from, and the held-out dataset of ``--dev``, if any."""
    if args.dev is None:
        return prepared, None
    if not isinstance(args.dev, options.Share):
        return prepared, held_out("dev", args, surface, prepared, console)
    rest, dev = prepared.split(args.dev.fraction, args.seed)
    console.say(f"held out: {len(dev):,} {surface.unit} of {len(prepared.data):,}")
    return rest, dev


def _cross_validation(
    args: argparse.Namespace,
    surface: Surface,
    prepared: Any,
    parameters: Mapping[str, Any],
    console: Console,
) -> dict[str, Any]:
    """Returns scores of models that each learned without the part that they are scored on."""
    from statistics import fmean, stdev

    from hopefear.core.progress import stage
    from hopefear.tasks.prepare import Run, learn

    names, scores = surface.scores(prepared), list[dict[str, float]]()
    for k, (rest, part) in enumerate(prepared.folds(args.folds, args.seed), 1):
        with stage(f"fold {k} of {args.folds}"):
            model = learn(rest, parameters, run=Run(pieces=PIECES, final=True)).model
            values = rest.judge(model, part, parameters["n_jobs"])[0]
        scores.append({score.name: values[score.name] for score in names})
    columns = {score.name: [fold[score.name] for fold in scores] for score in names}
    means = {name: fmean(column) for name, column in columns.items()}
    deviations = {name: stdev(column) for name, column in columns.items()}
    rows = [(f"{k}", fold) for k, fold in enumerate(scores, 1)]
    rows += [("mean", means), ("standard deviation", deviations)]
    console.say()
    console.table(
        ["fold", *(f"{score.title}{score.unit}" for score in names)],
        [[name, *(scored(score.name, row[score.name]) for score in names)] for name, row in rows],
    )
    console.say()
    return {"scores": scores, "mean": means, "deviation": deviations}


def _cache_option(group: argparse._ArgumentGroup, task: str) -> None:
    """``--cache``; of a task that has none it is known, so that it can be refused in words."""
    if not TASKS[task].larger_than_memory:
        group.add_argument("--cache", metavar="DIR", help=argparse.SUPPRESS)
        return
    options.named(
        group,
        "--cache",
        "for data larger than memory: a folder for a binary copy of --train, which is built when "
        "missing or stale, and of which blocks of examples are read",
        "DIR",
    )


def _check_cache(args: argparse.Namespace) -> None:
    """Wrong usage of ``--cache``, before anything is read."""
    if args.cache is None:
        return
    if not TASKS[args.task].larger_than_memory:
        raise HopefearError(
            f"--cache {args.cache}: the task {args.task} holds its data in memory, and has no "
            "cache; leave it out"
        )
    if os.path.exists(args.cache) and not os.path.isdir(args.cache):
        raise HopefearError(
            f"--cache {args.cache}: is a file, and caches lie in a folder; name one, which need "
            "not exist"
        )


def _train(
    args: argparse.Namespace,
    surface: Surface,
    prepared: Any,
    parameters: Mapping[str, Any],
    dev: Any,
    console: Console,
) -> tuple[Any, dict[str, Any]]:
    """Returns the outcome of training, and the newest value of all that events told."""
    from hopefear.cli.progress import TrainingLines
    from hopefear.tasks.prepare import Run, learn
    from hopefear.training.stopping import Stopping

    task, last = prepared.task, dict[str, Any]()
    instrument = None
    if args.bounds:
        comparator = surface.comparator(prepared, args)
        instrument = options.of_papers("bounds", "--bounds")[0](comparator)
    learner = surface.build(args.learner, dict(args.param), args)
    own_epochs = getattr(learner, "max_iter", None) or getattr(learner, "epochs", None)
    most = args.epochs or own_epochs or task.usual_epochs(prepared.data)
    if dev is not None:  # before anything is written
        Stopping(prepared.stop_on, args.patience).check(task.score_names(prepared.data))
    checkpoints = open_checkpoints(args, console)
    settings = {
        **run_settings(args, args.learner, surface.facts(prepared)),
        "epochs": most,
        **surface.settings(prepared, args),
    }
    typed = args.metric if surface.metrics else None
    shown = typed or surface.scores(prepared)[0].name
    with run_folder(args, settings) as log, TrainingLines(console, most, shown) as lines:
        run = Run(
            on_event=[*([] if log is None else [log]), last.update, lines],
            trace=log is not None,
            checkpoints=checkpoints,
            resume=args.resume,
            pieces=PIECES,
            on_calibration=lines.calibrating,
            final=True,
            instrument=instrument,
        )
        trained = learn(prepared, parameters, dev, run)
        if log is not None:
            model = trained.model
            more = {"signature": model.signature, "parameters": model.about["parameters"]}
            log.describe({**settings, **more})
    return trained, last


def _beside(args: argparse.Namespace) -> argparse.Namespace:
    """What was typed, with folders inside those of the first training for a second one."""
    folders = {name: getattr(args, name) for name in ("run", "checkpoint")}
    inside = {name: os.path.join(folder, "words") for name, folder in folders.items() if folder}
    return argparse.Namespace(**{**vars(args), **inside})


def _does_as_well(metric: str, first: Any, second: Any, console: Console) -> bool:
    """Whether the second of two trainings is as good as the first on ``--dev``; says so."""
    from hopefear.training.stopping import sign_of

    all_columns, words = (fit.history[fit.best_epoch - 1]["dev"][metric] for fit in (first, second))
    is_enough = sign_of(metric) * words >= sign_of(metric) * all_columns
    console.say(
        f"dev {metric} {scored(metric, all_columns)} with all columns, {scored(metric, words)} "
        "with words alone: " + ("words alone are" if is_enough else "all columns are") + " taken, "
        f"and the model can{'' if is_enough else 'not'} tag text"
    )
    return is_enough


def _summary(
    console: Console,
    surface: Surface,
    prepared: Any,
    result: Mapping[str, Any],
    trained: Any,
    compiling: float,
) -> None:
    dev, place = result["dev"], f" (epoch {result['best_epoch']} of {result['epochs']})"
    scores = {}
    for score in surface.scores(prepared) if dev else ():
        scores[f"dev {score.title}"] = f"{scored(score.name, dev[score.name])}{score.unit}{place}"
        place = ""
    weights = f"{result['nnz']:,} non-zeros"
    if result["last_nnz"] != result["nnz"]:
        weights += f" (the last weights have {result['last_nnz']:,})"
    error = f"{result['online_error']:.2f} % of {surface.unit} in the last epoch"
    if trained.fit.history[-1].get("counted") == "unsure":
        error += " (gold has at most half of the probability, or any loss)"
    console.say()
    console.pairs(
        {
            **scores,
            "training error": error,
            "kept": weights,
            **surface.summary(prepared, result, trained),
            "theory": result["theory"]["says"] if "theory" in result else None,
            "time": time_taken(result["seconds"], compiling),
            "model": result["model"],
            "signature": result["signature"],
        }
    )


def check(args: argparse.Namespace, surface: Surface, verb: str, output: str | None) -> None:
    """Tell what cannot work before anything is read or written.

    Parameters
    ----------
    args, surface, verb
        What was typed, and for which task and verb.
    output : str, optional
        The file that will be written.
    """
    if getattr(args, "folds", None) is not None and args.dev is not None:
        args.usage_error("--folds cross-validates on --train, and --dev stops early: give one")
    own = ("metric",) if verb == "train" and surface.metrics else ()
    if args.dev is None and any(getattr(args, name) is not None for name in ("patience", *own)):
        options_need = "--patience and --metric need" if own else "--patience needs"
        args.usage_error(f"{options_need} held-out data: give --dev FILE")
    files = ("train", "dev", "test", *surface.files)
    options.read_once(args, *files)
    surface.check(args, verb)
    if output is not None:
        check_output(output, options.paths(args, files))
    for name in ("run", "checkpoint"):
        check_folder(getattr(args, name, None))


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

        for folder in (args.checkpoint, _beside(args).checkpoint):
            Checkpoints(folder).clear()


def outcome(args: argparse.Namespace, trained: Any, seconds: float) -> dict[str, Any]:
    """What ``--json`` says of any run."""
    from hopefear.training.loop import training_error

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
        "online_error": training_error(last),
        "loss": last["loss"],
        **{key: last[key] for key in ("objective", "dual", "gap") if key in last},
        "dev": next((e.get("dev") for e in fit.history if e["epoch"] == best), None),
        "seconds": round(seconds, 3),
    }


def run_settings(args: argparse.Namespace, learner: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """What ``run.json`` says of any run."""
    from importlib.metadata import version

    import numpy

    from hopefear import __version__
    from hopefear.recipes import NetworkRecipe
    from hopefear.tasks import recipe

    is_network = isinstance(recipe(learner, args.task), NetworkRecipe)
    torch = {"torch": version("torch")} if is_network else {}
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
            "numba": version("numba"),
            "python": sys.version.split()[0],
            **torch,
        },
    }


def time_taken(seconds: float, compiling: float) -> str:
    """Seconds in words."""
    text = f"{seconds:.1f} s"
    return text + (f", {compiling:.1f} s of them compiling, once" if compiling > 0.1 else "")
