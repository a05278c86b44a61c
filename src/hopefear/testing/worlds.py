"""Enumerated worlds: every output of an example with its features, and losses as formulas on them.

Nothing here searches. An enumerated chain, class set or subset is a list, so one :class:`World`
serves every structure; a structure only says how its outputs are enumerated.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.interfaces import Loss, n_weights
from hopefear.data.lists.dataset import ListDataset, ListRows, cheapest
from hopefear.data.sequences import TokenRows
from hopefear.data.sparse import SparseRows
from hopefear.structures.chain.chain import Chain
from hopefear.structures.chain.theta import Limits
from hopefear.structures.classes import Binary, Multiclass
from hopefear.structures.nbest import NBest

# Margin of a list without rivals: any loss that margins can end has ended there.
ALONE = 1e30


@dataclass(frozen=True)
class Outputs:
    """All outputs of one example, whatever the weights.

    Parameters
    ----------
    ys : sequence of tuples
        Each output as the structure writes it into ``y``; of equal scores the first wins.
    F : array of outputs x coordinates
        Feature vectors, written out in full.
    good : bool array
        Which outputs are right; gold is the best scored of them.
    price : callable
        Costs of all outputs, given a ``Cost``.
    fixed : array, optional
        What is added to scores, whatever the weights.
    start : array, optional
        Weights where learning begins: the structure adds them to those it is given.
    gold_last : bool
        Of outputs that tie searches find gold, and what is as good, last; else it has its place.
    predicts_last : bool
        The prediction is found in the same way.
    places : int
        Positions with labels of their own, where outputs are sequences of labels; else 0.
    any_tie : bool
        Of outputs that tie any may be found; else the first.
    spell : callable, optional
        Features of labels that make no output, as mixtures of two trees do.
    """

    ys: Sequence[tuple[int, ...]]
    F: np.ndarray
    good: np.ndarray
    price: Callable[[Any], np.ndarray]
    fixed: np.ndarray | float = 0.0
    start: np.ndarray | float = 0.0
    gold_last: bool = False
    predicts_last: bool = False
    places: int = 0
    any_tie: bool = False
    spell: Callable[[tuple[int, ...]], np.ndarray] | None = None


@functools.singledispatch
def outputs_of(structure: Any, rows: Any, i: int) -> Outputs:
    """Every output of row ``i``; ``outputs_of.register`` adds a structure of one's own.

    Examples
    --------
    >>> structure = Multiclass(4, 3)
    >>> len(outputs_of(structure, tiny_rows(structure), 0).ys)
    3
    """
    raise NotImplementedError(
        f"hopefear.testing cannot enumerate the outputs of {type(structure).__name__}; "
        "register a function for it with outputs_of.register"
    )


@functools.singledispatch
def tiny_rows(structure: Any, seed: int = 0) -> Any:
    """A few random examples for a structure; ``tiny_rows.register`` adds one of one's own."""
    raise NotImplementedError(
        f"hopefear.testing has no data for {type(structure).__name__}; "
        "register a function for it with tiny_rows.register"
    )


