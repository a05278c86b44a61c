"""Mistake bounds of voted RDA (Xu, Gao, Xiao and Regan), evaluated on a run.

Only mistakes move the weights, so the run is RDA on the M examples i(1) .. i(M), and for any u

    floor * M  <=  L(u) + M lam Delta(u) + regret(M, u)                                   (11)

``floor`` is the least loss of a mistake, L(u) the loss of u on those M examples, ``lam Delta(u)``
the penalty of u less the mean penalty of w_1 .. w_M, and the regret is Xiao's (2010). Solved for M
it is Theorem 1. ``docs/theory.md`` derives it, lists misprints and says how to read the numbers.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.averages import running_totals, sum_of_old_line
from hopefear.core.component import kernel
from hopefear.core.interfaces import n_weights
from hopefear.core.learner import describe
from hopefear.core.workspace import DenseWeights, Example, Ones
from hopefear.errors import CombinationError, HopefearError
from hopefear.losses.hinge import Hinge
from hopefear.rules.rda import RDA
from hopefear.structures.classes import Binary, Multiclass
from hopefear.structures.nbest import NBest
from hopefear.training.online import MISTAKEN, read_sum
from hopefear_papers.theorems.formulas import (
    corollary_1,
    inequality,
    mistake_bound,
    regime,
)
from hopefear_papers.theorems.observed import Observed

# Sums of float32 products may miss an equality by this share; a defect misses it by far more.
_ROUNDING = 1e-6


class Observation(NamedTuple):
    """What a watched run says about its predictors w_1 .. w_M, those that an update ended."""

    mistakes: int  # M
    mean_l1: float  # mean of |w_k|_1
    average: np.ndarray  # mean of w_k, each counted once
    G: float  # largest |g_k|_2
    mean_square: float | None = None  # mean of |w_k|_2 ** 2; None: nobody kept it


class Strength(NamedTuple):
    """Relative strength of regularisation; ``lam * delta`` is in units of loss."""

    lam: float
    delta: float  # Delta(u), eq. 8
    delta_bar: float  # the relaxed form, with the penalty of the average; never smaller
    exact: bool  # False: delta is the least upper bound that can be computed


@dataclass(frozen=True)
class BoundReport:
    """A run beside its bounds; ``to_dict`` is what events and reports store."""

    mistakes: int  # M
    samples: int  # examples seen
    theorem1: float  # M is at most this; infinite when the regime is vacuous
    corollary1: float | None  # probability of an error is about at most this; None beyond one pass
    delta: float
    delta_bar: float
    lam: float
    R: float  # longest direction that a slope of 1 gives
    G: float  # longest direction there was
    comparator_norm: float  # |u|_2
    comparator_loss: float  # L(u)
    regime: str  # under, over, perfect or vacuous
    separable: bool  # L(u) = 0
    holds: bool  # (11) and Theorem 1 are true of this run; False means a defect, not bad luck
    eta_used: float
    eta_optimal: float | None  # would make the bound smallest for this u
    left: float  # of (11)
    right: float
    floor: float  # least loss of a mistake, times its mean importance

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is not finite becomes None."""
        return {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in asdict(self).items()
        }


def relative_strength(
    u: np.ndarray, observed: Observation, l1: float = 0.0, l2: float = 0.0
) -> Strength:
    """Delta(u) and its relaxed form, for the penalty ``l1 |w|_1 + l2/2 |w|^2``.

    ``Delta(u) = N(u) - mean of N(w_k)``, relaxed ``N(u) - N(mean of w_k)``; lam N is the penalty

    N is ``|.|_1`` with lam = l1, or ``|.|^2 / 2`` with lam = l2, or the penalty itself with lam = 1
    when there are both. Where the mean of ``|w_k|^2`` is needed but was not kept, the square of the
    mean stands in for it: Delta is then an upper bound, and so is every bound made of it.

    Examples
    --------
    >>> seen = Observation(mistakes=4, mean_l1=3.0, average=np.array([1.0, -1.0]), G=1.0)
    >>> relative_strength(np.array([2.0, 0.5]), seen, l1=0.1)
    Strength(lam=0.1, delta=-0.5, delta_bar=0.5, exact=True)
    """
    lam, first, second = (1.0, l1, l2) if l1 and l2 else (l2, 0.0, 1.0) if l2 else (l1, 1.0, 0.0)

    def size(absolute: float, square: float) -> float:
        return first * absolute + 0.5 * second * square

    center = observed.average
    of_u = size(float(np.abs(u).sum()), float(u @ u))
    of_center = size(float(np.abs(center).sum()), float(center @ center))
    kept = observed.mean_square
    mean = size(observed.mean_l1, float(center @ center) if kept is None else kept)
    return Strength(lam, of_u - mean, of_u - of_center, second == 0.0 or kept is not None)


