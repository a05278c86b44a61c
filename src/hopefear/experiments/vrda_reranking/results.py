"""Every number as plain JSON, and the scores as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from hopefear.experiments.common.files import results_file, signature_of
from hopefear.experiments.common.scores import spread
from hopefear.experiments.vrda_reranking.measuring import TABLE, TOP, Measured, Scored
from hopefear.experiments.vrda_reranking.plan import KEPT, Plan
from hopefear.experiments.vrda_reranking.problems import FEATURES, MIN_COUNT
from hopefear.experiments.vrda_reranking.runs import f_score
from hopefear.experiments.vrda_reranking.verdicts import PLACES, Judge, Verdict
from hopefear.metrics.lists.fmeasure import Brackets


def signature(plan: Plan) -> str:
    """What the numbers came from, in one line."""
    parts = {
        "experiment": "vrda-reranking",
        "features": FEATURES,
        "min_count": MIN_COUNT,
        "passes": "/".join(map(str, plan.marks)),
        "seeds": ",".join(map(str, plan.seeds)),
        "folds": plan.folds,
        "metric": Brackets().signature,
    }
    return signature_of(**parts)


def scores_of(counts: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """F, precision and recall of each seed."""
    found = [Brackets().scores(c.sum(axis=0)) for c in counts]
    return {name: np.array([f[name] for f in found]) for name in ("f1", "precision", "recall")}


def table_text(made: Measured) -> str:
    """Table 1, for a terminal."""
    lines = [f"{'':18}{'dev F':>9}{'test F':>16}{'weights':>10}"]
    for name in ("baseline", *TABLE, TOP):
        f1 = scores_of(made.counts(name, "test"))["f1"]
        if name == "baseline":
            lines.append(f"{name:18}{'':9}{f1.mean():>16.2f}")
            continue
        dev = np.mean([s.dev for s in made.test[name]])
        lines.append(f"{name:18}{dev:>9.2f}{spread(f1):>16}{made.nnz(name):>10,.0f}")
    return "\n".join(lines)


def to_json(
    made: Measured, judge: Judge, verdicts: Sequence[Verdict], plan: Plan, quick: bool
) -> bytes:
    """The file ``results.json``."""
    content = {
        "settings": asdict(plan),
        "lists": made.lists,
        "features": made.features,
        "baseline": {where: f_score(made.baseline[where]) for where in PLACES},
        "oracle": {where: f_score(made.oracle[where]) for where in PLACES},
        "trials": {
            key: [{**t._asdict(), "kept": KEPT[t.kept]} for t in found]
            for key, found in made.trials.items()
        },
        "choices": {name: _choice(made, name) for name in made.choices},
        "published": {name: _scored(found) for name, found in made.published.items()},
        "votes": {k: [f_score(c) for c in found] for k, found in made.votes.items()},
        "trails": {
            key: [
                {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in asdict(t).items()}
                for t in found
            ]
            for key, found in made.trails.items()
        },
        "tests": judge.to_json(),
    }
    return results_file(signature(plan), quick, content, verdicts)


def _choice(made: Measured, name: str) -> dict[str, Any]:
    trial = made.choices[name]
    found: dict[str, Any] = {**trial._asdict(), "kept": KEPT[trial.kept]}
    found["test"] = _scored(made.test[name])
    if name in made.folds:
        (whole,) = made.counts(name, "folds")
        found["folds"] = {**_scored(made.folds[name]), "f1_of_all": f_score(whole)}
    return found


def _scored(found: Sequence[Scored]) -> dict[str, Any]:
    scores = scores_of([s.counts for s in found])
    return {
        "signature": found[0].signature,
        "dev": [s.dev for s in found],
        "nnz": [s.nnz for s in found],
        **{name: values.tolist() for name, values in scores.items()},
    }
