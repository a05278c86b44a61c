"""Labels: from what a file or a user gives to names and codes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hopefear.errors import HopefearError

_FEW_CLASSES = 20  # at most, in as many rows
_MOST_FRACTIONS = 100  # classes that are no whole numbers


def class_name(label: Any) -> str:
    """Canonical text of a label: whole numbers without a fraction, other numbers as repr.

    Examples
    --------
    >>> class_name(1.0), class_name(-1), class_name(0.5), class_name("spam")
    ('1', '-1', '0.5', 'spam')
    """
    if isinstance(label, bool | np.bool_):
        return str(int(label))
    if isinstance(label, int | np.integer):
        return str(int(label))
    if isinstance(label, float | np.floating):
        value = float(label)
        return str(int(value)) if value.is_integer() and abs(value) < 2**63 else repr(value)
    name = str(label)
    if not name.isascii() and name.encode("utf-8", "replace").decode() != name:
        raise HopefearError(f"the label {name!a:.60} is no Unicode text; rename the class")
    return name


def distinct(values: np.ndarray) -> np.ndarray:
    """Sorted distinct values; a sort and a mask, far quicker than numpy.unique on integers."""
    ordered = np.sort(values)
    first = np.ones(len(ordered), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def sort_classes(names: Sequence[str]) -> tuple[str, ...]:
    """Class names by number where all are numbers, else as text."""
    numbers = [_number(name) for name in names]
    if all(math.isfinite(v) for v in numbers):
        return tuple(name for _, name in sorted(zip(numbers, names, strict=True)))
    return tuple(sorted(names))


def classes_of(y: np.ndarray) -> tuple[str, ...]:
    """Class names of the labels in an array."""
    return sort_classes(sorted({class_name(v) for v in _distinct_labels(y)}))


def class_codes(y: np.ndarray, classes: Sequence[str]) -> np.ndarray:
    """Position in classes of every label, -1 where it has none."""
    code_of = {name: code for code, name in enumerate(classes)}
    values = _distinct_labels(y)
    codes = np.array([code_of.get(class_name(v), -1) for v in values], np.int32)
    if not len(values):
        return np.zeros(y.shape, np.int32)
    if y.dtype == object:
        table = {class_name(v): c for v, c in zip(values, codes, strict=True)}
        return np.array([table[class_name(v)] for v in y], np.int32)
    return codes[np.searchsorted(values, y)]


def number_codes(labels: np.ndarray, classes: Sequence[str]) -> np.ndarray:
    """Codes of numeric labels as read from a file; nan (no label) and others become -1."""
    numbers = np.array([_number(name) for name in classes])
    order = np.argsort(numbers)
    table = numbers[order]
    if not len(table):
        return np.full(len(labels), -1, np.int32)
    indices = np.minimum(np.searchsorted(table, labels), len(table) - 1)
    return np.where(table[indices] == labels, order[indices], -1).astype(np.int32)


def limits_of(names: Sequence[str], allowed: Sequence[Any], kind: str, width: int) -> np.ndarray:
    """Makes rows of limits from ``allowed``: 0 for permitted labels, minus infinity for others.

    Parameters
    ----------
    names : sequence of str
        All of them.
    allowed : sequence
        A name, several, or None for all.
    kind : str
        Of what there is one each, for messages.
    width : int
        Numbers in a row.

    Examples
    --------
    >>> limits_of(["A", "B"], [None, "B"], "labels of token", 2).tolist()
    [0.0, 0.0, -inf, 0.0]
    """
    number = {name: c for c, name in enumerate(names)}
    table = np.zeros((len(allowed), width), np.float32)
    for k, labels in enumerate(allowed):
        if labels is None:
            continue
        labels = [labels] if isinstance(labels, str) else list(labels)
        unknown = [name for name in labels if name not in number]
        if unknown or not labels:
            raise HopefearError(
                f"allowed {kind} {k + 1}: {unknown or 'none'}; the model has {', '.join(names)}"
            )
        table[k] = -np.inf
        table[k, [number[name] for name in labels]] = 0.0
    return table.ravel()


def check_classes(
    source: str, classes: Sequence[str], rows: int, many_classes: bool = False
) -> None:
    """HopefearError where the labels of a file or of ``y`` cannot be meant as classes.

    Parameters
    ----------
    source : str
        Where they come from, for the message.
    classes : sequence of str
        The different labels.
    rows : int
        Examples that have them.
    many_classes : bool
        Whether a class for every second row, or fractions as classes, are meant.

    Examples
    --------
    >>> check_classes("stars.tsv", ["1", "2", "3"], 90)
    >>> check_classes("a.tsv", ["x", "y", "x,y"], 9)
    Traceback (most recent call last):
    hopefear.errors.HopefearError: a.tsv: the label 'x,y' is a list of others, and a classifier ...
    """
    check_blanks(source, classes)
    available = set(classes)
    for name in classes:
        parts = [part.strip() for part in name.split(",")]
        if len(parts) > 1 and available.issuperset(parts):
            raise HopefearError(
                f"{source}: the label {name!r:.60} is a list of others, and a classifier gives one "
                "label; leave one, or write a class of its own without ','"
            )
    fractions = sum(_number(name) % 1 > 0 for name in classes)
    if not many_classes and (
        (len(classes) > _FEW_CLASSES and 2 * len(classes) > rows)
        or (fractions > 3 and 4 * fractions > rows)
        or fractions > _MOST_FRACTIONS
    ):
        raise HopefearError(
            f"{source}: {len(classes):,} different labels ({', '.join(classes[:3]):.60}, …) in "
            f"{rows:,} rows look like targets of regression, or like texts in the place of labels, "
            "and a classifier needs classes that come again; write ranges of the target, or the "
            "label before the text (csv, json: --label-column). If they are meant, say "
            "--many-classes (in Python: many_classes=True)"
        )


def check_blanks(source: str, labels: Sequence[str]) -> None:
    """HopefearError where two labels differ by white space only."""
    names_by_form: dict[str, str] = {}
    for name in labels:
        earlier = names_by_form.setdefault(" ".join(name.split()), name)
        if earlier != name:
            raise HopefearError(
                f"{source}: the labels {earlier!r:.60} and {name!r:.60} differ by white space "
                "only; write them alike"
            )


def _distinct_labels(y: np.ndarray) -> Any:
    if y.ndim != 1:
        raise HopefearError(f"y must have one label a row, but its shape is {y.shape}")
    if y.dtype == object:
        return list({class_name(v): v for v in y}.values())
    values = distinct(y)
    if np.issubdtype(y.dtype, np.floating) and not np.isfinite(values).all():
        raise HopefearError("y holds NaN or infinity; leave rows without a label out")
    return values


def _number(name: str) -> float:
    try:
        return float(name)
    except ValueError:
        return math.nan
