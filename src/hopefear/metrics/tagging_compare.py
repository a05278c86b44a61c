"""Whether one tagging is better than another, by resampling whole sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hopefear.errors import HopefearError
from hopefear.metrics.classification import Scores
from hopefear.metrics.significance import approximate_randomisation, paired_bootstrap
from hopefear.metrics.tagging import READ_BY, Tagging


def compare_taggings(
    gold: Any,
    a: Any,
    b: Any,
    starts: ArrayLike | None = None,
    *,
    metric: str = "f1",
    samples: int = 10_000,
    seed: int = 1,
    labels: Sequence[str] | None = None,
    reading: str = "conlleval",
) -> Scores:
    """Is one tagging better than another by more than chance? Whole sentences are drawn and traded.

    Parameters
    ----------
    gold, a, b : taggings
        As in `chunk_scores`.
    starts, labels, reading
        As in `chunk_scores`.
    metric : str
        ``f1``, ``precision``, ``recall``, ``accuracy`` or ``sentence_accuracy``.
    samples : int
        Resamples of the bootstrap and shuffles of the randomisation; more make p steadier.
    seed : int
        Same seed, same result.

    Returns
    -------
    dict
        ``first``, ``second``, ``difference`` with its 95 % bounds ``low`` and ``high``,
        ``p_bootstrap``, ``p_randomisation`` and ``signature``.

    Examples
    --------
    >>> gold = [["B-X", "O"]] * 40
    >>> worse = gold[:30] + [["O", "O"]] * 10
    >>> found = compare_taggings(gold, gold, worse, metric="accuracy", samples=200)
    >>> found["difference"], found["p_randomisation"] < 0.05
    (12.5, True)
    """
    if metric not in READ_BY:
        raise HopefearError(f"no tagging score {metric!r}; choose one of {', '.join(READ_BY)}")
    scorer = Tagging(reading)
    used = np.isin(np.arange(7), READ_BY[metric])
    # Equal counts are drawn together, so counts the score does not read are made equal.
    first, second = (scorer.rows(gold, x, starts, labels) * used for x in (a, b))
    drawn = paired_bootstrap(scorer, first, second, metric, replicates=samples, seed=seed)
    traded = approximate_randomisation(scorer, first, second, metric, replicates=samples, seed=seed)
    return {
        "metric": metric,
        "first": drawn.first,
        "second": drawn.second,
        "difference": drawn.difference,
        "low": drawn.low,
        "high": drawn.high,
        "p_bootstrap": drawn.p_value,
        "p_randomisation": traded.p_value,
        "signature": f"{drawn.signature} {traded.signature}",
    }
