"""The machinery: what a component must be, and where compiled kernels are kept."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from hopefear.core import component as machinery
from hopefear.core.component import component, interface
from hopefear.core.interfaces import Cost, GradientSink, Loss, UpdateRule, WeightView
from hopefear.rules.rda import RDA
from hopefear.rules.sgd import SGD
from hopefear.rules.truncated import TruncatedGradient

PACKAGE = Path(machinery.__file__).parents[1]


def test_a_missing_method_is_named():
    with pytest.raises(TypeError, match="Half lacks label_cost"):

        @component(Cost)
        class Half(NamedTuple):
            each: float = 1.0


def test_a_wrong_signature_is_refused_with_the_right_one():
    class Odd(NamedTuple):
        limit: float = 1.0

        def value(self, margin):
            return margin

        def negative_derivative(self, z):
            return z

    with pytest.raises(TypeError, match=r"Odd.value must take \('self', 'z'\)"):
        component(Loss)(Odd)


def test_a_field_must_not_bear_the_name_of_any_method():
    class Clash(NamedTuple):
        weighted_squared_norm: float = 1.0

        def at(self, j):
            return self.weighted_squared_norm

    with pytest.raises(
        TypeError, match=r"Clash: fields \['weighted_squared_norm'\] bear the names of methods"
    ):
        component(WeightView)(Clash)


def test_one_method_name_has_one_signature():
    class Rival:
        def add_entry(self, j, amount): ...

    with pytest.raises(TypeError, match=r"Rival.add_entry.* differs from .*'g'"):
        interface(Rival)


def test_defaults_come_from_the_interface_and_own_methods_stay():
    class Step(NamedTuple):
        rate: float = 1.0

        def init(self, n, dtype): ...

        def weight_view(self, state): ...

        def lazy_weight(self, state, j): ...

        def update(self, state, j, g, a, b): ...

        def needs_rescaling(self, state):
            return True

    rule = component(UpdateRule)(Step)()
    assert type(rule._replace(rate=2).rate) is float
    assert rule.step_size(None, None, None, None, 0.0, 0.0, 1.0) == (1.0, 0.0)
    assert rule.needs_rescaling(None) is True
    assert rule.tick(None, 1) is None


def test_several_interfaces_are_checked_together():
    class Both(NamedTuple):
        w: np.ndarray

        def at(self, j):
            return self.w[j]

    with pytest.raises(TypeError, match="Both lacks add_entry"):
        component(WeightView, GradientSink)(Both)


def test_numbers_become_what_their_annotation_says():
    rule = TruncatedGradient(rate=1, every=np.int64(3), gravity=np.float32(0.5))
    assert [type(v) for v in rule] == [float, float, int, float, float]
    assert SGD(1) == SGD(1.0)
    assert type(SGD(rate=True).rate) is float
    assert type(RDA(l1=np.float64(1e-3)).l1) is float


def test_unknown_fields_are_refused_by_name():
    with pytest.raises(TypeError, match="momentum"):
        SGD(momentum=0.9)
