"""Working memory of the searches, allocated once and used for every sentence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.structures.lattice.shape import Shape, states


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
