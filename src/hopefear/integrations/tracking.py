"""Run folders for other trackers: MLflow, TensorBoard and Weights & Biases, offline all of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hopefear.errors import HopefearError
from hopefear.report.runs import Run, by_seed, distinct, load_run

_PACKAGES = {"mlflow": "mlflow", "tensorboard": "tensorboardX", "wandb": "wandb"}
_BATCH = 100  # parameters that MLflow takes at once


def replay(
    runs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    to: str,
    where: str | os.PathLike[str],
) -> None:
    """Write the settings and events of run folders as a tracker keeps them.

    Parameters
    ----------
    runs : path or sequence of paths
        Folders of runs, as ``hopefear train --run`` writes them. They are called as on the page of
        ``hopefear report``: by their folders, with the parents where these are equal, and with
        the seed where one folder has several.
    to : {"mlflow", "tensorboard", "wandb"}
        The tracker; its package is an extra of the same name.
    where : path
        Folder for its files, made if missing. MLflow gets the database ``mlflow.db``, TensorBoard
        and Weights & Biases a folder for each run.

    Notes
    -----
    Steps are the examples seen so far, or passes where they are not told. What an event says of
    held-out data has the name ``dev/NAME``.
    """
    check_tracker(to)
    folder = Path(where)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [runs] if isinstance(runs, str | os.PathLike) else list(runs)
    for run in distinct([load_run(path) for path in paths], paths):
        for part in by_seed(run):
            _WRITERS[to](part, folder)


def check_tracker(to: str) -> None:
    """Raises HopefearError for an unknown tracker, or one whose package is missing."""
    from importlib.util import find_spec

    if to not in _PACKAGES:
        raise HopefearError(f"there is no tracker {to!r}; there are {', '.join(_PACKAGES)}")
    if find_spec(_PACKAGES[to]) is None:
        raise HopefearError(
            f"{to} needs the package {_PACKAGES[to]}, which is not installed: "
            f"pip install 'hopefear[{to}]'"
        )


def numbers_of(event: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yields all numbers of an event, by name; nested ones have the outer name before them.

    >>> dict(numbers_of({"loss": 0.5, "dev": {"f1": 90}, "note": "x", "nnz": None}))
    {'loss': 0.5, 'dev/f1': 90.0}
    """
    for name, value in event.items():
        if isinstance(value, Mapping):
            yield from numbers_of(value, f"{prefix}{name}/")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield prefix + name, float(value)


def _steps(run: Run) -> Iterator[tuple[int, dict[str, float]]]:
    clock = run.clock()
    for event in run.events:
        yield int(event.get(clock) or 0), dict(numbers_of(event))


def _settings(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Settings in one level, as text."""
    flat: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= _settings(value, f"{prefix}{name}.")
        elif value is not None:
            flat[prefix + name] = str(value)
    return flat


def _to_tensorboard(run: Run, folder: Path) -> None:
    from tensorboardX import SummaryWriter

    with SummaryWriter(str(folder / run.name)) as writer:
        lines = [f"- {name}: {value}" for name, value in _settings(run.settings).items()]
        writer.add_text("settings", "\n".join(lines))
        for step, values in _steps(run):
            for name, value in values.items():
                writer.add_scalar(name, value, step)


def _to_mlflow(run: Run, folder: Path) -> None:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param

    client = MlflowClient(tracking_uri=f"sqlite:///{(folder / 'mlflow.db').resolve()}")
    experiment = client.get_experiment_by_name("hopefear")
    location = (folder / "artifacts").resolve().as_uri()
    number = (
        experiment.experiment_id if experiment else client.create_experiment("hopefear", location)
    )
    entry = client.create_run(number, run_name=run.name).info.run_id
    params = [Param(name, value[:500]) for name, value in _settings(run.settings).items()]
    for start in range(0, len(params), _BATCH):
        client.log_batch(entry, params=params[start : start + _BATCH])
    for step, values in _steps(run):
        metrics = [Metric(name, value, 0, step) for name, value in values.items()]
        client.log_batch(entry, metrics=metrics)
    client.set_terminated(entry)


def _to_wandb(run: Run, folder: Path) -> None:
    import wandb

    entry = wandb.init(
        project="hopefear",
        name=run.name,
        dir=str(folder.absolute()),  # its service, once started, keeps its own current folder
        mode="offline",
        config=dict(run.settings),
        settings=wandb.Settings(silent=True, console="off"),
    )
    for step, values in _steps(run):
        entry.log(values, step=step)
    entry.finish()


_WRITERS: dict[str, Callable[[Run, Path], None]] = {
    "mlflow": _to_mlflow,
    "tensorboard": _to_tensorboard,
    "wandb": _to_wandb,
}
