"""How weights change from round to round."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from hopefear.translation.layouts import places
from hopefear.translation.weights import Weights, changes


def completed(found: Weights, before: Weights) -> Weights:
    """Tuned weights with those that the decoder reads but its lists do not show, as they were.

    Where there are such, tuned weights get the size that they had, for a decoder sees proportions.

    Examples
    --------
    >>> before = Weights((("TM0", 2), ("UnknownWordPenalty0", 1)), [0.5, 0.5, 1.0])
    >>> completed(Weights((("TM0", 2),), [3.0, -1.0]), before).dense.tolist()
    [0.75, -0.25, 1.0]
    """
    tuned = {name for name, _ in found.layout}
    hidden = [(name, width) for name, width in before.layout if name not in tuned]
    if not hidden:
        return found
    old, new = (_size(each, tuned & dict(before.layout).keys()) for each in (before, found))
    if old > 0.0 and new > 0.0:
        found = found.scaled(old / new)
    where = places(before.layout)
    return replace(
        found,
        layout=(*found.layout, *hidden),
        dense=np.concatenate([found.dense, *(before.dense[where[name]] for name, _ in hidden)]),
    )


def moved(before: Weights, after: Weights) -> float:
    """The largest change of a weight, both vectors having length 1: decoders ignore lengths.

    Examples
    --------
    >>> layout = (("LM0", 1), ("TM0", 1))
    >>> moved(Weights(layout, [0.5, 0.0]), Weights(layout, [3.0, 4.0]))
    0.8
    """
    scaled = [weights.scaled(1.0 / _length(weights)) for weights in (before, after)]
    return max((abs(new - old) for _, old, new in changes(*scaled)), default=0.0)


def _length(weights: Weights) -> float:
    values = [*weights.dense.tolist(), *weights.sparse.values(), *weights.phrases.values()]
    return float(np.linalg.norm(values)) or 1.0


def _size(weights: Weights, names: Collection[str]) -> float:
    """Sum of the sizes of some dense weights."""
    where = places(weights.layout)
    return float(sum(np.abs(weights.dense[where[name]]).sum() for name in names))
