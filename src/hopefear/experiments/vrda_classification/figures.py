"""The paper's figures, drawn from our numbers; one plot a problem (and a loss)."""

from __future__ import annotations

import numpy as np

from hopefear.experiments.vrda_classification.bound import BoundCurve
from hopefear.experiments.vrda_classification.measuring import Measured
from hopefear.experiments.vrda_classification.plan import LOSSES, Plan, short
from hopefear.report.plot import Plot


def figure_1(made: Measured) -> list[Plot]:
    """Non-zero weights while training, by strength of regularisation."""
    plots = []
    for loss in LOSSES:
        plot = Plot(f"{made.name}, {loss}", "samples", "non-zero weights", y_scale="log")
        for look, trail in enumerate(made.trails[loss]):
            use = trail.nnz > 0
            plot.line(trail.samples[use], trail.nnz[use], f"λ = {short(trail.strength)}", look=look)
        plots.append(plot)
    return plots


def figure_2(made: Measured) -> Plot:
    """Sparsity against quality on the held-out rows, over the strengths."""
    size = made.problem.train.n_features
    plot = Plot(
        made.name,
        "non-zero weights as a share of the features",
        "F on held-out rows, %",
        x_scale="log",
    )
    for look, loss in enumerate(LOSSES):
        trials = made.choices[f"vrda-{loss}"].along("l1")
        for kept, dashed in (("average", False), ("last", True)):
            nnz = np.array([t.nnz if kept == "average" else t.last_nnz for t in trials])
            f1 = np.array([t.f1 if kept == "average" else t.last_f1 for t in trials])
            plot.line(
                nnz[nnz > 0] / size, f1[nnz > 0], f"{loss}, {kept}", dashed, look=look + 2 * dashed
            )
    return plot


def figure_3(made: Measured) -> list[Plot]:
    """Training mistakes against samples."""
    plots = []
    for loss in LOSSES:
        plot = Plot(f"{made.name}, {loss}", "samples", "mistakes")
        for look, trail in enumerate(made.trails[loss]):
            label = f"vRDA, λ = {short(trail.strength)}"
            plot.line(trail.samples, trail.mistakes, label, look=look)
        perceptron = made.trails["perceptron"][0]
        plot.line(
            perceptron.samples,
            perceptron.mistakes,
            "(voted) perceptron",
            True,
            look=len(made.trails[loss]),
        )
        plots.append(plot)
    return plots


def figure_4(made: Measured, plan: Plan) -> Plot:
    """Last weights against the average: mean and deviation of F over the settled passes."""
    runs = [made.best[f"vrda-{loss}"] for loss in LOSSES]
    groups = {"single (last)": [r.last for r in runs], "averaged": [r.averaged for r in runs]}
    return _bars(made.name, groups, plan)


def figure_5(made: Measured, plan: Plan) -> Plot:
    """RDA against voted RDA: mean and deviation of F over the settled passes."""
    groups = {
        title: [made.best[f"{key}-{loss}"].averaged for loss in LOSSES]
        for title, key in (("RDA", "rda"), ("vRDA", "vrda"))
    }
    return _bars(made.name, groups, plan)


def bound_plot(curves: list[BoundCurve], noise: float) -> Plot:
    """Mistakes, and the most that Theorem 1 allows."""
    title = "separable" if noise == 0.0 else f"{noise:.0%} of the labels wrong"
    plot = Plot(title, "samples", "mistakes", x_scale="log", y_scale="log")
    for look, curve in enumerate(c for c in curves if c.noise == noise):
        samples = [r.samples for r in curve.reports]
        plot.line(
            samples, [r.mistakes for r in curve.reports], f"mistakes, {curve.label}", look=2 * look
        )
        plot.line(
            samples,
            [r.theorem1 for r in curve.reports],
            f"Theorem 1, {curve.label}",
            True,
            look=2 * look + 1,
        )
    return plot


def _bars(title, groups, plan: Plan) -> Plot:
    late = plan.settled
    values = {name: [s.series("f1")[late] for s in scores] for name, scores in groups.items()}
    ends = [
        end
        for series in values.values()
        for v in series
        for end in (v.mean() - v.std(), v.mean() + v.std())
    ]
    # Bars from zero would hide differences of a point; the axis says where it starts.
    room = max(0.5, 0.4 * (max(ends) - min(ends)))
    plot = Plot(
        title,
        "",
        "F, %",
        y_range=(max(0.0, float(np.floor(min(ends) - room))), min(100.0, max(ends) + room)),
    )
    for name, series in values.items():
        plot.bars(
            list(LOSSES),
            [float(v.mean()) for v in series],
            [float(v.std()) for v in series],
            group=name,
        )
    return plot
