"""Files as a tagger reads them, and its answers as columns, lines, JSON, or reasons."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from hopefear.cli.console import Console
from hopefear.cli.explain import told, wanted_tokens
from hopefear.cli.options import threads
from hopefear.data.files import ReadReport, is_pipe
from hopefear.data.sequences import Sentences
from hopefear.data.sources import Source
from hopefear.data.token_examples import TokenExamples, of_file, read_tokens, text_parts
from hopefear.data.token_files import named_tokens
from hopefear.data.token_objects import begins_with_object, with_labels
from hopefear.data.token_stream import read_parts
from hopefear.data.write_tokens import repeated, with_columns
from hopefear.errors import HopefearError
from hopefear.tasks.base import Explanation
from hopefear.tasks.tag.answers import Answers, Paint, TagDecoder, inline
from hopefear.tasks.tag.model import SequenceModel

_COLOURS = (32, 34, 35, 36, 33, 31)  # green, blue, magenta, cyan, yellow, red
_BLANKS = re.compile(r"\s+")


def how(model: SequenceModel) -> Mapping[str, Any]:
    """Returns how the training data of a model was written; models made elsewhere may not say."""
    plain = {"format": "auto", "columns": None, "column": None, "scheme": model.scheme}
    return {**plain, **model.about.get("reading", {})}


def read_for(
    model: SequenceModel, path: str, args: argparse.Namespace, report: ReadReport
) -> TokenExamples:
    """Returns a file for a model: its columns bear the names they had in training.

    Columns behind the last that features need may be missing, as labels are in new text.
    """
    if args.format == "text":
        return next(text_parts(path, model.tokenizer, model.text_columns(), whole=True))
    form, columns, optional = _as_trained(model, path, args)
    options: dict[str, Any] = {"on_error": args.on_error, "report": report}
    return read_tokens(path, form, columns=columns, optional=optional, **options)


def _arriving(
    model: SequenceModel, args: argparse.Namespace, report: ReadReport
) -> Iterator[TokenExamples | bytes]:
    """Yields ``--input`` bit by bit, as sentences come; bytes where there are none to be tagged."""
    if args.format == "text":
        yield from text_parts(args.input, model.tokenizer, model.text_columns(), whole=False)
        return
    form, columns, optional = _as_trained(model, args.input, args)
    options: dict[str, Any] = {"on_error": args.on_error, "report": report}
    for part in read_parts(args.input, format=form, columns=columns, optional=optional, **options):
        if part.file is not None:
            yield of_file(part.file)
        elif form != "crfsuite":
            yield part.text


def _as_trained(
    model: SequenceModel, path: str, args: argparse.Namespace
) -> tuple[str, Sequence[str] | None, int]:
    """Format, names of columns, and how many of the last may be missing."""
    reading = how(model)
    attributes = model.features.kind == "attributes"
    form = args.format
    if form == "auto":
        form = "crfsuite" if attributes else named_tokens(path) or reading["format"]
        if not attributes and form in ("columns", "json"):
            line = next(Source(path).look(), b"")
            form = "json" if begins_with_object(line) else "columns"
    if attributes != (form == "crfsuite"):
        kind = "attributes of CRFsuite files" if attributes else "templates over columns"
        raise HopefearError(f"{path}: {args.model} has features from {kind}, and this is {form}")
    columns, optional = args.columns, 0
    if form == "columns":
        columns = columns or reading["columns"] or None
    if columns is not None:
        needed = [_position(name, columns) for name in model.features.needs]
        optional = len(columns) - 1 - max(needed, default=0)
    return form, columns, optional


def _position(name: str, columns: Sequence[str]) -> int:
    """Where a column stands; it may be called by its number, and what is missing is told later."""
    if name in columns:
        return columns.index(name)
    return min(int(name), len(columns) - 1) if name.isdecimal() else 0


def answers(
    args: argparse.Namespace, model: SequenceModel, console: Console, report: ReadReport
) -> Iterator[bytes]:
    """Yields ``--input`` with the labels of its tokens."""
    decoder = TagDecoder(
        model, not args.no_constraints, n_jobs=threads(args.jobs), scheme=args.scheme
    )
    bit_by_bit = args.stream or args.format == "text" or is_pipe(args.input)
    for examples in (
        _arriving(model, args, report)
        if bit_by_bit
        else [read_for(model, args.input, args, report)]
    ):
        if isinstance(examples, bytes):
            yield b"" if args.output_format in ("inline", "json") else examples
            continue
        pieces = _written(args, decoder.answers(examples, args.nbest or None))
        # What has come at once goes at once: a system call a sentence would be slow.
        yield from [b"".join(pieces)] if bit_by_bit else pieces
    if decoder.unlimited:
        console.say(
            f"{decoder.unlimited:,} sentences have no legal labels and were tagged without limits"
        )


def _written(args: argparse.Namespace, found: Answers) -> Iterator[bytes]:
    """Answers in the format that is asked for."""
    form, proba, given = args.output_format, args.proba, found.examples.form
    coloured = is_coloured(args.output)
    if form is None and given == "text" and coloured and not (args.nbest or proba):
        form = "inline"
    if form == "inline":
        return _lines(found, coloured)
    if form == "json" or (form is None and given == "json" and (args.nbest or proba)):
        return (_json(record.as_dict()) for record in found.records(proba))
    if given == "text" or (given == "json" and form == "columns"):
        return _columns(found, proba, texts=True)
    file, name = found.examples.file, how(found.model)["column"] or "label"
    if file is None:
        return _columns(found, proba, texts=False)
    if given == "json":
        return with_labels(file, name, found.labels)
    if found.counts is not None:
        file = repeated(file, found.counts)
    return with_columns(file, dict(_table(found, name, proba)), comments=_comments(found, proba))


def _table(found: Answers, name: str, proba: bool) -> Iterator[tuple[str, Any]]:
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


def _comments(found: Answers, proba: bool) -> list[list[str]] | None:
    """Lines before each output."""
    if found.counts is not None:
        facts = zip(found.ranks, found.scores, found.probabilities, strict=True)
        return [[f"rank = {k} score = {s:.6g} probability = {p:.6g}"] for k, s, p in facts]
    return [[f"probability = {p:.6g}"] for p in found.probabilities] if proba else None


def _columns(found: Answers, proba: bool, texts: bool) -> Iterator[bytes]:
    """A token a line: its label and what is said of it between tabs, behind its text if wanted."""
    table = [column for _, column in _table(found, "label", proba)]
    table[0] = table[0].texts()
    comments, words = _comments(found, proba), found.words()
    for i, (start, end) in enumerate(pairwise(found.starts.tolist())):
        columns = [column[start:end] for column in table]
        rows = zip(*([next(words), *columns] if texts else columns), strict=True)
        head = [f"# {line}" for line in comments[i]] if comments else []
        yield ("\n".join([*head, *map("\t".join, rows)]) + "\n\n").encode()


def _lines(found: Answers, coloured: bool) -> Iterator[bytes]:
    """A sentence a line, with brackets around its spans, or in colours."""
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


def _json(record: Mapping[str, Any]) -> bytes:
    return (json.dumps(record, ensure_ascii=False) + "\n").encode()


def reasons(
    args: argparse.Namespace, model: SequenceModel, console: Console, report: ReadReport
) -> Iterator[bytes]:
    """Yields why each token got its label."""
    examples = read_for(model, args.input, args, report)
    decoder, data = TagDecoder(model, not args.no_constraints), model.encode(examples)
    words = examples.words
    for i, t in wanted_tokens(data.rows.starts, data.source, args.explain_token):
        k = int(data.rows.starts[i]) + t
        word = None if words is None else words[k]
        place = {"sentence": i + 1, "token": t + 1, "line": examples.place(k)[1], "word": word}
        head = f"sentence {i + 1}, token {t + 1}" + ("" if word is None else f": {word}")
        reason: Explanation | str
        try:
            reason = decoder.explain(data, i, t)
        except HopefearError as error:
            if args.explain_token:
                raise
            reason = str(error)
        yield told(head, place, reason, args)
