"""``hopefear tune`` as a user types it, in one process."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import signal
import sys

import numpy as np
import pytest
import tuning_files
from places import DATA

from hopefear.translation.recipes import TUNE_RECIPES
from hopefear.translation.weights import Weights

pytestmark = pytest.mark.interpreted

# Searches a pool of candidates, and stays away from the package so that it starts at once.
DECODER = """\
import sys

pool, weights, out = sys.argv[1:]
known = {}
for line in open(weights):
    if not line.startswith("#"):
        name, *numbers = line.split()
        known[name] = [float(number) for number in numbers]


def score(line):
    fields = line.split(" ||| ")
    if not known:
        return float(fields[3])
    total, name, place = 0.0, "", 0
    for token in fields[2].split():
        if token.endswith("="):
            name, place = token, 0
        else:
            total += known.get(name, [0.0] * 9)[place] * float(token)
            place += 1
    return total


lists = {}
for line in open(pool):
    lists.setdefault(line.split()[0], []).append(line)
with open(out, "w") as file:
    for lines in lists.values():
        file.writelines(sorted(lines, key=score, reverse=True)[:3])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("tune")
    tuning_files.write(place, "dev", 0, 40)
    tuning_files.write(place, "test", 40, 70)
    (place / "start.txt").write_text("LM0= 1\nTM0= 0.5 0.25\n")
    (place / "decoder.py").write_text(DECODER)
    return place


LISTS = ("tune", "--nbest", "dev.nbest", "--refs", "dev.ref")
TUNE = (*LISTS, "--learner", "perceptron", "--epochs", "4")
DENSE = (*TUNE, "--features", "dense")
TEST = ("--dev-nbest", "test.nbest", "--dev-refs", "test.ref")


def test_tune_says_what_it_found(run):
    status, out, err = run(*DENSE, *TEST, "--weights", "a.txt")
    assert (status, out) == (0, "")
    for word in ("40 lists, 400 candidates", "3 dense features", "round 1: tuning bleu", "dev bleu",
                 "decoder 1-best", "before", "after", "oracle", "tuning lists", "held-out lists",
                 "TM0.1", "change", "non-zeros", "BLEU|nrefs:1", "signature"):  # fmt: skip
        assert word in err, word
    assert "Traceback" not in err and "spread" not in err
    weights = Weights.read("a.txt")
    assert weights.layout == (("LM0", 1), ("TM0", 2)) and weights.about["learner"] == "perceptron"
    assert run(*DENSE, "--quiet", "--weights", "b.txt") == (0, "", "")


def test_json_has_scores_by_name(run):
    status, out, _ = run(*DENSE, *TEST, "--json", "--seeds", 3, "--weights", "j.txt")
    found = json.loads(out)
    assert status == 0
    assert found["bleu_before"] < found["bleu"] <= found["oracle_bleu"]
    assert found["dev_bleu_before"] < found["dev_bleu"] <= found["dev_oracle_bleu"]
    # The decoder's weights explain its scores, so that tuning starts from its own choices.
    assert found["baseline_bleu"] == pytest.approx(found["bleu_before"])
    seeds = found["spread"]["seeds, held out"]
    assert seeds["n"] == 3 and seeds["min"] <= seeds["mean"] <= seeds["max"]
    assert found["dev_bleu"] == seeds["max"]
    assert [run["seed"] for run in found["runs"]] == [1, 2, 3]
    assert [change["name"] for change in found["changes"]] == ["LM0", "TM0.0", "TM0.1"]
    written = Weights.read("j.txt")
    after = [change["after"] for change in found["changes"]]
    np.testing.assert_allclose(written.dense, after)
    assert found["nnz"] == 3 and "seed:" in found["signature"]


def test_same_command_same_bytes(run, folder):
    for name, more in (("x1", ()), ("x2", ("--run", "kept")), ("x3", ("--seed", "7"))):
        assert run(*DENSE, "--quiet", *more, "--weights", f"{name}.json")[0] == 0
    one, two, other = ((folder / f"x{k}.json").read_bytes() for k in (1, 2, 3))
    assert one == two != other


