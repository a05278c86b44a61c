"""Tuning with a decoder in the loop: decode, add the new lists to the old ones, tune, again."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hopefear.data.moses.lists import TuningLists
from hopefear.data.moses.reading import read_moses
from hopefear.data.moses.words import Sentences, check_parallel, check_some, read_sentences
from hopefear.errors import HopefearError
from hopefear.metrics.lists import ListMetric
from hopefear.translation.decoder_command import DecoderCommand
from hopefear.translation.decoding_folder import RoundsFolder
from hopefear.translation.decoding_weights import completed, moved
from hopefear.translation.reading import read, tuning_metric
from hopefear.translation.tune_checks import CollapseError
from hopefear.translation.tuners.problem import Event, Listener, tell
from hopefear.translation.weights import Weights

PathLike = str | os.PathLike[str]
Tune = Callable[[list[Path], Weights, int], Weights]
First = Weights | Callable[[TuningLists], Weights]


@dataclass(frozen=True)
class Iterated:
    """Weights that the decoder itself did best with, and how they were found.

    Parameters
    ----------
    weights : Weights
        Those of the best round.
    rounds : list of events
        One for each time the decoder ran: ``{"epoch": 0, "dev": {"bleu": …}, "new": …, …}``.
    best : int
        The round the weights are from; round 0 ran with the first ones.
    stopped : str
        Why there was no further round.
    """

    weights: Weights
    rounds: list[Event]
    best: int
    stopped: str


def iterate(
    command: str,
    refs: PathLike | Sequence[PathLike],
    first: First,
    tune: Tune,
    *,
    folder: PathLike,
    rounds: int = 10,
    patience: int = 1,
    tolerance: float = 1e-6,
    metric: str | ListMetric = "bleu",
    dense: Collection[str] = (),
    sparse: Collection[str] = (),
    about: Mapping[str, Any] | None = None,
    resume: bool = False,
    timeout: float | None = None,
    on_event: Sequence[Listener] = (),
) -> Iterated:
    """Tune in rounds, each on all the lists that a decoder has written so far.

    Round r runs the decoder under weights r. If it brought hypotheses that no earlier round had,
    and its own first choices scored better than in all earlier rounds, all lists together give
    weights r + 1. What is returned was decoded with: no score on merged lists decides.

    Parameters
    ----------
    command : str
        Runs the decoder, see :class:`~hopefear.translation.decoder_command.DecoderCommand`.
    refs : path or sequence of paths
        References of the sentences that it translates.
    first : Weights, or a function from TuningLists to Weights
        Weights of round 0. With a function, such as
        :func:`hopefear.translation.starting.start_weights`, the decoder runs round 0 with its own
        weights (the file it is given is empty), and the function makes weights to tune from out
        of the lists of that round.
    tune : function
        ``tune(paths of all lists so far, weights of this round, round)`` gives the next weights;
        a :class:`~hopefear.translation.tune.CollapseError` of it ends the rounds.
    folder : path
        Keeps each round's weights, list and log, the events, and the state to resume from.
    rounds : int
        How often to tune at most; the decoder runs once more, to judge the last weights.
    patience : int
        Rounds without a better score of the decoder's first choices before it ends.
    tolerance : float
        It ends when no weight has moved by more, both vectors having length 1.
    metric : str or ListMetric
        Scores the decoder's first choices, see :func:`hopefear.translation.reading.read`.
    dense, sparse : collection of str
        As for :func:`hopefear.data.moses.reading.read_moses`.
    about : mapping, optional
        More to say in the folder's ``run.json``.
    resume : bool
        Go on behind the last finished step that the folder knows of, if it knows any.
    timeout : float, optional
        Seconds a run of the decoder may take.
    on_event : sequence of listeners
        Called after every run of the decoder.
    """
    if rounds < 1 or patience < 1:
        raise HopefearError(
            f"rounds={rounds}, patience={patience}: both must be 1 or more, or nothing is tuned"
        )
    paths = [refs] if isinstance(refs, str | os.PathLike) else list(refs)
    metric = tuning_metric(metric)
    identity = {
        "command": command,
        "refs": [os.fspath(path) for path in paths],
        "words of refs": _digest(_references(paths)),
        "metric": metric.signature_for(len(paths)),
    }
    decoder = DecoderCommand(command, timeout)
    judge = _Judge(paths, metric, {"dense": dense, "sparse": sparse})
    given = first if isinstance(first, Weights) else None
    with RoundsFolder(Path(folder), identity, given, resume, about or {}) as kept:
        return _Rounds(kept, decoder, judge, first, rounds, patience, tolerance, on_event).run(tune)


def _references(paths: list[PathLike]) -> list[Sentences]:
    """InputError where references cannot be used: better now than when the decoder has run."""
    if not paths:
        raise HopefearError("refs: expected at least one file of references, found none")
    files = [read_sentences(path) for path in paths]
    check_parallel(files)
    check_some(files)
    return files


def _digest(files: Sequence[Sentences]) -> str:
    """A few letters that tell references from others, for whoever goes on with a folder."""
    return hashlib.sha256(b"\0".join(file.text.tobytes() for file in files)).hexdigest()[:8]


class _Judge:
    """Scores the decoder's first choices, and counts hypotheses."""

    def __init__(self, refs: list[Any], metric: ListMetric, reading: dict[str, Any]) -> None:
        self.refs, self.metric, self.reading = refs, metric, reading

    def score(self, path: Path) -> tuple[TuningLists, float]:
        """The lists of one round, and what their first candidates are worth together."""
        lists = read(path, self.refs, metric=self.metric, **self.reading)
        assert lists.counts is not None
        sums = lists.counts[lists.starts[:-1]].sum(axis=0)
        return lists, float(self.metric.scores(sums)[self.metric.main])

    def distinct(self, paths: list[Path]) -> int:
        """Hypotheses with different words or features in all rounds together."""
        return read_moses(paths, **self.reading).n_candidates

    def better(self, one: float, other: float) -> bool:
        return one > other if self.metric.higher else one < other


