"""``hopefear inspect``: what a model is, what it weighs and where it came from."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from hopefear.cli import options
from hopefear.cli.console import Console, print_json

if TYPE_CHECKING:
    from hopefear.model import Model

USAGE = "--model PATH [--top N]"
DESCRIPTION = """
Show the size and sparsity of a model, how it was trained and on what, and the heaviest features
of every label. Of a voted model, which has no single weight for a feature, the votes are
described instead.
"""
EXAMPLES = """
examples:
  hopefear inspect --model news.model --top 20
  hopefear inspect --model news.model --json | python -m json.tool
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="PATH", help="model file")
    parser.add_argument(
        "--top",
        type=options.at_least(0),
        default=10,
        metavar="N",
        help="features to show for each label (default: 10)",
    )
    options.json_option(parser)


def run(args: argparse.Namespace) -> int:
    from hopefear.cli.reading import load_model

    model = load_model(args.model)
    facts = _facts(model, args)
    if args.json:
        print_json(facts)
    else:
        _show(Console(), facts)
    return 0


def _facts(model: Model, args: argparse.Namespace) -> dict[str, Any]:
    from hopefear.training.predictors import VotedPredictor

    coordinates = model.structure.n_coordinates()
    facts: dict[str, Any] = {
        "model": args.model,
        "task": "classify",
        "bytes": None if args.model == "-" else os.path.getsize(args.model),
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
        facts["hash_collisions"] = 100.0 * collisions
    if isinstance(model.predictor, VotedPredictor):
        votes = model.predictor
        facts["votes"] = {
            "predictors": int(votes.drops.size),
            "entries": int(votes.begin.size),
            "examples": float(votes.survived[-1]),
        }
    else:
        facts["top"] = model.top(args.top)
    return facts


def _show(console: Console, facts: dict[str, Any]) -> None:
    about = facts["about"]
    data, training = about.get("data", {}), about.get("training", {})
    size, votes = facts["bytes"], facts.get("votes")
    collisions = facts.get("hash_collisions")
    names = ", ".join(facts["classes"][:8]) + (", …" if len(facts["classes"]) > 8 else "")
    last = training.get("last_nnz")
    kept = "" if last is None else f"; the last weights had {last:,}"
    console.pairs(
        {
            "model": facts["model"] + (f"  ({size:,} bytes)" if size else ""),
            "classes": f"{len(facts['classes'])}: {names}",
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
            "data": _listed(data, "source", "examples", "features", "digest"),
            "training": _listed(training, "examples", "updates", "mistakes"),
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


def _listed(values: Any, *keys: str) -> str | None:
    """What is there of some keys, in words; models made elsewhere may lack any."""
    found = [(key, values[key]) for key in keys if values.get(key) is not None]
    return ", ".join(f"{key} {f'{v:,}' if isinstance(v, int) else v}" for key, v in found) or None
