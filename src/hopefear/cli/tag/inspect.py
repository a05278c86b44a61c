"""``hopefear inspect`` of a tagger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hopefear.cli.console import Console
from hopefear.cli.inspect import labels_in_words, listed
from hopefear.cli.tag.train import collisions
from hopefear.training.predictors import LinearPredictor

if TYPE_CHECKING:
    from hopefear.tasks.tag.model import SequenceModel

_TEMPLATES = 60  # shown at most
_TITLES = {"triples": "label triples, heaviest", "edges": "features of label pairs, heaviest"}


def facts(model: SequenceModel, top: int) -> dict[str, Any]:
    """What there is to say."""
    features, coordinates = model.features, model.structure().n_coordinates()
    header = features.to_header()
    found: dict[str, Any] = {
        "labels": list(model.labels),
        "order": model.order,
        "scheme": model.scheme,
        "constrained": model.constrained,
        "search": model.search,
        "temperature": model.temperature,
        "features": features.size,
        "edge_features": features.edge_size,
        "feature_kind": features.kind,
        "feature_set": header.get("source"),
        "templates": [text for text, *_ in header.get("templates", ())],
        "hash_collisions": collisions(features),
        "coordinates": coordinates,
        "nnz": model.nnz,
        "density": 100.0 * model.nnz / max(1, coordinates),
        "signature": model.signature,
        "about": dict(model.about),
    }
    if isinstance(model.predictor, LinearPredictor):
        found["top"], found["bottom"] = model.top(top), model.bottom(top)
        found["transitions"] = _transitions(model, top)
        found["edges"], found["triples"] = model.edge_top(top), model.triples(top)
    return found


def _transitions(model: SequenceModel, top: int) -> dict[str, list[tuple[str, str, float]]]:
    """Pairs of labels that the model seeks, and pairs that it shuns, strongest first."""
    table = model.transitions()
    order = np.argsort(table, axis=None, kind="stable")

    def pairs(which: np.ndarray, sign: float) -> list[tuple[str, str, float]]:
        places = zip(*np.unravel_index(which[:top], table.shape), strict=True)
        return [
            (model.labels[a], model.labels[b], float(table[a, b]))
            for a, b in places
            if sign * table[a, b] > 0.0
        ]

    return {"sought": pairs(order[::-1], 1.0), "shunned": pairs(order, -1.0)}


def show(console: Console, facts: dict[str, Any]) -> None:
    """Say it."""
    about, size, shared = facts["about"], facts["bytes"], facts["hash_collisions"]
    data, training = about.get("data", {}), about.get("training", {})
    edges = f" and {facts['edge_features']:,} of edges" if facts["edge_features"] else ""
    origin = facts["feature_set"] or facts["feature_kind"]
    console.pairs(
        {
            "model": facts["model"] + (f"  ({size:,} bytes)" if size else ""),
            "labels": labels_in_words(facts["labels"]),
            "scheme": _scheme(facts),
            "chain": f"order {facts['order']}, search {facts['search']}",
            "temperature": f"{facts['temperature']:.3g}",
            "features": f"{facts['features']:,}{edges} ({origin})",
            "hash collisions": None if shared is None else f"{shared:.2f} %",
            "non-zeros": f"{facts['nnz']:,} of {facts['coordinates']:,} weights "
            f"({facts['density']:.3g} %)",
            "learner": about.get("learner"),
            "data": listed(data, "source", "examples", "tokens", "digest"),
            "read as": listed(about.get("reading", {}), "format", "column", "scheme"),
            "best pass": training.get("best_epoch"),
            "signature": facts["signature"],
        }
    )
    if facts["templates"]:
        console.say("\ntemplates\n  " + "\n  ".join(facts["templates"][:_TEMPLATES]))
        if len(facts["templates"]) > _TEMPLATES:
            console.say(f"  … and {len(facts['templates']) - _TEMPLATES} more")
    if "top" not in facts:
        console.say(
            "\nA voted model has no single weight for a feature; train with "
            "-p readout=averaged to see the heaviest ones."
        )
        return
    for name, pairs in facts["transitions"].items():
        if pairs:
            console.say(f"\ntransitions {name}")
            rows = [[f"  {a}", b, f"{w:.4f}"] for a, b, w in pairs]
            console.table(["  from", "to", "weight"], rows)
    for name, heads in (
        ("triples", ["  two before", "before", "label"]),
        ("edges", ["  feature", "from", "to"]),
    ):
        if facts[name]:
            console.say(f"\n{_TITLES[name]}")
            rows = [[f"  {a}", b, c, f"{w:.4f}"] for a, b, c, w in facts[name]]
            console.table([*heads, "weight"], rows)
    for name, features in facts["top"].items():
        # What speaks for the label, then what speaks against it, the strongest last.
        rows = [[f"  {f}", f"{w:.4f}"] for f, w in [*features, *facts["bottom"][name][::-1]]]
        if rows:
            console.say(f"\n{name}")
            console.table(["  feature", "weight"], rows)


def _scheme(facts: dict[str, Any]) -> str:
    if facts["scheme"] is None:
        return "none: any labels may follow each other"
    return facts["scheme"] + ("" if facts["constrained"] else ", which outputs need not follow")
