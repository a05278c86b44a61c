"""What a classifier is used for: labels of a file, its scores, what it weighs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hopefear.cli.classify.corpus import blocks, file_of, judged
from hopefear.cli.console import (
    BEST_SCORES,
    Console,
    in_percent,
    labels_in_words,
    long_table,
    show_confusion,
    weights_table,
)
from hopefear.cli.explain import told
from hopefear.cli.inspect import votes_of
from hopefear.cli.surface import Sample, Score
from hopefear.core.interfaces import n_weights
from hopefear.data.files import ReadReport
from hopefear.metrics import (
    Accuracy,
    Classification,
    Confusion,
    Probabilities,
    joined_scores,
    reliability,
)
from hopefear.tasks.classify.model import Model
from hopefear.training.predictors import VotedPredictor

if TYPE_CHECKING:
    from hopefear.report.evaluation import Evidence
    from hopefear.tasks.classify.cases import Mistake

_SHOWN = 40  # classes in the table
_BINS = 15  # of probabilities, for the calibration error
_CELLS = 1 << 28  # bytes of statistics that an interval may take


def answers(
    args: argparse.Namespace, model: Model, console: Console, report: ReadReport
) -> Iterator[bytes]:
    """The label of every line, for each block of lines."""
    for data in blocks(args.input, model, args, report, require_labels=False):
        labels, scores = model.decide(data)
        names = [model.classes[i] for i in labels]
        if args.unknown is not None:
            names = model.known(labels, scores, args.unknown, args.unknown_label)
        if args.proba:
            scores = model.answers().shares(scores)
        if args.nbest:
            rows = _best(model, scores, args.nbest)
        elif args.proba:
            rows = (_cells(model, name, row) for name, row in zip(names, scores, strict=True))
        else:
            rows = iter(names)
        yield "".join(f"{row}\n" for row in rows).encode()


def reasons(
    args: argparse.Namespace, model: Model, console: Console, report: ReadReport
) -> Iterator[bytes]:
    """Why every line got its label."""
    number = 0
    for data in blocks(args.input, model, args, report, require_labels=False):
        for row in range(len(data)):
            number += 1
            place = {"example": number}
            yield told(f"example {number}", place, model.explain(data, row), args)


def _cells(model: Model, label: str, row: np.ndarray) -> str:
    return "\t".join(
        [label, *(f"{name}:{p:.6g}" for name, p in zip(model.classes, row, strict=True))]
    )


def _best(model: Model, scores: np.ndarray, n: int) -> Iterator[str]:
    if scores.shape[1] == 1:
        scores = np.hstack([-scores, scores])
    order = np.argsort(-scores, axis=1, kind="stable")[:, :n]
    for row, best in zip(scores, order, strict=True):
        yield "\t".join(f"{model.classes[i]}:{row[i]:.6g}" for i in best)


def evaluate(
    args: argparse.Namespace, model: Model, console: Console, report: ReadReport
) -> dict[str, Any]:
    """Scores of decisions and of probabilities, and a row for every class."""
    classes, counts, sums, calibration, hits, errors, mistakes = _count(model, args, report)
    metric = Classification(len(classes))
    scores = joined_scores([(metric, counts), (Probabilities(len(classes)), sums)])
    rows = np.stack([hits, np.ones_like(hits)], axis=1)
    scores["sample"] = Sample(Accuracy(), rows, Score("accuracy", "accuracy"))
    scores["accuracy_interval"] = scores["sample"].interval("accuracy")
    if counts.sum() * counts.size <= _CELLS:
        cells = np.repeat(np.eye(counts.size, dtype=np.uint8), counts, axis=0)
        scores["f1_interval"] = Sample(metric, cells, Score("F1", "f1")).interval("f1")
    scores["ece"] = calibration["ece"]
    scores["examples"] = scores.pop("count")
    each = metric.per_class(counts)
    scores["classes"] = {
        name: {key: column[i].item() for key, column in each.items()}
        for i, name in enumerate(classes)
    }
    scores["new_classes"] = list(classes[len(model.classes) :])
    confusion = Confusion(classes, counts.reshape(len(classes), -1))
    scores |= confusion.as_dict() | {"calibration": {"classes": calibration}}
    if args.report is not None:
        scores["page"] = _evidence(model, args, confusion, errors, mistakes)
    return scores


def _evidence(
    model: Model,
    args: argparse.Namespace,
    confusion: Confusion,
    errors: np.ndarray,
    mistakes: list[Mistake],
) -> Evidence:
    from hopefear.report.error_examples import Case, Judgement
    from hopefear.report.evaluation import Evidence
    from hopefear.tasks.classify.cases import MOST, cases

    def chosen(order: np.ndarray) -> list[Case]:
        numbers, texts = order.tolist(), dict[int, str]()
        some = {mistake.number: mistake for mistake in mistakes}
        if os.path.isfile(args.data):  # what came through a pipe is gone
            if not some.keys() >= {*numbers}:
                some = _answers_to(numbers, model, args)
            like = {"classes": model.classes, "features": model.features}
            file = file_of(args.data, args, ReadReport(), **like)
            texts = file.texts({*numbers}, len(errors))
        return cases(
            model, confusion.names, [some[number] for number in numbers if number in some], texts
        )

    gold = confusion.counts.sum(axis=1)
    sizes = {
        "examples": f"{len(errors):,}",
        "classes": f"{len(gold)}; the commonest has {100.0 * gold.max() / len(errors):.1f} %",
    }
    order = "whose right class was thought least probable"
    return Evidence(Judgement(errors, chosen, "examples", order, MOST), sizes)


def _answers_to(
    numbers: Sequence[int], model: Model, args: argparse.Namespace
) -> dict[int, Mistake]:
    """What the model says of some examples, which are read again."""
    from hopefear.tasks.classify.cases import Mistake

    wanted, first = np.sort(np.asarray(numbers)), 0
    some: dict[int, Mistake] = {}
    for data in judged(args.data, model, args, ReadReport()):
        after = first + len(data)
        rows = wanted[np.searchsorted(wanted, first) : np.searchsorted(wanted, after)] - first
        if rows.size:
            part = data.take(rows)
            labels, scores = model.decide(part)
            table = _shares(model, scores, len(data.classes))
            for k, row in enumerate(rows.tolist()):
                one = data.take([row]), int(labels[k]), int(part.rows.labels[k]), table[k]
                some[first + row] = Mistake(first + row, *one)
        first = after
    return some


def _shares(model: Model, scores: np.ndarray, n: int) -> np.ndarray:
    """Probabilities of ``n`` classes, of which those behind the model's have none."""
    table = model.answers().shares(scores)
    return np.pad(table, ((0, 0), (0, n - table.shape[1])))