def test_formats_of_weights(run, folder):
    told = (("w.ini", (), "[weight]"), ("w.json", (), "{"), ("w.gz", (), "LM0="),
            ("w.out", ("--format", "json"), "{"))  # fmt: skip
    found = []
    for name, more, text in told:
        assert run(*TUNE, "--quiet", *more, "--weights", name)[0] == 0
        data = (folder / name).read_bytes()
        assert text in (gzip.decompress(data) if name.endswith("gz") else data).decode()
        found.append(Weights.read(folder / name))
    assert (folder / "w.ini.sparse").exists()
    for other in found[1:]:
        assert found[0].sparse == other.sparse and np.array_equal(found[0].dense, other.dense)
    status, out, _ = run(*DENSE, "--quiet", "--weights", "-")
    assert status == 0 and "LM0= " in out


def test_groups_of_features_and_rare_ones(run):
    argv = (*TUNE, "--source", "dev.src", "--json", "--quiet", "--weights", "g.json")
    every = json.loads(run(*argv)[1])
    often = json.loads(run(*argv, "--min-count", 5)[1])
    pairs = json.loads(run(*argv, "--features", "phrases,dense")[1])
    assert every["features"] > often["features"] > 3
    assert pairs["features"] == every["features"] - 3
    assert any(" ||| " in change["name"] for change in pairs["changes"])
    assert len(every["changes"]) <= 3 + 20


def test_several_files_merge_and_equal_candidates_go(run, folder):
    lines = (folder / "dev.nbest").read_text().splitlines(keepends=True)
    (folder / "one.nbest").write_text("".join(lines[k] for k in range(400) if k % 10 < 6))
    with gzip.open(folder / "two.nbest.gz", "wt") as file:
        file.write("".join(lines[k] for k in range(400) if k % 10 > 3))
    argv = ("tune", "--nbest", "one.nbest", "two.nbest.gz", "--refs", "dev.ref", "dev.ref",
            "--learner", "perceptron", "--epochs", 2, "--json", "--weights", "m.json")  # fmt: skip
    status, out, err = run(*argv)
    found = json.loads(out)
    assert status == 0 and "80 more were equal to others" in err
    assert (found["candidates"], found["dropped"], found["baseline_bleu"]) == (400, 80, None)
    assert "nrefs:2" in found["metric_signature"]
    run(*argv, "--held-out", "0.25", "--report", "two.html")
    assert "nrefs:2" in (page := (folder / "two.html").read_text()) and "nrefs:1" not in page
    assert json.loads(run(*argv, "--dedup", "none")[1])["candidates"] == 480


def test_held_out_share(run):
    status, out, err = run(*DENSE, "--held-out", "0.25", "--json", "--weights", "h.txt")
    found = json.loads(out)
    assert status == 0 and "held out: 10 of these lists" in err
    assert found["lists"] == 30 and found["dev_bleu"] > found["dev_bleu_before"]


def test_start(run, folder):
    argv = (*DENSE, "--quiet", "--json", "--weights", "s.txt")
    begun = {}
    for start in ("decoder", "moses", "uniform", "start.txt"):
        status, out, err = run(*argv, "--start", start)
        assert status == 0, err
        begun[start] = json.loads(out)["changes"]
    befores = [[change["before"] for change in found] for found in begun.values()]
    assert len({tuple(np.round(found, 4)) for found in befores}) == 4
    shares = np.array(befores[3]) / sum(befores[3])
    np.testing.assert_allclose(shares, np.array([1, 0.5, 0.25]) / 1.75, atol=1e-6)
    status, _, err = run(*argv, "--start", "nowhere")
    assert status == 1 and "nowhere" in err and "decoder" in err


