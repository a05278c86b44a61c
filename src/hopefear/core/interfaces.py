"""The one page of theory: what the parts of a learner are and where they meet.

Outputs decompose into *parts*; for example ``x`` the features form a sparse matrix F, parts x
features.

    theta = F w        scores of the parts                      Structure.score
    mu                 signed weights on parts: hope minus fear  Loss.subgradient
    g = F' mu          direction, one coordinate at a time       Structure.scatter
    w moves            how far, and how each coordinate goes     Rule.stride, Rule.move
    what is kept       last weights, their average, or votes     Readout

**Every rule is a line under a clock.** Whatever a rule remembers, between two touches the weight of
coordinate j at tick k is

    w_j(k) = r_j * scale_k * shrink(m_j, f_j * drop_k),    shrink(m, d) = sign(m) max(0, |m| - d)

with constants (m_j, r_j, f_j) that change only when j is touched, and two sequences shared by all
coordinates: ``scale_k`` and a non-decreasing ``drop_k``. Additive rules have scale 1 and drop 0;
dual averaging has scale 1/(l2 k + sqrt(k)/rate) and drop l1 k; a lazily truncated or shrunk rule
stores m = w + drop when it is touched. So reading a weight costs one coordinate, never a pass
over all, and the sum of a coordinate over any stretch of ticks is  r_j (m_j A - sign(m_j) f_j B)
with the prefix sums A of scale and B of scale * drop, cut where drop reaches |m_j|/f_j: averages
are exact for every rule (see ``averages.py``).

| symbol | meaning |
|---|---|
| x | an example: the dataset and a row number |
| theta, mu | scores of parts; signed weights on parts |
| j, g | a coordinate of w and its entry of the direction F' mu |
| t, k | tick: how often the rule's clock has advanced (examples, or mistakes) |
| z | margin: score of the hope minus score of the best rival |
| m, r, f | the line of a coordinate, as above |
| a, b | the two numbers a stride may choose (step, and what second-order rules need) |
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component, interface, python_only, required

# What the entries of every ``state.clock`` are.
SCALE, DROP, RATE = 0, 1, 2
# A clock whose scale has fallen below this starts again: sums over ticks would lose later digits.
MIN_SCALE = 1e-6
# Margin of an example that has no rival: large enough to exert no force, and a number.
UNRIVALLED = 1e30


@interface
class WeightView:
    """A reading of all weights at one tick."""

    @required
    def at(self, j): ...

    def prefetch(self, j):
        """Coordinate ``j`` comes up soon; changes nothing but time."""


@interface
class GradientSink:
    """Receives the entries of a direction, one coordinate at a time.

    Coordinates come unsigned: numba checks signed indices for "from the end" on every access.
    """

    @required
    def add_entry(self, j, g): ...

    def prefetch(self, j):
        """Coordinate ``j`` comes up soon; changes nothing but time."""

    def additive(self):
        """Whether two puts of one coordinate may stand for one put of their sum."""
        return True


@component(GradientSink)
class SquareSink(NamedTuple):
    """Sums up weighted squares of entries."""

    weights: Any
    total: np.ndarray  # float64[1]

    def additive(self):
        return False

    def add_entry(self, j, g):
        self.total[0] += self.weights.at(j) * np.float64(g) * np.float64(g)


@interface
class Cost:
    """How bad it is to predict a label where another one is right.

    Where outputs are candidates of a list, labels are what the two candidates cost.
    """

    # Number of labels that it has costs for; 0 where any number will do.
    n_labels = 0

    @python_only
    def requires(self):
        """What a structure must support for this cost: ``labels``, or the ``regret`` of lists."""
        return ()

    @python_only
    def parameter_error(self):
        """What is wrong with the parameters, beyond negative numbers; empty when nothing is."""
        return ""

    @required
    def label_cost(self, gold, label):
        """Cost of ``label`` at one position; 0 for the right one."""


@interface
class CostSource:
    """Says what the candidates of a list cost at the moment the list comes up."""

    @required
    def update_costs(self, x, points):
        """Set the costs of a list, and its oracle, given the scores of its candidates."""


@interface
class ArcFeatures:
    """Says which features fire on the arcs of a tree, and on arcs with a word more.

    Words count from 1 in their sentence, 0 is the root. Features are numbers below ``plain``, or
    below ``rows`` where relations share them; they are left in ``pad.keys``, and how many there are
    is returned. One may come more than once.
    """

    @python_only
    @required
    def new_buffer(self, data):
        """A pad large enough for every part of ``data``."""

    @python_only
    @required
    def max_keys(self, data):
        """At most how many features the parts of one word have, relations counted by twos."""

    @required
    def arc_keys(self, x, h, m, pad):
        """Features of the arc from h to m."""

    @required
    def label_keys(self, x, h, m, pad):
        """Features that each relation of the arc weighs for itself."""

    def sibling_keys(self, x, h, s, m, pad):
        """Features of m as the next child of h behind s, which is 0 where m is the nearest."""
        return 0

    def outermost_child_keys(self, x, h, m, pad):
        """Features of m as the child of h that is farthest away on its side."""
        return 0

    def grandparent_keys(self, x, g, h, m, pad):
        """Features of the arc from h to m below the arc from g to h."""
        return 0


@interface
class Structure:
    """An output space: two linear maps, an encoder and the searches it offers.

    What ``theta``, ``mu`` and an output ``y`` look like is the structure's own affair: it makes the
    workspace that losses and rules hand back to it.
    """

    # Number of labels that outputs are made of; 0 where costs are not of labels.
    n_labels = 0

    @python_only
    @required
    def weight_blocks(self):
        """Returns (first weight, features, weights a feature) of every block of the weights.

        The weights of a feature are neighbours, one for each label.
        """

    @python_only
    def why_unsupported(self, inference):
        """Returns why one of ``INFERENCES`` is not supported, and what can be used instead.

        Empty where it is supported.
        """
        return "it finds the best output alone"

    @python_only
    @required
    def workspace(self, data, loss, dtype):
        """Returns a ``Workspace`` large enough for each example of ``data`` and for ``loss``."""

    def prefetch_example(self, x, near):
        """Prefetches what says where an example lies, which comes up later; if ``near``, itself."""

    @required
    def score(self, x, weights, theta):
        """Fill ``theta`` with the scores of all parts."""

    @required
    def margin(self, x, theta, y, exact):
        """Returns the score of gold minus that of its best rival, which is left in ``y``.

        Where gold wins, any positive number will do unless ``exact``, and any output in ``y``.
        """

    @required
    def add_difference(self, x, y, coef, mu, clear):
        """Adds ``coef`` times (parts of gold minus parts of ``y``) to ``mu``.

        With ``clear``, ``mu`` is set to zero before.
        """

    @required
    def scatter(self, x, mu, row):
        """Put every non-zero entry of F' mu into ``row``.

        A coordinate comes once, unless ``row.additive()``.
        """

    def weighted_squared_norm(self, x, mu, weights):
        """Returns the sum over weights of ``weights.at(j) * g[j]**2``."""
        squares = SquareSink(weights, np.zeros(1))
        self.scatter(x, mu, squares)
        return squares.total[0]

    @required
    def argmax(self, x, theta, y):
        """Leave the best output in ``y``; ties go to the lowest class."""

    # Inferences that some structures support (see ``INFERENCES``); a loss names those it needs.

    def cost_augmented_argmax(self, x, theta, cost, sign, y):
        """Leave in ``y`` the output of the highest score plus ``sign`` times cost.

        Fear has the sign 1, hope -1; infinity is for the highest cost. Returns (margin, cost).
        """
        return 0.0, 0.0

    def output_cost(self, x, cost, y):
        """Cost of the output ``y``."""
        return 0.0

    def k_best(self, x, theta, cost, ratio, outputs):
        """Leaves the outputs of the highest score plus cost in ``outputs``, one a row, best first.

        A ``cost`` of None is none. Outputs over ``ratio`` times less probable than the best are
        left out (0: none are). Returns how many there are.
        """
        return 0

    def is_gold(self, x, y):
        """Whether ``y`` is the gold output."""
        return False

    def margin_over(self, x, theta, y):
        """Margin of the gold output over ``y``, whatever ``y`` is."""
        return 0.0

    def gram_matrix(self, x, outputs, count, mu, products):
        """Leaves in ``products`` the inner products of gold's differences from ``count`` outputs.

        Leaves ``mu`` as it comes.
        """

    def kl_and_gradient(self, x, theta, cost, sharp, coef, mu):
        """Sets ``mu`` to ``coef`` times (parts under Q minus parts under P).

        P is ``softmax(score)``. Q is ``softmax(fixed score - sharp * cost)``; where ``cost`` is
        None, it is gold alone. Returns the divergence of Q from P, for gold -log P(gold), and
        whether that alone says that gold wins.
        """
        return 0.0, False

    def risk_and_gradient(self, x, theta, cost, sharp, coef, mu):
        """Set ``mu`` to ``-coef`` times the slope of the expected cost, which is returned.

        Outputs have the probabilities ``softmax(sharp * score)``.
        """
        return 0.0

    def n_positions(self, x):
        """Positions of the output, each with a label of its own."""
        return 1

    def wrong_at(self, x, y, t):
        """Whether ``y`` differs from gold at position ``t``."""
        return True

    def gold_head(self, x, t):
        """Position that gold hangs position ``t`` from; -1 for the root."""
        return -1

    def mix_labels(self, x, y, taken, mixture):
        """Leave in ``mixture`` the labels of ``y`` where ``taken``, else gold's."""


