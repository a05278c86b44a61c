"""What verbs ask of a task: all that the command line knows of it stands in its Surface.

A task has a package ``hopefear.cli.TASK`` with a `SURFACE`, light to import: words, options, checks
before anything is read. Reading gives a `Corpus`, which says what training and comparing need.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from hopefear.errors import HopefearError
from hopefear.tasks import MODELLED, TASKS, recipe


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


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """What is learned from, in the features of a task.

    Parameters
    ----------
    data : dataset
        What ``train`` of the task takes.
    skipped : int
        Bad lines that were left out.
    reading : mapping, optional
        What a model must know to read more of this.
    """

    data: Any
    skipped: int = 0
    reading: Mapping[str, Any] | None = None

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

    def score_names(self) -> tuple[str, ...]:
        """Scores that training can stop on."""
        raise NotImplementedError

    def describe(self) -> str:
        """One line about the data."""
        raise NotImplementedError

    @property
    def remarks(self) -> tuple[str, ...]:
        """Lines on what of it is of no use."""
        return ()

    def held_out(self, which: str, args: argparse.Namespace, console: Any) -> Any:
        """The file of ``--dev`` or ``--test`` in the same features."""
        raise NotImplementedError

    def arguments(self, args: argparse.Namespace) -> dict[str, Any]:
        """Arguments of ``train`` that only this task has."""
        return {}

    def facts(self) -> dict[str, Any]:
        """Sizes, for ``run.json``."""
        raise NotImplementedError

    def settings(self, args: argparse.Namespace) -> dict[str, Any]:
        """What else ``run.json`` says."""
        return {}

    def outcome(self, trained: Any, last: Mapping[str, Any]) -> dict[str, Any]:
        """What ``--json`` of train adds; ``last`` are the newest values of events."""
        raise NotImplementedError

    def summary(self, result: Mapping[str, Any], trained: Any) -> dict[str, str | None]:
        """What train says besides scores and sizes."""
        return {}

    def tested_on(self, test: Any) -> str:
        """What learners are tested on, in words."""
        return f"tested on {len(test):,} {self.unit}"

    def comparison(self, test: Any) -> dict[str, Any]:
        """What ``--json`` of compare says of the data."""
        raise NotImplementedError

    def judge(self, model: Any, test: Any) -> tuple[dict[str, float], Any]:
        """Scores of a model, and the statistics of every test example, for significance."""
        raise NotImplementedError

    def tester(self) -> Any:
        """The metric that makes the first of the scores of summed statistics."""
        raise NotImplementedError


class Surface:
    """A task on the command line: what differs from other tasks, and nothing else."""

    name: ClassVar[str]
    noun: ClassVar[str]  # what a file of it holds, in help
    words: ClassVar[Mapping[str, Words]]  # of train, compare, predict, evaluate and inspect
    epochs: ClassVar[int | None] = None  # what --epochs is where nobody says
    passes: ClassVar[str]  # the same in words
    metrics: ClassVar[str | None] = None  # scores for --metric of train, in words
    files: ClassVar[tuple[str, ...]] = ()  # options that name more files to read

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

    def use_options(
        self, verb: str, parser: argparse.ArgumentParser, **groups: argparse._ArgumentGroup
    ) -> None:
        """Options of predict, evaluate and inspect that models of other tasks refuse."""

    # Before anything is read.

    def check(self, args: argparse.Namespace, verb: str) -> None:
        """Wrong usage of options of this task; of predict, evaluate and inspect too."""

    def build(self, name: str, params: Mapping[str, Any], args: argparse.Namespace) -> Any:
        """The learner of that name; what is wrong with it is told before anything is read."""
        return recipe(name, self.name).build(**params)

    # What verbs do; heavy, and so in modules beside.

    def read(self, args: argparse.Namespace, console: Any) -> Corpus:
        """The data of ``--train``, as ``read`` of the module ``corpus`` has it."""
        return importlib.import_module(f"hopefear.cli.{self.name}.corpus").read(args, console)

    def explain(self, args: argparse.Namespace, model: Any, console: Any) -> bool:
        """Say why an answer is what it is, where inspect is asked for that; whether it was."""
        return False

    @property
    def use(self) -> Any:
        """The module ``use``, for verbs that take a model.

        ``answers(args, model, console, report)`` yields what predict writes, piece by piece;
        ``evaluate`` of the same gives the scores, which ``show_scores(console, scores)`` says;
        ``model_facts(model, top)`` gives what inspect says, ``facts_in_words(facts)`` the lines for
        people, and ``show_weights(console, facts)`` the weights. ``report`` counts what readers
        leave out.
        """
        return importlib.import_module(f"hopefear.cli.{self.name}.use")


def surface_of(task: str) -> Surface:
    """The surface of a task.

    >>> surface_of("tag").noun
    'tags'
    """
    return importlib.import_module(f"hopefear.cli.{task}").SURFACE


def surfaces() -> list[Surface]:
    """Those of all tasks that leave models."""
    return [surface_of(task) for task in MODELLED]


def said_of(verb: str, part: str) -> str:
    """What all tasks say of a verb: paragraphs of ``description``, or lines of ``examples``."""
    between = "\n\n" if part == "description" else "\n"
    texts = (getattr(surface.words[verb], part).strip("\n") for surface in surfaces())
    return between.join(filter(None, texts))


def use_options(
    verb: str, parser: argparse.ArgumentParser, **groups: argparse._ArgumentGroup
) -> None:
    """Add the options that only one task has, and note whose they are."""
    owners: dict[str, str] = {}
    known = {action.dest for action in parser._actions}
    for surface in surfaces():
        surface.use_options(verb, parser, **groups)
        for action in parser._actions:
            if action.dest not in known:
                owners.setdefault(action.dest, surface.name)
    parser.set_defaults(owners=owners)


def opened(args: argparse.Namespace, verb: str) -> tuple[Surface, Any]:
    """The model of ``--model`` and the surface of its task; options of other tasks are refused."""
    for each in surfaces():
        each.check(args, verb)
    task, model = load_model(args.model)
    for name, owner in args.owners.items():
        if owner != task and getattr(args, name) != args.default_of(name):
            raise HopefearError(
                f"--{name.replace('_', '-')} is for the task {owner}, and {args.model} is a model "
                f"of the task {task}; leave it out"
            )
    form, formats = getattr(args, "format", "auto"), TASKS[task].formats
    if form not in ("auto", *formats):
        raise HopefearError(
            f"--format {form}: {args.model} is a model of the task {task}, whose files are "
            f"{', '.join(formats)}"
        )
    return surface_of(task), model


def load_model(path: str) -> tuple[str, Any]:
    """Task and model of a file, or of standard input; any changed byte is refused."""
    from hopefear import storage
    from hopefear.tasks import model_from_parts

    if path == "-":
        header, arrays = storage.unpack(sys.stdin.buffer.read(), kind="model", name="the model")
    else:
        header, arrays = storage.load(path, "model")
    return str(header.get("task")), model_from_parts(path, header, arrays)
