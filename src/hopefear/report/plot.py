"""Plots as SVG text, drawn with nothing but this package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from hopefear.report.axes import SCALES
from hopefear.report.series import Bars, Level, Series

Numbers = Sequence[float] | np.ndarray
Scale = Literal["linear", "log"]


class Plot:
    """A plot with curves, points or bars; ``to_svg`` draws it.

    Every series gets a colour that colour-blind readers can tell from its neighbours, in light
    and in dark, and a marker of its own. Values an axis cannot show (not finite, or not positive
    on a log axis) are left out and counted in a note under the plot.

    Parameters
    ----------
    title : str
        Stands above the plot and is what screen readers announce.
    x_label, y_label : str
        What the axes measure, with units.
    x_scale, y_scale : {"linear", "log"}
        Spacing of each axis.
    y_range : pair of float, optional
        Ends of the y axis; without it the axis fits the data.

    Examples
    --------
    >>> plot = Plot("Mistakes while training", "samples", "mistakes")
    >>> svg = plot.line([1, 2, 3], [1, 2, 2], "perceptron").hline(2.5, "bound").to_svg()
    >>> svg.startswith("<svg") and svg.endswith("</svg>")
    True
    """

    def __init__(
        self,
        title: str,
        x_label: str = "",
        y_label: str = "",
        x_scale: Scale = "linear",
        y_scale: Scale = "linear",
        *,
        y_range: tuple[float, float] | None = None,
    ) -> None:
        for name, scale in (("x_scale", x_scale), ("y_scale", y_scale)):
            if scale not in SCALES:
                raise ValueError(f"{name} is {scale!r}; use 'linear' or 'log'")
        if y_range is not None and not (
            np.all(np.isfinite(y_range))
            and y_range[0] < y_range[1]
            and (y_scale == "linear" or y_range[0] > 0)
        ):
            raise ValueError(
                f"y_range {y_range} does not fit a {y_scale} axis; "
                "give two finite ends, the smaller first, both above 0 on a log axis"
            )
        self.title, self.x_label, self.y_label = title, x_label, y_label
        self.x_scale, self.y_scale, self.y_range = x_scale, y_scale, y_range
        self.series: list[Series] = []
        self.groups: list[Bars] = []
        self.levels: list[Level] = []

    def line(
        self,
        x: Numbers,
        y: Numbers,
        label: str,
        dashed: bool = False,
        band: tuple[Numbers, Numbers] | None = None,
        *,
        look: int | None = None,
    ) -> Plot:
        """Add a curve; it breaks where a value cannot be shown.

        Long curves are thinned to about 400 points that keep every peak.

        Parameters
        ----------
        x, y : sequence of float
            Coordinates, equally many.
        label : str
            Name in the legend. A name used before keeps its colour and marker.
        dashed : bool
            Draw with dashes, for a second kind of curve such as a bound.
        band : pair of sequences, optional
            Lower and upper edge of a shaded region, for instance mean ± deviation.
        look : int, optional
            Colour and marker; give the same number to keep one learner alike across plots.
        """
        edges = band if band is not None else (None, None)
        return self._add("line", x, y, edges, label, look, dashed)

    def step(
        self, x: Numbers, y: Numbers, label: str, dashed: bool = False, *, look: int | None = None
    ) -> Plot:
        """Add a curve that keeps each value until the next x; parameters as in :meth:`line`."""
        return self._add("step", x, y, (None, None), label, look, dashed)

    def points(
        self,
        x: Numbers,
        y: Numbers,
        label: str,
        error: Numbers | None = None,
        *,
        look: int | None = None,
    ) -> Plot:
        """Add markers without a line; parameters as in :meth:`line`.

        Parameters
        ----------
        error : sequence of float, optional
            Half the length of each error bar.
        """
        edges: tuple[Numbers | None, Numbers | None] = (None, None)
        if error is not None:
            half, mid = _numbers(error, "error"), _numbers(y, "y")
            _same_length("error", half, "y", mid)
            edges = (mid - np.abs(half), mid + np.abs(half))
        return self._add("points", x, y, edges, label, look, False)

    def bars(
        self,
        labels: Sequence[str],
        values: Numbers,
        error: Numbers | None = None,
        group: str | None = None,
        *,
        look: int | None = None,
    ) -> Plot:
        """Add one bar per category; call again with another ``group`` for bars side by side.

        Parameters
        ----------
        labels : sequence of str
            Categories along the x axis.
        values : sequence of float
            Heights, as many as labels.
        error : sequence of float, optional
            Half the length of each error bar.
        group : str, optional
            Name in the legend.
        """
        if self.series:
            raise ValueError(
                f"plot {self.title!r} has curves, which bars cannot share an axis "
                "with; make a second Plot"
            )
        heights = _numbers(values, "values")
        half = None if error is None else np.abs(_numbers(error, "error"))
        names = [str(label) for label in labels]
        _same_length("labels", names, "values", heights)
        if half is not None:
            _same_length("error", half, "values", heights)
        name = group or ""
        self.groups.append(Bars(names, heights, half, name, self._look(name, look)))
        return self

    def hline(self, y: float, label: str = "") -> Plot:
        """Add a horizontal dashed line, such as a baseline or a figure from a paper."""
        self.levels.append(Level(float(y), label))
        return self

    def to_svg(self, width: int = 680, height: int = 400, prefix: str = "plot") -> str:
        """The plot as one ``<svg>`` element, complete in itself.

        Parameters
        ----------
        width, height : int
            Size in pixels. A plot whose legend or notes need more room grows taller.
        prefix : str
            Start of the element ids; must differ between plots of one page.
        """
        from hopefear.report.draw import draw

        return draw(self, width, height, prefix)

    def _add(
        self,
        kind: str,
        x: Numbers,
        y: Numbers,
        edges: tuple[Numbers | None, Numbers | None],
        label: str,
        look: int | None,
        dashed: bool,
    ) -> Plot:
        if self.groups:
            raise ValueError(
                f"plot {self.title!r} has bars, which curves cannot share an axis "
                "with; make a second Plot"
            )
        across, up = _numbers(x, "x"), _numbers(y, "y")
        _same_length("x", across, "y", up)
        ends = [None if edge is None else _numbers(edge, "band") for edge in edges]
        for end in ends:
            if end is not None:
                _same_length("band", end, "y", up)
        chosen = self._look(label, look)
        self.series.append(Series(kind, across, up, ends[0], ends[1], label, chosen, dashed))
        return self

    def _look(self, label: str, look: int | None) -> int:
        if look is not None:
            return look
        seen = {s.label: s.look for s in self.series} | {g.group: g.look for g in self.groups}
        if label in seen:
            return seen[label]
        used = set(seen.values())
        return next(i for i in range(len(used) + 1) if i not in used)


def _numbers(values: Numbers, name: str) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} has {array.ndim} dimensions; give a plain sequence of numbers")
    return array


def _same_length(a: str, first: Sequence | np.ndarray, b: str, second: np.ndarray) -> None:
    if len(first) != len(second):
        raise ValueError(
            f"{a} has {len(first)} entries but {b} has {len(second)}; give equally many"
        )
