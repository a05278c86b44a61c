"""The data: N-best lists of translations, read once, and tuning problems that look at tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hopefear.data.lists.dataset import ListDataset
from hopefear.data.moses.lists import TuningLists
from hopefear.experiments.common.translations import METRIC, read_translations
from hopefear.experiments.tuning.plan import Part
from hopefear.translation.examples import translations
from hopefear.translation.features import learned
from hopefear.translation.lists import lists_in_memory
from hopefear.translation.task import start_weights
from hopefear.translation.tuners.problem import Event, TuningProblem

TRAIN, VAL = "train10k", "val"
TESTS = {"test_2016": "test_2016_flickr", "test_2017": "test_2017_flickr"}
MADE_UP = {TRAIN: 120, VAL: 60, **dict.fromkeys(TESTS, 50)}  # lists of the quick version

Sets = dict[str, TuningLists]


@dataclass(frozen=True)
class Watched(TuningProblem):
    """A tuning problem whose events tell of test lists too, which no tuner looks at.

    Parameters
    ----------
    tests : mapping of str to ListDataset
        Test lists in the features of the problem.
    spent : list of float
        CPU seconds of each look at them, so that they can be taken off.
    """

    tests: Mapping[str, ListDataset] = field(default_factory=dict)
    spent: list[float] = field(default_factory=list)

    def report(self, weights: np.ndarray) -> Event:
        found = super().report(weights)
        began = time.process_time()
        found["tests"] = {name: self.score(weights, lists) for name, lists in self.tests.items()}
        self.spent.append(time.process_time() - began)
        return found


def problem_of(sets: Sets, part: Part) -> Watched:
    """What a part of the comparison tunes on, from the weights of an untuned system."""
    lists = sets[part.tuned_on]
    data = learned(lists, METRIC, part.groups, part.min_count)
    start = start_weights(lists, "moses").on(data.features)
    others = {
        name: data.features.encode(sets[name], METRIC)
        for name in (VAL, *TESTS)
        if name != part.tuned_on
    }
    return Watched(
        data,
        METRIC,
        start,
        others.pop(VAL) if part.held_out else None,
        {name: others[name] for name in TESTS},
    )


def find_sets(data: Path | None, quick: bool, tell: Callable[[str], None]) -> Sets:
    """Lists of all sets, by name; made-up ones if quick."""
    if quick:
        return {name: made_up(n, seed) for seed, (name, n) in enumerate(MADE_UP.items())}
    files = {TRAIN: TRAIN, VAL: VAL, **TESTS}
    found = read_translations(data, files.values(), tell)
    return {name: found[file] for name, file in files.items()}


def made_up(n: int, seed: int) -> TuningLists:
    """Generated lists, every word of a candidate a phrase pair.

    >>> lists = made_up(2, 1)
    >>> len(lists), lists.phrases.names.get(0).count("|||")
    (2, 1)
    """
    lists, references = translations(n, seed=seed)
    with_pairs: list[list[dict[str, Any]]] = [
        [{**one, "phrases": [(f"s{w}", w) for w in one["text"].split()]} for one in found]
        for found in lists
    ]
    return lists_in_memory(with_pairs, references)
