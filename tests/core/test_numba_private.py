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
numba.__version__ = sys.argv[1] or numba.__version__
from hopefear.averaging.averaged import Averaged
from hopefear.averaging.voted import Voted
from hopefear.core import numba_private
from hopefear.core.learner import Learner
from hopefear.losses.hinge import Hinge
from hopefear.losses.log import Log
from hopefear.losses.sapo import SAPO
from hopefear.rules.adagrad_rda import AdaGradRDA
from hopefear.rules.rda import RDA
from hopefear.rules.sgd import SGD
from hopefear.testing import tiny_rows, tiny_structures
from hopefear.training.online import OnlineTrainer

# Votes, sums over outputs and n best. Switched off, trees alone compile for more than a minute.
LEARNERS = {
    "binary": Learner(Hinge(), RDA(l1=1e-3), Voted()),
    "chain": Learner(Log(), AdaGradRDA(), Averaged()),
    "lists": Learner(SAPO(n=3), SGD(), Averaged()),
}
weights = []
for name in sys.argv[2:]:
    structure = tiny_structures()[name]
    trainer = OnlineTrainer(structure, LEARNERS[name], np.float64)
    rows = tiny_rows(structure)
    trainer.learn(rows, np.arange(rows.weights.size))
    weights += trainer.weights().tolist()
print(json.dumps([numba_private.ENABLED, weights]))
"""

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


@pytest.fixture
def learn(tmp_path):
    """Learns in a process of its own: (whether private parts were used, weights, files kept)."""
    paths = [str(Path(numba_private.__file__).parents[2]), str(ROOT / "tests/support")]
    env = {**os.environ, "HOPEFEAR_CACHE": str(tmp_path), "PYTHONPATH": os.pathsep.join(paths)}
    env.pop("HOPEFEAR_NUMBA", None)

    def call(*structures, version="", **more):
        done = subprocess.run(
            [sys.executable, "-c", LEARN, version, *structures],
            env={**env, **more},
            capture_output=True,
            text=True,
            timeout=1000,
        )
        assert done.returncode == 0, done.stderr
        return *json.loads(done.stdout), len(list(tmp_path.rglob("*.kernel")))

    return call


@pytest.mark.parametrize("structure", ["binary", "chain", "lists"])
def test_switched_off_models_are_the_same(learn, structure):
    is_enabled, weights, n_files = learn(structure, HOPEFEAR_NUMBA="public")
    assert not is_enabled and n_files == 0 and any(weights)
    is_enabled, same, n_files = learn(structure)
    assert is_enabled == numba_private.is_tested(numba.__version__)
    assert same == weights
    assert (n_files > 0) == is_enabled


def test_other_versions_of_numba_are_not_touched(learn):
    is_enabled, weights, n_files = learn("binary", version="0.99.1")
    assert not is_enabled and n_files == 0 and any(weights)
