"""What the command promises for every task, as a user types it, in one process.

Parsers are compiled: interpreted, each command would take them seconds. The rest is interpreted.
"""

from __future__ import annotations

import gzip
import json
from typing import NamedTuple

import numba
import pytest

from hopefear.cli import main
from hopefear.cli.surface import surfaces, task_names
from hopefear.data.generators import candidate_lists, chunks, sparse_linear
from hopefear.data.grammar import synthetic_treebank
from hopefear.data.write_svmlight import write_svmlight
from hopefear.storage import load
from hopefear.tasks import TASKS


class Files(NamedTuple):
    """Names of the files of a task, what is said of them, and what is measured."""

    ending: str
    words: tuple[str, ...]  # what train says of these files
    score: str  # decides who is best
    higher: bool
    titles: tuple[str, ...]  # of scores, in tables
    other: tuple[str, ...]  # an option that models of this task refuse
    rival: str = "arow"  # a learner that is compared
    more: tuple[str, ...] = ()  # options that keep training small
    votes: bool = True


TASK_FILES = {
    "classify": Files(
        "svm", ("100 examples", "2 classes", "updates"), "error", False, ("error", "F1"),
        ("--scheme", "bio"),
    ),
    "tag": Files(
        "txt", ("16 sentences", "BIO spans", "(ner)"), "f1", True, ("F1", "accuracy"),
        ("--text-column", "body"),
    ),
    "rerank": Files(
        "jsonl", ("40 lists", "240 candidates", "named,score", "judged by cost"), "cost", False,
        ("cost", "oracle first"), ("--no-constraints",),
    ),
    "parse": Files(
        "conllu", ("16 sentences", "projective trees of order 1", "heads a word"), "las", True,
        ("LAS", "UAS"), ("--no-constraints",), "mira",
        ("--order", "1", "--features", "light", "--hash-bits", "14"), False,
    ),
}  # fmt: skip


OTHERS = "classify", "parse"  # that are compiled, and one to be told from them


def interpreted(task):
    return task != "parse"


def sentences(path, text):
    words, labels = text.columns["word"], text.columns["label"]
    with open(path, "w") as file:
        for i in range(len(text)):
            for k in range(text.starts[i], text.starts[i + 1]):
                file.write(f"{words[k]} {labels[k]}\n")
            file.write("\n")


