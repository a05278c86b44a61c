"""What is run: losses, rules and their grids, and the lists of translations, read or generated."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.data.lists.candidates import CandidateLists, NamedEntries
from hopefear.data.lists.dataset import ListDataset, fixed_scores
from hopefear.translation.phrase_model import phrase_data
from hopefear.translation.task import start_weights
from hopefear.translation.tuners.corpus import quick_worth
from hopefear.translation.tuners.envelope import LineSearch
from hopefear_papers.translations import METRIC, read_translations

LOSSES = {"risk": "Bayes risk", "hinge": "hinge", "logistic": "logistic", "log": "log"}
# The rate of truncated gradient stays (Langford, Li and Zhang, 2009), or falls as eqs. 12 to 14 of
# the paper have it.
TG = {"tg": "constant rate", "tg-printed": "rate η′/√k"}
RULES = {"sgd": "SGD", "vrda": "VRDA", **{tg: f"TG, {rate}" for tg, rate in TG.items()}}
TABLE = tuple(f"{rule}-{loss}" for loss in LOSSES for rule in ("sgd", "vrda"))
GOAL = 0.10  # share of the weights that should be enough


def at(l1: float) -> str:
    """The choice at a strength."""
    return f"vrda-risk, λ {l1:g}"


@dataclass(frozen=True)
class Spec:
    """A rule with a loss, and the values its parameters may take."""

    key: str
    grid: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def rule(self) -> str:
        return self.key.rpartition("-")[0]

    @property
    def loss(self) -> str:
        return self.key.rpartition("-")[2]

    @property
    def title(self) -> str:
        """As tables have it.

        >>> Spec("vrda-risk").title, Spec("tg-printed-risk").title
        ('VRDA, Bayes risk', 'TG, rate η′/√k, Bayes risk')
        """
        return f"{self.rule_title}, {LOSSES[self.loss]}"

    @property
    def rule_title(self) -> str:
        return RULES[self.rule]


@dataclass(frozen=True)
class Plan:
    """How much is run."""

    table: tuple[Spec, ...]  # Table 3: no regularisation
    sweeps: tuple[Spec, ...]  # Bayes risk with an L1 penalty: VRDA and TG, with either rate
    strengths: tuple[float, ...]  # Table 4, from 0
    levels: tuple[int, ...] = (100, 300, 1_000, 3_000, 10_000, 50_000)  # Figures 7 and 8
    sparse_levels: int = 3_000  # up to here models count as sparse
    marks: tuple[int, ...] = (1, 2, 5, 10, 20)  # passes to choose from
    tuning_seeds: tuple[int, ...] = (1, 2)
    sweep_seeds: tuple[int, ...] = (1,)
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)  # of the order of lists, and of MERT
    level_seeds: tuple[int, ...] = (1, 2, 3)
    restarts: int = 5  # of MERT
    replicates: int = 2000

    @property
    def main(self) -> tuple[str, ...]:
        """Choices that are tested with all seeds."""
        return (*TABLE, *(at(l1) for l1 in self.strengths))


def _table(sharps: tuple[float, ...], rates: Mapping[str, tuple[float, ...]]) -> tuple[Spec, ...]:
    return tuple(Spec(key, {"inverse_temperature": sharps, "rate": rates[key]}) for key in TABLE)


def _truncated(
    l1: tuple[float, ...],
    inverse_temperature: tuple[float, ...],
    rates: tuple[float, ...],
    first_rates: tuple[float, ...],
    every: tuple[float, ...],
) -> tuple[Spec, ...]:
    """Both rates; one that falls begins higher."""
    return tuple(
        Spec(
            f"{tg}-risk",
            {"l1": l1, "inverse_temperature": inverse_temperature, "rate": some, "every": every},
        )
        for tg, some in zip(TG, (rates, first_rates), strict=True)
    )


_SMALL, _MIDDLE = (0.001, 0.01, 0.1), (0.03, 0.3, 3.0)
_RATES: dict[str, tuple[float, ...]] = {
    "sgd-risk": (1.0, 10.0, 100.0),
    "vrda-risk": (1.0, 10.0, 1e3, 1e4),
    **{f"sgd-{loss}": _SMALL for loss in LOSSES if loss != "risk"},
    **{f"vrda-{loss}": _MIDDLE for loss in LOSSES if loss != "risk"},
}
_STRENGTHS = (0.0, 1e-7, 1e-6, 3e-6, 1e-5, 3e-5, 1e-4)
_WIDE = (3.0, 10.0, 30.0)

FULL = Plan(
    _table((1.0, *_WIDE), _RATES),
    (
        Spec(
            "vrda-risk", {"l1": _STRENGTHS, "inverse_temperature": _WIDE, "rate": (10.0, 1e3, 1e4)}
        ),
        *_truncated(
            (0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3), _WIDE, (1.0, 100.0), (10.0, 100.0, 1e3), (10, 100)
        ),
    ),
    _STRENGTHS,
)

QUICK = Plan(
    _table((1.0, 10.0), {key: rates[1:2] for key, rates in _RATES.items()}),
    (
        Spec(
            "vrda-risk", {"l1": (0.0, 1e-4, 1e-3), "inverse_temperature": (10.0,), "rate": (10.0,)}
        ),
        *_truncated((0.0, 1e-4, 1e-3), (10.0,), (1.0,), (10.0,), (10,)),
    ),
    (0.0, 1e-4, 1e-3),
    levels=(10, 100),
    sparse_levels=10,
    marks=(1, 3),
    tuning_seeds=(1,),
    seeds=(1, 2),
    level_seeds=(1,),
    restarts=2,
    replicates=200,
)


TRAIN, DEV, TESTS = "train10k", "val", ("test_2016_flickr", "test_2017_flickr")
# Neighbours on either side that smooth what a weight of the model is worth on development lists.
WINDOW = 10


@dataclass(frozen=True)
class Part:
    """Lists that are chosen from."""

    lists: CandidateLists
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


def assembled(read_lists: dict[str, CandidateLists]) -> Problem:
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


def _part(lists: CandidateLists, data: ListDataset) -> Part:
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


def _generated(rng: np.random.Generator, n: int, good: np.ndarray, name: str) -> CandidateLists:
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
        [f"{k} ||| {k}" for k in range(len(good))],
        frozen(np.arange(0, size * pairs + 1, pairs)),
        frozen(ids[order].ravel().astype(np.int32)),
    )
    return CandidateLists(
        [str(i) for i in range(n)],
        frozen(starts),
        (),
        frozen(score[order]),
        counts=frozen(np.hstack([matched, total, ends])[order].astype(np.int32)),
        metric="bleu",
        layout=(("LM0", 1), ("TM0", 2)),
        dense=frozen(dense[order]),
        phrases=table,
        source=f"generated {name}",
    )
