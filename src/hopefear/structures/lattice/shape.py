"""What a label chain looks like in memory: states, nodes, edge tables, space for searches and sums.

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

from hopefear.core.component import helper


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


@helper(inline=True)
def contexts(shape):
    """K: how many older labels a state tells apart, in storage."""
    return 1 if shape.order == 1 else shape.width


@helper(inline=True)
def states(shape):
    """S: places for states at one position."""
    return shape.width if shape.order == 1 else shape.width * shape.width


@helper(inline=True)
def offset(shape, t):
    """Where the edge table of position ``t`` >= 1 begins."""
    table = t - 1 if shape.rich else min(t - 1, shape.order - 1)
    return table * states(shape) * shape.width


@helper(inline=True)
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


class Space(NamedTuple):
    """What :func:`astar`, :func:`list_viterbi`, :func:`beam` and :func:`rival` write to.

    Path k has the labels ``paths[k * length:k * length + T]`` and the score ``totals[k]``.
    """

    length: int  # of the longest sentence
    paths: np.ndarray  # int32[n * length]
    totals: np.ndarray  # float64[n]
    table: np.ndarray  # float[length * S]: best completions
    row: np.ndarray  # float[W]: values of the labels at one position
    second: np.ndarray  # int32[n * length]: label that would be next best at a place of a path
    loss: np.ndarray  # float64[n * length]: what it costs
    parent: np.ndarray  # int32[n]: path that path k follows ...
    split: np.ndarray  # int32[n]: ... up to this position
    label: np.ndarray  # int32[n]: label that it has there
    trail: np.ndarray  # int32[length * width]: parent * W + label of a partial sequence
    partial: np.ndarray  # float64[width]: scores of the partial sequences
    grown: np.ndarray  # float64[width * W]: scores with one more label
    heap: np.ndarray  # int32[width]: the best of them, worst first
    code: np.ndarray  # int32[(length + 1) * S * n]: label * n + rank behind a state
    scores: np.ndarray  # float[2 * S * n]: scores of the lists of two positions
    filled: np.ndarray  # int32[2 * S]: lengths of those lists


def new_space(
    shape: Shape,
    T_max: int,
    n: int = 1,
    width: int = 0,
    dtype: type = np.float32,
    lists: bool = False,
) -> Space:
    """Memory for sentences of up to ``T_max`` tokens.

    With z bytes to a score, every token costs ``z S + 16 n`` bytes, ``4 width`` more for beam
    search and ``4 S n`` more for list Viterbi: 0.2 kB for 22 labels, n = 5 and A*.

    Parameters
    ----------
    shape : Shape
        The chain.
    T_max : int
        Tokens of the longest sentence.
    n : int
        Most sequences that are asked for.
    width : int
        Most partial sequences that beam search keeps; 0 where it is not used.
    dtype : type
        Of the scores, float32 or float64.
    lists : bool
        Whether :func:`list_viterbi` is used.
    """
    S, W = states(shape), shape.width
    kept = S * n if lists else 0
    return Space(
        length=int(T_max),
        paths=np.zeros(n * T_max, np.int32),
        totals=np.zeros(n),
        table=np.zeros(T_max * S, dtype),
        row=np.zeros(W, dtype),
        second=np.zeros(n * T_max, np.int32),
        loss=np.zeros(n * T_max),
        parent=np.zeros(n, np.int32),
        split=np.zeros(n, np.int32),
        label=np.zeros(n, np.int32),
        trail=np.zeros(T_max * width, np.int32),
        partial=np.zeros(width),
        grown=np.zeros(width * W),
        heap=np.zeros(width, np.int32),
        code=np.zeros((T_max + 1) * kept, np.int32),
        scores=np.zeros(2 * kept, dtype),
        filled=np.zeros(2 * S, np.int32),
    )


class Forward(NamedTuple):
    """Working memory of the sums."""

    nodes: np.ndarray  # float64[length * W]: exponentials
    edges: np.ndarray  # float64[n_tables * S * W]: exponentials
    turned: np.ndarray  # float64[S * W]: the present table with its newest label last
    alpha: np.ndarray  # float64[length * S]
    x: np.ndarray  # float64[length * S]
    z: np.ndarray  # float64[length]
    beta: np.ndarray  # float64[S]
    row: np.ndarray  # float64[W]


def new_forward(shape: Shape, T_max: int) -> Forward:
    """Memory for the sums over sentences of up to ``T_max`` tokens.

    Every token costs ``8 W + 16 S`` bytes and, where each has an edge table of its own,
    ``8 S W`` more: 0.6 kB for 22 labels, 5 kB with such tables.
    """
    S, W = states(shape), shape.width
    return Forward(
        nodes=np.zeros(T_max * W),
        edges=np.zeros(n_tables(shape, T_max) * S * W),
        turned=np.zeros(S * W),
        alpha=np.zeros(T_max * S),
        x=np.zeros(T_max * S),
        z=np.zeros(T_max),
        beta=np.zeros(S),
        row=np.zeros(W),
    )


class CostSums(NamedTuple):
    """Working memory of expected costs."""

    scores: Scores  # scores of another distribution over the same sequences
    prices: np.ndarray  # float64[length * W]: cost of a label at a position
    before: np.ndarray  # float64[length * S]: a
    after: np.ndarray  # float64[length * S]: b


def new_cost_sums(shape: Shape, T_max: int, dtype: type = np.float32) -> CostSums:
    """Memory for sentences of up to ``T_max`` tokens; 0 where costs are not asked for."""
    S, W = states(shape), shape.width
    tables = n_tables(shape, T_max) if T_max else 0
    return CostSums(
        Scores(np.zeros(T_max * W, dtype), np.zeros(tables * S * W, dtype)),
        np.zeros(T_max * W),
        np.zeros(T_max * S),
        np.zeros(T_max * S),
    )
