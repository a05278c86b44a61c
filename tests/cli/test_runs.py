"""``compare``, ``search`` and ``tune`` on a cluster, and seeds: what can be said without one."""

from __future__ import annotations

import importlib.util
import json
import socket

import numpy as np
import pytest

pytestmark = pytest.mark.interpreted

COMPARE = ("compare", "classify", "--train", "x", "--test", "x", "--learners", "perceptron,vrda")
SEARCH = ("search", "classify", "--train", "x", "--folds", 2, "--trials", 2, "--out", "o")
TUNE = ("tune", "--nbest", "x", "--refs", "x", "--weights", "w")


@pytest.fixture
def folder(tmp_path):
    draw = np.random.default_rng(3)
    rows = [(int(draw.integers(2)), np.sort(draw.permutation(9)[:4]) + 1) for _ in range(40)]
    lines = [f"{y} {' '.join(f'{j}:1' for j in js)}" for y, js in rows]
    (tmp_path / "x").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_several_seeds_give_means_and_deviations_of_single_runs(run, folder):
    words = (*COMPARE, "--epochs", 2, "--json", "--quiet")
    status, out, err = run(*words, "--seed", 4, "--seeds", 3, "--report", "page.html")
    assert status == 0, err
    learners = json.loads(out)["learners"]
    alone = [json.loads(run(*words, "--seed", k)[1])["learners"] for k in (4, 5, 6)]
    for i, learner in enumerate(learners):
        errors = [each[i]["error"] for each in alone]
        assert learner["error"] == pytest.approx(np.mean(errors))
        assert learner["std"]["error"] == pytest.approx(np.std(errors, ddof=1))
        assert [each["seed"] for each in learner["runs"]] == [4, 5, 6]
        for own, each in zip(learner["runs"], alone, strict=True):
            told = {key: value for key, value in own.items() if key != "seed"}
            assert told == {key: each[i][key] for key in told}
        assert "std" not in alone[0][i] and "runs" not in alone[0][i]
    other = next(learner for learner in learners if learner["against_best"])
    best = next(learner for learner in learners if learner is not other)
    gap = other["error"] - best["error"]
    assert other["against_best"]["difference"] == pytest.approx(gap)  # of all seeds together
    page = (folder / "page.html").read_text()
    assert "Means over 3 seeds" in page and "Curves are of seed 4." in page and " ± " in page


def test_the_table_shows_deviations_where_there_are_several_seeds(run, folder):
    status, _, err = run(*COMPARE, "--epochs", 1, "--seeds", 2)
    assert status == 0 and "± standard deviation" in err and "perceptron, seed 2:" in err
    status, _, err = run(*COMPARE, "--epochs", 1)
    assert status == 0 and "±" not in err and "seed" not in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*TUNE, "--cluster", "auto"), "give --seeds N too"),
        ((*COMPARE, "--seeds", 0), "must be at least 1"),
    ],
)
def test_what_cannot_be_meant_is_refused(run, folder, words, message):
    status, _, err = run(*words)
    assert status == 2 and message in err


@pytest.mark.parametrize("words", [COMPARE, SEARCH, (*TUNE, "--seeds", 2)])
def test_ray_that_is_absent_is_named_with_its_extra(run, folder, monkeypatch, words):
    present = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "ray" else present(name)
    )
    status, _, err = run(*words, "--cluster", "auto")
    assert status == 1 and "pip install 'hopefear[ray]'" in err and len(err.splitlines()) == 1


@pytest.mark.needs("ray")
@pytest.mark.parametrize("words", [COMPARE, SEARCH, (*TUNE, "--seeds", 2)])
def test_an_address_where_nothing_listens_is_said_before_anything_is_read(run, folder, words):
    (folder / "x").write_text("1 no:such:format\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    status, _, err = run(*words, "--cluster", f"127.0.0.1:{port}")
    assert status == 1 and f"no Ray cluster answers at 127.0.0.1:{port}" in err
    assert len(err.splitlines()) == 1
