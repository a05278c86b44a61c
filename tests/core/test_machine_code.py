"""Machine code from disk: the same results as numba has, without numba; the rest is numba's."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest

from hopefear.core import component, kernel_cache, machine_code
from hopefear.core.component import kernel, lean
from hopefear.recipes import RECIPES
from hopefear.structures.lattice.astar import astar
from hopefear.training import changes, marks

pytestmark = [
    pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled"),
    pytest.mark.skipif(not machine_code.RUNS_HERE, reason="numba loads code on this machine"),
]


class Pair(NamedTuple):
    values: np.ndarray
    factor: float


class Nest(NamedTuple):
    pair: Pair
    flag: bool
    count: int


# Results of every kind, arrays that are made, mathematics, and arguments one inside another.
KERNELS = """
import numpy as np
from typing import NamedTuple
from hopefear.core.component import kernel, lean


class Pair(NamedTuple):
    values: np.ndarray
    factor: float


class Nest(NamedTuple):
    pair: Pair
    flag: bool
    count: int


@kernel
def made(nest):
    out = np.empty(nest.count, np.float32)
    for i in range(nest.count):
        out[i] = np.exp(nest.pair.factor * nest.pair.values[i])
    return out, nest.flag, nest.count


@lean
def total(nest, scale):
    s = 0.0
    for v in nest.pair.values:
        s += scale * v
    return s


@kernel
def nothing(values, place):
    values[place] += 1


@kernel
def divided(a, b):
    if b == 0:
        raise ValueError("nothing to divide by")
    return a // b
"""
RUN = """
import json, sys
import numpy as np
import kernels
from kernels import Nest, Pair, divided, made, nothing, total

nest = Nest(Pair(np.arange(5.0), 0.5), True, 3)
answers = []
for _ in range(2):
    array, flag, count = made(nest)
    counts = np.zeros(3, np.int64)
    answers.append([array.tolist(), str(array.dtype), bool(array.flags.writeable), flag, count,
                    total(nest, 2), total(nest, 0.5), nothing(counts, 1), counts.tolist(),
                    divided(7, 2)])
without = "numba" not in sys.modules
try:
    divided(1, 0)
except ValueError as error:
    answers.append(str(error))
if sys.argv[1:]:  # numba beside it, in the same process
    answers.append(total(nest, np.float32(2.0)))
print(json.dumps([without, answers]))
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "kernels.py").write_text(KERNELS)
    env = {
        **os.environ,
        "HOPEFEAR_CACHE": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(Path(kernel_cache.__file__).parents[2]), str(tmp_path)]),
    }

    def call(*words, **more):
        done = subprocess.run(
            [sys.executable, "-c", RUN, *words],
            env={**env, **more},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return call


def test_a_second_process_gets_the_same_without_numba(run):
    with_numba, answers = run()
    assert not with_numba
    assert answers[0] == answers[1] and answers[2] == "nothing to divide by"
    assert answers[0][0] == np.exp(0.5 * np.arange(3)).astype(np.float32).tolist()
    assert run() == [True, answers]


def test_numba_can_be_started_beside_it(run):
    _, answers = run()
    assert run("more") == [True, [*answers, 20.0]]
    assert run("more") == [True, [*answers, 20.0]]


def test_a_processor_that_nobody_noted_is_left_to_numba(run, tmp_path):
    _, answers = run()
    (note,) = tmp_path.glob("processor-*.json")
    note.write_text("[1, 2")
    assert run() == [False, answers]
    assert run() == [True, answers]  # it has been noted again
    processor = json.loads(note.read_text())
    note.write_text(json.dumps([processor[0], ["another"], []]))
    assert run() == [False, answers]
    assert run() == [True, answers]
    assert run(HOPEFEAR_NUMBA="1") == [False, answers]
    assert run(NUMBA_OPT="2")[0] is False  # settings of numba's have notes of their own


@pytest.mark.parametrize(
    "value",
    [
        1, 1.5, True, None, np.float32(1), np.int64(2), np.uint8(3), np.float64(4),
        np.zeros(3), np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32).T,
        np.zeros((4, 4))[::2], np.zeros(3, bool), np.zeros(3, np.uint64), np.zeros(8)[::2],
        np.frombuffer(bytes(8), np.uint16), Pair(np.zeros(2), 1.0), (1, 2), (1, 2.0),
        (Pair(np.zeros(2), 1.0), np.zeros(2)), (Pair(np.zeros(2), 1.0),) * 2, (), ((1, True), 2),
        Nest(Pair(np.frombuffer(bytes(8), np.float32), 1.0), False, 2),
    ],
    ids=str,
)  # fmt: skip
def test_words_for_values_are_those_for_their_types(value):
    words = kernel_cache.words_of([value])
    assert words == kernel_cache.words_of_types([numba.typeof(value)])


