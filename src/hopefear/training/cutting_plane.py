"""Structured SVMs by cutting planes (Tsochantaridis et al., 2005; Joachims et al., 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hopefear.core.checks import check_parameters
from hopefear.core.component import helper, kernel
from hopefear.core.interfaces import n_weights
from hopefear.core.workspace import DenseWeights, Example
from hopefear.errors import CombinationError, ModelError
from hopefear.storage import array_of
from hopefear.training.margins import (
    MarginLearner,
    MarginTrainer,
    column_array,
    empty,
    finite_array,
    new_gathered,
    share_left,
    stretches,
)

SLACKS = ("one", "n")
# A plane without share in the weights for so many iterations is not kept.
_IDLE = 50
# Steps of the small problem at most: what they leave undone the next iteration does.
_STEPS, _SWEEPS = 20_000, 500
# Share of the gap that the small problem may leave.
_EXACT = 0.1


@dataclass(frozen=True)
class CuttingPlane(MarginLearner):
    """Structured SVM whose loss is built up from the planes it touches.

    ``min_w  sum_i max_y (cost_iy - (score_i,gold - score_iy)) + l2 * sum_j w_j**2``

    An iteration solves the problem whose loss is the highest of the planes found so far, and then
    finds those that are highest under the new weights.

    Parameters
    ----------
    slack : {"one", "n"}
        ``one``: planes under the loss of all examples together, one an iteration. ``n``: planes
        under the loss of each example; fewer iterations, more memory.

    Notes
    -----
    Weights waver on the way, so the best so far are given away, and the gap is theirs.

    References
    ----------
    Tsochantaridis, Joachims, Hofmann and Altun. Large margin methods for structured and
    interdependent output variables. JMLR 2005.
    Joachims, Finley and Yu. Cutting-plane training of structural SVMs. Machine Learning, 2009.

    Examples
    --------
    >>> CuttingPlane(slack="n", gap=0.001).signature()
    'loss:structured-hinge(cost=hamming)|rule:cutting-plane(l2=1,max_iter=300,gap=0.001,\
slack=n)|averaging:last|v:0.1.0'
    """

    slack: str = "one"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_parameters(self, choices={"slack": SLACKS}, error=CombinationError)

    def method(self) -> str:
        return "cutting-plane"

    def trainer(
        self, structure: Any, rows: Any, start: np.ndarray | None = None, n_jobs: int = 1
    ) -> PlaneTrainer:
        """This learner at work on some examples."""
        kind = OneSlack if self.slack == "one" else ManySlacks
        return kind(structure, self, rows, start, n_jobs)


class PlaneTrainer(MarginTrainer):
    """Cutting planes at work.

    Parameters
    ----------
    structure, learner, rows
        What is predicted, how it is learned, and from what.
    start : float array, optional
        Weights whose planes are the first ones.
    n_jobs : int
        Threads that look for planes under all examples; those of single ones come one after the
        other. The model does not depend on it.

    Attributes
    ----------
    owner : int64 array
        Whose loss each plane lies under.
    """

    def __init__(
        self,
        structure: Any,
        learner: CuttingPlane,
        rows: Any,
        start: np.ndarray | None = None,
        n_jobs: int = 1,
    ) -> None:
        super().__init__(structure, learner, rows, learner.loss, n_jobs)
        self.owner, self.idle = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.ptr, self.columns = np.zeros(1, np.int64), np.zeros(0, np.int64)
        self.entries, self.b, self.alpha = np.zeros(0), np.zeros(0), np.zeros(0)
        if start is not None:
            self.w = np.array(start, np.float64)
        self.here = self.w
        self.values = [self.look()[0]]

    def look(self) -> tuple[float, float, int]:
        """Objective, loss and mistakes here; planes higher here than those known are kept."""
        raise NotImplementedError

    def solve(self) -> None:
        """Move to the optimum of the planes there are."""
        raise NotImplementedError

    def learn(self, data: Any = None, order: np.ndarray | None = None) -> None:
        """Solve the problem of the planes there are, and find others at its solution."""
        self.solve()
        square = float(self.here @ self.here)
        # Planes are left out where they have no share, so the dual never falls but by rounding.
        self.dual = max(self.dual, float(self.alpha @ self.b) - self.learner.l2 * square)
        self._leave_out()
        value, loss, mistakes = self.look()
        if value <= self.values[-1]:
            self.w = self.here
        self.count(loss, mistakes, min(value, self.values[-1]))

    def add(self, owner: np.ndarray, sizes: Any, columns: Any, entries: Any, b: Any) -> None:
        """Planes that were found."""
        self.owner = np.concatenate([self.owner, owner])
        self.idle = np.concatenate([self.idle, np.zeros(len(sizes), np.int64)])
        self.ptr = np.concatenate([self.ptr, self.ptr[-1] + np.cumsum(sizes)])
        self.columns = np.concatenate([self.columns, columns])
        self.entries = np.concatenate([self.entries, entries])
        self.b = np.concatenate([self.b, b])
        self.alpha = np.concatenate([self.alpha, np.zeros(len(sizes))])

    def _leave_out(self) -> None:
        """Planes that have had no share for long."""
        self.idle = np.where(self.alpha > 0.0, 0, self.idle + 1)
        rest = self.idle < _IDLE
        if rest.all():
            return
        sizes = np.diff(self.ptr)
        places = stretches(self.ptr[:-1][rest], sizes[rest])
        self.columns, self.entries = self.columns[places], self.entries[places]
        self.ptr = np.concatenate([[0], np.cumsum(sizes[rest])])
        for name in ("owner", "idle", "b", "alpha"):
            setattr(self, name, getattr(self, name)[rest])
        self.left_out(rest)

    def left_out(self, rest: np.ndarray) -> None:
        """Planes but for these are gone."""

    def heights(self, w: np.ndarray) -> np.ndarray:
        """Height of every plane at these weights."""
        return self.b - self.products(w)

    def products(self, vector: np.ndarray) -> np.ndarray:
        """Inner product of every plane's direction with a vector."""
        return self.sums(self.entries * vector[self.columns])

    def sums(self, entries: np.ndarray) -> np.ndarray:
        """Sum of each plane's entries."""
        m = len(self.b)
        return np.bincount(np.repeat(np.arange(m), np.diff(self.ptr)), entries, m)

    def arrays(self) -> dict[str, np.ndarray]:
        names = ("here", "owner", "idle", "ptr", "columns", "entries", "b", "alpha")
        return {**super().arrays(), **{f"planes.{n}": getattr(self, n) for n in names}}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        super().restore(arrays)
        n = self.objective.n
        self.here = finite_array(arrays, "planes.here", (n,))
        self.b = finite_array(arrays, "planes.b", (None,))
        m = self.b.size
        self.alpha = finite_array(arrays, "planes.alpha", (m,))
        self.entries = finite_array(arrays, "planes.entries", (None,))
        self.columns = column_array(arrays, "planes.columns", self.entries.shape, n)
        self.owner = column_array(arrays, "planes.owner", (m,), self.rows.weights.size)
        self.idle = column_array(arrays, "planes.idle", (m,), _IDLE)
        self.ptr = np.array(array_of(arrays, "planes.ptr", np.int64, (m + 1,)))
        if self.ptr[0] != 0 or self.ptr[-1] != self.entries.size or (np.diff(self.ptr) < 0).any():
            raise ModelError("planes do not lie one behind the other")
        if self.alpha.min(initial=0.0) < 0.0:
            raise ModelError("a plane has a negative share")


