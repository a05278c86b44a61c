"""Lists of candidates: the output is one of those that some generator proposed."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component, helper
from hopefear.core.interfaces import UNRIVALLED, Structure
from hopefear.core.workspace import new_workspace
from hopefear.costs.given import Given


class ListTheta(NamedTuple):
    """Scores of candidates, and what searching them needs."""

    points: np.ndarray  # float64[longest]: scores
    local: np.ndarray  # float[most features of a list]: their weights
    charged: np.ndarray  # float64[longest]: scores plus or minus costs; probabilities


class ListMu(NamedTuple):
    """Signed weights on candidates, and the direction they add up to."""

    parts: np.ndarray  # float64[longest]
    local: np.ndarray  # float[most features of a list]; all zero between two uses


@component(Structure)
class NBest(NamedTuple):
    """One of a list of candidates; parts are the candidates, coordinates the features.

    An output ``y`` is two positions in the list: the candidate, and the one it is measured against
    (gold). Of candidates with equal scores searches find rivals of gold first, as they stand in the
    list: a tie is a mistake, whatever the loss. (Answers take the first of the list.)

    Parameters
    ----------
    features : int
        Number of features.
    tied : bool
        False: gold is the oracle, and every other candidate is a rival (eq. 2 of the paper on
        voted dual averaging). True: gold is the best scored of all candidates as cheap as the
        oracle, only dearer ones are rivals, and probabilities of the cheapest add up.
    pricing : Pricing
        Where costs come from: the data, unless a corpus that grows on the way has a say.
    """

    features: int
    tied: bool = False
    pricing: Any = Given()

    def weight_blocks(self):
        return ((0, self.features, 1),)

    def why_unsupported(self, inference):
        if inference in ("cost", "regret", "nbest", "expectation", "risk", "worst", "bounded"):
            return ""
        if inference in ("places", "heads"):
            return "a candidate is chosen as a whole; use the loss perceptron"
        return "candidates have costs and no labels; use the cost regret"

    def workspace(self, data, loss, dtype):
        longest = int(np.diff(data.starts).max(initial=1))
        most = int(np.diff(data.scopes).max(initial=1))
        theta = ListTheta(np.zeros(longest), np.zeros(most, dtype), np.zeros(longest))
        mu = ListMu(np.zeros(longest), np.zeros(most, dtype))
        return new_workspace(theta, mu, np.zeros(2, np.int64), loss, most)

    def score(self, x, weights, theta):
        data, points, local = x.data, theta.points, theta.local
        features, columns, values = data.features, data.columns, data.values
        first, last = np.uint64(data.scopes[x.i]), np.uint64(data.scopes[x.i + 1])
        for k in range(first, last):
            local[k - first] = weights.at(np.uint64(features[k]))
        start = data.starts[x.i]
        for c in range(data.starts[x.i + 1] - start):
            begin, end = np.uint64(data.indptr[start + c]), np.uint64(data.indptr[start + c + 1])
            total = local.dtype.type(0.0)
            for e in range(begin, end):
                total += local[np.uint64(columns[e])] * values[e]
            points[c] = float(total) + float(data.offsets[start + c])
        self.pricing.update_costs(x, points)

    def argmax(self, x, theta, y):
        y[1] = gold(self, x, theta)
        y[0] = foremost(self, x, y[1], theta.points)

    def margin(self, x, theta, y, exact):
        if not exact:
            self.argmax(x, theta, y)
            ahead = self.margin_over(x, theta, y)
            # Gold that wins is 0 ahead of itself, unless scores are not finite: that must show.
            return ahead + 1.0 if self.is_gold(x, y) else ahead
        points, best = theta.points, -1
        y[1] = gold(self, x, theta)
        for c in range(size(x)):
            if rival(self, x, y[1], c) and (best < 0 or points[c] > points[best]):
                best = c
        y[0] = best if best >= 0 else y[1]
        return points[y[1]] - points[best] if best >= 0 else UNRIVALLED

    def is_gold(self, x, y):
        return not rival(self, x, y[1], y[0])

    def margin_over(self, x, theta, y):
        return theta.points[y[1]] - theta.points[y[0]]

    def output_cost(self, x, cost, y):
        return price(x, cost, y[1], y[0])

    def cost_augmented_argmax(self, x, theta, cost, sign, y):
        y[1] = gold(self, x, theta)
        for c in range(size(x)):
            extra = price(x, cost, y[1], c)
            theta.charged[c] = extra if sign == math.inf else theta.points[c] + sign * extra
        y[0] = foremost(self, x, y[1], theta.charged)
        return self.margin_over(x, theta, y), self.output_cost(x, cost, y)

    def k_best(self, x, theta, cost, ratio, outputs):
        best = gold(self, x, theta)
        for c in range(size(x)):
            theta.charged[c] = theta.points[c]
            if cost is not None:
                theta.charged[c] += price(x, cost, best, c)
        count = pick(self, x, theta, best, outputs)
        if ratio > 0.0:
            lowest = theta.points[outputs[0, 0]] - math.log(ratio)
            while count > 1 and theta.points[outputs[count - 1, 0]] < lowest:
                count -= 1
        return count

    def add_difference(self, x, y, coef, mu, clear):
        if clear:
            mu.parts[: size(x)] = 0.0
        mu.parts[y[1]] += coef
        mu.parts[y[0]] -= coef

    def kl_and_gradient(self, x, theta, cost, inverse_temperature, coef, mu):
        # Several candidates may share the probability of gold, so that it says nothing of who wins.
        if cost is None:
            return surprise(self, x, theta, coef, mu), False
        return divergence(self, x, theta, cost, inverse_temperature, coef, mu), False

    def risk_and_gradient(self, x, theta, cost, inverse_temperature, coef, mu):
        total, best = shares(x, theta, inverse_temperature), gold(self, x, theta)
        risk = 0.0
        for c in range(size(x)):
            risk += theta.charged[c] / total * price(x, cost, best, c)
        for c in range(size(x)):
            share = theta.charged[c] / total
            mu.parts[c] = coef * inverse_temperature * share * (risk - price(x, cost, best, c))
        return risk

    def scatter(self, x, mu, row):
        add_up(x, mu)
        first, local, features = x.data.scopes[x.i], mu.local, x.data.features
        for k in range(x.data.scopes[x.i + 1] - first):
            g = local[k]
            if g != 0.0:
                local[k] = 0.0
                row.add_entry(np.uint64(features[first + k]), g)

    def weighted_squared_norm(self, x, mu, weights):
        add_up(x, mu)
        first, local, features, total = x.data.scopes[x.i], mu.local, x.data.features, 0.0
        for k in range(x.data.scopes[x.i + 1] - first):
            g = np.float64(local[k])
            if g != 0.0:
                local[k] = 0.0
                total += np.float64(weights.at(np.uint64(features[first + k]))) * g * g
        return total

    def gram_matrix(self, x, outputs, count, mu, products):
        data, start, local = x.data, x.data.starts[x.i], mu.local
        for k in range(count):
            self.add_difference(x, outputs[k], 1.0, mu, True)
            add_up(x, mu)
            toward = along(data, start + outputs[k, 1], local)
            for m in range(k, count):
                products[k, m] = toward - along(data, start + outputs[m, 0], local)
                products[m, k] = products[k, m]
            local[: data.scopes[x.i + 1] - data.scopes[x.i]] = 0.0


@helper
def surprise(structure, x, theta, coef, mu):
    """Sets ``mu`` to ``coef`` times (gold minus expectation); returns -log P(gold)."""
    total = shares(x, theta, 1.0)
    best, sure = gold(structure, x, theta), 0.0
    for c in range(size(x)):
        if not rival(structure, x, best, c):
            sure += theta.charged[c]
    if sure == 0.0:  # too small for a share: all of the force goes to gold
        sure = theta.charged[best] = np.finfo(np.float64).tiny
    for c in range(size(x)):
        right = 0.0 if rival(structure, x, best, c) else theta.charged[c] / sure
        mu.parts[c] = coef * (right - theta.charged[c] / total)
    top = theta.points[highest(theta.points, size(x))]
    if sure == np.finfo(np.float64).tiny:
        return math.log(total) + top - theta.points[best]
    value = math.log(total) - math.log(sure)  # the quotient of the two may be infinite
    return 0.0 if value < 0.0 else value  # what is not a number stays that


@helper
def divergence(structure, x, theta, cost, inverse_temperature, coef, mu):
    """Sets ``mu`` to ``coef`` times (Q - P), Q by costs; returns the divergence of Q from P."""
    total, best = shares(x, theta, 1.0), gold(structure, x, theta)
    top = theta.points[highest(theta.points, size(x))]
    start, most, goods = x.data.starts[x.i], -math.inf, 0.0
    for c in range(size(x)):
        # What is fixed is no feature's to undo: costs only shift the wanted probabilities.
        mu.parts[c] = np.float64(x.data.offsets[start + c]) - inverse_temperature * price(
            x, cost, best, c
        )
        most = max(most, mu.parts[c])
    for c in range(size(x)):
        mu.parts[c] = math.exp(mu.parts[c] - most)
        goods += mu.parts[c]
    value = 0.0
    for c in range(size(x)):
        share = mu.parts[c] / goods
        if share > 0.0:
            logs = theta.points[c] - top - math.log(total)
            value += share * (math.log(share) - logs)
        mu.parts[c] = coef * (share - theta.charged[c] / total)
    return max(0.0, value)


@helper
def size(x):
    """Number of candidates."""
    return x.data.starts[x.i + 1] - x.data.starts[x.i]


@helper
def gold(structure, x, theta):
    """The candidate to learn."""
    best = np.int64(x.data.oracles[x.i])
    if structure.tied:
        costs, start, points = x.data.costs, x.data.starts[x.i], theta.points
        least, best = costs[start + best], -1
        for c in range(size(x)):
            if costs[start + c] == least and (best < 0 or points[c] > points[best]):
                best = c
    return best


@helper
def rival(structure, x, best, c):
    """Whether candidate ``c`` should lose against gold."""
    if structure.tied:
        start = x.data.starts[x.i]
        return x.data.costs[start + c] != x.data.costs[start + best]
    return c != best


@helper
def highest(points, n):
    """Position of the highest number; of equal ones the first."""
    best = 0
    for c in range(1, n):
        if points[c] > points[best]:
            best = c
    return best


@helper
def price(x, cost, best, c):
    """What candidate ``c`` costs more than gold."""
    start = x.data.starts[x.i]
    return cost.label_cost(x.data.costs[start + best], x.data.costs[start + c])


@helper
def foremost(structure, x, best, points):
    """Position of the highest number; of equal ones a rival of gold comes first."""
    top = 0
    for c in range(1, size(x)):
        tie = points[c] == points[top]
        if points[c] > points[top] or (
            tie and not rival(structure, x, best, top) and rival(structure, x, best, c)
        ):
            top = c
    return top


@helper
def pick(structure, x, theta, best, outputs):
    """Leaves the highest charged candidates in ``outputs``; the charges are used up."""
    count = min(outputs.shape[0], size(x))
    for k in range(count):
        c = foremost(structure, x, best, theta.charged)
        theta.charged[c] = -math.inf
        outputs[k, 0] = c
        outputs[k, 1] = best
    return count


@helper
def shares(x, theta, inverse_temperature):
    """Leave ``exp(inverse_temperature * (score - best))`` in ``charged``; returns their sum."""
    points, n = theta.points, size(x)
    top, total = points[highest(points, n)], 0.0
    for c in range(n):
        theta.charged[c] = math.exp(inverse_temperature * (points[c] - top))
        total += theta.charged[c]
    return total


@helper
def add_up(x, mu):
    """Add the features of all candidates, by their weights, into ``local``."""
    data, local, start = x.data, mu.local, x.data.starts[x.i]
    for c in range(size(x)):
        if mu.parts[c] != 0.0:
            coef = local.dtype.type(mu.parts[c])
            for e in range(data.indptr[start + c], data.indptr[start + c + 1]):
                local[np.uint64(data.columns[e])] += coef * data.values[e]


@helper
def along(data, candidate, local):
    """Inner product of a candidate with a direction."""
    total = 0.0
    for e in range(data.indptr[candidate], data.indptr[candidate + 1]):
        total += np.float64(local[data.columns[e]]) * np.float64(data.values[e])
    return total
