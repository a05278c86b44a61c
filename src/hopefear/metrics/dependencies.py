"""Scores of dependency trees: attachment with and without relations, punctuation, morphology.

Scores are percentages, 0 to 100.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear import __version__
from hopefear.errors import HopefearError
from hopefear.metrics.base import Metric, Scores, percent, plain
from hopefear.metrics.chunks import coded

# Relations and features as the shared task of CoNLL 2018 sorts them.
CONTENT = {
    *("nsubj", "obj", "iobj", "csubj", "ccomp", "xcomp", "obl", "vocative", "expl", "dislocated"),
    *("advcl", "advmod", "discourse", "nmod", "appos", "nummod", "acl", "amod", "conj", "fixed"),
    *("flat", "compound", "list", "parataxis", "orphan", "goeswith", "reparandum", "root", "dep"),
}
FUNCTIONAL = {"aux", "cop", "mark", "det", "clf", "case", "cc"}
FEATURES = {
    *("PronType", "NumType", "Poss", "Reflex", "Foreign", "Abbr", "Gender", "Animacy", "Number"),
    *("Case", "Definite", "Degree", "VerbForm", "Mood", "Tense", "Aspect", "Voice", "Evident"),
    *("Polarity", "Person", "Polite"),
}

WORDS, HEADS, LABELLED, UNIVERSAL, LABELS = range(5)
BARE_WORDS, BARE_HEADS, BARE_LABELLED = range(5, 8)  # without punctuation
GOLD_CONTENT, CONTENT_OUT, CONTENT_RIGHT, MORPHOLOGY = range(8, 12)
SENTENCES, TREES, LABELLED_TREES, BARE_TREES, BARE_LABELLED_TREES = range(12, 17)
GOLD_ROOTS, ROOTS_OUT, ROOTS_RIGHT = range(17, 20)
SIZE = 20
OF_RELATIONS = {"las", "labels", "las_nopunct", "trees_labelled", "trees_labelled_nopunct"}
OF_UNIVERSAL = {"las_universal", "clas", "mlas"}


class Trees(NamedTuple):
    """Fields of trees that scores read; strings are lists, lists of lists or columns.

    Parameters
    ----------
    starts : int array
        Sentence i has the words ``starts[i] .. starts[i + 1] - 1``.
    heads : int array [words]
        From 1; 0 is the root.
    relations : strings, optional
        The relation of each word to its head; without, all are alike.
    forms : strings, optional
        The words, which tell punctuation; without, none is.
    upos, feats : strings, optional
        Universal tags, and features such as ``Case=Nom|Number=Sing``, for ``mlas``; without, all
        are alike.
    """

    starts: ArrayLike
    heads: ArrayLike
    relations: Any = None
    forms: Any = None
    upos: Any = None
    feats: Any = None

    @classmethod
    def of(cls, bank: Any) -> Trees:
        """From what has ``starts``, ``heads``, ``relations`` and ``sentences``, as treebanks do."""
        columns = bank.sentences.columns
        table = (columns.get(name) for name in ("form", "upos", "feats"))
        return cls(bank.starts, bank.heads, bank.relations, *table)


@dataclass(frozen=True)
class Dependencies(Metric):
    """Attachment scores of CoNLL-X and of CoNLL 2018, complete trees and roots.

    ``uas = 100 heads right / words, las = 100 (head and relation right) / words``

    Parameters
    ----------
    labelled : bool
        Score relations too. Without, only scores of heads are there.
    universal : bool
        Relations are Universal Dependencies: there are ``las_universal``, ``clas`` and ``mlas``.

    Notes
    -----
    ``las`` compares whole relations. ``las_universal``, ``clas`` and ``mlas`` are the ``LAS``,
    ``CLAS`` and ``MLAS`` of the CoNLL 2018 script, which cuts subtypes (``nmod:poss`` is ``nmod``).
    ``clas = 2 right / (reference + output)`` counts words with a content relation; for ``mlas``
    such a word is right where its tag, its universal features, and relation, tag and features
    of its functional children are right too. ``labels`` is the share of right relations, whatever
    the head. ``trees`` are sentences with all heads right, ``trees_labelled`` with all relations.
    ``roots`` is the F1 of words whose head is the root: of one root a sentence, the share of right
    ones. ``*_nopunct`` leave out, as the CoNLL-X script does, words of which every character is
    punctuation (of a Unicode class P, so ``$`` and ``+`` are not). A score with nothing
    to divide by is 0. Sentences without words are not counted.

    Examples
    --------
    >>> gold = Trees([0, 3], [2, 0, 2], ["nsubj", "root", "punct"], ["It", "rains", "."])
    >>> metric = Dependencies()
    >>> scores = metric.scores(metric.total(gold, gold._replace(heads=[2, 0, 1])))
    >>> round(scores["uas"], 2), scores["uas_nopunct"], scores["clas"], scores["trees"]
    (66.67, 100.0, 100.0, 0.0)
    """

    name: ClassVar[str] = "dependencies"
    main: ClassVar[str] = "las"
    # Right ones, and those of reference and output that there are.
    reads: ClassVar[Mapping[str, tuple[int, ...]]] = {
        "uas": (HEADS, WORDS),
        "las": (LABELLED, WORDS),
        "las_universal": (UNIVERSAL, WORDS),
        "clas": (CONTENT_RIGHT, GOLD_CONTENT, CONTENT_OUT),
        "mlas": (MORPHOLOGY, GOLD_CONTENT, CONTENT_OUT),
        "labels": (LABELS, WORDS),
        "uas_nopunct": (BARE_HEADS, BARE_WORDS),
        "las_nopunct": (BARE_LABELLED, BARE_WORDS),
        "trees": (TREES, SENTENCES),
        "trees_labelled": (LABELLED_TREES, SENTENCES),
        "trees_nopunct": (BARE_TREES, SENTENCES),
        "trees_labelled_nopunct": (BARE_LABELLED_TREES, SENTENCES),
        "roots": (ROOTS_RIGHT, GOLD_ROOTS, ROOTS_OUT),
    }

    labelled: bool = True
    universal: bool = True

    def statistics(self, references: Trees, outputs: Trees) -> NDArray[np.int64]:
        """Returns the counts of each sentence, ``[sentences, 20]``."""
        return _ComparedTrees(references, outputs).rows()

    def names(self) -> tuple[str, ...]:
        """The scores there are."""
        without = set() if self.labelled else OF_RELATIONS
        without = without | (set() if self.labelled and self.universal else OF_UNIVERSAL)
        return tuple(name for name in self.reads if name not in without)

    def scores(self, sums: ArrayLike) -> Scores:
        columns = np.moveaxis(np.asarray(sums), -1, 0)
        scores = {}
        for name in self.names():
            right, *totals = self.reads[name]
            # Of one whole the share of it; of two, 2 right / (reference + output), which is F1.
            scores[name] = percent(len(totals) * columns[right], columns[totals].sum(axis=0))
        return plain(scores | {"words": columns[WORDS], "sentences": columns[SENTENCES]})

    @property
    def signature(self) -> str:
        relations = "universal" if self.universal else "as-given"
        labels = relations if self.labelled else "none"
        return f"metric:dependencies|relations:{labels}|punctuation:unicode-P|v:{__version__}"


LENGTHS = ((1, 1), (2, 2), (3, 6), (7, 14), (15, None))
SENTENCE_LENGTHS = ((1, 10), (11, 20), (21, 30), (31, 40), (41, 50), (51, None))
SIDES = ("root", "head before", "head behind")
Table = list[dict[str, Any]]


def tree_errors(reference: Trees, output: Trees) -> dict[str, Table]:
    """Counts right heads and relations, as tables for reports.

    ``length`` sorts arcs by the distance of word and head, ``direction`` by the side of the head,
    ``relation`` by name, the one with most errors first: ``gold`` arcs of the reference,
    ``predicted`` ones of the output, and those that are in both, in percent, as ``precision``,
    ``recall`` and ``f1``; of relations also ``heads``, the words with the right head.
    ``sentence`` sorts sentences by length, with ``uas``, ``las`` and ``trees``. Groups that do not
    occur are left out.

    Examples
    --------
    >>> gold = Trees([0, 3], [2, 0, 2], ["nsubj", "root", "punct"])
    >>> tables = tree_errors(gold, gold._replace(heads=[2, 0, 1]))
    >>> [(row["length"], row["gold"], row["recall"]) for row in tables["length"]]
    [('root', 1, 100.0), ('1', 2, 50.0), ('2', 0, 0.0)]
    >>> tables["relation"][0]["relation"], tables["sentence"][0]["sentence"]
    ('punct', '1–10')
    """
    judged = _ComparedTrees(reference, output)
    positions = judged.position + 1
    sides = [_sides(heads, positions) for heads in judged.heads]
    lengths = [_binned(abs(heads - positions) * (heads > 0), LENGTHS) for heads in judged.heads]
    gold, predicted = judged.relations
    relations = _arcs("relation", judged.names, (gold, predicted), judged.labelled)
    for row in relations:
        words = judged.head[gold == judged.names.index(row["relation"])]
        row["heads"] = percent(words.sum(), len(words)).item()
    relations.sort(key=lambda row: (row["f1"] / 100.0 - 1.0) * (row["gold"] + row["predicted"]))
    return {
        "length": _arcs("length", ["root", *map(_range, LENGTHS)], lengths, judged.head),
        "direction": _arcs("direction", SIDES, sides, judged.head),
        "relation": relations,
        "sentence": _by_sentence(judged.rows()),
    }


class _ComparedTrees:
    """Both trees of all words side by side, and what is right."""

    def __init__(self, reference: Trees, output: Trees) -> None:
        self.starts = np.asarray(reference.starts, np.int64)
        n = int(self.starts[-1])
        self.heads = tuple(np.asarray(t.heads, np.int64) for t in (reference, output))
        for heads in self.heads:
            if heads.shape != (n,):
                raise HopefearError(f"{n} words need a head each, not {len(heads)}")
        self.sentence = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        self.position = np.arange(n) - self.starts[self.sentence]
        self.names, self.relations = _paired(reference.relations, output.relations, n)
        self.head = self.heads[0] == self.heads[1]
        self.label = self.relations[0] == self.relations[1]
        self.labelled = self.head & self.label
        bare, codes = _merged(self.names, lambda name: name.split(":")[0])
        self.bare = tuple(codes[relations] for relations in self.relations)
        self.universal = self.head & (self.bare[0] == self.bare[1])
        self.content = tuple(_in(bare, CONTENT)[relations] for relations in self.bare)
        self.functional = tuple(_in(bare, FUNCTIONAL)[relations] for relations in self.bare)
        self.same_morphology = _equal(reference.upos, output.upos, n, str)
        self.same_morphology &= _equal(reference.feats, output.feats, n, universal_features)
        forms, (codes, _) = _paired(reference.forms, reference.forms, n)
        is_mark = np.array([is_punctuation(form) for form in forms], bool)
        # Of words that are not given, none is punctuation.
        self.punctuation = is_mark[codes] & (reference.forms is not None)

    def rows(self) -> NDArray[np.int64]:
        bare = ~self.punctuation
        gold, predicted = self.content
        rows = np.zeros((len(self.starts) - 1, SIZE), np.int64)
        masks = {
            WORDS: np.ones(len(bare), bool),
            HEADS: self.head,
            LABELLED: self.labelled,
            UNIVERSAL: self.universal,
            LABELS: self.label,
            BARE_WORDS: bare,
            BARE_HEADS: bare & self.head,
            BARE_LABELLED: bare & self.labelled,
            GOLD_CONTENT: gold,
            CONTENT_OUT: predicted,
            CONTENT_RIGHT: gold & self.universal,
            MORPHOLOGY: gold & self.universal & self.same_morphology & self.children_right(),
            GOLD_ROOTS: self.heads[0] == 0,
            ROOTS_OUT: self.heads[1] == 0,
            ROOTS_RIGHT: self.head & (self.heads[0] == 0),
        }
        for column, mask in masks.items():
            rows[:, column] = np.diff(np.concatenate([[0], np.cumsum(mask)])[self.starts])
        words = rows[:, WORDS] > 0
        rows[:, SENTENCES] = words
        for column, right, total in (
            (TREES, HEADS, WORDS),
            (LABELLED_TREES, LABELLED, WORDS),
            (BARE_TREES, BARE_HEADS, BARE_WORDS),
            (BARE_LABELLED_TREES, BARE_LABELLED, BARE_WORDS),
        ):
            rows[:, column] = words & (rows[:, right] == rows[:, total])
        return rows

    def children_right(self) -> NDArray[np.bool_]:
        """Words whose functional children are the same in both trees, with all that is on them."""
        right = np.ones(len(self.sentence), bool)
        fine = self.universal & self.same_morphology
        for functional, heads in zip(self.functional, self.heads, strict=True):
            wrong = functional & ~fine & (heads > 0)
            right[self.starts[self.sentence[wrong]] + heads[wrong] - 1] = False
        return right


def is_punctuation(form: str) -> bool:
    """Whether every character is of a Unicode class P, as in the CoNLL-X script.

    Examples
    --------
    >>> [is_punctuation(form) for form in ("...", "«", "$", "U.S.", "")]
    [True, True, False, False, False]
    """
    return bool(form) and all(unicodedata.category(char)[0] == "P" for char in form)


def universal_features(feats: str) -> str:
    """The universal features of a word, sorted, its others left out.

    Examples
    --------
    >>> universal_features("Typo=Yes|Number=Sing|Case=Nom")
    'Case=Nom|Number=Sing'
    """
    return "|".join(sorted(f for f in feats.split("|") if f.split("=", 1)[0] in FEATURES))


def _paired(gold: Any, predicted: Any, n: int) -> tuple[list[str], tuple[np.ndarray, ...]]:
    """Names, and the code of each word's in both trees."""
    if (gold is None) != (predicted is None):
        raise HopefearError("one of the trees has no relations, tags or features; give both theirs")
    if gold is None or n == 0:
        return ["_"], (np.zeros(n, np.intp), np.zeros(n, np.intp))
    data = coded((gold, predicted))
    for codes in data.codes:
        if len(codes) != n:
            raise HopefearError(f"{n} words need a text each, not {len(codes)}")
    return data.names, data.codes


