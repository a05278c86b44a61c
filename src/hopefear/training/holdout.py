"""Rows put aside to choose a model by."""

from __future__ import annotations

import numpy as np

from hopefear.data.sparse import SparseDataset
from hopefear.errors import HopefearError
from hopefear.training.passes import content_order


def split_classes(
    data: SparseDataset, fraction: float, seed: int
) -> tuple[SparseDataset, SparseDataset]:
    """``(rest, held out)``: a part of every class put aside, whatever the order of the rows.

    Examples
    --------
    >>> data = SparseDataset.from_csr(np.eye(8), [0, 0, 0, 0, 1, 1, 1, 1])
    >>> rest, held = split_classes(data, 0.25, seed=1)
    >>> rest.rows.labels.tolist(), held.rows.labels.tolist()
    ([0, 0, 0, 1, 1, 1], [0, 1])
    """
    if not 0.0 < fraction < 1.0:
        raise HopefearError(f"validation_fraction must be between 0 and 1, not {fraction}")
    order = content_order(data.rows)
    order = order[data.rows.weights[order] > 0.0]
    order = order[np.random.default_rng(seed).permutation(order.size)]
    order = order[np.argsort(data.rows.labels[order], kind="stable")]
    counts = np.bincount(data.rows.labels[order], minlength=len(data.classes))
    wanted = np.minimum(np.round(counts * fraction), np.maximum(counts - 1, 0))
    place = np.arange(order.size) - np.repeat(np.cumsum(counts) - counts, counts)
    held = place < np.repeat(wanted, counts)
    if not held.any():
        raise HopefearError(
            f"validation_fraction={fraction} of {order.size} rows leaves none to hold out in any "
            "class; give X_val and y_val, or a larger fraction"
        )
    return data.take(np.sort(order[~held])), data.take(np.sort(order[held]))
