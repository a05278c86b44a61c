"""SIGINT and SIGTERM, for work that ends in order: as a flag, or as an exception at once."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator, Sequence
from typing import Any


class Interrupted(BaseException):
    """A signal that ends the work; no error, so that nothing that handles errors keeps it."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum


class Interruption:
    """Flag that a signal sets; work looks at it where everything is in order."""

    def __init__(self, at_once: bool = False) -> None:
        self.signum = 0
        self._at_once = at_once
        self._previous: dict[int, Any] = {}

    def __bool__(self) -> bool:
        return self.signum != 0

    def _open(self, signals: Sequence[int]) -> None:
        self._previous = {number: signal.getsignal(number) for number in signals}
        for number in signals:
            signal.signal(number, self._handle)

    def _close(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, signum: int, frame: Any) -> None:
        self._close()  # a second one acts at once
        self.signum = signum
        if self._at_once:
            raise Interrupted(signum)
        around = getattr(self._previous[signum], "__self__", None)
        if isinstance(around, Interruption) and not around._at_once:
            around._handle(signum, frame)


@contextlib.contextmanager
def interruptible(
    *, at_once: bool = False, signals: Sequence[int] = (signal.SIGINT, signal.SIGTERM)
) -> Iterator[Interruption]:
    """Has signals set a flag, and those of such blocks around this one; a second one acts at once.

    Signals come to the main thread alone; in others the flag is never set.

    Parameters
    ----------
    at_once : bool
        Raise `Interrupted` where the work is, though it may wait for a pipe.
    signals : sequence of int
        Which ones.

    Examples
    --------
    >>> with interruptible() as interruption:
    ...     signal.raise_signal(signal.SIGTERM)
    ...     bool(interruption), interruption.signum == signal.SIGTERM
    (True, True)
    """
    interruption = Interruption(at_once)
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    interruption._open(signals)
    try:
        yield interruption
    finally:
        interruption._close()
