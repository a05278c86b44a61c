"""Dependency parsers on real treebanks, beside the recorded figures of TurboParser and MSTParser.

    python bench/parsing.py
    python bench/parsing.py --sets basque --orders 1 --learners mira swvp --epochs 10 --seeds 1 2 3
    python bench/parsing.py --quick

Every row is a process of its own that reads, trains with gold tags and without development trees,
saves the model, loads it and parses the test trees; a short process before it compiles what is not
on disk. Times are CPU seconds of one thread: of the quickest pass, learning alone, and of the
quickest of three parses, from sentences in memory to heads, features and pruning included. Memory
is the peak when training ends, with imports. R is a pass of CRFsuite, see sequences.py: the peers
ran on another day on a busy machine, and no R was taken then, so their seconds are good for ratios
of 2 and more only. Linux only.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np

from hopefear.data.treebank import Treebank, read_treebank
from hopefear.metrics import Dependencies, Trees
from hopefear.tasks.base import train
from hopefear.tasks.parse.model import ParseModel
from hopefear.tasks.parse.prepare import prepare

SCORES = ("uas", "las", "uas_nopunct", "las_nopunct")
QUICK = 60  # sentences of training and test
PARSES = 3


class Treebanks(NamedTuple):
    """Files of a set below the data, and how many training sentences are taken."""

    train: str
    test: str
    labelled: bool = True
    first: int | None = None


_BASQUE = [f"conll2007/basque.{part}.conll.gz" for part in ("train", "test")]
SETS = {
    "basque": Treebanks(*_BASQUE),
    "basque-500": Treebanks(*_BASQUE, first=500),
    "spanish": Treebanks(*(f"conll2007/spanish.{part}.conll.gz" for part in ("train", "test"))),
    "ewt": Treebanks(*(f"ud_english_ewt/{part}.conllu.gz" for part in ("train", "test"))),
    "ptb": Treebanks(*(f"ptb_sample/{part}.dp.gz" for part in ("train", "test")), labelled=False),
}


class Peer(NamedTuple):
    """Result of a peer on the same files: gold tags, labelled, one thread."""

    system: str
    epochs: int
    scores: tuple[float, float, float, float]  # in the order of SCORES
    seconds: float  # CPU of the quickest epoch
    speed: int  # tokens a second
    memory: int  # MB, peak of training
    model: float  # MB


# Measured on 15 November 2026 with TurboParser 2.3 and MSTParser 0.4.3b, non-projective; each run
# was made once. "flat" is TurboParser with its hash table replaced by a flat one, which takes about
# 0.67 of the time. Runs of fewer than 10 epochs were cut short, so their scores are floors.
_MIRA, _FLAT = "TurboParser basic, svm_mira", "TurboParser basic, svm_mira, flat"
_STANDARD = "TurboParser standard, svm_mira, flat"
PEERS: dict[tuple[str, int], tuple[Peer, ...]] = {
    ("basque", 1): (
        Peer(_FLAT, 7, (81.88, 77.31, 78.27, 72.68), 22, 1880, 354, 56.7),
        Peer(
            "TurboParser basic, perceptron, flat",
            *(10, (81.31, 76.78, 77.46, 72.02), 17, 1310, 287, 40.7),
        ),
    ),
    ("basque", 2): (Peer(_STANDARD, 2, (82.96, 76.88, 79.71, 72.26), 114, 580, 972, 207),),
    ("spanish", 1): (Peer(_FLAT, 4, (79.97, 76.82, 82.36, 78.93), 39, 2130, 362, 48.8),),
    ("ewt", 1): (Peer(_FLAT, 2, (84.08, 81.83, 85.29, 82.74), 122, 1850, 622, 100),),
    ("basque-500", 1): (
        Peer(_MIRA, 10, (77.00, 71.31, 73.21, 66.22), 4.0, 2420, 131, 17.7),
        Peer(
            "MSTParser order 1, no attributes",
            *(10, (76.09, 65.96, 71.55, 59.12), 5.5, 214, 504, 27.6),
        ),
    ),
    ("basque-500", 2): (
        Peer(_STANDARD, 8, (78.52, 72.28, 74.99, 67.33), 17, 760, 289, 66.4),
        Peer(
            "MSTParser order 2, no attributes",
            *(10, (76.44, 66.05, 71.98, 59.24), 9.6, 152, 638, 28.6),
        ),
    ),
}


def main() -> None:
    chosen = arguments()
    if chosen.child:
        print(json.dumps(measure(json.loads(chosen.child))))
        return
    rows = []
    for name in chosen.sets:
        for order in chosen.orders:
            rows += [
                {"set": name, "order": order, **result} for result in ours(name, order, chosen)
            ]
            for peer in PEERS.get((name, order), ()):
                rows.append({"set": name, "order": order, **_figures(peer)})
    R = None if chosen.no_reference or chosen.quick else reference(chosen.data)
    print(table(rows, R), file=sys.stderr)
    result = {
        "rows": rows,
        "R": R,
        "seeds": chosen.seeds,
        "machine": common.machine(),
        "versions": {name: version(name) for name in ("hopefear", "numba")},
    }
    text = json.dumps(result, ensure_ascii=False) + "\n"
    if chosen.json == "-":
        sys.stdout.write(text)
    elif chosen.json is not None:
        Path(chosen.json).write_text(text, "utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of the corpora")
    parser.add_argument(
        "--sets", nargs="+", choices=list(SETS), default=["basque", "spanish", "ewt"]
    )
    parser.add_argument("--orders", nargs="+", type=int, choices=[1, 2], default=[1, 2])
    parser.add_argument("--learners", nargs="+", default=["mira", "perceptron"], metavar="NAME")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1], help="scores are their means")
    parser.add_argument("--no-reference", action="store_true", help="do not measure R")
    parser.add_argument("--quick", action="store_true", help="a few sentences, to see that it runs")
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="also write as JSON")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.epochs < 1:
        parser.error("--epochs must be 1 or more")
    if chosen.data is None and not chosen.child:
        chosen.data = common.data_folder()
    return chosen


def ours(name: str, order: int, chosen: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for every learner: means over seeds of scores, the best of everything else."""
    rows = []
    for learner in chosen.learners:
        epochs = 2 if chosen.quick else chosen.epochs
        spec = {"data": str(chosen.data), "set": name, "order": order, "learner": learner}
        log(f"{name}, order {order}, {learner}")
        child({**spec, "epochs": 1, "seed": 1, "most": 20})
        max_sentences = QUICK if chosen.quick else None
        runs = [
            child({**spec, "epochs": epochs, "seed": seed, "most": max_sentences})
            for seed in chosen.seeds
        ]
        scores = {key: _mean([run["scores"].get(key) for run in runs]) for key in SCORES}
        rows.append(
            {
                "system": f"hopefear {learner}",
                "epochs": epochs,
                "scores": scores,
                "seconds": min(run["seconds"] for run in runs),
                "speed": max(run["speed"] for run in runs),
                "memory": min(run["memory"] for run in runs),
                "model": min(run["model"] for run in runs),
                "signature": runs[0]["signature"],
                "runs": runs,
            }
        )
    return rows