def _equal(gold: Any, predicted: Any, n: int, meaning: Callable[[str], str]) -> NDArray[np.bool_]:
    names, (first, second) = _paired(gold, predicted, n)
    _, codes = _merged(names, meaning)
    return codes[first] == codes[second]


def _merged(names: list[str], meaning: Callable[[str], str]) -> tuple[list[str], np.ndarray]:
    """Returns the distinct meanings of names, and for each name the index of its meaning."""
    table: dict[str, int] = {}
    codes = [table.setdefault(meaning(name), len(table)) for name in names]
    return list(table), np.array(codes, np.intp)


def _in(names: list[str], chosen: set[str]) -> NDArray[np.bool_]:
    return np.array([name in chosen for name in names], bool)


def _sides(heads: ArrayLike, positions: np.ndarray) -> np.ndarray:
    heads = np.asarray(heads)
    return np.where(heads == 0, 0, np.where(heads < positions, 1, 2))


def _binned(values: np.ndarray, bins: Sequence[tuple[int, Any]]) -> np.ndarray:
    """0 for 0, and the number of the bin, from 1."""
    return np.searchsorted([low for low, _ in bins], values, "right")


def _range(bin: tuple[int, int | None]) -> str:
    low, high = bin
    return f"{low}+" if high is None else str(low) if low == high else f"{low}–{high}"


def _arcs(key: str, names: Sequence[str], groups: Sequence[np.ndarray], right: np.ndarray) -> Table:
    """Arcs of each group in reference and output, and those that are right."""
    gold, predicted = (np.bincount(group, minlength=len(names)) for group in groups)
    correct = np.bincount(groups[0][right], minlength=len(names))
    table = []
    for i in np.flatnonzero(gold + predicted).tolist():
        columns = {
            "precision": percent(correct[i], predicted[i]),
            "recall": percent(correct[i], gold[i]),
            "f1": percent(2 * correct[i], gold[i] + predicted[i]),
        }
        row = {key: names[i], "gold": int(gold[i]), "predicted": int(predicted[i])}
        table.append(row | {name: value.item() for name, value in columns.items()})
    return table


def _by_sentence(rows: NDArray[np.int64]) -> Table:
    groups = _binned(rows[:, WORDS], SENTENCE_LENGTHS)
    table = []
    for i, bin in enumerate(SENTENCE_LENGTHS, 1):
        if not (groups == i).any():
            continue
        scores = Dependencies().scores(rows[groups == i].sum(axis=0))
        names = ("sentences", "words", "uas", "las", "trees")
        table.append({"sentence": _range(bin)} | {name: scores[name] for name in names})
    return table
