"""JSON lines of tokens: what is read, what is refused where, and objects written back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hopefear.data.files import ReadReport
from hopefear.data.sequences import Column
from hopefear.data.token_files import read_sentences
from hopefear.data.token_objects import with_labels
from hopefear.data.token_stream import read_parts
from hopefear.errors import HopefearError, InputError

pytestmark = pytest.mark.interpreted

ONE = {"tokens": ["He", "runs"], "tags": ["P", "V"], "n": [1, 2], "x": [0.5, 1.5], "id": "7"}


def saved(folder: Path, *objects: object, name: str = "a.jsonl") -> Path:
    lines = [each if isinstance(each, str) else json.dumps(each) for each in objects]
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def test_lists_are_columns_and_labels_the_last(tmp_path: Path) -> None:
    none = {"words": [], "tags": [], "n": []}
    two = {"tags": ["Ü"], "n": [3], "tokens": ["a b"]}
    path = saved(tmp_path, ONE, none, "", two)
    file = read_sentences(path)
    columns = file.sentences.columns
    assert (file.format, list(columns)) == ("json", ["word", "n", "tags"])
    assert columns["tokens"].texts() == columns["0"].texts() == ["He", "runs", "a b"]
    assert columns["tags"].texts() == ["P", "V", "Ü"] and columns["n"].texts() == ["1", "2", "3"]
    assert file.sentences.starts.tolist() == [0, 2, 3]
    assert file.sentences.lines is not None and file.sentences.lines.tolist() == [1, 1, 4]
    made = b"".join(with_labels(file, "tags", Column.of(["A", "B", "C"]))).decode()
    assert [json.loads(line)["tags"] for line in made.split("\n") if line] == [
        ["A", "B"],
        [],
        ["C"],
    ]
    assert json.loads(made.split("\n")[0]) == {**ONE, "tags": ["A", "B"]}
    parts = [part.file for part in read_parts(path, format="json", piece_bytes=80) if part.file]
    assert [len(part.sentences) for part in parts] == [1, 1]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("{", "a JSON object a line (jq -c '.[]' makes them of an array), found '{'"),
        ("[1]", "a JSON object a line"),
        ({"text": "a"}, "an object with a list of at most 1,000,000 strings under tokens, found"),
        ({"tokens": "a b"}, "an object with a list of at most"),
        ({"tokens": [1.5]}, "an object with a list of at most"),
        ({"tokens": [""]}, "an object with a list of at most"),
        ({"tokens": ["\ud800"]}, "an object with a list of at most"),
        ({"tokens": ["a"], "n": [1]}, "a list of 1 strings under tags, one a token, found 'null'"),
        ({"tokens": ["a"], "n": [1], "tags": ["X", "Y"]}, "a list of 1 strings under tags"),
        ({"tokens": ["a"], "n": [1], "tags": [None]}, "a list of 1 strings under tags"),
    ],
)
def test_bad_lines_are_named_or_skipped(tmp_path: Path, bad: object, message: str) -> None:
    path = saved(tmp_path, ONE, bad, ONE)
    with pytest.raises(InputError) as caught:
        read_sentences(path)
    assert str(caught.value).startswith(f"{path}:2: expected {message}")
    report = ReadReport()
    assert len(read_sentences(path, on_error="skip", report=report).sentences) == 2
    assert (report.rows, report.skipped) == (2, 1)


def test_arrays_and_other_objects_are_no_tokens(tmp_path: Path) -> None:
    for text in (json.dumps([ONE, ONE]), json.dumps([ONE], indent=1), json.dumps(ONE, indent=1)):
        with pytest.raises(InputError, match=r":1: expected a JSON object a line .*jq -c"):
            read_sentences(saved(tmp_path, text))
    with pytest.raises(InputError, match=": expected at least one token"):
        read_sentences(saved(tmp_path, {"tokens": []}))
    with pytest.raises(HopefearError, match="JSON has its own column names"):
        read_sentences(saved(tmp_path, ONE), format="json", columns=("a",))
    assert read_sentences(saved(tmp_path, "{ -LRB-", "[ -LRB-")).format == "columns"
