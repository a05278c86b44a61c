"""Text and pipes on the command line: what comes out, and that it comes sentence by sentence."""

from __future__ import annotations

import io
import json
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

import hopefear
from hopefear.cli import main
from hopefear.data import files, token_stream
from hopefear.data.files import ReadReport
from hopefear.data.token_stream import read_parts
from hopefear.errors import InputError

pytestmark = pytest.mark.interpreted

X = [
    ["Ann", "Lee", "left", "Rome", "."],
    ["Bo", "does", "n't", "like", "Ann", "Lee", "."],
    ["Rome", "sleeps", "."],
] * 3
Y = [
    ["B-PER", "I-PER", "O", "B-LOC", "O"],
    ["B-PER", "O", "O", "O", "B-PER", "I-PER", "O"],
    ["B-LOC", "O", "O"],
] * 3
TEXT = "Ann Lee left Rome. Bo\ndoesn't like Ann.\n\nRome sleeps\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("text")
    hopefear.Tagger("perceptron", epochs=3).fit(X, Y).save(place / "names")
    rows = [[("Ann", "NNP"), ("sleeps", "VBZ")]] * 2
    chunks = hopefear.Tagger("perceptron", columns=("word", "pos"), epochs=1)
    chunks.fit(rows, [["B-NP", "B-VP"]] * 2).save(place / "chunks")
    (place / "a.txt").write_text(TEXT)
    return place


@pytest.fixture
def predicted(folder, capsysbinary, monkeypatch):
    monkeypatch.chdir(folder)

    def run(*argv, model="names", status=0):
        capsysbinary.readouterr()
        assert main(["predict", "--quiet", "--model", model, *argv]) == status
        out, err = capsysbinary.readouterr()
        return (err if status else out).decode()

    return run


TEXTS = ("--input-format", "text", "--input", "a.txt")


def test_text_comes_out_as_columns_brackets_or_objects(predicted):
    assert predicted(*TEXTS).startswith(
        "Ann\tB-PER\nLee\tI-PER\nleft\tO\nRome\tB-LOC\n.\tO\n\nBo\t"
    )
    assert predicted(*TEXTS, "--output-format", "inline").splitlines() == [
        "[PER Ann Lee] left [LOC Rome] .",
        "[PER Bo] does n't like [PER Ann] .",
        "[LOC Rome] sleeps",
    ]
    for more in ((), ("--proba",), ("--nbest", "2")):
        lines = predicted(*TEXTS, "--output-format", "json", *more).splitlines()
        assert len(lines) == (6 if "--nbest" in more else 3)
        for sentence in map(json.loads, lines):
            assert TEXT[sentence["start"] : sentence["end"]] == sentence["text"]
            for piece in (*sentence["tokens"], *sentence["spans"]):
                assert TEXT[piece["start"] : piece["end"]] == piece["text"]
                assert ("probability" in piece) == ("--proba" in more)
            assert ("probability" in sentence) == bool(more)
    assert predicted(*TEXTS, "--nbest", "2").startswith("# rank = 1 score = ")


def test_columns_come_out_in_brackets_and_objects_too(predicted, folder):
    (folder / "c.txt").write_text("Ann\nLee\n\nRome\n")
    given = ("--input", "c.txt", "--output-format")
    assert predicted(*given, "inline") == "[PER Ann Lee]\n[LOC Rome]\n"
    first, _ = map(json.loads, predicted(*given, "json").splitlines())
    assert first["spans"] == [{"label": "PER", "start": 0, "end": 2, "text": "Ann Lee"}]
    assert predicted(*given, "columns") == predicted("--input", "c.txt")


def test_a_terminal_gets_colours(predicted, monkeypatch):
    monkeypatch.setattr("hopefear.cli.tag_output.is_coloured", lambda output: output == "-")
    first = predicted(*TEXTS).splitlines()[0]
    assert first == "\x1b[1;34mAnn Lee\x1b[0;2m PER\x1b[0m left \x1b[1;32mRome\x1b[0;2m LOC\x1b[0m."
    assert "\x1b" not in predicted(*TEXTS, "--output-format", "columns")