def lists(path, some, first, after):
    named = some.sparse
    with open(path, "w") as file:
        for i in range(first, after):
            candidates = [
                {
                    "text": f"text {c}",
                    "score": some.scores[c],
                    "cost": some.costs[c],
                    "features": {
                        named.names[named.ids[e]]: named.values[e]
                        for e in range(named.indptr[c], named.indptr[c + 1])
                    },
                }
                for c in range(some.starts[i], some.starts[i + 1])
            ]
            file.write(json.dumps({"id": f"list {i}", "candidates": candidates}) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("tasks")
    first, rest = sparse_linear(160, 40, per_row=(4, 8), true_weights=20, seed=5).split(100)
    test, dev = rest.split(30)
    some = candidate_lists(80, 6, 30, doubt=3.0, seed=1)
    for name, problem, n, seed, bounds in (
        ("train", first, 16, 1, (0, 40)),
        ("dev", dev, 8, 2, (40, 60)),
        ("test", test, 8, 3, (60, 80)),
    ):
        write_svmlight(place / f"{name}.svm", problem.dataset())
        sentences(place / f"{name}.txt", chunks(n, 60, seed=seed))
        lists(place / f"{name}.jsonl", some, *bounds)
        trees = synthetic_treebank(16 if name == "train" else 6, seed=seed)
        (place / f"{name}.conllu").write_bytes(trees.file.text)
    for task in filter(interpreted, task_names()) if numba.config.DISABLE_JIT else OTHERS:
        words = ["train", task, "--quiet", "--learner", "perceptron", "--epochs", "2", "--train"]
        data, model = place / f"train.{TASK_FILES[task].ending}", place / f"{task}.model"
        assert main([*words, str(data), *TASK_FILES[task].more, "--model", str(model)]) == 0
    return place


@pytest.fixture(
    params=[
        pytest.param(task, marks=[pytest.mark.interpreted] * interpreted(task))
        for task in task_names()
    ]
)
def task(request):
    return request.param


@pytest.fixture
def data(task):
    """The name of a file of the task."""
    return lambda name: f"{name}.{TASK_FILES[task].ending}"


@pytest.fixture
def train(task, data):
    """Words of training, and what is added."""
    start = ("train", task, "--train", data("train"), *TASK_FILES[task].more)
    start = (*start, "--learner", "perceptron")
    return lambda *more: (*start, *more)


@pytest.mark.interpreted
def test_every_task_has_files_here_and_a_surface():
    assert set(TASK_FILES) == {surface.name for surface in surfaces()} == set(task_names())


def test_train_says_what_it_made(run, train, data, task):
    status, out, err = run(*train("--dev", data("dev"), "--epochs", 2, "--model", "a.model"))
    assert (status, out) == (0, "")
    for word in ("epoch 1:", "dev ", "training error", "non-zeros", "read in", "a.model",
                 "signature", "rule:", *TASK_FILES[task].words):  # fmt: skip
        assert word in err, word
    assert all(f"dev {title}" in err for title in TASK_FILES[task].titles)
    assert "Traceback" not in err


def test_json_is_one_object_and_early_stopping_keeps_the_best(run, train, data):
    argv = train("--dev", data("dev"), "--epochs", 30, "--patience", 2, "--model", "early.model")
    status, out, err = run(*argv, "--json", "--quiet")
    assert (status, err) == (0, "")
    trained = json.loads(out)
    assert trained["epochs"] < 30 and trained["best_epoch"] == trained["epochs"] - 2
    header, _ = load("early.model", "model")
    history = header["about"]["training"]["history"]
    assert trained["dev"] == history[trained["best_epoch"] - 1]["dev"]
    _, out, _ = run("evaluate", "--model", "early.model", "--data", data("dev"), "--json")
    scores = json.loads(out)
    assert scores["nnz"] == trained["nnz"] and scores["skipped"] == 0
    assert scores["model_signature"] == trained["signature"] == header["signature"]
    same = [name for name in ("accuracy", "f1", "cost", "las") if name in trained["dev"]]
    for name in same:
        assert scores[name] == pytest.approx(trained["dev"][name])
    assert same


def test_same_command_same_bytes_whatever_is_watched(run, train, folder, task):
    argv = train("--epochs", 2)
    run(*argv, "--model", "one.model")
    status, _, err = run(*argv, "--model", "two.model", "--run", f"runs/{task}", "--checkpoint",
                         "state")  # fmt: skip
    assert status == 0, err
    assert (folder / "one.model").read_bytes() == (folder / "two.model").read_bytes()
    assert not list((folder / "state").glob("checkpoint.*")), "left behind after success"
    settings = json.loads((folder / f"runs/{task}/run.json").read_text())
    assert settings["task"] == task and settings["signature"] and settings["epochs"] == 2
    events = (folder / f"runs/{task}/events.jsonl").read_text().splitlines()
    samples = [json.loads(line)["samples"] for line in events]
    assert samples == sorted(samples) and samples[-1] == 2 * settings["data"]["examples"]
    assert run("report", f"runs/{task}", "--out", "runs.html")[0] == 0
    assert "perceptron" in (folder / "runs.html").read_text()


def test_a_default_learner_and_parts_reach_the_model(run, task, data):
    more = TASK_FILES[task].more
    train = ("train", task, "--train", data("train"), *more, "--epochs", 1, "--json", "--quiet")
    _, out, _ = run(*train, "--model", "d.model")
    assert json.loads(out)["learner"] == TASKS[task].learner
    _, out, _ = run(*train, "--learner", "perceptron", "-p", "averaging=last", "--model", "p.model")
    assert "averaging:last" in json.loads(out)["signature"]


def test_predictions_do_not_depend_on_how_a_file_comes(run, folder, task, data):
    argv = ("predict", "--model", f"{task}.model", "--input")
    status, out, err = run(*argv, data("test"), "--quiet")
    assert (status, err) == (0, "") and out
    content = (folder / data("test")).read_bytes()
    (folder / "packed.gz").write_bytes(gzip.compress(content))
    form = ("--format", TASKS[task].formats[0])
    for name, stdin in (("packed.gz", b""), ("-", content)):
        assert run(*argv, name, *form, stdin=stdin)[1] == out
    run(*argv, data("test"), "--output", "out.txt")
    assert (folder / "out.txt").read_text() == out
    assert run(*argv, data("test"), "--nbest", 2, "--proba")[0] == 0


def test_a_voted_model_is_described_and_used(run, task, data):
    argv = ("train", task, "--train", data("train"), "--learner", "vrda", "-p", "averaging=voted")
    if run(*argv, "--epochs", 1, "--model", "v.model")[0]:
        pytest.skip(f"no votes for the task {task}")
    status, _, err = run("inspect", "--model", "v.model")
    assert status == 0 and "no single weight" in err and "averaging=averaged" in err
    assert run("evaluate", "--model", "v.model", "--data", data("test"))[0] == 0


def test_inspect_says_where_a_model_came_from(run, task, data):
    status, out, err = run("inspect", "--model", f"{task}.model", "--top", 2)
    assert (status, out) == (0, "")
    for word in (f"{task}.model", "bytes", "non-zeros", "perceptron", data("train"), "signature"):
        assert word in err, word
    status, out, err = run("inspect", "--model", f"{task}.model", "--json")
    facts = json.loads(out)
    assert (status, err) == (0, "") and facts["task"] == task and facts["about"]["data"]


def test_compare_tables_draws_and_tests_against_the_best(run, folder, task, data):
    rival = TASK_FILES[task].rival
    argv = ("compare", task, "--train", data("train"), "--test", data("test"), "--epochs", 2)
    argv = (*argv, *TASK_FILES[task].more, "--report", "page.html")
    argv = (*argv, "--learners", f"perceptron,perceptron:rate=0.5,{rival}")
    for more, held in (((), "Test"), (("--dev", data("dev")), "Dev")):
        status, out, err = run(*argv, *more, "--json")
        assert status == 0, err
        for word in ("learner", "non-zeros kept", "s/pass", "tested on", "best"):
            assert word in err, word
        learners = json.loads(out)["learners"]
        assert [one["learner"] for one in learners] == ["perceptron", "perceptron:rate=0.5", rival]
        score, higher = TASK_FILES[task].score, TASK_FILES[task].higher
        best = (max if higher else min)(learners, key=lambda one: one[score])
        assert best["p_value"] is None and best["against_best"] is None
        for one in learners:
            assert one["nnz"] > 0 and one["seconds_per_pass"] >= 0
            if one is not best:
                test = one["against_best"]
                assert 0.0 < one["p_value"] <= 1.0
                assert test["difference"] == pytest.approx(one[score] - best[score])
                assert test["low"] <= test["difference"] <= test["high"]
        page = (folder / "page.html").read_text()
        # Three curves along three axes, and scores against sparsity and time.
        assert page.count("<svg") == 11 and "rate=0.5" in page and "randomisation" in page
        assert f"{held} {TASK_FILES[task].titles[0]} after each pass" in page


def test_compare_needs_no_page_and_draws_along_the_axis_asked_for(run, folder, task, data):
    argv = ("compare", task, "--train", data("train"), "--test", data("test"))
    argv = (*argv, *TASK_FILES[task].more, "--learners", TASK_FILES[task].rival)
    before = set(folder.iterdir())
    status, out, err = run(*argv, "--dev", data("dev"), "--epochs", 1)
    assert (status, out) == (0, "") and "s/pass" in err and "wrote" not in err
    assert set(folder.iterdir()) == before
    assert run(*argv, "--x", "seconds")[0] == 2
    status, _, err = run(*argv, "--epochs", 1, "--report", "x.html", "--x", "seconds", "--quiet")
    assert (status, err) == (0, "") and "seconds of learning" in (folder / "x.html").read_text()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--learner", "perceptorn"), "did you mean 'perceptron'"),
        (("--learner", "perceptron", "-p", "rat=1"), "did you mean 'rate'"),
        (("--learner", "perceptron", "-p", "rate=x"), "a number"),
        (("--learner", "perceptron", "-p", "averaging=mean"), "averaging"),
    ],
)
def test_wrong_learners_are_refused_before_anything_is_read(run, folder, task, more, told):
    before = set(folder.iterdir())
    argv = ("train", task, "--train", "absent", "--model", "x.model", "--run", "run", *more)
    status, out, err = run(*argv)
    assert (status, out, err.count("\n")) == (1, "", 1) and told in err
    learner, *pairs = [word for word in more if word[0] != "-"]
    status, out, err = run("compare", task, "--train", "absent", "--test", "absent", "--report",
                           "x.html", "--learners", ":".join([learner, *pairs]))  # fmt: skip
    assert (status, out, err.count("\n")) == (1, "", 1) and told in err
    assert set(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--patience", 2), "held-out data: give --dev FILE"),
        (("--resume",), "--resume needs --checkpoint DIR"),
        (("--train", "-", "--dev", "-"), "--train and --dev cannot both be standard input"),
        (("--model", "-", "--json"), "would share standard output"),
        (("--epochs", 0), "at least 1"),
        (("-p", "rate"), "KEY=VALUE"),
    ],
)
def test_wrong_usage_is_status_two(run, train, more, told):
    status, out, err = run(*train("--model", "x.model", *more))
    assert (status, out) == (2, "") and told in err


