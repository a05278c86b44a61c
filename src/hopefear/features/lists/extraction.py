"""Features of candidates: from the file, their tree, their score, and agreement with the list.

Agreement within a list is how much of a tree the other candidates have too. Choosing the candidate
of the highest expected overlap with all others is minimum Bayes risk decoding (Goodman, 1996;
Kumar and Byrne, 2004). Here the overlap is a feature beside others, and each bracket counts by its
label and its share of the probability.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import helper, kernel
from hopefear.core.hashing import find_numbered_slot
from hopefear.errors import HopefearError, ModelError
from hopefear.features.brackets import BracketTrees
from hopefear.features.lists.numbering import (
    SCORE,
    Keyed,
    Relative,
    key_of,
    keys_of,
    relative,
    score_keys,
    side_by_side,
)
from hopefear.features.trees import TreeFamilies, families, tree_keys, tree_names

# Shares of the probability at which brackets begin to be counted apart.
BINS = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98)
EXPECTED = "Consensus|F"
MOST_WORDS = 1 << 16  # a bracket is a label and two positions in one number of 64 bits


class _ConsensusTable(NamedTuple):
    """Brackets of one list."""

    slots: np.ndarray  # int32[power of two]: bracket + 1, 0 if empty
    spans: np.ndarray  # uint64[brackets + 1]: label, begin, end; behind them the one asked for
    share: np.ndarray  # float64[brackets]
    last: np.ndarray  # int32[brackets]: candidate that counted it last


def consensus_names(labels: list[str]) -> dict[int, str]:
    """Keys and names of all features about these labels."""
    names = [EXPECTED] + [f"Consensus|{label}|{k}" for label in labels for k in _bins()]
    return {key_of(name): name for name in names}


def consensus_keys(
    trees: BracketTrees, starts: np.ndarray, scores: np.ndarray, inverse_temperature: float
) -> Keyed:
    """Expected F against the list in percent, and brackets by label and share.

    Parameters
    ----------
    trees : Trees
        The candidates.
    starts : int64 array
        Where lists start among them.
    scores : float64 array
        Log scores of the generator.
    inverse_temperature : float
        Factor on the scores before they become probabilities. Smaller hears more candidates.
    """
    rows = trees.rows
    if rows.ends.max(initial=0) >= MOST_WORDS:
        raise HopefearError(
            f"consensus: a tree of {rows.ends.max():,} words is too long, the limit is "
            f"{MOST_WORDS - 1:,}; leave it out, or take features without consensus"
        )
    inner = np.diff(rows.starts)
    indptr = np.concatenate([[0], np.cumsum(inner + 1)])
    keys, values = np.zeros(indptr[-1], np.uint64), np.zeros(indptr[-1])
    used = np.zeros(len(inner), np.int64)
    names = np.zeros((len(trees.symbols), len(BINS) + 1), np.uint64)
    inner_labels = np.zeros(len(trees.symbols), bool)
    inner_labels[rows.labels[rows.words < 0]] = True
    for s in np.flatnonzero(inner_labels).tolist():
        names[s] = [key_of(f"Consensus|{trees.symbols[s]}|{k}") for k in _bins()]
    max_nodes = int(np.diff(rows.starts[starts]).max(initial=1))
    table = _ConsensusTable(
        np.zeros(1 << (2 * max_nodes).bit_length(), np.int32),
        np.zeros(max_nodes + 1, np.uint64),
        np.zeros(max_nodes),
        np.zeros(max_nodes, np.int32),
    )
    with np.errstate(over="ignore"):
        _consensus(
            *(
                rows,
                starts,
                scores,
                inverse_temperature,
                names,
                np.uint64(key_of(EXPECTED)),
                np.array(BINS),
            ),
            *(table, indptr, keys, values, used),
        )
    return _squeezed(indptr, used, keys, values)


def _bins() -> list[str]:
    edges = ["0", *(f"{b:g}" for b in BINS), "1"]
    return [f"{a}-{b}" for a, b in pairwise(edges)]


def _squeezed(indptr: np.ndarray, used: np.ndarray, keys: np.ndarray, values: np.ndarray) -> Keyed:
    rank = np.arange(len(keys)) - np.repeat(indptr[:-1], np.diff(indptr))
    first = rank < np.repeat(used, np.diff(indptr))
    return Keyed(np.concatenate([[0], np.cumsum(used)]), keys[first], values[first])


@kernel
def _consensus(
    rows,
    starts,
    scores,
    inverse_temperature,
    names,
    expected,
    bins,
    table,
    indptr,
    keys,
    values,
    used,
):
    for i in range(starts.size - 1):
        first, last = starts[i], starts[i + 1]
        top = scores[first:last].max()
        total = 0.0
        for c in range(first, last):
            total += math.exp(inverse_temperature * (scores[c] - top))
        n, mean = 0, 0.0
        for c in range(first, last):
            share = math.exp(inverse_temperature * (scores[c] - top)) / total
            n, brackets = hear(rows, c, share, table, n)
            mean += share * brackets
        for c in range(first, last):
            agreed, brackets, at = 0.0, 0, indptr[c]
            for k in range(rows.starts[c] + 1, rows.starts[c + 1]):
                if rows.words[k] >= 0:
                    continue
                q = table.share[table.slots[find(rows, k, table)] - 1]
                agreed += min(q, 1.0)
                brackets += 1
                keys[at] = names[rows.labels[k], np.searchsorted(bins, q)]
                values[at] = 1.0
                at += 1
            keys[at] = expected
            values[at] = 200.0 * agreed / max(1.0, brackets + mean)
            used[c] = at + 1 - indptr[c]
        table.slots[:] = 0


@helper
def find(rows, k, table):
    """Slot of the bracket of node ``k``."""
    span = (
        (np.uint64(rows.labels[k]) << np.uint64(32))
        | (np.uint64(rows.begins[k]) << np.uint64(16))
        | np.uint64(rows.ends[k])
    )
    mask = np.uint64(table.slots.size - 1)
    h = span * np.uint64(0x9E3779B97F4A7C15)
    slot = (h >> np.uint64(33)) & mask
    slot = find_numbered_slot(table.slots, table.spans, span, slot)
    if table.slots[slot] == 0:
        table.spans[-1] = span  # for the caller that takes the slot
    return slot


@helper
def hear(rows, c, share, table, n):
    """Add the share of a tree to its brackets; (brackets known, brackets of this tree)."""
    brackets = 0
    for k in range(rows.starts[c] + 1, rows.starts[c + 1]):
        if rows.words[k] >= 0:
            continue
        brackets += 1
        slot = find(rows, k, table)
        if table.slots[slot] == 0:
            table.spans[n] = table.spans[-1]
            table.share[n] = 0.0
            table.last[n] = -1
            n += 1
            table.slots[slot] = n
        b = table.slots[slot] - 1
        if table.last[b] != c:  # a bracket twice in one tree is one
            table.share[b] += share
            table.last[b] = c
    return n, brackets


SETS = ("named", "score", "consensus")


@dataclass(frozen=True)
class Extraction:
    """Selection of the kinds of features.

    Parameters
    ----------
    named : bool
        Features that the file names.
    score : bool
        The generator's score; otherwise it is ignored, or a fixed offset.
    trees : TreeFamilies, optional
        Features of trees.
    consensus : bool
        Agreement of a tree with the rest of its list.
    inverse_temperature : float
        Factor on the scores before agreement weighs candidates by their probability.

    Examples
    --------
    >>> Extraction.of("named,score").score
    True
    """

    named: bool = True
    score: bool = True
    trees: TreeFamilies | None = None
    consensus: bool = False
    inverse_temperature: float = 0.2

    @classmethod
    def of(cls, features: str) -> Extraction:
        """Read a comma list: ``named``, ``score``, ``consensus``, ``ptb``, and tree families."""
        requested = [part.strip() for part in features.split(",") if part.strip()]
        if not requested:
            raise HopefearError("features: expected a list such as named,score or ptb")
        tree_sets = ",".join(part for part in requested if part not in SETS)
        return cls(
            "named" in requested,
            "score" in requested or bool(tree_sets),
            families(tree_sets) if tree_sets else None,
            "consensus" in requested,
        )

    def extract(self, block: Any) -> Relative:
        """Features of a block of lists, relative within each."""
        parts: list[Keyed] = []
        if self.named and block.layout:
            n, width = block.dense.shape
            keys = np.tile(keys_of(block.names), n)
            values = block.dense.ravel().astype(np.float64)
            parts.append(Keyed(np.arange(n + 1) * width, keys, values))
        if self.named and block.sparse is not None:
            used = used_ids(block.sparse.ids)
            keys = keys_of(block.sparse.names[i] for i in used.tolist())
            entries = keys[np.searchsorted(used, block.sparse.ids)]
            values = block.sparse.values.astype(np.float64, copy=False)
            parts.append(Keyed(block.sparse.indptr, entries, values))
        if self.score:
            parts.append(score_keys(block.scores))
        if self.trees is not None:
            parts.append(tree_keys(self._trees(block), self.trees))
        if self.consensus:
            trees = self._trees(block)
            parts.append(
                consensus_keys(trees, block.starts, block.scores, self.inverse_temperature)
            )
        if not parts:
            zeros = np.zeros(block.n_candidates + 1, np.int64)
            parts.append(Keyed(zeros, np.empty(0, np.uint64), np.empty(0)))
        with np.errstate(over="ignore"):
            return side_by_side([relative(block.starts, part) for part in parts], block.starts)

    def names(self, block: Any, keys: np.ndarray) -> dict[int, str]:
        """Names of keys that occur in a block."""
        texts: dict[int, str] = {}
        if self.named:
            names = list(block.names)
            if block.sparse is not None:
                names += [block.sparse.names[i] for i in used_ids(block.sparse.ids).tolist()]
            texts |= zip(map(key_of, names), names, strict=True)
        texts[key_of(SCORE)] = SCORE
        if self.trees is not None:
            texts |= tree_names(self._trees(block), self.trees, keys)
        if self.consensus:
            trees = self._trees(block)
            inner = np.zeros(len(trees.symbols), bool)
            inner[trees.rows.labels[trees.rows.words < 0]] = True
            texts |= consensus_names([trees.symbols[s] for s in np.flatnonzero(inner).tolist()])
        return texts

    def _trees(self, block: Any) -> Any:
        if block.trees is None:
            raise HopefearError(
                f"{block.source}: these features are of trees, and the candidates are none; use "
                "features=named,score"
            )
        return block.trees

    def to_header(self) -> dict[str, Any]:
        return {
            "named": self.named,
            "score": self.score,
            "trees": None if self.trees is None else self.trees.to_header(),
            "consensus": self.consensus,
            "inverse_temperature": self.inverse_temperature,
        }

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> Extraction:
        """Reads the output of ``to_header``; raises ModelError for anything else."""
        try:
            flags = [header[key] for key in ("named", "score", "consensus")]
            trees, inverse_temperature = header["trees"], float(header["inverse_temperature"])
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"feature map: the extraction is incomplete: {error}") from error
        if not all(isinstance(flag, bool) for flag in flags) or not 0.0 < inverse_temperature < 1e6:
            raise ModelError("feature map: the extraction is not one of ours")
        families = None if trees is None else TreeFamilies.from_header(trees)
        return cls(flags[0], flags[1], families, flags[2], inverse_temperature)


def used_ids(ids: np.ndarray) -> np.ndarray:
    """Those that occur, in rising order: names of a whole file are not looked at block by block.

    >>> used_ids(np.array([7, 3, 7])).tolist()
    [3, 7]
    """
    ordered = np.sort(ids)
    return ordered[np.diff(ordered, prepend=-1) > 0]
