"""``hopefear evaluate``: scores of a model on labelled data."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from hopefear.cli import options
from hopefear.cli.console import Console, print_json

if TYPE_CHECKING:
    import numpy as np

    from hopefear.model import Model

USAGE = "--model PATH --data FILE [--json]"
DESCRIPTION = """
Score a model on labelled lines: accuracy, error, precision, recall and F1 in percent, log loss
and Brier score of its probabilities, a 95 % confidence interval, and a row for every class.
With two classes precision, recall and F1 are those of the second one, with more they are means
over classes. The file is read in blocks and may be of any size.
"""
EXAMPLES = """
examples:
  hopefear evaluate --model news.model --data test.svm
  hopefear evaluate --model news.model --data test.svm.xz --json | python -m json.tool
"""
_SHOWN = 40  # classes in the table
_CELLS = 1 << 28  # bytes of statistics that an interval may take


def configure(parser: argparse.ArgumentParser) -> None:
    data = parser.add_argument_group("data")
    data.add_argument("--model", required=True, metavar="PATH", help="model file")
    data.add_argument(
        "--data",
        required=True,
        metavar="FILE",
        help="labelled lines; a label the model does not know is an error",
    )
    options.reading(data)
    options.json_option(parser.add_argument_group("output"))


def run(args: argparse.Namespace) -> int:
    if args.model == args.data == "-":
        args.usage_error("--model and --data cannot both be standard input")
    from hopefear.cli.compiling import announced
    from hopefear.cli.reading import load_model, tell_skipped
    from hopefear.data.report import ReadReport

    console, report, started = Console(args.quiet), ReadReport(), time.perf_counter()
    with announced(console, "prediction"):
        model = load_model(args.model)
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
    return 0


def _count(model: Model, args: argparse.Namespace, report: Any) -> tuple[np.ndarray, np.ndarray]:
    """Summed statistics of decisions and of probabilities."""
    import numpy as np

    from hopefear.cli.reading import blocks
    from hopefear.metrics import Classification, Probabilities
    from hopefear.model import probabilities

    n = len(model.classes)
    hard, soft = Classification(n), Probabilities(n)
    counts, sums = np.zeros(n * n, np.int64), np.zeros(3)
    for data in blocks(args.data, model, args, report, require_labels=True):
        labels, scores = model.decide(data)
        counts += hard.stats(data.rows.labels, labels)
        sums += soft.stats(data.rows.labels, probabilities(model.predictor, scores))
    return counts, sums


def _scores(model: Model, counts: np.ndarray, sums: np.ndarray) -> dict[str, Any]:
    import numpy as np

    from hopefear.metrics import Accuracy, Classification, Probabilities, confidence_interval

    n = len(model.classes)
    metric, soft, plain = Classification(n), Probabilities(n), Accuracy()
    scores = metric.value(counts) | soft.value(sums)
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
    from hopefear.metrics import Classification

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