def test_fixed_weights_stay_and_added_models_are_spread_again(run, folder):
    source = ("--source", "dev.src")
    status, out, err = run(*TUNE, *source, "--features", "phrases", "--fixed", "start.txt",
                           "--json", "--quiet", "--weights", "p.json",
                           "--report", "fixed.html")  # fmt: skip
    assert status == 0, err
    model = Weights.read("p.json")
    assert model.dense.tolist() == [1.0, 0.5, 0.25] and model.phrases
    status, out, err = run(*DENSE, *source, "--add", "P0=p.json", "--start", "start.txt",
                           "--json", "--quiet", "--weights", "all.json",
                           "--report", "added.html")  # fmt: skip
    assert status == 0, err
    found, weights = json.loads(out), Weights.read("all.json")
    factor = found["added"]["P0"]
    assert weights.about["added"] == {"P0": factor} and factor
    for name, text in (("fixed.html", "phrase pairs"), ("added.html", "P0")):
        page = (folder / name).read_text()
        assert text in page and "<dt>source</dt>" in page and "95 % interval" in page
    assert weights.layout == model.layout and weights.phrases.keys() == model.phrases.keys()
    pair = next(iter(model.phrases))
    assert weights.phrases[pair] == pytest.approx(factor * model.phrases[pair])
    # What stands alone is worth what was tuned.
    _, out, _ = run("evaluate", "--weights", "all.json", "--nbest", "dev.nbest", "--refs",
                    "dev.ref", *source, "--json")  # fmt: skip
    assert json.loads(out)["bleu"] == pytest.approx(found["bleu"], abs=1e-9)
    status, _, err = run(*DENSE, *source, "--add", "LM0=p.json", "--weights", "x.txt")
    assert status == 1 and "has a feature LM0 already" in err


def test_agreement_beside_fixed_weights(run):
    argv = (*TUNE, "-p", "keep=last", "--json", "--quiet", "--weights", "c.json")
    report = ("--report", "consensus.html")
    status, out, err = run(*argv, "--features", "consensus", "--fixed", "start.txt", *report)
    assert status == 0, err
    weights = Weights.read("c.json")
    assert weights.dense[:3].tolist() == [1.0, 0.5, 0.25] and weights.dense[3:].any()
    _, judged, _ = run("evaluate", "--weights", "c.json", "--nbest", "dev.nbest", "--refs",
                       "dev.ref", "--json")  # fmt: skip
    assert json.loads(judged)["bleu"] == pytest.approx(json.loads(out)["bleu"], abs=1e-9)
    status, _, err = run(*argv, "--features", "ngrams")
    assert status == 1 and "name dense too" in err and "--fixed" in err


@pytest.mark.parametrize("metric", ["chrf", "ter"])
def test_other_metrics(run, metric):
    argv = (*LISTS, "--features", "dense", "--epochs", 3, "--metric", metric, "--json")
    status, out, err = run(*argv, "--weights", "o.txt")
    found = json.loads(out)
    assert status == 0 and "needs no pseudo-corpus" in err
    gain = found[metric] - found[f"{metric}_before"]
    assert gain < 0 if metric == "ter" else gain > 0
    assert found["metric"] == metric


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--learner", "kbmira", "--smoothing", "exp"), "-p background=none"),
        (("--learner", "mert", "--smoothing", "exp"), "mert does not look at"),
        (("--learner", "pro", "--epochs", 3), "passes of an online classifier"),
        (("--learner", "pro", "-p", "corpus=1", "--smoothing", "exp"), "pro does not look at"),
        (("--learner", "pro", "-p", "line_search=true", "-p", "interpolate=0.5"), "use one of"),
        (("--learner", "perceptron", "-p", "memory=0.5"), "perceptron has none here"),
        (("-p", "background=none", "-p", "memory=0.5"), "-p background=hope"),
        (("--metric", "ter", "-p", "memory=0.5"), "-p memory=… is of a pseudo-corpus"),
        (("--learner", "risk", "--seeds", 3), "risk draws nothing at random"),
        (("--learner", "expected-bleu", "--seeds", 2), "--seeds 2"),
        (("--min-count", 2), "--features dense has none of them"),
        (("--source", "dev.src"), "--features dense,phrases"),
        (("--source", "dev.src", "--decoder", "x", "--run", "d"), "--features dense,phrases"),
    ],
)
def test_what_would_change_nothing_is_refused(run, folder, more, told):
    status, out, err = run(*LISTS, "--features", "dense", *more, "--weights", "n.txt")
    assert (status, out) == (1, "") and told in err
    assert not (folder / "n.txt").exists() and not (folder / "d").exists()


