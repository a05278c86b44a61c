"""What it takes to get the numbers of a page again: files by their content, and versions."""

from __future__ import annotations

import hashlib
import os


def hashed(path: str) -> str:
    """A file by name and content; of what is no file, the name."""
    if not os.path.isfile(path):
        return path
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return f"{os.path.basename(path)}, SHA-256 {digest}"


def versions() -> dict[str, str]:
    """Of what numbers depend on."""
    import platform
    from importlib.metadata import version

    import numpy

    from hopefear import __version__

    return {
        "hopefear": __version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "numba": version("numba"),
    }
