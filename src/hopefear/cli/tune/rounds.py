"""``hopefear tune --decoder``: the decoder runs, its lists are tuned on, again."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from hopefear.cli.console import Console
from hopefear.cli.train import time_taken
from hopefear.cli.tune.learning import (
    TuningLines,
    check_files,
    held_out_lists,
    read_lists,
    settings_of,
    start_of,
    tuning_of,
)
from hopefear.cli.tune.options import PATIENCE, ROUNDS, WORDS
from hopefear.cli.tune.outcome import FILES, add_weights, moved, origin, weights_table
from hopefear.core.interrupts import Interrupted, interruptible
from hopefear.metrics.lists import ListMetric
from hopefear.report import Page, Plot, Run
from hopefear.training.checkpoints import InterruptedTrainingError
from hopefear.translation.rounds import START, WEIGHTS, Iterated, iterate
from hopefear.translation.task import split, start_weights
from hopefear.translation.weights import Weights


@dataclass(frozen=True)
class Rounds:
    """Weights that a decoder did best with.

    Parameters
    ----------
    found : Iterated
        What the rounds came to.
    metric : ListMetric
        Behind the scores.
    learner : str
        Who tuned.
    n_references : int
        References of a sentence, for the signature.
    before : Weights
        What tuning began with.
    files : mapping
        Files that were read, by option.
    """

    found: Iterated
    metric: ListMetric
    learner: str
    n_references: int
    before: Weights
    files: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def weights(self) -> Weights:
        return self.found.weights

    def facts(self) -> dict[str, Any]:
        """Everything by name; scores are those of the decoder's own first choices."""
        main, rounds = self.metric.main, self.found.rounds
        return {
            main: rounds[self.found.best]["dev"][main],
            f"{main}_before": rounds[0]["dev"][main],
            "metric": main,
            "learner": self.learner,
            "signature": self.weights.about.get("signature"),
            "metric_signature": self.metric.signature_for(self.n_references),
            "best_round": self.found.best,
            "kept": self.kept(),
            "rounds": rounds,
            "stopped": self.found.stopped,
            "nnz": self.weights.nnz,
            "changes": [
                {"name": name, "before": old, "after": new}
                for name, old, new in moved(self.before, self.weights)
            ],
        }

    def show(self, console: Console, result: Mapping[str, Any], compiling: float) -> None:
        """A table for people."""
        console.say()
        console.table(*self.table(), {self.metric.main: "max" if self.metric.higher else "min"})
        console.say()
        console.table(*weights_table(self.before, self.weights))
        console.say()
        console.pairs(
            {
                "kept": self.kept(),
                "ended for": self.found.stopped,
                "non-zeros": f"{result['nnz']:,}",
                "time": time_taken(result["seconds"], compiling),
                "weights": result["weights"],
                "signature": result["signature"],
                "metric": result["metric_signature"],
            }
        )

    def kept(self) -> str:
        """Returns which round the weights are from, and why that one."""
        main, rounds, best = self.metric.main, self.found.rounds, self.found.best
        start, score = (rounds[number]["dev"][main] for number in (0, best))
        if not best:
            return f"the start: no later round beat its {main} of {start:.2f}"
        words = f"round {best} of {len(rounds) - 1}: {main} {score:.2f}, {start:.2f} in round 0"
        if self.metric.higher == (score > start):
            return f"{words}, and no round is better"
        return f"{words}, whose weights are the decoder's own and not known"

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """Columns and rows: what each run of the decoder brought."""
        main = self.metric.main
        rows = [
            [
                event["epoch"],
                f"{event['dev'][main]:.2f}",
                event["new"],
                event["candidates"],
                None if event.get("moved") is None else f"{event['moved']:.4f}",
                f"{event['seconds']:.1f}",
            ]
            for event in self.found.rounds
        ]
        return ["round", main, "new", "candidates", "weights moved", "seconds"], rows

    def page(self, result: Mapping[str, Any]) -> Page:
        """The same with a curve."""
        main, rounds = self.metric.main, self.found.rounds
        page = Page(
            f"Tuning with {self.learner} and a decoder", signature=result["signature"] or ""
        )
        page.section("Rounds").table(*self.table(), "The decoder's own first choices.")
        plot = Plot("First choices of the decoder", "round", main)
        plot.line([e["epoch"] for e in rounds], [e["dev"][main] for e in rounds], main)
        time = Plot("First choices of the decoder by time", "seconds", main)
        time.line(*Run("", {}, list(rounds), []).curve("dev", main, clock="seconds"), main)
        page.figures([plot, time])
        add_weights(page.section("Weights"), self.before, self.weights)
        about = self.weights.about
        page.section("Origin").keyvalues(
            {
                "learner": self.learner,
                **about.get("parameters", {}),
                "seed": about.get("seed"),
                "kept": self.kept(),
                "ended for": self.found.stopped,
                "metric": result["metric_signature"],
                **origin(self.files),
            }
        )
        return page


