"""The graph a search leaves behind, and the ways through it, best first."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from language_model import Words


class Option(NamedTuple):
    """A phrase that can translate the source words ``start .. end - 1``."""

    start: int
    end: int
    words: Words
    scores: tuple[float, ...]  # logarithms of the table's
    own: float  # the weight of this very phrase pair
    worth: float  # what the option is worth by itself: its features but LM and distortion
    estimate: float  # the same with the language model inside the phrase


class Arc(NamedTuple):
    """A way to reach a node: from another one, by an option, at a gain in score."""

    tail: Node
    option: Option | None  # None: the end of the sentence
    gain: float

    @property
    def score(self) -> float:
        return self.tail.score + self.gain


class Node:
    """Partial translations with the same future: recombined hypotheses."""

    __slots__ = ("arcs", "covered", "end", "history", "score", "sorted")

    def __init__(self, covered: int, end: int, history: Words, score: float = -math.inf) -> None:
        self.covered = covered  # bit i: source word i is translated
        self.end = end  # behind the last source word that was translated
        self.history = history
        self.score = score  # of the best way here
        self.arcs: list[Arc] = []
        self.sorted = False

    def join(self, arc: Arc) -> None:
        self.arcs.append(arc)
        self.score = max(self.score, arc.score)

    def arc(self, i: int) -> Arc | None:
        """The i-th best arc; only for nodes that get no more of them."""
        if not self.sorted:
            self.arcs.sort(key=lambda arc: -arc.score)
            self.sorted = True
        return self.arcs[i] if i < len(self.arcs) else None


def derivations(goal: Node) -> Iterator[tuple[Option, ...]]:
    """Ways to the goal, best first: A* backwards, where the scores of nodes are exact estimates.

    Of each node only the best arc is taken up, and the next best when that one has been, so the
    heap grows by two entries a step however many arcs there are.
    """
    heap: list[tuple[float, int, Node, int, float, tuple[Option, ...]]] = []
    turn = count()

    def push(node: Node, i: int, after: float, phrases: tuple[Option, ...]) -> None:
        arc = node.arc(i)
        if arc is not None:
            heapq.heappush(heap, (-(arc.score + after), next(turn), node, i, after, phrases))

    push(goal, 0, 0.0, ())
    while heap:
        _, _, node, i, after, phrases = heapq.heappop(heap)
        push(node, i + 1, after, phrases)
        arc = node.arcs[i]
        if arc.option is not None:
            phrases = (arc.option, *phrases)
        if arc.tail.arcs:
            push(arc.tail, 0, after + arc.gain, phrases)
        else:
            yield phrases
