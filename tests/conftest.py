"""Fixtures that several files share."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from hopefear.cli import main
from hopefear.training import online

# Tests below these folders run as plain Python; compiled, each would cost seconds.
INTERPRETED = [Path(__file__).parent / name for name in ("contracts", "interpreted")]


def pytest_collection_modifyitems(items):
    if numba.config.DISABLE_JIT:
        return
    skip = pytest.mark.skip(reason="interpreted tests; set NUMBA_DISABLE_JIT=1")
    for item in items:
        if any(folder in item.path.parents for folder in INTERPRETED):
            item.add_marker(skip)


@pytest.fixture
def run(folder, capsysbinary, monkeypatch):
    """Call the command in the folder of a file: (status, standard output, standard error)."""
    monkeypatch.chdir(folder)

    def call(*argv, stdin=b""):
        capsysbinary.readouterr()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = main([str(word) for word in argv])
        out, err = capsysbinary.readouterr()
        return status, out.decode(), err.decode()

    return call


@pytest.fixture(scope="module")
def small_window(request):
    """Books are settled several times: after every ``WINDOW`` ticks of the file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(online, "_WINDOW", request.module.WINDOW)
        yield


@pytest.fixture(scope="module")
def interpreted(request, tmp_path_factory):
    """What the file writes as a program (see `compiled_spread`), run as plain Python."""
    if numba.config.DISABLE_JIT:
        pytest.skip("NUMBA_DISABLE_JIT is set, so nothing is compiled")
    path = tmp_path_factory.mktemp("interpreted") / "spread.npz"
    paths = [str(Path(online.__file__).parents[2]), str(Path(__file__).parent)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "NUMBA_DISABLE_JIT": "1"}
    program = [sys.executable, request.module.__file__, str(path)]
    subprocess.run(program, env=env, check=True, timeout=120)
    with np.load(path) as file:
        return dict(file)
