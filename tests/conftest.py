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
from hypothesis import settings

from hopefear.cli import main
from hopefear.training import online

CONTRACTS = Path(__file__).parent / "contracts"
GOLDEN = Path(__file__).parent / "golden"

# The same cases each time, so that a commit that passed passes again, on a busy machine too. To
# look for others: HYPOTHESIS_PROFILE=default make test
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def pytest_configure(config):
    """Examples in docstrings are interpreted: in a compiled run none is looked for."""
    if not numba.config.DISABLE_JIT:
        config.option.doctestmodules = False


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Contracts and examples in docstrings need nothing compiled; each would cost seconds.

    In a file that is interpreted, what takes real data is marked as compiled, which counts more.
    Golden runs are both.
    """
    plain = {CONTRACTS, GOLDEN} if numba.config.DISABLE_JIT else {CONTRACTS}
    for item in items:
        if plain.intersection(item.path.parents) or isinstance(item, pytest.DoctestItem):
            item.add_marker(pytest.mark.interpreted)
    if not numba.config.DISABLE_JIT and not config.option.markexpr:
        skip = pytest.mark.skip(reason="interpreted; set NUMBA_DISABLE_JIT=1")
        for item in items:
            if item.get_closest_marker("interpreted") and not item.get_closest_marker("compiled"):
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
    paths = [str(Path(online.__file__).parents[2]), str(Path(__file__).parent / "support")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "NUMBA_DISABLE_JIT": "1"}
    program = [sys.executable, request.module.__file__, str(path)]
    subprocess.run(program, env=env, check=True, timeout=120)
    with np.load(path) as file:
        return dict(file)
