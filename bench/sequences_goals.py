"""Figures of sequences.py: what they measure, the goals, the verdicts."""

from __future__ import annotations

from typing import Any, NamedTuple


class Goal(NamedTuple):
    """A row of the table; figures in R (passes of CRFsuite), tokens/s, MB or times (x)."""

    what: str
    unit: str = "R"
    must: float | None = None
    stretch: float | None = None

    @property
    def more_is_better(self) -> bool:
        return self.unit in ("tokens/s", "x")


# By group of --only, in the order they are shown.
GOALS: dict[str, dict[str, Goal]] = {
    "passes": {
        "pass perceptron": Goal("averaged perceptron, a pass", "R", 0.45, 0.2),
        "pass mira": Goal("MIRA, 1-best, averaged, a pass", "R", 0.55, 0.25),
        "pass sapo": Goal("SAPO, n = 5, a pass", "R", 1.5, 0.6),
        "pass nbest-mira": Goal("n-best MIRA, n = 5, a pass", "R", 2.0, 0.8),
        "pass crf": Goal("CRF by SGD, a pass", "R", 0.9, 0.5),
        "pass swvp": Goal("SWVP, a pass", "R", 1.0, 0.4),
        "pass vrda": Goal("voted RDA, a pass", "R", 1.0, 0.4),
        "pass arow": Goal("AROW, a pass", "R", 1.0, 0.4),
        "average": Goal("reading the perceptron's average out, once a run"),
    },
    "gradient": {
        "gradient": Goal("CRF in batch, a gradient, 1 thread", "R", 0.8, 0.4),
        "threads": Goal("the same, wall time of 1 thread / of 2 threads", "x", 1.7, 1.9),
    },
    "text": {
        "text": Goal("text file to first pass", "R", 3.0, 1.5),
        "text process": Goal("the same from the start of a process", "R"),
        "text imports": Goal("of which starting Python and importing"),
        "text crfsuite": Goal("the same by python-crfsuite, imports left out"),
    },
    "lists": {
        "lists": Goal("lists of attribute strings to trainable data", "R", 3.0, 1.5),
        "tuples": Goal("lists of (word, pos) to trainable data, by templates"),
    },
    "f1": {
        "f1 sapo": Goal("text file to chunk F1 93.4, SAPO", "R", 8.0, 4.0),
        "f1 sapo process": Goal("the same by `hopefear train`, the whole process"),
        "f1 perceptron": Goal("text file to chunk F1 93.4, perceptron", "R", 8.0, 4.0),
        "f1 perceptron process": Goal("the same by `hopefear train`, the whole process"),
    },
    "tagging": {
        "tag": Goal("tagging (word, pos) in Python, templates included", "tokens/s", 250e3, 600e3),
        "decode": Goal("decoding only", "tokens/s", 1.2e6, 2.5e6),
    },
    "memory": {
        "memory": Goal("peak memory of training above the bare interpreter", "MB", 150.0, 80.0),
        "memory own": Goal("of which not imports and kernels", "MB"),
        "memory anonymous": Goal("peak without pages of files, above the interpreter", "MB"),
        "memory crfsuite": Goal("peak of python-crfsuite above the bare interpreter", "MB"),
    },
}


def verdict(goal: Goal, value: float | None) -> str:
    """``stretch``, ``met`` or ``MISSED``; nothing where there is no goal.

    >>> verdict(Goal("a pass", "R", 0.45, 0.2), 0.3), verdict(Goal("tagging", "x", 2.0, 3.0), 1.0)
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


def line(key: str, goal: Goal, value: float | None, R: float, note: str = "") -> dict[str, Any]:
    """A row of the table; seconds become multiples of R."""
    seconds = value if goal.unit == "R" else None
    if seconds is not None:
        value = seconds / R
    return {
        "key": key,
        "what": goal.what,
        "value": value,
        "unit": goal.unit,
        "seconds": seconds,
        "must": goal.must,
        "stretch": goal.stretch,
        "verdict": verdict(goal, value),
        "note": note,
    }


def table(lines: list[dict[str, Any]]) -> str:
    """All rows as text."""
    head = ("", "seconds", "figure", "unit", "goal", "stretch", "", "")
    rows = [head]
    for one in lines:
        figures = (_short(one[key], one["unit"]) for key in ("value", "must", "stretch"))
        value, must, stretch = figures
        seconds = "" if one["seconds"] is None else f"{one['seconds']:.3f}"
        rows.append(
            (one["what"], seconds, value, one["unit"], must, stretch, one["verdict"], one["note"])
        )
    wide = [max(len(row[c]) for row in rows) for c in range(len(head))]
    left = (0, 3, 6, 7)
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
    return f"{value:,.0f}" if unit in ("tokens/s", "MB") else f"{value:.2f}"
