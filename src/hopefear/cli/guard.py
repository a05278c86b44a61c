"""From exceptions to exit statuses: one line for a person, never a traceback unless asked for.

0 success, 1 a user's error, 2 wrong usage, 130 interrupted, 143 terminated, 141 nobody reads on.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from hopefear.core.interrupts import Interrupted, interruptible
from hopefear.errors import HopefearError, OptionError


class OutputError(HopefearError):
    """Standard output does not take what it is given."""


class _Closed:
    """A standard stream that the process was started without."""

    def __init__(self, name: str) -> None:
        self.buffer, self._name = self, name

    def write(self, content: Any) -> int:
        raise OSError(errno.EBADF, "it is closed", self._name)

    def read(self, size: int = -1) -> bytes:
        raise OSError(errno.EBADF, "it is closed", self._name)

    def readinto(self, buffer: Any) -> int:
        raise OSError(errno.EBADF, "it is closed", self._name)

    def fileno(self) -> int:
        raise OSError(errno.EBADF, "it is closed", self._name)

    def flush(self) -> None:
        """Nothing waits to be written."""

    def isatty(self) -> bool:
        return False


def fill_standard_streams() -> None:
    """Put something in the place of streams that are closed.

    Otherwise the next file that is opened takes their descriptor, and messages go into a model.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
        if getattr(sys, name) is None:
            words = {"stdin": "standard input", "stdout": "standard output"}
            silence = name == "stderr"  # there is nowhere to say that it is closed
            setattr(sys, name, os.fdopen(number, "w") if silence else _Closed(words[name]))


def write_out(content: str | bytes) -> None:
    """Put text or bytes on standard output, now; a full disk is told as one."""
    try:
        if isinstance(content, bytes):
            sys.stdout.buffer.write(content)
        elif content:
            sys.stdout.write(content)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(f"cannot write standard output: {reason}") from error


def put(out: str, pieces: Iterable[bytes]) -> None:
    """Write pieces to a file, all or nothing, or to standard output."""
    if out == "-":
        for piece in pieces:
            write_out(piece)
        return
    from hopefear.storage import write_atomically

    write_atomically(out, pieces)


def guarded(
    action: Callable[[], int], debug: bool = False, options: Callable[[], Collection[str]] = tuple
) -> int:
    """Run ``action`` and turn whatever it raises into a message and a status.

    ``options`` gives those that the command has, for advice.
    """
    # SIGTERM is an exception, so that what is half written is cleaned up on the way out.
    with _warnings_in_a_line(), interruptible(at_once=True, signals=(signal.SIGTERM,)):
        try:
            try:
                status = action()
            except SystemExit as stop:  # of argparse, which may have printed help
                status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
            write_out("")
            return status
        except BrokenPipeError:  # before OSError, of which it is one
            _forget_output()
            return 128 + signal.SIGPIPE
        except BaseException as error:
            if debug:
                traceback.print_exc()
            status, message = explained(error, options)
            complain(message)
            if isinstance(error, OutputError):
                _forget_output()
            return status


# What may help where memory does not reach.
_SAVING = {
    "--cache": "--cache DIR for large data",
    "--hash-bits": "--hash-bits N for many features",
    "--min-count": "--min-count N for rare features",
}


def explained(
    error: BaseException, options: Callable[[], Collection[str]] = tuple
) -> tuple[int, str]:
    """Exit status and message of an exception.

    >>> explained(HopefearError("a.svm:3: expected a label"))
    (1, 'a.svm:3: expected a label')
    >>> explained(KeyboardInterrupt())
    (130, 'interrupted')
    """
    if isinstance(error, OptionError):
        return 1, error.typed()
    if isinstance(error, HopefearError):
        return 128 + error.signum if hasattr(error, "signum") else 1, str(error)
    if isinstance(error, KeyboardInterrupt):
        return 128 + signal.SIGINT, "interrupted"
    if isinstance(error, Interrupted):
        return 128 + error.signum, "terminated"
    if isinstance(error, MemoryError):
        detail = f" ({error})" if str(error) else ""
        known: Collection[str] = ()
        with contextlib.suppress(MemoryError, SystemExit):
            known = options()
        # What learning takes are weights, and these do not lie in a cache.
        frames = traceback.walk_tb(error.__traceback__)
        learning = any(".training." in frame.f_globals.get("__name__", "") for frame, _ in frames)
        saving = {**_SAVING, "--cache": ""} if learning else _SAVING
        advice = [words for option, words in saving.items() if words and option in known]
        remedy = f"give {', '.join(advice)}" if advice else "use less data, or a larger machine"
        return 1, f"not enough memory{detail}; {remedy}"
    if isinstance(error, OSError):
        place = "" if error.filename is None else f"{error.filename}: "
        return 1, f"{place}{error.strerror or error}"
    return 1, (
        f"internal error, please report it: {type(error).__name__}: {error} (--debug shows where)"
    )


def complain(message: str) -> None:
    """One line on standard error; what terminals would obey or cannot show is spelled out."""
    line = " ".join(message.split())
    if not line.isprintable():
        line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
    with contextlib.suppress(OSError, ValueError):
        print(f"hopefear: {line}", file=sys.stderr, flush=True)


def _forget_output() -> None:
    # Otherwise the interpreter flushes at its end, fails again and says so.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def _warnings_in_a_line() -> Iterator[None]:
    def show(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
        complain(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield
