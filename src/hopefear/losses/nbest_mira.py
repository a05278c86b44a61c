"""n-best MIRA: the smallest change that satisfies n margins (McDonald et al., 2005)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component, helper
from hopefear.core.interfaces import Loss
from hopefear.costs.hamming import Hamming


class Programme(NamedTuple):
    """A quadratic programme in its dual form."""

    products: np.ndarray  # inner products of the directions
    short: np.ndarray  # by how much each margin falls short
    alpha: np.ndarray


@component(Loss)
class NBestMIRA(NamedTuple):
    """Margins over the n best outputs in proportion to their costs, all at once.

    ``min |w' - w|**2 / 2 + C * slack`` with ``w'.(gold - y_k) >= cost_k - slack_k`` for the n best.
    The direction is the whole change, so it belongs with steps of length 1 (``SGD(rate=1)``).

    Parameters
    ----------
    cost : Cost
        Price of an output.
    n : int
        Outputs to look at.
    C : float
        Largest multiplier of one constraint. Larger trusts single examples more.
    root : bool
        Ask for the square root of the price.
    sequential : bool
        False: solve the programme (Hildreth's method: one multiplier after the other, round after
        round). True: one round without bounds, as the authors of SAPO did; a margin that is more
        than wide enough is then pulled back to equality.
    augmented : bool
        Take the n outputs of the highest score plus cost instead of the highest score.
    rounds : int
        Most rounds of Hildreth's method.

    Examples
    --------
    >>> NBestMIRA(n=10).n_outputs()
    10
    """

    cost: Any = Hamming()
    n: int = 5
    C: float = 1.0
    root: bool = False
    sequential: bool = False
    augmented: bool = False
    rounds: int = 200

    def parameter_error(self):
        if self.n < 1 or self.rounds < 1:
            return "n and rounds must be at least 1"
        return "" if self.C > 0.0 else "C must be above zero"

    def requires(self):
        return ("cost", "nbest", *self.cost.requires())

    def n_outputs(self):
        return self.n

    def new_scratch(self, places):
        return Programme(np.zeros((self.n, self.n)), np.zeros(self.n), np.zeros(self.n))

    def subgradient(self, structure, x, work):
        programme, importance = work.scratch, np.float64(x.data.weights[x.i])
        alpha, short, products = programme.alpha, programme.short, programme.products
        if self.augmented:
            count = structure.k_best(x, work.theta, self.cost, 0.0, work.outputs)
        else:
            count = structure.k_best(x, work.theta, None, 0.0, work.outputs)
        worst, wins = 0.0, False
        work.gold_margin[0] = -1.0
        for k in range(count):
            y = work.outputs[k]
            z = structure.margin_over(x, work.theta, y)
            price = structure.output_cost(x, self.cost, y)
            short[k] = (math.sqrt(price) if self.root else price) - z
            worst = max(worst, short[k])
            if k == 0:
                wins = structure.is_gold(x, y)
                work.gold_margin[0] = 1.0 if wins else (0.0 if z > 0.0 else z)
            elif k == 1 and wins and z > 0.0:
                work.gold_margin[0] = z
        if self.augmented and not wins:  # what is feared most need not be what is predicted
            work.gold_margin[0] = structure.margin(x, work.theta, work.y, False)
        work.loss[0] = importance * worst
        if importance == 0.0 or (worst <= 0.0 and not self.sequential):
            return 0
        structure.gram_matrix(x, work.outputs, count, work.mu, products)
        if self.sequential:
            solve(products, short, alpha, count, math.inf, -math.inf, 1)
        else:
            solve(products, short, alpha, count, self.C * importance, 0.0, self.rounds)
        moves = 0
        for k in range(count):
            if alpha[k] != 0.0:
                structure.add_difference(x, work.outputs[k], alpha[k], work.mu, moves == 0)
                moves = 1
        return moves


@helper
def solve(products, short, alpha, count, highest, lowest, rounds):
    """Hildreth's method: bring one constraint after the other to equality, within the bounds.

    Maximises ``alpha.short - alpha' products alpha / 2``; stops when a round moves nothing much.
    """
    for k in range(count):
        alpha[k] = 0.0
    for _ in range(rounds):
        moved = 0.0
        for k in range(count):
            if products[k, k] <= 0.0:  # gold itself
                continue
            rest = short[k]
            for m in range(count):
                rest -= products[k, m] * alpha[m]
            new = min(highest, max(lowest, alpha[k] + rest / products[k, k]))
            moved = max(moved, abs(new - alpha[k]) * math.sqrt(products[k, k]))
            alpha[k] = new
        if moved < 1e-9:
            return
