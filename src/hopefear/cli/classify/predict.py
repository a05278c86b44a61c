"""``hopefear predict`` with a classifier: a label a line, for files of any size."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hopefear.cli.classify.reading import blocks
from hopefear.cli.console import Console
from hopefear.cli.guard import write_out
from hopefear.cli.reading import tell_skipped
from hopefear.data.files import ReadReport
from hopefear.storage import write_atomically
from hopefear.training.answers import probabilities

if TYPE_CHECKING:
    import numpy as np

    from hopefear.tasks.classify.model import Model


def run(args: argparse.Namespace, model: Model, console: Console) -> None:
    """Write the labels of ``--input``."""
    report = ReadReport()
    lines = _lines(model, args, report)
    if args.output == "-":
        for text in lines:
            write_out(text)
    else:
        write_atomically(args.output, (text.encode() for text in lines))
    tell_skipped(report, console)
    if report.unknown_features:
        console.say(
            f"{report.unknown_features:,} values of features that the model has never seen "
            "were left out"
        )


def _lines(model: Model, args: argparse.Namespace, report: Any) -> Iterator[str]:
    """Text for each block of rows."""
    for data in blocks(args.input, model, args, report, require_labels=False):
        labels, scores = model.decide(data)
        if args.proba:
            scores = probabilities(model.predictor, scores)
        names = [model.classes[i] for i in labels]
        if args.nbest:
            rows = _best(model, scores, args.nbest)
        elif args.proba:
            rows = (_cells(model, name, row) for name, row in zip(names, scores, strict=True))
        else:
            rows = iter(names)
        yield "".join(f"{row}\n" for row in rows)


def _cells(model: Model, label: str, row: np.ndarray) -> str:
    return "\t".join(
        [label, *(f"{name}:{p:.6g}" for name, p in zip(model.classes, row, strict=True))]
    )


def _best(model: Model, scores: np.ndarray, n: int) -> Iterator[str]:
    import numpy as np

    if scores.shape[1] == 1:
        scores = np.hstack([-scores, scores])
    order = np.argsort(-scores, axis=1, kind="stable")[:, :n]
    for row, best in zip(scores, order, strict=True):
        yield "\t".join(f"{model.classes[i]}:{row[i]:.6g}" for i in best)
