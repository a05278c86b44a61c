"""Files of columns: what is a token, what is refused where, and every byte written back."""

from __future__ import annotations

import gzip
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import DATA

from hopefear.data import token_files
from hopefear.data.files import ReadReport
from hopefear.data.sequences import Column
from hopefear.data.token_files import TokenFile, read_sentences
from hopefear.data.write_tokens import with_columns, write_with_column, write_with_columns
from hopefear.errors import HopefearError, InputError

pytestmark = pytest.mark.interpreted


def saved(folder: Path, content: bytes, name: str = "a.txt") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def tokens(file: TokenFile) -> list[list[tuple[str, ...]]]:
    s = file.sentences
    rows = list(zip(*(column.texts() for column in s.columns.values()), strict=True))
    bounds = s.starts.tolist()
    return [rows[a:b] for a, b in pairwise(bounds)]


def written(file: TokenFile, *columns: list[str], comments=None) -> bytes:
    named = {f"new{i}": column for i, column in enumerate(columns)}
    return b"".join(with_columns(file, named, comments=comments))


SPACED = "# a comment of six words\nA  DT B-NP\n# NN I-NP \n\n  \t\nÄrger\u00a0s NN O\n"


def test_blank_lines_comments_and_the_word_hash(tmp_path: Path) -> None:
    file = read_sentences(saved(tmp_path, SPACED.encode()))
    assert tokens(file) == [
        [("A", "DT", "B-NP"), ("#", "NN", "I-NP")],
        [("Ärger\u00a0s", "NN", "O")],
    ]
    assert file.sentences.lines is not None
    assert file.sentences.lines.tolist() == [2, 3, 6]
    assert (file.format, file.separator) == ("columns", b" ")
    assert len(file.sentences) == 2


def test_comments_by_decree(tmp_path: Path) -> None:
    path = saved(tmp_path, b"# of 3\na b c\n")
    assert [len(read_sentences(path, comments=c).sentences.lines) for c in (None, False, True)] == [
        2,
        2,
        1,
    ]
    with pytest.raises(InputError, match=":2: expected 2 columns as in line 1"):
        read_sentences(saved(tmp_path, b"# x\na b c\n"), comments=False)


@pytest.mark.parametrize("header", ["word\tpos\tlabel", "Token\tPOS_tag\tNER-tags", "form pos tag"])
def test_a_first_line_that_names_columns_is_no_token(tmp_path: Path, header: str) -> None:
    glue = "\t" if "\t" in header else " "
    rows = [glue.join(row) + "\n" for row in (("He", "PRP", "O"), ("ran", "VB", "O"))]
    content = f"# one file of tokens\n{header}\n{''.join(rows)}\n{header}\n{rows[0]}".encode()
    report = ReadReport()
    file = read_sentences(saved(tmp_path, content), report=report)
    assert list(file.sentences.columns) == ["word", "pos", "label"]
    assert tokens(file) == [[("He", "PRP", "O"), ("ran", "VB", "O")], [("He", "PRP", "O")]]
    assert [note.partition(" ")[0] for note in report.notes] == [f"{tmp_path}/a.txt:2:"]
    assert "names the columns and is no token" in report.notes[0]
    assert written(file) == content
    named = read_sentences(saved(tmp_path, content), columns=("w", "p", "y"))
    assert named.sentences.columns["w"].texts() == ["He", "ran", "He"]


@pytest.mark.parametrize(
    "content", ["word\tpos\na\tneg\nb\tpos\n", "the label\na b\n", "form\na\n"]
)
def test_words_like_names_of_columns_are_tokens(tmp_path: Path, content: str) -> None:
    file = read_sentences(saved(tmp_path, content.encode()))
    assert file.sentences.n_tokens == content.count("\n")


GERMEVAL = """#\thttp://de.wikipedia.org/wiki/Manfred_Korfmann [2009-10-17]
1\tEr\tO\tO
2\tmag\tO\tO
3\tUlm\tB-LOC\tO

#\thttp://de.wikipedia.org/wiki/Ulm [2009-10-17]
1\tUlm\tB-LOC\tO
2\t#\tO\tO
"""


