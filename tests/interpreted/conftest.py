"""These tests run every combination as plain Python; compiled, each would cost seconds."""

from __future__ import annotations

from pathlib import Path

import numba
import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    if numba.config.DISABLE_JIT:
        return
    skip = pytest.mark.skip(reason="interpreted tests; set NUMBA_DISABLE_JIT=1")
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(skip)
