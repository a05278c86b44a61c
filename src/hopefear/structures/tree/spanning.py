"""The best tree, arcs may cross: the algorithm of Chu and Liu (1965) and Edmonds (1967).

Every word takes its best head. If that makes no cycle it is the best tree. Otherwise the words
of a cycle become one: an arc h -> m into it is worth ``s(h -> m) - s(head of m in the cycle -> m)``
and opens the cycle at m. A path is grown upwards from a word, each step to the best head of its
last word, until it meets the root or a finished word, and is shortened by every cycle it closes
(Gabow et al., 1986), so each word, joined or not, looks for its head once. On a dense matrix in
which a cycle of c words costs O(c n) this is O(n**2) altogether.

With exactly one arc from the root, a tree is worth the pair (fewer root arcs, score), compared in
this order. Arcs of a cycle never come from the root, so differences leave the first number alone,
and all that changes is that a word takes the root only where it has no other head left. No large
number is added to any score, so nothing is lost to rounding. (Zmigrod, Vieira and Cotterell, 2020,
show another way to the same end.) Where the best tree has one root arc anyway, it is the answer.

References: Chu and Liu (1965), "On the shortest arborescence of a directed graph"; Edmonds (1967),
"Optimum branchings"; Gabow, Galil, Spencer and Tarjan (1986), "Efficient algorithms for finding
minimum spanning trees in undirected and directed graphs"; Zmigrod, Vieira and Cotterell (2020),
"Please mind the root: decoding arborescences for dependency parsing".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.component import helper, shared_kernel

DONE, GONE = -1, -2  # states of slots: leads up to the root; taken in by a cycle


class SpanningSpace(NamedTuple):
    """Working memory of :func:`spanning_tree`; slots are words, or cycles under one of theirs."""

    gain: np.ndarray  # float64[(longest + 1)**2]: row m holds what heads of slot m are worth
    arc: np.ndarray  # int32[(longest + 1)**2]: m * (n + 1) + h of the arc behind each of them
    nodes: np.ndarray  # int32[8 * (longest + 1)]: see _grow


def new_spanning_space(longest: int) -> SpanningSpace:
    """Memory for sentences of up to ``longest`` words: ``12 n**2`` bytes, 1 MB for 300 words."""
    size = (longest + 1) ** 2
    return SpanningSpace(
        np.zeros(size), np.zeros(size, np.int32), np.zeros(8 * (longest + 1), np.int32)
    )


@shared_kernel
def spanning_tree(n, scores, single, space, heads):
    """Put the best tree into ``heads[1:n + 1]`` and return its score.

    Parameters
    ----------
    n : int
        Words of the sentence, at least 1.
    scores : float64[(n + 1) ** 2]
        ``scores[m * (n + 1) + h]`` of the arc h -> m; minus infinity forbids it. What stands
        at h = m and m = 0 is not read.
    single : bool
        Whether exactly one word hangs on the root (else at least one).
    space : SpanningSpace
        Working memory for at least ``n`` words.
    heads : int32[n + 1]
        Holds anything where no tree is allowed; the answer is then minus infinity.

    Examples
    --------
    >>> scores = np.zeros((4, 4))  # [m, h]
    >>> scores[1, 3], scores[2, 0], scores[3, 2], scores[3, 1] = 2.0, 1.0, 1.5, 3.0
    >>> heads = np.zeros(4, np.int32)
    >>> float(spanning_tree(3, scores.ravel(), True, new_spanning_space(3), heads))
    4.5
    >>> heads.tolist()
    [0, 3, 0, 2]
    """
    if not _best_heads(n, scores, heads):
        return -np.inf
    if not _reach_root(n, heads, space.nodes) and not _grow(n, scores, False, space, heads):
        return -np.inf
    if single:
        tops = 0
        for m in range(1, n + 1):
            tops += heads[m] == 0
        if tops > 1 and not _grow(n, scores, True, space, heads):
            return -np.inf
    total = 0.0
    for m in range(1, n + 1):
        total += scores[m * (n + 1) + heads[m]]
    return total


@helper
def _best_heads(n, scores, heads):
    """The best head of every word, the first of equals; False if a word has none."""
    for m in range(1, n + 1):
        row = m * (n + 1)
        head, best = -1, -np.inf
        for h in range(n + 1):
            if scores[row + h] > best and h != m:
                head, best = h, scores[row + h]
        if head < 0:
            return False
        heads[m] = head
    return True


@helper
def _reach_root(n, heads, visits):
    """Whether no word is its own ancestor; ``visits`` is scratch."""
    for m in range(n + 1):
        visits[m] = 0
    for m in range(1, n + 1):
        word = m
        while word != 0 and visits[word] == 0:
            visits[word] = m
            word = heads[word]
        if word != 0 and visits[word] == m:
            return False
    return True


@helper
def _grow(n, scores, few_roots, space, heads):
    """The best tree by growing paths; ``few_roots``: with the fewest arcs from the root, one.

    Returns False if there is none. Nodes 1..n are words, those behind them cycles in the order in
    which they were closed.
    """
    N = n + 1
    gain, arc = space.gain, space.arc
    node = space.nodes[: 2 * N]  # the node in each slot
    parent = space.nodes[2 * N : 4 * N]  # the cycle that took a node in, 0 if none
    choice = space.nodes[4 * N : 6 * N]  # the arc into each node
    state = space.nodes[6 * N : 7 * N]  # of a slot: 0, its place on the path + 1, DONE or GONE
    path = space.nodes[7 * N : 8 * N]  # slots
    for p in range(N * N):
        gain[p] = scores[p]
        arc[p] = p
    for m in range(N):
        gain[m * N + m] = -np.inf
        node[m] = m
        state[m] = 0
    for x in range(2 * N):
        parent[x] = 0
    state[0] = DONE
    n_nodes, tops = N, 0
    for start in range(1, N):
        if state[start] != 0:
            continue
        length, slot = 0, start
        while True:
            if state[slot] == 0:
                path[length] = slot
                length += 1
                state[slot] = length
            head, _ = _best_slot(gain, slot * N, N, few_roots)
            if head < 0:
                return False
            choice[node[slot]] = arc[slot * N + head]
            if state[head] == DONE:
                tops += head == 0
                break
            if state[head] > 0:
                first = state[head] - 1
                for p in range(first, length):
                    parent[node[path[p]]] = n_nodes
                _join(N, gain, arc, state, path, first, length)
                length = first + 1
                slot = path[first]
                node[slot] = n_nodes
                n_nodes += 1
            else:
                slot = head
        for p in range(length):
            state[path[p]] = DONE
    if few_roots and tops > 1:
        return False
    for x in range(n_nodes - 1, n, -1):
        inner = choice[x] // N
        while parent[inner] != x:
            inner = parent[inner]
        choice[inner] = choice[x]
    for m in range(1, N):
        heads[m] = choice[m] % N
    return True


@helper(inline=True)
def _best_slot(gain, row, N, few_roots):
    """The best head in a row of the matrix and its worth, the first of equals; -1 if none."""
    head, best = -1, -np.inf
    for h in range(1 if few_roots else 0, N):
        if gain[row + h] > best:
            head, best = h, gain[row + h]
    if head < 0 and gain[row] > -np.inf:
        head, best = 0, gain[row]
    return head, best


@helper
def _join(N, gain, arc, state, path, first, length):
    """Make one slot, ``path[first]``, of the cycle ``path[first:length]``."""
    whole = path[first]
    for p in range(first, length):
        slot = path[p]
        row = slot * N
        # The head of a slot in the cycle is the next one on the path, and the last one's the first.
        inside = gain[row + path[p + 1 if p + 1 < length else first]]
        if p == first:
            for h in range(N):
                gain[row + h] -= inside
            continue
        for h in range(N):
            worth = gain[row + h] - inside
            if worth > gain[whole * N + h]:
                gain[whole * N + h] = worth
                arc[whole * N + h] = arc[row + h]
        state[slot] = GONE
    for p in range(first, length):
        gain[whole * N + path[p]] = -np.inf
    for m in range(1, N):
        if m == whole or (state[m] != 0 and not 0 < state[m] <= first):
            continue
        row = m * N
        for p in range(first + 1, length):
            slot = path[p]
            if gain[row + slot] > gain[row + whole]:
                gain[row + whole] = gain[row + slot]
                arc[row + whole] = arc[row + slot]
            gain[row + slot] = -np.inf
