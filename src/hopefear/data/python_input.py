"""Files of every task as Python objects that estimators take; `hopefear.tasks.reading` chooses."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hopefear.data.crfsuite import read_crfsuite
from hopefear.data.examples import examples
from hopefear.data.labels import check_classes
from hopefear.data.lists.files import read_lists
from hopefear.data.sequences import Column
from hopefear.data.sources import Source
from hopefear.data.token_files import read_sentences, token_format
from hopefear.data.token_objects import check_named
from hopefear.data.treebank import MISSING, read_treebank
from hopefear.errors import HopefearError

# What templates of arcs look at.
WORDS = ("form", "lemma", "upos", "xpos", "feats")


class Contents(NamedTuple):
    """Contents of a file: inputs, answers (None where it has none), names of columns."""

    X: Any
    y: Any
    names: Sequence[str] | None


def examples_in(source: Source, format: str, **options: Any) -> Contents:
    """Of examples, a sparse matrix and an array of labels."""
    columns = {key: options.pop(key) for key in ("text_column", "label_column") if key in options}
    common = {key: options[key] for key in ("on_error", "report")}
    many = options.pop("many_classes", False)
    data = examples(source, format, **columns, **common).read(**options)
    check_classes(source, data.classes, len(data), many)
    labels = np.array([*data.classes, ""], object)[data.rows.labels]
    named = data.features.kind in ("ngrams", "named")
    names = data.features.names(range(data.n_features)) if named else None
    return Contents(data.to_csr(), labels, names)


def tokens_in(source: Source, format: str, column: str | None = None, **options: Any) -> Contents:
    """Of tokens, lists of lists of them and of their labels."""
    form = token_format(source, format, options.get("columns"))
    if form == "crfsuite":
        if column is not None:
            raise HopefearError(f"{source} has attributes and no columns; leave out {column!r}")
        given = read_crfsuite(source, **options)
        rows, values = given.rows, given.rows.values
        names = [rows.strings.get(i) for i in range(rows.strings.size)]
        ids = rows.ids.tolist()
        worth = values.tolist() if values.size else [1.0] * len(ids)
        bags = [
            {names[i]: v for i, v in zip(ids[a:b], worth[a:b], strict=True)}
            for a, b in pairwise(rows.indptr.tolist())
        ]
        return Contents(_cut(bags, rows.starts), _cut(given.labels.texts(), rows.starts), ())
    file = read_sentences(source, format=form, **options)
    sentences = file.sentences
    columns: Any = sentences.columns
    inputs = list(columns)
    if file.format == "conllu":  # words first, as taggers take them, and no numbers of words
        inputs = ["word", *(name for name in inputs if name not in ("id", "form"))]
    target = column or ("upos" if file.format == "conllu" else inputs[-1])
    gold: Column | None = None
    if column is not None or len(inputs) > 1:
        if target not in columns:
            raise HopefearError(f"{source} has no column {target!r}; there are {', '.join(inputs)}")
        if file.format == "json":
            check_named(file, target)
        gold = columns[target]
        name = columns.aliases.get(target, target)
        inputs.remove("word" if name == "form" else name)
    texts = [columns[name].texts() for name in inputs]
    tokens: list[Any] = texts[0] if len(texts) == 1 else list(zip(*texts, strict=True))
    y = None if gold is None else _cut(gold.texts(), sentences.starts)
    return Contents(_cut(tokens, sentences.starts), y, tuple(inputs))


def lists_in(source: Source, format: str, **options: Any) -> Contents:
    """Of candidates, dicts that hold them and lists of their costs."""
    X: list[dict[str, Any]] = []
    y: list[list[float]] = []
    names: list[str] = []
    for block in read_lists(source, format, **options):
        names = [*block.names, *(() if block.sparse is None else block.sparse.names)] or names
        text = "text" if block.trees is None else "tree"
        for i, (a, b) in enumerate(pairwise(block.starts.tolist())):
            candidates = [
                {
                    text: block.texts[c],
                    "score": float(block.scores[c]),
                    "features": block.features_of(c),
                }
                for c in range(a, b)
            ]
            record: dict[str, Any] = {"candidates": candidates}
            if block.references is not None:
                record["reference"] = list(block.references[i])
            X.append(record)
            if block.costs is not None:
                y.append(block.costs[a:b].tolist())
    return Contents(X, y or None, names)


def trees_in(source: Source, format: str, **options: Any) -> Contents:
    """Of trees, lists of words as dicts and of their ``(head, relation)``."""
    bank = read_treebank(source, **options)
    if format not in ("auto", bank.format):
        raise HopefearError(f"{source} is {bank.format}, not {format}")
    names = [name for name in WORDS if name in bank.sentences.columns]
    table = zip(*(bank.sentences.columns[name].texts() for name in names), strict=True)
    words = [
        {name: text for name, text in zip(names, row, strict=True) if text != MISSING}
        for row in table
    ]
    arcs = list(zip(bank.heads.tolist(), bank.relations.texts(), strict=True))
    return Contents(_cut(words, bank.starts), _cut(arcs, bank.starts), tuple(names))


def _cut(items: list[Any], starts: np.ndarray) -> list[list[Any]]:
    return [items[a:b] for a, b in pairwise(starts.tolist())]
