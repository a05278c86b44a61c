"""What is run: learners and their grids, seeds, levels, folds, and the lists of parses."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hopefear import __version__
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.dataset import ListDataset, ListRows
from hopefear.data.lists.files import read_lists
from hopefear.errors import HopefearError
from hopefear.experiments.frame import Entrant, find_files
from hopefear.features.lists.extraction import EXPECTED
from hopefear.features.lists.keyed import Numbered, pruned
from hopefear.features.trees import families
from hopefear.storage import load, save
from hopefear.tasks.rerank.task import dataset, teaching

AVERAGED, SUPPORT, LAST = 0, 1, 2
# On the last support the few features that every candidate has always stay in: the weight of a
# feature of large values swings, may happen to be zero at the end, and is worth points of F.
KEPT = ("average", "average on the last support", "last weights")
ALL = (AVERAGED, SUPPORT, LAST)
_VOTERS = (AVERAGED, SUPPORT)  # in VRDA all predictors have a say
LOSSES = ("hinge", "logistic")
GOAL = 0.10  # share of the perceptron's weights that a sparse model should do with


@dataclass(frozen=True)
class Spec(Entrant):
    """A learner of the comparison, and the values its parameters may take."""

    grid: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    strength: str = ""  # name of the parameter that makes weights zero
    kept: tuple[int, ...] = ALL  # to choose from


@dataclass(frozen=True)
class Plan:
    """How much is run."""

    specs: tuple[Spec, ...]  # of the paper: perceptron, TG and VRDA, two losses each
    extensions: tuple[Spec, ...]
    marks: tuple[int, ...] = (1, 2, 3, 5, 10)  # passes to choose from
    seeds: tuple[int, ...] = (1, 2, 3)
    tuning_seeds: tuple[int, ...] = (1, 2, 3)  # of the paper's learners, and of all VRDA
    extension_seeds: tuple[int, ...] = (1,)
    sweep: tuple[float, ...] = (0.0, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3)  # Table 2
    fold_sweep: tuple[float, ...] = (0.0, 1e-4, 2e-4, 5e-4, 1e-3)
    levels: tuple[int, ...] = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
    fold_levels: tuple[int, ...] = (1_000, 2_000, 5_000, 10_000, 50_000)
    sparse_levels: int = 10_000  # up to here models count as sparse
    folds: int = 5
    paths: tuple[float, ...] = (0.0, 1e-4, 2e-4, 5e-4, 1e-3)  # Figures 5 and 6
    trail_passes: int = 20
    replicates: int = 2000

    @property
    def every(self) -> tuple[Spec, ...]:
        return self.specs + self.extensions

    @property
    def voted(self) -> tuple[Spec, ...]:
        """VRDA with any loss."""
        return tuple(spec for spec in self.every if spec.recipe == "vrda")

    def spec(self, key: str) -> Spec:
        return next(spec for spec in self.every if spec.key == key)


def _paper(
    l1: tuple[float, ...],
    rates: tuple[float, ...],
    gravity: tuple[float, ...],
    steps: tuple[float, ...],
    every: tuple[int, ...],
) -> tuple[Spec, ...]:
    specs = [Spec("perceptron", "Perceptron", "perceptron", kept=(AVERAGED,))]  # as the paper's
    for loss in LOSSES:
        grid = {"rate": steps, "every": every, "gravity": gravity}
        specs.append(Spec(f"tg-{loss}", f"TG ({loss})", "tg", {"loss": loss}, grid, "gravity"))
    # On mistakes the force of the hinge is always one, so its rate changes no prediction.
    for loss, some in zip(LOSSES, ((1.0,), rates), strict=True):
        grid = {"rate": some, "l1": l1}
        title = f"VRDA ({loss})"
        specs.append(Spec(f"vrda-{loss}", title, "vrda", {"loss": loss}, grid, "l1", _VOTERS))
    return tuple(specs)


def _extensions(quick: bool = False) -> tuple[Spec, ...]:
    """Losses that the paper leaves to translation, by voted RDA, RDA and SGD."""
    wide: dict[str, dict[str, Any]] = {
        "structured-hinge": {
            "title": "structured hinge",
            "fixed": {"cost": "regret", "price": 10.0},
            "vrda": {"l1": (2e-4, 5e-4, 8e-4, 1e-3, 2e-3), "rate": (1.0,)},
            "rda": {"rate": (0.03, 0.1, 1.0), "l1": (1e-4, 5e-4)},
            "sgd": {"rate": (0.001, 0.003, 0.01, 0.1)},
        },
        "log": {
            "title": "log",
            "vrda": {"rate": (0.1, 1.0), "l1": (1e-4, 5e-4)},
            "rda": {"rate": (0.1, 1.0), "l1": (1e-5, 1e-4)},
            "sgd": {"rate": (0.003, 0.01, 0.03)},
        },
        "weighted-log": {
            "title": "cost-weighted log",
            "fixed": {"sharp": 10.0},
            "vrda": {"rate": (0.3, 1.0, 3.0), "l1": (1e-4, 3e-4, 5e-4, 1e-3)},
            "rda": {"rate": (0.1, 0.3, 1.0), "l1": (1e-5, 1e-4, 3e-4)},
            "sgd": {"rate": (0.001, 0.003, 0.01, 0.03)},
        },
        "risk": {
            "title": "Bayes risk",
            "vrda": {"rate": (10.0, 100.0), "l1": (1e-6, 1e-5)},
            "rda": {"rate": (10.0, 100.0), "l1": (1e-6, 1e-5)},
            "sgd": {"rate": (0.1, 0.3, 1.0, 3.0)},
        },
    }
    rules = {"vrda": "VRDA", "rda": "RDA", "sgd": "SGD"}
    specs = []
    for loss, settings in wide.items():
        for rule, name in rules.items():
            if quick and (loss, rule) not in (("weighted-log", "sgd"), ("risk", "vrda")):
                continue
            grid = {k: v[:1] if quick else v for k, v in settings[rule].items()}
            fixed = {"loss": loss, **settings.get("fixed", {})}
            if rule == "sgd":
                fixed |= {"decay": 0.9, "l2": 1e-5}
            strength = "" if rule == "sgd" else "l1"
            title = f"{name} ({settings['title']})"
            kept = _VOTERS if rule == "vrda" else ALL
            specs.append(Spec(f"{rule}-{loss}", title, rule, fixed, grid, strength, kept))
    return tuple(specs)


_L1 = (0.0, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 8e-4, 1e-3, 1.5e-3, 2e-3, 3e-3, 5e-3, 1e-2)
_GRAVITY = (0.0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)

FULL = Plan(_paper(_L1, (0.1, 1.0, 10.0), _GRAVITY, (0.01, 0.1), (10, 100)), _extensions())

QUICK = Plan(
    _paper((0.0, 1e-4, 1e-3, 5e-3), (1.0,), (0.0, 1e-3, 1e-2), (0.1,), (10,)),
    _extensions(quick=True),
    marks=(1, 3),
    seeds=(1, 2),
    tuning_seeds=(1,),
    sweep=(0.0, 1e-4, 1e-3),
    fold_sweep=(0.0, 1e-4, 1e-3),
    levels=(1_000, 10_000, 100_000),
    fold_levels=(10_000,),
    folds=2,
    paths=(0.0, 1e-4, 1e-3),
    trail_passes=3,
    replicates=200,
)


FOLDER = "ptb-nbest"
FILES = ("train", "dev", "test")
FEATURES = "rich,consensus"
DENSE = ("score", EXPECTED)  # features that every candidate has, with values of any size
MIN_COUNT = 5  # lists of the training part that a feature must tell candidates apart in
LIMITED = 400, 150, 150  # lists of each part in the quick version


class Part(NamedTuple):
    """What is learnt from and what is scored: the split of the files, or a fold of all lists."""

    fold: int = -1
    folds: int = 0
    published: bool = False  # only features of the families that were published

    @property
    def label(self) -> str:
        """In a file name.

        >>> Part().label, Part(1, 5).label, Part(published=True).label
        ('split', 'fold-2-of-5', 'published')
        """
        if self.folds:
            return f"fold-{self.fold + 1}-of-{self.folds}"
        return "published" if self.published else "split"


@dataclass(frozen=True)
class Split:
    """Lists to learn from and lists to score, in the features that the former have often enough."""

    train: ListDataset
    dev: ListDataset
    test: ListDataset
    size: int  # features
    dense: np.ndarray  # numbers of those in DENSE


@dataclass(frozen=True)
class Problem:
    """All lists in one numbering of features, and which file each is from.

    Features that tell candidates apart in too few of all lists are left out already, which takes
    none from any training part.
    """

    lists: ListDataset
    files: np.ndarray  # uint8[lists]: a position in ``FILES``
    published: np.ndarray  # bool[features]: of the families of Charniak and Johnson (2005)
    dense: np.ndarray  # numbers of the features in ``DENSE``

    def which(self, part: Part) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Numbers of the lists to learn from, to choose on and to test on.

        A fold is of whole documents. Development lists in it are not tested on, since they have
        chosen the settings.
        """
        if not part.folds:
            train, dev, test = (np.flatnonzero(self.files == k) for k in range(len(FILES)))
            return train, dev, test
        inside = self.folds(part.folds) == part.fold
        chose = self.files == FILES.index("dev")
        masks = (~inside, inside & chose, inside & ~chose)
        train, dev, test = map(np.flatnonzero, masks)
        return train, dev, test

    def folds(self, n: int) -> np.ndarray:
        """Fold of each list; documents stay whole, and folds have about as many lists each."""
        documents = [name.split(".")[0] for name in self.lists.ids or ()]
        sizes = Counter(documents)
        filled, fold = np.zeros(n, np.int64), {}
        for document in sorted(sizes, key=lambda d: (-sizes[d], d)):
            fold[document] = int(filled.argmin())
            filled[fold[document]] += sizes[document]
        return np.array([fold[document] for document in documents])

    def cut(self, part: Part) -> Split:
        """The lists of a part, in its own numbering of features."""
        train, dev, test = self.which(part)
        first = self.lists.take(train)
        mask = np.bincount(first.rows.features, minlength=len(self.published)) >= MIN_COUNT
        if part.published:
            mask &= self.published
        new = np.where(mask, np.cumsum(mask) - 1, -1).astype(np.int32)
        held_out, new_text = (_renumbered(self.lists.take(which), new) for which in (dev, test))
        dense = new[self.dense[mask[self.dense]]]
        learnt = teaching(_renumbered(first, new))
        return Split(learnt, held_out, new_text, int(mask.sum()), dense)


