"""Where requests wait: those that wait for the same at the same moment are answered together.

What takes less than handing it to a thread is answered by the loop itself; the rest waits for the
threads of the desk.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hopefear.errors import HopefearError
from hopefear.serve.questions import Question

MOST_STEPS = 500_000  # of one request, which take about a second of one core
QUICK = 1_000  # steps of a request that the loop answers itself
_TURN = 5_000  # steps that the loop takes before it looks at its connections again
_SLICE = 50_000  # steps that are taken before a thread looks whether somebody still waits
_LINGER = 0.002  # seconds
_LATELY = 0.05  # seconds after which nobody is expected to ask again
_LESS = {
    "predict": "send fewer or shorter inputs",
    "nbest": "send fewer or shorter inputs, or a smaller n",
    "explain": "send fewer or shorter inputs, ask of one word by sentence and token, or a "
    "smaller top",
}


class BusyError(Exception):
    """More requests wait than may."""


class Job:
    """A question on its way.

    Parameters
    ----------
    name : str
        The model's.
    service : Service
        What answers.
    question : Question
        What is asked.
    future : Future, optional
        Gets the answer as JSON, or an exception as its result.
    seconds : float
        The time an answer may take.
    asker : object
        Who asks: a connection, whose ``left`` is true once it has said that nothing more will come.
    """

    __slots__ = (
        "asker",
        "future",
        "inputs",
        "key",
        "name",
        "question",
        "seconds",
        "service",
        "steps",
    )

    def __init__(
        self,
        name: str,
        service: Any,
        question: Question,
        future: Any,
        seconds: float = 10.0,
        asker: Any = None,
    ) -> None:
        self.name, self.service, self.question, self.future = name, service, question, future
        self.key = (id(service), question.verb, question.numbers)
        self.seconds, self.asker = seconds, asker
        self.inputs: list[Any] | None = None
        self.steps = 0

    def read(self) -> None:
        """Read the inputs; HopefearError where one cannot be read or the answer takes too long."""
        if self.inputs is not None:
            return
        inputs = []
        for i, value in enumerate(self.question.values):
            try:
                inputs.append(self.service.read(value))
            except HopefearError as error:
                place = "input" if self.question.single else f"inputs[{i}]"
                reason = str(error).removeprefix("X[0]: ").removeprefix("sequence 0, ")
                raise HopefearError(f"{place}: {reason}") from None
        # What would take too long is not begun: at its usual pace, half of the time is enough.
        self.steps = sum(map(self.steps_of, inputs))
        most = min(MOST_STEPS, int(MOST_STEPS * self.seconds / 2))
        if self.steps > most:
            raise HopefearError(
                f"{self.question.verb} would take {self.steps:,} steps, and {most:,} are the most "
                f"of a request; {_LESS[self.question.verb]}"
            )
        self.inputs = inputs

    def steps_of(self, one: Any) -> int:
        """The steps that the answer to one input takes."""
        return self.service.steps(one, self.question.verb, dict(self.question.numbers))

    @property
    def given_up(self) -> bool:
        """Whether nobody waits any more."""
        return self.future is not None and self.future.done()

    @property
    def left(self) -> bool:
        """Whether the asker has said goodbye: it may be that nobody waits any more."""
        return getattr(self.asker, "left", False)

    def packed(self, answers: list[dict[str, Any]]) -> bytes:
        """Answers as they are sent."""
        fields = {"output": answers[0]} if self.question.single else {"outputs": answers}
        return _encode({"model": self.name, **fields}).encode("utf-8", "backslashreplace")


class _Regulars:
    """Who asked of late: most of those who were answered ask again at once.

    A batch costs little more than one request, so it is worth waiting for them, but not for others.
    """

    def __init__(self) -> None:
        self._last: set[Any] = set()
        self._before: set[Any] = set()
        self._time = 0.0

    def seen(self, askers: set[Any], now: float) -> None:
        self._before, self._last, self._time = self._last, askers, now

    def expected(self, now: float) -> int:
        """How many will ask within some milliseconds."""
        if now - self._time > _LATELY:
            self._before = self._last = set()
        return max(1, len(self._last | self._before))


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
        Is told the number of inputs of every batch, from any thread.
    """

    def __init__(
        self,
        jobs: int = 1,
        waiting: int = 256,
        together: int = 64,
        on_batch: Callable[[int], None] = lambda inputs: None,
    ) -> None:
        self.waiting, self.together, self.on_batch = waiting, together, on_batch
        self._queue: deque[Job] = deque()
        self._short: list[Job] = []
        self._regulars, self._expected = _Regulars(), 1
        self._timer: Any = None
        self._ready = threading.Condition()
        self._open, self._wanted = True, 1
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(jobs)]
        for thread in self._threads:
            thread.start()

    def __len__(self) -> int:
        return len(self._queue) + len(self._short)

    def has_room(self) -> bool:
        """Whether the loop itself can take another request, or the next one would be refused."""
        if len(self._short) >= self.waiting:
            self._short = _staying(self._short)
        return len(self._short) < self.waiting

    def put(self, job: Job, short: bool = False) -> None:
        """Let a request wait; BusyError where too many do. Short ones are read in the loop."""
        if not short:
            self._line_up(job)
            return
        if not self.has_room():
            raise BusyError
        self._short.append(job)
        loop = job.future.get_loop()
        if len(self._short) == 1:
            self._timer = loop.call_later(_LINGER, self._answer_short)
            self._expected = min(self._regulars.expected(loop.time()), self.waiting)
        if len(self._short) == self._expected:
            self._timer.cancel()
            loop.call_soon(self._answer_short)

    def drop(self, job: Job) -> None:
        """Forget a request for which nobody waits any more, so that another can take its place."""
        job.future.cancel()
        if job in self._short:
            self._short.remove(job)
        if self._queue:
            with self._ready, contextlib.suppress(ValueError):
                self._queue.remove(job)

    def close(self) -> None:
        """End the threads once nothing waits."""
        with self._ready:
            self._open = False
            self._ready.notify_all()
        for thread in self._threads:
            thread.join(1.0)  # what it may still compute nobody waits for

    def _line_up(self, job: Job) -> None:
        with self._ready:
            if len(self._queue) >= self.waiting:
                self._queue = deque(_staying(self._queue))
            if len(self._queue) >= self.waiting:
                raise BusyError
            self._queue.append(job)
            if len(self._queue) >= self._wanted:
                self._ready.notify()

    def _answer_short(self) -> None:
        """Answer, in the loop, what came in its last turns; what proves to be long lines up."""
        short, self._short = self._short, []
        if not short:  # a turn that was cut short has taken them
            return
        loop = short[0].future.get_loop()
        groups: dict[Any, list[Job]] = {}
        steps = 0
        for k, job in enumerate(short):
            if job.given_up:
                continue
            if steps > _TURN:
                self._short = short[k:]
                loop.call_soon(self._answer_short)
                break
            try:
                job.read()
                if job.steps > QUICK:
                    self._line_up(job)
                    continue
            except Exception as error:
                _deliver([(job, error)])
                continue
            steps += job.steps
            groups.setdefault(job.key, []).append(job)
        self._regulars.seen({job.asker for job in short}, loop.time())
        for batch in groups.values():
            self.on_batch(sum(len(job.question.values) for job in batch))
            _deliver(zip(batch, answered(batch), strict=True))

    def _work(self) -> None:
        while batch := self._take():
            batch = [job for job in batch if not job.given_up]
            if not batch:
                continue
            outcomes = answered(batch)
            self.on_batch(sum(len(job.question.values) for job in batch))
            for loop in {job.future.get_loop() for job in batch}:
                some = [
                    pair
                    for pair in zip(batch, outcomes, strict=True)
                    if pair[0].future.get_loop() is loop
                ]
                with contextlib.suppress(RuntimeError):  # it has ended, and nobody waits
                    loop.call_soon_threadsafe(_deliver, some)
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


