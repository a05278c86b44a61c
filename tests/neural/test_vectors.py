"""Word vectors: formats that are read, and what is wrong with those that are not."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from hopefear.errors import HopefearError
from hopefear.neural.vectors import read_vectors

pytestmark = pytest.mark.interpreted


def saved(folder, words, rows, name="v.npz"):
    np.savez(folder / name, words=np.array(words), vectors=np.array(rows))
    return folder / name


@pytest.mark.parametrize("text", ["a 1 2\nb 3 4\n", "2 2\na 1 2\r\nb 3 4 \n", "a\t1 2\nb\t3 4\n\n"])
def test_text_is_read(tmp_path, text):
    (tmp_path / "v.txt").write_text(text)
    vectors = read_vectors(tmp_path / "v.txt")
    assert vectors.words == ("a", "b") and vectors.rows.tolist() == [[1, 2], [3, 4]]
    with gzip.open(tmp_path / "v.gz", "wb") as file:
        file.write(text.encode())
    assert read_vectors(tmp_path / "v.gz").digest == vectors.digest


def test_arrays_are_read(tmp_path):
    rows = np.array([[1, 2], [3, 4]], np.float16)
    vectors = read_vectors(saved(tmp_path, ["a", "b"], rows))
    assert vectors.rows.dtype == np.float32 and vectors.width == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 1 2\nb 3\n", r":2: expected 2 numbers as before, found '1 behind b'"),
        ("a 1 2\na 3 4\n", r":2: expected every word once, found 'a, as in line 1'"),
        ("a 1 nan\n", r":1: expected finite numbers"),
        ("a 1 x\n", r":1: expected a word and its numbers"),
        ("a\n", r":1: expected some numbers"),
        ("", "expected words with vectors"),
    ],
)
def test_what_is_wrong_with_text_is_said(tmp_path, text, message):
    (tmp_path / "v.txt").write_text(text)
    with pytest.raises(HopefearError, match=message):
        read_vectors(tmp_path / "v.txt")


@pytest.mark.parametrize(
    ("words", "rows", "message"),
    [
        (["a", "a"], [[1.0], [2.0]], "every word once, found 'a in rows 1 and 2'"),
        (["a", "b"], [[1.0], [np.nan]], "finite numbers, found 'others in row 2, of b'"),
        (["a"], [[1.0], [2.0]], "1 rows of numbers"),
        ([1, 2], [[1.0], [2.0]], "a vector of strings"),
    ],
)
def test_what_is_wrong_with_arrays_is_said(tmp_path, words, rows, message):
    with pytest.raises(HopefearError, match=message):
        read_vectors(saved(tmp_path, words, rows))


def test_files_that_are_none(tmp_path):
    with pytest.raises(HopefearError, match="no such file"):
        read_vectors(tmp_path / "v.npz")
    (tmp_path / "v.npz").write_bytes(b"not a zip")
    with pytest.raises(HopefearError, match="cannot be read"):
        read_vectors(tmp_path / "v.npz")
    for content in (b"", b"\x93NUMPY"):
        (tmp_path / "v.npz").write_bytes(content)
        with pytest.raises(HopefearError, match=r"cannot be read as .npz"):
            read_vectors(tmp_path / "v.npz")
    with open(tmp_path / "v.npz", "wb") as file:
        np.save(file, np.ones(2))
    with pytest.raises(HopefearError, match=r"cannot be read as .npz"):
        read_vectors(tmp_path / "v.npz")
    np.savez(tmp_path / "w.npz", words=np.array(["a"]))
    with pytest.raises(HopefearError, match="'words' and 'vectors'"):
        read_vectors(tmp_path / "w.npz")
    np.savez(tmp_path / "o.npz", words=np.array(["a"], object), vectors=np.ones((1, 1)))
    with pytest.raises(HopefearError, match="without pickles"):
        read_vectors(tmp_path / "o.npz")
