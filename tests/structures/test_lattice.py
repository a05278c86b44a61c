"""Searches and sums on label chains against enumeration."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lattice_oracle import SHAPES, draw_scores, expected, parts, ranked

from hopefear.core.component import kernel
from hopefear.structures.lattice import (
    Scores,
    astar,
    beam,
    list_viterbi,
    log_z,
    marginals,
    n_tables,
    new_forward,
    new_scores,
    new_shape,
    new_space,
    offset,
    padded_width,
    path_score,
    rival,
    states,
    viterbi,
)
from hopefear.structures.lattice.exponential import exp_from
from hopefear.structures.lattice.log_space import log_marginals

INTERPRETED = bool(numba.config.DISABLE_JIT)
CASES = 100  # compiled or not, enumeration takes most of the time
WIDE = 700  # more than there are sequences in any case below

cases = given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.sampled_from(SHAPES),
    T=st.integers(1, 5),
    n=st.integers(1, 30),
    forbid=st.sampled_from([0.0, 0.1, 0.5]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
thorough = settings(max_examples=CASES, deadline=None)


@kernel
def find_best(shape, T, scores, space, y):
    return viterbi(shape, T, scores, space.table, y)


@kernel
def find_rival(shape, T, scores, space, gold, y):
    return rival(shape, T, scores, space, gold, y)


@kernel
def find_astar(shape, T, scores, space, n, width, ratio):
    return astar(shape, T, scores, space, n, ratio)


@kernel
def find_lists(shape, T, scores, space, n, width, ratio):
    return list_viterbi(shape, T, scores, space, n, ratio)


@kernel
def find_beam(shape, T, scores, space, n, width, ratio):
    return beam(shape, T, scores, space, n, width, ratio)


@kernel
def score_of(shape, T, scores, y, start):
    return path_score(shape, T, scores, y, start)


@kernel
def sum_all(shape, T, scores, fb):
    return log_z(shape, T, scores, fb)


@kernel
def count_all(shape, T, scores, fb, out):
    return marginals(shape, T, scores, fb, out)


@kernel
def count_all_in_logs(shape, T, scores, fb, out):
    return log_marginals(shape, T, scores, fb.alpha, fb.x, out)


@kernel
def exponentials(out, x, top):
    exp_from(out, 0, x, 0, top, len(x))


SEARCHES = {"astar": find_astar, "lists": find_lists, "beam": find_beam}


def small(shape, T):
    """A length at which enumeration stays quick."""
    while shape.labels**T > (130 if INTERPRETED else WIDE):
        T -= 1
    return T


def found(space, T, count):
    return [
        (float(space.totals[k]), tuple(space.paths[k * space.length :][:T].tolist()))
        for k in range(count)
    ]


def search(name, shape, T, scores, n, ratio=0.0, width=WIDE):
    space = new_space(shape, T + 2, n, width, scores.nodes.dtype, lists=True)
    return found(space, T, SEARCHES[name](shape, T, scores, space, n, width, ratio))


@cases
@thorough
def test_viterbi_and_path_score(seed, shape, T, n, forbid, dtype):
    T = small(shape, T)
    scores = draw_scores(np.random.default_rng(seed), shape, T, dtype, forbid=forbid)
    y = np.zeros(T, np.int32)
    best = find_best(shape, T, scores, new_space(shape, T, dtype=dtype), y)
    truth = ranked(shape, T, scores)
    assert (best, tuple(y)) == truth[0] if truth else best == -np.inf
    for total, labels in truth[:5]:
        shifted = np.array([0, *labels], np.int32)
        assert score_of(shape, T, scores, shifted, 1) == total


@pytest.mark.parametrize("name", SEARCHES)
@cases
@thorough
def test_n_best(name, seed, shape, T, n, forbid, dtype):
    T = small(shape, T)
    rng = np.random.default_rng(seed)
    scores = draw_scores(rng, shape, T, dtype, forbid=forbid)
    truth = ranked(shape, T, scores)
    assert search(name, shape, T, scores, n) == truth[:n]
    near = [f for f in truth if f[0] >= truth[0][0] - np.log(20.0)]
    assert search(name, shape, T, scores, n, ratio=20.0) == near[:n]


@cases
@thorough
def test_rival(seed, shape, T, n, forbid, dtype):
    T = small(shape, T)
    rng = np.random.default_rng(seed)
    scores = draw_scores(rng, shape, T, dtype, forbid=forbid)
    truth = ranked(shape, T, scores)
    gold = rng.integers(0, shape.labels, T, np.int32)
    if truth and seed % 4:
        gold = np.array(truth[0][1], np.int32)
    others = [f for f in truth if f[1] != tuple(gold)]
    y = np.zeros(T, np.int32)
    total = find_rival(shape, T, scores, new_space(shape, T, dtype=dtype), gold, y)
    assert (total, tuple(y)) == others[0] if others else total == -np.inf


@cases
@settings(max_examples=CASES // 3, deadline=None)
def test_searches_on_real_numbers(seed, shape, T, n, forbid, dtype):
    T = small(shape, T)
    rng = np.random.default_rng(seed)
    scores = draw_scores(rng, shape, T, np.float64, whole=False, forbid=forbid)
    truth = ranked(shape, T, scores)[:n]
    for name in SEARCHES:
        result = search(name, shape, T, scores, n)
        assert [y for _, y in result] == [y for _, y in truth]
        np.testing.assert_allclose([s for s, _ in result], [s for s, _ in truth], atol=1e-9)


def test_everything_ties():
    shape = new_shape(3)
    scores = new_scores(shape, 4, np.float32)
    in_order = [(0.0, tuple(int(c) for c in np.base_repr(k, 3).zfill(4))) for k in range(81)]
    for name in SEARCHES:
        assert search(name, shape, 4, scores, 100) == in_order
        assert search(name, shape, 4, scores, 7, width=7) == in_order[:7]


def test_a_narrow_beam_is_greedy():
    rng = np.random.default_rng(3)
    for shape in SHAPES:
        scores = draw_scores(rng, shape, 6, whole=False)
        y = []
        for t in range(6):
            values = [
                scores.nodes[t * shape.width + c]
                + sum(scores.edges[p] for p in list(parts(shape, [*y, c]))[-1:])
                for c in range(shape.labels)
            ]
            y.append(int(np.argmax(values)))
        assert search("beam", shape, 6, scores, 3, width=1)[0][1] == tuple(y)


@cases
@settings(max_examples=CASES, deadline=None)
def test_marginals(seed, shape, T, n, forbid, dtype):
    T = small(shape, T)
    rng = np.random.default_rng(seed)
    # Beyond some hundreds, exponentials leave float64 and logarithms take over.
    scale = rng.choice([1.0, 30.0, 300.0, 1e4])
    scores = draw_scores(rng, shape, T, dtype, whole=False, forbid=forbid, scale=scale)
    total, truth = expected(shape, T, scores)
    fb = new_forward(shape, T + 1)
    for kind in (np.float64, np.float32) if INTERPRETED else (dtype,):
        tolerance = 1e-9 if kind == np.float64 else 1e-6
        out = Scores(*(np.full(a.size, 7.0, kind) for a in scores))
        assert count_all(shape, T, scores, fb, out) == pytest.approx(total, rel=1e-12, abs=1e-9)
        np.testing.assert_allclose(out.nodes, truth.nodes, atol=tolerance)
        used = out.edges.size if T > 1 or not shape.rich else 0
        np.testing.assert_allclose(out.edges[:used], truth.edges[:used], atol=tolerance)
    assert sum_all(shape, T, scores, fb) == pytest.approx(total, rel=1e-12, abs=1e-9)
    logs = Scores(np.zeros(scores.nodes.size), np.zeros(scores.edges.size))
    assert count_all_in_logs(shape, T, scores, fb, logs) == pytest.approx(total, abs=1e-9)
    np.testing.assert_allclose(logs.nodes, truth.nodes, atol=1e-9)
    np.testing.assert_allclose(logs.edges, truth.edges, atol=1e-9)


def test_an_improbable_start_that_wins_later_is_not_lost():
    # Label 1 is e**-710 times less probable at first and e**800 times more in the end.
    shape = new_shape(2)
    scores = new_scores(shape, 3, np.float64)
    scores.nodes[:] = [0, -710, 0, 0, -400, 0, 0, 0, -400, 0, 0, 0]
    scores.edges.reshape(4, 4)[:2, :2] = [[0, -np.inf], [-np.inf, 0]]
    out = new_scores(shape, 3, np.float64)
    assert count_all(shape, 3, scores, new_forward(shape, 3), out) == pytest.approx(-710.0)
    assert out.nodes.reshape(3, 4)[:, 1].tolist() == pytest.approx([1.0, 1.0, 1.0])


def test_better_labels_out_of_reach_do_not_spoil_the_sums():
    # Label 1 is e**100 times better everywhere, but cannot be the first nor follow label 0.
    shape, T = new_shape(2), 12
    scores = new_scores(shape, T, np.float64)
    scores.nodes.reshape(T, 4)[:, 0] = -100.0
    scores.nodes[1] = -np.inf
    scores.edges[1 * 4 + 0] = -np.inf
    out = new_scores(shape, T, np.float64)
    assert count_all(shape, T, scores, new_forward(shape, T), out) == pytest.approx(-100.0 * T)
    assert out.nodes.reshape(T, 4).tolist() == [pytest.approx([1.0, 0.0, 0.0, 0.0])] * T
    assert out.edges.tolist() == pytest.approx([T - 1.0] + [0.0] * 15)


@pytest.mark.parametrize("shape", [new_shape(5), new_shape(3, 2), new_shape(3, 1, True)])
def test_long_sentences(shape):
    T = 200 if INTERPRETED else 2000
    scores = draw_scores(np.random.default_rng(0), shape, T, whole=False, scale=5.0)
    for part in scores:  # sums of the garbage in the padding must not overflow into the rest
        part[np.abs(part) > 1e20] *= 1e277
    space, y = new_space(shape, T, 3, dtype=np.float64), np.zeros(T, np.int32)
    best = find_best(shape, T, scores, space, y)
    assert find_astar(shape, T, scores, space, 3, 0, 0.0) == 3
    np.testing.assert_array_equal(space.paths[:T], y)
    assert score_of(shape, T, scores, y, 0) == pytest.approx(best, rel=1e-12)
    assert len({tuple(space.paths[k * T : k * T + T]) for k in range(3)}) == 3
    fb, out = new_forward(shape, T), Scores(*(np.zeros(a.size) for a in scores))
    total = count_all(shape, T, scores, fb, out)
    assert np.isfinite(total) and total > best
    labels = out.nodes.reshape(T, shape.width)
    np.testing.assert_allclose(labels.sum(1), 1.0, atol=1e-9)
    assert not labels[:, shape.labels :].any()
    assert out.edges.sum() == pytest.approx(T - 1)
    logs = Scores(*(np.zeros(a.size) for a in scores))
    assert count_all_in_logs(shape, T, scores, fb, logs) == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(out.nodes, logs.nodes, atol=1e-9)


@pytest.mark.parametrize("labels", [1, 4, 9, 24])
def test_more_labels_than_one_group(labels):
    rng = np.random.default_rng(labels)
    for order in (1, 2):
        shape = new_shape(labels, order)
        scores = draw_scores(rng, shape, 2)
        truth = ranked(shape, 2, scores)
        for name in SEARCHES:
            assert search(name, shape, 2, scores, 9) == truth[:9]
        out = new_scores(shape, 2, np.float64)
        total, wanted = expected(shape, 2, scores)
        assert count_all(shape, 2, scores, new_forward(shape, 2), out) == pytest.approx(total)
        np.testing.assert_allclose(out.edges, wanted.edges, atol=1e-9)


def test_gradient_of_log_z():
    rng = np.random.default_rng(5)
    for shape in SHAPES[-4:]:
        scores = draw_scores(rng, shape, 7, whole=False)
        fb, out = new_forward(shape, 7), new_scores(shape, 7, np.float64)
        count_all(shape, 7, scores, fb, out)
        for given_scores, counts in zip(scores, out, strict=True):
            # Entries in use: at the others the difference of two equal sums says nothing.
            for place in rng.choice(np.flatnonzero(counts), 5):
                at = given_scores[place]
                ends = []
                for step in (1e-5, -1e-5):
                    given_scores[place] = at + step
                    ends.append(sum_all(shape, 7, scores, fb))
                given_scores[place] = at
                assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(counts[place], abs=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponentials(dtype):
    x = np.concatenate([np.linspace(-720, 0, 4000), [-np.inf, 5.0, -1e30, 0.0] * 4, [-1e-20] * 8])
    x = x[: len(x) // 8 * 8].astype(dtype)
    out = np.empty(len(x))
    exponentials(out, x, 0.0)
    v = np.minimum(x.astype(float), 0.0)
    np.testing.assert_allclose(out, np.where(v < -708.0, 0.0, np.exp(v)), rtol=2e-15)


def test_sizes():
    assert [padded_width(k) for k in (1, 4, 5, 8, 9, 22)] == [4, 4, 8, 8, 16, 24]
    plain, second, rich = new_shape(3), new_shape(3, 2), new_shape(3, 2, True)
    assert [n_tables(s, 9) for s in (plain, second, rich)] == [1, 2, 8]
    assert n_tables(rich, 1) == 1
    assert [offset(plain, t) for t in (1, 2, 5)] == [0, 0, 0]
    assert [offset(second, t) for t in (1, 2, 5)] == [0, 64, 64]
    assert [offset(rich, t) for t in (1, 2, 5)] == [0, 64, 256]
    assert (states(plain), states(second)) == (4, 16)
