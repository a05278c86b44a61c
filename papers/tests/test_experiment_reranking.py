"""The experiment on lists of parses: a whole small run, and the parts that decide what it says."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from places import DATA

from hopefear.data.generators import candidate_lists
from hopefear.data.lists.dataset import ListDataset, idle_lists
from hopefear.errors import HopefearError
from hopefear.tasks.base import train
from hopefear.tasks.rerank.prepare import dataset
from hopefear.tasks.rerank.task import Reranking
from hopefear_papers import EXPERIMENTS
from hopefear_papers.claims import Difference, order_of
from hopefear_papers.frame import Experiment, KeptRuns, Trail, at_most
from hopefear_papers.parses import (
    FILES,
    MIN_COUNT,
    Part,
    Problem,
    extracted,
    f_score,
    find_problem,
)
from hopefear_papers.vrda_reranking import claims, runs
from hopefear_papers.vrda_reranking.claims import settled
from hopefear_papers.vrda_reranking.plan import (
    AVERAGED,
    FULL,
    KEPT,
    LAST,
    LOSSES,
    QUICK,
    SUPPORT,
    TG,
    Plan,
)
from hopefear_papers.vrda_reranking.runs import (
    TABLE,
    TOP,
    Trial,
    at,
    bounded,
    choose,
    compare,
    follow,
    readings,
    run,
    sparse,
    vote,
    within,
)

WORDS = {"agrees", "disagrees", "not shown"}
SIZES = (120, 40, 40)
SPECS = {spec.key: spec for spec in QUICK.every}
TINY: Plan = replace(
    QUICK,
    specs=tuple(
        replace(s, grid={k: (0.0, 0.05, 0.2) if k == "gravity" else v for k, v in s.grid.items()})
        for s in QUICK.specs
    ),
    marks=(1, 2),
    sweep=(0.0, 1e-4, 5e-3),
    fold_sweep=(0.0, 1e-4),
    levels=(30, 100),
    fold_levels=(100,),
    sparse_levels=30,
    replicates=100,
)


def silent(*given: object) -> None:
    pass


def made_up(seed: int = 1) -> ListDataset:
    """Generated lists that look like parses: documents of five, brackets by cost."""
    lists = candidate_lists(sum(SIZES), features=80, doubt=2.0, seed=seed)
    right = np.rint(20 * (1.0 - lists.costs)).astype(np.int64)
    counts = np.stack([right, np.full(right.size, 20), np.full(right.size, 20)], axis=1)
    rows = dataset(lists, min_count=MIN_COUNT).rows
    ids = [f"wsj_{i // 5:04}.{i % 5}" for i in range(sum(SIZES))]
    return ListDataset(rows, None, counts, "parseval", ids)


@pytest.fixture(scope="module")
def problem() -> Problem:
    lists = made_up()
    size = int(lists.rows.features.max()) + 1
    published = np.arange(size) % 4 != 0
    return Problem(lists, np.repeat(np.arange(3, dtype=np.uint8), SIZES), published, np.array([0]))


@pytest.fixture(scope="module")
def tiny(problem, tmp_path_factory):
    out, messages = tmp_path_factory.mktemp("tiny"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "find_problem", lambda *given: problem)
        page = Experiment("vrda-reranking").run(None, out, messages.append, quick=True, plan=TINY)
    return page, json.loads((out / "results.json").read_text("utf-8")), messages


def test_page_shows_verdicts_both_tables_and_all_figures(tiny):
    page, _, messages = tiny
    text = page.read_text("utf-8")
    for part in (
        *("Table 1", "Table 2", "Figures 3 and 4", "Figure 5", "Figure 6", "Voting and averaging"),
        *("Other losses and rules", "Families of features", "too few to conclude from"),
        *("91.76", "542K", "Best by dev", "36,000 sentences"),
    ):
        assert part in text, part
    assert text.count("<svg") == 2 * 2 + 2 + 2 + 2 + 2
    assert all(f"TG, {rate}" in text and f"than TG ({rate})" in text for rate in TG.values())
    assert any("%  fold 2 of 2" in line for line in messages)
    assert messages[-1].count("±") == len(TABLE) + 1


def test_results_hold_every_choice_test_and_verdict(tiny):
    _, results, _ = tiny
    assert set(results["trials"]) == {spec.key for spec in TINY.every}
    for name in (*TABLE, TOP, sparse("vrda-hinge"), at("logistic", 1e-4)):
        record = results["choices"][name]
        assert len(record["test"]["f1"]) == len(record["test"]["nnz"]) == len(TINY.seeds)
        assert len(record["folds"]["nnz"]) == TINY.folds
        assert 50.0 < min(record["test"]["f1"]) <= results["oracle"]["test"]
    assert results["choices"]["perceptron"]["kept"] == "average"
    assert {v["verdict"] for v in results["verdicts"]} <= WORDS
    assert all(v["evidence"] for v in results["verdicts"])
    assert {v["where"] for v in results["verdicts"]} == {"test", "folds", "training"}
    assert results["lists"] == {"train": 120, "dev": 40, "test": 40, "folds": 160}
    assert set(results["votes"]) == {"vrda-hinge", "vrda-logistic"}
    assert 0 < results["features"]["published"] < results["features"]["split"]
    assert len(results["tests"]) > 20


def test_a_second_call_takes_up_all_runs_and_says_the_same(tiny, problem, monkeypatch):
    page, first, _ = tiny

    def refuse(*given, **named):
        raise AssertionError("trained again")

    for name in ("run", "vote", "follow"):
        monkeypatch.setattr(runs, name, refuse)
    monkeypatch.setattr(Problem, "cut", refuse)
    monkeypatch.setattr(runs, "find_problem", lambda *given: problem)
    Experiment("vrda-reranking").run(None, page.parent, silent, quick=True, plan=TINY)
    assert json.loads((page.parent / "results.json").read_text("utf-8")) == first


def test_test_lists_change_no_choice(problem, tmp_path):
    lists = problem.lists
    shuffled = lists.counts.copy()
    tested = lists.rows.starts[SIZES[0] + SIZES[1]]
    shuffled[tested:] = np.random.default_rng(1).permutation(shuffled[tested:])
    other = ListDataset(lists.rows, None, shuffled, "parseval", lists.ids)
    plan = replace(TINY, extensions=TINY.extensions[:1], seeds=(1,), folds=2, trail_passes=1)
    one, two = (
        runs.measure_problem(
            replace(problem, lists=outcome), plan, KeptRuns(tmp_path / name), silent
        )
        for outcome, name in ((lists, "one"), (other, "two"))
    )
    assert one.choices == two.choices
    assert f_score(one.counts("baseline", "test")[0]) != f_score(two.counts("baseline", "test")[0])


def test_tuning_runs_never_look_at_test_lists(problem):
    split = problem.cut(Part())
    blind = replace(split, test=None)
    done = run(SPECS["vrda-hinge"], {"l1": 1e-3}, blind, 1, (1, 2))
    assert done.counts.shape[1] == 0 and done.dev.shape == (3, 2)


def test_cutting_is_the_same_as_reading_the_training_part_alone():
    lists = candidate_lists(60, features=300, per_candidate=4)
    whole = dataset(lists, min_count=MIN_COUNT)
    names = [f"d{i}.0" for i in range(60)]
    every = ListDataset(whole.rows, None, None, "cost", names)
    files = np.repeat(np.arange(3, dtype=np.uint8), (40, 10, 10))
    split = Problem(every, files, np.ones(whole.features.size, bool), np.array([0])).cut(Part())
    few = ListDataset(whole.rows).take(np.arange(40)).rows
    counts = np.bincount(few.features, minlength=whole.features.size)
    assert split.size == int((counts >= MIN_COUNT).sum()) < whole.features.size
    again = np.bincount(split.train.rows.features, minlength=split.size)
    assert again.tolist() == counts[counts >= MIN_COUNT].tolist()
    # A weight for every kept feature, and none for others, scores candidates alike.
    weights = np.random.default_rng(0).normal(size=split.size)
    spread = np.zeros(whole.features.size)
    spread[counts >= MIN_COUNT] = weights
    for part, which in ((split.train, np.arange(40)), (split.test, np.arange(50, 60))):
        left = ListDataset(whole.rows).take(which).rows
        assert scored(part.rows, weights) == pytest.approx(scored(left, spread))


def scored(rows, weights: np.ndarray) -> list[float]:
    outcome = []
    for i in range(len(rows.weights)):
        local = weights[rows.features[rows.scopes[i] : rows.scopes[i + 1]]]
        for c in range(rows.starts[i], rows.starts[i + 1]):
            entries = slice(rows.indptr[c], rows.indptr[c + 1])
            outcome.append(float(local[rows.columns[entries]] @ rows.values[entries]))
    return outcome


def test_folds_are_whole_documents_and_leave_development_lists_out(problem):
    fold = problem.folds(3)
    documents = np.arange(sum(SIZES)) // 5
    for d in range(documents.max() + 1):
        assert len(set(fold[documents == d].tolist())) == 1
    sizes = np.bincount(fold)
    assert sizes.max() - sizes.min() <= 5
    tested = []
    for k in range(3):
        learnt, chose, test = problem.which(Part(k, 3))
        assert sorted([*learnt, *chose, *test]) == list(range(sum(SIZES)))
        assert all(problem.files[chose] == FILES.index("dev"))
        assert not set(documents[learnt]) & set(documents[test])
        tested += test.tolist()
    assert sorted(tested) == np.flatnonzero(problem.files != FILES.index("dev")).tolist()


def test_a_run_is_what_the_public_interface_trains(problem):
    split = problem.cut(Part())
    done = run(SPECS["perceptron"], {}, split, 3, (2,), tested=True)
    assert done.nnz[SUPPORT, 0] <= done.nnz[AVERAGED, 0] and done.mistakes[0] > 0
    assert f_score(done.counts[AVERAGED]) != f_score(done.counts[LAST])
    lists = candidate_lists(sum(SIZES), features=80, doubt=2.0)
    whole = dataset(lists, min_count=MIN_COUNT)
    size = whole.features.size
    assert split.size == size  # so that both have the same features
    model = train(
        Reranking(), whole.take(np.arange(SIZES[0])), "perceptron", epochs=2, seed=3
    ).model
    best = model.predict(whole.take(np.arange(SIZES[0] + SIZES[1], sum(SIZES))))
    outcome = split.test.counts[split.test.rows.starts[:-1] + best]
    assert outcome.tolist() == done.counts[AVERAGED].tolist()
    assert model.nnz == done.nnz[AVERAGED, 0]


def test_votes_and_trails(problem):
    split = problem.cut(Part())
    voted = vote(SPECS["vrda-hinge"], {"l1": 1e-3}, split, 1, 2)
    assert voted.shape == (SIZES[2], 3) and f_score(voted) > 50.0
    one, other = (
        follow(SPECS[key], params, split, 1, 3)
        for key, params in (("perceptron", {}), ("vrda-hinge", {"l1": 0.0}))
    )
    visits = 3 * (SIZES[0] - int(idle_lists(split.train).sum()))
    assert one.samples[-1] == visits and (np.diff(one.samples) > 0).all()
    # Without regularisation voted dual averaging is the perceptron, up to a factor, and but for
    # ties that the first candidate wins: to the hinge they are mistakes.
    assert abs(int(one.mistakes[-1]) - int(other.mistakes[-1])) < 0.2 * one.mistakes[-1]
    assert (np.diff(one.mistakes) >= 0).all()
    held = bounded(SPECS["vrda-hinge"], {"l1": 0.0}, split, 1, 2)
    assert held.mistakes[0] <= other.mistakes[-1] and (held.mistakes <= held.theorem1).all()


def test_choices_follow_development_scores(tiny):
    trials = {
        key: [Trial(**{**t, "kept": KEPT.index(t["kept"])}) for t in outcome]
        for key, outcome in tiny[1]["trials"].items()
    }
    record = choose(trials, TINY)
    for key in TABLE:
        assert record[key].dev == max(t.dev for t in trials[key])
    few = record[sparse("vrda-hinge")]
    good = [t for t in trials["vrda-hinge"] if t.dev >= record["perceptron"].dev]
    assert few.nnz == min((t.nnz for t in good), default=record["vrda-hinge"].nnz)
    for level in TINY.levels:
        outcome = within(trials["tg-hinge"], level)
        assert (outcome is None) == (at_most("tg-hinge", level) not in record)
        assert outcome is None or outcome.nnz <= level
    assert within(trials["tg-hinge"], 0) is None
    assert record[at("hinge", 1e-4)].params["l1"] == 1e-4
    assert {t.kept for t in trials["vrda-hinge"]} == {AVERAGED, SUPPORT}


def test_dense_features_stay_in_an_average_on_the_last_support():
    class Faked:
        def average(self) -> np.ndarray:
            return np.array([3.0, 2.0, 1.0])

        def weights(self) -> np.ndarray:
            return np.array([0.0, 5.0, 0.0], np.float32)

    outcome = [p.weights.tolist() for p in readings(Faked(), np.array([0]))]
    assert outcome == [[3.0, 2.0, 1.0], [3.0, 2.0, 0.0], [0.0, 5.0, 0.0]]


def test_strengths_are_matched_by_the_share_of_weights_they_leave(tiny):
    class Faked:
        plan = TINY

        def nnz(self, name: str) -> float:
            return {at("hinge", 0.0): 1000.0, at("hinge", 1e-4): 900.0}.get(name, 200.0)

    assert claims.alike(Faked(), "hinge", 1e-5) == 1e-4
    assert claims.alike(Faked(), "hinge", 5e-4) == 5e-3


def test_verdicts_follow_the_numbers():
    ahead = Difference(88.0, 87.0, 0.4, 1.6, 0.01, 0.01)
    close = Difference(87.1, 87.0, -0.3, 0.5, 0.7, 0.7)
    unclear = Difference(86.9, 87.0, -0.9, 0.7, 0.7, 0.7)
    behind = Difference(86.0, 87.0, -1.6, -0.4, 0.01, 0.01)
    outcome = [claims.as_good(d) for d in (ahead, close, unclear, behind)]
    assert outcome == ["agrees", "agrees", "not shown", "disagrees"]
    outcome = [claims.better(d) for d in (ahead, close, unclear, behind)]
    assert outcome == ["agrees", "not shown", "not shown", "disagrees"]


def test_pairs_are_tested_with_seeds_pooled():
    rng = np.random.default_rng(1)
    right = rng.binomial(20, 0.8, 300)
    one = np.stack([right, np.full(300, 20), np.full(300, 20)], axis=1)
    two = one.copy()
    two[:, 0] = np.maximum(0, right - 2)
    outcome = compare([one, one, one], [two], 300)
    assert outcome.significant and outcome.points == pytest.approx(10.0, abs=0.5)
    assert outcome.first == pytest.approx(f_score(one))
    assert not compare([one, two], [two, one], 300).significant


def test_curves_are_measured_as_said():
    assert order_of([0, 1, 2, 3], [4, 3, 2, 1]) == -1.0
    assert order_of([0, 1, 2], [1, 1, 2]) == pytest.approx(0.866, abs=1e-3)
    samples = np.arange(6) * 10
    trail = Trail(0.0, samples, np.array([0, 50, 80, 99, 101, 100]), samples)
    assert settled(trail, 5.0) == 30 and settled(trail, 200.0) == 0


def test_missing_lists_are_named(tmp_path, monkeypatch):
    monkeypatch.delenv("HOPEFEAR_DATA", raising=False)
    with pytest.raises(HopefearError, match=r"no train\.jsonl\.xz.*set HOPEFEAR_DATA"):
        find_problem(tmp_path, tmp_path, False, silent)
    (tmp_path / "ptb-nbest").mkdir()
    (tmp_path / "ptb-nbest" / "train.jsonl.xz").touch()
    monkeypatch.setenv("HOPEFEAR_DATA", str(tmp_path))
    with pytest.raises(HopefearError, match=r"has no dev\.jsonl\.xz, test\.jsonl\.xz"):
        find_problem(None, tmp_path, True, silent)


def test_parses_are_read_and_kept(tmp_path, monkeypatch):
    if not (DATA / "ptb-nbest").is_dir():
        pytest.skip(f"{DATA / 'ptb-nbest'} is not there; set HOPEFEAR_DATA")
    monkeypatch.setattr("hopefear_papers.parses.LIMITED", (30, 10, 10))
    record = find_problem(DATA, tmp_path, True, silent)
    outcome = np.bincount(record.files)  # whole blocks
    assert all(a <= n <= 3 * a for n, a in zip(outcome, (30, 10, 10), strict=True))
    assert record.lists.ids[0] == "wsj_0001.0" and record.lists.counts.shape[1] == 3
    assert 0.5 < record.published.mean() < 1.0
    monkeypatch.setattr("hopefear_papers.parses.extracted", None)
    again = find_problem(DATA, tmp_path, True, silent)  # from the file it was kept in
    assert again.lists.digest == record.lists.digest
    assert again.published.tolist() == record.published.tolist()
    values = np.abs(record.lists.rows.values)
    assert values.max() > 20.0 and len(record.dense) == 2  # both have large values
    split = record.cut(Part(published=True))
    assert 0 < split.size < record.cut(Part()).size
    path = tmp_path / "lists-quick.bin"
    path.write_bytes(path.read_bytes()[:-7])
    monkeypatch.setattr("hopefear_papers.parses.extracted", extracted)
    assert find_problem(DATA, tmp_path, True, silent).lists.digest == record.lists.digest


def test_the_plan_is_the_papers():
    assert "vrda-reranking" in EXPERIMENTS
    assert set(claims.TABLE_2) <= set(FULL.sweep) and set(FULL.fold_sweep) <= set(FULL.sweep)
    theirs = [name for name in TABLE if not name.startswith("tg-printed")]
    assert [name for name, *_ in claims.TABLE_1] == ["baseline", *theirs]
    assert {spec.key for spec in FULL.specs} == set(TABLE)
    assert len(FULL.seeds) >= 3 and FULL.folds == 5
    for loss in LOSSES:
        assert set(FULL.sweep) <= set(FULL.spec(f"vrda-{loss}").grid["l1"])
        powers = [FULL.spec(f"{tg}-{loss}").fixed["power"] for tg in TG]
        assert powers == [0.0, 0.5]  # constant, and as eqs. 12 to 14 have it
    losses = {spec.fixed["loss"] for spec in FULL.extensions}
    assert losses == {"structured-hinge", "log", "weighted-log", "risk"}
    assert len(FULL.extensions) == 12 and set(FULL.fold_levels) <= set(FULL.levels)
