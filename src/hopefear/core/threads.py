"""Threads that share out tasks of Python, for kernels and arrays which let go of its lock."""

from __future__ import annotations

import _thread
import functools
from collections import deque
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class once(Generic[T]):  # noqa: N801 - a decorator
    """A property that is worked out once for each object, as ``functools.cached_property``.

    Before Python 3.12 that one lets all objects of a class wait for each other.

    Examples
    --------
    >>> class Line:
    ...     @once
    ...     def words(self):
    ...         print("found")
    ...         return 3
    >>> line = Line()
    >>> line.words + line.words
    found
    6
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self._function = function

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, thing: Any, owner: type | None = None) -> T:
        value = thing.__dict__[self._name] = self._function(thing)
        return value


class Team:
    """So many threads, the caller's among them; it alone needs no others.

    Parameters
    ----------
    size : int
        Threads that work at the same time, at most.

    Examples
    --------
    >>> with Team(2) as team:
    ...     team.run([lambda: 3, lambda: 4, lambda: 5])
    [3, 4, 5]
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._ends: SimpleQueue[None] = SimpleQueue()
        self._helpers = 0

    def __enter__(self) -> Team:
        self._have(min(self.size, 2))  # it comes while the caller prepares what to do
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for _ in range(self._helpers):
            self._calls.put(None)
        for _ in range(self._helpers):
            self._ends.get()
        self._helpers = 0

    def run(self, tasks: Iterable[Callable[[], Any]]) -> list[Any]:
        """What the tasks return, taken up in their order; the first error of any is raised.

        The first task is the caller's own.
        """
        waiting = deque(enumerate(tasks))
        results: list[Any] = [None] * len(waiting)
        own = waiting.popleft() if waiting else None
        answers: SimpleQueue[BaseException | None] = SimpleQueue()

        def work() -> None:
            while waiting:
                try:
                    k, task = waiting.popleft()
                except IndexError:  # another was quicker
                    return
                results[k] = task()

        def help_out() -> None:
            try:
                work()
            except BaseException as error:
                answers.put(error)
            else:
                answers.put(None)

        others = min(self.size - 1, len(waiting))
        self._have(others + 1)
        for _ in range(others):
            self._calls.put(help_out)
        try:
            if own is not None:
                results[0] = own[1]()
            work()
        finally:
            waiting.clear()
            errors = [answers.get() for _ in range(others)]
        for error in errors:
            if error is not None:
                raise error
        return results

    def _have(self, size: int) -> None:
        """Call so many threads, less the caller's; unlike ``Thread.start``, without waiting."""
        while self._helpers < size - 1:
            _thread.start_new_thread(self._stay, ())
            self._helpers += 1

    def _stay(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
        self._ends.put(None)


def parallel(rows: Iterable[Any], work: Callable[[Any], T], n_jobs: int) -> list[T]:
    """Returns ``work`` of each of ``rows``, in their order, on up to ``n_jobs`` threads.

    The first error of any is raised.

    Examples
    --------
    >>> parallel([3, 4], lambda row: row * row, n_jobs=2)
    [9, 16]
    """
    with Team(n_jobs) as team:
        return team.run([functools.partial(work, row) for row in rows])
