"""Several Ray nodes on this machine: the bits of threads, also where workers are killed."""

from __future__ import annotations

import pytest

pytestmark = [
    pytest.mark.needs("ray"),
    pytest.mark.interpreted,
    pytest.mark.slow,
    pytest.mark.long(seconds=600, why="starts a cluster and loses some of its workers"),
]

PROGRAM = "ray_program.py"


def test_a_cluster_gives_the_bits_of_threads(answers):
    assert answers["perceptron"] == answers["averaged"] == "equal, 0 lost"


def test_workers_that_are_killed_in_every_round_leave_no_trace(answers):
    assert answers["killed"] == ["equal, 3 lost"]


def test_a_cache_is_refused(answers):
    assert "hold their examples in memory; leave out the cache" in answers["refused"]
