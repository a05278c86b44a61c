"""Phrase pairs that agree with word alignments, and their scores.

A pair of runs of words is a phrase pair if at least one link is inside and no link leads from
inside to outside (Och and Ney, 2004). Words without a link may stand at its borders.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numba import njit

from phrasal.alignment import Cells, matrix_starts
from phrasal.corpus import Corpus, Runs, runs_of_words

MONOTONE, SWAP, OTHER = 0, 1, 2


class Occurrences(NamedTuple):
    """Phrase pairs where they stand: a row for each, columns as in ``PLACES``."""

    rows: np.ndarray
    lexical: np.ndarray  # two columns: source given target, target given source


PLACES = SENTENCE, SOURCE, SOURCE_SIZE, TARGET, TARGET_SIZE, BEFORE, AFTER = range(7)


class PhraseTable(NamedTuple):
    """Phrase pairs with their scores; ``best`` is an occurrence that shows each one's links."""

    best: np.ndarray
    counts: np.ndarray  # of the target, the source, the pair
    scores: np.ndarray  # p(source | target), lexical, p(target | source), lexical
    reordering: np.ndarray  # monotone, swap, other: after what stands before; the same behind


def occurrences(
    f: Corpus, e: Corpus, links: np.ndarray, pairs: Cells, inverse: Cells, longest: int
) -> Occurrences:
    """Every phrase pair of at most ``longest`` words a side, wherever it stands."""
    starts = matrix_starts(f, e)
    given = lexicon(f, e, links, pairs, starts, False), lexicon(e, f, links, inverse, starts, True)
    sides = f.starts, e.starts, starts, links, longest
    n = _extract(*sides, np.empty((0, len(PLACES)), np.int64))
    rows = np.empty((n, len(PLACES)), np.int64)
    _extract(*sides, rows)
    values = np.empty((n, 2))
    _weigh(rows, *sides[:-1], pairs.pair, pairs.starts, given[0], False, values[:, 0])
    _weigh(rows, *sides[:-1], inverse.pair, inverse.starts, given[1], True, values[:, 1])
    return Occurrences(rows, values)


def lexicon(
    f: Corpus, e: Corpus, links: np.ndarray, pairs: Cells, starts: np.ndarray, turned: bool
) -> np.ndarray:
    """Share of each pair of words among the links of its origin; words without link have none."""
    counts = np.zeros(len(pairs.origin))
    _count_links(f.starts, e.starts, starts, links, pairs.pair, pairs.starts, turned, counts)
    totals = np.bincount(pairs.origin, counts)
    return counts / np.maximum(totals, 1.0)[pairs.origin]


def scored(f: Corpus, e: Corpus, found: Occurrences, longest: int, most: int = 100) -> PhraseTable:
    """Count equal phrase pairs and score them; the likeliest ``most`` of each source stay."""
    source = _phrases(found.rows[:, SOURCE], found.rows[:, SOURCE_SIZE], runs_of_words(f, longest))
    target = _phrases(found.rows[:, TARGET], found.rows[:, TARGET_SIZE], runs_of_words(e, longest))
    # Of equal pairs the one whose words fit best comes first, and lends its links.
    order = np.lexsort((-found.lexical.sum(axis=1), target, source))
    changes = (np.diff(source[order]) != 0) | (np.diff(target[order]) != 0)
    first = np.concatenate([[0], np.flatnonzero(changes) + 1])
    best = order[first]
    counts = np.diff(np.append(first, len(order)))
    pair = np.empty(len(order), np.int64)
    pair[order] = np.repeat(np.arange(len(first)), counts)
    p_source, of_target = smoothed(target[best], source[best], counts)
    p_target, of_source = smoothed(source[best], target[best], counts)
    lexical = np.maximum.reduceat(found.lexical[order], first, axis=0)
    scores = np.column_stack([p_source, lexical[:, 0], p_target, lexical[:, 1]])
    reordering = np.hstack([_orientations(pair, found.rows[:, k], counts) for k in (BEFORE, AFTER)])
    totals = np.column_stack([of_target, of_source, counts])
    table = PhraseTable(best, totals, scores, reordering)
    kept = np.sort(likeliest(source[best], p_target, most))
    return PhraseTable(*(column[kept] for column in table))


