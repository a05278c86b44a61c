"""A trained model: structure, predictor, feature map and signature; predict, save, load."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from hopefear.core.arrays import frozen, vector
from hopefear.core.interfaces import n_weights
from hopefear.data.sparse import (
    MEASURED,
    SparseDataset,
    SparseRows,
    as_dicts,
    check_transform,
)
from hopefear.data.text import as_strings, read_strings
from hopefear.errors import HopefearError, ModelError
from hopefear.features import FeatureMap, from_parts
from hopefear.features.maps import MAX_COLUMNS
from hopefear.storage import field_of, names_of
from hopefear.structures.classes import Binary, Multiclass
from hopefear.tasks import base
from hopefear.training.decoders.classes import ClassDecoder
from hopefear.training.predictors import Predictor, predictor_from_arrays

_STRUCTURES: dict[str, Any] = {"binary": Binary, "multiclass": Multiclass}


@dataclass(frozen=True, repr=False)
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
    scale : array, optional
        What each column is multiplied by, where ``values`` says that it is.
    temperature : float
        Scores under weights are divided by it before they become probabilities.
    """

    task: ClassVar[str] = "classify"
    structure: Any
    predictor: Predictor
    classes: tuple[str, ...]
    features: FeatureMap
    transform: Mapping[str, str]
    signature: str
    about: Mapping[str, Any] = field(default_factory=dict)
    scale: np.ndarray | None = None
    temperature: float = 1.0

    def decoder(self) -> ClassDecoder:
        """What decides about rows."""
        return ClassDecoder(self.structure, self.predictor, self.temperature)

    def decide(self, dataset: SparseDataset | Any) -> tuple[np.ndarray, np.ndarray]:
        """(class positions, scores) of every row of a dataset or a matrix, or of every text.

        Scores have one column for two classes, else one for each.
        """
        return self.decoder().decide(self.prepared(dataset))

    def predict(self, dataset: SparseDataset | Any) -> list[str]:
        """Class names, one a row."""
        labels, _ = self.decide(dataset)
        return [self.classes[i] for i in labels]

    def probabilities(self, dataset: SparseDataset | Any) -> np.ndarray:
        """One column a class: softmax of the scores by the temperature; of a vote, the shares."""
        return self.decoder().probabilities(self.prepared(dataset))

    def prepared(self, dataset: SparseDataset | Any) -> SparseRows:
        """The rows as this model wants them; texts, dicts and matrices have no labels."""
        if not isinstance(dataset, SparseDataset):
            read = self.read(dataset)
            dataset = SparseDataset.from_csr(dataset) if read is None else read
        if dataset.n_features != self.features.size:
            raise HopefearError(
                f"{dataset.source} has {dataset.n_features} features, the model "
                f"{self.features.size}; read the data with the model's feature map"
            )
        return dataset.transformed(**self.transform, scale=self.scale).rows

    def read(self, X: Any) -> SparseDataset | None:
        """Texts or dicts in the columns of this model; None for anything else."""
        texts = as_strings(X)
        if texts is not None:
            return read_strings(texts, features=self.features)
        rows = as_dicts(X)
        return None if rows is None else SparseDataset.from_dicts(rows, self.features)

    def top(self, n: int = 10) -> dict[str, list[tuple[str, float]]]:
        """The heaviest features of every class, heaviest first.

        For two classes the weights of the second one are shown with their sign, and of the first
        one with the opposite sign.
        """
        parts = self.structure.n_parts()
        shape = n_weights(self.structure) // parts, parts
        best = self.heaviest_rows(shape, n, 1.0)
        if parts == 1:
            best = [[(j, -w) for j, w in self.heaviest_rows(shape, n, -1.0)[0]], *best]
        return {
            name: [(self.feature_name(j), weight) for j, weight in pairs]
            for name, pairs in zip(self.classes, best, strict=True)
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
        best, scores = self.decoder().decide(rows)
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
            "temperature": self.temperature,
        }

    def _arrays(self) -> dict[str, np.ndarray]:
        return super()._arrays() | ({} if self.scale is None else {"scale": self.scale})

    @classmethod
    def from_header(
        cls, header: Mapping[str, Any], features: Any, arrays: Any, **common: Any
    ) -> Model:
        shape = dict(field_of(header, "structure", dict))
        kind, bias = _STRUCTURES[shape.pop("kind")], field_of(shape, "bias", float, int)
        for name in kind._fields:
            if name != "bias" and not 0 <= field_of(shape, name, int) <= MAX_COLUMNS:
                raise ModelError(f"{name} is {shape[name]}, beyond {MAX_COLUMNS}")
        if not math.isfinite(bias):
            raise ModelError(f"the value of the constant feature is {bias}, not finite")
        structure, transform = kind(**shape), field_of(header, "transform", dict)
        check_transform(transform["values"], transform["norm"])
        return cls(
            structure,
            predictor_from_arrays(arrays, n_weights(structure)),
            names_of(header, "classes"),
            from_parts(header["features"], features),
            {key: transform[key] for key in ("values", "norm")},
            **common,
            scale=frozen(vector(arrays, "scale", np.float32)) if "scale" in arrays else None,
            temperature=float(field_of({"temperature": 1.0, **header}, "temperature", float, int)),
        )

    def check(self) -> None:
        structure, features = self.structure, self.features.size
        if not 0.0 < self.temperature < np.inf:
            raise ModelError("the temperature must be above zero")
        check_transform(**self.transform)
        n = None if self.scale is None else self.scale.size
        if n != (features if self.transform["values"] in MEASURED else None):
            raise ModelError(
                f"the model's parts do not fit together: values {self.transform['values']}, "
                f"{features} features, and {'no' if n is None else n} numbers to scale them by"
            )
        if self.scale is not None and not (np.isfinite(self.scale) & (self.scale >= 0.0)).all():
            raise ModelError("a number to scale a feature by is negative or not finite")
        fits = structure.n_labels == len(self.classes) and structure.n_features == features
        self.check_size(n_weights(structure), fits)