def test_tokens_of_text_are_explained(predicted):
    words = predicted(*TEXTS, "--explain-token", "2:1", "--json")
    assert (json.loads(words)["word"], json.loads(words)["line"]) == ("Bo", 1)


def test_what_does_not_go_together_is_said(predicted, folder):
    (folder / "blank.txt").write_text(" \n")
    (folder / "latin.txt").write_bytes(b"Ann\ncaf\xe9\n")
    assert "need the column pos too" in predicted(*TEXTS, model="chunks", status=1)
    blank = ("--format", "text", "--input", "blank.txt")
    assert "blank.txt: expected text, found 'nothing but blanks'" in predicted(*blank, status=1)
    latin = ("--format", "text", "--input", "latin.txt")
    assert "latin.txt:2: expected UTF-8 text" in predicted(*latin, status=1)
    assert "leave out --stream" in predicted(*TEXTS, "--stream", "--explain", status=2)
    inline = (*TEXTS, "--output-format", "inline", "--proba")
    assert "say json or columns" in predicted(*inline, status=2)
    assert "text has none" in predicted(*TEXTS, "--columns", "word", status=2)
    text = ("--input", "a.txt", "--output-format", "text")
    assert "whose outputs are columns, inline, json" in predicted(*text, status=1)


FILES = {
    "columns": b"\xef\xbb\xbfAnn NNP\nLee NNP\n\n\n# n\n-DOCSTART- -X-\n\nRome NNP\n\n# the end\n",
    "conllu": b"# text = a\n1\tAnn\t_\t_\t_\t_\t_\t_\t_\t_\n\n1\tLee\t_\t_\t_\t_\t_\t_\t_\t_\n\n",
    "crfsuite": b"B-PER\tw=Ann\n\n@weight:2\nO\tw=left\nO\tw=.\n\n",
}


@pytest.mark.parametrize("form", ["columns", "conllu"])
@pytest.mark.parametrize("more", [(), ("--proba",), ("--nbest", "2")])
def test_a_stream_is_tagged_as_the_file_is(predicted, folder, monkeypatch, form, more):
    (folder / "file").write_bytes(FILES[form])
    given = ("--input", "file", "--format", form, *more)
    if form == "columns":
        given += ("--columns", "word,pos")
    whole = predicted(*given)
    assert "PER" in whole
    for size in (1, 7, 1 << 16):
        monkeypatch.setattr(token_stream, "_PIECE", size)
        assert predicted(*given, "--stream") == whole


@pytest.mark.parametrize("form", FILES)
def test_parts_of_a_file_make_the_whole(tmp_path, monkeypatch, form):
    (tmp_path / "file").write_bytes(FILES[form])
    monkeypatch.setattr(token_stream, "_PIECE", 3)
    parts = list(read_parts(tmp_path / "file", format=form))
    assert b"".join(part.text for part in parts) == FILES[form]
    assert len(parts) >= 2


def test_bad_lines_of_a_stream_have_their_number(tmp_path, monkeypatch):
    monkeypatch.setattr(token_stream, "_PIECE", 2)
    path = tmp_path / "file"
    for bad in (b"a\n\n", b"a b c\nd\n\n", b"caf\xe9 B\n\n"):
        path.write_bytes(b"a A\n\nb B\n\n" + bad + b"c C\n\n")
        with pytest.raises(InputError, match=r"file:[56]: expected"):
            list(read_parts(path))
        report = ReadReport()
        parts = list(read_parts(path, on_error="skip", report=report))
        assert report.skipped == 1
        assert sum(part.file is not None for part in parts) == 3
        assert b"".join(part.text for part in parts) == path.read_bytes()
    path.write_bytes(b"")
    with pytest.raises(InputError, match="at least one token"):
        list(read_parts(path))


def test_memory_is_bounded(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"a A\n" * 1000)
    monkeypatch.setattr(token_stream, "MAX_SENTENCE_BYTES", 100)
    monkeypatch.setattr(token_stream, "_PIECE", 16)
    with pytest.raises(hopefear.HopefearError, match="bytes without a blank line"):
        list(read_parts(tmp_path / "file"))


