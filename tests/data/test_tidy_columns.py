"""Tidy files of columns are read in one go, with what the careful reader says of them."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopefear.data import token_files
from hopefear.data.files import ReadReport
from hopefear.data.token_files import MARKS, Lines, parse_columns
from hopefear.errors import HopefearError

pytestmark = pytest.mark.interpreted

FIELDS = st.sampled_from(
    ["a", "bb", "longer-word", "größer", "#", "-", "-DOCSTART-", "", "\x01", "1"]
)
GLUES = st.sampled_from([" ", " ", " ", "\t", "  ", "\u00a0", "\x0b", "\r"])


@st.composite
def texts(draw) -> bytes:
    glue, width = draw(GLUES), draw(st.integers(1, 3))
    tidy = st.lists(FIELDS.filter(bool), min_size=width, max_size=width).map(glue.join)
    odd = st.lists(st.one_of(FIELDS, GLUES), max_size=5).map("".join)
    blank = st.sampled_from(["", "", "# a comment of words", "###MEDLINE:7", " "])
    kinds = [tidy] * 6 + [blank] * 3 + [odd] * draw(st.integers(0, 1))
    lines = draw(st.lists(st.one_of(kinds), max_size=12))
    return "\n".join(lines).encode() + draw(st.sampled_from([b"", b"\n", b"\n\n", b"\xff\n"]))


def said(text: bytes, skip: bool, *how):
    report = ReadReport()
    try:
        sentences, separator = parse_columns(Lines.of(text, "a.txt", skip, report), *how)
    except HopefearError as error:
        return str(error)
    columns = {n: (list(c.strings), c.ids.tolist()) for n, c in sentences.columns.items()}
    arrays = [(a.tolist(), a.dtype) for a in (sentences.starts, sentences.lines)]
    aliases = sentences.columns.aliases
    return columns, aliases, arrays, separator, report.rows, report.messages, report.notes


@settings(max_examples=400, deadline=None)
@given(
    texts(),
    st.booleans(),
    st.tuples(
        st.sampled_from([None, ("word", "label"), ("a", "b", "c"), ("a", "a")]),
        st.integers(0, 1),
        st.sampled_from([MARKS, (), ("", "b")]),
        st.sampled_from([None, False, True]),
    ),
)
def test_nothing_else_is_said_of_tidy_files(text, skip, how):
    with mock.patch.object(token_files, "_tidy_columns", return_value=None):
        wanted = said(text, skip, *how)
    assert said(text, skip, *how) == wanted


def tidy(text: bytes):
    lines = Lines.of(text, "a.txt", False, ReadReport())
    return token_files._tidy_columns(lines, None, 0, MARKS)


def test_which_files_are_tidy(monkeypatch):
    text = b"He PRP B-NP\n# # I-NP\n- : O\n\n\n-DOCSTART- -X- O\n\nNo more O"
    sentences, separator = tidy(text)
    assert sentences.starts.tolist() == [0, 3, 4] and sentences.lines.tolist() == [1, 2, 3, 8]
    assert separator == b" " and sentences.columns["pos"].texts() == ["PRP", "#", ":", "more"]
    assert tidy(text.replace(b" ", b"\t"))[1] == b"\t"
    for odd in (
        b"",
        b"\n",
        b"a b\nc\n",
        b"a  b\n",
        b"a b \n",
        b"a b\tc\n",
        b"# a\nb c\n",
        b"\xff\n",
    ):
        assert tidy(odd) is None, odd
    for limit in ("MAX_SENTENCE_TOKENS", "MAX_TOKEN_BYTES"):
        with monkeypatch.context() as patch:
            patch.setattr(token_files, limit, 2)
            assert tidy(text) is None


def test_words_of_all_lengths_and_places():
    rng = np.random.default_rng(0)
    words = ["".join(map(chr, rng.integers(97, 123, n))) for n in rng.integers(1, 40, 300)]
    text = "".join(w + (" " if k % 2 == 0 else "\n") for k, w in enumerate(words)).encode()
    sentences, _ = tidy(text)
    assert sentences.columns["word"].texts() == words[::2]
    assert sentences.columns["label"].texts() == words[1::2]
