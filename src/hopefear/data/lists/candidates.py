"""Lists of candidates as files give them: texts, scores, references; features not numbered yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hopefear.features.brackets.rows import Trees


@dataclass(frozen=True)
class NamedValues:
    """Features that a file names: entry e of candidate c, ``indptr[c] <= e < indptr[c + 1]``.

    It is the feature ``names[ids[e]]`` with the value ``values[e]``; a candidate has a name once.
    """

    names: Sequence[str]
    indptr: np.ndarray  # int64[candidates + 1]
    ids: np.ndarray  # int32
    values: np.ndarray  # float64


@dataclass(frozen=True)
class CandidateLists:
    """Whole lists of candidates, in the order of the file.

    Parameters
    ----------
    ids : sequence of str
        Name of each list.
    starts : int64 array
        List i has the candidates ``starts[i] .. starts[i + 1] - 1``.
    texts : sequence of str
        Each candidate as the file writes it: a sentence, a bracketed tree, or nothing.
    scores : float64 array
        What the generator thought of each candidate; more is better. Zeros where nothing is said.
    costs : float64 array, optional
        How bad each candidate is against the reference; less is better, and only differences
        matter. None where nobody knows.
    counts : int64 array, optional
        Statistics of each candidate, one row each, that ``metric`` adds up and turns into scores.
    metric : str
        The metric behind ``costs`` and ``counts``.
    references : sequence of sequences of str, optional
        What each list should have held.
    named : NamedValues, optional
        Features that the file names.
    trees : Trees, optional
        The candidates, when they are trees.
    derivations : sequence, optional
        How each candidate came about, as the file says it: a string, or None.
    weights : float64 array, optional
        What each list counts in training; 1 for all where None.
    source, lines : str, int64 array
        The file, and the line on which each list begins, for messages.
    """

    ids: Sequence[str]
    starts: np.ndarray
    texts: Sequence[str]
    scores: np.ndarray
    costs: np.ndarray | None = None
    counts: np.ndarray | None = None
    metric: str = "cost"
    references: Sequence[Sequence[str]] | None = None
    named: NamedValues | None = None
    trees: Trees | None = None
    weights: np.ndarray | None = None
    source: str = "memory"
    lines: np.ndarray | None = field(default=None, repr=False)
    derivations: Sequence[str | None] | None = None

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def n_candidates(self) -> int:
        return int(self.starts[-1])

    def place(self, i: int) -> int:
        """Line of list ``i``; its number, from 1, where lines are not known."""
        return int(self.lines[i]) if self.lines is not None else i + 1
