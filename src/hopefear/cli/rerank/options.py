"""Options of the task ``rerank``."""

from __future__ import annotations

import argparse

from hopefear.cli.options import FORMATS, at_least, on_error, parameter

METRICS = ("bleu", "chrf", "ter", "wer", "edit", "f1", "parseval", "cost")


def reading(group: argparse._ArgumentGroup) -> None:
    """How lists are read, and what their candidates cost."""
    group.add_argument(
        "--format",
        choices=FORMATS["rerank"],
        default="auto",
        help='json ({"id", "candidates": [{"text", "score", "cost", "features"}]} a line), ptb '
        "(the same with trees), bllip (what that parser prints) or moses (ID ||| words ||| Name= "
        "numbers … ||| score); auto looks at the first lines; taken for held-out lists where it "
        "fits (default: auto)",
    )
    group.add_argument(
        "--metric",
        choices=METRICS,
        metavar="NAME",
        help=f"what makes costs of texts and their references, and scores choices: "
        f"{', '.join(METRICS)} (default: parseval, F1 of brackets, for trees with gold trees; with "
        "--refs bleu of words as they are; else cost, those in the file)",
    )
    group.add_argument(
        "--metric-option",
        type=parameter,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a parameter of the metric, such as smoothing=exp or lowercase=true; may be repeated",
    )
    group.add_argument(
        "--dedup",
        choices=("first", "best", "none"),
        default="first",
        help="of candidates with equal texts keep the first, the one of highest score, or all "
        "(default: first)",
    )
    group.add_argument(
        "--scratch",
        metavar="DIR",
        help="keep the features of the lists in files in this folder, for lists that memory would "
        "not hold; the files are removed in the end",
    )
    on_error(group)


def gold(group: argparse._ArgumentGroup, *others: str) -> None:
    """``--gold`` and ``--refs`` for ``--train``, and such as ``--dev-gold`` for other files."""
    for option, of in (("--gold", "--train"), *((f"{other}-gold", other) for other in others)):
        group.add_argument(
            option,
            metavar="FILE",
            help=f"gold trees for the lists of {of}, one a line, where they are in the format "
            "bllip",
        )
    for option, of in (("--refs", "--train"), *((f"{other}-refs", other) for other in others)):
        group.add_argument(
            option,
            nargs="+",
            metavar="FILE",
            help=f"references for the lists of {of}, one sentence a line, where they are in the "
            "format moses; several files are several references of each",
        )


def check_golds(args: argparse.Namespace, *files: str) -> None:
    """Wrong usage: gold trees or references for lists that are not given."""
    for name in files:
        for of in ("gold", "refs"):
            if getattr(args, name) is None and getattr(args, f"{name}_{of}") is not None:
                args.usage_error(
                    f"--{name}-{of} belongs to the lists of --{name}: give --{name} FILE"
                )


def candidates(group: argparse._ArgumentGroup) -> None:
    """Which candidates are right."""
    group.add_argument(
        "--oracle",
        choices=("first", "score"),
        default="first",
        help="which of the cheapest candidates to learn: the first, or that of the highest score "
        "(default: first)",
    )
    group.add_argument(
        "--tied",
        action="store_true",
        help="all of the cheapest candidates are right, not one of them alone",
    )
    group.add_argument(
        "--jobs",
        type=at_least(1),
        metavar="N",
        help="threads of batch learners; the model does not depend on it (default: one a core)",
    )


def features(parser: argparse.ArgumentParser) -> None:
    """What becomes a feature."""
    group = parser.add_argument_group("features")
    group.add_argument(
        "--features",
        metavar="SET",
        help="a comma list: named (those in the file), score, ptb, rich (all that is known "
        "of trees) or families such as Rule,Heads, and consensus (default: rich,consensus for "
        "trees, else named,score)",
    )
    group.add_argument(
        "--min-count",
        type=at_least(1),
        metavar="N",
        help="keep features that tell candidates apart in at least N lists (default: 5 for trees, "
        "else 1)",
    )
    group.add_argument(
        "--baseline",
        choices=("feature", "offset", "none"),
        default="feature",
        help="the generator's score: a feature, a fixed part of every score, or ignored "
        "(default: feature)",
    )