def observe(trainer: Any) -> Observation:
    """The terms that only the run knows; its averaging must be ``Observed``."""
    learner = trainer.learner
    if not isinstance(learner.averaging, Observed):
        name = type(learner.averaging).__name__
        raise CombinationError(
            f"bounds need sums over all predictors, which the averaging {name} does not keep; "
            f"use Observed({name}())"
        )
    memory = trainer.memory
    M = int(memory.account.lived[1])
    total = np.empty(trainer.n)
    read_sum(learner.rule, trainer.state, memory.account, 0.0, 1.0, 0, total)
    size = memory.absolute[0] + _open_sizes(learner.rule, trainer.state, memory.account, trainer.n)
    return Observation(M, float(size) / max(1, M), total / max(1, M), math.sqrt(memory.squares[1]))


def mistaken(order: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """Rows on which mistakes were made, in order, given what ``OnlineTrainer.learn`` wrote.

    Examples
    --------
    >>> mistaken(np.array([7, 5, 6]), np.array([3, 0, 1], np.uint8))
    array([7, 6])
    """
    return order[(outcome & MISTAKEN) != 0]


def comparator_loss(
    structure: Any, loss: Any, rows: Any, mistakes: np.ndarray, comparator: np.ndarray
) -> float:
    """L(u), eq. 10: loss of u over the examples that were mistaken, against *its* best rivals.

    ``sum over k of importance * loss(margin of u on i(k))``
    """
    which, u = _checked(structure, rows, mistakes, comparator)
    margins = _margins(structure, rows, which, u, structure.workspace(rows, loss, np.float64))
    return float(_total_loss(loss, margins, rows.weights[which], 1.0))


def radius(structure: Any, rows: Any) -> float:
    """R: the longest direction of any row under a slope of 1.

    ``max_i |x_i|``, and sqrt(2) times that for several classes, where a direction is a difference;
    of lists the longest difference between the oracle and another candidate
    """
    work = structure.workspace(rows, Hinge(), np.float64)
    largest = _largest_of_lists if isinstance(structure, NBest) else _largest_square
    return math.sqrt(largest(structure, rows, work))


def bound_report(
    trainer: Any, rows: Any, mistakes: np.ndarray, comparator: np.ndarray, R: float | None = None
) -> BoundReport:
    """Compare a run of voted RDA with its bounds for the comparator u.

    Parameters
    ----------
    trainer : OnlineTrainer
        The run so far: rule ``RDA``, on mistakes, averaging ``Observed``.
    rows : SparseRows
        What it learned from.
    mistakes : array of int
        The rows i(1) .. i(M) in order (see ``mistaken``), over all passes.
    comparator : array
        u: any weights of the model's size. The true weights if known, or the final average; 0 is
        allowed and useless. Better on the mistakes, shorter and sparser gives a lower bound.
    R : float, optional
        ``radius(structure, rows)``, if it is known; it costs a pass over the rows.

    Examples
    --------
    >>> from hopefear.data.generators import sparse_linear
    >>> from hopefear.core.learner import Learner
    >>> from hopefear.losses.hinge import Hinge
    >>> from hopefear.averaging.last import Last
    >>> from hopefear.structures.classes import Binary
    >>> from hopefear.training.online import OnlineTrainer
    >>> data = sparse_linear(300, 60, per_row=(5, 9), true_weights=30, margin=0.2, label_noise=0)
    >>> u, order, outcome = data.truth / 0.2, np.arange(300), np.empty(300, np.uint8)
    >>> watched = Learner(Hinge(), RDA(rate=20.0, l1=1e-4), Observed(Last()), update_on="mistakes")
    >>> trainer, rows = OnlineTrainer(Binary(60), watched), data.dataset().rows
    >>> trainer.learn(rows, order, outcome)
    >>> mistakes = mistaken(order, outcome)
    >>> observe(trainer).mistakes == len(mistakes), round(radius(trainer.structure, rows), 4)
    (True, 1.0)
    >>> comparator_loss(trainer.structure, Hinge(), rows, mistakes, u)
    0.0
    >>> report = bound_report(trainer, rows, mistakes, u)
    >>> report.mistakes <= report.theorem1, report.separable, report.regime
    (True, True, 'over')
    >>> scale, best = best_scaled(trainer, rows, mistakes, u)
    >>> best.theorem1 <= report.theorem1
    True
    """
    return _Ray(trainer, rows, mistakes, comparator, R).report(1.0)


def best_scaled(
    trainer: Any, rows: Any, mistakes: np.ndarray, comparator: np.ndarray, R: float | None = None
) -> tuple[float, BoundReport]:
    """The scale a > 0 for which ``a u`` gives the smallest bound, and the report of that.

    ``inf over a > 0 of Theorem 1 for a u``: the infimum of Corollary 1 along one ray

    Parameters are those of ``bound_report``. A direction that classifies well is often far too
    short or too long to be a good comparator; this removes the accident. Scales over eight powers
    of ten around margins of 1 are tried, then the best is refined to four digits. A scale at the
    low end means that u = 0, whose loss is M itself, does no worse: the direction explains nothing.
    """
    ray = _Ray(trainer, rows, mistakes, comparator, R)
    if ray.norm == 0.0:
        raise HopefearError("the comparator is all zero, which no scale can change; give weights")
    sizes = np.abs(ray.margins)
    start = 1.0 / (float(sizes.mean()) if sizes.any() else max(ray.R, 1.0) * ray.norm)
    exponents = np.linspace(-4.0, 4.0, 65)
    for _ in range(6):
        bounds = [ray.bound(start * 10.0**e) for e in exponents]
        best = int(np.argmin(bounds))
        step = exponents[1] - exponents[0]
        exponents = np.linspace(exponents[best] - step, exponents[best] + step, 9)
    scale = float(start * 10.0 ** exponents[4])
    return scale, ray.report(scale)


def check_bounded(structure: Any, learner: Any, rows: Any) -> None:
    """Refuse a learner, a structure or data that the theorem does not cover."""
    if not isinstance(learner.rule, RDA):
        raise CombinationError(
            f"the bounds are those of dual averaging, not of "
            f"{describe(learner.rule, defaults=False)}; use the rule RDA"
        )
    if not isinstance(structure, Binary | Multiclass | NBest):
        raise CombinationError(
            "the bounds of voted RDA are worked out for classes and lists, not for "
            f"{type(structure).__name__}"
        )
    if isinstance(structure, NBest) and (structure.tied or rows.offsets.any()):
        raise CombinationError(
            "the bounds of voted RDA need one right candidate and scores that are linear in "
            "the weights; leave out tied, and take the generator's score as a feature"
        )
    if learner.update_on != "mistakes":
        raise CombinationError(
            "the bounds count mistakes, but RDA on every example updates on "
            "others too; use update_on='mistakes' (voted RDA)"
        )
    if learner.loss.value(0.0) <= 0.0:
        raise CombinationError(
            f"{type(learner.loss).__name__} may be zero on a mistake, so its sum is no bound on "
            f"their number; use Hinge, Logistic or Exponential"
        )


class _Ray:
    """A run against all multiples of one comparator: margins scale, so rows are scored once."""

    def __init__(
        self, trainer: Any, rows: Any, mistakes: np.ndarray, comparator: np.ndarray, R: float | None
    ) -> None:
        learner, structure = trainer.learner, trainer.structure
        self.loss, self.floor = learner.loss, float(learner.loss.value(0.0))
        self.rule = learner.rule
        check_bounded(structure, learner, rows)
        self.seen = observe(trainer)
        which, self.u = _checked(structure, rows, mistakes, comparator)
        if not which.size == self.seen.mistakes == trainer.mistakes:
            raise HopefearError(
                f"{which.size} mistakes were listed and the trainer made {trainer.mistakes} "
                f"({self.seen.mistakes} with an update); list the rows of all of them, in order"
            )
        self.samples = trainer.examples
        self.one_pass = self.samples <= rows.weights.size
        self.R = radius(structure, rows) if R is None else R
        work = structure.workspace(rows, self.loss, np.float64)
        self.margins = _margins(structure, rows, which, self.u, work)
        self.importance = rows.weights[which]
        if which.size:
            self.floor *= float(self.importance.mean(dtype=np.float64))
        self.norm = math.sqrt(self.u @ self.u)
        self.eta = 1.0 / self.rule.rate

    def terms(self, scale: float) -> tuple[Strength, dict[str, float]]:
        strength = relative_strength(scale * self.u, self.seen, self.rule.l1, self.rule.l2)
        loss = float(_total_loss(self.loss, self.margins, self.importance, scale))
        return strength, {
            "loss": loss,
            "norm": scale * self.norm,
            "delta": strength.delta,
            "lam": strength.lam,
            "G": self.seen.G,
            "eta": self.eta,
            "floor": self.floor,
            "l2": self.rule.l2,
        }

    def bound(self, scale: float) -> float:
        return mistake_bound(**self.terms(scale)[1])

    def report(self, scale: float) -> BoundReport:
        strength, terms = self.terms(scale)
        M, norm, bound = self.seen.mistakes, terms["norm"], mistake_bound(**terms)
        left, right = inequality(M, **terms)
        slack = _ROUNDING * max(1.0, left, abs(right))
        return BoundReport(
            mistakes=M,
            samples=self.samples,
            theorem1=bound,
            corollary1=corollary_1(bound, self.samples) if self.one_pass else None,
            delta=strength.delta,
            delta_bar=strength.delta_bar,
            lam=strength.lam,
            R=self.R,
            G=self.seen.G,
            comparator_norm=norm,
            comparator_loss=terms["loss"],
            regime=regime(strength.delta, strength.lam, self.floor),
            separable=terms["loss"] == 0.0,
            holds=left <= right + slack and bound * (1.0 + _ROUNDING) >= M,
            eta_used=self.eta,
            eta_optimal=(
                math.sqrt(2.0) * self.seen.G / norm if norm > 0.0 and self.rule.l2 == 0.0 else None
            ),
            left=left,
            right=right,
            floor=self.floor,
        )


def _checked(
    structure: Any, rows: Any, mistakes: np.ndarray, comparator: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    u = np.array(comparator, np.float64).ravel()
    if u.size != n_weights(structure):
        raise HopefearError(
            f"the comparator has {u.size} weights and the model {n_weights(structure)}; give "
            f"one for each coordinate, intercepts last and the classes of a feature side by side"
        )
    if not np.isfinite(u).all():
        raise HopefearError("the comparator has weights that are not finite; leave those out as 0")
    which = np.array(mistakes, np.int64)
    if which.size and not 0 <= which.min() <= which.max() < rows.weights.size:
        raise HopefearError(
            f"mistakes name rows {which.min()} to {which.max()} of "
            f"{rows.weights.size}; give the rows that were learned from"
        )
    return which, u


@kernel
def _open_sizes(rule, state, account, n):
    """What the lines that are still open have added to the sum of absolute weights."""
    total = 0.0
    now = running_totals(account)
    for j in range(n):
        m, r, f = rule.lazy_weight(state, j)
        total += abs(sum_of_old_line(account, now, j, m, r, f))
    return total


@kernel
def _margins(structure, data, which, u, work):
    out = np.empty(which.size)
    for k in range(which.size):
        x = Example(data, which[k])
        structure.score(x, DenseWeights(u), work.theta)
        out[k] = structure.margin(x, work.theta, work.y, True)
    return out


@kernel
def _total_loss(loss, margins, importance, scale):
    total = 0.0
    for k in range(margins.size):
        total += importance[k] * loss.value(scale * margins[k])
    return total


@kernel
def _largest_square(structure, data, work):
    largest = 0.0
    for i in range(data.labels.size):
        if data.labels[i] >= 0:  # unknown labels have no direction
            x = Example(data, i)
            structure.margin(x, work.theta, work.y, True)
            structure.add_difference(x, work.y, 1.0, work.mu, True)
            largest = max(largest, structure.weighted_squared_norm(x, work.mu, Ones(1.0)))
    return largest


@kernel
def _largest_of_lists(structure, data, work):
    largest = 0.0
    for i in range(data.weights.size):
        x = Example(data, i)
        structure.margin(x, work.theta, work.y, True)  # leaves the oracle in its place
        for c in range(data.starts[i + 1] - data.starts[i]):
            if c != work.y[1] and data.weights[i] > 0.0:
                work.y[0] = c
                structure.add_difference(x, work.y, 1.0, work.mu, True)
                largest = max(largest, structure.weighted_squared_norm(x, work.mu, Ones(1.0)))
    return largest