def test_outputs_that_would_destroy_an_input_are_refused(run, folder, train, task, data):
    before = (folder / data("train")).read_bytes()
    status, _, err = run(*train("--model", f"./{data('train')}"))
    assert status == 1 and "it is also an input" in err
    argv = ("compare", task, "--train", data("train"), "--test", data("test"), "--learners")
    status, _, err = run(*argv, TASK_FILES[task].rival, "--report", data("test"))
    assert status == 1 and "it is also an input" in err
    assert (folder / data("train")).read_bytes() == before


def test_checkpoints_of_an_earlier_run_are_not_overwritten(run, folder, train, task):
    place = folder / f"old {task}"
    place.mkdir()
    (place / "checkpoint.0").write_bytes(b"old")
    status, _, err = run(*train("--model", "x.model", "--checkpoint", place))
    assert status == 1 and "give --resume to go on with it" in err


def test_options_of_other_tasks_are_refused(run, task):
    option, *value = TASK_FILES[task].other
    status, out, err = run("predict", "--model", f"{task}.model", "--input", "x", option, *value)
    assert (status, out) == (1, "")
    assert f"{option} is for the task" in err and f"a model of the task {task}" in err
    if task not in ("tag", "parse"):
        status, _, err = run("evaluate", "--model", f"{task}.model", "--data", "x", "--proba")
        assert status == 1 and "--proba is for the task tag" in err
    other = next(entry.formats[0] for name, entry in TASKS.items() if name not in (task, "tune"))
    status, _, err = run("predict", "--model", f"{task}.model", "--input", "x", "--format", other)
    assert status == 1 and ", ".join(TASKS[task].formats) in err


