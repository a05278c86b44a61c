"""What training leaves behind: one weight vector, or a sequence of predictors that vote."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from hopefear.core.interfaces import DROP
from hopefear.errors import ModelError


class LinearPredictor:
    """A single weight vector, kept whole, or as a file has it until somebody asks for all of it.

    Parameters
    ----------
    weights : float array
        All of them.

    Examples
    --------
    >>> LinearPredictor.of(np.array([7]), np.array([2.0], np.float32), 10**9).nnz
    1
    """

    linear: ClassVar[bool] = True

    _sparse: tuple[np.ndarray, np.ndarray] | None = None

    def __init__(self, weights: np.ndarray) -> None:
        self.weights, self.size = weights, len(weights)

    @classmethod
    def of(cls, ids: np.ndarray, values: np.ndarray, size: int) -> LinearPredictor:
        """The predictor of these weights at rising coordinates, out of so many; others are 0."""
        predictor = cls.__new__(cls)
        predictor.size, predictor._sparse = size, (ids, values)
        return predictor

    @functools.cached_property
    def weights(self) -> np.ndarray:
        """All weights."""
        ids, values = self.nonzeros()
        try:
            weights = np.zeros(self.size, values.dtype)
        except (MemoryError, ValueError) as error:
            raise ModelError(f"there is no memory for {self.size:,} weights") from error
        weights[ids] = values
        return weights

    def nonzeros(self) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates that have a weight, rising, and their weights."""
        if self._sparse is not None:
            return self._sparse
        ids = np.flatnonzero(self.weights)
        return ids, self.weights[ids]

    def fits(self, n: int) -> bool:
        """Whether its weights are those of ``n`` coordinates."""
        return self.size == n

    @property
    def keeps_scale(self) -> bool:
        """Whether scores keep their size, so that fixed numbers may be added to them."""
        return True

    def touched(self) -> np.ndarray:
        """Coordinates that have a weight."""
        return self.nonzeros()[0]

    def only(self, kept: np.ndarray) -> LinearPredictor:
        """The predictor of these coordinates, numbered anew."""
        return LinearPredictor(self.weights[kept])

    def block(
        self, start: int, shape: tuple[int, ...]
    ) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
        """Places and values of the non-zero weights from ``start`` on, as a table of this shape.

        >>> LinearPredictor(np.array([9.0, 0.0, 2.0, 3.0])).block(1, (1, 3))
        ((array([0, 0]), array([1, 2])), array([2., 3.]))
        """
        ids, values = self.nonzeros()
        first, after = np.searchsorted(ids, [start, start + math.prod(shape)])
        return np.unravel_index(ids[first:after] - start, shape), values[first:after]

    @property
    def nnz(self) -> int:
        """Number of non-zero weights."""
        return len(self.nonzeros()[0])

    def arrays(self) -> dict[str, np.ndarray]:
        """Only the non-zero weights, with their coordinates."""
        ids, values = self.nonzeros()
        return {
            "weights.ids": ids,
            "weights.values": values,
            "weights.size": np.array([self.size]),
        }