def test_standard_input_that_is_no_pipe(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a")))
    assert not files.is_pipe("-")
    assert not files.is_pipe(__file__) and not files.is_pipe("no such file")


def answer(process: subprocess.Popen, wanted: str) -> None:
    """What comes out now, though nothing more goes in."""
    out = b""
    while len(out) < len(wanted.encode()):
        ready, _, _ = select.select([process.stdout], [], [], 120)
        assert ready, f"only {out!r} came"
        piece = os.read(process.stdout.fileno(), 1 << 16)
        assert piece, f"only {out!r} came"
        out += piece
    assert out.decode() == wanted


@pytest.mark.skipif(os.name != "posix", reason="select of pipes")
@pytest.mark.parametrize("kind", ["text", "columns", "named"])
def test_a_pipe_is_answered_before_more_is_written(folder, tmp_path, kind):
    source = str(Path(hopefear.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "NUMBA_DISABLE_JIT": "1"}
    path = "-"
    if kind == "named":
        path = str(tmp_path / "pipe")
        os.mkfifo(path)
    argv = ["predict", "--quiet", "--model", str(folder / "names"), "--input", path]
    if kind == "text":
        argv += ["--format", "text", "--output-format", "inline"]
    with subprocess.Popen(
        [sys.executable, "-m", "hopefear", *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    ) as process:
        with open(path, "wb", 0) if kind == "named" else process.stdin as pipe:
            if kind == "text":
                talk = [
                    (b"Ann Lee left.\n", "[PER Ann Lee] left .\n"),
                    (b"Rome\n\n", "[LOC Rome]\n"),
                ]
            else:
                talk = [
                    (b"Ann\nLee\n\n", "Ann B-PER\nLee I-PER\n\n"),
                    (b"Rome\n\n", "Rome B-LOC\n\n"),
                ]
            for sentence, wanted in talk:
                pipe.write(sentence)
                pipe.flush()
                answer(process, wanted)
        assert process.wait(60) == 0


@pytest.mark.parametrize(("tags", "enough"), [(("X", "X"), True), (("N", "V"), False)])
def test_dev_decides_whether_words_are_enough(tags, enough, tmp_path, monkeypatch, capsys):
    """Of words that dev alone has, a column of parts of speech knows the labels, or does not."""
    monkeypatch.chdir(tmp_path)
    kinds = dict(zip(("B-NP", "B-VP"), tags, strict=True))
    for name, words in (("train", "abcdef"), ("dev", "abcd" if enough else "ghij")):
        pairs = zip(words, ("B-NP", "B-VP") * (len(words) // 2), strict=True)
        lines = [f"{word} {kinds[label]} {label}\n" for word, label in pairs]
        Path(f"{name}.txt").write_text("\n".join(lines))
    learn = ["train", "tag", "--train", "train.txt", "--learner", "perceptron", "--epochs", "3"]
    assert (
        main([*learn, "--dev", "dev.txt", "--model", "m", "--run", "r", "--checkpoint", "c"]) == 0
    )
    said = capsys.readouterr().err
    assert f"{'words alone are' if enough else 'all columns are'} taken" in said
    assert {path.parent.name for path in Path().rglob("events.jsonl")} == {"r", "words"}
    assert main([*learn, "--dev", "dev.txt", "--columns", "word,_,label", "--model", "w"]) == 0
    assert "words alone" not in capsys.readouterr().err
    assert (hopefear.load("m").model_.signature == hopefear.load("w").model_.signature) == enough
    Path("a.txt").write_text("a b\n")
    status = main(["predict", "--model", "m", "--input", "a.txt", "--input-format", "text"])
    assert status == (0 if enough else 1)
    assert enough or "train on words alone (--columns word,_,label" in capsys.readouterr().err


def test_a_model_that_cannot_tag_text_says_so_when_it_is_trained(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("train.txt").write_text("a N B-NP\nb V B-VP\n\n" * 2)
    learn = ["train", "tag", "--train", "train.txt", "--learner", "perceptron", "--epochs", "1"]
    for typed, told in (((), True), (("--columns", "word,_,label"), False)):
        assert main([*learn, *typed, "--model", "m"]) == 0
        err = capsys.readouterr().err
        assert ("--columns word,_,label makes one that can" in err) == told
