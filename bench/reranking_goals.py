"""Figures of reranking.py: what they measure, the peer's need, the goals, the verdicts.

The peer is the reranker of the BLLIP parser, measured on the same lists: its averaged perceptron
for a pass, its L-BFGS estimator for training in all. Stretch goals are our own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from reranking_passes import LEARNERS


class Goal(NamedTuple):
    """A row of the table; figures in CPU seconds (s), MB, or something a second."""

    what: str
    unit: str = "s"
    peer: float | None = None
    must: float | None = None
    stretch: float | None = None

    @property
    def more_is_better(self) -> bool:
        return self.unit.endswith("/s")


PASS = 0.19  # CPU seconds of the peer, 44 million values
F = 87.07  # on test, of the peer's best estimator
TRAINING = {"perceptron": 9.4, "maxent": 112.6, "vrda": 112.6}


def _passes(where: str, title: str) -> dict[str, Goal]:
    rows = {f"yardstick {where}": Goal(f"X @ w by SciPy, {title}")}
    for name in LEARNERS:
        rows[f"{name} {where}"] = Goal(f"{name}, a pass, {title}", "s", PASS, PASS, PASS / 2)
    return rows


# By group of --only, in the order they are shown.
GOALS: dict[str, dict[str, Goal]] = {
    "synthetic": _passes("synthetic", "lists of the peer's size"),
    "passes": _passes("real", "parses"),
    "training": {
        f"training {name}": Goal(f"{name}, all passes, to test F {F}", "s", peer, 5.0, 2.5)
        for name, peer in TRAINING.items()
    },
    "extraction": {
        "extraction": Goal("features of all trees, from files", "s", 612.0, 183.6, 61.2),
        "extraction memory": Goal("the same, peak memory", "MB", 279.0, 558.0, 279.0),
    },
    "predict": {
        "predict": Goal("parses ranked in Python, from a file", "trees/s"),
        "predict process": Goal("the same by `hopefear predict`, the whole process", "trees/s"),
    },
    "texts": {
        "texts data": Goal("translations and references to training lists, BLEU", "texts/s"),
        "texts predict": Goal("translations ranked in Python, from a file", "texts/s"),
        "texts process": Goal("the same by `hopefear predict`, the whole process", "texts/s"),
    },
}


def verdict(goal: Goal, value: float | None) -> str:
    """``stretch``, ``met`` or ``MISSED``; nothing where there is no goal.

    >>> verdict(Goal("a pass", "s", 0.2, 0.2, 0.1), 0.15), verdict(Goal("a pass", must=1.0), None)
    ('met', 'MISSED')
    """
    if goal.must is None:
        return ""
    if value is None:
        return "MISSED"
    for name, bound in (("stretch", goal.stretch), ("met", goal.must)):
        if bound is not None and (value >= bound if goal.more_is_better else value <= bound):
            return name
    return "MISSED"


def line(key: str, goal: Goal, value: float | None, note: str = "") -> dict[str, Any]:
    """A row of the table."""
    fields = {"key": key, **goal._asdict(), "value": value}
    return {**fields, "verdict": verdict(goal, value), "note": note}


def table(lines: list[dict[str, Any]]) -> str:
    """All rows as text."""
    rows = [("", "figure", "unit", "peer", "of it", "goal", "stretch", "", "")]
    for one in lines:
        value, peer, must, stretch = (
            _short(one[key], one["unit"]) for key in ("value", "peer", "must", "stretch")
        )
        share = f"{one['value'] / one['peer']:.2f}" if one["value"] and one["peer"] else ""
        figures = (value, one["unit"], peer, share, must, stretch)
        rows.append((one["what"], *figures, one["verdict"], one["note"]))
    wide = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    left = (0, 2, 7, 8)
    return "\n".join(
        "  ".join(
            cell.ljust(size) if c in left else cell.rjust(size)
            for c, (cell, size) in enumerate(zip(row, wide, strict=True))
        ).rstrip()
        for row in rows
    )


def _short(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if unit != "s" or value >= 100.0 else f"{value:.3f}"
