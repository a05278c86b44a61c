"""Parsers as users of the command line have them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import hopefear
from hopefear.cli import main
from hopefear.data.treebank import read_treebank
from tests.support import small_trees

# Sums of 64 bits wrap on purpose; only plain Python tells of it.
pytestmark = [pytest.mark.interpreted, pytest.mark.filterwarnings("ignore:overflow")]
quick = small_trees.quick
SMALL = ("--features", "light", "--hash-bits", 12, "--epochs", 2, "--learner", "perceptron")
KEYS = ("uas", "las", "clas", "mlas", "uas_nopunct", "las_nopunct", "trees", "roots")
SENTENCE = """# sent_id = 1
# text = It's raining .
1-2\tIt's\t_\t_\t_\t_\t_\t_\t_\t_
1\tIt\tit\tPRON\tPRP\t_\t3\texpl\t_\t_
2\t's\tbe\tAUX\tVBZ\t_\t3\taux\t_\t_
2.1\tnow\t_\t_\t_\t_\t_\t_\t_\t_
3\training\train\tVERB\tVBG\tTense=Pres\t0\troot\t_\tSpaceAfter=No
4\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_

1\tStop\tstop\tVERB\tVB\t_\t0\troot\t_\t_

"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("parse")
    for name, n, seed in (("train", 8, 1), ("dev", 3, 2)):
        (place / f"{name}.conllu").write_bytes(small_trees.written_treebank(n, seed=seed).file.text)
    (place / "new.conllu").write_text(SENTENCE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for order in ("1", "2"):
            words = ("train", "parse", "--train", "train.conllu", "--order", order, "--quiet")
            argv = [*map(str, (*words, *SMALL)), "--model", f"{order}.model"]
            assert main(argv) == 0
    return place


def predicted(run, *more, model="1.model", name="new.conllu"):
    status, out, err = run("predict", "--model", model, "--input", name, *more)
    assert status == 0, err
    return out


@pytest.mark.parametrize("model", ["1.model", "2.model"])
def test_a_file_comes_back_with_trees_and_all_else_as_it_was(run, folder, model):
    out = predicted(run, model=model)
    before, after = SENTENCE.split("\n"), out.split("\n")
    assert len(before) == len(after)
    for old, new in zip(before, after, strict=True):
        if old[:1].isdecimal() and old.split("\t")[0].isdecimal():
            a, b = old.split("\t"), new.split("\t")
            assert a[:6] == b[:6] and a[8:] == b[8:] and b[6].isdecimal()
        else:
            assert old == new
    (folder / "out.conllu").write_text(out)
    assert read_treebank("out.conllu").roots.tolist() == [1, 1]


@pytest.mark.parametrize("model", ["1.model", "2.model"])
def test_scores_have_their_keys_and_those_of_training(run, model):
    status, out, _ = run("evaluate", "--model", model, "--data", "train.conllu", "--json")
    scores = json.loads(out)
    assert status == 0 and set(KEYS) <= set(scores)
    assert scores["uas"] >= scores["las"] > 80.0 and scores["recall"] > 95.0
    assert scores["las_interval"][0] <= scores["las"] <= scores["las_interval"][1]
    assert {row["length"] for row in scores["errors"]["length"]} >= {"root", "1", "2"}


def test_a_page_has_errors_and_drawings(run, folder):
    argv = ("evaluate", "--model", "1.model", "--data", "new.conllu", "--proba")
    status, out, err = run(*argv, "--report", "e.html", "--json")
    scores, page = json.loads(out), (folder / "e.html").read_text()
    assert status == 0, err
    for word in ("Errors by length of arcs", "Errors by relation", "Calibration", "LAS"):
        assert word in page, word
    assert page.count('aria-label="tree"') >= len(scores["costliest"]) > 0
    status, _, err = run(*argv)
    assert status == 0 and "UAS without punctuation" in err and "errors by relation" in err


def test_the_n_best_come_with_ranks_and_probabilities(run):
    out = predicted(run, "--nbest", 2, "--proba")
    assert out.count("# rank = 1 score =") == 2 and out.count("# sent_id = 1") == 2
    assert out.count("Probability=") == 10 and "SpaceAfter=No|Probability=" in out
    rows = [json.loads(line) for line in predicted(run, "--nbest", 2, "--output-format", "json")
            .splitlines()]  # fmt: skip
    assert [row["rank"] for row in rows] == [1, 2, 1, 2]
    assert rows[0]["probability"] >= rows[1]["probability"]
    assert set(rows[0]["tokens"][0]) == {"text", "head", "relation"}
    drawn = predicted(run, "--output-format", "drawn")
    assert drawn.count("●") == 2 and "raining" in drawn


def test_columns_and_eight_columns(run, folder):
    (folder / "tags.txt").write_text("the\tDT\nman\tNN\nslept\tVBD\n")
    out = predicted(run, name="tags.txt", model="1.model")
    assert [len(line.split("\t")) for line in out.split("\n")[:3]] == [4, 4, 4]
    assert len(predicted(run, "--proba", name="tags.txt").split("\n")[1].split("\t")) == 5
    (folder / "x.conllx").write_text("1\tman\tman\tN\tNN\t_\t0\troot\n")
    assert predicted(run, name="x.conllx").startswith("1\tman\tman\tN\tNN\t_\t0\t")
    status, _, err = run("predict", "--model", "1.model", "--input", "x.conllx", "--proba")
    assert status == 1 and "eight columns" in err and "json" in err
    status, _, err = run("predict", "--model", "1.model", "--input", "x.conllx", "--format",
                         "columns")  # fmt: skip
    assert status == 1 and "--format columns" in err


def test_a_word_is_explained_against_the_runner_up_head(run):
    out = predicted(run, "--explain-token", "1:1", "--json", "--top", 10_000, model="2.model")
    facts = json.loads(out)
    assert facts["word"] == "It" and " of " in facts["label"] and facts["runner_up"]
    total = sum(feature["amount"] for feature in facts["features"])
    assert total == pytest.approx(facts["gap"]) and facts["gap"] >= 0.0
    status, _, err = run("predict", "--model", "1.model", "--input", "new.conllu",
                         "--explain-token", "2:1")  # fmt: skip
    assert status == 1 and "no other head of this word" in err
    out = predicted(run, "--explain")
    assert out.count("sentence ") == 5 and "no other head" in out


def test_training_says_what_trees_there_are(run, folder):
    bank = small_trees.written_treebank(6, nonprojective=1.0, seed=3)
    (folder / "crossing.conllu").write_bytes(bank.file.text)
    argv = ("train", "parse", "--train", "crossing.conllu", *SMALL, "--order", 1, "--epochs", 1)
    status, _, err = run(*argv, "--tree", "projective", "--model", "c.model")
    assert status == 0 and "not projective" in err and "were lifted" in err
    text = (folder / "dev.conllu").read_text().replace("\tdet\t", "\tarticle\t")
    (folder / "odd.conllu").write_text(text)
    status, out, err = run(*argv, "--dev", "odd.conllu", "--model", "c.model", "--json")
    trained = json.loads(out)
    assert status == 0 and trained["tree"] == "nonprojective" and trained["lifted"] == 0
    assert "relations that training did not see (" in err and "article" in err
    status, out, _ = run("inspect", "--model", "c.model", "--json", "--top", 3)
    facts = json.loads(out)
    assert facts["tree"] == "nonprojective" and len(facts["top"]) == 3 and facts["columns"]


def test_trees_that_are_proved_best_are_counted(run, folder):
    bank = small_trees.written_treebank(8, nonprojective=1.0, seed=3)
    (folder / "cross.conllu").write_bytes(bank.file.text)
    argv = ("train", "parse", "--train", "cross.conllu", *SMALL, "--order", 2, "--epochs", 1)
    status, _, err = run(*argv, "--tree", "nonprojective", "--no-temperature", "--model", "x.model")
    assert status == 0, err
    assert json.loads(run("inspect", "--model", "x.model", "--json")[1])["temperature"] == 1.0
    evaluate = ("evaluate", "--model", "x.model", "--data", "cross.conllu")
    facts = json.loads(run(*evaluate, "--json")[1])
    assert facts["proved_best"] == facts["sentences"] == 8  # short ones are easy
    assert "8 of 8" in "".join(run(*evaluate)[1:])
    parser, bank = hopefear.load("x.model"), read_treebank("cross.conllu")
    assert parser.metrics(bank)["proved_best"] == 100.0
    data = parser.model_.encode(bank)
    decoder = parser.model_.decoder(2)
    search = decoder.structure.search._replace(rounds=1)  # too few to agree on anything
    decoder.structure = decoder.structure._replace(search=search)
    decoder.predict(data.rows)
    assert 0 <= decoder.proved < 8
    assert "proved_best" not in json.loads(
        run("evaluate", "--model", "1.model", "--data", "dev.conllu", "--json")[1]
    )


@pytest.mark.parametrize("loss", ["risk", "weighted-log"])
def test_losses_of_expected_costs_say_why_they_need_order_1(run, loss):
    argv = ("train", "parse", "--train", "train.conllu", *SMALL, "--learner", "crf", "-p",
            f"loss={loss}", "--tree", "projective", "--model", "no.model", "--order")  # fmt: skip
    status, _, err = run(*argv, 2)
    assert status == 1 and "without siblings and grandparents; use order 1" in err
    status, _, err = run(*argv, 1)
    assert status == 0, err


def test_heads_alone(run):
    argv = ("train", "parse", "--train", "train.conllu", *SMALL, "--order", 1, "--unlabelled")
    status, _, err = run(*argv, "--dev", "dev.conllu", "--model", "u.model")
    assert status == 0 and "dev UAS" in err and "LAS" not in err
    _, out, _ = run("evaluate", "--model", "u.model", "--data", "dev.conllu", "--json")
    scores = json.loads(out)
    assert scores["las"] is None and scores["uas"] > 0.0 and set(KEYS) <= set(scores)
    out = predicted(run, model="u.model")
    assert out.split("\n")[3].split("\t")[7] == "_"


def test_a_tagger_makes_the_tags(run, folder):
    argv = ("train", "tag", "--train", "train.conllu", "--column", "upos", "--learner",
            "perceptron", "--epochs", 3, "--model", "pos.model")  # fmt: skip
    assert run(*argv)[0] == 0
    argv = ("train", "parse", "--train", "train.conllu", "--tagger", "pos.model", *SMALL)
    status, _, err = run(*argv, "--order", 1, "--jackknife", 2, "--model", "raw.model")
    assert status == 0 and "% of upos" in err and "upos of 1 taggers" in err
    raw = "".join(
        "\t".join([*line.split("\t")[:2], *"________"]) + "\n" if "\t" in line else "\n"
        for line in SENTENCE.split("\n")[3:]
        if not line.startswith("2.1")
    )
    (folder / "raw.conllu").write_text(raw)
    (folder / "raw.txt").write_text("It's raining.\nStop\n")
    parsed = predicted(run, model="raw.model", name="raw.conllu").split("\n")
    assert parsed[0].split("\t")[6].isdecimal() and parsed[0].split("\t")[3] in "DNVAR"
    out = predicted(run, "--format", "text", "--proba", model="raw.model", name="raw.txt")
    assert "# text = It's raining.\n# probability = " in out
    assert "\training\t_\t" in out and "SpaceAfter=No|Probability=" in out
    argv_ = ("--format", "text", "--output-format", "json")
    rows = predicted(run, *argv_, model="raw.model", name="raw.txt").splitlines()
    row = json.loads(rows[0])
    assert row["text"] == "It's raining." and row["tokens"][0]["end"] == 4
    text = hopefear.load("raw.model").predict_text("It's raining.\nStop\n")[0].as_dict()
    assert text == row
    rich = re.sub(r"(?m)^(\d+(\t[^\t]+){4})\t[^\t]+", r"\1\tA=b", Path("train.conllu").read_text())
    (folder / "rich.conllu").write_text(rich)
    (folder / "rich.toml").write_text('arc = ["h.tag m.tag", "h.lemma", "m.morph h.tag"]\n')
    more = ("--train", "rich.conllu", "--order", 1, "--features", "rich.toml", "--tags", "upos")
    assert run("train", "parse", *SMALL, *more, "--model", "rich.model")[0] == 0
    for argv_ in (("predict", "--input"), ("evaluate", "--json", "--data")):
        status, _, err = run(*argv_, "new.conllu", "--model", "rich.model", "--tagger", "pos.model")
        assert status == 0 and err.count("warning: new.conllu has no lemma and feats, from") == 1
    status, _, err = run("predict", "--model", "1.model", "--input", "raw.conllu")
    assert status == 1 and "raw.conllu has no tags in the column" in err and "--tagger" in err
    status, _, err = run(*argv, "--tagger", "1.model", "--model", "x.model")
    assert status == 1 and "a model of the task parse" in err


def test_a_parser_brings_its_own_taggers(run, folder):
    argv = ("train", "parse", "--train", "train.conllu", "--tagger", "auto", *SMALL, "--order", 1,
            "--jackknife", 2)  # fmt: skip
    status, _, err = run(*argv, "--dev", "dev.conllu", "--model", "auto.model")
    assert status == 0 and "% of upos" in err and "% of xpos" in err, err
    status, out, _ = run("evaluate", "--model", "auto.model", "--data", "dev.conllu", "--json")
    assert status == 0 and json.loads(out)["las"] > 50.0
    status, out, _ = run("inspect", "--model", "auto.model", "--json")
    assert [tagger["columns"] for tagger in json.loads(out)["taggers"]] == ["upos", "xpos"]
    out = predicted(run, "--nbest", 2, model="auto.model", name="dev.conllu")
    assert out.count("# rank = 2") == 3
    parser = hopefear.Parser("perceptron", order=1, features="light", hash_bits=12, epochs=2,
                             tagger="auto", jackknife=2)  # fmt: skip
    X, y, _ = hopefear.read("train.conllu", task="parse")
    parser.fit(X, y, *hopefear.read("dev.conllu", task="parse")[:2])
    model = hopefear.load("auto.model").model_
    np.testing.assert_array_equal(parser.model_.weights, model.weights)
    assert parser.model_.taggers.arrays().keys() == model.taggers.arrays().keys()
    for name, array in model.taggers.arrays().items():
        assert array.tobytes() == parser.model_.taggers.arrays()[name].tobytes(), name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1\ta\t_\tN\tN\t_\t2\tx\t_\t_\n2\tb\t_\tN\tN\t_\t1\tx\t_\t_\n", ":1: expected heads that"),
        ("1\ta\t_\tN\tN\t_\t3\tx\t_\t_\n2\tb\t_\tN\tN\t_\t0\tx\t_\t_\n", ":1: expected a head"),
        ("1\ta\t_\tN\tN\t_\t0\tx\t_\t_\n3\tb\t_\tN\tN\t_\t1\tx\t_\t_\n", ":2: "),
        ("1 a _ N N _ 0 x _ _\n", ":1: expected 10 or 8 columns"),
        ("", "at least one token"),
    ],
)
def test_bad_trees_are_named_with_file_and_line(run, folder, text, said):
    (folder / "bad.conllu").write_text(text)
    argv = ("train", "parse", "--train", "bad.conllu", *SMALL, "--model", "b.model")
    status, _, err = run(*argv)
    assert status == 1 and "bad.conllu" in err and said in err
    assert not (folder / "b.model").exists()


