"""Contracts of structures, losses, rules, averaging and learners, as functions that raise.

Each check compares a part with its definition on tiny data and raises ``AssertionError`` saying
what differs. Run them interpreted (``NUMBA_DISABLE_JIT=1``): compiled, each takes many seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from hopefear.averaging.averaged import Averaged
from hopefear.averaging.last import Last
from hopefear.core.component import component
from hopefear.core.interfaces import (
    DROP,
    SCALE,
    GradientSink,
    Structure,
    UpdateRule,
    inferences_of,
    n_weights,
)
from hopefear.core.learner import Learner, describe
from hopefear.core.workspace import DenseWeights, Example, Ones
from hopefear.costs.hamming import Hamming
from hopefear.costs.regret import Regret
from hopefear.costs.weighted import Weighted
from hopefear.errors import CombinationError
from hopefear.losses.hinge import Hinge
from hopefear.losses.linear import Linear
from hopefear.losses.logistic import Logistic
from hopefear.recipes import LOSSES, RULES
from hopefear.structures.classes import Multiclass
from hopefear.testing.rules import DenseRule, dense_rule, replay
from hopefear.testing.trees import tiny_structures
from hopefear.testing.worlds import (
    FORMULAS,
    Formula,
    World,
    formula_of,
    outputs_of,
    tiny_rows,
)
from hopefear.training.online import OnlineTrainer, read_last, restart_clock
from hopefear.training.passes import Pieces

# Their direction is a whole change of the weights, or a mixture, not minus a gradient.
NOT_GRADIENTS = ("NBestMIRA", "SWVP")


@component(GradientSink)
class Sums(NamedTuple):
    """A row that adds entries up, and counts how often a coordinate came."""

    g: np.ndarray
    times: np.ndarray
    merged: bool

    def additive(self):
        return not self.merged

    def add_entry(self, j, g):
        self.g[j] += g
        self.times[j] += g != 0.0


class _Everything:
    """Stands for a loss that asks for all searches, deep enough to see every output."""

    def __init__(self, outputs: int) -> None:
        self.outputs = outputs

    def n_outputs(self) -> int:
        return self.outputs

    def requires(self) -> tuple[str, ...]:
        return ("cost", "nbest", "expectation", "risk", "places")

    def new_scratch(self, places: int) -> int:
        return 0


def check_structure(structure: Any, rows: Any = None, seed: int = 0) -> None:
    """Hold a structure to its enumeration: both linear maps, and every search that it offers.

    Scores are linear in the weights, directions are the transpose of scores, and all searches find
    what brute force finds, also where outputs tie.

    Parameters
    ----------
    structure : Structure
        One that :func:`hopefear.testing.outputs_of` can enumerate.
    rows : rows of a dataset, optional
        Small examples in float64; those of :func:`hopefear.testing.tiny_rows` unless given.
    seed : int
        Of the weights that are tried.

    Examples
    --------
    >>> check_structure(Multiclass(5, 3))
    """
    rows = tiny_rows(structure) if rows is None else rows
    rng, n = np.random.default_rng(seed), n_weights(structure)
    examples = [outputs_of(structure, rows, i) for i in range(len(rows.weights))]
    depth = max((len(outputs.F) for outputs in examples), default=1)
    work = structure.workspace(rows, _Everything(depth), np.float64)  # one for all, as in training
    for i, outputs in enumerate(examples):
        for w in (np.zeros(n), rng.integers(-1, 2, n) * 1.0, rng.normal(size=n)):
            _Probe(structure, rows, i, World(outputs, w), work).check()


class _Probe:
    """One structure, one example under given weights, one workspace."""

    def __init__(self, structure: Any, rows: Any, i: int, world: World, work: Any) -> None:
        self.structure, self.rows, self.i, self.w = structure, rows, i, world.w
        self.x, self.world, self.work = Example(rows, i), world, work
        self.name = f"{type(structure).__name__}, example {i}"
        self.offers, self.any_tie = inferences_of(structure), world.outputs.any_tie
        self.costs: list[Any] = [Regret(0.7) if "regret" in self.offers else Hamming(0.7)]
        if "labels" in self.offers and (labels := structure.n_labels) > 1:
            prices = np.random.default_rng(5).uniform(0.0, 2.0, (labels, labels))
            np.fill_diagonal(prices, 0.0)
            # Trees have labels that are heads as well.
            self.costs += [] if "heads" in self.offers else [Weighted(prices)]
        structure.score(self.x, DenseWeights(self.w), self.work.theta)

    def check(self) -> None:
        self.check_directions()
        self.check_best()
        if "cost" in self.offers:
            self.check_costs()
        if "nbest" in self.offers:
            self.check_candidates()
        if "expectation" in self.offers:
            self.check_expectations()
        if "places" in self.offers:
            self.check_places()

    def write(self, k: int) -> np.ndarray:
        """Output ``k`` as the structure writes it."""
        y, output = self.work.y, self.world.outputs.ys[k]
        self.structure.argmax(self.x, self.work.theta, y)  # what else stands in an output
        y[: len(output)] = output
        return y

    def direction(self, merged: bool = False) -> np.ndarray:
        row = Sums(np.zeros(self.w.size), np.zeros(self.w.size, np.int64), merged)
        self.structure.scatter(self.x, self.work.mu, row)
        if merged:
            again = np.flatnonzero(row.times > 1)
            _demand(again.size == 0, f"{self.name}: scatter puts coordinate {again[:1]} twice")
        return row.g

    def check_directions(self) -> None:
        structure, world, x, mu = self.structure, self.world, self.x, self.work.mu
        spread = np.linspace(0.5, 1.5, self.w.size)
        for k in range(len(world.F)):
            for merged in (False, True):
                structure.add_difference(x, self.write(k), 0.75, mu, True)
                wanted, found = 0.75 * world.delta(k), self.direction(merged)
                _agree(found, wanted, f"{self.name}: scatter is not the transpose of score")
            structure.add_difference(x, self.write(k), 0.75, mu, True)
            norm = structure.weighted_squared_norm(x, mu, DenseWeights(spread))
            _agree(norm, spread @ wanted**2, f"{self.name}: norm")
            entries = np.count_nonzero(wanted)
            room = self.work.max_nnz
            _demand(entries <= room, f"{self.name}: max_nnz is {room}, a direction has {entries}")
        for coef in (1.0, -0.25):
            last = self.write(len(world.F) - 1)
            structure.add_difference(x, last, coef, mu, coef == 1.0)
        wanted = 0.75 * world.delta(len(world.F) - 1)
        _agree(self.direction(), wanted, f"{self.name}: differences do not add up")

    def check_best(self) -> None:
        structure, world, x, y = self.structure, self.world, self.x, self.work.y
        theta, scores = self.work.theta, world.scores
        structure.argmax(x, theta, y)
        k, rounded = world.number(y), np.round(scores, 10)
        best = world.ranked(rounded)[0] if world.outputs.predicts_last else int(np.argmax(rounded))
        if self.any_tie:
            _agree(scores[k], scores[best], f"{self.name}: score of the best output")
        else:
            _demand(k == best, f"{self.name}: argmax finds output {k}, brute force {best}")
        z, rival = structure.margin(x, theta, y, True), world.best_rival()
        if rival is None:
            _demand(z > 1e6 and math.isfinite(z), f"{self.name}: margin {z} without any rival")
        else:
            _agree(z, world.lead(rival), f"{self.name}: margin")
            k = world.number(y)
            _demand(bool(world.rivals[k]), f"{self.name}: margin leaves gold for a rival")
            _agree(world.lead(k), z, f"{self.name}: the rival that margin leaves has another score")
        structure.argmax(x, theta, y)
        k = world.number(y)
        z = structure.margin(x, theta, y, False)
        first = k if self.any_tie else world.ranked(np.round(scores, 10))[0]
        wrong = bool(world.rivals[first])
        _demand(
            (z <= 0.0) == wrong, f"{self.name}: margin {z} that is not exact, but wrong is {wrong}"
        )
        if type(structure).margin_over is Structure.margin_over:
            return
        for k in range(len(world.F)):
            y = self.write(k)
            _agree(
                structure.margin_over(x, theta, y),
                world.lead(k),
                f"{self.name}: score is not linear",
            )
            right = structure.is_gold(x, y)
            _demand(right == (not world.rivals[k]), f"{self.name}: is_gold({k}) is {right}")

    def check_costs(self) -> None:
        structure, world, x, y = self.structure, self.world, self.x, self.work.y
        for cost in self.costs:
            costs = world.costs(cost)
            for k in range(len(world.F)):
                charge = structure.output_cost(x, cost, self.write(k))
                _agree(charge, costs[k], f"{self.name}: output_cost of output {k}")
            signs = {1.0: world.scores + costs, -1.0: world.scores - costs}
            if "worst" in self.offers:
                signs[math.inf] = costs
            for sign, totals in signs.items():
                z, price = structure.cost_augmented_argmax(x, self.work.theta, cost, sign, y)
                k = world.number(y)
                _agree(
                    totals[k],
                    totals.max(),
                    f"{self.name}: argmax at {sign:g} times cost",
                )
                _agree(
                    [z, price],
                    [world.lead(k), costs[k]],
                    f"{self.name}: margin and cost at {sign:g}",
                )
                first = world.ranked(np.round(totals, 10))[0]
                if not self.any_tie:
                    _demand(
                        k == first,
                        f"{self.name}: argmax with cost finds {k}, not {first}",
                    )

    def check_candidates(self) -> None:
        structure, world, x, theta = self.structure, self.world, self.x, self.work.theta
        outputs = self.work.outputs
        questions = [(None, world.scores, 0.0), (None, world.scores, 3.0)]
        if "cost" in self.offers:
            questions += [(cost, world.scores + world.costs(cost), 0.0) for cost in self.costs]
        for cost, totals, ratio in questions:
            for n in sorted({1, 2, len(world.F)}, reverse=True):
                count = structure.k_best(x, theta, cost, ratio, outputs[:n])
                chosen = [world.number(y) for y in outputs[:count]]
                wanted = np.sort(totals)[::-1][:n]
                if ratio > 0.0:
                    wanted = wanted[wanted >= wanted[0] - math.log(ratio)]
                _demand(len(set(chosen)) == len(wanted), f"{self.name}: {n} best: {chosen}")
                _agree(totals[chosen], wanted, f"{self.name}: scores of the {n} best")
                if not (self.any_tie or world.outputs.places):  # rounding parts equal sequences
                    ranked = world.ranked(np.round(totals, 10))[: len(wanted)]
                    _demand(chosen == ranked, f"{self.name}: {n} best: {chosen}, not {ranked}")
        count = structure.k_best(x, theta, None, 0.0, outputs[: len(world.F)])
        chosen = [world.number(y) for y in outputs[:count]]
        products = np.zeros((len(world.F), len(world.F)))
        structure.gram_matrix(x, outputs, count, self.work.mu, products)
        D = np.array([world.delta(k) for k in chosen])
        _agree(products, D @ D.T, f"{self.name}: gram_matrix")

    def check_expectations(self) -> None:
        structure, x, work = self.structure, self.x, self.work

        def compare(name: str, value: float, formula: str, **fields: Any) -> None:
            loss = LOSSES[formula](**fields)
            wanted = FORMULAS[type(loss).__name__](loss, self.world)
            _agree(value, wanted.value, f"{self.name}: value of {name}")
            _agree(self.direction(), wanted.g, f"{self.name}: {name}")
            norm = structure.weighted_squared_norm(x, work.mu, Ones())
            _agree(norm, wanted.g @ wanted.g, f"{self.name}: norm behind {name}")

        value, wins = structure.kl_and_gradient(x, work.theta, None, 1.0, 1.0, work.mu)
        compare("kl_and_gradient", value, "log")
        _demand(
            not wins or structure.margin(x, work.theta, work.y, False) > 0.0,
            f"{self.name}: kl_and_gradient says that gold wins, and it does not",
        )
        if "risk" in self.offers:
            for cost, inverse_temperature in zip(self.costs, (2.0, 0.4), strict=False):
                given = (x, work.theta, cost, inverse_temperature, 1.0, work.mu)
                fields = {"cost": cost, "inverse_temperature": inverse_temperature}
                compare("risk_and_gradient", structure.risk_and_gradient(*given), "risk", **fields)
                value, _ = structure.kl_and_gradient(*given)
                compare("kl_and_gradient by costs", value, "weighted-log", **fields)
        structure.add_difference(x, self.write(0), 1.0, work.mu, True)
        _agree(self.direction(), self.world.delta(0), f"{self.name}: clear behind expectations")

    def check_places(self) -> None:
        structure, world, x = self.structure, self.world, self.x
        ys = world.outputs.ys
        gold, other = ys[world.gold], ys[(world.gold + 1) % len(ys)]
        T, y = len(gold), np.array(other, self.work.y.dtype)
        _demand(structure.n_positions(x) == T, f"{self.name}: n_positions")
        for t in range(T):
            wrong = bool(structure.wrong_at(x, y, t))
            _demand(wrong == (gold[t] != other[t]), f"{self.name}: wrong_at({t}) is {wrong}")
        mixed, wanted = np.zeros(T, y.dtype), np.zeros(self.w.size)
        clear = True
        for number in range(2**T):
            taken = np.array([number >> t & 1 for t in range(T)], np.uint8)
            mixture = tuple(b if s else a for a, b, s in zip(gold, other, taken, strict=True))
            structure.mix_labels(x, y, taken, mixed)
            _demand(tuple(mixed.tolist()) == mixture, f"{self.name}: mix_labels")
            if mixture in ys:
                delta = world.F[world.gold] - world.features(mixture)
                lead = structure.margin_over(x, self.work.theta, mixed)
                _agree(lead, delta @ self.w, f"{self.name}: margin over a mixture")
                structure.add_difference(x, mixed, 0.5, self.work.mu, clear)
                clear = False
                wanted += 0.5 * delta
        _agree(self.direction(True), wanted, f"{self.name}: differences from mixtures")


def check_loss(
    loss: Any,
    structure: Any = None,
    rows: Any = None,
    formula: Formula | None = None,
    gradient: bool | None = None,
) -> list[str]:
    """Hold a loss to its formula, and its direction to the numerical gradient where it is smooth.

    Parameters
    ----------
    loss : Loss
        With the parameters to try.
    structure, rows
        What to try it on; every tiny structure that has what the loss needs, unless given.
    formula : callable, optional
        From the loss and a :class:`hopefear.testing.World` to a :class:`hopefear.testing.Force`;
        that of its paper where the library has it.
    gradient : bool, optional
        Whether the direction is minus a gradient; so unless the library knows better.

    Returns
    -------
    list of str
        Why the structures that were left out cannot serve the loss.

    Examples
    --------
    >>> check_loss(Hinge())
    []
    """
    formula = formula_of(loss) if formula is None else formula
    gradient = type(loss).__name__ not in NOT_GRADIENTS if gradient is None else gradient
    structures = list(tiny_structures().values()) if structure is None else [structure]
    holes = []
    for place in structures:
        try:
            OnlineTrainer(place, Learner(loss, RULES["sgd"](), Last(), "mistakes"), np.float64)
        except CombinationError as error:
            holes.append(str(error))
            continue
        data = tiny_rows(place) if rows is None else rows
        _check_loss_on(loss, place, data, formula, gradient, np.random.default_rng(0))
    _demand(len(holes) < len(structures), f"{describe(loss)} runs on nothing: {holes}")
    return holes


def _check_loss_on(
    loss: Any, structure: Any, rows: Any, formula: Any, gradient: Any, rng: np.random.Generator
) -> None:
    name = f"{describe(loss)} on {type(structure).__name__}"
    ask = _Ask(loss, structure, rows)
    tolerance = 1e-5 if type(loss).__name__ == "NBestMIRA" else 1e-9  # solved by iteration
    n, smooth = n_weights(structure), 0
    for i in range(len(rows.weights)):
        start, outputs, importance = np.zeros(n), outputs_of(structure, rows, i), rows.weights[i]
        if outputs.any_tie:  # formulas know one of those that tie
            start = 1e-3 * rng.normal(size=n)
        for w in (start, rng.normal(size=n), 0.3 * rng.normal(size=n)):
            _, value, gap, g = ask(i, w)
            if formula is not None:
                wanted = formula(loss, World(outputs, w, float(importance)))
                _agree(value, wanted.value, f"{name}: value at example {i}", tolerance)
                _agree(g, wanted.forced * wanted.g, f"{name}: direction at example {i}", tolerance)
                mistaken = gap <= 0.0 and rows.weights[i] > 0.0
                _demand(mistaken == wanted.mistaken, f"{name}: gap {gap} at example {i}")
            if gradient:
                d = rng.normal(size=n)
                smooth += _slope_agrees(lambda v, i=i: ask(i, v)[1], w, d, -float(g @ d), name)
    _demand(smooth > 0 or not gradient, f"{name} is nowhere smooth; say gradient=False")
    _, value, _, g = ask.silenced()(0, np.zeros(n))
    _demand(value == 0.0 and not g.any(), f"{name}: an example of weight 0 has a force")


def _slope_agrees(
    value: Callable[..., Any], w: np.ndarray, d: np.ndarray, slope: float, name: str
) -> bool:
    """Whether the loss is smooth at ``w`` along ``d``; there its slope must be the one given."""
    h, here = 1e-5, value(w)
    up, down = (value(w + h * d) - here) / h, (here - value(w - h * d)) / h
    if abs(up - down) > 1e-2 * (1.0 + abs(up)):
        return False
    _agree((up + down) / 2, slope, f"{name}: direction against the numerical gradient", 1e-4)
    return True


class _Ask:
    """A loss at work; one workspace for all examples, as in training."""

    def __init__(self, loss: Any, structure: Any, rows: Any) -> None:
        self.loss, self.structure, self.rows = loss, structure, rows
        self.work = structure.workspace(rows, loss, np.float64)

    def silenced(self) -> _Ask:
        return _Ask(self.loss, self.structure, self.rows._replace(weights=0.0 * self.rows.weights))

    def __call__(self, i: int, w: np.ndarray) -> tuple[bool, float, float, np.ndarray]:
        x, work = Example(self.rows, i), self.work
        self.structure.score(x, DenseWeights(w), work.theta)
        forced = self.loss.subgradient(self.structure, x, work) > 0
        row = Sums(np.zeros(w.size), np.zeros(w.size, np.int64), False)
        if forced:
            self.structure.scatter(x, work.mu, row)
        return forced, float(work.loss[0]), float(work.gold_margin[0]), row.g


def check_rule(
    rule: Any, dense: Callable[[int], DenseRule] | None = None, loss: Any = None
) -> None:
    """Hold a rule to "a line under a clock", to its averages and to its dense form.

    Parameters
    ----------
    rule : Rule
        With the parameters to try.
    dense : callable, optional
        From the number of coordinates to a :class:`hopefear.testing.DenseRule`; that of its paper
        where the library has it.
    loss : Loss, optional
        What to move by; the first of hinge, logistic and linear that the rule does not object to.

    Examples
    --------
    >>> from hopefear.rules.rda import RDA
    >>> check_rule(RDA(rate=0.5, l1=0.02))
    """
    loss = _agreeable(rule) if loss is None else loss
    structure = Multiclass(5, 3)
    rows = tiny_rows(structure)
    order = np.tile(np.arange(len(rows.weights)), 3)
    trainer = OnlineTrainer(structure, Learner(loss, rule, Averaged()), np.float64)
    trainer.memory = trainer.learner.averaging.init_memory(trainer.n, 7)  # settled now and then
    copies = np.array(list(_lines(trainer, rows, order)))
    name = describe(rule)
    _demand(bool(copies.any()), f"{name} moved nothing with the loss {describe(loss)}")
    _agree(trainer.average(), copies.mean(axis=0), f"{name}: average of the weights there were")
    _check_sums(rule)
    _check_merging(trainer)
    _check_rebase(trainer)
    oracle = dense_rule(rule, trainer.n) if dense is None else dense(trainer.n)
    if oracle is not None:
        _compare(trainer, rows, oracle, order, copies)


def _agreeable(rule: Any) -> Any:
    for loss in (Hinge(), Logistic(), Linear()):
        if not rule.incompatible_with(loss, "all"):
            return loss
    raise AssertionError(f"{describe(rule)} objects to hinge, logistic and linear; give a loss")


def _weights(trainer: OnlineTrainer) -> np.ndarray:
    """The present weights in float64."""
    out = np.empty(trainer.n)
    read_last(trainer.learner.rule, trainer.state, out)
    return out


def _lines(trainer: OnlineTrainer, rows: Any, order: np.ndarray) -> Iterator[np.ndarray]:
    """Weights after every example, each read as a line under the clock."""
    rule, name = trainer.learner.rule, describe(trainer.learner.rule)
    before, drop = None, 0.0
    for i, _ in zip(order, trainer.learn_pieces(Pieces(rows, order[:, None])), strict=True):
        lines = np.array([rule.lazy_weight(trainer.state, j) for j in range(trainer.n)])
        clock, (m, r, f) = trainer.state.clock, lines.T
        shrunk = np.sign(m) * np.maximum(np.abs(m) - f * clock[DROP], 0.0)
        weights = _weights(trainer)
        _agree(weights, r * clock[SCALE] * shrunk, f"{name}: reading and line of the same tick")
        _demand(clock[DROP] >= drop, f"{name}: the drop fell from {drop} to {clock[DROP]}")
        drop = float(clock[DROP])
        if before is not None:
            touched = World.at(trainer.structure, rows, i, weights).F.any(axis=0)
            stay = before[~touched] == lines[~touched]
            _demand(bool(stay.all()), f"{name}: a line changed though its coordinate did not move")
        before = lines
        yield weights


def _check_sums(rule: Any) -> None:
    """Two moves of one coordinate in one tick, against one by their sum."""
    states = [rule.init(1, np.float64) for _ in range(2)]
    for g in (0.5, 0.25):
        rule.update(states[0], 0, g, 0.5, 0.5)
    rule.update(states[1], 0, 0.75, 0.5, 0.5)
    for state in states:
        rule.tick(state, 1)
    twice, once = (float(rule.weight_view(state).at(0)) for state in states)
    if rule.additive():
        _agree(twice, once, f"{describe(rule)}: additive() promises that two moves add up")


def _check_merging(trainer: OnlineTrainer) -> None:
    """A state as sums and back again, as shards merge it."""
    rule, state = trainer.learner.rule, trainer.state
    if (sums := rule.to_sums(state, state.clock)) is None:
        return
    arrays = rule.from_sums(sums, state.clock)
    names = [name for name in state._fields if name != "clock"]
    before: list[np.ndarray] = []
    after: list[np.ndarray] = []
    merged = {
        name: np.array(array, getattr(state, name).dtype)
        for name, array in zip(names, arrays, strict=True)
    }
    own = state._replace(**{name: getattr(state, name).copy() for name in names})
    for weights, start in ((before, own), (after, state._replace(**merged))):
        trainer.state = start._replace(clock=state.clock.copy())
        weights.append(_weights(trainer))
        for j in range(trainer.n):
            rule.update(trainer.state, j, 0.3, 0.5, 0.5)
        rule.tick(trainer.state, trainer.ticks + 1)
        weights.append(_weights(trainer))
    trainer.state = state
    _agree(after[0], before[0], f"{describe(rule)}: from_sums does not undo to_sums")
    _agree(after[1], before[1], f"{describe(rule)}: it learns otherwise after from_sums")


def _check_rebase(trainer: OnlineTrainer) -> None:
    rule, before = trainer.learner.rule, _weights(trainer)
    if type(rule).rescale is UpdateRule.rescale:
        return
    for j in range(trainer.n):
        rule.rescale(trainer.state, j)
    restart_clock(trainer.state.clock)
    _agree(_weights(trainer), before, f"{describe(rule)}: weights change when the clock restarts")


def _compare(trainer: OnlineTrainer, rows: Any, oracle: Any, order: Any, copies: Any) -> bool:
    """Snapshots and counts against a dense replay; False where no formula says what was given."""
    learner, structure = trainer.learner, trainer.structure
    formula = formula_of(learner.loss)
    if formula is None:
        return False
    examples = {int(i): outputs_of(structure, rows, int(i)) for i in np.unique(order)}

    def force(i: int, w: np.ndarray) -> Any:
        return formula(learner.loss, World(examples[int(i)], w, float(rows.weights[i])))

    trace = replay(oracle, learner.update_on, order, force)
    if not trace.exact:
        return False
    name, iterated = learner.signature(), type(learner.loss).__name__ == "NBestMIRA"
    tolerance = 1e-5 if iterated else 1e-8
    _agree(copies, trace.snapshots, f"{name}: lazy against dense", tolerance)
    counted = (trainer.mistakes, trainer.updates, trainer.ticks)
    wanted = (trace.mistakes, trace.updates, trace.ticks)
    exact = counted == wanted or iterated  # rounding decides whether margins of 0 are mistakes
    _demand(exact, f"{name}: mistakes, updates and ticks {counted}, not {wanted}")
    _agree(trainer.loss, trace.loss, f"{name}: summed loss", tolerance)
    return True


def check_averaging(averaging: Any, kept: Callable[[np.ndarray], np.ndarray] | None = None) -> None:
    """Hold an averaging to what it promises of the weights there were.

    It changes nothing about learning; settling its books early, and saving and going on, change
    nothing about what it keeps.

    Parameters
    ----------
    averaging : Averaging
        With the parameters to try.
    kept : callable, optional
        From the weights after every example (one row each) to the weights it should predict with.

    Examples
    --------
    >>> check_averaging(Last(), kept=lambda snapshots: snapshots[-1])
    """
    for rule in (RULES["sgd"](rate=0.5, power=0.5), RULES["rda"](rate=0.5, l1=0.0217)):
        for on in ("all", "mistakes"):
            _check_readout_of(Learner(Hinge(), rule, averaging, on), kept)


def _check_readout_of(learner: Learner, kept: Callable[[np.ndarray], np.ndarray] | None) -> None:
    structure, averaging = Multiclass(5, 3), learner.averaging
    rows, name = tiny_rows(structure), describe(averaging)
    order = np.tile(np.arange(len(rows.weights)), 2)
    whole, short, first, second = (OnlineTrainer(structure, learner, np.float64) for _ in range(4))
    copies = np.array(list(_steps(whole, rows, order)))
    plain = OnlineTrainer(structure, replace(learner, averaging=Last()), np.float64)
    plain.learn(rows, order)
    _agree(copies[-1], _weights(plain), f"{name} changes what is learned", 0.0)
    if kept is not None:
        found = getattr(whole.predictor(), "weights", None)
        _demand(found is not None, f"{name} predicts without weights of its own")
        _agree(found, kept(copies), f"{name}: weights of the predictor", 1e-6)
    if (average := averaging.average(whole.memory, whole)) is not None:
        _demand(average.dtype == np.float64, f"{name}: the average must be float64")
    if not averaging.needs_history:
        short.memory = averaging.init_memory(short.n, 3)
    short.learn(rows, order)
    _same(short.predictor(), whole.predictor(), f"{name}: books settled early")
    first.learn(rows, order[:9])
    second.restore({key: array.copy() for key, array in first.arrays().items()})
    second.learn(rows, order[9:])
    _same(second.predictor(), whole.predictor(), f"{name}: saved and gone on")


def _steps(trainer: OnlineTrainer, rows: Any, order: np.ndarray) -> Iterator[np.ndarray]:
    for _ in trainer.learn_pieces(Pieces(rows, order[:, None])):
        yield _weights(trainer)


def _same(one: Any, other: Any, what: str) -> None:
    wanted = other.arrays()
    for key, array in one.arrays().items():
        _agree(array, wanted[key], f"{what}: {key}", 1e-6)


def check_learner(
    loss: Any, rule: Any, averaging: Any, structure: Any, rows: Any = None, on: str = "all"
) -> str:
    """Train a learner and its dense oracle side by side.

    Returns
    -------
    str
        Why there is no such learner, or what kept it from being compared with an oracle; empty
        where all agreed.

    Examples
    --------
    >>> from hopefear.rules.rda import RDA
    >>> from hopefear.losses.perceptron import Perceptron
    >>> check_learner(Hinge(), RDA(l1=0.01), Averaged(), Multiclass(5, 3))
    ''
    >>> check_learner(Perceptron(), RULES["arow"](), Last(), Multiclass(5, 3))[:53]
    'AROW and Perceptron: steps are in proportion to the l'
    """
    rows = tiny_rows(structure) if rows is None else rows
    order = np.tile(np.arange(len(rows.weights)), 2)
    try:
        learner = Learner(loss, rule, averaging, on)
        trainer = OnlineTrainer(structure, learner, np.float64)
    except CombinationError as error:
        return str(error)
    copies = np.array(list(_steps(trainer, rows, order)))
    name = learner.signature()
    _demand(bool(np.isfinite(copies).all()), f"{name}: weights that are not finite")
    average = averaging.average(trainer.memory, trainer)
    if isinstance(averaging, Averaged):
        _agree(average, copies.mean(axis=0), f"{name}: average of the weights there were")
    oracle = dense_rule(rule, trainer.n)
    if oracle is None:
        return f"no dense form of {describe(rule)}; give check_rule one"
    if not _compare(trainer, rows, oracle, order, copies):
        return f"no formula says which margin {describe(loss)} gives {describe(rule)}"
    return ""


def _demand(truth: bool, what: str) -> None:
    if not truth:
        raise AssertionError(what)


def _agree(found: Any, wanted: Any, what: str, tolerance: float = 1e-9) -> None:
    """Equal up to ``tolerance`` of the largest number."""
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    _demand(found.shape == wanted.shape, f"{what}: shape {found.shape}, not {wanted.shape}")
    size = max(1.0, float(np.abs(wanted).max(initial=0.0)))
    apart = np.abs(found - wanted)
    if not (apart <= tolerance * size).all():
        worst = np.unravel_index(int(np.nanargmax(np.nan_to_num(apart, nan=np.inf))), apart.shape)
        where = f" at {tuple(int(k) for k in worst)}" if worst else ""
        values = f"found {found[worst]:.10g}, wanted {wanted[worst]:.10g}"
        raise AssertionError(f"{what}: {values}{where}")
