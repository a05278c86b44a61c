"""Kernels that are called by symbols: the same results, found again in any order, never a crash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from hopefear.core import kernel_cache, numba_private
from hopefear.core.component import kernel, shared_kernel

PACKAGE = Path(kernel_cache.__file__).parents[1]

shared_only = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT) or not numba_private.ENABLED,
    reason="callees are linked in",
)

# Two shared kernels, one of which calls the other, and two kernels that call them.
KERNELS = """
import numpy as np
from typing import NamedTuple
from hopefear.core.component import kernel, shared_kernel


class Pair(NamedTuple):
    values: np.ndarray
    factor: float


@shared_kernel
def total(pair, scale):
    s = 0.0
    for v in pair.values:
        s += scale * pair.factor * v
    return s


@shared_kernel
def squares(pair):
    pair.values[:2] = 2.0
    return total(pair, 3), len(pair.values)


@kernel
def first(pair):
    s, n = squares(pair)
    return s + n


@kernel
def second(pair):
    return total(pair, 5) + first(pair)
"""
RUN = """
import json, sys
import numpy as np
import kernels

pairs = [kernels.Pair(np.arange(4.0), 2.0) for _ in sys.argv[1:]]
answers = [getattr(kernels, name)(pair) for name, pair in zip(sys.argv[1:], pairs)]
every = [k.callee.stats for k in (kernels.total, kernels.squares, kernels.first, kernels.second)]
stats = [[sum(s.cache_hits.values()), sum(s.cache_misses.values())] for s in every]
print(json.dumps([answers, stats]))
"""


@pytest.fixture
def run(tmp_path):
    """Calls kernels of a module of this test in a process of their own."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    env = {
        **os.environ,
        "HOPEFEAR_CACHE": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), str(tmp_path)]),
    }
    env.pop("NUMBA_DISABLE_JIT", None)

    def call(*names):
        done = subprocess.run(
            [sys.executable, "-c", RUN, *names],
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    call.files = lambda name: sorted((tmp_path / "kernels").glob(f"kernels.{name}-*"))
    return call


@shared_kernel
def dot(a, b, scale):
    s = 0.0
    for k in range(a.size):
        s += scale * a[k] * b[k]
    return s


@kernel
def twice(a, b):
    return dot(a, b, 1) + dot(a, b, scale=1)


def test_results_are_those_of_the_function():
    a = np.arange(5.0)
    assert twice(a, a) == 2 * dot(a, a, 1) == 60.0


@shared_only
def test_callers_have_a_declaration_only_and_constants_are_not_compiled_for():
    anew = numba.njit(twice.py_func)  # code that was loaded does not tell what it calls
    anew(np.arange(5.0), np.arange(5.0))
    (result,) = anew.overloads.values()
    (callee,) = numba_private.callees(result.library)
    assert (callee.module, callee.name) == (__name__, "dot")
    assert callee.types[2] == numba.int64


@shared_kernel
def same(a):
    return a


@kernel
def call_same(a):
    return same(a).size


@shared_only
def test_what_cannot_be_called_by_a_symbol_is_refused():
    with pytest.raises(TypeError, match=r"lambda.*use @kernel"):
        shared_kernel(lambda x: x)
    with pytest.raises(TypeError, match=r"same returns array.*use @kernel"):
        call_same(np.zeros(3))


@shared_only
def test_other_processes_find_kernels_in_any_order(run):
    answers, stats = run("first", "second")
    assert stats == [[0, 1]] * 4
    assert run("second", "first") == [answers[::-1], [[1, 0]] * 4]
    assert run("second") == [answers[1:], [[1, 0], [1, 0], [0, 0], [1, 0]]]


@shared_only
@pytest.mark.parametrize("damage", ["missing", "cut"])
@pytest.mark.parametrize("which", ["total", "squares"])
def test_a_callee_that_is_gone_is_compiled_again(run, damage, which):
    answers, _ = run("first", "second")
    (path,) = run.files(which)
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:1000])
    again, stats = run("second")
    assert again == answers[1:]
    assert stats[:2] == [[name != which, name == which] for name in ("total", "squares")]
    assert stats[3] == [1, 0]
    assert run("second")[1] == [[1, 0], [1, 0], [0, 0], [1, 0]]


@shared_only
def test_a_symbol_that_nobody_has_is_not_provided():
    vector = numba.float64[::1]
    gone = numba_private.Callee("hopefear.gone", __name__, "dot", (vector, vector, numba.int64))
    assert not numba_private.provide((gone,))


@shared_only
def test_switched_off_callees_are_linked_in(monkeypatch):
    monkeypatch.setattr(numba_private, "ENABLED", False)
    monkeypatch.setattr(sys.modules[__name__], "dot", shared_kernel(dot.py_func))
    linked = kernel(twice.py_func)
    assert linked(np.arange(5.0), np.arange(5.0)) == 60.0
    (result,) = linked.dispatcher.overloads.values()
    assert numba_private.callees(result.library) == ()
