"""A trained model: structure, predictor, feature map and signature; predict, save, load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from hopefear.data.sparse import SparseDataset, SparseRows
from hopefear.errors import HopefearError
from hopefear.features import FeatureMap, from_parts
from hopefear.structures.classes import Binary, Multiclass
from hopefear.tasks import base
from hopefear.training.answers import ClassAnswers
from hopefear.training.predictors import Predictor, predictor_from_arrays

_STRUCTURES = {"binary": Binary, "multiclass": Multiclass}


@dataclass(frozen=True)
class Model(base.Model):
    """A classifier that can be trusted, inspected and sent to others.

    Parameters
    ----------
    structure : Structure
        Binary or Multiclass.
    predictor : Predictor
        Weights, or votes.
    classes : tuple of str
        Names of the labels.
    features : FeatureMap
        Meaning of the columns.
    transform : dict
        What is done to every row before it is scored: ``values`` and ``norm``.
    signature : str
        How the model was made, in one line.
    about : dict
        Learner and its parameters, training summary, origin of the data.
    """

    task: ClassVar[str] = "classify"
    structure: Any
    predictor: Predictor
    classes: tuple[str, ...]
    features: FeatureMap
    transform: Mapping[str, str]
    signature: str
    about: Mapping[str, Any] = field(default_factory=dict)

    def answers(self) -> ClassAnswers:
        """What answers questions about rows."""
        return ClassAnswers(self.structure, self.predictor)

    def decide(self, dataset: SparseDataset | Any) -> tuple[np.ndarray, np.ndarray]:
        """(class positions, scores) of every row of a dataset or a matrix.

        Scores have one column for two classes, else one for each.
        """
        return self.predictor.decide(self.structure, self.prepared(dataset))

    def predict(self, dataset: SparseDataset | Any) -> list[str]:
        """Class names, one a row."""
        labels, _ = self.decide(dataset)
        return [self.classes[i] for i in labels]

    def probabilities(self, dataset: SparseDataset | Any) -> np.ndarray:
        """One column a class: logistic or softmax of the scores; of a vote, the shares."""
        return self.answers().probabilities(self.prepared(dataset))

    def prepared(self, dataset: SparseDataset | Any) -> SparseRows:
        """The rows as this model wants them; a matrix counts as a dataset without labels."""
        if not isinstance(dataset, SparseDataset):
            dataset = SparseDataset.from_csr(dataset)
        if dataset.n_features != self.features.size:
            raise HopefearError(
                f"{dataset.source} has {dataset.n_features} features, the model "
                f"{self.features.size}; read the data with the model's feature map"
            )
        return dataset.transformed(**self.transform).rows

    def top(self, n: int = 10) -> dict[str, list[tuple[str, float]]]:
        """The heaviest features of every class, heaviest first.

        For two classes the weights of the second one are shown with their sign, and of the first
        one with the opposite sign.
        """
        weights = self.weights.reshape(-1, self.structure.n_parts())
        columns = [-weights[:, 0], weights[:, 0]] if weights.shape[1] == 1 else list(weights.T)
        return {
            name: [
                (self.feature_name(j), float(column[j]))
                for j in np.argsort(-column, kind="stable")[:n]
                if column[j] > 0.0
            ]
            for name, column in zip(self.classes, columns, strict=True)
        }

    def feature_name(self, column: int) -> str:
        """Name of a column; the one behind the last is the intercept."""
        return "(intercept)" if column == self.features.size else self.features.name(int(column))

    def explain(
        self,
        dataset: SparseDataset,
        row: int = 0,
        label: int | None = None,
        other: int | None = None,
    ) -> base.Explanation:
        """What each feature of a row adds to the score of a class over that of another.

        They are the best class and the runner-up unless ``label`` and ``other`` say which.
        """
        rows = self.prepared(dataset.take([row]))
        weights = self.weights.reshape(-1, self.structure.n_parts())
        if weights.shape[1] == 1:
            weights = weights * np.array([[0.0, 1.0]])
        best, scores = self.predictor.decide(self.structure, rows)
        label = int(best[0]) if label is None else label
        if other is None:
            order = np.argsort(-scores[0], kind="stable").tolist()
            other = 1 - label if len(order) == 1 else next(c for c in order if c != label)
        indices, values = rows.indices, rows.values.astype(np.float64)
        if self.structure.bias:
            indices = np.append(indices, self.features.size)
            values = np.append(values, self.structure.bias)
        gains = values * (weights[indices, label] - weights[indices, other])
        pairs = zip(map(self.feature_name, indices), gains.tolist(), strict=True)
        return base.explanation(self.classes[label], self.classes[other], pairs)

    def own_header(self) -> dict[str, Any]:
        kind = next(k for k, c in _STRUCTURES.items() if type(self.structure) is c)
        return {
            "structure": {"kind": kind, **self.structure._asdict()},
            "classes": list(self.classes),
            "transform": dict(self.transform),
        }

    @classmethod
    def from_header(cls, header, features, arrays, **common: Any) -> Model:
        shape = dict(header["structure"])
        return cls(
            _STRUCTURES[shape.pop("kind")](**shape),
            predictor_from_arrays(arrays),
            tuple(str(name) for name in header["classes"]),
            from_parts(header["features"], features),
            {key: str(header["transform"][key]) for key in ("values", "norm")},
            **common,
        )

    def check(self) -> None:
        structure, features = self.structure, self.features.size
        fits = structure.n_labels() == len(self.classes) and structure.n_features == features
        self.check_size(structure.n_coordinates(), fits)