def test_what_weights_or_lists_leave_no_room_for_is_refused(run, folder):
    fixed = ("--fixed", "start.txt", "--features", "sparse", "--weights", "n.txt")
    for start in ("moses", "start.txt"):
        status, _, err = run(*LISTS, *fixed, "--start", start)
        assert status == 1 and "leave out --start" in err
    plain = re.sub(r"wt_\S+ 1 ", "", (folder / "dev.nbest").read_text())
    (folder / "plain.nbest").write_text(plain)
    argv = ("tune", "--nbest", "plain.nbest", "--refs", "dev.ref", "--min-count", 2)
    status, _, err = run(*argv, "--weights", "n.txt")
    assert status == 1 and "plain.nbest has none of them" in err
    assert not (folder / "n.txt").exists()


def test_fixed_weights_may_come_from_standard_input(run, folder):
    argv = (*TUNE, "--features", "sparse", "--quiet", "--fixed")
    assert run(*argv, "start.txt", "--weights", "file.txt")[0] == 0
    given = (folder / "start.txt").read_bytes()
    assert run(*argv, "-", "--weights", "pipe.txt", stdin=given)[0] == 0
    assert (folder / "file.txt").read_bytes() == (folder / "pipe.txt").read_bytes()


def test_smoothing_reaches_the_costs(run):
    argv = (*LISTS, "--features", "dense", "--epochs", 3, "-p", "background=none", "--json")
    found = [
        json.loads(run(*argv, "--smoothing", name, "--weights", "sm.txt")[1])
        for name in ("add-one", "none")
    ]
    assert found[0]["changes"] != found[1]["changes"]


def test_run_folder_and_pages(run, folder):
    argv = (*DENSE, *TEST, "--seeds", 2, "--run", "run", "--report", "page.html", "--quiet")
    assert run(*argv, "--weights", "r.txt") == (0, "", "")
    events = [json.loads(line) for line in (folder / "run/events.jsonl").read_text().splitlines()]
    assert [(event["seed"], event["epoch"]) for event in events] == [
        (seed, epoch) for seed in (1, 2) for epoch in (1, 2, 3, 4)
    ]
    settings = json.loads((folder / "run/run.json").read_text())
    assert settings["task"] == "tune" and settings["signature"] and settings["data"]["digest"]
    page = (folder / "page.html").read_text()
    # Two sets of lists by rounds and by seconds, and the weights.
    assert page.count("<svg") == 5 and "TM0.1" in page and "seed 2" in page
    for text in ("95 % interval", "Sentences", "reference", "SHA-256", "randomisation(n=1000"):
        assert text in page
    assert run(*argv[:-3], "--quiet", "--weights", "plain.txt")[0] == 0
    assert (folder / "plain.txt").read_bytes() == (folder / "r.txt").read_bytes()
    assert run("report", "run", "--out", "runs.html", "--quiet")[0] == 0
    page = (folder / "runs.html").read_text()
    assert "run, seed 1" in page and "run, seed 2" in page
    assert "Tuning bleu" in page and "Development bleu" in page and "written twice" not in page


def test_collapse_is_told_and_nothing_is_written(run, folder, monkeypatch):
    from hopefear.translation.task import CollapseError

    def collapse(*args):
        raise CollapseError("tuning collapsed: all weights are 0; nothing is kept.")

    monkeypatch.setattr("hopefear.translation.task.check_collapse", collapse)
    status, out, err = run(*DENSE, "--json", "--weights", "c.txt")
    assert (status, out) == (1, "") and "collapsed" in err
    assert not (folder / "c.txt").exists()


