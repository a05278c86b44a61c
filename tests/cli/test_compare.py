"""Curves of learners side by side, on axes that suit them all."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from hopefear.cli.compare import Result, Run, Study
from hopefear.cli.surface import Score

pytestmark = pytest.mark.interpreted


def result(name, passes, seconds, pieces=1):
    events = []
    for p in range(passes):
        for k in range(1, pieces + 1):
            event = {"epoch": p + k / pieces, "samples": 10 * (p * pieces + k), "mistakes": 5}
            event |= {"nnz": 3} | ({"seconds": seconds[p], "dev": {"f1": p}} if k == pieces else {})
            events.append(event)
    return Result([Run(name, 1, events, {"f1": 50.0}, None, 3, 3, None, "")])


def study(*results):
    surface = SimpleNamespace(scores=lambda prepared: (Score("F1", "f1"),), unit="sentences")
    made = Study(surface, None, None)
    made.results.extend(results)
    return made


def test_seconds_leave_the_compiler_out_and_spread_over_a_pass():
    one = result("online", 3, [9.0, 1.0, 2.0], pieces=2)
    assert one.moments("seconds") == pytest.approx([1.0, 2.0, 2.5, 3.0, 4.0, 5.0])
    assert one.moments("passes") == [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    assert one.moments("samples") == [10, 20, 30, 40, 50, 60] and one.passes == 3
    assert result("once", 1, [9.0]).moments("seconds") == [9.0]


@pytest.mark.parametrize("axis", ["passes", "samples", "seconds"])
def test_the_axis_is_logarithmic_only_beside_a_much_longer_learner(axis):
    short, long = result("online", 5, [1.0] * 5), result("batch", 200, [1.0] * 200)
    for results, scale in (((short, short), "linear"), ((short, long), "log")):
        curves, trades = study(*results).plots(axis), study(*results).trades()
        assert [plot.x_scale for plot in curves] == [scale] * 3
        assert [plot.x_scale for plot in trades] == ["log"] * 2
        assert all(len(plot.series) == 2 for plot in curves)
        assert all(plot.to_svg().startswith("<svg") for plot in curves)


def test_mistakes_are_a_share_of_what_was_seen():
    mistakes = study(result("online", 2, [1.0, 1.0])).plots()[0]
    assert mistakes.series[0].y.tolist() == [50.0, 25.0] and "sentences" in mistakes.y_label
