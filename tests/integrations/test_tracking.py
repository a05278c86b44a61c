"""Run folders as trackers keep them, offline, each where it is installed."""

from __future__ import annotations

import sqlite3
import sys
import time
from unittest.mock import Mock

import pytest
from golden import files

from hopefear import HopefearError
from hopefear.cli import main
from hopefear.integrations import tracking
from hopefear.integrations.tracking import replay
from hopefear.report.runs import load_run
from hopefear.training.events import EventLog

pytestmark = [
    pytest.mark.interpreted,
    pytest.mark.filterwarnings("ignore"),  # those of other people's packages are theirs
]


@pytest.fixture
def run(tmp_path, monkeypatch):
    files.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    words = "train classify --train train-two.svm --dev dev-two.svm --epochs 2 --run runs/a"
    assert main([*words.split(), "--model", "m", "--quiet"]) == 0
    return load_run("runs/a")


def last_accuracy(run):
    return run.events[-1]["dev"]["accuracy"]


@pytest.mark.needs("tensorboard")
def test_tensorboard(run, tmp_path):
    assert main(["report", "runs/a", "--to", "tensorboard=logs", "--quiet"]) == 0
    content = b"".join(path.read_bytes() for path in tmp_path.glob("logs/a/events.*"))
    assert b"dev/accuracy" in content and b"loss" in content


@pytest.mark.needs("mlflow")
def test_mlflow(run, tmp_path):
    replay("runs/a", "mlflow", "tracked")
    replay("runs/a", "mlflow", "tracked")  # a second run of the same experiment
    with sqlite3.connect("tracked/mlflow.db") as base:
        rows = base.execute(
            "select value from metrics where key = 'dev/accuracy' order by step"
        ).fetchall()
        (learner,) = base.execute("select value from params where key = 'learner'").fetchone()
    base.close()
    assert len(rows) == 4 and rows[-1][0] == last_accuracy(run)
    assert learner == run.settings["learner"]


@pytest.mark.needs("wandb")
def test_wandb(run, tmp_path):
    replay("runs/a", "wandb", "tracked")
    (written,) = tmp_path.glob("tracked/wandb/offline-run-*/run-*.wandb")
    for _ in range(100):  # its own process writes the last bytes a moment later
        if b"dev/accuracy" in written.read_bytes():
            break
        time.sleep(0.1)
    assert b"dev/accuracy" in written.read_bytes()


def written(folder, *events, **settings):
    with EventLog(folder) as log:
        log.describe(settings)
        for event in events:
            log(event)


def test_runs_are_called_as_on_the_page(tmp_path, monkeypatch):
    names = []
    monkeypatch.setattr(tracking, "check_tracker", lambda to: None)
    monkeypatch.setitem(tracking._WRITERS, "tensorboard", lambda run, _: names.append(run.name))
    written(tmp_path / "a" / "r", {"epoch": 1})
    written(tmp_path / "b" / "r", {"epoch": 1, "seed": 1}, {"epoch": 1, "seed": 2})
    replay([tmp_path / "a" / "r", tmp_path / "b" / "r"], "tensorboard", tmp_path / "logs")
    assert names == ["a/r", "b/r, seed 1", "b/r, seed 2"]


def test_mlflow_gets_every_setting(tmp_path, monkeypatch):
    client = Mock()
    mlflow = Mock(MlflowClient=lambda **_: client)
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setitem(sys.modules, "mlflow.entities", mlflow.entities)
    monkeypatch.setattr(tracking, "check_tracker", lambda to: None)
    written(tmp_path / "r", **{f"key{k}": k for k in range(230)})
    replay(tmp_path / "r", "mlflow", tmp_path / "tracked")
    sizes = [len(call.kwargs["params"]) for call in client.log_batch.mock_calls]
    assert sum(sizes) >= 230 and max(sizes) <= 100


def test_what_is_missing_is_told_first(run, capsys, monkeypatch):
    with pytest.raises(HopefearError, match="no tracker 'neptune'; there are mlflow"):
        replay("runs/a", "neptune", "x")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(HopefearError, match=r"pip install 'hopefear\[wandb\]'"):
        replay("runs/a", "wandb", "x")
    assert main(["report", "runs/a"]) == 2
    assert "--to TRACKER=DIR is needed" in capsys.readouterr().err
