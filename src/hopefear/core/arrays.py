"""Arrays that data and feature maps are made of: read-only, checked, growing, of strings."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hopefear.errors import HopefearError, ModelError


def whole_number(header: Mapping[str, Any], key: str, low: int, high: int) -> int:
    """Integer ``header[key]`` in ``[low, high]``, or ModelError."""
    value = header.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ModelError(
            f"feature map: expected {key} to be a whole number from {low} to {high}, "
            f"found {value!r:.60}"
        )
    return value


def vector(arrays: Mapping[str, np.ndarray], name: str, dtype: type) -> np.ndarray:
    """Read-only one-dimensional array of this type, or ModelError."""
    array = arrays.get(name)
    if array is None:
        raise ModelError(f"feature map: the array {name!r} is missing")
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype != np.dtype(dtype):
        raise ModelError(
            f"feature map: expected {name!r} to be a vector of {np.dtype(dtype)}, "
            f"found {getattr(array, 'dtype', type(array).__name__)} "
            f"of shape {getattr(array, 'shape', ())}"
        )
    return frozen(array)


def only_these(arrays: Mapping[str, np.ndarray], allowed: tuple[str, ...]) -> None:
    """ModelError for an array the map does not know."""
    extra = sorted(set(arrays) - set(allowed))
    if extra:
        raise ModelError(f"feature map: unexpected array {extra[0]!r}")


def in_range(array: np.ndarray, name: str, low: int, high: int) -> None:
    """ModelError unless every element is in ``[low, high]``."""
    if array.size and (int(array.min()) < low or int(array.max()) > high):
        raise ModelError(f"feature map: {name!r} has values outside {low} to {high}")


def frozen(array: np.ndarray) -> np.ndarray:
    """The array, contiguous and read-only; shared with the argument where that is possible."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def column_in_range(column: int, size: int) -> int:
    """The column as an int, or an error that names both sides."""
    if not 0 <= column < size:
        raise HopefearError(f"column {column} does not exist: the feature map has {size} columns")
    return int(column)


def frozen_as(array: Any, dtype: np.dtype) -> np.ndarray:
    """The array in this type, contiguous and read-only."""
    array = np.ascontiguousarray(array, dtype)
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def check_rising(ptr: np.ndarray, name: str, n: int, end: int, source: str) -> None:
    """Refuse offsets that would lead out of their array."""
    if ptr.size != n + 1 or ptr[0] != 0 or ptr[-1] != end or (ptr[1:] < ptr[:-1]).any():
        raise HopefearError(f"{source}: {name} must be {n + 1} numbers that rise from 0 to {end}")


def check_range(array: np.ndarray, name: str, low: int, after: int | None, source: str) -> None:
    """Refuse numbers below ``low``, or at ``after`` or above."""
    if not array.size:
        return
    # Seen without a sign, what is below 0 is large: one look at all of it instead of two.
    simple = low == 0 and after is not None and array.dtype.kind == "i"
    if simple and int(array.view(array.dtype.str.replace("i", "u")).max()) < (after or 0):
        return
    least, most = int(array.min()), int(array.max())
    if least < low or (after is not None and most >= after):
        limit = "on" if after is None else f"to {after - 1}"
        raise HopefearError(
            f"{source}: {name} go from {least} to {most}, which is outside of {low} {limit}"
        )