def iterated(
    args: argparse.Namespace,
    metric: ListMetric,
    params: Mapping[str, Any],
    console: Console,
    runs: Any = None,
) -> Rounds:
    """Run the decoder and tune, in rounds; seeds on ``runs``, a cluster, if any."""
    if words := sorted(set(args.features or ()) & set(WORDS)):
        args.usage_error(f"--decoder and --features {','.join(words)}: decoders have no such ones")
    check_files(args, None)
    dev = held_out_lists(args, metric, console, texts=False)
    start = start_of(args, {})
    first = start if isinstance(start, Weights) else lambda lists: start_weights(lists, start)

    def tuned(paths: list[Path], before: Weights, number: int) -> Weights:
        lists = read_lists(
            args, metric, console, "", [*(args.nbest or ()), *paths], dedup=args.dedup
        )
        console.say(f"tuning on {lists.n_candidates:,} candidates of {len(lists):,} lists")
        lists, other = split(lists, dev, args.held_out, args.seed)
        with TuningLines(console, metric.main, quiet_lines=True) as watcher:
            elsewhere = None if runs is None else partial(runs.map, on_end=watcher.run_ended)
            tuning = tuning_of(
                args, lists, other, metric, params, before, [watcher], elsewhere=elsewhere
            )
        main = metric.main
        console.say(
            f"  {main} of these lists {tuning.before['train']:.2f} -> {tuning.after['train']:.2f}"
        )
        return tuning.weights

    def tell(event: dict[str, Any]) -> None:
        number, best = event["epoch"], event["best"]
        place = ", the best" if best == number else f", not better than round {best}"
        place = "" if best is None else place
        console.say(
            f"round {number}: decoder {metric.main} {event['dev'][metric.main]:.2f}{place}, "
            f"{event['new']:,} new hypotheses, {event['seconds']:.1f} s"
        )

    tuning = _resumable(
        args.run,
        lambda: iterate(
            args.decoder,
            args.refs,
            first,
            tuned,
            folder=args.run,
            rounds=args.rounds or ROUNDS,
            patience=args.patience or PATIENCE,
            metric=metric,
            about=_settings(args, metric),
            resume=args.resume,
            timeout=args.timeout,
            on_event=[tell],
        ),
    )
    first_round = Path(args.run, "round-0")
    first_weights = first_round / (START if (first_round / START).exists() else WEIGHTS)
    files = {name: getattr(args, name) for name in FILES}
    before = Weights.read(first_weights)
    return Rounds(tuning, metric, args.learner, len(args.refs), before, files)


def _settings(args: argparse.Namespace, metric: ListMetric) -> dict[str, Any]:
    """What ``run.json`` says, and what a run that is resumed must have in common with this one."""
    files = ("nbest", "source", "dev_nbest", "dev_refs", "dev_source")
    options = {name: getattr(args, name) for name in (*files, "absent", "on_error")}
    return settings_of(args, None, metric) | options


def _resumable(folder: str, rounds: Callable[[], Iterated]) -> Iterated:
    """Run the rounds; whatever interrupts them is told how they go on."""
    try:
        with interruptible(at_once=True):
            return rounds()
    except InterruptedTrainingError as error:
        reason, signum = str(error).partition("; nothing was saved")[0], error.signum
    except Interrupted as stop:
        signum = stop.signum
        reason = "interrupted" if signum == signal.SIGINT else "terminated"
    raise InterruptedTrainingError(
        f"{reason}; finished rounds are in {folder}: the same command with --resume goes on", signum
    )
