"""Plots: well-formed, honest about what they drop, and readable by everyone."""

import itertools
import math
import re
import time
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopefear.report import Plot
from hopefear.report.axes import linear_ticks, log_ticks, tick_labels
from hopefear.report.marks import thin
from hopefear.report.theme import DARK, LIGHT, MARKERS, PAPER

pytestmark = pytest.mark.interpreted

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</svg><script>alert('x')</script> \"&\x00\ud800 ]]>"
# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
EYES = {
    "normal": np.eye(3),
    "green-blind": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "red-blind": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "blue-blind": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}


def parse(plot, **size):
    root = ET.fromstring(plot.to_svg(**size))
    assert root.tag == f"{SVG}svg"
    return root


def words(root):
    return [node.text for node in root.iter(f"{SVG}text")]


def curve_points(root):
    """Vertices of each curve; only curves have joined strokes."""
    paths = [p.get("d") for p in root.iter(f"{SVG}path") if p.get("stroke-linejoin")]
    return [re.findall(r"-?[\d.]+ -?[\d.]+", d) for d in paths]


@pytest.mark.parametrize(
    ("lo", "hi", "expected"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0, 93, [0, 20, 40, 60, 80]),
        (-3, 7, [-2, 0, 2, 4, 6]),
        (0.0012, 0.0019, [0.0012, 0.0014, 0.0016, 0.0018]),
    ],
)
def test_linear_ticks_are_round(lo, hi, expected):
    assert linear_ticks(lo, hi) == pytest.approx(expected, abs=1e-12)


@given(st.floats(-1e12, 1e12), st.floats(1e-6, 1e12), st.integers(2, 8))
def test_linear_ticks_lie_inside_and_are_few(lo, width, count):
    hi = lo + width
    if hi - lo < 1e-9 * max(abs(lo), abs(hi)):
        return
    ticks = linear_ticks(lo, hi, count)
    slack = 1e-6 * (hi - lo)
    assert 1 <= len(ticks) <= 2 * count + 2
    assert all(lo - slack <= t <= hi + slack for t in ticks)
    steps = [b - a for a, b in itertools.pairwise(ticks)]
    assert all(math.isclose(s, steps[0], rel_tol=1e-3) for s in steps)


@given(st.floats(-200, 200), st.floats(0.01, 100))
def test_log_ticks_lie_inside(low, decades):
    lo, hi = 10**low, 10 ** (low + decades)
    ticks = log_ticks(lo, hi)
    assert ticks
    assert all(lo * (1 - 1e-6) <= t <= hi * (1 + 1e-6) for t in ticks)
    assert len(ticks) == len(set(tick_labels(ticks)))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0, 500, 1000, 1500], ["0", "0.5k", "1k", "1.5k"]),
        ([1, 10, 100, 1000, 10000], ["1", "10", "100", "1k", "10k"]),
        ([0.2, 0.5, 1, 2], ["0.2", "0.5", "1", "2"]),
        ([-0.5, 0, 0.5], ["−0.5", "0", "0.5"]),
        ([2e6, 4e6], ["2M", "4M"]),
        ([1e-5, 2e-5, 5e-5], ["10⁻⁵", "2·10⁻⁵", "5·10⁻⁵"]),
        ([86.05, 86.1, 86.15], ["86.05", "86.1", "86.15"]),
    ],
)
def test_tick_labels_read_well(values, expected):
    assert tick_labels(values) == expected


def test_log_axis_drops_what_it_cannot_show_and_says_so():
    plot = Plot("t", "x", "y", x_scale="log", y_scale="log")
    plot.line([0, 1, 10, 100, 1000], [5, -1, 10, 0, 20], "a")
    root = parse(plot)
    note = "3 values are not positive and left out: a log axis has no place for them."
    assert note in words(root)
    # 10 and 1000 stand alone on both sides of a gap: two dots, no line between them.
    path = next(p.get("d") for p in root.iter(f"{SVG}path") if p.get("stroke-linejoin"))
    assert path.count("M") == path.count("h0") == 2
    assert "L" not in path
    assert "2 points" in root.find(f"{SVG}desc").text


