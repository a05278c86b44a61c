"""``hopefear.read``: what the command line reads, for Python."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import hopefear
from hopefear.errors import HopefearError

pytestmark = pytest.mark.interpreted


def saved(folder: Path, text: str, name: str = "data") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_examples_fit_a_classifier(tmp_path: Path) -> None:
    for text in (
        "1 1:1 2:2\n-1 3:1\n",
        "spam 1:1\nham 2:1\n",
        "1 |a b\n2 |a c\n",
        "a\tx y\nb\tz\n",
    ):
        X, y, names = hopefear.read(saved(tmp_path, text))
        assert (X.shape[0] if hasattr(X, "shape") else len(X)) == len(y) == 2
        assert names is None or {*names} == {name for row in X for name in row}
        assert hopefear.Classifier("perceptron").fit(X, y).predict(X).tolist() == y.tolist()


LINES = {
    "svmlight": "{0} 1:{1}\n",
    "words of svmlight": "{0}x 1:{1}\n",
    "tsv": "{0}\tgood film {1}\n",
    "csv": '"{0}","good film {1}"\n',
    "json": '{{"text": "good film {1}", "label": "{0}"}}\n',
    "fasttext": "__label__{0} good film {1}\n",
    "vw": "{0} | good film:{1}\n",
}


@pytest.mark.parametrize("form", LINES)
def test_targets_of_regression_are_no_classes(tmp_path: Path, form: str) -> None:
    def file(labels: list[object]) -> Path:
        lines = "".join(LINES[form].format(label, i) for i, label in enumerate(labels))
        return saved(tmp_path, ("label,text\n" if form == "csv" else "") + lines)

    for labels in (
        [i / 8 for i in range(1, 99)],
        [7 * i for i in range(30)],
        [i / 8 for i in range(8)],
    ):
        if form.startswith("words") and len(labels) < 21:
            continue
        path = file(labels)
        with pytest.raises(HopefearError, match="look like targets of regression"):
            hopefear.read(path)
        assert len(set(hopefear.read(path, many_classes=True).y)) == len(labels)
    for labels in ([i % 9 / 2 for i in range(100)], [*range(15)], [i % 40 for i in range(80)]):
        assert len(set(hopefear.read(file(labels)).y)) == len(set(labels))


def test_labels_that_differ_by_blanks_or_are_lists(tmp_path: Path) -> None:
    for text, message in (
        ("punct\ta\n punct\tb\nx\tc\n", "' punct' and 'punct' differ by white space only"),
        ('text,label\na,x\nb,y\nc,"y,x"\n', "label 'y,x' is a list of others"),
    ):
        with pytest.raises(HopefearError, match=message):
            hopefear.read(saved(tmp_path, text))
    text = 'text,label\na,"Paris, France"\nb,"France, west"\n'
    assert hopefear.read(saved(tmp_path, text)).y.tolist() == ["Paris, France", "France, west"]


def test_tokens_fit_a_tagger(tmp_path: Path) -> None:
    columns = "He PRP B-NP\nsleeps VBZ O\n\nShe PRP B-NP\n"
    conllu = "1\tHe\the\tPRON\tPRP\t_\t0\troot\t_\t_\n\n1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_\n"
    crfsuite = "B-NP\tw=He\tp=PRP\nO\tw=is\n\nB-NP\tw=She\tlen:2\n"
    X, y, names = hopefear.read(saved(tmp_path, columns))
    assert X == [[("He", "PRP"), ("sleeps", "VBZ")], [("She", "PRP")]]
    assert (y, names) == ([["B-NP", "O"], ["B-NP"]], ("word", "pos"))
    assert hopefear.Tagger("perceptron", columns=names).fit(X, y).predict(X) == y
    assert hopefear.Tagger("perceptron").fit(X, y).predict(X) == y
    X, y, names = hopefear.read(saved(tmp_path, conllu, "a.conllu"))
    assert y == [["PRON"], ["INTJ"]]
    assert names == ("word", "lemma", "xpos", "feats", "head", "deprel", "deps", "misc")
    assert X[0][0][:3] == ("He", "he", "PRP")
    assert hopefear.read(tmp_path / "a.conllu", column="xpos").y == [["PRP"], ["UH"]]
    X, y, names = hopefear.read(saved(tmp_path, crfsuite))
    assert X[1] == [{"w=She": 1.0, "len": 2.0}] and names == ()
    assert hopefear.Tagger("perceptron").fit(X, y).predict(X) == y
    assert hopefear.read(saved(tmp_path, "one\ntwo\n"), "columns").y is None


def test_a_tagger_reads_the_words_of_conllu(tmp_path: Path) -> None:
    words = {"a": "DET", "dog": "NOUN", "barks": "VERB"}
    orders = ["a dog barks", "barks a dog", "dog barks a"]
    rows = "\n".join(
        "".join(
            f"{k}\t{word}\t_\t{words[word]}\t_\t_\t0\t_\t_\t_\n"
            for k, word in enumerate(order.split(), 1)
        )
        for order in orders
    )
    X, y, names = hopefear.read(saved(tmp_path, rows, "a.conllu"))
    questions = [[("dog", *["_"] * 7)], [("a", *["_"] * 7)]]
    for how in ({}, {"columns": names}):
        tagger = hopefear.Tagger("perceptron", **how).fit(X, y)
        assert tagger.predict(questions) == [["NOUN"], ["DET"]]
    plus = "# global.columns = FORM ID UPOS X:Y\ndog\t1\tNOUN\ta\n"
    X, y, names = hopefear.read(saved(tmp_path, plus))
    assert (X, y, names) == ([[("dog", "a")]], [["NOUN"]], ("word", "X:Y"))
    assert hopefear.read(tmp_path / "data", column="form").X == [[("NOUN", "a")]]


def test_json_lines_of_tokens(tmp_path: Path) -> None:
    lines = '{"id": 1, "tokens": ["He", "runs"], "pos": ["P", "V"], "ner_tags": ["B-X", "O"]}\n'
    path = saved(tmp_path, lines * 2)
    X, y, names = hopefear.read(path)
    assert (X, names) == ([[("He", "P"), ("runs", "V")]] * 2, ("word", "pos"))
    assert hopefear.Tagger("perceptron").fit(X, y).predict(X) == y == [["B-X", "O"]] * 2
    assert hopefear.read(path, "json", task="tag", column="pos").y == [["P", "V"]] * 2
    numbers = saved(tmp_path, lines.replace('"B-X", "O"', "3, 0"), "numbers")
    with pytest.raises(HopefearError, match=r"numbers:1: expected names of labels under ner_tags"):
        hopefear.read(numbers)
    assert hopefear.read(numbers, column="pos").X[0] == [("He", "3"), ("runs", "0")]
    text = '{"text": "a word", "label": "x"}\n{"text": "more", "label": "y"}\n'
    for form in ("auto", "json"):
        assert hopefear.read(saved(tmp_path, text), form).y.tolist() == ["x", "y"]
    both = '{"text": "He runs", "tokens": ["He", "runs"], "label": "x"}\n'
    assert hopefear.read(saved(tmp_path, both + both.replace('"x"', '"y"'))).X == ["He runs"] * 2


def test_lists_fit_a_reranker(tmp_path: Path) -> None:
    one = {"candidates": [{"text": "a", "cost": 0, "features": {"f": 1}}, {"text": "b", "cost": 1}]}
    path = saved(tmp_path, f"{json.dumps(one)}\n" * 2)
    X, y, names = hopefear.read(path)
    assert (y, names) == ([[0.0, 1.0]] * 2, ["f"])
    assert hopefear.Reranker("perceptron").fit(X, y).predict(X).tolist() == [0, 0]
    moses = "0 ||| a b ||| LM0= -1 ||| -3\n0 ||| x b ||| LM0= -2 ||| -3\n"
    X, y, names = hopefear.read(saved(tmp_path, moses))
    assert len(X[0]["candidates"]) == 2 and y is None and names == ["LM0"]


def test_treebanks_fit_a_parser(tmp_path: Path) -> None:
    lines = "1\tIt\tit\tPRON\tPRP\t_\t2\texpl\t_\t_\n2\trains\t_\tVERB\tVBZ\t_\t0\troot\t_\t_\n\n"
    path = saved(tmp_path, lines * 2, "a.conllu")
    X, y, names = hopefear.read(path, task="parse")
    assert X[0][1] == {"form": "rains", "upos": "VERB", "xpos": "VBZ"} and len(names) == 5
    assert y == [[(2, "expl"), (0, "root")]] * 2
    few = {"order": 1, "features": "light", "hash_bits": 12, "epochs": 1}
    assert hopefear.Parser("perceptron", **few).fit(X, y).predict(X) == y
    with pytest.raises(HopefearError, match="is conllu, not conllx"):
        hopefear.read(path, "conllx")
    assert hopefear.read(path).y == [["PRON", "VERB"]] * 2


def test_a_comment_does_not_make_tokens_of_examples(tmp_path: Path) -> None:
    assert hopefear.read(saved(tmp_path, "# a comment\n1 1:1\n0 2:1\n")).y.tolist() == ["1", "0"]
    with pytest.raises(HopefearError, match="have no option 'foo'"):
        hopefear.read(saved(tmp_path, "1 1:1\n0 2:1\n"), foo=1)


def test_wrong_words_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, "1 1:1\n")
    for how in ({"format": "xml"}, {"task": "tune"}, {"column": "x"}, {"encoding": "none"}):
        with pytest.raises(HopefearError):
            hopefear.read(path, **how)


def test_it_is_imported_when_asked_for() -> None:
    code = "import sys, hopefear; assert 'numpy' not in sys.modules; hopefear.read; "
    code += "assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
