"""The estimator ``Tuner`` of translation weights."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hopefear.core.checks import check_at_least
from hopefear.data.lists.candidates import CandidateLists
from hopefear.errors import HopefearError
from hopefear.metrics.lists import ListMetric, ListScores
from hopefear.tasks.estimator import Estimator, as_value_errors
from hopefear.translation.lists import judged_lists, plain_lists, tuning_metric
from hopefear.translation.scoring import best, scores
from hopefear.translation.task import DEFAULT_LEARNER, STARTS, corpus_score, evaluate, tune
from hopefear.translation.tuners.problem import Event, Listener
from hopefear.translation.weights import Weights


class Tuner(Estimator):
    """Weights under which the best of lists of translations score high, by any tuner.

    ``argmax_w metric(Σ_i counts of argmax_y w · f(x_i, y))``, as well as the tuner can; the same
    for the same lists and ``random_state``

    Parameters
    ----------
    learner : str
        Name of a recipe of the task ``tune``; ``hopefear learners`` lists them.
    metric : str or ListMetric
        What translations are tuned for: ``"bleu"``, ``"chrf"``, ``"ter"`` or another metric of
        text.
    start : str, path or Weights
        Weights to begin with: ``"auto"``, ``"decoder"``, ``"moses"``, ``"uniform"``, a file of
        weights, or weights.
    features : sequence of {"dense", "sparse", "phrases"}, optional
        What gets weights: all that the lists have, unless said.
    min_count : int
        Sparse features and phrase pairs that tell candidates apart in fewer lists are left out.
        More makes fewer weights.
    seeds : int
        Tune so many times, with ``random_state`` and the numbers behind it, and keep the best.
        More takes longer and depends less on luck.
    random_state : int
        Fixes the order of lists, random starts and samples.
    held_out : float
        Share of the lists that choose the round and the seed and are not learned from.
    callbacks : sequence of callables, optional
        Each gets every event (a dict) as it happens.
    verbose : int
        Above 0, a line on the standard error stream after each round.
    **params
        Parameters of the learner, by name, such as ``C=0.01``; checked by :meth:`fit`.

    Attributes
    ----------
    weights_ : Weights
        What was found: numbers by name, which files and decoders take.
    tuning_ : Tuning
        How: scores before and after, of the best choice there is, and of every seed. Not there
        after :meth:`load`.
    history_ : list of dict
        The event of every round of the run that was kept.

    Examples
    --------
    >>> nbest = [
    ...     [
    ...         {"text": "hope it is so", "features": {"LM0": -2.0, "TM0": -1.0}},
    ...         {"text": "so it is hope", "features": {"LM0": -3.0, "TM0": -0.1}},
    ...     ]
    ... ]
    >>> tuner = Tuner("perceptron", start="uniform").fit(nbest, ["so it is hope"])
    >>> tuner.predict(nbest)
    ['so it is hope']
    """

    _task = "tune"

    def __init__(
        self,
        learner: str = DEFAULT_LEARNER,
        *,
        metric: str | ListMetric = "bleu",
        start: str | os.PathLike[str] | Weights = "auto",
        features: Sequence[str] | None = None,
        min_count: int = 1,
        seeds: int = 1,
        random_state: int = 1,
        held_out: float = 0.0,
        callbacks: Sequence[Callable[[Event], None]] | None = None,
        verbose: int = 0,
        **params: Any,
    ) -> None:
        self.learner = learner
        self.metric = metric
        self.start = start
        self.features = features
        self.min_count = min_count
        self.seeds = seeds
        self.random_state = random_state
        self.held_out = held_out
        self.callbacks = callbacks
        self.verbose = verbose
        self._params = params

    def fit(self, nbest: Any, refs: Any = None, *, source: Any = None, dev: Any = None) -> Self:
        """Tune from the start.

        Parameters
        ----------
        nbest : path, sequence of paths, CandidateLists, or lists of candidates
            N-best lists of Moses, several of them merged; or for each sentence a list of
            candidates, as :func:`hopefear.translation.lists.lists_in_memory` takes them.
        refs : path, sequence of paths, or sequence of texts
            Files of references, one for each; or, with lists in memory, for each list a text or a
            list of texts. None where CandidateLists have counts.
        source : path, optional
            The sentences that were translated, for the phrase pairs in N-best files.
        dev : CandidateLists or tuple, optional
            Held-out lists that choose the round and the seed: ``(nbest, refs)`` or
            ``(nbest, refs, source)``.
        """
        with as_value_errors():
            lists = judged_lists(nbest, refs, self.metric, source)
            self._tune(lists, self._start(), self._dev(dev, lists))
        return self

    def partial_fit(
        self, nbest: Any, refs: Any = None, *, source: Any = None, dev: Any = None
    ) -> Self:
        """Tune from the weights there are, as in the next round with a decoder.

        Named features that are not in these lists keep their weights.

        Parameters
        ----------
        nbest, refs, source, dev
            As for :meth:`fit`. Lists of earlier rounds are not remembered: give all lists that
            shall count.
        """
        if not hasattr(self, "weights_"):
            return self.fit(nbest, refs, source=source, dev=dev)
        with as_value_errors():
            before = self.weights_
            lists = judged_lists(nbest, refs, self.metric, source, before)
            self._tune(lists, before, self._dev(dev, lists))
        return self

    def predict(self, nbest: Any, *, source: Any = None) -> list[str]:
        """Text of the best candidate of each list; of equal ones the first.

        Parameters
        ----------
        nbest, source
            As for :meth:`fit`.
        """
        return [texts[0] for texts in self.predict_nbest(nbest, 1, source=source)]

    def predict_nbest(self, nbest: Any, n: int = 10, *, source: Any = None) -> list[list[str]]:
        """Texts of the ``n`` best candidates of each list, best first; fewer where a list ends."""
        with as_value_errors():
            check_at_least("n", n, 1)
            lists, points = self._scored(nbest, source)
            texts = lists.texts
            if not texts:
                raise HopefearError(
                    f"{lists.source}: these lists came without the words of their candidates; read "
                    "them with texts=True"
                )
            best = []
            for a, b in zip(lists.starts[:-1].tolist(), lists.starts[1:].tolist(), strict=True):
                order = np.argsort(-points[a:b], kind="stable")[:n]
                best.append([texts[a + c] for c in order.tolist()])
        return best

    def choose(self, nbest: Any, *, source: Any = None) -> np.ndarray:
        """Position of the best candidate of each list, from 0; of equal ones the first."""
        with as_value_errors():
            lists, points = self._scored(nbest, source)
            return best(points, lists)

    def decision_function(self, nbest: Any, *, source: Any = None) -> list[np.ndarray]:
        """Scores of the candidates of each list."""
        with as_value_errors():
            lists, points = self._scored(nbest, source)
            return np.split(points, lists.starts[1:-1])

    def score(self, nbest: Any, refs: Any = None, *, source: Any = None) -> float:
        """The metric's main score of the chosen candidates, as of one text; more is better.

        Scores of which less is better, as TER, are given a minus sign.
        """
        with as_value_errors():
            score = corpus_score(self._judged(nbest, refs, source), self.weights_, self.metric)
            return score if tuning_metric(self.metric).higher else -score

    def evaluate(
        self,
        nbest: Any,
        refs: Any = None,
        *,
        source: Any = None,
        samples: int = 1000,
        seed: int = 1,
    ) -> ListScores:
        """The choices beside the decoder's, the oracle and the worst, with bounds."""
        with as_value_errors():
            lists = self._judged(nbest, refs, source)
            return evaluate(lists, self.weights_, metric=self.metric, samples=samples, seed=seed)

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Write the weights as text, for Moses or as JSON; see :meth:`Weights.write`."""
        check_is_fitted(self, "weights_")
        with as_value_errors():
            self.weights_.write(path, format)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **params: Any) -> Self:
        """Makes a tuner with the weights of a file, of any origin; it can continue tuning.

        Parameters
        ----------
        path : str or path
            In any of the formats of weights.
        **params
            As for the constructor; the learner is that of the file unless given.
        """
        with as_value_errors():
            weights = Weights.read(path)
        if isinstance(learner := weights.about.get("learner"), str):
            params = {"learner": learner, **params}
        tuner = cls(**params)
        tuner.weights_ = weights
        return tuner

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "weights_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        return tags

    def _scored(self, nbest: Any, source: Any) -> tuple[CandidateLists, np.ndarray]:
        check_is_fitted(self, "weights_")
        lists = plain_lists(nbest, source, self.weights_)
        return lists, scores(lists, self.weights_)

    def _judged(self, nbest: Any, refs: Any, source: Any) -> CandidateLists:
        check_is_fitted(self, "weights_")
        return judged_lists(nbest, refs, self.metric, source, self.weights_)

    def _tune(
        self, lists: CandidateLists, start: str | Weights, dev: CandidateLists | None
    ) -> None:
        check_at_least("seeds, which says how often to tune,", self.seeds, 1)
        tuning = tune(
            lists,
            self.learner,
            self._learner_params(),
            metric=self.metric,
            start=start,
            features=self.features,
            min_count=self.min_count,
            dev=dev,
            held_out=self.held_out,
            seeds=range(self.random_state, self.random_state + self.seeds),
            on_event=self._listeners(),
        )
        self.weights_, self.tuning_, self.history_ = tuning.weights, tuning, tuning.history

    def _start(self) -> str | Weights:
        if isinstance(self.start, Weights) or self.start in STARTS:
            return self.start
        return Weights.read(self.start)

    def _dev(self, dev: Any, lists: CandidateLists) -> CandidateLists | None:
        if dev is None or isinstance(dev, CandidateLists):
            return dev
        if not isinstance(dev, tuple) or len(dev) not in (2, 3):
            raise HopefearError(
                f"dev: expected (nbest, refs) or (nbest, refs, source), found {dev!r:.60}"
            )
        nbest, refs, source = (*dev, None)[:3]
        shape = Weights(lists.layout, np.zeros(len(lists.names)))
        return judged_lists(nbest, refs, self.metric, source, shape)

    def _listeners(self, score: str | None = None) -> list[Listener]:
        return [*(self.callbacks or ()), *([say] if self.verbose else [])]


def say(event: Event) -> None:
    """A line on the standard error stream for every round."""
    words = [f"{key} {event[key]}" for key in ("seed", "epoch") if key in event]
    for part in ("train", "dev"):
        words += [f"{part} {name} {value:.2f}" for name, value in event.get(part, {}).items()]
    if words:
        print(*words, sep=", ", file=sys.stderr)
