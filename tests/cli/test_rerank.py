"""What only rerankers do, as a user types it, in one process."""

from __future__ import annotations

import gzip
import itertools
import json
import lzma

import pytest
from places import DATA

from hopefear.cli import main
from hopefear.cli.rerank import METRICS
from hopefear.data.generators import candidate_lists
from hopefear.metrics.lists import LIST_METRICS
from hopefear.tasks.rerank.model import RerankModel
from hopefear.tasks.rerank.prepare import TREE_COUNT, TREE_FEATURES
from hopefear.tasks.rerank.task import DEFAULT_LEARNER, EPOCHS

pytestmark = pytest.mark.interpreted

REFERENCES = ["the cat sat on the mat", "a dog sleeps here now", "birds sing in tall trees"]
# The generator likes what is wrong.
CHANGES = [(" x y z", 2.0), (" too", 1.0), (" all day long", 0.5), ("", 0.0)]
GOLD = "(S1 (S (NP (DT the) (NN cat)) (VP (VBD sat) (PP (IN on) (NP (NN mats)))) (. .)))"
FLAT = "(S1 (S (NP (DT the) (NN cat)) (VP (VBD sat) (IN on) (NP (NN mats))) (. .)))"
WRONG = "(S1 (NP (NP (DT the) (NN cat)) (VP (VBD sat)) (PP (IN on) (NN mats)) (. .)))"


def lines(records):
    return "".join(json.dumps(record) + "\n" for record in records)


def generated(first, after):
    """Some of the lists of one truth, as a file of JSON has them."""
    lists = candidate_lists(220, 6, 30, doubt=3.0, seed=1)
    named, starts = lists.sparse, lists.starts.tolist()
    for i in range(first, after):
        begin, end = starts[i : i + 2]
        yield {
            "id": f"list {i}",
            "candidates": [
                {
                    "text": f"text {c}",
                    "score": lists.scores[c],
                    "cost": lists.costs[c],
                    "features": {
                        named.names[named.ids[e]]: named.values[e]
                        for e in range(named.indptr[c], named.indptr[c + 1])
                    },
                }
                for c in range(begin, end)
            ],
        }


def spoken(n, judged=True):
    """Sentences and references, without costs."""
    for i in range(n):
        reference = REFERENCES[i % 3]
        record = {"id": i, "reference": reference} if judged else {"id": i}
        yield record | {
            "candidates": [
                {"text": f"{reference}{more}", "score": score + i % 2, "features": {"more": more}}
                for more, score in CHANGES
            ]
        }


def parsed(n, judged=True):
    for i in range(n):
        record = {"id": f"p{i}", "gold": GOLD} if judged else {"id": f"p{i}"}
        trees = [WRONG, GOLD, FLAT] if i % 2 else [FLAT, WRONG, GOLD]
        yield record | {
            "candidates": [{"tree": t, "logprob": -9.0 - c} for c, t in enumerate(trees)]
        }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("rerank")
    for name, first, after in (("train", 0, 120), ("dev", 120, 160), ("test", 160, 220)):
        (place / f"{name}.jsonl").write_text(lines(generated(first, after)))
    (place / "texts.jsonl").write_text(lines(spoken(12)))
    (place / "new-texts.jsonl").write_text(lines(spoken(4, judged=False)))
    (place / "trees.jsonl").write_text(lines(parsed(8)))
    (place / "new-trees.jsonl").write_text(lines(parsed(4, judged=False)))
    (place / "trees.bllip").write_text(
        "\n".join(f"2\tb{i}\n-1.5\n{WRONG}\n-2.5\n{GOLD}\n" for i in range(6))
    )
    (place / "gold.mrg").write_text(f"{GOLD}\n" * 6)
    for data, model, *more in (
        ("train", "costs"),
        ("texts", "texts", "--metric", "bleu"),
        ("trees", "trees", "--min-count", "1"),
    ):
        argv = ["train", "rerank", "--quiet", "--learner", "perceptron", "--epochs", "4", *more]
        files = ["--train", str(place / f"{data}.jsonl"), "--model", str(place / f"{model}.model")]
        assert main([*argv, *files]) == 0
    return place


def objects(text):
    return [json.loads(line) for line in text.splitlines()]


TRAIN = ("train", "rerank", "--train", "train.jsonl", "--learner", "perceptron")


def test_compare_shows_the_1_best_and_the_oracle(run):
    argv = ["compare", "rerank", "--train", "train.jsonl", "--test", "test.jsonl", "--learners",
            "perceptron", "--epochs", 1, "--report", "page.html", "--json"]  # fmt: skip
    status, out, err = run(*argv)
    assert status == 0 and "cost of 1-best" in err and "of the oracle 0.0000" in err
    assert json.loads(out)["oracle_cost"] == 0.0 < json.loads(out)["baseline_cost"]


