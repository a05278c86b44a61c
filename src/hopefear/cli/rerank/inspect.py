"""``hopefear inspect`` of a reranker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hopefear.cli.console import Console
from hopefear.cli.inspect import listed
from hopefear.training.predictors import LinearPredictor

if TYPE_CHECKING:
    from hopefear.tasks.rerank.model import RerankModel

_FAMILIES = 60  # shown at most

# The family of features whose names tell none.
OTHERS = "others"


def facts(model: RerankModel, top: int) -> dict[str, Any]:
    """What there is to say."""
    trained_on = model.about.get("data", {}).get("features", model.features.size)
    found: dict[str, Any] = {
        "baseline": model.baseline,
        "temperature": model.temperature,
        "metric": model.metric.cost_signature(),
        "features": trained_on,
        "extraction": model.features.extraction.to_header(),
        "nnz": model.nnz,
        "density": 100.0 * model.nnz / max(1, trained_on),
        "signature": model.signature,
        "about": dict(model.about),
    }
    if isinstance(model.predictor, LinearPredictor):
        found["families"] = families(model)
        found["top"], found["bottom"] = model.top(top), model.bottom(top)
    else:
        votes = model.predictor
        found["votes"] = {
            "predictors": int(votes.drops.size),
            "entries": int(votes.begin.size),
            "lists": float(votes.survived[-1]),
        }
    return found


def families(model: RerankModel) -> list[dict[str, Any]]:
    """Weights by family of features, the heaviest family first.

    A family is what a name says before the first ``|``, or ``=`` where there is none; names
    without either go together.
    """
    groups: dict[str, list[float]] = {}
    for j in np.flatnonzero(model.weights).tolist():
        groups.setdefault(family(model.features.name(j)), []).append(float(model.weights[j]))
    found = [
        {
            "family": name,
            "nnz": len(weights),
            "positive": sum(w > 0.0 for w in weights),
            "sum": float(np.abs(weights).sum()),
            "largest": max(weights, key=abs),
        }
        for name, weights in groups.items()
    ]
    return sorted(found, key=lambda row: -row["sum"])


def family(name: str) -> str:
    """What a feature is one of.

    >>> family("Rule.up|NP -> DT NN ^ VP"), family("source=web"), family("lm")
    ('Rule.up', 'source', 'others')
    """
    kind, mark, _ = name.partition("|" if "|" in name else "=")
    return kind if kind and mark else OTHERS


def show(console: Console, facts: dict[str, Any]) -> None:
    """Say it."""
    about, size, votes = facts["about"], facts["bytes"], facts.get("votes")
    data, training = about.get("data", {}), about.get("training", {})
    console.pairs(
        {
            "model": facts["model"] + (f"  ({size:,} bytes)" if size else ""),
            "looks at": _looks(facts["extraction"]),
            "generator's score": {
                "feature": "a feature",
                "offset": "a fixed part of every score",
                "none": "ignored",
            }[facts["baseline"]],
            "costs": facts["metric"].removeprefix("cost:"),
            "non-zeros": f"{facts['nnz']:,} of {facts['features']:,} weights "
            f"({facts['density']:.3g} %)",
            "votes": votes
            and f"{votes['predictors']:,} predictors, kept as {votes['entries']:,} changes of "
            f"weights; they saw {votes['lists']:,.0f} lists",
            "temperature": f"{facts['temperature']:.3g}",
            "learner": about.get("learner"),
            "data": listed(data, "source", "lists", "candidates", "features", "digest"),
            "best pass": training.get("best_epoch"),
            "signature": facts["signature"],
        }
    )
    if votes:
        console.say(
            "\nA voted model has no single weight for a feature; train with "
            "-p readout=averaged to see the heaviest ones."
        )
        return
    if facts["families"]:
        _show_families(console, facts["families"])
    for title, features in (("for", facts["top"]), ("against", facts["bottom"])):
        if features:
            console.say(f"\n{title} a candidate")
            console.table(["  feature", "weight"], [[f"  {f}", f"{w:.4f}"] for f, w in features])


def _show_families(console: Console, rows: list[dict[str, Any]]) -> None:
    console.say()
    console.table(
        ["family", "non-zeros", "for", "against", "sum of |weight|", "largest"],
        [
            [
                row["family"],
                row["nnz"],
                row["positive"],
                row["nnz"] - row["positive"],
                f"{row['sum']:.4f}",
                f"{row['largest']:.4f}",
            ]
            for row in rows[:_FAMILIES]
        ],
    )
    if len(rows) > _FAMILIES:
        console.say(f"… and {len(rows) - _FAMILIES:,} more families; --json has them all")


def _looks(extraction: dict[str, Any]) -> str:
    trees = extraction["trees"]
    parts = [name for name in ("named", "score", "consensus") if extraction[name]]
    if trees:
        kinds = trees["kinds"]
        parts.append(f"trees, by {len(kinds)} kinds of features ({kinds[0]} to {kinds[-1]})")
    return ", ".join(parts) or "nothing"
