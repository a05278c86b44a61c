"""``hopefear compare``: several learners of any task on the same data, tested in one way.

Who scores best on the test data is compared with every other: approximate randomisation says how
often such a difference comes about by chance, the paired bootstrap between which bounds it lies.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from hopefear.cli import options, shards
from hopefear.cli.console import Console, print_json, scored
from hopefear.cli.surface import Sample, Score, Surface, against_best, surface_of
from hopefear.cli.train import PIECES, check, held_out, read_train

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
HeldOut = Callable[[Any], Any]  # from a `Prepared` to a dataset in its features


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
    runs = parser.add_argument_group("runs")
    options.whole(
        runs,
        "--seeds",
        "train every learner N times, with seeds from --seed on, and show means and standard "
        "deviations",
        1,
    )
    shards.cluster(runs, "train learners, and seeds of each,")


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
    cores = getattr(args, "jobs", None) or 1
    from hopefear.cli.progress import announced

    console = Console(args.quiet)
    with shards.cluster_of(args, cores) as cluster, announced(console, "these learners"):
        study = read_study(args, console)
        seeds = range(args.seed, args.seed + args.seeds)
        study.run(args.learners, console, seeds=seeds, cluster=cluster)
    console.say()
    study.show(console)
    if args.report is not None:
        _write_page(args, study, f"{study.describe()}; {study.tested_on()}.")
        console.say(f"\nwrote {args.report}")
    if args.json:
        print_json(
            {
                "task": args.task,
                **study.surface.comparison(study.prepared, study.test),
                "report": args.report,
                "learners": [result.facts() for result in study.results],
            }
        )
    return 0


def read_study(args: argparse.Namespace, console: Console) -> Study:
    """Reads the files that a command line names; its learners have yet to run."""
    surface = surface_of(args.task)
    parameters = surface.parameters(args)
    _, parameters["learner"], parameters["params"] = args.learners[0]  # others: `for_learner`
    prepared, _ = read_train(args, surface, parameters, console)
    console.say(surface.describe(prepared))
    for message in prepared.messages:
        console.say(message)

    def reader(which: str) -> HeldOut:
        return lambda own: held_out(which, args, surface, own, console)

    test = reader("test")
    dev = None if args.dev is None else reader("dev")
    study = Study(surface, prepared, test, dev, parameters)
    console.say(study.tested_on())
    return study


def _write_page(args: argparse.Namespace, study: Study, text: str) -> None:
    from hopefear.report import Page

    page = Page(
        study.surface.title,
        f"{os.path.basename(args.train)}, tested on {os.path.basename(args.test)}",
        signature="\n".join(study.signatures()),
    )
    study.section(page, "Results", text, args.x)
    page.write(args.report)


class View(NamedTuple):
    """Data in the features that a learner reads."""

    prepared: Any  # a Prepared
    test: Any
    dev: Any


class Order(NamedTuple):
    """A run that is wanted."""

    label: str
    parameters: Mapping[str, Any]  # of the estimator: learner, seed and all else


@dataclass
class Run:
    """A learner's run with one seed, and how it did on the test data."""

    name: str
    seed: int
    events: list[dict[str, Any]]
    scores: dict[str, Any]
    rows: Any  # statistics of every test example
    nnz: int  # non-zero weights of the model
    last_nnz: int  # and at the end of train
    best_epoch: int | None
    signature: str
    model: Any = None  # where it was trained here

    @property
    def passes(self) -> int:
        """How often it went over the data."""
        return sum("seconds" in e for e in self.events)

    @property
    def seconds(self) -> float:
        """Of the fastest pass, so that compilation does not count."""
        return min(e["seconds"] for e in self.events if "seconds" in e)

    def facts(self) -> dict[str, Any]:
        """What ``--json`` says of one of several seeds."""
        names = ("nnz", "last_nnz", "passes", "best_epoch", "signature")
        return {"seed": self.seed, **self.scores, **{name: getattr(self, name) for name in names}}


