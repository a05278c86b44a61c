"""Minimum error rate training: never worse than its start, deterministic, and strict."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from places import DATA, ROOT

from hopefear.data.lists.dataset import ListDataset, ListRows, cheapest
from hopefear.data.moses.reader import read_moses
from hopefear.errors import CombinationError, HopefearError
from hopefear.metrics.lists import Bleu, Chrf, GivenCost, Ter
from hopefear.translation.tuners.mert import Climber, DenseLists, Mert
from hopefear.translation.tuners.problem import TuningProblem

LISTS = DATA / "multi30k-nbest"
SEEDS = st.integers(0, 2**32 - 1)


def dataset(
    table: np.ndarray, starts: Any, metric: Any, counts: Any, offsets: Any = None, costs: Any = None
) -> ListDataset:
    """Candidates [c, d] with all of the d features in every list."""
    c, d = table.shape
    starts = np.asarray(starts)
    n = len(starts) - 1
    costs = metric.costs(counts) if costs is None else costs
    rows = ListRows(
        starts,
        np.arange(n + 1) * d,
        np.tile(np.arange(d), n),
        np.arange(c + 1) * d,
        np.tile(np.arange(d), c),
        np.ravel(table),
        np.zeros(c) if offsets is None else offsets,
        costs,
        cheapest(np.asarray(costs, float), starts),
        np.ones(n),
    )
    return ListDataset(rows, None, counts, metric.name)


def random_problem(seed: int, d: int = 3, n: int = 5, metric: Any = None, **more: Any) -> Any:
    """Lists of random candidates; values are whole numbers, so that ties abound."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate(([0], np.cumsum(rng.integers(1, 6, n))))
    c = int(starts[-1])
    table = rng.integers(-2, 3, (c, d)).astype(float)
    metric = metric or Bleu(tokenize="none")
    if isinstance(metric, GivenCost):
        costs = rng.integers(0, 9, c) / 8
        data = dataset(table, starts, metric, None, costs=costs, **more)
    else:
        words = np.array(["the", "cat", "sat", "on", "a", "mat"])
        texts = [" ".join(rng.choice(words, rng.integers(1, 8))) for _ in range(c)]
        counts = metric.statistics([["the cat sat on a mat"]] * c, texts)
        data = dataset(table, starts, metric, counts, **more)
    return TuningProblem(data, metric, rng.integers(-2, 3, d).astype(float))


@settings(deadline=None, max_examples=20)
@given(
    SEEDS,
    st.sampled_from(["turns", "best"]),
    st.sampled_from([Bleu(tokenize="none"), Chrf(), Ter(), GivenCost()]),
)
def test_never_worse_than_the_start(seed, steps, metric):
    problem = random_problem(seed, metric=metric)
    tuned = Mert(restarts=3, steps=steps, random=3, elite=2).tune(problem, seed=seed)
    sign = 1.0 if metric.higher else -1.0
    reached, before = problem.score(tuned.weights), problem.score(problem.start)
    assert sign * reached >= sign * before - 1e-9
    assert reached == pytest.approx(max(tuned.runs) if metric.higher else min(tuned.runs))


def test_finds_the_best_there_is_on_two_features():
    problem = random_problem(11, d=2, n=12)
    angles = np.linspace(0.0, 2.0 * np.pi, 4001)[:-1] + 1e-4
    best = max(problem.score(np.array([np.cos(x), np.sin(x)])) for x in angles)
    tuned = Mert(restarts=20).tune(problem)
    assert problem.score(tuned.weights) == pytest.approx(best)
    assert problem.score(problem.start) < best


def test_a_line_search_sees_what_weights_are_worth():
    problem = random_problem(4, d=4, n=20)
    lists = DenseLists(problem)
    rng = np.random.default_rng(1)
    for _ in range(10):
        w, way = rng.normal(size=(2, 4))
        climber = Climber(lists, w, w)
        step = climber.look(lists.slopes(way), way)
        assert step.before == pytest.approx(problem.score(w))
        assert step.worth == pytest.approx(problem.score(w + step.t * way))
        assert climber.value() == pytest.approx(step.before)
    assert np.allclose(lists.scores(w), w @ problem.data.rows.values.reshape(-1, 4).T)


def test_scores_moved_along_are_those_of_the_weights():
    problem = random_problem(9, d=4, n=20)
    climber = Climber(DenseLists(problem), problem.start, problem.start)
    gain = climber.each_of(np.random.default_rng(2).normal(size=(5, 4)))
    assert gain > 0.0 and climber.searches == 9
    assert climber.value() == pytest.approx(problem.score(climber.w))
    assert climber.scores == pytest.approx(climber.lists.scores(climber.w))


