"""Classes on the command line: how answers are written, and scores and weights printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hopefear.cli.surface import Surface

if TYPE_CHECKING:
    from hopefear.tasks.classify.answers import Answers

_MAX_ROWS = 40  # classes in the table


def labels_of(found: Answers) -> Iterator[str]:
    """Gives a line for every answer."""
    question, classes = found.question, found.model.classes
    if question.n is None and not question.proba:
        yield from (f"{name}\n" for name in found.names())
        return
    table = found.shares if question.proba else found.points
    if question.n is None:
        for name, row in zip(found.names(), table, strict=True):
            cells = (f"{c}:{p:.6g}" for c, p in zip(classes, row, strict=True))
            yield "\t".join([name, *cells]) + "\n"
        return
    for order, row in zip(found.order(), table, strict=True):
        yield "\t".join(f"{classes[k]}:{row[k]:.6g}" for k in order) + "\n"


def cells_of(found: Answers) -> tuple[list[str], list[list[str]]]:
    """Returns names of columns, and what stands there for every answer."""
    names, question = ["label", "probability"], found.question
    if question.n is not None:
        outputs = found.outputs(found.model.classes)
        rows = [
            [c for one in row for c in (one.label, f"{one.probability:.6g}")] for row in outputs
        ]
        return [f"{name}_{k}" for k in range(1, question.n + 1) for name in names], rows
    best = found.shares.max(axis=1, initial=0.0).tolist()
    rows = [[name, f"{p:.6g}"] for name, p in zip(found.names(), best, strict=True)]
    if question.proba:
        names += found.model.classes
        for row, shares in zip(rows, found.shares.tolist(), strict=True):
            row += [f"{p:.6g}" for p in shares]
    return names, rows


class ShownClasses(Surface):
    """Prints scores and models of classes."""

    def findings(self, scores: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        from hopefear.cli.console import in_percent

        words = {
            "examples": f"{scores['examples']:,}",
            "accuracy": in_percent(scores, "accuracy"),
            "error": in_percent(scores, "error"),
            "F1": in_percent(scores, "f1"),
            "precision": in_percent(scores, "precision"),
            "recall": in_percent(scores, "recall"),
            "log loss": f"{scores['log_loss']:.4f}",
            "Brier score": f"{scores['brier']:.4f}",
            "calibration": f"{scores['ece']:.2f} % off (ECE)",
            "new classes": _new(scores),
            "non-zeros": f"{scores['nnz']:,}",
        }
        names = ("precision", "recall", "f1")
        rows = [
            [name, *(f"{row[key]:.2f}" for key in names), row["support"], row["predicted"]]
            for name, row in scores["classes"].items()
        ]
        heads = ["class", "precision", "recall", "F1", "examples", "predicted"]
        return words, [("Classes", heads, rows)]

    def show_scores(self, console: Any, scores: Mapping[str, Any]) -> None:
        from hopefear.cli.console import BEST_SCORES, long_table, show_confusion

        words, [(_, heads, rows)] = self.findings(scores)
        console.pairs(words)
        long_table(console, heads, rows, _MAX_ROWS, "classes", BEST_SCORES)
        show_confusion(console, scores)
        console.say(f"\n{scores['signature']}\n{scores['model_signature']}")

    def model_facts(self, model: Any, top: int) -> dict[str, Any]:
        from hopefear.cli.inspect import votes_of
        from hopefear.core.interfaces import n_weights
        from hopefear.training.predictors import VotedPredictor

        facts: dict[str, Any] = {
            "classes": list(model.classes),
            "features": model.features.size,
            "feature_kind": model.features.kind,
            "coordinates": n_weights(model.structure),
            "intercept": model.structure.bias,
            "transform": dict(model.transform),
            "temperature": model.temperature,
        }
        collisions = getattr(model.features, "collisions", None)
        if collisions is not None:
            facts["hash_collisions"] = 100.0 * collisions
        if isinstance(model.predictor, VotedPredictor):
            return {**facts, "votes": votes_of(model.predictor, "examples")}
        return {**facts, "top": model.top(top)}

    def facts_in_words(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        from hopefear.cli.console import labels_in_words

        collisions, rows = facts.get("hash_collisions"), facts["transform"]
        return {
            "classes": labels_in_words(facts["classes"]),
            "features": f"{facts['features']:,} ({facts['feature_kind']})",
            "hash collisions": None if collisions is None else f"{collisions:.2f} %",
            "intercept": f"{facts['intercept']:.6g}",
            "rows": f"values {rows['values']}, norm {rows['norm']}",
            "temperature": f"{facts['temperature']:.3g}",
        }

    def show_weights(self, console: Any, facts: Mapping[str, Any]) -> None:
        from hopefear.cli.console import weights_table

        for name, features in facts.get("top", {}).items():
            weights_table(console, name, ["feature"], features)


def _new(scores: Mapping[str, Any]) -> str | None:
    """Returns what to say of classes that training lacked."""
    names = scores["new_classes"]
    if not names:
        return None
    n = sum(scores["classes"][name]["support"] for name in names)
    shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    return f"{n:,} examples of {shown}, which training lacked: all are mistakes"
