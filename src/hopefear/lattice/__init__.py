"""Exact searches and sums over label chains, as kernels for kernels.

Every function works on plain arrays laid out as ``shape.py`` says, allocates nothing and can be
called from compiled code. Higher scores come first, then the lexicographically smaller sequence.
"""

from hopefear.lattice.shape import (
    Scores,
    Shape,
    n_tables,
    new_scores,
    new_shape,
    offset,
    padded_width,
    path_score,
    states,
)
from hopefear.lattice.viterbi import viterbi

__all__ = [
    "Scores",
    "Shape",
    "n_tables",
    "new_scores",
    "new_shape",
    "offset",
    "padded_width",
    "path_score",
    "states",
    "viterbi",
]
