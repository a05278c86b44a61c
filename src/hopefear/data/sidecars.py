"""Files beside the data: names for its ids, weights for its examples."""

from __future__ import annotations

import os

import numpy as np

from hopefear.data.files import read_blocks
from hopefear.data.sources import open_bytes, utf8_wanted
from hopefear.data.sparse import SparseDataset
from hopefear.errors import HopefearError, InputError, Problem
from hopefear.features import IdentityFeatures
from hopefear.storage import read_small

_LONGEST = 64  # bytes of a number, on average


def read_names(path: str | os.PathLike[str], size: int) -> IdentityFeatures:
    """Reads a feature map with the names of a file: line i is the name of id i, from 1.

    Parameters
    ----------
    path : str or path
        UTF-8 lines, plain or compressed.
    size : int
        Number of columns of the data; names beyond are dropped.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as f:
    ...     _ = f.write("good\\nbad\\n")
    ...     f.flush()
    ...     read_names(f.name, 3).names([0, 1, 2])
    ['0', 'good', 'bad']
    """
    names: list[str] = []
    for block, first_line in read_blocks(path):
        for i, line in enumerate(block.split(b"\n")[:-1]):
            try:
                names.append(line.removesuffix(b"\r").decode("utf-8"))
            except UnicodeDecodeError:
                excerpt = line.decode("ascii", "backslashreplace")
                raise InputError(
                    os.fspath(path), first_line + i, utf8_wanted(line), excerpt
                ) from None
        if len(names) >= size:
            break
    return IdentityFeatures(size, names[: max(0, size - 1)])


def read_weights(path: str | os.PathLike[str], n: int) -> np.ndarray:
    """Weights (float32) of ``n`` examples, line i for example i.

    Parameters
    ----------
    path : str or path
        Plain or compressed file of ``n`` lines, each a finite number that is not negative.
    n : int
        How many there must be.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as f:
    ...     _ = f.write("1\\n0.5\\n")
    ...     f.flush()
    ...     read_weights(f.name, 2).tolist()
    [1.0, 0.5]
    """
    with open_bytes(path) as stream:
        lines = read_small(stream, path, (n + 1) * _LONGEST).split(b"\n")
    if lines and not lines[-1].strip():
        lines.pop()
    try:
        weights = np.array(lines, np.float64)
    except ValueError:
        weights = np.array([_number(line) for line in lines])
    with np.errstate(over="ignore"):
        weights = weights.astype(np.float32)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0.0)))
    if bad.size:
        excerpt = lines[bad[0]].decode(errors="replace").strip()
        raise InputError(os.fspath(path), int(bad[0]) + 1, "a weight of at least zero", excerpt)
    if weights.size != n:
        raise InputError(
            os.fspath(path), 0, f"{n} weights, one a line", Problem(f"the file has {weights.size}")
        )
    return weights


def _number(line: bytes) -> float:
    try:
        return float(line)
    except ValueError:
        return float("nan")


def named(data: SparseDataset, path: str) -> SparseDataset:
    """Returns the data with names from a file for its columns."""
    if not isinstance(data.features, IdentityFeatures):
        raise HopefearError(
            f"--names {path}: names belong to svmlight ids below 2^26, and "
            f"{data.source} has other features; leave --names out"
        )
    return data.renamed(read_names(path, data.n_features))


def weighted(data: SparseDataset, path: str, skipped: int) -> SparseDataset:
    """Returns the data with example weights from a file; ``skipped`` lines would shift them."""
    if skipped:
        raise HopefearError(
            f"--weights {path}: {skipped} bad lines were left out, so weights and examples no "
            "longer pair; mend the lines"
        )
    return data.reweighted(read_weights(path, len(data)))
