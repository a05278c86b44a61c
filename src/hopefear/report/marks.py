"""Marks on a plot: curves, bands, markers and bars as SVG elements.

Of every narrow strip of a long curve only the extremes are drawn, which gives the same picture.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.report.axes import Axis, number, transform
from hopefear.report.theme import colour, escape, marker


class Series(NamedTuple):
    """Points of one curve, as given: nothing dropped, nothing thinned."""

    kind: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None
    label: str
    look: int
    dashed: bool


class Bars(NamedTuple):
    """One bar per category, all of one group."""

    labels: list[str]
    values: np.ndarray
    error: np.ndarray | None
    group: str
    look: int


class Level(NamedTuple):
    """A horizontal line across the plot."""

    y: float
    label: str


def thin(x: np.ndarray, y: np.ndarray, keep: int = 400) -> np.ndarray:
    """Indices of at most ``keep`` points whose curve looks like the whole one.

    The x range is cut into ``keep / 4`` strips; each keeps its first, lowest, highest and last
    point, so no peak is lost.

    Parameters
    ----------
    x, y : array
        Finite coordinates as drawn (logarithms on a log axis).
    keep : int
        Points kept at most, at least 4. More keeps finer detail and makes a larger file.

    Examples
    --------
    >>> y = np.zeros(10_000); y[1234] = 5.0
    >>> kept = thin(np.arange(10_000.0), y, keep=40)
    >>> len(kept) <= 40, 1234 in kept
    (True, True)
    """
    n = len(x)
    if n <= keep:
        return np.arange(n)
    strips = keep // 4
    order = bool(np.all(np.diff(x) >= 0)) and x[-1] > x[0]
    # A curve that turns back is cut by position in the sequence, where strips stay contiguous.
    along = (x - x[0]) / (x[-1] - x[0]) if order else np.arange(n) / (n - 1)
    starts = np.searchsorted(along, np.arange(strips) / strips)
    starts = starts[np.diff(starts, append=n) > 0]
    ends = np.append(starts[1:], n)
    pieces = [starts, ends - 1]
    for sign in (1.0, -1.0):
        pieces.append(
            np.array([a + int(np.argmax(sign * y[a:b])) for a, b in zip(starts, ends, strict=True)])
        )
    merged = np.sort(np.concatenate(pieces))
    return merged[np.append(True, np.diff(merged) > 0)]


def even(n: int, keep: int) -> np.ndarray:
    """At most ``keep`` evenly spaced indices of ``n``, the last one always among them.

    Examples
    --------
    >>> even(10, 4).tolist()
    [0, 3, 6, 9]
    """
    if n <= keep:
        return np.arange(n)
    return np.round(np.linspace(0, n - 1, keep)).astype(np.int64)


KEPT_POINTS = 400
MARKED_POINTS = 7
HOVER_POINTS = 40
# Sums and differences of two such numbers are still finite.
LARGEST = 1e300
# The first group stays plain.
HATCHES = ("", "M0 6L6 0", "M0 3H6", "M0 0L6 6M0 6L6 0")


class Frame(NamedTuple):
    """The two axes everything is placed by."""

    x: Axis
    y: Axis


def showable(values: np.ndarray, scale: str) -> np.ndarray:
    """Returns which values an axis of this scale can show."""
    with np.errstate(invalid="ignore"):
        mask = np.abs(values) < LARGEST
        return mask & (values >= 1 / LARGEST) if scale == "log" else mask


def curve(series: Series, frame: Frame, order: int, total: int) -> str:
    """One series: its band, its line in unbroken runs, its markers and hover texts."""
    visible = showable(series.x, frame.x.scale) & showable(series.y, frame.y.scale)
    out = [f'<g{of(series.label)} style="color:{colour(series.look)}">']
    if series.kind == "points":
        out.append(_scatter(series, frame, np.flatnonzero(visible)))
    else:
        runs = [run[_thin(series.x[run], series.y[run], frame)] for run in _runs(visible)]
        if series.low is not None and series.high is not None:
            out += [_band(series, frame, run) for run in _runs(visible & _both_edges(series))]
        stepped = series.kind == "step"
        path = "".join(_path(series, frame, run, stepped) for run in runs)
        dash = ' stroke-dasharray="6 4"' if series.dashed else ""
        out.append(
            f'<path d="{path}" fill="none" stroke="currentColor" stroke-width="1.8" '
            f'stroke-linejoin="round" stroke-linecap="round"{dash}/>'
        )
        points = np.concatenate(runs) if runs else np.arange(0)
        out.append(_markers(series, frame, points, order, total))
    return "".join(out) + "</g>"


def of(label: str) -> str:
    """Returns the attribute by which the page's script shows and hides the marks of a label."""
    return f' data-of="{escape(label)}"' if label else ""


