"""Files of every task as Python objects that estimators take; `hopefear.tasks.reading` chooses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hopefear.data.crfsuite import read_crfsuite
from hopefear.data.examples import examples
from hopefear.data.labels import check_classes
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.files import read_lists
from hopefear.data.lists.input import GIVEN
from hopefear.data.lists.objects import COUNTS
from hopefear.data.sequences import Column
from hopefear.data.sources import Source
from hopefear.data.text_formats import ConvertingReader
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
    """Of examples, a list of texts or of dicts, or a sparse matrix, and an array of labels."""
    columns = {key: options.pop(key) for key in ("text_column", "label_column") if key in options}
    common = {key: options[key] for key in ("on_error", "report")}
    many = options.pop("many_classes", False)
    file, lines = examples(source, format, **columns, **common), list[bytes]()
    if file.kind == "text":
        file = file._replace(path=ConvertingReader(file.path, partial(_recorded, lines)))
    data = file.read(**options)
    check_classes(source, data.classes, len(data), many)
    labels = np.array([*data.classes, ""], object)[data.rows.labels]
    if file.kind == "text":
        return Contents(_texts(source, lines, len(data)), labels, None)
    if data.features.kind != "named":
        return Contents(data.to_csr(), labels, None)
    names, rows = data.features.names(range(data.n_features)), data.rows
    columns, values = rows.indices.tolist(), rows.values.tolist()
    dicts = [
        {names[j]: value for j, value in zip(columns[a:b], values[a:b], strict=True)}
        for a, b in pairwise(rows.indptr.tolist())
    ]
    return Contents(dicts, labels, names)


def _recorded(lines: list[bytes], stream: Iterable[bytes]) -> Iterator[bytes]:
    """Lines on their way to a reader, which are appended to ``lines``."""
    for line in stream:
        lines.append(line)
        yield line


def _texts(source: Source, lines: Sequence[bytes], n: int) -> list[str]:
    """The texts of lines of ``label<TAB>text``, without the lines that a reader left out."""
    pairs = [line.rstrip(b"\r\n").partition(b"\t") for line in lines if line.strip()]
    if len(pairs) > n:
        pairs = [pair for pair in pairs if pair[1] and pair[0].strip() and _is_utf8(b"".join(pair))]
    if len(pairs) != n:
        raise HopefearError(f"{source}: bad lines cannot be told from texts here; mend them")
    return [text.decode() for _, _, text in pairs]


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def tokens_in(source: Source, format: str, column: str | None = None, **options: Any) -> Contents:
    """Of tokens, lists of lists of them and of their labels."""
    form = token_format(source, format, options.get("columns"))
    if form == "crfsuite":
        if column is not None:
            raise HopefearError(f"{source} has attributes and no columns; leave out {column!r}")
        attributes = read_crfsuite(source, **options)
        rows, values = attributes.rows, attributes.rows.values
        names = [rows.strings.get(i) for i in range(rows.strings.size)]
        ids = rows.ids.tolist()
        worth = values.tolist() if values.size else [1.0] * len(ids)
        bags = [
            {names[i]: v for i, v in zip(ids[a:b], worth[a:b], strict=True)}
            for a, b in pairwise(rows.indptr.tolist())
        ]
        return Contents(_cut(bags, rows.starts), _cut(attributes.labels.texts(), rows.starts), ())
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
    """Of candidates, dicts that hold them and what judges them: costs, or references."""
    X: list[dict[str, Any]] = []
    y: list[Any] = []
    names: list[str] = []
    options.setdefault("dedup", "none")
    for block in read_lists(source, format, **options):
        names = [*block.names, *(() if block.sparse is None else block.sparse.names)] or names
        for i in range(len(block)):
            X.append(_list(block, i))
            if block.costs is not None and block.metric == GIVEN:
                y.append(block.costs[block.starts[i] : block.starts[i + 1]].tolist())
            elif block.references is not None:
                y.append(list(block.references[i]))
    return Contents(X, y or None, names)


def _list(block: CandidateLists, i: int) -> dict[str, Any]:
    """A list as JSON has it, which the estimator reads as readers of files read their lists."""
    candidates = []
    for c in range(int(block.starts[i]), int(block.starts[i + 1])):
        candidate: dict[str, Any] = {"text" if block.trees is None else "tree": block.texts[c]}
        candidate |= {"score": float(block.scores[c]), "features": block.features_of(c)}
        if block.derivations is not None and block.derivations[c] is not None:
            candidate["derivation"] = block.derivations[c]
        if block.trees is not None and block.counts is not None:
            candidate |= zip(COUNTS, block.counts[c].tolist(), strict=True)
        candidates.append(candidate)
    record: dict[str, Any] = {"id": block.ids[i], "candidates": candidates}
    if block.references is not None:
        record["references"] = list(block.references[i])
    if block.weights is not None:
        record["weight"] = float(block.weights[i])
    return record


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
