"""Hold all parts of this folder to the contracts of the library.

Run: NUMBA_DISABLE_JIT=1 python examples/extending/contracts.py
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np

from hopefear import testing
from hopefear.averaging.averaged import Averaged
from hopefear.costs.hamming import Hamming
from hopefear.losses.structured_hinge import StructuredHinge

sys.path.insert(0, str(Path(__file__).parent))
from averaging import TailAveraged
from loss import Savage
from rule import SignDescent
from structure import Subset, SubsetRows


class DenseSignDescent(testing.DenseRule):
    """The formula, on all weights at every tick."""

    def step(self, g, value, margin):
        self.w = testing.soft(self.w + self.rate * np.sign(g), self.rate * self.l1)


@testing.outputs_of.register(Subset)
def subset_outputs(structure, rows, i):
    """All choices of as many items as gold has, each with its features."""
    first, last = int(rows.starts[i]), int(rows.starts[i + 1])
    labels = tuple(rows.labels[first:last].tolist())
    choices = itertools.combinations(range(last - first), sum(labels))
    ys = [tuple(int(t in chosen) for t in range(last - first)) for chosen in choices]
    items = np.zeros((last - first, structure.features))
    for t in range(last - first):
        for p in range(rows.indptr[first + t], rows.indptr[first + t + 1]):
            items[t, rows.indices[p]] += rows.values[p]

    def price(cost):
        return np.array([sum(map(cost.label_cost, labels, y)) for y in ys])

    return testing.Outputs(ys, np.array(ys) @ items, np.array([y == labels for y in ys]), price)


@testing.tiny_rows.register(Subset)
def tiny_subsets(structure, seed=0):
    """Six examples of up to five items; one of them has no rival."""
    rng = np.random.default_rng(seed)
    sizes, chosen = (3, 4, 5, 2, 4, 3), (1, 2, 3, 2, 1, 2)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    items = rng.normal(size=(starts[-1], structure.features))
    items *= rng.random(items.shape) < 0.6
    rows, columns = np.nonzero(items)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(items)))])
    labels = [rng.permutation([1] * k + [0] * (n - k)) for n, k in zip(sizes, chosen, strict=True)]
    return SubsetRows(
        starts,
        indptr,
        columns.astype(np.int32),
        items[rows, columns],
        np.concatenate(labels).astype(np.int32),
        np.ones(len(sizes)),
    )


def main() -> None:
    rule = SignDescent(rate=0.3, l1=0.0217)
    testing.check_rule(rule, dense=lambda n: DenseSignDescent(n, **rule._asdict()))
    testing.check_loss(Savage(width=0.7))
    testing.check_averaging(TailAveraged(skip=5), kept=lambda snapshots: snapshots[5:].mean(axis=0))
    testing.check_structure(Subset(4))
    for loss in (Savage(), StructuredHinge(Hamming(0.7))):
        testing.check_loss(loss, Subset(4))
        for part in testing.registered_parts("rule"):
            reason = testing.check_learner(loss, part.part, Averaged(), Subset(4))
            print(f"{type(loss).__name__} x {part.name} on Subset: {reason or 'as its oracle'}")


if __name__ == "__main__":
    main()
