"""The tests of label chains as plain Python: both ways of writing every kernel must hold."""

from __future__ import annotations

from test_lattice import *  # noqa: F403