def test_comments_behind_a_tab_and_numbers_of_tokens(tmp_path: Path) -> None:
    path = saved(tmp_path, GERMEVAL.encode())
    file = read_sentences(path, columns=("id", "word", "label", "inner"))
    assert file.sentences.columns["word"].texts() == ["Er", "mag", "Ulm", "Ulm", "#"]
    assert file.sentences.starts.tolist() == [0, 3, 5]
    assert written(file) == GERMEVAL.encode()
    wanted = r"a.txt:2: expected words in the first column.*--columns id,word,2,label"
    with pytest.raises(InputError, match=wanted):
        read_sentences(path)
    with pytest.raises(InputError, match=r"a.txt:1: .*--columns id,word,tag\), found 'id\\tform"):
        read_sentences(saved(tmp_path, b"id\tform\ttag\n1\tHe\tO\n2\truns\tO\n"))
    sentences = read_sentences(saved(tmp_path, b"#\tSYM\nfive\tCD\n")).sentences
    assert sentences.columns["word"].texts() == ["#", "five"]
    assert read_sentences(saved(tmp_path, b"#\tSYM\n")).sentences.n_tokens == 1


@pytest.mark.parametrize("mark", [b"", token_files.BOM])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("tail", [True, False])
def test_line_ends_and_byte_order_mark(tmp_path: Path, mark: bytes, end: bytes, tail: bool) -> None:
    lines = [b"a\tX", b"b c\tY", b"", b"d\tZ"]
    content = mark + end.join(lines) + (end if tail else b"")
    file = read_sentences(saved(tmp_path, content))
    assert tokens(file) == [[("a", "X"), ("b c", "Y")], [("d", "Z")]]
    expected = mark + end.join([b"# p = 1", b"a\tX\t1", b"b c\tY\t2", b"", b"d\tZ\t3"])
    made = written(file, ["1", "2", "3"], comments=[["p = 1"], []])
    assert made == expected + (end if tail else b"")


def test_marks_of_documents_end_sentences_and_survive(tmp_path: Path) -> None:
    content = b"-DOCSTART- -X- O\n\na X O\n-DOCSTART-\nb Y O\n###MEDLINE:1\n"
    file = read_sentences(saved(tmp_path, content))
    assert tokens(file) == [[("a", "X", "O")], [("b", "Y", "O")]]
    assert written(file) == content
    changed = content.replace(b"a X O", b"a X O 1").replace(b"b Y O", b"b Y O 2")
    assert written(file, ["1", "2"]) == changed
    assert len(read_sentences(saved(tmp_path, content[:17]), skip=()).sentences) == 1


def test_names_and_numbers_of_columns(tmp_path: Path) -> None:
    path = saved(tmp_path, b"a b c d\n")
    columns = read_sentences(path).sentences.columns
    assert list(columns) == ["word", "1", "2", "label"]
    assert columns["0"] is columns["word"]
    assert columns["3"] is columns["label"]
    assert "3" in columns and "4" not in columns
    assert columns.get("0") is columns["word"] and columns.get("x") is None
    with pytest.raises(KeyError):
        columns["x"]
    named = read_sentences(path, columns=("w", "p", "c", "y", "z"), optional=2).sentences.columns
    assert list(named) == ["w", "p", "c", "y"]
    for bad in (("w", "p"), ("w", "p", "c", "y", "z")):
        with pytest.raises(
            InputError, match=r"a\.txt:1: expected \d columns \(w, p.*; the file has 4: 'a"
        ):
            read_sentences(path, columns=bad)
    with pytest.raises(HopefearError, match="different names"):
        read_sentences(path, columns=("w", "w", "c", "d"))


