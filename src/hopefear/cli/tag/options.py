"""Options of the task ``tag``."""

from __future__ import annotations

import argparse

from hopefear.cli.classify.options import class_weight
from hopefear.cli.options import FORMATS, at_least, columns, jobs, on_error


def reading(group: argparse._ArgumentGroup) -> None:
    """How tokens and labels are read."""
    group.add_argument(
        "--format",
        choices=FORMATS["tag"],
        default="auto",
        help="columns (a token a line, a blank line between sentences), conllu, or crfsuite "
        "(label<TAB>attribute…); auto looks at the file's name and first token (default: auto)",
    )
    columns(group)
    group.add_argument(
        "--column",
        metavar="NAME",
        help="the column of the labels, by name or number from 0 (default: the last one; of "
        "CoNLL-U, upos)",
    )
    group.add_argument(
        "--scheme",
        default="auto",
        metavar="NAME",
        help="tag scheme of the labels: bio, iob1, iobes, bilou, bmes, none, or auto (default: "
        "auto)",
    )
    group.add_argument(
        "--convert",
        metavar="NAME",
        help="learn the same spans in another scheme, such as iobes",
    )
    on_error(group)


def class_weights(group: argparse._ArgumentGroup) -> None:
    """``--class-weight``."""
    group.add_argument(
        "--class-weight",
        type=class_weight,
        metavar="balanced|LABEL=W,…",
        help="what it costs to miss each label, 1 unless named; for mira, nbest-mira, ssvm, arow",
    )


def features(parser: argparse.ArgumentParser) -> None:
    """What becomes a feature."""
    group = parser.add_argument_group("features")
    group.add_argument(
        "--features",
        metavar="SET|FILE",
        help="pos, chunking, ner, bioner, crfsuite-chunking, or a template file, TOML or CRF++ "
        "(default: chunking for chunks of words with parts of speech, ner for other spans, pos "
        "for other labels)",
    )
    group.add_argument(
        "--min-count",
        type=at_least(1),
        default=1,
        metavar="N",
        help="keep features seen at least N times (default: 1)",
    )
    group.add_argument(
        "--hash-bits",
        type=at_least(1),
        metavar="N",
        help="hash features to 2^N columns: bounded memory; the share of collisions is told",
    )
    group.add_argument(
        "--no-names",
        action="store_true",
        help="leave the names of features out of the model: smaller, but nothing to inspect",
    )


def structure(parser: argparse.ArgumentParser) -> None:
    """How labels depend on each other, and how they are searched."""
    group = parser.add_argument_group("labels")
    group.add_argument(
        "--order",
        type=int,
        choices=(1, 2),
        default=1,
        help="how many labels before it a label depends on (default: 1)",
    )
    group.add_argument(
        "--search",
        choices=("astar", "list", "beam"),
        default="astar",
        help="how the n best are found: astar and list exactly, beam not (default: astar)",
    )
    group.add_argument(
        "--beam",
        type=at_least(1),
        default=50,
        metavar="N",
        help="beginnings that --search beam keeps; more is slower and finds more (default: 50)",
    )
    group.add_argument(
        "--constraints",
        choices=("predict", "always", "never"),
        default="predict",
        help="when labels must be legal in their scheme: when tagging, in training too, or never "
        "(default: predict)",
    )
    jobs(group)