def test_best_of_takes_one_step_the_largest():
    problem = random_problem(9, d=4, n=20)
    lists = DenseLists(problem)
    gains = []
    for way in np.eye(4):
        step = Climber(lists, problem.start, problem.start).look(lists.slopes(way), way)
        gains.append(step.worth - step.before)
    climber = Climber(lists, problem.start, problem.start)
    assert climber.best_of(np.zeros((0, 4))) == pytest.approx(max(gains))
    assert np.count_nonzero(climber.w != problem.start) == 1
    assert climber.w[int(np.argmax(gains))] != problem.start[int(np.argmax(gains))]


def test_same_seed_same_weights_and_each_start_is_told():
    problem = replace(random_problem(6, n=20), dev=random_problem(8, n=9).data)
    events: list[dict] = []
    mert = Mert(restarts=4, random=2)
    one = mert.tune(problem, seed=3, on_event=[events.append])
    two = mert.tune(problem, seed=3)
    other = mert.tune(problem, seed=4)
    assert one.weights.tobytes() == two.weights.tobytes() and one.runs == two.runs
    assert one.weights.tobytes() != other.weights.tobytes()
    assert [(e["epoch"], e["of"]) for e in events] == [(k, 4) for k in range(1, 5)]
    assert [e["train"]["bleu"] for e in events] == list(one.runs)
    assert all(e["searches"] > 0 and e["seconds"] >= 0 and "bleu" in e["dev"] for e in events)
    assert one.history == events
    assert one.best_epoch == 1 + int(np.argmax([e["dev"]["bleu"] for e in events]))


def test_keeps_the_start_that_does_best_on_held_out_lists():
    problem = replace(random_problem(7, n=20), dev=random_problem(8, n=9).data)
    tuned = Mert(restarts=6, random=0, elite=0, keep="dev").tune(problem)
    scores = [event["dev"]["bleu"] for event in tuned.history]
    assert problem.score(tuned.weights, problem.dev) == pytest.approx(max(scores))
    assert tuned.best_epoch == 1 + int(np.argmax(scores))


def test_weights_add_up_to_one_unless_their_scale_matters():
    problem = random_problem(5, n=20)
    tuned = Mert(restarts=2).tune(problem)
    assert np.abs(tuned.weights).sum() == pytest.approx(1.0)
    free = Mert(restarts=2, normalize=False).tune(problem)
    assert free.weights / np.abs(free.weights).sum() == pytest.approx(tuned.weights)
    assert problem.score(free.weights) == problem.score(tuned.weights)
    rng = np.random.default_rng(1)
    fixed = random_problem(5, n=20)
    offsets = rng.normal(size=fixed.data.n_candidates)
    fixed = replace(fixed, data=fixed.data.replaced(offsets=offsets))
    kept = Mert(restarts=2).tune(fixed)
    assert np.abs(kept.weights).sum() != pytest.approx(1.0)
    assert fixed.score(kept.weights) == pytest.approx(max(kept.runs))
    with pytest.raises(HopefearError, match=r"fixed scores.*normalize=False"):
        Mert(normalize=True).tune(fixed)


def test_features_that_tell_nothing_apart_keep_their_weight():
    problem = random_problem(6, d=3, n=12)
    table = problem.data.rows.values.reshape(-1, 3).copy()
    table[:, 1] = np.repeat(np.arange(12.0), np.diff(problem.data.rows.starts))
    flat = dataset(table, problem.data.rows.starts, problem.metric, problem.data.counts)
    given = TuningProblem(flat, problem.metric, np.array([1.0, 7.5, -1.0, 4.0]))
    tuned = Mert(restarts=3, normalize=False).tune(given)
    assert tuned.weights[[1, 3]].tolist() == [7.5, 4.0]
    alone = dataset(table[:, 1:2], np.arange(len(table) + 1), problem.metric, problem.data.counts)
    single = Mert(restarts=2).tune(TuningProblem(alone, problem.metric, np.array([2.0])))
    assert single.weights.tolist() == [1.0]


@settings(deadline=None, max_examples=25)
@given(SEEDS, st.sampled_from([0.5, 5.0, 50.0]))
@example(255, 0.5)  # candidates are tied at its start
@example(594, 0.5)  # and on the way, in a corner that no step can stay in
def test_a_pull_is_part_of_what_is_maximised(seed, l2):
    problem = random_problem(seed, d=2, n=6)
    start = problem.start
    tuned = Mert(restarts=4, l2=l2, tolerance=0.0).tune(problem, seed=seed)

    def value(w: np.ndarray) -> float:
        return problem.score(w) - l2 * float(((w - start) ** 2).sum())

    assert value(tuned.weights) >= value(start) - 1e-9
    # No step along a coordinate does much better: what it lacks is the way it keeps off corners.
    w = tuned.weights
    # Corners lie at simple numbers, and what ties are worth there is nowhere beside them.
    for j, t in itertools.product(range(2), np.linspace(-2, 2, 81) + 0.00314159):
        moved = w.copy()
        moved[j] += t
        size = abs(t) + abs(w[j] - start[j]) + 1.0
        assert value(moved) <= value(w) + 0.1 * l2 * size**2 + 1e-6


