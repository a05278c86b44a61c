"""Inputs and results of tuners, and the rounds between."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hopefear import __version__
from hopefear.data.lists.dataset import ListDataset, counts_of
from hopefear.metrics.lists import ListMetric
from hopefear.structures.nbest import NBest
from hopefear.training.decoders.lists import ListDecoder
from hopefear.training.predictors import LinearPredictor
from hopefear.training.stopping import Stopping
from hopefear.translation.tuners.corpus import quick_worth

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
        """Returns the metric's main score of summed counts ``[..., S]``; higher is better."""
        rows = np.asarray(sums)
        worths = quick_worth(self.metric)(rows.reshape(-1, rows.shape[-1]))
        return worths.reshape(rows.shape[:-1])

    def choice(self, weights: np.ndarray, data: ListDataset | None = None) -> np.ndarray:
        """Number of the best candidate of each list under these weights; of equals the first."""
        rows = (self.data if data is None else data).rows
        best = ListDecoder(NBest(len(weights)), LinearPredictor(np.asarray(weights))).predict(rows)
        return rows.starts[:-1] + best

    def undecided(self, weights: np.ndarray) -> bool:
        """Whether these weights score all candidates of a list alike."""
        return not np.any(weights) and not self.data.rows.offsets.any()

    def score(self, weights: np.ndarray, data: ListDataset | None = None) -> float:
        """The metric's main score of the best candidates under these weights."""
        data = self.data if data is None else data
        sums = counts_of(data, self.metric)[self.choice(weights, data)].sum(axis=0)
        return float(self.metric.scores(sums)[self.metric.main])

    def report(self, weights: np.ndarray) -> Event:
        """Returns scores of these weights as events have them: ``{"train": …, "dev": …}``."""
        main = self.metric.main
        scores: Event = {"train": {main: self.score(weights)}}
        if self.dev is not None:
            scores["dev"] = {main: self.score(weights, self.dev)}
        return scores


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


class Round(NamedTuple):
    """State of a tuner after one of its rounds.

    Parameters
    ----------
    weights : float64 array
        A weight for every feature; never changed afterwards.
    facts : mapping
        What the event of the round says besides numbers that all tuners give.
    penalty : float
        Taken off the score where the tuning lists choose the round.
    """

    weights: np.ndarray
    facts: Mapping[str, Any] = {}
    penalty: float = 0.0


