"""Texts as numbers, and numbers for every run of words in them."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Corpus(NamedTuple):
    """Sentences end to end: those of sentence i are ``words[starts[i] : starts[i + 1]]``."""

    words: np.ndarray
    starts: np.ndarray
    vocabulary: list[str]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def text(self, start: int, size: int) -> str:
        """Words from a place on, with blanks between them."""
        return " ".join([self.vocabulary[w] for w in self.words[start : start + size]])


def numbered(sentences: Iterable[Sequence[str]], first: Sequence[str] = ()) -> Corpus:
    """Number the words of sentences in the order they come; ``first`` have the first numbers."""
    known = {word: i for i, word in enumerate(first)}
    words, starts = [], [0]
    for sentence in sentences:
        words += [known.setdefault(word, len(known)) for word in sentence]
        starts.append(len(words))
    return Corpus(np.array(words, np.int32), np.array(starts, np.int64), list(known))


class Runs(NamedTuple):
    """Runs of the same number of words: equal ones have equal numbers.

    ``number[p]`` is that of the run from place p on, -1 where a sentence ends before it does;
    ``place[k]`` is one where run k stands.
    """

    number: np.ndarray
    place: np.ndarray


def runs_of_words(corpus: Corpus, longest: int) -> list[Runs]:
    """Runs of 1, 2, … ``longest`` words."""
    n, words = len(corpus.words), corpus.words.astype(np.int64)
    place = np.zeros(len(corpus.vocabulary), np.int64)
    place[words[::-1]] = np.arange(n)[::-1]
    runs = [Runs(words, place)]
    left = np.repeat(corpus.starts[1:], np.diff(corpus.starts)) - np.arange(n)
    for size in range(2, longest + 1):
        inside = np.flatnonzero(left >= size)
        keys = runs[-1].number[inside] * len(corpus.vocabulary) + words[inside + size - 1]
        _, at, inverse = np.unique(keys, return_index=True, return_inverse=True)
        number = np.full(n, -1, np.int64)
        number[inside] = inverse
        runs.append(Runs(number, inside[at]))
    return runs


def read_lines(path: Path) -> list[str]:
    """Lines of a text, packed if its name ends in ``.gz``, without their ends."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return text.removesuffix("\n").split("\n") if text else []


def read_sentences(path: Path) -> list[list[str]]:
    """Words of the lines of a text."""
    return [line.split() for line in read_lines(path)]


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a text, packed if its name ends in ``.gz``: equal texts are equal files."""
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data, 3, mtime=0) if path.suffix == ".gz" else data)
