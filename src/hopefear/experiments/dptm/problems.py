"""The data: lists of translations with phrase pairs, read once, or generated ones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hopefear.core.arrays import Strings, frozen
from hopefear.data.lists.dataset import ListDataset, fixed_scores
from hopefear.data.moses.lists import NamedEntries, TuningLists
from hopefear.experiments.common.translations import METRIC, read_translations
from hopefear.metrics.lists.bleu import COLUMNS
from hopefear.translation.phrase_model import phrase_data
from hopefear.translation.task import start_weights
from hopefear.translation.tuners.corpus import quick_worth
from hopefear.translation.tuners.envelope import LineSearch

TRAIN, DEV, TESTS = "train10k", "val", ("test_2016_flickr", "test_2017_flickr")
# Neighbours on either side that smooth what a weight of the model is worth on development lists.
WINDOW = 10


@dataclass(frozen=True)
class Part:
    """Lists that are chosen from."""

    lists: TuningLists
    pairs: ListDataset  # the same in the phrase pairs of the training lists
    b: np.ndarray  # score of the baseline, relative to the best of each list

    @property
    def counts(self) -> np.ndarray:
        assert self.lists.counts is not None
        return self.lists.counts

    def chosen(self, positions: np.ndarray) -> np.ndarray:
        """Counts of one candidate of each list (int64[lists, S])."""
        return self.counts[self.lists.starts[:-1] + positions].astype(np.int64)


@dataclass(frozen=True)
class Problem:
    """All that is learnt from, chosen on and tested on."""

    train: ListDataset
    dev: Part
    tests: dict[str, Part]
    start: np.ndarray  # the decoder's weights of the dense features
    search: LineSearch  # on the development lists
    digest: str

    @property
    def size(self) -> int:
        """Phrase pairs that may have a weight."""
        return int(self.train.features.size)


def label(name: str) -> str:
    """A test set in few letters.

    >>> label("test_2016_flickr")
    'test_2016'
    """
    return name.removesuffix("_flickr")


def bleu(counts: np.ndarray) -> float:
    """BLEU of chosen candidates, in percent, from their counts ``[lists, S]``."""
    return float(METRIC.scores(counts.sum(axis=0))["bleu"])


def find_problem(data: Path | None, quick: bool, tell: Callable[[str], None]) -> Problem:
    """The lists: below the folder given, HOPEFEAR_DATA or ``../shared/data``, or generated."""
    if quick:
        return made_up()
    return assembled(read_translations(data, (TRAIN, DEV, *TESTS), tell))


def assembled(read_lists: dict[str, TuningLists]) -> Problem:
    """A problem from the lists of training, development and tests, by name."""
    train, dev, *tests = read_lists.values()
    data = phrase_data(train)
    parts = [_part(lists, data) for lists in (dev, *tests)]
    digest = hashlib.sha256(data.digest.encode())
    for part in parts:
        for array in (part.b, part.counts, part.lists.dense):
            digest.update(np.ascontiguousarray(array).data)
        digest.update(part.pairs.digest.encode())
    return Problem(
        data,
        parts[0],
        dict(zip(list(read_lists)[2:], parts[1:], strict=True)),
        start_weights(dev).dense,
        LineSearch(dev.starts, parts[0].counts, quick_worth(METRIC)),
        digest.hexdigest(),
    )


def _part(lists: TuningLists, data: ListDataset) -> Part:
    b = np.asarray(fixed_scores(lists.scores.astype(np.float64), lists.starts), np.float64)
    return Part(lists, data.features.encode(lists, METRIC), b)


def made_up(sizes: tuple[int, ...] = (300, 120, 100, 100), seed: int = 1) -> Problem:
    """Generated lists, in which some phrase pairs are good and some are not."""
    rng = np.random.default_rng(seed)
    good = rng.normal(size=150) * (rng.random(150) < 0.4)
    names = (TRAIN, DEV, *TESTS)
    return assembled(
        {name: _generated(rng, n, good, name) for name, n in zip(names, sizes, strict=True)}
    )


def _generated(rng: np.random.Generator, n: int, good: np.ndarray, name: str) -> TuningLists:
    """Ten candidates a list; the share of matched words follows dense features and pairs."""
    per, words, pairs = 10, 12, 4
    size = n * per
    dense = rng.normal(size=(size, 3)).astype(np.float32)
    ids = rng.random((size, len(good))).argpartition(pairs, axis=1)[:, :pairs]  # all different
    worth = dense @ [0.5, 0.3, 0.0] + 0.6 * good[ids].sum(axis=1) + 0.5 * rng.normal(size=size)
    hit = np.rint(words / (1.0 + np.exp(-worth))).astype(np.int64)
    orders = np.arange(4)
    matched = np.maximum(0, hit[:, None] - 2 * orders)
    total = np.broadcast_to(words - orders, (size, 4))
    ends = np.full((size, 2), words)
    score = dense @ np.array([0.6, 0.2, 0.2], np.float32)
    starts = np.arange(0, size + 1, per)
    order = np.lexsort((-score, np.repeat(np.arange(n), per)))  # best first, as decoders write
    table: Any = NamedEntries(
        Strings.pack([f"{k} ||| {k}" for k in range(len(good))]),
        frozen(np.arange(0, size * pairs + 1, pairs)),
        frozen(ids[order].ravel().astype(np.int32)),
    )
    return TuningLists(
        frozen(np.arange(n)),
        frozen(starts),
        (("LM0", 1), ("TM0", 2)),
        frozen(dense[order]),
        frozen(score[order]),
        frozen(np.hstack([matched, total, ends])[order].astype(np.int32)),
        "bleu",
        COLUMNS,
        phrases=table,
        source=f"generated {name}",
    )
