"""Lists of parses on disk, cut into parts, and how choices from them are scored and compared."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hopefear import __version__
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.dataset import ListDataset, ListRows, teaching
from hopefear.data.lists.files import read_lists
from hopefear.errors import HopefearError
from hopefear.features.lists.extraction import EXPECTED
from hopefear.features.lists.numbering import NumberedLists, pruned
from hopefear.features.trees import families
from hopefear.metrics.lists import Parseval
from hopefear.storage import load, save
from hopefear.structures.nbest import NBest
from hopefear.tasks.rerank.prepare import dataset
from hopefear.training.decoders.lists import ListDecoder
from hopefear.training.predictors import Predictor
from hopefear_papers.frame import find_files

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
        NumberedLists(rows.scopes, rows.features, rows.indptr, rows.columns, rows.values),
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


def chosen(predictor: Predictor, structure: NBest, data: ListDataset) -> np.ndarray:
    """Counts of the brackets of the best candidate of each list (int64[lists, 3])."""
    return brackets(data, ListDecoder(structure, predictor).predict(data.rows))


def brackets(data: ListDataset, positions: np.ndarray) -> np.ndarray:
    """Counts of brackets of one candidate of each list (int64[lists, 3])."""
    if data.counts is None:
        raise TypeError("lists of parses come with counts of brackets")
    counts: np.ndarray = data.counts[data.rows.starts[:-1] + positions]
    return counts


def f_score(counts: np.ndarray) -> float:
    """F from counts, in percent.

    >>> f_score(np.array([[3, 4, 4], [4, 4, 4]]))
    87.5
    """
    return float(Parseval().scores(counts.sum(axis=0))["f1"]) if len(counts) else 0.0
