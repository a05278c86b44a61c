"""What is run: tasks, learners, the grid for the CRF, seeds, and how much of everything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
    cost: float = 1.0  # CPU a pass, roughly, as a multiple of the perceptron's


# MIRA without a bound on its steps to speak of, as McDonald et al. and the authors' program have
# it, and with their margin, the root of the number of wrong tags.
SPECS = {
    spec.key: spec
    for spec in (
        Spec("sapo", "sapo", {"n": 5, "decay": DECAY}, True, 2.0),
        Spec("crf", "crf", {"decay": DECAY}, True, 4.0),
        Spec("perceptron", "perceptron"),
        Spec("mira", "mira", {"C": 1.0, "root": True}),
        Spec("nbest-mira", "nbest-mira", {"n": 5, "C": 1.0, "root": True}, cost=4.0),
    )
}


@dataclass(frozen=True)
class Entry:
    """A row of the comparison, by the name that the paper has for it."""

    title: str
    spec: str
    kept: int

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


@dataclass(frozen=True)
class Task:
    """A task of the paper, or what stands in for it."""

    name: str
    about: str
    files: Mapping[str, str] = field(default_factory=dict)  # train, test, dev: below the data
    features: str = "chunking"
    columns: Mapping[str, str] = field(default_factory=dict)  # name here: name in the file
    metric: str = "f1"
    passes: int = 20
    tuning_passes: int = 6
    timed_passes: int = 5
    lists: bool = False  # whether n and the search are varied too
    cost: float = 1.0  # CPU of the whole, relative to chunking


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


_WORD_TAG = {"word": "word", "label": "label"}

FULL = Plan(
    (
        Task(
            "chunking",
            "CoNLL-2000, words and automatic parts of speech: the paper's data",
            {"train": "conll2000/train.txt.gz", "test": "conll2000/test.txt.gz"},
            columns={**_WORD_TAG, "pos": "pos"},
            lists=True,
        ),
        Task(
            "POS (EWT)",
            "universal parts of speech of UD English EWT, words only; in place of WSJ",
            {part: f"ud_english_ewt/{part}.conllu.gz" for part in ("train", "test", "dev")},
            features="pos",
            columns={"word": "form", "label": "upos"},
            metric="accuracy",
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
            cost=1.5,
        ),
        Task(
            "Bio-NER",
            "JNLPBA, words only: the paper's data without its automatic POS and chunk columns",
            {"train": "jnlpba/train.iob2.gz", "test": "jnlpba/test.iob2.gz"},
            features="sapo-bioner",
            columns=_WORD_TAG,
            passes=15,
            timed_passes=3,
            cost=1.2,
        ),
    )
)

GENERATED = Task("generated", "made-up words in phrases, words only", passes=12, lists=True)

QUICK = Plan(
    (
        Task(
            "generated",
            "made-up words in phrases, words only",
            passes=6,
            tuning_passes=2,
            timed_passes=2,
            lists=True,
        ),
    ),
    seeds=(1, 2),
    lams=(0.1, 1.0),
    rates=(0.1,),
    ns=(1, 5, 20),
    searches=("astar", "beam"),
    repeats=1,
    timed=("averaged",),  # every readout is another kernel to compile
    replicates=1000,
)
