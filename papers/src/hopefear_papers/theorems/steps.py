"""Theorems about steps, measured while a learner learns: MIRA, SWVP and SAPO.

``docs/theory.md`` states and proves what is compared here. The trainers learn exactly what the
plain one learns, an example at a time, and look at every step (SAPO: at some examples).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component, kernel
from hopefear.core.interfaces import GradientSink, inferences_of
from hopefear.core.learner import Learner, describe, part_name
from hopefear.core.workspace import DenseWeights, Example, Ones
from hopefear.errors import CombinationError, HopefearError
from hopefear.losses.hinge import Hinge
from hopefear.losses.hope_fear import HOPE, ORACLE, WORST, HopeFear
from hopefear.losses.log import Log
from hopefear.losses.prediction_hinge import PredictionHinge
from hopefear.losses.sapo import SAPO
from hopefear.losses.structured_hinge import StructuredHinge
from hopefear.losses.swvp import BACKED_OFF, PASSIVE, SWVP, USED, WMR_PRINTED, take
from hopefear.rules.passive_aggressive import PassiveAggressive
from hopefear.rules.rda import RDA
from hopefear.rules.sgd import SGD
from hopefear.training.online import MISTAKEN, UPDATED, OnlineTrainer
from hopefear_papers.theorems.watched import Watched

# Steps that are looked at again for every event; with more of them, when a pass has ended.
_LIVE = 5_000
# Weights are float32: an equality may be missed by this share.
_ROUNDING = 1e-4
# Examples of a pass that SAPO's sums over all outputs are made for, about.
_SAMPLED = 400


def instrument(
    structure: Any, learner: Learner, rows: Any, comparator: np.ndarray | None = None
) -> OnlineTrainer:
    """A trainer that reports the theorem on this learner in every event.

    Parameters
    ----------
    structure, learner
        What is learned, and how: voted RDA, MIRA (PA-I), SWVP or SAPO.
    rows : dataset rows
        All the data, in memory.
    comparator : array, optional
        The weights u that theorems compare with; by default the average so far at its best scale.

    Examples
    --------
    >>> from hopefear.recipes import RECIPES
    >>> from hopefear.structures.classes import Binary
    >>> type(instrument(Binary(3), RECIPES["pa"].build(), None)).__name__
    'MeasuredMIRA'
    """
    if isinstance(learner.rule, RDA):
        return Watched(structure, learner, rows, comparator)
    kinds = {SWVP: MeasuredSWVP, SAPO: MeasuredSAPO}
    kind = kinds.get(type(learner.loss))
    if kind is None and isinstance(learner.rule, PassiveAggressive):
        kind = MeasuredMIRA
    if kind is None:
        names = (part_name(type(part)) for part in (learner.loss, learner.rule))
        raise CombinationError(
            f"no theorem is measured on {' with '.join(names)}; there are those on voted RDA "
            "(vrda), MIRA (mira, pa), SWVP (swvp) and SAPO (sapo)"
        )
    return kind(structure, learner, rows, comparator)


class Stepwise(OnlineTrainer):
    """Learns an example at a time and looks at it before and after.

    Parameters
    ----------
    structure, learner, dtype
        As for :class:`OnlineTrainer`.
    rows, comparator
        As for :func:`instrument`.
    """

    def __init__(
        self,
        structure: Any,
        learner: Learner,
        rows: Any,
        comparator: np.ndarray | None = None,
        dtype: Any = np.float32,
    ) -> None:
        super().__init__(structure, learner, dtype)
        self.rows, self.comparator = rows, comparator

    def learn_some(self, data: Any, order: np.ndarray, outcome: np.ndarray) -> int:
        done = super().learn_some(data, order[:1], outcome[:1])
        if done and outcome[0] & UPDATED:
            self.look(data, int(order[0]), bool(outcome[0] & MISTAKEN))
        return done

    def look(self, data: Any, i: int, mistaken: bool) -> None:
        """Take note of the step that example ``i`` has just caused."""

    def theory(self) -> dict[str, Any] | None:
        """What the theorem says of the run so far; None before there is anything to say."""
        raise NotImplementedError

    def u(self) -> np.ndarray:
        """The weights to compare with."""
        if self.comparator is not None:
            return np.asarray(self.comparator, np.float64)
        average = self.learner.averaging.average(self.memory, self)
        return np.asarray(self.weights() if average is None else average, np.float64)

    def annotate(self, event: dict[str, Any]) -> None:
        if "pass_mistakes" in event or self.updates <= _LIVE:
            event["theory"] = self.theory()

    def arrays(self) -> dict[str, np.ndarray]:
        raise HopefearError(
            "bounds look at all steps again, which checkpoints do not hold; leave out the "
            "checkpoints, or the bounds"
        )


class MeasuredMIRA(Stepwise):
    """MIRA (PA-I) beside the slides' theorem, as printed and as it holds.

    ``sum_t min(C R^2 m_t, m_t^2)  <=  R^2 |u|^2 + 2 C R^2 sum_t l_t(u)``

    m_t is the margin that the cost of the *prediction* asks for: the cost, beyond that of the hope
    where that is the aim, or its root with ``root=true``, times the weight of the example. With the
    root and without weights the left side is the sum of costs wherever C R^2 is large enough.
    l_t(u) is the loss of u on the pair of outputs that moved the weights.

    Examples
    --------
    >>> from hopefear.data.generators import sparse_linear
    >>> from hopefear.recipes import RECIPES
    >>> from hopefear.structures.classes import Binary
    >>> rows = sparse_linear(100, 30, per_row=(3, 6), true_weights=20, seed=1).dataset().rows
    >>> trainer = MeasuredMIRA(Binary(30), RECIPES["pa"].build(), rows)
    >>> trainer.learn(rows, np.arange(100))
    >>> report = trainer.theory()
    >>> report["holds"], report["left"] <= report["right"]
    (True, True)
    """

    def __init__(self, structure: Any, learner: Learner, *more: Any, **options: Any) -> None:
        rule, loss = learner.rule, learner.loss
        if rule.variant != 1 or not math.isfinite(rule.C):
            raise CombinationError(
                "the theorem on MIRA is that on PA-I: give variant=1 and a finite C"
            )
        covered = isinstance(loss, PredictionHinge | StructuredHinge | Hinge | HopeFear)
        if not covered or getattr(loss, "away", None) == WORST:
            raise CombinationError(
                f"the theorem on MIRA does not cover {describe(loss)}, whose loss may be less than "
                "what the prediction costs; use prediction-hinge, structured-hinge, hinge, or "
                "hope-fear with away=fear or away=prediction"
            )
        super().__init__(structure, learner, *more, **options)
        self.coordinates: list[np.ndarray] = []
        self.values: list[np.ndarray] = []
        self.asked: list[float] = []  # margins asked for on the pairs that moved weights
        self.margins: list[float] = []  # m_t, by the cost of the prediction; 0 where it is right
        self.cost = 0.0

    def look(self, data: Any, i: int, mistaken: bool) -> None:
        work, loss, structure = self._work, self.learner.loss, self.structure
        assert work is not None
        room = max(1, work.max_nnz)
        row = Entries(np.zeros(room, np.int64), np.zeros(room), np.zeros(1, np.int64))
        value = float(work.loss[0])
        collect(structure, data, i, work.mu, row)
        j, where = np.unique(row.j[: row.n[0]], return_inverse=True)
        g = np.bincount(where, row.g[: row.n[0]], j.size)
        square = float(g @ g)
        if square == 0.0 or value <= 0.0:  # nothing moved
            return
        step = min(self.learner.rule.C, value / square)
        # Before the step the lead was so much smaller.
        lead = float(self.weights()[j] @ g) - step * square
        price, aim = 0.0, 0.0
        if mistaken and hasattr(loss, "cost"):
            price = float(charged(structure, loss.cost, data, i, work.theta, work.y))
            if getattr(loss, "toward", ORACLE) == HOPE:
                aim = float(price_of(structure, loss.cost, data, i, work.scratch))
        elif mistaken:
            price = loss.asked
        price, weight = max(0.0, price - aim), float(data.weights[i])
        self.coordinates.append(j)
        self.values.append(g)
        self.asked.append(value + lead)
        # A weight multiplies what is asked for, and so stands outside the root.
        root = getattr(loss, "root", False)
        self.margins.append(weight * (math.sqrt(price) if root else price))
        self.cost += weight * price

    def theory(self) -> dict[str, Any] | None:
        if not self.asked:
            return None
        u, C = self.u(), self.learner.rule.C
        ends = np.cumsum([j.size for j in self.coordinates])
        products = u[np.concatenate(self.coordinates)] * np.concatenate(self.values)
        leads = np.diff(np.concatenate(([0.0], np.cumsum(products)))[np.append(0, ends)])
        square = max(float(g @ g) for g in self.values)
        asked, margins = np.array(self.asked), np.array(self.margins)
        scale = 1.0 if self.comparator is not None else best_scale(float(u @ u), C, asked, leads)
        losses = float(np.maximum(0.0, asked - scale * leads).sum())
        right = square * (scale**2 * float(u @ u) + 2.0 * C * losses)
        left = float(np.minimum(C * square * margins, margins**2).sum())
        slack = _ROUNDING * max(1.0, right)
        return {
            "name": "mira",
            "says": f"squared costs {left:,.4g}, bound {right:,.4g}",
            "mistakes": int(self.mistakes),
            "updates": len(asked),
            "cost": self.cost,
            "left": left,
            "right": right,
            "R": math.sqrt(square),
            "C": C,
            "comparator_norm": scale * math.sqrt(float(u @ u)),
            "comparator_loss": losses,
            "holds": left <= right + slack,
            "printed_holds": self.cost <= right + slack,
        }


def best_scale(square: float, C: float, asked: np.ndarray, leads: np.ndarray) -> float:
    """The scale a >= 0 that makes ``a^2 |u|^2 + 2 C sum max(0, asked - a lead)`` smallest.

    >>> round(best_scale(1.0, 10.0, np.array([1.0]), np.array([0.5])), 6)
    2.0
    """
    high = C * float(np.maximum(leads, 0.0).sum()) / square if square > 0.0 else 0.0
    low = 0.0
    for _ in range(100):  # convex: thirds of the interval that cannot have it go
        a, b = low + (high - low) / 3.0, high - (high - low) / 3.0
        at_a, at_b = (
            s * s * square + 2.0 * C * float(np.maximum(0.0, asked - s * leads).sum())
            for s in (a, b)
        )
        low, high = (low, b) if at_a <= at_b else (a, high)
    return 0.5 * (low + high)


class MeasuredSWVP(Stepwise):
    """SWVP beside its Theorem 1: ``updates <= (R_JJ / delta_JJ)^2``.

    R_JJ is the longest ``gold - m_J`` of the mixtures that moved the weights, and delta_JJ the
    smallest lead of gold over them under u / |u|; where some m_J leads there is no bound for u.
    Back-offs count as mixtures of all positions. The proof adds up steps of one length, of weights
    gamma that sum to 1 (condition 1), and nothing else may move the weights: other learners are
    refused. Where the loss does not check condition (2), ``holds`` is None.

    Examples
    --------
    >>> from hopefear.recipes import CHAIN_RECIPES
    >>> from hopefear.structures.chain.chain import Chain
    >>> MeasuredSWVP(Chain.new(3, 2), CHAIN_RECIPES["swvp"].build(l2=0.5), None)
    Traceback (most recent call last):
        ...
    hopefear.errors.CombinationError: Theorem 1 of SWVP is on steps of one length ...
    """

    def __init__(
        self, structure: Any, learner: Learner, rows: Any, *more: Any, **options: Any
    ) -> None:
        rule, loss = learner.rule, learner.loss
        plain = isinstance(rule, SGD) and (rule.power, rule.decay, rule.l1, rule.l2) == (0, 1, 0, 0)
        if not plain:
            raise CombinationError(
                f"Theorem 1 of SWVP is on steps of one length and no penalty, not on "
                f"{describe(rule)}; use sgd with power=0, decay=1, l1=0 and l2=0, or leave out the "
                "bounds"
            )
        if loss.weighting == WMR_PRINTED:
            raise CombinationError(
                "Theorem 1 of SWVP asks for weights gamma that sum to 1, and those of "
                "weighting=wmr-printed do not; use weighting=wmr, or leave out the bounds"
            )
        if rows is not None and np.unique(rows.weights[rows.weights > 0.0]).size > 1:
            raise CombinationError(
                "Theorem 1 of SWVP is on steps of one length, and weights of examples make some "
                "longer; weigh all examples alike, or leave out the bounds"
            )
        super().__init__(structure, learner, rows, *more, **options)
        self.checked = loss.checked or loss.approach == PASSIVE
        self.square = 0.0
        self.mixtures: list[tuple[int, np.ndarray]] = []

    def look(self, data: Any, i: int, mistaken: bool) -> None:
        work = self._work
        assert work is not None
        room = int(work.scratch.counts[USED]), work.y.size
        out, squares = np.zeros(room, work.y.dtype), np.zeros(room[0])
        n = used_mixtures(self.learner.loss, self.structure, data, i, work, out, squares)
        self.square = max(self.square, float(squares[:n].max(initial=0.0)))
        self.mixtures.append((i, out[:n]))

    def theory(self) -> dict[str, Any] | None:
        if not self.mixtures:
            return None
        u, work = self.u(), self.structure.workspace(self.rows, self.learner.loss, np.float64)
        norm = math.sqrt(float(u @ u))
        least = min(
            float(least_lead(self.structure, self.rows, i, mixtures, DenseWeights(u), work))
            for i, mixtures in self.mixtures
        )
        delta = least / norm if norm > 0.0 else 0.0
        bound = self.square / delta**2 if delta > 0.0 else None
        within = bound is None or len(self.mixtures) <= bound * (1.0 + _ROUNDING)
        limit = "none" if bound is None else f"{bound:,.0f}"
        return {
            "name": "swvp",
            "says": f"{len(self.mixtures):,} updates so far, bound {limit}",
            "mistakes": int(self.mistakes),
            "updates": len(self.mixtures),
            "bound": bound,
            "R_JJ": math.sqrt(self.square),
            "delta_JJ": delta,
            "backed_off": int(self._work.scratch.counts[BACKED_OFF]) if self._work else 0,
            "holds": within if self.checked else None,
        }


class MeasuredSAPO(Stepwise):
    """SAPO beside the CRF: probability outside the n best, and what the loss leaves out.

    ``g_all - g_n = -log(1 - rho_n)``, exactly, by sums over all outputs, on examples about evenly
    spread over a pass, at the weights that meet them. Events have means since the last one.
    """

    def __init__(self, *parts: Any, **options: Any) -> None:
        super().__init__(*parts, **options)
        if "expectation" not in inferences_of(self.structure):
            raise CombinationError(
                f"{type(self.structure).__name__} does not sum over all outputs, which SAPO's rest "
                "is measured by; leave out the bounds"
            )
        self.every = max(1, self.rows.weights.size // _SAMPLED)
        self.spaces: Any = None
        self.sums, self.met = np.zeros(4), 0

    def learn_some(self, data: Any, order: np.ndarray, outcome: np.ndarray) -> int:
        if self.met % self.every == 0:
            self._measure(data, int(order[0]))
        some = self.every - self.met % self.every
        done = OnlineTrainer.learn_some(self, data, order[:some], outcome[:some])
        self.met += done
        return done

    def _measure(self, data: Any, i: int) -> None:
        if self.spaces is None:
            losses = self.learner.loss, Log()
            self.spaces = tuple(self.structure.workspace(data, x, np.float64) for x in losses)
        reading, weight = DenseWeights(self.weights().astype(np.float64)), float(data.weights[i])
        if weight == 0.0:
            return
        g_n, g_all = (
            loss_of(self.structure, loss, reading, data, i, work) / weight
            for loss, work in zip((self.learner.loss, Log()), self.spaces, strict=True)
        )
        gap = max(0.0, g_all - g_n)
        self.sums += (1.0, g_n, gap, -math.expm1(-gap))

    def theory(self) -> dict[str, Any] | None:
        count, g_n, gap, rho = self.sums.tolist()
        if not count:
            return None
        self.sums[:] = 0.0
        n = self.learner.loss.n
        return {
            "name": "sapo",
            "says": f"probability outside the {n} best {rho / count:.4f}",
            "n": n,
            "sampled": int(count),
            "g_n": g_n / count,
            "gap": gap / count,
            "rho": rho / count,
        }

    def annotate(self, event: dict[str, Any]) -> None:
        event["theory"] = self.theory()


@component(GradientSink)
class Entries(NamedTuple):
    """A row that is written down entry by entry."""

    j: np.ndarray
    g: np.ndarray
    n: np.ndarray

    def add_entry(self, j, g):
        self.j[self.n[0]], self.g[self.n[0]] = j, g
        self.n[0] += 1


@kernel
def collect(structure, data, i, mu, row):
    structure.scatter(Example(data, i), mu, row)


@kernel
def charged(structure, cost, data, i, theta, y):
    """Cost of the prediction at these scores."""
    x = Example(data, i)
    structure.margin(x, theta, y, False)
    return structure.output_cost(x, cost, y)


@kernel
def price_of(structure, cost, data, i, y):
    return structure.output_cost(Example(data, i), cost, y)


@kernel
def used_mixtures(loss, structure, data, i, work, out, squares):
    """The m_J that have a weight, and their squared distances from gold; returns how many."""
    x, found, n = Example(data, i), work.scratch, 0
    places = structure.n_positions(x)
    for k in range(found.counts[USED]):
        if found.gamma[k] > 0.0:
            take(loss, structure, x, found, k, places)
            structure.mix_labels(x, work.y, found.taken, found.mixture)
            structure.add_difference(x, found.mixture, 1.0, work.mu, True)
            squares[n] = structure.weighted_squared_norm(x, work.mu, Ones(1.0))
            for t in range(places):
                out[n, t] = found.mixture[t]
            n += 1
    return n


@kernel
def least_lead(structure, data, i, mixtures, weights, work):
    """The smallest lead of gold over some outputs."""
    x, least = Example(data, i), np.inf
    structure.score(x, weights, work.theta)
    for k in range(mixtures.shape[0]):
        least = min(least, structure.margin_over(x, work.theta, mixtures[k]))
    return least


@kernel
def loss_of(structure, loss, weights, data, i, work):
    """The loss of one example at these weights."""
    x = Example(data, i)
    structure.score(x, weights, work.theta)
    loss.subgradient(structure, x, work)
    return work.loss[0]