class OneSlack(PlaneTrainer):
    """Planes under the loss of all examples together."""

    def __init__(self, *given: Any) -> None:
        self.gram = np.zeros((0, 0))
        super().__init__(*given)

    def look(self) -> tuple[float, float, int]:
        value, slope = self.evaluate(self.here)
        direction = 2.0 * self.learner.l2 * self.here - slope
        columns = np.flatnonzero(direction)
        products = np.append(self.products(direction), direction @ direction)
        m = len(products)
        gram = np.zeros((m, m))
        gram[: m - 1, : m - 1] = self.gram
        gram[-1], gram[:, -1] = products, products
        self.gram = gram
        b = self.objective.loss + float(direction @ self.here)
        self.add(np.zeros(1, np.int64), [columns.size], columns, direction[columns], [b])
        return value, self.objective.loss, self.objective.mistakes

    def solve(self) -> None:
        # The plane of gold, flat and of height 0, is always there.
        m, curve = len(self.b), 1.0 / (2.0 * self.learner.l2)
        b, matrix = np.zeros(m + 1), np.zeros((m + 1, m + 1))
        b[1:], matrix[1:, 1:] = self.b, curve * self.gram
        shares = np.concatenate([[max(0.0, 1.0 - self.alpha.sum())], self.alpha])
        left = share_left(self.values[-1], self.dual) * self.values[-1]
        shares = on_simplex(b, matrix, shares, max(_EXACT * left, 1e-12 * self.values[0]))
        self.alpha = shares[1:]
        weights = np.repeat(self.alpha, np.diff(self.ptr)) * self.entries
        self.here = curve * np.bincount(self.columns, weights, self.objective.n)

    def left_out(self, rest: np.ndarray) -> None:
        self.gram = self.gram[rest][:, rest]

    def arrays(self) -> dict[str, np.ndarray]:
        return {**super().arrays(), "planes.gram": self.gram}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        super().restore(arrays)
        self.gram = finite_array(arrays, "planes.gram", (len(self.b), len(self.b)))


