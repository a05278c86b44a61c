"""Which words translate which: IBM model 1, then a hidden Markov model, by EM in both directions.

Every word f_j of one side is made by a word e_a(j) of the other, or by none:

    p(f, a | e) = Π_j p(a_j | a_{j-1}) t(f_j | e_{a_j})

Model 1 takes every a_j as equally likely. In the Markov model (Vogel et al., 1996) it depends on
the length of the jump from a_{j-1} alone, and words made by none keep the place before them (Och
and Ney, 2003). Jumps out of the sentence keep their share, so EM is exact: likelihood never falls.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from phrasal.corpus import Corpus

FARTHEST = 10  # jumps this far or farther count as one
ALONE = 0.2  # probability that a word is made by none


class Cells(NamedTuple):
    """Every pair of a word to make and a word (or none, in column 0) that may make it.

    ``pair`` has the numbers of pairs sentence by sentence, in rows of 1 + size of ``e`` of it;
    ``origin[k]`` and ``word[k]`` are both words of pair k, where origin 0 is none.
    """

    pair: np.ndarray
    starts: np.ndarray
    origin: np.ndarray
    word: np.ndarray


class Alignment(NamedTuple):
    """Translation and jump probabilities of one direction, and likelihoods before each round."""

    t: np.ndarray
    jumps: np.ndarray
    likelihoods: list[float]


def cells(f: Corpus, e: Corpus) -> Cells:
    """The pairs of words that stand in one pair of sentences."""
    sizes = np.diff(f.starts) * (np.diff(e.starts) + 1)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    keys = _keys(f.words, f.starts, e.words, e.starts, starts, len(f.vocabulary))
    pairs, pair = np.unique(keys, return_inverse=True)
    origin, word = np.divmod(pairs, len(f.vocabulary))
    return Cells(pair.astype(np.int32), starts, origin, word)


def train(f: Corpus, e: Corpus, pairs: Cells, model1: int = 5, markov: int = 5) -> Alignment:
    """Rounds of EM for model 1, and then for the Markov model."""
    t = np.full(len(pairs.origin), 1.0 / max(1, len(f.vocabulary)))
    jumps = np.full(2 * FARTHEST + 1, 1.0 / (2 * FARTHEST + 1))
    likelihoods = []
    for number in range(model1 + markov):
        counts, moves = np.zeros_like(t), np.zeros_like(jumps)
        if number < model1:
            likelihood = _expect_model1(pairs.pair, pairs.starts, f.starts, e.starts, t, counts)
        else:
            likelihood = _expect_markov(
                pairs.pair, pairs.starts, f.starts, e.starts, t, jumps, counts, moves
            )
            jumps = moves / max(moves.sum(), 1e-300)
        totals = np.bincount(pairs.origin, counts)
        t = counts / np.maximum(totals, 1e-300)[pairs.origin]
        likelihoods.append(likelihood)
    return Alignment(t, jumps, likelihoods)


def best_origins(f: Corpus, e: Corpus, pairs: Cells, model: Alignment) -> np.ndarray:
    """For every word of ``f`` the place in its sentence of the word that makes it, -1 for none."""
    places = np.empty(len(f.words), np.int64)
    _viterbi(pairs.pair, pairs.starts, f.starts, e.starts, model.t, model.jumps, places)
    return places


def symmetrised(f: Corpus, e: Corpus, forward: np.ndarray, backward: np.ndarray) -> np.ndarray:
    """Links by grow-diag-final-and (Koehn et al., 2003), a matrix f × e after the other."""
    starts = matrix_starts(f, e)
    links = np.zeros(starts[-1], np.bool_)
    _symmetrise(f.starts, e.starts, starts, forward, backward, links)
    return links


def matrix_starts(f: Corpus, e: Corpus) -> np.ndarray:
    """Where the matrices of sentences begin that have a row for each word of ``f``."""
    return np.concatenate([[0], np.cumsum(np.diff(f.starts) * np.diff(e.starts))])


@njit(cache=True)
def _keys(f, f_starts, e, e_starts, starts, n_words):
    keys = np.empty(starts[-1], np.int64)
    for s in range(len(f_starts) - 1):
        at = starts[s]
        for j in range(f_starts[s], f_starts[s + 1]):
            keys[at] = f[j]
            at += 1
            for i in range(e_starts[s], e_starts[s + 1]):
                keys[at] = (e[i] + np.int64(1)) * n_words + f[j]
                at += 1
    return keys


@njit(cache=True)
def _expect_model1(pair, starts, f_starts, e_starts, t, counts):
    likelihood = 0.0
    for s in range(len(f_starts) - 1):
        width = e_starts[s + 1] - e_starts[s] + 1
        for at in range(starts[s], starts[s + 1], width):
            total = 0.0
            for i in range(at, at + width):
                total += t[pair[i]]
            for i in range(at, at + width):
                counts[pair[i]] += t[pair[i]] / total
            likelihood += np.log(total / width)
    return likelihood


@njit(cache=True)
def _bucket(jump):
    return min(max(jump, -FARTHEST), FARTHEST) + FARTHEST


@njit(cache=True)
def _expect_markov(pair, starts, f_starts, e_starts, t, jumps, counts, moves):
    """Forward and backward sums; place 0 is before the sentence, where only none can be."""
    likelihood = 0.0
    for s in range(len(f_starts) - 1):
        size, n = f_starts[s + 1] - f_starts[s], e_starts[s + 1] - e_starts[s]
        if size == 0:
            continue
        # Column 0 of a row of pairs is none, so place i has pair i of the row.
        rows = pair[starts[s] : starts[s + 1]].reshape((size, n + 1))
        step = np.empty((n + 1, n + 1))
        for a in range(n + 1):
            for b in range(n + 1):
                step[a, b] = (1.0 - ALONE) * jumps[_bucket(b - a)]
        made = np.zeros((size, n + 1))  # by the word at a place
        none = np.zeros((size, n + 1))  # by none, the place before being this one
        scale = np.empty(size)
        before = np.zeros(n + 1)
        before[0] = 1.0
        for j in range(size):
            for b in range(n + 1):
                none[j, b] = before[b] * ALONE * t[rows[j, 0]]
                if b:
                    total = 0.0
                    for a in range(n + 1):
                        total += before[a] * step[a, b]
                    made[j, b] = total * t[rows[j, b]]
            scale[j] = max(made[j].sum() + none[j].sum(), 1e-300)
            made[j] /= scale[j]
            none[j] /= scale[j]
            before = made[j] + none[j]
            likelihood += np.log(scale[j])
        after = np.ones(n + 1)
        for j in range(size - 1, -1, -1):
            for b in range(n + 1):
                counts[rows[j, b]] += made[j, b] * after[b]
                counts[rows[j, 0]] += none[j, b] * after[b]
            earlier = np.zeros(n + 1)
            for a in range(n + 1):
                origin = made[j - 1, a] + none[j - 1, a] if j else (1.0 if a == 0 else 0.0)
                share = ALONE * t[rows[j, 0]] * after[a] / scale[j]
                for b in range(1, n + 1):
                    part = step[a, b] * t[rows[j, b]] * after[b] / scale[j]
                    moves[_bucket(b - a)] += origin * part
                    share += part
                earlier[a] = share
            after = earlier
    return likelihood


@njit(cache=True)
def _viterbi(pair, starts, f_starts, e_starts, t, jumps, places):
    steps = np.log(jumps + 1e-12) + np.log(1.0 - ALONE)
    for s in range(len(f_starts) - 1):
        size, n = f_starts[s + 1] - f_starts[s], e_starts[s + 1] - e_starts[s]
        if size == 0:
            continue
        rows = pair[starts[s] : starts[s + 1]].reshape((size, n + 1))
        # State i < n + 1 is the word at place i, state n + 1 + i is none behind it.
        back = np.empty((size, 2 * n + 2), np.int64)
        before = np.full(2 * n + 2, -np.inf)
        before[n + 1] = 0.0
        for j in range(size):
            now = np.full(2 * n + 2, -np.inf)
            for b in range(n + 1):
                stay = b if before[b] > before[n + 1 + b] else n + 1 + b
                back[j, n + 1 + b] = stay
                now[n + 1 + b] = before[stay] + np.log(ALONE * t[rows[j, 0]] + 1e-300)
                if b:
                    best, state = -np.inf, 0
                    for a in range(2 * n + 2):
                        score = before[a] + steps[_bucket(b - a % (n + 1))]
                        if score > best:
                            best, state = score, a
                    back[j, b] = state
                    now[b] = best + np.log(t[rows[j, b]] + 1e-300)
            before = now
        state = np.argmax(before)
        for j in range(size - 1, -1, -1):
            places[f_starts[s] + j] = state - 1 if state <= n else -1
            state = back[j, state]


@njit(cache=True)
def _symmetrise(f_starts, e_starts, starts, forward, backward, links):
    for s in range(len(f_starts) - 1):
        size, n = f_starts[s + 1] - f_starts[s], e_starts[s + 1] - e_starts[s]
        here = links[starts[s] : starts[s + 1]].reshape((size, n))
        one = np.zeros((size, n), np.bool_)
        other = np.zeros((size, n), np.bool_)
        for j in range(size):
            if forward[f_starts[s] + j] >= 0:
                one[j, forward[f_starts[s] + j]] = True
        for i in range(n):
            if backward[e_starts[s] + i] >= 0:
                other[backward[e_starts[s] + i], i] = True
        here[:] = one & other
        rows, columns = np.zeros(size, np.bool_), np.zeros(n, np.bool_)
        for j in range(size):
            for i in range(n):
                if here[j, i]:
                    rows[j] = columns[i] = True
        growing = True
        while growing:
            growing = False
            for j in range(size):
                for i in range(n):
                    if here[j, i]:
                        growing |= _grow(here, one, other, rows, columns, j, i)
        for which in (one, other):
            for j in range(size):
                for i in range(n):
                    if which[j, i] and not rows[j] and not columns[i]:
                        here[j, i] = rows[j] = columns[i] = True


@njit(cache=True)
def _grow(here, one, other, rows, columns, j, i):
    """Add the neighbours of a link that either direction has and that link a word without one."""
    grown = False
    for y in range(max(0, j - 1), min(len(rows), j + 2)):
        for x in range(max(0, i - 1), min(len(columns), i + 2)):
            wanted = (one[y, x] or other[y, x]) and not here[y, x]
            if wanted and not (rows[y] and columns[x]):
                here[y, x] = rows[y] = columns[x] = grown = True
    return grown
