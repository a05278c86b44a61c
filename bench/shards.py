"""Shards beside one learner: seconds of an epoch, and F1 of the test part after as many epochs.

    python bench/shards.py                                   # sapo on JNLPBA, 1 and 2 shards
    python bench/shards.py --shards 1 2 4 8 16 --seeds 3     # on a machine with as many cores
    python bench/shards.py --corpus conll2000 --learners perceptron crf

Seconds are those of the quickest epoch but the first; the F1 is the mean over the seeds. Learners
with 1 shard and with more take turns.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Mapping
from typing import Any

from common import data_folder

CORPORA = {
    "jnlpba": ("jnlpba/train.iob2.gz", "jnlpba/test.iob2.gz", "bioner"),
    "conll2000": ("conll2000/train.txt.gz", "conll2000/test.txt.gz", "chunking"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--corpus", choices=CORPORA, default="jnlpba")
    parser.add_argument("--learners", nargs="+", default=["sapo"], metavar="NAME")
    parser.add_argument("--shards", nargs="+", type=int, default=[1, 2], metavar="K")
    parser.add_argument("--merge", default="mean-of-updated")
    parser.add_argument("--seeds", type=int, default=1, metavar="N")
    parser.add_argument("--epochs", type=int, default=10, metavar="N")
    args = parser.parse_args()
    study = read(args.corpus)
    print(f"{args.corpus}, {args.epochs} epochs, {len(os.sched_getaffinity(0))} cores\n")
    print("| learner | shards | seconds an epoch | one learner = 1 | F1 | |")
    print("|---|--:|--:|--:|--:|--:|")
    for name in args.learners:
        rows: dict[int, list[tuple[float, float]]] = {k: [] for k in args.shards}
        for seed in range(1, args.seeds + 1):
            for k, results in rows.items():
                results.append(run(study, name, k, args, seed))
        report(name, rows)


def read(corpus: str) -> Any:
    from hopefear.cli import parsed
    from hopefear.cli.compare import read_study
    from hopefear.cli.console import Console

    train, test, features = CORPORA[corpus]
    folder = data_folder()
    words = f"compare tag --train {folder / train} --test {folder / test} --features {features}"
    return read_study(parsed([*words.split(), "--learners", "perceptron"]), Console(quiet=True))


def run(study: Any, name: str, k: int, args: argparse.Namespace, seed: int) -> tuple[float, float]:
    """Returns the seconds of the quickest epoch, and the F1 of the test part."""
    from hopefear.tasks.base import train
    from hopefear.training.shards import Shards

    events: list[Mapping[str, Any]] = []
    corpus = study.corpus.suiting(name, {})
    trained = train(
        corpus.adapted(study.task),
        corpus.data,
        name,
        {},
        epochs=args.epochs,
        seed=seed,
        shards=Shards(k, args.merge) if k > 1 else None,
        on_event=[events.append],
        calibrate=False,
    )
    scores, _ = corpus.judge(trained.model, corpus.encoded(study.test))
    seconds = min(event["seconds"] for event in events[1:] if "seconds" in event)
    return seconds, scores["f1"]


def report(name: str, rows: Mapping[int, list[tuple[float, float]]]) -> None:
    first = next(iter(rows.values()))
    single, base = min(s for s, _ in first), statistics.fmean(f1 for _, f1 in first)
    for k, runs in rows.items():
        seconds, f1 = min(s for s, _ in runs), statistics.fmean(f1 for _, f1 in runs)
        cells = (f"{seconds:.3f}", f"{seconds / single:.2f}", f"{f1:.2f}", f"{f1 - base:+.2f}")
        print(f"| {name} | {k} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
