"""Small real files for the demo and the tutorials; README.md names their sources and licences."""

from __future__ import annotations

import lzma
import os
from pathlib import Path

_FOLDER = Path(__file__).parent


def sample_names() -> list[str]:
    """Returns the names of the files.

    >>> sample_names()[:2]
    ['english-test.conllu', 'english-train.conllu']
    """
    return sorted(path.stem for path in _FOLDER.glob("*.xz"))


def write_samples(folder: str | os.PathLike[str]) -> list[Path]:
    """Writes all files into a folder, unpacked, and returns their paths.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = write_samples(folder)
    ...     len(paths), paths[0].read_text("utf-8")[:10]
    (6, '1\\tI\\t_\\tPRON')
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    paths = [Path(folder, name) for name in sample_names()]
    for path in paths:
        path.write_bytes(lzma.decompress((_FOLDER / f"{path.name}.xz").read_bytes()))
    return paths
