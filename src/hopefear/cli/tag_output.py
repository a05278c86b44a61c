"""Tags on the command line: answers as they are written, scores and weights as they are shown.

Heavy imports stand inside functions, since help reads this file, too.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from hopefear.cli.surface import Surface
from hopefear.cli.tag_input import reading_of_model
from hopefear.errors import HopefearError

if TYPE_CHECKING:
    from hopefear.data.token_examples import TokenExamples
    from hopefear.tasks.tag.answers import Paint, TagAnswers
    from hopefear.tasks.tag.model import SequenceModel

_MAX_ROWS = 40  # rows of the table of types or labels
_TEMPLATES = 60  # shown at most
_COLOURS = (32, 34, 35, 36, 33, 31)  # green, blue, magenta, cyan, yellow, red
_BLANKS = re.compile(r"\s+")


class ShownTags(Surface):
    """Prints scores and weights of taggers."""

    def findings(self, facts: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        from hopefear.cli.console import in_percent

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

    def show_scores(self, console: Any, facts: Mapping[str, Any]) -> None:
        from hopefear.cli.console import BEST_SCORES, long_table, show_confusion

        words, [(title, heads, rows)] = self.findings(facts)
        console.pairs(words)
        long_table(console, heads, rows, _MAX_ROWS, title.lower(), BEST_SCORES)
        show_confusion(console, facts)
        console.say(f"\n{facts['signature']}\n{facts['model_signature']}")

    def model_facts(self, model: Any, top: int) -> dict[str, Any]:
        from hopefear.core.interfaces import n_weights

        features, header = model.features, model.features.to_header()
        header = header.get("tokens", header)  # of segments
        names = ("order", "scheme", "constrained", "search", "temperature")
        facts: dict[str, Any] = {
            "labels": list(model.labels),
            **{name: getattr(model, name) for name in names},
            "segments": getattr(features, "longest", None),
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
            facts |= {"coordinates": size, "layers": layers}
            facts["transitions"] = _transitions(model, top)
        elif model.predictor.linear:
            facts |= {
                "top": model.top(top),
                "bottom": model.bottom(top),
                "transitions": _transitions(model, top),
                "edges": model.edge_top(top),
                "triples": model.triples(top),
            }
        return facts

    def facts_in_words(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        from hopefear.cli.console import labels_in_words

        edges = f" and {facts['edge_features']:,} of edges" if facts["edge_features"] else ""
        origin, shared = facts["feature_set"] or facts["feature_kind"], facts["hash_collisions"]
        scheme = "none: any labels may follow each other"
        if facts["scheme"] is not None:
            free = "" if facts["constrained"] else ", which outputs need not follow"
            scheme = facts["scheme"] + free
        structure = {"chain": f"order {facts['order']}, search {facts['search']}"}
        if facts["segments"] is not None:
            structure = {"segments": f"up to {facts['segments']} tokens"}
        return {
            "labels": labels_in_words(facts["labels"]),
            "scheme": scheme,
            **structure,
            "temperature": f"{facts['temperature']:.3g}",
            "features": f"{facts['features']:,}{edges} ({origin})",
            "hash collisions": None if shared is None else f"{shared:.2f} %",
        }

    def show_weights(self, console: Any, facts: Mapping[str, Any]) -> None:
        from hopefear.cli.console import weights_table

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


def written(args: argparse.Namespace, found: TagAnswers) -> Iterator[bytes]:
    """Answers in the format that is asked for."""
    from hopefear.data.token_objects import with_labels
    from hopefear.data.write_tokens import repeated, with_columns

    form, proba, given = args.output_format, args.proba, found.examples.form
    coloured = is_coloured(args.output)
    if form is None and given == "text" and coloured and not (args.nbest or proba):
        form = "inline"
    if form == "inline":
        return _lines(found, coloured)
    if form == "json" or (form is None and given == "json" and (args.nbest or proba)):
        return _objects(found)
    if given == "text" or (given == "json" and form == "columns"):
        return _token_lines(found, proba, texts=True)
    file, name = found.examples.file, reading_of_model(found.model)["column"] or "label"
    if file is None:
        return _token_lines(found, proba, texts=False)
    if given == "json":
        return with_labels(file, name, found.labels)
    if found.counts is not None:
        file = repeated(file, found.counts)
    return with_columns(file, dict(_table(found, name, proba)), comments=_comments(found, proba))


def _table(found: TagAnswers, name: str, proba: bool) -> Iterator[tuple[str, Any]]:
    """The columns to write, by name."""
    yield name, found.labels
    if not proba:
        return
    yield "Probability", [f"{p:.4f}" for p in found.token_probabilities.tolist()]
    if (table := found.spans) is not None:
        column = ["_"] * len(found.tags)
        places = zip(table.first.tolist(), table.after.tolist(), strict=True)
        for (first, after), p in zip(places, found.span_probabilities.tolist(), strict=True):
            column[first:after] = [f"{p:.4f}"] * (after - first)
        yield "SpanProbability", column


def _comments(found: TagAnswers, proba: bool) -> list[list[str]] | None:
    """Lines before each output."""
    if found.counts is not None:
        facts = zip(found.ranks, found.scores, found.probabilities, strict=True)
        return [[f"rank = {k} score = {s:.6g} probability = {p:.6g}"] for k, s, p in facts]
    return [[f"probability = {p:.6g}"] for p in found.probabilities] if proba else None


def _token_lines(found: TagAnswers, proba: bool, texts: bool) -> Iterator[bytes]:
    """A token a line: its label and what is said of it between tabs, behind its text if wanted."""
    table = [column for _, column in _table(found, "label", proba)]
    table[0] = table[0].texts()
    comments, words = _comments(found, proba), found.words()
    for i, (start, end) in enumerate(pairwise(found.starts.tolist())):
        columns = [column[start:end] for column in table]
        rows = zip(*([next(words), *columns] if texts else columns), strict=True)
        head = [f"# {line}" for line in comments[i]] if comments else []
        yield ("\n".join([*head, *map("\t".join, rows)]) + "\n\n").encode()


def _lines(found: TagAnswers, coloured: bool) -> Iterator[bytes]:
    """A sentence a line, with brackets around its spans, or in colours."""
    from hopefear.data.sequences import Sentences
    from hopefear.tasks.tag.answers import inline

    if not isinstance(found.examples.content, Sentences):
        raise HopefearError(
            f"{found.examples.source} has attributes and no words: --output-format inline is for "
            "columns, CoNLL-U and text"
        )
    table = found.spans
    paint = painter(found.model.labels, table is not None) if coloured else None
    labels, sentences = found.labels.texts(), found.sentences.tolist()
    bounds = pairwise(found.starts.tolist())
    for i, ((start, end), words) in enumerate(zip(bounds, found.words(), strict=True)):
        spans = None if table is None else table.of(found.starts, i)
        if found.examples.characters is not None and paint is not None and spans is not None:
            line = _painted(found.examples, sentences[i], spans, paint)
        else:
            line = inline(words, labels[start:end], spans, paint)
        yield f"{line}\n".encode()


def _painted(
    examples: TokenExamples, i: int, spans: Sequence[tuple[int, int, str]], paint: Paint
) -> str:
    """Sentence ``i`` as it stands in the text, in one line, its spans in colours."""
    assert examples.characters is not None
    text, bounds = examples.characters.text, examples.characters.bounds[i]
    parts, done = [], bounds[0][0]
    for first, after, label in spans:
        a, b = bounds[first][0], bounds[after - 1][1]
        parts += [_BLANKS.sub(" ", text[done:a]), paint(_BLANKS.sub(" ", text[a:b]), label)]
        done = b
    return "".join([*parts, _BLANKS.sub(" ", text[done : bounds[-1][1]])])


def painter(labels: Sequence[str], spans: bool) -> Paint:
    """Returns colours for a terminal, one a kind of span; other labels stand dim behind words.

    >>> painter(["O", "B-X"], True)("Ann", "X")
    '\\x1b[1;32mAnn\\x1b[0;2m X\\x1b[0m'
    """
    if not spans:
        return lambda word, label: f"{word}\x1b[2m/{label}\x1b[0m"
    kinds = sorted({label.partition("-")[2] for label in labels if "-" in label})
    colour = {kind: _COLOURS[i % len(_COLOURS)] for i, kind in enumerate(kinds)}
    return lambda text, kind: f"\x1b[1;{colour.get(kind, 32)}m{text}\x1b[0;2m {kind}\x1b[0m"


def is_coloured(output: str) -> bool:
    """Whether an output is a terminal that shows colours."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return output == "-" and not plain and sys.stdout.isatty()


