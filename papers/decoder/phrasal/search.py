"""Stack decoding with cube pruning: the graph of recombined partial translations of a sentence.

A partial translation covers all words before ``gap`` and those of ``mask`` behind it (bit k: word
gap + k). Those that cover as many words share a stack. Of a stack the best by score and future
estimate are extended: those alike in coverage and end make a group, a group and a source phrase
make a grid, and from all grids together the best pairs are taken up first, ``pops`` a stack.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from numba import njit

from phrasal.arpa import follow
from phrasal.extraction import MONOTONE, OTHER, SWAP


class Beam(NamedTuple):
    """How much is searched; larger numbers find better translations and take longer.

    ``pops`` extensions fill a stack, of whose nodes ``stack`` are extended; a phrase begins at
    most ``limit`` words from the end of the one before and leaves no gap farther back than that.
    """

    pops: int = 300
    stack: int = 100
    limit: int = 6


class Steps(NamedTuple):
    """Weights of what depends on the phrase before: words, jumps, orientations."""

    lm: float
    distortion: float
    reordering: np.ndarray  # empty where there is none
    start: int  # node of the language model
    end: int  # word of the language model


class Lattice(NamedTuple):
    """Arcs by the node that they lead to, ``first[k] : first[k + 1]`` for node k, best first.

    Node 0 is the empty translation, the last one whole ones. An arc adds pair ``row`` for the
    words from ``start`` on; row -1 is the end of the sentence.
    """

    first: np.ndarray
    tail: np.ndarray
    row: np.ndarray
    start: np.ndarray
    gain: np.ndarray
    score: np.ndarray  # of the best way through each arc


@njit(cache=True)
def search(size, place, options, graph, steps, beam):
    """Fill stacks by the number of covered words."""
    future = future_table(size, place, options)
    nodes = [(0, 0, 0, 0, steps.start, -1)]  # gap, mask, begin and end of the phrase, state, pair
    scores = [0.0]
    arcs = [(0, 0, 0, 0, 0.0) for _ in range(0)]  # head, tail, row, start, gain
    members = [0]
    groups = [(0, 1)]  # places among members; all of a group share gap, mask and end
    stacks = [0, 1]  # groups of stack t are stacks[t] : stacks[t + 1]
    for t in range(1, size + 1):
        heap = [(0.0, 0, 0, 0) for _ in range(0)]
        edges = [(0, 0, 0, 0, 0, 0, 0.0) for _ in range(0)]
        for length in range(1, min(t, place.shape[1]) + 1):
            for g in range(stacks[t - length], stacks[t - length + 1]):
                gap, mask, _, end, _, _ = nodes[members[groups[g][0]]]
                for start in range(max(gap, end - beam.limit), end + beam.limit + 1):
                    stop = start + length
                    if stop > size:
                        break
                    phrase = place[start, length - 1]
                    bits = ((1 << length) - 1) << (start - gap)
                    if phrase < 0 or mask & bits:
                        continue
                    new_gap, new_mask = gap, mask | bits
                    while new_mask & 1:
                        new_gap, new_mask = new_gap + 1, new_mask >> 1
                    if stop - new_gap > beam.limit:
                        continue
                    rest = future_of(new_gap, new_mask, size, future)
                    rest -= steps.distortion * abs(start - end)
                    edges.append((g, phrase, start, stop, new_gap, new_mask, rest))
                    top = scores[members[groups[g][0]]] + options.estimate[options.first[phrase]]
                    entry = (-(top + rest), len(edges) - 1, groups[g][0], options.first[phrase])
                    heapq.heappush(heap, entry)
        index = {(0, 0, 0, 0, 0, 0): 0}
        begin = len(nodes)
        for _ in range(beam.pops):
            if not heap:
                break
            _, e, m, row = heapq.heappop(heap)
            g, phrase, start, stop, gap, mask, rest = edges[e]
            tail = members[m]
            # Every cell of a grid is reached once: down the first column, then along rows.
            if row == options.first[phrase] and m + 1 < groups[g][1]:
                below = scores[members[m + 1]] + options.estimate[row] + rest
                heapq.heappush(heap, (-below, e, m + 1, row))
            if row + 1 < options.first[phrase + 1]:
                beside = scores[tail] + options.estimate[row + 1] + rest
                heapq.heappush(heap, (-beside, e, m, row + 1))
            _, _, tail_begin, tail_end, state, tail_row = nodes[tail]
            gain = options.worth[row] - steps.distortion * abs(start - tail_end)
            for k in range(options.starts[row], options.starts[row + 1]):
                log, state = follow(graph, state, options.words[k])
                gain += steps.lm * log
            key = (gap, mask, stop, state, 0, 0)
            if len(steps.reordering):
                way = orientation(tail_begin, tail_end, start, stop)
                gain += steps.reordering[way] * options.reordering[row, way]
                if tail_row >= 0:
                    gain += steps.reordering[3 + way] * options.reordering[tail_row, 3 + way]
                key = (gap, mask, stop, state, start, row)  # a later phrase looks back at it
            node = index.get(key, -1)
            if node < 0:
                node = index[key] = len(nodes)
                nodes.append((gap, mask, start, stop, state, row))
                scores.append(-np.inf)
            arcs.append((node, tail, row, start, gain))
            scores[node] = max(scores[node], scores[tail] + gain)
        worths = np.empty(len(nodes) - begin)
        for k in range(len(worths)):
            gap, mask, _, _, _, _ = nodes[begin + k]
            worths[k] = scores[begin + k] + future_of(gap, mask, size, future)
        best = begin + np.argsort(-worths, kind="mergesort")[: beam.stack]
        _group(best, nodes, members, groups)
        stacks.append(len(groups))
    goal = len(nodes)
    for g in range(stacks[size], stacks[size + 1]):
        for m in range(groups[g][0], groups[g][1]):
            _, _, tail_begin, tail_end, state, row = nodes[members[m]]
            gain = steps.lm * follow(graph, state, steps.end)[0]
            if len(steps.reordering) and row >= 0:
                way = orientation(tail_begin, tail_end, size, size + 1)
                gain += steps.reordering[3 + way] * options.reordering[row, 3 + way]
            arcs.append((goal, members[m], -1, size, gain))
    return _lattice(arcs, scores, goal + 1)


@njit(cache=True)
def orientation(tail_begin, tail_end, start, stop):
    """How a phrase stands to the one before it in the target."""
    if start == tail_end:
        return MONOTONE
    return SWAP if stop == tail_begin else OTHER


@njit(cache=True)
def future_table(size, place, options):
    """What each run of words is worth at best, without jumps and across no border of phrases."""
    best = np.full((size + 1, size + 1), -np.inf)
    for length in range(1, size + 1):
        for a in range(size - length + 1):
            b = a + length
            if length <= place.shape[1] and place[a, length - 1] >= 0:
                best[a, b] = options.estimate[options.first[place[a, length - 1]]]
            for m in range(a + 1, b):
                best[a, b] = max(best[a, b], best[a, m] + best[m, b])
    return best


@njit(cache=True)
def future_of(gap, mask, size, future):
    """Sum over the runs of words that are not covered yet."""
    total, start = 0.0, gap
    while mask:
        while not mask & 1:
            gap, mask = gap + 1, mask >> 1
        total += future[start, gap]
        while mask & 1:
            gap, mask = gap + 1, mask >> 1
        start = gap
    return total + future[start, size] if start < size else total


@njit(cache=True)
def _group(best, nodes, members, groups):
    """Put nodes of one coverage and end beside each other, the best ones first."""
    known = {(0, 0, 0): 0}
    which = np.empty(len(best), np.int64)
    counts = np.zeros(len(best), np.int64)
    for k in range(len(best)):
        gap, mask, _, end, _, _ = nodes[best[k]]
        # An end of 0 is none that a phrase has, so the entry that gives the table its type is free.
        which[k] = known.setdefault((gap, mask, end), len(known)) - 1
        counts[which[k]] += 1
    order = np.argsort(which, kind="mergesort")
    at = 0
    for k in range(len(known) - 1):
        groups.append((len(members), len(members) + counts[k]))
        for m in range(at, at + counts[k]):
            members.append(best[order[m]])
        at += counts[k]


@njit(cache=True)
def _lattice(arcs, scores, n_nodes):
    """Arcs sorted by their heads, and by score for each."""
    values = np.empty(len(arcs))
    heads = np.empty(len(arcs), np.int64)
    for k in range(len(arcs)):
        heads[k] = arcs[k][0]
        values[k] = scores[arcs[k][1]] + arcs[k][4]
    order = np.argsort(-values, kind="mergesort")
    order = order[np.argsort(heads[order], kind="mergesort")]
    first = np.zeros(n_nodes + 1, np.int64)
    for k in range(len(arcs)):
        first[heads[k] + 1] += 1
    tail = np.array([arcs[k][1] for k in order])
    row = np.array([arcs[k][2] for k in order])
    start = np.array([arcs[k][3] for k in order])
    gain = np.array([arcs[k][4] for k in order])
    return Lattice(np.cumsum(first), tail, row, start, gain, values[order])
