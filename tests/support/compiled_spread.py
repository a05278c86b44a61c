"""A few learners, compiled here and run as plain Python in another process.

A file of such tests has ``SPREAD``, ``WINDOW`` and ``learnt(name)``, uses the fixtures
``small_window`` and ``interpreted``, and calls `write` when it is run as a program.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from hopefear.training import online


def write(spread: Iterable[str], learnt: Callable[[str], Mapping[str, np.ndarray]], window: int):
    """Write what all learn to the file that the program is given."""
    online._WINDOW = window
    everything = {f"{name}/{key}": v for name in spread for key, v in learnt(name).items()}
    np.savez(sys.argv[1], allow_pickle=False, **everything)


def same(name: str, found: Mapping[str, np.ndarray], interpreted: Mapping[str, np.ndarray], **more):
    """What was learnt must be what plain Python learnt, up to 1e-12 or what ``more`` says."""
    wanted = {key.split("/")[1]: v for key, v in interpreted.items() if key.startswith(f"{name}/")}
    assert found.keys() == wanted.keys()
    for key, array in found.items():
        tolerance = more.get(key, 1e-12)
        np.testing.assert_allclose(array, wanted[key], tolerance, tolerance, err_msg=key)
        assert array.dtype == wanted[key].dtype
