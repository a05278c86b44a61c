"""Options of the task ``classify``, and how their values are read."""

from __future__ import annotations

import argparse

from hopefear.cli.options import FORMATS, at_least, number, on_error


def reading(group: argparse._ArgumentGroup) -> None:
    """How lines are read."""
    group.add_argument(
        "--format",
        choices=FORMATS["classify"],
        default="auto",
        help="svmlight (label id:value …) or tsv (label<TAB>text); auto looks at "
        "the file's name and first line (default: auto)",
    )
    on_error(group)


def class_weights(group: argparse._ArgumentGroup) -> None:
    """``--class-weight``."""
    group.add_argument(
        "--class-weight",
        type=class_weight,
        metavar="balanced|LABEL=W,…",
        help="weight of the examples of each class",
    )


def features(parser: argparse.ArgumentParser) -> None:
    """What becomes a feature, and what is done to its values."""
    group = parser.add_argument_group("features")
    group.add_argument(
        "--ngrams",
        type=at_least(1),
        default=1,
        metavar="N",
        help="tsv: longest word n-gram, 1 to 3 (default: 1)",
    )
    group.add_argument(
        "--min-count",
        type=at_least(1),
        default=1,
        metavar="N",
        help="tsv: keep n-grams seen in at least N lines (default: 1)",
    )
    group.add_argument(
        "--hash-bits",
        type=at_least(1),
        metavar="N",
        help="tsv: hash n-grams to 2^N columns: bounded memory, no names",
    )
    group.add_argument(
        "--values",
        choices=("counts", "presence", "log"),
        default="counts",
        help="values as they are, 1 for each present, or log(1 + value) (default: counts)",
    )
    group.add_argument(
        "--norm",
        choices=("l2", "none"),
        default="l2",
        help="l2 divides every row by its length, so that one set of rates suits "
        "all data; note that the Python interface has none (default: l2)",
    )
    group.add_argument(
        "--intercept",
        type=intercept,
        default="auto",
        metavar="VALUE",
        help="value of a constant feature: auto (that of a typical feature), a "
        "number, or 0 for none (default: auto)",
    )
    group.add_argument(
        "--names",
        metavar="FILE",
        help="svmlight: names of the features, line i for id i; kept in the model",
    )


def intercept(text: str) -> float | str:
    """``auto`` or a number."""
    if text == "auto":
        return text
    value = number(text)
    if value < 0.0:
        raise argparse.ArgumentTypeError(f"must be auto or not negative, not {text!r}")
    return value


def class_weight(text: str) -> str | dict[str, float]:
    """``balanced``, or a weight for each label.

    >>> class_weight("spam=2,ham=0.5")
    {'spam': 2.0, 'ham': 0.5}
    """
    if text == "balanced":
        return text
    weights: dict[str, float] = {}
    for part in text.split(","):
        label, equals, value = part.rpartition("=")
        if not (label and equals) or number(value) < 0.0:
            raise argparse.ArgumentTypeError(
                f"expected balanced or LABEL=WEIGHT,… with weights from 0 on, found {text!r}"
            )
        weights[label] = number(value)
    return weights
