"""Reading and training as people watch them: a bar on a terminal, a line for each finished pass.

Of more than fifty passes, as iterations of batch learners are, every tenth gets a line.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from typing import Any

from hopefear.cli.console import Console, scored


class Watcher:
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
        self.console, self.epochs, self.metric = console, epochs, metric
        self._bar: Any = None
        self._shown = {"nnz": "", "dev": ""}
        self._before = (time.perf_counter(), 0)

    def __enter__(self) -> Watcher:
        if self.console.terminal:
            from rich.console import Console as Terminal
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("pass {task.fields[number]}"),
                BarColumn(),
                TimeRemainingColumn(),
                TextColumn(
                    "{task.fields[speed]}mistakes {task.fields[mistakes]}"
                    "{task.fields[nnz]}{task.fields[dev]}"
                ),
                console=Terminal(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(
                "",
                total=self.epochs,
                number="1",
                speed="",
                mistakes="–",
                nnz="",
                dev="",
            )
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, event: dict[str, Any]) -> None:
        ended = "pass_mistakes" in event
        if "nnz" in event:
            self._shown["nnz"] = f", {event['nnz']:,} non-zeros"
        if "dev" in event:
            self._shown["dev"] = (
                f", dev {self.metric} {scored(self.metric, event['dev'][self.metric])}"
            )
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

    def _line(self, event: dict[str, Any]) -> None:
        text = (
            f"pass {event['epoch']}: mistakes {online_error(event):.2f} %"
            f"{self._shown['nnz']}{self._shown['dev']}{_bound(event)}, "
            f"{event['seconds']:.2f} s"
        )
        if self._bar is not None:
            self._bar.console.print(text, highlight=False)
        else:
            self.console.say(text)

    def _speed(self, event: dict[str, Any]) -> str:
        now, (then, samples) = time.perf_counter(), self._before
        self._before = (now, event["samples"])
        return f"{(event['samples'] - samples) / max(now - then, 1e-9):,.0f} examples/s, "


def online_error(event: dict[str, Any]) -> float:
    """Mistakes of a pass in percent; examples of weight above one come more than once."""
    return 100.0 * event["pass_mistakes"] * event["epoch"] / event["samples"]


def _bound(event: dict[str, Any]) -> str:
    bound = event.get("bound")
    if not bound:
        return ""
    limit = "none (vacuous)" if bound["theorem1"] is None else f"{bound['theorem1']:,.0f}"
    return f", {bound['mistakes']:,} mistakes so far, bound {limit}"


class Counting:
    """How much of a file has been read, on a terminal; elsewhere nothing is shown.

    Parameters
    ----------
    console : Console
        Where it is shown.
    what : str
        What is counted.
    """

    def __init__(self, console: Console, what: str) -> None:
        self.console, self.what = console, what
        self._bar: Any = None

    def __enter__(self) -> Counting:
        if self.console.terminal:
            from rich.console import Console as Terminal
            from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            self._bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                TimeElapsedColumn(),
                console=Terminal(stderr=True),
                transient=True,
            )
            self._bar.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.stop()

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