@dataclass(frozen=True)
class VotedPredictor:
    """All predictors there were, kept as lines with a beginning and an end, by coordinate.

    While alive, a line adds ``level - fall * drop`` to a score, up to the scale, which is positive
    and common to all, so it changes no vote.
    """

    coordinates: np.ndarray  # int64[touched]: sorted
    starts: np.ndarray  # int64[touched + 1]: where the lines of a coordinate start
    begin: np.ndarray  # int64[lines]: first predictor a line belongs to
    end: np.ndarray  # int64[lines]: first one it no longer belongs to
    level: np.ndarray  # float64[lines]
    fall: np.ndarray  # float64[lines]
    drops: np.ndarray  # float64[predictors]
    survived: np.ndarray  # float64[predictors + 1]: running sum of c_k

    linear: ClassVar[bool] = False
    no_weights: ClassVar[str] = (
        "a voted model has no single weight for a feature; train with averaging=averaged to "
        "inspect "
        "weights"
    )

    def fits(self, n: int) -> bool:
        """Whether its coordinates are among ``n``."""
        return int(self.coordinates.max(initial=-1)) < n

    @property
    def keeps_scale(self) -> bool:
        """Whether scores keep their size; votes know weights only up to a factor."""
        return False

    def touched(self) -> np.ndarray:
        """Coordinates that any predictor ever used."""
        return self.coordinates

    def only(self, kept: np.ndarray) -> VotedPredictor:
        """The predictor of these coordinates, all there are, numbered anew."""
        return replace(self, coordinates=np.arange(len(kept)))

    @classmethod
    def from_votes(cls, votes: Any, clock: np.ndarray) -> VotedPredictor:
        """Order the updates by coordinate, find where lines end, and add the present predictor."""
        drops = np.append(votes.drops, clock[DROP])
        order = np.argsort(votes.coordinates, kind="stable")
        owner = votes.coordinates[order]
        begin = np.repeat(np.arange(1, drops.size), np.diff(votes.ends))[order]
        m, r, f = votes.lines[order].T
        end = np.full(begin.size, drops.size)
        follows = np.flatnonzero(owner[1:] == owner[:-1])
        end[follows] = begin[follows + 1]
        reach = np.divide(np.abs(m), f, out=np.full(m.size, np.inf), where=f > 0.0)
        end = np.minimum(end, np.searchsorted(drops, reach))
        lives = (m != 0.0) & (begin < end)
        owner, begin, end = owner[lives], begin[lives], end[lives]
        heads = np.flatnonzero(np.diff(owner, prepend=-1))
        return cls(
            owner[heads],
            np.append(heads, owner.size).astype(np.int64),
            begin,
            end,
            (r * m)[lives],
            (r * f * np.sign(m))[lives],
            drops,
            np.append(0.0, np.cumsum(np.append(votes.survived, votes.lived[0]))),
        )

    @property
    def nnz(self) -> int:
        """Number of coordinates that any predictor ever used."""
        return int(self.coordinates.size)

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything, by name."""
        return {f"votes.{field.name}": getattr(self, field.name) for field in fields(self)}


Predictor = LinearPredictor | VotedPredictor
# Imported for models of networks alone.
_NETWORKS = "hopefear.neural.predictor"


def predictor_from_arrays(arrays: Mapping[str, np.ndarray], size: int | None = None) -> Predictor:
    """Rebuild what ``arrays()`` gave; anything inconsistent is a ModelError.

    Parameters
    ----------
    arrays : mapping of str to array
        What is not trusted.
    size : int, optional
        Number of weights there must be, if known; others are refused before they take memory.
    """
    if "weights.ids" in arrays:
        return _checked_weights(arrays, size)
    if "network.spec" in arrays:
        return importlib.import_module(_NETWORKS).NetworkPredictor.from_arrays(arrays)
    return _checked_votes(arrays)


def _checked_weights(arrays: Mapping[str, np.ndarray], wanted: int | None) -> LinearPredictor:
    try:
        ids, values, sizes = (arrays[f"weights.{part}"] for part in ("ids", "values", "size"))
    except KeyError as error:
        raise ModelError(f"the weights lack {error}") from error
    if not (ids.dtype == sizes.dtype == np.int64) or sizes.shape != (1,):
        raise ModelError("the coordinates of the weights are not whole numbers of 64 bits")
    size = int(sizes[0])
    if ids.shape != values.shape or ids.ndim != 1 or not 0 <= size < 2**40:
        raise ModelError("the weights do not fit their coordinates")
    if wanted is not None and size != wanted:
        raise ModelError(
            f"the model's parts do not fit together: {size} weights, {wanted} coordinates expected"
        )
    # Not by differences, which wrap.
    if ids.size and (ids[0] < 0 or ids[-1] >= size or np.any(ids[1:] <= ids[:-1])):
        raise ModelError("the coordinates of the weights are not sorted or not in range")
    with np.errstate(over="ignore"):
        values = values.astype(np.float32)
    if not np.all(np.isfinite(values)):
        raise ModelError("a weight is not finite")
    nonzero = np.flatnonzero(values)
    return LinearPredictor.of(ids[nonzero], values[nonzero], size)


def _checked_votes(arrays: Mapping[str, np.ndarray]) -> VotedPredictor:
    try:
        votes = VotedPredictor(
            *(np.ascontiguousarray(arrays[f"votes.{f.name}"]) for f in fields(VotedPredictor))
        )
    except KeyError as error:
        raise ModelError(f"the votes lack {error}") from error
    n, predictors = votes.begin.size, votes.drops.size
    shapes = {votes.begin.shape, votes.end.shape, votes.level.shape, votes.fall.shape}
    reals = (votes.level, votes.fall, votes.drops, votes.survived)
    places = (votes.coordinates, votes.starts, votes.begin, votes.end)
    sound = (
        shapes == {(n,)}
        and votes.coordinates.ndim == votes.drops.ndim == 1
        and all(a.dtype == np.int64 for a in places)
        and votes.starts.shape == (votes.coordinates.size + 1,)
        and (votes.starts[0], votes.starts[-1]) == (0, n)
        and predictors > 0
        and votes.survived.shape == (predictors + 1,)
        and all(a.dtype == np.float64 for a in reals)
        and all(bool(np.all(np.isfinite(a))) for a in reals)
        # Not by differences, which wrap.
        and all(bool(np.all(a[1:] >= a[:-1])) for a in (votes.starts, votes.drops, votes.survived))
        and bool(np.all(votes.coordinates[1:] > votes.coordinates[:-1]))
        and (n == 0 or (votes.begin.min() >= 0 and votes.end.max() <= predictors))
        and bool(np.all(votes.begin < votes.end))
        # Lines of a coordinate come one after the other.
        and bool(np.isin(np.flatnonzero(votes.begin[1:] < votes.end[:-1]) + 1, votes.starts).all())
        and votes.coordinates.min(initial=0) >= 0
    )
    if not sound:
        raise ModelError("the votes contradict themselves")
    return votes
