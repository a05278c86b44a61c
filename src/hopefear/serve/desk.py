"""Where requests wait: those that wait for the same at the same moment are answered together."""

from __future__ import annotations

import contextlib
import json
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from hopefear.errors import HopefearError
from hopefear.serve.questions import Question

_LINGER = 0.002  # seconds
MOST_STEPS = 500_000  # of one request, which take about a second of one core
_LESS = {
    "predict": "send fewer or shorter inputs",
    "nbest": "send fewer or shorter inputs, or a smaller n",
    "explain": "send fewer or shorter inputs, ask of one word by sentence and token, or a "
    "smaller top",
}


class BusyError(Exception):
    """More requests wait than may."""


class Job:
    """A question on its way; ``future`` gets the answer as JSON, or an exception as its result."""

    __slots__ = ("future", "key", "name", "question", "service")

    def __init__(self, name: str, service: Any, question: Question, future: Any) -> None:
        self.name, self.service, self.question, self.future = name, service, question, future
        self.key = (id(service), question.verb, question.numbers)


class Desk:
    """A bounded queue, and threads that answer what waits in it.

    Parameters
    ----------
    jobs : int
        Threads. Kernels let others run; all else takes turns.
    waiting : int
        Requests that may wait; more of them are refused, so that the wait stays short.
    together : int
        Inputs that are answered at once, at most.
    on_batch : callable, optional
        Is told the number of inputs of every batch, from a thread of the desk.
    """

    def __init__(
        self,
        jobs: int = 1,
        waiting: int = 16,
        together: int = 64,
        on_batch: Callable[[int], None] | None = None,
    ) -> None:
        self.waiting, self.together, self.on_batch = waiting, together, on_batch
        self._queue: deque[Job] = deque()
        self._ready = threading.Condition()
        self._open, self._wanted = True, 1
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(jobs)]
        for thread in self._threads:
            thread.start()

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def full(self) -> bool:
        """Whether the next request would be refused."""
        return len(self._queue) >= self.waiting

    def put(self, job: Job) -> None:
        """Let a request wait; BusyError where too many do."""
        with self._ready:
            if self.full:
                raise BusyError
            self._queue.append(job)
            if len(self._queue) >= self._wanted:
                self._ready.notify()

    def close(self) -> None:
        """End the threads once nothing waits."""
        with self._ready:
            self._open = False
            self._ready.notify_all()
        for thread in self._threads:
            thread.join(1.0)  # what it may still compute nobody waits for

    def _work(self) -> None:
        while batch := self._take():
            batch = [job for job in batch if not job.future.cancelled()]
            if not batch:
                continue
            outcomes = answered(batch)
            if self.on_batch is not None:
                self.on_batch(sum(len(job.question.values) for job in batch))
            futures = [job.future for job in batch]
            for loop in {future.get_loop() for future in futures}:
                with contextlib.suppress(RuntimeError):  # it has ended, and nobody waits
                    loop.call_soon_threadsafe(_deliver, loop, futures, outcomes)
            self._linger(len(batch))

    def _linger(self, answered: int) -> None:
        """Where others wait, wait for those who were answered: most of them ask again at once.

        A batch costs little more than one request, and the loop needs this time anyway.
        """
        with self._ready:
            if self._queue and self._open:
                wanted = min(len(self._queue) + answered, self.waiting)
                self._wanted = wanted
                self._ready.wait_for(lambda: len(self._queue) >= wanted, _LINGER)
                self._wanted = 1

    def _take(self) -> list[Job]:
        """The request that waits longest, and others that can be answered with it."""
        with self._ready:
            while not self._queue:
                if not self._open:
                    return []
                self._ready.wait()
            first = self._queue.popleft()
            batch, rest, size = [first], deque[Job](), len(first.question.values)
            for job in self._queue:
                more = len(job.question.values)
                if job.key == first.key and size + more <= self.together:
                    batch.append(job)
                    size += more
                else:
                    rest.append(job)
            self._queue = rest
            return batch


def _deliver(loop: Any, futures: Sequence[Any], outcomes: Sequence[Any]) -> None:
    for future, outcome in zip(futures, outcomes, strict=True):
        if future.get_loop() is loop and not future.done():
            future.set_result(outcome)


def answered(batch: Sequence[Job]) -> list[Any]:
    """For every request its answer as JSON, or what went wrong with it.

    What one of them asks wrongly does no harm to the others. Together they are answered up to the
    steps that one of them may take, and then the next.
    """
    outcomes: list[Any] = [None] * len(batch)
    runs: list[list[tuple[int, list[Any]]]] = []
    total = 0
    for k, job in enumerate(batch):
        try:
            inputs, steps = _read(job)
        except Exception as error:
            outcomes[k] = error
            continue
        total += steps
        if not runs or total > MOST_STEPS:
            runs.append([])
            total = steps
        runs[-1].append((k, inputs))
    for run in runs:
        job, together = batch[run[0][0]], [one for _, inputs in run for one in inputs]
        try:
            answers = iter(_answers(job.service, job.question, together))
            for k, inputs in run:
                outcomes[k] = _packed(batch[k], [next(answers) for _ in inputs])
        except Exception as error:
            for k, _ in run:
                outcomes[k] = error if len(run) == 1 else answered([batch[k]])[0]
    return outcomes


def _read(job: Job) -> tuple[list[Any], int]:
    """The inputs of a request, and the steps that its answer takes."""
    values = []
    for i, value in enumerate(job.question.values):
        try:
            values.append(job.service.read(value))
        except HopefearError as error:
            place = "input" if job.question.single else f"inputs[{i}]"
            reason = str(error).removeprefix("X[0]: ").removeprefix("sequence 0, ")
            raise HopefearError(f"{place}: {reason}") from None
    # What has begun cannot be given up, so what would take too long is not begun.
    verb, numbers = job.question.verb, dict(job.question.numbers)
    steps = sum(job.service.steps(one, verb, numbers) for one in values)
    if steps > MOST_STEPS:
        raise HopefearError(
            f"{verb} would take {steps:,} steps, and {MOST_STEPS:,} are the most of a request; "
            f"{_LESS[verb]}"
        )
    return values, steps


def _answers(service: Any, question: Question, inputs: list[Any]) -> list[dict[str, Any]]:
    numbers = dict(question.numbers)
    if question.verb == "predict":
        return service.predict(inputs)
    if question.verb == "nbest":
        return service.nbest(inputs, **numbers)
    top = numbers.pop("top")
    return [service.explain(one, top, numbers) for one in inputs]


def _packed(job: Job, answers: list[dict[str, Any]]) -> bytes:
    fields = {"output": answers[0]} if job.question.single else {"outputs": answers}
    text = json.dumps({"model": job.name, **fields}, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace")
