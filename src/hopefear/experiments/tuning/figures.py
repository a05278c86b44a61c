"""BLEU by round, and time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hopefear.experiments.tuning.measuring import Measured, Result
from hopefear.experiments.tuning.plan import Part
from hopefear.experiments.tuning.problems import TESTS, VAL
from hopefear.experiments.tuning.runs import best_so_far
from hopefear.report.plot import Plot

SHOWN = ("mert", "kbmira", "mira", "pro-slow", "pro", "rampion", "ssvm", "risk", "expected-bleu")
_RESTARTED = "mert"  # its rounds are starts, which know no order: the best so far counts


def by_round(made: Measured, part: Part) -> list[Plot]:
    """A plot for val and one for each test set."""
    plots = []
    for where in (VAL, *TESTS):
        plot = Plot(f"{where}", "round (MERT: start)", "BLEU")
        for look, key in enumerate(key for key in SHOWN if made.has(part.key, key)):
            _curve(plot, made.of(part.key, key), where, look)
        for way in ("start", "decoder"):
            plot.hline(made.fixed[way][where], "untuned" if way == "start" else "decoder")
        plots.append(plot)
    return plots


def _curve(plot: Plot, result: Result, where: str, look: int) -> None:
    found = []
    for run in result.runs:
        rounds = best_so_far(run) if result.entry.recipe == _RESTARTED else run.rounds
        key = where if where != VAL else ("dev" if "dev" in rounds else "train")
        found.append(rounds[key])
    length = min(map(len, found))
    if not length:
        return
    curves = np.array([values[:length] for values in found])
    x = np.arange(1, length + 1)
    if length == 1:
        plot.points(x, curves.mean(axis=0), result.entry.title, look=look)
        return
    band = (curves.min(axis=0), curves.max(axis=0)) if len(found) > 1 else None
    plot.line(x, curves.mean(axis=0), result.entry.title, band=band, look=look)


def times(made: Measured, parts: Sequence[Part]) -> Plot:
    """CPU seconds against BLEU on both test sets, a point for each tuner."""
    plot = Plot("time and BLEU", "CPU seconds of tuning", "BLEU, mean of both tests", "log")
    for look, part in enumerate(parts):
        done = [r for r in made.results[part.key].values() if not r.refused and r.seconds > 0.0]
        if done:
            points = [np.mean([r.scores(test).mean() for test in TESTS]) for r in done]
            plot.points([r.seconds for r in done], points, part.title, look=look)
    return plot
