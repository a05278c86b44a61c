"""The container of models and checkpoints: one file that cannot run code.

A container is laid out as follows; integers are little-endian.

    bytes 0-7      the magic ``HOPEFEAR``
    bytes 8-11     format number
    bytes 12-19    length of the manifest
    bytes 20-51    SHA-256 of bytes 0-19 followed by the manifest
    manifest       JSON: format, kind, header, and length and SHA-256 of every section;
                   padded with spaces so that the next section starts at a multiple of 64
    arrays         a safetensors file

The first 52 bytes mean the same in every format, so damage and a newer format can be told apart.
Every byte is under a hash, which finds accidents; hashes are not signatures, so the arrays'
offsets are checked too and a forged file can at worst hold wrong numbers.
"""

from __future__ import annotations

import json
import math
import os
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import numpy as np

from hopefear.errors import HopefearError, ModelError, NewerFormatError
from hopefear.storage.atomic import Buffer, write_atomically

FORMAT = 1
MAGIC = b"HOPEFEAR"

_PRELUDE = struct.Struct("<8sIQ")
_START = _PRELUDE.size + sha256().digest_size
_ALIGNMENT = 64
_DTYPES = {
    "BOOL": np.dtype(np.bool_),
    "I8": np.dtype("<i1"),
    "I16": np.dtype("<i2"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
    "U8": np.dtype("<u1"),
    "U16": np.dtype("<u2"),
    "U32": np.dtype("<u4"),
    "U64": np.dtype("<u8"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}
_DEPTH = 40  # lists and objects inside of each other; real headers have about ten
_SURROGATE = re.compile("[\ud800-\udfff]")
_MALFORMED = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)

Header = dict[str, Any]
Arrays = dict[str, np.ndarray]


def pack(
    header: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    *,
    kind: str = "model",
    finite: Iterable[str] = (),
) -> bytes:
    """One container as bytes; the same content always gives the same bytes.

    Parameters
    ----------
    header : dict
        Any JSON value. Tuples are read back as lists and keys as strings.
    arrays : dict of str to ndarray
        Booleans, integers, float32 and float64 of any shape; byte order and strides are normalised.
    kind : str
        What the file is, ``model`` or ``checkpoint``; readers refuse another kind.
    finite : iterable of str
        Arrays in which a NaN or an infinity is refused.

    Examples
    --------
    >>> data = pack({"task": "classify"}, {"w": np.array([0.5, -1.0])})
    >>> header, arrays = unpack(data, kind="model")
    >>> header, arrays["w"].tolist()
    ({'task': 'classify'}, [0.5, -1.0])
    """
    return b"".join(_pieces(header, arrays, kind, finite))


def unpack(data: Buffer, *, kind: str, name: str = "the data") -> tuple[Header, Arrays]:
    """Header and arrays of a container, after every byte of it has been checked.

    The arrays are read-only views of ``data`` (copies only where ``data`` is badly aligned).

    Parameters
    ----------
    data : bytes
        Everything the container holds, and nothing after it.
    kind : str
        Kind the caller can use.
    name : str
        How error messages call the data; :func:`load` gives the path.

    Raises
    ------
    ModelError
        When the data are empty, cut short, changed, not a container, of another kind, or made by
        a newer version.
    """
    view = memoryview(data).cast("B").toreadonly()
    manifest, start = _read_manifest(view, name)
    actual = manifest["kind"]
    if actual != kind:
        raise ModelError(f"{name} is a {actual}, not a {kind}; give a {kind} file")
    section = manifest["sections"]["arrays"]
    end = start + section["length"]
    if len(view) < end:
        raise ModelError(
            f"{name} is truncated: {len(view):,} of {end:,} bytes are there; fetch it again"
        )
    if len(view) > end:
        raise ModelError(
            f"{name} is damaged: {len(view) - end:,} bytes follow its end; fetch it again"
        )
    body = view[start:end]
    if sha256(body).hexdigest() != section["sha256"]:
        raise _damaged(name, "its arrays")
    try:
        return manifest["header"], _read_arrays(body)
    except _MALFORMED as error:
        raise _damaged(name, "the layout of its arrays") from error


def save(
    path: str | os.PathLike[str],
    kind: str,
    header: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    *,
    finite: Iterable[str] = (),
) -> None:
    """Write a container atomically; :func:`pack` and :func:`write_atomically` in one step.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "tiny.model")
    >>> save(path, "model", {"labels": ["no", "yes"]}, {"w": np.zeros(2, np.float32)})
    >>> load(path, "model")[0]["labels"]
    ['no', 'yes']
    >>> folder.cleanup()
    """
    write_atomically(path, _pieces(header, arrays, kind, finite))


def load(path: str | os.PathLike[str], kind: str) -> tuple[Header, Arrays]:
    """Read a container from a file; errors as in :func:`unpack`, naming the file."""
    name = os.fspath(path)
    try:
        # Unbuffered: a buffer is joined to the rest, which would hold the file twice.
        with open(name, "rb", buffering=0) as file:
            data = file.read(len(MAGIC))
            if data == MAGIC:  # a huge file of another sort is refused unread
                if file.seekable():
                    file.seek(0)
                    data = b""
                data += file.readall()
    except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"cannot read {name}: {reason}") from error
    return unpack(data, kind=kind, name=name)


