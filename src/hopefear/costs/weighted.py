"""A price for every pair of labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import Cost


@component(Cost)
class Weighted(NamedTuple):
    """A table of prices: ``table[gold, label]``, zero on the diagonal.

    Parameters
    ----------
    table : float64 array
        One row for each right label, one column for each predicted one.

    Examples
    --------
    >>> Weighted(np.array([[0.0, 5.0], [1.0, 0.0]])).label_cost(0, 1)
    5.0
    """

    table: np.ndarray

    def requires(self):
        return ("labels",)

    def parameter_error(self):
        table = self.table
        if table.ndim != 2 or table.shape[0] != table.shape[1]:
            return "the table of prices must be square"
        if not np.all(np.isfinite(table)) or np.any(table < 0.0) or np.any(np.diag(table) != 0.0):
            return "prices must be finite, not negative, and 0 for the right label"
        return ""

    @property
    def n_labels(self):
        return len(self.table)

    def label_cost(self, gold, label):
        return float(self.table[gold, label])
