"""Whether two tuners differ by more than chance, on both test sets together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hopefear.experiments.common.differences import Difference, compare_choices
from hopefear.experiments.tuning.problems import METRIC


def compare(first: Sequence[np.ndarray], second: Sequence[np.ndarray], samples: int) -> Difference:
    """Paired bootstrap and approximate randomisation over lists, on BLEU.

    Parameters
    ----------
    first, second, samples
        As in :func:`hopefear.experiments.common.differences.compare_choices`; counts of BLEU.

    Examples
    --------
    >>> good = np.array([[8, 7, 6, 5, 8, 7, 6, 5, 8, 8]] * 20)
    >>> compare([good, good], [good], 50).points
    0.0
    """
    return compare_choices(METRIC, METRIC.main, first, second, samples)
