"""Run folders and reports of them: what each learned, how fast, how sparse, within which bound.

Folders hold settings and events and are read with patience for killed processes.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from hopefear.errors import HopefearError, InputError
from hopefear.report.page import Best, Page, value_text
from hopefear.report.plot import Plot

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
        """Seconds of the run, None where its events lack them."""
        return max((time for time in self.times() if time is not None), default=None)

    def times(self) -> list[float | None]:
        """Seconds from the start to every event; None where that cannot be known.

        Events have the time of their epoch or round. Those inside an epoch have none: it is
        spread evenly over them.

        >>> events = [{"epoch": 0.5}, {"epoch": 1, "seconds": 2.0}, {"epoch": 2, "seconds": 1.0}]
        >>> Run("a", {}, events, []).times()
        [1.0, 2.0, 3.0]
        """
        times: list[float | None] = [None] * len(self.events)
        total, epoch, waiting = 0.0, 0.0, list[tuple[int, float]]()
        for k, event in enumerate(self.events):
            seconds, here = as_number(event.get("seconds")), as_number(event.get("epoch"))
            if seconds is None:
                waiting += [] if here is None else [(k, here)]
                continue
            for j, epoch_before in waiting:
                if here is not None and epoch <= epoch_before < here:
                    times[j] = total + seconds * (epoch_before - epoch) / (here - epoch)
            total += seconds
            times[k], epoch, waiting = total, epoch if here is None else here, []
        return times

    def curve(self, *keys: str, clock: str | None = None) -> tuple[list[float], list[float]]:
        """Returns values under nested keys, and the samples (or epochs) of their events.

        ``clock`` names another count of events to go by, such as ``seconds``.
        """
        clock = clock or self.clock()
        positions = [as_number(event.get(clock)) for event in self.events]
        values = [as_number(look_up(event, *keys)) for event in self.events]
        pairs = zip(self.times() if clock == "seconds" else positions, values, strict=True)
        points = [(x, y) for x, y in pairs if x is not None and y is not None]
        return [x for x, _ in points], [y for _, y in points]

    def clock(self) -> str:
        """Unit of the x axis: samples, or epochs where events have no samples."""
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
    path = Path(folder)
    remarks: list[str] = []
    try:
        settings = json.loads(_read(path / "run.json"))
    except ValueError as error:
        raise InputError(
            str(path / "run.json"), getattr(error, "lineno", 0), "a JSON object", str(error)
        ) from error
    if not isinstance(settings, dict):
        raise InputError(str(path / "run.json"), 0, "a JSON object", type(settings).__name__)
    events = _in_order(_events(path / "events.jsonl", remarks), remarks)
    if not events:
        remarks.append("no events yet")
    return Run(path.resolve().name, settings, events, remarks)


def by_seed(run: Run) -> list[Run]:
    """Splits a run by seed where its events have several."""
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
        seed_events = parts.setdefault(str(event.get("seed")), [])
        at = _moment(event)
        while seed_events and at is not None and (_moment(seed_events[-1]) or 0.0) > at:
            seed_events.pop()
            repeated += 1
        if seed_events and at is not None and _moment(seed_events[-1]) == at:
            seed_events[-1] = seed_events[-1] | event
        else:
            seed_events.append(event)
    if repeated:
        remarks.append(f"was resumed, and {repeated} events it wrote twice are shown once")
    return [event for seed_events in parts.values() for event in seed_events]


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


_LOWER_IS_BETTER = ("error", "loss", "perplexity", "mistakes", "cost", "risk", "nnz")
_ERRORS = ("ter", "wer", "cer")


def run_report(
    folders: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    sections: Sequence[Callable[[Page, Sequence[Run]], None]] = (),
) -> Page:
    """Write one page that shows training runs side by side.

    Parameters
    ----------
    folders : sequence of paths
        Run folders, one or more; each holds ``run.json`` and ``events.jsonl``.
    out : path
        HTML file to write.
    sections : sequence of callables
        Each adds sections to the page, before the settings.

    Returns
    -------
    Page
        The page as written.
    """
    if not folders:
        raise HopefearError("a report needs at least one run folder, and none was given")
    loaded = distinct([load_run(folder) for folder in folders], folders)
    runs = [part for run in loaded for part in by_seed(run)]
    signatures = dict.fromkeys(str(run.settings.get("signature", "")) for run in runs)
    page = Page(
        runs[0].name if len(runs) == 1 else f"{len(runs)} training runs",
        _subtitle(runs),
        signature="\n".join(filter(None, signatures)),
    )
    _summary(page, runs)
    _curves(page, runs)
    _scores(page, runs, "train", "On the lists tuned on", "Tuning")
    _scores(page, runs, "dev", "On development data", "Development")
    for draw in sections:
        draw(page, runs)
    _settings(page, runs)
    page.write(out)
    return page


def _summary(page: Page, runs: Sequence[Run]) -> None:
    page.section("Summary")
    measured = {
        (name, metric): f"best {name} {metric}"
        for name in ("train", "dev")
        for metric in _metrics(runs, name)
    }
    columns_of_summary = {
        key: title
        for key, title in (
            ("epoch", "epochs"),
            ("samples", "samples"),
            ("updates", "updates"),
            ("mistakes", "mistakes"),
            ("loss", "loss"),
            ("nnz", "non-zeros"),
            ("mean_abs_weight", "mean |w|"),
            ("seconds", "seconds"),
            ("merges", "merges of shards"),
            ("waited", "seconds shards waited"),
        )
        if any(run.last(key) is not None for run in runs)
    }
    columns = ["run", "learner", *measured.values(), *columns_of_summary.values()]
    rows = [
        [
            run.name,
            value_text(run.settings.get("learner")),
            *(_best(run, *keys) for keys in measured),
            *(run.seconds() if key == "seconds" else run.last(key) for key in columns_of_summary),
        ]
        for run in runs
    ]
    best = {title: _direction(metric) for (_, metric), title in measured.items()}
    notes = [f"**{run.name}**: {remark}." for run in runs for remark in run.remarks]
    page.table(
        columns, rows, "Where each run stands after its last event.", highlight=best, notes=notes
    )
    if len({str(look_up(run.settings, "data", "digest")) for run in runs}) > 1:
        page.text(
            "**These runs did not see the same data**: their digests differ, so their "
            "numbers cannot be compared directly."
        )


def _curves(page: Page, runs: Sequence[Run]) -> None:
    kinds = (
        ("mistakes", "Training mistakes", "mistakes so far"),
        ("loss", "Training loss", "loss"),
        ("objective", "What is minimised", "objective"),
        ("gap", "Duality gap", "share of the objective"),
        ("nnz", "Sparsity", "non-zero weights"),
        ("mean_abs_weight", "Size of the weights", "mean |w|"),
    )
    curves = [(title, label, (key,)) for key, title, label in kinds]
    curves = [curve for curve in curves if any(run.curve(*curve[2])[0] for run in runs)]
    if curves:
        _along(page.section("While training"), runs, curves)


def _scores(page: Page, runs: Sequence[Run], name: str, title: str, short: str) -> None:
    metrics = _metrics(runs, name)
    if not metrics:
        return
    _along(page.section(title), runs, [(f"{short} {m}", m, (name, m)) for m in metrics])
    trades = []
    for clock, label in (("nnz", "non-zero weights"), ("seconds", "seconds")):
        plot = Plot(f"{short} {metrics[0]} against {label}", label, metrics[0], "log")
        for look, run in enumerate(runs):
            x, y = run.curve(name, metrics[0], clock=clock)
            if x:
                plot.points(x[-1:], y[-1:], run.name, look=look)
        trades += [plot] if plot.series else []
    if len(runs) > 1 and trades:
        page.figures(trades)


def _settings(page: Page, runs: Sequence[Run]) -> None:
    page.section("Settings")
    flat = [_flatten(run.settings) for run in runs]
    keys = list(dict.fromkeys(key for settings in flat for key in settings))
    if len(runs) == 1:
        page.keyvalues(flat[0])
        return
    differ = [k for k in keys if len({value_text(f.get(k)) for f in flat}) > 1]
    if differ:
        page.table(
            ["setting", *(run.name for run in runs)],
            [[k, *(value_text(f.get(k)) for f in flat)] for k in differ],
            "What differs between the runs.",
            align="l" * (len(runs) + 1),
        )
    shared = {k: flat[0].get(k) for k in keys if k not in differ}
    if shared:
        with page.details("What the runs share"):
            page.keyvalues(shared)


_CLOCKS = {"epoch": "epochs", "samples": "samples", "seconds": "seconds"}


def _along(page: Page, runs: Sequence[Run], kinds: Sequence[tuple[str, str, Any]]) -> None:
    """Adds curves by every clock of the events, from which the reader chooses."""
    parts = {}
    for clock, words in _CLOCKS.items():
        plots = [_compare(runs, title, label, *keys, clock=clock) for title, label, keys in kinds]
        if any(plot.series for plot in plots):
            parts[words] = partial(page.figures, plots)
    default = _CLOCKS[runs[0].clock()]
    if len(parts) > 1:
        page.choices("Along", parts, default if default in parts else next(iter(parts)))
    elif parts:
        next(iter(parts.values()))()


def _compare(runs: Sequence[Run], title: str, label: str, *keys: str, clock: str) -> Plot:
    plot = Plot(title, _CLOCKS[clock], label)
    for look, run in enumerate(runs):
        x, y = run.curve(*keys, clock=clock)
        if x:
            plot.line(x, y, run.name, look=look)
    return plot


def distinct(runs: Sequence[Run], folders: Sequence[str | os.PathLike[str]]) -> list[Run]:
    """Returns the runs under names that are distinct."""
    names = [run.name for run in runs]
    if len(set(names)) == len(names):
        return list(runs)
    # Equal folder names: lengthen all by their parents; a folder given twice gets a number.
    longer = ["/".join(Path(folder).resolve().parts[-2:]) for folder in folders]
    return [
        run._replace(name=name if longer.count(name) == 1 else f"{name} #{i + 1}")
        for i, (run, name) in enumerate(zip(runs, longer, strict=True))
    ]


def _subtitle(runs: Sequence[Run]) -> str:
    tasks = list(dict.fromkeys(str(r.settings["task"]) for r in runs if "task" in r.settings))
    learners = list(
        dict.fromkeys(str(r.settings["learner"]) for r in runs if "learner" in r.settings)
    )
    return " · ".join(part for part in (", ".join(tasks), ", ".join(learners)) if part)


def _metrics(runs: Sequence[Run], key: str) -> list[str]:
    scores = [_mapping(event, key) for run in runs for event in run.events]
    return list(
        dict.fromkeys(
            name
            for names in scores
            for name, value in names.items()
            if name != "count" and as_number(value) is not None
        )
    )


def _best(run: Run, name: str, metric: str) -> float | None:
    values = [v for v in run.curve(name, metric)[1] if math.isfinite(v)]
    if not values:
        return None
    return max(values) if _direction(metric) == "max" else min(values)


def _direction(metric: str) -> Best:
    lower = metric in _ERRORS or any(word in metric.lower() for word in _LOWER_IS_BETTER)
    return "min" if lower else "max"


def _mapping(event: Event, key: str) -> dict[str, Any]:
    content = event.get(key)
    return content if isinstance(content, dict) else {}


def _flatten(settings: dict[str, Any], above: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{above}{key}.")
        else:
            flat[f"{above}{key}"] = value
    return flat