def test_every_epoch_shows_the_1_best_and_the_oracle(run, folder):
    _, out, _ = run("compare", *TRAIN[1:4], "--test", "dev.jsonl", "--learners", "mira", "--json")
    bounds = {key: json.loads(out)[key] for key in ("baseline_cost", "oracle_cost")}
    more = ("--dev", "dev.jsonl", "--epochs", "3", "--run", "watched", "--model", "m")
    code, _, err = run(*TRAIN, *more)
    assert code == 0
    shown = f"(1-best {bounds['baseline_cost']:.4f}, oracle {bounds['oracle_cost']:.4f})"
    assert err.count(shown) == 3
    events = objects((folder / "watched" / "events.jsonl").read_text())
    dev = [event["dev"] for event in events if "dev" in event]
    assert len(dev) == 3
    assert all(scores.items() >= bounds.items() for scores in dev)


def test_a_model_that_never_beats_the_1_best_is_warned_of(run, folder):
    def write(name, cheapest):
        """Lists of two; the generator prefers the first one, the second one has a feature."""
        costs = [[float(c != right) for c in (0, 1)] for right in cheapest]
        odd = [{"score": -0.1 * c, "features": {"second": c}} for c in (0, 1)]
        records = (
            {"id": i, "candidates": [{**odd[c], "cost": pair[c], "text": f"{c}"} for c in (0, 1)]}
            for i, pair in enumerate(costs)
        )
        (folder / name).write_text(lines(records))

    write("second.jsonl", [0, 1, 1, 1, 1, 1])
    write("first.jsonl", [0] * 6)
    write("mixed.jsonl", [0] * 5 + [1])
    argv = ("train", "rerank", "--train", "second.jsonl", "--model", "m", "--learner", "perceptron")
    for dev in ("second.jsonl", "first.jsonl"):  # beaten; and as good as the oracle is
        assert "warning" not in run(*argv, "--dev", dev)[2]
    code, _, err = run(*argv, "--dev", "mixed.jsonl")
    assert code == 0
    assert "hopefear: warning: no epoch beats the generator's 1-best on the held-out lists" in err
    assert "1-best 0.1667, oracle 0)" in err


def test_lists_that_teach_nothing_are_counted(run, folder):
    same = {"id": "same", "candidates": [{"cost": 1, "features": {"a": i}} for i in range(3)]}
    one = {"id": "one", "candidates": [{"cost": 0, "features": {"a": 1}}]}
    text = (folder / "train.jsonl").read_text() + lines([same, one])
    (folder / "idle.jsonl").write_text(text)
    argv = ["train", "rerank", "--train", "idle.jsonl", "--learner", "perceptron", "--json"]
    status, out, err = run(*argv, "--model", "idle.model")
    assert status == 0 and "lists that teach nothing, of one candidate or of equal costs: 2" in err
    assert json.loads(out)["idle_lists"] == 2


def test_features_that_are_rare_are_left_out(run):
    argv = [*TRAIN, "--json", "--quiet", "--epochs", 1, "--model", "rare.model"]
    every, often = (json.loads(run(*argv, "--min-count", n)[1]) for n in (1, 60))
    assert 0 < often["features"] < every["features"] == 31
    seen = every["features_seen"]
    assert seen is None or often["features_seen"] == seen >= every["features"]


def test_parts_and_options_reach_the_learner_and_the_data(run):
    run(*TRAIN[:4], "--learner", "vrda", "-p", "l1=0.01", "-p", "loss=logistic", "--tied",
        "--baseline", "offset", "--model", "o.model", "--epochs", 2, "--quiet")  # fmt: skip
    model = RerankModel.load("o.model")
    assert "loss:logistic" in model.signature and "l1=0.01" in model.signature
    assert "tied:true" in model.signature and model.baseline == "offset"
    assert not model.features.extraction.score


def test_evaluate_shows_the_model_between_1_best_and_oracle(run):
    status, out, err = run("evaluate", "--model", "costs.model", "--data", "test.jsonl")
    assert (status, out) == (0, "")
    for word in ("model", "1-best", "oracle", "worst", "p =", "low", "high", "metric:cost"):
        assert word in err
    _, out, _ = run("evaluate", "--model", "costs.model", "--data", "test.jsonl", "--json")
    found = json.loads(out)
    assert (
        found["oracle_cost"] == 0.0 < found["cost"] < found["baseline_cost"] < found["worst_cost"]
    )
    assert found["cost_low"] <= found["cost"] <= found["cost_high"]
    assert found["p_value"] < 0.05 and found["learner"] == "perceptron"
    model = RerankModel.load("costs.model")
    assert (found["nnz"], found["model_signature"]) == (model.nnz, model.signature)


