"""Several Ray nodes on this machine: the bits of threads, also where workers are killed."""

from __future__ import annotations

import pytest

pytest.importorskip("ray", reason="clusters need Ray: pip install 'hopefear[ray]'")

pytestmark = [pytest.mark.interpreted, pytest.mark.slow]

PROGRAM = "ray_program.py"


def test_a_cluster_gives_the_bits_of_threads(answers):
    assert answers["perceptron"] == answers["shards with blocks"] == "equal, 0 lost"


def test_workers_that_are_killed_in_every_round_leave_no_trace(answers):
    assert answers["killed"] == ["equal, 3 lost"]


def test_blocks_on_shards_are_those_of_threads_also_where_workers_are_killed(answers):
    assert answers["blocks"] == "equal, 3 lost"


def test_a_shard_that_differs_is_refused(answers):
    assert "hash differs; give --cluster-folder" in answers["differs"]
