"""Several taggers on the same data: trained, tested, tabled and drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hopefear.cli import study as shared
from hopefear.cli.console import Console
from hopefear.data.sequences import SequenceDataset
from hopefear.metrics import compare_taggings
from hopefear.report import Page
from hopefear.tasks.tag.task import reading_of, scores, train

_SAMPLES = 2000


@dataclass
class Result(shared.Result):
    """A tagger's run, with its labels."""

    metric: str = "accuracy"
    tags: np.ndarray = field(default_factory=lambda: np.empty(0, np.int32))

    def row(self) -> list[Any]:
        spans = [f"{self.scores['f1']:.2f}"] if "f1" in self.scores else []
        return [
            self.name,
            *spans,
            f"{self.scores['accuracy']:.2f}",
            self.nnz,
            self.last_nnz,
            f"{self.seconds:.4f}",
            self.p,
        ]

    def facts(self) -> dict[str, Any]:
        """What ``--json`` says."""
        return {"learner": self.name, **self.scores, **self.shared_facts()}


def columns(results: Sequence[Result]) -> list[str]:
    """Heads of the table."""
    spans = ["F1"] if "f1" in results[0].scores else []
    return ["learner", *spans, "accuracy", "non-zeros kept", "non-zeros last", "s/pass", "p"]


def study(
    wanted: Sequence[tuple[str, str, Mapping[str, Any]]],
    data: SequenceDataset,
    test: SequenceDataset,
    console: Console,
    settings: Mapping[str, Any],
    epochs: int | None = None,
) -> list[Result]:
    """Train every (label, learner, parameters) on the data and test it.

    Parameters
    ----------
    settings : mapping
        Arguments of ``train`` that all share, the scheme among them.
    epochs : int, optional
        Passes of each; without, 10, and of batch learners until they have settled.
    """
    results = []
    scheme = settings.get("scheme")
    metric = "accuracy" if scheme is None else "f1"
    for label, learner, params in wanted:
        events: list[dict[str, Any]] = []
        # A vote replays the past for every sentence: once, at the end, is enough.
        dev = None if params.get("readout") == "voted" else test
        trained = train(
            data,
            learner,
            params,
            epochs=epochs,
            dev=dev,
            on_event=[events.append],
            trace=True,
            pieces=shared.PIECES,
            **settings,
        )
        decoder = trained.model.decoder(n_jobs=settings.get("n_jobs", 1))
        tags = decoder.best(test.rows)
        found = scores(test, tags, scheme)
        results.append(Result(label, trained, events, found, metric=metric, tags=tags))
        shown = "accuracy" if scheme is None else "F1"
        console.say(f"  {label}: {shown} {found[metric]:.2f} %, {trained.model.nnz:,} non-zeros")
    _test_differences(results, test, scheme)
    return results


def page_section(page: Page, title: str, text: str, results: Sequence[Result]) -> None:
    """Add the table and the curves of a study to a page."""
    spans = "f1" in results[0].scores
    page.section(title).text(text)
    page.table(
        columns(results),
        [r.row() for r in results],
        "Span F1 and token accuracy on the test data, in percent."
        if spans
        else "Token accuracy on the test data, in percent.",
        highlight={"F1": "max", "accuracy": "max"} if spans else {"accuracy": "max"},
        notes=[
            "non-zeros kept: of the model; last: of the last weights, which averaging blurs.",
            "s/pass: learning time of the fastest pass. p: how often a difference to the best "
            "as large as this comes about by chance (randomisation of whole sentences).",
        ],
    )
    name = "F1" if spans else "accuracy"
    page.figures(shared.plots(results, results[0].metric, name))


def _test_differences(results: Sequence[Result], test: SequenceDataset, scheme: str | None) -> None:
    best = max(results, key=lambda r: r.scores[r.metric])
    for result in results:
        if result is not best:
            found = compare_taggings(
                test.rows.labels,
                best.tags,
                result.tags,
                test.rows.starts,
                metric=best.metric,
                samples=_SAMPLES,
                labels=test.labels,
                reading=reading_of(scheme),
            )
            result.p_value = found["p_randomisation"]