def trace(series: Series, frame: Frame) -> np.ndarray:
    """Pixels a curve passes through, closely spaced; what a label should not cover."""
    visible = showable(series.x, frame.x.scale) & showable(series.y, frame.y.scale)
    parts = [run[_thin(series.x[run], series.y[run], frame)] for run in _runs(visible)]
    dense = [np.zeros((0, 2))]
    for run in parts:
        points = np.column_stack([frame.x.place(series.x[run]), frame.y.place(series.y[run])])
        steps = 1 if series.kind == "points" else 1 + 200 // len(points)
        between = np.arange(0, len(points) - 1 + 1e-9, 1 / steps)
        dense.append(
            np.column_stack(
                [np.interp(between, np.arange(len(points)), points[:, k]) for k in (0, 1)]
            )
        )
    return np.concatenate(dense)


def columns(groups: list[Bars], names: list[str], frame: Frame, prefix: str) -> str:
    """Bars of all groups, side by side within each category."""
    out, slot = [], 1.0 / len(groups)
    ground = frame.y.put(frame.y.lo if frame.y.scale == "log" else 0.0)
    lettered = len(groups) * len(names) <= 14 and all(g.error is None for g in groups)
    for g, bars in enumerate(groups):
        out.append(f'<g{of(bars.group)} style="color:{colour(bars.look)}">')
        visible = np.flatnonzero(showable(bars.values, frame.y.scale))
        for i in visible:
            left = names.index(bars.labels[i]) + 0.14 + 0.72 * slot * g
            x0, x1 = frame.x.place([left + 0.03 * slot, left + 0.69 * slot])
            value = float(bars.values[i])
            top = frame.y.put(value)
            y, h = min(top, ground), max(abs(ground - top), 0.5)
            half = None if bars.error is None else float(bars.error[i])
            box = f'x="{_n(x0)}" y="{_n(y)}" width="{_n(x1 - x0)}" height="{_n(h)}"'
            hover = escape(_bar_text(bars, int(i), value, half))
            out.append(f'<g><title>{hover}</title><rect {box} fill="currentColor"/>')
            if len(groups) > 1:
                out.append(_hatch(bars.look, box, prefix))
            out.append("</g>")
            mid = (x0 + x1) / 2
            if half is not None and np.isfinite(half):
                ends = frame.y.put(max(value - half, frame.y.lo)), frame.y.put(value + half)
                # The wide pale stroke below keeps the bar visible on a fill as dark as itself.
                out.append(_error_bar(mid, *ends, "var(--hf-paper,#fff)", 3.6))
                out.append(_error_bar(mid, *ends, "var(--hf-ink,#1c2024)"))
            elif lettered:
                out.append(
                    f'<text x="{_n(mid)}" y="{_n(y - 5)}" text-anchor="middle" '
                    f'font-size="11" fill="var(--hf-muted,#5b636d)">{number(value)}</text>'
                )
        out.append("</g>")
    return "".join(out)


def hatches(prefix: str) -> str:
    """Returns fill patterns that distinguish groups of bars without colour."""
    paper = 'stroke="var(--hf-paper,#fff)" stroke-opacity=".55" stroke-width="1.6"'
    return "".join(
        f'<pattern id="{prefix}-h{k}" width="6" height="6" patternUnits="userSpaceOnUse">'
        f'<path d="{path}" {paper} fill="none"/></pattern>'
        for k, path in enumerate(HATCHES)
        if path
    )


def swatch(mark: Series | Bars, x: float, y: float, prefix: str, alone: bool) -> str:
    """Draws the sample of a series in the legend, 24 pixels wide."""
    if isinstance(mark, Bars):
        box = f'x="{_n(x + 4)}" y="{_n(y - 6)}" width="18" height="12"'
        hatch = "" if alone else _hatch(mark.look, box, prefix)
        return f'<rect {box} style="fill:{colour(mark.look)}"/>{hatch}'
    dash = ' stroke-dasharray="6 4"' if mark.dashed else ""
    line = (
        ""
        if mark.kind == "points"
        else (f'<path d="M{_n(x)} {_n(y)}h24" stroke="currentColor" stroke-width="1.8"{dash}/>')
    )
    return f'<g style="color:{colour(mark.look)}">{line}{_marker(mark.look, x + 12, y)}</g>'


def _hatch(look: int, box: str, prefix: str) -> str:
    k = look % len(HATCHES)
    return f'<rect {box} fill="url(#{prefix}-h{k})"/>' if HATCHES[k] else ""


def _scatter(series: Series, frame: Frame, visible: np.ndarray) -> str:
    points = visible[even(len(visible), KEPT_POINTS)]
    x, y = frame.x.place(series.x[points]), frame.y.place(series.y[points])
    out = []
    for i, px, py in zip(points, x, y, strict=True):
        if series.low is not None and series.high is not None:
            low, high = float(series.low[i]), float(series.high[i])
            if np.isfinite(low) and np.isfinite(high):
                out.append(_error_bar(px, frame.y.put(max(low, frame.y.lo)), frame.y.put(high)))
        out.append(
            f"<g><title>{escape(_point_text(series, int(i)))}</title>"
            f"{_hit(px, py)}{_marker(series.look, px, py)}</g>"
        )
    return "".join(out)