@interface
class Loss:
    """Picks hope, fear and the force between them.

    A loss of the margin alone writes ``value`` and ``slope``; the pair of candidates is then gold
    against its best rival. Others write ``subgradient``.
    """

    # Names of parameters that mean something at infinity.
    may_be_infinite: tuple[str, ...] = ()

    @python_only
    def parameter_error(self):
        """What is wrong with the parameters, beyond negative numbers; empty when nothing is."""
        return ""

    @python_only
    def requires(self):
        """Names of the inferences that a structure must support for this loss."""
        return ()

    @python_only
    def n_outputs(self):
        """How many candidates it looks at."""
        return 1

    @python_only
    def probabilistic(self):
        """Whether it makes scores log probabilities of outputs, up to a constant."""
        return False

    @python_only
    def new_scratch(self, places):
        """Scratch space for outputs of so many positions."""
        return 0

    def value(self, z):
        """Loss at margin ``z``."""
        return max(0.0, 1.0 - z)

    def negative_derivative(self, z):
        """Minus the derivative at ``z``: the force with which hope and fear are pulled apart."""
        return 1.0 if z < 1.0 else 0.0

    def is_mistake_driven(self):
        """Whether there is no force at any positive margin, so that rivals need not be found."""
        return False

    def subgradient(self, structure, x, work):
        """Fill ``work.mu``, ``work.loss`` and ``work.gap``; 0 where there is no force, else 1."""
        z = structure.margin(x, work.theta, work.y, not self.is_mistake_driven())
        importance = float(x.data.weights[x.i])
        slope = importance * self.negative_derivative(z)
        work.gold_margin[0] = z
        work.loss[0] = importance * self.value(z)
        if slope == 0.0:
            return 0
        structure.add_difference(x, work.y, slope, work.mu, True)
        return 1


