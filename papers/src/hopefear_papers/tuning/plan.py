"""What is run: parts of the comparison, tuners and their grids, N-best lists, read or generated."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.dataset import ListDataset
from hopefear.translation.examples import translations
from hopefear.translation.features import learned
from hopefear.translation.lists import lists_in_memory
from hopefear.translation.recipes import TUNE_RECIPES
from hopefear.translation.task import start_weights
from hopefear.translation.tuners.problem import Event, TuningProblem
from hopefear_papers.frame import Entrant, grid_points
from hopefear_papers.translations import METRIC, read_translations

TIMES = "×"  # ends a parameter that is a multiple of what the data's scale suggests
TOWARD = ("hope", "oracle")
AWAY = ("fear", "prediction", "worst")
CORPORA: dict[str, dict[str, Any]] = {
    "sentence": {"background": "none"},
    "0.9": {"background": "hope", "memory": 0.9},
    "0.999": {"background": "hope", "memory": 0.999},
}


@dataclass(frozen=True)
class Entry(Entrant):
    """A tuner of the comparison, and the values its parameters may take."""

    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    once: bool = False  # with one seed: because nothing is drawn, or because it takes long

    def settings(self) -> list[dict[str, Any]]:
        """Every point of the grid, with the parameters that are fixed.

        >>> Entry("m", "MIRA", "mira", {"away": "fear"}, {"C": (0.1, 1.0)}).settings()
        [{'away': 'fear', 'C': 0.1}, {'away': 'fear', 'C': 1.0}]
        """
        return [{**self.fixed, **point} for point in grid_points(self.grid)]


@dataclass(frozen=True)
class Part:
    """Lists to tune on, features, and who tunes."""

    key: str
    title: str
    tuned_on: str
    groups: tuple[str, ...]
    entries: tuple[Entry, ...]
    min_count: int = 1
    held_out: bool = False  # whether val chooses parameters and passes


@dataclass(frozen=True)
class Plan:
    """How much is run."""

    parts: tuple[Part, ...]
    seeds: tuple[int, ...] = (1, 2, 3)
    replicates: int = 2000


def choice_key(toward: str, away: str, corpus: str) -> str:
    """Name of one of the choices of MIRA."""
    return f"mira-{toward}-{away}-{corpus}"


def choices(**more: Any) -> tuple[Entry, ...]:
    """MIRA with every choice of the slides, by BLEU of sentences and of a pseudo-corpus."""
    entries = []
    for toward, away, corpus in itertools.product(TOWARD, AWAY, CORPORA):
        key, title = choice_key(toward, away, corpus), f"MIRA, {toward}/{away}, {corpus}"
        params = {"toward": toward, "away": away, **CORPORA[corpus], **more}
        entries.append(Entry(key, title, "mira", params, {"C": (1e-5, 1e-4, 1e-3)}))
    return tuple(entries)


_ALWAYS_THE_SAME = ("risk", "expected-bleu", "ssvm-cp")  # nothing is drawn at random
VARIANTS = (
    Entry("mert-average", "mert, smooth=average", "mert", {"smooth": "average"}),
    Entry("mert-minimum", "mert, smooth=minimum", "mert", {"smooth": "minimum"}),
    Entry("mert-l2", "mert, l2=1", "mert", {"l2": 1.0}),
    Entry("pro-sentence", "pro, corpus=0", "pro", {"corpus": 0.0}),
    Entry("pro-arow", "pro, classifier=arow", "pro", {"classifier": "arow"}),
    Entry("pro-slow", "pro, Ψ=0.1, 10 rounds", "pro", {"interpolate": 0.1, "rounds": 10}),
)


def plain(names: tuple[str, ...] | None = None, **more: Any) -> tuple[Entry, ...]:
    """Tuners as they come, with their defaults; all of them unless named."""
    return tuple(
        Entry(name, name, name, _fitting(name, more), once=name in _ALWAYS_THE_SAME)
        for name in TUNE_RECIPES
        if names is None or name in names
    )


def _fitting(name: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Those parameters that the tuner has; PRO's epochs are those of its classifier."""
    known = TUNE_RECIPES[name].parameters()
    return {k: v for k, v in params.items() if k in known and (name, k) != ("pro", "epochs")}


def gridded(
    name: str, grid: Mapping[str, tuple[Any, ...]], once: bool = False, **params: Any
) -> Entry:
    """A tuner whose parameters are chosen on val."""
    return Entry(name, name, name, params, grid, once)


_PASSES = 15  # over the large set of lists
_PENALTIES = (10.0, 100.0, 1e3, 1e4)  # of learners that go to the optimum
_ON_TRAIN = (
    gridded("kbmira", {"C": (1e-3, 3e-3, 1e-2), "memory": (0.9, 0.999)}, price=3.0, epochs=_PASSES),
    gridded("mira", {"C": (1e-4, 3e-4, 1e-3)}, epochs=_PASSES),
    gridded("pro", {"l2": (0.5, 50.0), "corpus": (0.25, 0.75)}),
)
_SCALING = (
    gridded("ssvm", {"rate": ("1×", "6×", "20×")}, epochs=_PASSES),
    gridded("rampion", {"rate": ("1×", "3×", "30×")}, epochs=_PASSES),
    gridded("ssvm-cp", {"l2": _PENALTIES}, once=True, max_iter=60),
    gridded("ssvm-bcfw", {"l2": _PENALTIES}, max_iter=_PASSES),
    gridded("rampion-cccp", {"l2": _PENALTIES}, max_iter=8),
    gridded("adagrad", {"rate": ("0.3×", "1×", "3×")}, epochs=_PASSES),
    gridded("adagrad-risk", {"rate": (0.083, 0.25)}, epochs=_PASSES),
    gridded("arow", {"r": (100.0, 1000.0, 10_000.0)}, epochs=_PASSES),
    gridded("vrda", {"rate": ("0.3×", "3×"), "l1": (1e-6, 1e-5)}, epochs=_PASSES),
    gridded("maxent", {"rate": ("1×", "10×", "30×")}, epochs=_PASSES),
    *plain(("perceptron", "nbest-mira"), epochs=_PASSES),
    gridded("expected-bleu", {"l2": (0.0, 1e-4, 1e-3)}, once=True),
    gridded("risk", {}, once=True, max_iter=20),
    gridded("hols", {}, once=True, rounds=6),
    gridded("oro", {}, once=True, epochs=3),
    *plain(("mert",)),
)

