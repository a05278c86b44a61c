"""``hopefear inspect --weights``: sizes of weights, the heaviest, and where they came from."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np

from hopefear.cli.console import Console, print_json
from hopefear.translation.weights import Weights


def run(args: argparse.Namespace) -> None:
    """Show a file of weights."""
    found = facts(Weights.read(args.weights), args.weights, args.top)
    if args.json:
        print_json(found)
    else:
        show(Console(args.quiet), found)


def facts(weights: Weights, path: str, top: int) -> dict[str, Any]:
    """What there is to say."""
    return {
        "weights": path,
        "task": "tune",
        "nnz": weights.nnz,
        "dense": dict(zip(weights.names, weights.dense.tolist(), strict=True)),
        "sparse": _part(weights.sparse, top),
        "phrases": _part(weights.phrases, top),
        "about": dict(weights.about),
    }


def show(console: Console, found: Mapping[str, Any]) -> None:
    """The same for people."""
    about = found["about"]
    console.pairs(
        {
            "weights": found["weights"],
            "non-zeros": f"{found['nnz']:,}",
            "dense": len(found["dense"]),
            "sparse": f"{found['sparse']['count']:,}",
            "phrase pairs": f"{found['phrases']['count']:,}",
            "learner": about.get("learner"),
            "signature": about.get("signature"),
            "metric": about.get("metric"),
            "scores": ", ".join(f"{k} {v:.2f}" for k, v in about.get("scores", {}).items()) or None,
        }
    )
    rows = [[name, f"{value:.6f}"] for name, value in found["dense"].items()]
    for part in ("sparse", "phrases"):
        rows += [[name, f"{value:.6f}"] for name, value in found[part]["top"].items()]
    console.say()
    console.table(["feature", "weight"], rows)


def _part(weights: Mapping[str, float], top: int) -> dict[str, Any]:
    """How many, how large, and the heaviest either way."""
    values = np.fromiter(weights.values(), np.float64, len(weights))
    order = np.argsort(-np.abs(values), kind="stable")[:top].tolist()
    names = list(weights)
    return {
        "count": len(weights),
        "mean_abs": float(np.abs(values).mean()) if len(values) else 0.0,
        "top": {names[j]: float(values[j]) for j in order},
    }
