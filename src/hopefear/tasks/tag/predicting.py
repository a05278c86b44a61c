"""What every tagger can be asked: labels, lists, probabilities, scores, reasons, a file."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hopefear.data.labels import class_name
from hopefear.data.schemes import Constraints
from hopefear.data.sequences import SequenceDataset
from hopefear.data.token_input import TokenInput, read_allowed
from hopefear.errors import HopefearError
from hopefear.tasks.estimator import as_value_errors
from hopefear.tasks.tag.model import SequenceModel, encoded
from hopefear.tasks.tag.preparing import labelled
from hopefear.tasks.tag.task import scores


class Output(NamedTuple):
    """One of the n best label sequences."""

    labels: list[Any]
    probability: float  # under the whole model
    share: float  # of the probability of the n
    score: float


class Span(NamedTuple):
    """Tokens ``first .. after - 1`` of a sequence, and the probability that this span is there."""

    first: int
    after: int
    kind: str
    probability: float


class SequencePredictor(BaseEstimator):
    """A fitted tagger; estimators that learn one inherit from it.

    Attributes
    ----------
    classes_ : array
        The labels in order of first appearance.
    scheme_ : str or None
        Tag scheme of the labels.
    model_ : SequenceModel
        What predicts; can be saved, inspected and used without scikit-learn.
    """

    _reader: TokenInput
    _model: SequenceModel
    classes_: np.ndarray
    scheme_: str | None

    def predict(
        self, X: Any, constrained: bool | Constraints = True, allowed: Any = None
    ) -> list[list[Any]]:
        """The best labels of every sequence.

        Parameters
        ----------
        X : list of lists of tokens
            Sequences as for :meth:`fit`.
        constrained : bool or Constraints
            Follow the tag scheme, if the labels have one; False permits any labels, and
            :class:`~hopefear.data.schemes.Constraints` those of your own.
        allowed : list of lists, optional
            For every sequence, for every token: the labels it may have, or None for any.

        Examples
        --------
        >>> from hopefear import Tagger
        >>> tagger = Tagger("perceptron").fit([["a", "b"]], [["A", "B"]])
        >>> tagger.predict([["a", "a"]], allowed=[[None, ["B"]]])
        [['A', 'B']]
        """
        with as_value_errors():
            data, how = self._question(X, constrained, allowed)
            tags = self.model_.decoder(**how).best(data.rows)
        return _cut(self.classes_[tags].tolist(), data.rows.starts)

    def predict_single(self, x: Any) -> list[Any]:
        """The best labels of one sequence."""
        return self.predict([x])[0]

    def predict_nbest(
        self, X: Any, n: int = 5, constrained: bool | Constraints = True, allowed: Any = None
    ) -> list[list[Output]]:
        """The n best label sequences of every sequence, best first; fewer where there are fewer.

        Parameters
        ----------
        X, constrained, allowed
            As for :meth:`predict`.
        n : int
            How many.

        Examples
        --------
        >>> from hopefear import Tagger
        >>> tagger = Tagger("crf").fit([["a", "b"]], [["A", "B"]])
        >>> [output.labels for output in tagger.predict_nbest([["a"]], n=2)[0]]
        [['A'], ['B']]
        """
        with as_value_errors():
            data, how = self._question(X, constrained, allowed)
            found = self.model_.decoder(**how).nbest(data.rows, n)
        return [
            [
                Output(*one)
                for one in zip(
                    self.classes_[ranked.labels].tolist(),
                    ranked.probabilities.tolist(),
                    ranked.shares.tolist(),
                    ranked.scores.tolist(),
                    strict=True,
                )
            ]
            for ranked in found
        ]

    def predict_marginals(
        self, X: Any, constrained: bool | Constraints = True, allowed: Any = None
    ) -> list[list[dict[Any, float]]]:
        """For every token the probability of each label, summed over all label sequences.

        The most probable label of each token need not be the one of the best sequence.
        """
        with as_value_errors():
            data, how = self._question(X, constrained, allowed)
            table = self.model_.decoder(**how).probabilities(data.rows)
        labels = self.classes_.tolist()
        dicts = [dict(zip(labels, row, strict=True)) for row in table.tolist()]
        return _cut(dicts, data.rows.starts)

    def predict_marginals_single(self, x: Any) -> list[dict[Any, float]]:
        """Label probabilities of one sequence."""
        return self.predict_marginals([x])[0]

    def predict_spans(
        self, X: Any, constrained: bool | Constraints = True, allowed: Any = None
    ) -> list[list[Span]]:
        """The spans that the best labels of every sequence spell, with their probabilities.

        Parameters
        ----------
        X, constrained, allowed
            As for :meth:`predict`; the labels must have a tag scheme.

        Examples
        --------
        >>> from hopefear import Tagger
        >>> X, y = [["Ann", "Lee", "sings"]] * 2, [["B-P", "I-P", "O"]] * 2
        >>> [span[:3] for span in Tagger("crf").fit(X, y).predict_spans(X[:1])[0]]
        [(0, 2, 'P')]
        """
        with as_value_errors():
            data, how = self._question(X, constrained, allowed)
            tags = self.model_.decoder(**how).best(data.rows)
            del how["n_jobs"]
            found = self.model_.span_probabilities(data, tags, **how)
        starts = data.rows.starts
        spans: list[list[Span]] = [[] for _ in range(len(data))]
        for first, after, kind, probability in found:
            i = int(np.searchsorted(starts, first, "right")) - 1
            before = int(starts[i])
            spans[i].append(Span(int(first) - before, int(after) - before, kind, probability))
        return spans

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the tokens that get the right label; weights are those of sequences.

        For spans, see :meth:`metrics`.
        """
        data, tags = self._judged(X, y)
        lengths = np.diff(data.rows.starts)
        right = np.diff(
            np.concatenate([[0], np.cumsum(tags == data.rows.labels)])[data.rows.starts]
        )
        weights = np.ones(len(data)) if sample_weight is None else sample_weight
        with as_value_errors():
            weights = data.weighted(weights).rows.weights.astype(np.float64)
            if weights @ lengths == 0.0:
                raise HopefearError("there are no tokens to score; give some, of weight above 0")
        return float(weights @ right / (weights @ lengths))

    def metrics(self, X: Any, y: Any) -> dict[str, float]:
        """Scores in percent: accuracy of tokens and sequences, and of spans where there are any.

        Examples
        --------
        >>> from hopefear import Tagger
        >>> X, y = [["Ann", "sings"], ["Bo", "sings"]], [["B-P", "O"], ["B-P", "O"]]
        >>> sorted(Tagger("perceptron").fit(X, y).metrics(X, y))
        ['accuracy', 'f1', 'precision', 'recall', 'sentence_accuracy']
        """
        data, tags = self._judged(X, y)
        return scores(data, tags, self.scheme_)

    def explain(self, X: Any, sequence: int = 0, token: int = 0, **how: Any) -> Any:
        """What made the label of a token beat the runner-up; see ``SequenceModel.explain``."""
        with as_value_errors():
            data, _ = self._question(X)
            return self.model_.explain(data, sequence, token, **how)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file, which :func:`hopefear.load` and :meth:`load` read."""
        self.model_.save(path)

    def to_bytes(self) -> bytes:
        """The model file, in memory."""
        return self.model_.to_bytes()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """A tagger that predicts as the saved one; it cannot go on learning.

        Examples
        --------
        >>> import tempfile
        >>> from hopefear import Tagger
        >>> tagger = Tagger("perceptron").fit([["a", "b"]], [[1, 2]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tagger.save(f"{folder}/model")
        ...     Tagger.load(f"{folder}/model").predict([["b"]])
        [[2]]
        """
        return cls.from_model(SequenceModel.load(path))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The tagger whose :meth:`to_bytes` gave these."""
        return cls.from_model(SequenceModel.from_bytes(data))

    @classmethod
    def from_model(cls, model: SequenceModel) -> Self:
        """A tagger around a model, of the command line too: tokens are what its features need."""
        about = model.about.get("estimator", {})
        columns = about.get("columns", getattr(model.features, "needs", ()))
        labels: list[Any] = list(model.labels)
        if about.get("labels") == "whole numbers":
            labels = list(map(int, labels))
        made = cls()
        made._settle(TokenInput(tuple(columns)), labels, about.get("scheme", model.scheme), model)
        return made

    @property
    def model_(self) -> SequenceModel:
        """The model as it is now."""
        check_is_fitted(self, "classes_")
        return self._model

    @property
    def features_(self) -> Any:
        """What attributes mean: the feature map of the model."""
        check_is_fitted(self, "classes_")
        return self._model.features

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_model" in state:  # as its file, so that one way of storing models is enough
            state["_model"] = self.model_.to_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_model" in state:
            self._model = SequenceModel.from_bytes(state["_model"])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.input_tags.dict = True
        return tags

    def _settle(
        self, reader: TokenInput, labels: list[Any], scheme: str | None, model: SequenceModel
    ) -> None:
        """Take over a model, with what :meth:`load` needs to read and label as it does."""
        whole = not isinstance(labels[0], str)
        about = {
            "columns": list(reader.columns),
            "labels": "whole numbers" if whole else "strings",
            "scheme": scheme,
        }
        self._reader, self.scheme_ = reader, scheme
        self.classes_ = np.empty(len(labels), object)
        self.classes_[:] = labels
        self._model = replace(model, about={**model.about, "estimator": about})

    def _jobs(self) -> int:
        return 1

    def _question(
        self, X: Any, constrained: bool | Constraints = True, allowed: Any = None
    ) -> tuple[SequenceDataset, dict[str, Any]]:
        """Sequences without labels, and how they are searched."""
        check_is_fitted(self, "classes_")
        tokens, features = self._reader.read(X), self.features_
        attributes = features.encode(tokens.content)
        data = encoded(tokens, attributes, self._model.labels, None, features)
        if allowed is not None:
            known = {label: class_name(label) for label in self.classes_.tolist()}
            allowed = read_allowed(allowed, tokens.starts, known)
        how = {"constrained": constrained, "allowed": allowed, "n_jobs": self._jobs()}
        return data, how

    def _judged(self, X: Any, y: Any) -> tuple[SequenceDataset, np.ndarray]:
        """Sequences with their labels, and the labels they get."""
        check_is_fitted(self, "classes_")
        with as_value_errors():
            data = labelled(self._reader.read(X), y, self.features_, self._model.labels)
            return data, self.model_.decoder(n_jobs=self._jobs()).best(data.rows)


def _cut(items: list[Any], starts: np.ndarray) -> list[list[Any]]:
    return [items[a:b] for a, b in pairwise(starts.tolist())]
