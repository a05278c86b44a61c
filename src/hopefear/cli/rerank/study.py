"""Several rerankers on the same lists: trained, tested, tabled and drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from hopefear.cli import study as shared
from hopefear.cli.console import Console, scored
from hopefear.cli.rerank.words import shown_score
from hopefear.data.lists.dataset import ListDataset
from hopefear.metrics.lists import ListMetric, compare_lists
from hopefear.report import Page
from hopefear.tasks.rerank.judging import counts_of
from hopefear.tasks.rerank.task import metric_of, scores, train
from hopefear.training.stopping import Stopping

_SAMPLES = 2000


@dataclass
class Result(shared.Result):
    """A reranker's run, with its choices."""

    without_p: ClassVar[str] = "first"

    main: str = "cost"
    chosen: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    test: dict[str, Any] = field(default_factory=dict)  # against the first learner

    def row(self) -> list[Any]:
        return [
            self.name,
            scored(self.main, self.scores[self.main]),
            f"{self.scores['oracle_rate']:.2f}",
            self.nnz,
            self.last_nnz,
            f"{self.seconds:.4f}",
            self.p,
        ]

    def facts(self) -> dict[str, Any]:
        """What ``--json`` says."""
        against = {key: self.test.get(key) for key in ("difference", "low", "high")}
        return {
            "learner": self.name,
            **self.scores,
            **self.shared_facts(),
            "p_randomisation": self.test.get("p_randomisation"),
            "against_first": against if self.test else None,
            "best_epoch": self.trained.fit.best_epoch,
        }


def columns(results: Sequence[Result]) -> list[str]:
    """Heads of the table."""
    score = shown_score(results[0].main)
    return ["learner", score, "oracle first", "non-zeros kept", "non-zeros last", "s/pass", "p"]


def study(
    wanted: Sequence[tuple[str, str, Mapping[str, Any]]],
    data: ListDataset,
    test: ListDataset,
    console: Console,
    settings: Mapping[str, Any],
    dev: ListDataset | None = None,
    patience: int = 3,
) -> list[Result]:
    """Train every (label, learner, parameters) on the data and test it.

    Parameters
    ----------
    wanted, data, test, console
        The learners, what they learn from and are tested on, and where it is told.
    settings : mapping
        Arguments of ``train`` that all share.
    dev : ListDataset, optional
        Chooses the pass that is kept; without it that is the last one.
    patience : int
        Passes without a better score on ``dev`` before training ends.
    """
    results: list[Result] = []
    metric = metric_of(settings.get("metric"), test)
    for label, learner, params in wanted:
        events: list[dict[str, Any]] = []
        # A vote replays the past for every list: once, at the end, is enough.
        watched = None if params.get("readout") == "voted" else test
        trained = train(
            data,
            learner,
            params,
            dev=watched if dev is None else dev,
            stopping=None if dev is None else Stopping(metric.main, patience),
            on_event=[events.append],
            trace=True,
            pieces=shared.PIECES,
            **settings,
        )
        best = trained.model.predict(test)
        found = scores(test, best, metric)
        results.append(Result(label, trained, events, found, main=metric.main, chosen=best))
        console.say(
            f"  {label}: {shown_score(metric.main)} {scored(metric.main, found[metric.main])}, "
            f"{trained.model.nnz:,} non-zeros"
        )
    _test_differences(results, test, metric)
    return results


def limits(test: ListDataset, first: np.ndarray, metric: ListMetric) -> dict[str, float]:
    """What the generator's candidates, at the positions ``first``, and the oracle score."""
    found = {"1-best": first, "oracle": np.asarray(test.rows.oracles, np.int64)}
    return {name: scores(test, best, metric)[metric.main] for name, best in found.items()}


def page_section(
    page: Page, title: str, text: str, results: Sequence[Result], metric: ListMetric, held: str
) -> None:
    """Add the table and the curves of a study to a page; ``held`` was scored after each pass."""
    name, higher = shown_score(metric.main), metric.higher
    page.section(title).text(text)
    page.table(
        columns(results),
        [r.row() for r in results],
        f"{name} of the chosen candidates of the test lists; {'more' if higher else 'less'} is "
        "better.",
        highlight={name: "max" if higher else "min", "oracle first": "max"},
        notes=[
            "oracle first: lists, in percent, where the choice is as cheap as the cheapest.",
            "non-zeros kept: of the model; last: of the last weights, which averaging blurs.",
            "s/pass: learning time of the fastest pass. p: how often a difference to the first "
            "learner as large as this comes about by chance (paired bootstrap over lists).",
        ],
    )
    unit = "" if metric.main == "cost" else " in percent"
    page.figures(shared.plots(results, metric.main, name, unit=unit, held=held))


def _test_differences(results: Sequence[Result], test: ListDataset, metric: ListMetric) -> None:
    first, counts = results[0], counts_of(test, metric)
    for result in results[1:]:
        result.test = compare_lists(
            metric, counts, test.rows.starts, result.chosen, first.chosen, samples=_SAMPLES
        )
        result.p_value = result.test["p_bootstrap"]
