"""Labelled examples in all their formats: recognised, read alike, refused by file and line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from hopefear.cli import main
from hopefear.data.examples import examples
from hopefear.data.files import ReadReport
from hopefear.data.vowpal import parse_line
from hopefear.errors import HopefearError, InputError

pytestmark = pytest.mark.interpreted

ROWS = [("good", "A fine film"), ("bad", "Not fine, “at all”"), ("good", "Fine! it's fine")]


def csv(delimiter: str = ",", names: tuple[str, str] = ("label", "text")) -> str:
    quoted = [[a, '"' + b.replace('"', '""') + '"'] for a, b in ROWS]
    return "".join(f"{delimiter.join(row)}\n" for row in [[*names], *quoted])


TEXTS = {
    "tsv": "".join(f"{a}\t{b}\n" for a, b in ROWS),
    "csv": csv(),
    "csv with semicolons": csv(";"),
    "csv with tabs": csv("\t"),
    "csv of other names": csv(names=("Stars", "Review")),
    "json": "".join(json.dumps({"text": b, "label": a, "id": 7}) + "\n" for a, b in ROWS),
    "fasttext": "".join(f"__label__{a} {b}\n" for a, b in ROWS),
}


def saved(folder: Path, text: str | bytes, name: str = "data.txt") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize("form", TEXTS)
@pytest.mark.parametrize("name", ["data.txt", "data.txt.gz"])
def test_texts_are_recognised_and_read_alike(form: str, name: str, tmp_path: Path) -> None:
    text = TEXTS[form].encode()
    path = saved(tmp_path, gzip.compress(text) if name.endswith("gz") else text, name)
    report = ReadReport()
    file = examples(path, report=report)
    data = file.read(report=report)
    assert file.format == form.split()[0]
    assert report.notes == ([] if form == "tsv" else [file.message])
    like = examples(saved(tmp_path, TEXTS["tsv"], "like.tsv")).read()
    assert data.classes == like.classes == ("bad", "good")
    assert data.rows.labels.tolist() == like.rows.labels.tolist() == [1, 0, 1]
    assert data.features.names(data.rows.indices) == like.features.names(like.rows.indices)
    named = examples(path, file.format).read()
    assert named.rows.indices.tolist() == data.rows.indices.tolist()


def test_records_of_several_lines_keep_their_line_numbers(tmp_path: Path) -> None:
    path = saved(tmp_path, 'text,label\n"two\nlines, ""quoted""",a\nplain,b\nshort\n', "a.csv")
    with pytest.raises(InputError, match=r"a\.csv:5: expected 2 columns, as the header has"):
        examples(path).read()
    report = ReadReport()
    file = examples(path, on_error="skip", report=report)
    data = file.read(on_error="skip", report=report)
    assert (len(data), report.skipped) == (2, 1)
    names = data.features.names(data.rows.indices[: data.rows.indptr[1]])
    assert sorted(names) == ["lines", "quoted", "two"]


