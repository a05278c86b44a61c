"""Every number as plain JSON, and the scores as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from hopefear.experiments.common.files import results_file, signature_of
from hopefear.experiments.common.scores import spread
from hopefear.experiments.sapo.measuring import Measured
from hopefear.experiments.sapo.plan import (
    CRF,
    DECAY,
    ENTRIES,
    HELD_OUT,
    KEPT,
    SAPO,
    SEARCHERS,
    Plan,
)
from hopefear.experiments.sapo.runs import Run
from hopefear.experiments.sapo.verdicts import Verdict, against


def signature(plan: Plan) -> str:
    """What the numbers came from, in one line."""
    parts = {
        "experiment": "sapo",
        "passes": "/".join(str(task.passes) for task in plan.tasks),
        "seeds": ",".join(map(str, plan.seeds)),
        "n": plan.n,
        "decay": DECAY,
        "constraints": "never",
    }
    return signature_of(**parts)


def to_json(
    measured: Sequence[Measured],
    verdicts: Sequence[Verdict],
    plan: Plan,
    quick: bool,
    note: str,
) -> bytes:
    """The file ``results.json``."""
    content = {
        "note": note,
        "settings": asdict(plan) | {"held_out": HELD_OUT},
        "tasks": {made.name: _task(made, plan) for made in measured},
    }
    return results_file(signature(plan), quick, content, verdicts)


def table_text(measured: Sequence[Measured]) -> str:
    """Scores at the last pass, for a terminal."""
    lines = [f"{'':18}" + "".join(f"{made.name:>16}" for made in measured)]
    for entry in ENTRIES:
        cells = [spread(made.curve(entry)[:, -1]) for made in measured]
        lines.append(f"{entry.title:18}" + "".join(f"{cell:>16}" for cell in cells))
    return "\n".join(lines)


def _task(made: Measured, plan: Plan) -> dict[str, Any]:
    problem = made.problem
    return {
        "about": problem.task.about,
        "metric": made.metric,
        "data": {
            name: {"sentences": len(data), "tokens": data.n_tokens, "digest": data.digest}
            for name, data in (("train", problem.train), ("test", problem.test))
        },
        "labels": list(problem.train.labels),
        "attributes": problem.train.features.size,
        "weights": problem.weights,
        "trials": [trial._asdict() for trial in made.trials],
        "chosen": made.chosen._asdict() | {"edges": made.edges},
        "runs": {key: [_run(r) for r in runs] for key, runs in made.runs.items()},
        "by_n": {str(n): [_run(r) for r in runs] for n, runs in made.by_n.items()},
        "by_search": {key: [_run(r) for r in runs] for key, runs in made.by_search.items()},
        "seconds": {key: values.tolist() for key, values in made.times.items()},
        "tests": {
            f"SAPO against {e.title}": asdict(against(made, plan, SAPO, e))
            for e in (CRF, *SEARCHERS)
        },
    }


def _run(made: Run) -> dict[str, Any]:
    return {
        "signature": made.signature,
        "scores": dict(zip(KEPT, made.scores.round(4).tolist(), strict=True)),
        "magnitude": dict(zip(KEPT, made.magnitude.tolist(), strict=True)),
        "seconds": made.seconds.round(4).tolist(),
        "mistakes": made.mistakes.tolist(),
    }
