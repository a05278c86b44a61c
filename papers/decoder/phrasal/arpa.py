"""Language models in the format of ARPA, as a graph that numba walks.

Every run of words in the file is a node, and so is the empty one, node 0. Behind a history stands
the node of its longest end that the file has; from there a word leads on, or what is left of a
history falls back on its end without its first word.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numba import njit

from phrasal.kneser_ney import BEGIN, END, UNKNOWN

LOWEST = -100.0  # natural logarithm of a probability where a file has no unknown word


class Graph(NamedTuple):
    """Nodes: their words' probabilities, back-off weights, shorter ends, and what leads to them."""

    log_p: np.ndarray
    back: np.ndarray
    shorter: np.ndarray
    state: np.ndarray  # the node that a later word needs: as long as it tells histories apart
    keys: np.ndarray  # two columns, node and word; -1 where there is none
    nodes: np.ndarray


class LanguageModel(NamedTuple):
    """A graph and the numbers of its words, which are also their nodes."""

    graph: Graph
    words: dict[str, int]

    @property
    def start(self) -> int:
        """The node at the beginning of a sentence."""
        return int(self.graph.state[self.words[BEGIN]])

    @property
    def end(self) -> int:
        return self.words[END]

    def numbers(self, words: Iterable[str]) -> list[int]:
        unknown = self.words[UNKNOWN]
        return [self.words.get(word, unknown) for word in words]

    def log_p(self, history: Iterable[str], word: str) -> float:
        """Natural logarithm of a word's probability behind a history; ``<s>`` may begin it."""
        node = 0
        for number in self.numbers(history):
            _, node = follow(self.graph, node, number)
        return float(follow(self.graph, node, *self.numbers([word]))[0])


def read_arpa(lines: Iterable[str]) -> LanguageModel:
    """The model of a file; n-grams must stand behind those that they begin with."""
    known = {"": 0}
    logs, backs, shorter, heads, lasts = [0.0], [0.0], [0], [0], [0]
    size = 0
    for line in lines:
        if line.startswith("\\") and line.endswith("-grams:"):
            size = int(line[1 : line.index("-")])
            if size == 2:
                _complete(known, logs, backs, shorter, heads, lasts)
        elif size and line and not line.startswith("\\"):
            log, words, *back = line.split("\t")
            number = known[words] = len(logs)
            head, _, last = words.rpartition(" ")
            if head not in known:
                raise ValueError(f"{words!r} without {head!r} before it: the model lacks a history")
            logs.append(float(log))
            backs.append(float(back[0]) if back else 0.0)
            heads.append(known[head])
            lasts.append(number if size == 1 else known[last])
            rest = words
            while rest:
                _, _, rest = rest.partition(" ")
                if rest in known:
                    break
            shorter.append(known[rest])
    if size < 2:
        _complete(known, logs, backs, shorter, heads, lasts)
    words = {word: number for word, number in known.items() if word and " " not in word}
    tables = (np.array(column) for column in (logs, backs, shorter, heads, lasts))
    log_p, back, shorter_of, head, last = tables
    state = np.arange(len(logs))
    leads = np.bincount(head, minlength=len(logs)) > 0
    for number in range(1, len(logs)):  # shorter ends have smaller numbers
        if not leads[number] and back[number] == 0.0:
            state[number] = state[shorter_of[number]]
    places = 1 << (2 * len(logs)).bit_length()
    keys, nodes = np.full((places, 2), -1), np.full(places, -1)
    _enter(head, last, keys, nodes)
    tens = np.log(10.0)
    return LanguageModel(Graph(log_p * tens, back * tens, shorter_of, state, keys, nodes), words)


def _complete(known, logs, backs, shorter, heads, lasts) -> None:
    """Give words that every model needs to those that lack them."""
    for word in (UNKNOWN, BEGIN, END):
        if word not in known:
            known[word] = len(logs)
            lasts.append(len(logs))
            logs.append(LOWEST / np.log(10.0))
            backs.append(0.0)
            shorter.append(0)
            heads.append(0)


@njit(cache=True)
def _slot(node, word, keys):
    """Where a step stands, or the empty place where it would."""
    value = node * 2654435761 + word * 2246822519
    at = (value ^ (value >> 17)) & (len(keys) - 1)
    while keys[at, 0] >= 0 and (keys[at, 0] != node or keys[at, 1] != word):
        at = (at + 1) & (len(keys) - 1)
    return at


@njit(cache=True)
def _enter(head, last, keys, nodes):
    for number in range(1, len(head)):
        at = _slot(head[number], last[number], keys)
        keys[at, 0], keys[at, 1], nodes[at] = head[number], last[number], number


@njit(cache=True)
def follow(graph, node, word):
    """Logarithm of a word's probability at a node, and the node behind it."""
    total = 0.0
    while True:
        found = graph.nodes[_slot(node, word, graph.keys)]
        if found >= 0:
            return total + graph.log_p[found], graph.state[found]
        total += graph.back[node]
        node = graph.shorter[node]
