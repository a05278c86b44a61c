"""A page of one tuning: scores, rounds, spread, weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hopefear.report import Page, Plot
from hopefear.report.runs import as_number, look_up

if TYPE_CHECKING:
    from hopefear.cli.tune.outcome import Outcome


def page_of(outcome: Outcome, result: Mapping[str, Any]) -> Page:
    """What :class:`hopefear.cli.tune.outcome.Outcome` holds, as a page."""
    tuning, main = outcome.tuning, outcome.tuning.metric.main
    page = Page(
        f"Tuning with {result['learner']}",
        f"{result['lists']:,} lists, {result['candidates']:,} candidates",
        signature=f"{result['signature']}\n{result['metric_signature']}",
    )
    page.section("Scores")
    page.table(*outcome.scores(), "Under the weights before and after; the oracle is a choice.")
    if result["spread"]:
        page.table(*outcome.spreads(result), "How seeds and restarts differ.")
    plots = [
        plot
        for name, title in (("train", "Tuning lists"), ("dev", "Held-out lists"))
        if (plot := _rounds(outcome, name, title, main)).series
    ]
    if plots:
        page.section("Round by round").figures(plots)
    page.section("Weights")
    page.table(
        *outcome.weights_table(),
        "Dense features with their shares of all dense weights, and the largest changes of others.",
    )
    page.section("Settings")
    page.keyvalues(
        {
            "learner": result["learner"],
            **result["parameters"],
            "seed": result["seed"],
            "features": result["features"],
            "non-zeros": result["nnz"],
            "seconds": result["seconds"],
            "metric": tuning.metric.cost_signature(),
        }
    )
    return page


def _rounds(outcome: Outcome, name: str, title: str, main: str) -> Plot:
    plot = Plot(title, "round", main)
    runs = outcome.tuning.runs
    for run in runs:
        points = [
            (float(event["epoch"]), score)
            for event in run.tuned.history
            if (score := as_number(look_up(event, name, main))) is not None
        ]
        if points:
            x, y = zip(*points, strict=True)
            plot.line(x, y, main if len(runs) == 1 else f"seed {run.seed}")
    if plot.series:
        plot.hline(outcome.tuning.before[name], "before")
    return plot
