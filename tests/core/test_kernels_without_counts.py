"""Kernels without reference counts, and what happens where a component makes arrays after all."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import pytest

from hopefear.core.component import component, helper, interface, kernel, required

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


@interface
class Doubler:
    """Something that doubles."""

    @required
    def doubled_sum(self, values):
        """Twice the sum."""


@component(Doubler)
class InPlace(NamedTuple):
    factor: float = 2.0

    def doubled_sum(self, values):
        total = 0.0
        for k in range(values.size):
            total += self.factor * values[k]
        return total


@component(Doubler)
class Copying(NamedTuple):
    factor: float = 2.0

    def doubled_sum(self, values):
        return np.sort(self.factor * values).sum()


@helper
def half(values):
    return values[: values.size // 2]


@helper(inline=True)
def first(values):
    return values[0]


@kernel(refcount=False)
def ask(doubler, values):
    return doubler.doubled_sum(half(values)) + first(values)


def test_arrays_are_made_where_a_component_makes_them():
    values = np.arange(1.0, 7.0)
    assert ask(InPlace(), values) == 13.0
    assert ask(Copying(), values) == 13.0
    assert ask(Copying(), values) == 13.0
    assert len(ask.dispatcher.overloads) == 2


def test_functions_that_kernels_link_run_as_they_are_in_python():
    assert half(np.arange(4.0)).tolist() == [0.0, 1.0]
