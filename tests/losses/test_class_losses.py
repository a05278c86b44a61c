"""Losses: derivatives, constants, bounds, extreme margins, and gradients through structures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import dense_loss, random_problem, replay

from hopefear.averaging.last import Last
from hopefear.core.learner import Learner
from hopefear.core.workspace import Example
from hopefear.losses.exponential import Exponential
from hopefear.losses.hinge import Hinge
from hopefear.losses.linear import Linear
from hopefear.losses.logistic import Logistic
from hopefear.losses.perceptron import Perceptron
from hopefear.losses.smoothed_hinge import SmoothedHinge
from hopefear.losses.squared_hinge import SquaredHinge
from hopefear.rules.sgd import SGD
from hopefear.structures.classes import Binary, Multiclass

pytestmark = pytest.mark.interpreted

LOSSES = [
    Perceptron(),
    Perceptron(force=2),
    Hinge(),
    Hinge(asked=0.3),
    SquaredHinge(),
    SquaredHinge(asked=2),
    SmoothedHinge(),
    SmoothedHinge(asked=2, width=0.5),
    Logistic(),
    Logistic(base=2),
    Exponential(),
    Exponential(limit=1.5),
    Linear(),
    Linear(force=3),
]
KINKS = {"Perceptron": lambda loss: 0.0, "Hinge": lambda loss: loss.asked}
STRUCTURES = [Binary(12, bias=0.7), Multiclass(12, 4), Multiclass(12, 3, bias=0.7)]

margins = st.floats(-30, 30)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@given(z=margins)
def test_slope_is_minus_the_derivative(loss, z):
    step = 1e-5
    kink = KINKS.get(type(loss).__name__, lambda loss: math.inf)(loss)
    if abs(z - kink) < 2 * step:
        return
    numeric = (loss.value(z - step) - loss.value(z + step)) / (2 * step)
    assert loss.negative_derivative(z) == pytest.approx(numeric, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@given(z=margins)
def test_value_and_slope_equal_the_textbook(loss, z):
    value, slope = dense_loss(loss)(z)
    assert loss.value(z) == pytest.approx(value, rel=1e-12, abs=1e-12)
    assert loss.negative_derivative(z) == pytest.approx(slope, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if type(loss) is not Linear], ids=str)
@given(a=margins, b=margins)
def test_losses_are_convex_decreasing_and_not_negative(loss, a, b):
    low, high = min(a, b), max(a, b)
    assert loss.value(high) >= 0
    assert loss.value(low) >= loss.value(high)
    assert loss.negative_derivative(low) >= loss.negative_derivative(high) >= 0
    middle = (loss.value(a) + loss.value(b)) / 2
    assert loss.value((a + b) / 2) <= middle * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize(
    "loss", [Hinge(), SquaredHinge(), Logistic(base=2), Exponential()], ids=str
)
@given(z=margins)
def test_surrogates_bound_the_number_of_mistakes(loss, z):
    assert loss.value(z) >= (1 if z <= 0 else 0)


def test_the_natural_logarithm_does_not_bound_mistakes_and_base_two_does():
    assert Logistic().value(0.0) == pytest.approx(math.log(2))
    assert Logistic(base=2).value(0.0) == pytest.approx(1.0)
    for z in (-3.0, 0.4, 5.0):
        for part in ("value", "negative_derivative"):
            ratio = getattr(Logistic(base=2), part)(z) / getattr(Logistic(), part)(z)
            assert ratio == pytest.approx(1 / math.log(2))


def test_ties_are_mistakes_where_zero_weights_must_move():
    assert Perceptron().negative_derivative(0.0) == 1.0
    assert Hinge().negative_derivative(1.0) == SquaredHinge().negative_derivative(1.0) == 0.0


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("z", [-1e300, -1e4, -750.0, 750.0, 1e4, 1e150])
def test_huge_margins_stay_finite(loss, z):
    if type(loss) is SquaredHinge and z < -1e4:
        return  # its value is the square
    value, slope = loss.value(z), loss.negative_derivative(z)
    assert math.isfinite(value)
    assert math.isfinite(slope)
    assert slope >= 0


def test_margins_of_hundreds_keep_their_digits():
    assert Logistic().value(-700.0) == 700.0
    assert Logistic().value(700.0) == pytest.approx(math.exp(-700), rel=1e-12)
    assert Logistic().negative_derivative(700.0) == pytest.approx(math.exp(-700), rel=1e-12)
    assert Exponential(limit=3).value(-5.0) == pytest.approx(math.exp(3) * 3)


@pytest.mark.parametrize("structure", [Binary(3), Multiclass(3, 4)], ids=["binary", "four"])
def test_ties_go_to_the_lowest_class(structure):
    rows = random_problem(5, n=4, d=3, classes=structure.n_labels).rows
    y = np.full(1, 9)
    structure.argmax(Example(rows, 0), np.zeros(structure.n_parts()), y)
    assert y[0] == 0


def test_total_loss_of_a_dense_run_is_the_objective():
    """The oracle itself: constant weights give the sum of textbook losses."""
    problem = random_problem(6, n=10)
    trace = replay(Binary(12), Learner(Logistic(), SGD(rate=1e-12), Last()), problem, np.arange(10))
    assert trace.loss == pytest.approx(10 * math.log(2))
