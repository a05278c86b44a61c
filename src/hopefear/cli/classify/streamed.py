"""A stream of labelled lines: svmlight, or texts with hashed n-grams."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from hopefear.cli.classify.corpus import file_of, norm_of, say_norm, text_options
from hopefear.cli.console import Console
from hopefear.cli.options import threads
from hopefear.cli.streaming import BITS, Incoming, head_of, known
from hopefear.data.examples import examples
from hopefear.data.files import ReadReport
from hopefear.data.labels import check_classes
from hopefear.data.sparse import MEASURED
from hopefear.errors import HopefearError
from hopefear.features import HashedFeatures, IdentityFeatures
from hopefear.features.ngrams import PLAIN, Grams, settled
from hopefear.tasks.classify.task import Classification

# To read at a time, at most. Of texts a bad line takes those before it in its block along; of
# svmlight it does not, and threads that parse and learn meet less often where blocks are large.
_BLOCK_BYTES = {"text": 1 << 16, "svmlight": 1 << 21}


def needs_all(args: argparse.Namespace) -> str | None:
    """The first option given for which the data must be read as a whole."""
    whole = {
        f"--values {args.values}": args.values in MEASURED,
        "--class-weight balanced": args.class_weight == "balanced",
        "--weights": args.weights is not None,
        "--names": args.names is not None,
        f"--min-count {args.min_count}": args.min_count > 1,
        f"--max-share {args.max_share}": args.max_share < 1.0,
        "--format vw": args.format == "vw",
    }
    return next((option for option, given in whole.items() if given), None)


def stream(args: argparse.Namespace, console: Console, report: ReadReport) -> Incoming:
    """The lines of ``--train`` as they come."""
    if option := needs_all(args):
        raise HopefearError(
            f"{option} is measured on, or belongs to, data that is read as a whole; leave it out "
            "with --stream"
        )
    file = file_of(args.train, args, ReadReport())
    if file.kind == "vw":
        raise HopefearError(
            f"--stream: {args.train} has the names of Vowpal Wabbit, whose table would grow "
            "without end; give svmlight or texts"
        )
    vars(args).update(settled(vars(args), PLAIN))
    bits = args.hash_bits or BITS
    features: Any = IdentityFeatures(1 << bits)
    if file.kind == "text":
        chosen = text_options(args)
        features = HashedFeatures(
            Grams(*(chosen[name] for name in ("ngrams", "chars", "lowercase", "marks"))), bits
        )
    columns = {"text_column": args.text_column, "label_column": args.label_column}
    how = {"on_error": args.on_error}
    with head_of(args) as head:
        hashed: dict[str, Any] = {"hash_bits": 16} if file.kind == "text" else {}
        seen = examples(head, file.format, **columns, **how).read(**how, **hashed)
        classes = args.classes
        if classes is None:
            classes = seen.classes
            check_classes(args.train, classes, len(seen), args.many_classes)
        known(classes, args.train)
        like = {"features": features, "classes": tuple(classes)}
        first = examples(head, file.format, **columns, **how, **like).read(**how, **like)
    first.source = str(args.train)
    say_norm(args, seen, console)
    if file.kind == "svmlight":
        console.say(
            f"{args.train}: {1 << bits:,} columns; ids from there on are left out (--hash-bits N "
            "gives 2^N)"
        )

    def blocks() -> Iterator[Any]:
        again = replace_format(args, file.format)
        size, n_jobs = _BLOCK_BYTES[file.kind], threads(args.jobs)
        read = {"report": report, "block_bytes": size, "n_jobs": n_jobs, **how, **like}
        yield from file_of(args.train, again, report, **like).blocks(**read)

    def held_out(path: str) -> Any:
        file = file_of(path, args, ReadReport(), **like)
        return file.read(**how, **like)

    options = {"intercept": args.intercept, "values": args.values, "norm": norm_of(args, seen)}
    task = Classification(**options, class_weight=args.class_weight)
    return Incoming(task, first, blocks, held_out)


def replace_format(args: argparse.Namespace, form: str) -> argparse.Namespace:
    """The same with the format that was found."""
    return argparse.Namespace(**{**vars(args), "format": form})