@interface
class UpdateRule:
    """How far along a direction, and what each coordinate remembers."""

    # Names of parameters that mean something at infinity: no limit, no auxiliary term.
    may_be_infinite: tuple[str, ...] = ()
    # States are sums over examples, so that those of parts of the data add up.
    is_sum_over_examples = False

    @python_only
    def parameter_error(self):
        """What is wrong with the parameters, beyond negative numbers; empty when nothing is."""
        return ""

    @python_only
    def incompatible_with(self, loss, on):
        """Why this rule cannot work with a loss, and what could; empty when it can."""
        if on == "every" and loss.negative_derivative(1e12) > 0.0:
            return (
                "the loss has no minimum, so weights would move for ever; use Hinge, or "
                "on='mistakes'"
            )
        return ""

    @python_only
    def why_all_zero(self, state, ticks):
        """Why all weights may have become zero after so many ticks, and what to do about it."""
        if getattr(self, "l1", 0.0) > 0.0:
            return f"l1={self.l1:g} is too large for this data: make it smaller"
        return (
            "the steps are too short to be seen in float32: raise the rate, or scale the values up"
        )

    @python_only
    @required
    def init(self, n, dtype):
        """State for ``n`` coordinates, all alike: arrays in a NamedTuple, with a float64 ``clock``.

        The clock has 3 entries.
        """

    # How the states of shards merge, which began a round with one state and then learned from
    # different examples (see ``hopefear.training.shards``).

    @python_only
    def merged_clock(self, base, clocks, shares, t):
        """Returns the clock of the merged state, which is ``t`` ticks old."""
        state = base._replace(clock=base.clock.copy())
        if t > 0:
            self.tick(state, t)
        return state.clock

    @python_only
    def to_sums(self, state, clock):
        """Returns float64 arrays, one entry a weight, that add up over shards; None: they do not.

        They say what ``state`` is where ``clock`` stands in for its own.
        """

    @python_only
    def from_sums(self, sums, clock):
        """Returns the arrays of a state with this clock, in the order of its fields."""

    def additive(self):
        """Whether two moves of one coordinate in one tick equal one move by their sum."""
        return True

    @required
    def weight_view(self, state):
        """A ``Weights`` reading of the present tick."""

    @required
    def lazy_weight(self, state, j):
        """(m, r, f) of coordinate ``j``."""

    def step_size(self, structure, x, mu, state, value, margin, importance):
        """(a, b): chosen once for the whole direction, given the loss and the margin.

        ``value`` and ``mu`` carry the importance of the example already, ``margin`` does not.
        """
        return 1.0, 0.0

    @required
    def update(self, state, j, g, a, b):
        """Move coordinate ``j`` along ``g``; it writes to no other."""

    def tick(self, state, t):
        """Set the clock for the predictor made by ``t`` ticks."""

    def needs_rescaling(self, state):
        """Whether the clock's scale has become too small to divide by."""
        return False

    def rescale(self, state, j):
        """Rewrite coordinate ``j`` for a clock of scale 1, on which drops are times the scale."""


