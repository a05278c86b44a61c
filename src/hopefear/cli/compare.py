"""``hopefear compare``: several learners of any task on the same data, tested in one way.

Who scores best on the test data is compared with every other: approximate randomisation says how
often such a difference comes about by chance, the paired bootstrap between which bounds it lies.
"""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from hopefear.cli import options
from hopefear.cli.console import Console, print_json, scored
from hopefear.cli.surface import Corpus, Sample, Surface, against_best, surface_of
from hopefear.cli.train import PIECES, check

if TYPE_CHECKING:
    from hopefear.report import Page, Plot

USAGE = "TASK --train FILE --test FILE [--dev FILE] --learners A,B,C [--report FILE.html] [OPTIONS]"
DESCRIPTION = """
Train several learners on the same data, test them on the same test data, and show scores, speed,
sparsity and significance in a table and, where --report asks for it, on a page with learning
curves. `hopefear compare TASK --help` shows the options of a task.
"""
EXAMPLES = """
examples:
  hopefear compare classify --train train.svm --test test.svm \\
      --learners perceptron,vrda,adagrad-rda
  hopefear compare tag --train train.txt --test test.txt --learners perceptron,sapo:n=10,crf \\
      --report taggers.html --x seconds
  hopefear compare rerank --train lists.jsonl --test test.jsonl --learners perceptron,vrda,maxent \\
      --report rerankers.html
  hopefear compare parse --train train.conllu --test test.conllu --learners perceptron,mira,swvp
"""
_LEAST = {"non-zeros kept": "min", "s/pass": "min"}
_SHOWN = 100  # examples on which learners differ
_FAR = 4.0  # an axis is logarithmic where one curve is so many times as long as another
_AXES = {"passes": "passes", "samples": "samples", "seconds": "seconds of learning"}
Wanted = Sequence[tuple[str, str, Mapping[str, Any]]]


def configure(parser: argparse.ArgumentParser, surface: Surface | None) -> None:
    """All options are those of a task."""
    if surface is None:
        return
    surface.data_options(options.data_files(parser, "compare"), "compare")
    output = parser.add_argument_group("output")
    options.named(output, "--report", "page to write, with learning curves", "FILE.html")
    options.choice(output, "--x", tuple(_AXES), "what the curves of --report run along at first")
    options.json_option(output)
    options.learning(parser, surface, "compare", options.several)
    surface.feature_options(parser, "compare")


def run(args: argparse.Namespace) -> int:
    surface = surface_of(args.task)
    if args.report is None and args.x != args.default_of("x"):
        args.usage_error("--x is for the curves of a page: give --report FILE.html")
    check(args, surface, "compare", args.report)
    options.check_networks(args, [name for _, name, _ in args.learners])
    args.learners = [
        (label, name, options.with_network(args, name, params))
        for label, name, params in args.learners
    ]
    for _, name, params in args.learners:
        surface.build(name, params, args)  # the last one's faults before the first one trains
    from hopefear.cli.progress import announced

    console = Console(args.quiet)
    with announced(console, "these learners"):
        corpus = surface.read(args, console)
        console.say(corpus.describe())
        for remark in corpus.remarks:
            console.say(remark)
        test = corpus.held_out("test", args, console)
        dev = None if args.dev is None else corpus.held_out("dev", args, console)
        about_test = corpus.tested_on(test)
        console.say(about_test)
        common = {
            "epochs": args.epochs,
            "seed": args.seed,
            "shuffle": not args.no_shuffle,
            "n_jobs": corpus.jobs,
        }
        study = Study(corpus.task(args), corpus, test, dev, args.patience)
        study.run(args.learners, console, common)
    console.say()
    study.show(console)
    if args.report is not None:
        _write_page(args, study, f"{corpus.describe()}; {about_test}.")
        console.say(f"\nwrote {args.report}")
    if args.json:
        print_json(
            {
                "task": args.task,
                **corpus.comparison(test),
                "report": args.report,
                "learners": [result.facts() for result in study.results],
            }
        )
    return 0


def _write_page(args: argparse.Namespace, study: Study, text: str) -> None:
    from hopefear.report import Page

    page = Page(
        study.corpus.title,
        f"{os.path.basename(args.train)}, tested on {os.path.basename(args.test)}",
        signature="\n".join(study.signatures()),
    )
    study.section(page, "Results", text, args.x)
    page.write(args.report)


