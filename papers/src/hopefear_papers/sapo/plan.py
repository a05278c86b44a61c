"""What is run: learners, the grid for the CRF, seeds, tasks and their data, read or generated."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hopefear.data.generators import chunks
from hopefear.data.sequences import Sentences, SequenceDataset
from hopefear.data.token_files import read_sentences
from hopefear.errors import HopefearError
from hopefear.tasks.tag.model import encoded
from hopefear.tasks.tag.task import dataset
from hopefear_papers.frame import find_data

HELD_OUT = 0.1  # last part of the training sentences, where a corpus has no development data
LAST, AVERAGED = 0, 1
KEPT = ("last", "averaged")
BEAM = 50  # as in footnote 3
DECAY = 0.9  # of the rate, each pass: what the authors' program does


@dataclass(frozen=True)
class Spec:
    """A learner; one run gives its last weights (naive) and their average."""

    key: str
    recipe: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    regularised: bool = False  # has the rate and the strength that were chosen for the CRF


# MIRA without a bound on its steps to speak of, as McDonald et al. and the authors' program have
# it, and with their margin, the root of the number of wrong tags.
SPECS = {
    spec.key: spec
    for spec in (
        Spec("sapo", "sapo", {"n": 5, "decay": DECAY}, True),
        Spec("crf", "crf", {"decay": DECAY}, True),
        Spec("perceptron", "perceptron"),
        Spec("mira", "mira", {"C": 1.0, "root": True}),
        Spec("nbest-mira", "nbest-mira", {"n": 5, "C": 1.0, "root": True}),
    )
}


@dataclass(frozen=True)
class Entry:
    """A row of the comparison, by the name that the paper has for it."""

    title: str
    spec: str
    kept: int

    @property
    def network(self) -> bool:
        return self.spec.startswith("bilstm")

    @property
    def timing(self) -> str:
        return f"{self.spec} {KEPT[self.kept]}"


SAPO, CRF = Entry("SAPO", "sapo", LAST), Entry("CRF", "crf", LAST)
NAIVE = (
    Entry("Perc-Naive", "perceptron", LAST),
    Entry("MIRA-Naive", "mira", LAST),
    Entry("MIRA-Nbest-Naive", "nbest-mira", LAST),
)
AVERAGES = (
    Entry("Perc-Avg", "perceptron", AVERAGED),
    Entry("MIRA-Avg", "mira", AVERAGED),
    Entry("MIRA-Nbest-Avg", "nbest-mira", AVERAGED),
)
SAPO_AVERAGED, CRF_AVERAGED = Entry("SAPO-Avg", "sapo", AVERAGED), Entry("CRF-Avg", "crf", AVERAGED)
SEARCHERS = tuple(entry for pair in zip(NAIVE, AVERAGES, strict=True) for entry in pair)
EXTRAS = (SAPO_AVERAGED, CRF_AVERAGED)  # not in the paper
ENTRIES = (SAPO, CRF, *SEARCHERS, *EXTRAS)
# A network keeps one thing, a running average.
NETWORKS = (Entry("BiLSTM", "bilstm", LAST), Entry("BiLSTM-CRF", "bilstm-crf", LAST))


@dataclass(frozen=True)
class Task:
    """A task of the paper, or what stands in for it."""

    name: str
    about: str
    files: Mapping[str, str] = field(default_factory=dict)  # train, test, dev: below the data
    features: str = "chunking"
    letter: str = ""  # features by the words of section 4.2, where the others have more
    columns: Mapping[str, str] = field(default_factory=dict)  # name here: name in the file
    metric: str = "f1"
    passes: int = 20
    tuning_passes: int = 6
    timed_passes: int = 5
    network_passes: int = 0  # of the paper's networks; 0 leaves them out
    lists: bool = False  # whether n and the search are varied too
    grid: bool = False  # whether all losses train all encoders


@dataclass(frozen=True)
class Networks:
    """How much of the networks is run.

    Parameters
    ----------
    vectors : str
        File below the data; those of the paper, Senna's, are not to be had.
    params : mapping
        Of all networks.
    seeds : tuple of int
        For the figures.
    losses, linear, sentences, passes, grid_seeds
        Each loss trains each encoder on so many sentences; ``linear`` is the recipe whose rule and
        parameters the linear one has.
    """

    vectors: str = "glove100/vectors.npz"
    params: Mapping[str, Any] = field(
        default_factory=lambda: {"hidden": 100, "rate": 0.004, "device": "cpu"}
    )
    seeds: tuple[int, ...] = (1,)
    losses: tuple[str, ...] = ("log", "sapo", "structured-hinge", "ramp", "perceptron", "risk")
    linear: str = "adagrad"
    sentences: int = 2000
    passes: int = 6
    grid_seeds: tuple[int, ...] = (1, 2, 3)

    def found(self, folder: Path | None) -> tuple[Mapping[str, Any] | None, str]:
        """Parameters with the vectors where these lie, and a sentence on what is missing."""
        if importlib.util.find_spec("torch") is None:
            return None, "Networks are left out: they need PyTorch (`hopefear[neural]`)."
        path = None if folder is None else folder / self.vectors
        if path is None or not path.is_file():
            return self.params, f"{self.vectors} was not found: networks begin without vectors."
        return {**self.params, "vectors": str(path)}, ""


@dataclass(frozen=True)
class Plan:
    """How much is run."""

    tasks: tuple[Task, ...]
    seeds: tuple[int, ...] = (1, 2, 3)
    lams: tuple[float, ...] = (0.02, 0.1, 0.5, 1.0, 2.0, 5.0)  # the paper's, and one below
    rates: tuple[float, ...] = (0.02, 0.05, 0.1)
    n: int = 5
    ns: tuple[int, ...] = (1, 2, 5, 10, 20, 50)
    searches: tuple[str, ...] = ("astar", "beam", "list")
    repeats: int = 2  # of every timing; the least counts
    timed: tuple[str, ...] = KEPT
    replicates: int = 5000
    networks: Networks = Networks()


_WORD_TAG = {"word": "word", "label": "label"}

FULL = Plan(
    (
        Task(
            "chunking",
            "CoNLL-2000, words and automatic parts of speech: the paper's data",
            {"train": "conll2000/train.txt.gz", "test": "conll2000/test.txt.gz"},
            columns={**_WORD_TAG, "pos": "pos"},
            letter="sapo-chunking",
            network_passes=8,
            lists=True,
            grid=True,
        ),
        Task(
            "POS (EWT)",
            "universal parts of speech of UD English EWT, words only; in place of WSJ",
            {part: f"ud_english_ewt/{part}.conllu.gz" for part in ("train", "test", "dev")},
            features="pos",
            letter="sapo-pos",
            columns={"word": "form", "label": "upos"},
            metric="accuracy",
            network_passes=6,
            lists=True,
        ),
        Task(
            "POS (GENIA)",
            "Penn tags of MEDLINE abstracts, words only; in place of WSJ",
            {"train": "genia_pos/train.tsv.gz", "test": "genia_pos/test.tsv.gz"},
            features="pos",
            columns=_WORD_TAG,
            metric="accuracy",
            passes=10,
            tuning_passes=3,
            timed_passes=3,
        ),
        Task(
            "Bio-NER",
            "JNLPBA, words only: the paper's data without its automatic POS and chunk columns",
            {"train": "jnlpba/train.iob2.gz", "test": "jnlpba/test.iob2.gz"},
            features="sapo-bioner",
            columns=_WORD_TAG,
            passes=15,
            timed_passes=3,
            network_passes=4,
        ),
    )
)

GENERATED = Task("generated", "made-up words in phrases, words only", passes=12, lists=True)

QUICK = Plan(
    (
        replace(
            GENERATED,
            letter="sapo-chunking",
            passes=6,
            tuning_passes=2,
            timed_passes=2,
            network_passes=3,
            grid=True,
        ),
    ),
    seeds=(1, 2),
    lams=(0.1, 1.0),
    rates=(0.1,),
    ns=(1, 5, 20),
    searches=("astar", "beam"),
    repeats=1,
    timed=("averaged",),  # every averaging is another kernel to compile
    replicates=1000,
    networks=Networks(
        params={"hidden": 20, "word_dim": 20, "rate": 0.02, "device": "cpu"},
        losses=("log", "sapo"),
        sentences=100,
        passes=2,
        grid_seeds=(1,),
    ),
)


SIZES = {True: (300, 200), False: (4000, 2000)}  # sentences generated for training and test: quick?


@dataclass(frozen=True)
class Problem:
    """A task with its data, ready to learn from."""

    task: Task
    train: SequenceDataset
    test: SequenceDataset
    rest: SequenceDataset  # to choose the strength of regularisation: trained on this,
    held_out: SequenceDataset  # scored on this
    text: Mapping[str, Sentences]  # train and test, for networks
    folder: Path | None = None  # of all data

    @property
    def weights(self) -> int:
        """Number of weights: attributes and labels before, with each label."""
        labels = len(self.train.labels)
        return (self.train.features.size + labels) * labels


@dataclass(frozen=True)
class Reader:
    """A task whose data was found; reads it when its turn comes."""

    task: Task
    folder: Path | None
    quick: bool = False

    def read(self) -> Problem:
        parts = _generated(*SIZES[self.quick]) if self.folder is None else self._files(self.folder)
        train = dataset(parts["train"], self.task.features, keep_names=False)
        test = like(train, parts["test"])
        if "dev" in parts:
            dev = like(train, parts["dev"])
            return Problem(self.task, train, test, train, dev, parts, self.folder)
        # Sentences of one document stand together, so the end of the file is new text.
        cut = len(train) - max(1, round(HELD_OUT * len(train)))
        rest, held_out = train.take(np.arange(cut)), train.take(np.arange(cut, len(train)))
        return Problem(self.task, train, test, rest, held_out, parts, self.folder)

    def _files(self, folder: Path) -> dict[str, Sentences]:
        return {part: self._columns(folder / name) for part, name in self.task.files.items()}

    def _columns(self, path: Path) -> Sentences:
        file = read_sentences(path).sentences
        missing = [name for name in self.task.columns.values() if name not in file.columns]
        if missing:
            raise HopefearError(
                f"{path} has no column {missing[0]!r}, which {self.task.name} needs; there are "
                f"{', '.join(file.columns)}"
            )
        columns = {ours: file.columns[theirs] for ours, theirs in self.task.columns.items()}
        return Sentences(file.starts, columns, file.source, file.lines)


def find_problems(data: Path | None, plan: Plan, quick: bool) -> tuple[list[Reader], str]:
    """What to run on, and a sentence on what was not found."""
    if not any(task.files for task in plan.tasks):
        note = "This version uses generated sentences only: too few and too easy to conclude from."
        return [Reader(task, None, quick) for task in plan.tasks], note
    folder = find_data(data)
    if folder is None:
        return [Reader(GENERATED, None, quick)], (
            "No corpora were found, so only generated sentences are used; give `--data DIR`, or "
            "set HOPEFEAR_DATA."
        )
    readers, missing = [], []
    for task in plan.tasks:
        absent = [name for name in task.files.values() if not (folder / name).is_file()]
        if absent:
            missing.append(f"{task.name} ({absent[0]})")
        else:
            readers.append(Reader(task, folder, quick))
    if not readers:
        raise HopefearError(
            f"{folder} holds none of the corpora ({', '.join(missing)}); give --data a folder that "
            "holds them, or use --quick, which needs none"
        )
    return readers, f"Not found, and so left out: {', '.join(missing)}." if missing else ""


def _generated(n_train: int, n_test: int) -> dict[str, Sentences]:
    return {"train": chunks(n_train, seed=1), "test": chunks(n_test, seed=2)}


def like(train: SequenceDataset, sentences: Sentences) -> SequenceDataset:
    """Labelled sentences with the features and labels of the training data."""
    gold = sentences.columns["label"]
    return encoded(sentences, train.features.encode(sentences), train.labels, gold, train.features)
