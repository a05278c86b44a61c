"""Batches concurrent requests: those for the same model and question are answered together."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, islice
from typing import Any

from hopefear.errors import HopefearError
from hopefear.serve.requests import Request

MAX_STEPS = 500_000  # of one request, which take about a second of one core
SLICE = 50_000  # steps of a batch; what a request has left waits behind other requests
_REMEDIES = {
    "predict": "send fewer or shorter inputs",
    "nbest": "send fewer or shorter inputs, or a smaller n",
    "explain": "send fewer or shorter inputs, ask of one word by sentence and token, or a "
    "smaller top",
}


class BusyError(Exception):
    """The queue is full."""


class Job:
    """A request whose inputs have been read, on its way to an answer.

    Parameters
    ----------
    name : str
        The model's.
    service : Service
        What answers.
    request : Request
        What is asked.
    max_steps : int
        Steps that the answer may take; HopefearError where it would take more.
    """

    def __init__(
        self, name: str, service: Any, request: Request, max_steps: int = MAX_STEPS
    ) -> None:
        self.name, self.service, self.request = name, service, request
        self.key = (id(service), request.verb, request.numbers)
        self.answers: list[Mapping[str, Any]] = []
        self.outcome: bytes | Exception | None = None  # the answer as JSON, or what is wrong
        self.future: asyncio.Future[bytes]  # of a submitted request
        inputs, numbers = [], dict(request.numbers)
        for i, value in enumerate(request.values):
            try:
                inputs.append(service.read(value))
            except HopefearError as error:
                place = "input" if request.single else f"inputs[{i}]"
                reason = str(error).removeprefix("X[0]: ").removeprefix("sequence 0, ")
                raise HopefearError(f"{place}: {reason}") from None
        steps = [service.steps(one, request.verb, numbers) for one in inputs]
        if sum(steps) > max_steps:
            raise HopefearError(
                f"{request.verb} would take {sum(steps):,} steps, and {max_steps:,} are the most "
                f"of a request; {_REMEDIES[request.verb]}"
            )
        self.inputs = deque(zip(inputs, steps, strict=True))  # that no batch has taken yet

    def answer(self, inputs: list[Any]) -> list[Mapping[str, Any]]:
        """Returns answers to inputs, of this request or of others with the same key."""
        service, numbers = self.service, dict(self.request.numbers)
        if self.request.verb == "explain":
            top = numbers.pop("top")
            return [service.explain(one, top, numbers) for one in inputs]
        if self.request.verb == "nbest":
            return service.nbest(inputs, **numbers)
        if others := numbers.keys() - service.asked:
            raise HopefearError(f"{min(others)} is for classifiers; leave it out")
        return service.predict(inputs, **numbers)

    def add_answers(self, answers: Sequence[Mapping[str, Any]]) -> None:
        """Adds answers to the next inputs; the last ones complete the outcome."""
        self.answers += answers
        if not self.inputs:
            one = {"output": self.answers[0]} if self.request.single else {"outputs": self.answers}
            text = _encode({"model": self.name, **one})
            self.outcome = text.encode("utf-8", "backslashreplace")


Batch = dict[Job, list[Any]]  # inputs by request


class RequestBatcher:
    """A bounded queue of requests, and a thread pool that answers them in batches.

    The event loop alone calls its methods.

    Parameters
    ----------
    n_jobs : int
        Threads. Kernels let others run; all else takes turns.
    max_waiting : int
        Requests that may wait; more are refused, so that the wait stays short.
    on_batch : callable, optional
        Gets the number of inputs of every batch.
    """

    def __init__(
        self,
        n_jobs: int = 1,
        max_waiting: int = 256,
        on_batch: Callable[[int], None] = lambda inputs: None,
    ) -> None:
        self.n_jobs, self.max_waiting, self.on_batch = n_jobs, max_waiting, on_batch
        self.pool = ThreadPoolExecutor(n_jobs, "answers")
        self._queue: deque[Job] = deque()
        self._running = 0

    def __len__(self) -> int:
        return len(self._queue)

    def check_room(self) -> None:
        """Raises BusyError where the queue is full."""
        if len(self._queue) >= self.max_waiting:
            raise BusyError

    def submit(self, job: Job) -> asyncio.Future[bytes]:
        """Returns the future answer; a request whose answer is cancelled leaves the queue."""
        self.check_room()
        job.future = asyncio.get_running_loop().create_future()
        job.future.add_done_callback(lambda _: self._discard(job))
        self._queue.append(job)
        self._start()
        return job.future

    def _discard(self, job: Job) -> None:
        if job in self._queue:
            self._queue.remove(job)

    def close(self) -> None:
        """Ends the threads."""
        self.pool.shutdown(wait=False, cancel_futures=True)

    def _start(self) -> None:
        while self._queue and self._running < self.n_jobs:
            batch = self._take()
            self._running += 1
            self.on_batch(sum(map(len, batch.values())))
            running = asyncio.get_running_loop().run_in_executor(self.pool, answer, batch)
            running.add_done_callback(partial(self._end, batch))

    def _take(self) -> Batch:
        """Removes the first request and those like it, up to a slice of steps."""
        key, room, batch = self._queue[0].key, SLICE, Batch()
        for job in self._queue:
            if job.key != key:
                continue
            while job.inputs and (job.inputs[0][1] <= room or not batch):
                value, steps = job.inputs.popleft()
                batch.setdefault(job, []).append(value)
                room -= steps
            if job.inputs:
                break
        self._queue = deque(job for job in self._queue if job not in batch)
        return batch

    def _end(self, batch: Batch, _: asyncio.Future[None]) -> None:
        self._running -= 1
        for job in batch:
            if job.future.done():
                continue
            if job.outcome is None:
                self._queue.append(job)
            elif isinstance(job.outcome, Exception):
                job.future.set_exception(job.outcome)
            else:
                job.future.set_result(job.outcome)
        self._start()


def answer(batch: Batch) -> None:
    """Answers the inputs of a batch; an error of one request does no harm to the others."""
    batch = {job: inputs for job, inputs in batch.items() if not job.future.done()}
    if not batch:
        return
    try:
        inputs = list(chain.from_iterable(batch.values()))
        answers = next(iter(batch)).answer(inputs)
        if len(answers) != len(inputs):
            raise ValueError(f"{len(answers)} answers to {len(inputs)} inputs")
    except Exception as error:
        if len(batch) == 1:
            next(iter(batch)).outcome = error
        else:
            for job, part in batch.items():
                answer({job: part})
        return
    remaining = iter(answers)
    for job, part in batch.items():
        try:
            job.add_answers(list(islice(remaining, len(part))))
        except Exception as error:
            job.outcome = error


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False).encode
