"""Threads for work that lets go of Python's lock, as kernels and array operations do."""

from __future__ import annotations

import contextvars
import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def parallel(
    items: Iterable[Item], work: Callable[[Item], Result], n_jobs: int
) -> Iterator[Result]:
    """Yields ``work(item)`` for every item, in their order; other threads work ahead.

    Items are taken by the thread that asks for results, at most `n_ahead` before they are asked
    for; where it would have to wait, it works too. What taking one raises comes in its place,
    behind the results of those before it. No work goes on once the iterator has ended.

    Parameters
    ----------
    items : iterable
        What there is to do.
    work : callable
        Called from other threads too, unless ``n_jobs`` is 1.
    n_jobs : int
        Threads that work at the same time, the calling one among them.

    Examples
    --------
    >>> list(parallel("abc", str.upper, 2))
    ['A', 'B', 'C']
    """
    if n_jobs == 1:
        yield from map(work, items)
        return
    items, has_more, pool = iter(items), True, _pool(n_jobs - 1)
    tasks: deque[tuple[Any, Future[Result]]] = deque()
    try:
        while has_more or tasks:
            while has_more and len(tasks) <= n_ahead(n_jobs):
                try:
                    item = next(items)
                except StopIteration:
                    has_more = False
                except Exception as error:
                    has_more = False
                    tasks.append((None, Future()))
                    tasks[-1][1].set_exception(error)
                else:  # in the caller's context, such as NumPy's ways with overflow
                    context = contextvars.copy_context()
                    tasks.append((item, pool.submit(context.run, work, item)))
            for k, (item, task) in enumerate(tasks):
                if tasks[0][1].done():
                    break
                if task.cancel():  # no thread has begun it
                    tasks[k] = item, _done(work, item)
            if tasks:
                yield tasks.popleft()[1].result()
    finally:
        wait([task for _, task in tasks if not task.cancel()])


@functools.cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    """Returns the threads of all callers that ask for as many.

    They are kept, because batches of networks take no longer than threads take to start. Callers
    do what no thread has begun, so calls inside of calls go on, and so does a child of fork, which
    has no threads.
    """
    return ThreadPoolExecutor(n_threads, thread_name_prefix="hopefear")


def _done(work: Callable[[Item], Result], item: Item) -> Future[Result]:
    """Returns the outcome of ``work(item)``."""
    task: Future[Result] = Future()
    try:
        task.set_result(work(item))
    except Exception as error:
        task.set_exception(error)
    return task


def n_ahead(n_jobs: int) -> int:
    """Returns how many items `parallel` takes before the result of the one in use is given up."""
    return n_jobs if n_jobs > 1 else 0