def test_a_strong_pull_stays_at_the_start():
    problem = random_problem(9, d=4, n=20)
    far, near = (Mert(restarts=1, l2=l2).tune(problem).weights for l2 in (0.1, 100.0))
    distances = [float(np.abs(w - problem.start).sum()) for w in (far, near)]
    assert distances[1] < distances[0]


@pytest.mark.parametrize("smooth", ["average", "minimum"])
def test_smoothing_chooses_by_neighbours(smooth):
    problem = random_problem(9, d=4, n=30)
    lists = DenseLists(problem)
    way = np.array([0.0, 1.0, 0.0, 0.0])
    climber = Climber(lists, problem.start, problem.start, 0.0, smooth, 2)
    step = climber.look(lists.slopes(way), way)
    found = lists.lines.intervals(climber.scores, lists.slopes(way))
    worths = problem.worth(found.sums)
    near = [worths[max(0, k - 2) : k + 3] for k in range(len(worths))]
    values = [part.min() if smooth == "minimum" else part.mean() for part in near]
    assert step.worth == pytest.approx(max(values))
    assert found.low[int(np.argmax(values))] < step.t < found.high[int(np.argmax(values))]
    tuned = Mert(restarts=2, smooth=smooth, rounds=5).tune(problem)
    assert problem.score(tuned.weights) == pytest.approx(max(tuned.runs))


def test_says_what_does_not_fit():
    with pytest.raises(CombinationError, match="restarts must be at least 1, but is 0"):
        Mert(restarts=0)
    with pytest.raises(CombinationError, match="l2 must be finite and not negative, but is -1"):
        Mert(l2=-1)
    with pytest.raises(CombinationError, match="steps must be one of turns, best, not 'all'"):
        Mert(steps="all")
    with pytest.raises(CombinationError, match=r"l2 holds.*normalize=False"):
        Mert(l2=1.0, normalize=True)
    problem = random_problem(1)
    with pytest.raises(HopefearError, match="held-out lists, and there are none"):
        Mert(keep="dev").tune(problem)
    with pytest.raises(HopefearError, match="finite"):
        Mert().tune(replace(problem, start=np.array([0.0, np.nan, 0.0])))
    with pytest.raises(HopefearError, match="no lists"):
        Mert().tune(replace(problem, data=problem.data.take([])))


def test_refuses_more_features_than_it_can_search():
    metric = GivenCost()
    data = dataset(np.ones((2, 1001)), [0, 2], metric, None, costs=[0.0, 1.0])
    with pytest.raises(HopefearError, match=r"1001 of them, over the limit of 1000.*pro or mira"):
        Mert().tune(TuningProblem(data, metric, np.zeros(1001)))


def test_parameters_make_the_same_tuner_again():
    mert = Mert(restarts=5, l2=0.5)
    assert Mert(**mert.parameters()) == mert
    assert mert.signature(seed=1).startswith("tuner:mert(restarts=5,") and "seed:1" in (
        mert.signature(seed=1).split("|")
    )


def test_runs_interpreted_too():
    code = (
        "import sys; sys.path[:0] = ['tests/support', 'tests/translation']\n"
        "from test_mert import Mert, random_problem\n"
        "print(Mert(restarts=2).tune(random_problem(9, d=4, n=8)).weights.tolist())"
    )
    folder = ROOT
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    compiled = Mert(restarts=2).tune(random_problem(9, d=4, n=8)).weights
    assert np.array(json.loads(done.stdout)) == pytest.approx(compiled, abs=1e-12)


def test_real_lists():
    path = LISTS / "val.nbest.xz"
    if not path.exists():
        pytest.skip(f"no lists at {path}; set HOPEFEAR_DATA to a folder that holds multi30k-nbest")
    lists = read_moses(path, LISTS / "val.en", metric=Bleu(tokenize="none"))
    firsts = np.repeat(lists.dense[lists.starts[:-1]], np.diff(lists.starts), axis=0)
    metric = Bleu(tokenize="none")
    data = dataset(lists.dense - firsts, lists.starts, metric, lists.counts)
    usual = np.array([-1.0, *[0.2] * 5, *[0.3] * 7, 0.5])
    problem = TuningProblem(data, metric, usual)
    assert problem.score(usual) == pytest.approx(39.59, abs=0.005)
    began = time.process_time()
    tuned = Mert(restarts=6).tune(problem, seed=2)
    assert time.process_time() - began < 15.0
    assert max(tuned.runs) >= 41.40
    assert problem.score(tuned.weights) == max(tuned.runs)