def likeliest(group: np.ndarray, value: np.ndarray, most: int) -> np.ndarray:
    """Rows with the highest values of each group, group by group, the highest first."""
    order = np.lexsort((-value, group))
    ordered = group[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    rank = np.arange(len(order)) - np.flatnonzero(first)[np.cumsum(first) - 1]
    return order[rank < most]


def smoothed(given: np.ndarray, what: np.ndarray, counts: np.ndarray):
    """p(what | given) of pairs by Kneser-Ney smoothing (Foster et al., 2006); counts of given."""
    n1, n2 = (counts == 1).sum(), (counts == 2).sum()
    discount = n1 / (n1 + 2 * n2) if n1 and n2 else 0.5
    totals, kinds = np.bincount(given, counts), np.bincount(given)
    lower = np.bincount(what)[what] / len(what)
    p = (counts - discount + discount * kinds[given] * lower) / totals[given]
    return p, totals[given].astype(np.int64)


def _phrases(place: np.ndarray, size: np.ndarray, runs: list[Runs]) -> np.ndarray:
    """Numbers of phrases by where they stand."""
    numbers, offset = np.empty(len(place), np.int64), 0
    for k, run in enumerate(runs, 1):
        here = size == k
        numbers[here] = run.number[place[here]] + offset
        offset += len(run.place)
    return np.unique(numbers, return_inverse=True)[1]


def _orientations(pair: np.ndarray, kinds: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Shares of orientations of each pair, with one half of an occurrence as all pairs have it."""
    table = np.bincount(3 * pair + kinds, minlength=3 * len(counts)).reshape(-1, 3)
    overall = (table.sum(axis=0) + 1) / (table.sum() + 3)
    return (table + 0.5 * overall) / (counts[:, None] + 0.5)


def table_lines(
    f: Corpus, e: Corpus, links: np.ndarray, found: Occurrences, table: PhraseTable
) -> tuple[Iterator[str], Iterator[str]]:
    """Lines of a phrase table and of a reordering table, both as Moses has them."""
    starts, rows = matrix_starts(f, e), found.rows[table.best]
    names = [
        f"{f.text(row[SOURCE], row[SOURCE_SIZE])} ||| {e.text(row[TARGET], row[TARGET_SIZE])}"
        for row in rows
    ]
    # Not by name as it is: phrases of the same source stay together.
    order = sorted(range(len(names)), key=names.__getitem__)

    def inside(row: np.ndarray) -> str:
        s = row[SENTENCE]
        matrix = links[starts[s] : starts[s + 1]].reshape(-1, e.starts[s + 1] - e.starts[s])
        a, b = row[SOURCE] - f.starts[s], row[TARGET] - e.starts[s]
        part = matrix[a : a + row[SOURCE_SIZE], b : b + row[TARGET_SIZE]]
        return " ".join(f"{j}-{i}" for j, i in zip(*part.nonzero(), strict=True))

    def joined(values: np.ndarray) -> str:
        return " ".join([f"{value:.6g}" for value in values.tolist()])

    pairs = (
        f"{names[k]} ||| {joined(table.scores[k])} ||| {inside(rows[k])} ||| "
        f"{' '.join(map(str, table.counts[k]))}"
        for k in order
    )
    return pairs, (f"{names[k]} ||| {joined(table.reordering[k])}" for k in order)


@njit(cache=True)
def _count_links(f_starts, e_starts, starts, links, pair, pair_starts, turned, counts):
    for s in range(len(f_starts) - 1):
        size, n = f_starts[s + 1] - f_starts[s], e_starts[s + 1] - e_starts[s]
        for j in range(size):
            alone = True
            row = pair_starts[s] + j * (n + 1)
            for i in range(n):
                at = starts[s] + (i * size + j if turned else j * n + i)
                if links[at]:
                    alone = False
                    counts[pair[row + 1 + i]] += 1.0
            if alone:
                counts[pair[row]] += 1.0


@njit(cache=True)
def _extract(f_starts, e_starts, starts, links, longest, rows):
    """Write phrase pairs to ``rows`` as far as there is room; how many there are."""
    count = 0
    for s in range(len(f_starts) - 1):
        size, n = f_starts[s + 1] - f_starts[s], e_starts[s + 1] - e_starts[s]
        here = links[starts[s] : starts[s + 1]].reshape((size, n))
        linked = np.zeros(n, np.bool_)
        for i in range(n):
            linked[i] = here[:, i].any()
        for a in range(size):
            low, high = n, -1
            for b in range(a, min(size, a + longest)):
                for i in range(n):
                    if here[b, i]:
                        low, high = min(low, i), max(high, i)
                if high < 0 or high - low >= longest or _leaves(here, a, b, low, high):
                    continue
                left = low
                while left >= 0 and (left == low or not linked[left]) and high - left < longest:
                    right = high
                    while (
                        right < n
                        and (right == high or not linked[right])
                        and right - left < longest
                    ):
                        if count < len(rows):
                            row = rows[count]
                            row[SENTENCE] = s
                            row[SOURCE], row[SOURCE_SIZE] = f_starts[s] + a, b - a + 1
                            row[TARGET], row[TARGET_SIZE] = e_starts[s] + left, right - left + 1
                            row[BEFORE] = _orientation(here, a - 1, b + 1, left - 1)
                            row[AFTER] = _orientation(here, b + 1, a - 1, right + 1)
                        count += 1
                        right += 1
                    left -= 1
    return count


@njit(cache=True)
def _leaves(here, a, b, low, high):
    for j in range(here.shape[0]):
        if j < a or j > b:
            for i in range(low, high + 1):
                if here[j, i]:
                    return True
    return False


@njit(cache=True)
def _orientation(here, straight, turned, i):
    """How the neighbour at place i of the target stands; the ends of sentences are linked."""
    size, n = here.shape
    if i < 0:
        return MONOTONE if straight < 0 else OTHER
    if i >= n:
        return MONOTONE if straight >= size else OTHER
    if 0 <= straight < size and here[straight, i]:
        return MONOTONE
    return SWAP if 0 <= turned < size and here[turned, i] else OTHER


@njit(cache=True)
def _weigh(rows, f_starts, e_starts, starts, links, pair, pair_starts, given, turned, values):
    """Lexical weights: the mean over the links of each word, multiplied over words."""
    for k in range(len(rows)):
        row = rows[k]
        s = row[SENTENCE]
        size, n = f_starts[s + 1] - f_starts[s], e_starts[s + 1] - e_starts[s]
        here = links[starts[s] : starts[s + 1]].reshape((size, n))
        a, b = row[SOURCE] - f_starts[s], row[TARGET] - e_starts[s]
        rows_, columns = row[SOURCE_SIZE], row[TARGET_SIZE]
        if turned:
            rows_, columns = columns, rows_
        value = 1.0
        for y in range(rows_):
            total, n_links, at = 0.0, 0, 0
            for x in range(columns):
                if turned:
                    linked, at = here[a + x, b + y], pair_starts[s] + (b + y) * (size + 1)
                    column = a + x
                else:
                    linked, at = here[a + y, b + x], pair_starts[s] + (a + y) * (n + 1)
                    column = b + x
                if linked:
                    total += given[pair[at + 1 + column]]
                    n_links += 1
            value *= total / n_links if n_links else given[pair[at]]
        values[k] = value
