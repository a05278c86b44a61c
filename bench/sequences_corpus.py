"""CoNLL-2000 as files and as Python objects, with the attributes of CRFsuite's chunking example.

Imports nothing large: processes whose memory is measured read with it too.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

FEATURES = "crfsuite-chunking"  # the same attributes, as our templates
WORD, POS = 0, 1

# A template is columns at offsets; it fires where all of them lie in the sentence.
TEMPLATES = [
    *(((WORD, k),) for k in range(-2, 3)),
    *(((WORD, k), (WORD, k + 1)) for k in (-1, 0)),
    *(((POS, k),) for k in range(-2, 3)),
    *(((POS, k), (POS, k + 1)) for k in range(-2, 2)),
    *(((POS, k), (POS, k + 1), (POS, k + 2)) for k in range(-2, 1)),
]

Sentence = list[tuple[str, ...]]  # (word, part of speech, chunk tag) of every token


class Files(NamedTuple):
    """Training and test text."""

    train: Path
    test: Path


def files(folder: Path | None) -> Files:
    """The corpus below a data folder."""
    if folder is None:
        raise SystemExit("no data; set HOPEFEAR_DATA, or give --data the folder of the corpora")
    paths = Files(*(folder / "conll2000" / f"{part}.txt.gz" for part in ("train", "test")))
    for path in paths:
        if not path.is_file():
            raise SystemExit(f"{path} is missing; give --data the folder that holds conll2000")
    return paths


def shortened(full: Files, sizes: tuple[int, int], folder: Path) -> Files:
    """The first sentences of both, written to a folder."""
    shortened_files = Files(folder / "train.txt", folder / "test.txt")
    for path, n, out in zip(full, sizes, shortened_files, strict=True):
        lines = ("".join(" ".join(token) + "\n" for token in s) for s in islice(read(path), n))
        out.write_text("\n".join(lines) + "\n", "utf-8")
    return shortened_files


def read(path: Path) -> Iterator[Sentence]:
    """Sentences of a file, one at a time, as a Python user reads them."""
    sentence: Sentence = []
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else open(path) as lines:
        for line in lines:
            token = tuple(line.split())
            if token:
                sentence.append(token)
            elif sentence:
                yield sentence
                sentence = []
    if sentence:
        yield sentence


def attributes(sentence: Sentence) -> list[list[str]]:
    """Attributes of every token as strings.

    >>> attributes([("He", "PRP", "B-NP"), ("ran", "VBD", "B-VP")])[0][:3]
    ['w[0]=He', 'w[1]=ran', 'w[0]|w[1]=He|ran']
    """
    n, attributes_of_tokens = len(sentence), []
    for i in range(n):
        names = [
            "|".join(f"{'wp'[column]}[{k}]" for column, k in template)
            + "="
            + "|".join(sentence[i + k][column] for column, k in template)
            for template in TEMPLATES
            if i + template[0][1] >= 0 and i + template[-1][1] < n
        ]
        names += ["__BOS__"] * (i == 0) + ["__EOS__"] * (i == n - 1)
        attributes_of_tokens.append(names)
    return attributes_of_tokens


def labels(sentence: Sentence) -> list[str]:
    return [token[-1] for token in sentence]
