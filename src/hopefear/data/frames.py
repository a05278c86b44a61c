"""Tables of other libraries: pandas, polars, Arrow and Hugging Face ``datasets``, by their columns.

None of them is imported: a table is what has names of columns and gives a column for a name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hopefear.errors import HopefearError


def from_table(X: Any, y: Any, inputs: str, outputs: str) -> tuple[Any, Any]:
    """``(X, y)`` as lists where X is a table with a column of inputs, else as they are.

    Parameters
    ----------
    X : table or anything
        Tables have ``columns`` or ``column_names``.
    y : any
        The name of the column of outputs, or the outputs; None takes the column ``outputs``, where
        there is one.
    inputs, outputs : str
        Names of the columns.

    Notes
    -----
    Where a Hugging Face dataset names its classes, labels are these names, not their numbers.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"text": ["good fun", "no fun"], "label": ["pos", "neg"]})
    >>> from_table(frame, None, "text", "label")
    (['good fun', 'no fun'], ['pos', 'neg'])
    >>> from_table([1, 2], [3, 4], "text", "label")
    ([1, 2], [3, 4])
    """
    names = _names(X)
    if names is None or inputs not in names:
        if isinstance(y, str) and names is not None:
            raise HopefearError(f"the table has no column {inputs!r}; it has {', '.join(names)}")
        return X, y
    cells, column = _cells(X[inputs]), y if isinstance(y, str) else outputs
    if cells and not isinstance(y, str) and not any(isinstance(c, (str, list)) for c in cells):
        return X, y  # a matrix, one of whose columns has this name
    if isinstance(y, str) and y not in names:
        raise HopefearError(f"the table has no column {y!r}; it has {', '.join(names)}")
    if column in names and (y is None or isinstance(y, str)):
        y = _labels(X, column)
    return cells, y


def _names(X: Any) -> list[str] | None:
    """Names of the columns; None for what is no table."""
    names = getattr(X, "column_names", None)
    if isinstance(names, Mapping):  # a DatasetDict
        raise HopefearError(
            f"a dataset of several splits: give one of them, such as dataset[{next(iter(names))!r}]"
        )
    names = getattr(X, "columns", None) if names is None else names
    if names is None or isinstance(X, type) or not hasattr(X, "__getitem__") or callable(names):
        return None
    return [name for name in names if isinstance(name, str)]


def _cells(column: Any) -> list[Any]:
    """A column as a list, its cells as strings, numbers or lists."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            column = getattr(column, method)()
            break
    return [list(cell) if hasattr(cell, "__len__") and not isinstance(cell, str) else cell
            for cell in column]  # fmt: skip


def _labels(X: Any, name: str) -> list[Any]:
    cells, features = _cells(X[name]), getattr(X, "features", None)
    feature = features.get(name) if isinstance(features, Mapping) else None
    inner = getattr(feature, "feature", None)  # of lists
    names = getattr(feature, "names", None) or getattr(inner, "names", None)
    for row, cell in enumerate(cells):
        if any(map(_is_missing, cell if isinstance(cell, list) else [cell])):
            raise HopefearError(
                f"row {row} of the table has no label in its column {name!r}; leave it out"
            )
    if not names:
        return cells
    if any(label < 0 for cell in cells for label in (cell if inner is not None else [cell])):
        raise HopefearError(f"the column {name!r} has examples without a label; leave them out")
    return [[names[k] for k in cell] if inner is not None else names[cell] for cell in cells]


def _is_missing(value: Any) -> bool:
    """Whether a cell is empty, in the words of any library."""
    return (
        value is None
        or (isinstance(value, float) and math.isnan(value))
        or type(value).__name__ in ("NAType", "NaTType")
    )
