"""Taggers and classifiers as one JSON document, for programs that have nothing of ours.

``docs/integrations.md`` describes it, and the readers in ``examples/portable`` predict with it in
fewer than sixty lines of plain Python each.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hopefear import __version__
from hopefear.errors import HopefearError
from hopefear.features.templates.spec import (
    FIRST_TOKEN,
    LAST_TOKEN,
    ON_BOTH,
    ON_EDGES,
    ON_LABELS,
    StringSource,
    StringView,
    Template,
)
from hopefear.features.templates.string_features import PATTERNS, SHAPE_CLASSES, TEXT_CLASSES, seen
from hopefear.structures.lattice import padded_width

FORMAT = "hopefear-portable-1"
SEPARATOR = "\x1f"  # between the strings of an attribute: no text has it
FORBIDDEN = -1e30  # score of what must not follow: JSON has no infinity


def portable(model: Any) -> dict[str, Any]:
    """The document of a model; what it cannot hold is refused.

    Parameters
    ----------
    model : Model or estimator
        A tagger or a classifier.

    Examples
    --------
    >>> from hopefear import Classifier
    >>> model = Classifier("perceptron").fit(["good fun", "no fun"], ["pos", "neg"])
    >>> document = portable(model)
    >>> document["classes"], document["words"]["good"][0] > 0
    (['neg', 'pos'], True)
    """
    model = getattr(model, "model_", model)
    if model.task not in _WRITERS:
        raise HopefearError(
            f"models of the task {model.task} are not exported; taggers and classifiers are"
        )
    model.check_linear()
    return {
        "format": FORMAT,
        "version": __version__,
        "task": model.task,
        "signature": model.signature,
        **_WRITERS[model.task](model),
    }


def as_json(model: Any) -> bytes:
    """The document of a model as bytes of a file."""
    return json.dumps(portable(model), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _classifier(model: Any) -> dict[str, Any]:
    features, parts = model.features, model.structure.n_parts()
    if features.kind not in ("ngrams", "identity"):
        raise HopefearError(
            f"features of the kind {features.kind} are not exported: hashed n-grams have no "
            "names; train without --hash-bits"
        )
    weights = model.weights.reshape(-1, parts)
    scale = None if model.scale is None else _numbers(model.scale)
    split = getattr(features, "split", features.size)
    document: dict[str, Any] = {
        "classes": list(model.classes),
        "values": {"tfidf": "counts", "nb": "presence"}.get(
            model.transform["values"], model.transform["values"]
        ),
        "norm": model.transform["norm"],
        "temperature": model.temperature,
        "intercept": [model.structure.bias * w for w in _numbers(weights[features.size])]
        if model.structure.bias
        else [0.0] * parts,
    }
    if features.kind == "ngrams":
        document["ngrams"] = features.grams._asdict()
        names = [features.name(j) for j in range(split)]
        chars = [features.name(j)[2:].replace("·", " ") for j in range(split, features.size)]
    else:
        ids = features.ids(np.arange(features.size))
        named = model.about.get("feature_names") or []  # of the columns of a table
        names = [named[j] if j < len(named) else str(j) for j in ids.tolist()]
        chars = []
    ignored = set(getattr(features, "ignored", np.empty(0, int)).tolist())
    # Columns without weights count for the length of a row, where rows are divided by it.
    for key, grams, first in (("words", names, 0), ("chars", chars, split)):
        document[key] = {
            name: [*_numbers(weights[j]), *([] if scale is None else [scale[j]])]
            for j, name in enumerate(grams, first)
            if j not in ignored and (model.transform["norm"] == "l2" or weights[j].any())
        }
    return document


def _tagger(model: Any) -> dict[str, Any]:
    features, n = model.features, len(model.labels)
    if model.order != 1:
        raise HopefearError("taggers of order 2 are not exported; train with --order 1")
    width, limits = padded_width(n), model.structure().limits
    spelling = _Spelling(features)
    weights: dict[str, list[list[Any]]] = defaultdict(list)
    edge_weights: dict[str, list[list[Any]]] = defaultdict(list)
    for a, c, w in _table(model, 0, (features.size, width)):
        weights[spelling(a, False)].append([c, w])
    start = (features.size + width) * width
    for a, c, before, w in _table(model, start, (features.edge_size, width, width)):
        edge_weights[spelling(a, True)].append([before, c, w])
    pairs, first, last = model.transitions(), np.zeros(n), np.zeros(n)
    if limits.step.size:
        pairs = np.maximum(pairs + limits.step.reshape(width, width)[:n, :n].T, FORBIDDEN)
        first, last = (np.maximum(part[:n], FORBIDDEN) for part in (limits.start, limits.end))
    return {
        "labels": list(model.labels),
        **spelling.document(),
        "transitions": [_numbers(row) for row in (*pairs, first)],
        "end": _numbers(last),
        "weights": weights,
        "edge_weights": edge_weights,
    }


def _table(model: Any, start: int, shape: tuple[int, ...]) -> list[tuple[Any, ...]]:
    """Places and values of the weights of a table that are not 0."""
    indices, weights = model.predictor.block(start, shape)
    return list(zip(*(axis.tolist() for axis in indices), _numbers(weights), strict=True))


class _Spelling:
    """Templates of a tagger, from which its attributes are made."""

    def __init__(self, features: Any) -> None:
        self.features = features
        if features.kind not in ("templates", "attributes"):
            raise HopefearError(f"features of the kind {features.kind} are not exported")
        self.templates = features.templates.templates if features.kind == "templates" else ()
        self.lexicons: dict[StringSource, str] = {}
        for template, term in (
            (candidate, term) for candidate in self.templates for term in candidate.terms
        ):
            if any(view.name in PATTERNS for view in term.views):
                raise HopefearError(
                    f"template {template.text!r}: patterns of Wapiti's are not exported; write a "
                    "template file with prefix(), suffix() and is()"
                )
            if term.source.lexicon:
                self.lexicons.setdefault(term.source, f"lexicon {len(self.lexicons)}")

    def __call__(self, column: int, edges: bool) -> str:
        """The name of an attribute."""
        if not self.templates:
            return self.features.name(column)
        template, strings = self.features.spelled(column, edges)
        return SEPARATOR.join([self._id(template, edges), *strings])

    def document(self) -> dict[str, Any]:
        """Returns templates in terms of columns and of lexicons, which act as further columns."""
        if not self.templates:
            return {"padding": False, "lexicons": {}, "templates": []}
        entries = self.features.templates.lexicons
        return {
            "padding": self.features.templates.padding,
            "lexicons": {
                name: [
                    source.needs(),
                    _views(source.views),
                    _entries(entries[source.lexicon], source.views),
                ]
                for source, name in self.lexicons.items()
            },
            "templates": [
                self._template(template, edges)
                for template in self.templates
                for edges in (False, True)
                if template.on in (ON_BOTH, ON_EDGES if edges else ON_LABELS)
            ],
        }

    def _id(self, template: Template, edges: bool) -> str:
        """Number of a template; those of equal pieces make the same attributes."""
        number = next(i for i, t in enumerate(self.templates) if t.pieces == template.pieces)
        return f"{'e' if edges else ''}{number}"

    def _template(self, template: Template, edges: bool) -> dict[str, Any]:
        number = template.number
        return {
            "id": self._id(template, edges),
            "text": template.text,
            "first": bool(template.where & FIRST_TOKEN),
            "last": bool(template.where & LAST_TOKEN),
            "terms": [
                [self.lexicons.get(t.source, t.source.needs()), _views(t.views), t.offset]
                for t in template.terms
            ],
            "number": None if number is None else [number.source.needs(), number.offset],
        }


def _views(views: Sequence[StringView]) -> list[list[Any]]:
    """Returns views by name; classes of words become patterns, which any program can read."""
    patterns = {name: ["shape", text] for name, text in SHAPE_CLASSES.items()}
    patterns |= {name: ["", text] for name, text in TEXT_CLASSES.items()}
    patterns_of: dict[str, Callable[..., list[list[str]]]] = {
        "classes": lambda: [[name, *pattern] for name, pattern in patterns.items()],
        "is": lambda name: [["yes", *patterns[name]]],
    }
    return [
        ["match", patterns_of[view.name](*view.args)]
        if view.name in patterns_of
        else [view.name, *view.args]
        for view in views
    ]


def _entries(entries: Sequence[str], views: tuple[StringView, ...]) -> list[list[str]]:
    """Entries of a lexicon as the views of its column leave them."""
    phrases = [[seen(word, views) for word in entry.split()] for entry in entries]
    return [[word[0] for word in phrase] for phrase in phrases if phrase and all(phrase)]


def _numbers(values: Any) -> list[float]:
    """Returns numbers in the fewest digits that are exact in 32 bits."""
    return [float(str(value)) for value in np.asarray(values, np.float32)]


_WRITERS = {"classify": _classifier, "tag": _tagger}