class World:
    """One example under given weights: features, scores and costs of all its outputs.

    Parameters
    ----------
    outputs : Outputs
        From :func:`outputs_of`.
    w : array
        Weights of all coordinates.
    importance : float
        Weight of the example.

    Examples
    --------
    >>> structure = Multiclass(4, 3)
    >>> world = World.at(structure, tiny_rows(structure), 0, np.zeros(12))
    >>> world.scores.tolist(), world.gold in world.ranked()[:2]  # of equals gold comes last
    ([0.0, 0.0, 0.0], False)
    """

    def __init__(self, outputs: Outputs, w: np.ndarray, importance: float = 1.0) -> None:
        self.outputs, self.importance, self.F = outputs, importance, outputs.F
        self.w = w + outputs.start
        self.scores = outputs.F @ self.w + outputs.fixed
        self.rivals = ~outputs.good
        goods = np.flatnonzero(outputs.good)
        self.gold = int(goods[np.argmax(self.scores[goods])])

    @classmethod
    def at(cls, structure: Any, rows: Any, i: int, w: np.ndarray) -> World:
        """The world of row ``i``."""
        return cls(outputs_of(structure, rows, i), w, float(rows.weights[i]))

    def ranked(self, by: np.ndarray | None = None) -> list[int]:
        """Numbers of the outputs, best first."""
        by = self.scores if by is None else by
        last = self.outputs.gold_last
        return sorted(range(len(by)), key=lambda k: (-by[k], last and not self.rivals[k], k))

    def costs(self, cost: Any) -> np.ndarray:
        """What each output costs."""
        return self.outputs.price(cost)

    def top(self, n: int, ratio: float = 0.0) -> list[int]:
        """The ``n`` best, but those over ``ratio`` times less probable than the first."""
        best = self.ranked()[:n]
        least = self.scores[best[0]] - np.log(ratio) if ratio > 0 else -np.inf
        return [k for k in best if self.scores[k] >= least]

    def delta(self, k: int) -> np.ndarray:
        """Features of gold minus those of output ``k``."""
        return self.F[self.gold] - self.F[k]

    def lead(self, k: int) -> float:
        """Score of gold minus that of output ``k``."""
        return float(self.scores[self.gold] - self.scores[k])

    def best_rival(self) -> int | None:
        """The best of the outputs that are wrong; None where there are none."""
        return next((k for k in self.ranked() if self.rivals[k]), None)

    def features(self, y: tuple[int, ...]) -> np.ndarray:
        """Features of an output, or of labels that are none."""
        spell = self.outputs.spell
        return self.F[self.outputs.ys.index(y)] if spell is None else spell(y)

    def number(self, y: Any) -> int:
        """Which output a structure has left in ``y``."""
        ys = self.outputs.ys
        return next(k for k in range(len(ys)) if ys[k] == tuple(int(v) for v in y[: len(ys[k])]))


# --- structures of the library ------------------------------------------------------------------


@outputs_of.register(Binary)
@outputs_of.register(Multiclass)
def class_outputs(structure: Any, rows: SparseRows, i: int) -> Outputs:
    """One output a class."""
    x = np.zeros(structure.n_features)
    for p in range(rows.indptr[i], rows.indptr[i + 1]):
        x[rows.indices[p]] += float(rows.values[p])
    x = np.append(x, structure.bias) if structure.bias else x
    n, gold = structure.n_labels, int(rows.labels[i])
    sides = np.array([[-0.5], [0.5]]) if isinstance(structure, Binary) else np.eye(n)
    return Outputs(
        [(c,) for c in range(n)],
        np.array([np.outer(x, side).ravel() for side in sides]),
        np.arange(n) == gold,
        lambda cost: np.array([cost.label_cost(gold, c) for c in range(n)]),
        gold_last=True,
    )


@outputs_of.register(Chain)
def chain_outputs(chain: Chain, rows: TokenRows, i: int) -> Outputs:
    """All sequences of labels that the limits allow, in lexicographic order."""
    first, last = int(rows.starts[i]), int(rows.starts[i + 1])
    gold = tuple(rows.labels[first:last].tolist())
    every = itertools.product(range(chain.labels), repeat=last - first)
    ys = [y for y in every if permitted(chain.limits, chain.width, first, y)]
    return Outputs(
        ys,
        np.array([chain_features(chain, rows, first, y) for y in ys]),
        np.array([y == gold for y in ys]),
        lambda cost: np.array(
            [sum(cost.label_cost(g, c) for g, c in zip(gold, y, strict=True)) for y in ys]
        ),
        places=last - first,
    )


def permitted(limits: Limits, width: int, first: int, y: Sequence[int]) -> bool:
    """Whether the limits allow an output whose first token is the ``first`` of the data."""
    if limits.step.size == 0:
        return True
    total = limits.start[y[0]] + limits.end[y[-1]]
    total += sum(limits.step[b * width + a] for a, b in itertools.pairwise(y))
    if limits.tokens.size:
        total += sum(limits.tokens[(first + t) * width + c] for t, c in enumerate(y))
    return bool(total == 0.0)


def chain_features(chain: Chain, rows: TokenRows, first: int, y: Sequence[int]) -> np.ndarray:
    """F(x, y), one coordinate after the other as the class ``Chain`` says they lie."""
    W, features = chain.width, np.zeros(n_weights(chain))
    pairs = chain.attributes * W
    triples = pairs + (1 + chain.edge_attributes) * W * W
    for t, c in enumerate(y):
        for a, value in attributes(rows.indptr, rows.indices, rows.values, first + t):
            features[a * W + c] += value
        if t == 0:
            continue
        pair = c * W + y[t - 1]
        features[pairs + pair] += chain.transitions
        if chain.order == 2 and t > 1:
            features[triples + pair * W + y[t - 2]] += 1.0
        if chain.edge_attributes:
            edges = attributes(rows.edge_indptr, rows.edge_indices, rows.edge_values, first + t)
            for a, value in edges:
                features[pairs + (1 + a) * W * W + pair] += value
    return features


