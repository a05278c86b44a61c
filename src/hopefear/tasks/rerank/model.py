"""A trained reranker: weights and feature map; score, rank, choose, explain, save, load."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.dataset import BASELINES, ListDataset, encoded
from hopefear.errors import HopefearError, ModelError
from hopefear.features.parts import list_features_from_parts
from hopefear.metrics.lists import GivenCost, ListMetric, metric_named
from hopefear.storage import field_of
from hopefear.structures.nbest import NBest
from hopefear.tasks.base import Explanation, Model, explanation
from hopefear.training.decoders.lists import ListDecoder
from hopefear.training.predictors import Predictor, predictor_from_arrays

_MOST = 1000  # of any number that a metric depends on
Lists: TypeAlias = CandidateLists | Iterable[CandidateLists] | ListDataset


@dataclass(frozen=True, repr=False)
class RerankModel(Model):
    """A reranker that can be trusted, inspected and sent to others.

    Lists may be given as they were read (one block or several of
    :class:`~hopefear.data.lists.candidates.CandidateLists`) or encoded by :meth:`encode`.

    Parameters
    ----------
    predictor : Predictor
        Weights, or votes.
    features : ListFeatures
        What is looked at in a candidate. A file gets those that have a weight.
    baseline : {"feature", "offset", "none"}
        What the generator's score is: a feature, a fixed part of every score, or ignored.
    temperature : float
        Scores are divided by it before they become probabilities.
    metric : ListMetric
        How good a choice is.
    signature : str
        How the model was made, in one line.
    about : dict
        Learner and its parameters, training summary, origin of the data.

    Examples
    --------
    >>> from hopefear.data.generators import candidate_lists
    >>> from hopefear.tasks.base import train
    >>> from hopefear.tasks.rerank.prepare import dataset
    >>> from hopefear.tasks.rerank.task import Reranking
    >>> lists = candidate_lists(40, seed=1)
    >>> model = train(Reranking(), dataset(lists), "perceptron", epochs=2).model
    >>> model.predict(lists).shape
    (40,)
    """

    task: ClassVar[str] = "rerank"
    predictor: Predictor
    features: Any
    baseline: str = "feature"
    temperature: float = 1.0
    metric: ListMetric = field(default_factory=GivenCost)
    signature: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)

    def ranker(self) -> ListDecoder:
        """What answers questions about lists."""
        return ListDecoder(NBest(self.features.size), self.predictor, self.temperature)

    def encode(self, lists: Lists, judged: bool = False) -> ListDataset:
        """Lists as this model sees them; ``judged`` asks for the cost of every candidate."""
        if isinstance(lists, ListDataset):
            check_features(lists, self.features)
            return lists
        metric = self.metric if judged else None
        return encoded(lists, self.features, self.baseline, metric=metric, judged=judged)

    def score(self, lists: Lists) -> np.ndarray:
        """Scores of all candidates, list after list (float64)."""
        return self.ranker().scores(self.encode(lists).rows)

    def predict(self, lists: Lists) -> np.ndarray:
        """Position of the best candidate of each list (int64); of equal ones the first."""
        return self.ranker().predict(self.encode(lists).rows)

    def explain(
        self, lists: Lists, i: int = 0, one: int | None = None, other: int | None = None
    ) -> Explanation:
        """What puts candidate ``one`` of list ``i`` before candidate ``other``.

        They are the best candidate and the next unless said. A feature contributes its weight
        times the difference of its values; all of them, and the generator's score where it is
        fixed, add up to the difference of the scores.
        """
        rows = self.encode(lists).take([i]).rows
        order = self.ranker().ranked(rows).tolist()
        one = order[0] if one is None else one
        if other is None:
            if len(order) < 2:
                raise HopefearError(f"list {i} has one candidate, which beats no other")
            other = next(c for c in order if c != one)
        local = np.zeros(len(rows.features))
        for candidate, sign in ((one, 1.0), (other, -1.0)):
            if not 0 <= candidate < len(rows.costs):
                raise HopefearError(f"list {i} has {len(rows.costs)} candidates, no {candidate}")
            entries = slice(rows.indptr[candidate], rows.indptr[candidate + 1])
            local[rows.columns[entries]] += sign * rows.values[entries]
        parts = (local * self.weights[rows.features]).tolist()
        pairs = [
            (self.features.name(int(j)), gain)
            for j, gain in zip(rows.features, parts, strict=True)
            if gain
        ]
        reason = explanation(one, other, pairs)
        if fixed := float(rows.offsets[one] - rows.offsets[other]):
            gains = [("the generator's score, fixed", fixed), *reason.contributions]
            return reason._replace(gap=reason.gap + fixed, contributions=gains)
        return reason

    def top(self, n: int = 10) -> list[tuple[str, float]]:
        """The features that speak most for a candidate, heaviest first."""
        return self._extreme(n, 1.0)

    def bottom(self, n: int = 10) -> list[tuple[str, float]]:
        """The features that speak most against a candidate, lowest weight first."""
        return self._extreme(n, -1.0)

    def _extreme(self, n: int, sign: float) -> list[tuple[str, float]]:
        turned = sign * self.weights
        best = np.argsort(-turned, kind="stable")[: max(0, n)].tolist()
        return [(self.features.name(j), float(self.weights[j])) for j in best if turned[j] > 0.0]

    @functools.cached_property
    def compact(self) -> RerankModel:
        """The same model with only those features that have a weight; it chooses the same."""
        used = self.predictor.touched()
        if len(used) == self.features.size:
            return self
        return replace(
            self, predictor=self.predictor.only(used), features=self.features.selected(used)
        )

    def own_header(self) -> dict[str, Any]:
        return {
            "baseline": self.baseline,
            "temperature": self.temperature,
            "metric": {"name": self.metric.name, "parameters": self.metric.parameters()},
        }

    @classmethod
    def from_header(
        cls, header: Mapping[str, Any], features: Any, arrays: Any, **common: Any
    ) -> RerankModel:
        mapping = list_features_from_parts(header["features"], features)
        return cls(
            predictor_from_arrays(arrays, mapping.size),
            mapping,
            field_of(header, "baseline", str),
            float(field_of(header, "temperature", float, int)),
            _metric(header["metric"]),
            **common,
        )

    def check(self) -> None:
        if self.baseline not in BASELINES or not 0.0 < self.temperature < np.inf:
            raise ModelError(
                f"the baseline must be one of {', '.join(BASELINES)} and the temperature above zero"
            )
        fits = self.features.extraction.score == (self.baseline == "feature")
        fits = fits and (self.predictor.linear or self.baseline != "offset")
        self.check_size(self.features.size, fits)


def _metric(header: Mapping[str, Any]) -> ListMetric:
    """The metric that a file names; its parameters must be of the usual types and sizes."""
    name, parameters = field_of(header, "name", str), dict(header["parameters"])
    usual = metric_named(name).parameters()
    for key, value in parameters.items():
        like = usual.get(key)
        fits = type(value) is type(like) or (like is None and isinstance(value, int | float))
        if not fits or (isinstance(value, int | float) and not abs(value) <= _MOST):
            raise ModelError(f"the metric {name} cannot have {key}={value!r:.60}")
    return metric_named(name, **parameters)


def check_features(data: ListDataset, features: Any) -> None:
    """Refuse data whose features have other numbers; kernels would look beyond the weights."""
    size = None if data.features is None else data.features.size
    if size != features.size:
        raise HopefearError(
            f"{data.source} has {size} features, the model {features.size}; read the data with "
            "the model's feature map"
        )
