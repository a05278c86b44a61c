"""What ``hopefear.read`` gives trains the model of the command line, byte for byte."""

from __future__ import annotations

import json

import numpy as np
import pytest

import hopefear
from hopefear import Classifier, Parser, Reranker, Tagger
from hopefear.cli import main
from hopefear.data.generators import candidate_lists
from hopefear.metrics.lists import metric_named
from hopefear.storage import load

pytestmark = pytest.mark.interpreted

GOLD = "(S1 (S (NP (DT the) (NN cat)) (VP (VBD sat) (PP (IN on) (NP (NN mats)))) (. .)))"
FLAT = "(S1 (S (NP (DT the) (NN cat)) (VP (VBD sat) (IN on) (NP (NN mats))) (. .)))"
WRONG = "(S1 (NP (NP (DT the) (NN cat)) (VP (VBD sat)) (PP (IN on) (NN mats)) (. .)))"
WORDS = ["the", "good", "old", "film", "was", "not", "so", "bad", "as", "all", "that", "ended"]


def examples(line):
    """Labelled texts, a line each."""
    draw = np.random.default_rng(1)
    for i in range(24):
        text = " ".join(draw.choice(WORDS, 5)) + (" nice" if i % 2 else " dull")
        yield line.format("pos" if i % 2 else "neg", text, i)


def rows():
    for line in examples("{0}\t{1}"):
        label, text = line.split("\t")
        columns = sorted({WORDS.index(word) + 1 for word in text.split() if word in WORDS})
        more = [len(WORDS) + 1 + ("nice" in text)]
        yield " ".join(["1" if label == "pos" else "-1", *(f"{j}:1.5" for j in columns + more)])


def judged_lists():
    lists = candidate_lists(30, 5, 12, doubt=3.0, seed=4)
    for i, start in enumerate(lists.starts[:-1].tolist()):
        candidates = [
            {
                "text": f"text {c % 4}",
                "score": float(lists.scores[c]),
                "cost": float(lists.costs[c]),
                "features": {**lists.features_of(c), "tag": f"x{c % 3}"},
            }
            for c in range(start, int(lists.starts[i + 1]))
        ]
        yield json.dumps({"id": f"l{i}", "weight": 1.0 + i % 2, "candidates": candidates})


def spoken_lists():
    reference = "the cat sat on the mat"
    for i in range(8):
        endings = ((" x y", 2.0), (" too", 1.0), ("", 0.0))
        candidates = [
            {"text": f"{reference}{end}", "score": score, "features": {"more": end}}
            for end, score in endings
        ]
        yield json.dumps({"id": i, "reference": reference, "candidates": candidates})


def parses(counts=False):
    for i in range(8):
        trees = [WRONG, GOLD, FLAT] if i % 2 else [FLAT, WRONG, GOLD]
        numbers = {"gold_brackets": 6, "test_brackets": 6}
        candidates = [
            {"tree": tree, "logprob": -9.0 - c, **({"matched": 5 - c, **numbers} if counts else {})}
            for c, tree in enumerate(trees)
        ]
        gold = {} if counts else {"gold": GOLD}
        yield json.dumps({"id": f"p{i}", **gold, "candidates": candidates})


def moses():
    for i in range(6):
        for k, end in enumerate(("x", "e", "y e")):
            yield f"{i} ||| a b c d {end} ||| LM0= -{k + i % 3} TM0= -{(k + i) % 3} 2 ||| -{k}.5"


TOKENS = ("Ann NNP B-P 2 subj", "met VBD O 0 root", "Bo NNP B-P 2 obj", ". . O 2 punct")


def sentences(line):
    """Tagged sentences, a line a token and an empty one behind each."""
    for i in range(10):
        for t, token in enumerate(TOKENS[i % 2 :], 1):
            word, tag, label, head, relation = token.split()
            head = max(0, int(head) - i % 2)
            yield line.format(t, word, tag, label, head, relation)
        yield ""


def objects():
    for i in range(10):
        columns = list(zip(*(token.split() for token in TOKENS[i % 2 :]), strict=True))
        yield json.dumps({"tokens": columns[0], "pos": columns[1], "ner_tags": columns[2]})


