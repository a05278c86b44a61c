"""What a tagger is worth, and what it weighs."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hopefear.cli.console import (
    BEST_SCORES,
    Console,
    in_percent,
    labels_in_words,
    long_table,
    show_confusion,
    weights_table,
)
from hopefear.cli.guard import write_out
from hopefear.cli.options import threads
from hopefear.cli.surface import Sample, Score
from hopefear.cli.tag.answers import answers, reasons, span_confidences
from hopefear.cli.tag.corpus import Schemes, collisions, mended, spelled, warn_of_strangers
from hopefear.cli.tag.inputs import Text, how, read_for
from hopefear.cli.tag.showing import words_of
from hopefear.core.interfaces import n_weights
from hopefear.data.files import ReadReport
from hopefear.data.schemes import spans
from hopefear.data.sequences import Column, SequenceDataset
from hopefear.metrics import (
    ChunkScores,
    Confusion,
    Tagging,
    chunk_scores,
    label_confusion,
    reliability,
    span_errors,
    unknown_word_accuracy,
    unknown_words,
)
from hopefear.tasks.tag.model import SequenceModel
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

_SHOWN = 40  # rows of the table of types or labels
_TEMPLATES = 60  # shown at most


def evaluate(
    args: argparse.Namespace, model: SequenceModel, console: Console, report: ReadReport
) -> dict[str, Any]:
    """Scores of tokens and spans, mistakes, calibration."""
    from hopefear.tasks.tag.task import reading_of

    reading = how(model)
    text = read_for(model, args.data, args, report)
    _, gold = text.column(args.column or reading["column"])
    schemes = Schemes(reading["scheme"], reading["trained_scheme"])
    how_mended = schemes.file, args.scheme_errors, console
    text, gold, _ = mended(text, gold, *how_mended, strangers=True)
    data = text.encode(model.features, model.labels, schemes.read(text, gold))
    strange = warn_of_strangers(data, len(model.labels))
    decoder = model.decoder(not args.no_constraints, n_jobs=threads(args.jobs))
    tags = decoder.predict(data.rows)
    output = spelled(Column(model.labels, tags), text.starts, schemes.model, schemes.file)
    how_read = reading_of(schemes.file)
    chunks = chunk_scores(gold, output, text.starts, reading=how_read)
    if args.conlleval:
        write_out(chunks.report())
    metric, spans_ = Tagging(how_read), schemes.file is not None
    score = Score("F1", "f1") if spans_ else Score("accuracy", "accuracy")
    sample = Sample(metric, chunks.statistics, score)
    facts = {
        "sample": sample,
        **_scores(text, gold, output, chunks, sample, how_read),
        "sentences": len(data),
        "unknown_labels": strange,
        "scheme": schemes.file,
        **_unknown(model, text, gold, output),
    }
    if args.proba or args.report is not None:
        facts["calibration"] = {"tokens": _token_calibration(decoder, data, tags)}
    if args.proba:
        facts["calibration"]["spans"] = _span_calibration(model, data, tags, args)
    if args.report is not None:
        from hopefear.report.evaluation import Evidence
        from hopefear.tasks.tag.cases import judgement

        words, free = words_of(text), args.no_constraints
        errors = judgement(
            model, data, tags, words, gold, output, schemes.file, not free, threads(args.jobs)
        )
        facts["page"] = Evidence(errors, _sizes(text, gold, facts), _pairs(model))
    return facts


def _sizes(text: Text, gold: Column, facts: dict[str, Any]) -> dict[str, Any]:
    lengths, used = np.diff(text.starts), len(np.unique(gold.ids))
    strange, unknown = facts["unknown_labels"], facts.get("unknown_words")
    return {
        "sentences": f"{len(lengths):,}, with {lengths.mean():.1f} tokens on average and "
        f"{lengths.max()} at most",
        "tokens": f"{facts['tokens']:,}",
        "labels": f"{used}, and {strange:,} tokens whose label the model does not know",
        "scheme": facts["scheme"] or "none",
        "unknown words": "not known" if unknown is None else f"{unknown:,}",
    }


def _pairs(model: SequenceModel) -> tuple[Sequence[str], list[list[float]]] | None:
    """Weights of label pairs, where there are any."""
    if not (model.predictor.linear or hasattr(model.predictor, "transitions")):
        return None
    table = model.transitions()
    return (model.labels, table.astype(float).tolist()) if table.any() else None


def _scores(
    text: Text,
    gold: Column,
    output: Column,
    chunks: ChunkScores,
    sample: Sample,
    reading: str,
) -> dict[str, Any]:
    scores = chunks.as_dict()
    confusion = label_confusion(gold, output, text.starts)
    facts = {key: scores[key] for key in ("accuracy", "sentence_accuracy", "tokens")}
    facts["signature"] = scores["signature"]
    facts["accuracy_interval"] = sample.interval("accuracy")
    facts |= confusion.as_dict()
    if sample.score.name != "f1":
        return facts | {"labels": _per_label(confusion)}
    names = ("precision", "recall", "f1", "correct", "found", "gold")
    errors = span_errors(gold, output, text.starts, reading=reading)._asdict()
    kinds = ("type", "bounds", "both", "missed", "spurious")
    return {
        **{key: scores[key] for key in names},
        **facts,
        "f1_interval": sample.interval("f1"),
        "types": chunks.per_type(),
        "span_errors": {key: errors[key] for key in kinds},
    }


def _per_label(confusion: Confusion) -> dict[str, dict[str, float]]:
    right = np.diag(confusion.counts)
    gold, output = confusion.counts.sum(axis=1), confusion.counts.sum(axis=0)
    return {
        name: {
            "precision": 100.0 * right[i] / max(output[i], 1),
            "recall": 100.0 * right[i] / max(gold[i], 1),
            "f1": 200.0 * right[i] / max(output[i] + gold[i], 1),
            "correct": int(right[i]),
            "found": int(output[i]),
            "gold": int(gold[i]),
        }
        for i, name in enumerate(confusion.names)
        if gold[i] or output[i]
    }


def _unknown(model: SequenceModel, text: Text, gold: Column, output: Column) -> dict[str, Any]:
    """Accuracy on words that the model has never seen, where it can be known."""
    vocabulary = model.known_words()
    if vocabulary is None or text.words is None:
        return {}
    accuracies = unknown_word_accuracy(gold, output, unknown_words(text.words, vocabulary))
    return {
        "unknown_words": accuracies["unknown"],
        "accuracy_unknown": accuracies["accuracy_unknown"] if accuracies["unknown"] else None,
        "accuracy_known": accuracies["accuracy_known"],
    }


def _token_calibration(decoder: Any, data: SequenceDataset, tags: np.ndarray) -> dict[str, Any]:
    shares = decoder.probabilities(data.rows)[np.arange(len(tags)), tags]
    return _reliability(shares, tags == data.rows.labels)


def _span_calibration(
    model: SequenceModel, data: SequenceDataset, tags: np.ndarray, args: argparse.Namespace
) -> dict[str, Any] | None:
    if model.scheme is None:
        return None
    true, output = (
        _span_set(Column(data.labels, labels), data, model.scheme)
        for labels in (data.rows.labels, tags)
    )
    kinds = {(first, after): kind for first, after, kind in output}
    shares, right = [], []
    for first, after, p in span_confidences(model, data, tags, not args.no_constraints):
        shares.append(p)
        right.append((first, after, kinds[first, after]) in true)
    return _reliability(np.array(shares), np.array(right, bool))


def _span_set(labels: Column, data: SequenceDataset, scheme: str) -> set[tuple[int, int, str]]:
    table = spans(labels, data.rows.starts, scheme, repair=True)
    return set(zip(table.first.tolist(), table.after.tolist(), table.kinds.texts(), strict=True))


def _reliability(shares: np.ndarray, right: np.ndarray) -> dict[str, Any]:
    # Sums of rounded numbers may pass 1 by the last digit.
    return reliability(np.minimum(shares, 1.0), right).as_dict()


def findings(facts: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """The same for people: words, and a table of types or labels."""
    spans_, unknown = facts["scheme"] is not None, facts.get("accuracy_unknown")
    calibration = facts.get("calibration", {})
    words = {
        "sentences": f"{facts['sentences']:,} with {facts['tokens']:,} tokens",
        "F1": in_percent(facts, "f1") if spans_ else None,
        "precision": in_percent(facts, "precision") if spans_ else None,
        "recall": in_percent(facts, "recall") if spans_ else None,
        "accuracy": in_percent(facts, "accuracy"),
        "whole sentences": in_percent(facts, "sentence_accuracy"),
        "unknown words": None
        if unknown is None
        else f"{unknown:.2f} % of {facts['unknown_words']:,} right, of the known "
        f"{facts['accuracy_known']:.2f} %",
        "calibration": ", ".join(
            f"{key} {bins['ece']:.2f} %" for key, bins in calibration.items() if bins
        )
        + " off (ECE)"
        if calibration
        else None,
        "non-zeros": f"{facts['nnz']:,}",
    }
    if spans_:
        errors = (f"{name} {n:,}" for name, n in facts["span_errors"].items())
        words["spans wrong by"] = ", ".join(errors)
    what = "type" if spans_ else "label"
    rows = [
        [
            name,
            *(f"{row[key]:.2f}" for key in ("precision", "recall", "f1")),
            *(row[key] for key in ("gold", "found", "correct")),
        ]
        for name, row in facts[f"{what}s"].items()
    ]
    heads = [what, "precision", "recall", "F1", "gold", "found", "correct"]
    return words, [(f"{what.capitalize()}s", heads, rows)]


def show_scores(console: Console, facts: dict[str, Any]) -> None:
    """The same on a screen."""
    words, [(title, heads, rows)] = findings(facts)
    console.pairs(words)
    long_table(console, heads, rows, _SHOWN, title.lower(), BEST_SCORES)
    show_confusion(console, facts)
    console.say(f"\n{facts['signature']}\n{facts['model_signature']}")


def model_facts(model: SequenceModel, top: int) -> dict[str, Any]:
    """What there is to say of this model."""
    features, header = model.features, model.features.to_header()
    facts: dict[str, Any] = {
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
        "coordinates": n_weights(model.structure()),
    }
    if hasattr(model.predictor, "layers"):
        layers = model.predictor.layers()
        size = sum(math.prod(shape) for shape in layers.values())
        facts |= {"coordinates": size, "layers": layers, "transitions": _transitions(model, top)}
    elif isinstance(model.predictor, LinearPredictor):
        facts |= {
            "top": model.top(top),
            "bottom": model.bottom(top),
            "transitions": _transitions(model, top),
            "edges": model.edge_top(top),
            "triples": model.triples(top),
        }
    return facts


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


def facts_in_words(facts: dict[str, Any]) -> dict[str, Any]:
    """The same for people."""
    edges = f" and {facts['edge_features']:,} of edges" if facts["edge_features"] else ""
    origin, shared = facts["feature_set"] or facts["feature_kind"], facts["hash_collisions"]
    scheme = "none: any labels may follow each other"
    if facts["scheme"] is not None:
        free = "" if facts["constrained"] else ", which outputs need not follow"
        scheme = facts["scheme"] + free
    return {
        "labels": labels_in_words(facts["labels"]),
        "scheme": scheme,
        "chain": f"order {facts['order']}, search {facts['search']}",
        "temperature": f"{facts['temperature']:.3g}",
        "features": f"{facts['features']:,}{edges} ({origin})",
        "hash collisions": None if shared is None else f"{shared:.2f} %",
    }


def show_weights(console: Console, facts: dict[str, Any]) -> None:
    """Templates, transitions, and the heaviest features of every label."""
    if facts["templates"]:
        console.say("\ntemplates\n  " + "\n  ".join(facts["templates"][:_TEMPLATES]))
        if len(facts["templates"]) > _TEMPLATES:
            console.say(f"  … and {len(facts['templates']) - _TEMPLATES} more")
    if "layers" in facts:
        console.say("\nlayers")
        rows = [[name, " × ".join(map(str, shape))] for name, shape in facts["layers"].items()]
        console.table(["weights", "shape"], rows)
    for name, pairs in facts.get("transitions", {}).items():
        weights_table(console, f"transitions {name}", ["from", "to"], pairs)
    if "top" not in facts:
        return
    heads = ["two before", "before", "label"]
    weights_table(console, "label triples, heaviest", heads, facts["triples"])
    heads = ["feature", "from", "to"]
    weights_table(console, "features of label pairs, heaviest", heads, facts["edges"])
    for name, features in facts["top"].items():
        # What speaks for the label, then what speaks against it, the strongest last.
        weights_table(console, name, ["feature"], [*features, *facts["bottom"][name][::-1]])
