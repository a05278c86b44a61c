"""Interfaces of costs, losses, update rules, averaging and structures, and the theory they share.

Outputs decompose into *parts*; for an example ``x`` the features form a sparse matrix F, parts x
features.

    theta = F w       scores of the parts                           Structure.score
    mu                gradient with respect to the scores, negated:
                      hope minus fear                               Loss.subgradient
    g = F' mu         the same with respect to the weights, sparse  Structure.scatter
    w update          step size, and how each weight changes        UpdateRule.step_size, .update
    what is kept      last weights, their average, or votes         Averaging

**Every weight is lazy.** Whatever a rule remembers, between two updates weight j at tick k is

    w_j(k) = r_j * scale_k * shrink(m_j, f_j * drop_k),    shrink(m, d) = sign(m) max(0, |m| - d)

with coefficients (m_j, r_j, f_j) that change only when j is updated, and a schedule that all
weights share, the *clock*: ``scale_k`` and a non-decreasing ``drop_k``. Additive rules have scale 1
and drop 0; dual averaging has scale 1/(l2 k + sqrt(k)/rate) and drop l1 k; a lazily truncated or
shrunk rule stores m = w + drop when it updates. So reading a weight costs one entry, never a sweep
over all, and the sum of a weight over consecutive ticks is  r_j (m_j A - sign(m_j) f_j B)  with the
prefix sums A of scale and B of scale * drop, cut where drop reaches |m_j|/f_j: averages are exact
for every rule (see ``averages.py``).

| symbol | meaning |
|---|---|
| x | an example: the dataset and a row number |
| theta, mu | scores of parts; minus the gradient with respect to them |
| j, g | a weight, and its entry of F' mu |
| t, k | tick: how often the rule's clock has advanced (examples, or mistakes) |
| z | margin: score of the hope minus score of the best rival |
| m, r, f | coefficients of a lazy weight, as above |
| a, b | the two numbers of a step (its size, and what second-order rules need) |

``docs/glossary.md`` has the words, ``docs/extending.md`` which method is called when.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component, interface, python_only, required

# Entries of every ``state.clock``.
SCALE, DROP, RATE = 0, 1, 2
# A clock whose scale falls below this starts again: sums over ticks would lose later digits.
MIN_SCALE = 1e-6
# Margin of an example that has no rival: large enough to exert no force, and a number.
UNRIVALLED = 1e30


@interface
class WeightView:
    """All weights as they are at one tick."""

    @required
    def at(self, j):
        """Returns weight ``j``."""

    def prefetch(self, j):
        """Prefetches weight ``j``."""


@interface
class GradientSink:
    """Receives the entries of a sparse gradient, one weight at a time.

    Numbers of weights come unsigned: numba checks signed indices for "from the end" on every
    access.
    """

    @required
    def add_entry(self, j, g):
        """Adds ``g`` to entry ``j``."""

    def prefetch(self, j):
        """Prefetches what belongs to weight ``j``."""

    def additive(self):
        """Whether two entries of one weight may stand for one entry of their sum."""
        return True


@component(GradientSink)
class SquareSink(NamedTuple):
    """Sums up the weighted squares of entries."""

    weights: Any
    total: np.ndarray  # float64[1]

    def additive(self):
        return False

    def add_entry(self, j, g):
        self.total[0] += self.weights.at(j) * np.float64(g) * np.float64(g)


@interface
class Cost:
    """Cost of predicting a label where another one is right.

    Where outputs are candidates of a list, labels are what the two candidates cost.
    """

    # Number of labels that it has costs for; 0 where any number will do.
    n_labels = 0

    @python_only
    def requires(self):
        """Returns what a structure must support for this cost: ``labels``, or ``regret``."""
        return ()

    @python_only
    def parameter_error(self):
        """Returns what is wrong with the parameters, beyond negative numbers; else nothing."""
        return ""

    @required
    def label_cost(self, gold, label):
        """Returns the cost of ``label`` at one position; 0 for the right one."""


@interface
class CostSource:
    """Sets the costs of a list's candidates when the list is scored."""

    @required
    def update_costs(self, x, points):
        """Sets the costs of a list, and its oracle, given the scores of its candidates."""


