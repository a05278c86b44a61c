"""Independent runs on several Ray nodes: the results of runs made here, also where one is lost."""

from __future__ import annotations

import pytest

pytestmark = [
    pytest.mark.needs("ray"),
    pytest.mark.interpreted,
    pytest.mark.slow,
    pytest.mark.long(seconds=600, why="starts a cluster and loses some of its workers"),
]

PROGRAM = "runs_program.py"
TRIALS = [f"trial {k}:" for k in range(7)]


def test_results_come_in_the_order_of_runs_whichever_ends_first(answers):
    assert answers["order"] == [[0, 1, 2, 3], True]


def test_learners_that_are_compared_are_the_same_where_every_worker_was_killed_once(answers):
    same, progress = answers["compare"]
    assert same == "equal" and progress.count("one was killed") == 4
    for run in ("perceptron, seed 1:", "perceptron, seed 2:", "vrda, seed 1:", "vrda, seed 2:"):
        assert sum(line.strip().startswith(run) for line in progress) == 1


def test_trials_of_a_search_are_made_where_every_worker_was_killed_once(answers):
    trials, quality, progress = answers["search"]
    assert trials == 7 and 50.0 < quality <= 100.0
    assert progress.count("one was killed") == 7
    assert sorted(line[:8] for line in progress if line[:8] in TRIALS) == TRIALS


def test_seeds_of_tune_give_the_same_weights_and_events(answers):
    same, progress = answers["tune"]
    assert same == "equal"
    assert [sum(line.startswith(f"seed {k}:") for line in progress) for k in (1, 2, 3)] == [1] * 3


def test_seeds_inside_the_rounds_of_a_decoder(answers):
    same, progress = answers["decoder"]
    assert same == "equal" and any(line.startswith("seed 2:") for line in progress)


def test_errors_of_a_run_come_back_as_they_are(answers):
    assert answers["error"] in ("run 0 is refused", "run 1 is refused")


def test_a_run_that_is_lost_again_and_again_is_given_up(answers):
    assert "was lost 6 times" in answers["lost"] and "memory" in answers["lost"]


def test_workers_of_another_version_are_refused(answers):
    assert "the worker of run" in answers["version"] and "this machine 0.0.9" in answers["version"]


def test_runs_that_fit_on_no_machine_are_refused_and_do_not_wait(answers):
    assert "takes up 99 cores (--jobs), and the largest machine" in answers["cores"]


def test_no_file_is_left_but_those_asked_for(answers):
    asked = ["run-here", "run-there", "weights-here", "weights-there"]
    assert answers["left"] == sorted(["data", "nbest", "refs", *asked])
