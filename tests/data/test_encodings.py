"""Texts that are not UTF-8: read when their encoding is said, and a hint when it is not."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from hopefear.cli import main
from hopefear.data.sources import Source, utf8_wanted
from hopefear.data.text import read_text
from hopefear.data.token_files import read_sentences
from hopefear.errors import HopefearError, InputError

pytestmark = pytest.mark.interpreted

TEXT = "gut\tschönes Café\nschlecht\tübel\n"


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-32", "UTF8"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_texts_are_read_in_their_encoding(encoding: str, pack, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(pack(TEXT.encode(encoding)))
    source = Source(path, encoding)
    assert next(source.look()).decode() == "gut\tschönes Café"
    data = read_text(source)
    assert data.features.names(data.rows.indices) == ["schönes", "café", "übel"]


def test_what_does_not_fit_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"a\tfine\nb\t\x81\n")
    with pytest.raises(InputError, match=r"a\.tsv:2: expected cp1252 text; the byte 0x81 is none"):
        read_text(Source(path, "windows-1252"))
    for name in ("latin-0", "hex", "rot13", "", "a\0b"):
        with pytest.raises(HopefearError, match="there is no encoding"):
            Source(path, name)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Ein schönes Café", "windows-1252"),
        ("Это хороший фильм", "windows-1251"),
        ("это хороший фильм", "koi8-r"),
        ("これはよい映画です", "shift_jis"),
        ("这是一部好电影", "gb18030"),
    ],
)
def test_a_likely_encoding_is_named(text: str, encoding: str) -> None:
    assert f"say --encoding {encoding})" in utf8_wanted(text.encode(encoding))


def test_by_way_of_the_command(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.tsv").write_bytes(TEXT.encode("latin-1"))
    train = ["train", "classify", "--train", "a.tsv", "--model", "m", "--epochs", "1"]
    assert main(train) == 1
    assert "a.tsv:1: expected UTF-8 text (byte 8 is 0xf6; perhaps it is" in capsys.readouterr().err
    assert main([*train, "--encoding", "latin-1"]) == 0
    assert main([*train, "--encoding", "latin1000"]) == 1
    capsys.readouterr()
    assert main(["inspect", "--model", "m", "--json"]) == 0
    assert "café" in json.dumps(json.loads(capsys.readouterr().out), ensure_ascii=False)
    Path("a.txt").write_bytes("Café B-LOC\nist O\n\n".encode("utf-16") * 1)
    tag = ["train", "tag", "--train", "a.txt", "--model", "t", "--epochs", "1", "--encoding"]
    assert main([*tag, "utf-16"]) == 0
    capsys.readouterr()
    assert main(["predict", "--model", "t", "--input", "a.txt", "--encoding", "utf-16"]) == 0
    assert capsys.readouterr().out.startswith("Café B-LOC B-LOC\n")
    sentences = read_sentences(Source("a.txt", "utf-16")).sentences
    assert sentences.columns["word"].texts() == ["Café", "ist"]