def test_bad_sentences_can_be_left_out(run, folder):
    good = (folder / "dev.conllu").read_text()
    bad = "1\ta\t_\tN\tN\t_\t1\tx\t_\t_\n\n"
    (folder / "some.conllu").write_text(bad + good)
    argv = ("evaluate", "--model", "1.model", "--data", "some.conllu", "--json")
    assert run(*argv)[0] == 1
    status, out, _ = run(*argv, "--on-error", "skip")
    assert status == 0 and json.loads(out)["skipped"] == 1 and json.loads(out)["sentences"] == 3


def test_wrong_options(run):
    argv = ("train", "parse", "--train", "train.conllu", "--model", "w.model")
    assert run(*argv, "--order", 3)[0] == 2
    assert run(*argv, "--jackknife", 3)[0] == 2
    status, _, err = run(*argv, "--features", "rich")
    assert status == 1 and "standard, light" in err
    status, _, err = run(*argv, "--features", "absent.toml")
    assert status == 1 and "absent.toml" in err
    status, _, err = run(*argv, "--tags", "colour")
    assert status == 1 and "no column 'colour'" in err


def test_templates_of_ones_own(run, folder):
    (folder / "few.toml").write_text('arc = ["h.tag m.tag", "distance"]\nlabel = ["m.tag"]\n')
    argv = ("train", "parse", "--train", "train.conllu", "--order", 1, "--features", "few.toml")
    status, _, err = run(*argv, "--learner", "crf", "--epochs", 1, "--hash-bits", 12,
                         "--model", "few.model")  # fmt: skip
    assert status == 0, err
    status, _, err = run("inspect", "--model", "few.model")
    assert status == 0 and "2 of arc, 1 of label" in err and "h.tag=" in err


def test_relations_that_differ_by_blanks_are_refused(tmp_path, capsys):
    word = "{}\tIt\tit\tPRON\tPRP\t_\t{}\t{}\t_\t_\n"
    bank = tmp_path / "a.conllu"
    bank.write_text("".join(word.format(1, 2, r) + word.format(2, 0, "root") + "\n"
                            for r in (" punct", "punct")))  # fmt: skip
    argv = ["train", "parse", "--train", str(bank), "--model", str(tmp_path / "m"), "--quiet"]
    assert main([*argv, "--order", "1", "--hash-bits", "10"]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "a.conllu: the labels ' punct' and 'punct' differ" in err