def test_predict_prints_the_best_of_every_list(run):
    status, out, _ = run("predict", "--model", "costs.model", "--input", "test.jsonl")
    found = objects(out)
    lists = list(generated(160, 220))
    assert status == 0 and [one["id"] for one in found] == [one["id"] for one in lists]
    for one, given in zip(found, lists, strict=True):
        assert one["text"] == given["candidates"][one["best"]]["text"]
    _, out, _ = run("evaluate", "--model", "costs.model", "--data", "test.jsonl", "--json")
    chosen = [g["candidates"][o["best"]]["cost"] for o, g in zip(found, lists, strict=True)]
    assert sum(chosen) / 60 == pytest.approx(json.loads(out)["cost"])


def test_nbest_is_a_file_of_lists_again(run, folder):
    argv = ["predict", "--model", "costs.model", "--input", "test.jsonl"]
    _, out, _ = run(*argv, "--nbest", 4, "--proba", "--output", "again.jsonl")
    assert out == ""
    found = objects((folder / "again.jsonl").read_text())
    best = objects(run(*argv, "--proba")[1])
    for one, ranked in zip(best, found, strict=True):
        candidates = ranked["candidates"]
        scores = [c["score"] for c in candidates]
        assert len(scores) == 4 and scores == sorted(scores, reverse=True)
        assert (one["best"], one["probability"]) == (
            candidates[0]["position"], candidates[0]["probability"])  # fmt: skip
        assert sum(c["probability"] for c in candidates) <= 1.0 + 1e-9
    status, out, _ = run("predict", "--model", "texts.model", "--input", "again.jsonl")
    assert status == 0 and len(objects(out)) == 60


def test_lists_without_costs_from_a_pipe_as_text(run, folder):
    packed = gzip.compress((folder / "new-texts.jsonl").read_bytes())
    argv = ["predict", "--model", "texts.model", "--input", "-", "--output-format", "text"]
    status, out, _ = run(*argv, stdin=packed)
    assert status == 0
    assert out.splitlines() == [REFERENCES[i % 3] for i in range(4)]
    _, out, _ = run("predict", "--model", "trees.model", "--input", "new-trees.jsonl",
                    "--output-format", "text", "--nbest", 2)  # fmt: skip
    blocks = out.split("\n\n")
    assert blocks[:4] == [blocks[0]] * 4 and blocks[0].startswith(f"{GOLD}\n(S1 ")


def test_positions_are_those_of_the_file_where_texts_come_twice(run, folder):
    reference = REFERENCES[0]
    texts = [f"{reference} x y z", f"{reference} x y z", reference]
    record = {"id": "twice", "candidates": [
        {"text": t, "score": s, "features": {"more": t.removeprefix(reference)}}
        for t, s in zip(texts, (2.0, 2.0, 0.0), strict=True)]}  # fmt: skip
    (folder / "twice.jsonl").write_text(lines([record]))
    _, out, _ = run("predict", "--model", "texts.model", "--input", "twice.jsonl", "--nbest", 9)
    assert [c["position"] for c in objects(out)[0]["candidates"]] == [2, 0]


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter", "wer", "edit", "f1"])
def test_costs_come_from_references(run, metric):
    argv = ["train", "rerank", "--train", "texts.jsonl", "--metric", metric, "--metric-option",
            "lowercase=true", "--learner", "perceptron", "--epochs", 3]  # fmt: skip
    status, _, err = run(*argv, "--model", "m.model")
    assert status == 0 and f"judged by {metric}" in err
    assert RerankModel.load("m.model").metric.lowercase is True
    _, out, _ = run("evaluate", "--model", "m.model", "--data", "texts.jsonl", "--json")
    found = json.loads(out)
    assert found["metric"] == metric and found["gap_closed"] == pytest.approx(100.0)


def test_trees_are_judged_by_their_brackets(run):
    _, out, _ = run("evaluate", "--model", "trees.model", "--data", "trees.jsonl", "--json")
    found = json.loads(out)
    assert found["f1"] == 100.0 > found["baseline_f1"] and found["metric"] == "parseval"
    argv = ["--format", "bllip", "--gold", "gold.mrg"]
    _, out, _ = run("evaluate", "--model", "trees.model", "--data", "trees.bllip", *argv, "--json")
    assert json.loads(out)["oracle_f1"] == 100.0
    status, _, err = run("train", "rerank", "--train", "trees.bllip", *argv, "--learner",
                         "perceptron", "--epochs", 1, "--features", "Rule,score", "--min-count", 1,
                         "--model", "b.model")  # fmt: skip
    assert status == 0 and "6 lists" in err and "(Rule,score)" in err


