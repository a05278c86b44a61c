"""Reading and tuning as people watch them: a bar on a terminal, a line for each round."""

from __future__ import annotations

import os
import time
from typing import Any

from hopefear.cli.console import Console, scored

_MANY = 50  # rounds beyond which every tenth gets a line


class TuneWatcher:
    """A listener of tuning events.

    Parameters
    ----------
    console : Console
        Where lines go.
    metric : str
        The score to show.
    quiet_lines : bool
        Only the bar: for tuning inside the rounds of a decoder.
    """

    def __init__(self, console: Console, metric: str, quiet_lines: bool = False) -> None:
        self.console, self.metric, self.quiet_lines = console, metric, quiet_lines
        self._bar: Any = None

    def __enter__(self) -> TuneWatcher:
        if self.console.terminal:
            from rich.console import Console as Terminal
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("tuning{task.fields[round]}"),
                BarColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[scores]}"),
                console=Terminal(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task("", total=None, round="", scores="")
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, event: dict[str, Any]) -> None:
        epoch, of = event["epoch"], event.get("of")
        scores = ", ".join(
            f"{title} {self.metric} {scored(self.metric, event[name][self.metric])}"
            for name, title in (("train", "tuning"), ("dev", "dev"))
            if self.metric in event.get(name, {})
        )
        if self._bar is not None:
            number = f", round {epoch}" + (f"/{of}" if of else "")
            seed = f", seed {event['seed']}" if "seed" in event else ""
            self._bar.update(
                self._task, total=of, completed=epoch, round=number + seed, scores=scores
            )
        if not self.quiet_lines and (not of or of <= _MANY or epoch % 10 == 0):
            self._line(event, scores)

    def _line(self, event: dict[str, Any], scores: str) -> None:
        seed = f"seed {event['seed']}, " if "seed" in event else ""
        nnz = f", {event['nnz']:,} non-zeros" if "nnz" in event else ""
        time = f", {event['seconds']:.2f} s" if "seconds" in event else ""
        text = f"{seed}round {event['epoch']}: {scores}{nnz}{time}"
        if self._bar is not None:
            self._bar.console.print(text, highlight=False)
        else:
            self.console.say(text)


class ReadWatcher:
    """How many candidates have been read, on a terminal; elsewhere nothing is shown.

    Parameters
    ----------
    console : Console
        Where it is shown.
    name : str
        What is read.
    """

    def __init__(self, console: Console, name: str) -> None:
        self.console, self.name = console, os.path.basename(name)
        self._bar: Any = None

    def __enter__(self) -> ReadWatcher:
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
            self._task = self._bar.add_task(f"reading {self.name}", total=None)
            self._began = time.perf_counter()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, candidates: int) -> None:
        if self._bar is not None:
            speed = candidates / max(time.perf_counter() - self._began, 1e-9)
            text = f"reading {self.name}: {candidates:,} candidates, {speed:,.0f} a second"
            self._bar.update(self._task, description=text)
