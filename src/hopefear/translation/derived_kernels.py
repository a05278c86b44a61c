"""N-grams of lists of translations, found by the hashes of their words.

All kernels are in one file: a compiled one does not notice edits in others that it calls.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hopefear.core.component import inlined, kernel
from hopefear.core.hashing import mix

_BLANK, _NEWLINE, _COMMA = 32, 10, 44


class Grams(NamedTuple):
    """The n-grams of one list, numbered in order of appearance, and space for work on them."""

    slots: np.ndarray  # int32[power of two]: n-gram + 1, 0 if empty
    keys: np.ndarray  # uint64[n-grams]
    first: np.ndarray  # int64[n-grams]: a word that it begins at
    order: np.ndarray  # int32[n-grams]: how many words it has
    last: np.ndarray  # int64[n-grams]: the candidate that was last seen to have it
    share: np.ndarray  # float64[n-grams]: probability of the candidates that have it
    numbers: np.ndarray  # int32[occurrences]: the n-gram of each


class Found(NamedTuple):
    """The n-grams that tell candidates of a block of lists apart, each with its count."""

    first: np.ndarray  # int64[n-grams]: a word that it begins at
    order: np.ndarray  # int32[n-grams]
    indptr: np.ndarray  # int64[candidates + 1]
    grams: np.ndarray  # int32[entries]: position of the n-gram
    counts: np.ndarray  # float32[entries]


class Tally(NamedTuple):
    """How often the candidates of one list have each n-gram."""

    place: np.ndarray  # int32[n-grams]: its entry for the candidate at hand, then its position
    having: np.ndarray  # int32[n-grams]: candidates that have it
    low: np.ndarray  # int32[n-grams]: how often at least, where it is
    high: np.ndarray  # int32[n-grams]: how often at most
    which: np.ndarray  # int32[entries]
    times: np.ndarray  # int32[entries]
    ends: np.ndarray  # int64[candidates]


@kernel
def write_lines(text, offsets, lines):
    """Copy strings, each with a newline behind it; newlines within become blanks."""
    p = 0
    for c in range(len(offsets) - 1):
        for q in range(offsets[c], offsets[c + 1]):
            lines[p] = _BLANK if text[q] == _NEWLINE else text[q]
            p += 1
        lines[p] = _NEWLINE
        p += 1


@inlined
def number_grams(words, ptr, first, last, orders, grams):
    """Number the n-grams of the candidates ``first .. last - 1``; how many there are.

    Occurrences come candidate by candidate, word by word, the shorter n-gram first.
    """
    size = 16
    while size < 2 * orders * (ptr[last] - ptr[first]):
        size *= 2
    slots = grams.slots[:size]
    slots[:] = 0
    mask = np.uint64(size - 1)
    n, e = 0, 0
    for c in range(first, last):
        for k in range(ptr[c], ptr[c + 1]):
            h = np.uint64(0)
            for m in range(min(orders, ptr[c + 1] - k)):
                h = mix(h, words[k + m])
                slot = h & mask
                while slots[slot] != 0 and grams.keys[slots[slot] - 1] != h:
                    slot = (slot + np.uint64(1)) & mask
                if slots[slot] == 0:
                    grams.keys[n] = h
                    grams.first[n] = k
                    grams.order[n] = m + 1
                    grams.last[n] = -1
                    n += 1
                    slots[slot] = n
                grams.numbers[e] = slots[slot] - 1
                e += 1
    return n


@inlined
def occurrences(size, orders):
    """How many n-grams so many words have."""
    total = 0
    for m in range(min(orders, size)):
        total += size - m
    return total


@kernel
def consensus(words, ptr, starts, scores, sharp, grams, out):
    """Sums over the different n-grams of each candidate of their probability in the list."""
    orders = out.shape[1]
    sums = np.zeros(orders)
    for i in range(len(starts) - 1):
        first, last = starts[i], starts[i + 1]
        n = number_grams(words, ptr, first, last, orders, grams)
        grams.share[:n] = 0.0
        top = scores[first:last].max()
        total = 0.0
        for c in range(first, last):
            total += math.exp(sharp * (scores[c] - top))
        e = 0
        for c in range(first, last):
            share = math.exp(sharp * (scores[c] - top)) / total
            for _ in range(occurrences(ptr[c + 1] - ptr[c], orders)):
                g = grams.numbers[e]
                if grams.last[g] != c:  # one twice in a candidate is one
                    grams.last[g] = c
                    grams.share[g] += share
                e += 1
        e = 0
        for c in range(first, last):
            sums[:] = 0.0
            for _ in range(occurrences(ptr[c + 1] - ptr[c], orders)):
                g = grams.numbers[e]
                if grams.last[g] != -2 - c:
                    grams.last[g] = -2 - c
                    sums[grams.order[g] - 1] += grams.share[g]
                e += 1
            out[c] = sums


@kernel
def telling(words, ptr, starts, orders, grams, tally, found):
    """Fill ``found``; how many n-grams it has.

    One that all candidates of a list have equally often tells nothing and is left out.
    """
    kept, used = 0, 0
    for i in range(len(starts) - 1):
        first, last = starts[i], starts[i + 1]
        n = number_grams(words, ptr, first, last, orders, grams)
        count_grams(ptr, first, last, orders, n, grams, tally)
        for g in range(n):
            tally.place[g] = -1
            if tally.having[g] < last - first or tally.low[g] < tally.high[g]:
                tally.place[g] = kept
                found.first[kept] = grams.first[g]
                found.order[kept] = grams.order[g]
                kept += 1
        e = 0
        for c in range(first, last):
            while e < tally.ends[c - first]:
                place = tally.place[tally.which[e]]
                if place >= 0:
                    found.grams[used] = place
                    found.counts[used] = tally.times[e]
                    used += 1
                e += 1
            found.indptr[c + 1] = used
    return kept


@inlined
def count_grams(ptr, first, last, orders, n, grams, tally):
    """Count the n-grams of each candidate, in order of appearance."""
    tally.having[:n] = 0
    e, used = 0, 0
    for c in range(first, last):
        begin = used
        for _ in range(occurrences(ptr[c + 1] - ptr[c], orders)):
            g = grams.numbers[e]
            e += 1
            if grams.last[g] == c:
                tally.times[tally.place[g]] += 1
            else:
                grams.last[g] = c
                tally.place[g] = used
                tally.which[used] = g
                tally.times[used] = 1
                used += 1
        for q in range(begin, used):
            g, times = tally.which[q], tally.times[q]
            tally.low[g] = times if tally.having[g] == 0 else min(times, tally.low[g])
            tally.high[g] = times if tally.having[g] == 0 else max(times, tally.high[g])
            tally.having[g] += 1
        tally.ends[c - first] = used


@kernel
def name_sizes(text, begins, ends, first, order, prefix, spelled, offsets):
    """Where the names of n-grams begin, one behind the other."""
    for g in range(len(first)):
        size = prefix + order[g] - 1
        for k in range(first[g], first[g] + order[g]):
            for q in range(begins[k], ends[k]):
                size += spelled[text[q], 0]
        offsets[g + 1] = offsets[g] + size


@kernel
def write_names(text, begins, ends, first, order, prefix, spelled, offsets, names):
    """The names: a prefix, then words that are joined by commas and spelled byte by byte."""
    for g in range(len(first)):
        p = offsets[g]
        for q in range(len(prefix)):
            names[p] = prefix[q]
            p += 1
        for k in range(first[g], first[g] + order[g]):
            if k > first[g]:
                names[p] = _COMMA
                p += 1
            for q in range(begins[k], ends[k]):
                for b in range(spelled[text[q], 0]):
                    names[p] = spelled[text[q], b + 1]
                    p += 1


@kernel
def interleave(indptr, ids, values, more_indptr, more_ids, more_values, out_ids, out_values):
    """Entries of two kinds, candidate by candidate, the first kind before the second."""
    p = 0
    for c in range(len(indptr) - 1):
        for e in range(indptr[c], indptr[c + 1]):
            out_ids[p] = ids[e]
            out_values[p] = values[e]
            p += 1
        for e in range(more_indptr[c], more_indptr[c + 1]):
            out_ids[p] = more_ids[e]
            out_values[p] = more_values[e]
            p += 1
