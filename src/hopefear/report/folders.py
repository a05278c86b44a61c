"""Run folders: settings and events of a training run, read with patience for killed processes."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hopefear.errors import HopefearError, InputError

Event = dict[str, Any]


class Run(NamedTuple):
    """One training run as read from its folder.

    Parameters
    ----------
    name : str
        The folder's name.
    settings : dict
        Content of ``run.json``.
    events : list of dict
        Lines of ``events.jsonl`` in the order of samples seen.
    remarks : list of str
        What was odd about the files, in words for the page.
    """

    name: str
    settings: dict[str, Any]
    events: list[Event]
    remarks: list[str]

    def last(self, key: str) -> Any:
        """The latest value of a key, or None."""
        return next((e[key] for e in reversed(self.events) if e.get(key) is not None), None)

    def seconds(self) -> float | None:
        """Time it took: the last event knows it all, but in tuning each tells its own round's."""
        if self.settings.get("task") != "tune":
            return as_number(self.last("seconds"))
        told = [as_number(event.get("seconds")) for event in self.events]
        return sum(filter(None, told)) if any(t is not None for t in told) else None

    def curve(self, *keys: str) -> tuple[list[float], list[float]]:
        """Values found under nested keys, and the samples (or epochs) they belong to."""
        clock = self.clock()
        pairs = [(as_number(e.get(clock)), as_number(look_up(e, *keys))) for e in self.events]
        kept = [(x, y) for x, y in pairs if x is not None and y is not None]
        return [x for x, _ in kept], [y for _, y in kept]

    def clock(self) -> str:
        """What the x axis counts: samples, or epochs where samples are not told."""
        return "samples" if self.last("samples") is not None else "epoch"


def load_run(folder: str | os.PathLike[str]) -> Run:
    """Read ``run.json`` and ``events.jsonl`` of a run folder.

    A last line cut short, as a killed process leaves it, is ignored with a remark. Where a
    resumed run repeats samples, what it wrote later counts.

    Parameters
    ----------
    folder : path
        Folder that training wrote its run to.
    """
    place = Path(folder)
    remarks: list[str] = []
    try:
        settings = json.loads(_read(place / "run.json"))
    except ValueError as error:
        raise InputError(
            str(place / "run.json"), getattr(error, "lineno", 0), "a JSON object", str(error)
        ) from error
    if not isinstance(settings, dict):
        raise InputError(str(place / "run.json"), 0, "a JSON object", type(settings).__name__)
    events = _in_order(_events(place / "events.jsonl", remarks), remarks)
    if not events:
        remarks.append("no events yet")
    return Run(place.resolve().name, settings, events, remarks)


def by_seed(run: Run) -> list[Run]:
    """The run, or one for each seed where its events tell several."""
    parts: dict[str, list[Event]] = {}
    for event in run.events:
        parts.setdefault(str(event.get("seed")), []).append(event)
    if len(parts) < 2:
        return [run]
    return [
        run._replace(name=f"{run.name}, seed {seed}", events=events)
        for seed, events in parts.items()
    ]


def look_up(values: Any, *keys: str) -> Any:
    """The value under nested keys, or None where a level is missing or no mapping.

    Examples
    --------
    >>> look_up({"dev": {"f1": 93.5}}, "dev", "f1")
    93.5
    """
    for key in keys:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def as_number(value: object) -> float | None:
    """The value as a float when JSON gave a number, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _events(path: Path, remarks: list[str]) -> list[Event]:
    lines = _read(path).split("\n")
    events: list[Event] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except ValueError as error:
            # Only a line without its newline can have been cut short by a killed process.
            if number == len(lines):
                remarks.append("the last line of its events was cut short and is left out")
                break
            raise InputError(str(path), number, "one JSON object", line) from error
        if not isinstance(event, dict):
            raise InputError(str(path), number, "one JSON object", line)
        events.append(event)
    return events


def _in_order(events: Sequence[Event], remarks: list[str]) -> list[Event]:
    """Events with samples never decreasing: what a resumed run did again replaces the first try.

    Every seed, where events tell it, begins anew.
    """
    parts: dict[str, list[Event]] = {}
    repeated = 0
    for event in events:
        kept = parts.setdefault(str(event.get("seed")), [])
        at = _moment(event)
        while kept and at is not None and (_moment(kept[-1]) or 0.0) > at:
            kept.pop()
            repeated += 1
        if kept and at is not None and _moment(kept[-1]) == at:
            kept[-1] = kept[-1] | event
        else:
            kept.append(event)
    if repeated:
        remarks.append(f"was resumed, and {repeated} events it wrote twice are shown once")
    return [event for kept in parts.values() for event in kept]


def _moment(event: Event) -> float | None:
    return as_number(event.get("samples", event.get("epoch")))


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except OSError as error:
        raise HopefearError(
            f"{path}: cannot be read ({error.strerror or error}); a run folder "
            "holds run.json and events.jsonl, as training writes them"
        ) from error
