"""Pre-trained word vectors, from text or ``.npz``."""

from __future__ import annotations

import hashlib
import os
import zipfile
import zlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hopefear.data.sources import open_bytes
from hopefear.errors import HopefearError, InputError

_LONGEST = 1 << 20  # bytes of a line


@dataclass(frozen=True)
class Vectors:
    """Words, each once, and a row for each.

    Examples
    --------
    >>> Vectors(("the", "cat"), np.eye(2, dtype=np.float32)).width
    2
    """

    words: tuple[str, ...]
    rows: np.ndarray  # float32[words, width]

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return int(self.rows.shape[1])

    @cached_property
    def digest(self) -> str:
        """SHA-256 of words and numbers."""
        h = hashlib.sha256("\n".join(self.words).encode("utf-8", "replace"))
        h.update(np.ascontiguousarray(self.rows).tobytes())
        return h.hexdigest()


def read_vectors(path: str | os.PathLike[str]) -> Vectors:
    """Vectors from a file.

    Parameters
    ----------
    path : str or path
        Text: a word and its numbers a line, blanks between them, packed or not; a first line with
        the numbers of words and columns is skipped. Or ``.npz`` with ``words`` (strings) and
        ``vectors`` (a row for each).

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
    ...     _ = file.write("the 0.5 1\\ncat 2 -1\\n")
    ...     file.flush()
    ...     read_vectors(file.name).rows.tolist()
    [[0.5, 1.0], [2.0, -1.0]]
    """
    name = os.fspath(path)
    vectors = _read_npz(name) if name.endswith(".npz") else _read_text(name)
    if not vectors.words or not vectors.width:
        raise InputError(name, 0, "words with vectors", "none")
    return vectors


def _read_npz(name: str) -> Vectors:
    try:
        with np.load(name, allow_pickle=False) as file:
            words, rows = file["words"], file["vectors"]
    except KeyError as error:
        raise InputError(name, 0, "arrays 'words' and 'vectors'", f"no {error}") from None
    except FileNotFoundError:
        raise HopefearError(f"{name}: cannot be read: there is no such file") from None
    except (OSError, EOFError, TypeError, ValueError, zlib.error, zipfile.BadZipFile) as error:
        raise HopefearError(f"{name}: cannot be read as .npz without pickles: {error}") from None
    if words.ndim != 1 or words.dtype.kind != "U":
        raise InputError(name, 0, "words: a vector of strings", f"{words.dtype} {words.shape}")
    if rows.ndim != 2 or rows.dtype.kind != "f" or len(rows) != len(words):
        found = f"{rows.dtype} {rows.shape}"
        raise InputError(name, 0, f"vectors: {len(words)} rows of numbers", found)
    texts = tuple(words.tolist())
    if len(number := _first_places(texts)) < len(texts):
        k = next(k for k, text in enumerate(texts) if number[text] != k)
        raise InputError(
            name, 0, "every word once", f"{texts[k]} in rows {number[texts[k]] + 1} and {k + 1}"
        )
    rows = rows.astype(np.float32)
    if not np.isfinite(rows).all():
        k = int(np.argmin(np.isfinite(rows).all(axis=1)))
        raise InputError(name, 0, "finite numbers", f"others in row {k + 1}, of {texts[k]}")
    return Vectors(texts, rows)


def _read_text(name: str) -> Vectors:
    words: dict[str, int] = {}
    rows: list[np.ndarray] = []
    width = 0
    with open_bytes(name) as file:
        for line, raw in enumerate(iter(lambda: file.readline(_LONGEST), b""), 1):
            text = raw.decode("utf-8-sig" if line == 1 else "utf-8", "replace").rstrip("\r\n")
            word, _, rest = text.rstrip(" ").partition("\t" if "\t" in text else " ")
            fields = rest.split()
            if line == 1 and word.isdecimal() and len(fields) == 1 and fields[0].isdecimal():
                continue
            if not text.strip():
                continue
            try:
                with np.errstate(over="ignore"):
                    row = np.array(fields, np.float32)
            except ValueError:
                raise InputError(name, line, "a word and its numbers", text) from None
            width = width or len(row)
            if len(row) != width or not width:
                found = f"{len(row)} behind {word}"
                raise InputError(name, line, f"{width or 'some'} numbers as before", found)
            if not np.isfinite(row).all():
                raise InputError(name, line, "finite numbers", text)
            if word in words:
                raise InputError(name, line, "every word once", f"{word}, as in line {words[word]}")
            words[word] = line
            rows.append(row)
    return Vectors(tuple(words), np.stack(rows) if rows else np.zeros((0, 0), np.float32))


def _first_places(texts: tuple[str, ...]) -> dict[str, int]:
    places: dict[str, int] = {}
    for k, text in enumerate(texts):
        places.setdefault(text, k)
    return places