@pytest.mark.parametrize("verb", ["train", "compare"])
def test_help_of_a_task_teaches(run, verb, task):
    status, out, _ = run(verb, task, "--help")
    assert status == 0 and out.count(f"  hopefear {verb} {task}") >= 2
    others = {"classify": "--ngrams", "tag": "--search", "rerank": "--metric-option"}
    others["parse"] = "--jackknife"
    assert [name for name, option in others.items() if option in out] == [task]
    assert verb == "compare" or f"(default: {TASKS[task].learner})" in " ".join(out.split())


def test_explanations_have_one_form_and_add_up(run, task, data):
    argv = ("predict", "--model", f"{task}.model", "--input", data("test"), "--explain")
    status, out, err = run(*argv, "--json", "--top", 10_000)
    assert status == 0, err
    reasons = [json.loads(line) for line in out.splitlines()]
    assert len(reasons) >= 12
    for facts in reasons:
        if task == "parse" and "note" in facts:  # a word with one head that is looked at
            continue
        assert list(facts)[-5:] == ["label", "runner_up", "gap", "features", "more"]
        total = sum(feature["amount"] for feature in facts["features"])
        assert total == pytest.approx(facts["gap"], abs=1e-3) and facts["gap"] > -1e-3
        assert facts["label"] != facts["runner_up"] and facts["more"] == 0
    status, out, _ = run(*argv, "--top", 1)
    assert (
        status == 0
        and out.count(", not ") == sum("note" not in facts for facts in reasons)
        and "more; --top N" in out
    )
    assert run(*argv, "--proba")[0] == run(*argv[:-1], "--json")[0] == 2
    if not TASK_FILES[task].votes:
        return
    status, _, err = run("train", task, "--train", data("train"), "--learner", "perceptron",
                         "-p", "averaging=voted", "--model", "e.model")  # fmt: skip
    assert status == 0, err
    status, _, err = run("predict", "--model", "e.model", *argv[3:])
    assert status == 1 and "a voted model has no single weight" in err


