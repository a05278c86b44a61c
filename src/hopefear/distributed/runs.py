"""Independent runs on a Ray cluster: learners side by side, seeds side by side.

A run is a function of what all runs share and of what is its own; both travel as Ray sends them,
and no file is written. Training is the same every time, so a run whose worker was lost is made
again, and nothing of it shows in the results.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hopefear.distributed.connection import Connection, check_versions, versions
from hopefear.errors import HopefearError

_RETRIES = 5  # of a run whose worker was lost
_POLL = 0.2  # seconds between two looks at what else may have happened


class Runs:
    """A Ray cluster that independent runs are made on.

    Parameters
    ----------
    address : str
        ``HOST:PORT`` of the cluster, or ``auto``: that of which this machine is a part, else one
        that is started here and ended with the runs.
    cores : int
        What a run takes up. More leave room for fewer runs at a time.

    Examples
    --------
    >>> with Runs("auto") as runs:  # doctest: +SKIP
    ...     list(runs.map(pow, 2, [1, 2, 3]))
    [2, 4, 8]
    """

    def __init__(self, address: str = "auto", cores: int = 1) -> None:
        self.cores = cores
        self._connection = Connection(address)
        self._shared: tuple[Any, Any, list[Any]] | None = None

    def __enter__(self) -> Runs:
        self._connection.open(self.cores)
        try:
            self._check_room()
        except BaseException:
            self._connection.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()

    def map(
        self,
        function: Callable[[Any, Any], Any],
        shared: Any,
        items: Iterable[Any],
        on_end: Callable[[Any], None] | None = None,
        watch: Callable[[], None] = lambda: None,
    ) -> Iterator[Any]:
        """Yields ``function(shared, item)`` of every item, in their order.

        Parameters
        ----------
        function : callable
            Of a module that workers can import.
        shared : object
            What all runs need; sent once to each machine.
        items : iterable
            What each run has for itself.
        on_end : callable, optional
            Gets the result of every run as it ends, in whatever order they do.
        watch : callable, optional
            Called several times a second; what it raises ends the runs.
        """
        ray = self._connection.ray
        shared_reference = self._put(function, shared)
        task = ray.remote(num_cpus=self.cores, max_retries=_RETRIES)(_run)
        required, folder = versions(), os.getcwd()
        waiting = {
            task.remote(required, k, folder, shared_reference, [ray.put(item)]): k
            for k, item in enumerate(items)
        }
        results, first = dict[int, Any](), 0
        try:
            while waiting:
                ready, _ = ray.wait(list(waiting), num_returns=1, timeout=_POLL)
                watch()
                if not ready:
                    continue
                k = waiting.pop(ready[0])
                try:
                    results[k] = self._connection.answer(ready[0])
                except self._connection.losses() as error:
                    raise HopefearError(
                        f"the worker of run {k + 1} was lost {_RETRIES + 1} times; see the logs of "
                        "the Ray cluster: is memory short?"
                    ) from error
                if on_end is not None:
                    on_end(results[k])
                while first in results:
                    yield results.pop(first)
                    first += 1
        finally:
            for reference in waiting:
                ray.cancel(reference, force=True)

    def _put(self, function: Callable[[Any, Any], Any], shared: Any) -> list[Any]:
        """Returns where workers find what runs share, which is sent once.

        It stands in a list, which Ray leaves as it is: a worker of another version must say so
        before it reads anything of ours.
        """
        if self._shared is None or self._shared[0] is not function or self._shared[1] is not shared:
            self._shared = function, shared, [self._connection.ray.put((function, shared))]
        return self._shared[2]

    def room(self) -> int:
        """Returns how many runs the cluster can make at a time, as it is now."""
        return sum(cores // self.cores for cores in self._machines())

    def _check_room(self) -> None:
        """Raises HopefearError where no machine has room for a run, which would wait for ever."""
        cores = max(self._machines(), default=0)
        if cores < self.cores:
            raise HopefearError(
                f"a run takes up {self.cores} cores (--jobs), and the largest machine of the "
                f"cluster has {cores} for it; use fewer, or add machines"
            )

    def _machines(self) -> list[int]:
        """Cores of each."""
        nodes = self._connection.ray.nodes()
        return [int(node["Resources"].get("CPU", 0)) for node in nodes if node["Alive"]]


def _run(
    required: dict[str, str],
    k: int,
    folder: str,
    shared_reference: list[Any],
    item_reference: list[Any],
) -> Any:
    """A run, on the worker."""
    check_versions(versions(), required, f"run {k + 1}")
    import ray

    with contextlib.suppress(OSError):
        os.chdir(folder)  # paths in parameters mean what they mean where they were typed
    (function, shared), item = ray.get(shared_reference[0]), ray.get(item_reference[0])
    return function(shared, item)
