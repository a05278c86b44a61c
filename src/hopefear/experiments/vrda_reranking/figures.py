"""The paper's figures, drawn from our numbers."""

from __future__ import annotations

import numpy as np

from hopefear.experiments.vrda_reranking.choosing import at_most
from hopefear.experiments.vrda_reranking.measuring import Measured
from hopefear.experiments.vrda_reranking.plan import Plan, short
from hopefear.experiments.vrda_reranking.runs import f_score
from hopefear.report.plot import Plot

RULES = {"vrda": "VRDA", "tg": "TG"}


def settings(made: Measured, loss: str) -> Plot:
    """Every setting that was tried, on development lists."""
    plot = Plot(
        f"{loss}: all settings", "non-zero weights", "F on development lists, %", "log", "linear"
    )
    for look, (rule, title) in enumerate(RULES.items()):
        found = [t for t in made.trials[f"{rule}-{loss}"] if t.nnz > 0 and t.dev > 82.0]
        plot.points([t.nnz for t in found], [t.dev for t in found], title, look=look)
    return plot


def frontier(made: Measured, plan: Plan, loss: str, where: str) -> Plot:
    """The best of each with at most so many weights, as chosen on development lists."""
    title = "test lists" if where == "test" else f"{plan.folds} folds"
    plot = Plot(f"{loss}: {title}", "non-zero weights, mean", "F, %", "log", "linear")
    for look, (rule, name) in enumerate(RULES.items()):
        x, y, spread = [], [], []
        for level in plan.levels:
            key = at_most(f"{rule}-{loss}", level)
            if key not in getattr(made, where):
                continue
            scores = np.array([f_score(c) for c in made.counts(key, where)])
            x.append(made.nnz(key, where))
            y.append(float(scores.mean()))
            spread.append(float(scores.std()))
        low, high = (np.array(y) + sign * np.array(spread) for sign in (-1.0, 1.0))
        plot.line(x, y, name, band=(low, high), look=look)
    for name in ("baseline", "perceptron"):
        scores = np.array([f_score(c) for c in made.counts(name, where)])
        plot.hline(float(scores.mean()), name)
    return plot


def figure_5(made: Measured, loss: str) -> Plot:
    """Non-zero weights while training."""
    plot = Plot(f"{loss}", "samples", "non-zero weights", y_scale="log")
    return _trails(plot, made, loss, "nnz")


def figure_6(made: Measured, loss: str) -> Plot:
    """Mistakes while training."""
    return _trails(Plot(f"{loss}", "samples", "mistakes"), made, loss, "mistakes")


def _trails(plot: Plot, made: Measured, loss: str, what: str) -> Plot:
    for look, trail in enumerate(made.trails[loss]):
        values = getattr(trail, what)
        use = values > 0
        plot.line(trail.samples[use], values[use], f"VRDA, λ = {short(trail.strength)}", look=look)
    other = made.trails["perceptron"][0]
    values = getattr(other, what)
    use = values > 0
    look = len(made.trails[loss])
    return plot.line(other.samples[use], values[use], "perceptron", True, look=look)
