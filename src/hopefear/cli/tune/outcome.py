"""What tuning came to: for programs, for people, as a page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from hopefear.cli.console import Console
from hopefear.cli.origin import hashed, versions
from hopefear.cli.train import time_taken
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.moses.word_hashes import read_sentences
from hopefear.report import Page, Plot, Run, disagreements
from hopefear.translation.error_examples import judgements
from hopefear.translation.task import Tuning, compare, evaluate
from hopefear.translation.weights import Weights, changes

_BARS = 30  # dense features that are drawn
OTHERS = 20  # weights of features that are not dense, shown at most
# Options that name files to read.
FILES = ("nbest", "refs", "source", "dev_nbest", "dev_refs", "dev_source", "fixed")
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
    lists : CandidateLists
        What was tuned on.
    first : mapping
        Scores of the decoder's own first choices, where these are known, by set of lists.
    sets : mapping
        Tuning and held-out lists, with the scores of added models, for the page.
    files : mapping
        Files that were read, by option.
    """

    tuning: Tuning
    weights: Weights
    before: Weights
    lists: CandidateLists
    first: Mapping[str, float]
    sets: Mapping[str, CandidateLists] = field(default_factory=dict, repr=False)
    files: Mapping[str, Any] = field(default_factory=dict, repr=False)

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
        """The same with curves, and with the sentences that changed."""
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


def page_of(outcome: Outcome, result: Mapping[str, Any]) -> Page:
    """What an outcome holds, as a page."""
    tuning = outcome.tuning
    page = Page(
        f"Tuning with {result['learner']}",
        f"{result['lists']:,} lists, {result['candidates']:,} candidates",
        signature=f"{result['signature']}\n{result['metric_signature']}",
    )
    page.section("Scores")
    columns, rows, notes = _tested(outcome)
    page.table(columns, rows, "Under the weights before and after.", align="lr", notes=notes)
    if outcome.lost():
        page.text(f"**{outcome.loss()[:1].upper()}{outcome.loss()[1:]}.**")
    if result["spread"]:
        page.table(*outcome.spreads(result), "How seeds and restarts differ.")
    _curves(page, outcome)
    page.section("Weights")
    add_weights(page, outcome.before, tuning.weights)
    _sentences(page, outcome)
    page.section("Data").keyvalues(_sizes(outcome))
    page.section("Origin").keyvalues(
        {
            "learner": result["learner"],
            **result["parameters"],
            "seed": result["seed"],
            "best round": outcome.best_round(),
            "features": result["features"],
            "non-zeros": result["nnz"],
            "seconds": result["seconds"],
            "costs": tuning.metric.cost_signature(),
            **origin(outcome.files),
        }
    )
    return page


def origin(files: Mapping[str, Any]) -> dict[str, Any]:
    """Files by content, and versions."""
    read = {
        name.replace("_", " "): [hashed(path) for path in ([paths] if one else paths)]
        for name, paths in files.items()
        if paths
        for one in [isinstance(paths, str)]
    }
    return {**read, "versions": versions()}


def _tested(outcome: Outcome) -> tuple[list[str], list[list[Any]], list[str]]:
    """The table of scores with intervals, and tests of the difference."""
    tuning = outcome.tuning
    columns, rows = outcome.scores()
    columns[1] = "1-best"
    heads = ["95 % interval", "its 95 % interval", "p"]
    more: list[list[Any]] = []
    signatures = []
    for lists in outcome.sets.values():
        after = evaluate(lists, tuning.weights, metric=tuning.metric).model
        test = compare(lists, tuning.weights, outcome.before, metric=tuning.metric)
        signatures.append(str(test["signature"]))
        bounds = f"{test['low']:+.2f} to {test['high']:+.2f}".replace("-", "−")
        p_value = f"{test['p_randomisation']:.4f}"
        more.append([f"{after.low:.2f} to {after.high:.2f}", bounds, p_value])
    if not more:
        return columns, rows, []
    table = [
        [*row[:4], own[0], row[4], *own[1:], row[5]] for row, own in zip(rows, more, strict=True)
    ]
    notes = [
        "1-best is the decoder's own choice, the oracle the best there is. Intervals are those of "
        "resamples of whole lists, p is how often a change as large comes about by chance "
        "(approximate randomisation). Lists that were tuned on say little of others.",
        *(f"`{signature}`" for signature in dict.fromkeys(signatures)),
    ]
    return [*columns[:4], heads[0], columns[4], *heads[1:], columns[5]], table, notes


