"""The hooks of tasks that have no ``prepare`` and ``answers`` of their own yet."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from hopefear.cli.surface import Score, Surface
from hopefear.tasks.prepare import Prepared


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


@dataclass(frozen=True, kw_only=True)
class Adapted(Prepared):
    """A `Corpus` in the form of all tasks."""

    corpus: Any
    args: Any
    console: Any
    has_metrics: bool = False
    read: dict[str, Any] = field(default_factory=dict)

    def sizes(self) -> dict[str, Any]:
        return self.corpus.sizes()

    def held_out(self, examples: str) -> Any:
        if examples not in self.read:
            self.read[examples] = self.corpus.held_out(examples, self.args, self.console)
        return self.corpus.encoded(self.read[examples])

    def of(self, corpus: Any, task: Any) -> Adapted:
        how = {"task": task, "data": corpus.data, "reading": corpus.reading}
        own = getattr(self.args, "metric", None) if self.has_metrics else None
        how["stop_on"] = own or corpus.metric
        return replace(self, corpus=corpus, messages=corpus.remarks, **how)

    def for_learner(self, name: str, params: Mapping[str, Any]) -> Adapted:
        corpus = self.corpus.suiting(name, params)
        return self if corpus is self.corpus else self.of(corpus, corpus.adapted(self.task))

    def rival(self) -> Adapted | None:
        corpus = self.corpus.rival(self.args)
        return None if corpus is None else self.of(corpus, corpus.task(self.args))

    def alone(self) -> Adapted:
        corpus = self.corpus.alone(self.corpus.jobs)
        return replace(self, corpus=corpus, args=None, console=None, read={})

    def judge(self, model: Any, test: Any, n_jobs: int = 1) -> tuple[dict[str, float], Any]:
        return self.corpus.judge(model, test)

    def tester(self) -> Any:
        return self.corpus.tester()


class OldSurface(Surface):
    """A surface whose modules ``corpus``, ``streamed`` and ``use`` stand beside it."""

    def _beside(self, name: str) -> Any:
        return importlib.import_module(f"{type(self).__module__}.{name}")

    def examples(
        self, which: str, args: argparse.Namespace, report: Any, prepared: Any = None
    ) -> Any:
        if which != "train":
            return which
        from hopefear.cli.console import Console

        self.check_memory(args)
        console = Console(args.quiet)
        return self._beside("corpus").read(args, console), args, console

    def prepare(self, examples: Any, options: Mapping[str, Any]) -> Adapted:
        corpus, args, console = examples
        task = corpus.task(args)
        how = {"corpus": corpus, "args": args, "console": console}
        new = Adapted(task=task, data=corpus.data, has_metrics=self.metrics is not None, **how)
        return new.of(corpus, task)

    def stream(self, args: argparse.Namespace, console: Any, report: Any) -> Any:
        return self._beside("streamed").stream(args, console, report)

    def needs_all(self, args: argparse.Namespace) -> str | None:
        return self._beside("streamed").needs_all(args)

    def scores(self, prepared: Any) -> tuple[Score, ...]:
        return prepared.corpus.scores

    def describe(self, prepared: Any) -> str:
        return prepared.corpus.describe()

    def facts(self, prepared: Any) -> dict[str, Any]:
        return prepared.corpus.facts()

    def settings(self, prepared: Any, args: argparse.Namespace) -> dict[str, Any]:
        return prepared.corpus.settings(args)

    def outcome(self, prepared: Any, trained: Any) -> dict[str, Any]:
        return {**prepared.corpus.outcome(trained, {}), "skipped": prepared.corpus.skipped}

    def summary(self, prepared: Any, result: Mapping[str, Any], trained: Any) -> dict[str, Any]:
        return prepared.corpus.summary(result, trained)

    def comparator(self, prepared: Any, args: argparse.Namespace) -> Any:
        return prepared.corpus.comparator(args)

    def tested_on(self, prepared: Any, test: Any) -> str:
        return prepared.corpus.tested_on(test)

    def comparison(self, prepared: Any, test: Any) -> dict[str, Any]:
        return prepared.corpus.comparison(test)

    def each_by(self, prepared: Any) -> tuple[str, bool]:
        return prepared.corpus.each_by

    def shown(self, prepared: Any, test: Any, i: int) -> str:
        return prepared.corpus.shown(test, i)

    def answers(
        self, args: argparse.Namespace, model: Any, console: Any, report: Any
    ) -> Iterable[bytes]:
        return self._beside("use").answers(args, model, console, report)

    def reasons(
        self, args: argparse.Namespace, model: Any, console: Any, report: Any
    ) -> Iterable[bytes]:
        return self._beside("use").reasons(args, model, console, report)

    def __getattribute__(self, name: str) -> Any:
        if name in ("evaluate", "findings", "show_scores", "model_facts", "facts_in_words"):
            return getattr(self._beside("use"), name)
        if name == "show_weights":
            return self._beside("use").show_weights
        return super().__getattribute__(name)