@contextmanager
def untrusted(name: str, remedy: str = "") -> Iterator[None]:
    """Turns any error in reading a file into a ModelError that names the file.

    Parameters
    ----------
    name : str
        How messages call it.
    remedy : str
        What to do about it.

    Examples
    --------
    >>> with untrusted("a.model"):
    ...     len(3)
    Traceback (most recent call last):
    hopefear.errors.ModelError: a.model makes no sense: object of type 'int' has no len()
    """
    try:
        yield
    except NewerFormatError:
        raise
    except (*_MALFORMED, MemoryError, HopefearError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        joint = ":" if isinstance(error, ModelError) else " makes no sense:"
        end = remedy and f"; {remedy}"
        raise ModelError(f"{name}{joint} {reason:.300}{end}") from error


def field_of(header: Mapping[str, Any], name: str, *types: type) -> Any:
    """Returns a field of a header; raises ModelError unless it has one of ``types``.

    Examples
    --------
    >>> field_of({"order": 2}, "order", int)
    2
    """
    if name not in header:
        raise ModelError(f"{name} is missing")
    value = header[name]
    if type(value) not in types:
        expected = " or ".join(kind.__name__ for kind in types)
        raise ModelError(f"{name} is {value!r:.60}, not of the type {expected}")
    return value


def names_of(header: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Distinct strings that a header lists under a name, or ModelError.

    Examples
    --------
    >>> names_of({"labels": ["N", "V"]}, "labels")
    ('N', 'V')
    """
    names = field_of(header, name, list)
    if not names or not all(type(value) is str for value in names) or len(set(names)) != len(names):
        raise ModelError(f"{name} is {names!r:.60}, not a list of different names")
    return tuple(names)


def array_of(
    arrays: Mapping[str, np.ndarray], name: str, dtype: Any, shape: tuple[int | None, ...]
) -> np.ndarray:
    """The array of that name, or ModelError unless it has this type and shape; None is any size.

    Examples
    --------
    >>> array_of({"w": np.zeros((2, 3))}, "w", np.float64, (None, 3)).shape
    (2, 3)
    """
    array = arrays.get(name)
    if array is None:
        raise ModelError(f"the array {name} is missing")
    fits = array.ndim == len(shape) and all(
        length in (None, size) for length, size in zip(shape, array.shape, strict=True)
    )
    if array.dtype != dtype or not fits:
        sizes = " × ".join("any" if size is None else str(size) for size in shape)
        raise ModelError(
            f"the array {name} is {array.dtype} of shape {array.shape}, "
            f"not {np.dtype(dtype)} of {sizes}"
        )
    return array


def _pieces(
    header: Mapping[str, Any], arrays: Mapping[str, np.ndarray], kind: str, finite: Iterable[str]
) -> list[bytes]:
    from safetensors.numpy import save as to_safetensors

    for name in finite:
        _check_finite(name, arrays[name])
    body = to_safetensors({name: _storable(name, arrays[name]) for name in sorted(arrays)})
    manifest = {
        "format": FORMAT,
        "kind": kind,
        "header": header,
        "sections": {"arrays": {"length": len(body), "sha256": sha256(body).hexdigest()}},
    }
    try:
        text = json.dumps(manifest, sort_keys=True, separators=(",", ":"), allow_nan=False)
        check_plain(json.loads(text))
    except (TypeError, ValueError, RecursionError) as error:
        raise HopefearError(
            f"the header of a {kind} must be plain JSON without NaN or infinity: {error}"
        ) from error
    encoded = text.encode("ascii")
    encoded += b" " * (-(_START + len(encoded)) % _ALIGNMENT)
    prelude = _PRELUDE.pack(MAGIC, FORMAT, len(encoded))
    return [prelude, sha256(prelude + encoded).digest(), encoded, body]


def _read_manifest(view: memoryview, name: str) -> tuple[dict[str, Any], int]:
    if not len(view):
        raise ModelError(f"{name} is empty; was it written by hopefear?")
    if view[: len(MAGIC)] != MAGIC[: len(view)]:
        raise ModelError(f"{name} is not a hopefear file; give one that hopefear saved")
    if len(view) < _START:
        raise ModelError(f"{name} is truncated: it ends after {len(view)} bytes; fetch it again")
    _, number, length = _PRELUDE.unpack_from(view)
    start = _START + length
    if start > len(view) and number <= FORMAT:
        raise ModelError(
            f"{name} is truncated or damaged: it says {start:,} bytes and more, "
            f"and has {len(view):,}; fetch it again"
        )
    digest = sha256(view[: _PRELUDE.size])
    digest.update(view[_START:start])
    sound = digest.digest() == view[_PRELUDE.size : _START]
    if number > FORMAT:
        newer = (
            f"{name} was made by a newer version (format {number}, this one reads up to {FORMAT})"
        )
        if sound:
            raise NewerFormatError(f"{newer}; upgrade hopefear")
        raise ModelError(f"{newer}, unless it is damaged; upgrade hopefear")
    if not sound:
        raise _damaged(name, "its header")
    try:
        manifest = json.loads(bytes(view[_START:start]), parse_constant=_refuse_constant)
        check_plain(manifest)
        section = manifest["sections"]["arrays"]
        well_formed = (
            manifest["format"] == number
            and list(manifest["sections"]) == ["arrays"]
            and isinstance(manifest["header"], dict)
            and isinstance(manifest["kind"], str)
            and isinstance(section["sha256"], str)
            and _is_size(section["length"])
        )
    except _MALFORMED as error:
        raise _damaged(name, "its manifest") from error
    if not well_formed:
        raise _damaged(name, "its manifest")
    return manifest, start


def _read_arrays(body: memoryview) -> Arrays:
    # safetensors' own reader copies every array; these are views of the one buffer.
    start = 8 + int.from_bytes(body[:8], "little")
    table = json.loads(bytes(body[8:start]))
    arrays: Arrays = {}
    expected = 0
    for name, entry in sorted(table.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        dtype, shape = _DTYPES[entry["dtype"]], entry["shape"]
        if not all(_is_size(number) for number in (begin, end, *shape)) or begin != expected:
            raise ValueError(f"offsets of {name}")
        count = math.prod(shape)
        if end - begin != count * dtype.itemsize or start + end > len(body):
            raise ValueError(f"size of {name}")
        flat = np.frombuffer(body, dtype, count, start + begin) if count else np.empty(0, dtype)
        if dtype == np.bool_ and count and np.max(flat.view(np.uint8)) > 1:
            raise ValueError(f"booleans of {name}")
        array = np.require(flat, requirements="A").reshape(shape)
        array.flags.writeable = False
        arrays[name] = array
        expected = end
    if start + expected != len(body):
        raise ValueError("bytes between arrays")
    return arrays


def _storable(name: str, array: np.ndarray) -> np.ndarray:
    if name == "__metadata__":
        raise HopefearError("an array cannot be called __metadata__, a word of safetensors")
    dtype = array.dtype.newbyteorder("<")
    if dtype not in _DTYPES.values():
        allowed = "booleans, integers of 8 to 64 bits, float32 and float64"
        raise HopefearError(f"array {name} is {array.dtype}; a file holds {allowed}")
    return np.asarray(array, dtype=dtype, order="C")


def _check_finite(name: str, array: np.ndarray) -> None:
    if array.dtype.kind != "f":
        return
    # The sum is finite only if every term is, and needs no temporary; overflow is checked further.
    with np.errstate(all="ignore"):
        if np.isfinite(array.sum(dtype=np.float64)):
            return
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise HopefearError(
            f"array {name} holds {array.flat[bad[0]]} at {bad[0]}: nothing was written; "
            "lower the rate or scale the features"
        )


def _damaged(name: str, section: str) -> ModelError:
    return ModelError(f"{name} is damaged: {section} changed since it was written; fetch it again")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def check_plain(value: Any) -> None:
    """ValueError for JSON that later steps could neither walk through nor write as UTF-8."""
    level = [value]
    for _ in range(_DEPTH):
        strings = [item for item in level if type(item) is str]
        if any(map(_SURROGATE.search, strings)):
            raise ValueError("a string with half of a surrogate pair, which UTF-8 cannot hold")
        pairs = [item for item in level if type(item) is dict]
        lists = [item for item in level if type(item) is list]
        level = [item for items in (*lists, *pairs, *(p.values() for p in pairs)) for item in items]
        if not level:
            return
    raise ValueError(f"more than {_DEPTH} lists or objects inside of each other")


def _is_size(number: object) -> bool:
    return type(number) is int and number >= 0
