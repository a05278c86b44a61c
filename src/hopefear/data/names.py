"""Names for the ids of a file of numbers."""

from __future__ import annotations

import os

from hopefear.data.files import read_blocks
from hopefear.errors import InputError
from hopefear.features import IdentityFeatures


def read_names(path: str | os.PathLike[str], size: int) -> IdentityFeatures:
    """A feature map whose names come from a file: line i is the name of id i, from 1 on.

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
                shown = line.decode("ascii", "backslashreplace")
                raise InputError(os.fspath(path), first_line + i, "UTF-8 text", shown) from None
        if len(names) >= size:
            break
    return IdentityFeatures(size, names[: max(0, size - 1)])