@pytest.mark.parametrize(
    "value",
    [
        "text",
        2**63,
        (1, "b"),
        np.zeros(2, ">f8"),
        np.zeros(2, "M8[s]"),
        [1.0],
        np.zeros(2, "i4,f8"),
    ],
    ids=str,
)
def test_other_values_are_left_to_numba(value):
    assert kernel_cache.words_of([value]) is None


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_learners_are_told_apart_as_numba_does(name):
    recipe = RECIPES[name]
    if not hasattr(recipe, "build"):
        pytest.skip("no learner of kernels")
    try:
        learner = recipe.build()
    except TypeError:
        pytest.skip("needs more than defaults")
    for part in learner if isinstance(learner, tuple) else ():
        if hasattr(part, "_fields"):
            words = kernel_cache.words_of([part])
            assert words == kernel_cache.words_of_types([numba.typeof(part)])


def test_kernels_that_came_with_the_package_run_without_numba(tmp_path, monkeypatch):
    values = np.arange(4.0)
    monkeypatch.setenv("HOPEFEAR_CACHE", str(tmp_path))
    assert kernel(scaled)(values, 2) == 12.0
    host = kernel_cache.known_host()
    (tmp_path / "kernels" / kernel_cache.LEVEL_FILE).write_text(
        json.dumps({"processor": [host.triple, *host.processor[1:]]})
    )
    monkeypatch.setattr(kernel_cache, "SHIPPED", tmp_path / "kernels")
    monkeypatch.setenv("HOPEFEAR_CACHE", str(tmp_path / "empty"))
    kernel_cache.shipped_processor.cache_clear()
    try:
        shipped = kernel(scaled)
        assert shipped(values, 2) == 12.0 and shipped._dispatcher is None
    finally:
        kernel_cache.shipped_processor.cache_clear()


def scaled(values, factor):
    return values.sum() * factor


def test_kinds_of_arguments_have_code_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("HOPEFEAR_CACHE", str(tmp_path))
    arrays = [np.arange(4.0), np.arange(4, dtype=np.float32), np.arange(8.0)[::2], np.eye(2)]
    read_only = np.arange(4.0)
    read_only.flags.writeable = False
    for _ in range(2):
        once = kernel(scaled)
        results = [once(array, 2) for array in (*arrays, read_only)]
        assert results == [12.0, 12.0, 24.0, 4.0, 12.0]
    assert sum(once.stats.cache_hits.values()) == 5 and not sum(once.stats.cache_misses.values())
    assert once._dispatcher is None


@pytest.mark.parametrize("code", [b"", b"\x7fELF", b"\xcf\xfa\xed\xfe" * 20, bytes(100)])
def test_what_is_no_object_file_is_refused(code):
    with pytest.raises(machine_code.Unknown):
        machine_code.placed(code, machine_code.address_of)


def test_a_symbol_that_the_process_lacks_is_refused():
    with pytest.raises(machine_code.Unknown, match="no symbol hopefear_has_none"):
        machine_code.address_of("hopefear_has_none")


def test_both_ways_of_a_lean_kernel_are_found_again(tmp_path, monkeypatch):
    monkeypatch.setenv("HOPEFEAR_CACHE", str(tmp_path))
    values = np.arange(3.0)
    assert lean(_sorted_first)(values) == 0.0
    again = lean(_sorted_first)
    assert again(values) == 0.0
    assert len(again._must_count) == 1 and again._counting._dispatcher is None


def _sorted_first(values):
    return np.sort(-values)[2] + 0.0


def test_kernels_are_pickled_by_their_names():
    for function in (marks.list_all, changes.collect, astar):
        assert pickle.loads(pickle.dumps(function)) is function


def test_actions_wait_for_the_compiler_and_can_be_taken_back(monkeypatch):
    monkeypatch.setattr(component, "_WAITING", [])
    done = []
    component.when_compiling(lambda: done.append(1))
    component.when_compiling(again := lambda: done.append(2))
    component.not_when_compiling(again)
    assert not done
    component._start_compiler()
    component.when_compiling(lambda: done.append(3))
    assert done == [1, 3]
