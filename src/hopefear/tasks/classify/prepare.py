"""From labelled examples to what a classifier is learned from, whoever asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from hopefear.core.checks import sample_weights
from hopefear.data.labels import check_classes, class_codes, class_name
from hopefear.data.sparse import MEASURED, SparseDataset, norm_for
from hopefear.data.text import read_strings
from hopefear.errors import HopefearError, InputError, OptionError
from hopefear.features import FeatureMap
from hopefear.features.ngrams import PLAIN, WHOLE, settled
from hopefear.metrics import Accuracy, classification_scores
from hopefear.tasks import prepare as base
from hopefear.tasks.classify.model import Model
from hopefear.tasks.classify.task import Classification, alike, check_labels
from hopefear.tasks.prepare import Options
from hopefear.training.passes import content_order

# What is counted of texts; their features are made, those of rows are given.
OF_TEXTS: Mapping[str, Any] = {
    "ngrams": "auto",
    "chars": "auto",
    "lowercase": True,
    "marks": "auto",
    "min_count": 1,
    "max_share": 1.0,
    "hash_bits": None,
}
_USUAL = {**OF_TEXTS, "values": "auto", "norm": "auto", "intercept": "auto", "nb_share": 0.0}


@dataclass(frozen=True, kw_only=True)
class Examples:
    """Labelled examples before it is settled what their columns are.

    Parameters
    ----------
    source : str
        Where they came from, for messages.
    read : callable
        From settled options to rows in columns of their own.
    like : callable
        From a feature map and classes to rows in these columns, with these labels.
    texts : bool
        Whether they are texts, whose n-grams are counted.
    held : {"memory", "cache", "stream"}
        Where they are. Of those in memory frequencies can be measured; ``read`` of a cache has
        applied ``values`` and ``norm``; of a stream it gives the first.
    sample : SparseDataset, optional
        Rows in columns of their own, where ``read`` gives wider ones: they decide about ``norm``.
    """

    source: str
    read: Callable[[Options], SparseDataset]
    like: Callable[[FeatureMap, Sequence[str]], SparseDataset]
    texts: bool = False
    held: Literal["memory", "cache", "stream"] = "memory"
    sample: SparseDataset | None = None

    @classmethod
    def of(cls, data: SparseDataset) -> Examples:
        """Returns rows that have their columns as examples."""
        return cls(source=data.source, read=lambda _: data, like=lambda *_: data)

    @classmethod
    def of_objects(
        cls,
        X: Any,
        y: np.ndarray,
        classes: Sequence[str],
        sample_weight: Any = None,
        stream: bool = False,
    ) -> Examples:
        """Returns Python objects as examples.

        Parameters
        ----------
        X : list of str, list of dict, or matrix
            Texts, named values, or rows.
        y : array
            Their labels, which must be among the classes.
        classes : sequence of str
            Names of the labels, in the order of the model.
        sample_weight : sequence of float, optional
            Their weights.
        stream : bool
            Whether more will come.
        """
        codes = class_codes(y, classes)
        if codes.min(initial=0) < 0:
            label = class_name(y[int(np.argmin(codes))])
            raise HopefearError(
                f"the label {label!r} is not one of the classes {list(classes[:20])}: a model "
                "cannot take on new labels; give all of them at the beginning, or fit again"
            )
        kind = type(X[0]) if isinstance(X, list) and X else None
        what = "texts" if kind is str else "rows"
        weights = None if sample_weight is None else sample_weights(sample_weight, len(y), what)

        if weights is not None and not weights.any():
            raise HopefearError("every sample weight is zero; there is nothing to learn from")
        if stream and kind not in (str, None):
            raise HopefearError(
                "a stream of dicts has names nobody knows yet; begin with fit, or give rows of "
                "sklearn.feature_extraction.FeatureHasher"
            )

        def rows(features: Any = None, options: Options | None = None) -> SparseDataset:
            if kind is str:
                data = read_strings(X, features=features, **(options or {}))
            elif kind is not None:
                data = SparseDataset.from_dicts(X, features)
            else:
                data = matrix(X)
            return data.labelled(codes, classes, weights)

        return cls(
            source="X",
            read=lambda options: rows(options=grams_of(options)),
            like=lambda features, _: rows(features),
            texts=kind is str,
            held="stream" if stream else "memory",
        )


@dataclass(frozen=True, kw_only=True)
class Prepared(base.Prepared):
    """Rows that a classifier is learned from."""

    task: Classification
    data: SparseDataset
    stop_on: str = "accuracy"

    def sizes(self) -> dict[str, Any]:
        data = self.data
        return {
            "examples": len(data),
            "features": data.n_features,
            "classes": len(data.classes),
        }

    def held_out(self, examples: Examples | SparseDataset) -> SparseDataset:
        data = self.data
        if not isinstance(examples, SparseDataset):
            examples = examples.like(data.features, data.classes)
        return alike(examples, data)

    def split(self, fraction: float, seed: int) -> tuple[Prepared, SparseDataset]:
        data, dev = split_classes(self.data, fraction, seed)
        return replace(self, data=data), dev

    def judge(
        self, model: Model, test: SparseDataset, n_jobs: int = 1
    ) -> tuple[dict[str, float], np.ndarray]:
        labels, decisions = model.decide(test)
        scores = classification_scores(
            test.rows.labels,
            labels,
            n_classes=len(model.classes),
            probabilities=model.decoder().shares(decisions),
        )
        names = ("error", "accuracy", "f1", "precision", "recall", "log_loss")
        return {key: scores[key] for key in names}, Accuracy().statistics(test.rows.labels, labels)

    def tester(self) -> Accuracy:
        return Accuracy()


def prepare(examples: Examples | SparseDataset, options: Options) -> Prepared:
    """Returns examples as they are learned from.

    Parameters
    ----------
    examples : Examples or SparseDataset
        Texts, or rows.
    options : mapping
        Parameters of :class:`hopefear.Classifier`.

    Examples
    --------
    >>> rows = SparseDataset.from_csr([[2.0, 0.0], [0.0, 1.0]], ["hope", "fear"])
    >>> prepared = prepare(rows, {"values": "log", "norm": "l2"})
    >>> prepared.task.values, prepared.data.classes
    ('log', ('fear', 'hope'))
    """
    if isinstance(examples, SparseDataset):
        examples = Examples.of(examples)
    options = {**_USUAL, **options}
    whole = examples.texts and examples.held == "memory"
    if not examples.texts:
        _refuse_options_of_texts(examples, options)
    if examples.held == "stream":
        _check_stream(examples, options)
    options = settled(options, WHOLE if whole else PLAIN)
    data = examples.read(options)
    if examples.held != "stream":
        check_labels(data)
        check_classes(examples.source, data.classes, len(data), options.get("many_classes", False))
    sample = data if examples.sample is None else examples.sample
    norm = norm_for(options["norm"], sample.features, len(sample), sample.rows.values.size)
    messages: tuple[str, ...] = ()
    if options["norm"] != norm == "none":
        messages = (
            f"{examples.source}: {sample.n_features} columns that most rows fill, so rows keep "
            "their length (--norm l2 divides them by it)",
        )
    weights = options.get("class_weight")
    if isinstance(weights, Mapping):
        weights = {class_name(label): weight for label, weight in weights.items()}
    task = Classification(
        options["intercept"],
        options["values"],
        norm,
        weights,
        transformed=examples.held == "cache",
        nb_share=options["nb_share"],
        texts=whole,
    )
    stop_on = options.get("metric") or "accuracy"
    return Prepared(task=task, data=data, stop_on=stop_on, messages=messages)


def grams_of(options: Options) -> dict[str, Any]:
    """Returns what settled options say of n-grams, as readers of texts want it."""
    grams = {name: options[name] for name in OF_TEXTS}
    return {**grams, "chars": grams["chars"] and tuple(grams["chars"])}


def matrix(X: Any) -> SparseDataset:
    """Returns rows of numbers, sparse or dense; NaN and infinity are refused."""
    try:
        return SparseDataset.from_csr(X)
    except InputError as error:
        raise HopefearError(f"{error}; NaN and infinity are refused") from None


def _refuse_options_of_texts(examples: Examples, options: Options) -> None:
    for name, usual in OF_TEXTS.items():
        if name == "hash_bits" and examples.held == "stream":
            continue  # of columns, which are as many as rows may have
        if options[name] != usual:
            raise OptionError(
                name,
                options[name],
                f"is for texts, and {examples.source} has rows, whose features are given; "
                "leave it out, or give texts (--format tsv)",
            )


def _check_stream(examples: Examples, options: Options) -> None:
    """Refuse what must be measured on all data."""
    if options["values"] in MEASURED:
        reason = "is measured on all examples; begin with fit, or take counts, presence or log"
        raise OptionError("values", options["values"], reason)
    check_part(options)
    if examples.texts and options["hash_bits"] is None:
        raise HopefearError(
            "a stream of texts has n-grams nobody knows yet; give hash_bits, such as 20, or begin "
            "with fit"
        )


def check_part(options: Options) -> None:
    """Refuse what needs all data where a part of it is learned from."""
    if options["nb_share"]:
        raise OptionError("nb_share", options["nb_share"], "needs all the data; leave it out")
    if options.get("class_weight") == "balanced":
        raise OptionError("class_weight", "balanced", "needs all the data; give a dict")


def split_classes(
    data: SparseDataset, fraction: float, seed: int
) -> tuple[SparseDataset, SparseDataset]:
    """``(rest, held out)``: a part of every class put aside, whatever the order of the rows.

    Examples
    --------
    >>> data = SparseDataset.from_csr(np.eye(8), [0, 0, 0, 0, 1, 1, 1, 1])
    >>> rest, held = split_classes(data, 0.25, seed=1)
    >>> rest.rows.labels.tolist(), held.rows.labels.tolist()
    ([0, 0, 0, 1, 1, 1], [0, 1])
    """
    if not 0.0 < fraction < 1.0:
        raise HopefearError(f"validation_fraction must be between 0 and 1, not {fraction}")
    order = content_order(data.rows)
    order = order[data.rows.weights[order] > 0.0]
    order = order[np.random.default_rng(seed).permutation(order.size)]
    order = order[np.argsort(data.rows.labels[order], kind="stable")]
    counts = np.bincount(data.rows.labels[order], minlength=len(data.classes))
    wanted = np.minimum(np.round(counts * fraction), np.maximum(counts - 1, 0))
    place = np.arange(order.size) - np.repeat(np.cumsum(counts) - counts, counts)
    held = place < np.repeat(wanted, counts)
    if not held.any():
        raise HopefearError(
            f"validation_fraction={fraction} of {order.size} rows leaves none to hold out in any "
            "class; give X_val and y_val, or a larger fraction"
        )
    return data.take(np.sort(order[~held])), data.take(np.sort(order[held]))
