"""Compiled kernels on disk: found again anywhere, never out of date, never an error."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numba
import pytest
from places import ROOT

from hopefear.core import kernel_cache, numba_private
from hopefear.core.component import kernel
from hopefear.losses.hinge import Hinge
from hopefear.losses.log import Log
from hopefear.training import online

PACKAGE = Path(kernel_cache.__file__).parents[1]
PROCESSOR = ("triple", "name", "+features")

compiled_only = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT) or not numba_private.ENABLED, reason="nothing is kept on disk"
)


class Pair(NamedTuple):
    a: float
    b: float


def add(pair, x):
    return pair.a + pair.b + x


def names(function=online.learn, kinds=(Hinge,), processor=PROCESSOR):
    """The file of a kernel whose arguments are parts of these classes."""
    plain = getattr(function, "py_func", function)
    signature = [numba.typeof(kind()) for kind in kinds]
    return kernel_cache.KernelCache(plain).file_name(kernel_cache.type_key_of(signature), processor)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A copy of the sources, which is read in place of the package."""
    copy = tmp_path / "hopefear"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "kernels"))
    monkeypatch.setattr(kernel_cache, "_PACKAGE", copy)
    forget()
    yield copy
    monkeypatch.undo()
    forget()


def forget():
    kernel_cache._source.cache_clear()
    kernel_cache._with_imports.cache_clear()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOPEFEAR_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "kernels"


@pytest.mark.parametrize(
    ("edit", "hinge", "log"),
    [
        ("losses/hinge.py", True, False),  # a class among the arguments
        ("training/online.py", True, True),  # the function's own module
        ("core/interfaces.py", True, True),  # imported by it
        ("rules/sgd.py", False, False),
        ("tasks/base.py", False, False),
    ],
)
def test_an_edit_renames_what_depends_on_it_and_nothing_else(package, edit, hinge, log):
    before = names(kinds=(Hinge,)), names(kinds=(Log,))
    with (package / edit).open("a") as file:
        file.write("# edited\n")
    forget()
    after = names(kinds=(Hinge,)), names(kinds=(Log,))
    assert [old != new for old, new in zip(before, after, strict=True)] == [hinge, log]


def test_names_do_not_depend_on_the_place_of_the_package(package):
    elsewhere = names()
    kernel_cache._PACKAGE = PACKAGE
    forget()
    assert names() == elsewhere


def test_names_tell_types_functions_and_processors_apart():
    every = {
        names(),
        names(kinds=(Log,)),
        names(kinds=(Hinge, Hinge)),
        names(online.read_sum),
        names(processor=("triple", "other", "+features")),
    }
    assert len(every) == 5


def test_an_edit_of_a_users_own_part_renames_its_kernels(tmp_path, monkeypatch):
    path = tmp_path / "mine.py"
    text = "from typing import NamedTuple\nclass Mine(NamedTuple):\n    a: float = 1.0\n"
    monkeypatch.syspath_prepend(tmp_path)
    answers = []
    for more in ("", "# edited\n"):
        path.write_text(text + more)
        sys.modules.pop("mine", None)
        import mine

        forget()
        answers.append(names(kinds=(mine.Mine,)))
    sys.modules.pop("mine", None)
    forget()
    assert answers[0] != answers[1]


@compiled_only
def test_a_kernel_is_found_again(folder):
    first, second = kernel(add), kernel(add)
    assert first(Pair(1.0, 2.0), 3.0) == second(Pair(1.0, 2.0), 3.0) == 6.0
    assert sum(first.dispatcher.stats.cache_misses.values()) == 1
    assert sum(second.dispatcher.stats.cache_hits.values()) == 1
    assert [path.suffix for path in folder.iterdir()] == [".kernel"]


@compiled_only
@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "other", "pickle"])
def test_a_damaged_kernel_is_compiled_again(folder, damage):
    kernel(add)(Pair(1.0, 2.0), 3.0)
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    middle = 2_000
    nothing = b"not a pickle"
    path.write_bytes(
        {
            "empty": b"",
            "cut": whole[:middle],
            "flipped": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
            "other": b"something else\n" * 9,
            "pickle": kernel_cache._file(nothing),
        }[damage]
    )
    again = kernel(add)
    assert again(Pair(1.0, 2.0), 3.0) == 6.0
    assert sum(again.dispatcher.stats.cache_misses.values()) == 1
    assert path.read_bytes().startswith(kernel_cache._MARK) and len(path.read_bytes()) > middle
    assert sum(1 for _ in folder.iterdir()) == 1


