"""What is run: learners and their grids, and two corpora of text beside a generated problem."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hopefear.data.generators import sparse_linear
from hopefear.data.sparse import SparseDataset
from hopefear.data.svmlight import read_svmlight
from hopefear.errors import HopefearError, InputError
from hopefear.experiments.frame import Entrant, find_data

SEED = 1
HELD_OUT = 0.2  # share of the training rows on which parameters are chosen
MARGIN = 0.5  # points of accuracy within which two predictors count as equally good
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
    passes: int  # as many as the paper's Table 1 averages over
    tuning_passes: int
    paths: tuple[float, ...]  # strengths of Figures 1 and 3
    vote_rows: int  # test examples that are voted on
    repeats: int  # of every timing; the minimum counts
    timed_passes: int
    bound_rows: int

    @property
    def settled(self) -> slice:
        """The second half of the passes, when the first steep gains are over."""
        return slice(self.passes // 2, None)


_VRDA = (0.0, 1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3)
_EVERY = (0.0, 1e-7, 1e-6, 3e-6, 1e-5, 3e-5, 1e-4)
_GRAVITY = (0.0, 1e-6, 1e-5, 3e-5, 1e-4, 3e-4)


Values = tuple[float, ...]


def _specs(
    vrda: Values, every: Values, gravity: Values, log: Values, rda: Values, tg: Values, ada: Values
) -> tuple[Spec, ...]:
    average = {"readout": "averaged"}
    specs = [Spec("perceptron", "Perceptron", "perceptron")]
    for rule, strength, *grid in (("tg", "gravity", gravity, tg), ("rda", "l1", every, rda)):
        for name, loss in LOSSES.items():
            title, fixed = f"{rule.upper()} ({name})", {"loss": loss, **average}
            specs.append(Spec(f"{rule}-{name}", title, rule, fixed, strength, *grid))
    # On mistakes the force of the hinge is always one, so its rate changes no prediction.
    hinge = {"loss": "hinge", "rate": 1.0}
    specs.append(Spec("vrda-hinge", "vRDA (hinge)", "vrda", hinge, "l1", vrda))
    specs.append(Spec("vrda-log", "vRDA (log)", "vrda", {"loss": "logistic"}, "l1", vrda, log))
    specs.append(Spec("adagrad-rda", "AdaGrad-RDA (log)", "adagrad-rda", average, "l1", every, ada))
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
    passes=20,
    tuning_passes=10,
    paths=(0.0, 1e-6, 1e-5, 1e-4, 3e-4),
    vote_rows=25_000,
    repeats=7,
    timed_passes=3,
    bound_rows=20_000,
)

QUICK = Plan(
    _specs(
        (0.0, 1e-4, 1e-3), (0.0, 1e-4), (0.0, 1e-4), (1.0, 100.0), (10.0, 100.0), (100.0,), (0.5,)
    ),
    passes=6,
    tuning_passes=2,
    paths=(0.0, 1e-4, 1e-3),
    vote_rows=500,
    repeats=3,
    timed_passes=1,
    bound_rows=1000,
)


TRANSFORM: dict[str, Any] = {"values": "presence", "norm": "l2"}
UNIGRAMS = 127_712  # of news20_bydate: ids up to here are single words


@dataclass(frozen=True)
class Problem:
    """Training and test rows, ready to learn from."""

    name: str
    about: str
    train: SparseDataset
    test: SparseDataset
    table_only: bool = False  # scored in Table 1, left out of the figures


def find_problems(data: Path | None, quick: bool) -> tuple[list[Problem], str]:
    """What to run on, and a sentence on what was not found."""
    if quick:
        return [generated(1200, 800, 400)], "The quick version uses a small generated problem only."
    folder = find_data(data)
    if folder is None:
        return [generated()], (
            "No corpora were found, so only generated data is used; give "
            "`--data DIR`, or set HOPEFEAR_DATA."
        )
    problems: list[Problem] = []
    missing = []
    for name, read in (("imdb", imdb), ("news20_bydate", news20)):
        if (folder / name).is_dir():
            problems += read(folder / name)
        else:
            missing.append(name)
    if not problems:
        raise HopefearError(
            f"{folder} holds neither imdb nor news20_bydate; give --data a folder "
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
    return Problem(name, about, train, test, table_only)


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
