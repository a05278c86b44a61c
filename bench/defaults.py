"""Which learner should be the default of a task: cross-validation inside the training parts.

    python bench/defaults.py tag                    # or classify, rerank
    python bench/defaults.py tag --only conll2000 --learners sapo adagrad-rda

Every corpus of the task is cut into three folds, by blocks of whole sentences, lines or lists; each
learner is trained with `hopefear compare` at its defaults on two of them and tested on the third.
Test files are never opened. One row a corpus and learner: the mean score, how far behind the best
learner of the corpus it is, non-zero weights and seconds a pass; then the mean over the corpora.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from common import data_folder

FOLDS = 3
# corpus: (file, options, units at most); a limit keeps a whole sitting under an hour.
CORPORA: dict[str, dict[str, tuple[str, str, int]]] = {
    "tag": {
        "conll2000": ("conll2000/train.txt.gz", "", 4500),
        "jnlpba": ("jnlpba/train.iob2.gz", "", 4500),
        "genia_pos": ("genia_pos/train.tsv.gz", "", 4500),
        "ud_english_ewt": ("ud_english_ewt/train.conllu.gz", "", 4500),
        "spanish": ("conll2007/spanish.train.conll.gz", "--column 4", 4500),
    },
    "classify": {
        "a9a": ("a9a/train.libsvm.gz", "", 30_000),
        "books": ("amazon_mds/books.train.libsvm.gz", "", 30_000),
        "kitchen": ("amazon_mds/kitchen.train.libsvm.gz", "", 30_000),
        "imdb": ("imdb/train.libsvm.xz", "", 12_000),
        "news20": ("news20_bydate/train.libsvm.xz", "", 12_000),
        "rt_polarity": ("rt_polarity/train.tsv.gz", "--ngrams 2", 30_000),
        "subjectivity": ("subjectivity/train.tsv.gz", "--ngrams 2", 30_000),
    },
    "rerank": {"ptb-nbest": ("ptb-nbest/train.jsonl.xz", "", 3000)},
}
LEARNERS = {
    "tag": "sapo adagrad-rda adagrad perceptron mira crf ssvm arow ftrl swvp",
    "classify": "adagrad-rda adagrad sgd arow ftrl perceptron pa cw softmax vrda",
    "rerank": "maxent adagrad-rda adagrad perceptron mira ssvm risk ftrl sapo",
}
SCORES = {"tag": ("f1", "accuracy"), "classify": ("accuracy",), "rerank": ("f1",)}


def units(path: Path, task: str, most: int) -> list[str]:
    """Sentences, lines or lists of a file, as they stand."""
    opener = {".gz": gzip.open, ".xz": lzma.open}[path.suffix]
    with opener(path, "rt", encoding="utf-8") as file:
        if task == "tag":
            blocks = [f"{block}\n\n" for block in file.read().split("\n\n") if block.strip()]
            return blocks[:most]
        return [line for line, _ in zip(file, range(most), strict=False)]


def folds(parts: Sequence[str], pieces: int = 30) -> list[tuple[str, str]]:
    """(train, test) texts; neighbours stay together, for they are of one document."""
    bounds = [len(parts) * i // pieces for i in range(pieces + 1)]
    blocks = ["".join(parts[a:b]) for a, b in pairwise(bounds)]
    return [
        (
            "".join(block for i, block in enumerate(blocks) if i % FOLDS != k),
            "".join(block for i, block in enumerate(blocks) if i % FOLDS == k),
        )
        for k in range(FOLDS)
    ]


def compared(task: str, train: str, test: str, name: str, options: str, learners: str) -> Any:
    """What `hopefear compare` says of one fold."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        suffix = "".join(Path(name).suffixes[:-1])
        (folder / f"train{suffix}").write_text(train, encoding="utf-8")
        (folder / f"test{suffix}").write_text(test, encoding="utf-8")
        words = f"compare {task} --train train{suffix} --test test{suffix} {options}".split()
        words += ["--learners", learners, "--report", "page.html", "--json", "--quiet"]
        child = subprocess.run(
            [sys.executable, "-m", "hopefear", *words], cwd=folder, capture_output=True, text=True
        )
    if child.returncode:
        raise SystemExit(f"defaults.py: {' '.join(words)}:\n{child.stderr}")
    return json.loads(child.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=CORPORA)
    parser.add_argument("--only", nargs="+", help="corpora")
    parser.add_argument("--learners", nargs="+")
    parser.add_argument("--most", type=int, help="sentences, lines or lists of each corpus")
    parser.add_argument("--json", type=Path, help="file for all figures")
    args = parser.parse_args()
    learners = args.learners or LEARNERS[args.task].split()
    table: dict[str, dict[str, list[dict[str, float]]]] = {}
    for corpus, (name, options, most) in CORPORA[args.task].items():
        if args.only and corpus not in args.only:
            continue
        rows = table[corpus] = {learner: [] for learner in learners}
        for train, test in folds(units(data_folder() / name, args.task, args.most or most)):
            answer = compared(args.task, train, test, name, options, ",".join(learners))
            for learner, result in zip(learners, answer["learners"], strict=True):
                rows[learner].append(figures(result, SCORES[args.task]))
        show(corpus, rows)
        if args.json:
            args.json.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")
    means = {learner: [] for learner in learners}
    for rows in table.values():
        best = max(mean(fold, "score") for fold in rows.values())
        for learner, fold in rows.items():
            means[learner].append(mean(fold, "score") - best)
    print("\nbehind the best, mean over the corpora")
    for learner, gaps in sorted(means.items(), key=lambda pair: -sum(pair[1])):
        print(f"  {learner:<14}{sum(gaps) / len(gaps):8.2f}")


def figures(result: dict[str, Any], names: Sequence[str]) -> dict[str, float]:
    score = next(result[name] for name in names if result.get(name) is not None)
    score = 100 * score if score <= 1 else score
    return {"score": score, "nnz": result["nnz"], "seconds": result["seconds_per_pass"]}


def mean(rows: Sequence[dict[str, float]], key: str) -> float:
    return sum(row[key] for row in rows) / len(rows)


def show(corpus: str, rows: dict[str, list[dict[str, float]]]) -> None:
    print(f"\n{corpus:<16}{'score':>8}{'behind':>8}{'nnz':>12}{'s/pass':>8}")
    best = max(mean(fold, "score") for fold in rows.values())
    for learner, fold in sorted(rows.items(), key=lambda pair: -mean(pair[1], "score")):
        score = mean(fold, "score")
        print(
            f"  {learner:<14}{score:8.2f}{score - best:8.2f}{mean(fold, 'nnz'):12,.0f}"
            f"{mean(fold, 'seconds'):8.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
