"""Save everything a training run knows, so that a killed run ends in the very same model."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hopefear import storage
from hopefear.errors import HopefearError, ModelError

_NAMES = ("checkpoint.0", "checkpoint.1")


class InterruptedTrainingError(HopefearError):
    """Training was asked to stop (control-C or SIGTERM); what was reached is saved if asked for."""

    def __init__(self, message: str, signum: int) -> None:
        super().__init__(message)
        self.signum = signum


class Checkpoints:
    """A folder with the last two checkpoints; a torn one falls back to the one before.

    Parameters
    ----------
    folder : path
        Where they go; made if missing.
    every : float
        Seconds between two checkpoints inside a pass; each pass also ends with one.
    """

    def __init__(self, folder: str | os.PathLike[str], every: float = 30.0) -> None:
        self.folder, self.every = Path(folder), every
        self._last = time.monotonic()
        self._number = 0

    def due(self) -> bool:
        """Whether it is time for another one."""
        return time.monotonic() - self._last >= self.every

    def exist(self) -> bool:
        """Whether the folder holds any."""
        return any((self.folder / name).exists() for name in _NAMES)

    def clear(self) -> None:
        """Remove them, once the model they led to is safe."""
        for name in _NAMES:
            with contextlib.suppress(OSError):
                (self.folder / name).unlink()

    def make_folder(self) -> None:
        """Make the folder now, so that a run does not learn of trouble after its first pass."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HopefearError(f"{self.folder}: cannot be made: {error.strerror}") from error

    def save(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Write one over the older of the two."""
        self._number += 1
        header = {**header, "number": self._number}
        storage.save(self.folder / _NAMES[self._number % 2], "checkpoint", header, arrays)
        self._last = time.monotonic()

    def load(self, identity: dict[str, Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """The newest sound checkpoint, or None; one of another run is refused."""
        found = []
        for name in _NAMES:
            with contextlib.suppress(ModelError):
                found.append(storage.load(self.folder / name, "checkpoint"))
        if not found:
            return None
        header, arrays = max(found, key=lambda pair: pair[0]["number"])
        for key, value in identity.items():
            if header["identity"].get(key) != value:
                raise HopefearError(
                    f"{self.folder}: the checkpoint is of another run: its {key} is "
                    f"{header['identity'].get(key)!r}, not {value!r}; use another folder"
                )
        self._number = header["number"]
        return header, arrays


class Interruption:
    """Set once control-C or SIGTERM has come; the loop looks at it between two pieces."""

    def __init__(self) -> None:
        self.signum = 0

    def __bool__(self) -> bool:
        return self.signum != 0


@contextlib.contextmanager
def interruptible() -> Iterator[Interruption]:
    """Turn SIGINT and SIGTERM into a flag; a second one acts at once."""
    flag = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield flag
        return

    def raise_flag(signum: int, frame: Any) -> None:
        flag.signum = signum
        signal.signal(signum, previous[signal.Signals(signum)])

    previous = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        for signum in previous:
            signal.signal(signum, raise_flag)
        yield flag
    finally:
        for signum, handler in previous.items():
            signal.signal(signum, handler)
