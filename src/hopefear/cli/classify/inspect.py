"""``hopefear inspect`` of a classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hopefear.cli.console import Console
from hopefear.cli.inspect import labels_in_words, listed
from hopefear.training.predictors import VotedPredictor

if TYPE_CHECKING:
    from hopefear.tasks.classify.model import Model


def facts(model: Model, top: int) -> dict[str, Any]:
    """What there is to say."""
    coordinates = model.structure.n_coordinates()
    found: dict[str, Any] = {
        "classes": list(model.classes),
        "features": model.features.size,
        "feature_kind": model.features.kind,
        "coordinates": coordinates,
        "nnz": model.nnz,
        "density": 100.0 * model.nnz / max(1, coordinates),
        "intercept": model.structure.bias,
        "transform": dict(model.transform),
        "signature": model.signature,
        "about": dict(model.about),
    }
    collisions = getattr(model.features, "collisions", None)
    if collisions is not None:
        found["hash_collisions"] = 100.0 * collisions
    if isinstance(model.predictor, VotedPredictor):
        votes = model.predictor
        found["votes"] = {
            "predictors": int(votes.drops.size),
            "entries": int(votes.begin.size),
            "examples": float(votes.survived[-1]),
        }
    else:
        found["top"] = model.top(top)
    return found


def show(console: Console, facts: dict[str, Any]) -> None:
    """Say it."""
    about = facts["about"]
    data, training = about.get("data", {}), about.get("training", {})
    size, votes = facts["bytes"], facts.get("votes")
    collisions = facts.get("hash_collisions")
    last = training.get("last_nnz")
    kept = "" if last is None else f"; the last weights had {last:,}"
    console.pairs(
        {
            "model": facts["model"] + (f"  ({size:,} bytes)" if size else ""),
            "classes": labels_in_words(facts["classes"]),
            "features": f"{facts['features']:,} ({facts['feature_kind']})",
            "hash collisions": None if collisions is None else f"{collisions:.2f} %",
            "non-zeros": f"{facts['nnz']:,} of {facts['coordinates']:,} weights "
            f"({facts['density']:.3g} %){kept}",
            "votes": votes
            and f"{votes['predictors']:,} predictors, kept as "
            f"{votes['entries']:,} changes of weights; they saw {votes['examples']:,.0f} examples",
            "intercept": f"{facts['intercept']:.6g}",
            "rows": f"values {facts['transform']['values']}, norm {facts['transform']['norm']}",
            "learner": about.get("learner"),
            "data": listed(data, "source", "examples", "features", "digest"),
            "training": listed(training, "examples", "updates", "mistakes"),
            "best pass": training.get("best_epoch"),
            "signature": facts["signature"],
        }
    )
    if votes:
        console.say(
            "\nA voted model has no single weight for a feature; train with "
            "-p readout=averaged to see the heaviest ones."
        )
    for name, features in facts.get("top", {}).items():
        if features:
            console.say(f"\n{name}")
            console.table(["  feature", "weight"], [[f"  {f}", f"{w:.4f}"] for f, w in features])