class ManySlacks(PlaneTrainer):
    """Planes under the loss of each example."""

    def __init__(self, structure: Any, learner: Any, rows: Any, *more: Any) -> None:
        self._row = new_gathered(n_weights(structure))
        self._work = structure.workspace(rows, learner.loss, np.float64)
        super().__init__(structure, learner, rows, *more)

    def look(self) -> tuple[float, float, int]:
        n = self.rows.weights.size
        self.evaluations += 1
        floor = np.zeros(n)
        np.maximum.at(floor, self.owner, self.heights(self.here))
        # What half of the gap allows for need not be cut off; planes that are known must not be.
        best = self.values[-1] if self.values else 0.0
        floor += 0.5 * self.learner.gap * best / n + 1e-12 * (1.0 + floor)
        sizes, b, totals = np.full(n, -1), np.zeros(n), np.zeros(2)
        columns, entries, done = [], [], 0
        room = 1 << 20
        while done < n:
            piece = np.zeros(room, np.int64), np.zeros(room), np.zeros(1, np.int64)
            before = done
            done = find_planes(
                *(self.structure, self.learner.loss, self.rows, self.here, done, self._work),
                *(floor, sizes, b, *piece, self._row, totals),
            )
            columns.append(piece[0][: piece[2][0]])
            entries.append(piece[1][: piece[2][0]])
            room *= 2 if done == before else 1
        owner = np.flatnonzero(sizes >= 0)
        self.add(*(owner, sizes[owner], np.concatenate(columns), np.concatenate(entries), b[owner]))
        loss = float(totals[0])
        return loss + self.learner.l2 * float(self.here @ self.here), loss, int(totals[1])

    def solve(self) -> None:
        order = np.argsort(self.owner, kind="stable")
        starts = np.searchsorted(self.owner[order], np.arange(self.rows.weights.size + 1))
        rest = 1.0 - np.bincount(self.owner, self.alpha, self.rows.weights.size)
        np.maximum(rest, 0.0, out=rest)
        squares, l2 = self.sums(self.entries**2), self.learner.l2
        weights = np.repeat(self.alpha, np.diff(self.ptr)) * self.entries
        self.here = np.bincount(self.columns, weights, self.objective.n) / (2.0 * l2)
        left = share_left(self.values[-1], self.dual) * self.values[-1]
        enough = max(_EXACT * left, 1e-12 * self.values[0])
        planes = (self.ptr, self.columns, self.entries, self.b, squares)
        for _ in range(_SWEEPS):
            left = sweep(starts, order, *planes, self.alpha, rest, self.here, l2, self._row.sums)
            if left <= enough:
                break