@pytest.mark.parametrize(
    ("text", "form", "message"),
    [
        ("good,a film\nbad,another\n", "csv", r":1: expected a header that names the text"),
        ('text,label\n"open,a\nb,c\n', "csv", r":2: expected CSV, with quotes that are closed"),
        ("text,label\nfine,\n", "csv", r":2: expected a label in 'label'"),
        ('{"text": "a", "label": "x"}\n{"text": 3}\n', "json", r":2: expected a string in 'text'"),
        ('{"text": "a", "label": "x"}\nhello\n', "json", r":2: expected a JSON object"),
        ('{"text": "a", "label": [1]}\n', "json", r":1: expected a string or a number in 'label'"),
        ('{"body": "a", "kind": "b"}\n', "json", r"expected a JSON object with 'text'|a label in"),
        ("__label__a fine\nnone\n", "fasttext", r":2: expected a label in '__label__LABEL'"),
        ("__label__a __label__b fine\n", "fasttext", r":1: expected one label a line"),
        ("__label__a x\n__label__b y __label__c\n", "auto", r":2: .* '__label__b __label__c'"),
        ("__label__a x\n__label__a,__label__b y\n", "auto", r":2: expected one label a line"),
        ("__label__a x\n__label__b, c y\n", "auto", r":2: expected .* without ',' at its end"),
        ("1 |a b\n1 a b\n", "vw", r":2: expected '\|' before the features"),
        ("1 |a b\n1|a b\n", "vw", r":2: expected a label before '\|'"),
        ("1 |a b:x\n", "vw", r":1: expected a number after ':'"),
        ("1 -2 |a b\n", "vw", r":1: expected an importance of 0 or more"),
        ("1 |a b\n1:0.5 |a b\n", "auto", r":2: expected one number or word .* found '1:0.5'"),
        ("1:-1:0.5 |a b\n", "auto", r":1: expected one number or word as the label"),
        ("1:2 2:0 3:1 4:1 |a b\n", "auto", r":1: expected one number or word as the label"),
        ("0,1 |a b\n", "auto", r":1: expected one number or word as the label"),
        ("shared |a b\n", "auto", r":1: expected one number or word as the label"),
        ("1 |a b\nnan |a b\n", "auto", r":2: expected a finite number or a word .* found 'nan'"),
        ("a 1:1\nnan 1:1\n", "auto", r":2: expected a finite number or a word .* found 'nan'"),
        ("inf 1:1\n", "auto", r":1: expected a finite number or a word as the label"),
        ("1 1:1\ninf 1:1\n", "auto", r":2: expected a (finite )?number"),
        ('{"words": "a", "kind": "b"}\n', "auto", r":1: .* 'fields words, kind'"),
        ('{"tokens": ["a"], "ner_tags": [1]}\n', "auto", r":1: .* 'fields tokens, ner_tags'"),
        ('{"text": "a", "label": "b"\n', "auto", r":1: expected a JSON object on every line, with"),
        ('{\n"text": "a"}\n', "auto", r":1: expected a JSON object on every line.*jq -c \."),
        (
            '[{"text": "a", "label": "b"}]\n',
            "auto",
            r":1: .*the text and the label.*jq -c '\.\[\]'",
        ),
        ('["a", "b"]\n', "auto", r":1: expected a JSON object on every line"),
    ],
)
def test_what_is_wrong_is_told(text: str, form: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(HopefearError, match=message):
        examples(saved(tmp_path, text), form).read()


def test_a_fasttext_label_may_stand_anywhere(tmp_path: Path) -> None:
    path = saved(tmp_path, "good __label__a film\nbad __label__b\n\n__label__a\n")
    file = examples(path)
    data = file.read()
    assert file.format == "fasttext" and data.rows.labels.tolist() == [0, 1, 0]
    assert data.features.names(data.rows.indices) == ["good", "film", "bad"]


def test_texts_may_begin_with_brackets(tmp_path: Path) -> None:
    features = examples(saved(tmp_path, TEXTS["tsv"])).read().features
    for text in ("[1] a film\n", "{sic} a film\n", "[x]\tfilm\n"):
        like = {"features": features, "classes": ("bad", "good"), "require_labels": False}
        assert len(examples(saved(tmp_path, text), **like).read(**like)) == 1
    assert examples(saved(tmp_path, "[x]\tfilm\ny\tfilm\n")).read().classes == ("[x]", "y")
    with pytest.raises(InputError, match="'fields words'"):
        examples(saved(tmp_path, '{"words": "a film"}\n'), **like)


def test_qid_is_counted(tmp_path: Path) -> None:
    report = ReadReport()
    path = saved(tmp_path, "2 qid:1 1:1\n1 2:1\n0 qid:2 1:1\n")
    assert len(examples(path).read(report=report)) == 3 and report.qids == 2


def test_columns_can_be_named(tmp_path: Path) -> None:
    path = saved(tmp_path, "id,title,text,kind\n1,x,one two,a\n2,y,three,b\n")
    with pytest.raises(InputError, match="a header that names the text and the label"):
        examples(path, "csv")
    data = examples(path, text_column="title", label_column="kind").read()
    assert data.classes == ("a", "b") and data.features.names([0, 1]) == ["x", "y"]
    with pytest.raises(InputError, match="a header with 'nothing'"):
        examples(path, text_column="nothing")
    path = saved(tmp_path, '{"q": "one", "a": 3}\n{"q": "two", "a": 10}\n')
    assert examples(path, text_column="q", label_column="a").read().classes == ("3", "10")


def test_a_text_with_a_quote_in_a_table_of_tabs(tmp_path: Path) -> None:
    path = saved(tmp_path, 'label\ttext\na\t"Well," he said\nb\tno\n')
    assert len(examples(path).read()) == 2


def test_lines_of_vowpal_wabbit(tmp_path: Path) -> None:
    text = "1 2.5 'tag |title good fun:2 |body:0.5 good bad:4\n-1 |body bad\n\n0 0.5 1 t|x a a\n"
    file = examples(saved(tmp_path, text))
    data = file.read()
    assert (file.format, data.classes) == ("vw", ("-1", "0", "1"))
    assert data.rows.weights.tolist() == [2.5, 1.0, 0.5]
    names = data.features.names(range(data.n_features))
    assert names == ["title^good", "title^fun", "body^good", "body^bad", "x^a"]
    assert data.rows.values.tolist() == [1.0, 2.0, 0.5, 2.0, 1.0, 2.0]
    again = saved(tmp_path, "|title good new\n7 |x a\n", "b.vw")
    report = ReadReport()
    given = {"features": data.features, "classes": data.classes, "require_labels": False}
    (block,) = examples(again, **given).blocks(report=report, **given)
    assert block.rows.indices.tolist() == [0, 4] and block.rows.labels.tolist() == [-1, -1]
    assert report.unknown_features == 1
    assert parse_line("x |a:2 b:3 |a b").features == {"a^b": 7.0}


def test_svmlight_with_words_as_labels(tmp_path: Path) -> None:
    file = examples(saved(tmp_path, "spam 1:1 3:2\nham 2:1 # why\n\nspam\nham 4:1 1:1\n"))
    data = file.read()
    assert (file.format, data.classes) == ("svmlight", ("ham", "spam"))
    assert data.rows.labels.tolist() == [1, 0, 1, 0]
    given = {"features": data.features, "classes": data.classes}
    other = saved(tmp_path, "eggs 1:1\nham 2:1\n1:1\n", "b.svm")
    with pytest.raises(
        InputError, match=r"b\.svm:1: expected a label out of ham, spam, found 'eggs"
    ):
        examples(other, **given).read(**given)
    (block,) = examples(other, require_labels=False, **given).blocks(require_labels=False, **given)
    assert block.rows.labels.tolist() == [-1, 0, -1]


def test_numbers_stay_numbers(tmp_path: Path) -> None:
    for text in ("1 1:2\n-1 3:4\n", "+1 qid:3 1:2\n0\n", "2\t1:3\n1\t2:1\n"):
        file = examples(saved(tmp_path, text))
        assert (file.format, file.message, file.words) == ("svmlight", "", None), text


def test_by_way_of_the_command(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    saved(tmp_path, csv() * 1 + "".join(f"{a},{b.replace(',', ' ')}\n" for a, b in ROWS), "a.csv")
    assert main(["train", "classify", "--train", "a.csv", "--model", "m", "--epochs", "1"]) == 0
    said = capsys.readouterr().err
    assert "a.csv: a header and commas between columns, the text in 'text', the label in" in said
    saved(tmp_path, "text,label\nfine film,\nnot at all,bad\n", "new.csv")
    assert main(["predict", "--model", "m", "--input", "new.csv"]) == 0
    assert capsys.readouterr().out.split() == ["good", "bad"]
    saved(tmp_path, "fine film\tnot a label but text\n?\tnot at all\nbad\tnot at all\n", "new.txt")
    assert main(["predict", "--model", "m", "--input", "new.txt"]) == 0
    out, err = capsys.readouterr()
    assert len(out.split()) == 3 and "1 lines have a tab behind what is no class" in err
    saved(tmp_path, "1 |a b c\n0 |a d\n", "a.vw")
    assert main(["train", "classify", "--train", "a.vw", "--model", "v", "--epochs", "1"]) == 0
    assert main(["evaluate", "--model", "v", "--data", "a.vw", "--json"]) == 0
    assert main(["inspect", "--model", "v"]) == 0
    assert "a^b" in capsys.readouterr().err
