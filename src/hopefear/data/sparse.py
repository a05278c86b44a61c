"""Sparse rows with labels: what every classifier is trained on, and the kernels over them."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.checks import check_fraction, check_not_negative
from hopefear.core.component import kernel
from hopefear.data.blocks import Spans, span
from hopefear.data.labels import class_codes, classes_of
from hopefear.data.parse_numbers import LARGEST
from hopefear.errors import HopefearError, InputError, Problem
from hopefear.features import FeatureMap, IdentityFeatures, NamedFeatures

_FEW = 40  # below, sorting by comparison is quicker than by bytes


@kernel
def transform_values(indptr, indices, values, weighting, norm, scale, split):
    """New values: 0 as they are, 1 presence, 2 signed log(1 + |v|), times the column's ``scale``.

    An empty ``scale`` is one of ones. ``norm`` 1 is unit length; in a row with columns on both
    sides of ``split``, either side then has the same share of it.
    """
    new = np.empty(len(values), np.float32)
    for i in range(len(indptr) - 1):
        before = behind = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            v = np.float64(values[k])
            if weighting == 1:
                v = 1.0 if v != 0.0 else 0.0
            elif weighting == 2:
                v = np.log1p(v) if v >= 0.0 else -np.log1p(-v)
            if len(scale):
                v *= scale[indices[k]]
            new[k] = v
            if indices[k] < split:
                before += v * v
            else:
                behind += v * v
        if norm == 1:
            scaling = 2.0 if before > 0.0 and behind > 0.0 else 1.0
            before = 1.0 / np.sqrt(scaling * before) if before > 0.0 else 0.0
            behind = 1.0 / np.sqrt(scaling * behind) if behind > 0.0 else 0.0
            for k in range(indptr[i], indptr[i + 1]):
                new[k] = new[k] * (before if indices[k] < split else behind)
    return new


@kernel
def gather_rows(indptr, indices, values, chosen):
    """``(indptr, indices, values)`` of the chosen rows."""
    new_indptr = np.zeros(len(chosen) + 1, np.int64)
    for i in range(len(chosen)):
        new_indptr[i + 1] = new_indptr[i] + indptr[chosen[i] + 1] - indptr[chosen[i]]
    new_indices = np.empty(new_indptr[-1], indices.dtype)
    new_values = np.empty(new_indptr[-1], values.dtype)
    for i in range(len(chosen)):
        size = new_indptr[i + 1] - new_indptr[i]
        for k in range(size):
            new_indices[new_indptr[i] + k] = indices[indptr[chosen[i]] + k]
            new_values[new_indptr[i] + k] = values[indptr[chosen[i]] + k]
    return new_indptr, new_indices, new_values


@kernel
def drop_unknown(indptr, columns, values):
    """The same rows without the places whose column is -1."""
    new_indptr = np.zeros(len(indptr), np.int64)
    new_columns = np.empty(len(columns), np.int32)
    new_values = np.empty(len(values), np.float32)
    out = 0
    for i in range(len(indptr) - 1):
        for k in range(indptr[i], indptr[i + 1]):
            if columns[k] >= 0:
                new_columns[out] = columns[k]
                new_values[out] = values[k]
                out += 1
        new_indptr[i + 1] = out
    return new_indptr, new_columns[:out], new_values[:out]


@kernel
def sort_count_rows(indptr, indices, counts):
    """Order the places of each row by column, in the given arrays; counts are whole numbers."""
    longest = 0
    for i in range(len(indptr) - 1):
        longest = max(longest, indptr[i + 1] - indptr[i])
    keys, scratch = np.empty(longest, np.uint64), np.empty(longest, np.uint64)
    offsets = np.empty(257, np.int64)
    for i in range(len(indptr) - 1):
        begin, size = indptr[i], indptr[i + 1] - indptr[i]
        # Column and count in one integer: sorting those needs no permutation.
        largest = np.uint64(0)
        for k in range(size):
            column = np.uint64(indices[begin + k])
            largest = max(largest, column)
            keys[k] = (column << np.uint64(32)) | np.uint64(counts[begin + k])
        if size < _FEW:
            keys[:size].sort()
        else:
            keys, scratch = sort_by_bytes(keys, scratch, size, largest, offsets)
        for k in range(size):
            indices[begin + k] = keys[k] >> np.uint64(32)
            counts[begin + k] = keys[k] & np.uint64(0xFFFFFFFF)


@kernel
def sort_by_bytes(keys, scratch, size, largest, offsets):
    """Sort ``keys[:size]`` by their upper halves, byte after byte; ``(sorted, the other array)``.

    ``largest`` is the largest upper half; no more bytes are looked at than it has.
    """
    shift = np.uint64(32)
    while largest > 0:
        offsets[:] = 0
        for k in range(size):
            offsets[((keys[k] >> shift) & np.uint64(255)) + np.uint64(1)] += 1
        for b in range(256):
            offsets[b + 1] += offsets[b]
        for k in range(size):
            byte = (keys[k] >> shift) & np.uint64(255)
            scratch[np.uint64(offsets[byte])] = keys[k]
            offsets[byte] += 1
        keys, scratch = scratch, keys
        shift += np.uint64(8)
        largest >>= np.uint64(8)
    return keys, scratch


@kernel
def first_unusable(values):
    """Position of the first value that is nan or beyond LARGEST in size, -1 when there is none."""
    for k in range(len(values)):
        if not abs(values[k]) <= LARGEST:
            return k
    return -1


@kernel
def rows_sound(indptr, indices, labels, n_features, n_classes):
    """Whether every place a kernel would touch exists."""
    for i in range(len(indptr) - 1):
        if indptr[i] > indptr[i + 1] or labels[i] < -1 or labels[i] >= n_classes:
            return False
    smallest, largest = 0, -1
    for k in range(len(indices)):
        smallest, largest = min(smallest, indices[k]), max(largest, indices[k])
    return smallest >= 0 and largest < n_features


def check_rows(rows: SparseRows, n_features: int, n_classes: int) -> None:
    """HopefearError for rows that no reader writes."""
    if not rows_sound(rows.indptr, rows.indices, rows.labels, n_features, n_classes):
        raise HopefearError("a row points outside the arrays")
    for name in ("values", "weights"):
        if not np.isfinite(getattr(rows, name)).all():
            raise HopefearError(f"{name} must be finite numbers")


VALUES = ("counts", "presence", "log", "tfidf", "nb")
MEASURED = ("tfidf", "nb")  # values that need a number for each column, measured on data
NO_SCALE = np.zeros(0, np.float32)
NO_SCALE.flags.writeable = False
_PLAIN = {"tfidf": "counts", "nb": "presence"}  # what that number is multiplied with
NORMS = ("none", "l2")
MOST_FEW = 50  # columns, where these may be values of another unit each


class SparseRows(NamedTuple):
    """The arrays a kernel sees; all read-only and contiguous.

    Row i has the columns ``indices[indptr[i]:indptr[i + 1]]``, rising.
    """

    indptr: np.ndarray  # int64[n + 1]
    indices: np.ndarray  # int32[nnz]
    values: np.ndarray  # float32[nnz]
    labels: np.ndarray  # int32[n], position in classes; -1 = unknown
    weights: np.ndarray  # float32[n]


DTYPES = tuple(np.dtype(t) for t in ("i8", "i4", "f4", "i4", "f4"))  # of SparseRows


class SparseDataset:
    """Rows, and what their columns and labels mean.

    Parameters
    ----------
    rows : SparseRows
        The arrays; other types are converted, and all become read-only.
    n_features : int
        Number of columns.
    classes : sequence of str
        Class names in the order of the label codes.
    features : FeatureMap, optional
        Meaning of the columns; plain numbers by default.
    source : str
        Where the data came from, for messages and model files.
    digest : str, optional
        Known content hash; computed when first asked for otherwise.

    Examples
    --------
    >>> data = SparseDataset.from_csr([[0.0, 2.0], [1.0, 0.0]], ["ham", "spam"])
    >>> data.classes, data.rows.indices.tolist(), data.rows.labels.tolist()
    (('ham', 'spam'), [1, 0], [0, 1])
    """

    offsets = frozenset({"indptr"})

    def __init__(
        self,
        rows: SparseRows,
        n_features: int,
        classes: Sequence[str],
        features: FeatureMap | None = None,
        source: str = "memory",
        digest: str | None = None,
    ) -> None:
        self.rows = SparseRows(*(_frozen(a, t) for a, t in zip(rows, DTYPES, strict=True)))
        self.features = IdentityFeatures(n_features) if features is None else features
        if self.features.size != n_features:
            raise HopefearError(
                f"a dataset of {n_features} columns needs a feature map of that size, "
                f"not of {self.features.size}"
            )
        self.n_features = n_features
        self.classes = tuple(classes)
        self.source = source
        self._scales: dict[str, np.ndarray] = {}  # by ``values``, computed on first use
        self.cache: Any = None  # the CachedArrays beneath the arrays, where there are some
        if digest is not None:
            self.__dict__["digest"] = digest

    def __len__(self) -> int:
        return len(self.rows.labels)

    def spans(self, begin: int, end: int) -> Spans:
        """Returns start and end in each array for the rows from ``begin`` to ``end``."""
        rows, values = (begin, end), span(self, "indptr", begin, end)
        return dict(zip(SparseRows._fields, (rows, values, values, rows, rows), strict=True))

    def __repr__(self) -> str:
        return (
            f"<SparseDataset {self.source}: {len(self)} rows, {self.n_features} features, "
            f"{len(self.rows.indices)} values, {len(self.classes)} classes>"
        )

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the content: shapes, classes and every array."""
        parts = {f: array_digest(a) for f, a in zip(SparseRows._fields, self.rows, strict=True)}
        return content_digest(parts, self.n_features, self.classes)

    @classmethod
    def from_csr(
        cls,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        classes: Sequence[str] | None = None,
    ) -> SparseDataset:
        """Take a SciPy sparse matrix or a dense array; shared, not copied, where types allow.

        Parameters
        ----------
        X : sparse or dense matrix
            One row an example. NaN, infinity and values beyond 1e15 are refused with their place.
        y : sequence, optional
            Labels, numbers or strings; without it every label is unknown.
        sample_weight : sequence of float, optional
            Weight of each row, 1 by default.
        classes : sequence of str, optional
            Class names to use; a label outside them is unknown (-1). By default the labels of y.
        """
        from scipy import sparse

        try:
            matrix = sparse.csr_array(X)
            if matrix.ndim != 2:
                raise ValueError(f"{matrix.ndim} dimensions")
            values = np.asarray(matrix.data, np.float64 if matrix.dtype != np.float32 else None)
        except (TypeError, ValueError) as error:
            raise InputError("X", 0, "a matrix of numbers", Problem(str(error))) from error
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
            values = matrix.data
        n, width = matrix.shape
        if matrix.indices.size and not 0 <= matrix.indices.min() <= matrix.indices.max() < width:
            raise InputError("X", 0, f"columns from 0 to {width - 1}", Problem("X has others"))
        with np.errstate(over="ignore"):
            values = values.astype(np.float32, copy=False)
        bad = first_unusable(values)
        if bad >= 0:
            row = int(np.searchsorted(matrix.indptr, bad, side="right")) - 1
            raise InputError(
                f"X[{row}, {int(matrix.indices[bad])}]",
                0,
                "a number of at most 1e15 in size",
                str(matrix.data[bad]),
            )
        weights = np.ones(n, np.float32) if sample_weight is None else sample_weight
        weights = np.asarray(weights, np.float32)
        labels = np.full(n, -1, np.int32)
        if y is not None:
            y = np.asarray(y)
            classes = classes_of(y) if classes is None else tuple(classes)
            labels = class_codes(y, classes)
        for name, vector in (("y", labels), ("sample_weight", weights)):
            if vector.shape != (n,):
                raise HopefearError(f"X has {n} rows, but {name} has shape {vector.shape}")
        check_not_negative("sample_weight", weights)
        rows = SparseRows(matrix.indptr, matrix.indices, values, labels, weights)
        return cls(rows, width, classes or ())

    @classmethod
    def from_dicts(
        cls, rows: Sequence[Mapping[str, Any]], features: FeatureMap | None = None
    ) -> SparseDataset:
        """Take rows as dicts of numbers and strings, as scikit-learn's ``DictVectorizer`` does.

        Parameters
        ----------
        rows : sequence of dict
            A number is the value of the feature of that name; a string makes the feature
            ``name=string`` of value 1.
        features : NamedFeatures, optional
            Columns to use, as those of a model; other names are left out. Without it they are the
            names of the rows, in the order in which they come.

        Examples
        --------
        >>> data = SparseDataset.from_dicts([{"size": 2, "kind": "a"}, {"kind": "b"}])
        >>> data.features.names(range(3)), data.to_csr().toarray().tolist()
        (['size', 'kind=a', 'kind=b'], [[2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        """
        named = [named_values(row, f"X[{i}]") for i, row in enumerate(rows)]
        if features is None:
            features = NamedFeatures(list(dict.fromkeys(name for row in named for name in row)))
        elif not isinstance(features, NamedFeatures):
            raise HopefearError(
                "X has dicts, and the features of this model have no names; give rows or texts as "
                "it was trained on"
            )
        columns = features.find([name for row in named for name in row])
        values = np.array([value for row in named for value in row.values()], np.float32)
        indptr = np.cumsum([0, *map(len, named)])
        order = np.lexsort((columns, np.repeat(np.arange(len(named)), np.diff(indptr))))
        indptr, columns, values = drop_unknown(indptr, columns[order], values[order])
        labels, weights = np.full(len(named), -1), np.ones(len(named))
        data = SparseRows(indptr, columns, values, labels, weights)
        return cls(data, features.size, (), features, "X")

    def to_csr(self) -> Any:
        """The values as a SciPy CSR array that shares memory with this dataset."""
        from scipy import sparse

        r = self.rows
        return sparse.csr_array((r.values, r.indices, r.indptr), (len(self), self.n_features))

    def transformed(
        self, values: str = "counts", norm: str = "none", scale: np.ndarray | None = None
    ) -> SparseDataset:
        """Values of every row changed; columns, labels and weights shared with this dataset.

        Parameters
        ----------
        values : {"counts", "presence", "log", "tfidf", "nb"}
            As they are; 1 for every value but 0; ``sign(v) * log(1 + |v|)``; or counts or presence
            times a number for each column, see :meth:`column_scale`.
        norm : {"none", "l2"}
            ``l2`` divides each row by its length afterwards. Of a text with n-grams of words and
            of characters, both get the same share.
        scale : array, optional
            The number for each column, where other data decided it; by default of these rows.

        Examples
        --------
        >>> data = SparseDataset.from_csr([[3.0, 0.0, 4.0]])
        >>> data.transformed(norm="l2").rows.values.round(2).tolist()
        [0.6000000238418579, 0.800000011920929]
        """
        check_transform(values, norm)
        if values == "counts" and norm == "none":
            return self
        if values in MEASURED and scale is None:
            scale = self.column_scale(values)
        new = transform_values(
            self.rows.indptr,
            self.rows.indices,
            self.rows.values,
            VALUES.index(_PLAIN.get(values, values)),
            NORMS.index(norm),
            NO_SCALE if scale is None else scale,
            getattr(self.features, "split", self.n_features),
        )
        return self._with(self.rows._replace(values=new))

    def column_scale(self, values: str) -> np.ndarray | None:
        """Returns the factor (float32) of each column for the weighting ``values``.

        With n rows, of which df have a value in the column, ``tfidf`` takes the smooth inverse
        document frequency ``log((1 + n) / (1 + df)) + 1``, and ``nb`` the log-count ratio
        ``|log((p / |p|) / (q / |q|))|``, where p is 1 + the rows of a class that have a value in
        the column, q the same for all other rows, and |p|, |q| are sums over columns; of several
        classes the one with the largest ratio counts. None for other ``values``.

        Notes
        -----
        A row counts as often as its weight says. Wang and Manning's ratio has a sign, which a
        linear model does not need: without it, weights keep their meaning.

        References
        ----------
        Sida Wang and Christopher D. Manning. Baselines and bigrams: simple, good sentiment and
        topic classification. ACL 2012.

        Examples
        --------
        >>> data = SparseDataset.from_csr([[1.0, 2.0], [1.0, 0.0]], ["hope", "fear"])
        >>> data.column_scale("tfidf")
        array([1.       , 1.4054651], dtype=float32)
        >>> data.column_scale("nb")
        array([0.2876821, 0.4054651], dtype=float32)
        """
        if values not in MEASURED:
            return None
        if values not in self._scales:
            measure = _inverse_frequencies if values == "tfidf" else _largest_ratios
            self._scales[values] = _frozen(measure(self), np.dtype(np.float32))
        return self._scales[values]

    def seen(self) -> np.ndarray:
        """Whether each column has a value in some row with a weight (bool)."""
        return _frequencies(self.rows, np.arange(len(self)), self.n_features) > 0.0

    def naive_bayes(self) -> np.ndarray:
        """Weights of a naive Bayes classifier of rows whose values are ``nb``, a row a column.

        The log-count ratio of a class, with its sign, over what :meth:`column_scale` multiplies
        with: from -1 to 1. Two classes have one number, that of the second, else each has its own.

        Examples
        --------
        >>> data = SparseDataset.from_csr([[1.0, 2.0], [1.0, 0.0]], ["hope", "fear"])
        >>> data.classes, data.naive_bayes().tolist()
        (('fear', 'hope'), [[-1.0], [1.0]])
        """
        scale = np.maximum(_largest_ratios(self), np.finfo(np.float32).tiny).astype(np.float32)
        ratios = [np.float32(ratio) / scale for ratio in _log_count_ratios(self)]
        return np.stack(ratios[1:] if len(ratios) == 2 else ratios, axis=1)

    def reweighted(self, weights: np.ndarray) -> SparseDataset:
        """The same rows with other weights."""
        changed = self._with(self.rows._replace(weights=weights))
        changed.cache = self.cache
        return changed

    def renamed(self, features: FeatureMap) -> SparseDataset:
        """The same rows with other names for their columns."""
        changed = SparseDataset(
            self.rows, self.n_features, self.classes, features, self.source, self.digest
        )
        changed.cache = self.cache
        return changed

    def labelled(
        self, labels: np.ndarray, classes: Sequence[str], weights: Any = None
    ) -> SparseDataset:
        """The same rows with labels, which are positions in classes, and maybe other weights."""
        rows = self.rows._replace(labels=labels)
        if weights is not None:
            rows = rows._replace(weights=weights)
        return SparseDataset(rows, self.n_features, classes, self.features, self.source)

    def take(self, rows: Any) -> SparseDataset:
        """The given rows, in the given order; a mask of booleans works too."""
        chosen = np.asarray(rows)
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool else chosen.astype(np.int64)
        if chosen.size and (np.min(chosen) < 0 or np.max(chosen) >= len(self)):
            raise HopefearError(f"rows outside 0 to {len(self) - 1} were asked for")
        if self.cache is not None:
            self.cache.check()
        r = self.rows
        indptr, indices, values = gather_rows(r.indptr, r.indices, r.values, chosen)
        picked = SparseRows(indptr, indices, values, r.labels[chosen], r.weights[chosen])
        return self._with(picked)

    def split(self, fraction: float, seed: int = 1) -> tuple[SparseDataset, SparseDataset]:
        """``(rest, held out)``: a random part of the rows put aside, both in file order.

        Parameters
        ----------
        fraction : float
            Share of the rows to hold out, between 0 and 1.
        seed : int
            The same seed holds out the same rows.
        """
        check_fraction("the held-out fraction", fraction)
        count = min(max(1, round(len(self) * fraction)), len(self) - 1)
        if count < 1:
            raise HopefearError(f"{self.source}: {len(self)} rows are too few to hold some out")
        held = np.zeros(len(self), bool)
        held[np.random.default_rng(seed).permutation(len(self))[:count]] = True
        return self.take(~held), self.take(held)

    def _with(self, rows: SparseRows) -> SparseDataset:
        return SparseDataset(rows, self.n_features, self.classes, self.features, self.source)