@interface
class ArcFeatures:
    """Features of the arcs of a tree, and of arcs with one word more.

    Words count from 1 in their sentence, 0 is the root. Features are numbers below ``plain``, or
    below ``rows`` where relations share them; they are left in ``pad.keys``, and their number is
    returned. A feature may come more than once.
    """

    @python_only
    @required
    def new_buffer(self, data):
        """Returns a pad large enough for every part of ``data``."""

    @python_only
    @required
    def max_keys(self, data):
        """Returns the most features that the parts of one word have, those of relations twice."""

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
    """An output space: scores and gradients of parts, and inference over outputs.

    A structure chooses the shapes of ``theta``, ``mu`` and an output ``y``: it makes the workspace
    that losses and rules hand back to it.
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
        """Prefetches the offsets of an example that comes later; if ``near``, the example."""

    @required
    def score(self, x, weights, theta):
        """Fills ``theta`` with the scores of all parts, F w."""

    @required
    def add_difference(self, x, y, coef, mu, clear):
        """Adds ``coef`` times (parts of gold minus parts of ``y``) to ``mu``.

        With ``clear``, ``mu`` is set to zero before.
        """

    @required
    def scatter(self, x, mu, row):
        """Adds every non-zero entry of F' mu to ``row``.

        A weight comes once, unless ``row.additive()``.
        """

    def weighted_squared_norm(self, x, mu, weights):
        """Returns the sum of ``weights.at(j) * g[j]**2`` over the entries of g = F' mu."""
        squares = SquareSink(weights, np.zeros(1))
        self.scatter(x, mu, squares)
        return squares.total[0]

    @required
    def argmax(self, x, theta, y):
        """Leaves the best output in ``y``; ties go to the lowest class."""

    @required
    def margin(self, x, theta, y, exact):
        """Returns the score of gold minus that of its best rival, which is left in ``y``.

        Unless ``exact``, any positive number will do where gold wins, and any output in ``y``.
        """

    # Inferences that some structures support (see ``INFERENCES``); a loss names those it requires.

    def is_gold(self, x, y):
        """Returns whether ``y`` is the gold output."""
        return False

    def margin_over(self, x, theta, y):
        """Returns the score of gold minus that of ``y``."""
        return 0.0

    def output_cost(self, x, cost, y):
        """Returns the cost of the output ``y``."""
        return 0.0

    def cost_augmented_argmax(self, x, theta, cost, sign, y):
        """Leaves in ``y`` the output of the highest score plus ``sign`` times cost.

        Fear has the sign 1, hope -1; infinity is for the highest cost. Returns (margin, cost).
        """
        return 0.0, 0.0

    def k_best(self, x, theta, cost, ratio, outputs):
        """Leaves the outputs of the highest score plus cost in the rows of ``outputs``, best first.

        A ``cost`` of None adds nothing. Outputs over ``ratio`` times less probable than the best
        are left out (0: none are). Returns the number of outputs.
        """
        return 0

    def gram_matrix(self, x, outputs, count, mu, products):
        """Leaves the inner products of gold's differences from ``count`` outputs in ``products``.

        ``mu`` is scratch space.
        """

    def kl_and_gradient(self, x, theta, cost, inverse_temperature, coef, mu):
        """Sets ``mu`` to ``coef`` times (expected parts under Q minus expected parts under P).

        P is ``softmax(score)``, Q is ``softmax(fixed score - inverse_temperature * cost)``; where
        ``cost`` is None, Q is gold alone. Returns the divergence of Q from P, which for gold is
        -log P(gold), and whether that is small enough for gold to win.
        """
        return 0.0, False

    def risk_and_gradient(self, x, theta, cost, inverse_temperature, coef, mu):
        """Sets ``mu`` to ``-coef`` times the gradient of the expected cost, which is returned.

        Outputs have the probabilities ``softmax(inverse_temperature * score)``.
        """
        return 0.0

    # Positions, for mixtures of gold and a prediction.

    def n_positions(self, x):
        """Returns the number of positions, each with a label of its own."""
        return 1

    def wrong_at(self, x, y, t):
        """Returns whether ``y`` differs from gold at position ``t``."""
        return True

    def gold_head(self, x, t):
        """Returns the position of the head of ``t`` in gold; -1 for the root."""
        return -1

    def mix_labels(self, x, y, taken, mixture):
        """Leaves in ``mixture`` the labels of ``y`` where ``taken``, else those of gold."""


