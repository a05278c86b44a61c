"""The last weights, and nothing else."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import Averaging


class Nothing(NamedTuple):
    nothing: np.ndarray


@component(Averaging)
class Last(NamedTuple):
    """Keep the weights as training leaves them: the sparsest averaging of a sparse rule.

    Examples
    --------
    >>> Last().init_memory(3, 1)
    Nothing(nothing=array([], dtype=float64))
    """

    unused: int = 0  # a compiled part needs a field

    def init_memory(self, n, window):
        return Nothing(np.zeros(0))

    def accumulators(self, memory):
        return ()
