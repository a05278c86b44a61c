"""SWVP against the paper, in plain Python: mixed assignments by definition, weights by formula."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hopefear.averaging.averaged import Averaged
from hopefear.averaging.last import Last
from hopefear.core.interfaces import n_weights
from hopefear.core.learner import Learner, parameters_by_part
from hopefear.core.workspace import DenseWeights, Example
from hopefear.data.sequences import SequenceDataset, TokenRows
from hopefear.errors import CombinationError, HopefearError
from hopefear.losses.perceptron import Perceptron
from hopefear.losses.swvp import (
    AGGRESSIVE,
    BACKED_OFF,
    BALANCED,
    CONDITION_BROKEN,
    ERRORS,
    MISTAKES,
    NONE_USABLE,
    OWN,
    PASSIVE,
    POWER,
    RUNS,
    SEGMENTS,
    SINGLE,
    SWVP,
    UNSUITABLE,
    WM,
    WMR,
    WMR_PRINTED,
    Search,
    substructures,
)
from hopefear.recipes import CHAIN_RECIPES
from hopefear.rules.sgd import SGD
from hopefear.structures.chain.chain import Chain
from hopefear.structures.chain.searches import Beam
from hopefear.testing.contracts import Sums
from hopefear.testing.worlds import chain_features
from hopefear.training.online import OnlineTrainer

pytestmark = pytest.mark.interpreted

SETS = [[0, 2], [1], [-1], [], [0, 1, 2, 3, 4, 5, 6, 7], [9]]
LABELS, SYMBOLS = 3, 4


class Sizes:
    size, edge_size = SYMBOLS, SYMBOLS


def chains(words, labels) -> SequenceDataset:
    """Sequences whose symbol fires on labels and on label pairs."""
    lengths = [len(w) for w in words]
    tokens = sum(lengths)
    flat = np.array([s for w in words for s in w])
    rows = TokenRows(
        np.concatenate(([0], np.cumsum(lengths))),
        np.arange(tokens + 1),
        flat,
        np.empty(0),
        np.arange(tokens + 1),
        flat,
        np.empty(0),
        np.array([y for path in labels for y in path]),
        np.ones(len(words)),
    )
    return SequenceDataset(rows, [str(k) for k in range(LABELS)], Sizes())


def phi(chain, symbols, y):
    """Feature vector of an output."""
    return chain_features(chain, chains([symbols], [y]).rows, 0, y)


def all_sets(jj, gold, y):
    """JJ of the paper: single differences; and the other choices."""
    T = len(gold)
    wrong = [t for t in range(T) if gold[t] != y[t]]
    if jj == SINGLE:
        return [{t} for t in range(T)]
    if jj == ERRORS:
        return [{t} for t in wrong]
    if jj == RUNS:
        starts = [t for t in wrong if t - 1 not in wrong]
        return [set(itertools.takewhile(lambda k: k in wrong, range(t, T))) for t in starts]
    if jj == SEGMENTS:
        return [set(range(a, b + 1)) for a in range(T) for b in range(a, T)]
    if jj == POWER:
        return [{t for t in range(T) if k >> t & 1} for k in range(2**T)]
    return [{k + T if k < 0 else k for k in one} & set(range(T)) for one in SETS]


def by_the_paper(loss, chain, symbols, gold, y, w):
    """(gammas of the J used, direction, whether the perceptron had to step in)."""
    gold_phi = phi(chain, symbols, gold)
    everything = gold_phi - phi(chain, symbols, y)
    sets = all_sets(loss.jj, gold, y)
    mixed = [[y[t] if t in J else gold[t] for t in range(len(gold))] for J in sets]
    deltas = [gold_phi - phi(chain, symbols, m) for m in mixed if m != list(gold)]
    margins = [float(w @ d) for d in deltas]
    use = [
        k
        for k, margin in enumerate(margins)
        if loss.approach == BALANCED or (margin <= 0.0) == (loss.approach == AGGRESSIVE)
    ]
    if not use:
        return np.array([]), everything, True
    size = np.array([abs(margins[k]) for k in use])
    if loss.weighting == WM:
        gamma = size**loss.beta if size.any() else np.ones(len(use))
    else:
        n = len(sets) if loss.approach == BALANCED else len(use)
        order = sorted(range(len(use)), key=lambda k: (-size[k], k))
        gamma = np.array([((n - order.index(k)) / n) ** loss.beta for k in range(len(use))])
    printed = loss.weighting == WMR_PRINTED
    gamma = gamma if printed else gamma / gamma.sum()
    checked = loss.checked or loss.approach == PASSIVE
    sizes = np.array([margins[k] for k in use])
    while checked and loss.excluding and gamma @ sizes > 1e-12 * (gamma @ abs(sizes)):
        gamma[np.argmax(np.where(gamma > 0, sizes, -np.inf))] = 0.0
        if not gamma.any():
            return gamma, everything, True
        gamma = gamma if printed else gamma / gamma.sum()
    direction = sum(g * deltas[k] for g, k in zip(gamma, use, strict=True))
    if checked and gamma @ sizes > 1e-12 * (gamma @ abs(sizes)):
        return gamma, everything, True
    return gamma, direction, False


def direction_of(loss, chain, data, i, w):
    """What the loss makes of one example: (force, prediction, direction, workspace)."""
    work = chain.workspace(data.rows, loss, np.float64)
    x = Example(data.rows, i)
    chain.score(x, DenseWeights(w), work.theta)
    force = loss.subgradient(chain, x, work)
    n = n_weights(chain)
    row = Sums(np.zeros(n), np.zeros(n, np.int64), False)
    if force:
        chain.scatter(x, work.mu, row)
    T = int(np.diff(data.rows.starts)[i])
    return force, work.y[:T].tolist(), row.g, work


def drawn(rng, T, scale=1.0):
    """A sequence, its labels, and weights that mostly get it wrong."""
    symbols = rng.integers(0, SYMBOLS, T).tolist()
    gold = rng.integers(0, LABELS, T).tolist()
    return symbols, gold, lambda n: np.rint(8 * scale * rng.normal(size=n)) / 8


JJ = [SINGLE, ERRORS, RUNS, SEGMENTS, OWN, POWER]


def loss_with(approach=AGGRESSIVE, weighting=WM, beta=1.0, jj=SINGLE, checked=True, excluding=0):
    own = [substructures(SETS)] if jj == OWN else []
    return SWVP(approach, weighting, beta, jj, checked, excluding, *own)


@example(1, WM, 60.0, SINGLE, (True, True), 4, 2, 4)  # one term outweighs all others
@settings(max_examples=180, deadline=None)
@given(
    st.sampled_from(range(3)),
    st.sampled_from((WM, WMR, WMR_PRINTED)),
    st.sampled_from((0.0, 0.5, 1.0, 3.5, 60.0)),
    st.sampled_from(JJ),
    st.sampled_from(((False, False), (True, False), (True, True))),
    st.integers(1, 7),
    st.sampled_from((1, 2)),
    st.integers(0, 2**32 - 1),
)
def test_directions_are_those_of_the_paper(approach, weighting, beta, jj, how, T, order, seed):
    checked, excluding = how
    loss = loss_with(approach, weighting, beta, jj, checked, excluding)
    chain = Chain.new(SYMBOLS, LABELS, SYMBOLS, order)
    symbols, gold, weights = drawn(np.random.default_rng(seed), T)
    w = weights(n_weights(chain))
    force, y, got, work = direction_of(loss, chain, chains([symbols], [gold]), 0, w)
    assert force == (y != gold)
    if not force:
        return
    gamma, wanted, backed_off = by_the_paper(loss, chain, symbols, gold, y, w)
    np.testing.assert_allclose(got, wanted, atol=1e-9)
    assert work.scratch.counts[MISTAKES] == 1
    assert work.scratch.counts[BACKED_OFF] == backed_off
    assert work.scratch.counts[NONE_USABLE] == (gamma.size == 0)
    if gamma.size and not backed_off:  # condition (1)
        used = np.sort(work.scratch.gamma)[::-1][: gamma.size]
        np.testing.assert_allclose(used, np.sort(gamma)[::-1], atol=1e-12)
        assert np.all(used >= 0.0)
        if weighting != WMR_PRINTED:
            assert used.sum() == pytest.approx(1.0)
    if checked or approach != BALANCED:  # condition (2), by the back-off where need be
        assert w @ got <= 1e-9
    if approach == PASSIVE:
        assert backed_off


@pytest.mark.parametrize("beta", [0.5, 1.0, 5.0])
@pytest.mark.parametrize("approach", [AGGRESSIVE, BALANCED])
@pytest.mark.parametrize("weighting", [WM, WMR])
def test_the_perceptron_is_a_special_case_to_the_last_bit(approach, weighting, beta):
    rng = np.random.default_rng(3)
    words = [rng.integers(0, SYMBOLS, n).tolist() for n in (1, 2, 5, 5, 4, 3)]
    data = chains(words, [rng.integers(0, LABELS, len(w)).tolist() for w in words])
    chain = Chain.new(SYMBOLS, LABELS, SYMBOLS)
    whole = SWVP(approach, weighting, beta, OWN, own=substructures([range(5)]))
    for i in range(len(words)):
        w = rng.normal(size=n_weights(chain))
        one, y, got, _ = direction_of(whole, chain, data, i, w)
        two, same, wanted, _ = direction_of(Perceptron(), chain, data, i, w)
        assert (one, y) == (two, same)
        assert got.tolist() == wanted.tolist()


def test_first_update_from_zero_weights_treats_all_errors_alike():
    chain = Chain.new(SYMBOLS, LABELS, SYMBOLS)
    symbols, gold = [0, 1, 2, 3], [1, 0, 2, 1]  # zero weights predict 0 everywhere: three errors
    data = chains([symbols], [gold])
    zero = np.zeros(n_weights(chain))
    wanted = np.zeros(n_weights(chain))
    for t in (0, 2, 3):
        mixed = [0 if k == t else gold[k] for k in range(4)]
        wanted += (phi(chain, symbols, gold) - phi(chain, symbols, mixed)) / 3.0
    for approach in (AGGRESSIVE, BALANCED):
        _, y, got, _ = direction_of(loss_with(approach, WM, 2.0), chain, data, 0, zero)
        assert y == [0, 0, 0, 0]
        np.testing.assert_allclose(got, wanted, atol=1e-12)


def test_ranks_of_equals_follow_the_positions_and_count_all_sets_where_the_paper_does():
    chain = Chain.new(SYMBOLS, LABELS, SYMBOLS)
    data = chains([[0, 1, 2, 3]], [[1, 0, 2, 0]])
    zero = np.zeros(n_weights(chain))
    for approach, jj, n in ((BALANCED, SINGLE, 4), (BALANCED, ERRORS, 2), (AGGRESSIVE, SINGLE, 2)):
        _, _, _, work = direction_of(loss_with(approach, WMR, 1.0, jj), chain, data, 0, zero)
        wanted = np.array([n, n - 1]) / (2 * n - 1)
        np.testing.assert_allclose(work.scratch.gamma[:2], wanted)


def test_importance_scales_the_direction_and_zero_removes_it():
    rng = np.random.default_rng(5)
    chain = Chain.new(SYMBOLS, LABELS, SYMBOLS)
    data = chains([[0, 1, 2, 3, 0]], [[2, 1, 2, 1, 2]])
    w = rng.normal(size=n_weights(chain))
    _, _, once, _ = direction_of(loss_with(BALANCED), chain, data, 0, w)
    _, _, twice, _ = direction_of(loss_with(BALANCED), chain, data.weighted([2.0]), 0, w)
    assert once.any()
    np.testing.assert_allclose(twice, 2.0 * once)
    assert direction_of(loss_with(BALANCED), chain, data.weighted([0.0]), 0, w)[0] == 0


def test_a_mixture_that_does_not_violate_is_used_unless_checked():
    chain = Chain.new(SYMBOLS, LABELS, SYMBOLS)
    rng = np.random.default_rng(11)
    seen = 0
    for _ in range(200):
        symbols, gold, weights = drawn(rng, 5)
        w = weights(n_weights(chain))
        data = chains([symbols], [gold])
        force, y, free, work = direction_of(loss_with(BALANCED, checked=False), chain, data, 0, w)
        if not force or not work.scratch.counts[CONDITION_BROKEN]:
            continue
        seen += 1
        assert w @ free > 0.0
        assert work.scratch.counts[BACKED_OFF] == 0
        _, _, held, work = direction_of(loss_with(BALANCED, checked=True), chain, data, 0, w)
        assert work.scratch.counts[BACKED_OFF] == 1
        whole = phi(chain, symbols, gold) - phi(chain, symbols, y)
        np.testing.assert_allclose(held, whole, atol=1e-12)
    assert seen > 5


@pytest.mark.parametrize("jj", JJ)
@pytest.mark.parametrize("approach", [AGGRESSIVE, BALANCED])
def test_what_a_beam_finds_moves_weights_by_violations_only(approach, jj):
    rng = np.random.default_rng(17)
    below = unsuitable = updates = 0
    for keep, weighting in itertools.product((1, 2, 3), (WM, WMR)):
        chain = Chain.new(SYMBOLS, LABELS, SYMBOLS, search=Beam(keep))
        for _ in range(15):
            T = int(rng.integers(1, 5))
            symbols, _, weights = drawn(rng, T)
            w, outputs = weights(n_weights(chain)), itertools.product(range(LABELS), repeat=T)
            # Gold is among the best, so that a narrow beam finds worse ones.
            ranked = sorted(outputs, key=lambda z: -w @ phi(chain, symbols, z))
            gold = list(ranked[rng.integers(min(6, len(ranked)))])
            data = chains([symbols], [gold])
            loss = loss_with(approach, weighting, 1.0, jj)._replace(inference=Search())
            force, y, got, work = direction_of(loss, chain, data, 0, w)
            lead = w @ (phi(chain, symbols, gold) - phi(chain, symbols, y))
            assert (work.gold_margin[0] <= 0.0) == (y != gold)
            sets = all_sets(jj, gold, y)
            mixed = [[y[t] if t in J else gold[t] for t in range(len(gold))] for J in sets]
            margins = [w @ (phi(chain, symbols, gold) - phi(chain, symbols, m)) for m in mixed
                       if m != gold]  # fmt: skip
            # Property 2: at least one violation can be made of what was found.
            suitable = y != gold and min([lead, *margins]) <= 0.0
            assert bool(force) == suitable
            assert work.scratch.counts[UNSUITABLE] == (y != gold and not suitable)
            unsuitable += work.scratch.counts[UNSUITABLE]
            if force:
                updates += 1
                below += lead > 0.0
                assert w @ got <= 1e-9  # condition (2)
                if lead <= 0.0:
                    wanted = by_the_paper(loss, chain, symbols, gold, y, w)[1]
                    np.testing.assert_allclose(got, wanted, atol=1e-9)
    assert updates > 20 and unsuitable > 0
    assert below > 0 or jj in (RUNS, OWN)  # sets that seldom violate where the whole does not


def test_an_exact_search_is_the_argmax():
    rng = np.random.default_rng(19)
    chain = Chain.new(SYMBOLS, LABELS, SYMBOLS)
    for _ in range(30):
        symbols, gold, weights = drawn(rng, 5)
        w, data = weights(n_weights(chain)), chains([symbols], [gold])
        one, y, wanted, _ = direction_of(loss_with(BALANCED), chain, data, 0, w)
        found = loss_with(BALANCED)._replace(inference=Search())
        two, same, got, _ = direction_of(found, chain, data, 0, w)
        assert (one, y, wanted.tolist()) == (two, same, got.tolist())


def test_all_sets_of_short_outputs_and_no_longer_ones():
    chain = Chain.new(SYMBOLS, LABELS, SYMBOLS)
    data, zero = chains([[0, 1, 2]], [[1, 0, 2]]), np.zeros(n_weights(chain))
    loss = loss_with(BALANCED, WMR_PRINTED, 1.0, POWER)
    _, _, _, work = direction_of(loss, chain, data, 0, zero)
    # Six of the eight sets have one of the two errors; ranks count all eight (section 5).
    np.testing.assert_allclose(work.scratch.gamma[:6], [(8 - k) / 8 for k in range(6)])
    with pytest.raises(HopefearError, match="2\\^17 sets of 17 positions"):
        loss_with(jj=POWER).new_scratch(17)


def test_sets_of_ones_own_come_from_text_and_files(tmp_path):
    file = tmp_path / "sets.txt"
    file.write_text("0-2  # the beginning\n\n-1\n")
    for text in ("0-2; -1", file, str(file), [[0, 1, 2], [-1]]):
        learner = CHAIN_RECIPES["swvp"].build(jj="own", own=text)
        assert learner.loss.own.spelled() == "0,1,2; -1"
        assert parameters_by_part(learner)["loss"]["own"] == "0,1,2; -1"
    file.write_text("0-2\nx\n")
    with pytest.raises(HopefearError, match=r"sets\.txt:2: a set of positions is written like"):
        CHAIN_RECIPES["swvp"].build(jj="own", own=file)
    file.write_text("# nothing\n")
    with pytest.raises(HopefearError, match="has no set of positions"):
        CHAIN_RECIPES["swvp"].build(jj="own", own=file)
    search = CHAIN_RECIPES["swvp"].build(inference="search")
    assert (
        search.loss.requires() == ("places", "nbest") and "inference=search" in search.signature()
    )


def separable(rng, n, T):
    """Sequences that every learner with these features can learn, and a separator of length 1."""
    chain = Chain.new(SYMBOLS, LABELS, SYMBOLS)
    u = np.zeros(n_weights(chain))
    for x in range(SYMBOLS):
        u[x * chain.width + x % LABELS] = 1.0
    words = [rng.integers(0, SYMBOLS, T).tolist() for _ in range(n)]
    labels = [[x % LABELS for x in w] for w in words]
    return chain, words, labels, u / np.linalg.norm(u)


@pytest.mark.parametrize("jj", [SINGLE, RUNS, SEGMENTS])
@pytest.mark.parametrize("approach", [AGGRESSIVE, BALANCED])
@pytest.mark.parametrize("weighting", [WM, WMR])
def test_updates_stay_below_theorem_1_on_separable_data(approach, weighting, jj):
    T = 4
    chain, words, labels, u = separable(np.random.default_rng(7), 12, T)
    radius, margin, whole_radius = 0.0, np.inf, 0.0
    for symbols, gold in zip(words, labels, strict=True):
        right = phi(chain, symbols, gold)
        for z in itertools.product(range(LABELS), repeat=T):
            delta = right - phi(chain, symbols, z)
            whole_radius = max(whole_radius, np.linalg.norm(delta))
            for J in all_sets(jj, gold, z):
                mixed = [z[t] if t in J else gold[t] for t in range(T)]
                if mixed != gold:
                    delta = right - phi(chain, symbols, mixed)
                    radius = max(radius, float(np.linalg.norm(delta)))
                    margin = min(margin, float(u @ delta))
    assert radius <= whole_radius  # observation 1
    learner = Learner(
        loss_with(approach, weighting, 1.0, jj), SGD(), Averaged(), update_on="mistakes"
    )
    trainer = OnlineTrainer(chain, learner, np.float64)
    data = chains(words, labels)
    for _ in range(200):
        before = trainer.updates
        trainer.learn(data.rows, np.arange(len(words)))
        if trainer.updates == before:
            break
    # Steps that backed off are the perceptron's, so its radius bounds those.
    backed = trainer._work.scratch.counts[BACKED_OFF]
    bound = (whole_radius if backed else radius) ** 2 / margin**2
    assert 0 < trainer.updates <= bound
    assert trainer.updates == before, "did not converge"


def test_a_run_is_the_algorithm_of_the_paper_step_by_step():
    rng = np.random.default_rng(2)
    chain = Chain.new(SYMBOLS, LABELS, SYMBOLS)
    words = [rng.integers(0, SYMBOLS, n).tolist() for n in (1, 4, 6, 5, 1, 3, 6, 2)]
    labels = [rng.integers(0, LABELS, len(w)).tolist() for w in words]
    data = chains(words, labels)
    for loss in (loss_with(BALANCED, WM, 0.5, checked=False), loss_with(AGGRESSIVE, WMR, 2.0)):
        w = np.zeros(n_weights(chain))
        mistakes = 0
        for _ in range(3):
            for symbols, gold in zip(words, labels, strict=True):
                outputs = itertools.product(range(LABELS), repeat=len(gold))
                # Rounding may part what is equal; of equals the first in this order wins.
                y = list(max(outputs, key=lambda z: round(float(w @ phi(chain, symbols, z)), 9)))
                if y != gold:
                    w = w + by_the_paper(loss, chain, symbols, gold, y, w)[1]
                    mistakes += 1
        trainer = OnlineTrainer(
            chain, Learner(loss, SGD(), Averaged(), update_on="mistakes"), dtype=np.float64
        )
        for _ in range(3):
            trainer.learn(data.rows, np.arange(len(words)))
        assert trainer.mistakes == mistakes
        np.testing.assert_allclose(trainer.weights(), w, atol=1e-5)


def test_parameters_that_make_no_sense_are_refused():
    with pytest.raises(CombinationError, match="jj=own and sets of positions go together"):
        Learner(SWVP(jj=OWN), SGD(), Last())
    with pytest.raises(CombinationError, match="jj=own and sets of positions go together"):
        Learner(SWVP(own=substructures([[0]])), SGD(), Last())
    with pytest.raises(CombinationError, match="beta must not be negative"):
        Learner(SWVP(beta=-1.0), SGD(), Last())
    with pytest.raises(HopefearError, match="inference=search needs checked=true"):
        Learner(SWVP(checked=False, inference=Search()), SGD(), Last())
    with pytest.raises(HopefearError, match="excluding needs checked=true"):
        Learner(SWVP(checked=False, excluding=True), SGD(), Last())
    with pytest.raises(HopefearError, match="1,125,750 stretches of 1,500 positions"):
        SWVP(jj=SEGMENTS).new_scratch(1500)
