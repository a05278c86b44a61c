"""Training data of a tagger: the file, its labels, its features, and held-out data beside it."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from hopefear.cli.console import Console
from hopefear.cli.tag.labels import Schemes, schemes_of, warn_of_strangers
from hopefear.cli.tag.reading import Text, read
from hopefear.data.sequences import Column, Sentences, SequenceDataset
from hopefear.data.token_files import ColumnTable
from hopefear.errors import HopefearError
from hopefear.features.attributes import AttributeFeatures
from hopefear.tasks.tag.task import check, dataset

_LABELS = "(labels)"


@dataclass(frozen=True)
class Corpus:
    """What a tagger is trained on."""

    data: SequenceDataset
    held: SequenceDataset | None
    schemes: Schemes
    features: str  # name of the feature set
    reading: dict[str, Any]  # what a model must know to read more of this
    skipped: int


def corpus(args: argparse.Namespace, console: Console, held: str | None) -> Corpus:
    """Read ``--train`` and, with its features and labels, the file ``held``."""
    text, skipped = read(
        args.train, args.format, console, columns=args.columns, on_error=args.on_error
    )
    name, gold = text.column(args.column)
    schemes = schemes_of(text, gold, args.scheme, args.convert)
    features = args.features or default_features(text, name, gold, schemes)
    data = _dataset(args, text, name, schemes.read(text, gold), features)
    check(data)
    beside = None
    if held is not None:
        beside = _held_out(args, held, text, name, data, schemes, console)
    reading = {
        "format": text.form,
        "columns": list(text.names) if text.form == "columns" else None,
        "column": None if text.form == "crfsuite" else name,
        "scheme": schemes.file,
        "trained_scheme": schemes.model,
    }
    return Corpus(data, beside, schemes, features, reading, skipped)


def default_features(text: Text, name: str, gold: Column, schemes: Schemes) -> str:
    """The feature set that suits what is in a file."""
    if text.form == "crfsuite":
        return "attributes"
    if schemes.file is None:
        return "pos"
    # Chunks of the CoNLL kind come with parts of speech and have noun phrases.
    chunks = any(label.endswith("-NP") for label in gold.strings)
    return "chunking" if chunks and "pos" in text.names else "ner"


def describe(found: Corpus) -> str:
    """One line about the data."""
    data = found.data
    edges = f" and {data.features.edge_size:,} of edges" if data.features.edge_size else ""
    scheme = "no spans" if found.schemes.file is None else f"{found.schemes.file.upper()} spans"
    if found.schemes.model != found.schemes.file:
        scheme += f" learned as {str(found.schemes.model).upper()}"
    return (
        f"{data.source}: {len(data):,} sentences, {data.n_tokens:,} tokens, {len(data.labels)} "
        f"labels ({scheme}), {data.features.size:,} features{edges} ({found.features})"
    )


def _dataset(
    args: argparse.Namespace, text: Text, name: str, gold: Column, features: str
) -> SequenceDataset:
    if not isinstance(text.content, Sentences):
        for option in ("features", "hash_bits", "no_names"):
            if getattr(args, option):
                raise HopefearError(
                    f"{text.source} is a CRFsuite file, whose features are given: "
                    f"--{option.replace('_', '-')} belongs to columns and CoNLL-U; leave it out"
                )
        fitted = AttributeFeatures.fit(text.content, args.min_count)
        return text.encode(fitted, (), gold)
    sentences = text.content
    # Under another name, or a set with templates "when" there is a column of this one takes them.
    columns = {
        (_LABELS if key == name else key): (gold if key == name else column)
        for key, column in sentences.columns.items()
    }
    aliases = {
        alias: key
        for alias, key in getattr(sentences.columns, "aliases", {}).items()
        if key != name
    }
    table = ColumnTable(columns, aliases)
    return dataset(
        Sentences(sentences.starts, table, sentences.source, sentences.lines),
        features,
        _LABELS,
        min_count=args.min_count,
        hash_bits=args.hash_bits,
        keep_names=not args.no_names,
    )


def _held_out(
    args: argparse.Namespace,
    path: str,
    like: Text,
    name: str,
    data: SequenceDataset,
    schemes: Schemes,
    console: Console,
) -> SequenceDataset:
    columns = list(like.names) if like.form == "columns" else None
    text, _ = read(path, like.form, console, columns=columns, on_error=args.on_error)
    _, gold = text.column(None if like.form == "crfsuite" else name)
    held = text.encode(data.features, data.labels, schemes.read(text, gold))
    warn_of_strangers(held, len(data.labels))
    return held
