"""What tuned weights can be asked: the best of lists, an order, scores, a file."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hopefear.data.moses.lists import TuningLists
from hopefear.errors import HopefearError
from hopefear.metrics.lists import ListMetric, ListScores
from hopefear.tasks.estimator import as_value_errors
from hopefear.translation.estimator_reading import judged_lists, plain_lists
from hopefear.translation.evaluation import corpus_score, evaluate
from hopefear.translation.reading import tuning_metric
from hopefear.translation.scoring import best, scores
from hopefear.translation.weights import Weights


class TunedPredictor(BaseEstimator):
    """Weights that choose from lists; estimators that tune them inherit from it.

    Attributes
    ----------
    weights_ : Weights
        What chooses.
    """

    metric: str | ListMetric
    weights_: Weights

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
            if n < 1:
                raise HopefearError(f"n must be 1 or more, not {n}")
            lists, points = self._scored(nbest, source)
            texts = lists.texts
            if texts is None:
                raise HopefearError(
                    f"{lists.source}: these lists came without the words of their candidates; read "
                    "them with texts=True"
                )
            found = []
            for a, b in zip(lists.starts[:-1].tolist(), lists.starts[1:].tolist(), strict=True):
                order = np.argsort(-points[a:b], kind="stable")[:n]
                found.append([texts.get(a + c) for c in order.tolist()])
        return found

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
            found = corpus_score(self._judged(nbest, refs, source), self.weights_, self.metric)
            return found if tuning_metric(self.metric).higher else -found

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
        """A tuner with the weights of a file, of whatever origin; it can go on tuning.

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
        made = cls(**params)
        made.weights_ = weights
        return made

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "weights_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        return tags

    def _scored(self, nbest: Any, source: Any) -> tuple[TuningLists, np.ndarray]:
        check_is_fitted(self, "weights_")
        lists = plain_lists(nbest, source, self.weights_)
        return lists, scores(lists, self.weights_)

    def _judged(self, nbest: Any, refs: Any, source: Any) -> TuningLists:
        check_is_fitted(self, "weights_")
        return judged_lists(nbest, refs, self.metric, source, self.weights_)