BAD = {
    "ragged": (b"a b c\n\nd e\n", r":3: expected 3 columns as in line 1; this line has 2: 'd e'"),
    "a lone hashtag": (
        b"a b\n#tag\n",
        r":2: expected 2 columns as in line 1; this line has 1: '#tag'",
    ),
    "after a comment": (b"# about\na b\nc\n", r":3: expected 2 columns as in line 2"),
    "tabs": (b"a\tb\nc d\n", r":2: expected 2 columns as in line 1; this line has 1: 'c d'"),
    "hollow": (b"a\tb\nc\t\n", r":2: expected text in every column"),
    "hollow with CR": (b"a\tb\tc\r\nc\td\t\r\n", r":2: expected text in every column"),
    "hollow at the start": (b"a\tb\n\tb\n", r":2: expected text in every column"),
    "latin-1": (b"a b\n\nc \xe4\n", r":3: expected UTF-8 text .*windows-1252.*, found 'c \\\\xe4'"),
    "latin-1 in a comment": (b"a b\n# \xe4\n", r":2: expected UTF-8 text"),
    "utf-16": ("a b\n".encode("utf-16"), r":1: expected UTF-8 text; the file is UTF-16"),
    "empty": (b"", r": expected at least one token; the file is empty"),
    "only a mark": (token_files.BOM, r": expected at least one token; the file is empty"),
    "blank": (b"\n \n# x\n", r": expected at least one token; there are only blank lines"),
    "marks": (b"-DOCSTART- O\n", r": expected at least one token"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_name_the_line(tmp_path: Path, case: str) -> None:
    content, message = BAD[case]
    with pytest.raises(InputError, match=r"a\.txt" + message):
        read_sentences(saved(tmp_path, content))


def test_skipping_leaves_out_whole_sentences(tmp_path: Path) -> None:
    content = b"a 1\nb 2\n\nc 3\nd\ne 5\n\nf \xff\n\ng 7\n"
    report = ReadReport()
    path = saved(tmp_path, content)
    file = read_sentences(path, on_error="skip", report=report)
    assert tokens(file) == [[("a", "1"), ("b", "2")], [("g", "7")]]
    assert (report.rows, report.skipped) == (2, 2)
    assert {m.split(": expected")[0] for m in report.messages} == {f"{path}:5", f"{path}:8"}
    assert written(file) == content
    assert written(file, ["x", "y", "z"]) == (
        content.replace(b"a 1", b"a 1 x").replace(b"b 2", b"b 2 y").replace(b"g 7", b"g 7 z")
    )
    with pytest.raises(InputError, match="lines with tokens are bad and were skipped"):
        read_sentences(saved(tmp_path, b"a b\nc\n"), on_error="skip")


def test_limits_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path, b"a b\n\n" + b"x" * 1_000_001 + b" b\n")
    with pytest.raises(InputError, match=r":3: expected fields of at most 1,000,000 bytes"):
        read_sentences(path)
    monkeypatch.setattr(token_files, "MAX_SENTENCE_TOKENS", 3)
    path = saved(tmp_path, b"a\n\n" + b"b\n" * 4 + b"\nc\n")
    with pytest.raises(
        InputError, match=r":3: expected sentences of at most 3 tokens; this one has 4"
    ):
        read_sentences(path)
    assert tokens(read_sentences(path, on_error="skip")) == [[("a",)], [("c",)]]


def test_wrong_words_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, b"a b\n")
    with pytest.raises(HopefearError, match="format must be one of"):
        read_sentences(path, format="conll")
    with pytest.raises(HopefearError, match="on_error must be"):
        read_sentences(path, on_error="stop")


@pytest.mark.parametrize("text", ["", "a b", "a\nb", "\ud800", "\x0b"])
def test_texts_that_would_break_the_file(tmp_path: Path, text: str) -> None:
    file = read_sentences(saved(tmp_path, b"a b\n"))
    out = tmp_path / "out.txt"
    with pytest.raises(HopefearError, match="the column guess cannot hold"):
        write_with_column(out, file, "guess", [text])
    with pytest.raises(HopefearError, match="1 tokens need as many texts"):
        write_with_column(out, file, "guess", ["x", "y"])
    with pytest.raises(HopefearError, match="1 sentences need as many lists"):
        write_with_column(out, file, "guess", ["x"], comments=[])
    with pytest.raises(HopefearError, match="a comment is one line"):
        write_with_column(out, file, "guess", ["x"], comments=[["a\nb"]])
    assert not out.exists()


def test_comments_read_back_as_comments(tmp_path: Path) -> None:
    file = read_sentences(saved(tmp_path, b"a b\n\nc d\n"))
    made = written(file, ["x", "y"], comments=[["one two", "one"], []])
    assert made == b"# one two #\n# one\na b x\n\nc d y\n"
    assert tokens(read_sentences(saved(tmp_path, made))) == [[("a", "b", "x")], [("c", "d", "y")]]


def test_writes_to_paths_and_standard_output(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"a b\nc d\n"))
    file = read_sentences(path)
    labels = Column(["X", "Y"], np.array([1, 0], np.int32))
    write_with_columns(tmp_path / "out.txt", file, {"y": labels, "p": ["0.5", "1"]})
    assert (tmp_path / "out.txt").read_bytes() == b"a b Y 0.5\nc d X 1\n"
    write_with_column("-", file, "y", labels)
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == b"a b Y\nc d X\n"


