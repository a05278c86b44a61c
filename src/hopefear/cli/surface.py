"""What verbs ask of a task: all that the command line knows of it stands in its Surface.

The entry of a task in ``tasks.TASKS`` names its `Surface`, light to import: words, options, checks
before anything is read. Reading gives a `Corpus`, which says what training and comparing need;
what is asked of models is in a `Use`.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from hopefear.errors import HopefearError
from hopefear.tasks import TASKS, named_object, recipe


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


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """What is learned from, in the features of a task.

    Parameters
    ----------
    data : dataset
        What the task is learned from.
    skipped : int
        Bad lines that were left out.
    reading : mapping, optional
        What a model must know to read more of this.
    jobs : int
        Threads for what does not depend on their number.
    """

    data: Any
    skipped: int = 0
    reading: Mapping[str, Any] | None = None
    jobs: int = 1

    title: ClassVar[str] = "Learners compared"  # of the page that compares
    unit: ClassVar[str] = "examples"  # what learners get wrong
    notes: ClassVar[tuple[str, ...]] = ()  # below the table of scores, where they need words

    @property
    def scores(self) -> tuple[Score, ...]:
        """What is shown of held-out data; the first decides who is best."""
        raise NotImplementedError

    @property
    def metric(self) -> str:
        """The score on held-out data that counts where ``--metric`` names none."""
        return self.scores[0].name

    def task(self, args: argparse.Namespace) -> Any:
        """The task, with the options that were typed."""
        raise NotImplementedError

    def sizes(self) -> dict[str, Any]:
        """How much there is, for ``--json``."""
        return {self.unit: len(self.data), "features": self.data.features.size}

    def describe(self) -> str:
        """One line about the data."""
        sizes = ", ".join(f"{n:,} {name}" for name, n in self.sizes().items())
        return f"{self.data.source}: {sizes}"

    @property
    def remarks(self) -> tuple[str, ...]:
        """Lines on what of it is of no use."""
        return ()

    def held_out(self, which: str, args: argparse.Namespace, console: Any) -> Any:
        """The file of ``--dev`` or ``--test`` in the same features."""
        raise NotImplementedError

    def suiting(self, learner: str, params: Mapping[str, Any]) -> Corpus:
        """The same in the features that a learner reads."""
        return self

    def adapted(self, task: Any) -> Any:
        """A task with what must be otherwise for this data."""
        return task

    def encoded(self, data: Any) -> Any:
        """Held-out data of this corpus in the features of this one."""
        return data

    def rival(self, args: argparse.Namespace) -> Corpus | None:
        """The same in fewer columns, where ``--dev`` is to choose between the two."""
        return None

    def alone(self, jobs: int) -> Corpus:
        """The same for a process elsewhere, which has so many threads and reads no more files."""
        return replace(self, jobs=jobs)

    def facts(self) -> dict[str, Any]:
        """What ``run.json`` says of the data."""
        return {"digest": self.data.digest, **self.sizes()}

    def settings(self, args: argparse.Namespace) -> dict[str, Any]:
        """What else ``run.json`` says."""
        return {}

    def outcome(self, trained: Any, last: Mapping[str, Any]) -> dict[str, Any]:
        """What ``--json`` of train adds; ``last`` are the newest values of events."""
        theory = {"theory": last["theory"]} if "theory" in last else {}
        return {**self.sizes(), "skipped": self.skipped, **theory}

    def summary(self, result: Mapping[str, Any], trained: Any) -> dict[str, str | None]:
        """What train says besides scores and sizes."""
        theory = result.get("theory")
        return {"theory": theory["says"]} if theory else {}

    def comparator(self, args: argparse.Namespace) -> Any:
        """The weights that theorems compare with; None for the average so far."""
        return None

    def tested_on(self, test: Any) -> str:
        """What learners are tested on, in words."""
        return f"tested on {len(test):,} {self.unit}"

    def comparison(self, test: Any) -> dict[str, Any]:
        """What ``--json`` of compare says of the data."""
        return {**self.sizes(), f"test_{self.unit}": len(test)}

    def judge(self, model: Any, test: Any) -> tuple[dict[str, float], Any]:
        """Scores of a model, and the statistics of every test example, for significance."""
        raise NotImplementedError

    @property
    def each_by(self) -> tuple[str, bool]:
        """The score of the tester that single examples are compared by; whether more is better."""
        return self.scores[0].name, self.scores[0].higher

    def shown(self, test: Any, i: int) -> str:
        """Test example ``i`` in words."""
        return f"{i + 1}"

    def tester(self) -> Any:
        """The metric that makes the first of the scores of summed statistics."""
        raise NotImplementedError


class Use:
    """What verbs ask of a model; a module with functions of these names will do, too.

    ``report`` counts what readers leave out.
    """

    def answers(
        self, args: argparse.Namespace, model: Any, console: Any, report: Any
    ) -> Iterable[bytes]:
        """What predict writes, piece by piece."""
        raise NotImplementedError

    def reasons(
        self, args: argparse.Namespace, model: Any, console: Any, report: Any
    ) -> Iterable[bytes]:
        """What predict writes with ``--explain``; see `hopefear.cli.explain.told`."""
        raise HopefearError(f"--explain: nothing explains models of the task {model.task}")

    def evaluate(
        self, args: argparse.Namespace, model: Any, console: Any, report: Any
    ) -> dict[str, Any]:
        """Scores of the model on ``--data``.

        Also what tests of several models need, ``sample`` (a `Sample`), and, for ``--report``,
        what a page shows, ``page`` (an `Evidence`).
        """
        raise NotImplementedError

    def findings(self, scores: Mapping[str, Any]) -> tuple[dict[str, Any], Sequence[Any]]:
        """Scores in words, and tables (title, heads, rows), for people; see `Evaluation`."""
        flat = {k: v for k, v in scores.items() if isinstance(v, str | int | float)}
        return {k: f"{v:.2f}" if isinstance(v, float) else v for k, v in flat.items()}, ()

    def show_scores(self, console: Any, scores: Mapping[str, Any]) -> None:
        """The scores for people."""
        console.pairs(self.findings(scores)[0])

    def model_facts(self, model: Any, top: int) -> dict[str, Any]:
        """What inspect says of the model: ``features``, and ``top``, the heaviest of them."""
        if not model.predictor.linear:
            return {"features": model.features.size}
        weights, features = model.weights, model.features
        order = abs(weights).argsort(kind="stable")[::-1][:top].tolist()
        rows = [(features.name(j), float(weights[j])) for j in order if weights[j] != 0.0]
        return {"features": features.size, "top": rows}

    def facts_in_words(self, facts: Mapping[str, Any]) -> dict[str, str | None]:
        """Lines of inspect on what `model_facts` says."""
        return {"features": f"{facts['features']:,}"}

    def show_weights(self, console: Any, facts: Mapping[str, Any]) -> None:
        """The heaviest features for people."""
        from hopefear.cli.console import weights_table

        weights_table(console, "features, heaviest", ["feature"], facts.get("top", ()))


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

    # What verbs do; heavy, and so in modules beside.

    def read(self, args: argparse.Namespace, console: Any) -> Corpus:
        """The data of ``--train``, as ``read`` of the module ``corpus`` beside has it."""
        self.check_memory(args)
        return importlib.import_module(f"{type(self).__module__}.corpus").read(args, console)

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
        """The data of ``--train`` as it comes, as ``stream`` of the module ``streamed`` has it."""
        module = importlib.import_module(f"{type(self).__module__}.streamed")
        return module.stream(args, console, report)

    def needs_all(self, args: argparse.Namespace) -> str | None:
        """The first option given that needs all of the data, as the module ``streamed`` has it."""
        return importlib.import_module(f"{type(self).__module__}.streamed").needs_all(args)

    def explain(self, args: argparse.Namespace, model: Any, console: Any) -> bool:
        """Say why an answer is what it is, where inspect is asked for that; whether it was."""
        return False

    @property
    def use(self) -> Any:
        """The `Use` of its models, as the module ``use`` beside has it."""
        return importlib.import_module(f"{type(self).__module__}.use")


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
