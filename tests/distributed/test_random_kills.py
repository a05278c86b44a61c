"""Commands whose workers are killed at random moments, the very first ones too: equal models."""

from __future__ import annotations

import pytest

pytestmark = [
    pytest.mark.needs("ray"),
    pytest.mark.interpreted,
    pytest.mark.slow,
    pytest.mark.long(seconds=600, why="starts a cluster and loses some of its workers"),
]

PROGRAM = "random_kills.py"


def test_models_are_those_of_threads(answers):
    assert [run["outcome"] for run in answers] == ["equal"] * 3
    assert all(run["killed"] > 0 for run in answers)
