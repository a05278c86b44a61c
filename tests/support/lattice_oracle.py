"""Label chains by enumeration: what the kernels must agree with."""

from __future__ import annotations

import itertools

import numpy as np

from hopefear.structures.lattice import Scores, new_scores, new_shape, offset, states

GARBAGE = 1e30


def draw_scores(rng, shape, T, dtype=np.float64, whole=True, forbid=0.0, scale=2.0):
    """Random scores, huge numbers in the padding; ``forbid`` is the share of minus infinity."""

    def numbers(size):
        v = rng.integers(-2, 3, size) if whole else rng.normal(size=size) * scale
        v = v.astype(float)
        v[rng.random(size) < forbid] = -np.inf
        return v

    L, W, S = shape.labels, shape.width, states(shape)
    scores = new_scores(shape, T, dtype)
    scores.nodes[:] = rng.choice([-GARBAGE, GARBAGE], scores.nodes.size)
    scores.edges[:] = rng.choice([-GARBAGE, GARBAGE], scores.edges.size)
    scores.nodes.reshape(T, W)[:, :L] = numbers((T, L))
    if shape.order == 1:
        tables = scores.edges.reshape(-1, W, W)
        tables[:, :L, :L] = numbers((len(tables), L, L))
    else:
        tables = scores.edges.reshape(-1, W, W, W)
        tables[1:, :L, :L, :L] = numbers((len(tables) - 1, L, L, L))
        tables[0, :L, :L, 0] = numbers((L, L))
    assert tables.size == len(tables) * S * W
    return scores


def parts(shape, y):
    """Places in ``edges`` of the transitions of a sequence, straight from the layout."""
    W = shape.width
    for t in range(1, len(y)):
        if shape.order == 1:
            yield offset(shape, t) + y[t] * W + y[t - 1]
        else:
            yield offset(shape, t) + (y[t] * W + y[t - 1]) * W + (y[t - 2] if t > 1 else 0)


def ranked(shape, T, scores):
    """All allowed sequences as (score, labels), best first, then in lexicographic order."""
    found = []
    for y in itertools.product(range(shape.labels), repeat=T):
        total = sum(float(scores.nodes[t * shape.width + c]) for t, c in enumerate(y))
        total += sum(float(scores.edges[p]) for p in parts(shape, y))
        if total > -np.inf:
            found.append((total, y))
    return sorted(found, key=lambda f: (-f[0], f[1]))


def expected(shape, T, scores):
    """``(log Z, expected counts)`` by enumeration."""
    out = Scores(np.zeros(scores.nodes.size), np.zeros(scores.edges.size))
    found = ranked(shape, T, scores)
    if not found:
        return -np.inf, out
    best = found[0][0]
    z = sum(np.exp(total - best) for total, _ in found)
    for total, y in found:
        p = np.exp(total - best) / z
        for t, c in enumerate(y):
            out.nodes[t * shape.width + c] += p
        for place in parts(shape, y):
            out.edges[place] += p
    return best + np.log(z), out


SHAPES = [
    new_shape(labels, order, rich)
    for labels in (2, 3, 4, 5)
    for order in (1, 2)
    for rich in (False, True)
]
