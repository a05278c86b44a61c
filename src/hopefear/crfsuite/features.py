"""The features that CRFsuite generates, and a batch CRF with no others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.data.sequences import Column
from hopefear.features.attributes import AttributeFeatures, AttributeRows, selected
from hopefear.structures.chain.likelihood import CRFObjective
from hopefear.structures.lattice import padded_width
from hopefear.training.batch import Batch


class Generated(NamedTuple):
    """Attributes that have a feature, and the features themselves."""

    attributes: AttributeFeatures
    marks: np.ndarray  # uint8[attributes + padded labels, padded labels]: 1 for a feature


def generated(
    rows: AttributeRows,
    labels: Column,
    *,
    min_freq: float = 0.0,
    possible_states: bool = False,
    possible_transitions: bool = False,
) -> Generated:
    """Returns the pairs of attribute and label, and of labels, that CRFsuite gives a weight.

    A pair is generated where it occurs, whatever the value of the attribute, and kept where its
    frequency is at least ``min_freq``: the sum of the values of the attribute, or the number of
    the transitions.

    Parameters
    ----------
    rows : AttributeRows
        Tokens, with their attributes of value 0.
    labels : Column
        The label of every token.
    min_freq : float
        Least frequency. A pair that does not occur has the frequency 0.
    possible_states, possible_transitions : bool
        Generate pairs of attribute and label, or of labels, that do not occur, too.

    Examples
    --------
    >>> rows = AttributeRows.of([[{"a": 1, "b": 0}, {"a": -1}]], exact=True)
    >>> features = generated(rows, Column.of(["A", "B"]))
    >>> features.attributes.names(range(2)), features.marks[:4, :2].tolist()
    (['a', 'b'], [[1, 0], [1, 0], [0, 0], [1, 0]])
    """
    n, codes = len(labels.strings), labels.ids
    width = padded_width(n)
    pairs = rows.ids * np.int64(width) + np.repeat(codes, np.diff(rows.indptr))
    pairs, numbers = np.unique(pairs, return_inverse=True)
    sums = np.bincount(numbers, rows.values if rows.values.size else None)
    mask = np.zeros((rows.strings.size, width), np.uint8)
    if possible_states and min_freq <= 0.0:
        mask[:, :n] = 1
    mask.reshape(-1)[pairs] = sums >= min_freq
    selected_rows: np.ndarray = mask.max(axis=1, initial=0) > 0
    inside = np.ones(len(codes), bool)
    inside[rows.starts[:-1][rows.starts[:-1] < len(codes)]] = False
    counts = np.zeros((width, width))
    np.add.at(counts, (codes[1:][inside[1:]], codes[:-1][inside[1:]]), 1.0)
    transitions = (counts > 0.0) & (counts >= min_freq)
    if possible_transitions and min_freq <= 0.0:
        transitions[:n, :n] = True
    mask = np.concatenate([mask[selected_rows], transitions.astype(np.uint8)])
    return Generated(AttributeFeatures(selected(rows.strings, selected_rows)), frozen(mask))


@dataclass(frozen=True)
class GeneratedCRF(Batch):
    """A CRF in batch with the features of :class:`Generated`, and what they depend on."""

    observed: bool | None = True
    min_freq: float = 0.0
    possible_states: bool = False
    possible_transitions: bool = False
    marks: Any = field(default=None, repr=False, compare=False)

    def parameters(self) -> dict[str, Any]:
        return {key: value for key, value in super().parameters().items() if key != "marks"}

    def objective(self, structure: Any, rows: Any, n_jobs: int = 1) -> Any:
        return CRFObjective(structure, rows, self.l2, self.marks, n_jobs)