def find_problem(data: Path | None, out: Path, quick: bool, tell: Callable[[str], None]) -> Problem:
    """The lists with their features; they are kept in ``out``, so that a second call is quick."""
    names = [f"{name}.jsonl.xz" for name in FILES]
    folder = find_files(data, FOLDER, names, "the lists of parses")
    cache = out / ("lists-quick.bin" if quick else "lists.bin")
    identity = {
        "files": [_digest(folder / name) for name in names],
        "features": FEATURES,
        "min_count": MIN_COUNT,
        "v": __version__,
    }
    try:
        header, arrays = load(cache, "lists")
        if header["identity"] == identity:
            return _unpacked(header["ids"], arrays)
    except (HopefearError, KeyError):
        pass  # missing, damaged, or of another version: made anew
    tell("reading parses and their features; this takes a minute")
    problem = extracted(folder, LIMITED if quick else None)
    header = {"identity": identity, "ids": list(problem.lists.ids or ())}
    save(cache, "lists", header, _packed(problem))
    return problem


def extracted(folder: Path, most: Sequence[int] | None = None) -> Problem:
    """Read the files and look at the trees; ``most`` limits the lists of each, by whole blocks."""
    sizes = [0] * len(FILES)

    def blocks(k: int) -> Iterator[CandidateLists]:
        room = None if most is None else most[k]
        size = 256 if room is None else min(50, room)
        for block in read_lists(
            folder / f"{FILES[k]}.jsonl.xz", "ptb", require_costs=True, block_lists=size
        ):
            if room is not None and sizes[k] >= room:
                return
            sizes[k] += len(block)
            yield block

    every = chain.from_iterable(blocks(k) for k in range(len(FILES)))
    data = dataset(every, FEATURES, min_count=MIN_COUNT, metric="parseval")
    kinds = {*families("ptb").kinds, "score"}
    names = data.features.names(range(data.features.size))
    published = np.array([name.split("|")[0] in kinds for name in names])
    dense = np.array([names.index(name) for name in DENSE])
    files = np.repeat(np.arange(len(FILES), dtype=np.uint8), sizes)
    lists = ListDataset(data.rows, None, data.counts, data.metric, data.ids, FOLDER)
    return Problem(lists, files, published, dense)


def _renumbered(data: ListDataset, new: np.ndarray) -> ListDataset:
    rows = data.rows
    entries = pruned(
        Numbered(rows.scopes, rows.features, rows.indptr, rows.columns, rows.values),
        rows.starts,
        new,
    )
    return data.replaced(**entries._asdict())


def _packed(problem: Problem) -> dict[str, np.ndarray]:
    return {
        **problem.lists.rows._asdict(),
        "counts": problem.lists.counts,
        "from": problem.files,
        "published": problem.published,
        "dense": problem.dense,
    }


def _unpacked(ids: list[str], arrays: dict[str, np.ndarray]) -> Problem:
    rows = ListRows(*(arrays[name] for name in ListRows._fields))
    lists = ListDataset(rows, None, arrays["counts"], "parseval", ids, FOLDER)
    return Problem(lists, arrays["from"], arrays["published"], arrays["dense"])


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