def attributes(indptr: Any, indices: Any, values: Any, k: int) -> list[tuple[int, float]]:
    """(column, value) of everything in row ``k``; without values each is 1."""
    row = range(indptr[k], indptr[k + 1])
    return [(int(indices[p]), float(values[p]) if len(values) else 1.0) for p in row]


@outputs_of.register(NBest)
def list_outputs(structure: NBest, rows: ListRows, i: int) -> Outputs:
    """One output a candidate."""
    first, last = int(rows.starts[i]), int(rows.starts[i + 1])
    scope = rows.features[rows.scopes[i] : rows.scopes[i + 1]]
    F = np.zeros((last - first, structure.features))
    for c in range(last - first):
        for a, value in attributes(rows.indptr, rows.columns, rows.values, first + c):
            F[c, scope[a]] += value
    paid, oracle = rows.costs[first:last], int(rows.oracles[i])
    good = paid == paid[oracle] if structure.tied else np.arange(last - first) == oracle
    return Outputs(
        [(c,) for c in range(last - first)],
        F,
        good,
        lambda cost: np.array([cost.label_cost(paid[oracle], price) for price in paid]),
        rows.offsets[first:last].astype(np.float64),
        gold_last=True,
        predicts_last=True,
    )


@tiny_rows.register(Binary)
@tiny_rows.register(Multiclass)
def tiny_classes(structure: Any, seed: int = 0) -> SparseRows:
    """Twelve sparse rows, a few of them empty, with noisy linear labels."""
    rng = np.random.default_rng(seed)
    n, d, classes = 12, structure.n_features, structure.n_labels
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
    rows, columns = np.nonzero(X)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    labels = (X @ rng.normal(size=(d, classes)) + 0.3 * rng.normal(size=(n, classes))).argmax(1)
    return SparseRows(
        indptr, columns.astype(np.int32), X[rows, columns], labels.astype(np.int32), np.ones(n)
    )


@tiny_rows.register(Chain)
def tiny_chains(chain: Chain, seed: int = 0) -> TokenRows:
    """Six short sequences; attributes come again in other tokens and in their own."""
    rng = np.random.default_rng(seed)
    lengths = [1, 2, 3, 3, 2, 3]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    tokens = int(starts[-1])

    def drawn(size: int, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if size == 0:
            return np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0)
        indptr = np.concatenate([[0], np.cumsum(rng.integers(0, most + 1, tokens))])
        indices = rng.integers(0, size, indptr[-1]).astype(np.int32)
        return indptr, indices, rng.normal(size=indptr[-1]) + 0.7

    return TokenRows(
        starts,
        *drawn(chain.attributes, 3),
        *drawn(chain.edge_attributes, 2),
        rng.integers(0, chain.labels, tokens).astype(np.int32),
        np.ones(len(lengths)),
    )


@tiny_rows.register(NBest)
def tiny_lists(structure: NBest, seed: int = 0) -> ListRows:
    """Eight lists, one of a single candidate; some candidates cost the same."""
    rng = np.random.default_rng(seed)
    sizes = [3, 1, 4, 2, 5, 3, 4, 2]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    scopes, features, indptr, columns, values = [0], [], [0], [], []
    for n in sizes:
        matrix = rng.normal(size=(n, structure.features))
        matrix *= rng.random((n, structure.features)) < 0.6
        used = np.flatnonzero(matrix.any(axis=0))
        features += used.tolist()
        scopes.append(len(features))
        for row in matrix[:, used]:
            columns += np.flatnonzero(row).tolist()
            values += row[row != 0].tolist()
            indptr.append(len(columns))
    costs = rng.choice([0.0, 0.25, 0.25, 0.5, 1.25], starts[-1])
    rows = ListRows(
        starts,
        np.array(scopes),
        np.array(features, np.int32),
        np.array(indptr),
        np.array(columns, np.int32),
        np.array(values),
        0.3 * rng.normal(size=starts[-1]),
        costs,
        cheapest(costs, starts),
        np.ones(len(sizes)),
    )
    return ListDataset(rows).rows


