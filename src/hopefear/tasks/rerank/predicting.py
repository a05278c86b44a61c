"""What every reranker can be asked: the best, an order, probabilities, scores, a file."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.dataset import ListDataset
from hopefear.metrics.lists import ListScores
from hopefear.tasks.estimator import as_value_errors
from hopefear.tasks.rerank.model import RerankModel, cut
from hopefear.tasks.rerank.preparing import blocks_in, blocks_of
from hopefear.tasks.rerank.reading import ListReader
from hopefear.tasks.rerank.task import evaluate, scores


class ListPredictor(BaseEstimator):
    """A fitted reranker; estimators that learn one inherit from it.

    Attributes
    ----------
    model_ : RerankModel
        What predicts; can be saved, inspected and used without scikit-learn.
    """

    _model: RerankModel
    _reader: ListReader

    def predict(self, X: Any) -> np.ndarray:
        """Position of the best candidate of each list; of equal ones the first.

        Parameters
        ----------
        X : list of lists of candidates
            As for :meth:`fit`; costs are not looked at.

        Examples
        --------
        >>> from hopefear import Reranker
        >>> X, y = [[{"fear": 1}, {"hope": 1}]] * 2, [[1, 0]] * 2
        >>> Reranker("perceptron").fit(X, y).predict([[{"hope": 2}, {"fear": 2}, {}]])
        array([0])
        """
        data = self._question(X)
        return self.model_.ranker().best(data.rows)

    def rank(self, X: Any) -> list[np.ndarray]:
        """Positions of the candidates of each list, best first."""
        data = self._question(X)
        return cut(self.model_.ranker().ranked(data.rows), data.rows.starts)

    def decision_function(self, X: Any) -> list[np.ndarray]:
        """Scores of the candidates of each list; for a voted model, their shares of the votes."""
        data = self._question(X)
        return cut(self.model_.ranker().scores(data.rows), data.rows.starts)

    def predict_proba(self, X: Any) -> list[np.ndarray]:
        """Probabilities of the candidates of each list; they add up to 1."""
        data = self._question(X)
        return cut(self.model_.ranker().probabilities(data.rows), data.rows.starts)

    def score(self, X: Any, y: Any = None) -> float:
        """The metric's main score of the chosen candidates; more is better.

        Scores of which less is better, as the mean cost, are given a minus sign.

        Examples
        --------
        >>> from hopefear import Reranker
        >>> X, y = [[{"fear": 1}, {"hope": 1}]] * 2, [[1, 0]] * 2
        >>> Reranker("perceptron").fit(X, y).score(X, [[5, 0.5], [0.5, 0.5]])
        -0.5
        """
        found, metric = self.metrics(X, y), self.model_.metric
        return found[metric.main] if metric.higher else -found[metric.main]

    def metrics(self, X: Any, y: Any = None) -> dict[str, float]:
        """Scores of the chosen candidates by name, and how often they are the cheapest."""
        with as_value_errors():
            data = self.model_.encode(self._blocks(X, y), judged=True)
            return scores(data, self.model_.ranker().best(data.rows), self.model_.metric)

    def evaluate(self, X: Any, y: Any = None, *, samples: int = 1000, seed: int = 1) -> ListScores:
        """The model beside the generator's 1-best, the oracle and the worst, with bounds."""
        with as_value_errors():
            return evaluate(self.model_, self._blocks(X, y), samples=samples, seed=seed)

    @staticmethod
    def read(path: str | os.PathLike[str], **reading: Any) -> list[CandidateLists]:
        """Lists of a file, as X; see :func:`hopefear.data.lists.files.read_lists` for options."""
        with as_value_errors():
            return list(blocks_in(path, None, **reading))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file, which :func:`hopefear.load` and :meth:`load` read."""
        self.model_.save(path)

    def to_bytes(self) -> bytes:
        """The model file, in memory."""
        return self.model_.to_bytes()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """A reranker that predicts as the saved one; it cannot go on learning.

        Examples
        --------
        >>> import tempfile
        >>> from hopefear import Reranker
        >>> X, y = [[{"fear": 1}, {"hope": 1}]] * 2, [[1, 0]] * 2
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Reranker("perceptron").fit(X, y).save(f"{folder}/model")
        ...     Reranker.load(f"{folder}/model").predict(X)
        array([1, 1])
        """
        return cls.from_model(RerankModel.load(path))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The reranker whose :meth:`to_bytes` gave these."""
        return cls.from_model(RerankModel.from_bytes(data))

    @classmethod
    def from_model(cls, model: RerankModel) -> Self:
        """A reranker around a model, of the command line too."""
        made = cls()
        records = model.about.get("estimator", {}).get("records")
        made._settle(ListReader(None if records is None else bool(records)), model)
        return made

    @property
    def model_(self) -> RerankModel:
        """The model as it is now."""
        check_is_fitted(self, "_model")
        return self._model

    @property
    def features_(self) -> Any:
        """What is looked at in a candidate: the feature map of the model."""
        return self.model_.features

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_model" in state:  # as its file, so that one way of storing models is enough
            state["_model"] = self.model_.to_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_model" in state:
            self._model = RerankModel.from_bytes(state["_model"])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.input_tags.two_d_array = False
        tags.input_tags.dict = True
        return tags

    def _settle(self, reader: ListReader, model: RerankModel) -> None:
        """Take over a model, with what :meth:`load` needs to read as it does."""
        about = {**model.about, "estimator": {"records": reader.records}}
        self._reader, self._model = reader, replace(model, about=about)

    def _question(self, X: Any) -> ListDataset:
        """Lists, whatever they cost."""
        with as_value_errors():
            return self.model_.encode(self._blocks(X, None, judged=False))

    def _blocks(self, X: Any, y: Any, judged: bool = True) -> list[CandidateLists]:
        check_is_fitted(self, "_model")
        name = self._model.metric.name
        return blocks_of(X, y, reader=self._reader, metric=name, judged=judged)[0]
