"""A trained model: structure, predictor, feature map and signature; predict, save, load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hopefear.data.sparse import SparseDataset, SparseRows
from hopefear.errors import HopefearError, ModelError
from hopefear.features import FeatureMap, from_parts
from hopefear.storage.model_file import ModelFile
from hopefear.structures.classes import Binary, Multiclass
from hopefear.training.predictors import (
    LinearPredictor,
    Predictor,
    VotedPredictor,
    predictor_from_arrays,
)

_STRUCTURES = {"binary": Binary, "multiclass": Multiclass}


@dataclass(frozen=True)
class Model(ModelFile):
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

    structure: Any
    predictor: Predictor
    classes: tuple[str, ...]
    features: FeatureMap
    transform: Mapping[str, str]
    signature: str
    about: Mapping[str, Any] = field(default_factory=dict)

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
        return probabilities(self.predictor, self.decide(dataset)[1])

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
        weights = self._weights().reshape(-1, self.structure.n_parts())
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

    def contributions(self, dataset: SparseDataset, row: int) -> list[tuple[str, float]]:
        """What each feature of a row adds to the score of its class over the runner-up."""
        rows = self.prepared(dataset.take([row]))
        weights = self._weights().reshape(-1, self.structure.n_parts())
        _, scores = self.predictor.decide(self.structure, rows)
        indices, values = rows.indices, rows.values.astype(np.float64)
        if self.structure.bias:
            indices = np.append(indices, self.features.size)
            values = np.append(values, self.structure.bias)
        if scores.shape[1] == 1:
            gain = values * weights[indices, 0] * (1.0 if scores[0, 0] > 0.0 else -1.0)
        else:
            second, first = np.argsort(scores[0], kind="stable")[-2:]
            gain = values * (weights[indices, first] - weights[indices, second])
        order = np.argsort(-np.abs(gain), kind="stable")
        return [(self.feature_name(indices[p]), float(gain[p])) for p in order if gain[p] != 0.0]

    @property
    def nnz(self) -> int:
        """Number of non-zero weights."""
        return self.predictor.nnz

    def _weights(self) -> np.ndarray:
        if isinstance(self.predictor, VotedPredictor):
            raise HopefearError(
                "a voted model has no single weight for a feature; "
                "train with readout=averaged to inspect weights"
            )
        return self.predictor.weights

    def _header(self) -> dict[str, Any]:
        kind = next(k for k, c in _STRUCTURES.items() if isinstance(self.structure, c))
        return {
            "task": "classify",
            "structure": {"kind": kind, **self.structure._asdict()},
            "classes": list(self.classes),
            "features": self.features.to_header(),
            "transform": dict(self.transform),
            "signature": self.signature,
            "about": dict(self.about),
        }

    def _arrays(self) -> dict[str, np.ndarray]:
        return {
            **self.predictor.arrays(),
            **{f"features.{k}": v for k, v in self.features.arrays().items()},
        }

    @classmethod
    def from_file_parts(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Model:
        """A model from what its file holds; nothing in it is trusted."""
        if header.get("task") != "classify":
            raise ModelError(
                f"expected a model for the task 'classify', found {header.get('task')!r}"
            )
        try:
            shape = dict(header["structure"])
            structure = _STRUCTURES[shape.pop("kind")](**shape)
            features = from_parts(
                header["features"],
                {
                    k.removeprefix("features."): v
                    for k, v in arrays.items()
                    if k.startswith("features.")
                },
            )
            classes = tuple(str(name) for name in header["classes"])
            transform = {key: str(header["transform"][key]) for key in ("values", "norm")}
            predictor = predictor_from_arrays(arrays)
            about, signature = dict(header["about"]), str(header["signature"])
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"the model's header is incomplete: {error!r}") from error
        _check_fit(structure, predictor, classes, features)
        return cls(structure, predictor, classes, features, transform, signature, about)


def probabilities(predictor: Predictor, scores: np.ndarray) -> np.ndarray:
    """Class probabilities from the scores of ``Predictor.decide``.

    >>> probabilities(LinearPredictor(np.zeros(1)), np.array([[0.0]])).tolist()
    [[0.5, 0.5]]
    """
    if isinstance(predictor, VotedPredictor):
        if scores.shape[1] == 1:
            return np.hstack([(1.0 - scores) / 2.0, (1.0 + scores) / 2.0])
        rest = (1.0 - scores.sum(axis=1, keepdims=True)) / scores.shape[1]
        return scores + rest  # abstentions are shared out evenly
    if scores.shape[1] == 1:
        scores = np.hstack([-scores / 2.0, scores / 2.0])
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def _check_fit(
    structure: Any, predictor: Predictor, classes: Sequence[str], features: FeatureMap
) -> None:
    n = structure.n_coordinates()
    size = (
        predictor.weights.size
        if isinstance(predictor, LinearPredictor)
        else int(predictor.coordinates.max(initial=-1)) + 1
    )
    if (
        structure.n_labels() != len(classes)
        or structure.n_features != features.size
        or (size != n if isinstance(predictor, LinearPredictor) else size > n)
    ):
        raise ModelError(
            "the model's parts do not fit together: "
            f"{size} weights, {n} coordinates, {len(classes)} classes, "
            f"{features.size} features"
        )
