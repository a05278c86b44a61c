"""Lists of candidates ready for training: what the N-best structure reads."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hopefear.errors import HopefearError


class ListRows(NamedTuple):
    """The arrays a kernel sees; all read-only and contiguous.

    List i has the candidates ``starts[i] .. starts[i + 1] - 1`` and speaks of the features
    ``features[locals[i]:locals[i + 1]]``, each once; candidate c has those at the positions
    ``columns[indptr[c]:indptr[c + 1]]`` among them. So a weight is read, and moved, once for a list
    and not once for each candidate. Values are relative: what most candidates of a list share is
    taken off all of them, which changes no difference between two.
    """

    starts: np.ndarray  # int64[n + 1]
    locals: np.ndarray  # int64[n + 1]
    features: np.ndarray  # int32, ascending within a list
    indptr: np.ndarray  # int64[candidates + 1]
    columns: np.ndarray  # int32[nnz], ascending within a candidate
    values: np.ndarray  # float32[nnz]
    offsets: np.ndarray  # float32[candidates]: fixed score b(x, y), no weight learns it
    costs: np.ndarray  # float64[candidates]
    oracles: np.ndarray  # int32[n]: position in the list of the candidate to learn
    weights: np.ndarray  # float32[n]


DTYPES = tuple(np.dtype(t) for t in ("i8", "i8", "i4", "i8", "i4", "f4", "f4", "f8", "i4", "f4"))
