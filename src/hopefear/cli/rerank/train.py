"""``hopefear train rerank``: from lists of candidates to a model."""

from __future__ import annotations

import argparse
import contextlib
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hopefear.cli import options, training
from hopefear.cli.console import Console, print_json, scored
from hopefear.cli.rerank import options as own

if TYPE_CHECKING:
    from hopefear.cli.rerank.data import Corpus
    from hopefear.data.lists.dataset import ListDataset
    from hopefear.tasks.rerank.task import Trained

USAGE = "--train FILE [--dev FILE] [--learner NAME] [-p KEY=VALUE]... [OPTIONS] --model PATH"
DESCRIPTION = """
Train a reranker on lists of candidates and write it as one file. A list has the candidates of some
generator (a parser, a translation system, a speech recogniser), each with its score, features if
there are any, and a cost; costs of texts are counted against references (--metric), those of
parse trees against the gold tree. The model puts the cheapest candidate first. With held-out lists
(--dev) every pass is scored on them, training stops when that no longer improves, and the best
model is kept. The same data, options and seed give the same model, byte for byte, also when the
run was killed and resumed.
"""
EXAMPLES = """
examples:
  hopefear train rerank --train train.jsonl.xz --dev dev.jsonl.xz --model parses.model
  hopefear train rerank --train lists.jsonl --metric bleu --metric-option smoothing=exp \\
      --learner mira --model translations.model
  hopefear train rerank --train hypotheses.jsonl --metric wer --learner vrda -p l1=1e-3 \\
      --run runs/vrda --model speech.model
  hopefear train rerank --train nbest.txt --format bllip --gold gold.mrg --learner perceptron \\
      --features ptb --min-count 3 --model parses.model
  hopefear train rerank --train nbest.gz --refs train.en --dev dev.gz --dev-refs dev.en \\
      --learner mira --model translations.model
"""


def configure(parser: argparse.ArgumentParser) -> None:
    data = options.train_data(parser)
    own.gold(data, "--dev")
    own.reading(data)
    options.model_and_run(parser)
    learning = options.learning(parser, None, "5; of batch learners, their max_iter")
    options.one_learner(learning, "maxent")
    own.candidates(learning)
    own.features(parser)
    options.checkpoints(parser)


def run(args: argparse.Namespace) -> int:
    refs = [*(args.refs or ()), *(args.dev_refs or ())]
    training.check(args, args.gold, args.dev_gold, *refs, on_dev=("patience",))
    own.check_golds(args, "dev")
    from hopefear.cli.compiling import announced
    from hopefear.cli.rerank.data import corpus, held_out, tell
    from hopefear.cli.rerank.reading import metric_asked
    from hopefear.features.lists.extraction import Extraction
    from hopefear.tasks import recipe
    from hopefear.tasks.rerank.task import DEFAULT_LEARNER

    args.learner = args.learner or DEFAULT_LEARNER
    made = recipe(args.learner, "rerank").build(**dict(args.param))
    metric_asked(args.metric, args.metric_option, args.refs)
    if args.features is not None:
        Extraction.of(args.features)
    console, started = Console(args.quiet), time.perf_counter()
    with announced(console, "this data and learner") as compiling:
        found = corpus(args, console)
        tell(found, console)
        held = None if args.dev is None else held_out("dev", found, args, console).data
        trained = _train(args, console, found, held, made)
    model = replace(trained.model, about={**trained.model.about, "reading": found.reading})
    training.save(args, model)
    result = _result(args, found, trained, time.perf_counter() - started)
    _summary(console, args, result, compiling.seconds)
    if args.json:
        print_json(result)
    return 0


def _train(
    args: argparse.Namespace,
    console: Console,
    found: Corpus,
    held: ListDataset | None,
    made: Any,
) -> Trained:
    from hopefear.cli.progress import Watcher
    from hopefear.tasks.rerank.task import EPOCHS, train
    from hopefear.training.stopping import Stopping

    batch = hasattr(made, "max_iter")
    most = args.epochs or (made.max_iter if batch else EPOCHS)
    metric = found.metric
    stopping = None
    if held is not None:
        # An iteration of a batch learner is a small step, and scores waver on the way.
        usual = 20 if batch else 3
        stopping = Stopping(metric.main, usual if args.patience is None else args.patience)
    listeners: list[Any] = []
    with contextlib.ExitStack() as scope:
        checkpoints = training.open_checkpoints(args, console)
        settings = {**_settings(args, found), "epochs": most}
        log = scope.enter_context(training.run_folder(args, settings))
        if log is not None:
            listeners.append(log)
        listeners.append(scope.enter_context(Watcher(console, most, metric.main)))
        trained = train(
            found.data,
            args.learner,
            dict(args.param),
            epochs=args.epochs,
            seed=args.seed,
            shuffle=not args.no_shuffle,
            tied=args.tied,
            metric=metric,
            dev=held,
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


def _settings(args: argparse.Namespace, found: Corpus) -> dict[str, Any]:
    data = found.data
    facts = {
        "digest": data.digest,
        "examples": len(data),
        "candidates": data.n_candidates,
        "idle": found.idle,
        "features": data.features.size,
    }
    more = {
        "features": found.features,
        "min_count": found.min_count,
        "metric": found.metric.cost_signature(),
        "baseline": args.baseline,
        "dedup": args.dedup,
        "oracle": args.oracle,
        "tied": args.tied,
    }
    return training.settings(args, args.learner, facts) | more


def _result(
    args: argparse.Namespace, found: Corpus, trained: Trained, seconds: float
) -> dict[str, Any]:
    data = found.data
    return {
        **training.outcome(args, trained, seconds),
        "lists": len(data),
        "idle_lists": found.idle,
        "candidates": data.n_candidates,
        "skipped": found.skipped,
        "features": data.features.size,
        "features_seen": found.seen,
        "feature_set": found.features,
        "metric": found.metric.name,
        "main_score": found.metric.main,
        "temperature": trained.model.temperature,
    }


def _summary(
    console: Console, args: argparse.Namespace, result: dict[str, Any], compiling: float
) -> None:
    from hopefear.cli.rerank.words import shown_score

    dev, main = result["dev"], result["main_score"]
    best = f" (pass {result['best_epoch']} of {result['epochs']})"
    console.say()
    console.pairs(
        {
            f"dev {shown_score(main)}": dev and f"{scored(main, dev[main])}{best}",
            "dev oracle first": dev and f"{dev['oracle_rate']:.2f} % of lists",
            "wrong while learning": f"{result['online_error']:.2f} % of lists in the last pass",
            "kept": training.kept(result),
            "temperature": f"{result['temperature']:.3g}",
            "time": training.time_taken(result["seconds"], compiling),
            "model": args.model,
            "signature": result["signature"],
        }
    )
