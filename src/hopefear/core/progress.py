"""Progress reporting: code announces stages, listeners may display them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

COMPILING = "compiling kernels"  # the name of the stage in which numba compiles


class Stage:
    """A piece of long work.

    Parameters
    ----------
    name : str
        What is done.
    total : int, optional
        How much of it there is, where that is known.
    unit : str
        What is counted, in the plural.

    Attributes
    ----------
    done : float
        How much of it is done.
    text : str
        What a listener displays in place of name, count and speed.
    """

    def __init__(self, name: str, total: int | None = None, unit: str = "") -> None:
        self.name, self.total, self.unit = name, total, unit
        self.done: float = 0
        self.text = ""

    def advance(self, n: int = 1) -> None:
        """Counts work that is done."""
        self.done += n


class StageWatcher(Protocol):
    """Listener that is called from any thread."""

    def begin(self, work: Stage) -> None: ...

    def end(self, work: Stage) -> None: ...


_watchers: list[StageWatcher] = []


@contextlib.contextmanager
def stage(name: str, total: int | None = None, unit: str = "") -> Iterator[Stage]:
    """Announces work while this is entered.

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


def counted(blocks: Iterable[Any], path: str, unit: str) -> Iterator[Any]:
    """Yields blocks of a file, and announces how much of it has been read.

    >>> list(counted([[1, 2], [3]], "numbers.txt", "numbers"))
    [[1, 2], [3]]
    """
    with stage(f"reading {os.path.basename(path)}", None, unit) as work:
        for block in blocks:
            work.advance(len(block))
            yield block


@contextlib.contextmanager
def watched(watcher: StageWatcher) -> Iterator[None]:
    """Tells a watcher of every stage that begins while this is entered."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)
