"""From Python objects to data that learners read, with errors that say where."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hopefear.data.labels import class_name
from hopefear.data.schemes import Mended, are_spans, detect_scheme, mend, scheme_name
from hopefear.data.sequences import Column, SequenceDataset
from hopefear.data.token_input import TokenInput, Tokens, read_labels
from hopefear.errors import HopefearError
from hopefear.features.attributes import AttributeFeatures, AttributeRows, place
from hopefear.tasks.estimator import sample_weights
from hopefear.tasks.tag.model import encoded
from hopefear.tasks.tag.task import fit_encode, suitable


class Prepared(NamedTuple):
    """Training data, and what it takes to read more of its kind."""

    reader: TokenInput
    labels: list[Any]  # as they were given, in the order of their codes
    scheme: str | None
    data: SequenceDataset


def prepared(
    X: Any,
    y: Any,
    weights: np.ndarray | None = None,
    *,
    features: Any = "auto",
    columns: str | Sequence[str] | None = None,
    classes: Any = None,
    scheme: str | None = "auto",
    scheme_errors: str = "begin",
    min_count: int = 1,
    hash_bits: int | None = None,
    inputs: Callable[[Any], Any] | None = None,
) -> Prepared:
    """Read sequences, choose features and number everything.

    Parameters
    ----------
    X, y, weights
        Sequences of tokens and of labels; a weight for each.
    features, columns, scheme, scheme_errors, min_count, hash_bits
        As in :class:`hopefear.Tagger`.
    classes : sequence of labels, optional
        Labels that come first, in this order, whether y has them or not.
    inputs : callable, optional
        What the learner encodes data with, given templates; the templates unless said.

    Examples
    --------
    >>> prepared([["a", "b"]], [[7, 3]]).data.labels
    ('7', '3')
    """
    reader = TokenInput.of(X, columns, features)
    tokens = reader.read(X)
    check_filled(tokens)
    gold, labels = read_labels(y, tokens.starts)
    if classes is not None:
        labels = distinct_labels(classes)
    spans = are_spans(gold)  # which say what features suit, whatever the scheme is
    scheme = scheme_of(gold, tokens.starts, scheme, scheme_errors)
    if scheme is not None:
        result = mended(gold, tokens.starts, scheme, scheme_errors)
        if not result.keep.all():
            some = np.flatnonzero(result.keep)
            content = tokens.content.take(some)
            tokens = Tokens(content.starts, content, tokens.source)
            weights = None if weights is None else weights[some]
        if result.changes:
            gold, labels = result.labels, list(result.labels.strings) if classes is None else labels
    if features == "auto" and not isinstance(tokens.content, AttributeRows):
        features = suitable(tokens.content.columns, gold.strings, spans)
    if inputs is not None:
        attributes_alone = isinstance(tokens.content, AttributeRows)
        wanted = inputs(None if attributes_alone else features)
        if attributes_alone and wanted is not None:
            raise HopefearError(
                "a network reads words, and these tokens are attributes; give strings or columns"
            )
        features = features if wanted is None else wanted
    feature_map, attributes = _features(tokens, features, min_count, hash_bits)
    names = () if classes is None else tuple(map(class_name, labels))
    data = encoded(tokens, attributes, names, gold, feature_map)
    data = data if weights is None else data.weighted(weights)
    return Prepared(reader, labels, scheme, data)


def labelled(
    tokens: Tokens,
    y: Any,
    features: Any,
    names: Sequence[str],
    scheme: str | None = None,
    scheme_errors: str = "begin",
) -> SequenceDataset:
    """Sequences with labels as a model sees them; labels it does not know come behind its own.

    Labels that the scheme forbids are mended or refused; all sequences stay.
    """
    gold, _ = read_labels(y, tokens.starts)
    if scheme is not None:
        errors = "raise" if scheme_errors == "raise" else "begin"
        gold = mended(gold, tokens.starts, scheme, errors, strangers=True).labels
    return encoded(tokens, features.encode(tokens.content), names, gold, features)


def present(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, np.ndarray | None]:
    """Without the sequences of weight 0: that is absence, from feature tables too.

    >>> present([["a"], ["b"]], [["A"], ["B"]], [0, 2])[:2]
    ([['b']], [['B']])
    """
    if sample_weight is None:
        return X, y, None
    if len(y) != len(X):
        raise HopefearError(f"{len(X)} sequences of tokens, but {len(y)} of labels")
    weights = sample_weights(sample_weight, len(X), "sequences")
    if not weights.any():
        raise HopefearError("every sample weight is zero; there is nothing to learn from")
    if weights.all():
        return X, y, weights
    some = np.flatnonzero(weights)
    return *picked(some, X, y), weights[some]


def picked(numbers: np.ndarray, *columns: Any) -> Any:
    """These items of each of some sequences."""
    return [[column[i] for i in numbers.tolist()] for column in columns]


def mended(gold: Column, starts: np.ndarray, scheme: str, errors: str, **how: Any) -> Mended:
    """Labels that keep to their scheme; what was wrong is a warning."""
    result = mend(gold, starts, scheme, errors, place=lambda k: (place(starts, k), 0), **how)
    if result.message:
        warnings.warn(f"{result.message} (scheme_errors={errors!r})", stacklevel=2)
    return result


def scheme_of(
    gold: Column, starts: np.ndarray, scheme: str | None, errors: str = "begin"
) -> str | None:
    """The tag scheme; what breaks it is named by its place."""
    if scheme is None:
        return None
    if scheme != "auto":
        return scheme_name(scheme)
    try:
        return detect_scheme(gold, starts, place=lambda k: (place(starts, k), 0), errors=errors)
    except HopefearError as error:
        raise HopefearError(f"{error}; mend the labels, or say scheme=None") from None


def check_filled(tokens: Tokens) -> None:
    """Refuse sequences without tokens, which cannot be learned from."""
    empty = np.diff(tokens.starts) == 0
    if empty.any():
        raise HopefearError(f"sequence {int(np.argmax(empty))} has no tokens; leave it out")


def check_known(data: SequenceDataset, n: int) -> None:
    """Refuse labels behind the first n."""
    if data.rows.labels.max(initial=-1) >= n:
        k = int(np.argmax(data.rows.labels >= n))
        name = data.labels[int(data.rows.labels[k])]
        raise HopefearError(
            f"{place(data.rows.starts, k)}: the label {name!r} is not one of "
            f"{', '.join(data.labels[:n][:20])}: a model cannot take on new labels; name all of "
            "them in the first call (classes), or fit again"
        )


def distinct_labels(classes: Any) -> list[Any]:
    """Labels, each once."""
    classes = list(classes)
    return read_labels([classes], np.array([0, len(classes)]))[1]


def same_features(one: Any, other: Any) -> bool:
    """Whether two feature maps give every attribute the same number."""
    if one.to_header() != other.to_header():
        return False
    arrays, others = one.arrays(), other.arrays()
    return arrays.keys() == others.keys() and all(
        np.array_equal(array, others[name]) for name, array in arrays.items()
    )


def _features(
    tokens: Tokens, features: Any, min_count: int, hash_bits: int | None
) -> tuple[Any, Any]:
    content = tokens.content
    if isinstance(content, AttributeRows):
        if hash_bits is not None:
            raise HopefearError(
                "hash_bits is for templates, and these tokens are attributes; leave it out"
            )
        feature_map = AttributeFeatures.fit(content, min_count)
        return feature_map, feature_map.encode(content)
    return fit_encode(features, content, min_count=min_count, hash_bits=hash_bits)