# --- losses -------------------------------------------------------------------------------------


class Force(NamedTuple):
    """What a loss makes of an example.

    ``margin`` is nan where the direction is not from one rival to gold: rules that solve for the
    margin have no formula there.
    """

    value: float
    mistaken: bool
    forced: bool
    margin: float
    g: np.ndarray


Formula = Callable[[Any, World], Force]
FORMULAS: dict[str, Formula] = {}


def formula_of(loss: Any) -> Formula | None:
    """The formula of a loss by the name of its class.

    A loss of the margin alone, which writes ``value`` and ``slope`` only, needs none of its own.

    >>> from hopefear.losses.log import Log
    >>> formula_of(Log()).__name__
    'log'
    """
    if type(loss).__name__ in FORMULAS:
        return FORMULAS[type(loss).__name__]
    if type(loss).subgradient is not Loss.subgradient:
        return None
    return functools.partial(
        _by_margin, of=lambda loss, z: (loss.value(z), loss.negative_derivative(z))
    )


def softmax(v: np.ndarray) -> np.ndarray:
    """Probabilities in proportion to ``exp(v)``."""
    e = np.exp(v - v.max())
    return e / e.sum()


def _formula(name: str) -> Callable[[Formula], Formula]:
    def enter(function: Formula) -> Formula:
        FORMULAS[name] = function
        return function

    return enter


def _nothing(world: World, margin: float = ALONE) -> Force:
    return Force(0.0, False, False, margin, np.zeros(world.F.shape[1]))


def _mistaken(world: World) -> bool:
    return bool(world.rivals[world.ranked()[0]]) and world.importance > 0


def _between(world: World, up: int, down: int, value: float, forced: bool) -> Force:
    g = world.importance * forced * (world.F[up] - world.F[down])
    return Force(value, _mistaken(world), bool(forced), np.nan, g)


def _by_margin(loss: Any, world: World, of: Callable[[Any, float], tuple[float, float]]) -> Force:
    """Gold against its best rival; ``of`` gives the value and minus the derivative at a margin."""
    best, importance = world.ranked()[0], world.importance
    rival = best if loss.is_mistake_driven() else world.best_rival()
    if loss.is_mistake_driven() and not world.rivals[best]:
        return _nothing(world)
    z = ALONE if rival is None else world.lead(rival)
    value, slope = of(loss, z)
    forced = bool(importance * slope != 0)
    g = importance * slope * world.delta(world.gold if rival is None else rival)
    return Force(importance * value, bool(z <= 0 and importance > 0), forced, z, g)


# (value, minus the derivative) at a margin.
MARGIN_LOSSES: dict[str, Callable[[Any, float], tuple[float, float]]] = {
    "Perceptron": lambda loss, z: (loss.force * max(0.0, -z), loss.force * (z <= 0)),
    "Hinge": lambda loss, z: (max(0.0, loss.asked - z), float(loss.asked > z)),
    "SquaredHinge": lambda loss, z: (
        max(0.0, loss.asked - z) ** 2,
        2 * max(0.0, loss.asked - z),
    ),
    "SmoothedHinge": lambda loss, z: (
        max(0.0, loss.asked - z) ** 2 / (2 * loss.width)
        if z > loss.asked - loss.width
        else loss.asked - z - loss.width / 2,
        float(np.clip((loss.asked - z) / loss.width, 0.0, 1.0)),
    ),
    "Logistic": lambda loss, z: (
        np.logaddexp(0.0, -z) / np.log(loss.base),
        np.exp(-np.logaddexp(0.0, z)) / np.log(loss.base),
    ),
    "Exponential": lambda loss, z: (
        (np.exp(-z), np.exp(-z))
        if z >= -loss.limit
        else (np.exp(loss.limit) * (1 - z - loss.limit), np.exp(loss.limit))
    ),
    "Linear": lambda loss, z: (-loss.force * z, loss.force),
}
FORMULAS |= {name: functools.partial(_by_margin, of=of) for name, of in MARGIN_LOSSES.items()}


