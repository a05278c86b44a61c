"""The paper's figures, drawn from our numbers; one plot a task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hopefear.experiments.sapo.measuring import Measured
from hopefear.experiments.sapo.plan import (
    AVERAGED,
    AVERAGES,
    CRF,
    CRF_AVERAGED,
    ENTRIES,
    EXTRAS,
    LAST,
    NAIVE,
    SAPO,
    SAPO_AVERAGED,
    Entry,
)
from hopefear.report.plot import Plot

LOOKS = {entry.title: look for look, entry in enumerate(ENTRIES)}
NAMES = {"f1": "F, %", "accuracy": "accuracy, %"}


def figure_1(made: Measured) -> Plot:
    """SAPO and CRF by pass; dashed are their averages, which the paper does not have."""
    return _curves(made, (SAPO, CRF, SAPO_AVERAGED, CRF_AVERAGED), f"{made.name}: SAPO and CRF")


def figure_2(made: Measured, naive: bool) -> Plot:
    """SAPO beside perceptron and MIRA, by pass."""
    which, word = (NAIVE, "naive") if naive else (AVERAGES, "averaged")
    return _curves(made, (SAPO, *which), f"{made.name}: {word}")


def figure_3(made: Measured) -> Plot:
    """Mean size of the weights by pass."""
    plot = Plot(f"{made.name}", "pass", "mean |w|", y_scale="log")
    for entry in (SAPO, CRF, *NAIVE, *AVERAGES):
        sizes = made.magnitude(entry)
        passes = np.arange(1, sizes.size + 1)
        plot.line(passes, sizes, entry.title, entry in AVERAGES, look=LOOKS[entry.title])
    return plot


def figure_4(made: Measured) -> Plot:
    """CPU seconds a pass."""
    entries = [e for e in ENTRIES if e.timing in made.times]
    plot = Plot(made.name, "", "CPU seconds a pass")
    plot.bars([_short(e) for e in entries], [made.seconds(e) for e in entries], look=0)
    return plot


def scores_by_n(made: Measured) -> Plot:
    """Score at the last pass by n, mean and deviation over seeds."""
    plot = Plot(made.name, "n", f"test {NAMES[made.metric]}", x_scale="log")
    for kept, name, entry in ((LAST, "SAPO", CRF), (AVERAGED, "SAPO-Avg", CRF_AVERAGED)):
        found = np.array([[r.scores[kept, -1] for r in runs] for runs in made.by_n.values()])
        mean, std = found.mean(axis=1), found.std(axis=1)
        band = (mean - std, mean + std)
        plot.line(list(made.by_n), mean, name, kept == AVERAGED, band, look=LOOKS[name])
        plot.hline(float(made.curve(entry)[:, -1].mean()), entry.title)
    return plot


def seconds_by_n(made: Measured) -> Plot:
    """CPU seconds a pass by n."""
    plot = Plot(made.name, "n", "CPU seconds a pass", x_scale="log", y_scale="log")
    plot.line(list(made.by_n), [seconds_of(runs) for runs in made.by_n.values()], "SAPO", look=0)
    return plot.hline(seconds_of(made.runs["crf"]), "CRF")


def seconds_of(runs: Sequence) -> float:
    """CPU seconds of the typical pass of some runs: median over passes, least over seeds."""
    return float(min(np.median(r.seconds) for r in runs))


def _curves(made: Measured, entries: Sequence[Entry], title: str) -> Plot:
    plot = Plot(title, "pass", f"test {NAMES[made.metric]}")
    for entry in entries:
        curve = made.curve(entry)
        mean, std = curve.mean(axis=0), curve.std(axis=0)
        plot.line(
            np.arange(1, mean.size + 1),
            mean,
            entry.title,
            entry in EXTRAS,
            (mean - std, mean + std),
            look=LOOKS[entry.title],
        )
    return plot


def _short(entry: Entry) -> str:
    """Names as under the bars of the paper's Figure 4."""
    return entry.title.replace("-Nbest-", "-N").replace("Naive", "N").replace("Avg", "A")
