"""What a plot says in words: a description for screen readers, notes on what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hopefear.report.axes import number
from hopefear.report.marks import KEPT_POINTS, showable

if TYPE_CHECKING:
    from hopefear.report.plot import Plot


def describe(plot: Plot) -> str:
    """What the plot shows, in words: each series with its size, range and last value."""
    axes = [
        f"{label or name} ({scale} scale)" if scale == "log" else (label or name)
        for label, name, scale in (
            (plot.y_label, "y", plot.y_scale),
            (plot.x_label, "x", plot.x_scale),
        )
    ]
    told = [f"{axes[0]} against {axes[1]}." if plot.series else f"{axes[0]} as bars."]
    for s in plot.series:
        shown = showable(s.y, plot.y_scale) & showable(s.x, plot.x_scale)
        y = s.y[shown]
        if len(y):
            told.append(
                f"{s.label or 'curve'}: {len(y):,} points from {number(y.min())} to "
                f"{number(y.max())}, last {number(y[-1])}."
            )
        else:
            told.append(f"{s.label or 'curve'}: no points.")
    for g in plot.groups:
        pairs = ", ".join(
            f"{name} {number(float(value))}" for name, value in zip(g.labels, g.values, strict=True)
        )
        told.append(f"{g.group or 'bars'}: {pairs}.")
    told += [f"Line at {number(level.y)}: {level.label}." for level in plot.levels]
    return " ".join(told)


def notes_of(plot: Plot) -> list[str]:
    """What an axis could not show, and what was thinned: no loss is silent."""
    strange = below = outside = 0
    crowded = []
    for s in plot.series:
        fine = showable(s.x, "linear") & showable(s.y, "linear")
        shown = showable(s.x, plot.x_scale) & showable(s.y, plot.y_scale)
        strange += int(np.sum(~fine))
        below += int(np.sum(fine & ~shown))
        outside += _outside(s.y[shown], plot)
        if s.kind == "points" and int(np.sum(shown)) > KEPT_POINTS:
            crowded.append(
                f"{s.label or 'points'}: {KEPT_POINTS} of {int(np.sum(shown)):,} points are drawn."
            )
    for g in plot.groups:
        fine, shown = showable(g.values, "linear"), showable(g.values, plot.y_scale)
        strange += int(np.sum(~fine))
        below += int(np.sum(fine & ~shown))
        outside += _outside(g.values[shown], plot)
    levels = np.array([level.y for level in plot.levels])
    strange += int(np.sum(~showable(levels, "linear")))
    below += int(np.sum(showable(levels, "linear") & ~showable(levels, plot.y_scale)))
    outside += _outside(levels, plot)
    told = [
        (strange, "not finite and left out"),
        (below, "not positive and left out: a log axis has no place for them"),
        (outside, "outside the range of the axis"),
    ]
    return [
        f"{n:,} {'value is' if n == 1 else 'values are'} {why}." for n, why in told if n
    ] + crowded


def _outside(y: np.ndarray, plot: Plot) -> int:
    if plot.y_range is None:
        return 0
    return int(np.sum((y < plot.y_range[0]) | (y > plot.y_range[1])))