def _staying(jobs: Iterable[Job]) -> list[Job]:
    """Jobs of those who are still there; the others are sent away.

    A connection that is closed looks like one that is closed half, whose asker still listens. So
    they have their places for as long as nobody else needs them.
    """
    staying = []
    for job in jobs:
        if job.left:
            _deliver([(job, BusyError())])
        else:
            staying.append(job)
    return staying


def _deliver(outcomes: Iterable[tuple[Job, Any]]) -> None:
    for job, outcome in outcomes:
        if not job.future.done():
            job.future.set_result(outcome)


def answered(batch: Sequence[Job]) -> list[Any]:
    """For every request its answer as JSON, or what went wrong with it.

    What one of them asks wrongly does no harm to the others. Inputs are answered together up to
    some steps, and then the next; what nobody waits for any more is left.
    """
    outcomes: list[Any] = [None] * len(batch)
    answers: list[list[dict[str, Any]]] = [[] for _ in batch]
    for run in _slices(batch, outcomes):
        run = [(k, one) for k, one in run if outcomes[k] is None and not batch[k].given_up]
        if not run:
            continue
        job = batch[run[0][0]]
        try:
            results = _answers(job.service, job.question, [one for _, one in run])
            pairs = list(zip(run, results, strict=True))
        except Exception as error:
            numbers = {k for k, _ in run}
            for k in numbers:
                outcomes[k] = error if len(batch) == 1 else answered([batch[k]])[0]
            continue
        for (k, _), result in pairs:
            answers[k].append(result)
    for k, job in enumerate(batch):
        if outcomes[k] is None and not job.given_up:
            try:
                outcomes[k] = job.packed(answers[k])
            except Exception as error:
                outcomes[k] = error
    return outcomes


def _slices(batch: Sequence[Job], outcomes: list[Any]) -> list[list[tuple[int, Any]]]:
    """Inputs with the numbers of their requests, cut behind so many steps.

    Errors of requests that cannot be read become their outcomes.
    """
    slices: list[list[tuple[int, Any]]] = [[]]
    total = 0
    for k, job in enumerate(batch):
        try:
            job.read()
        except Exception as error:
            outcomes[k] = error
            continue
        for one in job.inputs or ():
            steps = job.steps_of(one) if job.steps > QUICK else job.steps
            if slices[-1] and total + steps > _SLICE:
                slices.append([])
                total = 0
            slices[-1].append((k, one))
            total += steps
    return slices


def _answers(service: Any, question: Question, inputs: list[Any]) -> list[dict[str, Any]]:
    numbers = dict(question.numbers)
    if question.verb == "predict":
        if numbers and not service.rejects:
            raise HopefearError("unknown is for classifiers; leave it out")
        return service.predict(inputs, **numbers)
    if question.verb == "nbest":
        return service.nbest(inputs, **numbers)
    top = numbers.pop("top")
    return [service.explain(one, top, numbers) for one in inputs]


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False).encode
