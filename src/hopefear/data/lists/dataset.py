"""Lists of candidates ready for training: what the N-best structure reads."""

from __future__ import annotations

import copy
import functools
import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.arrays import check_range, check_rising, frozen_as, gathered
from hopefear.core.component import kernel
from hopefear.errors import HopefearError


class ListRows(NamedTuple):
    """The arrays a kernel sees; all read-only and contiguous.

    List i has the candidates ``starts[i] .. starts[i + 1] - 1`` and speaks of the features
    ``features[scopes[i]:scopes[i + 1]]``, each once; candidate c has those at the positions
    ``columns[indptr[c]:indptr[c + 1]]`` among them. So a weight is read, and moved, once for a list
    and not once for each candidate. Values are relative: what most candidates of a list share is
    taken off all of them, which changes no difference between two.
    """

    starts: np.ndarray  # int64[n + 1]
    scopes: np.ndarray  # int64[n + 1]
    features: np.ndarray  # int32, each once in a list
    indptr: np.ndarray  # int64[candidates + 1]
    columns: np.ndarray  # uint16[nnz]; int32 where a list has over 65,536 features
    values: np.ndarray  # float32[nnz]
    offsets: np.ndarray  # float32[candidates]: fixed score b(x, y), no weight learns it
    costs: np.ndarray  # float64[candidates]
    oracles: np.ndarray  # int32[n]: position in the list of the candidate to learn
    weights: np.ndarray  # float32[n]


DTYPES = dict(
    zip(
        ListRows._fields,
        map(np.dtype, ("i8", "i8", "i4", "i8", "i4", "f4", "f4", "f8", "i4", "f4")),
        strict=True,
    )
)


