"""Runs on disk, so that an experiment that was broken off goes on where it was."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hopefear import __version__
from hopefear.errors import HopefearError
from hopefear.storage import write_atomically


class KeptRuns:
    """A folder with a file for every run.

    A file is used again when what it says of its making is what is wanted now: signature, data,
    version. It does not know of edits in the code; remove the folder after those.

    Parameters
    ----------
    folder : path
        Made when missing.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept = KeptRuns(Path(folder) / "runs")
    ...     kept.of("times", {"seed": 1}, lambda: {"a": [1.0]})
    ...     kept.of("times", {"seed": 1}, lambda: {"a": [2.0]})
    {'a': [1.0]}
    {'a': [1.0]}
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HopefearError(
                f"{folder}: cannot be made a folder ({error.strerror}); give another --out"
            ) from error

    def of(self, name: str, identity: Mapping[str, Any], make: Callable[[], Any]) -> Any:
        """What has this name, if JSON can hold it; made, and kept, where none is like it yet."""
        path = self.folder / (re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-") + ".json")
        wanted = {**identity, "v": __version__}
        found = _read(path)
        if found.get("identity") == wanted:
            return found["content"]
        content = make()
        text = json.dumps({"identity": wanted, "content": content}, allow_nan=False)
        write_atomically(path, text.encode())
        return content


def _read(path: Path) -> dict[str, Any]:
    """What a file holds; nothing where it is missing or was not written by us."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and "content" in found else {}
