"""``hopefear train``: from a file to a model, for any task."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hopefear.cli import options, training
from hopefear.cli.console import Console, print_json, scored
from hopefear.cli.surface import Corpus, Surface, surface_of
from hopefear.cli.verbs import tasks_in_words
from hopefear.tasks import TASKS, named_object

USAGE = "TASK --train FILE [--dev FILE] [--learner NAME] [-p KEY=VALUE]... [OPTIONS] --model PATH"
DESCRIPTION = f"""
Train a model on a file and write it as one file. `hopefear train TASK --help` shows the options
of a task.

{tasks_in_words()}
"""
EXAMPLES = """
examples:
  hopefear train classify --train train.svm --dev dev.svm --model news.model
  hopefear train tag --train train.txt --dev dev.txt --model chunks.model
  hopefear train tag --train train.conllu --column upos --learner crf --model pos.model
  hopefear train rerank --train parses.jsonl.xz --dev dev.jsonl.xz --model parses.model
"""


def configure(parser: argparse.ArgumentParser, surface: Surface | None) -> None:
    """All options are those of a task."""
    if surface is None:
        return
    surface.data_options(options.train_data(parser), "train")
    options.model_and_run(parser)
    options.learning(parser, surface, "train", lambda group: options.one_learner(group, surface))
    surface.feature_options(parser, "train")
    options.checkpoints(parser)
    surface.last_options(parser, "train")


def run(args: argparse.Namespace) -> int:
    surface = surface_of(args.task)
    if args.resume and not args.checkpoint:
        args.usage_error("--resume needs --checkpoint DIR: where the run was saved")
    if args.model == "-" and args.json:
        args.usage_error("--model - and --json would share standard output")
    training.check(args, surface, "train", args.model)
    args.learner = args.learner or TASKS[args.task].learner
    learner = surface.build(args.learner, dict(args.param), args)
    from hopefear.cli.compiling import announced
    from hopefear.training.checkpoints import InterruptedTrainingError

    console, started = Console(args.quiet), time.perf_counter()
    with announced(console, "this data and learner") as compiling:
        corpus = surface.read(args, console)
        console.say(f"{corpus.describe()}, read in {time.perf_counter() - started:.1f} s")
        for remark in corpus.remarks:
            console.say(remark)
        dev = None if args.dev is None else corpus.held_out("dev", args, console)
        try:
            trained, last = _train(args, console, corpus, dev, learner)
        except InterruptedTrainingError as error:
            remedy = "" if args.checkpoint else "; use --checkpoint DIR to be able to go on"
            raise InterruptedTrainingError(f"{error}{remedy}", error.signum) from None
    model = trained.model
    if corpus.reading is not None:
        model = replace(model, about={**model.about, "reading": corpus.reading})
    training.save(args, model)
    result = {
        **training.outcome(args, trained, time.perf_counter() - started),
        **corpus.outcome(trained, last),
    }
    _summary(console, corpus, result, trained, compiling.seconds)
    if args.json:
        print_json(result)
    return 0


def _train(
    args: argparse.Namespace, console: Console, corpus: Corpus, dev: Any, learner: Any
) -> tuple[Any, dict[str, Any]]:
    """The outcome of training, and the newest value of all that events told."""
    from hopefear.cli.progress import Watcher

    home = f"{TASKS[args.task].home}.task"
    most = args.epochs or getattr(learner, "max_iter", None) or named_object(f"{home}:EPOCHS")
    own = getattr(args, "metric", None) if surface_of(args.task).metrics else None
    metric, stopping = own or corpus.metric, None
    if dev is not None:
        stopping = training.stopping_of(args.patience, metric, corpus, learner)
    arguments, last = corpus.arguments(args), dict[str, Any]()
    with contextlib.ExitStack() as scope:
        checkpoints = training.open_checkpoints(args, console)
        settings = {
            **training.settings(args, args.learner, corpus.facts()),
            "epochs": most,
            **corpus.settings(args),
        }
        log = scope.enter_context(training.run_folder(args, settings))
        watcher = scope.enter_context(Watcher(console, most, own or corpus.scores[0].name))
        trained = named_object(f"{home}:train")(
            corpus.data,
            args.learner,
            dict(args.param),
            epochs=args.epochs,
            seed=args.seed,
            shuffle=not args.no_shuffle,
            dev=dev,
            stopping=stopping,
            on_event=[*([] if log is None else [log]), last.update, watcher],
            trace=log is not None,
            checkpoints=checkpoints,
            resume=args.resume,
            pieces=training.PIECES,
            **arguments,
        )
        if log is not None:
            model = trained.model
            more = {"signature": model.signature, "parameters": model.about["parameters"]}
            log.describe({**settings, **more})
    return trained, last


def _summary(
    console: Console,
    corpus: Corpus,
    result: Mapping[str, Any],
    trained: Any,
    compiling: float,
) -> None:
    dev, place = result["dev"], f" (pass {result['best_epoch']} of {result['epochs']})"
    scores = {}
    for score in corpus.scores if dev else ():
        scores[f"dev {score.title}"] = f"{scored(score.name, dev[score.name])}{score.unit}{place}"
        place = ""
    kept = f"{result['nnz']:,} non-zeros"
    if result["last_nnz"] != result["nnz"]:
        kept += f" (the last weights have {result['last_nnz']:,})"
    error = f"{result['online_error']:.2f} % of {corpus.unit} in the last pass"
    console.say()
    console.pairs(
        {
            **scores,
            "wrong while learning": error,
            "kept": kept,
            **corpus.summary(result, trained),
            "time": training.time_taken(result["seconds"], compiling),
            "model": result["model"],
            "signature": result["signature"],
        }
    )
