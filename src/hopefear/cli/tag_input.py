"""Tags on the command line: files as they are read, to learn from and for models.

Heavy imports stand inside functions, since help reads this file, too.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hopefear.errors import HopefearError

if TYPE_CHECKING:
    from hopefear.data.token_examples import TokenExamples
    from hopefear.tasks.tag.model import SequenceModel
    from hopefear.tasks.tag.prepare import PreparedTags

# Bytes of text to encode at a time, whose attributes take some 40 times as much; and bytes by which
# the scheme of the labels and the templates of a cache are chosen.
PIECE_BYTES, LOOK_BYTES = 1 << 20, 1 << 23


def whole_sentences(path: str, mark: bytes) -> None:
    """Cut a file behind the last mark of a sentence's end, where it has one."""
    with open(path, "rb+") as file:
        lines = file.read()
        end = lines.rfind(mark)
        if end > 0:
            file.truncate(end + len(mark))


def parts(
    args: argparse.Namespace, form: str, report: Any, piece_bytes: int | None
) -> Iterator[TokenExamples]:
    """Yields the labelled tokens of ``--train`` piece by piece."""
    from hopefear.data.token_examples import token_parts

    how: dict[str, Any] = {"columns": args.columns, "on_error": args.on_error, "report": report}
    for part in token_parts(args.train, format=form, piece_bytes=piece_bytes, **how):
        yield part.labelled(args.column)


def cached_tags(
    args: argparse.Namespace, report: Any, parameters: Mapping[str, Any]
) -> PreparedTags:
    """The tokens of ``--train`` as a cache has them."""
    from hopefear.cli.console import Console
    from hopefear.data.files import ReadReport
    from hopefear.data.token_files import token_format
    from hopefear.tasks.tag.streamed import cached

    form = token_format(args.train, args.format, args.columns)
    if form == "crfsuite":
        raise HopefearError(
            f"--cache {args.cache}: {args.train} is a CRFsuite file, and caches are made of "
            "columns and CoNLL-U; leave it out"
        )

    def beginning(first: TokenExamples) -> TokenExamples:
        if args.train == "-":  # which is not read twice
            return first
        return next(parts(args, form, ReadReport(), LOOK_BYTES))

    names = ("format", "columns", "column", "on_error", "encoding")
    return cached(
        args.cache,
        args.train,
        parameters,
        lambda: parts(args, form, report, PIECE_BYTES),
        beginning,
        {name: getattr(args, name) for name in names},
        report,
        Console(args.quiet).say,
    )


def reading_of_model(model: SequenceModel) -> Mapping[str, Any]:
    """Returns how the training data of a model was written; models made elsewhere may not say."""
    plain = {"format": "auto", "columns": None, "column": None, "scheme": model.scheme}
    return {**plain, **model.about.get("reading", {})}


def read_for(
    model: SequenceModel, path: str, args: argparse.Namespace, report: Any
) -> TokenExamples:
    """Returns a file for a model: its columns bear the names they had in training.

    Columns behind the last that features need may be missing, as labels are in new text.
    """
    from hopefear.data.token_examples import read_tokens, text_parts

    if args.format == "text":
        return next(text_parts(path, model.tokenizer, model.text_columns(), whole=True))
    form, columns, optional = _as_trained(model, path, args)
    options: dict[str, Any] = {"on_error": args.on_error, "report": report}
    return read_tokens(path, form, columns=columns, optional=optional, **options)


def arriving(
    model: SequenceModel, args: argparse.Namespace, report: Any
) -> Iterator[TokenExamples | bytes]:
    """Yields ``--input`` bit by bit, as sentences come; bytes where there are none to be tagged."""
    from hopefear.data.token_examples import of_file, text_parts
    from hopefear.data.token_stream import read_parts

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
    from hopefear.data.sources import Source
    from hopefear.data.token_files import named_tokens
    from hopefear.data.token_objects import begins_with_object

    reading = reading_of_model(model)
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
    """Returns the position of a column, which may be called by its number."""
    if name in columns:
        return columns.index(name)
    return min(int(name), len(columns) - 1) if name.isdecimal() else 0
