"""What the command line answered when it was recorded, it answers still.

``record.py`` beside this file records anew. Interpreted, all of it is compared; in a compiled run
one learner of each task is.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden import files, runs

HERE = Path(__file__).parent
INTERPRETED = runs.mode() == "interpreted"
plain_only = pytest.mark.skipif(not INTERPRETED, reason="interpreted; set NUMBA_DISABLE_JIT=1")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden")
    files.write(folder)
    return runs.Command(folder)


def expected(task):
    values = json.loads((HERE / f"{task}.json").read_text(encoding="utf-8"))
    return values[runs.mode()], values["machine"] == runs.machine()


def same(task, name, new):
    old, exact = expected(task)
    new = json.loads(json.dumps(new))
    found = list(runs.differences(old[name], new, exact, f"{task}/{name}"))
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("task", "name"),
    [
        pytest.param(task, name, marks=() if runs.COMPILED[task] == name else plain_only)
        for task, cases in runs.CASES.items()
        for name in cases
    ],
)
def test_learner(task, name, run):
    same(task, name, runs.learner(task, name, run))


@plain_only
@pytest.mark.parametrize("task", [task for task in runs.CASES if task != "tune"])
def test_comparison(task, run):
    same(task, "compare", runs.comparison(task, run))


@plain_only
@pytest.mark.parametrize("task", runs.CASES)
def test_estimator(task):
    same(task, "estimator", runs.estimator(task))


@plain_only
def test_surface(run):
    new = runs.surface(run)
    for part in ("help", "learners"):
        same("surface", part, new[part])


def test_a_difference_names_its_entry_and_both_values():
    old = {"a": {"n": 1.0, "keys": ["x", "y"]}, "exact": {"file": "1"}, "gone": True}
    new = {"a": {"n": 1.1, "keys": ["x", "z"]}, "exact": {"file": "2"}, "more": None}
    assert list(runs.differences(old, new, exact=True)) == [
        "/a/keys: removed 'y'",
        "/a/keys: added 'z'",
        "/a/n: was 1.0, is 1.1",
        '/exact/file: was "1", is "2"',
        "/gone: was true, is gone",
        "/more: is new: null",
    ]
    assert not list(runs.differences({"exact": 1, "n": 1.0}, {"exact": 2, "n": 1.00001}, False))
