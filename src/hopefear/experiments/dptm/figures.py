"""Figures 7 and 8 of the paper, drawn from our numbers."""

from __future__ import annotations

from hopefear.experiments.dptm.choosing import at_most
from hopefear.experiments.dptm.measuring import DECODER, RETUNED, Measured
from hopefear.experiments.dptm.plan import RULES, Plan
from hopefear.experiments.dptm.problems import label
from hopefear.experiments.dptm.runs import LINE, MERT
from hopefear.report.plot import Plot

SWEPT = ("vrda-risk", "tg-risk")


def frontier(made: Measured, plan: Plan, where: str, how: str) -> Plot:
    """The best of each with at most so many weights, as chosen on development lists."""
    added = "all weights by MERT" if how == MERT else "the model's weight alone"
    plot = Plot(f"{label(where)}, {added}", "non-zero weights, mean", "BLEU", "log", "linear")
    for look, key in enumerate(SWEPT):
        x, y, spread = [], [], []
        for level in plan.levels:
            if (name := at_most(key, level)) in made.scored:
                found = made.bleus(name, where, how)
                x.append(made.nnz(name))
                y.append(float(found.mean()))
                spread.append(float(found.std()))
        low, high = ([v + s * d for v, d in zip(y, spread, strict=True)] for s in (-1.0, 1.0))
        plot.line(x, y, RULES[key.split("-")[0]], band=(low, high), look=look)
    plot.hline(float(made.bleus(DECODER, where).mean()), "decoder")
    if how == MERT:
        plot.hline(float(made.bleus(RETUNED, where).mean()), "tuned anew")
    return plot


def settings(made: Measured) -> Plot:
    """Every setting that was tried, on development lists."""
    plot = Plot("all settings", "non-zero weights", "BLEU on development lists", "log", "linear")
    for look, key in enumerate(SWEPT):
        found = [t for t in made.sweeps[key] if t.nnz > 0]
        plot.points(
            [t.nnz for t in found], [t.dev for t in found], RULES[key.split("-")[0]], look=look
        )
    plot.hline(made.dev(DECODER, LINE), "decoder")
    return plot
