"""Exact searches and sums over label chains, as kernels for kernels.

Every function works on plain arrays laid out as ``shape.py`` says, allocates nothing and can be
called from compiled code, for sentences of at least one token. Scores, tables and spaces of a call
have one type, float32 or float64. Higher scores come first, then the lexicographically smaller
sequence.
"""

from hopefear.structures.lattice.astar import astar, rival
from hopefear.structures.lattice.beam import beam
from hopefear.structures.lattice.expected_cost import cost_covariances
from hopefear.structures.lattice.lists import list_viterbi
from hopefear.structures.lattice.marginals import log_z, marginals
from hopefear.structures.lattice.shape import (
    CostSums,
    Forward,
    Scores,
    Shape,
    Space,
    n_tables,
    new_cost_sums,
    new_forward,
    new_scores,
    new_shape,
    new_space,
    offset,
    padded_width,
    path_score,
    states,
)
from hopefear.structures.lattice.viterbi import viterbi

__all__ = [
    "CostSums",
    "Forward",
    "Scores",
    "Shape",
    "Space",
    "astar",
    "beam",
    "cost_covariances",
    "list_viterbi",
    "log_z",
    "marginals",
    "n_tables",
    "new_cost_sums",
    "new_forward",
    "new_scores",
    "new_shape",
    "new_space",
    "offset",
    "padded_width",
    "path_score",
    "rival",
    "states",
    "viterbi",
]
