"""``evaluate``, ``predict`` and ``inspect`` with weights, as a user types them."""

from __future__ import annotations

import json

import pytest
import tuning_files

from hopefear.data.moses.reader import read_moses
from hopefear.translation.scoring import choice
from hopefear.translation.weights import Weights

pytestmark = pytest.mark.interpreted

LAYOUT = (("LM0", 1), ("TM0", 2))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("weights")
    tuning_files.write(place, "test", 0, 30)
    Weights(LAYOUT, [0.1, 0.5, 1.0], {"wt_and": 0.25}).write(place / "good.json")
    Weights(LAYOUT, [1.0, 0.2, 0.1]).write(place / "bad.ini")
    Weights(LAYOUT, [0.1, 0.5, 1.0], {}, {"ssea ||| sea": 0.5}).write(place / "pairs.txt")
    return place


LISTS = ("--nbest", "test.nbest", "--refs", "test.ref")


def test_evaluate_beside_others(run):
    argv = ("evaluate", "--weights", "good.json", *LISTS)
    status, out, err = run(*argv, "--against", "bad.ini")
    assert (status, out) == (0, "")
    for word in ("30 lists", "model", "1-best", "oracle", "all lists together", "good.json - bad",
                 "BLEU|nrefs:1"):  # fmt: skip
        assert word in err, word
    found = json.loads(run(*argv, "--against", "bad.ini", "--json", "--quiet")[1])
    assert found["worst_bleu"] < found["baseline_bleu"] < found["bleu"]
    assert found["bleu"] <= found["corpus_oracle_bleu"]
    assert found["against"]["first"] == pytest.approx(found["bleu"])
    assert found["against"]["difference"] > 0 and 0 < found["against"]["p_bootstrap"] < 0.05
    assert found["nnz"] == 4


@pytest.mark.parametrize("metric", ["chrf", "ter"])
def test_evaluate_other_metrics_as_sacrebleu_does(run, folder, metric):
    import sacrebleu

    out = run("evaluate", "--weights", "good.json", *LISTS, "--metric", metric, "--json")[1]
    best = run("predict", "--weights", "good.json", "--input", "test.nbest")[1].splitlines()
    references = (folder / "test.ref").read_text().splitlines()
    official = getattr(sacrebleu, f"corpus_{metric}")(best, [references])
    assert json.loads(out)[metric] == pytest.approx(official.score, abs=1e-6)


def test_predict_writes_the_best_of_each_list(run, folder):
    lists = read_moses(folder / "test.nbest", texts=True)
    best = lists.starts[:-1] + choice(lists, Weights.read(folder / "good.json"))
    status, out, _ = run("predict", "--weights", "good.json", "--input", "test.nbest")
    assert status == 0
    assert out.splitlines() == [lists.texts[int(c)] for c in best]
    data = (folder / "test.nbest").read_bytes()
    assert run("predict", "--weights", "good.json", "--input", "-", stdin=data)[1] == out
    merged = ("predict", "--weights", "good.json", "--input", "test.nbest", "test.nbest")
    assert run(*merged, "--output", "best.txt", "--quiet") == (0, "", "")
    assert (folder / "best.txt").read_text() == out


def test_reranked_lists_keep_their_phrase_pairs(run, folder):
    argv = ("predict", "--weights", "pairs.txt", "--source", "test.src", "--nbest", 4)
    given = (folder / "test.nbest").read_bytes()
    for place, stdin in (("test.nbest", b""), ("-", given)):
        assert run(*argv, "--input", place, "--output", "four.nbest", stdin=stdin)[0] == 0
        before = {
            line.split(" ||| ")[1]: line.split(" ||| ")[4:] for line in lines_of(folder, "test")
        }
        four = lines_of(folder, "four")
        assert len(four) == 30 * 4
        assert all(line.split(" ||| ")[4:] == before[line.split(" ||| ")[1]] for line in four)
    tune = ("tune", "--nbest", "four.nbest", "--refs", "test.ref", "--source", "test.src")
    more = ("--features", "dense,phrases", "--learner", "perceptron", "--epochs", 2, "--quiet")
    assert run(*tune, *more, "--weights", "again.json")[0] == 0
    assert Weights.read(folder / "again.json").phrases


def test_lines_without_phrase_pairs_get_none(run, folder):
    bare = "".join(line.rsplit(" ||| ", 1)[0] + end for line, end in
                   zip(lines_of(folder, "test"), ["\n", " ||| \n"] * 150, strict=True))  # fmt: skip
    (folder / "bare.nbest").write_text(bare)
    argv = ("predict", "--weights", "good.json", "--nbest", 10, "--input", "bare.nbest")
    assert {line.count("|||") for line in run(*argv)[1].splitlines()} == {3}


def lines_of(folder, name):
    return (folder / f"{name}.nbest").read_text().splitlines()


