"""Exact searches and sums over label chains, as kernels for kernels.

Every function works on plain arrays laid out as ``shape.py`` says, allocates nothing and can be
called from compiled code, for sentences of at least one token. Scores, tables and spaces of a call
have one type, float32 or float64. Higher scores come first, then the lexicographically smaller
sequence.
"""

from hopefear.structures.lattice.astar import astar, rival
from hopefear.structures.lattice.beam import beam
from hopefear.structures.lattice.expected_cost import CostSums, cost_covariances, new_cost_sums
from hopefear.structures.lattice.lists import list_viterbi
from hopefear.structures.lattice.marginals import Forward, log_z, marginals, new_forward
from hopefear.structures.lattice.shape import (
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
from hopefear.structures.lattice.space import Space, new_space
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
