"""What is asked of a model is answered alike on the command line, in Python, by the server, a pipe.

A row of the table is a question to a task. Probabilities in text come from one decoder, so answers
are compared as they are, to the last digit.
"""

from __future__ import annotations

import io
import json
import sys
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

import hopefear
from hopefear.cli import main
from hopefear.tasks import service_of

pytestmark = pytest.mark.interpreted

TEXTS = ["good fun, all day", "so bad it hurts", "fun and good", "bad, bad film"] * 3
SENTENCES = [["Ann", "Lee", "left", "Rome"], ["Rome", "fell"], ["Bo", "met", "Ann", "Lee"]] * 3
TAGS = [["B-P", "I-P", "O", "B-L"], ["B-L", "O"], ["B-P", "O", "B-P", "I-P"]] * 3
LISTS = [
    {
        "id": f"l{i}",
        "candidates": [
            {"text": text, "score": -1.0 - c, "features": {"hope": c, "odd": i % 2}}
            for c, text in enumerate(("fear", "hope", "fear"))
        ],
    }
    for i in range(6)
]


WORDS = [["Rome", "fell"], ["the", "cat", "left"]]


class Channel(NamedTuple):
    """A task: its model, an input in Python, in a file, and what the file is called."""

    model: Any
    inputs: list[Any]
    lines: str
    form: str


def models():
    classifier = hopefear.Classifier("perceptron", epochs=2).fit(TEXTS, ["9", "10"] * 6)
    tagger = hopefear.Tagger("perceptron", epochs=2).fit(SENTENCES, TAGS)
    lists = [[dict(each) for each in one["candidates"]] for one in LISTS]
    reranker = hopefear.Reranker("perceptron", epochs=2).fit(lists, [[1, 0, 1]] * 6)
    few: Any = {"order": 1, "features": "light", "hash_bits": 12, "heads": 0}
    trees = [[(2, "subj"), (0, "root")], [(2, "det"), (3, "subj"), (0, "root")]]
    parser = hopefear.Parser("perceptron", epochs=2, **few).fit(WORDS * 3, trees * 3)
    return {"classify": classifier, "tag": tagger, "rerank": reranker, "parse": parser}


@pytest.fixture(scope="module")
def channels():
    made = models()
    columns = "".join("".join(f"{word}\n" for word in each) + "\n" for each in SENTENCES[:3])
    lists = "".join(f"{json.dumps(one)}\n" for one in LISTS)
    text = "".join(f"{each}\n" for each in TEXTS[:4])
    trees = "".join(
        "".join(f"{t}\t{word}" + "\t_" * 8 + "\n" for t, word in enumerate(each, 1)) + "\n"
        for each in WORDS
    )
    return {
        "classify": Channel(made["classify"], TEXTS[:4], text, "text"),
        "tag": Channel(made["tag"], SENTENCES[:3], columns, "columns"),
        "tag text": Channel(made["tag"], ["Ann Lee left Rome. Rome fell."], "", "text"),
        "parse": Channel(made["parse"], WORDS, trees, "conllu"),
        "parse text": Channel(made["parse"], ["Rome fell. The cat left."], "", "text"),
        "rerank": Channel(made["rerank"], LISTS, lists, "json"),
    }


# Task, options of predict, parameters of predict_records, method of the service and its arguments.
QUESTIONS = {
    "classify best": ("classify", "", {}, ("predict", {})),
    "classify probabilities": (
        "classify", "--proba", {"proba": True}, ("predict", {"proba": True}),
    ),
    "classify n best": ("classify", "--nbest 2", {"n": 2}, ("nbest", {"n": 2})),
    "tag best": ("tag", "", {}, ("predict", {})),
    "tag probabilities": ("tag", "--proba", {"proba": True}, ("predict", {"proba": True})),
    "tag n best": ("tag", "--nbest 2", {"n": 2}, ("nbest", {"n": 2})),
    "tag text": ("tag text", "", {}, ("predict", {})),
    "tag text probabilities": (
        "tag text", "--proba", {"proba": True}, ("predict", {"proba": True}),
    ),
    "parse best": ("parse", "", {}, ("predict", {})),
    "parse n best": ("parse", "--nbest 2", {"n": 2}, ("nbest", {"n": 2})),
    "parse text": ("parse text", "", {}, ("predict", {})),
    "rerank best": ("rerank", "", {}, ("predict", {})),
    "rerank probabilities": ("rerank", "--proba", {"proba": True}, ("predict", {"proba": True})),
    "rerank n best": (
        "rerank", "--nbest 2 --proba", {"n": 2, "proba": True}, ("nbest", {"n": 2}),
    ),
}  # fmt: skip


