"""Plots as SVG text, drawn with nothing but this package, with a description for screen readers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from hopefear.report.axes import SCALES, Axis, number, span, tick_labels
from hopefear.report.marks import (
    KEPT_POINTS,
    Bars,
    Frame,
    Level,
    Series,
    columns,
    curve,
    hatches,
    of,
    showable,
    swatch,
    trace,
)
from hopefear.report.theme import escape, shorten, text_width, wrap


def describe(plot: Plot) -> str:
    """Describes a plot: each series with its size, range and last value."""
    axes = [
        f"{label or name} ({scale} scale)" if scale == "log" else (label or name)
        for label, name, scale in (
            (plot.y_label, "y", plot.y_scale),
            (plot.x_label, "x", plot.x_scale),
        )
    ]
    sentences = [f"{axes[0]} against {axes[1]}." if plot.series else f"{axes[0]} as bars."]
    for s in plot.series:
        visible = showable(s.y, plot.y_scale) & showable(s.x, plot.x_scale)
        y = s.y[visible]
        if len(y):
            sentences.append(
                f"{s.label or 'curve'}: {len(y):,} points from {number(y.min())} to "
                f"{number(y.max())}, last {number(y[-1])}."
            )
        else:
            sentences.append(f"{s.label or 'curve'}: no points.")
    for g in plot.groups:
        pairs = ", ".join(
            f"{name} {number(float(value))}" for name, value in zip(g.labels, g.values, strict=True)
        )
        sentences.append(f"{g.group or 'bars'}: {pairs}.")
    sentences += [f"Line at {number(level.y)}: {level.label}." for level in plot.levels]
    return " ".join(sentences)


def notes_of(plot: Plot) -> list[str]:
    """Describes the values that an axis could not show, and thinned series."""
    strange = below = outside = 0
    crowded = []
    for s in plot.series:
        fine = showable(s.x, "linear") & showable(s.y, "linear")
        visible = showable(s.x, plot.x_scale) & showable(s.y, plot.y_scale)
        strange += int(np.sum(~fine))
        below += int(np.sum(fine & ~visible))
        outside += _outside(s.y[visible], plot)
        n = int(np.sum(visible))
        if s.kind == "points" and n > KEPT_POINTS:
            crowded.append(f"{s.label or 'points'}: {KEPT_POINTS} of {n:,} points are drawn.")
    for g in plot.groups:
        fine, visible = showable(g.values, "linear"), showable(g.values, plot.y_scale)
        strange += int(np.sum(~fine))
        below += int(np.sum(fine & ~visible))
        outside += _outside(g.values[visible], plot)
    levels = np.array([level.y for level in plot.levels])
    strange += int(np.sum(~showable(levels, "linear")))
    below += int(np.sum(showable(levels, "linear") & ~showable(levels, plot.y_scale)))
    outside += _outside(levels, plot)
    sentences = [
        (strange, "not finite and left out"),
        (below, "not positive and left out: a log axis has no place for them"),
        (outside, "outside the range of the axis"),
    ]
    return [
        f"{n:,} {'value is' if n == 1 else 'values are'} {why}." for n, why in sentences if n
    ] + crowded


def _outside(y: np.ndarray, plot: Plot) -> int:
    if plot.y_range is None:
        return 0
    return int(np.sum((y < plot.y_range[0]) | (y > plot.y_range[1])))


FONT = "ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"
INK, MUTED = "var(--hf-ink,#1c2024)", "var(--hf-muted,#5b636d)"
RULE, PAPER = "var(--hf-rule,#e3e6ea)", "var(--hf-paper,#fff)"
TITLE, SMALL, TICK = 14.0, 12.0, 11.5
LEAST_HEIGHT = 140.0
TILT, TILTED_WIDTH = 35, 150.0


class Entry(NamedTuple):
    """One name in the legend and its mark."""

    label: str
    width: float
    mark: Series | Bars


def draw(plot: Plot, width: int, height: int, prefix: str) -> str:
    """SVG of a plot; see :meth:`Plot.to_svg`."""
    notes = [line for note in notes_of(plot) for line in wrap(note, width - 8, TICK)]
    names = _categories(plot)
    lo, hi = plot.y_range or span(_up(plot), plot.y_scale, zero=bool(names))
    scale_x = "linear" if names else plot.x_scale
    left_x, right_x = (0.0, float(len(names))) if names else span(_across(plot), scale_x)

    head, out = 4.0, []
    for line in wrap(plot.title, width, TITLE):
        head += 17
        out.append(_text(line, 0, head, TITLE, INK, weight=600))
    rows = _legend(plot, width)
    head += 8 if rows else 0
    for k, row in enumerate(rows):
        out.append(_legend_row(row, head + 10 + 19 * k, prefix, len(plot.groups) == 1))
    head += 19 * len(rows) + (6 if rows else 0)
    if plot.y_label:
        head += 18 if rows else 22
        out.append(_text(shorten(plot.y_label, width, SMALL), 0, head, SMALL, MUTED))
    top = head + (20 if names else 12)

    y_ticks = Axis(plot.y_scale, lo, hi, 0, 1).ticks(5)
    y_texts = tick_labels(y_ticks)
    left = max((text_width(t, TICK) for t in y_texts), default=0.0) + 10
    slot = (width - left - 14) / max(len(names), 1)
    tilted = any(text_width(name, TICK) > slot - 6 for name in names)
    below = _tilted_height(names) if tilted else 20.0
    below += (20 if plot.x_label else 0) + (15 * len(notes) + 6 if notes else 0)
    full = max(float(height), top + LEAST_HEIGHT + below + 4)
    bottom, right = full - below - 4, width - 14.0
    frame = Frame(
        Axis(scale_x, left_x, right_x, left, right), Axis(plot.y_scale, lo, hi, bottom, top)
    )

    out += _y_axis(frame, y_ticks, y_texts)
    out += _category_axis(frame, names, tilted) if names else _x_axis(frame)
    if plot.x_label:
        under = bottom + below - (15 * len(notes) + 6 if notes else 0)
        label = shorten(plot.x_label, right - left, SMALL)
        out.append(_text(label, right, under - 3, SMALL, MUTED, anchor="end"))
    out.append(f'<g clip-path="url(#{prefix}-c)">')
    if plot.groups and names:
        out.append(columns(plot.groups, names, frame, prefix))
    total = len(plot.series)
    out += [curve(s, frame, k, total) for k, s in enumerate(plot.series)]
    out.append("</g>")
    out += _levels(plot, frame)
    if not len(_up(plot)):
        out.append(
            _text(
                "no values to show",
                (left + right) / 2,
                (top + bottom) / 2,
                SMALL,
                MUTED,
                anchor="middle",
            )
        )
    for k, note in enumerate(notes):
        out.append(_text(note, 0, full - 4 - 15 * (len(notes) - 1 - k), TICK, MUTED))

    clip = (
        f'<clipPath id="{prefix}-c"><rect x="{left - 6:.1f}" y="{top - 7:.1f}" '
        f'width="{right - left + 12:.1f}" height="{bottom - top + 13:.1f}"/></clipPath>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {full:.0f}" '
        f'width="{width}" height="{full:.0f}" role="img" data-plot="" '
        f'aria-labelledby="{prefix}-t {prefix}-d" font-family="{FONT}" '
        'style="font-variant-numeric:tabular-nums">'
        f'<title id="{prefix}-t">{escape(plot.title)}</title>'
        f'<desc id="{prefix}-d">{escape(describe(plot))}</desc>'
        f"<defs>{clip}{hatches(prefix) if len(plot.groups) > 1 else ''}</defs>{''.join(out)}</svg>"
    )


def _up(plot: Plot) -> np.ndarray:
    """Every y value the axis must reach, error bars and bands included."""
    parts = [np.array([level.y for level in plot.levels])]
    for s in plot.series:
        visible = showable(s.x, plot.x_scale) & showable(s.y, plot.y_scale)
        parts += [v[visible] for v in (s.y, s.low, s.high) if v is not None]
    for g in plot.groups:
        spread = 0.0 if g.error is None else np.nan_to_num(g.error)
        parts += [g.values, g.values - spread, g.values + spread]
    values = np.concatenate(parts)
    return values[showable(values, plot.y_scale)]


def _across(plot: Plot) -> np.ndarray:
    parts = [s.x[showable(s.x, plot.x_scale) & showable(s.y, plot.y_scale)] for s in plot.series]
    return np.concatenate(parts) if parts else np.zeros(0)


def _categories(plot: Plot) -> list[str]:
    return list(dict.fromkeys(name for bars in plot.groups for name in bars.labels))


def _legend(plot: Plot, width: float) -> list[list[Entry]]:
    entries: dict[tuple[Any, ...], Entry] = {}
    legend_entries = [((s.label, s.kind, s.dashed), s.label, s) for s in plot.series]
    for key, label, mark in legend_entries + [((g.group,), g.group, g) for g in plot.groups]:
        if label and key not in entries:
            text = shorten(label, width - 40, SMALL)
            entries[key] = Entry(text, 32 + text_width(text, SMALL) + 16, mark)
    rows: list[list[Entry]] = []
    room = 0.0
    for entry in entries.values():
        if entry.width > room:
            rows.append([])
            room = width + 16
        rows[-1].append(entry)
        room -= entry.width
    return rows


def _legend_row(row: list[Entry], y: float, prefix: str, alone: bool) -> str:
    out, x = [], 0.0
    for entry in row:
        name = entry.mark.group if isinstance(entry.mark, Bars) else entry.mark.label
        key = swatch(entry.mark, x, y, prefix, alone)
        out.append(f"<g{of(name)}>{key}{_text(entry.label, x + 30, y + 4, SMALL, INK)}</g>")
        x += entry.width
    return "".join(out)


def _y_axis(frame: Frame, ticks: list[float], texts: list[str]) -> list[str]:
    out = []
    for value, text in zip(ticks, texts, strict=True):
        y = frame.y.put(value)
        out.append(_line(frame.x.start, y, frame.x.end, y, RULE))
        out.append(_text(text, frame.x.start - 8, y + 4, TICK, MUTED, anchor="end"))
    base = 0.0 if frame.y.scale == "linear" and frame.y.lo <= 0.0 <= frame.y.hi else frame.y.lo
    at = frame.y.put(base)
    out.append(_line(frame.x.start, at, frame.x.end, at, MUTED))
    return out


def _x_axis(frame: Frame) -> list[str]:
    room = frame.x.end - frame.x.start
    ticks = frame.x.ticks(max(2, min(8, int(room / 75))))
    out = []
    for value, text in zip(ticks, tick_labels(ticks), strict=True):
        x = frame.x.put(value)
        out.append(_line(x, frame.y.start, x, frame.y.start + 4, MUTED))
        # A centred last label would stick out of the picture.
        half = text_width(text, TICK) / 2
        x = min(x, frame.x.end + 12 - half)
        out.append(_text(text, x, frame.y.start + 18, TICK, MUTED, anchor="middle"))
    return out


def _category_axis(frame: Frame, names: list[str], tilted: bool) -> list[str]:
    out = []
    for i, name in enumerate(names):
        x, y = float(frame.x.place([i + 0.5])[0]), frame.y.start + 18
        if not tilted:
            out.append(_text(name, x, y, TICK, INK, anchor="middle"))
            continue
        # The label hangs down to the left and must not leave the picture.
        room = min(TILTED_WIDTH, 0.9 * (x - 4) / math.cos(math.radians(TILT)))
        text = _text(shorten(name, room, TICK), 0, 0, TICK, INK, anchor="end")
        out.append(f'<g transform="translate({x + 4:.1f} {y - 3:.1f}) rotate({-TILT})">{text}</g>')
    return out


def _tilted_height(names: list[str]) -> float:
    longest = max(min(text_width(name, TICK), TILTED_WIDTH) for name in names)
    return 22 + longest * math.sin(math.radians(TILT))


def _levels(plot: Plot, frame: Frame) -> list[str]:
    out: list[str] = []
    occupied: list[np.ndarray] = [trace(series, frame) for series in plot.series]
    for level in plot.levels:
        if not (
            showable(np.array([level.y]), plot.y_scale)[0] and frame.y.lo <= level.y <= frame.y.hi
        ):
            continue
        y = frame.y.put(level.y)
        out.append(_line(frame.x.start, y, frame.x.end, y, MUTED, ' stroke-dasharray="3 3"'))
        label = shorten(level.label, frame.x.end - frame.x.start, TICK)
        x, base = _free_place(frame, y, text_width(label, TICK), occupied)
        text = _text(label, x, base, TICK, MUTED)
        out.append(f'<g style="paint-order:stroke;stroke:{PAPER};stroke-width:4px">{text}</g>')
    return out


def _free_place(
    frame: Frame, y: float, width: float, occupied: list[np.ndarray]
) -> tuple[float, float]:
    """Returns the position of a label where it hides the fewest points; then marks it occupied."""
    positions = [
        (x, base)
        for x in (frame.x.end - width, frame.x.start + 6, (frame.x.start + frame.x.end - width) / 2)
        for base in (y - 5, y + 14)
        if frame.y.end - 4 <= base - 9 and base < frame.y.start
    ]
    points = np.concatenate([np.zeros((0, 2)), *occupied])

    def hidden(position: tuple[float, float]) -> int:
        x, base = position
        return int(
            np.sum(
                (points[:, 0] > x - 4)
                & (points[:, 0] < x + width + 4)
                & (points[:, 1] > base - 13)
                & (points[:, 1] < base + 5)
            )
        )

    x, base = min(positions or [(frame.x.end - width, y + 14)], key=hidden)
    along = np.linspace(x, x + width, 9)
    occupied.append(np.column_stack([along, np.full(9, base - 4.0)]).repeat(100, axis=0))
    return x, base


def _text(
    text: str, x: float, y: float, size: float, fill: str, anchor: str = "start", weight: int = 400
) -> str:
    if not text:
        return ""
    at = "" if anchor == "start" else f' text-anchor="{anchor}"'
    bold = "" if weight == 400 else f' font-weight="{weight}"'
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" style="fill:{fill}"{at}{bold}>'
        f"{escape(text)}</text>"
    )


def _line(x0: float, y0: float, x1: float, y1: float, stroke: str, attributes: str = "") -> str:
    return (
        f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" style="stroke:{stroke}" fill="none"'
        f"{attributes}/>"
    )


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
        """Add a curve; it breaks where a value cannot be visible.

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
            Heights, one for each label.
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
        style = self._look(label, look)
        self.series.append(Series(kind, across, up, ends[0], ends[1], label, style, dashed))
        return self

    def _look(self, label: str, look: int | None) -> int:
        if look is not None:
            return look
        looks = {s.label: s.look for s in self.series} | {g.group: g.look for g in self.groups}
        if label in looks:
            return looks[label]
        used = set(looks.values())
        return next(i for i in range(len(used) + 1) if i not in used)


# Beyond this, numbers are drawn as this.
_LARGEST = 1e300


def _numbers(values: Numbers, name: str) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} has {array.ndim} dimensions; give a plain sequence of numbers")
    # Sums and differences of what is drawn must stay numbers; infinities are left out later.
    return np.where(np.isfinite(array), np.clip(array, -_LARGEST, _LARGEST), array)


def _same_length(a: str, first: Sequence[Any] | np.ndarray, b: str, second: np.ndarray) -> None:
    if len(first) != len(second):
        raise ValueError(
            f"{a} has {len(first)} entries but {b} has {len(second)}; give equally many"
        )
