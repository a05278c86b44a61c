"""Long work says what it is and how far it has come, to whoever watches; nobody need."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol

COMPILING = "compiling kernels"  # the name of the stage in which numba compiles


class Stage:
    """A piece of work.

    Parameters
    ----------
    name : str
        What is done.
    total : int, optional
        How much of it there is, where that is known.
    unit : str
        What is counted, in the plural.
    """

    def __init__(self, name: str, total: int | None = None, unit: str = "") -> None:
        self.name, self.total, self.unit, self.done = name, total, unit, 0

    def advance(self, n: int = 1) -> None:
        """Count work that is done."""
        self.done += n


class StageWatcher(Protocol):
    """Whoever wants to know; from any thread."""

    def begin(self, work: Stage) -> None: ...

    def end(self, work: Stage) -> None: ...


_watchers: list[StageWatcher] = []


@contextlib.contextmanager
def stage(name: str, total: int | None = None, unit: str = "") -> Iterator[Stage]:
    """Work while this is entered.

    >>> with stage("counting", 3, "numbers") as work:
    ...     work.advance(2)
    >>> work.done
    2
    """
    work = Stage(name, total, unit)
    watchers = tuple(_watchers)
    for watcher in watchers:
        watcher.begin(work)
    try:
        yield work
    finally:
        for watcher in watchers:
            watcher.end(work)


@contextlib.contextmanager
def watched(watcher: StageWatcher) -> Iterator[None]:
    """Tell a watcher of every stage that begins while this is entered."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)
