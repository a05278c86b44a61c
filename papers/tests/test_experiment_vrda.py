"""The experiment on voted RDA: a whole small run, and the parts that decide what the page says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from places import DATA

from hopefear.errors import HopefearError
from hopefear_papers import EXPERIMENTS, run_experiment
from hopefear_papers.claims import Difference, better, order_of
from hopefear_papers.frame import Experiment, Trail, find_data, first_marks
from hopefear_papers.vrda_classification import claims
from hopefear_papers.vrda_classification import plan as data
from hopefear_papers.vrda_classification.plan import QUICK
from hopefear_papers.vrda_classification.runs import (
    TASKS,
    Scores,
    Trial,
    bound_curves,
    build,
    compare_scores,
    follow,
    measure_problem,
    pick,
    run,
)

NAME = "vrda-classification"
SPECS = {spec.key: spec for spec in QUICK.specs}
LIST_SPECS = {spec.key: spec for spec in QUICK.list_specs}
WORDS = {"agrees", "disagrees", "not shown"}


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    out, messages = tmp_path_factory.mktemp("quick"), []
    page = run_experiment(NAME, None, out, quick=True, progress=messages.append)
    return page, json.loads((out / "results.json").read_text("utf-8")), messages


@pytest.fixture(scope="module")
def problem():
    return data.generated(600, 400, 120)


@pytest.fixture(scope="module")
def lists():
    return data.generated_lists((60, 30, 40))


def svmlight(path: Path, labels: list[int]) -> None:
    path.write_text("".join(f"{y} {i % 3 + 1}:2 {i % 5 + 4}:1\n" for i, y in enumerate(labels)))


@pytest.fixture
def corpora(tmp_path):
    """Both corpora in miniature."""
    for name in ("imdb", "news20_bydate"):
        (tmp_path / name).mkdir()
        for part in ("train", "test"):
            labels = [1, -1] * 10 if name == "imdb" else [1, 2, 3, 1]
            svmlight(tmp_path / name / f"{part}.libsvm", labels)
    (tmp_path / "news20_bydate" / "labels.tsv").write_text("1\ta\t-1\n2\tb\t+1\n3\tc\t-1\n")
    return tmp_path


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_a_plan_runs_claims_and_a_page(name):
    experiment = Experiment(name)
    assert experiment.plan.QUICK and experiment.plan.FULL
    for part, names in (
        (experiment.runs, ["measure"]),
        (experiment.claims, ["judge"]),
        (experiment.page, ["signature", "content", "table_text", "Report"]),
    ):
        assert all(callable(getattr(part, one)) for one in names)


def test_unknown_experiment_and_unusable_folder_are_refused(tmp_path):
    with pytest.raises(HopefearError, match="did you mean 'vrda-classification'"):
        run_experiment("vrda-classifcation", None, tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(HopefearError, match="cannot be made a folder"):
        run_experiment(NAME, None, tmp_path / "file", quick=True)


def test_page_shows_the_table_all_figures_and_the_papers_numbers(quick):
    page, _, messages = quick
    text = page.read_text("utf-8")
    assert page.name == "report.html"
    for part in (
        "Table 1",
        "Figure 1",
        "Figure 2",
        "Figure 3",
        "Figure 4",
        "Figure 5",
        "Voting",
        "Theorem 1",
        "939 K",
        "89.7%",
        "87.2%",
        "parse reranking",
        "Baseline: the first of each list",
        "last: F",
        "η′/√k",
        "own task: ",
    ):
        assert part in text, part
    assert text.count("<svg") == 2 * (2 + 1 + 2 + 1 + 1) + 2  # lists and texts, and the bound
    assert "generated problems only" in text
    assert len(messages) > 10
    assert list(page.parent.glob(".hopefear-*")) == []


def test_results_hold_scores_settings_seeds_and_verdicts(quick):
    _, results, _ = quick
    problem, lists = (results["problems"][name] for name in ("generated", "generated lists"))
    assert results["settings"]["seed"] == 1
    assert set(results["versions"]) == {"hopefear", "python", "numpy", "numba"}
    assert "passes:6" in results["signature"]
    assert set(problem["best"]) == set(SPECS)
    for done in problem["best"].values():
        assert len(done["averaged"]["accuracy"]) == QUICK.passes
        assert done["averaged"]["mean"]["accuracy"] > 75.0
        assert "seed:1" in done["signature"]
    assert set(lists["best"]) == set(LIST_SPECS)
    for done in lists["best"].values():
        assert len(done["averaged"]["f1"]) == QUICK.passes
        assert done["averaged"]["mean"]["f1"] > lists["baseline"]["mean"]["f1"]
        assert "accuracy" not in done["averaged"]
    assert {v["verdict"] for v in results["verdicts"]} <= WORDS
    assert all(v["evidence"] for v in results["verdicts"])
    assert len(results["verdicts"]) == 2 * len(claims.TABLE_CLAIMS + claims.FIGURE_CLAIMS) + 1


def test_hinge_without_regularisation_is_the_perceptron(quick):
    _, results, _ = quick
    trails = results["problems"]["generated"]["trails"]
    free = trails["hinge"][0]
    assert free["l1"] == 0.0
    assert free["mistakes"] == trails["perceptron"][0]["mistakes"]
    claim = "λ = 0 makes fewer training mistakes than the perceptron (hinge)"
    outcome = next(v for v in results["verdicts"] if v["claim"] == claim)
    assert outcome["verdict"] == "disagrees"
    assert "same learner" in outcome["evidence"]


def test_the_same_run_again_gives_the_same_numbers(quick, tmp_path):
    _, first, _ = quick
    run_experiment(NAME, None, tmp_path, quick=True)
    second = json.loads((tmp_path / "results.json").read_text("utf-8"))
    for results in (first, second):
        for problem in results["problems"].values():
            problem.pop("seconds_per_pass", None)
            for votes in problem["votes"].values():
                votes.pop("seconds_per_1000", None)
    assert first["problems"] == second["problems"]
    assert first["bound"] == second["bound"]


def test_settings_are_chosen_without_the_test_rows(problem, monkeypatch):
    seen = []

    def watched(spec, setting, part, passes):
        seen.append((len(part.train), part.test is problem.test))
        return run(spec, setting, part, passes)

    monkeypatch.setattr("hopefear_papers.vrda_classification.runs.run", watched)
    record = measure_problem(replace(problem, table_only=True), QUICK, lambda done, text: None)
    # Only runs on all 600 training rows, with settings that are chosen already, look at the test.
    assert set(seen) == {(480, False), (600, True)}
    assert record.best["vrda-log"].averaged.choices.shape == (QUICK.passes, 400)
    assert not record.trails


def test_settings_of_lists_are_chosen_on_development_lists(lists):
    tuning = lists.tuning()
    assert tuning.test is lists.dev and tuning.train is lists.train
    done = run(LIST_SPECS["vrda-hinge"], {"l1": 1e-3}, tuning, passes=2)
    assert done.averaged.choices.shape == (2, 30)
    assert 0.0 < TASKS["rerank"].error(lists.dev, done.averaged.choices) < 20.0


def test_choices_from_lists_are_scored_by_their_brackets(lists):
    done = run(LIST_SPECS["vrda-log"], {"l1": 1e-3, "rate": 1.0}, lists, passes=3)
    counts = lists.test.counts[lists.test.rows.starts[:-1] + done.averaged.choices]
    right, proposed, gold = counts.sum(axis=1).T
    assert done.averaged.series("f1") == pytest.approx(200.0 * right / (proposed + gold))
    outcome = compare_scores(done.averaged, done.last, slice(1, None))
    right, proposed, gold = counts[1:].sum(axis=(0, 1))
    assert outcome.first == pytest.approx(200.0 * right / (proposed + gold))
    assert done.last.nnz[-1] <= done.averaged.nnz[-1]


def test_an_average_of_passes_is_scored_as_one_would_by_hand(problem):
    done = run(SPECS["vrda-hinge"], {"l1": 1e-3}, problem, passes=3)
    for scores in (done.averaged, done.last):
        right = scores.choices == problem.test.rows.labels
        assert scores.series("accuracy") == pytest.approx(100 * right.mean(axis=1))
        summary = scores.summary(slice(1, None))
        assert summary["accuracy"] == pytest.approx(100 * right[1:].mean())
        assert summary["error"] == pytest.approx(100 - summary["accuracy"])
    assert done.last.nnz[-1] < done.averaged.nnz[-1]
    assert np.all(np.diff(done.mistakes) > 0)


def test_a_trail_ends_where_the_run_ends(problem):
    setting = {"l1": 1e-3}
    trail = follow(SPECS["vrda-hinge"], setting, problem, passes=3)
    done = run(SPECS["vrda-hinge"], setting, problem, passes=3)
    assert trail.samples[-1] == 3 * len(problem.train)
    assert trail.mistakes[-1] == done.mistakes[-1]
    assert trail.nnz[-1] == done.last.nnz[-1]
    for n in (1, 19, 20, 21, 5000):
        marks = first_marks(n)
        assert marks[-1] == n
        assert np.all(np.diff(marks) > 0)


def test_learners_update_as_their_papers_say(problem, lists):
    for place, specs in ((problem, SPECS), (lists, LIST_SPECS)):
        learners = {key: build(spec, spec.settings()[0], place) for key, spec in specs.items()}
        assert {key for key, learner in learners.items() if learner.update_on == "mistakes"} == {
            "perceptron",
            "vrda-hinge",
            "vrda-log",
        }
        powers = [learners[f"tg-{loss}"].rule.power for loss in ("hinge", "log")]
        assert powers == [0.5, 0.5]  # the rate falls as it is printed


def test_best_and_sparse_settings():
    spec = SPECS["vrda-log"]
    trials = [
        Trial({"l1": l1, "rate": 100.0}, accuracy, 0.9, accuracy, nnz, nnz // 2, accuracy)
        for l1, accuracy, nnz in ((0.0, 90.0, 500), (1e-4, 90.0, 300), (1e-3, 89.9, 40))
    ]
    choice = pick(spec, trials)
    assert choice.best is trials[1]
    assert choice.sparse is trials[2]
    assert choice.edges == ("rate",)
    exact = [replace(trial, error=1e-3) for trial in trials]
    assert pick(spec, exact).sparse is exact[1]
    assert choice.along("l1") == trials


def test_verdicts_follow_the_numbers(problem):
    rng, labels = np.random.default_rng(0), problem.test.rows.labels
    good, poor = (
        Scores(problem, labels ^ (rng.random((3, 400)) > share), np.zeros(3))
        for share in (0.95, 0.75)
    )
    assert better(compare_scores(good, poor)) == "agrees"
    assert better(compare_scores(poor, good)) == "disagrees"
    assert better(compare_scores(good, good)) == "not shown"
    assert claims.as_good(compare_scores(good, good)) == "agrees"
    assert claims.as_good(compare_scores(poor, good)) == "disagrees"
    wide = Difference(90.0, 90.2, -2.0, 1.6, 0.8)
    assert claims.as_good(wide) == "not shown"
    assert order_of([0, 1, 2, 3], [5, 6, 9, 20]) == pytest.approx(1.0)
    assert order_of([0, 1, 2, 3], [9, 6, 5, 2]) == pytest.approx(-1.0)


def test_exponent_uses_the_first_pass_only():
    samples = np.array([0, 10, 100, 400, 900, 10_000])
    mistakes = np.array([0, 9, 20, 40, 60, 9_000])
    assert Trail(0.0, samples, samples, mistakes).exponent(900) == pytest.approx(0.5)


def test_theorem_1_holds_and_a_broken_bound_would_be_told():
    curves = bound_curves(QUICK)
    assert claims.judge_bound(curves).verdict == "agrees"
    broken = [
        c.__class__(
            c.noise,
            c.strength,
            tuple(r.__class__(**{**r.__dict__, "theorem1": 1.0}) for r in c.reports),
        )
        for c in curves
    ]
    assert claims.judge_bound(broken).verdict == "disagrees"


def test_corpora_become_unit_rows_of_present_features(corpora):
    outcome, note = data.find_problems(corpora, quick=False)
    names = [p.name for p in outcome]
    assert names == ["imdb", "news20", "news20, 20 classes", "generated"]
    assert note == "Not found, and so left out: ptb-nbest."
    news = outcome[1]
    assert news.train.classes == ("-1", "1")
    assert news.train.rows.labels.tolist() == [0, 1, 0, 0]
    assert outcome[2].train.classes == ("1", "2", "3")
    assert news.train.rows.values == pytest.approx(np.full(8, 0.5**0.5))


def test_missing_corpora(corpora, monkeypatch, tmp_path_factory):
    (corpora / "imdb" / "train.libsvm").rename(corpora / "away")
    with pytest.raises(HopefearError, match=r"imdb holds no train\.libsvm"):
        data.find_problems(corpora, quick=False)
    (corpora / "imdb").rename(corpora / "other")
    assert "left out: ptb-nbest, imdb" in data.find_problems(corpora, quick=False)[1]
    empty = tmp_path_factory.mktemp("empty")
    with pytest.raises(HopefearError, match="holds neither"):
        data.find_problems(empty, quick=False)
    monkeypatch.setenv("HOPEFEAR_DATA", str(corpora))
    assert find_data(None) == corpora
    monkeypatch.delenv("HOPEFEAR_DATA")
    (empty / "inside").mkdir()
    monkeypatch.chdir(empty / "inside")
    assert find_data(None) is None
    assert "only generated data" in data.find_problems(None, quick=False)[1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1\ta\n", "labels.tsv:1: expected label, name"),
        ("1\ta\t-1\n2\tb\t+1\n", "tells no side of label 3"),
    ],
)
def test_bad_groups_are_told_with_their_place(corpora, line, message):
    (corpora / "news20_bydate" / "labels.tsv").write_text(line)
    with pytest.raises(HopefearError, match=message):
        data.find_problems(corpora, quick=False)


@pytest.mark.slow
def test_the_real_corpora_are_what_the_page_says():
    if not (DATA / "imdb").is_dir():
        pytest.skip(f"no corpora in {DATA}; set HOPEFEAR_DATA")
    imdb, news, many = *data.imdb(DATA / "imdb"), *data.news20(DATA / "news20_bydate")
    assert (len(imdb.train), len(imdb.test)) == (25_000, 25_000)
    assert (len(news.train), len(news.test)) == (11_314, 7_532)
    assert int(news.train.rows.labels.sum()) == 5_910
    assert many.train.n_features == data.UNIGRAMS + 1
    assert len(many.train.classes) == 20