class RoundsTuner:
    """A dataclass whose fields are its parameters, and whose ``each_round`` moves weights.

    Examples
    --------
    >>> from hopefear.translation.tuners.mert import Mert
    >>> Mert(restarts=5).signature(seed=3)[:45]
    'tuner:mert(restarts=5,steps=turns,random=14,e'
    """

    name: ClassVar[str]
    rounds_parameter: ClassVar[str] = (
        ""  # the parameter that says how many rounds there are at most
    )

    def each_round(self, problem: TuningProblem, seed: int) -> Iterator[Round]:
        """Move the weights, round by round."""
        raise NotImplementedError

    def following(self) -> dict[str, Any]:
        """Returns the properties of this tuner that `follow` reads."""
        return {"of": getattr(self, self.rounds_parameter) if self.rounds_parameter else None}

    def tune(
        self, problem: TuningProblem, *, seed: int = 1, on_event: Sequence[Listener] = ()
    ) -> Tuned:
        """Weights that were found on the lists.

        Parameters
        ----------
        problem : TuningProblem
            What to tune on.
        seed : int
            Of whatever is drawn at random; the same seed gives the same weights.
        on_event : sequence of callables
            Each gets the event (a dict) of every round.
        """
        return follow(self.each_round(problem, seed), problem, on_event, **self.following())

    def parameters(self) -> dict[str, Any]:
        """All parameters, as JSON has them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def signature(self, **fields: Any) -> str:
        """Returns one line that identifies this tuner exactly, for weights files and reports."""
        parts = {"tuner": f"{self.name}({listed(self.parameters())})", **fields, "v": __version__}
        return "|".join(f"{key}:{value}" for key, value in parts.items())


def follow(
    rounds: Iterable[Round],
    problem: TuningProblem,
    on_event: Sequence[Listener] = (),
    *,
    of: int | None = None,
    keep: str | None = "best",
    judge: str = "auto",
    patience: int = 0,
    from_start: bool = False,
    nnz: bool = True,
) -> Tuned:
    """Let a tuner go through its rounds: clock, scores, events, and which round counts.

    Parameters
    ----------
    rounds : iterable of Round
        What the tuner does.
    problem : TuningProblem
        Says what the weights of a round are worth.
    on_event : sequence of callables
        Each gets the event of every round.
    of : int, optional
        Rounds at most, as events say it.
    keep : {"auto", "best", "last"}, optional
        Which round the weights are from; ``auto`` is the best where lists are held out, else the
        last. None is the last one too, and nobody chose it.
    judge : {"auto", "train", "dev"}
        Lists whose scores tell the best round; ``auto`` takes held-out ones where there are any.
    patience : int
        Rounds without a better score before it ends; 0 waits for the tuner to end.
    from_start : bool
        Whether the weights at the start count as round 0, once the others are over: averages may
        need some rounds to get anywhere, so patience knows nothing of it. Where they are 0 they
        never do, for then the order of candidates would be judged.
    nnz : bool
        Whether events say how many weights are not 0.

    Examples
    --------
    >>> from hopefear.data.lists.dataset import ListDataset, ListRows
    >>> from hopefear.metrics.lists import GivenCost
    >>> rows = ListRows([0, 2], [0, 1], [0], [0, 0, 1], [0], [1.0], [0, 0], [0.5, 0], [1], [1])
    >>> problem = TuningProblem(ListDataset(rows), GivenCost(), np.array([-1.0]))
    >>> result = follow([Round(np.array([w])) for w in (-2.0, 3.0, 4.0)], problem)
    >>> result.weights.tolist(), result.best_epoch, [event["train"] for event in result.history]
    ([3.0], 2, [{'cost': 0.5}, {'cost': 0.0}, {'cost': 0.0}])
    """
    main, sign = problem.metric.main, 1.0 if problem.metric.higher else -1.0
    if judge == "auto":
        judge = "train" if problem.dev is None else "dev"
    if keep == "auto":
        keep = "last" if problem.dev is None else "best"
    stopping, history = Stopping(main, patience), []
    start = weights = np.asarray(problem.start, np.float64)
    began = time.perf_counter()
    for epoch, (here, values, penalty) in enumerate(rounds, 1):
        seconds = time.perf_counter() - began
        event: Event = {"epoch": epoch} | ({} if of is None else {"of": of})
        event |= problem.report(here)
        event |= values
        if nnz:
            event["nnz"] = int(np.count_nonzero(here))
        event["seconds"] = round(seconds, 6)
        history.append(event)
        tell(on_event, event)
        score = event[judge][main] - (sign * penalty if judge == "train" else 0.0)
        if stopping.see(epoch, {main: score}) or keep != "best":
            weights = here
        if stopping.is_over(epoch):
            break
        began = time.perf_counter()
    if keep != "best":
        return Tuned(weights, history, best_epoch=len(history) if keep == "last" else None)
    if from_start and not problem.undecided(start):
        at_start = {main: problem.score(start, problem.dev)}
        weights = start if stopping.see(0, at_start) else weights
    return Tuned(weights, history, best_epoch=stopping.best_epoch)


def tell(listeners: Sequence[Listener], event: Event) -> None:
    """Hand an event to everyone who listens."""
    for listener in listeners:
        listener(event)


def listed(parameters: Mapping[str, Any]) -> str:
    """Parameters that have a value in one line; those with parts are left out.

    >>> listed({"rate": 0.1, "swap": True, "start": None, "rule": {"C": 1.0}})
    'rate=0.1,swap=true'
    """
    return ",".join(
        f"{name}={value:.10g}" if isinstance(value, float) else f"{name}={str(value).lower()}"
        for name, value in parameters.items()
        if value is not None and not isinstance(value, Mapping)
    )
