"""Whether two choices of translations differ by more than chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hopefear.experiments.common.differences import Difference, compare_choices
from hopefear.experiments.dptm.problems import METRIC


def compare(first: Sequence[np.ndarray], second: Sequence[np.ndarray], samples: int) -> Difference:
    """Paired bootstrap and approximate randomisation over lists, on BLEU.

    Parameters
    ----------
    first, second, samples
        As in :func:`hopefear.experiments.common.differences.compare_choices`; counts of BLEU.

    Examples
    --------
    >>> good = np.array([[9, 8, 7, 6, 9, 8, 7, 6, 9, 9]] * 50)
    >>> bad = np.array([[9, 4, 3, 2, 9, 8, 7, 6, 9, 9]] * 50)
    >>> found = compare([good], [bad, bad], 100)
    >>> round(found.points, 1), found.significant
    (48.3, True)
    """
    return compare_choices(METRIC, "bleu", first, second, samples)
