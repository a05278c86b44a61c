"""Files of tokens read by several threads: the same as by one, and the same messages."""

from __future__ import annotations

import gzip
import sys
import threading
import time

import numpy as np
import pytest

from hopefear.data import token_files
from hopefear.data.files import ReadReport
from hopefear.data.token_files import read_sentences
from hopefear.errors import HopefearError, InputError

WORDS = ["a", "bb", "größer", "#", "##", "x" * 40, "-", "1"]


def text_of(rng, sentences=60, glue=" ", width=3, comments=False):
    lines = []
    for s in range(sentences):
        if comments and s % 7 == 0:
            lines.append("# sent_id = something of many words")
        for _ in range(rng.integers(1, 6)):
            lines.append(glue.join(WORDS[i] for i in rng.integers(0, len(WORDS), width)))
        lines += [""] * int(rng.integers(1, 3))
    return "\n".join(lines)


def conllu_of(rng, sentences=60):
    lines = []
    for s in range(sentences):
        lines.append(f"# sent_id = {s}")
        for k in range(1, rng.integers(2, 6)):
            if k == 2:
                lines.append("\t".join([f"{k - 1}.1", *["_"] * 9]))
            lines.append("\t".join([str(k), WORDS[rng.integers(0, 8)], *["_"] * 8]))
        lines.append("")
    return "\n".join(lines) + "\n"


def packed(path):
    """The same file, packed, which is read by another way; as text a name tells nothing else."""
    copy = path.with_name(f"{path.name}.gz")
    copy.write_bytes(gzip.compress(path.read_bytes()))
    return copy


def read(path, n_jobs, **options):
    report = ReadReport()
    try:
        file = read_sentences(path, n_jobs=n_jobs, report=report, **options)
    except InputError as error:
        return str(error)
    sentences = file.sentences
    columns = {
        name: (list(c.strings), c.ids.tolist(), c.ids.dtype)
        for name, c in sentences.columns.items()
    }
    return (columns, sentences.columns.aliases, sentences.starts.tolist(), sentences.starts.dtype,
            sentences.lines.tolist(), sentences.source, file.separator, file.format, file.text,
            report.rows, report.skipped, report.messages, report.notes)  # fmt: skip


@pytest.fixture(autouse=True)
def short_stretches(monkeypatch):
    monkeypatch.setattr(token_files, "_STRETCH", 64)


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r\r\n"])
@pytest.mark.parametrize("glue", [" ", "\t", "  \t"])
@pytest.mark.parametrize("comments", [False, True])
def test_threads_read_what_one_reads(tmp_path, ending, glue, comments):
    rng = np.random.default_rng(1)
    path = tmp_path / "a.txt"
    for width in (1, 2, 3):
        path.write_bytes(text_of(rng, glue=glue, width=width, comments=comments)
                         .replace("\n", ending).encode())  # fmt: skip
        alone = read(path, 1)
        assert alone == read(path, 2) == read(path, 5) == read(path, 1000)
        alone = read(packed(path), 1)
        assert alone == read(packed(path), 2) == read(packed(path), 5)


