"""Every number as plain JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from hopefear.experiments.common.files import results_file, signature_of
from hopefear.experiments.vrda_classification.bound import BoundCurve
from hopefear.experiments.vrda_classification.measuring import Measured
from hopefear.experiments.vrda_classification.plan import HELD_OUT, SEED, Plan
from hopefear.experiments.vrda_classification.problems import TRANSFORM
from hopefear.experiments.vrda_classification.runs import Run, Scores
from hopefear.experiments.vrda_classification.verdicts import Verdict


def signature(plan: Plan) -> str:
    """What the numbers came from, in one line."""
    parts = {
        "experiment": "vrda-classification",
        "passes": plan.passes,
        "seed": SEED,
        **TRANSFORM,
        "intercept": "none",
        "held-out": HELD_OUT,
    }
    return signature_of(**parts)


def to_json(
    measured: list[Measured],
    curves: list[BoundCurve],
    verdicts: Iterable[Verdict],
    plan: Plan,
    quick: bool,
    note: str,
) -> bytes:
    """The file ``results.json``."""
    content = {
        "note": note,
        "settings": asdict(plan) | {"seed": SEED, "held_out": HELD_OUT, "transform": TRANSFORM},
        "problems": {m.name: _problem(m) for m in measured},
        "bound": [
            {"noise": c.noise, "l1": c.strength, "reports": [r.to_dict() for r in c.reports]}
            for c in curves
        ],
    }
    return results_file(signature(plan), quick, content, verdicts)


def _problem(made: Measured) -> dict[str, Any]:
    train, test = made.problem.train, made.problem.test
    return {
        "data": {
            "about": made.problem.about,
            "train": len(train),
            "test": len(test),
            "features": train.n_features,
            "classes": list(train.classes),
            "train_digest": train.digest,
            "test_digest": test.digest,
        },
        "chosen": {
            key: {
                "best": asdict(c.best),
                "sparse": asdict(c.sparse),
                "edges": c.edges,
                "trials": [asdict(t) for t in c.trials],
            }
            for key, c in made.choices.items()
        },
        "best": {key: _run(r) for key, r in made.best.items()},
        "sparse": {key: _run(r) for key, r in made.sparse.items()},
        "trails": {
            key: [
                {
                    "l1": t.strength,
                    "samples": t.samples.tolist(),
                    "nnz": t.nnz.tolist(),
                    "mistakes": t.mistakes.tolist(),
                }
                for t in trails
            ]
            for key, trails in made.trails.items()
        },
        "votes": {
            loss: {
                "voted": 100.0 * float(v.voted.mean()),
                "averaged": 100.0 * float(v.averaged.mean()),
                "examples": len(v.voted),
                "predictors": v.predictors,
                "seconds_per_1000": v.seconds,
                "megabytes": v.megabytes,
            }
            for loss, v in made.votes.items()
        },
        "seconds_per_pass": made.times,
    }


def _run(done: Run) -> dict[str, Any]:
    return {
        "setting": done.setting,
        "signature": done.signature,
        "mistakes": done.mistakes.tolist(),
        "averaged": _scores(done.averaged),
        "last": _scores(done.last),
    }


def _scores(scores: Scores) -> dict[str, Any]:
    series = {
        name: scores.series(name).tolist() for name in ("precision", "recall", "f1", "accuracy")
    }
    return {"mean": scores.summary(), "nnz": scores.nnz.tolist(), **series}