class ListDataset:
    """Lists of candidates ready for training: arrays, and what the features mean.

    Parameters
    ----------
    rows : ListRows
        The arrays; other types are converted, and all become read-only. Those that kernels would
        follow out of bounds are refused.
    features : feature map
        Meaning of the features; has ``size``. None: they may have any number.
    counts : array, optional
        Statistics of each candidate that ``metric`` adds up, one row each.
    metric : str
        The metric behind costs and counts.
    ids : sequence of str, optional
        Name of each list.
    source : str
        Where the data came from, for messages and model files.

    Examples
    --------
    >>> rows = ListRows([0, 2], [0, 1], [7], [0, 0, 1], [0], [1.0], [0, 0], [0.5, 0], [1], [1])
    >>> data = ListDataset(rows)
    >>> len(data), data.n_candidates
    (1, 2)
    """

    def __init__(
        self,
        rows: ListRows,
        features: Any = None,
        counts: np.ndarray | None = None,
        metric: str = "cost",
        ids: Sequence[str] | None = None,
        source: str = "memory",
    ) -> None:
        self.rows = ListRows(*map(frozen_as, rows, _dtypes(rows)))
        self.features = features
        self.counts, self.metric, self.ids = counts, metric, ids
        self.source = source
        self.mapping = None  # in memory, or mapped array by array
        self._check()
        self._check_entries()

    def __len__(self) -> int:
        return len(self.rows.weights)

    @property
    def n_candidates(self) -> int:
        return len(self.rows.costs)

    def __repr__(self) -> str:
        return (
            f"<ListDataset {self.source}: {len(self)} lists, {self.n_candidates} candidates, "
            f"{len(self.rows.values)} values>"
        )

    def _check(self) -> None:
        """Kernels follow these numbers wherever they lead, so all must lie in their arrays."""
        rows, source = self.rows, self.source
        if flat := [name for name, a in rows._asdict().items() if a.ndim != 1]:
            raise HopefearError(f"{source}: {flat[0]} must have one dimension")
        n, candidates = len(rows.weights), len(rows.costs)
        check_rising(rows.starts, "starts", n, candidates, source)
        check_rising(rows.scopes, "scopes", n, len(rows.features), source)
        check_rising(rows.indptr, "indptr", candidates, len(rows.columns), source)
        for name, size in (("values", len(rows.columns)), ("offsets", candidates), ("oracles", n)):
            if len(getattr(rows, name)) != size:
                raise HopefearError(
                    f"{source}: {name} must be {size} numbers, not {len(getattr(rows, name))}"
                )
        lengths = np.diff(rows.starts)
        if n and lengths.min() < 1:
            i = int(lengths.argmin())
            raise HopefearError(f"{source}: list {self.name(i)} has no candidates; leave it out")
        if n and not ((rows.oracles >= 0) & (rows.oracles < lengths)).all():
            raise HopefearError(f"{source}: an oracle lies outside of its list")
        check_finite(rows, ("offsets", "costs"), source)
        weights = rows.weights
        if weights.size and not (weights.min() >= 0.0 and np.isfinite(weights.max())):
            raise HopefearError(f"{source}: weights of lists must be finite and not negative")
        if self.counts is not None and len(self.counts) != candidates:
            raise HopefearError(f"{source}: {candidates} candidates need as many rows of counts")

    def _check_entries(self) -> None:
        """The same for the long arrays."""
        rows, source = self.rows, self.source
        after = None if self.features is None else self.features.size
        check_range(rows.features, "features", 0, after, source)
        if not columns_fit(rows.starts, rows.scopes, rows.indptr, rows.columns):
            raise HopefearError(f"{source}: a column lies outside of the features of its list")
        check_finite(rows, ("values",), source)

    def name(self, i: int) -> str:
        """Name of list ``i``; its number, from 1, where it has none."""
        return self.ids[i] if self.ids is not None else str(i + 1)

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the content."""
        h = hashlib.sha256(self.metric.encode())
        for array in self.rows:
            h.update(str(array.size).encode())
            h.update(array.data)
        return h.hexdigest()

    def take(self, which: Sequence[int] | np.ndarray) -> ListDataset:
        """The lists of these numbers, in this order."""
        which = np.asarray(which, np.int64)
        rows = self.rows
        starts, candidates = gathered(rows.starts, which)
        scopes, features = gathered(rows.scopes, which)
        indptr, entries = gathered(rows.indptr, candidates)
        return ListDataset(
            ListRows(
                starts,
                scopes,
                rows.features[features],
                indptr,
                rows.columns[entries],
                rows.values[entries],
                rows.offsets[candidates],
                rows.costs[candidates],
                rows.oracles[which],
                rows.weights[which],
            ),
            self.features,
            None if self.counts is None else self.counts[candidates],
            self.metric,
            None if self.ids is None else [self.ids[i] for i in which.tolist()],
            self.source,
        )

    def replaced(self, **arrays: Any) -> ListDataset:
        """The same lists with other weights, costs, oracles or offsets."""
        changed = copy.copy(self)
        changed.__dict__.pop("digest", None)
        types = dict(zip(ListRows._fields, _dtypes(self.rows), strict=True))
        changed.rows = self.rows._replace(
            **{name: frozen_as(array, types[name]) for name, array in arrays.items()}
        )
        changed._check()
        if arrays.keys() - {"weights", "costs", "oracles", "offsets"}:
            changed._check_entries()
        return changed


def _dtypes(rows: ListRows) -> tuple[np.dtype, ...]:
    """Types of the arrays; columns are short where that is enough."""
    columns = np.asarray(rows.columns)
    short = columns.dtype == np.uint16 or (
        not columns.size or 0 <= columns.min() <= columns.max() < 1 << 16
    )
    return tuple(np.dtype("u2") if short and name == "columns" else t for name, t in DTYPES.items())


def check_finite(rows: ListRows, names: Sequence[str], source: str) -> None:
    """Refuse numbers that are none."""
    for name in names:
        array = getattr(rows, name)
        if array.size and not (np.isfinite(array.min()) and np.isfinite(array.max())):
            raise HopefearError(f"{source}: {name} must be finite numbers")


@kernel
def columns_fit(starts, scopes, indptr, columns):
    """Whether every column is a feature of its list."""
    for i in range(starts.size - 1):
        room = scopes[i + 1] - scopes[i]
        for e in range(indptr[starts[i]], indptr[starts[i + 1]]):
            if not 0 <= columns[e] < room:
                return False
    return True


def cheapest(costs: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Position in each list of the lowest cost; of equal ones the first (int32).

    >>> cheapest(np.array([2.0, 1.0, 1.0, 5.0]), np.array([0, 3, 4])).tolist()
    [1, 0]
    """
    lengths = np.diff(starts)
    least = np.minimum.reduceat(costs, starts[:-1]) if len(lengths) else costs[:0]
    hits = np.flatnonzero(costs == np.repeat(least, lengths))
    first = np.searchsorted(hits, starts[:-1])
    return (hits[first] - starts[:-1]).astype(np.int32)