# What structures may support beyond ``margin`` and ``argmax``:
# cost        cost-augmented search, and costs of outputs
# labels      costs are sums over labels
# regret      costs are differences of what candidates cost
# nbest       the k best outputs, and inner products of their differences from gold
# expectation sums over all outputs
# risk        expected costs
# worst       the output of the highest cost
# places      outputs have positions that mix with those of gold
# heads       positions have heads
# bounded     an update touches no more weights than an example has features, whatever the loss
INFERENCES = (
    *("cost", "labels", "regret", "nbest", "expectation", "risk", "worst", "places", "heads"),
    "bounded",
)


def inferences_of(structure: Any) -> frozenset[str]:
    """Returns the names of the inferences that a structure supports."""
    return frozenset(name for name in INFERENCES if not structure.why_unsupported(name))


def n_weights(structure: Any) -> int:
    """Returns the length of the weight vector of a structure."""
    start, features, width = structure.weight_blocks()[-1]
    return start + features * width


def same_shapes(memory: Any, fresh: Any) -> bool:
    """Whether all arrays have the shapes of those of a fresh memory, at any depth."""
    return all(
        same_shapes(one, other) if isinstance(one, tuple) else one.shape == other.shape
        for one, other in zip(memory, fresh, strict=True)
    )


@interface
class Averaging:
    """What is remembered of all the weights there were.

    Hooks that get a ``trainer`` may ask it for ``weights()`` now, the ``mean(account)`` of an
    ``Account``, and for a predictor of weights, ``linear``, or of votes, ``voted``.
    """

    # Scores keep their size, so that fixed numbers may be added to them.
    keeps_scale = True
    # Every change of a weight is kept, so that no clock may start again.
    needs_history = False

    @python_only
    def parameter_error(self):
        """What is wrong with the parameters, beyond negative numbers; empty when nothing is."""
        return ""

    @python_only
    def incompatible_with(self, loss, structure):
        """Returns why it cannot keep what a loss does on a structure; empty if it can."""
        return ""

    @python_only
    @required
    def init_memory(self, n, window):
        """Memory for ``n`` coordinates; ``window`` ticks fit between two settlings."""

    @python_only
    def reserve(self, memory, ticks, entries):
        """Returns the memory with space for more ticks and, in all, ``entries`` touches."""
        return memory

    @python_only
    def shrink_to_fit(self, memory):
        """The memory without space that is not used yet."""
        return memory

    @python_only
    def is_valid(self, memory, fresh, n):
        """Whether a memory from a file, of the types of a fresh one, is one of ``n`` coordinates.

        Nothing in it is trusted: what is unsound would lead kernels out of its arrays.
        """
        return same_shapes(memory, fresh)

    @python_only
    def reset_window(self, memory):
        """Empty the books, once every coordinate has been settled."""

    @python_only
    def accumulators(self, memory):
        """Returns what adds up over shards: accounts, the memory itself or fields of it.

        None: what one learner remembers does not go together with what others do.
        """

    @python_only
    def average(self, memory, trainer):
        """Mean of the weights after each example (float64), where it is kept."""

    @python_only
    def predictor(self, memory, trainer):
        """What is made of all the weights there were."""
        return trainer.linear(trainer.weights())

    def end_tick(self, memory, clock):
        """The predictor now ending gets its account closed, before coordinates move.

        Returns three numbers that hold for the whole update, so that touches need not look them up.
        """
        return 0.0, 0.0, 0.0

    def prefetch_memory(self, memory, j):
        """Coordinate ``j`` comes up soon; changes nothing but time."""

    def on_update(self, memory, now, j, g, m0, r0, f0, m1, r1, f1):
        """Coordinate ``j`` went from line 0 to line 1."""

    def count_example(self, memory):
        """The present predictor has lived through one more example."""

    def window_full(self, memory):
        """Whether no further tick fits before the books are settled."""
        return False

    def flush(self, memory, j, m, r, f):
        """Credit coordinate ``j`` with all closed ticks, so that the books can start afresh."""