_TITLES = {"train": "Tuning lists", "dev": "Held-out lists"}


def _curves(page: Page, outcome: Outcome) -> None:
    """Scores by round and by second, of which the reader chooses."""
    parts = {}
    for clock in ("rounds", "seconds"):
        plots = [_rounds(outcome, name, title, clock) for name, title in _TITLES.items()]
        if plots := [plot for plot in plots if plot.series]:
            parts[clock] = partial(page.figures, plots)
    if parts:
        page.section("Round by round").choices("Along", parts, next(iter(parts)))


def _rounds(outcome: Outcome, name: str, title: str, clock: str) -> Plot:
    main, runs = outcome.tuning.metric.main, outcome.tuning.runs
    plot = Plot(title, clock if clock == "rounds" else "seconds of tuning", main)
    for run in runs:
        history = Run("", {}, run.tuned.history, [])
        x, y = history.curve(name, main, clock="epoch" if clock == "rounds" else clock)
        if x:
            plot.line(x, y, main if len(runs) == 1 else f"seed {run.seed}")
    if plot.series:
        plot.hline(outcome.tuning.before[name], "before")
    return plot


def add_weights(page: Page, before: Weights, after: Weights) -> None:
    """Weights before and after: shares of the dense ones as bars, and all as a table."""
    columns, rows = weights_table(before, after)
    dense = [row for row in rows if row[4] is not None and row[5] is not None][:_BARS]
    if len(dense) > 1:
        plot = Plot("Shares of all dense weights, in percent", y_label="% of the sum of |weight|")
        names = [row[0] for row in dense]
        plot.bars(names, [float(row[4]) for row in dense], group="before")
        page.plot(plot.bars(names, [float(row[5]) for row in dense], group="after"))
    page.table(
        columns,
        rows,
        "Dense features with their shares of all dense weights, and the largest changes of others.",
    )


def _sentences(page: Page, outcome: Outcome) -> None:
    """The lists from which other candidates are chosen now."""
    name, lists = list(outcome.sets.items())[-1]
    if not lists.texts:
        return
    before, after = ("before", outcome.before), ("after", outcome.tuning.weights)
    both = judgements(lists, outcome.tuning.metric, before, after, _texts(outcome, name))
    shared = disagreements(both)
    page.section("Sentences")
    if not shared.differ:
        page.text(f"Of all {_SETS[name]} the choices are as good as before.")
        return
    worse, better = shared.ahead[0][1], shared.ahead[1][0]
    page.text(
        f"Of {len(lists):,} {_SETS[name]} {better:,} have a better choice than before and "
        f"{worse:,} a worse one, by the cost of single sentences "
        f"(`{outcome.tuning.metric.cost_signature()}`; less is better). Words that the other "
        "choice lacks are marked; below, the best candidates under these weights with their scores "
        "(✓ is the cheapest), and the features that put one before the other."
    )
    page.cases(shared)


def _texts(outcome: Outcome, name: str) -> dict[str, list[str]]:
    """Sentences and references that belong to lists, where they can be read again."""
    own = name == "dev" and outcome.files.get("dev_nbest")
    texts: dict[str, list[str]] = {}
    for title, option in (("source", "source"), ("reference", "refs")):
        paths = outcome.files.get(f"dev_{option}" if own else option)
        for k, path in enumerate([paths] if isinstance(paths, str) else paths or ()):
            if os.path.isfile(path):
                texts[title if k == 0 else f"{title} {k + 1}"] = read_sentences(path).lines()
    most = 1 + max(map(int, outcome.sets[name].ids), default=-1)
    return {title: lines for title, lines in texts.items() if len(lines) >= most}


def _sizes(outcome: Outcome) -> dict[str, Any]:
    sizes: dict[str, Any] = {}
    for name, lists in outcome.sets.items():
        lengths = np.diff(lists.starts)
        sizes[_SETS[name]] = (
            f"{len(lists):,}, with {lengths.mean():.1f} candidates on average, {lengths.min()} to "
            f"{lengths.max()}"
        )
    lists = outcome.lists
    sizes["left out as equal"] = f"{lists.dropped:,}"
    sizes["references"] = lists.n_references if lists.n_references > 0 else "of different number"
    sizes["dense features"] = len(lists.names)
    for title, entries in (("sparse features", lists.sparse), ("phrase pairs", lists.phrases)):
        if entries is not None:
            sizes[title] = len(entries.names)
    return sizes
