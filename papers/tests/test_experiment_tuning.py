"""The experiment on tuners: a whole small run, and the parts that decide what it says."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from places import DATA

from hopefear.errors import HopefearError
from hopefear.translation.recipes import TUNE_RECIPES
from hopefear.translation.task import tune
from hopefear.translation.tuners.problem import TuningProblem
from hopefear_papers import EXPERIMENTS
from hopefear_papers.claims import Difference
from hopefear_papers.frame import Experiment, KeptRuns
from hopefear_papers.translations import compare_bleu
from hopefear_papers.tuning import claims, runs
from hopefear_papers.tuning.claims import PEERS
from hopefear_papers.tuning.plan import (
    AWAY,
    CORPORA,
    FULL,
    MADE_UP,
    METRIC,
    QUICK,
    TESTS,
    TOWARD,
    VAL,
    Entry,
    Part,
    Plan,
    choice_key,
    find_sets,
    made_up,
    plain,
    problem_of,
)
from hopefear_papers.tuning.runs import Run, best_so_far, built, run, val_score

WORDS = {"agrees", "disagrees", "not shown"}


def silent(*given: object) -> None:
    pass


def part_of(plan: Plan, key: str) -> Part:
    return next(part for part in plan.parts if part.key == key)


@pytest.fixture(scope="module")
def sets():
    return find_sets(None, True, silent)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    out, messages = tmp_path_factory.mktemp("tuning"), []
    page = Experiment("tuning").run(None, out, messages.append, quick=True)
    return page, json.loads((out / "results.json").read_text("utf-8")), messages


def test_page_shows_verdicts_all_parts_and_peers(quick):
    page, results, messages = quick
    text = page.read_text("utf-8")
    for part in QUICK.parts:
        assert part.title in text
    for shown in ("57–63", "too few to conclude from", "hope / fear", "oracle", "2,250 features"):
        assert shown in text, shown
    assert text.count("<svg") == 3 * len(QUICK.parts) + 2
    assert "Surrogate losses" in text
    assert any("Thousands of features: kbmira" in line for line in messages)
    assert "kbmira" in messages[-1]
    assert {v["verdict"] for v in results["verdicts"]} <= WORDS
    assert all(v["evidence"] for v in results["verdicts"])


def test_results_hold_every_tuner_round_and_seed(quick):
    _, results, _ = quick
    for part in QUICK.parts:
        outcome = results["results"][part.key]
        assert set(outcome) == {entry.key for entry in part.entries}
        for key, entry in outcome.items():
            assert len(entry["runs"]) == len(QUICK.seeds)
            for one in entry["runs"]:
                rounds = one["rounds"]
                assert ("dev" in rounds) == part.held_out
                assert {len(rounds[name]) for name in rounds} == {len(rounds["train"])}
                if one["kept"] and not key.startswith("hols"):
                    judged = "dev" if part.held_out else "train"
                    kept = rounds[judged][one["kept"] - 1]
                    assert one["scores"][judged] == pytest.approx(kept)
                    # Without held-out lists online tuners keep the last round.
                    assert not part.held_out or kept == max(rounds[judged])
                for test in TESTS:
                    assert 0.0 < one["scores"][test] <= results["fixed"]["oracle"][test]
    assert results["results"]["extended"]["pro"]["trials"]
    assert results["lists"][VAL][0] == MADE_UP[VAL]


def test_a_second_call_takes_up_all_runs_and_says_the_same(quick, monkeypatch):
    page, first, _ = quick

    def refuse(*given, **named):
        raise AssertionError("tuned again")

    monkeypatch.setattr(runs, "run", refuse)
    Experiment("tuning").run(None, page.parent, silent, quick=True)
    assert json.loads((page.parent / "results.json").read_text("utf-8")) == first


def test_test_lists_change_no_choice(sets, tmp_path):
    part = replace(
        part_of(QUICK, "extended"),
        entries=(Entry("mira", "MIRA", "mira", {"epochs": 3}, {"C": (1e-3, 1e-2)}),),
    )
    plan = Plan((part,), seeds=(1,), replicates=50)
    other = {**sets, **{test: made_up(20, 50 + k) for k, test in enumerate(TESTS)}}
    one, two = (
        runs.measure_sets(given, plan, KeptRuns(tmp_path / name), silent).of("extended", "mira")
        for given, name in ((sets, "one"), (other, "two"))
    )
    assert one.trials == two.trials and one.params == two.params
    assert one.runs[0].rounds["dev"] == two.runs[0].rounds["dev"]
    assert one.runs[0].kept == two.runs[0].kept
    assert one.runs[0].scores["test_2016"] != two.runs[0].scores["test_2016"]


def test_trials_never_look_at_tests(sets):
    problem = problem_of(sets, part_of(QUICK, "extended"))
    outcome = run(plain(("kbmira",), epochs=2)[0], {"epochs": 2}, problem, 1, tested=False)
    assert set(outcome.rounds) == {"train", "dev"} and not outcome.choices
    assert val_score(outcome) == outcome.scores["dev"]


def test_a_run_is_what_the_public_interface_tunes(sets):
    part = part_of(QUICK, "dense")
    problem = problem_of(sets, part)
    (entry,) = plain(("kbmira",), epochs=4)
    done = run(entry, entry.fixed, problem, 3)
    record = tune(sets[VAL], "kbmira", {"epochs": 4}, start="moses", features=["dense"], seeds=[3])
    assert done.scores["train"] == pytest.approx(record.after["train"])
    assert done.kept == record.chosen.tuned.best_epoch
    watched = [event["train"]["bleu"] for event in record.history]
    assert done.rounds["train"] == pytest.approx(watched)
    # What it chose from test lists is worth what it says.
    sums = sets["test_2016"].counts[done.choices["test_2016"]].sum(axis=0)
    assert METRIC.scores(sums)["bleu"] == pytest.approx(done.scores["test_2016"])


def test_looking_at_tests_changes_nothing_and_takes_no_time(sets):
    problem = problem_of(sets, part_of(QUICK, "dense"))
    plain_problem = TuningProblem(problem.data, problem.metric, problem.start)
    tuner = built(plain(("kbmira",), epochs=2)[0], {"epochs": 2}, problem)
    assert (tuner.tune(problem).weights == tuner.tune(plain_problem).weights).all()
    assert len(problem.spent) == 2
    assert run(plain(("kbmira",))[0], {"epochs": 2}, problem, 1).seconds >= 0.0


def test_parameters_may_be_multiples_of_what_the_data_suggest(sets):
    problem = problem_of(sets, part_of(QUICK, "dense"))
    entry = plain(("ssvm",))[0]
    one, three = (built(entry, {"rate": rate}, problem).learner.rule for rate in ("1×", "3×"))
    assert three.rate == pytest.approx(3.0 * one.rate)
    assert one == built(entry, {}, problem).learner.rule


def test_a_tuner_that_refuses_is_told_of(sets, monkeypatch, tmp_path):
    monkeypatch.setattr("hopefear.translation.tuners.mert.FEATURES", 20)
    part = replace(part_of(QUICK, "extended"), entries=plain(("mert", "kbmira"), epochs=2))
    record = runs.measure_sets(
        sets, Plan((part,), seeds=(1, 2), replicates=50), KeptRuns(tmp_path), silent
    )
    outcome = record.of("extended", "mert")
    assert "20" in outcome.refused and len(outcome.runs) == 1
    assert not record.has(("extended", "mert")) and record.has(("extended", "kbmira"))


def test_rounds_of_starts_are_shown_as_the_best_so_far():
    outcome = Run(rounds={"train": [1.0, 1.0], "dev": [3.0, 2.0], "test_2016": [7.0, 9.0]})
    assert best_so_far(outcome)["test_2016"] == [7.0, 7.0]


def test_pairs_are_tested_with_seeds_pooled(sets):
    lists = sets["test_2016"]
    first, second = lists.counts[lists.starts[:-1]], lists.counts[lists.starts[1:] - 1]
    outcome = compare_bleu([first, first, first], [second], 200)
    assert outcome.significant and outcome.points > 0.0  # the decoder's first against its last
    assert outcome.first == pytest.approx(METRIC.scores(first.sum(axis=0))["bleu"])
    assert compare_bleu([first, second], [second, first], 200).points == pytest.approx(0.0)


def test_verdicts_follow_the_numbers():
    ahead = Difference(38.9, 38.0, 0.4, 1.4, 0.001, 0.001)
    close = Difference(38.1, 38.0, -0.2, 0.4, 0.4, 0.4)
    unclear = Difference(37.9, 38.0, -0.7, 0.5, 0.7, 0.7)
    behind = Difference(37.0, 38.0, -1.4, -0.6, 0.001, 0.001)
    every = (ahead, close, unclear, behind)
    assert [claims.as_good(d) for d in every] == ["agrees", "agrees", "not shown", "disagrees"]
    assert [claims.alike(d) for d in every] == ["disagrees", "agrees", "not shown", "disagrees"]


def test_the_plan_has_every_tuner_and_every_choice():
    assert "tuning" in EXPERIMENTS
    dense = part_of(FULL, "dense")
    assert set(TUNE_RECIPES) <= {entry.key for entry in dense.entries}
    for toward in TOWARD:
        for away in AWAY:
            keys = {choice_key(toward, away, corpus) for corpus in CORPORA}
            assert keys <= {entry.key for entry in dense.entries}
    assert len(FULL.seeds) >= 3
    for part in FULL.parts:
        assert len({entry.key for entry in part.entries}) == len(part.entries)
        for entry in part.entries:
            known = TUNE_RECIPES[entry.recipe].parameters()
            assert {*entry.fixed, *entry.grid} - {"classifier"} <= set(known), entry.key
    assert set(PEERS) <= {part.key for part in FULL.parts}


def test_missing_lists_are_named(tmp_path, monkeypatch):
    monkeypatch.delenv("HOPEFEAR_DATA", raising=False)
    with pytest.raises(HopefearError, match=r"no train10k\.nbest\.xz.*set HOPEFEAR_DATA"):
        find_sets(tmp_path, False, silent)


def test_real_lists_are_read_with_their_phrase_pairs(monkeypatch):
    if not (DATA / "multi30k-nbest").is_dir():
        pytest.skip(f"{DATA / 'multi30k-nbest'} is not there; set HOPEFEAR_DATA")
    monkeypatch.setattr("hopefear_papers.tuning.plan.TRAIN", VAL)  # the other is large
    outcome = find_sets(DATA, False, silent)
    record = runs.known(outcome, FULL)
    for way, peer in (("start", "start"), ("decoder", "decoder")):
        for name, theirs in zip((VAL, *TESTS), PEERS["dense"][peer], strict=False):
            assert record.fixed[way][name] == pytest.approx(theirs, abs=0.006)
    assert record.fixed["oracle"][VAL] == pytest.approx(PEERS["dense"]["oracle"].val, abs=0.1)
    assert outcome[VAL].phrases is not None and np.isfinite(outcome[VAL].dense).all()