def trained_run(view: View, order: Order) -> Run:
    """Train a learner and test it."""
    from hopefear.tasks.prepare import Run as Training
    from hopefear.tasks.prepare import learn

    prepared, test, dev = view
    parameters, events = order.parameters, list[dict[str, Any]]()
    # A vote replays the past for every example: once, at the end, is enough.
    watched = None if parameters["params"].get("averaging") == "voted" else test
    training = Training(on_event=[events.append], trace=True, pieces=PIECES, watched=watched)
    trained = learn(prepared, parameters, dev, training)
    model, fit = trained.model, trained.fit
    scores, rows = prepared.judge(model, test, parameters["n_jobs"])
    return Run(
        order.label,
        parameters["random_state"],
        events,
        scores,
        rows,
        nnz=model.nnz,
        last_nnz=fit.trainer.support()[0],
        best_epoch=fit.best_epoch,
        signature=model.signature,
        model=model,
    )


def run_elsewhere(views: Sequence[View], order: tuple[int, Order]) -> Run:
    """The same on a worker, whose model stays there: (number of its view, the run)."""
    number, wanted = order
    return replace(trained_run(views[number], wanted), model=None)


@dataclass
class Result:
    """A learner's runs, one for each seed, and how they did on the test data."""

    runs: list[Run]
    test: dict[str, float] | None = None  # against the best learner; None for that one

    @property
    def name(self) -> str:
        """The learner as it was named."""
        return self.runs[0].name

    @property
    def events(self) -> list[dict[str, Any]]:
        """Of the first seed."""
        return self.runs[0].events

    @property
    def scores(self) -> dict[str, Any]:
        """Means over seeds."""
        return {name: self._mean([run.scores[name] for run in self.runs]) for name in self._names}

    @property
    def deviations(self) -> dict[str, Any]:
        """Standard deviations of scores over seeds, of which there are several."""
        columns = {name: [run.scores[name] for run in self.runs] for name in self._names}
        return {name: None if None in c else statistics.stdev(c) for name, c in columns.items()}

    @property
    def rows(self) -> Any:
        """Statistics of every test example, added up over seeds."""
        if len(self.runs) == 1:
            return self.runs[0].rows
        import numpy as np

        return np.sum([run.rows for run in self.runs], axis=0)

    @property
    def seconds(self) -> float:
        """Of the fastest pass, so that compilation does not count."""
        return min(run.seconds for run in self.runs)

    @property
    def passes(self) -> Any:
        """How often it went over the data."""
        return self._mean([run.passes for run in self.runs])

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
    def nnz(self) -> Any:
        """Non-zero weights of the model."""
        return self._mean([run.nnz for run in self.runs])

    @property
    def last_nnz(self) -> Any:
        """Non-zero weights at the end of train."""
        return self._mean([run.last_nnz for run in self.runs])

    def shown(self, score: Score) -> str:
        """A score, of several seeds with its standard deviation."""
        text = scored(score.name, self.scores[score.name])
        if len(self.runs) == 1:
            return text
        return f"{text} ± {scored(score.name, self.deviations[score.name])}"

    def facts(self) -> dict[str, Any]:
        """What ``--json`` says."""
        test = self.test
        bounds = ("difference", "low", "high")
        facts = {
            "learner": self.name,
            **self.scores,
            "nnz": self.nnz,
            "last_nnz": self.last_nnz,
            "passes": self.passes,
            "seconds_per_pass": self.seconds,
            "p_value": None if test is None else test["p_value"],
            "against_best": None if test is None else {key: test[key] for key in bounds},
            "best_epoch": self.runs[0].best_epoch,
            "signature": self.runs[0].signature,
        }
        if len(self.runs) > 1:
            facts |= {"std": self.deviations, "runs": [run.facts() for run in self.runs]}
        return facts

    @property
    def _names(self) -> list[str]:
        return list(self.runs[0].scores)

    @staticmethod
    def _mean(values: Sequence[Any]) -> Any:
        """The mean; of one value that one, and None where some learner has no such score."""
        if len(values) == 1:
            return values[0]
        return None if None in values else statistics.fmean(values)


