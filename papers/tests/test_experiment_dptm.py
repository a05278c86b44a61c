"""The experiment on phrase models: a whole small run, and the parts that decide what it says."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from places import DATA

from hopefear.errors import HopefearError
from hopefear.translation.tuners.mert import Mert
from hopefear_papers import EXPERIMENTS
from hopefear_papers.claims import Difference, some_of
from hopefear_papers.dptm import claims, plan, runs
from hopefear_papers.dptm.claims import as_good
from hopefear_papers.dptm.plan import (
    FULL,
    LOSSES,
    QUICK,
    TABLE,
    TG,
    Plan,
    Spec,
    at,
    bleu,
    find_problem,
    made_up,
)
from hopefear_papers.dptm.runs import (
    DECODER,
    LINE,
    MERT,
    POOLED,
    RETUNED,
    Mark,
    Results,
    Trial,
    as_is,
    build,
    choose,
    edges,
    follow,
    line,
    pair_scores,
    score_dense,
    trials_of,
)
from hopefear_papers.frame import Experiment, at_most, find_files
from hopefear_papers.translations import FOLDER, compare_bleu

WORDS = {"agrees", "disagrees", "not shown"}


@pytest.fixture(scope="module")
def problem() -> plan.Problem:
    return made_up((60, 40, 30, 30))


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """A whole run: the page, what it wrote, what it said, and its folder."""
    out = tmp_path_factory.mktemp("dptm")
    messages: list[str] = []
    page = Experiment("dptm").run(None, out, messages.append, quick=True)
    return page, json.loads((out / "results.json").read_text("utf-8")), messages, out


def test_it_can_be_asked_for():
    assert "dptm" in EXPERIMENTS


def test_page_has_the_tables_the_figures_and_the_papers_numbers(quick):
    page, _, messages, _ = quick
    text = page.read_text("utf-8")
    for part in ("Table 3", "Table 4", "Figures 7 and 8", "2,500,000", "26.6 αβ", "slip"):
        assert part in text
    assert text.count("<svg") == 2 * 3 + 1
    assert all(f"TG, {rate}" in text and f"than TG ({rate})" in text for rate in TG.values())
    assert "generated lists: nothing can be concluded" in text
    assert messages[-1].count("\n") == len(TABLE) + 2


def test_results_hold_scores_settings_and_verdicts(quick):
    _, results, _, _ = quick
    assert results["quick"]
    assert {v["verdict"] for v in results["verdicts"]} <= WORDS
    assert set(TABLE) | {RETUNED} <= set(results["choices"])
    for key in TABLE:
        outcome = results["choices"][key]
        assert len(outcome[MERT]["dev"]) == len(QUICK.seeds)
        # On these lists pairs decide, so that a model must help however it is added.
        for how in (LINE, MERT):
            assert min(outcome[how][POOLED]) > results["decoder"][POOLED] + 1.0
    assert results["choices"][at(0.0)]["nnz"] > results["choices"][at(1e-3)]["nnz"]


def test_a_second_call_takes_what_was_kept(quick, monkeypatch):
    page, results, _, out = quick

    def never(*given):
        raise AssertionError("a run that was kept was made again")

    before = page.read_bytes()
    for name in ("follow", "score", "score_dense"):
        monkeypatch.setattr(runs, name, never)
    Experiment("dptm").run(None, out, lambda text: None, quick=True)
    assert page.read_bytes() == before
    assert json.loads((out / "results.json").read_text("utf-8")) == results


def test_the_weight_on_the_line_is_the_best_and_never_below_the_decoder(problem):
    spec = Spec("sgd-log")
    marks = follow(problem, spec, {"inverse_temperature": 3.0, "rate": 0.1}, 1, (1, 2))
    assert [(m.passes, m.kept) for m in marks[:3]] == [
        (1, "average"),
        (1, "support"),
        (1, "last"),
    ]
    own = bleu(problem.dev.chosen(np.zeros(len(problem.dev.lists), np.int64)))
    assert all(m.bleu > own for m in marks)
    assert all(m.weight > 0.0 for m in marks)


def test_a_model_without_weights_changes_nothing(problem):
    points = pair_scores(problem.dev, np.zeros(problem.size))
    own = bleu(problem.dev.chosen(np.zeros(len(problem.dev.lists), np.int64)))
    assert line(problem, points).worth == pytest.approx(own, abs=1e-6)


def test_the_first_candidate_is_the_decoders(problem):
    outcome = score_dense(problem, 1, Mert(restarts=1))
    for positions in outcome.positions[LINE].values():
        assert not any(positions)
    assert outcome.dev[MERT] >= outcome.dev[LINE] - 1e-9


def test_pooled_counts_are_those_of_both_sets_for_every_seed(problem):
    record = Results(problem, QUICK)
    record.scored[RETUNED] = [score_dense(problem, seed, Mert(restarts=1)) for seed in (1, 2)]
    one, two = (record.counts(RETUNED, name) for name in problem.tests)
    both = record.counts(RETUNED, POOLED)
    assert len(both) == 2
    assert np.array_equal(both[1], np.concatenate([one[1], two[1]]))
    assert len(record.counts(DECODER, POOLED)) == 1


def test_sides_with_other_numbers_of_seeds_trade_places_fairly():
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.integers(1, 9, (40, 4)), np.full((40, 6), 9)])
    outcome = compare_bleu([rows] * 3, [rows] * 5, 50)
    assert outcome.points == 0.0
    assert outcome.p_randomisation == 1.0


def mark(passes: int, kept: str, dev: float, nnz: int) -> Mark:
    return Mark(passes, kept, dev, 1.0, dev, nnz)


def test_trials_are_means_over_seeds():
    runs = [[mark(1, "average", 40.0, 10)], [mark(1, "average", 42.0, 20)]]
    (trial,) = trials_of(Spec("sgd-log"), {"inverse_temperature": 1.0, "rate": 0.1}, runs)
    assert (trial.dev, trial.nnz, trial.passes) == (41.0, 15.0, 1)


def test_choices_are_the_best_on_development_lists():
    def trial(key: str, dev: float, nnz: float = 50.0, kept: str = "average", **params: float):
        return Trial(key, {"inverse_temperature": 1.0, "l1": 0.0, **params}, 1, kept, dev, dev, nnz)

    table = {key: [trial(key, 40.0), trial(key, 41.0, inverse_temperature=10.0)] for key in TABLE}
    table[TABLE[0]].append(trial(TABLE[0], 50.0, kept="support"))
    sweeps = {
        "vrda-risk": [
            trial("vrda-risk", 41.0, kept="last"),
            trial("vrda-risk", 45.0, nnz=60.0),
            trial("vrda-risk", 40.5, nnz=5.0, kept="support", l1=1e-3),
        ],
        "tg-risk": [trial("tg-risk", 39.0, nnz=500.0)],
    }
    outcome = choose(table, sweeps, QUICK)
    assert outcome[TABLE[0]].dev == 41.0  # without a penalty the support is the average
    assert outcome[as_is(TABLE[0])].dev == 40.0
    assert outcome[at(0.0)].kept == "last"
    assert outcome[at_most("vrda-risk", 100)].dev == 45.0
    assert outcome[at_most("vrda-risk", 10)].dev == 40.5
    assert at_most("tg-risk", 100) not in outcome
    spec = Spec("sgd-log", {"rate": (0.1, 1.0, 10.0), "inverse_temperature": (1.0,)})
    assert edges(
        Trial("sgd-log", {"rate": 1.0, "inverse_temperature": 1.0}, 3, "last", 0, 0, 0),
        spec,
        (1, 3),
    ) == ["passes"]


def test_words_of_verdicts():
    assert as_good(Difference(41.0, 41.0, -0.39, 0.3, 1.0, 1.0)) == "agrees"
    assert as_good(Difference(41.0, 41.0, -0.5, 0.3, 1.0, 1.0)) == "not shown"
    assert some_of(["not shown", "not shown"]) == "not shown"
    assert some_of(["not shown", "disagrees"]) == "disagrees"


def test_strengths_are_matched_by_the_weights_they_leave(problem):
    plan = Plan((), (), (0.0, 1.0, 2.0, 3.0))
    results = Results(problem, plan)
    base = score_dense(problem, 1, Mert(restarts=1))
    for l1, nnz in zip(plan.strengths, (10_000, 5_000, 900, 25), strict=True):
        results.scored[at(l1)] = [replace(base, nnz=nnz)]
    assert claims.tenth(results) == 2.0
    assert claims.few(results) == 3.0


def test_paper_and_plan_speak_of_the_same_models():
    assert set(claims.TABLE_3) == set(TABLE)
    assert {spec.loss for spec in FULL.table} == set(LOSSES)
    assert FULL.strengths == FULL.sweeps[0].grid["l1"]
    powers = {spec.rule: build(spec, {"rate": 1.0}).rule.power for spec in FULL.sweeps[1:]}
    assert powers == {"tg": 0.0, "tg-printed": 0.5}  # constant, and as eqs. 12 to 14 have it


def test_generated_lists_have_their_best_first(problem):
    part = problem.dev
    assert (part.b <= 0.0).all()
    assert (part.b[part.lists.starts[:-1]] == 0.0).all()
    pairs = np.sort(part.lists.phrases.ids.reshape(part.lists.n_candidates, -1))
    assert (np.diff(pairs) > 0).all()


def test_missing_lists_are_named(tmp_path):
    with pytest.raises(HopefearError, match=r"train10k\.nbest\.xz.*needs lists of translations"):
        find_problem(tmp_path, False, lambda text: None)


def test_the_real_lists_are_where_they_should_be():
    if not (DATA / FOLDER).is_dir():
        pytest.skip(f"no {FOLDER} in {DATA}; set HOPEFEAR_DATA")
    wanted = [f"{name}.nbest.xz" for name in (plan.TRAIN, plan.DEV, *plan.TESTS)]
    assert find_files(DATA, FOLDER, wanted, "lists") == DATA / FOLDER
