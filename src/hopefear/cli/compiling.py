"""Say so when kernels are compiled: the first run of a learner takes seconds longer."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from hopefear.cli.console import Console

SECONDS = "some seconds, for some up to a minute"


class Compilation:
    """Seconds spent compiling so far."""

    def __init__(self) -> None:
        self.seconds = 0.0


@contextlib.contextmanager
def announced(console: Console, what: str = "this learner") -> Iterator[Compilation]:
    """Announce the first compilation inside and time them all; a load from the cache is none."""
    from numba.core import event

    spent = Compilation()

    class Announcer(event.Listener):
        depth, begun, told = 0, 0.0, False

        def on_start(self, _: Any) -> None:
            if not self.told:
                console.say(f"compiling kernels for {what}, once: {SECONDS}")
            self.told, self.depth = True, self.depth + 1
            if self.depth == 1:
                self.begun = time.perf_counter()

        def on_end(self, _: Any) -> None:
            self.depth -= 1
            if self.depth == 0:
                spent.seconds += time.perf_counter() - self.begun

    with event.install_listener("numba:compile", Announcer()):
        yield spent
