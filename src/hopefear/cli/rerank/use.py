"""What a reranker is worth, and what it weighs."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from hopefear.cli.console import Console, long_table, weights_table
from hopefear.cli.inspect import votes_of
from hopefear.cli.rerank.answers import answers, reasons
from hopefear.cli.rerank.corpus import judged_blocks, reading_of
from hopefear.cli.surface import Sample, Score
from hopefear.core.progress import counted
from hopefear.data.files import ReadReport
from hopefear.tasks.rerank.model import RerankModel
from hopefear.training.predictors import LinearPredictor

__all__ = [
    "answers",
    "evaluate",
    "facts_in_words",
    "findings",
    "model_facts",
    "reasons",
    "show_scores",
    "show_weights",
]

_FAMILIES = 60  # shown at most
_BASELINES = {
    "feature": "a feature",
    "offset": "a fixed part of every score",
    "none": "ignored",
}
# The family of features whose names tell none.
OTHERS = "others"


def evaluate(
    args: argparse.Namespace, model: RerankModel, console: Console, report: ReadReport
) -> dict[str, Any]:
    """Its choices beside the 1-best, the oracle and the worst."""
    from hopefear.tasks.rerank import task

    blocks = judged_blocks(
        args.data,
        model.metric,
        report,
        args.gold,
        refs=args.refs,
        format=args.format,
        dedup=reading_of(model)["dedup"],
        on_error=args.on_error,
    )
    lists: Any = counted(blocks, args.data, "lists")
    if args.report is not None:
        lists = list(lists)  # which the page looks at again
    scores = task.evaluate(model, lists)
    if not args.json:
        console.say(scores.text().rstrip("\n"))
    facts = {**scores.as_dict(), "learner": model.about.get("learner")}
    main = Score(model.metric.main, model.metric.main, model.metric.higher, "")
    facts["sample"] = Sample(model.metric, scores.model.rows, main)
    if args.report is not None:
        from hopefear.metrics import reliability
        from hopefear.report.evaluation import Evidence
        from hopefear.tasks.rerank.cases import choices

        judgement, shares = choices(model, lists)
        bins = reliability(np.minimum(shares, 1.0), judgement.errors <= 0.0).as_dict()
        sizes = {"lists": f"{facts['lists']:,}", "candidates": f"{facts['candidates']:,}"}
        facts |= {"calibration": {"choices": bins}, "main": model.metric.main}
        facts["page"] = Evidence(judgement, sizes)
    return facts


def findings(scores: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """The same for people: words, and the model between its bounds."""
    main, gap = scores["main"], scores["gap_closed"]
    words = {
        "lists": f"{scores['lists']:,} with {scores['candidates']:,} candidates",
        "better, worse than 1-best": f"{scores['better']:,}, {scores['worse']:,}",
        "model − 1-best": f"{scores['difference']:+.4f} (95 % of resamples: "
        f"{scores['difference_low']:+.4f} to {scores['difference_high']:+.4f}), "
        f"p = {scores['p_value']:.3g}",
        "way to the oracle": None if gap is None else f"{gap:.1f} %",
        "oracle first": f"{scores['oracle_rate']:.1f} %, of 1-best "
        f"{scores['baseline_oracle_rate']:.1f} %",
        "non-zeros": f"{scores['nnz']:,}",
    }
    choices = {"model": "", "1-best": "baseline_", "oracle": "oracle_", "worst": "worst_"}
    rows = [
        [name, *(scores[f"{who}{main}{end}"] for end in ("", "_low", "_high"))]
        for name, who in choices.items()
    ]
    return words, [("Choices", ["choice", main, "low", "high"], rows)]


def show_scores(console: Console, scores: dict[str, Any]) -> None:
    """What the table of `evaluate` leaves out."""
    console.say(f"{scores['nnz']:,} non-zeros, {scores['model_signature']}")


def model_facts(model: RerankModel, top: int) -> dict[str, Any]:
    """What there is to say of this model."""
    facts: dict[str, Any] = {
        "baseline": model.baseline,
        "temperature": model.temperature,
        "metric": model.metric.cost_signature(),
        "features": model.about.get("data", {}).get("features", model.features.size),
        "extraction": model.features.extraction.to_header(),
    }
    if not isinstance(model.predictor, LinearPredictor):
        return {**facts, "votes": votes_of(model.predictor, "lists")}
    weights = {"top": model.top(top), "bottom": model.bottom(top)}
    return {**facts, "families": families(model), **weights}


def families(model: RerankModel) -> list[dict[str, Any]]:
    """Weights by family of features, the heaviest family first.

    A family is what a name says before the first ``|``, or ``=`` where there is none; names
    without either go together.
    """
    groups: dict[str, list[float]] = {}
    for j in np.flatnonzero(model.weights).tolist():
        groups.setdefault(family(model.features.name(j)), []).append(float(model.weights[j]))
    rows = [
        {
            "family": name,
            "nnz": len(weights),
            "positive": sum(w > 0.0 for w in weights),
            "sum": float(np.abs(weights).sum()),
            "largest": max(weights, key=abs),
        }
        for name, weights in groups.items()
    ]
    return sorted(rows, key=lambda row: -row["sum"])


def family(name: str) -> str:
    """What a feature is one of.

    >>> family("Rule.up|NP -> DT NN ^ VP"), family("source=web"), family("lm")
    ('Rule.up', 'source', 'others')
    """
    kind, mark, _ = name.partition("|" if "|" in name else "=")
    return kind if kind and mark else OTHERS


def facts_in_words(facts: dict[str, Any]) -> dict[str, Any]:
    """The same for people."""
    extraction = facts["extraction"]
    parts = [name for name in ("named", "score", "consensus") if extraction[name]]
    if extraction["trees"]:
        kinds = extraction["trees"]["kinds"]
        parts.append(f"trees, by {len(kinds)} kinds of features ({kinds[0]} to {kinds[-1]})")
    return {
        "looks at": ", ".join(parts) or "nothing",
        "generator's score": _BASELINES[facts["baseline"]],
        "costs": facts["metric"].removeprefix("cost:"),
        "temperature": f"{facts['temperature']:.3g}",
    }


def show_weights(console: Console, facts: dict[str, Any]) -> None:
    """Families of features, and what speaks for and against a candidate."""
    if facts.get("families"):
        rows = [
            [
                row["family"],
                row["nnz"],
                row["positive"],
                row["nnz"] - row["positive"],
                f"{row['sum']:.4f}",
                f"{row['largest']:.4f}",
            ]
            for row in facts["families"]
        ]
        heads = ["family", "non-zeros", "for", "against", "sum of |weight|", "largest"]
        long_table(console, heads, rows, _FAMILIES, "families")
    weights_table(console, "for a candidate", ["feature"], facts.get("top", ()))
    weights_table(console, "against a candidate", ["feature"], facts.get("bottom", ()))
