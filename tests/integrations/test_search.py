"""Searches: what is tried, what is kept, and that the best can be trained again."""

from __future__ import annotations

import json
import os
import pickle
import random
import signal
import threading
import tomllib
from pathlib import Path

import pytest
import small_trees
from golden import files
from hypothesis import given, settings
from hypothesis import strategies as st

from hopefear.cli import main
from hopefear.core.interrupts import interruptible
from hopefear.data.generators import sparse_linear
from hopefear.errors import HopefearError
from hopefear.integrations.search import Candidate, Plan, Search, folds, study
from hopefear.integrations.search.trials import Measure, measure
from hopefear.recipes.spaces import Range
from hopefear.tasks import recipe
from hopefear.tasks.classify.task import Classification
from hopefear.training.checkpoints import InterruptedTrainingError

optuna = pytest.importorskip("optuna")
# Kernels that are not compiled warn, in threads, where compiled ones do not.
pytestmark = [
    pytest.mark.needs("search"),
    pytest.mark.interpreted,
    pytest.mark.filterwarnings("ignore:overflow"),
]
quick = small_trees.quick
FILES = {
    "classify": ("two.svm", "vrda,adagrad-rda", ()),
    "tag": ("chunks.txt", "sapo,crf-lbfgs:max_iter=4", ("--metric", "accuracy")),
    "rerank": ("lists.jsonl", "maxent,perceptron", ()),
    "parse": ("bank.conllu", "mira", ("--order", 1, "--features", "light", "--hash-bits", 10)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("search")
    files.write(place)
    return place


@pytest.fixture
def run(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for path in folder.iterdir():
        (tmp_path / path.name).symlink_to(path)

    def command(*words, status=0):
        capsys.readouterr()
        assert main([*map(str, words)]) == status
        out, err = capsys.readouterr()
        return json.loads(out) if "--json" in words and out else err

    return command


def words(task, *more):
    suffix, learners, own = FILES[task]
    start = ("search", task, "--train", f"train-{suffix}", "--learner", learners, *own)
    return (*start, "--epochs", 2, "--out", "best.toml", "--quiet", *more)


@pytest.mark.parametrize("task", FILES)
def test_training_with_what_was_written_reproduces_the_score(run, task):
    held = f"dev-{FILES[task][0]}" if task != "parse" else "dev-bank.conllu"
    command = words(task, "--dev", held, "--study", "s.jsonl", "--json")
    result = run(*command, "--trials", 4)
    assert result["trials"] == 4 and len(result["defaults"]) == FILES[task][1].count(",") + 1
    config = tomllib.loads(Path("best.toml").read_text())
    assert config["task"] == task and config["dev"] == held
    trained = run("train", "--config", "best.toml", "--model", "m", "--json", "--quiet")
    assert trained["dev"][result["metric"]] == pytest.approx(result["best"]["quality"], abs=1e-9)
    assert trained["best_epoch"] == result["best"]["epochs"]
    assert trained["nnz"] == result["best"]["nonzeros"]
    again = run(*command, "--trials", 5)  # the journal has four of them
    assert again["trials"] == 5 and again["defaults"] == result["defaults"]


def candidates(seed=3, names=("vrda", "adagrad-rda")):
    data = sparse_linear(80, 20, per_row=(3, 6), true_weights=8, seed=seed).dataset()
    splits, made = folds(data, 2, 1), []
    for name in names:
        space = recipe(name).space()
        usual = {key: recipe(name).parameters()[key] for key in space}
        made.append(Candidate(name, name, Classification(), splits, space, usual, {}))
    return made


def tried(search, trials, **how):
    study = search.open_study()
    search.run(study, trials, **how)
    return search.findings(study)


def points(findings):
    return [(f.learner, f.params, f.quality, f.state) for f in findings]


def test_the_same_seed_gives_the_same_trials_and_another_seed_others():
    one, two, other = (
        points(tried(Search(candidates(), Plan("accuracy", 2, seed=seed)), 12))
        for seed in (1, 1, 2)
    )
    assert one == two and one != other
    assert [learner for learner, *_ in one[:2]] == ["vrda", "adagrad-rda"]


def test_folds_are_scored_by_the_pass_that_is_best_on_all():
    candidate = candidates()[0]
    runs = []
    result = measure(candidate, {}, Plan("accuracy", 3, patience=0), lambda *at: runs.append(at))
    first, second = ([score for fold, _, score in runs if fold == k] for k in (0, 1))
    assert result.curve == [(a + b) / 2 for a, b in zip(first, second, strict=True)]
    assert result.quality == max(result.curve) == result.curve[result.epochs - 1]


def test_a_config_of_folds_has_the_epochs_that_were_best(run):
    options = ("--folds", 3, "--trials", 2, "--patience", 1, "--class-weight", "balanced")
    result = run(*words("classify"), *options, "--json")
    config = tomllib.loads(Path("best.toml").read_text())
    assert config["epochs"] == result["best"]["epochs"] and "dev" not in config
    assert config["class-weight"] == "balanced" and "patience" not in config
    run("train", "--config", "best.toml", "--quiet")


def test_a_config_that_is_not_there_yet_is_where_the_best_goes(run):
    start = list(words("classify", "--folds", 2, "--trials", 1))
    start[start.index("--out")] = "--config"
    run(*start)
    first = Path("best.toml").read_text()
    run(*start)  # what a search wrote, a search writes again
    assert Path("best.toml").read_text() == first
    assert tomllib.loads(first)["task"] == "classify"
    mine = "seed = 7\n"
    Path("best.toml").write_text(mine)  # but not what somebody else did
    run(*start, status=2)
    assert Path("best.toml").read_text() == mine
    run(*start, "--out", "other.toml")
    assert tomllib.loads(Path("other.toml").read_text())["seed"] == 7


@pytest.mark.parametrize("cut", [0, 1, 4])
def test_an_interrupted_search_goes_on_as_if_it_had_not_been(tmp_path, monkeypatch, cut):
    whole = points(tried(Search(candidates(), Plan("accuracy", 2)), 7))
    search, calls = Search(candidates(), Plan("accuracy", 2), journal=str(tmp_path / "j")), []

    def interrupted(*words):
        calls.append(words)
        if len(calls) == cut + 1:
            raise InterruptedTrainingError("interrupted", 2)
        return measure(*words)

    monkeypatch.setattr(study, "measure", interrupted)
    with pytest.raises(InterruptedTrainingError):
        tried(search, 7)
    again = points(tried(search, 7))
    assert again[2:] == whole[2:]  # of an interrupted default the turn comes after the others
    assert sorted(again[:2], key=str) == sorted(whole[:2], key=str)


def test_an_interrupt_leaves_the_best_so_far(run, monkeypatch):
    calls = []

    def interrupted(*words):
        calls.append(words)
        if len(calls) == 4:
            raise InterruptedTrainingError("interrupted", 2)
        return measure(*words)

    monkeypatch.setattr(study, "measure", interrupted)
    options = ("--dev", "dev-two.svm", "--trials", 9)
    told = run(*words("classify"), *options, "--study", "s.jsonl", status=130)
    assert "trials that had ended are in s.jsonl; the same command goes on" in told
    assert "vrda" in Path("best.toml").read_text() or "adagrad" in Path("best.toml").read_text()
    calls[:] = [()] * 3
    run(*words("classify"), *options, "--out", "none.toml", status=130)
    with pytest.raises(FileNotFoundError):
        Path("none.toml").read_text()


def test_a_signal_that_no_training_heeds_ends_the_search(monkeypatch):
    def late(*words):
        result = measure(*words)
        with interruptible():  # as in the last evaluation of a training
            signal.raise_signal(signal.SIGINT)
        return result

    monkeypatch.setattr(study, "measure", late)
    search = Search(candidates(), Plan("accuracy", 2))
    opened = search.open_study()
    with pytest.raises(InterruptedTrainingError):
        search.run(opened, 5)
    assert [f.state for f in search.findings(opened)] == ["complete"]


def scripted(monkeypatch, script):
    """Trials whose scores a function of (learner, number of the trial, pass) makes."""
    numbers = iter(range(1000))

    def fake(candidate, params, plan, see):
        number = next(numbers)
        curve = [script(candidate.learner, number, k) for k in range(1, 5)]
        for k, score in enumerate(curve, 1):
            see(0, k, score)
        return Measure(max(curve), 10 + number, 1.0, 4, curve)

    monkeypatch.setattr(study, "measure", fake)


def test_trials_that_fall_behind_their_own_learner_are_given_up(monkeypatch):
    def script(learner, number, k):
        return (50.0 if learner == "vrda" else 90.0) + k - (number > 12) * 20.0

    scripted(monkeypatch, script)
    findings = tried(Search(candidates(), Plan("accuracy", 4)), 30)
    assert all(f.state == "complete" for f in findings if f.number <= 12)
    pruned = [f for f in findings if f.state == "pruned"]
    assert pruned and all(f.number > 12 and f.epochs == 2 for f in pruned)
    scripted(monkeypatch, script)
    both = Search(candidates(), Plan("accuracy", 4), ("quality", "nonzeros"))
    assert all(f.state == "complete" for f in tried(both, 30))


def test_an_easy_fold_does_not_shield_the_others(monkeypatch):
    numbers = iter(range(100))

    def fake(candidate, params, plan, see):
        late = next(numbers) > 6
        for fold, level in enumerate((99.0, 40.0 if late else 60.0, 99.0)):
            for k in (1, 2, 3):
                see(fold, k, level + k)
        return Measure(80.0, 10, 1.0, 3, [80.0] * 3)

    monkeypatch.setattr(study, "measure", fake)
    findings = tried(Search(candidates(names=["vrda"]), Plan("accuracy", 3)), 10)
    assert [f.state for f in findings] == ["complete"] * 7 + ["pruned"] * 3
    assert {f.epochs for f in findings[7:]} == {5}  # three of the first fold, two of the second


def test_errors_are_counted_and_told_where_nothing_else_is_left(monkeypatch):
    def refuse(*words):
        raise HopefearError("no such thing")

    monkeypatch.setattr(study, "measure", refuse)
    search = Search(candidates(), Plan("accuracy", 2))
    opened = search.open_study()
    search.run(opened, 3)
    findings = search.findings(opened)
    assert [(f.state, f.error) for f in findings] == [("failed", "no such thing")] * 3
    with pytest.raises(HopefearError, match="no trial was finished; the first failed: no such"):
        search.best(opened)


def test_time_is_over_at_the_end_of_a_pass():
    search = Search(candidates(), Plan("accuracy", 2))
    assert tried(search, 5, seconds=-1.0) == []
    assert len(tried(search, 500, seconds=1.0)) < 500


def test_journals_of_other_searches_are_refused(tmp_path):
    journal = str(tmp_path / "j")
    tried(Search(candidates(), Plan("accuracy", 2), journal=journal), 1)
    for other, what in (
        (Search(candidates(seed=4), Plan("accuracy", 2), journal=journal), "data, dev"),
        (Search(candidates(), Plan("f1", 2), journal=journal), "metric"),
        (Search(candidates(names=["vrda"]), Plan("accuracy", 2), journal=journal), "learners"),
        (Search(candidates(), Plan("accuracy", 2), ("seconds",), journal), "objectives"),
    ):
        with pytest.raises(HopefearError, match=f"other {what}; give the same files"):
            tried(other, 2)
    (tmp_path / "text").write_text("once upon a time\n")
    wrong = Search(candidates(), Plan("accuracy", 2), journal=str(tmp_path / "text"))
    with pytest.raises(HopefearError, match="no journal of a search"):
        tried(wrong, 1)


def test_a_last_line_that_was_cut_short_is_named(tmp_path):
    place = tmp_path / "j"
    search = Search(candidates(), Plan("accuracy", 2), journal=str(place))
    tried(search, 3)
    content = place.read_bytes()
    lines = content.count(b"\n")
    for length in (5, 1):
        place.write_bytes(content[:-length])
        with pytest.raises(HopefearError, match=f"no journal of a search .line {lines} does not"):
            tried(search, 4)
        assert place.read_bytes() == content[:-length]
    place.write_bytes(content[: content.rindex(b"\n", 0, -1) + 1])  # without that line
    assert len(tried(search, 4)) == 4 and not (tmp_path / "j.lock").is_symlink()


def test_damaged_journals_are_refused_or_work(tmp_path):
    """Whoever reads the journal: no line of it that is changed ends in an internal error."""
    place = tmp_path / "j"
    search = Search(candidates(), Plan("accuracy", 2), journal=str(place))
    tried(search, 6)
    lines = place.read_bytes().splitlines(keepends=True)
    rng, refused = random.Random(9), 0
    values = (None, [], {}, "x", -1, 10**9, 1.5, True, [1], {"a": 1})
    for _ in range(150):
        damaged, k, how = list(lines), rng.randrange(len(lines)), rng.randrange(5)
        if how == 0:
            del damaged[k]
        elif how == 1:
            damaged[k] = damaged[k][: rng.randrange(1, len(damaged[k]))] + b"\n"
        elif how == 2:
            damaged.insert(rng.randrange(len(lines)), damaged[k])
        elif how == 3:
            line = bytearray(damaged[k])
            line[rng.randrange(len(line) - 1)] = rng.randrange(32, 127)
            damaged[k] = bytes(line)
        else:
            record = json.loads(damaged[k])
            inner, (*path, last) = record, rng.choice(list(places(record)))
            for key in path:
                inner = inner[key]
            inner[last] = rng.choice(values)
            damaged[k] = json.dumps(record).encode() + b"\n"
        place.write_bytes(b"".join(damaged))
        try:
            opened = search.open_study()
            search.run(opened, 7)
            search.best(opened)
        except HopefearError:
            refused += 1
    assert refused > 30


def places(value, path=()):
    """Every place inside a record."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key)
            yield from places(item, (*path, key))


def test_files_that_are_no_journals_stay_as_they_are(tmp_path):
    place = tmp_path / "text"
    good = b'{"op_code":0,"worker_id":"a","study_name":"hopefear","directions":[2]}\n'
    for content in (b"once upon a time", b'{"a": 1}\n', good + b"oh\n" + good):
        place.write_bytes(content)
        search = Search(candidates(), Plan("accuracy", 2), journal=str(place))
        with pytest.raises(HopefearError, match="no journal of a search"):
            tried(search, 1)
        assert place.read_bytes() == content


losses = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12)


@settings(max_examples=20, deadline=None)
@given(losses)
def test_the_front_is_what_nothing_beats(pairs):
    search = Search(candidates(), Plan("error"), ("quality", "nonzeros"))
    opened = search.open_study()
    for a, b in pairs:
        facts = {"quality": a, "nonzeros": b, "seconds": 1, "epochs": 1, "curve": [], "params": {}}
        given_ = {"learner": optuna.distributions.CategoricalDistribution(["vrda"])}
        opened.add_trial(
            optuna.create_trial(
                values=[a, b], params={"learner": "vrda"}, distributions=given_, user_attrs=facts
            )
        )
    front = {f.number for f in search.front(opened)}
    for k, (a, b) in enumerate(pairs):
        beaten = any(c <= a and d <= b and (c, d) != (a, b) for c, d in pairs)
        assert (k in front) == (not beaten)
    assert search.best(opened).quality == min(a for a, _ in pairs)


def test_several_objectives_write_the_front_and_a_page(run):
    options = ("--dev", "dev-two.svm", "--trials", 10, "--objective", "quality,nonzeros")
    result = run(*words("classify"), *options, "--report", "page.html", "--json")
    assert result["files"][-1] == "page.html" and len(result["front"]) >= 1
    for entry in result["front"]:
        config = tomllib.loads(Path(entry["config"]).read_text())
        assert {k: str(v) for k, v in config["param"].items()} == {
            k: str(v) for k, v in entry["params"].items()
        }
    page = Path("page.html").read_text()
    assert "Search for settings" in page and "front" in page and "All trials" in page


def test_trials_go_side_by_side(run):
    options = ("--dev", "dev-two.svm", "--trials", 6, "--jobs", 2, "--json")
    result = run(*words("classify"), *options)
    assert result["trials"] == 6 and len(result["defaults"]) == 2


def test_commands_share_a_journal(tmp_path):
    searches = [Search(candidates(), Plan("accuracy", 2), journal=str(tmp_path / "j"))] * 2
    first, second = (search.open_study() for search in searches)
    searches[0].run(first, 3)
    searches[1].run(second, 6)
    assert points(searches[0].findings(first)) == points(searches[1].findings(second))
    assert len(searches[0].findings(first)) == 6


def test_an_interrupt_ends_trials_side_by_side(monkeypatch):
    told = []

    def heard(finding):
        told.append(finding)
        if len(told) == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    search = Search(candidates(), Plan("accuracy", 2))
    opened = search.open_study()
    with pytest.raises(InterruptedTrainingError, match="trials that had ended count") as caught:
        search.run(opened, 500, n_jobs=2, on_finding=heard)
    assert caught.value.signum == signal.SIGTERM and 3 <= len(told) < 500
    assert "RUNNING" not in [trial.state.name for trial in opened.get_trials()]


class Machines:
    """A cluster with so much room."""

    def __init__(self, places):
        self.places, self.lock, self.running, self.most = places, threading.Lock(), 0, 0

    def room(self):
        return self.places

    def map(self, function, shared, items, watch):
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            for item in items:
                there, theirs, own = pickle.loads(pickle.dumps((function, shared, item)))
                watch()
                yield there(theirs, own)
                watch()
        finally:
            self.running -= 1


def test_a_cluster_with_room_for_one_tries_what_is_tried_here():
    search = Search(candidates(), Plan("accuracy", 2, seed=3), ("quality", "nonzeros"))
    here = tried(search, 9)
    there = tried(search, 9, cluster=Machines(1))
    assert points(here) == points(there)
    assert [f.curve for f in here] == [f.curve for f in there]


def test_machines_try_side_by_side_and_no_more_than_asked_for():
    search, machines = Search(candidates(), Plan("accuracy", 2)), Machines(3)
    told = []
    opened = search.open_study()
    search.run(opened, 7, on_finding=told.append, cluster=machines)
    states = [trial.state.name for trial in opened.get_trials()]
    findings = search.findings(opened)
    assert 1 < machines.most <= 3 and states == ["COMPLETE"] * 7
    assert sorted(told) == findings and len(findings) == 7
    assert sum(f.defaults is not None for f in findings) == 2
    for finding in findings:
        each = next(c for c in search.candidates if c.label == finding.learner)
        alone = measure(each, finding.params, search.plan, lambda *seen: None)
        assert finding.curve == alone.curve


def test_an_error_of_the_cluster_ends_the_search():
    search, machines = Search(candidates(), Plan("accuracy", 2)), Machines(2)
    calls = []

    def broken(*given, **more):
        calls.append(given)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return Machines.map(machines, *given, **more)

    machines.map = broken
    opened = search.open_study()
    with pytest.raises(KeyboardInterrupt):
        search.run(opened, 7, cluster=machines)
    assert "RUNNING" not in [trial.state.name for trial in opened.get_trials()]
    assert len(search.findings(opened)) == 1


def test_a_signal_ends_a_search_on_a_cluster_and_keeps_what_has_ended(tmp_path):
    journal = tmp_path / "journal"
    search = Search(candidates(), Plan("accuracy", 2), journal=str(journal))
    told = []

    def heard(finding):
        told.append(finding)
        if len(told) == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    opened = search.open_study()
    with pytest.raises(InterruptedTrainingError, match="the same command goes on") as caught:
        search.run(opened, 500, on_finding=heard, cluster=Machines(2))
    assert caught.value.signum == signal.SIGTERM
    assert search.findings(opened) == sorted(told) and 3 <= len(told) < 500


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ((), "--dev FILE or by --folds K"),
        (("--folds", 2, "--jobs", 2, "--cluster", "auto"), "both say where trials run"),
        (("--dev", "dev-two.svm", "--folds", 2), "give one of them"),
        (("--folds", 2, "--space", "C=1..2"), "no learner here has such a parameter"),
        (("--folds", 2, "--space", "l1=2..1"), "must be the smaller one"),
        (("--folds", 2, "--space", "l1=2"), "expected KEY=A..B"),
        (("--folds", 2, "--objective", "beauty"), "objectives are quality"),
        (("--folds", 2, "--learner", "pa:C=1"), "nothing is left to try"),
        (("--folds", 999), "cannot be dealt to 999 folds"),
        (("--folds", 2, "--metric", "bleu"), "no score 'bleu'"),
        (("--folds", 2, "--out", "-", "--json"), "would share standard output"),
        (("--folds", 2, "--space", "averaging=1..5"), "averaging is no number; give words"),
        (("--folds", 2, "--space", "sparse_average=0..1"), "sparse_average is no number"),
        (("--folds", 2, "--space", "l1=1..inf"), "both ends must be finite"),
        (("--folds", 2, "--space", "l1=0x..2x"), "l1 has no automatic rate; give numbers"),
        (("--folds", 2, "--learner", "sapo", "--space", "n=0.5..3"), "n takes whole numbers"),
        (("--folds", 2, "--study", "./best.toml"), "--out and --study are the same file"),
        (("--folds", 2, "--report", "best.toml"), "--out and --report are the same file"),
        (("--folds", 2, "--report", "k", "--study", "k"), "--report and --study are the same"),
        (
            ("--folds", 2, "--objective", "quality,nonzeros", "--study", "best-3.toml"),
            "best-3.toml has a name that trials beside --out best.toml get",
        ),
    ],
)
def test_what_cannot_work_is_told_first(folder, monkeypatch, capsys, more, text):
    monkeypatch.chdir(folder)
    assert main([*map(str, words("classify", "--trials", 2, *more))]) in (1, 2)
    assert text in capsys.readouterr().err
    assert not any(Path(name).exists() for name in ("best.toml", "best-3.toml", "k"))


@pytest.mark.parametrize(
    ("learner", "space", "defaults"),
    [
        ("pa", "C=5..9", 0),
        ("pa", "C=0.5..9", 1),
        ("vrda", "rate=0.1..10", 0),
        ("vrda", "rate=0.1x..10x", 1),
        ("vrda", "averaging=last|voted", 0),
    ],
)
def test_only_defaults_are_marked_as_such(run, learner, space, defaults):
    options = ("--folds", 2, "--trials", 3, "--study", "j", "--learner", learner, "--space", space)
    result = run(*words("classify"), *options, "--json")
    assert len(result["defaults"]) == defaults
    firsts = [line for line in Path("j").read_text().splitlines() if '"first"' in line]
    assert len(firsts) == 1  # what is next to the defaults is not tried again and again


def test_spaces_can_be_given(run):
    options = ("--folds", 2, "--trials", 6, "--learner", "vrda", "--space", "rate=0.5x..2x")
    result = run(*words("classify"), *options, "--space", "averaging=last|averaged", "--json")
    params = result["best"]["params"]
    assert params["averaging"] in ("last", "averaged")
    assert 0.5 <= float(params["rate"].removesuffix("x")) <= 2.0
    assert Range(1, 3, whole=True).place(7) == 3
