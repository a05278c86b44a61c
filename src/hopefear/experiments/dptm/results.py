"""Every number as plain JSON, and the scores as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from hopefear.experiments.common.files import results_file, signature_of
from hopefear.experiments.common.scores import spread
from hopefear.experiments.common.translations import FOLDER, METRIC
from hopefear.experiments.dptm.measuring import DECODER, RETUNED, Measured
from hopefear.experiments.dptm.plan import TABLE, Plan
from hopefear.experiments.dptm.problems import label
from hopefear.experiments.dptm.runs import LINE, MERT
from hopefear.experiments.dptm.verdicts import Judge, Verdict


def signature(plan: Plan) -> str:
    """What the numbers came from, in one line."""
    parts = {
        "experiment": "dptm",
        "lists": FOLDER,
        "passes": "/".join(map(str, plan.marks)),
        "seeds": ",".join(map(str, plan.seeds)),
        "restarts": plan.restarts,
        "metric": METRIC.signature,
    }
    return signature_of(**parts)


def table_text(made: Measured) -> str:
    """Table 3, for a terminal."""
    lines = [f"{'':20}{'dev':>8}" + "".join(f"{label(where):>19}" for where in made.places)]
    for name in (DECODER, RETUNED, *TABLE):
        cells = [
            f"{found[0]:.2f}" if len(found) == 1 else spread(found)
            for found in (made.bleus(name, where) for where in made.places)
        ]
        lines.append(f"{name:20}{made.dev(name):>8.2f}" + "".join(f"{c:>19}" for c in cells))
    return "\n".join(lines)


def to_json(
    made: Measured, judge: Judge, verdicts: Sequence[Verdict], plan: Plan, quick: bool
) -> bytes:
    """The file ``results.json``."""
    content = {
        "settings": asdict(plan),
        "pairs": made.problem.size,
        "lists": {
            "train": len(made.problem.train),
            "dev": len(made.problem.dev.lists),
            **{name: len(part.lists) for name, part in made.problem.tests.items()},
        },
        "table": {key: [t._asdict() for t in found] for key, found in made.table.items()},
        "sweeps": {key: [t._asdict() for t in found] for key, found in made.sweeps.items()},
        "decoder": {where: float(made.bleus(DECODER, where)[0]) for where in made.places},
        "choices": {name: _choice(made, name) for name in made.scored},
        "tests": judge.to_json(),
    }
    return results_file(signature(plan), quick, content, verdicts)


def _choice(made: Measured, name: str) -> dict[str, Any]:
    found: dict[str, Any] = made.choices[name]._asdict() if name in made.choices else {}
    scored = made.scored[name]
    found |= {"signature": scored[0].signature, "nnz": [s.nnz for s in scored]}
    found["weight"] = [s.weight for s in scored]
    for how in (LINE, MERT):
        found[how] = {
            "dev": [s.dev[how] for s in scored],
            **{where: made.bleus(name, where, how).tolist() for where in made.places},
        }
    return found
