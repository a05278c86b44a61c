"""Contracts of all registered parts by reflection, and that each check catches what is wrong."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from hopefear import testing
from hopefear.averaging.averaged import Averaged
from hopefear.averaging.last import Last
from hopefear.core.component import component
from hopefear.core.interfaces import DROP, Averaging, Loss, Structure, UpdateRule
from hopefear.core.learner import Learner, describe
from hopefear.core.workspace import DenseWeights, SoftThresholdedWeights
from hopefear.costs.hamming import Hamming
from hopefear.errors import CombinationError, HopefearError
from hopefear.losses.hinge import Hinge
from hopefear.losses.structured_hinge import StructuredHinge
from hopefear.losses.swvp import SWVP
from hopefear.recipes import LOSSES, RULES
from hopefear.recipes.parts import Parts
from hopefear.rules.rda import RDA
from hopefear.rules.sgd import SGD
from hopefear.structures.classes import Classes, Multiclass
from hopefear.testing import registered_parts, tiny_structures
from hopefear.testing.worlds import FORMULAS
from hopefear.training.online import OnlineTrainer

STRUCTURES = tiny_structures()
AVERAGINGS = {"last": lambda w: w[-1], "averaged": lambda w: w.mean(axis=0)}


def ids(parts):
    return [describe(part.part) for part in parts]


@pytest.mark.parametrize("part", registered_parts("loss"), ids=ids(registered_parts("loss")))
def test_loss(part):
    assert testing.formula_of(part.part) is not None
    for hole in testing.check_loss(part.part):
        assert "needs" in hole
        assert ": " in hole.split("does not offer")[1], "a hole must give its reason"


@pytest.mark.parametrize("part", registered_parts("rule"), ids=ids(registered_parts("rule")))
def test_rule(part):
    assert testing.dense_rule(part.part, 2) is not None
    testing.check_rule(part.part)


@pytest.mark.parametrize(
    "part", registered_parts("averaging"), ids=ids(registered_parts("averaging"))
)
def test_readout(part):
    testing.check_averaging(part.part, AVERAGINGS.get(part.name))


def test_every_loss_of_the_table_has_a_formula_and_settings_that_exist():
    assert {cls.__name__ for cls in LOSSES.values()} == set(FORMULAS)


# --- what is wrong is caught --------------------------------------------------------------------


@component(Structure, Classes, n_labels=3)
class Twisted(NamedTuple):
    """Classes whose methods can each be replaced by a wrong one."""

    right_one: Any
    fault_in: int = 0
    bias: float = 0.0

    def weight_blocks(self):
        return self.right_one.weight_blocks()

    def n_parts(self):
        return self.right_one.n_parts()

    def how_many(self):
        return self.right_one.n_classes

    def workspace(self, data, loss, dtype):
        work = Classes.workspace(self, data, loss, dtype)
        return work._replace(max_nnz=0) if self.fault_in == 1 else work

    def point(self, theta, c):
        return theta[c]

    def weigh(self, c, coef, mu):
        mu[c] += coef

    def overlap(self, a, b):
        return 1.0 if self.fault_in == 2 or a == b else 0.0

    def score(self, x, weights, theta):
        self.right_one.score(x, weights, theta)
        if self.fault_in == 3:
            theta[0] *= 2.0

    def margin(self, x, theta, y, exact):
        z = self.right_one.margin(x, theta, y, exact)
        if self.fault_in == 4:
            y[0] = x.data.labels[x.i]
        return z

    def scatter(self, x, mu, row):
        self.right_one.scatter(x, mu * (0.5 if self.fault_in == 5 else 1.0), row)

    def weighted_squared_norm(self, x, mu, weights):
        return self.right_one.weighted_squared_norm(x, mu, weights) * (
            2.0 if self.fault_in == 6 else 1.0
        )

    def argmax(self, x, theta, y):
        self.right_one.argmax(x, theta, y)
        if self.fault_in == 7 and theta[2] >= theta[y[0]]:
            y[0] = 2  # of equals the last

    def cost_augmented_argmax(self, x, theta, cost, sign, y):
        return Classes.cost_augmented_argmax(
            self, x, theta, cost, abs(sign) if self.fault_in == 8 else sign, y
        )

    def kl_and_gradient(self, x, theta, cost, inverse_temperature, coef, mu):
        value, wins = Classes.kl_and_gradient(self, x, theta, cost, inverse_temperature, coef, mu)
        return value * (1.0 + (self.fault_in == 9)), wins

    def k_best(self, x, theta, cost, ratio, outputs):
        given = None if self.fault_in == 10 else cost
        return Classes.k_best(self, x, theta, given, ratio, outputs)


@testing.outputs_of.register(Twisted)
def twisted_outputs(structure, rows, i):
    return testing.outputs_of(structure.right_one, rows, i)


FAULTS = {
    0: None,
    1: "max_nnz",
    2: "gram",
    3: "argmax|margin|linear",
    4: "rival",
    5: "transpose",
    6: "norm",
    7: "argmax",
    8: "times cost",
    9: "value of kl_and_gradient",
    10: "best",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_structure_is_caught(fault):
    right_one = STRUCTURES["multiclass"]
    structure, rows = Twisted(right_one, fault), testing.tiny_rows(right_one)
    if FAULTS[fault] is None:
        testing.check_structure(structure, rows)
        return
    with pytest.raises(AssertionError, match=FAULTS[fault]):
        testing.check_structure(structure, rows)


@component(Loss)
class SteepHinge(NamedTuple):
    """Its slope is not that of its value."""

    asked: float = 1.0

    def value(self, z):
        return max(0.0, self.asked - z)

    def negative_derivative(self, z):
        return 1.5 if z < self.asked else 0.0


@component(Loss)
class CarelessHinge(NamedTuple):
    """Forgets the weight of the example, or says the wrong margin."""

    gap_of: int = 0

    def subgradient(self, structure, x, work):
        z = structure.margin(x, work.theta, work.y, True)
        importance = float(x.data.weights[x.i]) if self.gap_of else 1.0
        work.gold_margin[0], work.loss[0] = -z if self.gap_of else z, importance * max(0.0, 1.0 - z)
        structure.add_difference(x, work.y, importance, work.mu, True)
        return 1 if z < 1.0 else 0


def hinge_formula(loss, world):
    return FORMULAS["Hinge"](Hinge(), world)


def test_a_wrong_loss_is_caught():
    with pytest.raises(AssertionError, match="numerical gradient"):
        testing.check_loss(SteepHinge())
    with pytest.raises(AssertionError, match="direction at example"):
        testing.check_loss(SteepHinge(), formula=hinge_formula, gradient=False)
    with pytest.raises(AssertionError, match="weight 0 has a force"):
        testing.check_loss(CarelessHinge())
    with pytest.raises(AssertionError, match="gap"):
        testing.check_loss(CarelessHinge(1), formula=hinge_formula)
    with pytest.raises(AssertionError, match="value at example"):
        testing.check_loss(Hinge(2.0), formula=hinge_formula)
    with pytest.raises(AssertionError, match="runs on nothing"):
        testing.check_loss(SWVP(), STRUCTURES["lists"])


class State(NamedTuple):
    m: np.ndarray
    clock: np.ndarray


@component(UpdateRule)
class Sloppy(NamedTuple):
    """Gradient steps under a penalty, wrong in a way of one's choice."""

    fault_in: int = 0

    def init(self, n, dtype):
        return State(np.zeros(n, dtype), np.array([1.0, 0.0, 1.0]))

    def weight_view(self, state):
        if self.fault_in == 1:  # forgets the penalty
            return DenseWeights(state.m)
        return SoftThresholdedWeights(state.m, state.clock[0], state.clock[DROP])

    def lazy_weight(self, state, j):
        return state.m[j], 1.0, 1.0

    def update(self, state, j, g, a, b):
        if self.fault_in == 2:  # not the same for two halves
            g = g * g
        state.m[j] += 0.3 * g

    def tick(self, state, t):
        state.clock[DROP] += -0.01 if self.fault_in == 3 and t > 5 else 0.02
        if self.fault_in == 4:  # reaches coordinates that did not move
            state.m[:] *= 0.9

    def rescale(self, state, j):
        state.m[j] *= 2.0 if self.fault_in == 5 else 1.0


