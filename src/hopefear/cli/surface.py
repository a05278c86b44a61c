"""What commands ask of a task: all that the command line knows of it stands in its Surface.

The entry of a task in ``tasks.TASKS`` names its `Surface`, light to import: words, options, and
printing. Its options become the parameters of the task's estimator (`Surface.parameters`); files
become examples (`Surface.examples`), which the task prepares and learns from as everywhere
(:mod:`hopefear.tasks.prepare`); its answers (:mod:`hopefear.tasks.answers`) are written here.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from hopefear.errors import HopefearError
from hopefear.tasks import TASKS, named_object, recipe

# Parameters whose options have another name, and options of learning commands that stand for none:
# those about files, runs and machines.
RENAMED = {"seed": "random_state", "jobs": "n_jobs", "param": "params"}
NO_PARAMETERS = frozenset(
    {
        *("task", "command", "config", "allow_commands", "settings", "usage_error", "default_of"),
        *("quiet", "debug", "help", "json", "train", "dev", "test", "model", "report", "x"),
        *("format", "encoding", "on_error", "cache", "run", "checkpoint", "checkpoint_every"),
        *("resume", "stream", "classes", "save_every", "save_seconds", "bounds", "learners"),
        *("merge", "merges", "max_features", "cluster", "seeds", "owners"),
        *("folds", "trials", "seconds", "objective", "space", "study", "out", "run_command"),
        *("vectors", "device"),  # parameters of networks, which `params` holds by then
    }
)


class Words(NamedTuple):
    """What the help of a verb says of a task; an example a line, indented."""

    description: str
    examples: str


class Score(NamedTuple):
    """A score as tables show it: its title, its name, whether more is better, its unit."""

    title: str
    name: str
    higher: bool = True
    unit: str = " %"


class Sample(NamedTuple):
    """What a metric counted in every example, for intervals and tests of the score that matters."""

    metric: Any
    rows: Any
    score: Score

    def interval(self, name: str) -> list[float]:
        """Between which bounds a score lies in 95 % of resamples."""
        from hopefear.metrics import confidence_interval

        interval = confidence_interval(self.metric, self.rows, name)
        return [interval.low, interval.high]


def against_best(
    samples: Sequence[Sample], replicates: int = 2000
) -> list[dict[str, float] | None]:
    """How each differs from the best, and how often that comes about by chance.

    None for the best one. Approximate randomisation gives p, the paired bootstrap the bounds.
    """
    import numpy as np  # which help need not load

    from hopefear.metrics import approximate_randomisation, paired_bootstrap

    metric, _, score = samples[0]
    sums = [np.sum(sample.rows, axis=0) for sample in samples]  # of lists, where a task has those
    totals = [float(metric.scores(one)[score.name]) for one in sums]
    best = totals.index((max if score.higher else min)(totals))
    tests: list[dict[str, float] | None] = []
    for sample in samples:
        if sample is samples[best]:
            tests.append(None)
            continue
        both = (metric, sample.rows, samples[best].rows, score.name)
        bootstrap = paired_bootstrap(*both, replicates=replicates)
        p_value = approximate_randomisation(*both, replicates=replicates).p_value
        bounds = {name: getattr(bootstrap, name) for name in ("difference", "low", "high")}
        tests.append({"p_value": p_value, **bounds})
    return tests


class Rehearsal(NamedTuple):
    """Commands on the tiny files of `warm_up`, after which no kernel is left to compile."""

    learning: tuple[str, ...] = ()  # once for each learner
    shared: tuple[str, ...] = ()  # once: what does not depend on the learner


class Surface:
    """A task on the command line: what differs from other tasks, and nothing else."""

    name: ClassVar[str]
    noun: ClassVar[str]  # what a file of it holds, in help
    words: ClassVar[Mapping[str, Words]]  # of train, compare, predict, evaluate and inspect
    passes: ClassVar[str]  # how many there are where --epochs is not said, in words
    metrics: ClassVar[str | None] = None  # scores for --metric of train, in words
    files: ClassVar[tuple[str, ...]] = ()  # options that name more files to read
    texts: ClassVar[tuple[str, ...]] = ()  # formats that predict reads besides those of the task
    outputs: ClassVar[Mapping[str, str]] = {}  # formats that predict writes, in words
    shares: ClassVar[tuple[str, ...]] = ()  # options of other tasks that models of this one take
    no_parameters: ClassVar[tuple[str, ...]] = ()  # options of the task that are about files alone
    jobs: ClassVar[int | None] = None  # threads that learn unless --jobs says; None is one a core
    title: ClassVar[str] = "Learners compared"  # of the page that compares
    unit: ClassVar[str] = "examples"  # what learners get wrong
    notes: ClassVar[tuple[str, ...]] = ()  # below the table of scores, where they need words
    rehearsal: ClassVar[Rehearsal] = Rehearsal()

    def formats(self, verb: str) -> tuple[str, ...]:
        """Formats of files that a verb reads."""
        return (*TASKS[self.name].formats, *(self.texts if verb == "predict" else ()))

    # Options, in the order of help.

    def data_options(self, group: argparse._ArgumentGroup, verb: str) -> None:
        """How files are read; of train and compare."""

    def learning_options(
        self, group: argparse._ArgumentGroup, verb: str, shared: Callable[[], None]
    ) -> None:
        """How learning goes; ``shared`` adds the options of all tasks."""
        shared()

    def feature_options(self, parser: argparse.ArgumentParser, verb: str) -> None:
        """What becomes a feature, and structures."""

    def last_options(self, parser: argparse.ArgumentParser, verb: str) -> None:
        """What few people want."""
        from hopefear.cli import options

        options.bounds(parser)

    def use_options(
        self, verb: str, parser: argparse.ArgumentParser, **groups: argparse._ArgumentGroup
    ) -> None:
        """Options of predict, evaluate and inspect that models of other tasks refuse."""

    # Before anything is read.

    def check(self, args: argparse.Namespace, verb: str) -> None:
        """Wrong usage of options of this task; of predict, evaluate and inspect too."""

    def build(self, name: str, params: Mapping[str, Any], args: argparse.Namespace) -> Any:
        """The learner of that name; what is wrong with it is told before anything is read."""
        learner = recipe(name, self.name).build(**params)
        if hasattr(learner, "check"):
            learner.check()
        return learner

    # What is learned from. Heavy imports stand inside methods: help reads this file, too.

    def examples(
        self, which: str, args: argparse.Namespace, report: Any, prepared: Any = None
    ) -> Any:
        """Returns the examples of ``--train``, or of ``--dev`` or ``--test`` like those before.

        ``report`` counts what readers leave out, at the latest when the examples are prepared.
        """
        raise NotImplementedError

    def prepare(self, examples: Any, options: Mapping[str, Any]) -> Any:
        """Returns the `Prepared` of examples, by the function ``prepare`` of the task."""
        return named_object(TASKS[self.name].prepare or "")(examples, options)

    def parameters(self, args: argparse.Namespace) -> dict[str, Any]:
        """Returns the parameters of the estimator that the options of a command stand for.

        An option has the name of its parameter, but for ``--seed``, ``--jobs``, ``-p``, and
        ``--no-NAME``, which is False for the parameter NAME. Options that are about files and runs
        stand for none.
        """
        from hopefear.cli.options import threads
        from hopefear.cli.shards import shards_of

        options: dict[str, Any] = {}
        for name, value in vars(args).items():
            if name in NO_PARAMETERS or name in self.no_parameters:
                continue
            if value is None and args.default_of(name) is None:
                continue
            if name.startswith("no_"):
                options[name.removeprefix("no_")] = not value
            else:
                options[RENAMED.get(name, name)] = value
        options["params"] = dict(options.get("params") or {})
        options.setdefault("n_jobs", threads(self.jobs))
        if hasattr(args, "shards"):
            options["shards"] = shards_of(args)
        return options

    def check_memory(self, args: argparse.Namespace) -> None:
        """HopefearError where memory clearly cannot hold ``--train``, before it is read."""
        task = TASKS[self.name]
        if not task.memory or getattr(args, "cache", None) is not None:
            return
        from hopefear.data.sizes import check_fits

        remedy = "learn from a part of it, or on a machine with more memory"
        if task.larger_than_memory:
            remedy = (
                "train with --cache DIR reads it from a copy on disk, and with --stream learns "
                "from it once, as it comes"
            )
        check_fits(args.train, task.memory, remedy)

    def stream(self, args: argparse.Namespace, console: Any, report: Any) -> Any:
        """Returns the `Incoming` of ``--train`` as it comes."""
        raise NotImplementedError

    def needs_all(self, args: argparse.Namespace) -> str | None:
        """Returns the first option given that needs all of the data."""
        return None

    # Words about data and training.

    def scores(self, prepared: Any) -> tuple[Score, ...]:
        """Returns what is shown of held-out data; the first decides who is best."""
        raise NotImplementedError

    def describe(self, prepared: Any) -> str:
        """Returns one line about the data."""
        sizes = ", ".join(f"{n:,} {name}" for name, n in prepared.sizes().items())
        return f"{prepared.data.source}: {sizes}"

    def facts(self, prepared: Any) -> dict[str, Any]:
        """Returns what ``run.json`` says of the data."""
        return {"digest": prepared.data.digest, **prepared.sizes()}

    def settings(self, prepared: Any, args: argparse.Namespace) -> dict[str, Any]:
        """Returns what else ``run.json`` says."""
        return {}

    def outcome(self, prepared: Any, trained: Any) -> dict[str, Any]:
        """Returns what ``--json`` of train adds."""
        return dict(prepared.sizes())

    def summary(self, prepared: Any, result: Mapping[str, Any], trained: Any) -> dict[str, Any]:
        """Returns what train says besides scores and sizes, in words."""
        return {}

    def comparator(self, prepared: Any, args: argparse.Namespace) -> Any:
        """Returns the weights that theorems compare with; None for the average so far."""
        return None

    def tested_on(self, prepared: Any, test: Any) -> str:
        """Returns what learners are tested on, in words."""
        return f"tested on {len(test):,} {self.unit}"

    def comparison(self, prepared: Any, test: Any) -> dict[str, Any]:
        """Returns what ``--json`` of compare says of the data."""
        return {**prepared.sizes(), f"test_{self.unit}": len(test)}

    def each_by(self, prepared: Any) -> tuple[str, bool]:
        """Returns the score of the tester for single examples, and whether more is better."""
        score = self.scores(prepared)[0]
        return score.name, score.higher

    def shown(self, prepared: Any, test: Any, i: int) -> str:
        """Returns test example ``i`` in words."""
        return f"{i + 1}"

    # What is asked of models; ``report`` counts what readers leave out.

    def answers(
        self, args: argparse.Namespace, model: Any, console: Any, report: Any
    ) -> Iterable[bytes]:
        """Gives what predict writes, piece by piece."""
        raise NotImplementedError

    def reasons(
        self, args: argparse.Namespace, model: Any, console: Any, report: Any
    ) -> Iterable[bytes]:
        """Gives what predict writes with ``--explain``; see `hopefear.cli.explain.told`."""
        raise HopefearError(f"--explain: nothing explains models of the task {model.task}")

    def evaluate(
        self, args: argparse.Namespace, model: Any, console: Any, report: Any
    ) -> dict[str, Any]:
        """Returns scores of the model on ``--data``.

        Also what tests of several models need, ``sample`` (a `Sample`), and, for ``--report``,
        what a page shows, ``page`` (a `ReportData`).
        """
        raise NotImplementedError

    def findings(self, scores: Mapping[str, Any]) -> tuple[dict[str, Any], Sequence[Any]]:
        """Returns scores in words, and tables (title, heads, rows), for people."""
        flat = {k: v for k, v in scores.items() if isinstance(v, str | int | float)}
        return {k: f"{v:.2f}" if isinstance(v, float) else v for k, v in flat.items()}, ()

    def show_scores(self, console: Any, scores: Mapping[str, Any]) -> None:
        """Shows the scores to people."""
        console.pairs(self.findings(scores)[0])

    def model_facts(self, model: Any, top: int) -> dict[str, Any]:
        """Returns what inspect says of the model: ``features``, and ``top``, the heaviest."""
        if not model.predictor.linear:
            return {"features": model.features.size}
        weights, features = model.weights, model.features
        order = abs(weights).argsort(kind="stable")[::-1][:top].tolist()
        rows = [(features.name(j), float(weights[j])) for j in order if weights[j] != 0.0]
        return {"features": features.size, "top": rows}

    def facts_in_words(self, facts: Mapping[str, Any]) -> dict[str, str | None]:
        """Returns lines of inspect on what `model_facts` says."""
        return {"features": f"{facts['features']:,}"}

    def show_weights(self, console: Any, facts: Mapping[str, Any]) -> None:
        """Shows the heaviest features to people."""
        from hopefear.cli.console import weights_table

        weights_table(console, "features, heaviest", ["feature"], facts.get("top", ()))


def task_names() -> tuple[str, ...]:
    """Tasks that verbs take; tuning leaves weights, not a model, and is a verb of its own."""
    return tuple(name for name, entry in TASKS.items() if entry.surface is not None)


def surface_of(task: str) -> Surface:
    """The surface of a task.

    >>> surface_of("tag").noun
    'tags'
    """
    return named_object(TASKS[task].surface or "")


def surfaces() -> list[Surface]:
    """Those of all tasks that have one."""
    return [surface_of(task) for task in task_names()]


def said_of_all(verb: str, description: str, examples: str) -> tuple[str, str]:
    """The words of a verb, with what each task says of it in place of ``{tasks}``."""
    if "{tasks}" not in description + examples:
        return description, examples
    words = [Words(*(part.strip("\n") for part in each.words[verb])) for each in surfaces()]
    paragraphs, lines = (list(filter(None, parts)) for parts in zip(*words, strict=True))
    return (
        description.replace("{tasks}", "\n\n".join(paragraphs)),
        examples.replace("{tasks}", "\n".join(lines)),
    )


def use_options(
    verb: str, parser: argparse.ArgumentParser, **groups: argparse._ArgumentGroup
) -> None:
    """Add the options that only one task has, and note whose they are."""
    owners: dict[str, str] = {}
    shared = {action.dest for action in parser._actions}
    for surface in surfaces():
        surface.use_options(verb, parser, **groups)
        for action in parser._actions:
            if action.dest not in shared:
                owners.setdefault(action.dest, surface.name)
    parser.set_defaults(owners=owners)


def opened(args: argparse.Namespace, verb: str) -> tuple[Surface, Any]:
    """The model of ``--model`` and the surface of its task; options of other tasks are refused."""
    for each in surfaces():
        each.check(args, verb)
    task, model = load_model(args.model)
    surface = surface_of(task)
    for name, owner in args.owners.items():
        if owner == task or name in surface.shares:
            continue
        if getattr(args, name) != args.default_of(name):
            raise HopefearError(
                f"--{name.replace('_', '-')} is for the task {owner}, and {args.model} is a model "
                f"of the task {task}; leave it out"
            )
    if getattr(args, "device", None) is not None:
        if not hasattr(model.predictor, "device"):
            raise HopefearError(
                f"--device {args.device} is for networks, and {args.model} is none; leave it out"
            )
        model.predictor.device = args.device
    form, formats = getattr(args, "format", "auto"), surface.formats(verb)
    if form not in ("auto", *formats):
        raise HopefearError(
            f"--format {form}: {args.model} is a model of the task {task}, whose files are "
            f"{', '.join(formats)}"
        )
    form = getattr(args, "output_format", None)
    if form is not None and form not in surface.outputs:
        names = ", ".join(surface.outputs) or "lines of one form; leave it out"
        raise HopefearError(
            f"--output-format {form}: {args.model} is a model of the task {task}, whose outputs "
            f"are {names}"
        )
    return surface, model


def load_model(path: str) -> tuple[str, Any]:
    """Task and model of a file, or of standard input; any changed byte is refused."""
    from hopefear import storage
    from hopefear.tasks import model_from_parts

    if path == "-":
        header, arrays = storage.unpack(sys.stdin.buffer.read(), kind="model", name="the model")
    else:
        header, arrays = storage.load(path, "model")
    return str(header.get("task")), model_from_parts(path, header, arrays)
