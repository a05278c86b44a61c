"""What tuning came to: for programs, for people, as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hopefear.cli.console import Console
from hopefear.cli.train import time_taken
from hopefear.data.moses.lists import TuningLists
from hopefear.metrics.lists import ListMetric
from hopefear.report import Page, Plot
from hopefear.report.runs import as_number, look_up
from hopefear.translation.scoring import best
from hopefear.translation.task import Tuning
from hopefear.translation.weights import Weights, changes

OTHERS = 20  # weights of features that are not dense, shown at most
Change = tuple[str, float, float]
_SETS = {"train": "tuning lists", "dev": "held-out lists"}


@dataclass(frozen=True)
class Outcome:
    """Weights found on lists.

    Parameters
    ----------
    tuning : Tuning
        What was found.
    weights : Weights
        What is written: with no added features any more.
    before : Weights
        What to compare with.
    lists : TuningLists
        What was tuned on.
    first : mapping
        Scores of the decoder's own first choices, where these are known, by set of lists.
    """

    tuning: Tuning
    weights: Weights
    before: Weights
    lists: TuningLists
    first: Mapping[str, float]

    def facts(self) -> dict[str, Any]:
        """Everything by name; scores of held-out lists begin with ``dev_``."""
        tuning, main = self.tuning, self.tuning.metric.main
        scores: dict[str, Any] = {}
        for name, before in tuning.before.items():
            of = "" if name == "train" else f"{name}_"
            scores |= {
                f"{of}{main}": tuning.after[name],
                f"{of}{main}_before": before,
                f"{of}oracle_{main}": tuning.oracle[name],
                f"{of}baseline_{main}": self.first.get(name),
            }
        about = self.weights.about
        return {
            **scores,
            "metric": main,
            "learner": about["learner"],
            "parameters": about["parameters"],
            "signature": tuning.signature,
            "metric_signature": about["metric"],
            "seed": tuning.chosen.seed,
            "rounds": len(tuning.history),
            "best_round": tuning.chosen.tuned.best_epoch,
            "nnz": self.weights.nnz,
            "features": about["data"]["features"],
            "lists": len(self.lists),
            "candidates": self.lists.n_candidates,
            "dropped": self.lists.dropped,
            "spread": self.spread(),
            "runs": [
                {"seed": run.seed, main: run.train, f"dev_{main}": run.dev} for run in tuning.runs
            ],
            **({"added": about["added"]} if "added" in about else {}),
            "changes": [
                {"name": name, "before": old, "after": new} for name, old, new in self.moved()
            ],
        }

    def spread(self) -> dict[str, dict[str, float]]:
        """How seeds and restarts differ, where there were several."""
        runs = self.tuning.runs
        spreads = {}
        if len(runs) > 1:
            spreads["seeds"] = spread_of([run.train for run in runs])
            dev_scores = [run.dev for run in runs if run.dev is not None]
            if dev_scores:
                spreads["seeds, held out"] = spread_of(dev_scores)
        if len(restarts := self.tuning.chosen.tuned.runs) > 1:
            spreads["restarts"] = spread_of(restarts)
        return spreads

    def moved(self) -> list[Change]:
        """How the weights changed, added features among them."""
        return moved(self.before, self.tuning.weights)

    def show(self, console: Console, result: Mapping[str, Any], compiling: float) -> None:
        """Tables for people."""
        console.say()
        console.table(*self.scores(), along={"before", "after"}, higher=self.tuning.metric.higher)
        if self.lost():
            console.say(self.loss())
        if result["spread"]:
            console.say()
            console.table(*self.spreads(result))
        console.say()
        console.table(*self.weights_table())
        console.say()
        console.pairs(
            {
                "best round": self.best_round(),
                "tuned": f"{result['features']:,} features",
                "non-zeros": f"{result['nnz']:,}",
                "time": time_taken(result["seconds"], compiling),
                "weights": result["weights"],
                "signature": result["signature"],
                "metric": result["metric_signature"],
            }
        )

    def lost(self) -> bool:
        """Whether the weights at the start are better, on held-out lists where there are any."""
        before, after = self.tuning.before, self.tuning.after
        judge = "dev" if "dev" in after else "train"
        gain = after[judge] - before[judge]
        return gain < 0.0 if self.tuning.metric.higher else gain > 0.0

    def loss(self) -> str:
        """What to do about weights that score worse than those at the start."""
        if "dev" in self.tuning.after:
            return "these weights score worse than those at the start: try another learner"
        return (
            "these weights score worse here than those at the start, which says little if those "
            "were tuned on the same lists: hold some out to choose (--held-out 0.2), or try "
            "another learner"
        )

    def best_round(self) -> str | None:
        """Which round the weights are from."""
        tuned, seed = self.tuning.chosen.tuned, ""
        if len(self.tuning.runs) > 1:
            seed = f", of seed {self.tuning.chosen.seed}"
        if tuned.best_epoch is None:
            return seed.removeprefix(", of ") or None
        if tuned.best_epoch == 0:
            return f"none beat the start, which is kept (-p keep=last keeps the last){seed}"
        return f"{tuned.best_epoch} of {len(tuned.history)}{seed}"

    def scores(self) -> tuple[list[str], list[list[Any]]]:
        """Columns and rows: the metric by set of lists."""
        tuning = self.tuning
        rows = [
            [
                _SETS[name],
                *(
                    None if value is None else f"{value:.2f}"
                    for value in (self.first.get(name), before, tuning.after[name])
                ),
                f"{tuning.after[name] - before:+.2f}",
                f"{tuning.oracle[name]:.2f}",
            ]
            for name, before in tuning.before.items()
        ]
        return [tuning.metric.main, "decoder 1-best", "before", "after", "change", "oracle"], rows

    def spreads(self, result: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
        """Columns and rows: how seeds and restarts differ."""
        rows = [
            [name, *(f"{scores[key]:.2f}" for key in ("min", "mean", "max", "std")), scores["n"]]
            for name, scores in result["spread"].items()
        ]
        return ["spread over", "min", "mean", "max", "std", "n"], rows

    def weights_table(self) -> tuple[list[str], list[list[Any]]]:
        """Columns and rows: weights before and after."""
        return weights_table(self.before, self.tuning.weights)

    def page(self, result: Mapping[str, Any]) -> Page:
        """The same with curves."""
        from hopefear.cli.tune.outcome import page_of

        return page_of(self, result)


def moved(before: Weights, after: Weights) -> list[Change]:
    """All dense weights in their order, then the largest changes of others."""
    pairs = {name: (old, new) for name, old, new in changes(before, after)}
    others = [name for name in pairs if name not in after.names][:OTHERS]
    return [(name, *pairs[name]) for name in (*after.names, *others)]


def weights_table(before: Weights, after: Weights) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows: weights before and after, and shares of all dense ones."""
    entries, dense = moved(before, after), set(after.names)
    # Choices do not depend on the length of weights, so that shares tell more than changes.
    sums = [
        sum(abs(old) for name, old, _ in entries if name in dense),
        sum(abs(new) for name, _, new in entries if name in dense),
    ]
    rows = [
        [
            name,
            f"{old:.6f}",
            f"{new:.6f}",
            f"{new - old:+.6f}",
            *(
                f"{100.0 * value / total:.1f}" if total and name in dense else None
                for value, total in zip((old, new), sums, strict=True)
            ),
        ]
        for name, old, new in entries
    ]
    return ["weight", "before", "after", "change", "% before", "% after"], rows


def spread_of(values: Sequence[float]) -> dict[str, float]:
    """Least, mean, most, standard deviation and how many."""
    numbers = np.asarray(values, np.float64)
    return {
        "min": float(numbers.min()),
        "mean": float(numbers.mean()),
        "max": float(numbers.max()),
        "std": float(numbers.std(ddof=1)),
        "n": len(numbers),
    }


def first_choices(lists: TuningLists, metric: ListMetric) -> float:
    """Score of the candidates that the decoder scored highest."""
    assert lists.counts is not None
    choice = lists.starts[:-1] + best(lists.scores, lists)
    return float(metric.scores(lists.counts[choice].sum(axis=0))[metric.main])


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
