"""Labels of tokens, however they come, as codes into one list of names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear.errors import HopefearError


class Coded(NamedTuple):
    """Taggings of the same tokens, over the same names."""

    names: list[str]
    codes: tuple[NDArray[np.intp], ...]
    starts: NDArray[np.int64]


def coded(
    taggings: Sequence[Any], starts: ArrayLike | None = None, labels: Sequence[str] | None = None
) -> Coded:
    """Give every label of every tagging its place in one list of names.

    Parameters
    ----------
    taggings : sequence of taggings
        Each a list of strings, a list of such lists (one for each sentence), a `Column`, or an
        array of positions in ``labels``.
    starts : int array, optional
        Sentence i has the tokens ``starts[i] .. starts[i + 1] - 1``. Without it, lists of lists
        say where sentences end, and flat lists are one sentence.
    labels : sequence of str, optional
        Names of positions; also fixes the first names of the list.

    Examples
    --------
    >>> found = coded([["O", "B-X"], ["O", "O"]])
    >>> found.names, found.codes[1].tolist(), found.starts.tolist()
    (['O', 'B-X'], [0, 0], [0, 2])
    """
    place: dict[str, int] = {name: i for i, name in enumerate(labels or ())}
    if starts is None:
        starts = _nested_starts(taggings)
        taggings = [_flat(tagging) for tagging in taggings]
    codes = tuple(_codes(tagging, place, labels) for tagging in taggings)
    starts = np.asarray(starts, np.int64)
    n = int(starts[-1]) if starts.ndim == 1 and starts.size else -1
    if n < 0 or starts[0] != 0 or (np.diff(starts) < 0).any():
        raise HopefearError("starts must rise from 0 to the number of tokens")
    for found in codes:
        if len(found) != n:
            raise HopefearError(
                f"{len(found)} labels for {n} tokens; give one label for each token"
            )
    return Coded(list(place), codes, starts)


def _codes(tagging: Any, place: dict[str, int], labels: Sequence[str] | None) -> NDArray[np.intp]:
    if hasattr(tagging, "strings") and hasattr(tagging, "ids"):
        table = [place.setdefault(name, len(place)) for name in tagging.strings]
        return np.asarray(table, np.intp)[tagging.ids]
    if isinstance(tagging, np.ndarray) and tagging.dtype.kind in "iu":
        if labels is None:
            raise HopefearError("positions of labels need the names they stand for; give labels")
        outside = (tagging < 0) | (tagging >= len(labels))
        if outside.any():
            k = int(np.argmax(outside))
            raise HopefearError(
                f"token {k + 1} has label position {tagging[k]}, outside 0 to {len(labels) - 1}; "
                "give labels as strings where some are not among the names"
            )
        return tagging.astype(np.intp)
    texts = tagging.tolist() if isinstance(tagging, np.ndarray) else tagging
    for name in dict.fromkeys(texts):
        if not isinstance(name, str):
            raise HopefearError(
                f"a label is {name!r}; labels are strings, or an integer array with labels"
            )
        place.setdefault(name, len(place))
    return np.fromiter(map(place.__getitem__, texts), np.intp, len(texts))


def _is_nested(tagging: Any) -> bool:
    if not isinstance(tagging, list | tuple) or not tagging:
        return False
    return all(isinstance(sentence, list | tuple | np.ndarray) for sentence in tagging)


def _flat(tagging: Any) -> Any:
    if not _is_nested(tagging):
        return tagging
    return [label for sentence in tagging for label in sentence]


def _nested_starts(taggings: Sequence[Any]) -> NDArray[np.int64]:
    found = []
    for tagging in taggings:
        if _is_nested(tagging):
            found.append(np.cumsum([0, *map(len, tagging)]))
        else:
            found.append(np.array([0, len(getattr(tagging, "ids", tagging))]))
    for other in found[1:]:
        if not np.array_equal(found[0], other):
            raise HopefearError(
                "taggings differ in their sentences; give each token one label in every tagging"
            )
    return found[0]
