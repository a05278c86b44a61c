"""Run folders: settings once, then one JSON object per line while training goes on."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hopefear.errors import HopefearError
from hopefear.storage import write_atomically


class EventLog:
    """Writes ``run.json`` and ``events.jsonl``; give it to training as a listener.

    Every line is on its way to the disk before training goes on, so a killed run loses at most the
    line it was writing.

    Parameters
    ----------
    folder : path
        The run folder; made if missing.
    resume : bool
        Go on behind the events that are there, instead of starting over.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with EventLog(folder.name) as log:
    ...     log.describe({"learner": "vrda"})
    ...     log({"samples": 10, "loss": float("inf")})
    >>> Path(folder.name, "events.jsonl").read_text()
    '{"samples": 10, "loss": null}\\n'
    >>> folder.cleanup()
    """

    def __init__(self, folder: str | os.PathLike[str], resume: bool = False) -> None:
        self.folder = Path(folder)
        self._path = self.folder / "events.jsonl"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file = open(self._path, "ab")  # noqa: SIM115 - closed by close()
            self._file.truncate(_whole_lines(self._path) if resume else 0)
        except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
            raise self._unwritable(error) from error

    def describe(self, settings: Mapping[str, Any]) -> None:
        """Write ``run.json``: what is run on what."""
        text = json.dumps(plain(settings), indent=2, ensure_ascii=False)
        write_atomically(self.folder / "run.json", (text + "\n").encode())

    def __call__(self, event: Mapping[str, Any]) -> None:
        line = json.dumps(plain(event), ensure_ascii=False) + "\n"
        try:
            self._file.write(line.encode())
            self._file.flush()
        except OSError as error:
            raise self._unwritable(error) from error

    def close(self) -> None:
        """Close the file; a full disk has been told before."""
        try:
            self._file.close()
        except OSError as error:
            raise self._unwritable(error) from error

    def __enter__(self) -> EventLog:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is None:
            self.close()
        else:
            with contextlib.suppress(OSError):  # the first error is the one to tell
                self._file.close()

    def _unwritable(self, error: OSError | ValueError) -> HopefearError:
        reason = getattr(error, "strerror", None) or error
        return HopefearError(f"cannot write {self._path}: {reason}")


def plain(value: Any) -> Any:
    """The value as JSON can hold it: what is not finite becomes null, NumPy's become Python's.

    >>> plain({"a": (1, float("nan"))})
    {'a': [1, None]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _whole_lines(path: Path) -> int:
    """Length of the file without a last line that a killed process cut short."""
    return path.read_bytes().rfind(b"\n") + 1
