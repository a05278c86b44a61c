"""``hopefear train classify``: from labelled lines to a model."""

from __future__ import annotations

import argparse
import contextlib
import time
from typing import TYPE_CHECKING, Any

from hopefear.cli import options, training
from hopefear.cli.classify import options as own
from hopefear.cli.console import Console, check_output, percent, print_json
from hopefear.errors import HopefearError

if TYPE_CHECKING:
    from hopefear.cli.compiling import Compilation
    from hopefear.data.sparse import SparseDataset
    from hopefear.tasks.classify.task import Trained

USAGE = "--train FILE [--dev FILE] [--learner NAME] [-p KEY=VALUE]... [OPTIONS] --model PATH"
DESCRIPTION = """
Train a model on a file of labelled lines and write it as one file. With held-out data (--dev)
every pass is scored on it, training stops when that no longer improves, and the best model is
kept. The same data, options and seed give the same model, byte for byte, also when the run was
killed and resumed.
"""
EXAMPLES = """
examples:
  hopefear train classify --train train.svm --dev dev.svm --model news.model
  hopefear train classify --train reviews.tsv.gz --ngrams 2 --learner vrda -p l1=1e-5 \\
      --epochs 10 --checkpoint state/ --resume --run runs/vrda --model reviews.model
"""


def configure(parser: argparse.ArgumentParser) -> None:
    data = options.train_data(parser)
    own.reading(data)
    data.add_argument(
        "--weights", metavar="FILE", help="weights of the examples of --train, one number a line"
    )
    data.add_argument(
        "--cache",
        metavar="FILE",
        help="for data larger than memory: a binary copy of --train, built when "
        "missing or stale, and mapped instead of read",
    )
    options.model_and_run(parser)
    learning = options.learning(parser, 5, "5")
    own.class_weights(learning)
    options.one_learner(
        learning,
        "adagrad-rda",
        "accuracy, f1, precision, recall, log_loss, … (default: accuracy)",
    )
    own.features(parser)
    options.checkpoints(parser)
    theory = parser.add_argument_group("theory (vrda)")
    theory.add_argument(
        "--bounds",
        action="store_true",
        help="show the mistakes beside the bounds of the voted RDA paper, live and "
        "in --run, for the average so far as comparator",
    )
    theory.add_argument(
        "--comparator", metavar="MODEL", help="take the weights of this model as comparator instead"
    )


def run(args: argparse.Namespace) -> int:
    _check(args)
    from hopefear.cli.classify.reading import held_out, training_data
    from hopefear.cli.compiling import announced

    console, started = Console(args.quiet), time.perf_counter()
    with announced(console, "this data and learner") as compiling:
        data, prepared, skipped = training_data(args, console)
        dev = held_out(args.dev, data, args, console) if args.dev else None
        read = time.perf_counter() - started
        console.say(
            f"{args.train}: {len(data):,} examples, {data.n_features:,} features, "
            f"{len(data.classes)} classes, {data.rows.values.size:,} values, read in "
            f"{read:.1f} s"
        )
        trained, bound = _train(args, console, data, dev, prepared)
    training.save(args, trained.model)
    result = _result(args, data, trained, time.perf_counter() - started, skipped, bound)
    _summary(console, args, result, trained, compiling)
    if args.json:
        print_json(result)
    return 0


def _check(args: argparse.Namespace) -> None:
    if args.comparator and not args.bounds:
        args.usage_error("--comparator belongs to --bounds")
    training.check(args, args.names, args.comparator, args.weights)
    if args.cache:
        check_output(args.cache, (args.model,))