@interface
class Loss:
    """Chooses hope and fear, and how hard they are pulled apart.

    A loss of the margin alone writes ``value`` and ``negative_derivative``: gold against its best
    rival. Others write ``subgradient``.
    """

    # Names of parameters that may be infinite.
    may_be_infinite: tuple[str, ...] = ()

    @python_only
    def parameter_error(self):
        """Returns what is wrong with the parameters, beyond negative numbers; else nothing."""
        return ""

    @python_only
    def requires(self):
        """Returns the names of the inferences that a structure must support for this loss."""
        return ()

    @python_only
    def n_outputs(self):
        """Returns the number of outputs it looks at: rows of ``work.outputs``."""
        return 1

    @python_only
    def probabilistic(self):
        """Returns whether scores become log probabilities of outputs, up to a constant."""
        return False

    @python_only
    def new_scratch(self, places):
        """Returns scratch space for outputs of up to ``places`` positions."""
        return 0

    def value(self, z):
        """Returns the loss at margin ``z``."""
        return max(0.0, 1.0 - z)

    def negative_derivative(self, z):
        """Returns minus the derivative at ``z``: how hard hope and fear are pulled apart."""
        return 1.0 if z < 1.0 else 0.0

    def is_mistake_driven(self):
        """Returns whether the derivative is 0 at every positive margin, so that argmax will do."""
        return False

    def subgradient(self, structure, x, work):
        """Fills ``work.mu``, ``work.loss`` and ``work.gold_margin``; returns 0 where mu is zero."""
        z = structure.margin(x, work.theta, work.y, not self.is_mistake_driven())
        importance = float(x.data.weights[x.i])
        force = importance * self.negative_derivative(z)
        work.gold_margin[0] = z
        work.loss[0] = importance * self.value(z)
        if force == 0.0:
            return 0
        structure.add_difference(x, work.y, force, work.mu, True)
        return 1


@interface
class UpdateRule:
    """How far a step goes, and how each weight changes."""

    # Names of parameters that may be infinite: no limit, no auxiliary term.
    may_be_infinite: tuple[str, ...] = ()
    # States are sums over examples, so that states of parts of the data add up.
    is_sum_over_examples = False

    @python_only
    def parameter_error(self):
        """Returns what is wrong with the parameters, beyond negative numbers; else nothing."""
        return ""

    @python_only
    def incompatible_with(self, loss, update_on):
        """Returns why this rule cannot work with a loss, and what could; empty when it can."""
        if update_on == "all" and loss.negative_derivative(1e12) > 0.0:
            return (
                "the loss has no minimum, so weights would move for ever; use Hinge, or "
                "update_on='mistakes'"
            )
        return ""

    @python_only
    def why_all_zero(self, state, ticks):
        """Returns why all weights may be zero after ``ticks`` ticks, and what to do about it."""
        if getattr(self, "l1", 0.0) > 0.0:
            return f"l1={self.l1:g} is too large for this data: make it smaller"
        return (
            "the steps are too short to be seen in float32: raise the rate, or scale the values up"
        )

    @python_only
    @required
    def init(self, n, dtype):
        """Returns the state of ``n`` weights, all alike: arrays in a NamedTuple.

        Its ``clock`` is float64[3]: ``SCALE``, ``DROP``, ``RATE``.
        """

    # Shards begin a round with one state, learn from different examples, and merge their states
    # (see ``hopefear.training.shards``).

    @python_only
    def merged_clock(self, base, clocks, shares, t):
        """Returns the clock of the merged state, which is ``t`` ticks old."""
        state = base._replace(clock=base.clock.copy())
        if t > 0:
            self.tick(state, t)
        return state.clock

    @python_only
    def to_sums(self, state, clock):
        """Returns ``state`` under ``clock`` as float64 arrays that add up over shards.

        None where states do not merge.
        """

    @python_only
    def from_sums(self, sums, clock):
        """Returns the arrays of a state with this clock, in the order of its fields."""

    def additive(self):
        """Returns whether two updates of a weight in one tick equal one update by their sum."""
        return True

    @required
    def weight_view(self, state):
        """Returns a ``WeightView`` of the present tick."""

    @required
    def lazy_weight(self, state, j):
        """Returns the coefficients (m, r, f) of weight ``j``."""

    def step_size(self, structure, x, mu, state, value, margin, importance):
        """Returns (a, b), chosen once for the whole gradient, given the loss and the margin.

        ``value`` and ``mu`` are multiplied by the importance of the example, ``margin`` is not.
        """
        return 1.0, 0.0

    @required
    def update(self, state, j, g, a, b):
        """Updates weight ``j`` by its entry ``g``, and no other weight."""

    def tick(self, state, t):
        """Sets the clock for the weights after ``t`` ticks."""

    def needs_rescaling(self, state):
        """Returns whether the clock's scale has become too small to divide by."""
        return False

    def rescale(self, state, j):
        """Rewrites weight ``j`` for a clock of scale 1, whose drop is multiplied by the scale."""


