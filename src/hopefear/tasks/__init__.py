"""What is learned: the one table of tasks, light to import.

Everything that depends on the task by name looks here: the command line, model files, learners.
Modules are named, not imported, so that asking for one task never loads another.
"""

from __future__ import annotations

import difflib
import importlib
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hopefear.errors import HopefearError, ModelError


@dataclass(frozen=True)
class TaskEntry:
    """A task as everybody may know it without importing it.

    Parameters
    ----------
    words : str
        What its outputs are, for people.
    recipes : str
        ``module:name`` of the table of its learners.
    learners : tuple of str
        The learners to try first, best first: the default, and the two next best on the corpora of
        ``docs/results.md``. Wheels bring their kernels.
    model : str, optional
        ``module:class`` of its models; None where results are files of weights.
    formats : tuple of str
        Formats of its input files, as ``--format`` names them.
    surface : str, optional
        ``module:name`` of its :class:`hopefear.cli.surface.Surface`; None where verbs that take a
        task do not take this one.
    prepare : str, optional
        ``module:function`` that prepares examples to be learned from; see
        :mod:`hopefear.tasks.prepare`.
    estimator : str, optional
        ``module:class`` of the estimator that goes round a model, by its ``from_model``; None where
        there is none.
    contents : str, optional
        ``module:name`` of the function that gives ``hopefear.read`` what a file holds.
    service : str, optional
        ``module:class`` of the :class:`hopefear.tasks.serving.Service` around its models; None
        where ``hopefear serve`` takes none of them.
    memory : float
        Bytes of memory that training takes for each byte of text, at least (measured on the data
        that takes least, and rounded down); a file that needs more than there is gets refused. 0
        where nobody has measured it.
    larger_than_memory : bool
        Whether it learns from data larger than memory: from caches and from streams.
    """

    words: str
    recipes: str
    learners: tuple[str, ...]
    model: str | None = None
    formats: tuple[str, ...] = ()
    surface: str | None = None
    prepare: str | None = None
    estimator: str | None = None
    contents: str | None = None
    service: str | None = None
    memory: float = 0.0
    larger_than_memory: bool = False

    @property
    def learner(self) -> str:
        """The learner of those who name none."""
        return self.learners[0]


TASKS: dict[str, TaskEntry] = {
    "classify": TaskEntry(
        "one label a line, out of two or more classes",
        "hopefear.recipes.classes:RECIPES",
        ("adagrad-rda", "adagrad", "arow"),
        "hopefear.tasks.classify.model:Model",
        ("svmlight", "tsv", "csv", "json", "fasttext", "vw"),
        "hopefear.cli.classify:SURFACE",
        "hopefear.tasks.classify.prepare:prepare",
        "hopefear.tasks.classify.estimator:Classifier",
        "hopefear.data.python_input:examples_in",
        "hopefear.tasks.classify.answers:ClassifyService",
        memory=0.5,
        larger_than_memory=True,
    ),
    "tag": TaskEntry(
        "one label a token: parts of speech, chunks, names",
        "hopefear.recipes:CHAIN_RECIPES",
        ("nbest-mira", "sapo", "crf"),
        "hopefear.tasks.tag.model:SequenceModel",
        ("columns", "conllu", "crfsuite", "json"),
        "hopefear.cli.tag:SURFACE",
        "hopefear.tasks.tag.prepare:prepare",
        "hopefear.tasks.tag.estimator:Tagger",
        "hopefear.data.python_input:tokens_in",
        "hopefear.tasks.tag.serving:TagService",
        memory=2.0,
        larger_than_memory=True,
    ),
    "rerank": TaskEntry(
        "the best of a list of candidates: parses, translations, transcripts",
        "hopefear.recipes:LIST_RECIPES",
        ("risk", "ftrl", "maxent"),
        "hopefear.tasks.rerank.model:RerankModel",
        ("json", "ptb", "bllip", "moses"),
        "hopefear.cli.rerank:SURFACE",
        "hopefear.tasks.rerank.prepare:prepare",
        "hopefear.tasks.rerank.estimator:Reranker",
        "hopefear.data.python_input:lists_in",
        "hopefear.tasks.rerank.serving:RerankService",
        memory=0.1,
    ),
    "parse": TaskEntry(
        "a head and a relation for every word: dependency trees",
        "hopefear.recipes:TREE_RECIPES",
        ("mira", "perceptron", "swvp"),
        "hopefear.tasks.parse.model:ParseModel",
        ("conllu", "conllx", "columns"),
        "hopefear.cli.parse:SURFACE",
        "hopefear.tasks.parse.prepare:prepare",
        "hopefear.tasks.parse.estimator:Parser",
        "hopefear.data.python_input:trees_in",
        "hopefear.tasks.parse.answers:ParseService",
        memory=2.0,
    ),
    "tune": TaskEntry(
        "weights of a decoder's features, from its N-best lists",
        "hopefear.translation.recipes:TUNE_RECIPES",
        ("kbmira", "pro", "risk"),
    ),
}
# Where installed packages name the tasks they bring: NAME = "module:ENTRY", a `TaskEntry`.
ENTRY_POINTS = "hopefear.tasks"


