"""Second-order trees by plain enumeration, and random sentences for them."""

from __future__ import annotations

import itertools

import numpy as np

from hopefear.structures.tree.parts import Scores, fill_arcs, new_arcs, part_counts
from hopefear.testing.trees import is_tree


def candidate_trees(arcs, n, single=False, projective=False):
    """All trees made of candidate arcs."""
    choices = [arcs.head[arcs.first[m] : arcs.first[m + 1]].tolist() for m in range(1, n + 1)]
    for heads in itertools.product([0], *choices):
        if is_tree(heads, not projective, single):
            yield np.array(heads, np.int32)


def random_tree(rng, n):
    """A projective tree with one child of the root."""
    heads = [0] * (n + 1)

    def attach(low, high, head):
        m = int(rng.integers(low, high + 1))
        heads[m] = head
        for start, stop in ((low, m - 1), (m + 1, high)):
            if start <= stop:
                attach(start, stop, m)

    attach(1, n, 0)
    return heads


def draw_arcs(rng, n, memory=None, density=0.6):
    """Random candidates that contain a projective tree with one root: (arcs, number, counts)."""
    tree = random_tree(rng, n)
    starts, heads = [0], []
    for m in range(1, n + 1):
        others = [h for h in range(n + 1) if h not in (m, tree[m]) and rng.random() < density]
        heads += sorted([tree[m], *others])
        starts.append(len(heads))
    starts, heads = np.array(starts), np.array(heads, np.int32)
    counts = part_counts(starts, heads, n)
    arcs = new_arcs(n, counts.arcs) if memory is None else memory
    return arcs, fill_arcs(arcs, n, starts, heads), counts


def draw_scores(rng, counts, integers=False, scale=1.0):
    """Random scores of all parts."""

    def draw(size):
        return (
            rng.integers(-2, 3, size).astype(float) if integers else scale * rng.normal(size=size)
        )

    return Scores(draw(counts.arcs), draw(counts.siblings), draw(counts.arcs), draw(counts.grands))


def plain_parts(arcs, n, heads):
    """(sibling, last, grandparent) part of every word, as the definition says."""
    rows = []
    for m in range(1, n + 1):
        h = int(heads[m])
        step = 1 if m > h else -1
        before = [s for s in range(h + step, m, step) if heads[s] == h]
        beyond = [s for s in range(m + step, n + 1 if step > 0 else 0, step) if heads[s] == h]
        a = int(arcs.lookup[m * (n + 1) + h])
        sibling = int(arcs.siblings[a])
        if before:
            sibling += 1 + int(arcs.rank[arcs.lookup[before[-1] * (n + 1) + h]])
        grand = -1
        if h > 0 and heads[h] != m:
            grand = int(arcs.grands[a] + arcs.lookup[h * (n + 1) + heads[h]] - arcs.first[h])
        rows.append((sibling, -1 if beyond else a, grand))
    return rows


def plain_score(arcs, n, scores, heads):
    """Sum of the scores of those parts."""
    total = 0.0
    for m, (sibling, last, grand) in enumerate(plain_parts(arcs, n, heads), start=1):
        total += scores.arcs[arcs.lookup[m * (n + 1) + heads[m]]] + scores.siblings[sibling]
        total += scores.lasts[last] if last >= 0 else 0.0
        total += scores.grands[grand] if grand >= 0 else 0.0
    return float(total)
