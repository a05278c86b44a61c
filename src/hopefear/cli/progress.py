"""Progress of long work for people: one bar on a terminal, and a line for each finished epoch.

Of more than fifty epochs, as iterations of batch learners are, every tenth gets a line. That the
first run of a learner takes seconds longer is said, too.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any, Self

from hopefear.cli.console import Console
from hopefear.core.progress import COMPILING, Stage, stage, watched
from hopefear.training.loop import epoch_line

_SOON = 0.7  # seconds: shorter work is over before one could read what it is
_MANY = 50  # epochs beyond which every tenth gets a line
_SECONDS = "some seconds, for some up to a minute"  # that compiling takes


class ProgressBar:
    """Listener of ``hopefear.core.progress`` that shows the innermost stage on a terminal.

    Parameters
    ----------
    console : Console
        Where it is shown; only on a terminal.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._bar: Any = None
        self._lock = threading.RLock()
        self._work: list[Stage] = []
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        return self  # the bar comes with the first work that takes long

    def __exit__(self, *_: Any) -> None:
        with self._lock:
            self._work.clear()
            self._hide()

    def begin(self, work: Stage) -> None:
        """Shows this work, if it is not over soon."""
        if not self.console.terminal:
            return
        with self._lock:
            self._work.append(work)
            if len(self._work) == 1:
                self._timer = threading.Timer(_SOON, self._show)
                self._timer.daemon = True
                self._timer.start()

    def end(self, work: Stage) -> None:
        """Hides the bar when no work is left."""
        with self._lock:
            if work in self._work:
                self._work.remove(work)
            if not self._work:
                self._hide()

    def _show(self) -> None:
        from rich.console import Console as Terminal
        from rich.progress import (
            BarColumn,
            Progress,
            ProgressColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.table import Column
        from rich.text import Text

        words = self._words

        class Words(ProgressColumn):
            """What is done at the moment, and how quickly."""

            def render(self, task: Any) -> Text:
                return Text(words(task))

        with self._lock:
            if not self._work or self._bar is not None:
                return
            # Lines on standard error appear above the bar; standard output is left alone.
            self._bar = Progress(
                Words(table_column=Column(no_wrap=True, overflow="ellipsis")),
                BarColumn(bar_width=12, table_column=Column(min_width=12)),
                TimeElapsedColumn(table_column=Column(min_width=7, no_wrap=True)),
                TimeRemainingColumn(table_column=Column(min_width=7, no_wrap=True)),
                console=Terminal(stderr=True),
                transient=True,
                redirect_stdout=False,
            )
            self._bar.start()
            self._bar.add_task("", total=None)

    def _hide(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _words(self, task: Any) -> str:
        with contextlib.suppress(IndexError):  # it may be over by now
            work = self._work[-1]
            task.completed, task.total = work.done, work.total
            if work.text or not work.done:
                return work.text or work.name
            speed = work.done / max(task.elapsed or 0.0, _SOON)
            if work.unit == "bytes" and (work.total or work.done) >= 1e6:
                of = f"{work.done / 1e6:,.0f} of {work.total / 1e6:,.0f}" if work.total else ""
                return f"{work.name}: {of or f'{work.done / 1e6:,.0f}'} MB, {speed / 1e6:,.1f}/s"
            of = f"{work.done:,} of {work.total:,}" if work.total else f"{work.done:,}"
            return f"{work.name}: {of} {work.unit}, {speed:,.0f}/s"
        return ""


class TrainingLines:
    """Listener of training events: a line for each epoch, and a stage while it is entered.

    Parameters
    ----------
    console : Console
        Where lines go.
    epochs : int
        Epochs at most.
    metric : str
        Score on held-out data to show.
    """

    def __init__(self, console: Console, epochs: int, metric: str = "error") -> None:
        self.console, self.epochs, self.metric = console, epochs, metric
        self._before = (time.perf_counter(), 0)
        self._stages = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._work = self._stages.enter_context(stage("training", self.epochs))
        return self

    def __exit__(self, *_: Any) -> None:
        self._stages.close()

    def __call__(self, event: dict[str, Any]) -> None:
        epoch = event["epoch"]
        self._work.done = epoch
        error = 100.0 * event["mistakes"] / max(1, event["samples"])  # none before a merge
        self._work.text = (
            f"epoch {int(-(-epoch // 1))}/{self.epochs}, {self._speed(event):,.0f} examples/s, "
            f"error {error:.1f} %"
        )
        if "pass_mistakes" in event and (self.epochs <= _MANY or epoch % 10 == 0):
            theory = f", {event['theory']['says']}" if event.get("theory") else ""
            self.console.say(f"{epoch_line(event, self.metric)}{theory}")

    def calibrating(self) -> None:
        """Ends the stage: epochs are over."""
        self._stages.close()

    def _speed(self, event: dict[str, Any]) -> float:
        now, (then, samples) = time.perf_counter(), self._before
        self._before = (now, event["samples"])
        return (event["samples"] - samples) / max(now - then, 1e-9)


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
