"""Sections of a page of runs: what theorems said of runs with ``--bounds``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hopefear.report import Page, Run
from hopefear.report.plot import Plot

_BOUND_COLUMNS = {
    "mistakes": "mistakes",
    "theorem1": "Theorem 1",
    "corollary1": "error, Corollary 1",
    "delta": "Δ(u)",
    "delta_bar": "Δ̄(u)",
    "R": "R",
    "G": "G",
    "comparator_norm": "‖u‖",
    "comparator_loss": "loss of u",
    "regime": "regime",
}


def draw(page: Page, runs: Sequence[Run]) -> None:
    """Adds a section for each theorem that some run was measured by."""
    _bounds(page, runs)
    _steps(page, runs)


def _theory(event: Any, name: str) -> dict[str, Any]:
    """Returns what the theorem on a learner says in an event; empty where it says nothing."""
    theory = event.get("theory")
    return theory if isinstance(theory, dict) and theory.get("name") == name else {}


def _bounds(page: Page, runs: Sequence[Run]) -> None:
    bounded = [run for run in runs if any(_theory(e, "vrda") for e in run.events)]
    if not bounded:
        return
    page.section("Mistakes against the bounds")
    page.text(
        "Theorem 1 limits the mistakes of a run in terms of a comparator u, whatever the "
        "order of the data; Corollary 1 turns that into a probability of error on new data. "
        "A curve of mistakes stays below its bound unless the regime is vacuous."
    )
    plots = []
    for run in bounded:
        curves = {key: run.curve("theory", key) for key in ("mistakes", "theorem1")}
        if not curves["mistakes"][1]:
            curves["mistakes"] = run.curve("mistakes")
        tops = [max(y) for _, y in curves.values() if y]
        far = len(tops) > 1 and max(tops) > 30 * max(min(tops), 1.0)
        plot = Plot(run.name, run.clock(), "mistakes", y_scale="log" if far else "linear")
        for look, (key, (x, y)) in enumerate(curves.items()):
            if y:
                plot.line(x, y, _BOUND_COLUMNS[key], dashed=key != "mistakes", look=look)
        plots.append(plot)
    page.figures(plots)
    last = [
        next(filter(None, (_theory(e, "vrda") for e in reversed(run.events)))) for run in bounded
    ]
    terms = [key for key in _BOUND_COLUMNS if any(key in b for b in last)]
    page.table(
        ["run", *(_BOUND_COLUMNS[key] for key in terms)],
        [[run.name, *(b.get(key) for key in terms)] for run, b in zip(bounded, last, strict=True)],
        "Terms of the bounds at the last event.",
    )


# Of each theorem: what is drawn, the words for it, and what the figures mean.
_THEOREMS = {
    "mira": (
        {"left": "squared costs", "right": "bound", "cost": "costs"},
        "MIRA: the sum of squared costs of predictions (cut off at C R² times the cost) stays "
        "below its bound for the comparator u. The slides print the plain sum of costs in its "
        "place, which may rise above it.",
    ),
    "swvp": (
        {"updates": "updates", "bound": "(R_JJ / δ_JJ)²"},
        "SWVP: updates stay below (R_JJ / δ_JJ)² where the comparator u separates all mixtures "
        "that moved the weights; where it does not, there is no bound.",
    ),
    "sapo": (
        {"gap": "g_all − g_n", "rho": "ρ_n"},
        "SAPO: ρ_n is the probability of all outputs but the n best, and g_all − g_n = −log(1 − "
        "ρ_n) what the loss leaves out of the CRF's; means since the event before.",
    ),
}


def _steps(page: Page, runs: Sequence[Run]) -> None:
    """Theorems on steps, each run by itself."""
    for name, (curves, words) in _THEOREMS.items():
        measured = [run for run in runs if any(_theory(e, name) for e in run.events)]
        if not measured:
            continue
        page.section(f"What theory says of {name.upper()}")
        page.text(words)
        plots = []
        for run in measured:
            plot = Plot(run.name, run.clock(), ", ".join(curves.values()))
            for look, (key, title) in enumerate(curves.items()):
                x, y = run.curve("theory", key)
                if y:
                    plot.line(x, y, title, dashed=key in ("right", "bound"), look=look)
            plots.append(plot)
        page.figures(plots)
        last = [
            next(filter(None, (_theory(e, name) for e in reversed(run.events)))) for run in measured
        ]
        terms = [key for key in last[0] if key not in ("name", "says")]
        page.table(
            ["run", *terms],
            [
                [run.name, *(one.get(k) for k in terms)]
                for run, one in zip(measured, last, strict=True)
            ],
            "Terms at the last event.",
        )
