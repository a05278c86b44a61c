"""CRFsuite on a corpus of names, with two sets of features, beside the default tagger.

    python bench/crfsuite_names.py anem ler_de jnlpba wnut17 --folder runs/crfsuite
    python bench/crfsuite_names.py anem ler_de jnlpba wnut17 --folder runs/crfsuite --compare

Without ``--compare`` CRFsuite (L-BFGS, c1 = c2 = 0.1, 100 iterations) learns from the training
part, and what it answers on the test part is kept, unread. With it our default tagger learns from
the same part, and both are scored, with a paired test (approximate randomisation of sentences).
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import data_folder

FILES = {"jnlpba": "{}.iob2.gz"}
Words = Sequence[str]


def read(corpus: str, part: str) -> tuple[list[list[str]], list[list[str]]]:
    """Words and labels of a part of a corpus."""
    path = data_folder() / corpus / FILES.get(corpus, "{}.txt.gz").format(part)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        blocks = [block.splitlines() for block in file.read().split("\n\n") if block.strip()]
    rows = [[line.rstrip("\n").split("\t") for line in block if line.strip()] for block in blocks]
    return [[row[0] for row in sentence] for sentence in rows], [
        [row[-1] for row in sentence] for sentence in rows
    ]


def shape(word: str) -> str:
    letters = "".join(
        "X" if c.isupper() else "x" if c.islower() else "0" if c.isdigit() else c for c in word
    )
    return "".join(c for c, before in zip(letters, " " + letters[:-1], strict=True) if c != before)


def own(word: str, affixes: int) -> list[str]:
    """Features of a word alone.

    >>> own("Rome", 1)
    ['rome', 's=Xx', 'title', 'p1=R', 's1=e']
    """
    kinds = [name for name in ("upper", "title", "digit") if getattr(word, f"is{name}")()]
    ends = [(f"p{n}={word[:n]}", f"s{n}={word[-n:]}") for n in range(1, affixes + 1)]
    return [word.lower(), f"s={shape(word)}", *kinds, *(end for pair in ends for end in pair)]


def near(words: Words, t: int) -> list[str]:
    """Words, cases, shapes and affixes; of the neighbours words, cases and shapes."""
    attributes = ["bias", f"w={words[t]}", *own(words[t], 4)]
    for position in (t - 1, t + 1):
        if 0 <= position < len(words):
            attributes += [f"{position - t}:{a}" for a in own(words[position], 0)]
        else:
            attributes.append("first" if position < 0 else "last")
    return attributes


def wide(words: Words, t: int) -> list[str]:
    """The same two words far, with pairs of neighbours and their affixes."""
    attributes = ["bias", f"w={words[t]}", *own(words[t], 4)]
    for position in (t - 2, t - 1, t + 1, t + 2):
        if 0 <= position < len(words):
            attributes += [f"{position - t}:{a}" for a in own(words[position], 3)]
        else:
            attributes.append("first" if position < 0 else "last")
    for position in (t - 1, t):
        if position >= 0 and position + 1 < len(words):
            pair = f"{words[position]}|{words[position + 1]}".lower()
            attributes.append(f"{position - t}&{pair}")
    return attributes


SETS: dict[str, Callable[[Words, int], list[str]]] = {"near": near, "wide": wide}


def peer(corpus: str, name: str, folder: Path) -> None:
    """Trains CRFsuite, and keeps what it answers."""
    import pycrfsuite

    began, trainer = time.process_time(), pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params({"c1": 0.1, "c2": 0.1, "max_iterations": 100})
    for words, labels in zip(*read(corpus, "train"), strict=True):
        trainer.append([SETS[name](words, t) for t in range(len(words))], labels)
    model = str(folder / f"{corpus}-{name}.crfsuite")
    trainer.train(model)
    seconds, tagger = time.process_time() - began, pycrfsuite.Tagger()
    tagger.open(model)
    answers = [
        tagger.tag([SETS[name](words, t) for t in range(len(words))])
        for words in read(corpus, "test")[0]
    ]
    Path(model).unlink()
    result = {"seconds": round(seconds, 1), "answers": answers}
    (folder / f"{corpus}-{name}.json").write_text(json.dumps(result), "utf-8")


def ours(corpus: str) -> tuple[list[list[str]], float]:
    """Returns the default tagger's labels, and the CPU seconds of learning without compiling."""
    import hopefear

    train, test = read(corpus, "train"), read(corpus, "test")
    hopefear.Tagger(epochs=1).fit(*([part[:50] for part in train]))
    began = time.process_time()
    tagger = hopefear.Tagger().fit(*train)
    return tagger.predict(test[0]), time.process_time() - began


def counts(gold: list[list[str]], answers: list[list[str]]) -> tuple[Any, Any]:
    """The metric, and its counts of every sentence."""
    from hopefear.metrics import Tagging

    starts = np.cumsum([0, *map(len, gold)])
    flat = [
        [label for sentence in sentences for label in sentence] for sentences in (gold, answers)
    ]
    names = tuple(dict.fromkeys(flat[0] + flat[1]))
    number = {label: k for k, label in enumerate(names)}
    ids = [np.array([number[label] for label in labels], np.int32) for labels in flat]
    metric = Tagging("conlleval")
    return metric, metric.statistics(*ids, starts, names)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpora", nargs="+")
    parser.add_argument("--folder", type=Path, default=Path("runs", "crfsuite"))
    parser.add_argument("--compare", action="store_true", help="score the test part")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    for corpus in chosen.corpora:
        for name in SETS:
            if not (chosen.folder / f"{corpus}-{name}.json").exists():
                peer(corpus, name, chosen.folder)
        if chosen.compare:
            compare(corpus, chosen.folder)


def compare(corpus: str, folder: Path) -> None:
    """Prints a row of both tools' scores."""
    from hopefear.metrics import approximate_randomisation

    gold = read(corpus, "test")[1]
    answers, seconds = ours(corpus)
    metric, rows = counts(gold, answers)
    score = metric.scores(np.sum(rows, axis=0))["f1"]
    cells = [f"{score:.2f} ({seconds:.0f} s)"]
    for name in SETS:
        result = json.loads((folder / f"{corpus}-{name}.json").read_text("utf-8"))
        _, peer_counts = counts(gold, result["answers"])
        value = metric.scores(np.sum(peer_counts, axis=0))["f1"]
        p_value = approximate_randomisation(metric, rows, peer_counts, "f1").p_value
        cells.append(f"{value:.2f} ({result['seconds']:.0f} s), p = {p_value:.4f}")
    print(f"| {corpus} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
