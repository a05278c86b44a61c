"""A stream of labelled tokens, with hashed attributes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from hopefear.cli.console import Console
from hopefear.cli.options import first_learner
from hopefear.cli.streaming import BITS, Incoming, head_of, known
from hopefear.cli.tag.cached import texts
from hopefear.cli.tag.corpus import Source, features_named, labelled_columns, mended, schemes_of
from hopefear.cli.tag.inputs import Text, read_text
from hopefear.data.files import ReadReport
from hopefear.data.sequences import Column, SequenceDataset
from hopefear.data.token_files import token_format
from hopefear.errors import HopefearError, InputError
from hopefear.features.templates import TemplateFeatures
from hopefear.tasks.tag.model import encoded
from hopefear.tasks.tag.task import Tagging


def needs_all(args: argparse.Namespace) -> str | None:
    """The first option given for which the data must be read as a whole."""
    if args.min_count > 1:
        return f"--min-count {args.min_count}"
    return "--format crfsuite" if args.format == "crfsuite" else None


def stream(args: argparse.Namespace, console: Console, report: ReadReport) -> Incoming:
    """The sentences of ``--train`` as they come."""
    if option := needs_all(args):
        raise HopefearError(
            f"{option} belongs to data that is read as a whole; leave it out with --stream"
        )
    form = token_format(args.train, args.format, args.columns)
    if form == "crfsuite":
        raise HopefearError(
            f"--stream: {args.train} is a CRFsuite file, whose attributes would need a table that "
            "grows without end; give columns or CoNLL-U"
        )
    how = {"columns": args.columns, "on_error": args.on_error}
    with head_of(args) as head:
        _whole_sentences(head, b"\n" if form == "json" else b"\n\n")
        start = read_text(head, form, ReadReport(), **how)
        name, gold = start.column(args.column)
        schemes = schemes_of(start, gold, args.scheme, args.convert, args.scheme_errors)
    source = Source(args, start, name, gold, features_named(args, start, gold))
    inputs = source.inputs(*first_learner(args))
    if inputs is not source.templates:
        raise HopefearError(
            f"--stream: {args.learner} is a network, which learns from data in memory; take "
            "another learner"
        )
    features = TemplateFeatures.hashed(
        inputs, labelled_columns(start, name, gold).columns, args.hash_bits or BITS
    )

    def learned(text: Text) -> tuple[Text, Column]:
        _, gold = text.column(name)
        text, gold, _ = mended(text, gold, schemes.file, args.scheme_errors, console)
        return text, schemes.read(text, gold)

    text, gold = learned(start)
    labels = tuple(args.classes or gold.strings)
    known(labels, args.train)

    def dataset(text: Text, gold: Column) -> SequenceDataset:
        return encoded(
            text, features.encode(labelled_columns(text, name, gold)), labels, gold, features
        )

    def blocks() -> Iterator[SequenceDataset]:
        for text in texts(args, form, report, None):
            data = dataset(*learned(text))
            yield _of_known_labels(data, labels, text, args.on_error, report)

    def held_out(path: str) -> SequenceDataset:
        text = read_text(path, form, ReadReport(), **how)
        return dataset(*learned(text))

    reading = {
        "format": start.form,
        "columns": list(start.names) if start.form == "columns" else None,
        "column": name,
        "scheme": schemes.file,
        "trained_scheme": schemes.model,
    }
    task = Tagging(
        args.order, args.search, args.beam, schemes.model, args.constraints, args.class_weight
    )
    first = _of_known_labels(dataset(text, gold), labels, text, "skip", ReadReport())
    return Incoming(task, first, blocks, held_out, reading)


def _whole_sentences(path: str, mark: bytes) -> None:
    """Cut a file behind the last mark of a sentence's end, where it has one."""
    with open(path, "rb+") as file:
        lines = file.read()
        end = lines.rfind(mark)
        if end > 0:
            file.truncate(end + len(mark))


def _of_known_labels(
    data: SequenceDataset,
    labels: tuple[str, ...],
    text: Text,
    on_error: str,
    report: ReadReport,
) -> SequenceDataset:
    """The sentences all of whose labels a model has; others are refused or left out and counted."""
    strange = np.flatnonzero(data.rows.labels >= len(labels))
    if strange.size:
        k = int(strange[0])
        error = InputError(
            *text.place(k),
            f"one of the labels {', '.join(labels[:10])}{', …' * (len(labels) > 10)} "
            "(--classes names all)",
            data.labels[int(data.rows.labels[k])],
        )
        if on_error == "raise":
            raise error
        bad = np.unique(np.searchsorted(data.rows.starts, strange, "right") - 1)
        report.skip(str(error))
        report.skipped += len(bad) - 1
        data = data.take(np.setdiff1d(np.arange(len(data)), bad))
    return SequenceDataset(data.rows, labels, data.features, data.source)