def test_predict_writes_lists_that_can_be_read_again(run, folder):
    argv = ("predict", "--weights", "good.json", "--nbest", 3, "--output", "three.nbest")
    assert run(*argv, "--input", "test.nbest", "--quiet")[0] == 0
    whole, three = (read_moses(folder / f"{name}.nbest", texts=True) for name in ("test", "three"))
    assert three.layout == whole.layout and three.n_candidates == 90
    weights = Weights.read(folder / "good.json")
    assert choice(three, weights).tolist() == [0] * 30
    assert (three.scores[three.starts[:-1]] >= three.scores[three.starts[:-1] + 1]).all()
    c = int(choice(whole, weights)[0])
    assert three.dense[0].tolist() == whole.dense[c].tolist()
    names = [
        {e.names[int(j)] for j in e.ids[e.indptr[k] : e.indptr[k + 1]]}
        for e, k in ((three.sparse, 0), (whole.sparse, c))
    ]
    assert names[0] == names[1]


def test_weights_of_phrase_pairs_need_the_source(run):
    argv = ("predict", "--weights", "pairs.txt", "--input", "test.nbest")
    status, out, err = run(*argv)
    assert (status, out) == (1, "") and "--source" in err
    assert run(*argv, "--source", "test.src")[0] == 0
    argv = ("evaluate", "--weights", "pairs.txt", *LISTS)
    assert run(*argv)[0] == 1
    assert run(*argv, "--source", "test.src")[0] == 0


def test_inspect(run):
    status, out, err = run("inspect", "--weights", "good.json", "--top", 5)
    assert (status, out) == (0, "") and "TM0.1" in err and "wt_and" in err
    found = json.loads(run("inspect", "--weights", "pairs.txt", "--json")[1])
    assert found["dense"] == {"LM0": 0.1, "TM0.0": 0.5, "TM0.1": 1.0}
    assert found["phrases"] == {"count": 1, "mean_abs": 0.5, "top": {"ssea ||| sea": 0.5}}


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["evaluate", *LISTS], "--model PATH or --weights FILE, one is needed"),
        (["evaluate", "--weights", "a", "--model", "b"], "not both"),
        (["evaluate", "--weights", "a", "--refs", "b"], "--weights needs --nbest"),
        (["evaluate", "--weights", "a", "--nbest", "b"], "--weights needs --refs"),
        (["evaluate", "--weights", "a", *LISTS, "--data", "b"], "--data belongs to --model"),
        (["evaluate", "--weights", "a", *LISTS, "--proba"], "--proba belongs to --model"),
        (["evaluate", "--model", "a"], "--model needs --data"),
        (["evaluate", "--model", "a", "--data", "b", "--nbest", "c"], "--nbest belongs to"),
        (["evaluate", "--weights", "a", "--nbest", "b"], "--weights needs --refs FILE"),
        (
            ["evaluate", "--weights", "-", "--nbest", "-", "--refs", "a"],
            "--weights and --nbest cannot both be standard input",
        ),
        (["evaluate", "--weights", "a", *LISTS, "--metric", "ter", "--smoothing", "exp"], "BLEU"),
        (["predict", "--input", "a"], "one is needed"),
        (["predict", "--weights", "a"], "--weights needs --input"),
        (["predict", "--weights", "a", "--input", "b", "--proba"], "--proba belongs to --model"),
        (["predict", "--weights", "a", "--input", "b", "--format", "json"], "--format belongs"),
        (["predict", "--model", "a", "--input", "b", "c"], "one --input"),
        (["predict", "--model", "a", "--input", "b", "--source", "c"], "--source belongs"),
        (["inspect"], "one is needed"),
        (["inspect", "--weights", "a", "--card", "b"], "--card belongs to --model"),
    ],
)
def test_wrong_usage_is_status_two(run, argv, told):
    status, out, err = run(*argv)
    assert (status, out) == (2, "") and told in err.splitlines()[-1]


def test_errors_are_one_line_and_status_one(run, folder):
    (folder / "broken.txt").write_text("LM0= x\n")
    (folder / "other.txt").write_text("LM0= 1\nTM0= 1 2 3\n")
    for weights, told in (("broken.txt", "broken.txt:1: "), ("gone", "gone"), ("other.txt", "TM0")):
        for argv in (("evaluate", *LISTS), ("predict", "--input", "test.nbest")):
            status, out, err = run(*argv, "--weights", weights)
            assert (status, out) == (1, "") and told in err.splitlines()[-1], err
    status, _, err = run("predict", "--weights", "good.json", "--input", "test.nbest",
                         "--output", "good.json")  # fmt: skip
    assert status == 1 and "also an input" in err


def test_a_reranker_of_moses_lists_asks_for_references(run, folder):
    status, _, err = run("train", "rerank", "--train", "test.nbest", "--model", "m")
    assert status == 1 and "test.nbest: expected references" in err and "--refs FILE" in err


def test_weights_that_no_list_has_are_noted(run, folder):
    Weights(LAYOUT, [0.1, 0.5, 1.0], {"no_such": 1.0}, {"no ||| such": 1.0}).write(
        folder / "other.json"
    )
    note = "of the 1 {} of other.json none is in these lists"
    for argv in (
        ("evaluate", "--weights", "good.json", "--against", "other.json", *LISTS),
        ("predict", "--weights", "other.json", "--input", "test.nbest", "--output", "o"),
    ):
        status, _, err = run(*argv, "--source", "test.src")
        assert status == 0, err
        assert note.format("sparse features") in err and note.format("phrase pairs") in err
        assert "good.json none" not in err
    _, _, err = run("predict", "--weights", "good.json", "--input", "test.nbest", "--output", "o")
    assert "note:" not in err
