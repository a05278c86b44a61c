"""Several learners of classes on the same data: trained, tested, tabled and drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hopefear.cli import study as shared
from hopefear.cli.console import Console
from hopefear.data.sparse import SparseDataset
from hopefear.metrics import Accuracy, approximate_randomisation, classification_scores
from hopefear.report import Page, Plot
from hopefear.tasks.classify.task import train
from hopefear.training.answers import probabilities

COLUMNS = ("learner", "error", "F1", "non-zeros kept", "non-zeros last", "s/pass", "p")


@dataclass
class Result(shared.Result):
    """A learner's run, with its decisions."""

    # A row of statistics for each test example.
    right: np.ndarray = field(default_factory=lambda: np.empty(0))

    def row(self) -> list[Any]:
        return [
            self.name,
            f"{self.scores['error']:.2f}",
            f"{self.scores['f1']:.2f}",
            self.nnz,
            self.last_nnz,
            f"{self.seconds:.4f}",
            self.p,
        ]

    def facts(self) -> dict[str, Any]:
        """What ``--json`` says."""
        kept = ("error", "accuracy", "f1", "precision", "recall", "log_loss")
        return {
            "learner": self.name,
            **{key: self.scores[key] for key in kept},
            **self.shared_facts(),
        }


def study(
    wanted: Sequence[tuple[str, str, Mapping[str, Any]]],
    data: SparseDataset,
    test: SparseDataset,
    console: Console,
    settings: Mapping[str, Any],
    bounds: Sequence[str] = (),
) -> list[Result]:
    """Train every (label, learner, parameters) on the data and test it.

    Parameters
    ----------
    settings : mapping
        Arguments of ``train`` that all share.
    bounds : sequence of str
        Labels whose mistakes are watched beside their bounds.
    """
    results = []
    for label, learner, params in wanted:
        events: list[dict[str, Any]] = []
        # A vote replays the past for every row: once, at the end, is enough.
        dev = None if params.get("readout") == "voted" else test
        trained = train(
            data,
            learner,
            params,
            dev=dev,
            on_event=[events.append],
            trace=True,
            pieces=shared.PIECES,
            bounds=label in bounds,
            **settings,
        )
        outputs, scores = trained.model.decide(test)
        found = classification_scores(
            test.rows.labels,
            outputs,
            n_classes=len(data.classes),
            probabilities=probabilities(trained.model.predictor, scores),
        )
        right = Accuracy().rows(test.rows.labels, outputs)
        results.append(Result(label, trained, events, found, right=right))
        console.say(f"  {label}: error {found['error']:.2f} %, {trained.model.nnz:,} non-zeros")
    _test_differences(results)
    return results


def page_section(page: Page, title: str, text: str, results: Sequence[Result]) -> None:
    """Add the table and the curves of a study to a page."""
    page.section(title).text(text)
    page.table(
        list(COLUMNS),
        [r.row() for r in results],
        "Test error and F1 in percent.",
        highlight={"error": "min", "F1": "max"},
        notes=[
            "non-zeros kept: of the model; last: of the last weights, which averaging "
            "and voting blur.",
            "s/pass: learning time of the fastest pass. p: how often a difference to the "
            "best error as large as this comes about by chance (randomisation test).",
        ],
    )
    page.figures(shared.plots(results, "error", "error"))


def bounds_plot(result: Result) -> Plot:
    """Mistakes of a watched run beside Theorem 1."""
    seen = [e for e in result.events if e.get("bound")]
    plot = Plot(f"Mistakes of {result.name} against the bound", "samples", "mistakes")
    plot.line([e["samples"] for e in seen], [e["bound"]["mistakes"] for e in seen], "mistakes")
    limits = [
        (e["samples"], e["bound"]["theorem1"]) for e in seen if e["bound"]["theorem1"] is not None
    ]
    plot.line([x for x, _ in limits], [y for _, y in limits], "Theorem 1", dashed=True)
    return plot


def _test_differences(results: Sequence[Result]) -> None:
    best = min(results, key=lambda r: r.scores["error"])
    for result in results:
        if result is not best:
            result.p_value = approximate_randomisation(
                Accuracy(), best.right, result.right, "accuracy", replicates=2000
            ).p_value
