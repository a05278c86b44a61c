"""Private parts of numba: switched off, or with another version, kernels give the same results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from hopefear.core import numba_private

ROOT = Path(__file__).parents[2]
LEARN = """
import json, sys
import numpy as np
import numba
if len(sys.argv) > 1:
    numba.__version__ = sys.argv[1]
from reference import random_problem
from hopefear.core import numba_private
from hopefear.core.learner import Learner
from hopefear.losses.hinge import Hinge
from hopefear.averaging.averaged import Averaged
from hopefear.rules.rda import RDA
from hopefear.structures.classes import Binary
from hopefear.training.online import OnlineTrainer

trainer = OnlineTrainer(Binary(12), Learner(Hinge(), RDA(l1=1e-3), Averaged()))
trainer.learn(random_problem(1, dtype=np.float32).rows, np.arange(60))
print(json.dumps([numba_private.ENABLED, trainer.average().tolist()]))
"""

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


@pytest.fixture
def learn(tmp_path):
    """Learns in a process of its own: (whether private parts were used, weights, files kept)."""
    paths = [str(Path(numba_private.__file__).parents[2]), str(ROOT / "tests/support")]
    env = {**os.environ, "HOPEFEAR_CACHE": str(tmp_path), "PYTHONPATH": os.pathsep.join(paths)}
    env.pop("HOPEFEAR_NUMBA", None)

    def call(*argv, **more):
        done = subprocess.run(
            [sys.executable, "-c", LEARN, *argv],
            env={**env, **more},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return *json.loads(done.stdout), len(list(tmp_path.rglob("*.kernel")))

    return call


def test_switched_off_models_are_the_same(learn):
    is_enabled, weights, n_files = learn(HOPEFEAR_NUMBA="public")
    assert not is_enabled and n_files == 0 and any(weights)
    is_enabled, same, n_files = learn()
    assert is_enabled == numba_private.is_tested(numba.__version__)
    assert same == weights
    assert (n_files > 0) == is_enabled


def test_other_versions_of_numba_are_not_touched(learn):
    is_enabled, weights, n_files = learn("0.99.1")
    assert not is_enabled and n_files == 0 and any(weights)
