"""The experiment on SAPO: a whole small run, and the parts that decide what the page says."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hopefear.errors import HopefearError
from hopefear.metrics import Tagging
from hopefear_papers import EXPERIMENTS
from hopefear_papers.frame import Experiment, KeptRuns
from hopefear_papers.sapo import claims, plan, runs
from hopefear_papers.sapo.claims import exponent, fall, late_growth, swing
from hopefear_papers.sapo.plan import (
    AVERAGED,
    CRF,
    ENTRIES,
    FULL,
    LAST,
    NAIVE,
    QUICK,
    SAPO,
    SPECS,
    Entry,
    Problem,
    Reader,
    find_problems,
)
from hopefear_papers.sapo.runs import Results, Trial, compare_counts, measure_task
from hopefear_papers.sapo.settings import ENCODERS, Run, Setting, run

WORDS = {"agrees", "disagrees", "not shown"}
TINY = replace(
    QUICK,
    tasks=(
        replace(
            QUICK.tasks[0],
            letter="",
            passes=3,
            tuning_passes=1,
            timed_passes=1,
            network_passes=0,
            grid=False,
        ),
    ),
    ns=(1, 5),
    searches=("astar", "beam"),
    replicates=200,
)


def silent(text: str) -> None:
    pass


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    out, messages = tmp_path_factory.mktemp("tiny"), []
    page = Experiment("sapo").run(None, out, messages.append, quick=True, plan=TINY)
    return page, json.loads((out / "results.json").read_text("utf-8")), messages


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Reader(TINY.tasks[0], None, quick=True).read()


def test_page_shows_verdicts_and_all_figures(tiny):
    page, _, messages = tiny
    text = page.read_text("utf-8")
    for part in (
        *("Figure 1", "Figure 2", "Figure 3", "Figure 4", "Effect of n", "beam 50"),
        *("generated sentences only", "MIRA-Nbest-Avg", "SAPO-Avg"),
    ):
        assert part in text
    assert text.count("<svg") == 1 + 2 + 1 + 1 + 2
    assert messages[-1].count("±") == len(ENTRIES)
    assert any("%  generated: nbest-mira, seed 2" in line for line in messages)


def test_results_hold_every_run_test_and_verdict(tiny):
    _, results, _ = tiny
    record = results["tasks"]["generated"]
    assert set(results["versions"]) == {"hopefear", "python", "numpy", "numba"}
    assert set(record["runs"]) == set(SPECS)
    for key, by_seed in record["runs"].items():
        assert len(by_seed) == len(TINY.seeds)
        for n, one in enumerate(by_seed):
            assert f"seed:{TINY.seeds[n]}" in one["signature"]
            assert all(len(v) == 3 for v in (*one["scores"].values(), one["seconds"])), key
            assert 70.0 < one["scores"]["averaged"][-1] < 100.0
    assert record["by_n"]["5"] == record["runs"]["sapo"]
    assert record["by_search"]["astar"] == record["runs"]["sapo"][:1]
    assert len(record["trials"]) == len(TINY.lams) * len(TINY.rates)
    assert set(record["tests"]) == {f"SAPO against {e.title}" for e in ENTRIES[1:8]}
    assert len(results["verdicts"]) == len(claims.CLAIMS + claims.LIST_CLAIMS)
    assert {v["verdict"] for v in results["verdicts"]} <= WORDS
    assert all(v["evidence"] for v in results["verdicts"])


def test_a_second_call_takes_up_all_runs_and_says_the_same(tiny, monkeypatch):
    page, first, _ = tiny

    def refuse(*args, **kwargs):
        raise AssertionError("trained again")

    monkeypatch.setattr(runs, "run", refuse)
    monkeypatch.setattr(runs, "seconds_a_pass", refuse)
    Experiment("sapo").run(None, page.parent, silent, quick=True, plan=TINY)
    assert json.loads((page.parent / "results.json").read_text("utf-8")) == first


@pytest.mark.needs("neural")
def test_networks_join_the_figures_the_claims_and_a_table_of_losses_by_encoders(tiny, tmp_path):
    page, first, messages = tiny
    page = shutil.copytree(page.parent, tmp_path / "deep") / page.name
    deep = replace(
        TINY,
        tasks=(replace(TINY.tasks[0], network_passes=2, grid=True, letter="sapo-chunking"),),
        networks=replace(TINY.networks, passes=1, sentences=40),
    )
    Experiment("sapo").run(None, page.parent, messages.append, quick=True, plan=deep)
    text = page.read_text("utf-8")
    assert "Figure 5" in text and "Every loss on every encoder" in text
    assert "networks begin without vectors" in text
    assert "Features to the letter" in text and "p by t" in text
    results = json.loads((page.parent / "results.json").read_text("utf-8"))
    record = results["tasks"]["generated"]
    assert record["runs"]["sapo"] == first["tasks"]["generated"]["runs"]["sapo"]
    for name in ("bilstm", "bilstm-crf"):
        (one,) = record["runs"][name]
        assert list(one["scores"]) == ["averaged"]
        assert len(one["scores"]["averaged"]) == 2 and one["scores"]["averaged"][1] > 20.0
    assert set(record["letter"]) == {"sapo", "crf", "perceptron"}
    assert record["letter"]["crf"] != record["runs"]["crf"][:1]
    assert set(record["grid"]) == {f"{a}, {b}" for a in ("log", "sapo") for b in ENCODERS}
    assert {"SAPO against BiLSTM", "SAPO against BiLSTM-CRF"} < set(record["tests"])
    claimed = {v["claim"] for v in results["verdicts"]}
    assert {claim.text for claim in claims.NETWORK_CLAIMS} < claimed
    # Nothing is left of networks where the plan has none.
    Experiment("sapo").run(None, page.parent, silent, quick=True, plan=TINY)
    assert json.loads((page.parent / "results.json").read_text("utf-8")) == first


def test_without_pytorch_networks_are_left_out_and_said(monkeypatch, tmp_path):
    monkeypatch.setattr(plan.importlib.util, "find_spec", lambda name: None)
    params, missing = QUICK.networks.found(tmp_path)
    assert params is None and "hopefear[neural]" in missing


def test_the_papers_test_of_equal_differences():
    one, other = np.ones((3, 7), np.int64), np.zeros((3, 7), np.int64)
    assert (runs.t_test(one, one), runs.t_test(one, other)) == (1.0, 0.0)
    assert runs.t_test(one[:1], other[:1]) == 1.0


def test_runs_of_other_settings_or_broken_files_are_not_taken_up(tmp_path):
    kept = KeptRuns(tmp_path / "runs")
    assert kept.of("a b/c", {"seed": 1}, lambda: [1]) == [1]
    assert kept.of("a b/c", {"seed": 2}, lambda: [2]) == [2]
    (path,) = (tmp_path / "runs").iterdir()
    path.write_bytes(path.read_bytes()[:-5])
    assert kept.of("a b/c", {"seed": 2}, lambda: [3]) == [3]
    (tmp_path / "file").touch()
    with pytest.raises(HopefearError, match="give another --out"):
        KeptRuns(tmp_path / "file" / "runs")


def test_the_strength_is_chosen_for_the_crf_alone_and_never_on_test(problem, tmp_path, monkeypatch):
    seen = []

    def watched(setting, train, test, metric, seed, every=True):
        seen.append((setting, train is problem.rest, test is problem.held_out, every))
        shape = (2, setting.passes)
        score = {0.1: 80.0, 1.0: 90.0}.get(setting.params.get("lam"), 70.0)
        counts = np.zeros((2, len(test), 7), np.int64)
        return Run("", np.full(shape, score), np.ones(shape), np.ones(3), np.ones(3), counts)

    monkeypatch.setattr(runs, "run", watched)
    monkeypatch.setattr(runs, "seconds_a_pass", lambda *a: np.ones(1))
    record = measure_task(problem, TINY, KeptRuns(tmp_path), lambda share, text: None)
    tuning = [s for s in seen if s[1]]
    assert all(held and not every for _, _, held, every in tuning)
    assert {setting.spec.key for setting, *_ in tuning} == {"crf"}
    assert record.chosen == Trial(0.1, 1.0, 90.0) and record.edges == ["lam"]
    for setting, rest, _, _ in seen:
        if not rest and setting.spec.regularised:
            assert {k: setting.params[k] for k in ("rate", "lam")} == {"rate": 0.1, "lam": 1.0}
        elif not rest:
            assert setting.params == {}


def test_held_out_sentences_are_the_end_of_the_training_text(problem):
    assert len(problem.rest) + len(problem.held_out) == len(problem.train) == 300
    assert len(problem.held_out) == 30
    tail = problem.train.rows.labels[-problem.held_out.n_tokens :]
    assert tail.tolist() == problem.held_out.rows.labels.tolist()


def test_a_run_measures_what_its_weights_are(problem):
    setting = Setting(SPECS["perceptron"], {}, 2)
    one = run(setting, problem.train, problem.test, "f1", seed=3)
    again = run(setting, problem.train, problem.test, "f1", seed=3, every=False)
    assert again.scores[:, 0].tolist() == one.scores[:, -1].tolist()
    assert again.counts.tolist() == one.counts.tolist()
    for kept in (LAST, AVERAGED):
        scores = Tagging().scores(one.counts[kept].sum(axis=0))
        assert scores["f1"] == pytest.approx(one.scores[kept, -1])
    # Every mistake of a perceptron moves some weights by 1, so the sum of sizes is bounded.
    most = one.mistakes[-1] * 2 * problem.train.rows.indices.size
    assert 0.0 < one.magnitude[LAST, -1] * problem.weights < most
    assert one.magnitude[AVERAGED, -1] < one.magnitude[LAST, -1]


def test_searches_are_used_and_signed(problem):
    few = problem.train.take(np.arange(80))
    params = {"rate": 0.1, "lam": 0.1}
    exact, beam = (
        run(Setting(SPECS["sapo"], params, 2, search), few, problem.test, "f1", 1)
        for search in ("astar", "beam")
    )
    assert "search:beam(50)" in beam.signature and "n=5" in beam.signature
    # While most weights are zero most outputs tie, so the two lists are alike but not the same.
    assert np.abs(exact.scores - beam.scores).max() < 5.0


def test_strong_regularisation_of_few_sentences_is_not_refused(problem):
    setting = Setting(SPECS["sapo"], {"rate": 0.2, "lam": 5.0}, 1)
    done = run(setting, problem.rest, problem.held_out, "f1", 1)
    assert np.isfinite(done.scores).all()


def word_files(folder: Path, name: str, parts: tuple[str, ...], conllu: bool) -> None:
    (folder / name).mkdir(parents=True)
    words = ["the cat sleeps", "a dog runs", "the dog sleeps", "a cat runs"] * 5
    for part in parts:
        lines = []
        for sentence in words:
            for k, word in enumerate(sentence.split()):
                tag = ("DET", "NOUN", "VERB")[k]
                row = [str(k + 1), word, "_", tag, *["_"] * 6] if conllu else [word, tag]
                lines.append("\t".join(row))
            lines.append("")
        end = "conllu" if conllu else "tsv"
        (folder / name / f"{part}.{end}").write_text("\n".join(lines) + "\n")


def test_corpora_are_found_read_and_missing_ones_named(tmp_path):
    word_files(tmp_path, "ud_english_ewt", ("train", "test", "dev"), conllu=True)
    tasks = tuple(
        replace(t, files={k: v.removesuffix(".gz") for k, v in t.files.items()}) for t in FULL.tasks
    )
    outcome, note = find_problems(tmp_path, replace(FULL, tasks=tasks), quick=False)
    assert [r.task.name for r in outcome] == ["POS (EWT)"]
    assert "chunking" in note and "jnlpba/train.iob2" in note
    record = outcome[0].read()
    assert set(record.train.labels) == {"DET", "NOUN", "VERB"}
    assert record.rest is record.train and len(record.held_out) == 20
    word_files(tmp_path, "genia_pos", ("train", "test"), conllu=False)
    bad = replace(tasks[2], columns={"word": "word", "label": "tag"})
    with pytest.raises(HopefearError, match="no column 'tag'"):
        Reader(bad, tmp_path).read()
    with pytest.raises(HopefearError, match="holds none of the corpora"):
        find_problems(tmp_path / "nowhere", FULL, quick=False)


def test_without_corpora_sentences_are_generated(tmp_path, monkeypatch):
    monkeypatch.delenv("HOPEFEAR_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    outcome, note = find_problems(None, FULL, quick=False)
    assert [r.task.name for r in outcome] == ["generated"] and "--data DIR" in note
    monkeypatch.setenv("HOPEFEAR_DATA", str(tmp_path))
    with pytest.raises(HopefearError, match="holds none"):
        find_problems(None, FULL, quick=False)


def counts(right: np.ndarray) -> np.ndarray:
    """Sentences of 10 tokens with so many right."""
    rows = np.zeros((right.size, 7), np.int64)
    rows[:, 3], rows[:, 4], rows[:, 6] = right, 10, 1
    return rows


def faked(problem: Problem, **curves: tuple[float, ...]) -> Results:
    """All learners alike, but for the last weights of those given: accuracies by pass."""
    results = Results(replace(problem, task=replace(problem.task, metric="accuracy")), TINY)
    for key in SPECS:
        rng = np.random.default_rng(0)
        curve = np.array(curves.get(key.replace("-", "_"), (80.0,) * 8))
        right = rng.binomial(10, curve[-1] / 100.0, 400)
        size = np.arange(1.0, 9.0) if key not in ("sapo", "crf") else np.full(8, 0.5)
        results.runs[key] = [
            Run(
                key,
                np.stack([curve, np.full(8, 80.0)]),
                np.stack([size, size]),
                np.ones(8),
                np.ones(8),
                np.stack([counts(right), counts(rng.binomial(10, 0.8, 400))]),
            )
        ]
        for kept in ("last", "averaged"):
            results.times[f"{key} {kept}"] = np.array([3.0 if key == "crf" else 1.0])
    return results


def words(results: Results) -> dict[str, str]:
    return {v.claim: v.verdict for v in claims.judge([results])}


def test_verdicts_follow_the_numbers(problem):
    rising, falling = tuple(np.linspace(70, 90, 8)), tuple(np.linspace(90, 70, 8))
    flat = (90.0,) * 8
    outcome = words(
        faked(problem, sapo=flat, crf=flat, perceptron=falling, mira=falling, nbest_mira=falling)
    )
    for claim in (
        "SAPO is as good as the CRF, or better",
        "SAPO is better than Perc-Naive",
        "SAPO is better than MIRA-Nbest-Avg",
        "the CRF is better than perceptron and MIRA, naive",
        "SAPO converges",
        "perceptron and MIRA, naive, diverge: scores fall",
        "SAPO's weights settle",
        "weights of perceptron and MIRA grow linearly or faster",
        "SAPO is several times as fast as the CRF",
        "SAPO is almost as fast as perceptron and MIRA",
    ):
        assert outcome[claim] == "agrees", claim
    assert outcome["SAPO is better than the CRF"] == "not shown"
    other = words(faked(problem, sapo=falling, crf=flat, perceptron=rising))
    assert other["SAPO is as good as the CRF, or better"] == "disagrees"
    assert other["SAPO is better than Perc-Naive"] == "disagrees"
    assert other["SAPO converges"] == "disagrees"
    assert other["perceptron and MIRA, naive, diverge: scores fall"] == "disagrees"


def test_curves_are_measured_as_said():
    up_and_down = np.array([[1.0, 5.0, 4.0, 3.0, 2.0, 1.0]])
    assert fall(up_and_down) == pytest.approx(4.0 - 2.0)
    assert swing(up_and_down) == pytest.approx(np.std([3.0, 2.0, 1.0]))
    assert swing(np.ones((3, 8))) == 0.0
    assert exponent(np.arange(1.0, 10.0) ** 2) == pytest.approx(2.0)
    assert late_growth(np.array([1.0, 2.0, 2.0, 2.0])) == 0.0
    rng = np.random.default_rng(1)
    good, bad = (counts(rng.binomial(10, p, 300)) for p in (0.9, 0.8))
    outcome = compare_counts(good, bad, "accuracy", 300)
    assert outcome.significant and 5.0 < outcome.low < outcome.points < outcome.high < 15.0
    assert not compare_counts(good, good, "accuracy", 300).significant


def test_the_plan_is_the_papers():
    assert "sapo" in EXPERIMENTS
    assert [task.name for task in FULL.tasks] == ["chunking", "POS (EWT)", "POS (GENIA)", "Bio-NER"]
    assert set(FULL.lams) >= {0.1, 0.5, 1.0, 2.0, 5.0}
    assert FULL.ns == (1, 2, 5, 10, 20, 50) and len(FULL.seeds) >= 3
    assert (SAPO.kept, CRF.kept, {e.kept for e in NAIVE}) == (LAST, LAST, {LAST})
    assert SPECS["sapo"].fixed["n"] == SPECS["nbest-mira"].fixed["n"] == FULL.n == 5
    assert Entry("x", "sapo", AVERAGED).timing == "sapo averaged"