class DenseSloppy(testing.DenseRule):
    """The cumulative penalty of figure 2, on rate 0.3."""

    def begin(self):
        self.q = np.zeros(self.n)

    def step(self, g, value, margin):
        before, u = self.w + 0.3 * g, 0.02 * self.t
        self.w = testing.soft(before - self.q, u) if self.fault_in != 6 else before
        self.q = self.q + self.w - before


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (1, "reading and line"),
        (2, "two moves add up"),
        (3, "drop fell"),
        (4, "did not move"),
        (5, "clock restarts"),
        (6, "lazy against dense"),
        (7, None),
    ],
)
def test_a_wrong_rule_is_caught(fault, words):
    def dense(n):
        return DenseSloppy(n, fault_in=fault)

    if words is None:
        testing.check_rule(Sloppy(fault), dense)
        return
    with pytest.raises(AssertionError, match=words):
        testing.check_rule(Sloppy(fault), dense)


def test_a_rule_that_objects_to_everything_needs_a_loss():
    class Proud:
        _fields, _field_defaults = (), {}

        def _asdict(self):
            return {}

        def incompatible_with(self, loss, update_on):
            return "never"

    with pytest.raises(AssertionError, match="give a loss"):
        testing.check_rule(Proud())


@component(Averaging)
class Forgetful(NamedTuple):
    """An average that is wrong in a way of one's choice."""

    fault_in: int = 0

    def init_memory(self, n, window):
        return Averaged().init_memory(n, window)

    def reset_window(self, memory):
        Averaged().reset_window(memory)

    def average(self, memory, trainer):
        return trainer.mean(memory, np.float64)

    def predictor(self, memory, trainer):
        return trainer.linear(trainer.mean(memory, np.float32))

    def end_tick(self, memory, clock):
        return Averaged().end_tick(memory, clock)

    def on_update(self, memory, totals, j, g, m0, r0, f0, m1, r1, f1):
        if self.fault_in != 1:
            Averaged().on_update(memory, totals, j, g, m0, r0, f0, m1, r1, f1)

    def count_example(self, memory):
        memory.lived[0] += 1.0

    def window_full(self, memory):
        return memory.closed[0] == memory.drop.size

    def flush(self, memory, j, m, r, f):
        if self.fault_in != 2:
            Averaged().flush(memory, j, m, r, f)

    def shrink_to_fit(self, memory):
        return memory._replace(total=0 * memory.total) if self.fault_in == 3 else memory


