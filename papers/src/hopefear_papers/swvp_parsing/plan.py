"""What is run: treebanks, orders, variants, values of beta, passes; trees read or generated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hopefear.averaging.averaged import Averaged
from hopefear.core.learner import Learner
from hopefear.data.grammar import synthetic_treebank
from hopefear.data.tree_rows import TreeDataset
from hopefear.data.treebank import Treebank, read_treebank
from hopefear.errors import HopefearError
from hopefear.losses.swvp import BALANCED, OWN, SWVP, substructures
from hopefear.recipes import Scale
from hopefear.rules.sgd import SGD
from hopefear.tasks import recipe
from hopefear.tasks.parse.prepare import PreparedTrees, prepare
from hopefear_papers.frame import Entrant, find_data

HELD_OUT = 0.1  # share of the training sentences, where a treebank has no development trees
NEAR = 0.1  # points on development trees that "Top" takes for as good as the best
PLAIN = 1.0  # beta of the variants that are run once
ORDERS = {1: "first order", 2: "second order"}
# The choice of beta and of passes is by the first.
SCORES = ("uas", "uas_nopunct", "las", "las_nopunct")


def _swvp(
    key: str, approach: str, weighting: str, jj: str = "single", checked: bool = False
) -> Entrant:
    fixed = {"approach": approach, "weighting": weighting, "jj": jj, "checked": checked}
    return Entrant(key, key, "swvp", fixed)


CSP = Entrant("CSP", "CSP", "perceptron")
BWM = _swvp("B-WM", "balanced", "wm")
# With WM, "errors" is the same as "single": they differ in the ranks of WMR alone.
OTHERS = {
    one.key: one
    for one in (
        _swvp("A-WM", "aggressive", "wm"),
        _swvp("B-WMR", "balanced", "wmr"),
        _swvp("A-WMR", "aggressive", "wmr"),
        _swvp("B-WM, checked", "balanced", "wm", checked=True),
        _swvp("B-WMR, errors", "balanced", "wmr", "errors"),
        _swvp("B-WM, runs", "balanced", "wm", "runs"),
        _swvp("B-WM, segments", "balanced", "wm", "segments"),
        _swvp("B-WM, lengths", "balanced", "wm", "lengths"),
        _swvp("B-WM, subtrees", "balanced", "wm", "subtrees"),
    )
}


def learner_of(entrant: Entrant, beta: float, longest: int) -> Learner:
    """The learner; CSP is SWVP with one set of all words, so that one kernel serves all runs.

    Parameters
    ----------
    entrant, beta
        What takes part, and its beta; CSP has none.
    longest : int
        Words of the longest sentence.

    Examples
    --------
    >>> learner_of(BWM, 2.0, 40).loss.beta
    2.0
    """
    if entrant is CSP:
        loss = SWVP(BALANCED, jj=OWN, checked=False, own=substructures([range(longest)]))
        return Learner(loss, SGD(), Averaged(), update_on="mistakes")
    learner: Learner = recipe(entrant.recipe, "parse").build(Scale(), **entrant.fixed, beta=beta)
    return learner


@dataclass(frozen=True)
class Bank:
    """A treebank: its files below the data, or how many sentences are generated."""

    name: str
    about: str
    files: Mapping[str, str] = field(default_factory=dict)  # train, test and, where there is, dev
    labelled: bool = True
    generated: tuple[int, int, int] = (0, 0, 0)  # sentences of train, dev and test
    crossing: float = 0.0  # share of the generated sentences with crossing arcs


@dataclass(frozen=True)
class Work:
    """How much is run on one treebank with trees of one order."""

    bank: str
    order: int
    passes: int
    betas: tuple[float, ...]  # of B-WM
    others: tuple[str, ...] = ()  # keys of variants that are run with beta = 1
    cost: float = 1.0  # CPU of a pass, roughly, compared with first order on Basque

    @property
    def title(self) -> str:
        return f"{self.bank}, {ORDERS[self.order]}"

    @property
    def whole_cost(self) -> float:
        return self.cost * self.passes * (1 + len(self.betas) + len(self.others))


@dataclass(frozen=True)
class Plan:
    """How much is run."""

    banks: tuple[Bank, ...]
    works: tuple[Work, ...]
    replicates: int = 5000
    hash_bits: int | None = None


_EVERY = tuple(OTHERS)
_FOUR, _THREE = (0.5, 1.0, 2.0, 4.0), (0.5, 1.0, 4.0)
_CHECKED = ("B-WM, checked",)

FULL = Plan(
    (
        Bank(
            "Basque",
            "CoNLL-2007 material in NLTK's split, which is not the official one",
            {part: f"conll2007/basque.{part}.conll.gz" for part in ("train", "test")},
        ),
        Bank(
            "Spanish",
            "Cast3LB of CoNLL-X in NLTK's split; not a language of the paper",
            {part: f"conll2007/spanish.{part}.conll.gz" for part in ("train", "test")},
        ),
        Bank(
            "PTB",
            "the free sample of the Penn Treebank, heads without relations",
            {part: f"ptb_sample/{part}.dp.gz" for part in ("train", "dev", "test")},
            labelled=False,
        ),
        Bank(
            "EWT",
            "UD English EWT, gold tags",
            {part: f"ud_english_ewt/{part}.conllu.gz" for part in ("train", "dev", "test")},
        ),
    ),
    (
        Work("Basque", 1, 6, _FOUR, _EVERY, 1.0),
        Work("Spanish", 1, 6, _FOUR, _EVERY, 2.2),
        Work("PTB", 1, 6, _FOUR, _EVERY, 1.7),
        Work("EWT", 1, 4, _THREE, ("A-WM", *_CHECKED), 5.5),
        Work("Basque", 2, 5, _THREE, _CHECKED, 5.0),
        Work("Spanish", 2, 4, _THREE, _CHECKED, 10.0),
        Work("PTB", 2, 4, _THREE, _CHECKED, 7.5),
        Work("EWT", 2, 2, (1.0, 4.0), (), 30.0),
    ),
)

# Of one kind of trees: every kind has kernels to compile, those of second order for minutes.
QUICK = Plan(
    (
        Bank("generated", "trees of a small grammar", generated=(60, 30, 40)),
        Bank(
            "generated, bare",
            "the same without relations and development trees",
            labelled=False,
            generated=(60, 0, 40),
        ),
    ),
    (
        Work("generated", 1, 3, (0.5, 1.0, 4.0), _EVERY),
        Work("generated, bare", 1, 3, (0.5, 1.0, 4.0)),
    ),
    replicates=500,
    hash_bits=16,
)


@dataclass(frozen=True)
class Split:
    """Training, development and test trees."""

    bank: Bank
    train: Treebank
    dev: Treebank
    test: Treebank

    @property
    def digests(self) -> dict[str, str]:
        """What tells these trees from others."""
        return {part: getattr(self, part).digest for part in ("train", "dev", "test")}


def split_of(bank: Bank, folder: Path | None) -> Split:
    """Read or generate the trees of a bank.

    Examples
    --------
    >>> split = split_of(Bank("few", "trees", generated=(20, 0, 5)), None)
    >>> len(split.train), len(split.dev), len(split.test)
    (18, 2, 5)
    """
    if bank.files:
        trees = {
            part: read_treebank((folder or Path()) / name) for part, name in bank.files.items()
        }
    else:
        sizes = zip(("train", "dev", "test"), bank.generated, strict=True)
        trees = {
            part: synthetic_treebank(n, nonprojective=bank.crossing, seed=seed)
            for seed, (part, n) in enumerate(sizes, 1)
            if n
        }
    if "dev" not in trees:
        trees["train"], trees["dev"] = parted(trees["train"])
    return Split(bank, **trees)


def parted(bank: Treebank) -> tuple[Treebank, Treebank]:
    """``(rest, held out)``: a tenth of the sentences, drawn by a fixed seed, as the paper draws.

    Examples
    --------
    >>> rest, held = parted(synthetic_treebank(30, seed=1))
    >>> len(rest), len(held)
    (27, 3)
    """
    order = np.random.default_rng(1).permutation(len(bank))
    cut = max(1, round(HELD_OUT * len(bank)))
    return bank.take(np.sort(order[cut:])), bank.take(np.sort(order[:cut]))


@dataclass(frozen=True)
class Problem:
    """Trees of one order, as learners see them; made when the first run asks for them."""

    split: Split
    order: int
    hash_bits: int | None

    @property
    def train(self) -> TreeDataset:
        return self._prepared.data

    @cached_property
    def dev(self) -> TreeDataset:
        return self._prepared.encoded(self.split.dev)

    @cached_property
    def test(self) -> TreeDataset:
        return self._prepared.encoded(self.split.test)

    @cached_property
    def _prepared(self) -> PreparedTrees:
        unlabelled = not self.split.bank.labelled
        options = {"order": self.order, "unlabelled": unlabelled, "hash_bits": self.hash_bits}
        return prepare(self.split.train, options)

    @property
    def identity(self) -> dict[str, Any]:
        """What a run depends on beside its learner."""
        more = {"labelled": self.split.bank.labelled, "bits": self.hash_bits}
        return {"order": self.order, **more, **self.split.digests}

    def facts(self) -> dict[str, Any]:
        """What the page says of the trees."""
        train, kind = self.train, self.train.kind
        return {
            "trees": kind.name,
            "roots": "one" if kind.single else "any number of",
            "lifted": train.lifted,
            "relations": len(train.labels),
            "heads": train.rows.heads.size / train.n_tokens,
            "recall": recall(self.test),
        }


def recall(data: TreeDataset) -> float:
    """Percent of the words whose right head is among those that are looked at.

    Examples
    --------
    >>> problem = Problem(split_of(Bank("few", "trees", generated=(6, 2, 2)), None), 1, 12)
    >>> 90.0 < recall(problem.train) <= 100.0
    True
    """
    rows, heads = data.rows, data.bank.heads
    owners = np.repeat(np.arange(len(heads)), np.diff(rows.ptr))
    right = owners[rows.heads == heads[owners]]
    return 100.0 * len(np.unique(right)) / max(1, len(heads))


def find_banks(data: Path | None, plan: Plan) -> tuple[dict[str, Bank], Path | None, str]:
    """Treebanks by name whose files are there, their folder, and a sentence on the others."""
    if not any(bank.files for bank in plan.banks):
        note = "This version uses generated trees only: too few and too easy to conclude from."
        return {bank.name: bank for bank in plan.banks}, None, note
    folder = find_data(data)
    if folder is None:
        raise HopefearError(
            "swvp-parsing needs treebanks, and no folder of corpora was found; give --data, or set "
            "HOPEFEAR_DATA, to a folder that holds conll2007, ptb_sample and ud_english_ewt, or "
            "use --quick, which generates trees"
        )
    banks, missing = {}, []
    for bank in plan.banks:
        absent = [name for name in bank.files.values() if not (folder / name).is_file()]
        if absent:
            missing.append(f"{bank.name} ({absent[0]})")
        else:
            banks[bank.name] = bank
    if not banks:
        raise HopefearError(
            f"{folder} holds none of the treebanks ({', '.join(missing)}); give --data a folder "
            "that holds them, or use --quick, which needs none"
        )
    return banks, folder, f"Not found, and so left out: {', '.join(missing)}." if missing else ""
