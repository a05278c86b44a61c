"""Where the parts of a chain lie: sequences, edge tables, coordinates."""

from __future__ import annotations

import numpy as np

from hopefear.core.component import inlined, linked
from hopefear.structures.lattice.shape import Shape, offset


@inlined
def chain_shape(chain):
    """How the searches see a chain."""
    return Shape(chain.labels, chain.width, chain.order, chain.edge_attributes > 0)


@inlined
def length(x):
    """Tokens of a sequence."""
    return x.data.starts[x.i + 1] - x.data.starts[x.i]


@inlined
def cell(shape, t, labels, start):
    """Entry of ``Scores.edges`` for the labels at position ``t`` of a path and before it."""
    at = start + t
    state = np.int64(labels[at])
    oldest = np.int64(labels[at - 1])
    if shape.order == 2:
        state = state * shape.width + oldest
        oldest = np.int64(labels[at - 2]) if t > 1 else 0
    return offset(shape, t) + state * shape.width + oldest


@inlined
def table_size(chain):
    """Entries of one edge table: states times width."""
    return (chain.width if chain.order == 2 else 1) * chain.width * chain.width


@inlined
def tables_used(chain, T):
    """Edge tables a sequence of ``T`` tokens looks into."""
    if T < 2:
        return 0
    return T - 1 if chain.edge_attributes > 0 else min(T - 1, chain.order)


@inlined
def pair_base(chain):
    """First coordinate of the plain transitions."""
    return chain.attributes * chain.width


@inlined
def triple_base(chain):
    """First coordinate of the label triples."""
    return (chain.attributes + (1 + chain.edge_attributes) * chain.width) * chain.width


@linked
def gold_path(x, path):
    """The gold labels of a sequence, as a path."""
    start, T = x.data.starts[x.i], length(x)
    for t in range(T):
        path[t] = x.data.labels[start + t]
    return path[:T]


@linked
def is_gold(x, y):
    """Whether a path is the gold one."""
    start = x.data.starts[x.i]
    for t in range(length(x)):  # noqa: SIM110 - compiled
        if x.data.labels[start + t] != y[t]:
            return False
    return True


@linked
def mix_paths(x, y, taken, path):
    """Labels of ``y`` where taken, else gold's (mixed assignments, SWVP definition 1)."""
    start = x.data.starts[x.i]
    for t in range(length(x)):
        path[t] = y[t] if taken[t] else x.data.labels[start + t]