def _objects(found: TagAnswers) -> Iterator[bytes]:
    """A JSON object an output, with what else the object of its sentence has, where it is one."""
    from hopefear.data.token_objects import other_fields

    file, fields = found.examples.file, None
    if found.examples.form == "json" and file is not None:
        fields, name = other_fields(file), reading_of_model(found.model)["column"] or "label"
    for i, record in zip(found.sentences.tolist(), found, strict=True):
        given = {} if fields is None else {**fields[i], name: record.labels}
        line = json.dumps({**given, **record.as_dict()}, ensure_ascii=False)
        yield f"{line}\n".encode()


def pairs_of_labels(model: SequenceModel) -> tuple[Sequence[str], list[list[float]]] | None:
    """Weights of label pairs, where there are any."""
    if not (model.predictor.linear or hasattr(model.predictor, "transitions")):
        return None
    table = model.transitions()
    return (model.labels, table.astype(float).tolist()) if table.any() else None


def _transitions(model: SequenceModel, top: int) -> dict[str, list[tuple[str, str, float]]]:
    """Pairs of labels that the model seeks, and pairs that it shuns, strongest first."""
    import numpy as np

    table = model.transitions()
    order = np.argsort(table, axis=None, kind="stable")

    def pairs(which: Any, sign: float) -> list[tuple[str, str, float]]:
        places = zip(*np.unravel_index(which[:top], table.shape), strict=True)
        return [
            (model.labels[a], model.labels[b], float(table[a, b]))
            for a, b in places
            if sign * table[a, b] > 0.0
        ]

    return {"sought": pairs(order[::-1], 1.0), "shunned": pairs(order, -1.0)}


def collisions(features: Any) -> float | None:
    """Returns the percent of hashed features that share a column; None without hashing."""
    return 100.0 * features.collisions if getattr(features, "hash_bits", None) else None
