"""Attributes of tokens by their names, as in CRFsuite: one column for each string seen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.arrays import (
    Strings,
    column_in_range,
    frozen,
    gathered,
    only_these,
    stretches,
    whole_number,
)
from hopefear.core.checks import check_at_least
from hopefear.core.component import kernel
from hopefear.core.hashing import StringTable
from hopefear.errors import HopefearError, ModelError
from hopefear.features.maps import MAX_COLUMNS


class Attributes(NamedTuple):
    """Attributes of tokens, and of the edges that lead to them, as compressed rows.

    Token k has the attributes ``indices[indptr[k]:indptr[k + 1]]``. Empty ``values`` mean that all
    of them are 1. Edge attributes belong to the edge from the token before; ``edge_indptr`` is
    ``[0]`` where there are none.
    """

    indptr: np.ndarray  # int64[tokens + 1]
    indices: np.ndarray  # int32[nnz]
    values: np.ndarray  # float32[nnz] or float32[0]
    edge_indptr: np.ndarray  # int64[tokens + 1] or [0]
    edge_indices: np.ndarray  # int32[edge nnz]
    edge_values: np.ndarray  # float32[edge nnz] or float32[0]


class AttributeRows(NamedTuple):
    """Sequences of tokens whose attributes are strings, each distinct string kept once.

    Token k has the attributes ``strings.get(i) for i in ids[indptr[k]:indptr[k + 1]]``. Empty
    ``values`` mean that all of them are 1.
    """

    starts: np.ndarray  # int64[sequences + 1]
    indptr: np.ndarray  # int64[tokens + 1]
    strings: Strings
    ids: np.ndarray  # int32[nnz]
    values: np.ndarray  # float32[nnz] or float32[0]

    @classmethod
    def of(cls, sequences: Iterable[Sequence[Any]], exact: bool = False) -> AttributeRows:
        """Take in what python-crfsuite takes: lists of strings, or dicts, for every token.

        ``{"w": "dog"}`` is the attribute ``w:dog``, ``{"title": True}`` is ``title``, ``{"len":
        3}`` is ``len`` with the value 3; values in dicts may be dicts, lists and sets, whose names
        follow behind a colon. An attribute that is False or 0 is left out. Sets are taken in
        alphabetical order, as their own differs from run to run. ``bytes`` are read as UTF-8.

        Parameters
        ----------
        sequences : list of lists of tokens
            A token is a dict, or a list, tuple, set or other collection of strings.
        exact : bool
            Keep attributes that are False or 0, and values in float64.

        Examples
        --------
        >>> rows = AttributeRows.of([[["w=a", "bos"], {"w": "b", "len": 2, "in": {"x": True}}]])
        >>> [rows.strings.get(i) for i in rows.ids], rows.values.tolist(), rows.indptr.tolist()
        (['w=a', 'bos', 'w:b', 'len', 'in:x'], [1.0, 1.0, 1.0, 2.0, 1.0], [0, 2, 5])
        """
        starts, tokens = flattened(sequences, "tokens")
        kinds = set(map(type, tokens))
        if kinds <= {list, tuple}:
            return _of_names(starts, tokens)
        if kinds == {dict}:
            try:
                return _of_pairs(starts, _offsets(map(len, tokens)), _all_items(tokens), exact)
            except _NestedError:
                pass
        rows = [list(_flat(token, starts, k)) for k, token in enumerate(tokens)]
        return _of_pairs(starts, _offsets(map(len, rows)), chain.from_iterable(rows), exact)

    def nonzero(self) -> AttributeRows:
        """Returns the rows without attributes of value 0, with values in float32."""
        indptr, ids, values = self.indptr, self.ids, self.values.astype(np.float32, copy=False)
        is_nonzero = values != 0.0
        if not is_nonzero.all():
            indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_nonzero)])[indptr]
            ids, values = ids[is_nonzero], values[is_nonzero]
        if (values == 1.0).all():
            values = np.empty(0, np.float32)
        return AttributeRows(self.starts, indptr, self.strings, ids, values)

    def take(self, indices: np.ndarray) -> AttributeRows:
        """The sequences of these numbers, in this order."""
        lengths = np.diff(self.starts)[indices]
        indptr, entries = gathered(self.indptr, stretches(self.starts[indices], lengths))
        values = self.values[entries] if self.values.size else self.values
        starts = np.concatenate([[0], np.cumsum(lengths)])
        return AttributeRows(starts, indptr, self.strings, self.ids[entries], values)

    def place(self, token: int) -> str:
        """Describes the position of a token, for messages."""
        return place(self.starts, token)


def flattened(sequences: Any, unit: str) -> tuple[np.ndarray, list[Any]]:
    """``(starts, items)`` of a list of lists.

    >>> flattened([["a", "b"], ["c"]], "tokens")
    (array([0, 2, 3]), ['a', 'b', 'c'])
    """
    if isinstance(sequences, str | bytes | Mapping) or not isinstance(sequences, Iterable):
        raise HopefearError(f"expected a list of lists of {unit}, not {sequences!r:.60}")
    sequences = list(sequences)
    for i, sequence in enumerate(sequences):
        if isinstance(sequence, str | bytes | dict) or not hasattr(sequence, "__len__"):
            raise HopefearError(f"sequence {i}: expected a list of {unit}, not {sequence!r:.60}")
    return _offsets(map(len, sequences)), list(chain.from_iterable(sequences))


def place(starts: np.ndarray, k: int) -> str:
    """Describes the position of token ``k`` by the indices i and j of X[i][j].

    >>> place(np.array([0, 2, 5]), 3)
    'sequence 1, token 1'
    """
    i = int(np.searchsorted(starts, k, "right")) - 1
    return f"sequence {i}, token {k - int(starts[i])}"


def renamed(
    starts: np.ndarray,
    indptr: np.ndarray,
    ids: np.ndarray,
    meaning: Sequence[tuple[str, float]],
    exact: bool = False,
) -> AttributeRows:
    """Rows whose raw entries mean attributes with values; those of value 0 are left out.

    Parameters
    ----------
    meaning : sequence of (name, value)
        What entry ``e`` with ``ids[e] == r`` stands for: ``meaning[r]``.
    exact : bool
        As for `AttributeRows.of`.
    """
    table = StringTable()
    names = table.intern(name for name, _ in meaning)
    kind = np.float64 if exact else np.float32
    numbers = np.fromiter((value for _, value in meaning), kind, len(meaning))
    values = np.empty(0, kind) if (numbers == 1.0).all() else numbers[ids]
    rows = AttributeRows(starts, indptr, table.strings(), names[ids], values)
    return rows if exact else rows.nonzero()


class _NestedError(Exception):
    """A value that is no scalar."""


def _of_names(starts: np.ndarray, tokens: list[Any]) -> AttributeRows:
    indptr = _offsets(map(len, tokens))
    table = StringTable()
    try:
        ids = table.intern(chain.from_iterable(tokens))
    except (TypeError, UnicodeEncodeError):
        names = [_checked_name(name, starts, k) for k, token in enumerate(tokens) for name in token]
        table = StringTable()
        ids = table.intern(names)
    return AttributeRows(starts, indptr, table.strings(), ids, np.empty(0, np.float32))


def _of_pairs(
    starts: np.ndarray, indptr: np.ndarray, pairs: Iterable[tuple[Any, Any]], exact: bool
) -> AttributeRows:
    """Rows from ``(name, value)`` pairs; the work is done once for each distinct pair."""
    code: defaultdict[tuple[Any, Any], int] = defaultdict(count().__next__)
    try:
        ids = np.fromiter(map(code.__getitem__, pairs), np.int32, int(indptr[-1]))
    except TypeError:  # not hashable: a nested dict or list, or nonsense
        raise _NestedError from None
    meaning = []
    for raw, (name, value) in enumerate(code):
        if isinstance(value, frozenset | tuple):
            raise _NestedError
        try:
            meaning.append(_attribute(name, value))
        except HopefearError as error:
            token = int(np.searchsorted(indptr, np.argmax(ids == raw), "right")) - 1
            raise HopefearError(f"{place(starts, token)}: {error}") from None
    return renamed(starts, indptr, ids, meaning, exact)


def _all_items(tokens: list[dict[str, Any]]) -> Iterator[tuple[Any, Any]]:
    return chain.from_iterable(map(dict.items, tokens))


def _flat(token: Any, starts: np.ndarray, k: int, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """``(name, value)`` of every attribute of a token, at any depth."""
    if isinstance(token, dict):
        for name, value in token.items():
            name = prefix + _checked_name(name, starts, k)
            if isinstance(value, Collection) and not isinstance(value, str | bytes):
                yield from _flat(value, starts, k, f"{name}:")
            else:
                yield name, value
    elif isinstance(token, Collection) and not isinstance(token, str | bytes):
        for name in sorted(token, key=str) if isinstance(token, set | frozenset) else token:
            yield prefix + _checked_name(name, starts, k), 1.0
    else:
        raise HopefearError(
            f"{place(starts, k)}: a token is a dict or a list of strings, not {token!r:.60}"
        )


def _attribute(name: Any, value: Any) -> tuple[str, float]:
    name = _name(name)
    if isinstance(value, bytes):
        value = _name(value)
    if isinstance(value, str):
        return _name(f"{name}:{value}"), 1.0
    if not isinstance(value, Real | np.bool_):
        raise HopefearError(
            f"the attribute {name!r} needs a string, a number, a truth value, or a dict, list or "
            f"set of these, not {value!r:.60}"
        )
    with np.errstate(over="ignore"):
        number = np.float32(value)
    if not np.isfinite(number):
        raise HopefearError(
            f"the attribute {name!r} needs a finite number within float32, not {value}"
        )
    return name, float(value)


def _name(name: Any) -> str:
    if isinstance(name, bytes):
        try:
            return name.decode()
        except UnicodeDecodeError:
            raise HopefearError(f"the attribute {name!r:.60} is no UTF-8 text") from None
    if not isinstance(name, str):
        raise HopefearError(f"names of attributes are strings, not {name!r:.60}")
    if not name.isascii() and any("\ud800" <= c <= "\udfff" for c in name):
        raise HopefearError(f"the attribute {name!r:.60} is no Unicode text")
    return name


def _checked_name(name: Any, starts: np.ndarray, k: int) -> str:
    try:
        return _name(name)
    except HopefearError as error:
        raise HopefearError(f"{place(starts, k)}: {error}") from None


def _offsets(lengths: Iterable[int]) -> np.ndarray:
    sizes = np.fromiter(lengths, np.int64)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])


class AttributeFeatures:
    """Column j is the j-th attribute seen in training.

    Parameters
    ----------
    strings : Strings
        The attributes, all different.

    Examples
    --------
    >>> rows = AttributeRows.of([[["w=a", "bos"], ["w=b", "w=b"]]])
    >>> features = AttributeFeatures.fit(rows)
    >>> features.size, features.name(2)
    (3, 'w=b')
    >>> encoded = features.encode(AttributeRows.of([[["w=b", "w=c", "bos"]]]))
    >>> encoded.indices.tolist(), encoded.indptr.tolist()
    ([2, 1], [0, 2])
    """

    kind = "attributes"
    edge_size = 0

    def __init__(self, strings: Strings) -> None:
        if strings.size > MAX_COLUMNS:
            raise HopefearError(
                f"{strings.size} distinct attributes, but at most {MAX_COLUMNS} columns"
            )
        self._strings = strings
        self._table = StringTable.of(strings)

    @classmethod
    def fit(cls, rows: AttributeRows, min_count: int = 1) -> AttributeFeatures:
        """Give every attribute a column, in order of first appearance.

        Parameters
        ----------
        rows : AttributeRows
            Training data.
        min_count : int
            Leave out attributes that occur less often, whatever their values; larger gives fewer
            columns.
        """
        check_at_least("min_count", min_count, 1)
        counts = np.bincount(rows.ids, minlength=rows.strings.size)
        return cls(selected(rows.strings, counts >= min_count))

    def encode(self, rows: AttributeRows) -> Attributes:
        """Columns of the attributes, in their order.

        Attributes without a column are dropped. One that a token has twice counts once, with the
        sum of its values.
        """
        columns = self._table.find(rows.strings)
        indptr, indices, values = rows.indptr, columns[rows.ids], rows.values
        if (columns < 0).any():
            is_known = indices >= 0
            indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_known)])[indptr]
            indices = indices[is_known]
            values = values[is_known] if values.size else values
        last = np.full(self.size, -1, np.int64)
        if _repeats(indptr, indices, last):
            if not values.size:
                values = np.ones(len(indices), np.float32)
            last[:] = -1
            with np.errstate(over="ignore"):  # as compiled; checked below
                indptr, indices, values = _merged(indptr, indices, values, last)
            if not np.isfinite(values).all():
                e = int(np.argmin(np.isfinite(values)))
                raise HopefearError(
                    f"{rows.place(int(np.searchsorted(indptr, e, 'right')) - 1)}: the values of "
                    f"{self.name(indices[e])!r} add up to more than float32 holds"
                )
        none, no_values = np.empty(0, np.int32), np.empty(0, np.float32)
        return Attributes(indptr, indices, values, np.zeros(1, np.int64), none, no_values)

    @property
    def size(self) -> int:
        return self._strings.size

    def name(self, column: int) -> str:
        return self._strings.get(column_in_range(column, self.size))

    def names(self, columns: Iterable[int]) -> list[str]:
        return [self.name(c) for c in columns]

    def edge_name(self, column: int) -> str:
        raise HopefearError(f"column {column} does not exist: attributes belong to no edges")

    def to_header(self) -> dict[str, Any]:
        return {"kind": self.kind, "size": self.size}

    def arrays(self) -> dict[str, np.ndarray]:
        return self._strings.arrays("names")

    @classmethod
    def from_parts(
        cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> AttributeFeatures:
        size = whole_number(header, "size", 0, MAX_COLUMNS)
        only_these(arrays, ("names_text", "names_offsets"))
        strings = Strings.from_parts(arrays, "names")
        if strings.size != size:
            raise ModelError(
                f"feature map: the header says {size} attributes, the table has {strings.size}"
            )
        features = cls(strings)
        if features._table.size < size:
            raise ModelError("feature map: an attribute has two columns")
        return features


def selected(strings: Strings, mask: np.ndarray) -> Strings:
    """Returns the strings where a mask is true.

    >>> selected(Strings.pack(["a", "b"]), np.array([False, True])).texts()
    ['b']
    """
    if mask.all():
        return strings
    sizes = np.diff(strings.offsets)
    text = strings.text[np.repeat(mask, sizes)]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[mask])])
    return Strings(frozen(text), frozen(offsets))


@kernel
def _repeats(indptr, indices, last):
    for k in range(len(indptr) - 1):
        for e in range(indptr[k], indptr[k + 1]):
            if last[indices[e]] == k:
                return True
            last[indices[e]] = k
    return False


@kernel
def _merged(indptr, indices, values, last):
    starts = np.zeros(len(indptr), np.int64)
    columns = np.empty(len(indices), np.int32)
    sums = np.empty(len(indices), np.float32)
    size = 0
    for k in range(len(indptr) - 1):
        for e in range(indptr[k], indptr[k + 1]):
            j = indices[e]
            if last[j] >= starts[k]:
                sums[last[j]] += values[e]
            else:
                last[j] = size
                columns[size] = j
                sums[size] = values[e]
                size += 1
        starts[k + 1] = size
    return starts, columns[:size].copy(), sums[:size].copy()