@dataclass
class Study:
    """Learners side by side: trained, tested, tabled and drawn.

    Parameters
    ----------
    surface : Surface
        The words of the task.
    prepared : Prepared
        What they learn from.
    tests, devs : callable
        Give the data that they are tested on, and held-out data that chooses the epoch to keep, in
        the features of a `Prepared`; without ``devs`` the last epoch is kept.
    parameters : mapping
        Parameters of the estimator that all learners share.
    """

    surface: Surface
    prepared: Any
    tests: HeldOut
    devs: HeldOut | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)

    @cached_property
    def view(self) -> View:
        """The data as the first learner reads it."""
        return self._view(self.prepared)

    @property
    def test(self) -> Any:
        """The test data as the first learner reads it."""
        return self.view.test

    @property
    def scores(self) -> tuple[Score, ...]:
        """What is shown of the test data; the first decides who is best."""
        return self.surface.scores(self.prepared)

    def describe(self) -> str:
        """Returns one line about the data."""
        return self.surface.describe(self.prepared)

    def tested_on(self) -> str:
        """Returns what learners are tested on, in words."""
        return self.surface.tested_on(self.prepared, self.test)

    def run(
        self,
        learners: Wanted,
        console: Console,
        seeds: Sequence[int] = (1,),
        cluster: Any = None,
    ) -> None:
        """Train every (label, learner, parameters) with every seed, and test it.

        Parameters
        ----------
        learners : sequence of (str, str, mapping)
            Label, name and parameters of each.
        console : Console
            Where a line goes for each run as it ends.
        seeds : sequence of int
            Each learner is trained once with each.
        cluster : Runs, optional
            Where runs are made side by side, with the same results; else they are made here, one
            after the other.
        """
        main = self.scores[0]

        def tell(run: Run) -> None:
            seed = f", seed {run.seed}" if len(seeds) > 1 else ""
            console.say(
                f"  {run.name}{seed}: {main.title} {scored(main.name, run.scores[main.name])}"
                f"{main.unit}, {run.nnz:,} non-zeros"
            )

        views: list[View] = []
        items: list[tuple[int, Order]] = []
        runs: list[Run] = []
        for label, name, params in learners:
            prepared = self.prepared.for_learner(name, params)
            own = {**self.parameters, "learner": name, "params": params}
            own.setdefault("n_jobs", 1)
            orders = [Order(label, {**own, "random_state": seed}) for seed in seeds]
            if cluster is None:
                view = self._view(prepared)
                for order in orders:
                    runs.append(trained_run(view, order))
                    tell(runs[-1])
                continue
            known = [k for k, view in enumerate(views) if view.prepared is prepared]
            if not known:
                views.append(self._view(prepared))
            items += [(known[0] if known else len(views) - 1, order) for order in orders]
        if cluster is not None:
            movable = [view._replace(prepared=view.prepared.alone()) for view in views]
            cores = {"n_jobs": cluster.cores}
            items = [(k, one._replace(parameters={**one.parameters, **cores})) for k, one in items]
            runs = list(cluster.map(run_elsewhere, movable, items, tell))
        n = len(seeds)
        self.results += [Result(runs[k : k + n]) for k in range(0, len(runs), n)]
        self._test_differences()

    def _view(self, prepared: Any) -> View:
        if prepared is self.prepared and "view" in self.__dict__:
            return self.view
        devs = self.devs
        return View(prepared, self.tests(prepared), None if devs is None else devs(prepared))

    def _test_differences(self) -> None:
        main, metric = self.scores[0], self.prepared.tester()
        samples = [Sample(metric, result.rows, main) for result in self.results]
        for result, test in zip(self.results, against_best(samples), strict=True):
            result.test = test

    def signatures(self) -> list[str]:
        """Of all models."""
        return [run.signature for result in self.results for run in result.runs]

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """Heads and rows."""
        scores = self.scores
        heads = [score.title for score in scores]
        rows = [
            [
                result.name,
                *(result.shown(score) for score in scores),
                round(result.nnz),
                round(result.last_nnz),
                round(result.passes, 1),
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
        for note in self.notes():
            console.say(f"\n{note}")

    def notes(self) -> list[str]:
        """What several seeds have to do with the figures."""
        n = len(self.results[0].runs)
        if n == 1:
            return []
        return [
            f"Means over {n} seeds, ± standard deviation; p is of the {self.surface.unit} of all "
            "seeds together."
        ]

    def best(self) -> dict[str, Any]:
        """Whether the most or the least is best, by column of a score."""
        return {score.title: "max" if score.higher else "min" for score in self.scores}

    def section(self, page: Page, title: str, text: str, axis: str = "passes") -> None:
        """Add the table and the curves, along an axis of `_AXES`, to a page."""
        scores = self.scores
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
                *self.surface.notes,
                *self.notes(),
                "non-zeros kept: of the model; last: of the last weights, which averaging and "
                "voting blur.",
                "s/pass: learning time of the fastest pass. p: how often a difference to the best "
                f"{scores[0].title} as large as this comes about by chance (approximate "
                f"randomisation of whole {self.surface.unit}).",
            ],
        )
        along = {name: partial(self._figures, page, name) for name in _AXES}
        if len(self.results[0].runs) > 1:
            page.text(f"Curves are of seed {self.results[0].runs[0].seed}.")
        page.choices("Curves along", along, axis)
        page.figures(self.trades())
        self._differences(page)

    def _figures(self, page: Page, axis: str) -> Page:
        return page.figures(self.plots(axis))

    def _differences(self, page: Page) -> None:
        """The test examples on which learners differ most, and who beats whom on how many."""
        import numpy as np

        name, higher = self.surface.each_by(self.prepared)
        metric, names = self.prepared.tester(), [result.name for result in self.results]
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
            f"On how many of {len(table):,} {self.surface.unit} the learner of a row has a better "
            f"{name} than that of a column.",
        )
        order = np.argsort(-spread, kind="stable")[: min(_SHOWN, int(np.count_nonzero(spread)))]
        rows = [
            [self.surface.shown(self.prepared, self.test, i), *(float(abs(v)) for v in table[i])]
            for i in order.tolist()
        ]
        with page.details(f"The {len(rows)} {self.surface.unit} on which they differ most"):
            columns = [f"{self.surface.unit} ({name})", *names]
            page.table(columns, rows, align="l" + "r" * len(names))

    def plots(self, axis: str = "passes") -> list[Plot]:
        """Mistakes, a score and sparsity while training."""
        from hopefear.report import Plot

        main = self.scores[0]
        which = "Test" if self.devs is None else "Dev"
        title = f"{main.title}{' in percent' if '%' in main.unit else ''}"
        moments = [result.moments(axis) for result in self.results]
        ends = [places[-1] for places in moments]
        scale: Literal["linear", "log"] = "log" if max(ends) > _FAR * min(ends) else "linear"
        curves = [
            Plot(name, _AXES[axis], label, scale)
            for name, label in (
                ("Mistakes while training", f"% of {self.surface.unit} so far"),
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

        main = self.scores[0]
        title = f"{main.title}{' in percent' if '%' in main.unit else ''}"
        upper = f"{main.title[:1].upper()}{main.title[1:]}"
        sparsity = Plot(f"{upper} against sparsity", "non-zero weights kept", title, "log")
        time = Plot(f"{upper} against time", _AXES["seconds"], title, "log")
        for look, result in enumerate(self.results):
            score, seconds = [result.scores[main.name]], result.moments("seconds")[-1]
            sparsity.points([max(1, result.nnz)], score, result.name, look=look)
            time.points([seconds], score, result.name, look=look)
        return [sparsity, time]
