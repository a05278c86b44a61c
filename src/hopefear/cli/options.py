"""Options that several verbs share, and how their values are read."""

from __future__ import annotations

import argparse

FORMATS = ("auto", "svmlight", "tsv")


def reading(group: argparse._ArgumentGroup) -> None:
    """How lines are read."""
    group.add_argument(
        "--format",
        choices=FORMATS,
        default="auto",
        help="svmlight (label id:value …) or tsv (label<TAB>text); auto looks at "
        "the file's name and first line, or asks the model (default: auto)",
    )
    group.add_argument(
        "--on-error",
        choices=("raise", "skip"),
        default="raise",
        help="stop at the first bad line, or leave bad lines out, count and list "
        "them (default: raise)",
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


def learning(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Passes and weights of classes."""
    group = parser.add_argument_group("learning")
    group.add_argument(
        "--epochs",
        type=at_least(1),
        default=5,
        metavar="N",
        help="passes over the data, at most (default: 5)",
    )
    group.add_argument(
        "--seed",
        type=at_least(0),
        default=1,
        metavar="N",
        help="fixes every random choice: same seed, same model (default: 1)",
    )
    group.add_argument(
        "--no-shuffle", action="store_true", help="keep the order of the file in every pass"
    )
    group.add_argument(
        "--class-weight",
        type=class_weight,
        metavar="balanced|LABEL=W,…",
        help="weight of the examples of each class",
    )
    return group


def json_option(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """``--json``."""
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object on standard output"
    )


def at_least(least: int):
    """An argparse type: whole numbers from ``least`` on."""

    def whole(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected a whole number, found {text!r}") from None
        if value < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, not {value}")
        return value

    return whole


def parameter(text: str) -> tuple[str, str]:
    """``KEY=VALUE`` of a learner.

    >>> parameter("l1=1e-5")
    ('l1', '1e-5')
    """
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, such as l1=1e-5, found {text!r}")
    return key.strip(), value.strip()


def intercept(text: str) -> float | str:
    """``auto`` or a number."""
    if text == "auto":
        return text
    value = number(text)
    if value < 0.0:
        raise argparse.ArgumentTypeError(f"must be auto or not negative, not {text!r}")
    return value


def number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if value - value != 0.0:
        raise argparse.ArgumentTypeError(f"expected a number, found {text!r}")
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