def test_an_interrupt_leaves_what_was_there(run, folder, monkeypatch):
    (folder / "old.txt").write_text("LM0= 1\n")

    def stop(*args, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("hopefear.translation.tuners.online_tuner.OnlineTuner.tune", stop)
    status, _, err = run(*DENSE, "--weights", "old.txt")
    assert (status, err.splitlines()[-1]) == (130, "hopefear: interrupted")
    assert (folder / "old.txt").read_text() == "LM0= 1\n"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["tune", "--weights", "w"], "--refs"),
        (["tune", "--refs", "dev.ref", "--weights", "w"], "--nbest"),
        (LISTS, "--weights"),
        ([*LISTS, "--weights", "-", "--json"], "share standard output"),
        ([*LISTS, "--weights", "w", "--rounds", "3"], "--rounds belongs to --decoder"),
        ([*LISTS, "--weights", "w", "--patience", "2"], "--patience belongs to --decoder"),
        ([*LISTS, "--weights", "w", "--resume"], "--resume belongs to --decoder"),
        ([*LISTS, "--weights", "w", "--timeout", "0"], "--timeout belongs to --decoder"),
        ([*LISTS, "--weights", "w", *("--add", "P=a", "--add", "P=b")], "--add P=… twice"),
        ([*LISTS, "--weights", "w", "--decoder", "x"], "--run DIR"),
        ([*LISTS, "--weights", "w", "--decoder", "x", "--run", "r", "--fixed", "f"], "--fixed"),
        ([*LISTS, "--weights", "w", "--dev-nbest", "a"], "--dev-refs"),
        ([*LISTS, "--weights", "w", "--dev-source", "a"], "--dev-nbest"),
        ([*LISTS, "--weights", "w", *TEST, "--held-out", "0.5"], "not both"),
        ([*LISTS, "--weights", "w", *TEST, "--source", "a"], "--dev-source"),
        ([*LISTS, "--weights", "w", "--held-out", "1"], "between 0 and 1"),
        ([*LISTS, "--weights", "w", "--seed", str(2**32)], "from 0 to 4294967295"),
        ([*LISTS, "--weights", "w", "--seed", str(2**32 - 1), "--seeds", "2"], "seeds are whole"),
        ([*LISTS, "--weights", "w", "--seed", "1.5"], "whole number"),
        ([*LISTS, "--weights", "w", "--features", "all"], "dense, sparse, phrases"),
        ([*LISTS, "--weights", "w", "--add", "x"], "NAME=FILE"),
        ([*LISTS, "--weights", "w", "--add", "x=f", "--fixed", "f"], "--fixed and --add"),
        ([*LISTS, "--weights", "w", "--metric", "ter", "--smoothing", "exp"], "--smoothing"),
        ([*LISTS, "--weights", "w", "--epochs", "2", "-p", "epochs=3"], "epochs"),
        (["tune", "--nbest", "-", "--refs", "-", "--weights", "w"], "once only"),
    ],
)
def test_wrong_usage_is_status_two(run, folder, more, told):
    status, out, err = run(*more)
    assert (status, out) == (2, "") and told in err.splitlines()[-1]
    assert not (folder / "w").exists()


def test_errors_are_one_line_and_status_one(run, folder):
    (folder / "short.ref").write_text("hope\n")
    (folder / "bad.nbest").write_text("0 ||| hope ||| LM0= x ||| -1\n")
    (folder / "empty").write_text("")
    for more, told in (
        (["--nbest", "bad.nbest", "--refs", "short.ref"], "bad.nbest:1: expected a number"),
        (["--nbest", "empty", "--refs", "short.ref"], "empty"),
        (["--nbest", "gone", "--refs", "short.ref"], "gone"),
        (["--nbest", "dev.nbest", "--refs", "short.ref"], "dev.nbest:11: "),
        (["--nbest", "dev.nbest", "--refs", "dev.ref", "--learner", "mertt"], "mean 'mert'"),
        (["--nbest", "dev.nbest", "--refs", "dev.ref", "-p", "Q=1"], "Q"),
        (["--nbest", "dev.nbest", "--refs", "dev.ref", "--learner", "mert", "--epochs", "3"],
         "leave out --epochs"),
        (["--nbest", "dev.nbest", "--refs", "dev.ref", "--fixed", "start.txt", "--features",
          "dense"], "fixed"),
    ):  # fmt: skip
        status, out, err = run("tune", *more, "--weights", "w")
        assert (status, out) == (1, ""), err
        assert told in err.splitlines()[-1] and "Traceback" not in err
    for out, told in (("nowhere/w", "no folder"), ("dev.nbest", "also an input"), (".", "folder")):
        status, _, err = run(*DENSE, "--weights", out)
        assert status == 1 and told in err
    assert not (folder / "w").exists()


