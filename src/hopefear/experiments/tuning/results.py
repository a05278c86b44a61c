"""Every number as plain JSON, and the scores as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from hopefear.experiments.common.files import results_file, signature_of
from hopefear.experiments.common.translations import METRIC
from hopefear.experiments.tuning.measuring import Measured, Result
from hopefear.experiments.tuning.plan import Plan
from hopefear.experiments.tuning.problems import TESTS, VAL
from hopefear.experiments.tuning.verdicts import Judge, Verdict

WHERE = (VAL, *TESTS)


def signature(plan: Plan) -> str:
    """What the numbers came from, in one line."""
    parts = {
        "experiment": "tuning",
        "parts": ",".join(part.key for part in plan.parts),
        "start": "moses",
        "seeds": ",".join(map(str, plan.seeds)),
        "metric": METRIC.signature,
    }
    return signature_of(**parts)


def mean_range(values: np.ndarray) -> str:
    """Mean, and the range where there are several.

    >>> mean_range(np.array([1.0, 2.0])), mean_range(np.array([1.0]))
    ('1.50 (1.00–2.00)', '1.00')
    """
    mean = f"{values.mean():.2f}"
    return f"{mean} ({values.min():.2f}–{values.max():.2f})" if len(values) > 1 else mean


def table_text(made: Measured, plan: Plan) -> str:
    """All tuners, for a terminal."""
    lines = []
    for part in plan.parts:
        size = made.features[part.key]
        lines.append(f"{part.title} ({size:,} features)")
        lines.append(f"  {'':32}" + "".join(f"{where:>11}" for where in WHERE) + f"{'CPU s':>9}")
        for result in made.results[part.key].values():
            if result.refused:
                lines.append(f"  {result.entry.title:32}refuses")
                continue
            scores = "".join(f"{result.scores(where).mean():>11.2f}" for where in WHERE)
            lines.append(f"  {result.entry.title:32}{scores}{result.seconds:>9.2f}")
    return "\n".join(lines)


def to_json(
    made: Measured, judge: Judge, verdicts: Sequence[Verdict], plan: Plan, quick: bool
) -> bytes:
    """The file ``results.json``."""
    content = {
        "seeds": list(plan.seeds),
        "lists": made.lists,
        "features": made.features,
        "fixed": made.fixed,
        "results": {
            part: {key: _result(result) for key, result in found.items()}
            for part, found in made.results.items()
        },
        "tests": judge.to_json(),
    }
    return results_file(signature(plan), quick, content, verdicts)


def _result(result: Result) -> dict[str, Any]:
    return {
        "title": result.entry.title,
        "recipe": result.entry.recipe,
        "params": dict(result.params),
        "trials": [trial._asdict() for trial in result.trials],
        "runs": [{k: v for k, v in asdict(run).items() if k != "choices"} for run in result.runs],
    }