# Inferences that structures may support beyond ``margin`` and ``argmax``:
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
    """Returns whether all arrays have the shapes of those of a fresh memory, at any depth."""
    return all(
        same_shapes(one, other) if isinstance(one, tuple) else one.shape == other.shape
        for one, other in zip(memory, fresh, strict=True)
    )


@interface
class Averaging:
    """Which weights a learner returns, and what must be remembered for them.

    Methods that get a ``trainer`` may ask it for ``weights()`` now, the ``mean(account)`` of an
    ``AverageAccumulator``, and for a predictor of weights, ``linear``, or of votes, ``voted``.
    """

    # Scores keep their size, so that fixed numbers may be added to them.
    keeps_scale = True
    # Every update is kept, so that no clock may start again.
    needs_history = False

    @python_only
    def parameter_error(self):
        """Returns what is wrong with the parameters, beyond negative numbers; else nothing."""
        return ""

    @python_only
    def incompatible_with(self, loss, structure):
        """Returns why it cannot keep the updates of a loss on a structure; empty if it can."""
        return ""

    @python_only
    @required
    def init_memory(self, n, window):
        """Returns memory for ``n`` weights, and for ``window`` ticks between two flushes."""

    @python_only
    def reserve(self, memory, ticks, entries):
        """Returns the memory with space for more ticks and, in all, ``entries`` updates."""
        return memory

    @python_only
    def shrink_to_fit(self, memory):
        """Returns the memory without unused space."""
        return memory

    @python_only
    def is_valid(self, memory, fresh, n):
        """Returns whether a memory from a file, with the types of a fresh one, fits ``n`` weights.

        Nothing in it is trusted: kernels would read and write beyond its arrays.
        """
        return same_shapes(memory, fresh)

    @python_only
    def reset_window(self, memory):
        """Empties the window of ticks, once every weight has been flushed."""

    @python_only
    def accumulators(self, memory):
        """Returns what adds up over shards: accounts, the memory itself or fields of it.

        None where memories of several learners do not merge.
        """

    @python_only
    def average(self, memory, trainer):
        """Returns the mean of the weights after each example (float64), where it is kept."""

    @python_only
    def predictor(self, memory, trainer):
        """Returns the predictor that training leaves."""
        return trainer.linear(trainer.weights())

    def end_tick(self, memory, clock):
        """Adds the weights of the tick that ends to the sums, before they are updated.

        Returns three running totals that hold for the whole update.
        """
        return 0.0, 0.0, 0.0

    def prefetch_memory(self, memory, j):
        """Prefetches what is remembered of weight ``j``."""

    def on_update(self, memory, totals, j, g, m0, r0, f0, m1, r1, f1):
        """Notes that weight ``j`` went from coefficients 0 to coefficients 1."""

    def count_example(self, memory):
        """Counts one more example for the present weights."""

    def window_full(self, memory):
        """Returns whether no further tick fits before weights are flushed."""
        return False

    def flush(self, memory, j, m, r, f):
        """Adds the ended ticks of weight ``j`` to its sum, so that the window can be emptied."""
