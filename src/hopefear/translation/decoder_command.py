"""A decoder as a shell command: weights in, an N-best list out."""

from __future__ import annotations

import gzip
import os
import shlex
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hopefear.data.files import open_bytes
from hopefear.errors import HopefearError
from hopefear.storage import atomic_file
from hopefear.training.checkpoints import InterruptedTrainingError, interruptible

WEIGHTS, NBEST, LOG = "weights.txt", "nbest.gz", "log"
_WRITTEN = "nbest"  # what the decoder writes, before it is packed
_TAIL = 10  # lines of the log that a message shows
_LOOK = 0.05  # seconds between two looks at the decoder
_GRACE = 5.0  # seconds to end in before it is killed


@dataclass(frozen=True)
class DecoderCommand:
    """A command that decodes the development sentences once, under weights it is given.

    Parameters
    ----------
    command : str
        For the shell. ``{weights}``, ``{nbest}`` and ``{round}`` become the quoted path of the
        weights to read, that of the list to write, and the number of the round; the environment
        has the same as ``HOPEFEAR_WEIGHTS``, ``HOPEFEAR_NBEST`` and ``HOPEFEAR_ROUND``.
    timeout : float, optional
        Seconds after which a run is ended and fails.

    Examples
    --------
    >>> DecoderCommand("moses -f moses.ini -n-best-list {nbest} 100").filled(Path("my run"), 2)
    "moses -f moses.ini -n-best-list 'my run/nbest' 100"
    """

    command: str
    timeout: float | None = None

    def __post_init__(self) -> None:
        if not self.command.strip():
            raise HopefearError("the decoder's command is empty; give one the shell can run")
        if self.timeout is not None and not self.timeout > 0.0:
            raise HopefearError(f"timeout={self.timeout}: a decoder needs more than 0 seconds")

    def filled(self, folder: Path, number: int) -> str:
        """The command of a round, with paths in the places held for them."""
        # Not str.format: braces mean something to shells.
        text = self.command
        for place, value in self._places(folder, number).items():
            text = text.replace(f"{{{place}}}", shlex.quote(value))
        return text

    def run(self, folder: Path, number: int) -> Path:
        """Run it in a round's folder, which holds the weights; the packed list.

        What it prints goes to the file ``log`` there. The list it wrote is packed, and has its
        name only when it is whole.
        """
        log, written = folder / LOG, folder / _WRITTEN
        with suppress(FileNotFoundError):
            written.unlink()
        status = self._run(folder, number, log)
        if status:
            raise self.failed(folder, number, _status(status))
        if not written.exists() or not written.stat().st_size:
            lack = "is empty" if written.exists() else "is not there"
            raise self.failed(
                folder,
                number,
                f"ended well (status 0), but the N-best list {written} {lack}; it must write to "
                "the path in HOPEFEAR_NBEST, or where the command says {nbest}",
            )
        try:
            _pack(written, folder / NBEST)
        except HopefearError as error:
            raise self.unusable(folder, number, error) from error
        written.unlink()
        return folder / NBEST

    def unusable(self, folder: Path, number: int, error: HopefearError) -> HopefearError:
        """The error that says what is wrong with the list that a run wrote."""
        what = f"ended well (status 0), but its N-best list cannot be used: {error}"
        return self.failed(folder, number, what)

    def failed(self, folder: Path, number: int, what: str) -> HopefearError:
        """The error that says what a run did, with the last lines it printed."""
        log = folder / LOG
        tail = log.read_text("utf-8", "replace").splitlines()[-_TAIL:] if log.exists() else []
        said = f"; the end of {log}:" if tail else f"; {log} is empty"
        shown = "".join(f"\n    {line}" for line in tail)
        return HopefearError(f"decoder, round {number}: {self.command!r} {what}{said}{shown}")

    def _places(self, folder: Path, number: int) -> dict[str, str]:
        return {
            "weights": os.fspath(folder / WEIGHTS),
            "nbest": os.fspath(folder / _WRITTEN),
            "round": str(number),
        }

    def _run(self, folder: Path, number: int, log: Path) -> int:
        """Exit status of the command; whatever interrupts the wait ends it and what it started."""
        places = self._places(folder.resolve(), number)
        told = {f"HOPEFEAR_{place.upper()}": value for place, value in places.items()}
        until = None if self.timeout is None else time.monotonic() + self.timeout
        with open(log, "wb") as out, interruptible() as interrupted:
            process = subprocess.Popen(
                self.filled(folder.resolve(), number),
                shell=True,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **told},
                start_new_session=True,  # a group of its own, which ends as one
            )
            try:
                while True:
                    with suppress(subprocess.TimeoutExpired):
                        return process.wait(_LOOK)
                    if interrupted:
                        raise InterruptedTrainingError(
                            f"stopped while the decoder ran in round {number}; what it would have "
                            "written is lost, earlier rounds are kept",
                            interrupted.signum,
                        )
                    if until is not None and time.monotonic() > until:
                        what = f"took longer than {self.timeout:g} s (timeout) and was ended"
                        raise self.failed(folder, number, what)
            finally:
                _end(process)


def _pack(path: Path, packed: Path) -> None:
    with (
        open_bytes(path) as text,
        atomic_file(packed) as out,
        # Without a time of writing: equal lists are equal files.
        gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as pack,
    ):
        shutil.copyfileobj(text, pack, 1 << 20)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process that still runs, and everything in its group."""
    if process.poll() is not None:
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        until = time.monotonic() + _GRACE
        while time.monotonic() < until:
            process.poll()
            os.killpg(process.pid, 0)  # the group is gone: ProcessLookupError
            time.sleep(_LOOK)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _status(code: int) -> str:
    if code > 0:
        return f"ended with status {code}"
    with suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name} (status {code})"
    return f"was killed by signal {-code} (status {code})"
