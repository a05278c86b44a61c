"""Several Ray nodes on this machine: the bits of threads, also where workers are killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="clusters need Ray: pip install 'hopefear[ray]'")

pytestmark = [pytest.mark.interpreted, pytest.mark.slow]

# Ray starts threads, opens files and sets handlers that would outlive a test of this process.
PROGRAM = Path(__file__).parent / "ray_program.py"


@pytest.fixture(scope="module")
def answers():
    with tempfile.TemporaryDirectory(prefix="ray") as folder:  # paths of sockets must be short
        home = {
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # every node on 127.0.0.1
            "RAY_USAGE_STATS_ENABLED": "0",
            "NUMBA_DISABLE_JIT": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "RAY_TMPDIR": folder,
        }
        done = subprocess.run(
            [sys.executable, str(PROGRAM)],
            env={**os.environ, **home},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_cluster_gives_the_bits_of_threads(answers):
    assert answers["perceptron"] == "equal, 0 lost"


def test_workers_that_are_killed_in_every_round_leave_no_trace(answers):
    assert answers["killed"] == ["equal, 3 lost"]


def test_a_shard_that_differs_is_refused(answers):
    assert "hash differs; give --cluster-folder" in answers["differs"]
