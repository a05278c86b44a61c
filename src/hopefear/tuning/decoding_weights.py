"""How weights change from round to round."""

from __future__ import annotations

import numpy as np

from hopefear.tuning.weights import Weights, changes


def completed(found: Weights, before: Weights) -> Weights:
    """Tuned weights with those that the decoder reads but its lists do not show, as they were.

    Examples
    --------
    >>> before = Weights((("LM0", 1), ("UnknownWordPenalty0", 1)), [0.5, 1.0])
    >>> completed(Weights((("LM0", 1),), [0.7]), before).dense.tolist()
    [0.7, 1.0]
    """
    tuned = {name for name, _ in found.layout}
    layout, dense, first = list(found.layout), [found.dense], 0
    for name, width in before.layout:
        if name not in tuned:
            layout.append((name, width))
            dense.append(before.dense[first : first + width])
        first += width
    return Weights(tuple(layout), np.concatenate(dense), found.sparse, found.phrases, found.about)


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
