"""N-best lists: ways through a lattice, best first, their features, and lines for tuning."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from phrasal.arpa import follow
from phrasal.options import DISTORTION, LM, ONES, PHRASES, UNKNOWN, WORDS, Pair
from phrasal.search import orientation

TWO_HASHES = (1_000_003, 2_000_029)
PRIME = (1 << 31) - 1


class Ways(NamedTuple):
    """Derivations: way k has pairs ``row`` for words from ``start`` on, ``first[k : k + 2]``."""

    first: np.ndarray
    row: np.ndarray
    start: np.ndarray


@njit(cache=True)
def best_ways(lattice, options, n, most):
    """The n best with different words, of the ``most`` best derivations; A* from the end.

    Scores of arcs are exact estimates of what lies before them, so whole ways come best first. Of
    each node the next best arc is taken up when the one before it has been.
    """
    first, rows, starts = [0], [0 for _ in range(0)], [0 for _ in range(0)]
    known = {(0, 0): 0}
    links = [(-1, -1)]  # an arc, and the link behind it
    heap = [(0.0, 0, 0, 0.0, 0) for _ in range(0)]  # score, turn, arc, score behind it, link
    goal = len(lattice.first) - 2
    if lattice.first[goal] < lattice.first[goal + 1]:
        arc = lattice.first[goal]
        heapq.heappush(heap, (-lattice.score[arc], 0, arc, 0.0, 0))
    heads = np.repeat(np.arange(goal + 1), np.diff(lattice.first))
    turn, ways = 1, 0
    while heap and ways < most and len(first) <= n:
        _, _, arc, behind, link = heapq.heappop(heap)
        if arc + 1 < lattice.first[heads[arc] + 1]:
            entry = (-(lattice.score[arc + 1] + behind), turn, arc + 1, behind, link)
            heapq.heappush(heap, entry)
        links.append((arc, link))
        link = len(links) - 1
        turn += 1
        tail = lattice.tail[arc]
        if tail:
            up, gained = lattice.first[tail], behind + lattice.gain[arc]
            heapq.heappush(heap, (-(lattice.score[up] + gained), turn, up, gained, link))
            turn += 1
            continue
        ways += 1
        one, two, at = 1, 1, link
        while at:
            row = lattice.row[links[at][0]]
            if row >= 0:
                for k in range(options.starts[row], options.starts[row + 1]):
                    one = (one * TWO_HASHES[0] + options.surface[k] + 1) % PRIME
                    two = (two * TWO_HASHES[1] + options.surface[k] + 1) % PRIME
            at = links[at][1]
        if (one, two) in known:
            continue
        known[one, two] = 1
        at = link
        while at:
            if lattice.row[links[at][0]] >= 0:
                rows.append(lattice.row[links[at][0]])
                starts.append(lattice.start[links[at][0]])
            at = links[at][1]
        first.append(len(rows))
    return Ways(np.array(first), np.array(rows, np.int64), np.array(starts, np.int64))


@njit(cache=True)
def features(ways, size, options, graph, steps):
    """Dense features of derivations, none of which depends on the weights."""
    n_scores, n_orders = options.scores.shape[1], options.reordering.shape[1]
    before, after = len(ONES) + n_scores, len(ONES) + n_scores + 3
    values = np.zeros((len(ways.first) - 1, before + n_orders))
    for k in range(len(values)):
        state, begin, end, last = steps.start, 0, 0, -1
        for i in range(ways.first[k], ways.first[k + 1]):
            row, start = ways.row[i], ways.start[i]
            stop = start + options.sizes[row]
            for j in range(options.starts[row], options.starts[row + 1]):
                log, state = follow(graph, state, options.words[j])
                values[k, LM] += log
                values[k, WORDS] -= 1.0
            values[k, DISTORTION] -= abs(start - end)
            values[k, PHRASES] += 1.0
            values[k, UNKNOWN] -= options.unknown[row]
            for j in range(n_scores):
                values[k, len(ONES) + j] += options.scores[row, j]
            if n_orders:
                way = orientation(begin, end, start, stop)
                values[k, before + way] += options.reordering[row, way]
                if last >= 0:
                    values[k, after + way] += options.reordering[last, 3 + way]
            begin, end, last = start, stop, row
        values[k, LM] += follow(graph, state, steps.end)[0]
        if n_orders and last >= 0:
            way = orientation(begin, end, size, size + 1)
            values[k, after + way] += options.reordering[last, 3 + way]
    return values


def lines(
    number: int,
    ways: Ways,
    values: np.ndarray,
    scores: np.ndarray,
    layout: Sequence[tuple[str, int]],
    pairs: Sequence[Pair],
) -> Iterator[str]:
    """Lines of Moses' format for the translations of one sentence."""
    form = " ".join(f"{name}={' %.4f' * width}" for name, width in layout)
    values = np.round(values, 4) + 0.0  # adding 0 mends minus zero
    for k, score in enumerate(scores.tolist()):
        here = slice(ways.first[k], ways.first[k + 1])
        used = [pairs[row] for row in ways.row[here]]
        text = form % tuple(values[k].tolist())
        names: dict[str, int] = {}
        for pair in used:
            for name, n in pair.sparse.items():
                names[name] = names.get(name, 0) + n
        sparse = "".join([f" {name}= {n}" for name, n in sorted(names.items())])
        spans, at = [], 0
        for pair, start in zip(used, ways.start[here].tolist(), strict=True):
            stop, end = start + pair.source.count(" ") + 1, at + pair.target.count(" ") + 1
            spans.append(f"{_span(start, stop)}={_span(at, end)}")
            at = end
        words = " ".join([pair.target for pair in used])
        yield f"{number} ||| {words} ||| {text}{sparse} ||| {score:.4f} ||| {' '.join(spans)}"


def _span(start: int, end: int) -> str:
    return str(start) if end == start + 1 else f"{start}-{end - 1}"
