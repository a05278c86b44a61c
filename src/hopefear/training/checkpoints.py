"""Save everything a training run knows, so that a killed run ends in the very same model."""

from __future__ import annotations

import contextlib
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hopefear import storage
from hopefear.errors import HopefearError, ModelError, NewerFormatError

_NAMES = ("checkpoint.0", "checkpoint.1")


class CheckpointWarning(UserWarning):
    """A checkpoint cannot be read, and the one before it is used."""


class InterruptedTrainingError(HopefearError):
    """Training was asked to stop (control-C or SIGTERM); what was reached is saved if asked for."""

    def __init__(self, message: str, signum: int) -> None:
        super().__init__(message)
        self.signum = signum


class Checkpoints:
    """A folder with the last two checkpoints; for a damaged one the one before it is used.

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
        self._newest: tuple[dict[str, Any], dict[str, np.ndarray]] | None = None

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
        self._paths()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
            reason = getattr(error, "strerror", None) or error
            raise HopefearError(f"{self.folder}: cannot be made: {reason}") from error

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Makes the folder and keeps it from other runs, which would overwrite what this one saves.

        Where the system has no locks, nobody is kept from it.
        """
        self.make_folder()
        handle = None
        try:
            import fcntl

            handle = os.open(self.folder, os.O_RDONLY)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)  # type: ignore[arg-type]
            raise HopefearError(
                f"{self.folder}: another run saves its checkpoints there now; name another folder, "
                "or go on with --resume when that run has ended"
            ) from None
        except (ImportError, OSError):
            pass
        try:
            yield
        finally:
            if handle is not None:
                os.close(handle)

    def _paths(self) -> list[Path]:
        """The checkpoints there are; ModelError for a pipe or device, which has no end."""
        paths = [self.folder / name for name in _NAMES if os.path.lexists(self.folder / name)]
        for path in paths:
            if path.exists() and not (path.is_file() or path.is_dir()):
                raise ModelError(f"{path} is no file; remove it, or use another folder")
        return paths

    def save(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Write one over the older of the two."""
        self._number += 1
        header = {**header, "number": self._number}
        storage.save(self.folder / _NAMES[self._number % 2], "checkpoint", header, arrays)
        self._last = time.monotonic()

    def load(self, identity: dict[str, Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """The newest sound checkpoint, or None where there is none; one of another run is refused.

        A damaged one beside a sound one is a warning. Where none is sound, or one was written by a
        later version, that is an error: to begin anew would destroy what may still be of use.
        """
        newest = self.find()
        if newest is None:
            return None
        self._newest = None  # memory for training
        header, arrays = newest
        for key, value in identity.items():
            if header["identity"].get(key) != value:
                raise HopefearError(
                    f"{self.folder}: the checkpoint is of another run: its {key} is "
                    f"{header['identity'].get(key)!r:.200}, not {value!r:.200}; use another folder"
                )
        self._number = header["number"]
        return header, arrays

    def find(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """Look for the newest sound checkpoint, of whichever run; errors as of :meth:`load`."""
        if self._newest is not None:
            return self._newest
        sound, faults = [], []
        for path in self._paths():
            try:
                sound.append(_read(path))
            except NewerFormatError as error:
                raise NewerFormatError(
                    f"{error}, or start again in another folder; nothing was changed"
                ) from error
            except ModelError as error:
                faults.append(error)
        if faults and not sound:
            reasons = "; ".join(str(fault).removesuffix("; fetch it again") for fault in faults)
            raise ModelError(
                f"{self.folder}: no checkpoint can be read: {reasons}; nothing was changed: "
                "restore them from a copy, or start again in another folder"
            ) from faults[0]
        if faults:
            reason = str(faults[0]).removesuffix("; fetch it again")
            warnings.warn(
                f"{reason}; the other checkpoint is used", CheckpointWarning, stacklevel=4
            )
        self._newest = max(sound, key=lambda pair: pair[0]["number"], default=None)
        return self._newest


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A checkpoint whose header has what every one has."""
    header, arrays = storage.load(path, "checkpoint")
    number, identity = header.get("number"), header.get("identity")
    if type(number) is not int or not 1 <= number < 2**63 or type(identity) is not dict:
        raise ModelError(f"{path} has the header of no checkpoint")
    return header, arrays
