"""What every tuner is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hopefear.data.lists.dataset import ListDataset
from hopefear.metrics.lists import ListMetric
from hopefear.structures.nbest import NBest
from hopefear.tasks.rerank.judging import counts_of
from hopefear.training.predictors import LinearPredictor
from hopefear.training.ranking import Ranker
from hopefear.translation.tuners.quick_worth import quick_worth

Event = dict[str, Any]
Listener = Callable[[Event], None]


@dataclass(frozen=True)
class TuningProblem:
    """Lists to choose from, how choices are scored, and weights to begin with.

    Parameters
    ----------
    data : ListDataset
        Lists whose candidates have counts of the metric.
    metric : ListMetric
        Scores a choice of one candidate from each list.
    start : float64 array
        A weight for every feature of ``data``.
    dev : ListDataset, optional
        Held-out lists in the same features.
    """

    data: ListDataset
    metric: ListMetric
    start: np.ndarray
    dev: ListDataset | None = None

    def worth(self, sums: np.ndarray) -> np.ndarray:
        """What summed counts ``[..., S]`` are worth: the metric's main score, more is better."""
        rows = np.asarray(sums)
        found = quick_worth(self.metric)(rows.reshape(-1, rows.shape[-1]))
        return found.reshape(rows.shape[:-1])

    def choice(self, weights: np.ndarray, data: ListDataset | None = None) -> np.ndarray:
        """Number of the best candidate of each list under these weights; of equals the first."""
        rows = (self.data if data is None else data).rows
        best = Ranker(NBest(len(weights)), LinearPredictor(np.asarray(weights))).best(rows)
        return rows.starts[:-1] + best

    def undecided(self, weights: np.ndarray) -> bool:
        """Whether these weights say nothing: only its place in a list speaks for a candidate."""
        return not np.any(weights) and not self.data.rows.offsets.any()

    def score(self, weights: np.ndarray, data: ListDataset | None = None) -> float:
        """The metric's main score of the best candidates under these weights."""
        data = self.data if data is None else data
        sums = counts_of(data, self.metric)[self.choice(weights, data)].sum(axis=0)
        return float(self.metric.scores(sums)[self.metric.main])

    def report(self, weights: np.ndarray) -> Event:
        """Scores of these weights as events say them: ``{"train": …, "dev": …}``."""
        main = self.metric.main
        found: Event = {"train": {main: self.score(weights)}}
        if self.dev is not None:
            found["dev"] = {main: self.score(weights, self.dev)}
        return found


@dataclass(frozen=True)
class Tuned:
    """Weights that were found, and how.

    Parameters
    ----------
    weights : float64 array
        A weight for every feature.
    history : list of events
        One for each round: ``{"epoch": 1, "train": {"bleu": …}, "dev": …, "seconds": …}``.
    runs : tuple of float
        Score on the tuning lists that each restart reached, where there were several.
    best_epoch : int, optional
        The round the weights are from, where it is not the last.
    """

    weights: np.ndarray
    history: list[Event] = field(default_factory=list)
    runs: tuple[float, ...] = ()
    best_epoch: int | None = None


def tell(listeners: Sequence[Listener], event: Event) -> None:
    """Hand an event to everyone who listens."""
    for listener in listeners:
        listener(event)
