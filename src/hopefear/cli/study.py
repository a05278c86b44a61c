"""Several learners on the same data: trained, tested, tabled and drawn, for compare and demo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hopefear.classification import Trained, train
from hopefear.cli.console import Console
from hopefear.data.sparse import SparseDataset
from hopefear.metrics import Accuracy, approximate_randomisation, classification_scores
from hopefear.model import probabilities
from hopefear.report import Page, Plot

COLUMNS = ("learner", "error", "F1", "non-zeros kept", "non-zeros last", "s/pass", "p")
_PIECES = 20


@dataclass
class Result:
    """A learner's run, and how it did on the test data."""

    name: str
    trained: Trained
    events: list[dict[str, Any]]
    scores: dict[str, Any]
    right: np.ndarray  # a row of statistics for each test example
    p_value: float | None = None  # of the difference to the best learner; None for that one
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Of the fastest pass, so that compilation does not count."""
        return min(e["seconds"] for e in self.events if "seconds" in e)

    def row(self) -> list[Any]:
        last = self.trained.fit.trainer.support()[0]
        p = "best" if self.p_value is None else f"{self.p_value:.4f}"
        return [
            self.name,
            f"{self.scores['error']:.2f}",
            f"{self.scores['f1']:.2f}",
            self.trained.model.nnz,
            last,
            f"{self.seconds:.4f}",
            p,
        ]

    def facts(self) -> dict[str, Any]:
        """What ``--json`` says."""
        kept = ("error", "accuracy", "f1", "precision", "recall", "log_loss")
        return {
            "learner": self.name,
            **{key: self.scores[key] for key in kept},
            "nnz": self.trained.model.nnz,
            "last_nnz": self.trained.fit.trainer.support()[0],
            "seconds_per_pass": self.seconds,
            "p_value": self.p_value,
            "signature": self.trained.model.signature,
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
            pieces=_PIECES,
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
        results.append(Result(label, trained, events, found, right, settings=dict(settings)))
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
    page.figures(plots(results))


def plots(results: Sequence[Result]) -> list[Plot]:
    """Mistakes, test error and sparsity while training, and the trade between the last two."""
    mistakes = Plot("Mistakes while training", "samples", "mistakes so far")
    error = Plot("Test error after each pass", "samples", "error in percent")
    sparsity = Plot("Sparsity while training", "samples", "non-zero weights")
    trade = Plot(
        "Error against sparsity", "non-zero weights kept", "error in percent", x_scale="log"
    )
    for look, result in enumerate(results):
        moments = [e["samples"] for e in result.events]
        passes = [e for e in result.events if "dev" in e]
        mistakes.line(moments, [e["mistakes"] for e in result.events], result.name, look=look)
        sparsity.line(moments, [e["nnz"] for e in result.events], result.name, look=look)
        if passes:
            error.line(
                [e["samples"] for e in passes],
                [e["dev"]["error"] for e in passes],
                result.name,
                look=look,
            )
        trade.points(
            [max(1, result.trained.model.nnz)], [result.scores["error"]], result.name, look=look
        )
    return [mistakes, error, sparsity, trade]


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
