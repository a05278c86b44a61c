"""Translate sentences into N-best lists under weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from hopefear.translation.weights import Weights
from phrasal.arpa import LanguageModel
from phrasal.lists import Ways, best_ways, features, lines
from phrasal.options import DISTORTION, LM, REORDERING, Pair, Table
from phrasal.search import Beam, Steps, search

FARTHEST = 40  # words that a mask of 64 bits has room for, beside a phrase


class Translations(NamedTuple):
    """The best translations of a sentence: derivations, dense features and scores."""

    ways: Ways
    values: np.ndarray
    scores: np.ndarray


class Decoder:
    """Searches translations of some sentences.

    Parameters
    ----------
    pairs : dict
        Pairs of source phrases, as of :func:`~phrasal.options.read_pairs`.
    model : LanguageModel
        Scores target words.
    sentences : sequence of sequences of str
        What is to be translated.
    weights : Weights
        Of every dense feature, and of any sparse ones and phrase pairs.
    beam : Beam
        How much is searched.
    most : int
        Pairs of a source phrase that are tried.
    """

    def __init__(
        self,
        pairs: dict[str, list[Pair]],
        model: LanguageModel,
        sentences: Sequence[Sequence[str]],
        weights: Weights,
        beam: Beam | None = None,
        most: int = 20,
    ) -> None:
        self.beam, self.model = beam or Beam(), model
        if self.beam.limit > FARTHEST:
            raise ValueError(f"limit={self.beam.limit}: a jump has {FARTHEST} words at most")
        self.sentences = sentences
        self.table = Table(pairs, sentences, weights, model, most)
        dense, width = self.table.dense, dict(self.table.layout).get(REORDERING, 0)
        orders = np.ascontiguousarray(dense[len(dense) - width :])
        self.steps = Steps(
            float(dense[LM]), float(dense[DISTORTION]), orders, model.start, model.end
        )

    def translate(self, number: int, n: int, factor: int = 200) -> Translations:
        """The n best translations of a sentence with different words.

        ``factor * n`` derivations are looked at, at most.
        """
        size, place = len(self.sentences[number]), self.table.places[number]
        options, graph = self.table.options, self.model.graph
        lattice = search(size, place, options, graph, self.steps, self.beam)
        ways = best_ways(lattice, options, n, n * factor)
        values = features(ways, size, options, graph, self.steps)
        own = np.append(0.0, np.cumsum(options.own[ways.row]))
        scores = values @ self.table.dense + own[ways.first[1:]] - own[ways.first[:-1]]
        return Translations(ways, values, scores)

    def lines(self, number: int, n: int) -> Iterator[str]:
        """Lines of an N-best list for a sentence."""
        found = self.translate(number, n)
        return lines(number, *found, self.table.layout, self.table.pairs)

    def text(self, found: Translations, k: int) -> str:
        """Words of the k-th best translation."""
        rows = found.ways.row[found.ways.first[k] : found.ways.first[k + 1]]
        return " ".join([self.table.pairs[row].target for row in rows])