def test_not_finite_values_break_the_line_and_are_counted():
    root = parse(Plot("t").line([1, 2, 3, 4, 5], [1, 2, math.nan, 4, math.inf], "a"))
    assert "2 values are not finite and left out." in words(root)
    path = next(p.get("d") for p in root.iter(f"{SVG}path") if p.get("stroke-linejoin"))
    assert path.count("M") == 2
    assert "nan" not in path
    assert "inf" not in path


@pytest.mark.parametrize(
    "plot",
    [
        Plot("nothing"),
        Plot("empty", x_scale="log", y_scale="log").line([], [], "a"),
        Plot("all nan").line([1, 2], [math.nan, math.nan], "a", band=([0, 0], [1, 1])),
        Plot("bars of nothing").bars([], []),
        Plot("only negative", y_scale="log").bars(["a"], [-1.0]),
    ],
)
def test_plots_without_values_say_so(plot):
    assert "no values to show" in words(parse(plot))


@pytest.mark.parametrize("value", [0.0, 5.0, -3.0, 1e-30, 1e290, -1e299])
def test_a_single_point_is_seen(value):
    for kind in ("line", "step", "points"):
        plot = Plot("one", "x", "y")
        getattr(plot, kind)([7.0], [value], "a")
        root = parse(plot)
        assert any(t.text.startswith("a: 7, ") for t in root.iter(f"{SVG}title"))


numbers = st.one_of(st.floats(allow_nan=True, allow_infinity=True), st.integers(-5, 5))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(numbers, numbers, numbers), max_size=12),
    st.sampled_from(["linear", "log"]),
    st.sampled_from(["linear", "log"]),
    st.text(max_size=20),
)
def test_any_numbers_and_any_text_give_sound_svg(rows, x_scale, y_scale, text):
    x, y, e = (list(v) for v in zip(*rows, strict=True)) if rows else ([], [], [])
    plot = Plot(text, text, text, x_scale, y_scale).hline(e[0] if e else 0.0, text)
    plot.line(x, y, text, band=(e, y)).points(x, y, text + "2", error=e).step(x, y, text)
    bars = Plot(text, y_scale=y_scale).bars([text] * len(y), y, error=e, group=text)
    for drawn in (plot, bars):
        svg = drawn.to_svg(width=300, height=200)
        ET.fromstring(svg)
        coordinates = re.findall(r' (?:d|x|y|cx|cy|width|height)="([^"]*)"', svg)
        assert not re.search("nan|inf", " ".join(coordinates))


def test_long_curves_are_thinned_and_keep_their_peaks():
    n = 300_000
    y = np.sin(np.arange(n) / 3000)
    y[123_456] = 9.0
    svg = Plot("t").line(np.arange(n), y, "a").to_svg()
    kept = curve_points(ET.fromstring(svg))[0]
    assert len(kept) <= 400
    assert len(svg) < 30_000
    top = min(float(p.split()[1]) for p in kept)
    others = sorted(float(p.split()[1]) for p in kept)[1]
    assert others - top > 100


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3000), st.integers(4, 100), st.booleans(), st.integers(0, 9))
def test_thinning_keeps_ends_and_extremes(n, keep, ordered, seed):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.random(n)) if ordered else rng.random(n)
    y = rng.normal(size=n)
    kept = thin(x, y, keep)
    assert len(kept) <= max(keep, 4)
    assert {0, n - 1, int(y.argmin()), int(y.argmax())} <= set(kept.tolist())
    assert np.all(np.diff(kept) > 0)


def test_crowded_points_are_thinned_and_said():
    root = parse(Plot("t").points(range(5000), range(5000), "dots"))
    assert "dots: 400 of 5,000 points are drawn." in words(root)


def test_hostile_text_stays_text():
    plot = Plot(HOSTILE, HOSTILE, HOSTILE).line([1, 2], [1, 2], HOSTILE).hline(1.5, HOSTILE)
    bars = Plot("t").bars([HOSTILE, "b"], [1, 2], group=HOSTILE)
    for drawn in (plot, bars):
        root = parse(drawn, width=2000)
        assert not list(root.iter(f"{SVG}script"))
        assert any("<script>" in (t or "") for t in words(root))


def test_time_is_linear_in_the_length_of_labels():
    text = "long label " * 10_000  # the square of its length would take minutes
    plot = Plot(text, text, text).line([1, 2], [1, 2], text).hline(1.5, text)
    bars = Plot("t").bars([text, "b"], [1, 2], group=text)
    begun = time.process_time()
    for drawn in (plot, bars):
        assert any(word.endswith("…") for word in words(parse(drawn)))
    assert time.process_time() - begun < 10


