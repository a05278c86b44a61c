"""Reading and tuning as people watch them: a bar on a terminal, a line for each round."""

from __future__ import annotations

import os
import time
from typing import Any

from hopefear.cli.console import Console, scored
from hopefear.cli.progress import Bar

_MANY = 50  # rounds beyond which every tenth gets a line


class TuneWatcher(Bar):
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
        super().__init__(console)
        self.metric, self.quiet_lines = metric, quiet_lines

    def _columns(self) -> tuple[Any, ...]:
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

        title = TextColumn("tuning{task.fields[round]}")
        scores = TextColumn("{task.fields[scores]}")
        return title, BarColumn(), TimeRemainingColumn(), scores

    def _begin(self) -> None:
        self._task = self._bar.add_task("", total=None, round="", scores="")

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
        self._print(f"{seed}round {event['epoch']}: {scores}{nnz}{time}")


class ReadWatcher(Bar):
    """How many candidates have been read, on a terminal; elsewhere nothing is shown.

    Parameters
    ----------
    console : Console
        Where it is shown.
    name : str
        What is read.
    """

    def __init__(self, console: Console, name: str) -> None:
        super().__init__(console)
        self.name = os.path.basename(name)

    def _begin(self) -> None:
        self._task = self._bar.add_task(f"reading {self.name}", total=None)
        self._began = time.perf_counter()

    def __call__(self, candidates: int) -> None:
        if self._bar is not None:
            speed = candidates / max(time.perf_counter() - self._began, 1e-9)
            text = f"reading {self.name}: {candidates:,} candidates, {speed:,.0f} a second"
            self._bar.update(self._task, description=text)