def on_simplex(
    b: np.ndarray, matrix: np.ndarray, shares: np.ndarray, enough: float, steps: int = _STEPS
) -> np.ndarray:
    """Maximise ``b.a - a.matrix.a / 2`` over shares ``a`` that are not negative and add up to 1.

    Two shares at a time change, those that promise most (Fan et al., 2005).

    Parameters
    ----------
    shares : float array
        Where to begin.
    enough : float
        Stop when less than this is left to gain, or after so many ``steps``.

    Examples
    --------
    >>> on_simplex(np.array([0.0, 1.0]), np.diag([0.0, 4.0]), np.array([1.0, 0.0]), 1e-9).tolist()
    [0.75, 0.25]
    """
    shares = shares / shares.sum()
    slope, diagonal = b - matrix @ shares, np.diag(matrix)
    for step in range(steps):
        if step % 1000 == 999:
            slope = b - matrix @ shares  # rounding adds up
        up = int(np.argmax(slope))
        if slope[up] - shares @ slope <= enough:
            break
        rise = slope[up] - slope
        curve = np.maximum(diagonal + diagonal[up] - 2.0 * matrix[up], 1e-300)
        with np.errstate(over="ignore"):
            reach = np.minimum(shares, rise / curve)
        gain = np.where(rise > 0.0, reach * (rise - 0.5 * reach * curve), 0.0)
        down = int(np.argmax(gain))
        if not gain[down] > 0.0:
            break
        move = float(reach[down])
        shares[up] += move
        shares[down] = shares[down] - move if move < shares[down] else 0.0
        slope -= move * (matrix[up] - matrix[down])
    return shares


@kernel
def find_planes(
    structure, loss, data, w, done, work, floor, sizes, b, columns, entries, used, row, totals
):
    """Planes of the examples from ``done`` on; returns the first that there is no room for."""
    for i in range(done, sizes.size):
        x = Example(data, i)
        structure.score(x, DenseWeights(w), work.theta)
        forced = loss.subgradient(structure, x, work) > 0
        if forced and work.loss[0] > floor[i]:
            structure.scatter(x, work.mu, row)
            count = row.filled[0]
            if used[0] + count > columns.size:
                empty(row)
                return i
            b[i] = work.loss[0]
            for k in range(count):
                j = row.touched[k]
                b[i] += w[j] * row.sums[j]
                columns[used[0] + k] = j
                entries[used[0] + k] = row.sums[j]
            used[0] += count
            sizes[i] = count
            empty(row)
        totals[0] += work.loss[0]
        totals[1] += work.gold_margin[0] <= 0.0 and data.weights[i] > 0.0
    return sizes.size


@kernel
def sweep(starts, order, ptr, columns, entries, b, squares, alpha, rest, w, l2, sums):
    """Let each example choose among its planes; returns what was left to gain on the way."""
    total = 0.0
    for i in range(starts.size - 1):
        for turn in range(starts[i + 1] - starts[i]):
            # The plane of gold, flat and of height 0, is number -1.
            up, top, down, low, mean = -1, 0.0, -1, np.inf, 0.0
            if rest[i] > 0.0:
                low = 0.0
            for p in range(starts[i], starts[i + 1]):
                k = order[p]
                height = b[k] - product(ptr, columns, entries, k, w)
                mean += alpha[k] * height
                if height > top:
                    up, top = k, height
                if alpha[k] > 0.0 and height < low:
                    down, low = k, height
            if turn == 0:
                total += top - mean
            if not low < top:
                break
            curve = 0.0
            if up >= 0:
                curve += squares[up]
            if down >= 0:
                curve += squares[down]
            if up >= 0 and down >= 0:
                spread(ptr, columns, entries, up, 1.0, sums)
                curve -= 2.0 * product(ptr, columns, entries, down, sums)
                for e in range(ptr[up], ptr[up + 1]):
                    sums[columns[e]] = 0.0
            most = alpha[down] if down >= 0 else rest[i]
            move = most
            if curve > 0.0:
                move = min(most, 2.0 * l2 * (top - low) / curve)
            left = most - move if move < most else 0.0
            if up >= 0:
                alpha[up] += move
                spread(ptr, columns, entries, up, move / (2.0 * l2), w)
            else:
                rest[i] += move
            if down >= 0:
                alpha[down] = left
                spread(ptr, columns, entries, down, -move / (2.0 * l2), w)
            else:
                rest[i] = left
    return total


@helper
def product(ptr, columns, entries, k, vector):
    """Inner product of a plane's direction with a vector."""
    total = 0.0
    for e in range(ptr[k], ptr[k + 1]):
        total += entries[e] * vector[columns[e]]
    return total


@helper
def spread(ptr, columns, entries, k, factor, vector):
    """Add so many times a plane's direction to a vector."""
    for e in range(ptr[k], ptr[k + 1]):
        vector[columns[e]] += factor * entries[e]