@pytest.mark.parametrize(
    ("fault", "words"),
    [(0, None), (1, "weights of the predictor"), (2, "settled early"), (3, "saved and gone on")],
)
def test_a_wrong_readout_is_caught(fault, words):
    if words is None:
        testing.check_averaging(Forgetful(fault), AVERAGINGS["averaged"])
        return
    with pytest.raises(AssertionError, match=words):
        testing.check_averaging(Forgetful(fault), AVERAGINGS["averaged"])


def test_a_wrong_learner_is_caught(monkeypatch):
    monkeypatch.setattr(SGD, "update", lambda self, state, j, g, a, b: state.m.__setitem__(j, g))
    with pytest.raises(AssertionError, match="lazy against dense"):
        testing.check_learner(Hinge(), SGD(rate=0.5), Last(), Multiclass(5, 3))


def test_what_cannot_be_compared_says_why():
    reason = testing.check_learner(Hinge(), Sloppy(), Last(), Multiclass(5, 3))
    assert reason.startswith("no dense form of sloppy")
    loose = StructuredHinge(Hamming())
    rule = RULES["confidence-weighted"](phi=0.7)
    assert "which margin" in testing.check_learner(loose, rule, Last(), Multiclass(5, 3))


def test_a_structure_that_nobody_enumerates_says_what_to_register():
    with pytest.raises(NotImplementedError, match=r"outputs_of\.register"):
        testing.outputs_of(object(), None, 0)
    with pytest.raises(NotImplementedError, match=r"tiny_rows\.register"):
        testing.tiny_rows(object())


def test_parts_of_users_are_among_the_registered(monkeypatch):
    monkeypatch.setattr(LOSSES, "_places", dict(LOSSES._places))
    LOSSES.add("steep-hinge", SteepHinge)
    assert "steep-hinge" in [part.name for part in registered_parts("loss")]
    with pytest.raises(HopefearError, match="already"):
        LOSSES.add("steep-hinge", SteepHinge)
    assert isinstance(LOSSES, Parts)


def test_holes_are_the_words_of_the_library():
    reason = testing.check_learner(Hinge(), SGD(), Last(), STRUCTURES["binary"])
    assert reason == ""
    reason = testing.check_learner(SWVP(), RDA(), Last(), STRUCTURES["lists"])
    learner = Learner(SWVP(), RDA(), Last())
    with pytest.raises(CombinationError) as caught:
        OnlineTrainer(STRUCTURES["lists"], learner)
    assert reason == str(caught.value)