def row_sizes(rows: SparseRows) -> np.ndarray:
    """Squared length and number of non-zero values of every row."""
    sizes = np.empty((rows.labels.size, 2))
    _measure_rows(rows.indptr, rows.values, sizes)
    return sizes


@kernel
def _measure_rows(indptr, values, out):
    for i in range(out.shape[0]):
        square, count = 0.0, 0
        for p in range(indptr[i], indptr[i + 1]):
            v = np.float64(values[p])
            square += v * v
            count += v != 0.0
        out[i, 0], out[i, 1] = square, count


def _inverse_frequencies(data: SparseDataset) -> np.ndarray:
    rows = data.rows
    frequencies = _frequencies(rows, np.arange(len(data)), data.n_features)
    n = rows.weights.sum(dtype=np.float64)
    return np.log((1.0 + n) / (1.0 + frequencies)) + 1.0


def _largest_ratios(data: SparseDataset) -> np.ndarray:
    largest = np.zeros(data.n_features)
    for ratio in _log_count_ratios(data):
        np.maximum(largest, np.abs(ratio), out=largest)
    return largest


def _log_count_ratios(data: SparseDataset) -> Iterator[np.ndarray]:
    """Of every class, how much a value in each column speaks for it."""
    rows = data.rows
    if rows.labels.min(initial=0) < 0:
        raise HopefearError(f"{data.source}: values='nb' needs a label on every row")
    frequencies = _frequencies(rows, np.arange(len(data)), data.n_features)
    order = np.argsort(rows.labels, kind="stable")
    ends = np.searchsorted(rows.labels[order], np.arange(len(data.classes) + 1))
    for begin, end in pairwise(ends):
        class_frequencies = _frequencies(rows, order[begin:end], data.n_features)
        p, q = 1.0 + class_frequencies, 1.0 + frequencies - class_frequencies
        yield np.log(p / q) - np.log(p.sum() / q.sum())