def child(spec: dict[str, Any]) -> dict[str, Any]:
    """Measures in a child process."""
    process = subprocess.run(
        [sys.executable, __file__, "--child", json.dumps(spec)], stdout=subprocess.PIPE, text=True
    )
    if process.returncode:
        raise SystemExit(f"the process of {spec} left with status {process.returncode}")
    result: dict[str, Any] = json.loads(process.stdout)
    return result


def measure(spec: dict[str, Any]) -> dict[str, Any]:
    """Train, save, load and parse."""
    time.perf_counter = time.process_time  # the clock of events: other jobs do not count on it
    files, folder = SETS[spec["set"]], Path(spec["data"])
    bank, test = (read_treebank(folder / name) for name in (files.train, files.test))
    bank, test = first(first(bank, files.first), spec["most"]), first(test, spec["most"])
    options = {"order": spec["order"], "unlabelled": not files.labelled}
    trees = prepare(bank, {**options, "random_state": spec["seed"]})
    prepared = time.process_time()
    seconds: list[float] = []

    def note(event: Any) -> None:
        if "seconds" in event:
            seconds.append(event["seconds"])

    how = {"epochs": spec["epochs"], "seed": spec["seed"], "on_event": [note]}
    model = train(trees.task, trees.data, spec["learner"], **how).model
    memory = peak()
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "parser"
        model.save(path)
        size = path.stat().st_size / 1e6
        model = ParseModel.load(path)
    model.parse(first(test, 2))  # loads kernels
    times = [common.cpu_seconds(lambda: model.parse(test)) for _ in range(PARSES)]
    return {
        "scores": scores_of(model, test, files.labelled),
        "seconds": min(seconds),
        "all_seconds": seconds,
        "prepared": prepared,
        "speed": test.n_tokens / max(min(times), 1e-9),
        "memory": memory,
        "model": size,
        "signature": model.signature,
    }