def typed(channel, folder, options, monkeypatch, capsys, pipe):
    """Records that the command line writes of a file, or of a pipe."""
    lines = channel.lines or channel.inputs[0]
    (folder / "data").write_text(lines)
    source = "-" if pipe else "data"
    if pipe:
        stdin = SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(lines.encode())))
        monkeypatch.setattr(sys, "stdin", stdin)
    argv = ["predict", "--model", "m", "--input", source, "--format", channel.form, "--quiet"]
    if channel.form == "text":
        argv[5:7] = ["--input-format", "text"]
    capsys.readouterr()
    assert main([*argv, "--output-format", "json", *options.split()]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def served(channel, method, arguments):
    """Records that the server answers, one after the other."""
    service = service_of(channel.model.model_)
    answers = getattr(service, method)([service.read(x) for x in channel.inputs], **arguments)
    return [one for each in answers for one in each.get("sentences", [each])]


def flat(records):
    """Lines of the command line: of n best sentences, a line an output."""
    return [
        one
        for record in records
        for one in (record["outputs"] if "tokens" in str(record.get("outputs")) else [record])
    ]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_has_one_answer(question, channels, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    name, options, parameters, (method, arguments) = QUESTIONS[question]
    channel = channels[name]
    channel.model.save("m")
    inputs = channel.inputs[0] if name.endswith("text") else channel.inputs
    records = json.loads(json.dumps(channel.model.predict_records(inputs, **parameters)))
    assert records
    assert json.loads(json.dumps(served(channel, method, arguments))) == records
    for pipe in (False, True):
        lines = typed(channel, tmp_path, options, monkeypatch, capsys, pipe)
        assert lines == flat(records), "pipe" if pipe else "file"
    again = type(channel.model).load("m")
    assert json.loads(json.dumps(again.predict_records(inputs, **parameters))) == records


PLACES = ("example", "sentence", "token", "word", "list", "line", "text", "texts")


@pytest.mark.parametrize("task", ["classify", "tag", "rerank"])
def test_a_question_has_one_reason(task, channels, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    channel = channels[task]
    channel.model.save("m")
    (tmp_path / "data").write_text(channel.lines)
    argv = ["predict", "--model", "m", "--input", "data", "--quiet", "--explain", "--json"]
    form = ["--input-format" if channel.form == "text" else "--format", channel.form]
    capsys.readouterr()
    assert main([*argv, *form]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    service = service_of(channel.model.model_)
    answers = [service.explain(service.read(x), 10, {})["reasons"] for x in channel.inputs]
    reasons = [reason for each in answers for reason in each]
    python = {
        "classify": lambda: [channel.model.explain([x], 0) for x in channel.inputs],
        "tag": lambda: [
            channel.model.explain(channel.inputs, i, t)
            for i, words in enumerate(channel.inputs)
            for t in range(len(words))
        ],
        "rerank": lambda: [channel.model.explain(LISTS, i) for i in range(len(LISTS))],
    }[task]()
    facts = [json.loads(json.dumps(reason.facts(10))) for reason in python]
    for channel_of in (lines, reasons):
        bare = [{k: v for k, v in each.items() if k not in PLACES} for each in channel_of]
        assert json.loads(json.dumps(bare)) == facts
