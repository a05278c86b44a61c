"""Structured SVMs and Rampion in batch, as a user types them: every task, one line when refused."""

from __future__ import annotations

import itertools
import json

import pytest
import tuning_files
from small_trees import quick, written_treebank  # noqa: F401 - a fixture

from hopefear.data.generators import candidate_lists

pytestmark = pytest.mark.interpreted

LEARNERS = ("ssvm-cp", "ssvm-bcfw", "rampion-cccp")
TAGGED = "the D\ncat N\nsleeps V\n\na D\ndog N\nsees V\nthe D\ncat N\n\ncats N\nsleep V\n\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("margins")
    (place / "tag.txt").write_text(4 * TAGGED)
    rows = (f"+1 1:{k % 3} 2:1 5:0.5\n-1 3:{1 + k % 2} 2:0.5\n" for k in range(8))
    (place / "classify.svm").write_text("".join(rows))
    lists = candidate_lists(20, 4, 12, seed=1)
    named, starts = lists.sparse, lists.starts.tolist()
    with open(place / "rerank.jsonl", "w") as file:
        for i, (begin, end) in enumerate(itertools.pairwise(starts)):
            candidates = [
                {
                    "score": lists.scores[c],
                    "cost": lists.costs[c],
                    "features": {
                        named.names[named.ids[e]]: named.values[e]
                        for e in range(named.indptr[c], named.indptr[c + 1])
                    },
                }
                for c in range(begin, end)
            ]
            file.write(json.dumps({"id": i, "candidates": candidates}) + "\n")
    (place / "parse.conllu").write_bytes(written_treebank(4).file.text)
    tuning_files.write(place, "dev", 0, 12, candidates=5)
    return place


FILES = {"tag": "tag.txt", "classify": "classify.svm", "rerank": "rerank.jsonl"}


@pytest.mark.parametrize("task", FILES)
@pytest.mark.parametrize("learner", [*LEARNERS, "m3n"])
def test_train_and_predict(run, folder, task, learner):
    if learner == "m3n" and task != "tag":
        status, _, err = run("train", task, "--train", FILES[task], "--learner", learner,
                             "--model", "no.model")  # fmt: skip
        assert status != 0
        assert "m3n" in err
        return
    status, out, err = run(
        *("train", task, "--train", FILES[task], "--learner", learner, "-p", "max_iter=4"),
        *("-p", "gap=0.001", "--model", "m.model", "--run", f"{task}-{learner}", "--json"),
    )
    assert status == 0, err
    answer = json.loads(out)
    events = list(
        map(json.loads, (folder / f"{task}-{learner}/events.jsonl").read_text().splitlines())
    )
    if learner != "rampion-cccp":
        assert answer["gap"] == pytest.approx(1 - answer["dual"] / answer["objective"])
        assert [event["gap"] for event in events][-1] == answer["gap"]
    else:
        assert not {"gap", "dual"} & set(answer)
    values = [event["objective"] for event in events]
    assert values[-1] == answer["objective"]
    assert values == sorted(values, reverse=True)
    assert "max_iter=4" in answer["signature"]
    status, out, err = run("predict", "--model", "m.model", "--input", FILES[task])
    assert status == 0, err
    assert out
    status, _, err = run("report", f"{task}-{learner}", "--out", "report.html")
    assert status == 0, err
    page = (folder / "report.html").read_text()
    assert "What is minimised" in page
    assert ("Duality gap" in page) == (learner != "rampion-cccp")


@pytest.mark.parametrize("learner", LEARNERS)
def test_parse(run, learner):
    status, out, err = run(
        *("train", "parse", "--train", "parse.conllu", "--learner", learner, "-p", "max_iter=2"),
        *("--features", "light", "--hash-bits", 12, "--order", 1, "--jobs", 1),
        *("--model", "p.model", "--json"),
    )
    assert status == 0, err
    assert json.loads(out)["learner"] == learner
    status, out, err = run("predict", "--model", "p.model", "--input", "parse.conllu")
    assert status == 0, err
    assert out.count("\n\n") == 4


@pytest.mark.parametrize("learner", LEARNERS)
def test_tune(run, folder, learner):
    status, out, err = run(
        *("tune", "--nbest", "dev.nbest", "--refs", "dev.ref", "--learner", learner),
        *("-p", "max_iter=4", "--weights", "w.txt", "--json"),
    )
    assert status == 0, err
    answer = json.loads(out)
    assert answer["signature"].startswith(
        "loss:ramp" if learner == "rampion-cccp" else "loss:structured-hinge"
    )
    assert (folder / "w.txt").read_text()


def test_compare(run, folder):
    status, out, err = run(
        *("compare", "rerank", "--train", "rerank.jsonl", "--test", "rerank.jsonl"),
        *("--learners", "ssvm,ssvm-cp:slack=n:max_iter=3,rampion-cccp:max_iter=2", "--json"),
    )
    assert status == 0, err
    assert "ssvm-cp" in out


REFUSED = [
    (("-p", "slack=two"), "slack must be one of one, n"),
    (("-p", "l2=0"), "l2 must be finite and above 0"),
    (("-p", "gap=-1"), "gap must be finite and not negative"),
    (("-p", "loss=log"), "use structured-hinge or hinge"),
    (("-p", "rule=sgd"), "ssvm-cp has no parameter 'rule'"),
    (("--tied",), "use tied=False"),
]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_bad_values_are_refused_in_one_line(run, words, message):
    status, out, err = run(
        *("train", "rerank", "--train", "rerank.jsonl", "--learner", "ssvm-cp", *words),
        *("--model", "no.model"),
    )
    assert status != 0
    assert out == ""
    assert message in err
    assert len([line for line in err.splitlines() if message in line]) == 1
    assert "Traceback" not in err


def test_seeds_of_what_draws_nothing_are_refused(run):
    status, _, err = run(
        *("tune", "--nbest", "dev.nbest", "--refs", "dev.ref", "--learner", "ssvm-cp"),
        *("--seeds", "3", "--weights", "w.txt"),
    )
    assert status != 0
    assert "draws nothing at random" in err


def test_a_batch_learner_is_no_classifier_of_pro(run):
    status, _, err = run(
        *("tune", "--nbest", "dev.nbest", "--refs", "dev.ref", "--learner", "pro"),
        *("-p", "classifier=ssvm-cp", "--weights", "w.txt"),
    )
    assert status != 0
    assert "pro has no classifier 'ssvm-cp'" in err