@_formula("Log")
def log(loss: Any, world: World) -> Force:
    """-log P(gold); the probabilities of all right outputs add up."""
    scale, P, good = loss.force * world.importance, softmax(world.scores), ~world.rivals
    Q = np.where(good, softmax(np.where(good, world.scores, -np.inf)), 0.0)
    scores: np.ndarray = world.scores
    value = np.logaddexp.reduce(scores) - np.logaddexp.reduce(scores[good])
    return Force(scale * value, _mistaken(world), scale > 0, np.nan, scale * (Q - P) @ world.F)


@_formula("SAPO")
def sapo(loss: Any, world: World) -> Force:
    """Equations 1, 3 and 4 over the n best."""
    top, scores, importance = world.top(loss.n, loss.ratio), world.scores, world.importance
    value = importance * np.log(np.exp(scores[top] - scores[world.gold]).sum())
    forced = importance > 0 and not (len(top) == 1 and not world.rivals[top[0]])
    g = importance * (world.F[world.gold] - softmax(scores[top]) @ world.F[top])
    return Force(value, _mistaken(world), forced, np.nan, g)


@_formula("StructuredHinge")
def structured_hinge(loss: Any, world: World) -> Force:
    """``max_y cost(y) - (score_gold - score_y)``."""
    costs = world.costs(loss.cost)
    fear = world.ranked(world.scores + costs)[0]
    value = world.importance * max(0.0, costs[fear] - world.lead(fear))
    right = not world.rivals[fear] or world.importance == 0
    force = _between(world, world.gold, fear, value, not right and not (value <= 0 < costs[fear]))
    tie = force.forced and world.lead(fear) <= 0  # with what is feared
    return force._replace(mistaken=force.mistaken or tie)


@_formula("PredictionHinge")
def prediction_hinge(loss: Any, world: World) -> Force:
    """``cost(y) - (score_gold - score_y)`` of the prediction, where it is wrong."""
    best = world.ranked()[0]
    if not _mistaken(world):
        return _nothing(world, 1.0)
    price = world.costs(loss.cost)[best] ** (0.5 if loss.root else 1.0)
    value = world.importance * (price - world.lead(best))
    return _between(world, world.gold, best, value, True)._replace(margin=world.lead(best))


@_formula("Ramp")
def ramp(loss: Any, world: World) -> Force:
    """``max (score + cost) - max (score - cost)``."""
    costs, scores = world.costs(loss.cost), world.scores
    fear, hope = world.ranked(scores + costs)[0], world.ranked(scores - costs)[0]
    value = world.importance * (scores[fear] + costs[fear] - (scores[hope] - costs[hope]))
    return _between(world, hope, fear, value, value > 1e-12 and hope != fear)


@_formula("HopeFear")
def hope_fear(loss: Any, world: World) -> Force:
    """``max(0, (cost_fear - cost_hope) - (score_hope - score_fear))``."""
    costs, scores = world.costs(loss.cost), world.scores
    hope = world.gold if loss.toward == 1 else world.ranked(scores - costs)[0]
    fear = {
        0: world.ranked(scores + costs)[0],
        1: world.ranked()[0] if world.outputs.predicts_last else int(np.argmax(scores)),
        2: world.ranked(costs)[0],
    }[loss.away]
    value = world.importance * (costs[fear] - costs[hope] - (scores[hope] - scores[fear]))
    return _between(world, hope, fear, max(0.0, value), value > 1e-12)


@_formula("Risk")
def risk(loss: Any, world: World) -> Force:
    """``sum P cost`` with ``P = softmax(inverse_temperature * score)``."""
    P, costs = softmax(loss.inverse_temperature * world.scores), world.costs(loss.cost)
    # d P_j = inverse_temperature P_j (phi_j - mean)
    slope = loss.inverse_temperature * ((P * costs) @ (world.F - P @ world.F))
    a = world.importance
    return Force(a * (P @ costs), _mistaken(world), a > 0, np.nan, -a * slope)


@_formula("WeightedLog")
def weighted_log(loss: Any, world: World) -> Force:
    """``sum Q log(Q / P)`` with ``Q = softmax(fixed score - inverse_temperature * cost)``."""
    P = softmax(world.scores)
    Q = softmax(world.outputs.fixed - loss.inverse_temperature * world.costs(loss.cost))
    value = np.sum(Q * (np.log(np.maximum(Q, 1e-300)) - np.log(P)))
    a = world.importance
    return Force(a * value, _mistaken(world), a > 0, np.nan, a * (Q - P) @ world.F)


