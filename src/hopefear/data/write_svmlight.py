"""svmlight / LIBSVM text, written: ``label id:value id:value …``."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import IO, Any

import numpy as np

from hopefear.core.arrays import Strings
from hopefear.core.component import kernel
from hopefear.data.labels import distinct
from hopefear.data.sparse import SparseDataset
from hopefear.errors import HopefearError
from hopefear.storage import atomic_file

_ROWS = 1 << 12


def write_svmlight(target: str | os.PathLike[str] | IO[bytes], dataset: SparseDataset) -> None:
    """Write ``label id:value …`` lines that read back as the same float32 values.

    A path is written under a temporary name first. Sample weights have no place in the format and
    are left out; a row without a label begins with its first ``id:value``.

    Parameters
    ----------
    target : path or binary file
        Where to write.
    dataset : SparseDataset
        Its class names must be numbers.

    Examples
    --------
    >>> import io
    >>> out = io.BytesIO()
    >>> write_svmlight(out, SparseDataset.from_csr([[0, 1.5], [2, 0]], [1, -1]))
    >>> out.getvalue()
    b'1 1:1.5\\n-1 0:2\\n'
    """
    names = [_checked(name) for name in dataset.classes]
    rows = dataset.rows
    bare = rows.labels < 0
    if (bare & (np.diff(rows.indptr) == 0)).any():
        row = int(np.flatnonzero(bare & (np.diff(rows.indptr) == 0))[0])
        raise HopefearError(f"row {row} has neither label nor values, which svmlight cannot hold")
    labels = Strings.pack([*names, ""])
    opened: Any = (
        atomic_file(target) if isinstance(target, str | os.PathLike) else nullcontext(target)
    )
    with opened as out:
        for begin in range(0, len(dataset), _ROWS):
            end = min(begin + _ROWS, len(dataset))
            out.write(_lines(dataset, begin, end, labels))


def _lines(dataset: SparseDataset, begin: int, end: int, labels: Strings) -> bytes:
    rows = dataset.rows
    a, b = int(rows.indptr[begin]), int(rows.indptr[end])
    values = rows.values[a:b]
    # Text is made once for each distinct value, bit by bit, so that -0.0 and 0.0 stay apart.
    bits = values.view(np.int32)
    kinds = distinct(bits)
    texts = Strings.pack([_number(v) for v in kinds.view(np.float32)])
    value_ids = np.searchsorted(kinds, bits)
    ids = dataset.features.ids(rows.indices[a:b])
    longest = int(np.diff(texts.offsets).max(initial=0)) + 22
    room = (b - a) * longest + (end - begin) * (int(np.diff(labels.offsets).max()) + 2)
    text = np.empty(room, np.uint8)
    size = _format(
        rows.indptr[begin : end + 1], ids, value_ids, rows.labels[begin:end], labels, texts, text
    )
    return text[:size].tobytes()


def _number(value: np.float32) -> str:
    number = float(value)
    if number.is_integer() and abs(number) < 1e7 and (number or not np.signbit(value)):
        return str(int(number))
    return (
        np.format_float_scientific(value, trim="-")
        if not 1e-4 <= abs(number) < 1e7
        else (np.format_float_positional(value, trim="-"))
    )


def _checked(name: str) -> str:
    try:
        float(name)
    except ValueError:
        raise HopefearError(
            f"class {name!r} is not a number, which svmlight asks for; give the classes "
            "numeric names"
        ) from None
    return name


@kernel
def _format(indptr, ids, value_ids, labels, label_text, value_text, out):
    size = 0
    digits = np.empty(20, np.uint8)
    for i in range(len(indptr) - 1):
        first = labels[i] < 0
        code = labels[i] if labels[i] >= 0 else len(label_text.offsets) - 2
        for c in range(label_text.offsets[code], label_text.offsets[code + 1]):
            out[size] = label_text.text[c]
            size += 1
        for k in range(indptr[i] - indptr[0], indptr[i + 1] - indptr[0]):
            if not first:
                out[size] = 32
                size += 1
            first = False
            number = ids[k]
            count = 0
            while count == 0 or number > 0:
                digits[count] = 48 + number % 10
                number //= 10
                count += 1
            for d in range(count):
                out[size + d] = digits[count - 1 - d]
            size += count
            out[size] = 58
            size += 1
            for c in range(value_text.offsets[value_ids[k]], value_text.offsets[value_ids[k] + 1]):
                out[size] = value_text.text[c]
                size += 1
        out[size] = 10
        size += 1
    return size