def test_gaps_and_bad_lines_can_be_left_out(run, folder):
    lines = (folder / "dev.nbest").read_text().splitlines(keepends=True)
    lines[25] = lines[25].replace("LM0= ", "LM0= x")
    (folder / "gaps.nbest").write_text("".join(lines[:300]))
    argv = ("tune", "--nbest", "gaps.nbest", *DENSE[3:], "--weights", "gaps.txt", "--json")
    assert "gaps.nbest:26: " in run(*argv)[2]
    status, _, err = run(*argv, "--on-error", "skip")
    assert status == 1 and "dev.ref:31: " in err
    status, out, err = run(*argv, "--on-error", "skip", "--absent", "skip")
    assert status == 0 and "1 bad line skipped" in err
    assert json.loads(out)["lists"] == 30 and json.loads(out)["candidates"] == 299


def test_lists_from_a_pipe(run, folder):
    data = (folder / "dev.nbest").read_bytes()
    argv = ("tune", "--nbest", "-", *DENSE[3:], "--quiet", "--weights")
    assert run(*argv, "pipe.txt", stdin=data)[0] == 0
    assert run(*DENSE, "--quiet", "--weights", "file.txt")[0] == 0
    piped, read = (Weights.read(folder / f"{name}.txt") for name in ("pipe", "file"))
    assert np.array_equal(piped.dense, read.dense)


def test_a_decoder_in_the_loop(run, folder):
    command = f"{shlex.quote(sys.executable)} decoder.py dev.nbest {{weights}} {{nbest}}"
    argv = ("tune", "--decoder", command, "--refs", "dev.ref", "--learner", "perceptron",
            "--epochs", 4, "--features", "dense", "--rounds", 2, "--run", "rounds",
            "--weights", "rounds.txt", "--report", "rounds.html", "--json")  # fmt: skip
    status, out, err = run(*argv)
    assert status == 0, err
    found = json.loads(out)
    assert "round 0: decoder bleu" in err and "new hypotheses" in err
    assert found["bleu"] == max(event["dev"]["bleu"] for event in found["rounds"][1:])
    assert found["bleu"] > found["bleu_before"] and found["stopped"]
    assert [change["name"] for change in found["changes"]] == ["LM0", "TM0.0", "TM0.1"]
    assert found["changes"][0]["before"] > found["changes"][0]["after"]
    best = found["best_round"]
    kept = Weights.read(folder / f"rounds/round-{best}/weights.txt")
    assert np.array_equal(Weights.read(folder / "rounds.txt").dense, kept.dense)
    assert f"decoder bleu {found['bleu']:.2f}, the best, " in err
    reason = f"round {best} of 2: bleu {found['bleu']:.2f}, {found['bleu_before']:.2f} in round 0"
    assert found["kept"] == f"{reason}, and no round is better" and found["kept"] in err
    page = (folder / "rounds.html").read_text()
    assert "<svg" in page and found["kept"] in page
    status, out, _ = run(*argv, "--resume")
    assert status == 0 and json.loads(out)["rounds"] == found["rounds"]
    assert run("report", "rounds", "--out", "rounds2.html", "--quiet")[0] == 0
    status, _, err = run(*argv)
    assert status == 1 and "rounds has rounds of an earlier run: --resume" in err
    for other, said in [
        (("--seed", 2), "with seed 1, not 2"),
        (("--learner", "mert"), "with learner 'perceptron', not 'mert'"),
        (("-p", "rate=0.5"), "with parameters {}, not {'rate': '0.5'}"),
        (("--dedup", "none"), "with dedup 'first', not 'none'"),
        (("--features", "dense,sparse"), "with features ['dense'], not ['dense', 'sparse']"),
        (("--metric", "chrf"), "metric 'BLEU"),
        (("--nbest", "dev.nbest"), "nbest None, not ['dev.nbest']"),
    ]:
        given = [word for word in argv if word not in ("--epochs", 4)] if "mert" in other else argv
        status, _, err = run(*given, *other, "--resume")
        assert status == 1 and said in err, err
    status, _, err = run("tune", "--decoder", "exit 3", *argv[3:], "--run", "failed")
    assert status == 1 and "3" in err