def test_evaluate_sets_models_side_by_side(run, folder, task, data):
    files, other = TASK_FILES[task], f"{task}-other.model"
    status, _, err = run("train", task, "--train", data("dev"), "--learner", files.rival,
                         "--epochs", 1, *files.more, "--model", other)  # fmt: skip
    assert status == 0, err
    models, last = (f"{task}.model", other), ("--data", data("test"), "--json", "--quiet")
    alone = [json.loads(run("evaluate", "--model", model, *last)[1]) for model in models]
    status, out, err = run("evaluate", "--model", *models, *last, "--report", "both.html")
    assert status == 0, err
    result, page = json.loads(out), (folder / "both.html").read_text()
    score, both = result["score"], result["models"]
    assert [one["name"] for one in both] == [task, f"{task}-other"]
    assert [one[score] for one in both] == [one[score] for one in alone]
    best = [one for one in both if one["p_value"] is None]
    assert len(best) == 1 and best[0]["against_best"] is None
    [rest] = [one for one in both if one is not best[0]]
    assert rest["against_best"]["difference"] == pytest.approx(rest[score] - best[0][score])
    assert 0.0 < rest["p_value"] <= 1.0
    for name in ("Scores", "Where they differ", "SHA-256", "hat came close", "difference to"):
        assert name in page
    assert page.count("<script") == 1 and result["differences"]
    for difference in result["differences"]:
        assert set(difference["wrong"]) <= set(difference["answers"]) == {task, f"{task}-other"}
    status, _, err = run("evaluate", "--model", *models, "--data", data("test"))
    assert status == 0 and "difference to the best" in err and f"{task}-other" in err


def test_evaluate_finds_a_model_no_better_than_itself(run, task, data):
    argv = ("evaluate", "--model", f"{task}.model", f"{task}.model", "--data", data("test"))
    status, out, err = run(*argv, "--json", "--report", "same.html")
    both = json.loads(out)["models"]
    assert [one["name"] for one in both] == [f"{task} #1", f"{task} #2"]
    assert both[1]["against_best"] == {"difference": 0.0, "low": 0.0, "high": 0.0}
    assert both[1]["p_value"] == 1.0
    assert run(*argv[:-1], "-")[0] == 2
    another = next(name for name in task_names() if name != task)
    status, _, err = run("evaluate", "--model", f"{task}.model", f"{another}.model", *argv[-2:])
    assert status == 1 and f"{another}.model one of {another}; give models of one task" in err


def test_evaluate_writes_a_page_and_tells_the_confusion(run, folder, task, data):
    argv = ("evaluate", "--model", f"{task}.model", "--data", data("test"))
    status, out, err = run(*argv, "--report", "e.html", "--json", "--quiet")
    assert (status, err) == (0, "")
    scores, page = json.loads(out), (folder / "e.html").read_text()
    assert scores["costliest"] and "have errors; " in page and "95 %" in page
    assert f"{task}.model evaluated" in page and page.count("<script") == 1
    assert "SHA-256" in page and "Why, and what came close" in page
    status, out, err = run(*argv, "--report", "e.html")
    assert (status, out) == (0, "") and "wrote e.html" in err
    assert run(*argv, "--report", data("test"))[0] == 1
    if task in ("rerank", "parse"):
        return
    matrix, pairs = scores["confusion_matrix"], scores["confusion"]
    where = {name: k for k, name in enumerate(matrix["labels"])}
    for pair in pairs:
        assert matrix["counts"][where[pair["gold"]]][where[pair["predicted"]]] == pair["count"]
    total = sum(map(sum, matrix["counts"]))
    assert total == scores["examples" if task == "classify" else "tokens"]
    assert "Confusion" in page and "confusion: rows are right" in err
    if task == "classify":
        assert "Calibration" in page and sum(scores["calibration"]["classes"]["counts"]) == total