def _train(
    args: argparse.Namespace,
    console: Console,
    data: SparseDataset,
    dev: SparseDataset | None,
    prepared: bool,
) -> tuple[Trained, Any]:
    from hopefear.cli.progress import Watcher
    from hopefear.metrics import score_names
    from hopefear.tasks import recipe
    from hopefear.tasks.classify.task import DEFAULT_LEARNER, check_labels, train
    from hopefear.training.stopping import Stopping

    learner = args.learner or DEFAULT_LEARNER
    # What cannot work is told before anything is written.
    check_labels(data)
    recipe(learner).build(**dict(args.param))
    metric = args.metric or "accuracy"
    stopping = None
    if dev is not None:
        stopping = Stopping(metric, 3 if args.patience is None else args.patience)
        stopping.check(score_names(len(data.classes)))
    comparator = _comparator(args.comparator, data) if args.comparator else None
    bound: dict[str, Any] = {}
    listeners: list[Any] = []
    with contextlib.ExitStack() as scope:
        checkpoints = training.open_checkpoints(args, console)
        log = scope.enter_context(training.run_folder(args, _settings(args, learner, data)))
        if log is not None:
            listeners.append(log)
        if args.bounds:
            listeners.append(lambda event: bound.update(event.get("bound") or {}))
        listeners.append(scope.enter_context(Watcher(console, args.epochs, args.metric or "error")))
        trained = train(
            data,
            learner,
            dict(args.param),
            epochs=args.epochs,
            seed=args.seed,
            shuffle=not args.no_shuffle,
            intercept=args.intercept,
            values=args.values,
            norm=args.norm,
            dev=dev,
            stopping=stopping,
            class_weight=args.class_weight,
            on_event=listeners,
            trace=log is not None,
            checkpoints=checkpoints,
            resume=args.resume,
            pieces=training.PIECES,
            prepared=prepared,
            bounds=args.bounds,
            comparator=comparator,
        )
        if log is not None:
            log.describe(
                {
                    **_settings(args, learner, data),
                    "signature": trained.model.signature,
                    "parameters": trained.model.about["parameters"],
                }
            )
    return trained, bound or None


def _comparator(path: str, data: SparseDataset) -> Any:
    from hopefear.cli.models import load_model
    from hopefear.training.predictors import LinearPredictor

    task, model = load_model(path)
    predictor = model.predictor
    if (
        task != "classify"
        or model.classes != data.classes
        or model.features.to_header() != data.features.to_header()
    ):
        raise HopefearError(
            f"--comparator {path}: the model has other classes or features than {data.source}; "
            "give one trained on the same columns"
        )
    if not isinstance(predictor, LinearPredictor):
        raise HopefearError(
            f"--comparator {path}: a voted model has no single weights; give one "
            "trained with readout=averaged or last"
        )
    return predictor.weights


def _settings(args: argparse.Namespace, learner: str, data: SparseDataset) -> dict[str, Any]:
    found = {
        "digest": data.digest,
        "examples": len(data),
        "features": data.n_features,
        "classes": len(data.classes),
    }
    more = {"values": args.values, "norm": args.norm, "intercept": args.intercept}
    return training.settings(args, learner, found) | more


def _result(
    args: argparse.Namespace,
    data: SparseDataset,
    trained: Trained,
    seconds: float,
    skipped: int,
    bound: Any,
) -> dict[str, Any]:
    return {
        **training.outcome(args, trained, seconds),
        "examples": len(data),
        "skipped": skipped,
        "features": data.n_features,
        "classes": len(data.classes),
        "bound": bound,
    }


def _summary(
    console: Console,
    args: argparse.Namespace,
    result: dict[str, Any],
    trained: Trained,
    compiling: Compilation,
) -> None:
    dev, bound = result["dev"], result["bound"]
    console.say()
    console.pairs(
        {
            "dev error": dev
            and f"{dev['error']:.2f} % (pass {result['best_epoch']} of {result['epochs']})",
            "dev F1": dev and percent(dev["f1"]),
            "error while learning": f"{result['online_error']:.2f} % in the last pass",
            "kept": training.kept(result),
            "updates": f"{result['updates']:,} on {trained.fit.trainer.examples:,} examples",
            "bound": bound and _bound_text(bound),
            "time": training.time_taken(result["seconds"], compiling.seconds),
            "model": args.model,
            "signature": result["signature"],
        }
    )


def _bound_text(bound: dict[str, Any]) -> str:
    limit = bound["theorem1"]
    text = "no bound (vacuous)" if limit is None else f"at most {limit:,.0f} by Theorem 1"
    return f"{bound['mistakes']:,} mistakes, {text} (regime: {bound['regime']})"
