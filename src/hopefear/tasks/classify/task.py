"""The task ``classify``: from a dataset and the name of a learner to a model."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from hopefear.core.checks import check_class_weight
from hopefear.core.learner import Learner
from hopefear.data.blocks import chunks_of, elements
from hopefear.data.sparse import SparseDataset, SparseRows, row_sizes
from hopefear.errors import HopefearError
from hopefear.metrics import classification_scores, score_names, temperature_of
from hopefear.recipes import Scale
from hopefear.recipes.base import times_auto
from hopefear.structures.classes import Binary, Multiclass
from hopefear.tasks import TASKS
from hopefear.tasks.base import Task, Trained, fingerprint
from hopefear.tasks.classify.model import Model
from hopefear.training.decoders.classes import ClassDecoder
from hopefear.training.loop import Fit, LearningWarning
from hopefear.training.online import DivergedError
from hopefear.training.passes import Passes, row_hashes
from hopefear.training.predictors import LinearPredictor, Predictor
from hopefear.training.shards import TooFewExamplesError

DEFAULT_LEARNER = TASKS["classify"].learner
# Examples that are held out for the temperature, at most and at least.
_HELD, _FEWEST = 10_000, 10
_BLOCK = 1 << 20  # rows that are hashed at a time
# What texts are learned by where nothing is said; bench/defaults.py compares.
TEXT_EPOCHS = 10
TEXT_PARAMETERS: Mapping[str, Mapping[str, Any]] = {"adagrad-rda": {"rate": 0.3, "l1": 3e-7}}


@dataclass(frozen=True)
class Classification(Task):
    """Options that only classifiers have; see :class:`~hopefear.Classifier`."""

    name: ClassVar[str] = "classify"
    by_content: ClassVar[bool] = True
    intercept: float | str = "auto"
    values: str = "counts"
    norm: str = "none"
    class_weight: str | Mapping[str, float] | None = None
    transformed: bool = False
    scaled_by: np.ndarray | None = None  # a factor for each column, where earlier data decided it
    nb_share: float = 0.0
    texts: bool = False  # learned from whole, as tf-idf unless said

    @property
    def epochs(self) -> int:  # type: ignore[override]
        return TEXT_EPOCHS if self.texts else Task.epochs

    def parameters(self, params: Mapping[str, Any], learner: str, data: Any) -> Mapping[str, Any]:
        if not self.texts or params.keys() & {"loss", "rule"}:  # which have steps of their own
            return params
        return {**TEXT_PARAMETERS.get(learner, {}), **params}

    def check(self, data: SparseDataset, dev: SparseDataset | None) -> None:
        check_nb_share(self.nb_share, self.values)
        check_labels(data)
        columns = data.rows.indices
        if (
            self.norm == "l2"
            and data.n_features <= 2
            and columns.size
            and (columns.min() == columns.max() and not hasattr(data.features, "grams"))
        ):
            raise HopefearError(
                f"{data.source} has one column, and norm l2 leaves nothing of its values but the "
                "sign; leave norm out, or say none"
            )
        if dev is not None:
            alike(dev, data)

    def prepared(self, data: SparseDataset) -> SparseDataset:
        if not self.transformed:
            data = data.transformed(self.values, self.norm, self.column_scale(data))
        return weighted(data, self.class_weight)

    def column_scale(self, data: SparseDataset) -> np.ndarray | None:
        """What ``values`` multiplies each column by, if it does."""
        return data.column_scale(self.values) if self.scaled_by is None else self.scaled_by

    def composed(
        self, passes: Passes, build: Callable[[Scale], Learner], params: Mapping[str, Any]
    ) -> tuple[Any, Learner]:
        auto = self.intercept == "auto"
        measured = auto or times_auto(params.get("rate", "auto")) is not None
        square, count = (float(m) for m in passes.means(row_sizes)) if measured else (1.0, 1.0)
        bias = typical_value(square, count) if auto else self.intercept
        if not (isinstance(bias, Real) and math.isfinite(bias)):
            raise HopefearError(
                f"intercept must be 'auto' or a finite number, not {self.intercept!r}"
            )
        bias = float(bias)
        scale = Scale(square + bias**2 or 1.0, passes.n)
        return structure_for(passes.dataset, bias), build(scale)

    def check_together(self, structure: Any, learner: Any, data: SparseDataset) -> None:
        if self.nb_share and not learner.batch and not learner.averaging.keeps_scale:
            raise HopefearError(
                "nb_share mixes weights with those of naive Bayes, and votes have none; use "
                "averaging=averaged"
            )

    def score_names(self, data: SparseDataset) -> set[str]:
        return score_names(len(data.classes))

    def evaluator(
        self, structure: Any, data: SparseDataset, dev: SparseDataset, n_jobs: int
    ) -> Callable[[Predictor], dict[str, float]]:
        held_out = dev.transformed(self.values, self.norm, self.column_scale(data))

        def evaluate(predictor: Predictor) -> dict[str, float]:
            return evaluate_predictor(self.mixed(predictor, structure, data), structure, held_out)

        return evaluate

    def mixed(self, predictor: Any, structure: Any, data: SparseDataset) -> Any:
        """The predictor, with the share of naive Bayes in its weights that was asked for.

        ``(1 - nb_share) w + nb_share mean(|w|) r``, where r are the weights of naive Bayes.
        """
        if not self.nb_share:
            return predictor
        weights = predictor.weights.reshape(-1, structure.n_parts()) * (1.0 - self.nb_share)
        own = weights[: data.n_features]  # all but those of the intercept
        size = np.abs(own).mean(dtype=np.float64) / (1.0 - self.nb_share)
        own += self.nb_share * size * data.naive_bayes()
        return LinearPredictor(weights.astype(predictor.weights.dtype).ravel())

    def words(self, data: SparseDataset) -> dict[str, Any]:
        options = {name: getattr(self, name) for name in ("intercept", "values", "norm")}
        if self.nb_share:
            options["nb_share"] = self.nb_share
        if self.class_weight is not None:
            options["class_weight"] = self.class_weight
            if isinstance(self.class_weight, Mapping):
                prices = sorted((name, float(w)) for name, w in self.class_weight.items())
                options["class_weight"] = fingerprint(json.dumps(prices).encode())
        usual = {"intercept": "auto", "values": "counts", "norm": "none"}
        return {name: value for name, value in options.items() if value != usual.get(name)}

    def identity(self, data: SparseDataset, structure: Any) -> dict[str, Any]:
        return {
            "intercept": structure.bias,
            "values": self.values,
            "norm": self.norm,
            "class_weight": self.class_weight and str(self.class_weight),
        }

    def needs_temperature(self, learner: Any, predictor: Predictor) -> bool:
        return predictor.keeps_scale  # one of several classes is no part of any loss but log

    def fitted_temperature(
        self,
        structure: Any,
        predictor: Any,
        data: SparseDataset,
        dev: SparseDataset | None,
        n_jobs: int,
        again: Callable[[Any], Trained],
    ) -> float:
        """On dev, or on either half of the data with a model of the other."""
        if dev is not None:
            rows = dev.transformed(self.values, self.norm, self.column_scale(data)).rows
            mixed = self.mixed(predictor, structure, data)
            scores = ClassDecoder(structure, mixed).scores(rows)
            return temperature_of(scores, rows.labels, rows.weights)
        hashes = self._hashes(data)
        some, weights = data.rows.weights > 0.0, data.rows.weights
        folds = [some & (hashes < np.uint64(min(0.5, _HELD / len(data)) * 2.0**64))]
        if len(data) <= 2 * _HELD:
            folds.append(some & ~folds[0])
        parts = []
        for held in folds:
            classes = np.unique(data.rows.labels[some & ~held])
            if classes.size < 2 or weights[held].sum() < _FEWEST:
                return 1.0
            rest = data.reweighted(np.where(held, np.float32(0.0), weights))
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", LearningWarning)  # which was said already
                    model = again(rest).model
            except (TooFewExamplesError, DivergedError):
                return 1.0
            rows = self._unseen(data.take(held), rest)
            scores = model.decoder().scores(rows)
            parts.append((scores, rows.labels, rows.weights))
        return temperature_of(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def _unseen(self, data: SparseDataset, rest: SparseDataset) -> SparseRows:
        """Rows as those of a file that comes when ``rest`` has been learned."""
        if self.transformed:
            return data.rows
        if data.features.kind in ("ngrams", "named"):  # a reader leaves out what is not known
            known = rest.seen()[data.rows.indices]
            rows = data.rows._replace(values=np.where(known, data.rows.values, np.float32(0.0)))
            data = SparseDataset(rows, data.n_features, data.classes, data.features)
        return data.transformed(self.values, self.norm, rest.column_scale(self.values)).rows

    def _hashes(self, data: SparseDataset) -> np.ndarray:
        """A hash of what every row holds: copies stay together, whatever the order."""
        rows, hashes = self.prepared(data).rows, np.zeros(len(data), np.uint64)
        for a in range(0, len(data), _BLOCK):  # which a file may lie beneath
            labels = rows.labels[a : a + _BLOCK]
            some = rows.indptr[a : a + _BLOCK + 1], rows.indices, rows.values.view(np.uint32)
            weights = np.zeros(labels.size, np.uint32)
            hashes[a : a + _BLOCK] = row_hashes(*some, labels, weights)
        return hashes

    def facts(self, data: SparseDataset) -> dict[str, Any]:
        return {"examples": len(data), "features": data.n_features}

    def summary(self, result: Fit) -> dict[str, Any]:
        trainer = result.trainer
        return {
            "examples": trainer.examples,
            "updates": trainer.updates,
            "mistakes": trainer.mistakes,
            "loss": trainer.loss,
            "last_nnz": trainer.support()[0],
            **super().summary(result),
        }

    def model(
        self,
        data: Any,
        structure: Any,
        predictor: Any,
        temperature: float,
        signature: str,
        about: dict[str, Any],
    ) -> Model:
        transform, scale = {"values": self.values, "norm": self.norm}, self.column_scale(data)
        meaning = data.classes, data.features, transform
        predictor = self.mixed(predictor, structure, data)
        about = {**about, **({"nb_share": self.nb_share} if self.nb_share else {})}
        return Model(structure, predictor, *meaning, signature, about, scale, temperature)


def structure_for(data: SparseDataset, bias: float) -> Any:
    """Binary for two classes, Multiclass for more."""
    if len(data.classes) == 2:
        return Binary(data.n_features, bias)
    return Multiclass(data.n_features, len(data.classes), bias)


def typical_value(square: float, count: float) -> float:
    """Root mean square of a feature value, in float32, from the means of a row; 1 without any.

    >>> typical_value(square=8.0, count=2.0)
    2.0
    """
    return float(np.float32(np.sqrt(square / count))) if square > 0.0 else 1.0


def evaluate_predictor(predictor: Predictor, structure: Any, data: SparseDataset) -> dict[str, Any]:
    """Accuracy, error, precision, recall, F1 and log loss, in percent where they are shares."""
    decoder = ClassDecoder(structure, predictor)
    labels, scores = decoder.decide(data.rows)
    return classification_scores(
        data.rows.labels,
        labels,
        n_classes=len(data.classes),
        probabilities=decoder.shares(scores),
    )


def check_nb_share(share: Any, values: str) -> None:
    """HopefearError for a share of naive Bayes that weights cannot have."""
    if isinstance(share, bool) or not isinstance(share, Real) or not 0 <= float(share) < 1:
        raise HopefearError(f"nb_share must be from 0 to below 1, not {share!r}")
    if share and values != "nb":
        raise HopefearError(
            f"nb_share={share:g} mixes in naive Bayes, which knows values='nb', not {values!r}; "
            "give values='nb', or leave nb_share out"
        )


def check_labels(dataset: SparseDataset) -> None:
    """Training needs a label on every row, and two different ones."""
    if not len(dataset):
        raise HopefearError(f"{dataset.source}: there are no examples to learn from")
    present, before = np.zeros(len(dataset.classes), bool), 0
    for labels, weights in chunks_of(dataset, "labels", "weights"):
        if labels.min() < 0:
            raise HopefearError(
                f"{dataset.source}: example {before + int(np.argmin(labels)) + 1} has no label; "
                "every training example needs one"
            )
        present |= np.bincount(labels[weights > 0.0], minlength=present.size) > 0
        before += labels.size
    if present.sum() < 2:
        only = dataset.classes[int(np.argmax(present))] if present.any() else "none"
        raise HopefearError(
            f"{dataset.source}: expected at least two classes, found one class "
            f"only ({only!r}); there is nothing to tell apart"
        )


def alike(dev: SparseDataset, dataset: SparseDataset) -> SparseDataset:
    """``dev``, if its columns and label codes mean what those of ``dataset`` mean."""
    if dev.n_features != dataset.n_features or dev.classes != dataset.classes:
        raise HopefearError(
            f"{dev.source} has {dev.n_features} features and the classes "
            f"{list(dev.classes[:20])}, {dataset.source} has {dataset.n_features} "
            f"and {list(dataset.classes[:20])}; read the one with the features "
            "and classes of the other"
        )
    return dev


def weighted(data: SparseDataset, class_weight: str | Mapping[str, float] | None) -> SparseDataset:
    """The data with its example weights multiplied by those of their classes."""
    check_class_weight(class_weight, data.classes)
    if class_weight is None:
        return data
    labels, weights = elements(data, "labels"), elements(data, "weights")
    if isinstance(class_weight, Mapping):
        factors = np.array([float(class_weight.get(name, 1.0)) for name in data.classes])
    else:
        counts = np.bincount(labels, weights=weights, minlength=len(data.classes))
        factors = counts.sum() / (len(data.classes) * np.maximum(counts, 1e-12))
    return data.reweighted(weights * factors[labels].astype(np.float32))
