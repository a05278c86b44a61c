"""``hopefear evaluate`` with a classifier: decisions, probabilities, classes."""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from hopefear.cli.classify.reading import blocks
from hopefear.cli.console import Console, print_json
from hopefear.cli.reading import tell_skipped
from hopefear.data.files import ReadReport
from hopefear.metrics import Accuracy, Classification, Probabilities, confidence_interval
from hopefear.tasks.classify.model import Model, probabilities

_SHOWN = 40  # classes in the table
_CELLS = 1 << 28  # bytes of statistics that an interval may take


def run(args: argparse.Namespace, model: Model, console: Console) -> None:
    """Score the model on ``--data``."""
    report, started = ReadReport(), time.perf_counter()
    counts, soft = _count(model, args, report)
    tell_skipped(report, console)
    scores = _scores(model, counts, soft)
    scores |= {
        "examples": scores.pop("count"),
        "skipped": report.skipped,
        "nnz": model.nnz,
        "classes": dict(_per_class(model, counts)),
        "model_signature": model.signature,
        "seconds": round(time.perf_counter() - started, 3),
    }
    if args.json:
        print_json(scores)
    else:
        _show(console, scores)


def _count(model: Model, args: argparse.Namespace, report: Any) -> tuple[np.ndarray, np.ndarray]:
    """Summed statistics of decisions and of probabilities."""
    n = len(model.classes)
    hard, soft = Classification(n), Probabilities(n)
    counts, sums = np.zeros(n * n, np.int64), np.zeros(3)
    for data in blocks(args.data, model, args, report, require_labels=True):
        labels, scores = model.decide(data)
        counts += hard.stats(data.rows.labels, labels)
        sums += soft.stats(data.rows.labels, probabilities(model.predictor, scores))
    return counts, sums


def _scores(model: Model, counts: np.ndarray, sums: np.ndarray) -> dict[str, Any]:
    n = len(model.classes)
    metric, soft, plain = Classification(n), Probabilities(n), Accuracy()
    scores = metric.scores(counts) | soft.scores(sums)
    scores["signature"] = f"{metric.signature} {soft.signature}"
    right, total = int(np.trace(counts.reshape(n, n))), int(counts.sum())
    rows = np.repeat(np.array([[1, 1], [0, 1]], np.uint8), [right, total - right], axis=0)
    found = confidence_interval(plain, rows, "accuracy")
    scores["accuracy_interval"] = [found.low, found.high]
    if total * n * n <= _CELLS:
        cells = np.repeat(np.eye(n * n, dtype=np.uint8), counts, axis=0)
        found = confidence_interval(metric, cells, "f1")
        scores["f1_interval"] = [found.low, found.high]
    return scores


def _per_class(model: Model, counts: np.ndarray) -> list[tuple[str, dict[str, Any]]]:
    each = Classification(len(model.classes)).per_class(counts)
    return [
        (name, {key: column[i].item() for key, column in each.items()})
        for i, name in enumerate(model.classes)
    ]


def _show(console: Console, scores: dict[str, Any]) -> None:
    low, high = scores["accuracy_interval"]
    interval = scores.get("f1_interval")
    console.pairs(
        {
            "examples": f"{scores['examples']:,}",
            "accuracy": f"{scores['accuracy']:.2f} %  (95 % of resamples: {low:.2f} to {high:.2f})",
            "error": f"{scores['error']:.2f} %",
            "F1": f"{scores['f1']:.2f} %"
            + (f"  (95 %: {interval[0]:.2f} to {interval[1]:.2f})" if interval else ""),
            "precision": f"{scores['precision']:.2f} %",
            "recall": f"{scores['recall']:.2f} %",
            "log loss": f"{scores['log_loss']:.4f}",
            "Brier score": f"{scores['brier']:.4f}",
            "non-zeros": f"{scores['nnz']:,}",
        }
    )
    rows = [
        [
            name,
            f"{row['precision']:.2f}",
            f"{row['recall']:.2f}",
            f"{row['f1']:.2f}",
            row["support"],
            row["predicted"],
        ]
        for name, row in scores["classes"].items()
    ]
    console.say()
    console.table(["class", "precision", "recall", "F1", "examples", "predicted"], rows[:_SHOWN])
    if len(rows) > _SHOWN:
        console.say(f"… and {len(rows) - _SHOWN:,} more classes; --json has them all")
    console.say(f"\n{scores['signature']}\n{scores['model_signature']}")