@kernel
def _add_frequencies(indptr, indices, values, weights, chosen, frequencies):
    for i in chosen:
        for k in range(indptr[i], indptr[i + 1]):
            frequencies[indices[k]] += weights[i] * (values[k] != 0.0)


def _frequencies(rows: SparseRows, chosen: np.ndarray, n_features: int) -> np.ndarray:
    """Sums the weights of the chosen rows that have a value in each column."""
    frequencies = np.zeros(n_features)
    _add_frequencies(rows.indptr, rows.indices, rows.values, rows.weights, chosen, frequencies)
    return frequencies


def as_dicts(X: Any) -> list[Mapping[str, Any]] | None:
    """``X`` as a list of dicts if it is one; None for anything else.

    >>> as_dicts([{"a": 1}]), as_dicts([[1.0, 2.0]])
    ([{'a': 1}], None)
    """
    if isinstance(X, Mapping) and not hasattr(X, "shape"):  # as SciPy's dictionary of keys has
        raise HopefearError("X is one dict; give a list of dicts, one for each row")
    if isinstance(X, np.ndarray) or hasattr(X, "to_list"):
        X = X.tolist() if X.ndim == 1 else None
    if not isinstance(X, Sequence) or not any(isinstance(row, Mapping) for row in X[:1]):
        return None
    for i, row in enumerate(X):
        if not isinstance(row, Mapping):
            raise HopefearError(f"X has dicts, but X[{i}] is {row!r:.60}; give one for every row")
    return list(X)