def test_threads_read_conllu(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text(conllu_of(np.random.default_rng(2)))
    assert len(read(path, 1)[2]) == 61
    assert read(path, 1) == read(path, 2) == read(path, 7)
    assert read(packed(path), 1) == read(packed(path), 2) == read(packed(path), 7)


def test_several_threads_are_at_work(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text(text_of(np.random.default_rng(3)))
    sizes = []
    parse = token_files.parse_columns
    monkeypatch.setattr(
        token_files, "parse_columns", lambda lines, *a: sizes.append(len(lines)) or parse(lines, *a)
    )
    read(path, 3)
    assert len(sizes) == 3


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize(
    ("place", "line"),
    [
        (5, "two columns"),
        (-5, "two columns"),
        (-3, "four columns are there"),
        (-5, "bad \udcff bytes"),
        (40, "-DOCSTART- x y"),
        (40, "# three columns"),
        (40, "# a comment of five columns"),
    ],
)
def test_what_is_odd_is_said_as_one_says_it(tmp_path, on_error, place, line):
    rng = np.random.default_rng(4)
    lines = text_of(rng).split("\n")
    lines.insert(place, line)
    path = tmp_path / "a.txt"
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
    for file in (path, packed(path)):
        alone = read(file, 1, on_error=on_error)
        assert alone == read(file, 2, on_error=on_error) == read(file, 6, on_error=on_error)


def test_columns_that_change_within_a_file_are_refused_at_their_line(tmp_path):
    rng = np.random.default_rng(5)
    path = tmp_path / "a.txt"
    path.write_text(text_of(rng, width=3) + "\n\n" + text_of(rng, width=4))
    alone = read(path, 1)
    assert "expected 3 columns" in alone and alone == read(path, 2)


def test_a_file_without_sentence_ends_is_read_by_one(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a b c\n" * 200)
    assert read(path, 4) == read(path, 1)
    assert read(packed(path), 4) == read(packed(path), 1)


def test_a_packed_file_is_cut_while_it_is_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("\ufeff" + text_of(np.random.default_rng(6)))
    pieces, cut = token_files.pieces, threading.Event()
    parse = token_files.parse_columns

    def slowly(path, size):
        for k, piece in enumerate(pieces(path, size)):
            assert k < 9 or cut.wait(10)  # some of it was cut before all of it had come
            yield piece

    def parsed(lines, *options):
        cut.set()
        return parse(lines, *options)

    monkeypatch.setattr(token_files, "parse_columns", parsed)
    alone = read(packed(path), 1)
    cut.clear()
    monkeypatch.setattr(token_files, "pieces", slowly)
    assert read(packed(path), 2) == alone


@pytest.mark.parametrize("content", [b"", b"\n\n\n", b"\xff\xfea\0", b"1 3:0.5\n" * 200])
@pytest.mark.parametrize("damage", [0, 1])
def test_what_cannot_be_read_is_said_as_one_says_it(tmp_path, content, damage):
    path = tmp_path / "a.txt.gz"
    whole = gzip.compress(content)
    path.write_bytes(whole[: len(whole) - damage])
    messages = []
    for n_jobs in (1, 2):
        with pytest.raises(HopefearError) as caught:
            read_sentences(path, n_jobs=n_jobs)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_stretches_stay_in_order_however_threads_take_turns(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("\n\n".join(f"w{k} N" for k in range(400)) + "\n")
    monkeypatch.setattr(token_files, "_STRETCH", 64)
    alone, copy, usual = read(path, 1), packed(path), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        assert all(read(copy, 2)[:4] == alone[:4] for _ in range(100))
    finally:
        sys.setswitchinterval(usual)


def test_an_interrupt_ends_the_reading_of_a_packed_file(tmp_path, monkeypatch):
    """The thread that called hears of it, also where it waits for a pipe, and the other stops."""
    path = tmp_path / "a.txt"
    path.write_text(text_of(np.random.default_rng(7)))
    parsed, callers = [], []

    def interrupted(path, size):
        for _ in range(40):
            callers.append(threading.get_ident())
            yield b"a b\n\n"
        raise KeyboardInterrupt

    def slow(lines, *options):
        parsed.append(lines)
        time.sleep(0.05)
        raise HopefearError("not read")

    monkeypatch.setattr(token_files, "pieces", interrupted)
    monkeypatch.setattr(token_files, "parse_columns", slow)
    with pytest.raises(KeyboardInterrupt):
        read_sentences(packed(path), n_jobs=2, columns=["x", "y"])
    assert set(callers) == {threading.get_ident()} and len(parsed) < 5


def test_a_first_stretch_too_short_to_tell_by_decides_nothing(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"1 3:0.5\n\n" + b"a b\n" * 70000 + b"\nc d\n")
    assert read(packed(path), 2) == read(packed(path), 1)
    assert read(path, 1)[2] == [0, 1, 70001, 70002]