_TRAINED = ("kbmira", "mira")
_DENSE = ("dense",)
_PAIRS = ("dense", "phrases")

QUICK = Plan(
    (
        Part(
            "dense",
            "Few features",
            "val",
            _DENSE,
            (
                *plain(("mert",), restarts=3),
                *plain(("kbmira", "mira", "ssvm"), epochs=3),
                *plain(("ssvm-bcfw", "rampion-cccp"), max_iter=3),
                *plain(("pro",), samples=50, pairs=5),
                Entry("pro-slow", "pro, slow", "pro", {"interpolate": 0.1, "rounds": 3}),
                *choices(epochs=2)[:4],
            ),
        ),
        Part(
            "many",
            "Hundreds of features",
            "val",
            _PAIRS,
            (*plain(("mert",), restarts=1, rounds=1), *plain(("kbmira",), epochs=3)),
            min_count=30,
        ),
        Part(
            "train",
            "Few features, more lists",
            "train10k",
            _DENSE,
            (*plain(_TRAINED, epochs=3), *plain(("pro",))),
            held_out=True,
        ),
        Part(
            "extended",
            "Thousands of features",
            "train10k",
            _PAIRS,
            (*plain(_TRAINED, epochs=3), gridded("pro", {"l2": (0.5, 5.0)})),
            held_out=True,
        ),
    ),
    seeds=(1, 2),
    replicates=100,
)
FULL = Plan(
    (
        Part("dense", "Few features", "val", _DENSE, (*plain(), *VARIANTS, *choices(epochs=30))),
        Part(
            "many",
            "Hundreds of features",
            "val",
            _PAIRS,
            (*plain(("mert",), restarts=2), *plain(("kbmira", "mira", "pro"))),
            min_count=10,
        ),
        Part(
            "train",
            "Few features, ten times the lists",
            "train10k",
            _DENSE,
            (*_ON_TRAIN, gridded("mert", {}, once=True, restarts=5, keep="dev")),
            held_out=True,
        ),
        Part(
            "extended",
            "Thousands of features",
            "train10k",
            _PAIRS,
            (*_ON_TRAIN, *_SCALING),
            min_count=20,
            held_out=True,
        ),
    )
)


TRAIN, VAL = "train10k", "val"
TESTS = {"test_2016": "test_2016_flickr", "test_2017": "test_2017_flickr"}
MADE_UP = {TRAIN: 120, VAL: 60, **dict.fromkeys(TESTS, 50)}  # lists of the quick version

Sets = dict[str, CandidateLists]


@dataclass(frozen=True)
class Watched(TuningProblem):
    """A tuning problem whose events tell of test lists too, which no tuner looks at."""

    tests: Mapping[str, ListDataset] = field(default_factory=dict)
    spent: list[float] = field(default_factory=list)  # CPU seconds of each look, to be taken off

    def report(self, weights: np.ndarray) -> Event:
        event = super().report(weights)
        start = time.process_time()
        event["tests"] = {name: self.score(weights, lists) for name, lists in self.tests.items()}
        self.spent.append(time.process_time() - start)
        return event


def problem_of(sets: Sets, part: Part) -> Watched:
    """What a part of the comparison tunes on, from the weights of an untuned system."""
    lists = sets[part.tuned_on]
    data = learned(lists, METRIC, part.groups, part.min_count)
    start = start_weights(lists, "moses").on(data.features)
    tests = {name: data.features.encode(sets[name], METRIC) for name in TESTS}
    held_out = data.features.encode(sets[VAL], METRIC) if part.held_out else None
    return Watched(data, METRIC, start, held_out, tests)


def find_sets(data: Path | None, quick: bool, tell: Callable[[str], None]) -> Sets:
    """Lists of all sets, by name; made-up ones if quick."""
    if quick:
        return {name: made_up(n, seed) for seed, (name, n) in enumerate(MADE_UP.items())}
    files = {TRAIN: TRAIN, VAL: VAL, **TESTS}
    lists = read_translations(data, files.values(), tell)
    return {name: lists[file] for name, file in files.items()}


def made_up(n: int, seed: int) -> CandidateLists:
    """Generated lists, every word of a candidate a phrase pair.

    >>> lists = made_up(2, 1)
    >>> len(lists), lists.phrases.names[0].count("|||")
    (2, 1)
    """
    lists, references = translations(n, seed=seed)
    with_pairs: list[list[dict[str, Any]]] = [
        [{**one, "phrases": [(f"s{w}", w) for w in one["text"].split()]} for one in candidates]
        for candidates in lists
    ]
    return lists_in_memory(with_pairs, references)