def named_values(row: Mapping[str, Any], location: str) -> dict[str, float]:
    """Returns the values of a row by feature name; repeated names are summed.

    >>> named_values({"size": 2, "kind": "a"}, "X[0]")
    {'size': 2.0, 'kind=a': 1.0}
    """
    values: dict[str, float] = {}
    for name, value in row.items():
        if not isinstance(name, str):
            raise HopefearError(f"{location}: the feature {name!r:.60} has no name; give a string")
        if isinstance(value, str):
            name, value = f"{name}={value}", 1.0
        if not isinstance(value, Real | np.bool_) or not abs(float(value)) <= LARGEST:
            raise HopefearError(
                f"{location}: the feature {name!r:.60} needs a string, or a finite number of at "
                f"most 1e15 in size, not {value!r:.60}"
            )
        values[name] = values.get(name, 0.0) + float(value)
    return values


def check_transform(values: str, norm: str) -> None:
    """HopefearError for a transform that does not exist."""
    if values not in VALUES:
        raise HopefearError(f"values must be one of {', '.join(VALUES)}, not {values!r}")
    if norm not in NORMS:
        raise HopefearError(f"norm must be one of {', '.join(NORMS)}, not {norm!r}")


def norm_for(norm: str, features: FeatureMap, rows: int, values: int) -> str:
    """``norm``, or where it is ``auto`` what suits the data: ``none`` for a few filled columns.

    In such rows the length depends on the classes; in texts and sparse rows it does not.

    Parameters
    ----------
    norm : str
        ``auto``, or what is wanted.
    features : FeatureMap
        Meaning of the columns.
    rows, values : int
        Rows of the data, and values in them.

    Examples
    --------
    >>> norm_for("auto", IdentityFeatures(4), 150, 600), norm_for("auto", IdentityFeatures(4), 9, 9)
    ('none', 'l2')
    """
    if norm != "auto":
        return norm
    # Ids of files begin at 1, so that their column 0 is empty.
    filled = 2 * values >= rows * (features.size - 1)
    texts = hasattr(features, "grams")
    return "none" if filled and features.size <= MOST_FEW and not texts else "l2"


def array_digest(array: np.ndarray) -> str:
    """SHA-256 of an array's bytes."""
    return hashlib.sha256(np.ascontiguousarray(array).view(np.uint8).data).hexdigest()


def content_digest(parts: dict[str, str], n_features: int, classes: Sequence[str]) -> str:
    """One hash from those of the arrays; the same for data in memory and in a cache."""
    text = json.dumps([n_features, list(classes), [parts[f] for f in SparseRows._fields]])
    return hashlib.sha256(text.encode()).hexdigest()


def _frozen(array: Any, dtype: np.dtype) -> np.ndarray:
    view = np.ascontiguousarray(array, dtype).view()
    view.flags.writeable = False
    return view