@dataclass
class _Rounds:
    kept: RoundsFolder
    decoder: DecoderCommand
    judge: _Judge
    first: First
    most: int
    patience: int
    tolerance: float
    on_event: Sequence[Listener]

    def run(self, tune: Tune) -> Iterated:
        number = max(0, len(self.kept.events) - 1)
        while True:
            if number == len(self.kept.events):
                self.decode(number)
            stopped = self.ended(number)
            if stopped is None and self.kept.weights(number + 1) is None:
                stopped = self.tune(tune, number)
            if stopped is None and self.moved(number + 1) <= self.tolerance:
                stopped = "the weights stand still"
            if stopped is not None:
                return self.result(stopped)
            number += 1

    def decode(self, number: int) -> None:
        """Run the decoder, judge what it wrote, and enter it in the folder."""
        folder = self.kept.round(number)
        began = time.monotonic()
        path = self.decoder.run(folder, number)
        seconds = time.monotonic() - began
        try:
            lists, score = self.judge.score(path)
            self.start(number, lists)
            total = self.judge.distinct(self.kept.lists(number))
        except HopefearError as error:
            raise self.decoder.unusable(folder, number, error) from error
        earlier = self.kept.events[-1]["candidates"] if number else 0
        event: Event = {
            "epoch": number,
            "dev": {self.judge.metric.main: score},
            "candidates": total,
            "new": total - earlier,
            "moved": self.moved(number) if number and self.known(number - 1) else None,
            "seconds": seconds,
        }
        self.kept.enter(event, lists.layout)
        tell(self.on_event, event)

    def start(self, number: int, lists: TuningLists) -> None:
        """Find weights to tune from that fit the lists of a round."""
        if self.known(number) or isinstance(self.first, Weights):
            self.kept.start(number).arranged(lists.layout)  # an error where a feature is lacking
        else:
            self.kept.keep_start(self.first(lists).arranged(lists.layout))

    def known(self, number: int) -> bool:
        """Whether a round's weights are known; the decoder's own, in round 0, are not."""
        return self.kept.weights(number) is not None

    def tune(self, tune: Tune, number: int) -> str | None:
        """Find and keep the next weights; a reason to end where they are none."""
        before = self.kept.start(number)
        try:
            found = tune(self.kept.lists(number), before.arranged(self.kept.layout), number)
            if not found.nnz:
                raise CollapseError("tuning collapsed: all weights are 0; nothing is kept")
        except CollapseError as error:
            if self.best() < 0:
                raise
            return str(error)
        self.kept.keep(number + 1, completed(found, before))
        return None

    def moved(self, number: int) -> float:
        """How far weights moved before this round, where that can be said."""
        before, after = self.kept.weights(number - 1), self.kept.weights(number)
        return np.inf if before is None or after is None else moved(before, after)

    def best(self) -> int:
        """The round whose first choices scored best, of those with known weights."""
        best = -1
        for number, score in enumerate(map(self.score, self.kept.events)):
            if self.known(number) and (
                best < 0 or self.judge.better(score, self.score(self.kept.events[best]))
            ):
                best = number
        return best

    def score(self, event: Event) -> float:
        return event["dev"][self.judge.metric.main]

    def ended(self, number: int) -> str | None:
        """Why no further round is worth its time, if that is so."""
        best = self.best()
        if number and self.kept.events[number]["new"] == 0:
            return "no new hypotheses"
        if 0 <= best <= number - self.patience:
            return f"no gain for {self.patience} round{'s' * (self.patience > 1)}"
        return f"all {self.most} rounds done" if number >= self.most else None

    def result(self, stopped: str) -> Iterated:
        best = self.best()
        found = self.kept.weights(best)
        assert found is not None
        return Iterated(found, list(self.kept.events), best, stopped)
