"""Features of candidates by their keys, before anybody has numbered them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Keyed(NamedTuple):
    """Candidate c has the features ``keys[indptr[c]:indptr[c + 1]]`` with their values.

    A key is the hash of what a feature says, never 0; a candidate may have one several times, and
    then the values add up.
    """

    indptr: np.ndarray  # int64[candidates + 1]
    keys: np.ndarray  # uint64[n]
    values: np.ndarray  # float32[n]