def stretches(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Positions of stretches of these lengths, one after the other."""
    total = int(lengths.sum())
    shift = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return np.arange(total) + shift


def gathered(indptr: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Offsets of these rows on their own, and where their entries are."""
    starts = indptr[rows]
    sizes = indptr[rows + 1] - starts  # of some rows: a mapped pointer is not read as a whole
    return np.concatenate([[0], np.cumsum(sizes)]), stretches(starts, sizes)


class Growing:
    """A vector one appends arrays to; it grows to the size it will need, or doubles.

    Examples
    --------
    >>> import numpy as np
    >>> ids = Growing(np.int32)
    >>> ids.append(np.array([1, 2])); ids.append(np.array([3])); ids.take()
    array([1, 2, 3], dtype=int32)
    """

    def __init__(self, dtype: type, room: int = 1 << 10) -> None:
        self._array: np.ndarray = np.empty(room, dtype)
        self.size = 0

    @property
    def dtype(self) -> np.dtype:
        return self._array.dtype

    def append(self, more: np.ndarray, share: float = 0.0) -> None:
        """Add an array; ``share`` says how much of everything has then come, if known."""
        end = self.size + len(more)
        if end > len(self._array):
            # The unused end of an empty array takes addresses, not memory.
            room = int(1.05 * end / share) if 0.0 < share <= 1.0 else 2 * len(self._array)
            larger = np.empty(max(end, room), self.dtype)
            larger[: self.size] = self._array[: self.size]
            self._array = larger
        self._array[self.size : end] = more
        self.size = end

    def take(self) -> np.ndarray:
        """The content so far, not copied."""
        return self._array[: self.size]

    def widened(self, dtype: type) -> Growing:
        """The same content in a wider type."""
        wide = Growing(dtype, max(1, len(self._array)))
        wide.append(self.take())
        return wide


class Strings(NamedTuple):
    """``text[offsets[i]:offsets[i + 1]]`` is string i, in UTF-8.

    Examples
    --------
    >>> Strings.pack(["hope", "fear"]).get(1)
    'fear'
    """

    text: np.ndarray  # uint8
    offsets: np.ndarray  # int64[n + 1]

    @classmethod
    def pack(cls, strings: Iterable[str]) -> Strings:
        strings = list(strings)
        text = "".join(strings)
        sizes: Iterable[int] = map(len, strings)
        data = text.encode("utf-8", "replace")
        if len(data) > len(text):
            sizes = (len(s.encode("utf-8", "replace")) for s in strings)
        offsets = np.zeros(len(strings) + 1, np.int64)
        np.cumsum(np.fromiter(sizes, np.int64, len(strings)), out=offsets[1:])
        return cls(frozen(np.frombuffer(data, np.uint8)), frozen(offsets))

    @classmethod
    def from_parts(cls, arrays: Mapping[str, np.ndarray], prefix: str) -> Strings:
        text = vector(arrays, f"{prefix}_text", np.uint8)
        offsets = vector(arrays, f"{prefix}_offsets", np.int64)
        if offsets.size == 0 or offsets[0] != 0 or offsets[-1] != text.size:
            raise ModelError(f"feature map: {prefix!r} offsets do not span their text")
        if (offsets[1:] < offsets[:-1]).any():
            raise ModelError(f"feature map: {prefix!r} offsets go backwards")
        return cls(text, offsets)

    @property
    def size(self) -> int:
        return len(self.offsets) - 1

    def get(self, i: int) -> str:
        piece = self.text[self.offsets[i] : self.offsets[i + 1]]
        return piece.tobytes().decode("utf-8", "replace")

    def texts(self) -> list[str]:
        """All of them."""
        text, spans = self.text.tobytes(), pairwise(self.offsets.tolist())
        if text.isascii():
            letters = text.decode("ascii")
            return [letters[a:b] for a, b in spans]
        return [text[a:b].decode("utf-8", "replace") for a, b in spans]

    def arrays(self, prefix: str) -> dict[str, np.ndarray]:
        return {f"{prefix}_text": self.text, f"{prefix}_offsets": self.offsets}


class Texts(Sequence[str]):
    """Strings that are unpacked, all of them, once one is asked for: many columns never are.

    Parameters
    ----------
    packed : Strings
        The strings.

    Examples
    --------
    >>> texts = Texts(Strings.pack(["hope", "fear"]))
    >>> len(texts), texts[1], texts == ["hope", "fear"]
    (2, 'fear', True)
    """

    def __init__(self, packed: Strings) -> None:
        self.packed = packed

    @functools.cached_property
    def _texts(self) -> list[str]:
        return self.packed.texts()

    def __len__(self) -> int:
        return self.packed.size

    def __getitem__(self, i: Any) -> Any:
        return self._texts[i]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._texts == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._texts)
