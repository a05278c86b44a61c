"""From signed weights on the parts of trees back to a direction of coordinates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import helper, shared_kernel
from hopefear.core.interfaces import n_weights
from hopefear.structures.tree.parts import Arcs, Counts, parts_of
from hopefear.structures.tree.theta import (
    STEP,
    arc_of,
    grandparent_word,
    length,
    read_heads,
    sibling_word,
)

# Entries of ``TreeMu.extent``: 1 when all parts may have weights; blocks of ``sums`` in use; 1 when
# they are those of the present direction.
WHOLE, BLOCKS, SUMMED = range(3)


class Live(NamedTuple):
    """Weights on parts of one kind, and a list of those that have one."""

    values: np.ndarray  # float[parts * width]
    marked: np.ndarray  # uint8[parts]: it is in the list
    parts: np.ndarray  # int64[parts]
    owners: np.ndarray  # int64[parts]: their arcs
    used: np.ndarray  # int64[1]: how many are in the list


def new_live(parts: int, width: int, dtype: Any) -> Live:
    """No weights on any of so many parts."""
    return Live(
        np.zeros(parts * width, dtype),
        np.zeros(parts, np.uint8),
        np.zeros(parts, np.int64),
        np.zeros(parts, np.int64),
        np.zeros(1, np.int64),
    )


class TreeMu(NamedTuple):
    """Signed weights on the parts of one sentence.

    ``sums`` is a direction in full, zero but for the blocks that ``blocks`` lists; the system
    gives it memory where it is touched.
    """

    arcs: Arcs
    pad: Any
    relations: Live
    siblings: Live
    lasts: Live
    grands: Live
    extent: np.ndarray  # int64[3]
    ours: np.ndarray  # int64[3, longest + 1]: second-order parts of gold
    theirs: np.ndarray  # int64[3, longest + 1]: those of another output
    heads: np.ndarray  # int32[longest + 1]
    sums: np.ndarray  # float[coordinates]
    touched: np.ndarray  # uint8[blocks]
    blocks: np.ndarray  # int64[blocks]
    columns: np.ndarray  # uint64: coordinates of one part
    entries: np.ndarray  # float: what the direction has there


def new_mu(tree: Any, theta: Any, counts: Counts, longest: int, dtype: Any) -> TreeMu:
    """No weights on the parts of sentences of up to so many words."""
    size = n_weights(tree) // STEP + 1
    pairs = counts.arcs if tree.order == 2 else 0
    room = theta.pad.keys.size * (1 + tree.labels)
    return TreeMu(
        theta.arcs,
        theta.pad,
        new_live(counts.arcs, tree.width, dtype),
        new_live(counts.siblings if pairs else 0, 1, dtype),
        new_live(pairs, 1, dtype),
        new_live(counts.grands if pairs else 0, 1, dtype),
        np.zeros(3, np.int64),
        np.zeros((3, longest + 1), np.int64),
        np.zeros((3, longest + 1), np.int64),
        np.zeros(longest + 1, np.int32),
        np.zeros(size * STEP, dtype),
        np.zeros(size, np.uint8),
        np.zeros(size, np.int64),
        np.zeros(room, np.uint64),
        np.zeros(room, dtype),
    )


@helper
def forget(live, width, size):
    """Set weights to zero: those of the list, or the first ``size``."""
    if size > 0:
        live.values[:size] = 0.0
    for k in range(live.used[0]):
        p = live.parts[k]
        live.marked[p] = 0
        for c in range(p * width, (p + 1) * width):
            live.values[c] = 0.0
    live.used[0] = 0


@helper
def forget_parts(tree, x, mu):
    """Set the weights of all parts to zero."""
    arcs, whole = mu.arcs, mu.extent[WHOLE]
    count = np.int64(arcs.first[length(x) + 1]) if whole else 0
    forget(mu.relations, tree.width, count * tree.width)
    if tree.order == 2:
        forget(mu.siblings, 1, arcs.siblings[count] if whole else 0)
        forget(mu.lasts, 1, count)
        forget(mu.grands, 1, arcs.grands[count] if whole else 0)
    mu.extent[WHOLE] = 0


@helper
def forget_sums(mu):
    """Set the direction in full to zero."""
    for k in range(mu.extent[BLOCKS]):
        block = mu.blocks[k]
        mu.touched[block] = 0
        for j in range(block * STEP, (block + 1) * STEP):
            mu.sums[j] = 0.0
    mu.extent[BLOCKS] = 0
    mu.extent[SUMMED] = 0


@helper
def add(live, width, p, lane, a, coef):
    """Add to the weight of part p, which is one of arc ``a``."""
    if not live.marked[p]:
        live.marked[p] = 1
        k = live.used[0]
        live.parts[k], live.owners[k] = p, a
        live.used[0] = k + 1
    live.values[p * width + lane] += coef


@shared_kernel
def pull_trees(tree, x, y, coef, mu):
    """Add ``coef`` times (parts of gold minus parts of ``y``)."""
    n, start, gold, labels = length(x), x.data.starts[x.i], x.data.labels, tree.labels
    arcs = mu.arcs
    mu.extent[SUMMED] = 0
    if tree.order == 2:
        read_heads(tree, n, gold, start, mu.heads)
        parts_of(arcs, n, mu.heads, mu.ours[0], mu.ours[1], mu.ours[2])
        read_heads(tree, n, y, 0, mu.heads)
        parts_of(arcs, n, mu.heads, mu.theirs[0], mu.theirs[1], mu.theirs[2])
    for m in range(1, n + 1):
        right, other = gold[start + m - 1], y[m - 1]
        a, b = arc_of(arcs, n, m, right, labels), arc_of(arcs, n, m, other, labels)
        if right != other:
            if a >= 0:
                add(mu.relations, tree.width, a, right % labels, a, coef)
            if b >= 0:
                add(mu.relations, tree.width, b, other % labels, b, -coef)
        if tree.order == 2:
            swap(mu.siblings, a, b, mu.ours[0, m], mu.theirs[0, m], coef)
            swap(mu.lasts, a, b, mu.ours[1, m], mu.theirs[1, m], coef)
            swap(mu.grands, a, b, mu.ours[2, m], mu.theirs[2, m], coef)


@helper
def swap(live, a, b, p, q, coef):
    """Add to part p of arc a what is taken from part q of arc b; -1 is no part."""
    if p != q:
        if p >= 0:
            add(live, 1, p, 0, a, coef)
        if q >= 0:
            add(live, 1, q, 0, b, -coef)


@shared_kernel
def n_units(tree, x, mu):
    """How many steps it takes to write the entries of all parts down."""
    arcs = mu.arcs
    if mu.extent[WHOLE] == 1:
        count = np.int64(arcs.first[length(x) + 1])
        pairs = count + arcs.siblings[count] + arcs.grands[count] if tree.order == 2 else 0
        return count + pairs
    pairs = mu.lasts.used[0] + mu.siblings.used[0] + mu.grands.used[0]
    return mu.relations.used[0] + (pairs if tree.order == 2 else 0)


@shared_kernel
def write_unit(tree, x, mu, k):
    """Write the entries of the k-th part into ``entries``; returns how many there are.

    Parts come in the order arcs, outermost children, siblings, grandparents.
    """
    arcs, whole = mu.arcs, mu.extent[WHOLE] == 1
    count = np.int64(arcs.first[length(x) + 1])
    size = count if whole else mu.relations.used[0]
    if k < size:
        return write_arc(tree, x, mu, k if whole else mu.relations.parts[k])
    k -= size
    size = count if whole else mu.lasts.used[0]
    if k < size:
        a = k if whole else mu.lasts.parts[k]
        h, m = np.int64(arcs.head[a]), np.int64(arcs.mod[a])
        g = mu.lasts.values[a]
        return copy_keys(
            mu, tree.features.outermost_child_keys(x, h, m, mu.pad) if g != 0.0 else 0, g
        )
    k -= size
    size = arcs.siblings[count] if whole else mu.siblings.used[0]
    if k < size:
        p = k if whole else mu.siblings.parts[k]
        a = owner(arcs.siblings, count, p) if whole else mu.siblings.owners[k]
        h, m, s = np.int64(arcs.head[a]), np.int64(arcs.mod[a]), sibling_word(arcs, a, p)
        g = mu.siblings.values[p]
        return copy_keys(mu, tree.features.sibling_keys(x, h, s, m, mu.pad) if g != 0.0 else 0, g)
    k -= size
    p = k if whole else mu.grands.parts[k]
    a = owner(arcs.grands, count, p) if whole else mu.grands.owners[k]
    h, m, o = np.int64(arcs.head[a]), np.int64(arcs.mod[a]), grandparent_word(arcs, a, p)
    g = mu.grands.values[p]
    return copy_keys(mu, tree.features.grandparent_keys(x, o, h, m, mu.pad) if g != 0.0 else 0, g)


@helper
def owner(firsts, count, p):
    """The arc whose parts begin at or before p, by bisection."""
    low, high = 0, count - 1
    while low < high:
        middle = (low + high + 1) // 2
        if firsts[middle] <= p:
            low = middle
        else:
            high = middle - 1
    return np.int64(low)


@helper
def copy_keys(mu, count, g):
    """The same entry at all coordinates of the pad."""
    for k in range(count):
        mu.columns[k], mu.entries[k] = mu.pad.keys[k], g
    return count


@helper
def write_arc(tree, x, mu, a):
    """Write the entries of one arc and its relations; weights too small to be seen are left out."""
    arcs, pad, width, values = mu.arcs, mu.pad, tree.width, mu.relations.values
    # What the marginals of all arcs leave of nothing would cost more time than all the rest.
    tiny = np.finfo(values.dtype).eps
    total, size = 0.0, 0.0
    for c in range(a * width, a * width + tree.labels):
        total += np.float64(values[c])
        size = max(size, abs(np.float64(values[c])))
    if size <= tiny:
        return 0
    h, m, count = np.int64(arcs.head[a]), np.int64(arcs.mod[a]), 0
    if total != 0.0:
        count = copy_keys(mu, tree.features.arc_keys(x, h, m, pad), values.dtype.type(total))
    if tree.labels == 1:
        return count
    base = np.uint64(tree.features.plain)
    for k in range(tree.features.label_keys(x, h, m, pad)):
        first = base + np.uint64(STEP) * np.uint64(pad.keys[k])
        for c in range(tree.labels):
            g = values[a * width + c]
            if abs(g) > tiny:
                mu.columns[count], mu.entries[count] = first + np.uint64(c), g
                count += 1
    return count


@shared_kernel
def sum_up(tree, x, mu):
    """The direction in full, unless it is there already."""
    if mu.extent[SUMMED] == 1:
        return
    forget_sums(mu)
    for k in range(n_units(tree, x, mu)):
        for e in range(write_unit(tree, x, mu, k)):
            j = mu.columns[e]
            block = j // np.uint64(STEP)
            if not mu.touched[block]:
                mu.touched[block] = 1
                mu.blocks[mu.extent[BLOCKS]] = block
                mu.extent[BLOCKS] += 1
            mu.sums[j] += mu.entries[e]
    mu.extent[SUMMED] = 1


@shared_kernel
def product(tree, x, mu):
    """The direction of the parts, multiplied with the one that was added up."""
    total = 0.0
    for k in range(n_units(tree, x, mu)):
        for e in range(write_unit(tree, x, mu, k)):
            total += np.float64(mu.sums[mu.columns[e]]) * np.float64(mu.entries[e])
    return total