@compiled_only
def test_a_folder_that_cannot_be_used_is_named_and_nothing_else_is_made(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("HOPEFEAR_CACHE", str(blocked))
    with pytest.warns(UserWarning, match=r"kept in .*file.*HOPEFEAR_CACHE"):
        assert kernel(add)(Pair(1.0, 2.0), 3.0) == 6.0
    with warnings.catch_warnings():  # once is enough
        warnings.simplefilter("error")
        assert kernel(add)(Pair(1.0, 2.0), 3.0) == 6.0
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@compiled_only
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners of POSIX")
@pytest.mark.parametrize("whose", ["everybody's", "somebody else's"])
def test_a_folder_that_others_may_write_to_is_not_used(folder, whose, monkeypatch):
    assert kernel(add)(Pair(1.0, 2.0), 3.0) == 6.0
    before = sorted(folder.iterdir())
    if whose == "everybody's":
        folder.chmod(0o777)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
        monkeypatch.setattr(kernel_cache, "_ROOT", -1)
    kernel_cache._complain.cache_clear()
    again = kernel(add)
    with pytest.warns(UserWarning, match=r"kept in .*what lies there is run.*HOPEFEAR_CACHE"):
        assert again(Pair(1.0, 2.0), 3.0) == 6.0
    assert sum(again.dispatcher.stats.cache_misses.values()) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kernel(add)(Pair(2, 2), 3) == 7
    assert sorted(folder.iterdir()) == before


@compiled_only
def test_a_full_disk_leaves_nothing_half_written(folder, monkeypatch):
    def full(self, contents):
        with open(self, "wb") as file:
            file.write(contents[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.warns(UserWarning, match="No space left on device"):
        assert kernel(add)(Pair(1.0, 2.0), 3.0) == 6.0
    assert list(folder.iterdir()) == []


def test_kernels_that_nobody_used_for_long_are_deleted(folder):
    folder.mkdir(parents=True)
    for name, days in (("old.kernel", 40), ("new.kernel", 1)):
        (folder / name).write_bytes(b"")
        then = time.time() - days * 86_400
        os.utime(folder / name, (then, then))
    kernel_cache._forget_old(str(folder))
    assert [path.name for path in folder.iterdir()] == ["new.kernel"]


@pytest.mark.parametrize(
    ("level", "fits"),
    [
        ({"processor": ["here", "v3", "+avx,+fma"]}, True),
        ({"processor": ["here", "v4", "+avx,+avx512f"]}, False),
        ({"processor": ["elsewhere", "v3", "+avx"]}, False),
        ({"processor": "v3"}, False),
        ([], False),
        (None, False),
    ],
)
def test_shipped_kernels_are_for_processors_that_have_all_they_need(
    tmp_path, monkeypatch, level, fits
):
    monkeypatch.setattr(kernel_cache, "SHIPPED", tmp_path)
    if level is not None:
        (tmp_path / kernel_cache.LEVEL_FILE).write_text(json.dumps(level))
    assert (kernel_cache.shipped_processor("here", {"avx", "fma"}) is not None) == fits


CACHED = """
import json
import numpy as np
from reference import random_problem
from hopefear.core.learner import Learner
from hopefear.losses.hinge import Hinge
from hopefear.averaging.averaged import Averaged
from hopefear.rules.rda import RDA
from hopefear.structures.classes import Binary
from hopefear.training import online as kernels
from hopefear.training.online import OnlineTrainer

trainer = OnlineTrainer(Binary(12), Learner(Hinge(), RDA(rate={rate}, l1=1e-3), Averaged()))
trainer.learn(random_problem(1, dtype=np.float32).rows, np.arange(60))
used = [k.dispatcher.stats for k in (kernels.learn, kernels.read_sum)]
average = trainer.average().tolist()
counts = [[sum(s.cache_hits.values()), sum(s.cache_misses.values())] for s in used]
print(json.dumps([*counts, average]))
"""


@pytest.mark.skipif(not numba_private.ENABLED, reason="nothing is kept on disk")
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
        files.append(sorted((p.name, p.stat().st_mtime_ns) for p in tmp_path.rglob("*.kernel")))
    assert answers[0][:2] == [[0, 1], [0, 1]]
    assert answers[1][:2] == answers[2][:2] == [[1, 0], [1, 0]]
    assert files[0] == files[1] == files[2] != []
    assert answers[0][2] == answers[1][2] != answers[2][2]
