"""Tokens from a cache: text of any size, read once, piece by piece."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from hopefear.cli.console import Console
from hopefear.cli.options import first_learner, threads
from hopefear.cli.tag.corpus import (
    Schemes,
    Source,
    Tokens,
    features_named,
    fewer_columns,
    labelled_columns,
    mended,
    schemes_of,
)
from hopefear.cli.tag.inputs import Text, text_of
from hopefear.data.cache import sound_header, source_of, use_cache
from hopefear.data.cached_sentences import SentenceCache
from hopefear.data.files import ReadReport
from hopefear.data.schemes import LETTERS, split_label
from hopefear.data.sequences import Column
from hopefear.data.token_files import token_format
from hopefear.data.token_stream import read_parts
from hopefear.errors import HopefearError, ModelError
from hopefear.features.templates.streamed import StreamedTemplates
from hopefear.storage import field_of
from hopefear.tasks.tag.task import check, check_needs

# Bytes of text to encode at a time, whose attributes take some 40 times as much; and bytes by which
# the scheme of the labels and the templates are chosen.
PIECE_BYTES, LOOK_BYTES = 1 << 20, 1 << 23


def read(args: argparse.Namespace, folder: str, console: Console, report: ReadReport) -> Tokens:
    """The tokens of ``--train`` as a cache in a folder has them."""
    form = token_format(args.train, args.format, args.columns)
    if form == "crfsuite":
        raise HopefearError(
            f"--cache {folder}: {args.train} is a CRFsuite file, and caches are made of columns "
            "and CoNLL-U; leave it out"
        )

    def build(target: Any) -> None:
        _build(args, form, target, console, report, options)

    options = _options(args)
    data = use_cache(folder, args.train, "sentences", options, build, console.say)
    check(data)
    with sound_header(data.cache.path):
        facts = field_of(data.cache.header, "facts", dict)
        schemes = Schemes(*facts["schemes"])
        if not {*schemes} <= {*LETTERS, None}:
            raise ModelError(f"its schemes are {facts['schemes']!r:.60}")
        return Tokens(
            data=data,
            skipped=field_of(facts, "skipped", int),
            reading=field_of(facts, "reading", dict),
            schemes=schemes,
            features=field_of(facts, "features", str),
            jobs=threads(args.jobs),
            mended=field_of(facts, "mended", int),
            fewer=fewer_columns(args, facts["reading"], data.features),
        )


def _options(args: argparse.Namespace) -> dict[str, Any]:
    names = [
        *("format", "columns", "column", "scheme", "convert", "scheme_errors", "on_error"),
        *("encoding", "features", "min_count", "hash_bits", "no_names"),
    ]
    options = {name: getattr(args, name) for name in names}
    if args.features:  # a file may say something else than it did
        from hopefear.features.templates import load_templates

        templates = load_templates(args.features, args.allow_outside)
        rows = [[t.text, t.on] for t in templates.templates]
        lexicons = {name: list(words) for name, words in templates.lexicons.items()}
        text = json.dumps([rows, lexicons]).encode()
        options["features"] = [args.features, hashlib.sha256(text).hexdigest()]
    return options


def texts(
    args: argparse.Namespace, form: str, report: ReadReport, piece_bytes: int | None
) -> Iterator[Text]:
    """The file piece by piece, with the lines of tokens as they are in the whole of it."""
    before = 0
    for part in read_parts(
        args.train,
        format=form,
        columns=args.columns,
        on_error=args.on_error,
        report=report,
        piece_bytes=piece_bytes,
    ):
        if part.file is not None:
            text = text_of(part.file)
            yield replace(text, lines=text.lines + before)
        before += part.text.count(b"\n")


def _build(
    args: argparse.Namespace,
    form: str,
    target: Any,
    console: Console,
    report: ReadReport,
    options: dict[str, Any],
) -> None:
    schemes, changes, reading, features = Schemes(None, None), 0, None, ""
    numbering: Any = None
    original: dict[str, None] = {}
    cache: SentenceCache | None = None
    origin = source_of(args.train)  # what comes to the file while it is read makes it another
    try:
        for text in texts(args, form, report, PIECE_BYTES):
            name, gold = text.column(args.column)
            if cache is None:
                look, labels = _beginning(args, form, text, gold)
                schemes = schemes_of(look, labels, args.scheme, args.convert, args.scheme_errors)
                features = features_named(args, look, labels)
                del look, labels
                source = Source(args, text, name, gold, features)
                inputs = source.inputs(*first_learner(args))
                if inputs is not source.templates:
                    raise HopefearError(
                        f"--cache: {args.learner} reads words and holds its data in memory; leave "
                        "out --cache, or take another learner"
                    )
                numbering = StreamedTemplates(
                    inputs,
                    min_count=args.min_count,
                    hash_bits=args.hash_bits,
                    keep_names=not args.no_names,
                )
                cache = SentenceCache(target, numbering)
                reading = {
                    "format": text.form,
                    "columns": list(text.names) if text.form == "columns" else None,
                    "column": name,
                    "scheme": schemes.file,
                    "trained_scheme": schemes.model,
                }
            text, gold, count = mended(text, gold, schemes.file, args.scheme_errors, console)
            changes += count
            if len(text.starts) < 2:
                continue
            original |= dict.fromkeys(gold.strings)
            learned = schemes.read(text, gold)
            sentences = labelled_columns(text, name, learned)
            cache.add(sentences, learned)
            check_needs(numbering, sentences, learned, name)
        if cache is None or not cache.n_sentences:
            raise HopefearError(f"{args.train}: there are no sentences to learn from")
        facts = {
            "reading": reading,
            "schemes": list(schemes),
            "features": features,
            "mended": changes,
            "skipped": report.skipped,
        }
        header = {"source": origin, "options": options, "facts": facts}
        cache.write(header, lambda names: _ordered(names, list(original), schemes))
    finally:
        if cache is not None:
            cache.__exit__()


def _beginning(
    args: argparse.Namespace, form: str, text: Text, gold: Column
) -> tuple[Text, Column]:
    """So much of a file that its labels tell the scheme; standard input is not read twice."""
    if args.train != "-":
        text = next(texts(args, form, ReadReport(), LOOK_BYTES))
        _, gold = text.column(args.column)
    return text, gold


def _ordered(names: Sequence[str], original: Sequence[str], schemes: Schemes) -> Sequence[str]:
    """Labels as they are numbered in memory: converted ones by their roles, others as they come."""
    if schemes.model == schemes.file or schemes.file is None or schemes.model is None:
        return names
    parts = (split_label(label, schemes.file) for label in original)
    suffixes = dict.fromkeys(part[1] for part in parts if part is not None)
    place = {suffix: i for i, suffix in enumerate(suffixes)}
    letters = LETTERS[schemes.model]

    def key(label: str) -> tuple[int, int]:
        return letters.index(label[0]), place.get(label[1:], 0)

    return sorted(names, key=key)
