"""Threads that share out tasks of Python, for kernels and arrays which let go of its lock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
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
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Team:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def run(self, tasks: Iterable[Callable[[], Any]]) -> list[Any]:
        """What the tasks return, taken up in their order; the first error of any is raised."""
        waiting = deque(enumerate(tasks))
        results: list[Any] = [None] * len(waiting)

        def work() -> None:
            while waiting:
                try:
                    k, task = waiting.popleft()
                except IndexError:  # another was quicker
                    return
                results[k] = task()

        helpers = min(self.size, len(waiting)) - 1
        if helpers > 0 and self._pool is None:
            self._pool = ThreadPoolExecutor(self.size - 1)
        others = [self._pool.submit(work) for _ in range(helpers)] if self._pool else []
        try:
            work()
        finally:
            waiting.clear()
            errors = [other.exception() for other in others]
        for error in errors:
            if error is not None:
                raise error
        return results
