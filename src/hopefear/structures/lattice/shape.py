"""What a label chain looks like in memory: states, nodes and edge tables.

Labels are numbered 0 .. L - 1 and stored W apart. A state is what the next label can see: the last
label (first order) or the last two (second order). With K = 1 or W contexts for a label there are
S = K * W places for states:

    state at t      newest * K + older        older = 0 at t = 0, where it stands for "none"
    nodes           [t * W + label]           score of a label at a position
    edges           [offset(t) + u * W + i]   score of entering state u at t >= 1 from the state
                                              (u % K) * W + i; i is the oldest label of the three
                                              (second order, 0 at t = 1) or of the two

Places of labels >= L are padding: they may hold any finite number and have no influence. Minus
infinity forbids a label or a transition.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.component import inlined


class Shape(NamedTuple):
    """Sizes of a chain; see :func:`new_shape`."""

    labels: int  # L
    width: int  # W, storage for L labels
    order: int  # labels that the next one depends on, 1 or 2
    rich: bool  # every position has an edge table of its own


class Scores(NamedTuple):
    """Scores of the parts of one sentence, or what is expected of them."""

    nodes: np.ndarray  # float[T * W]
    edges: np.ndarray  # float[n_tables * S * W]


def new_shape(labels: int, order: int = 1, rich: bool = False) -> Shape:
    """The shape of a chain, with the usual padding.

    Parameters
    ----------
    labels : int
        Number of labels.
    order : int
        How many labels the next one depends on, 1 or 2. Time and memory grow by a factor of
        ``labels`` from 1 to 2.
    rich : bool
        Whether every position has transition scores of its own.

    Examples
    --------
    >>> new_shape(22)
    Shape(labels=22, width=24, order=1, rich=False)
    """
    return Shape(int(labels), padded_width(labels), int(order), bool(rich))


def padded_width(labels: int) -> int:
    """Storage for this many labels: whole groups of eight, or four for up to four labels.

    >>> padded_width(3), padded_width(8), padded_width(22)
    (4, 8, 24)
    """
    return 4 if labels <= 4 else (labels + 7) // 8 * 8


def n_tables(shape: Shape, length: int) -> int:
    """Edge tables that a sentence of this length needs.

    >>> n_tables(new_shape(3, order=2), 10), n_tables(new_shape(3, rich=True), 10)
    (2, 9)
    """
    return max(length - 1, 1) if shape.rich else shape.order


def new_scores(shape: Shape, length: int, dtype: type = np.float32) -> Scores:
    """Zeros for sentences of up to ``length`` tokens."""
    table = states(shape) * shape.width
    return Scores(
        np.zeros(length * shape.width, dtype), np.zeros(n_tables(shape, length) * table, dtype)
    )


@inlined
def contexts(shape):
    """K: how many older labels a state tells apart, in storage."""
    return 1 if shape.order == 1 else shape.width


@inlined
def states(shape):
    """S: places for states at one position."""
    return shape.width if shape.order == 1 else shape.width * shape.width


@inlined
def offset(shape, t):
    """Where the edge table of position ``t`` >= 1 begins."""
    table = t - 1 if shape.rich else min(t - 1, shape.order - 1)
    return table * states(shape) * shape.width


@inlined
def path_score(shape, T, scores, y, start=0):
    """Score of the labels ``y[start:start + T]``, in float64."""
    W, K = shape.width, contexts(shape)
    nodes, edges = scores.nodes, scores.edges
    total = np.float64(nodes[y[start]])
    older, oldest = np.int64(y[start]), 0
    for t in range(1, T):
        label = np.int64(y[start + t])
        # First order knows one earlier label, which is then the oldest.
        u = label * K + (older if K > 1 else 0)
        i = oldest if K > 1 else older
        total += np.float64(nodes[t * W + label])
        total += np.float64(edges[offset(shape, t) + u * W + i])
        older, oldest = label, older
    return total
