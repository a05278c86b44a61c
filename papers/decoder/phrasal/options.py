"""What can translate the phrases of some sentences: tables read as far as they are needed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numba import njit

from hopefear.translation.names import phrase_name
from hopefear.translation.weights import Weights
from phrasal.arpa import LanguageModel, follow
from phrasal.corpus import read_lines
from phrasal.extraction import likeliest

# Dense features of one number come first, in these places.
ONES = ("LM0", "Distortion0", "WordPenalty0", "PhrasePenalty0", "UnknownWordPenalty0")
LM, DISTORTION, WORDS, PHRASES, UNKNOWN = range(len(ONES))
TABLE, REORDERING = "TranslationModel0", "LexicalReordering0"
LOWEST = 1e-9  # of a probability in a table
SPARSE = ("pairs", "words", "lengths", "counts")


class Pair(NamedTuple):
    """An entry of the phrase table, with all it brings to a translation."""

    source: str
    target: str
    scores: tuple[float, ...]  # logarithms
    reordering: tuple[float, ...] = ()
    unknown: bool = False
    sparse: Mapping[str, int] = MappingProxyType({})

    @property
    def name(self) -> str:
        return f"{self.source} ||| {self.target}"


class Options(NamedTuple):
    """Pairs as arrays: ``first[k] : first[k + 1]`` are those of phrase k, the best first."""

    first: np.ndarray
    sizes: np.ndarray  # source words
    starts: np.ndarray  # words of pair i are starts[i] : starts[i + 1]
    words: np.ndarray  # numbers of the language model
    surface: np.ndarray  # numbers that tell unknown words apart too
    scores: np.ndarray
    reordering: np.ndarray
    unknown: np.ndarray
    own: np.ndarray  # sum of the weights of sparse features and of the phrase pair
    worth: np.ndarray  # all but language model, distortion and reordering
    estimate: np.ndarray  # the same with the language model inside the phrase


def read_pairs(
    table: Path, reordering: Path | None, sentences: Iterable[Sequence[str]], sparse: Sequence[str]
) -> dict[str, list[Pair]]:
    """Pairs whose source phrases the sentences have; ``sparse`` are kinds of features to make."""
    runs = {
        " ".join(words[a:b])
        for words in sentences
        for a in range(len(words))
        for b in range(a + 1, len(words) + 1)
    }
    orders: dict[tuple[str, str], tuple[float, ...]] = {}
    for line in read_lines(reordering) if reordering else ():
        source, _, rest = line.partition(" ||| ")
        if source in runs:
            target, scores = rest.split("|||")[:2]
            orders[source, target.strip()] = _logs(scores)
    pairs: dict[str, list[Pair]] = {}
    for line in read_lines(table):
        source, _, rest = line.partition(" ||| ")
        if source in runs:
            target, scores, *more = (part.strip() for part in rest.split("|||"))
            width = len(next(iter(orders.values()), ()))
            order = orders.get((source, target), (math.log(1 / 3),) * width)
            features = sparse_features(source, target, more, sparse)
            pairs.setdefault(source, []).append(
                Pair(source, target, _logs(scores), order, sparse=features)
            )
    return pairs


def _logs(text: str) -> tuple[float, ...]:
    return tuple([math.log(max(LOWEST, float(number))) for number in text.split()])


def sparse_features(
    source: str, target: str, more: Sequence[str], kinds: Sequence[str]
) -> Mapping[str, int]:
    """Names and counts: the pair, its linked words and lengths, how often it was seen.

    Parameters
    ----------
    source, target : str
        Words of the phrases.
    more : sequence of str
        What stands behind the scores: links such as ``0-0 1-2``, and three counts.
    kinds : sequence of str
        Which to make, of ``SPARSE``.
    """
    names: Counter[str] = Counter()
    f, e = source.split(), target.split()
    if "pairs" in kinds:
        names[_name("pair", f"{source} ||| {target}")] += 1
    if "words" in kinds and more:
        for link in more[0].split():
            j, i = map(int, link.split("-"))
            names[_name("wt", f"{f[j]} ||| {e[i]}")] += 1
    if "lengths" in kinds:
        names[f"pl_{len(f)},{len(e)}"] += 1
    if "counts" in kinds and len(more) > 1:
        names[f"pc_{min(int(more[1].split()[-1]).bit_length(), 8)}"] += 1
    return names


def _name(kind: str, pair: str) -> str:
    """Spelled as the library spells phrase pairs, so that any word may be in it."""
    return kind + phrase_name(pair).removeprefix("pp")


class Table:
    """Pairs for sentences under weights, the ``most`` best of each phrase.

    Parameters
    ----------
    pairs : dict
        Pairs of source phrases, as of :func:`read_pairs`.
    sentences : sequence of sequences of str
        What is to be translated; words without a pair are copied.
    weights : Weights
        Of dense features, of sparse ones, and of phrase pairs.
    model : LanguageModel
        Judges how well the words of a pair follow each other.
    most : int
        Pairs of a source phrase that are tried; more find more and take longer.
    """

    def __init__(
        self,
        pairs: dict[str, list[Pair]],
        sentences: Sequence[Sequence[str]],
        weights: Weights,
        model: LanguageModel,
        most: int = 20,
    ) -> None:
        self.layout = layout(pairs)
        self.dense = weights.arranged(self.layout).dense
        width = dict(self.layout)
        blank = (0.0,) * width[TABLE], (0.0,) * width.get(REORDERING, 0)
        phrases = dict(pairs)
        for word in {word for words in sentences for word in words if word not in pairs}:
            phrases[word] = [Pair(word, word, *blank, unknown=True)]
        self.places = _places(phrases, sentences)
        self.pairs, self.options = _chosen(phrases, weights, self.dense, model, most)


def layout(pairs: dict[str, list[Pair]]) -> tuple[tuple[str, int], ...]:
    """Dense features and how many numbers each has."""
    some = next(iter(pairs.values()))[0]
    names = (*((name, 1) for name in ONES), (TABLE, len(some.scores)))
    return (*names, (REORDERING, 6)) if some.reordering else names


def _places(phrases: Iterable[str], sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
    """Numbers of the phrases from each place of each sentence on; -1 where there is none."""
    numbers = {source: k for k, source in enumerate(phrases)}
    longest = max((source.count(" ") + 1 for source in numbers), default=1)
    places = []
    for words in sentences:
        place = np.full((len(words), longest), -1)
        for a in range(len(words)):
            for b in range(a + 1, min(a + longest, len(words)) + 1):
                place[a, b - a - 1] = numbers.get(" ".join(words[a:b]), -1)
        places.append(place)
    return places


def _chosen(
    phrases: dict[str, list[Pair]],
    weights: Weights,
    dense: np.ndarray,
    model: LanguageModel,
    most: int,
) -> tuple[list[Pair], Options]:
    pairs = [pair for entries in phrases.values() for pair in entries]
    group = np.repeat(np.arange(len(phrases)), [len(entries) for entries in phrases.values()])
    targets = [pair.target.split() for pair in pairs]
    starts = np.cumsum([0, *map(len, targets)])
    words = np.array(model.numbers(word for target in targets for word in target), np.int64)
    scores = np.array([pair.scores for pair in pairs])
    unknown = np.array([float(pair.unknown) for pair in pairs])
    own = np.array([_own(pair, weights) for pair in pairs])
    worth = own + dense[PHRASES] - dense[WORDS] * np.diff(starts) - dense[UNKNOWN] * unknown
    worth += scores @ dense[len(ONES) : len(ONES) + scores.shape[1]]
    estimate = worth + dense[LM] * _fluency(model.graph, starts, words)
    rows = likeliest(group, estimate, most)
    kept = [targets[k] for k in rows]
    known: dict[str, int] = {}
    surface = [known.setdefault(word, len(known)) for target in kept for word in target]
    reordering = np.array([pairs[k].reordering for k in rows])
    return [pairs[k] for k in rows], Options(
        np.cumsum([0, *np.bincount(group[rows], minlength=len(phrases))]),
        np.array([pairs[k].source.count(" ") + 1 for k in rows]),
        np.cumsum([0, *map(len, kept)]),
        np.array(model.numbers(word for target in kept for word in target), np.int64),
        np.array(surface, np.int64),
        scores[rows],
        reordering.reshape(len(rows), -1),
        *(column[rows] for column in (unknown, own, worth, estimate)),
    )


def _own(pair: Pair, weights: Weights) -> float:
    own = weights.phrases.get(pair.name, 0.0) if weights.phrases else 0.0
    if weights.sparse:
        own += sum(weights.sparse.get(name, 0.0) * n for name, n in pair.sparse.items())
    return own


@njit(cache=True)
def _fluency(graph, starts, words):
    """Logarithms of probabilities of the words of each pair, whatever stands before it."""
    totals = np.zeros(len(starts) - 1)
    for k in range(len(totals)):
        node = 0
        for i in range(starts[k], starts[k + 1]):
            log, node = follow(graph, node, words[i])
            totals[k] += log
    return totals