def _markers(series: Series, frame: Frame, points: np.ndarray, order: int, total: int) -> str:
    """Markers at a few places, shifted per series so that close curves do not hide each other."""
    x, y = frame.x.place(series.x[points]), frame.y.place(series.y[points])
    low, high = sorted((frame.y.start, frame.y.end))
    wide = abs(frame.x.end - frame.x.start)
    marked = set()
    if len(points) <= MARKED_POINTS + 5:
        marked = set(range(len(points)))
    else:
        for k in range(MARKED_POINTS):
            at = frame.x.start + wide * (k + (order + 0.5) / max(total, 1)) / MARKED_POINTS
            marked.add(int(np.argmin(np.abs(x - at))))
    out = []
    for k in sorted(marked | set(even(len(points), HOVER_POINTS).tolist())):
        if low - 0.5 <= y[k] <= high + 0.5:
            shape = _marker(series.look, x[k], y[k]) if k in marked else ""
            out.append(
                f"<g><title>{escape(_point_text(series, int(points[k])))}</title>"
                f"{_hit(x[k], y[k])}{shape}</g>"
            )
    return "".join(out)


def _band(series: Series, frame: Frame, run: np.ndarray) -> str:
    edges = []
    for values in (series.high, series.low):
        assert values is not None
        # A band may reach below what a log axis can show; it is drawn down to the axis.
        held = np.clip(values, frame.y.lo, frame.y.hi)
        points = run[_thin(series.x[run], held[run], frame)]
        edges.append(
            [
                f"{_n(a)} {_n(b)}"
                for a, b in zip(
                    frame.x.place(series.x[points]), frame.y.place(held[points]), strict=True
                )
            ]
        )
    return (
        f'<path d="M{"L".join(edges[0] + edges[1][::-1])}z" fill="currentColor" '
        'fill-opacity=".15"/>'
    )


def _thin(x: np.ndarray, y: np.ndarray, frame: Frame) -> np.ndarray:
    return thin(transform(x, frame.x.scale), transform(y, frame.y.scale), KEPT_POINTS)


def _runs(visible: np.ndarray) -> list[np.ndarray]:
    at = np.flatnonzero(visible)
    return np.split(at, np.flatnonzero(np.diff(at) > 1) + 1) if len(at) else []


def _both_edges(series: Series) -> np.ndarray:
    assert series.low is not None
    assert series.high is not None
    return np.isfinite(series.low) & np.isfinite(series.high)


def _path(series: Series, frame: Frame, run: np.ndarray, stepped: bool) -> str:
    x = [_n(v) for v in frame.x.place(series.x[run])]
    y = [_n(v) for v in frame.y.place(series.y[run])]
    if stepped:
        return f"M{x[0]} {y[0]}" + "".join(f"H{a}V{b}" for a, b in zip(x[1:], y[1:], strict=True))
    # A run of one point still leaves a dot, thanks to the round line cap.
    if len(x) == 1:
        return f"M{x[0]} {y[0]}h0"
    return "M" + "L".join(f"{a} {b}" for a, b in zip(x, y, strict=True))


def _marker(look: int, x: float, y: float) -> str:
    return (
        f'<path d="M{_n(x)} {_n(y)}{marker(look)}" fill="currentColor" '
        'stroke="var(--hf-paper,#fff)" stroke-width=".8"/>'
    )


def _hit(x: float, y: float) -> str:
    return f'<circle class="hf-hit" cx="{_n(x)}" cy="{_n(y)}" r="8" fill="transparent"/>'


def _error_bar(
    x: float, y0: float, y1: float, stroke: str = "currentColor", width: float = 1.3
) -> str:
    a, b, c = _n(x - 3.5), _n(y0), _n(y1)
    return (
        f'<path d="M{_n(x)} {b}V{c}M{a} {b}h7M{a} {c}h7" stroke="{stroke}" '
        f'stroke-width="{width:g}"/>'
    )


def _point_text(series: Series, i: int) -> str:
    text = f"{series.label}: " if series.label else ""
    text += f"{number(float(series.x[i]))}, {number(float(series.y[i]))}"
    if series.low is not None and series.high is not None:
        text += f" ({number(float(series.low[i]))} to {number(float(series.high[i]))})"
    return text


def _bar_text(bars: Bars, i: int, value: float, half: float | None) -> str:
    name = f"{bars.labels[i]}, {bars.group}" if bars.group else bars.labels[i]
    return f"{name}: {number(value)}" + ("" if half is None else f" ± {number(half)}")


def _n(value: float) -> str:
    # Far outside the picture nothing is seen, and short numbers keep the file small.
    text = f"{min(max(float(value), -1e5), 1e5):.1f}"
    return text[:-2] if text.endswith(".0") else text