def test_a_file_runs_no_command_that_is_not_typed(run, folder):
    command = f"{shlex.quote(sys.executable)} decoder.py dev.nbest {{weights}} {{nbest}}"
    said = f"touch ran; {command}"
    (folder / "tune.toml").write_text(
        f"decoder = {json.dumps(said)}\nrefs = 'dev.ref'\nlearner = 'perceptron'\nepochs = 1\n"
        "rounds = 1\nrun = 'from-file'\nweights = 'from-file.txt'\n"
    )
    argv = ("tune", "--config", "tune.toml")
    status, _, err = run(*argv)
    assert status == 1 and "tune.toml: decoder is a command" in err and "touch ran" in err
    assert "--decoder CMD" in err and "--allow-commands" in err
    assert run(*argv, "--decoder", command, "--run", "typed", "--quiet")[0] == 0
    assert not (folder / "ran").exists() and not (folder / "from-file").exists()
    assert run(*argv, "--allow-commands", "--quiet")[0] == 0
    assert (folder / "ran").exists() and (folder / "from-file.txt").exists()
    for hidden in ("refs = ['dev.ref', '--decoder=touch ran']", "param = {'--decoder' = 'true'}"):
        (folder / "tune.toml").write_text(f"{hidden}\n")
        status, _, err = run(*argv, "--nbest", "dev.nbest", "--weights", "w", "--run", "hidden")
        assert status == 1 and "reads as an option" in err
    (folder / "tune.toml").write_text("allow-commands = true\n")
    status, _, err = run(*argv)
    assert status == 2 and "no option 'allow-commands'" in err


def test_interrupted_rounds_tell_how_they_go_on(run, monkeypatch):
    from hopefear.cli.tune import rounds

    def stopped(*args, **options):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(rounds, "iterate", stopped)
    argv = ("tune", "--decoder", "true", "--refs", "dev.ref", "--run", "stopped", "--weights", "w")
    status, _, err = run(*argv)
    assert status == 130
    assert "finished rounds are in stopped: the same command with --resume goes on" in err


def test_learners_explain_every_tuner(run):
    status, out, _ = run("learners", "--task", "tune", "--json")
    assert status == 0
    (found,) = json.loads(out)["learners"].values()
    assert found.keys() == TUNE_RECIPES.keys()
    for facts in found.values():
        lacking = [key for key, value in facts["parameters"].items() if not value["effect"]]
        assert not lacking, f"{facts['name']}: {lacking}"
    assert "memory" in run("learners", "kbmira", "--task", "tune")[1]


def test_help_teaches(run):
    status, out, _ = run("tune", "--help")
    assert status == 0 and out.count("  hopefear tune ") >= 5
    for word in ("--decoder", "--held-out", "--add", "--fixed", "kbmira"):
        assert word in out


@pytest.mark.compiled
@pytest.mark.skipif(
    not (DATA / "multi30k-nbest").is_dir(), reason=f"no lists in {DATA / 'multi30k-nbest'}"
)
def test_real_lists(run, folder):
    import sacrebleu

    lists = DATA / "multi30k-nbest"
    status, out, err = run("tune", "--nbest", lists / "val.nbest.xz", "--refs", lists / "val.en",
                           "--learner", "kbmira", "--json", "--weights", "real.txt")  # fmt: skip
    assert status == 0, err
    assert json.loads(out)["bleu"] >= 40.9
    test = lists / "test_2016_flickr.nbest.xz"
    references = lists / "test_2016_flickr.en"
    _, out, _ = run("evaluate", "--weights", "real.txt", "--nbest", test, "--refs", references,
                    "--json")  # fmt: skip
    assert run("predict", "--weights", "real.txt", "--input", test, "--output", "real.out")[0] == 0
    best = (folder / "real.out").read_text().splitlines()
    official = sacrebleu.corpus_bleu(best, [references.read_text().splitlines()], tokenize="none")
    assert json.loads(out)["bleu"] == pytest.approx(official.score, abs=0.01)
