"""``hopefear warm-up``: what it compiles is what people need, and nothing is left to compile."""

from __future__ import annotations

import os
import subprocess
import sys

import numba
import pytest
from extras import is_installed
from small_trees import quick, quickest  # noqa: F401 - fixtures

from hopefear.cli import main, warm_up
from hopefear.cli.surface import Rehearsal
from hopefear.errors import HopefearError
from hopefear.recipes import NetworkRecipe
from hopefear.tasks import TASKS, recipes_of

_TORCH = is_installed("neural")


def said(capsys, *words):
    status = main(["warm-up", *words])
    return status, capsys.readouterr().err


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_its_commands(task):
    assert all(warm_up.rehearsal_of(task))


def test_the_default_comes_first_and_what_learners_share_last():
    jobs = warm_up.jobs_of(["tag"])
    assert jobs[0] == ("tag", TASKS["tag"].learner) and jobs[-1] == ("tag", "")
    networks = {n for n, one in recipes_of("tag").items() if isinstance(one, NetworkRecipe)}
    usable = set(recipes_of("tag")) - (set() if _TORCH else networks)
    assert {name for _, name in jobs} == {*usable, ""}
    assert warm_up.jobs_of([], ["mert"]) == [("tune", "mert"), ("tune", "")]


@pytest.mark.parametrize("task", TASKS)
def test_three_learners_of_a_task_are_recommended_the_default_first(task):
    jobs = warm_up.jobs_of([task], recommended=True)
    assert [job.learner for job in jobs] == [*TASKS[task].learners, ""] and len(jobs) == 4
    assert TASKS[task].learner == jobs[0].learner and set(TASKS[task].learners) < {
        *recipes_of(task)
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing"], "warm-up has no task 'nothing'; there are classify"),
        (["tag", "--learner", "mert"], "no task of tag has a learner 'mert'"),
    ],
)
def test_wrong_names_are_refused(capsys, words, message):
    status, err = said(capsys, *words)
    assert status == 1 and message in err


@pytest.mark.interpreted
@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("shared", [False, True])
def test_commands_do_as_they_are_meant(task, shared):
    job = warm_up.Job(task, "" if shared else TASKS[task].learner)
    assert warm_up.work(job) == warm_up.Outcome([], [])


@pytest.mark.interpreted
def test_what_a_learner_cannot_do_is_said_with_the_reason(monkeypatch):
    lines = ("train choose", "predict one", "predict two", "train again", "evaluate")
    monkeypatch.setattr(warm_up, "rehearsal_of", lambda task: Rehearsal(lines, lines))

    def run(line, more):
        if line == "train choose":
            raise HopefearError("it has no second order")
        assert more == (["--learner", "risk"] if line == "train again" else [])
        if line == "evaluate":
            raise ZeroDivisionError("oh")

    monkeypatch.setattr(warm_up, "_run", run)
    refused, failed = warm_up.work(warm_up.Job("choose", "risk"))
    assert refused == [("train choose", "it has no second order")]
    assert failed == [("evaluate", "ZeroDivisionError: oh")]


def refused(job):
    """A job that a learner refuses."""
    return warm_up.Outcome([("train", "why")] if job.learner == "sapo" else [], [])


def test_what_is_refused_is_said_and_no_error(capsys, monkeypatch):
    monkeypatch.setattr(warm_up, "work", refused)
    status, err = said(capsys, "tag", "--recommended")
    assert status == 0 and "4/4 tag" in err and "not possible: tag sapo: train: why" in err


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_nothing_is_left_to_compile(tmp_path):
    kernels, env = tmp_path / "kernels", {**os.environ, "HOPEFEAR_CACHE": str(tmp_path)}

    def run(*words):
        command = [sys.executable, "-m", "hopefear", *words, "--learner", "perceptron"]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stderr

    said = run("warm-up", "classify")
    assert f"MB in {kernels}" in said and "compiling" not in said
    before = sorted(kernels.iterdir())
    warm_up.write_files(tmp_path)
    assert "compiling" not in run("train", "classify", "--train", "two.svm", "--model", "m")
    assert sorted(kernels.iterdir()) == before
