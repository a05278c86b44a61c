"""Climbing on lists with few features, one exact line search after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from hopefear.core.component import kernel
from hopefear.data.lists.dataset import ListDataset
from hopefear.errors import HopefearError
from hopefear.tasks.rerank.judging import counts_of
from hopefear.translation.tuners.envelope import NARROW, LineSearch, Step
from hopefear.translation.tuners.envelope_kernels import first_best
from hopefear.translation.tuners.problem import TuningProblem
from hopefear.translation.tuners.quick_worth import quick_worth

FEATURES = 1_000  # more need too many line searches; a search looks at all candidates
BLOCK = 1_024


class DenseLists:
    """Lists as a table of all features by all candidates, ready for line searches.

    Parameters
    ----------
    problem : TuningProblem
        At most 1,000 of its features may differ between candidates of a list.

    Attributes
    ----------
    active : int64 array
        The features that do; no weight of another one can change a choice.
    table : float32 array [active features, candidates]
        Their values.
    scale : float64 array
        How far candidates of a list usually lie apart in each of them (root mean square).
    """

    def __init__(self, problem: TuningProblem) -> None:
        rows = problem.data.rows
        self.active, self.table = dense_table(problem.data, len(problem.start))
        lists = np.diff(rows.starts)
        self.scale = np.array([_spread(values, rows.starts, lists) for values in self.table])
        self.offsets = np.asarray(rows.offsets, np.float64)
        self.fixed = bool(differing(self.offsets, rows.starts))  # scores that no weight scales
        self.lines = LineSearch(
            rows.starts, counts_of(problem.data, problem.metric), quick_worth(problem.metric)
        )

    def scores(self, w: np.ndarray) -> np.ndarray:
        """Scores of all candidates under weights of the active features."""
        found = self.offsets.copy()
        add_scores(self.table, np.asarray(w, np.float64), found)
        return found

    def slopes(self, direction: np.ndarray) -> np.ndarray:
        """What the scores gain along a direction."""
        found = np.zeros(len(self.offsets))
        add_scores(self.table, np.asarray(direction, np.float64), found)
        return found

    def worth(self, scores: np.ndarray) -> float:
        """What the best candidates are worth; of equals the first."""
        best = first_best(self.lines.starts, scores)
        sums = self.lines.counts[best].sum(axis=0, keepdims=True)
        return float(self.lines.worth(sums)[0])


class Climber:
    """A point on its way up, and what its line searches look for.

    Parameters
    ----------
    lists : DenseLists
        Where to search.
    w : float64 array
        Weights of the active features, to begin with.
    anchor, l2 : float64 array, float
        ``l2 * sum((w - anchor)**2)`` is taken off what weights are worth.
    smooth, window : str, int
        How `LineSearch.best` judges intervals.
    """

    def __init__(
        self,
        lists: DenseLists,
        w: np.ndarray,
        anchor: np.ndarray,
        l2: float = 0.0,
        smooth: str = "none",
        window: int = 3,
    ) -> None:
        self.lists, self.anchor, self.l2 = lists, anchor, l2
        self.smooth, self.window = smooth, window
        self.searches = 0
        self.move(w)

    def move(self, w: np.ndarray) -> None:
        """Be at these weights."""
        self.w = w
        self.scores = self.lists.scores(w)

    def value(self) -> float:
        """What the weights are worth, less the pull."""
        away = self.w - self.anchor
        return self.lists.worth(self.scores) - self.l2 * float(away @ away)

    def look(self, slopes: np.ndarray, direction: np.ndarray) -> Step:
        """The best step along a direction in which the scores have these slopes."""
        self.searches += 1
        away, scale = self.w - self.anchor, self.lists.scale
        pull = 2.0 * self.l2 * float(away @ direction), self.l2 * float(direction @ direction)
        # Weights are read in 32 bits later, which must not miss the interval.
        width = NARROW * float(np.abs(self.w) @ scale) / float(np.abs(direction) @ scale)
        return self.lists.lines.best(
            self.scores, slopes, smooth=self.smooth, window=self.window, pull=pull, width=width
        )

    def best_of(self, directions: Iterable[np.ndarray]) -> float:
        """Take the best step along any coordinate or one of ``directions``; returns its gain."""
        best, where = Step(0.0, 0.0, 0.0), None
        for direction, slopes in self._all(directions):
            step = self.look(slopes, direction)
            if step.worth - step.before > best.worth - best.before:
                best, where = step, direction
        if where is None:
            return 0.0
        self.move(self.w + best.t * where)
        return best.worth - best.before

    def each_of(self, directions: Iterable[np.ndarray]) -> float:
        """Take the best step along every coordinate and of ``directions``; returns their gain."""
        gain = 0.0
        for direction, slopes in self._all(directions):
            step = self.look(slopes, direction)
            if step.worth > step.before:
                self.w = self.w + step.t * direction
                self.scores += step.t * slopes
                gain += step.worth - step.before
        self.move(self.w)
        return gain

    def _all(self, directions: Iterable[np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for j, values in enumerate(self.lists.table):
            direction = np.zeros(len(self.w))
            direction[j] = 1.0
            yield direction, np.asarray(values, np.float64)
        for direction in directions:
            yield direction, self.lists.slopes(direction)


def dense_table(data: ListDataset, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Features in which candidates of a list differ, and their values, one row for each."""
    rows = data.rows
    used = np.zeros(size, np.bool_)
    used[rows.features] = True
    found = np.flatnonzero(used)
    if len(found) > FEATURES:
        raise HopefearError(
            f"mert searches along one feature after the other, and {data.source} has {len(found)} "
            f"of them, over the limit of {FEATURES}; tune those with pro or mira"
        )
    number = np.zeros(size, np.int64)
    number[found] = np.arange(len(found))
    table = np.zeros((len(found), data.n_candidates), np.float32)
    fill_table(
        rows.starts,
        rows.scopes,
        rows.features,
        rows.indptr,
        rows.columns,
        rows.values,
        number,
        table,
    )
    active = np.array([differing(values, rows.starts) for values in table], np.bool_)
    return found[active], table if active.all() else table[active]


def _spread(values: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> float:
    total = np.add.reduceat(np.asarray(values, np.float64), starts[:-1])
    squares = np.add.reduceat(np.asarray(values, np.float64) ** 2, starts[:-1])
    return float(np.sqrt(max(0.0, (squares - total**2 / lengths).sum()) / len(values)))


@kernel
def fill_table(starts, scopes, features, indptr, columns, values, number, table):
    """Spread sparse values over a table of features by candidates."""
    for i in range(starts.size - 1):
        for c in range(starts[i], starts[i + 1]):
            for e in range(indptr[c], indptr[c + 1]):
                table[number[features[scopes[i] + columns[e]]], c] = values[e]


@kernel
def add_scores(table, w, out):
    """Add ``w @ table`` to ``out``, in blocks that stay in the processor's cache."""
    for begin in range(0, out.size, BLOCK):
        end = min(begin + BLOCK, out.size)
        block = out[begin:end]
        for j in range(w.size):
            if w[j] != 0.0:
                values, by = table[j, begin:end], w[j]
                for c in range(block.size):
                    block[c] += by * values[c]


@kernel
def differing(values, starts):
    """Whether any list has two different values."""
    for i in range(starts.size - 1):
        for c in range(starts[i] + 1, starts[i + 1]):
            if values[c] != values[starts[i]]:
                return True
    return False
