"""A stream of labelled tokens, with hashed attributes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

from hopefear.cli.console import Console
from hopefear.cli.streaming import BITS, Incoming, head_of, known
from hopefear.cli.tag.corpus import options_of, parts, tell_mended
from hopefear.data.files import ReadReport
from hopefear.data.sequences import SequenceDataset
from hopefear.data.token_examples import TokenExamples, read_tokens
from hopefear.data.token_files import token_format
from hopefear.errors import HopefearError, InputError
from hopefear.tasks.tag.prepare import Plan, StreamedSentences
from hopefear.tasks.tag.task import Tagging


def needs_all(args: argparse.Namespace) -> str | None:
    """The first option given for which the data must be read as a whole."""
    if args.min_count > 1:
        return f"--min-count {args.min_count}"
    return "--format crfsuite" if args.format == "crfsuite" else None


def stream(args: argparse.Namespace, console: Console, report: ReadReport) -> Incoming:
    """Returns the sentences of ``--train`` as they come."""
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
    how: dict[str, Any] = {"columns": args.columns, "on_error": args.on_error}
    with head_of(args) as head:
        _whole_sentences(head, b"\n" if form == "json" else b"\n\n")
        start = read_tokens(head, form, **how).labelled(args.column)
        plan = Plan.of(start, options_of(args))
    sentences = StreamedSentences(plan, start, args.hash_bits or BITS, args.classes)
    known(sentences.labels, args.train)

    def blocks() -> Iterator[SequenceDataset]:
        for examples, data in sentences.blocks(
            parts(args, form, report, None), lambda line: tell_mended(console, args, line)
        ):
            yield _of_known_labels(data, sentences.labels, examples, args.on_error, report)

    def held_out(path: str) -> SequenceDataset:
        return sentences.held_out(
            read_tokens(path, form, **how).labelled(plan.reading["column"])
        ).data

    model = plan.schemes.model
    task = Tagging(args.order, args.search, args.beam, model, args.constraints, args.class_weight)
    first = _of_known_labels(sentences.first, sentences.labels, start, "skip", ReadReport())
    return Incoming(task, first, blocks, held_out, plan.reading)


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
    examples: TokenExamples,
    on_error: str,
    report: ReadReport,
) -> SequenceDataset:
    """The sentences all of whose labels a model has; others are refused or left out and counted."""
    strange = np.flatnonzero(data.rows.labels >= len(labels))
    if strange.size:
        k = int(strange[0])
        error = InputError(
            *examples.place(k),
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
