"""Long work as people watch it: a bar on a terminal, a line for each finished pass.

Of more than fifty passes, as iterations of batch learners are, every tenth gets a line. That the
first run of a learner takes seconds longer is said, too.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Self

from hopefear.cli.console import Console, scored
from hopefear.core.stages import COMPILING, Stage, watched

_SOON = 0.7  # seconds: shorter work is over before one could read what it is
_SECONDS = "some seconds, for some up to a minute"  # that compiling takes


class Bar:
    """A line that changes on a terminal, while it is entered; elsewhere there is none.

    Parameters
    ----------
    console : Console
        Where it is shown.
    """

    shown: ClassVar[int] = 0  # how many there are at the moment

    def __init__(self, console: Console) -> None:
        self.console = console
        self._bar: Any = None

    def __enter__(self) -> Self:
        if self.console.terminal:
            from rich.console import Console as Terminal
            from rich.progress import Progress

            # Answers on standard output are not the bar's to hold back.
            self._bar = Progress(
                *self._columns(),
                console=Terminal(stderr=True),
                transient=True,
                redirect_stdout=False,
            )
            Bar.shown += 1
            self._bar.start()
            self._begin()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
            Bar.shown -= 1

    def _columns(self) -> tuple[Any, ...]:
        """What stands in the line: a description and the time it took so far."""
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        return SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()

    def _begin(self) -> None:
        """Called once the line is there."""

    def _print(self, text: str) -> None:
        """A line that stays: above the one that changes, where that is shown."""
        if self._bar is not None:
            self._bar.console.print(text, highlight=False)
        else:
            self.console.say(text)


class Watcher(Bar):
    """A listener of training events.

    Parameters
    ----------
    console : Console
        Where lines go.
    epochs : int
        Passes at most.
    metric : str
        Score on held-out data to show.
    """

    def __init__(self, console: Console, epochs: int, metric: str = "error") -> None:
        super().__init__(console)
        self.epochs, self.metric = epochs, metric
        self._shown = {"nnz": "", "dev": ""}
        self._before = (time.perf_counter(), 0)

    def _columns(self) -> tuple[Any, ...]:
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

        numbers = (
            "{task.fields[speed]}mistakes {task.fields[mistakes]}"
            "{task.fields[nnz]}{task.fields[dev]}"
        )
        pass_number = TextColumn("pass {task.fields[number]}")
        return pass_number, BarColumn(), TimeRemainingColumn(), TextColumn(numbers)

    def _begin(self) -> None:
        self._task = self._bar.add_task(
            "", total=self.epochs, number="1", speed="", mistakes="–", nnz="", dev=""
        )

    def __call__(self, event: dict[str, Any]) -> None:
        ended = "pass_mistakes" in event
        if "nnz" in event:
            self._shown["nnz"] = f", {event['nnz']:,} non-zeros"
        if "dev" in event:
            dev, metric = event["dev"], self.metric
            self._shown["dev"] = f", dev {metric} {scored(metric, dev[metric])}"
            if f"baseline_{metric}" in dev:
                first, best = (scored(metric, dev[f"{k}_{metric}"]) for k in ("baseline", "oracle"))
                self._shown["dev"] += f" (1-best {first}, oracle {best})"
        if self._bar is not None:
            self._bar.update(
                self._task,
                completed=event["epoch"],
                speed=self._speed(event),
                number=f"{int(-(-event['epoch'] // 1))}/{self.epochs}",
                mistakes=f"{100.0 * event['mistakes'] / event['samples']:.2f} %",
                **self._shown,
            )
        if ended and (self.epochs <= 50 or event["epoch"] % 10 == 0):
            self._line(event)

    def calibrating(self) -> None:
        """Passes are over: what comes now has a bar of its own."""
        self.__exit__()

    def _line(self, event: dict[str, Any]) -> None:
        self._print(
            f"pass {event['epoch']}: {event.get('counted', 'mistakes')} {online_error(event):.2f} %"
            f"{self._shown['nnz']}{self._shown['dev']}{_theory(event)}, "
            f"{event['seconds']:.2f} s"
        )

    def _speed(self, event: dict[str, Any]) -> str:
        now, (then, samples) = time.perf_counter(), self._before
        self._before = (now, event["samples"])
        return f"{(event['samples'] - samples) / max(now - then, 1e-9):,.0f} examples/s, "


def online_error(event: dict[str, Any]) -> float:
    """Mistakes of a pass in percent; examples of weight above one come more than once."""
    return 100.0 * event["pass_mistakes"] * event["epoch"] / event["samples"]


def _theory(event: dict[str, Any]) -> str:
    """Returns what an instrument says of the run so far, if there is one."""
    theory = event.get("theory")
    return f", {theory['says']}" if theory else ""


class Counting(Bar):
    """How much of a file has been read, on a terminal; elsewhere nothing is shown.

    Parameters
    ----------
    console : Console
        Where it is shown.
    what : str
        What is counted.
    """

    def __init__(self, console: Console, what: str) -> None:
        super().__init__(console)
        self.what = what

    def __call__(self, blocks: Iterable[Any], name: str) -> Iterator[Any]:
        """The blocks as they are; they are counted when the next one is asked for."""
        if self._bar is None:
            yield from blocks
            return
        name = os.path.basename(name)
        task = self._bar.add_task(f"reading {name}", total=None)
        started, count = time.perf_counter(), 0
        for block in blocks:
            count += len(block)
            yield block
            speed = count / max(time.perf_counter() - started, 1e-9)
            text = f"reading {name}: {count:,} {self.what}, {speed:,.0f} {self.what}/s"
            self._bar.update(task, description=text)


class Stages(Bar):
    """What the library says it does, once that takes a while, where no other bar is shown.

    While it is entered, ``hopefear.core.stages`` tells it of all work.

    Parameters
    ----------
    console : Console
        Where it is shown.
    """

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._lock = threading.RLock()
        self._work: list[Stage] = []
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        return self  # the line comes with the first work that takes long

    def __exit__(self, *_: Any) -> None:
        with self._lock:
            self._work.clear()
            self._hide()

    def begin(self, work: Stage) -> None:
        """Show this work, if it is not over soon."""
        if not self.console.terminal:
            return
        with self._lock:
            self._work.append(work)
            if len(self._work) == 1:
                self._timer = threading.Timer(_SOON, self._show)
                self._timer.daemon = True
                self._timer.start()

    def end(self, work: Stage) -> None:
        """It is over."""
        with self._lock:
            if work in self._work:
                self._work.remove(work)
            if not self._work:
                self._hide()

    def _columns(self) -> tuple[Any, ...]:
        from rich.progress import BarColumn, ProgressColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.table import Column
        from rich.text import Text

        stages = self

        class Work(ProgressColumn):
            """What is done at the moment, and how quickly."""

            def render(self, task: Any) -> Text:
                return Text(stages._words(task))

        words = Work(table_column=Column(no_wrap=True))
        return words, BarColumn(bar_width=20), TimeElapsedColumn(), TimeRemainingColumn()

    def _words(self, task: Any) -> str:
        with contextlib.suppress(IndexError):  # it may be over by now
            work = self._work[-1]
            task.completed, task.total = work.done, work.total
            if not work.done:
                return work.name
            speed = work.done / max(task.elapsed or 0.0, _SOON)
            of = f"{work.done:,} of {work.total:,}" if work.total else f"{work.done:,}"
            return f"{work.name}: {of} {work.unit}, {speed:,.0f}/s"
        return ""

    def _begin(self) -> None:
        self._bar.add_task("", total=None)

    def _show(self) -> None:
        with self._lock:
            if self._work and self._bar is None and not Bar.shown:
                super().__enter__()

    def _hide(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        super().__exit__()


class Compilation:
    """Announces the first compilation and times them all; a load from the cache is none.

    Parameters
    ----------
    console : Console
        Where it is announced.
    what : str
        What is compiled for.

    Attributes
    ----------
    seconds : float
        Seconds spent compiling so far.
    """

    def __init__(self, console: Console, what: str) -> None:
        self.seconds = 0.0
        self._console, self._what = console, what
        self._start: float | None = None  # of the last compilation

    def begin(self, work: Stage) -> None:
        """Announces the first compilation."""
        if work.name == COMPILING:
            if self._start is None:
                self._console.say(f"compiling kernels for {self._what}, once: {_SECONDS}")
            self._start = time.perf_counter()

    def end(self, work: Stage) -> None:
        """Adds up the seconds."""
        if work.name == COMPILING and self._start is not None:
            self.seconds += time.perf_counter() - self._start


@contextlib.contextmanager
def announced(console: Console, what: str = "this learner") -> Iterator[Compilation]:
    """Announces and times what is compiled while this is entered."""
    compilation = Compilation(console, what)
    with watched(compilation):
        yield compilation