class _Counts(NamedTuple):
    classes: tuple[str, ...]  # those of the model, then those that it lacks
    counts: np.ndarray  # summed statistics of decisions
    sums: np.ndarray  # and of probabilities
    calibration: dict[str, Any]
    hits: np.ndarray  # 1 where the decision is right, by example
    errors: np.ndarray  # log losses of the others, where a page is wanted
    mistakes: list[Mistake]  # the worst of them


def _count(model: Model, args: argparse.Namespace, report: Any) -> _Counts:
    mistakes: list[Mistake] = []
    classes, number, sums = tuple(model.classes), 0, np.zeros(3)
    golds, outputs, errors = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)], [np.zeros(0)]
    shares = [np.zeros(0, np.float32)]
    for data in judged(args.data, model, args, report):
        classes = data.classes
        labels, scores = model.decide(data)
        gold, table = data.rows.labels, _shares(model, scores, len(classes))
        sums += Probabilities(len(classes)).total(gold, table)
        golds.append(gold)
        outputs.append(labels.astype(np.int32))
        shares.append(table[np.arange(len(labels)), labels].astype(np.float32))
        if args.report is not None:
            from hopefear.tasks.classify.cases import losses, worst

            mistakes = worst(mistakes, data, labels, table, number)
            errors.append(losses(gold, labels, table))
        number += len(labels)
    gold, labels = np.concatenate(golds), np.concatenate(outputs)
    counts, hits = Classification(len(classes)).total(gold, labels), gold == labels
    sure = np.minimum(np.concatenate(shares), 1.0)
    calibration = reliability(sure, hits, bins=_BINS).as_dict()
    hits = hits.astype(np.uint8)
    return _Counts(classes, counts, sums, calibration, hits, np.concatenate(errors), mistakes)


def findings(scores: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """The same for people: words, and a table of classes."""
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
    rows = [
        [
            name,
            *(f"{row[key]:.2f}" for key in ("precision", "recall", "f1")),
            row["support"],
            row["predicted"],
        ]
        for name, row in scores["classes"].items()
    ]
    return words, [
        ("Classes", ["class", "precision", "recall", "F1", "examples", "predicted"], rows)
    ]


def _new(scores: dict[str, Any]) -> str | None:
    """What to say of classes that training lacked."""
    names = scores["new_classes"]
    if not names:
        return None
    n = sum(scores["classes"][name]["support"] for name in names)
    shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    return f"{n:,} examples of {shown}, which training lacked: all are mistakes"


def show_scores(console: Console, scores: dict[str, Any]) -> None:
    """The same on a screen."""
    words, [(_, heads, rows)] = findings(scores)
    console.pairs(words)
    long_table(console, heads, rows, _SHOWN, "classes", BEST_SCORES)
    show_confusion(console, scores)
    console.say(f"\n{scores['signature']}\n{scores['model_signature']}")


def model_facts(model: Model, top: int) -> dict[str, Any]:
    """What there is to say of this model."""
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


def facts_in_words(facts: dict[str, Any]) -> dict[str, Any]:
    """The same for people."""
    collisions, rows = facts.get("hash_collisions"), facts["transform"]
    return {
        "classes": labels_in_words(facts["classes"]),
        "features": f"{facts['features']:,} ({facts['feature_kind']})",
        "hash collisions": None if collisions is None else f"{collisions:.2f} %",
        "intercept": f"{facts['intercept']:.6g}",
        "rows": f"values {rows['values']}, norm {rows['norm']}",
        "temperature": f"{facts['temperature']:.3g}",
    }


def show_weights(console: Console, facts: dict[str, Any]) -> None:
    """The heaviest features of every class."""
    for name, features in facts.get("top", {}).items():
        weights_table(console, name, ["feature"], features)
