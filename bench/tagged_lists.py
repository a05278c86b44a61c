"""Lists of a tagger's twenty best, made of corpora with names, for rerankers to learn from.

    python bench/tagged_lists.py wnut17             # of the training part, by jackknifing
    python bench/tagged_lists.py wnut17 --test      # of the test part, by a tagger of all of train

Sentences of the training part are tagged by a tagger that has not seen them: their file is cut into
five blocks, and each is tagged by what was learned from the others. A candidate has what a user
would write: the tagger's score, its spans as ``text`` (with ``--metric f1`` judged against those of
``reference``), wrong and missing spans as ``cost``, and as ``features`` what its spans look like in
the sentence. Lists go to ``--folder``, one file a part.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from common import data_folder

FOLDS, BEST = 5, 20
FILES = {
    "jnlpba": ("jnlpba/train.iob2.gz", "jnlpba/test.iob2.gz"),
    "wnut17": ("wnut17/train.txt.gz", "wnut17/test.txt.gz"),
}

Sentence = tuple[list[str], list[str]]  # words and labels
Span = tuple[str, int, int]  # type, first token, token behind it


def path_of(name: str, part: str = "train", folder: Path = Path("runs/lists")) -> Path:
    return (folder / f"{name}.{part}.jsonl.gz").resolve()


def sentences(path: Path) -> list[Sentence]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        blocks = [block.splitlines() for block in file.read().split("\n\n") if block.strip()]
    rows = [[line.split("\t") for line in block if line] for block in blocks]
    return [([row[0] for row in block], [row[-1] for row in block]) for block in rows]


def spans(labels: Sequence[str]) -> list[Span]:
    """Returns the spans that labels in BIO spell.

    >>> spans(["B-LOC", "I-LOC", "O", "B-PER"])
    [('LOC', 0, 2), ('PER', 3, 4)]
    """
    starts = [
        i
        for i, label in enumerate(labels)
        if label != "O" and (label[0] == "B" or i == 0 or labels[i - 1][2:] != label[2:])
    ]
    result = []
    for start in starts:
        end = start + 1
        while end < len(labels) and labels[end] == f"I-{labels[start][2:]}":
            end += 1
        result.append((labels[start][2:], start, end))
    return result


def shape(word: str) -> str:
    """Returns the kinds of characters of a word, runs of one kind as one.

    >>> shape("IL-2")
    'X-d'
    """
    kinds = (
        "X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word
    )
    return "".join(kind for kind, _ in groupby(kinds))


def features(words: Sequence[str], spans_found: Sequence[Span]) -> Counter[str]:
    """Returns what the spans of a candidate look like, each with the number of times."""
    low, counts = [word.lower() for word in words], Counter[str]()
    for kind, start, end in spans_found:
        before = low[start - 1] if start else "<s>"
        after = low[end] if end < len(low) else "</s>"
        counts.update(
            (
                f"type={kind}",
                f"length={kind}:{min(end - start, 6)}",
                f"text={kind}:{' '.join(low[start:end])}",
                f"first={kind}:{low[start]}",
                f"last={kind}:{low[end - 1]}",
                f"before={kind}:{before}",
                f"after={kind}:{after}",
                f"shape={kind}:{' '.join(map(shape, words[start:end]))}",
            )
        )
    for (kind_before, _, end), (other, start, _) in pairwise(spans_found):
        counts[f"pair={kind_before}:{low[end] if end < start else ''}:{other}"] += 1
    types: dict[str, set[str]] = {}
    for kind, start, end in spans_found:
        types.setdefault(" ".join(low[start:end]), set()).add(kind)
    counts["spans"] = len(spans_found)
    counts["inconsistent"] = sum(len(kinds) > 1 for kinds in types.values())
    return counts


def lists(tagger: Any, sentences: Sequence[Sentence], first: int, unit: float) -> Iterable[str]:
    """Yields a line for each sentence: its best label sequences as a list of candidates.

    ``unit`` is the cost of a wrong or missing span.
    """
    best = tagger.predict_nbest([[(w,) for w in words] for words, _ in sentences], BEST)
    for i, ((words, labels), outputs) in enumerate(zip(sentences, best, strict=True), first):
        gold, candidates = spans(labels), []
        for output in outputs:
            spans_found = spans(output.labels)
            candidates.append(
                {
                    "text": _spelled(spans_found),
                    "score": round(float(output.score), 4),
                    "cost": round(unit * len(set(gold) ^ set(spans_found)), 4),
                    "features": {k: n for k, n in features(words, spans_found).items() if n},
                }
            )
        line = {"id": str(i), "reference": _spelled(gold), "candidates": candidates}
        yield json.dumps(line, ensure_ascii=False) + "\n"


def _spelled(spans_found: Sequence[Span]) -> str:
    return " ".join(f"{kind}:{start}-{end}" for kind, start, end in spans_found)


def make(name: str, part: str = "train", folder: Path = Path("runs/lists")) -> Path:
    """Writes the lists of a part of a corpus, where they are missing; returns their file."""
    path = path_of(name, part, folder)
    if path.exists():
        return path
    train, test = (data_folder() / file for file in FILES[name])
    corpus = sentences(train)
    # Errors in percent of the spans of both sides: about as large as 100 - F1.
    unit = 50 * len(corpus) / sum(len(spans(labels)) for _, labels in corpus)
    bounds = [len(corpus) * k // FOLDS for k in range(FOLDS + 1)]
    parts = [(corpus[:a] + corpus[b:], corpus[a:b], a) for a, b in pairwise(bounds)]
    if part == "test":
        parts = [(corpus, sentences(test), 0)]
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    with gzip.open(partial, "wt", compresslevel=4, encoding="utf-8") as file:
        for learned_from, some, first in parts:
            file.writelines(lists(_tagger(learned_from), some, first, unit))
    os.replace(partial, path)
    return path


def _tagger(sentences: Sequence[Sentence]) -> Any:
    import hopefear

    # The learner is named, so that lists stay as they are when the default becomes another.
    tagger = hopefear.Tagger("sapo", epochs=10, columns=("word",), features="ner")
    return tagger.fit(
        [[(w,) for w in words] for words, _ in sentences], [labels for _, labels in sentences]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpus", choices=FILES)
    parser.add_argument("--test", action="store_true", help="the test part")
    parser.add_argument("--folder", type=Path, default=Path("runs/lists"))
    args = parser.parse_args()
    print(make(args.corpus, "test" if args.test else "train", args.folder))


if __name__ == "__main__":
    main()
