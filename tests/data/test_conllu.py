"""CoNLL-U: words out, everything back in, wrong ids refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import DATA

from hopefear.data.files import ReadReport
from hopefear.data.token_files import read_sentences
from hopefear.data.token_stream import read_parts
from hopefear.data.write_tokens import with_columns
from hopefear.errors import HopefearError, InputError


def row(number: str, form: str = "w", upos: str = "X", misc: str = "_") -> str:
    return "\t".join([number, form, "_", upos, "_", "_", "_", "_", "_", misc])


def saved(folder: Path, lines: list[str], name: str = "a.txt", end: str = "\n") -> Path:
    path = folder / name
    path.write_bytes("".join(line + end for line in lines).encode())
    return path


SAMPLE = [
    "# sent_id = 1",
    "# text = vámonos al mar",
    row("1-2", "vámonos", "_"),
    row("1", "vamos", "VERB"),
    row("2", "nos", "PRON", "SpaceAfter=No|Old=1"),
    row("2.1", "ya", "_"),
    row("3", "mar", "NOUN"),
    "",
    "#",
    row("0.1", "pro", "_"),
    row("1", "# hash", "SYM"),
    "",
]


def test_words_are_tokens_and_nothing_else(tmp_path: Path) -> None:
    file = read_sentences(saved(tmp_path, SAMPLE))
    s = file.sentences
    assert file.format == "conllu"
    assert s.columns["word"].texts() == ["vamos", "nos", "mar", "# hash"]
    assert s.columns["word"] is s.columns["form"] is s.columns["1"]
    assert s.columns["upos"].texts() == ["VERB", "PRON", "NOUN", "SYM"]
    assert s.starts.tolist() == [0, 3, 4]
    assert s.lines is not None
    assert s.lines.tolist() == [4, 5, 7, 11]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_columns_are_replaced_or_entered_in_misc(tmp_path: Path, end: str) -> None:
    path = saved(tmp_path, SAMPLE, end=end)
    file = read_sentences(path)
    assert b"".join(with_columns(file, {})) == path.read_bytes()
    made = b"".join(
        with_columns(
            file,
            {"UPOS": ["A", "B", "C", "D"], "Old": ["7", "8", "9", "10"]},
            comments=[["p = 0.5"], ["q"]],
        )
    ).decode()
    expected = list(SAMPLE)
    expected[3] = row("1", "vamos", "A", "Old=7")
    expected[4] = row("2", "nos", "B", "SpaceAfter=No|Old=8")
    expected[6] = row("3", "mar", "C", "Old=9")
    expected[10] = row("1", "# hash", "D", "Old=10")
    expected[9:9] = ["# q"]
    expected[2:2] = ["# p = 0.5"]
    assert made == "".join(line + end for line in expected)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([row("1"), row("3")], ":2: expected the id 2, found '3'"),
        ([row("1"), row("1")], ":2: expected the id 2, found '1'"),
        ([row("1"), "", row("2")], ":3: expected the id 1, found '2'"),
        ([row("1"), row("x")], ":2: expected the id 2, found 'x'"),
        (
            [row("1"), row("2-3"), row("2")],
            ":2: expected a multiword token that spans words from 2",
        ),
        ([row("2-3"), row("1"), row("2")], ":1: expected a multiword token"),
        ([row("1-1"), row("1")], ":1: expected a multiword token"),
        ([row("1"), row("2.1")], ":2: expected the id 1.1, or a later one"),
        ([row("1"), row("1.0")], ":2: expected the id 1.1, or a later one"),
        ([row("1"), row("1.2"), row("1.1")], ":3: expected the id 1.1, or a later one"),
        ([row("1"), row("1.1"), row("1.1")], ":3: expected the id 1.1, or a later one"),
        ([row("01"), row("2")], ":1: expected the id 1, found '01'"),
        ([row("1-02"), row("1"), row("2")], ":1: expected the id 1, found '1-02'"),
        ([row("1"), row("1.01")], ":2: expected the id 2, found '1.01'"),
        (
            [row("1-2"), row("1"), row("2-3"), row("2"), row("3")],
            ":3: expected a multiword token that spans words from 2 up to 3 at most, none of them "
            "in another, found '2-3'",
        ),
        ([row("1-2"), row("1-2"), row("1"), row("2")], ":2: expected a multiword token"),
        ([row("1"), "2\tw\t_"], ":2: expected 10 columns separated by tabs; this line has 3: '2"),
        ([row("1"), "2 w _ _ _ _ _ _ _ _"], ":2: expected 10 columns separated by tabs"),
        ([row("1"), row("2", "")], ":2: expected text in every column"),
        (["# only a comment"], ": expected at least one token"),
        ([], ": expected at least one token; the file is empty"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, lines: list[str], message: str) -> None:
    path = saved(tmp_path, lines)
    with pytest.raises(InputError) as caught:
        read_sentences(path, format="conllu")
    assert str(caught.value).startswith(f"{path}{message}")


def test_multiword_tokens_and_empty_nodes_may_follow_each_other(tmp_path: Path) -> None:
    ids = ["0.1", "0.3", "1-2", "1", "2", "2.1", "2.2", "3-4", "3", "3.1", "4"]
    lines = [*map(row, ids), "", *map(row, ids)]
    assert read_sentences(saved(tmp_path, lines)).sentences.starts.tolist() == [0, 4, 8]


def test_broken_text_and_skipping(tmp_path: Path) -> None:
    path = saved(
        tmp_path, [row("1", "a"), "", row("1", "b"), row("3"), row("9"), "", row("1", "c")]
    )
    path.write_bytes(path.read_bytes() + b"\n# \xff\n" + row("1", "d").encode() + b"\n")
    with pytest.raises(InputError, match=r":9: expected UTF-8 text"):
        read_sentences(path, format="conllu")
    report = ReadReport()
    s = read_sentences(path, format="conllu", on_error="skip", report=report).sentences
    assert s.columns["form"].texts() == ["a", "c"]
    assert s.starts.tolist() == [0, 1, 2]
    assert (report.rows, report.skipped) == (2, 2)


PLUS = [
    "# global.columns = UPOS ID form MISC PARSEME:MWE",
    "# text = a b",
    "_\t1-2\tab\t_\t*",
    "X\t1\ta\t_\t1:LVC",
    "Y\t2\tb\tOld=1\t1",
    "",
    "X\t1\tc\t_\t*",
    "",
]


@pytest.mark.parametrize("name", ["a.cupt", "a.conllup", "a.conllu.gz"])
def test_conllu_plus_has_the_columns_it_declares(tmp_path: Path, name: str) -> None:
    path = saved(tmp_path, PLUS, name)
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    file = read_sentences(path)
    columns = file.sentences.columns
    assert list(columns) == ["upos", "id", "form", "misc", "PARSEME:MWE"]
    assert columns["word"].texts() == ["a", "b", "c"]
    assert columns["PARSEME:MWE"].texts() == columns["4"].texts() == ["1:LVC", "1", "*"]
    parts = [part.file.sentences for part in read_parts(path, piece_bytes=1) if part.file]
    assert [part.columns["upos"].texts() for part in parts] == [["X", "Y"], ["X"]]
    made = b"".join(with_columns(file, {"upos": ["A", "B", "C"], "P": ["1", "2", "3"]})).decode()
    assert made.split("\n")[3:5] == ["A\t1\ta\tP=1\t1:LVC", "B\t2\tb\tOld=1|P=2\t1"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["# global.columns = ID UPOS"], ":1: expected different names of columns in global.col"),
        (["#", "# global.columns = FORM ID FORM"], ":2: expected different names of columns"),
        (["# global.columns ="], ":1: expected different names of columns"),
        ([*PLUS, "X\t1\tc\t_"], ":9: expected 5 columns separated by tabs; this line has 4: 'X"),
        ([*PLUS, "X\t2\tc\t_\t*"], ":9: expected the id 1, found '2'"),
        ([*PLUS, "# global.columns = ID FORM"], ":9: expected the columns of the whole file, upos"),
        ([row("1"), "", PLUS[0], PLUS[3]], ":3: expected the columns of the whole file, id form"),
    ],
)
def test_columns_that_cannot_be_mapped(tmp_path: Path, lines: list[str], message: str) -> None:
    path = saved(tmp_path, lines)
    for read in (read_sentences, lambda path: [*read_parts(path)]):
        with pytest.raises(InputError) as caught:
            read(path)
        assert str(caught.value).startswith(f"{path}{message}")


def test_conllu_plus_may_lack_ids_and_a_place_for_more(tmp_path: Path) -> None:
    path = saved(tmp_path, ["# global.columns = FORM X", "a\t1", "b\t2", "", "c\t3"])
    file = read_sentences(path)
    assert file.sentences.starts.tolist() == [0, 2, 3]
    assert b"a\t7\n" in b"".join(with_columns(file, {"X": ["7", "8", "9"]}))
    with pytest.raises(HopefearError, match="has neither a column upos nor MISC"):
        with_columns(file, {"upos": ["X"] * 3})


def test_many_blank_lines_before_the_first_word(tmp_path: Path) -> None:
    # A pattern that tried all ways to split them would not end.
    assert read_sentences(saved(tmp_path, [""] * 60 + [row("1")])).format == "conllu"
    assert read_sentences(saved(tmp_path, [""] * 60 + ["a b"])).format == "columns"


def test_which_columns_can_be_written(tmp_path: Path) -> None:
    file = read_sentences(saved(tmp_path, [row("1")], "a.conllu"))
    for name in ("id", "a=b", "a|b", ""):
        with pytest.raises(HopefearError, match="cannot take the column"):
            with_columns(file, {name: ["x"]})
    with pytest.raises(HopefearError, match="cannot hold"):
        with_columns(file, {"Guess": ["a|b"]})
    assert b"a|b" in b"".join(with_columns(file, {"feats": ["a|b"]}))
    with pytest.raises(HopefearError, match="own column names"):
        read_sentences(saved(tmp_path, [row("1")]), format="conllu", columns=("a", "b"))


def test_format_is_known_by_name_or_first_token(tmp_path: Path) -> None:
    assert read_sentences(saved(tmp_path, [row("1")])).format == "conllu"
    assert read_sentences(saved(tmp_path, ["# c", "", row("1-2"), row("1"), row("2")])).format == (
        "conllu"
    )
    assert read_sentences(saved(tmp_path, [row("2")])).format == "columns"
    assert read_sentences(saved(tmp_path, [row("1")]), format="columns").format == "columns"
    with pytest.raises(InputError, match="10 columns"):
        read_sentences(saved(tmp_path, ["a b"], "a.conllu"))


TEXT = st.text(
    st.characters(exclude_characters="\t\n\r\x0b\x0c", exclude_categories=["Cs"]), min_size=1
).filter(lambda s: s.strip())


@st.composite
def treebanks(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    lines, words = [], []
    for _ in range(draw(st.integers(1, 3))):
        lines += ["# " + c for c in draw(st.lists(TEXT, max_size=2))]
        size, last = draw(st.integers(1, 4)), 0
        for i in range(1, size + 1):
            if last < i < size and draw(st.booleans()):
                last = draw(st.integers(i + 1, size))
                lines.append(row(f"{i}-{last}", draw(TEXT)))
            words.append(draw(TEXT))
            lines.append(row(str(i), words[-1], misc=draw(TEXT)))
            lines += [row(f"{i}.{j + 1}") for j in range(draw(st.integers(0, 2)))]
        lines.append("")
    return lines, words


@settings(max_examples=100, deadline=None)
@given(treebanks(), st.sampled_from(["\n", "\r\n"]))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, bank, end: str) -> None:
    lines, words = bank
    path = saved(tmp_path_factory.mktemp("bank"), lines, "a.conllu", end)
    file = read_sentences(path)
    assert file.sentences.columns["form"].texts() == words
    assert b"".join(with_columns(file, {})) == path.read_bytes()
    labels = [f"L{i}" for i in range(len(words))]
    again = path.parent / "b.conllu"
    again.write_bytes(b"".join(with_columns(file, {"xpos": labels})))
    back = read_sentences(again)
    assert back.sentences.columns["xpos"].texts() == labels
    original = file.sentences.columns["xpos"].texts()
    assert b"".join(with_columns(back, {"xpos": original})) == path.read_bytes()


def test_corpus() -> None:
    path = DATA / "ud_english_ewt" / "dev.conllu.gz"
    if not path.exists():
        pytest.skip(f"no corpus at {path}; set HOPEFEAR_DATA to a folder that holds it")
    file = read_sentences(path)
    assert (len(file.sentences), file.sentences.n_tokens) == (2001, 25147)
    assert len(file.sentences.columns["upos"].strings) == 17
    assert b"".join(with_columns(file, {})) == gzip.decompress(path.read_bytes())
