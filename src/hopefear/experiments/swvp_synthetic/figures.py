"""Plots: accuracy by beta, gain on every dataset, accuracy by pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hopefear.experiments.swvp_synthetic.measuring import Measured
from hopefear.experiments.swvp_synthetic.plan import KEPT, LAST, VARIANTS, Plan
from hopefear.experiments.swvp_synthetic.tables import cell
from hopefear.report.plot import Plot


def by_beta(measured: Sequence[Measured], plan: Plan, kept: int) -> Plot:
    """Mean test accuracy at every beta; the dashed line is CSP."""
    plot = Plot(f"setting {measured[0].setting}, {KEPT[kept]}", "β", "accuracy, %")
    for look, variant in enumerate(VARIANTS):
        means = np.mean([[run.test[kept, -1] for run in m.swvp[variant.key]] for m in measured], 0)
        plot.line(list(plan.betas), means, variant.key, look=look)
    return plot.hline(float(np.mean([m.csp.test[kept, -1] for m in measured])), "CSP")


def by_dataset(measured: Sequence[Measured]) -> Plot:
    """What each variant wins over CSP on each dataset, last weights."""
    plot = Plot(f"setting {measured[0].setting}", "dataset", "points over CSP")
    names = [str(m.dataset + 1) for m in measured]
    for look, variant in enumerate(VARIANTS):
        found = cell(measured, variant.key, LAST)
        plot.bars(names, found.accuracy - found.csp, group=variant.key, look=look)
    return plot


def by_pass(measured: Sequence[Measured], plan: Plan, kept: int) -> Plot:
    """Mean test accuracy after every pass, each variant at the betas chosen for the last pass."""
    plot = Plot(f"setting {measured[0].setting}, {KEPT[kept]}", "pass", "accuracy, %")
    passes = np.arange(1, plan.passes + 1)
    for look, variant in enumerate(VARIANTS):
        runs = [m.chosen(variant.key, kept) for m in measured]
        plot.line(passes, np.mean([run.test[kept] for run in runs], 0), variant.key, look=look)
    csp = np.mean([m.csp.test[kept] for m in measured], 0)
    return plot.line(passes, csp, "CSP", True, look=len(VARIANTS))
