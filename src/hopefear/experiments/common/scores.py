"""Scores in the words that tables have."""

from __future__ import annotations

import numpy as np


def spread(values: np.ndarray) -> str:
    """Mean and deviation over seeds.

    >>> spread(np.array([93.0, 93.2]))
    '93.10 ± 0.14'
    """
    return f"{values.mean():.2f} ± {values.std(ddof=1) if values.size > 1 else 0.0:.2f}"
