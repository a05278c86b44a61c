"""Segments against the chain, with and without a lexicon of the names of the training part.

    python bench/segments.py wnut17 --dev             # which length, on the dev part
    python bench/segments.py jnlpba wnut17            # the table of docs/results.md

The dev part of jnlpba is the last 1,739 sentences of the training part. The lexicon has the names
of the training part alone, in lower case; templates look for its entries at the token and its
neighbours, and segments at entries that are exactly them. An epoch is timed by CPU seconds, the
least of all epochs.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import common
import numpy as np

from hopefear import Tagger
from hopefear.data.schemes import spans
from hopefear.data.token_examples import read_tokens
from hopefear.errors import DataWarning
from hopefear.features import templates

DATA = Path(__file__).parents[2] / "shared" / "data"
CORPORA = {
    "jnlpba": ("jnlpba/train.iob2.gz", None, "jnlpba/test.iob2.gz", "bioner"),
    "wnut17": ("wnut17/train.txt.gz", "wnut17/dev.txt.gz", "wnut17/test.txt.gz", "ner"),
}
DEV = 1_739  # sentences of jnlpba
LEXICON = """
[lexicons]
names = "names.txt"

[[templates]]
features = ["lexicon(names, lower(word))[-1..1]"]
optional = true
"""


def read(path: str) -> Any:
    return replace(read_tokens(str(DATA / path)).labelled(None), file=None)


def names_of(examples: Any) -> list[str]:
    """Names of the training part, in lower case."""
    table = spans(examples.gold, examples.starts, "bio", repair=True)
    texts = examples.texts()
    bounds = zip(table.first.tolist(), table.after.tolist(), strict=True)
    return sorted({" ".join(texts[a:b]).lower() for a, b in bounds})


def with_lexicon(features: str, examples: Any, folder: str) -> str:
    """A template file: a built-in set, and a lexicon of names."""
    (Path(folder) / "names.txt").write_text("\n".join(names_of(examples)) + "\n")
    source = Path(templates.__file__).with_name("sets") / f"{features}.toml"
    text = source.read_text()
    head, first, tail = text.partition("[[templates]]")
    lexicon, group, features_ = LEXICON.partition("[[templates]]")
    path = Path(folder) / "templates.toml"
    path.write_text(head + lexicon + first + tail + group + features_)
    return str(path)


def run(train: Any, test: Any, learner: str, features: str, length: int | None) -> dict[str, float]:
    """F1, precision and recall on the test sentences, and CPU seconds of an epoch."""
    clock = [time.process_time()]
    tagger = Tagger(
        learner,
        features=features,
        segments=length,
        temperature=False,
        callbacks=[lambda event: clock.append(time.process_time())],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        prepared = tagger._prepare(train, tagger._options())
        model = tagger.train(train).model
        scores, _ = prepared.judge(model, prepared.held_out(test))
    epochs = [after - before for before, after in pairwise(clock[1:])]
    return {**scores, "seconds": min(epochs)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("corpora", nargs="+", choices=CORPORA)
    parser.add_argument("--dev", action="store_true", help="score on the dev part")
    parser.add_argument("--learners", default="nbest-mira,crf")
    parser.add_argument("--lengths", default="0,6", help="0 is the chain")
    parser.add_argument("--lexicons", default="no,yes")
    args = parser.parse_args()
    os.nice(5)
    print(common.machine())
    print("| corpus | learner | structure | lexicon | F1 | precision | recall | s an epoch |")
    print("|---|---|---|---|---|---|---|---|")
    for corpus in args.corpora:
        train_path, dev_path, test_path, features = CORPORA[corpus]
        train = read(train_path)
        test = read(dev_path if args.dev and dev_path else test_path)
        if args.dev and not dev_path:
            n = len(train)
            train, test = (train.take(np.arange(a, b)) for a, b in ((0, n - DEV), (n - DEV, n)))
        with tempfile.TemporaryDirectory() as folder:
            sets = {"no": features, "yes": with_lexicon(features, train, folder)}
            for lexicon in args.lexicons.split(","):
                for learner in args.learners.split(","):
                    for length in map(int, args.lengths.split(",")):
                        row = run(train, test, learner, sets[lexicon], length or None)
                        numbers = " | ".join(
                            f"{row[key]:.2f}" for key in ("f1", "precision", "recall", "seconds")
                        )
                        structure = f"segments of {length}" if length else "chain"
                        line = f"| {corpus} | {learner} | {structure} | {lexicon} | {numbers} |"
                        print(line, flush=True)


if __name__ == "__main__":
    main()