FIELD = st.text(
    st.characters(exclude_characters=" \t\n\r\x0b\x0c", exclude_categories=["Cs"]), min_size=1
)
FILLER = st.sampled_from(["", " ", "# of one two three four five", "-DOCSTART- x", "\t "])


@st.composite
def files(draw: st.DrawFn) -> tuple[str, list[list[list[str]]], list[str]]:
    """Separator, sentences, and all lines of a file."""
    separator = draw(st.sampled_from([" ", "\t"]))
    width = draw(st.integers(1 if separator == " " else 2, 4))
    row = st.lists(FIELD, min_size=width, max_size=width).filter(
        lambda r: not r[0].startswith(("-DOCSTART-", "###MEDLINE", "#", "\ufeff"))
    )
    sentences = draw(st.lists(st.lists(row, min_size=1, max_size=3), min_size=1, max_size=4))
    lines = draw(st.lists(FILLER, max_size=2))
    for sentence in sentences:
        lines += [separator.join(r) for r in sentence] + [""] + draw(st.lists(FILLER, max_size=2))
    return separator, sentences, lines


@settings(max_examples=150, deadline=None)
@given(
    files(), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.sampled_from([b"", token_files.BOM])
)
def test_round_trip(
    tmp_path_factory: pytest.TempPathFactory, file, end: str, tail: bool, mark: bytes
) -> None:
    separator, sentences, lines = file
    content = mark + (end.join(lines) + end * tail).encode()
    path = saved(tmp_path_factory.mktemp("trip"), content)
    found = read_sentences(path, format="columns")
    assert tokens(found) == [[tuple(r) for r in sentence] for sentence in sentences]
    assert written(found) == content
    again = saved(path.parent, written(found, ["N"] * found.sentences.n_tokens), "b.txt")
    wider = [[(*r, "N") for r in sentence] for sentence in sentences]
    assert tokens(read_sentences(again, format="columns")) == wider
    assert found.sentences.lines is not None
    assert [lines[k - 1].split(separator)[0] for k in found.sentences.lines] == [
        r[0] for sentence in sentences for r in sentence
    ]


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("name", "sentences", "size", "labels"),
    [
        ("conll2000/test.txt.gz", 2012, 47377, 19),
        ("jnlpba/test.iob2.gz", 3856, 101039, 11),
        ("genia_pos/test.tsv.gz", 1826, 49086, 41),
    ],
)
def test_corpora(name: str, sentences: int, size: int, labels: int) -> None:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"no corpus at {path}; set HOPEFEAR_DATA to a folder that holds {name}")
    file = read_sentences(path)
    assert (len(file.sentences), file.sentences.n_tokens) == (sentences, size)
    assert len(file.sentences.columns["label"].strings) == labels
    assert written(file) == gzip.decompress(path.read_bytes())


def test_a_tab_behind_the_word_and_blanks_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("He\tPRP B-NP\nis\tVBZ B-VP\n\nWhy\tWRB O\n")
    report = ReadReport()
    sentences = read_sentences(path, report=report).sentences
    assert list(sentences.columns) == ["word", "pos", "label"]
    assert sentences.columns["label"].texts() == ["B-NP", "B-VP", "O"]
    assert "both are taken to separate 3 columns" in report.notes[0]
    path.write_text("New York\tB-LOC\nis\tO\n")
    assert read_sentences(path).sentences.columns["word"].texts() == ["New York", "is"]
    path.write_text("a\tproper noun\nb\tverb\n")
    assert read_sentences(path).sentences.columns["label"].texts() == ["proper noun", "verb"]


def test_vectors_are_no_tokens_unless_said(tmp_path):
    path = tmp_path / "x.svm"
    path.write_text("1 3:0.5 7:1\n-1 2:1 9:0.25\n")
    with pytest.raises(InputError, match="svmlight, for train classify"):
        read_sentences(path)
    assert read_sentences(path, format="columns").sentences.starts.tolist() == [0, 2]


@settings(deadline=None)
@given(st.binary(max_size=30) | st.text("ab \t\r\x0b\n", max_size=30).map(str.encode))
def test_words_are_those_of_split(text: bytes) -> None:
    lines = token_files.Lines(text, "a", False, ReadReport())
    wanted = text.split(b"\n")
    assert [lines.line(k) for k in range(len(lines))] == wanted
    assert lines.words().tolist() == [len(line.split()) for line in wanted]
    spans = zip(*(part.tolist() for part in lines.words_in(np.ones(len(lines), bool))), strict=True)
    assert [text[begin:end] for begin, end in spans] == text.split()
