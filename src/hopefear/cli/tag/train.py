"""``hopefear train tag``: from labelled tokens to a model."""

from __future__ import annotations

import argparse
import contextlib
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hopefear.cli import options, training
from hopefear.cli.console import Console, print_json
from hopefear.cli.tag import options as own

if TYPE_CHECKING:
    from hopefear.cli.tag.data import Corpus
    from hopefear.tasks.tag.task import Trained

USAGE = "--train FILE [--dev FILE] [--learner NAME] [-p KEY=VALUE]... [OPTIONS] --model PATH"
DESCRIPTION = """
Train a tagger on a file of labelled tokens and write it as one file. Columns, CoNLL-U and CRFsuite
files are read as they are; features and tag scheme are chosen by what is in the file unless told.
With held-out data (--dev) every pass is scored on it, training stops when that no longer improves,
and the best model is kept. The same data, options and seed give the same model, byte for byte,
also when the run was killed and resumed.
"""
EXAMPLES = """
examples:
  hopefear train tag --train train.txt --dev dev.txt --model chunks.model
  hopefear train tag --train train.conllu.gz --column upos --learner crf --epochs 15 \\
      --model pos.model
  hopefear train tag --train train.iob2 --features bioner --convert iobes --learner sapo -p n=10 \\
      --min-count 2 --run runs/sapo --model genes.model
  hopefear train tag --train train.crfsuite --learner perceptron --model attributes.model
"""


def configure(parser: argparse.ArgumentParser) -> None:
    own.reading(options.train_data(parser))
    options.model_and_run(parser)
    learning = options.learning(parser, None, "10; of batch learners, their max_iter")
    options.one_learner(
        learning,
        "sapo",
        "f1, precision, recall, accuracy or sentence_accuracy (default: f1 where labels are "
        "spans, else accuracy)",
    )
    own.class_weights(learning)
    own.features(parser)
    own.structure(parser)
    options.checkpoints(parser)


def run(args: argparse.Namespace) -> int:
    training.check(args, args.features)
    from hopefear.cli.compiling import announced
    from hopefear.cli.tag.data import corpus, describe
    from hopefear.tasks import recipe
    from hopefear.tasks.tag.label_costs import check_class_weight, resolved_early
    from hopefear.tasks.tag.task import DEFAULT_LEARNER

    args.learner = args.learner or DEFAULT_LEARNER
    made = recipe(args.learner, "tag").build(**resolved_early(dict(args.param)))
    check_class_weight(dict(args.param), args.learner, args.class_weight)
    console, started = Console(args.quiet), time.perf_counter()
    with announced(console, "this data and learner") as compiling:
        data = corpus(args, console, args.dev)
        console.say(f"{describe(data)}, read in {time.perf_counter() - started:.1f} s")
        trained = _train(args, console, data, made)
    model = replace(trained.model, about={**trained.model.about, "reading": data.reading})
    training.save(args, model)
    result = _result(args, data, trained, time.perf_counter() - started)
    _summary(console, args, result, compiling.seconds)
    if args.json:
        print_json(result)
    return 0


def _train(args: argparse.Namespace, console: Console, corpus: Corpus, made: Any) -> Trained:
    from hopefear.cli.progress import Watcher
    from hopefear.tasks.tag.task import EPOCHS, score_names, train
    from hopefear.training.stopping import Stopping

    scheme = corpus.schemes.model
    batch = hasattr(made, "max_iter")
    most = args.epochs or (made.max_iter if batch else EPOCHS)
    metric = args.metric or ("accuracy" if scheme is None else "f1")
    stopping = None
    if corpus.held is not None:
        # An iteration of a batch learner is a small step, and scores waver on the way.
        usual = 20 if batch else 3
        stopping = Stopping(metric, usual if args.patience is None else args.patience)
        stopping.check(score_names(scheme))
    listeners: list[Any] = []
    with contextlib.ExitStack() as scope:
        checkpoints = training.open_checkpoints(args, console)
        settings = {**_settings(args, corpus), "epochs": most}
        log = scope.enter_context(training.run_folder(args, settings))
        if log is not None:
            listeners.append(log)
        listeners.append(scope.enter_context(Watcher(console, most, metric)))
        trained = train(
            corpus.data,
            args.learner,
            dict(args.param),
            epochs=args.epochs,
            seed=args.seed,
            shuffle=not args.no_shuffle,
            order=args.order,
            search=args.search,
            beam=args.beam,
            scheme=scheme,
            constraints=args.constraints,
            class_weight=args.class_weight,
            dev=corpus.held,
            stopping=stopping,
            on_event=listeners,
            trace=log is not None,
            checkpoints=checkpoints,
            resume=args.resume,
            pieces=training.PIECES,
            n_jobs=options.threads(args.jobs),
        )
        if log is not None:
            about = trained.model.about
            more = {"signature": trained.model.signature, "parameters": about["parameters"]}
            log.describe({**settings, **more})
    return trained


def _settings(args: argparse.Namespace, corpus: Corpus) -> dict[str, Any]:
    data = corpus.data
    found = {
        "digest": data.digest,
        "examples": len(data),
        "tokens": data.n_tokens,
        "features": data.features.size,
        "labels": len(data.labels),
    }
    more = {
        "features": corpus.features,
        "scheme": corpus.schemes.model,
        "order": args.order,
        "search": args.search,
        "constraints": args.constraints,
        "class_weight": args.class_weight,
    }
    return training.settings(args, args.learner, found) | more


def _result(
    args: argparse.Namespace, corpus: Corpus, trained: Trained, seconds: float
) -> dict[str, Any]:
    data = corpus.data
    return {
        **training.outcome(args, trained, seconds),
        "sentences": len(data),
        "tokens": data.n_tokens,
        "skipped": corpus.skipped,
        "features": data.features.size,
        "edge_features": data.features.edge_size,
        "feature_set": corpus.features,
        "labels": len(data.labels),
        "scheme": corpus.schemes.model,
        "temperature": trained.model.temperature,
        "hash_collisions": collisions(data.features),
    }


def collisions(features: Any) -> float | None:
    """Percent of the hashed features that share a column with another; None without hashing."""
    return 100.0 * features.collisions if getattr(features, "hash_bits", None) else None


def _summary(
    console: Console, args: argparse.Namespace, result: dict[str, Any], compiling: float
) -> None:
    dev, hashed = result["dev"], result["hash_collisions"]
    best = f" (pass {result['best_epoch']} of {result['epochs']})"
    console.say()
    console.pairs(
        {
            "dev F1": f"{dev['f1']:.2f} %{best}" if dev and "f1" in dev else None,
            "dev accuracy": dev and f"{dev['accuracy']:.2f} %{'' if 'f1' in dev else best}",
            "wrong while learning": f"{result['online_error']:.2f} % of sentences in the last pass",
            "kept": training.kept(result),
            "hash collisions": None if hashed is None else f"{hashed:.2f} % of features",
            "temperature": f"{result['temperature']:.3g}",
            "time": training.time_taken(result["seconds"], compiling),
            "model": args.model,
            "signature": result["signature"],
        }
    )
