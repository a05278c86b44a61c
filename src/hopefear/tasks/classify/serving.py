"""A classifier that is asked in JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from hopefear.data.parse_numbers import LARGEST
from hopefear.data.sparse import SparseDataset, named_values
from hopefear.errors import HopefearError
from hopefear.tasks.classify.model import Model
from hopefear.tasks.serving import Service, measured


class ClassifyService(Service):
    """Classes of texts, or of rows of features.

    Examples
    --------
    >>> from hopefear import Classifier
    >>> model = Classifier("perceptron").fit(["good fun", "so bad"], ["hope", "fear"]).model_
    >>> service = ClassifyService(model)
    >>> service.predict([service.read("all good")])[0]["label"]
    'hope'
    """

    rejects: ClassVar[bool] = True

    def __init__(self, model: Model, tagger: Any = None) -> None:
        super().__init__(model, tagger)
        self.text = hasattr(model.features, "grams")
        self._answers = model.answers()
        self.forms = ("an object of feature: number", f"a list of {model.features.size:,} numbers")
        self.example = {self._name(min(1, model.features.size - 1)): 1.0}
        if self.text:
            self.forms, self.example = ("a text",), "No hope without fear, and no fear without hope"

    def read(self, value: Any) -> Any:
        if self.text:
            if not isinstance(value, str):
                raise self.refuse(value)
            return value
        size = self.model.features.size
        if isinstance(value, dict):
            if hasattr(self.model.features, "find"):
                value = named_values(value, "the input")
            columns, numbers = self._columns(list(value)), list(value.values())
        elif isinstance(value, list) and len(value) == size:
            columns, numbers = np.arange(size, dtype=np.int32), value
        else:
            raise self.refuse(value)
        for number in numbers:
            if type(number) not in (int, float) or not abs(number) <= LARGEST:
                raise HopefearError(
                    f"expected a number of at most 1e15 in size, found {number!r:.60}"
                )
        known = columns >= 0
        return columns[known], np.array(numbers, np.float32)[known]

    def steps(self, one: Any, verb: str, numbers: Mapping[str, int]) -> int:
        size = len(one) if self.text else len(one[0])
        most = numbers.get("n", 1)
        return size // 20 + (200 + numbers["top"] if verb == "explain" else 20 + most)

    def predict(
        self, inputs: Sequence[Any], unknown: float = 0.0, unknown_label: str = "unknown"
    ) -> list[dict[str, Any]]:
        best = [answer["outputs"][0] for answer in self.nbest(inputs, 1)]
        return [
            {"label": one["label"] if p >= unknown else unknown_label, "probability": p}
            for one, p in ((one, one["probability"]) for one in best)
        ]

    def nbest(self, inputs: Sequence[Any], n: int) -> list[dict[str, Any]]:
        names = self.model.classes
        return [
            {
                "outputs": [
                    {"label": names[int(number)], **measured(*facts)}
                    for number, *facts in zip(ranked.labels[:, 0], *ranked[1:], strict=True)
                ]
            }
            for ranked in self._answers.k_best(self.model.prepared(self._data(inputs)), n)
        ]

    def explain(self, one: Any, top: int, place: Mapping[str, int]) -> dict[str, Any]:
        if place:
            raise HopefearError(f"{' and '.join(place)}: an input here has none; leave it out")
        reason = self.model.explain(self._data([one]))
        if self._named:
            names = self.model.about["feature_names"]
            gains = [(names[int(f)] if f.isdigit() else f, x) for f, x in reason.contributions]
            reason = reason._replace(contributions=gains)
        return {"reasons": [reason.facts(top)]}

    def _data(self, inputs: Sequence[Any]) -> SparseDataset:
        if self.text:
            return self.model.counted(list(inputs))
        sizes = [0, *np.cumsum([len(columns) for columns, _ in inputs]).tolist()]
        columns, values = (np.concatenate(parts) for parts in zip(*inputs, strict=True))
        shape = len(inputs), self.model.features.size
        return SparseDataset.from_csr(sparse.csr_array((values, columns, sizes), shape))

    @cached_property
    def _named(self) -> Mapping[str, int] | None:
        """Columns by the names that an estimator was given with its matrix."""
        names = self.model.about.get("feature_names")
        return None if names is None else {name: column for column, name in enumerate(names)}

    def _name(self, column: int) -> str:
        return list(self._named)[column] if self._named else self.model.features.name(column)

    def _columns(self, names: list[str]) -> np.ndarray:
        """Columns of names or of ids as files have them; -1 where the model knows none."""
        features, given = self.model.features, self._named
        if given is not None:
            return np.array([given.get(name, -1) for name in names], np.int32)
        if hasattr(features, "find"):
            return features.find(names)
        try:
            return features.columns(np.array([int(name) for name in names], np.int64))
        except (ValueError, OverflowError):
            odd = next(name for name in names if not name.isdecimal() or len(name) > 18)
            raise HopefearError(
                f"features of this model are numbers, and {odd!r:.60} is none"
            ) from None
