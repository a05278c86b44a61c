"""Files of examples, as the verbs want them: whole, cached on disk, or block by block."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hopefear.cli.console import Console
from hopefear.cli.reading import head, tell_skipped
from hopefear.data.cache import build_cache, cache_options, open_cache
from hopefear.data.files import ReadReport
from hopefear.data.sidecars import read_names, read_weights
from hopefear.data.sparse import SparseDataset
from hopefear.data.svmlight import iter_svmlight, read_svmlight
from hopefear.data.text import iter_text, read_text
from hopefear.errors import HopefearError
from hopefear.features import IdentityFeatures
from hopefear.tasks.classify.model import Model

_PACKED = (".gz", ".xz", ".bz2", ".zst")
_SUFFIXES = {".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight", ".tsv": "text"}
_SVMLIGHT = re.compile(rb"\s*[-+]?[\d.][\d.eE+-]*(\s+(qid|\d+):\S+)*\s*(#.*)?")


def format_of(path: str, asked: str = "auto") -> str:
    """``svmlight`` or ``text``: as asked for, as the name says, or as the first line looks.

    >>> format_of("train.svm.gz"), format_of("train.txt", "tsv")
    ('svmlight', 'text')
    """
    if asked != "auto":
        return "text" if asked == "tsv" else asked
    name = Path(path.lower())
    suffix = name.with_suffix("").suffix if name.suffix in _PACKED else name.suffix
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    for line in head(path, "svmlight or --format tsv").split(b"\n"):
        if line.strip() and not line.startswith(b"#"):
            return "text" if b"\t" in line and not _SVMLIGHT.fullmatch(line) else "svmlight"
    return "svmlight"


def training_data(args: Any, console: Console) -> tuple[SparseDataset, bool, int]:
    """(data, whether values and norm have been applied, lines skipped) of ``--train``."""
    form, report = format_of(args.train, args.format), ReadReport()
    if form == "svmlight" and (args.ngrams != 1 or args.min_count != 1 or args.hash_bits):
        raise HopefearError(
            f"{args.train} is svmlight, whose features are given: --ngrams, --min-count and "
            "--hash-bits belong to tsv; leave them out, or say --format tsv"
        )
    cache = getattr(args, "cache", None)
    if cache is not None:
        data = _cached(args, form, report, console)
    else:
        data = _read(args.train, form, args, report)
    tell_skipped(report, console)
    if args.names:
        data = named(data, args.names)
    if getattr(args, "weights", None):
        data = with_weights(data, args.weights, report.skipped)
    return data, cache is not None, report.skipped


def held_out(path: str, like: SparseDataset, args: Any, console: Console) -> SparseDataset:
    """Labelled data with the columns and classes of another dataset."""
    report = ReadReport()
    data = _read(
        path,
        format_of(path, args.format),
        args,
        report,
        features=like.features,
        classes=like.classes,
    )
    tell_skipped(report, console)
    return data


def named(data: SparseDataset, path: str) -> SparseDataset:
    """The data with names for its columns."""
    if not isinstance(data.features, IdentityFeatures):
        raise HopefearError(
            f"--names {path}: names belong to svmlight ids below 2^26, and "
            f"{data.source} has other features; leave --names out"
        )
    known = SparseDataset(
        data.rows,
        data.n_features,
        data.classes,
        read_names(path, data.n_features),
        data.source,
        data.digest,
    )
    known.mapping = data.mapping
    return known


def with_weights(data: SparseDataset, path: str, skipped: int) -> SparseDataset:
    """The data with example weights from a file."""
    if skipped:
        raise HopefearError(
            f"--weights {path}: {skipped} bad lines were left out, so weights and examples no "
            "longer pair; mend the lines"
        )
    weights = read_weights(path, len(data))
    weighted = SparseDataset(
        data.rows._replace(weights=weights),
        data.n_features,
        data.classes,
        data.features,
        data.source,
    )
    weighted.mapping = data.mapping
    return weighted


def blocks(
    path: str, model: Model, args: Any, report: ReadReport, require_labels: bool
) -> Iterator[SparseDataset]:
    """A file of any size, some rows at a time, in the columns of the model."""
    textual = model.features.kind in ("ngrams", "hashed")
    form = (
        ("text" if textual else "svmlight")
        if args.format == "auto"
        else format_of(path, args.format)
    )
    yield from (iter_text if form == "text" else iter_svmlight)(
        path,
        features=model.features,
        classes=model.classes,
        require_labels=require_labels,
        on_error=args.on_error,
        report=report,
    )


def _read(path: str, form: str, args: Any, report: ReadReport, **given: Any) -> SparseDataset:
    common: dict[str, Any] = {"on_error": args.on_error, "report": report, **given}
    if form == "svmlight":
        return read_svmlight(path, **common)
    return read_text(
        path, ngrams=args.ngrams, min_count=args.min_count, hash_bits=args.hash_bits, **common
    )


def _cached(args: Any, form: str, report: ReadReport, console: Console) -> SparseDataset:
    options = {
        "format": form,
        "values": args.values,
        "norm": args.norm,
        "ngrams": args.ngrams,
        "min_count": args.min_count,
        "hash_bits": args.hash_bits,
    }
    if os.path.exists(args.cache):
        if _options(args.cache) == options:
            try:
                data = open_cache(args.cache, verify=True)
                if args.train != "-" and data.source == os.path.abspath(args.train):
                    console.say(f"{args.cache}: the cache is fresh and used again")
                    return data
            except HopefearError as stale:
                console.say(str(stale))
        console.say(f"{args.cache}: building the cache again")
    else:
        console.say(f"{args.cache}: building the cache")
    build_cache(args.train, args.cache, on_error=args.on_error, report=report, **options)
    return open_cache(args.cache)


def _options(cache: str) -> dict[str, Any]:
    """How an existing cache was built; a file that is no cache is not overwritten."""
    try:
        return cache_options(cache)
    except HopefearError as error:
        if "not a hopefear cache" in str(error):
            raise HopefearError(
                f"{cache}: is there already and is no cache; give another name for --cache"
            ) from error
        return {}
