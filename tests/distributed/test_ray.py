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
    assert answers["perceptron"] == answers["shards with blocks"] == "equal, 0 lost"


def test_workers_that_are_killed_in_every_round_leave_no_trace(answers):
    assert answers["killed"] == ["equal, 3 lost"]


def test_blocks_on_shards_are_those_of_threads_also_where_workers_are_killed(answers):
    assert answers["blocks"] == "equal, 3 lost"


def test_a_shard_that_differs_is_refused(answers):
    assert "hash differs; give --cluster-folder" in answers["differs"]


def test_actors_open_a_cache_themselves(answers):
    mapped = answers["mapped"]
    assert mapped["perceptron"] == "equal, 0 lost"
    assert mapped["written"] == ["cache", "text"]


def test_lost_actors_open_the_cache_again(answers):
    mapped = answers["mapped"]
    for way in ("killed", "blocks"):
        same, lost = mapped[way].split(", ")
        assert same == "equal" and lost != "0 lost"


@pytest.mark.parametrize(
    ("which", "said"),
    [
        ("lost", "FILE: cannot be read: No such file or directory"),
        ("missing", "FILE: cannot be read: No such file or directory"),
        ("version", "FILE: a cache of another format version"),
        ("other", "FILE: not the cache that training began with"),
    ],
)
def test_another_cache_is_refused(answers, which, said):
    message = answers["mapped"][which]
    assert message.startswith(f"{said}; workers open the cache under the path that it has here")
    assert "\n" not in message