def test_curves_differ_by_shape_as_well_as_colour():
    plot = Plot("t")
    for k in range(8):
        plot.line([1, 2], [k, k + 1], f"curve {k}")
    svg = plot.to_svg()
    assert all(shape in svg for shape in MARKERS)
    assert len(set(MARKERS)) == len(MARKERS) == len(LIGHT) == len(DARK)


def test_bar_groups_differ_by_hatch_as_well_as_colour():
    plot = Plot("t").bars(["a"], [1], group="one").bars(["a"], [2], group="two")
    svg = plot.to_svg(prefix="p7")
    assert 'fill="url(#p7-h1)"' in svg
    assert 'id="p7-h1"' in svg


def test_a_label_keeps_its_look_and_stands_once_in_the_legend():
    plot = Plot("t").line([1], [1], "a").line([1], [2], "b").line([2], [1], "a")
    assert [s.look for s in plot.series] == [0, 1, 0]
    assert words(parse(plot)).count("a") == 1


def test_the_legend_stands_above_the_data():
    plot = Plot("t", "x", "y")
    for k in range(12):
        plot.line([1, 2], [1, 1000], f"a rather long name for curve {k}")
    root = parse(plot, width=400, height=200)
    names = [float(t.get("y")) for t in root.iter(f"{SVG}text") if "rather" in t.text]
    highest = min(float(p.split()[1]) for p in curve_points(root)[0])
    assert max(names) < highest
    assert float(root.get("height")) > 200


def test_values_outside_a_given_range_are_counted():
    root = parse(Plot("t", y_range=(0, 10)).line([1, 2, 3], [5, 50, 6], "a").hline(99, "far"))
    assert "2 values are outside the range of the axis." in words(root)
    assert "far" not in words(root)


def test_error_bars_reach_below_a_log_axis_without_harm():
    svg = Plot("t", y_scale="log").points([1, 2], [1.0, 10.0], "a", error=[5.0, 1.0]).to_svg()
    ET.fromstring(svg)
    assert "nan" not in svg


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Plot("t", x_scale="sqrt"), "use 'linear' or 'log'"),
        (lambda: Plot("t").line([1, 2], [1], "a"), "x has 2 entries but y has 1"),
        (lambda: Plot("t").bars(["a"], [1, 2]), "labels has 1 entries but values has 2"),
        (lambda: Plot("t").bars(["a"], [1]).line([1], [1], "b"), "make a second Plot"),
        (lambda: Plot("t").line([1], [1], "b").bars(["a"], [1]), "make a second Plot"),
        (lambda: Plot("t", y_scale="log", y_range=(0, 1)), "does not fit a log axis"),
    ],
)
def test_misuse_is_explained(act, message):
    with pytest.raises(ValueError, match=message):
        act()


def _linear(colour):
    c = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def _lab(rgb):
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    x = to_xyz @ np.clip(rgb, 0, 1) / np.array([0.9505, 1, 1.089])
    f = np.where(x > 0.008856, np.cbrt(x), 7.787 * x + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize(("palette", "theme"), [(LIGHT, "light"), (DARK, "dark")])
def test_colours_are_told_apart_by_every_eye(palette, theme):
    brightness = np.array([0.2126, 0.7152, 0.0722])
    paper = brightness @ _linear(PAPER[theme])
    for colour in palette:
        dark, light = sorted((brightness @ _linear(colour), paper))
        assert (light + 0.05) / (dark + 0.05) >= 3
    for eye in EYES.values():
        seen = [_lab(eye @ _linear(colour)) for colour in palette]
        for i, j in itertools.combinations(range(len(seen)), 2):
            assert np.linalg.norm(seen[i] - seen[j]) >= (24 if j < 5 else 14)


def test_a_value_beyond_all_pixels_stays_drawable():
    """Found by random search: the place of 1e306 on a short axis overflowed."""
    svg = Plot("", y_range=(0, 1)).points([0.0, 1.0], [0.0, 1.0], "", error=[0.0, 1.2e306]).to_svg()
    assert "inf" not in svg
    assert "nan" not in svg