@dataclass
class Result:
    """A learner's run, and how it did on the test data."""

    name: str
    trained: Any
    events: list[dict[str, Any]]
    scores: dict[str, Any]
    rows: Any  # statistics of every test example
    test: dict[str, float] | None = None  # against the best learner; None for that one

    @property
    def seconds(self) -> float:
        """Of the fastest pass, so that compilation does not count."""
        return min(e["seconds"] for e in self.events if "seconds" in e)

    @property
    def passes(self) -> int:
        """How often it went over the data."""
        return sum("seconds" in e for e in self.events)

    def moments(self, axis: str) -> list[float]:
        """Where on an axis of `_AXES` each event stands."""
        if axis != "seconds":
            return [e["epoch" if axis == "passes" else axis] for e in self.events]
        times = [e["seconds"] for e in self.events if "seconds" in e]
        # The first pass may have waited for the compiler, no later one does.
        times[:1] = [min(times[0], max(times[1:], default=times[0]))]
        ends = [0.0, *itertools.accumulate(times)]
        # Events inside a pass tell no time: it is spread evenly.
        return [
            ends[whole] + (e["epoch"] - whole) * (times[whole] if whole < len(times) else 0.0)
            for e in self.events
            for whole in [min(int(e["epoch"]), len(times))]
        ]

    @property
    def nnz(self) -> int:
        """Non-zero weights of the model."""
        return self.trained.model.nnz

    @property
    def last_nnz(self) -> int:
        """Non-zero weights at the end of train."""
        return self.trained.fit.trainer.support()[0]

    def facts(self) -> dict[str, Any]:
        """What ``--json`` says."""
        test = self.test
        bounds = ("difference", "low", "high")
        return {
            "learner": self.name,
            **self.scores,
            "nnz": self.nnz,
            "last_nnz": self.last_nnz,
            "passes": self.passes,
            "seconds_per_pass": self.seconds,
            "p_value": None if test is None else test["p_value"],
            "against_best": None if test is None else {key: test[key] for key in bounds},
            "best_epoch": self.trained.fit.best_epoch,
            "signature": self.trained.model.signature,
        }


