"""What a feature map makes of tokens: attribute numbers, token by token."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Attributes(NamedTuple):
    """Attributes of tokens, and of the edges that lead to them, as compressed rows.

    Token k has the attributes ``indices[indptr[k]:indptr[k + 1]]``. Empty ``values`` mean that all
    of them are 1. Edge attributes belong to the edge from the token before; ``edge_indptr`` is
    ``[0]`` where there are none.
    """

    indptr: np.ndarray  # int64[tokens + 1]
    indices: np.ndarray  # int32[nnz]
    values: np.ndarray  # float32[nnz] or float32[0]
    edge_indptr: np.ndarray  # int64[tokens + 1] or [0]
    edge_indices: np.ndarray  # int32[edge nnz]
    edge_values: np.ndarray  # float32[edge nnz] or float32[0]