def find_tasks() -> None:
    """Enter the tasks that installed packages bring; one that cannot be loaded is warned of."""
    from importlib.metadata import entry_points

    for point in entry_points(group=ENTRY_POINTS):
        if point.name not in TASKS:
            try:
                TASKS[point.name] = point.load()
            except Exception as error:
                warnings.warn(
                    f"the task {point.name!r} is left out: its entry point {point.value} cannot "
                    f"be loaded ({type(error).__name__}: {error})",
                    stacklevel=2,
                )


def named_object(place: str) -> Any:
    """The object at ``module:name``.

    >>> named_object("hopefear.errors:HopefearError").__name__
    'HopefearError'
    """
    module, name = place.split(":")
    return getattr(importlib.import_module(module), name)


def recipes_of(task: str) -> Mapping[str, Any]:
    """All learners of a task, by name.

    >>> "sapo" in recipes_of("tag"), "mert" in recipes_of("tune")
    (True, True)
    """
    return named_object(TASKS[task].recipes)


def recipe(name: str, task: str = "classify") -> Any:
    """The recipe of that name for a task.

    >>> recipe("arow").rule.__name__, recipe("sapo", "tag").loss.__name__
    ('AROW', 'SAPO')
    """
    table = recipes_of(task)
    if name in table:
        return table[name]
    others = [other for other in TASKS if name in recipes_of(other)]
    if others:
        raise HopefearError(
            f"{name} is a learner for the task {' and '.join(others)}, not for {task}; "
            f"there are {', '.join(table)}"
        )
    near = difflib.get_close_matches(name, table, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(table))}"
    raise HopefearError(f"hopefear has no learner {name!r}; {hint}")


def model_from_parts(name: Any, header: dict[str, Any], arrays: dict[str, Any]) -> Any:
    """The model of whichever task the header of its file names; ``name`` is for errors."""
    task = header.get("task")
    if isinstance(task, str) and task not in TASKS:
        find_tasks()
    entry = TASKS.get(task) if isinstance(task, str) else None
    if entry is None or entry.model is None:
        known = [name for name, entry in TASKS.items() if entry.model is not None]
        raise ModelError(
            f"{os.fspath(name)} is a model for the task {task!r:.60}, which this version does not "
            f"know; it knows {', '.join(known)}"
        )
    from hopefear.storage import untrusted  # with numpy, which asking for help need not load

    with untrusted(os.fspath(name)):
        return named_object(entry.model).from_file_parts(header, arrays)


def estimator_of(model: Any) -> Any:
    """The estimator around a model; the model itself where its task has none."""
    place = TASKS[model.task].estimator
    return model if place is None else named_object(place).from_model(model)


def service_of(model: Any, tagger: Any = None) -> Any:
    """The :class:`hopefear.tasks.serving.Service` around a model.

    ``tagger`` is an estimator that gives words their tags, where the model needs some.
    """
    place = TASKS[model.task].service
    if place is None:
        raise HopefearError(f"nothing answers requests to models of the task {model.task}")
    return named_object(place)(model, tagger)
