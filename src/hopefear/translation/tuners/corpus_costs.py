"""Costs of candidates that a whole corpus sets, in the unit of costs of single sentences."""

from __future__ import annotations

import numpy as np

from hopefear.data.lists.dataset import cheapest
from hopefear.errors import HopefearError
from hopefear.tasks.rerank.judging import counts_of
from hopefear.translation.tuners.problem import TuningProblem
from hopefear.translation.tuners.quick_worth import quick_worth

_BLOCK = 1 << 16  # candidates whose sums are in memory at a time
_SWEEPS = 10  # over the lists, for oracles; two or three settle them


def corpus_costs(problem: TuningProblem, share: float = 1.0) -> np.ndarray:
    """What a corpus of oracles loses when a candidate takes the place of its list's.

    ``share * loss of the corpus + (1 - share) * cost of the sentence``

    Parameters
    ----------
    share : float
        0: the costs there are. 1: only what happens to the corpus counts, in which a length or a
        rare match is worth what it is worth there.

    Notes
    -----
    Metrics of sentences reward what a corpus does not: those who tune on sentence BLEU get
    translations that are too short (Nakov, Guzmán and Vogel, 2012). Losses of the corpus are
    stretched so that they scatter within lists as much as the costs do. The corpus is one of
    oracles, not of best candidates, whose length may be far from that of the references: then one
    word more or less would outweigh everything else.

    Examples
    --------
    >>> from hopefear.data.lists.dataset import ListDataset, ListRows
    >>> from hopefear.metrics.lists import GivenCost
    >>> rows = ListRows([0, 2], [0, 1], [7], [0, 0, 1], [0], [1.0], [0, 0], [0.5, 0], [1], [1])
    >>> problem = TuningProblem(ListDataset(rows), GivenCost(), np.zeros(8))
    >>> corpus_costs(problem).tolist()
    [0.5, 0.0]
    """
    if not 0.0 <= share <= 1.0:
        raise HopefearError(f"the share of the corpus in costs is from 0 to 1, not {share:g}")
    costs = problem.data.rows.costs
    if share == 0.0 or not len(costs):
        return costs
    losses = _losses(problem)
    wide = spread_within(losses, problem.data.rows.starts)
    if wide == 0.0:
        return costs
    losses *= spread_within(costs, problem.data.rows.starts) / wide
    return share * losses + (1.0 - share) * costs


def _losses(problem: TuningProblem) -> np.ndarray:
    rows = problem.data.rows
    counts, worth = counts_of(problem.data, problem.metric), quick_worth(problem.metric)
    lengths = np.diff(rows.starts)
    chosen = rows.starts[:-1] + rows.oracles
    owners = np.repeat(np.arange(len(lengths)), lengths)
    losses, kind = np.zeros(len(owners)), "f8" if counts.dtype.kind == "f" else "i8"
    for _ in range(_SWEEPS):
        own = counts[chosen].astype(kind)
        whole = own.sum(axis=0)
        for a in range(0, len(owners), _BLOCK):
            block = slice(a, a + _BLOCK)
            losses[block] = -worth(whole - own[owners[block]] + counts[block])
        better = rows.starts[:-1] + cheapest(losses, rows.starts)
        if (losses[better] == losses[chosen]).all():
            break
        chosen = better
    return losses - float(np.min(losses))


def spread_within(values: np.ndarray, starts: np.ndarray) -> float:
    """Root mean square of what the values of a list differ from their mean.

    >>> spread_within(np.array([1.0, 3.0, 7.0, 9.0]), np.array([0, 2, 4]))
    1.0
    """
    lengths = np.diff(starts)
    means = np.add.reduceat(values, starts[:-1]) / lengths
    return float(np.sqrt(np.mean(np.square(values - np.repeat(means, lengths)))))
