"""What is run: learners and their grids; lists of parses, corpora of text, a generated problem."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hopefear.data.generators import candidate_lists, sparse_linear
from hopefear.data.lists.dataset import ListDataset
from hopefear.data.sparse import SparseDataset
from hopefear.data.svmlight import read_svmlight
from hopefear.errors import HopefearError, InputError
from hopefear.tasks.rerank.prepare import dataset
from hopefear_papers.frame import Entrant, find_data
from hopefear_papers.parses import FOLDER, MIN_COUNT, Part, extracted

SEED = 1
HELD_OUT = 0.2  # share of the training rows on which parameters are chosen
MARGIN = 0.5  # points of accuracy, or of F, within which two predictors count as equally good
LOSSES = {"hinge": "hinge", "log": "logistic"}
SWING = 1.5  # deviations over passes count as different from this ratio on


@dataclass(frozen=True)
class Spec(Entrant):
    """A learner of the comparison, and the values its two parameters may take."""

    strength: str = ""  # name of the parameter that makes weights zero
    strengths: tuple[float, ...] = (0.0,)
    rates: tuple[float, ...] = ()

    def settings(self) -> list[dict[str, float]]:
        """Every point of the grid, weaker regularisation first."""
        if not self.strength:
            return [{}]
        return [
            {self.strength: s, **({"rate": r} if r else {})}
            for s in self.strengths
            for r in self.rates or (0.0,)
        ]


@dataclass(frozen=True)
class Plan:
    """How much is run."""

    specs: tuple[Spec, ...]
    list_specs: tuple[Spec, ...]  # learners on lists of parses
    passes: int  # as many as the paper's Table 1 averages over
    tuning_passes: int
    paths: tuple[float, ...]  # strengths of Figures 1 and 3
    list_paths: tuple[float, ...]
    vote_rows: int  # test examples that are voted on
    repeats: int  # of every timing; the minimum counts
    timed_passes: int
    bound_rows: int

    def learners(self, problem: Problem) -> tuple[Spec, ...]:
        return self.list_specs if problem.task == "rerank" else self.specs

    def strengths(self, problem: Problem) -> tuple[float, ...]:
        return self.list_paths if problem.task == "rerank" else self.paths

    @property
    def settled(self) -> slice:
        """The second half of the passes, when the first steep gains are over."""
        return slice(self.passes // 2, None)


_VRDA = (0.0, 1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3)
_EVERY = (0.0, 1e-7, 1e-6, 3e-6, 1e-5, 3e-5, 1e-4)
_GRAVITY = (0.0, 1e-6, 1e-5, 3e-5, 1e-4, 3e-4)


Values = tuple[float, ...]


def _specs(
    vrda: Values,
    every: Values,
    gravity: Values,
    log: Values,
    rda: Values,
    tg: Values,
    ada: Values = (),
) -> tuple[Spec, ...]:
    average: dict[str, Any] = {"averaging": "averaged"}
    specs = [Spec("perceptron", "Perceptron", "perceptron")]
    for rule, strength, *grid in (("tg", "gravity", gravity, tg), ("rda", "l1", every, rda)):
        for name, loss in LOSSES.items():
            title, fixed = f"{rule.upper()} ({name})", {"loss": loss, **average}
            if rule == "tg":  # the rate as Gao, Xiao, Xu and He print it: η′/√k
                fixed["power"] = 0.5
            specs.append(Spec(f"{rule}-{name}", title, rule, fixed, strength, *grid))
    # On mistakes the force of the hinge is always one, so its rate changes no prediction.
    hinge = {"loss": "hinge", "rate": 1.0}
    specs.append(Spec("vrda-hinge", "vRDA (hinge)", "vrda", hinge, "l1", vrda))
    specs.append(Spec("vrda-log", "vRDA (log)", "vrda", {"loss": "logistic"}, "l1", vrda, log))
    if ada:
        name, title = "adagrad-rda", "AdaGrad-RDA (log)"
        specs.append(Spec(name, title, name, average, "l1", every, ada))
    return tuple(specs)


FULL = Plan(
    _specs(
        _VRDA,
        _EVERY,
        _GRAVITY,
        (1.0, 10.0, 100.0),
        (10.0, 100.0, 1000.0),
        (5.0, 30.0, 200.0),
        (0.2, 1.0, 5.0),
    ),
    _specs(
        (0.0, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 8e-4, 1e-3, 2e-3),
        (0.0, 1e-5, 1e-4, 2e-4, 5e-4, 1e-3),
        (0.0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2),
        (0.1, 1.0, 10.0),
        (1.0, 10.0, 100.0),
        (0.01, 0.1, 1.0),
    ),
    passes=20,
    tuning_passes=10,
    paths=(0.0, 1e-6, 1e-5, 1e-4, 3e-4),
    list_paths=(0.0, 1e-4, 2e-4, 5e-4, 1e-3),
    vote_rows=25_000,
    repeats=7,
    timed_passes=3,
    bound_rows=20_000,
)

QUICK = Plan(
    _specs(
        (0.0, 1e-4, 1e-3), (0.0, 1e-4), (0.0, 1e-4), (1.0, 100.0), (10.0, 100.0), (100.0,), (0.5,)
    ),
    _specs((0.0, 1e-3, 1e-2), (0.0, 1e-3), (0.0, 1e-2), (1.0,), (10.0,), (1.0,)),
    passes=6,
    tuning_passes=2,
    paths=(0.0, 1e-4, 1e-3),
    list_paths=(0.0, 1e-3, 1e-2),
    vote_rows=500,
    repeats=3,
    timed_passes=1,
    bound_rows=1000,
)


TRANSFORM: dict[str, Any] = {"values": "presence", "norm": "l2"}
UNIGRAMS = 127_712  # of news20_bydate: ids up to here are single words


@dataclass(frozen=True)
class Problem:
    """Training and test rows, or lists, ready to learn from."""

    name: str
    about: str
    train: Any
    test: Any
    n_features: int
    task: str = "classify"  # or "rerank"
    dev: Any = None  # what settings are chosen on; without, a part of the training rows
    table_only: bool = False  # scored in Table 1, left out of the figures

    def tuning(self) -> Problem:
        """The same without the test: scored on what settings are chosen on."""
        if self.dev is not None:
            return replace(self, test=self.dev)
        rest, held_out = self.train.split(HELD_OUT, SEED)
        return replace(self, train=rest, test=held_out)


def find_problems(data: Path | None, quick: bool) -> tuple[list[Problem], str]:
    """What to run on, and a sentence on what was not found."""
    if quick:
        note = "The quick version uses small generated problems only."
        return [generated_lists(), generated(1200, 800, 400)], note
    folder = find_data(data)
    if folder is None:
        return [generated()], (
            "No corpora were found, so only generated data is used; give "
            "`--data DIR`, or set HOPEFEAR_DATA."
        )
    problems: list[Problem] = []
    missing = []
    for name, read in ((FOLDER, parses), ("imdb", imdb), ("news20_bydate", news20)):
        if (folder / name).is_dir():
            problems += read(folder / name)
        else:
            missing.append(name)
    if not problems:
        raise HopefearError(
            f"{folder} holds neither {FOLDER} nor imdb nor news20_bydate; give --data a folder "
            "that holds them, or run without it on generated data"
        )
    note = f"Not found, and so left out: {', '.join(missing)}." if missing else ""
    return [*problems, generated()], note


def generated(n_train: int = 40_000, n_test: int = 20_000, n_features: int = 20_000) -> Problem:
    """A sparse linear problem whose best weights are known, with a twentieth of labels wrong."""
    per_row = (20, 60) if n_features >= 5000 else (5, 15)
    problem = sparse_linear(
        n_train + n_test,
        n_features,
        per_row=per_row,
        true_weights=n_features // 20,
        label_noise=0.05,
        seed=7,
    )
    parts = (part.dataset() for part in problem.split(n_train))
    return _ready("generated", "sparse_linear, 5 % of the labels wrong", parts)


def generated_lists(sizes: tuple[int, int, int] = (300, 100, 100)) -> Problem:
    """Lists for training, choosing and test, with brackets that follow the costs."""
    lists = candidate_lists(sum(sizes), features=80, doubt=2.0)
    right = np.rint(20 * (1.0 - np.asarray(lists.costs))).astype(np.int64)
    counts = np.stack([right, np.full(right.size, 20), np.full(right.size, 20)], axis=1)
    data = dataset(lists, min_count=MIN_COUNT)
    whole = ListDataset(data.rows, None, counts, "parseval", source="generated")
    train, dev, test = (
        whole.take(which) for which in np.split(np.arange(len(whole)), np.cumsum(sizes)[:-1])
    )
    size = int(data.features.size)
    return Problem("generated lists", "candidate_lists", train, test, size, "rerank", dev)


def parses(folder: Path) -> list[Problem]:
    """Lists of parses, the task of the paper."""
    split = extracted(folder).cut(Part())
    about = "50 best parses of sentences of the Penn Treebank"
    return [Problem("parses", about, split.train, split.test, split.size, "rerank", split.dev)]


def imdb(folder: Path) -> list[Problem]:
    """Film reviews, good against bad."""
    return [_ready("imdb", "film reviews, words", _read(folder))]


def news20(folder: Path) -> list[Problem]:
    """Newsgroups in two groups of ten, and, on words alone, all twenty."""
    parts = _read(folder)
    sides = _groups(folder / "labels.tsv", parts[0].classes)
    two = (_grouped(part, sides) for part in parts)
    few = (_columns(part, UNIGRAMS + 1) for part in parts)
    about = "20 Newsgroups by date in two groups, words and bigrams"
    words = "the same messages, all 20 groups, words only"
    whole = _ready("news20, 20 classes", words, few, table_only=True)
    return [_ready("news20", about, two), whole]


def _read(folder: Path) -> tuple[SparseDataset, SparseDataset]:
    train = read_svmlight(_file(folder, "train"))
    test = read_svmlight(_file(folder, "test"), features=train.features, classes=train.classes)
    return train, test


def _file(folder: Path, part: str) -> Path:
    paths = sorted(folder.glob(f"{part}.libsvm*"))
    if not paths:
        raise HopefearError(
            f"{folder} holds no {part}.libsvm, plain or compressed; "
            "put it there, or leave the folder out"
        )
    return paths[0]


def _ready(
    name: str, about: str, parts: Iterable[SparseDataset], table_only: bool = False
) -> Problem:
    train, test = (part.transformed(**TRANSFORM) for part in parts)
    return Problem(name, about, train, test, train.n_features, table_only=table_only)


def _groups(path: Path, classes: tuple[str, ...]) -> np.ndarray:
    """Side (0 or 1) of every class, from lines of label, name and +1 or -1."""
    sides = {}
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise HopefearError(
            f"{path}: cannot be read ({error.strerror}); it must tell the side of every label"
        ) from error
    for number, line in enumerate(lines, 1):
        fields = line.split("\t")
        if len(fields) != 3 or fields[2] not in ("+1", "-1"):
            raise InputError(str(path), number, "label, name, and +1 or -1, parted by tabs", line)
        sides[fields[0]] = int(fields[2] == "+1")
    absent = [name for name in classes if name not in sides]
    if absent:
        raise HopefearError(f"{path}: tells no side of label {absent[0]}; add a line for it")
    return np.array([sides[name] for name in classes], np.int32)


def _grouped(data: SparseDataset, sides: np.ndarray) -> SparseDataset:
    rows = data.rows._replace(labels=sides[data.rows.labels])
    return SparseDataset(rows, data.n_features, ("-1", "1"), data.features, data.source)


def _columns(data: SparseDataset, n: int) -> SparseDataset:
    """The first ``n`` columns."""
    names = np.array(data.classes)[data.rows.labels]
    narrow = SparseDataset.from_csr(data.to_csr()[:, :n], names, classes=data.classes)
    return SparseDataset(narrow.rows, narrow.n_features, narrow.classes, source=data.source)