def programme(loss: Any, world: World) -> tuple[list[int], np.ndarray, np.ndarray]:
    """(candidates, their directions, by how much margins fall short) of n-best MIRA."""
    costs = world.costs(loss.cost)
    top = world.ranked(world.scores + costs)[: loss.n] if loss.augmented else world.top(loss.n)
    D = np.array([world.delta(k) for k in top])
    asked = np.sqrt(costs) if loss.root else costs
    return top, D, asked[top] - np.array([world.lead(k) for k in top])


@_formula("NBestMIRA")
def nbest_mira(loss: Any, world: World) -> Force:
    """The maximiser of ``a.short - a'Ga/2`` in its box, or one round without bounds."""
    importance = world.importance
    _, D, short = programme(loss, world)
    if loss.sequential:
        g = np.zeros(D.shape[1])
        for d, gap in zip(D, short, strict=True):
            if d @ d > 0:
                g = g + (gap - d @ g) / (d @ d) * d
    else:
        g = _in_the_box(D @ D.T, short, loss.C * importance) @ D
    forced = bool(importance > 0 and np.abs(g).max() > 1e-12)
    return Force(importance * max(0.0, short.max()), _mistaken(world), forced, np.nan, g)


def _in_the_box(G: np.ndarray, short: np.ndarray, C: float) -> np.ndarray:
    """By trying every set of bounds."""
    best, multipliers = -np.inf, np.zeros(len(short))
    for sides in itertools.product((0, 1, 2), repeat=len(short)):
        free = np.array([s == 2 for s in sides])
        a = np.where(np.array(sides) == 1, C, 0.0)
        if free.any():
            a[free] = np.linalg.lstsq(G[np.ix_(free, free)], short[free] - G[free] @ a)[0]
        value = a @ short - a @ G @ a / 2
        if (a >= -1e-12).all() and (a <= C + 1e-12).all() and value > best + 1e-13:
            best, multipliers = value, a
    return multipliers


@_formula("SWVP")
def swvp(loss: Any, world: World) -> Force:
    """``sum_J gamma_J (gold - m_J)``; backs off to the perceptron where condition (2) breaks."""
    ys, places, best = world.outputs.ys, world.outputs.places, world.ranked()[0]
    if not _mistaken(world):
        return _nothing(world, 1.0)
    gold, y = ys[world.gold], ys[best]
    wrong = [t for t in range(places) if gold[t] != y[t]]
    stretches = [range(a, b + 1) for a in range(places) for b in range(a, places)]
    runs = [
        s
        for s in stretches
        if all(t in wrong for t in s) and s[0] - 1 not in wrong and s[-1] + 1 not in wrong
    ]
    JJ = [[[t] for t in range(places)], [[t] for t in wrong], runs, stretches][loss.jj]
    mixtures = [
        world.F[world.gold]
        - world.features(tuple(y[t] if t in J else gold[t] for t in range(places)))
        for J in JJ
        if any(t in wrong for t in J)
    ]
    margins = np.array([delta @ world.w for delta in mixtures])
    usable = {0: margins <= 0, 1: np.full(len(margins), True), 2: margins > 0}[loss.approach]
    gamma = np.zeros(len(margins))
    if loss.weighting == 0:
        sizes = np.abs(margins)
        gamma[usable] = (sizes if sizes[usable].any() else np.ones(len(sizes)))[usable] ** loss.beta
    else:
        N = len(JJ) if loss.approach == 1 else usable.sum()
        order = [k for k in np.argsort(-np.abs(margins), kind="stable") if usable[k]]
        for rank, k in enumerate(order):
            gamma[k] = ((N - rank) / N) ** loss.beta
    checked = loss.checked or loss.approach == 2
    while checked and loss.excluding and usable.any() and gamma @ margins > 0:
        gamma[np.argmax(np.where(gamma > 0, margins, -np.inf))] = 0.0
        usable = gamma > 0
    if usable.any():
        gamma /= gamma.sum()
    if not usable.any() or (checked and gamma @ margins > 0):
        mixtures, gamma = [world.delta(best)], np.ones(1)
    g = world.importance * gamma @ np.array(mixtures)
    value = world.importance * max(0.0, -world.lead(best))
    return Force(value, True, True, world.lead(best), g)