@dataclass
class Study:
    """Learners side by side: trained, tested, tabled and drawn.

    Parameters
    ----------
    task : Task
        What is learned.
    corpus, test : Corpus, dataset
        What they learn from and are tested on.
    dev : dataset, optional
        Chooses the pass that is kept; without it that is the last one.
    patience : int, optional
        Passes without a better score on ``dev`` before training ends; as `train` has it unless
        said.
    """

    task: Any
    corpus: Corpus
    test: Any
    dev: Any = None
    patience: int | None = None
    results: list[Result] = field(default_factory=list)

    def run(
        self,
        learners: Wanted,
        console: Console,
        common: Mapping[str, Any],
        others: Mapping[str, Any] | None = None,
    ) -> None:
        """Train every (label, learner, parameters) and test it.

        Parameters
        ----------
        learners : sequence of (str, str, mapping)
            Label, name and parameters of each.
        console : Console
            Where a line goes for each.
        common : mapping
            Arguments of ``train`` that all share.
        others : mapping, optional
            Tasks with other options, by the label of a learner.
        """
        from hopefear.tasks.base import train
        from hopefear.training.stopping import Stopping

        main = self.corpus.scores[0]
        for label, name, params in learners:
            events: list[dict[str, Any]] = []
            # A vote replays the past for every example: once, at the end, is enough.
            corpus = self.corpus.suiting(name, params)
            test = corpus.encoded(self.test)
            watched = None if params.get("readout") == "voted" else test
            trained = train(
                corpus.adapted((others or {}).get(label, self.task)),
                corpus.data,
                name,
                params,
                dev=watched if self.dev is None else corpus.encoded(self.dev),
                stopping=None if self.dev is None else Stopping(self.corpus.metric, self.patience),
                on_event=[events.append],
                trace=True,
                pieces=PIECES,
                **common,
            )
            scores, rows = corpus.judge(trained.model, test)
            self.results.append(Result(label, trained, events, scores, rows))
            console.say(
                f"  {label}: {main.title} {scored(main.name, scores[main.name])}{main.unit}, "
                f"{trained.model.nnz:,} non-zeros"
            )
        self._test_differences()

    def _test_differences(self) -> None:
        main, metric = self.corpus.scores[0], self.corpus.tester()
        samples = [Sample(metric, result.rows, main) for result in self.results]
        for result, test in zip(self.results, against_best(samples), strict=True):
            result.test = test

    def signatures(self) -> list[str]:
        """Of all models."""
        return [result.trained.model.signature for result in self.results]

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """Heads and rows."""
        scores = self.corpus.scores
        heads = [score.title for score in scores]
        rows = [
            [
                result.name,
                *(scored(score.name, result.scores[score.name]) for score in scores),
                result.nnz,
                result.last_nnz,
                result.passes,
                f"{result.seconds:.4f}",
                "best" if result.test is None else f"{result.test['p_value']:.4f}",
            ]
            for result in self.results
        ]
        return [
            "learner",
            *heads,
            "non-zeros kept",
            "non-zeros last",
            "passes",
            "s/pass",
            "p",
        ], rows

    def show(self, console: Console) -> None:
        """The table for people."""
        console.table(*self.table(), self.best() | _LEAST)

    def best(self) -> dict[str, Any]:
        """Whether the most or the least is best, by column of a score."""
        return {score.title: "max" if score.higher else "min" for score in self.corpus.scores}

    def section(self, page: Page, title: str, text: str, axis: str = "passes") -> None:
        """Add the table and the curves, along an axis of `_AXES`, to a page."""
        scores = self.corpus.scores
        legend = ", ".join(
            f"{score.title}{' in percent' if '%' in score.unit else ''} "
            f"({'more' if score.higher else 'less'} is better)"
            for score in scores
        )
        page.section(title).text(text)
        page.table(
            *self.table(),
            f"On the test data: {legend}.",
            highlight=self.best(),
            notes=[
                *self.corpus.notes,
                "non-zeros kept: of the model; last: of the last weights, which averaging and "
                "voting blur.",
                "s/pass: learning time of the fastest pass. p: how often a difference to the best "
                f"{scores[0].title} as large as this comes about by chance (approximate "
                f"randomisation of whole {self.corpus.unit}).",
            ],
        )
        along = {name: partial(self._figures, page, name) for name in _AXES}
        page.choices("Curves along", along, axis)
        page.figures(self.trades())
        self._differences(page)

    def _figures(self, page: Page, axis: str) -> Page:
        return page.figures(self.plots(axis))

    def _differences(self, page: Page) -> None:
        """The test examples on which learners differ most, and who beats whom on how many."""
        import numpy as np

        name, higher = self.corpus.each_by
        metric, names = self.corpus.tester(), [result.name for result in self.results]
        values = [np.asarray(metric.scores(result.rows)[name], float) for result in self.results]
        table = np.stack(values, axis=1) * (1.0 if higher else -1.0)
        spread = table.max(axis=1) - table.min(axis=1)
        if len(names) < 2 or not spread.any():
            return
        page.section("Who got what right", level=3)
        ahead = (table[:, :, None] > table[:, None, :]).sum(axis=0)
        page.matrix(
            names,
            ahead.tolist(),
            f"On how many of {len(table):,} {self.corpus.unit} the learner of a row has a better "
            f"{name} than that of a column.",
        )
        order = np.argsort(-spread, kind="stable")[: min(_SHOWN, int(np.count_nonzero(spread)))]
        rows = [
            [self.corpus.shown(self.test, i), *(float(abs(v)) for v in table[i])]
            for i in order.tolist()
        ]
        with page.details(f"The {len(rows)} {self.corpus.unit} on which they differ most"):
            columns = [f"{self.corpus.unit} ({name})", *names]
            page.table(columns, rows, align="l" + "r" * len(names))

    def plots(self, axis: str = "passes") -> list[Plot]:
        """Mistakes, a score and sparsity while training."""
        from hopefear.report import Plot

        main = self.corpus.scores[0]
        which = "Test" if self.dev is None else "Dev"
        title = f"{main.title}{' in percent' if '%' in main.unit else ''}"
        moments = [result.moments(axis) for result in self.results]
        ends = [places[-1] for places in moments]
        scale: Literal["linear", "log"] = "log" if max(ends) > _FAR * min(ends) else "linear"
        curves = [
            Plot(name, _AXES[axis], label, scale)
            for name, label in (
                ("Mistakes while training", f"% of {self.corpus.unit} so far"),
                (f"{which} {main.title} after each pass", title),
                ("Sparsity while training", "non-zero weights"),
            )
        ]
        for look, (result, places) in enumerate(zip(self.results, moments, strict=True)):
            events = list(zip(places, result.events, strict=True))
            points = (
                [(x, 100.0 * e["mistakes"] / e["samples"]) for x, e in events],
                [(x, e["dev"][main.name]) for x, e in events if "dev" in e],
                [(x, e["nnz"]) for x, e in events],
            )
            for plot, pairs in zip(curves, points, strict=True):
                if pairs:
                    x, y = zip(*pairs, strict=True)
                    plot.line(x, y, result.name, look=look)
        return curves

    def trades(self) -> list[Plot]:
        """The score on the test data against sparsity and against time."""
        from hopefear.report import Plot

        main = self.corpus.scores[0]
        title = f"{main.title}{' in percent' if '%' in main.unit else ''}"
        upper = f"{main.title[:1].upper()}{main.title[1:]}"
        sparsity = Plot(f"{upper} against sparsity", "non-zero weights kept", title, "log")
        time = Plot(f"{upper} against time", _AXES["seconds"], title, "log")
        for look, result in enumerate(self.results):
            score, seconds = [result.scores[main.name]], result.moments("seconds")[-1]
            sparsity.points([max(1, result.nnz)], score, result.name, look=look)
            time.points([seconds], score, result.name, look=look)
        return [sparsity, time]