CONLLU = "{0}\t{1}\t_\t{2}\t_\t_\t{4}\t{5}\t_\t_"
SMALL = {"order": 1, "features": "light", "hash_bits": 12}
PLAIN = metric_named("bleu", tokenize="none")
# File, its lines, options of train, parameters of the estimator, parameters of read.
FILES = {
    "classify svmlight": (rows, "", {}, {}),
    "classify tsv": (lambda: examples("{0}\t{1}"), "", {}, {}),
    "classify csv": (lambda: ["label,text", *examples("{0},{1}")], "", {}, {}),
    "classify json": (lambda: examples('{{"label": "{0}", "text": "{1}"}}'), "", {}, {}),
    "classify fasttext": (lambda: examples("__label__{0} {1}"), "", {}, {}),
    "classify vw": (lambda: examples("{0} | {1}"), "", {}, {}),
    "tag columns": (lambda: sentences("{1} {2} {3}"), "", {}, {}),
    "tag conllu": (lambda: sentences(CONLLU), "--column upos", {}, {"column": "upos"}),
    "tag crfsuite": (lambda: sentences("{3}\tw={1}\tt={2}:2"), "", {}, {}),
    "tag json": (objects, "", {}, {}),
    "parse conllu": (
        lambda: ["# sent_id = 1", *sentences(CONLLU)],
        "--order 1 --features light --hash-bits 12",
        SMALL,
        {},
    ),
    "parse conllx": (
        lambda: sentences("{0}\t{1}\t_\t{2}\t{2}\t_\t{4}\t{5}\t_\t_"),
        "--order 1 --features light --hash-bits 12",
        SMALL,
        {},
    ),
    "rerank json": (judged_lists, "", {}, {}),
    "rerank json best": (judged_lists, "--dedup best", {"dedup": "best"}, {}),
    "rerank json texts": (spoken_lists, "--metric bleu", {"metric": "bleu"}, {}),
    "rerank ptb": (parses, "--min-count 1", {"min_count": 1}, {}),
    "rerank ptb counts": (lambda: parses(True), "--min-count 1", {"min_count": 1}, {}),
    "rerank bllip": (
        lambda: [f"2\tb{i}\n-1.5\n{WRONG}\n-2.5\n{GOLD}\n" for i in range(6)],
        "--min-count 1 --gold GOLD",
        {"min_count": 1},
        {"gold": "GOLD"},
    ),
    "rerank moses": (moses, "--refs REFS", {"metric": PLAIN}, {"refs": "REFS"}),
}
ESTIMATORS = {"classify": Classifier, "tag": Tagger, "rerank": Reranker, "parse": Parser}
# What a header says of files alone: their names and columns, and options to be typed again.
OF_FILES = ("/about/data/source", "/about/config", "/about/reading", "/about/estimator")


def differences(ours, theirs, place=""):
    """Places where two headers differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            yield from differences(ours.get(key), theirs.get(key), f"{place}/{key}")
    elif ours != theirs and not place.startswith(OF_FILES):
        yield place, ours, theirs


@pytest.mark.parametrize("name", FILES)
def test_a_file_trains_the_same_model_from_python(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    task, format, *_ = name.split()
    lines, argv, params, reading = FILES[name]
    (tmp_path / "data").write_text("".join(f"{line}\n" for line in lines()))
    (tmp_path / "GOLD").write_text(f"{GOLD}\n" * 6)
    (tmp_path / "REFS").write_text("a b c d e\n" * 6)
    more = ["--learner", "perceptron", "--epochs", "2", "--quiet"]
    more += ["--format", format] * (task != "parse")
    assert main(["train", task, "--train", "data", *more, *argv.split(), "--model", "file"]) == 0
    X, y, _ = hopefear.read("data", format, task=task, **reading)
    ESTIMATORS[task]("perceptron", epochs=2, **params).fit(X, y).save("python")
    (header, arrays), (theirs, others) = (load(path, "model") for path in ("file", "python"))
    assert list(differences(header, theirs)) == []
    assert arrays.keys() == others.keys()
    for key, array in arrays.items():
        np.testing.assert_array_equal(array, others[key], key)
