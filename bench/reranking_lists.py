"""Lists for reranking.py: parses with their features, and synthetic ones of a given size.

Synthetic lists are for time and memory, not for learning: a candidate has so many of the features
of its list, chosen at random, with small whole numbers as values; costs go by hidden weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.arrays import Strings
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.dataset import ListDataset, ListRows, cheapest, encoded
from hopefear.data.lists.files import BLOCK_LISTS as BLOCK_LISTS
from hopefear.data.lists.files import read_lists
from hopefear.features.lists.extraction import Extraction
from hopefear.features.lists.list_features import ListFeatures
from hopefear.features.lists.numbering import NumberedLists, joined
from hopefear.tasks.rerank.prepare import dataset

FEATURES = "rich,consensus"
METRIC = "parseval"
FOLDER = "ptb-nbest"


class Size(NamedTuple):
    """Sizes of synthetic lists."""

    lists: int
    candidates: int  # in all
    per_candidate: int  # values
    per_list: int  # features
    features: int  # in all


PEER = Size(2_987, 148_656, 296, 1_500, 150_000)  # what BLLIP's estimators were timed on
LARGE = Size(36_000, 1_800_000, 200, 1_200, 1_000_000)  # WSJ sections 2-21


def read(
    folder: Path, part: str, block_lists: int = BLOCK_LISTS, max_lists: int | None = None
) -> Iterator[CandidateLists]:
    """Blocks of lists of parses; ``max_lists`` limits the blocks."""
    path = folder / f"{part}.jsonl.xz"
    return islice(read_lists(path, "ptb", require_costs=True, block_lists=block_lists), max_lists)


def numbered(blocks: Iterable[CandidateLists]) -> ListDataset:
    """Training lists, with a number for every feature."""
    return dataset(blocks, FEATURES, metric=METRIC)


def seen(blocks: CandidateLists | Iterable[CandidateLists], features: Any) -> ListDataset:
    """Other lists in the same features."""
    return encoded(blocks, features)


def synthetic(size: Size, seed: int = 1) -> ListDataset:
    """Lists of a size.

    Examples
    --------
    >>> data = synthetic(Size(3, 10, 4, 8, 20))
    >>> len(data), data.n_candidates, len(data.rows.values), len(data.rows.features)
    (3, 10, 40, 24)
    """
    random = np.random.default_rng(seed)
    truth = random.normal(size=size.features)
    starts = np.arange(size.lists + 1) * size.candidates // size.lists
    blocks, costs = [], np.empty(size.candidates)
    for first in range(0, size.lists, BLOCK_LISTS):
        bounds = starts[first : first + BLOCK_LISTS + 1]
        block = _block(random, size, bounds - bounds[0])
        blocks.append(block)
        costs[bounds[0] : bounds[-1]] = _costs(random, block, bounds - bounds[0], truth)
    lists_read = joined(blocks)
    keys = np.arange(1, size.features + 1, dtype=np.uint64)
    features = ListFeatures(
        Extraction.of("named,score"), keys, Strings.pack(f"f{j}" for j in range(size.features))
    )
    rows = ListRows(
        starts,
        *(
            lists_read.scopes,
            lists_read.features,
            lists_read.indptr,
            lists_read.columns,
            lists_read.values,
        ),
        *(np.zeros(size.candidates), costs, cheapest(costs, starts), np.ones(size.lists)),
    )
    return ListDataset(rows, features, source="synthetic")


def _block(random: np.random.Generator, size: Size, starts: np.ndarray) -> NumberedLists:
    lists, candidates = len(starts) - 1, int(starts[-1])
    features = np.concatenate([_scope(random, size) for _ in range(lists)])
    # One column from each of so many stretches of the list's features: no column comes twice.
    edges = np.arange(size.per_candidate + 1) * size.per_list // size.per_candidate
    shape = candidates, size.per_candidate
    columns = (edges[:-1] + random.random(shape, np.float32) * np.diff(edges)).astype(np.int32)
    values = random.integers(-2, 2, shape, np.int8)
    values += values >= 0  # a value of 0 would not be stored
    return NumberedLists(
        np.arange(lists + 1) * size.per_list,
        features,
        np.arange(candidates + 1) * size.per_candidate,
        np.minimum(columns, edges[1:] - 1, dtype=np.int32, casting="unsafe").ravel(),
        values.ravel().astype(np.float32),
    )


def _scope(random: np.random.Generator, size: Size) -> np.ndarray:
    """Different features, the first ones more often than the last, as in language."""
    features_drawn = np.empty(0, np.int32)
    while len(features_drawn) < size.per_list:
        drawn = size.features * random.random(2 * size.per_list) ** 3
        features_drawn = np.sort(np.concatenate([features_drawn, drawn.astype(np.int32)]))
        features_drawn = features_drawn[
            np.concatenate([[True], features_drawn[1:] != features_drawn[:-1]])
        ]
    return random.permutation(features_drawn)[: size.per_list]


def _costs(
    random: np.random.Generator, block: NumberedLists, starts: np.ndarray, truth: np.ndarray
) -> np.ndarray:
    """Returns the share of its list's range by which a candidate is worse than the best."""
    shift = np.repeat(block.scopes[:-1], block.indptr[starts[1:]] - block.indptr[starts[:-1]])
    parts = truth[block.features[block.columns + shift]] * block.values
    worth = np.add.reduceat(parts, block.indptr[:-1])
    worth += worth.std() * random.normal(size=len(worth))
    best, least = (f.reduceat(worth, starts[:-1]) for f in (np.maximum, np.minimum))
    lengths = np.diff(starts)
    return (np.repeat(best, lengths) - worth) / np.repeat(best - least, lengths)