def test_inspect_tells_sizes_families_and_features(run):
    status, out, err = run("inspect", "--model", "trees.model", "--top", 3)
    assert (status, out) == (0, "")
    for word in ("parseval", "non-zeros", "Rule.plain", "for a candidate", "against a candidate"):
        assert word in err, word
    found = json.loads(run("inspect", "--model", "costs.model", "--json")[1])
    assert sum(f["nnz"] for f in found["families"]) == found["nnz"]
    weights = [w for _, w in found["top"]]
    assert len(weights) == 10 and weights == sorted(weights, reverse=True)
    assert all(w < 0 for _, w in found["bottom"])


def test_a_voted_model_is_described(run):
    status, _, _ = run(*TRAIN[:4], "--learner", "vrda", "-p", "averaging=voted", "--epochs", 2,
                       "--model", "v.model")  # fmt: skip
    assert status == 0
    _, _, err = run("inspect", "--model", "v.model")
    assert "predictors" in err and "averaging=averaged" in err
    _, out, _ = run("predict", "--model", "v.model", "--input", "test.jsonl", "--proba")
    assert all(0.0 <= one["probability"] <= 1.0 for one in objects(out))
    status, _, err = run("predict", "--model", "v.model", "--input", "test.jsonl", "--explain")
    assert status == 1 and "averaging=averaged" in err


@pytest.mark.parametrize("model", ["costs.model", "o.model"])
def test_an_explanation_adds_up(run, model):
    if model == "o.model":
        run(*TRAIN, "--baseline", "offset", "--model", model, "--quiet", "--epochs", 2)
    argv = [
        "predict",
        "--model",
        model,
        "--input",
        "test.jsonl",
        "--explain",
        "--list",
        "list 167",
        "--top",
        99,
    ]
    found = json.loads(run(*argv, "--json", "--pair", "4:1")[1])
    assert (found["label"], found["runner_up"], len(found["texts"])) == (4, 1, 2)
    assert sum(f["amount"] for f in found["features"]) == pytest.approx(found["gap"], abs=1e-4)
    best = json.loads(run(*argv, "--json")[1])
    assert best["gap"] > 0.0 and best["list"] == "list 167"
    _, out, _ = run(*argv)
    assert f"  {best['label']}, not {best['runner_up']}, by " in out


def test_learners_lists_those_of_lists(run):
    _, out, _ = run("learners", "--task", "rerank")
    assert "task rerank" in out and "rampion" in out and "maxent-lbfgs" in out
    _, out, _ = run("learners", "maxent-lbfgs")
    assert "-p loss=log" in out and "-p l2=" in out


def test_every_metric_has_a_name_here():
    assert set(METRICS) == set(LIST_METRICS)


@pytest.mark.parametrize("verb", ["train", "compare"])
def test_help_teaches_with_examples(run, verb):
    status, out, _ = run(verb, "rerank", "--help")
    assert status == 0 and f"hopefear {verb} rerank --train" in out and "--metric-option" in out
    told = " ".join(out.split())
    assert f"at most (default: {EPOCHS};" in told
    assert f"{TREE_FEATURES} for trees" in told and f"{TREE_COUNT} for trees" in told
    assert verb == "compare" or f"(default: {DEFAULT_LEARNER})" in told


def data_file(name):
    path = DATA / "ptb-nbest" / name
    if not path.exists():
        pytest.skip(f"no {path}: HOPEFEAR_DATA names the folder of corpora")
    return path


@pytest.mark.compiled
def test_real_parses_end_to_end(run, folder):
    with lzma.open(data_file("dev.jsonl.xz")) as file:
        some = list(itertools.islice(file, 60))
    (folder / "real.jsonl").write_bytes(b"".join(some[:40]))
    (folder / "real-test.jsonl").write_bytes(b"".join(some[40:]))
    argv = ["train", "rerank", "--train", "real.jsonl", "--learner", "perceptron", "--epochs", 5]
    status, out, err = run(*argv, "--model", "real.model", "--json")
    assert status == 0 and f"{TREE_FEATURES}, in {TREE_COUNT} lists or more" in err
    assert json.loads(out)["features"] > 1000
    _, out, _ = run("evaluate", "--model", "real.model", "--data", "real-test.jsonl", "--json")
    found = json.loads(out)
    assert found["lists"] == 20
    assert found["worst_f1"] < found["f1"] <= found["oracle_f1"]
    _, out, _ = run("evaluate", "--model", "real.model", "--data", "real.jsonl", "--json")
    found = json.loads(out)
    assert found["f1"] > found["baseline_f1"] + 1.0, "its own training data"
