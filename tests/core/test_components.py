"""The machinery: what a component must be, and where compiled kernels are kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from places import ROOT

from hopefear.core import component as machinery
from hopefear.core.component import component, interface
from hopefear.core.interfaces import Cost, Loss, Row, Rule, Weights
from hopefear.rules.rda import RDA
from hopefear.rules.sgd import SGD
from hopefear.rules.truncated import TruncatedGradient

PACKAGE = Path(machinery.__file__).parents[1]


def test_a_missing_method_is_named():
    with pytest.raises(TypeError, match="Half lacks price"):

        @component(Cost)
        class Half(NamedTuple):
            each: float = 1.0


def test_a_wrong_signature_is_refused_with_the_right_one():
    class Odd(NamedTuple):
        limit: float = 1.0

        def value(self, margin):
            return margin

        def slope(self, z):
            return z

    with pytest.raises(TypeError, match=r"Odd.value must take \('self', 'z'\)"):
        component(Loss)(Odd)


def test_a_field_must_not_bear_the_name_of_any_method():
    class Clash(NamedTuple):
        norm: float = 1.0

        def at(self, j):
            return self.norm

    with pytest.raises(TypeError, match=r"Clash: fields \['norm'\] bear the names of methods"):
        component(Weights)(Clash)


def test_one_method_name_has_one_signature():
    class Rival:
        def put(self, j, amount): ...

    with pytest.raises(TypeError, match=r"Rival.put.* differs from .*'g'"):
        interface(Rival)


def test_defaults_come_from_the_interface_and_own_methods_stay():
    class Step(NamedTuple):
        rate: float = 1.0

        def init(self, n, dtype): ...

        def reading(self, state): ...

        def line(self, state, j): ...

        def move(self, state, j, g, a, b): ...

        def worn(self, state):
            return True

    rule = component(Rule)(Step)()
    assert type(rule._replace(rate=2).rate) is float
    assert rule.stride(None, None, None, None, 0.0, 0.0, 1.0) == (1.0, 0.0)
    assert rule.worn(None) is True
    assert rule.tick(None, 1) is None


def test_several_interfaces_are_checked_together():
    class Both(NamedTuple):
        w: np.ndarray

        def at(self, j):
            return self.w[j]

    with pytest.raises(TypeError, match="Both lacks put"):
        component(Weights, Row)(Both)


def test_numbers_become_what_their_annotation_says():
    rule = TruncatedGradient(rate=1, every=np.int64(3), gravity=np.float32(0.5))
    assert [type(v) for v in rule] == [float, float, int, float, float]
    assert SGD(1) == SGD(1.0)
    assert type(SGD(rate=True).rate) is float
    assert type(RDA(l1=np.float64(1e-3)).l1) is float


def test_unknown_fields_are_refused_by_name():
    with pytest.raises(TypeError, match="momentum"):
        SGD(momentum=0.9)


def test_the_cache_folder_is_named_by_the_sources(tmp_path, monkeypatch):
    monkeypatch.setenv("HOPEFEAR_CACHE", str(tmp_path))
    folder = machinery.cache_folder()
    assert folder.is_relative_to(tmp_path)
    assert folder.is_dir()
    copy = tmp_path / "hopefear"
    digests = set()
    for edit in (None, "rules/sgd.py", "training/online.py"):
        for path in PACKAGE.rglob("*.py"):
            target = copy / path.relative_to(PACKAGE)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
        if edit:
            (copy / edit).write_text((copy / edit).read_text() + "# edited\n")
        monkeypatch.setattr(machinery, "__file__", str(copy / "core" / "component.py"))
        machinery._source_digest.cache_clear()
        digests.add(machinery._source_digest())
    monkeypatch.undo()
    machinery._source_digest.cache_clear()
    assert len(digests) == 3


def test_a_cache_that_cannot_be_written_falls_back_to_a_private_folder(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("HOPEFEAR_CACHE", str(blocked))
    folder = machinery.cache_folder()
    assert not folder.is_relative_to(tmp_path)
    assert os.access(folder, os.W_OK)


CACHED = """
import json
import numpy as np
from reference import random_problem
from hopefear.core.learner import Learner
from hopefear.losses.hinge import Hinge
from hopefear.readouts.averaged import Averaged
from hopefear.rules.rda import RDA
from hopefear.structures.classes import Binary
from hopefear.training import online as kernels
from hopefear.training.online import OnlineTrainer

trainer = OnlineTrainer(Binary(12), Learner(Hinge(), RDA(rate={rate}, l1=1e-3), Averaged()))
trainer.learn(random_problem(1, dtype=np.float32).rows, np.arange(60))
used = (kernels.learn, kernels.read_sum)
average = trainer.average().tolist()
print(json.dumps([[sum(k.stats.cache_hits.values()), sum(k.stats.cache_misses.values())]
                  for k in used] + [average]))
"""


def test_a_second_process_compiles_nothing(tmp_path):
    """Whatever the numbers: a parameter is data, not a type."""
    path = os.pathsep.join([str(PACKAGE.parent), str(ROOT / "tests/support")])
    env = {**os.environ, "HOPEFEAR_CACHE": str(tmp_path), "PYTHONPATH": path}
    env.pop("NUMBA_DISABLE_JIT", None)
    answers, files = [], []
    for rate in ("2.0", "2", "0.5"):
        run = subprocess.run(
            [sys.executable, "-c", CACHED.format(rate=rate)],
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        answers.append(json.loads(run.stdout))
        files.append(sorted((p.name, p.stat().st_mtime_ns) for p in tmp_path.rglob("*.nbc")))
    assert answers[0][:2] == [[0, 1], [0, 1]]
    assert answers[1][:2] == answers[2][:2] == [[1, 0], [1, 0]]
    assert files[0] == files[1] == files[2] != []
    assert answers[0][2] == answers[1][2] != answers[2][2]
