"""Programs on several Ray nodes of this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

# Programs that tests run; they import Ray and each other.
collect_ignore = ["ray_program.py", "runs_program.py", "random_kills.py"]

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def answers(request):
    """What the program that the file names as ``PROGRAM`` prints.

    Ray starts threads, opens files and sets handlers that would outlive a test of this process.
    """
    with tempfile.TemporaryDirectory(prefix="ray") as folder:  # paths of sockets must be short
        home = {
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # every node on 127.0.0.1
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_raylet_start_wait_time_s": "120",  # where the machine has other work
            "NUMBA_DISABLE_JIT": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "RAY_TMPDIR": folder,
        }
        done = subprocess.run(
            [sys.executable, str(HERE / request.module.PROGRAM)],
            env={**os.environ, **home},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])