def first(bank: Treebank, n: int | None) -> Treebank:
    return bank if n is None else bank.take(np.arange(min(n, len(bank))))


def scores_of(model: ParseModel, test: Treebank, labelled: bool) -> dict[str, float]:
    heads, relations = model.parse(test)
    gold = Trees.of(test) if labelled else Trees.of(test)._replace(relations=None)
    metric = Dependencies(labelled)
    scores = metric.scores(metric.total(gold, gold._replace(heads=heads, relations=relations)))
    return {name: float(scores[name]) for name in SCORES if name in scores}


def peak() -> float:
    """Peak memory of this process in MB; not ru_maxrss, which counts the one that started it."""
    (kb,) = re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(kb) / 1024


def reference(data: Path) -> float | None:
    """Seconds of a pass of CRFsuite on this machine; None where it or its corpus is missing."""
    import sequences_corpus as corpus
    from crfsuite_reference import Reference

    log("R")
    try:
        passes = Reference(corpus.read(corpus.files(data).train)).passes(10)
    except SystemExit as error:
        log(f"no R: {error}")
        return None
    return float(np.mean(passes))


def _figures(peer: Peer) -> dict[str, Any]:
    return {**peer._asdict(), "scores": dict(zip(SCORES, peer.scores, strict=True))}


def _mean(values: list[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return float(np.mean(there)) if there else None


def table(rows: list[dict[str, Any]], R: float | None) -> str:
    """All rows as text.

    >>> peer = {"set": "basque", "order": 1, **_figures(PEERS["basque", 1][0])}
    >>> table([peer], None).splitlines()[1].split()[-5:]
    ['72.68', '22.00', '1,880', '354', '56.7']
    """
    heads = ["set", "order", "system", "epochs", "UAS", "LAS", "UAS np", "LAS np"]
    heads += ["s/epoch", "tokens/s", "MB", "model MB"]
    lines = [heads]
    for row in rows:
        scores = ["" if row["scores"][k] is None else f"{row['scores'][k]:.2f}" for k in SCORES]
        costs = [f"{row['seconds']:.2f}", f"{row['speed']:,.0f}", f"{row['memory']:,.0f}"]
        start = [row["set"], str(row["order"]), row["system"], str(row["epochs"])]
        lines.append([*start, *scores, *costs, f"{row['model']:.1f}"])
    wide = [max(len(line[c]) for line in lines) for c in range(len(heads))]
    text = "\n".join(
        "  ".join(
            cell.ljust(size) if c in (0, 2) else cell.rjust(size)
            for c, (cell, size) in enumerate(zip(line, wide, strict=True))
        ).rstrip()
        for line in lines
    )
    return text if R is None else f"{text}\nR = {R:.4f} CPU seconds on this machine"


def log(message: str) -> None:
    print(f"… {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
