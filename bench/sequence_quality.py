"""Test scores of taggers at their defaults, beside what other tools reach on the same data.

    python bench/sequence_quality.py
    python bench/sequence_quality.py --only sapo conll2000/chunking/crf --seeds 3 --json scores.json
    python bench/sequence_quality.py --quick

Every row is a corpus, a set of templates and a learner: mean and deviation over seeds of the score
after the last pass (chunk or entity F1 by conlleval, accuracy of parts of speech; percent). Test
data is looked at after every pass and decides nothing. Each run is kept in ``--out`` and not made
again; remove the folder after edits in the library.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import common
import numpy as np
import sequence_quality_rows as plan
from sequence_quality_rows import Row

from hopefear.errors import HopefearError
from hopefear.recipes import Scale
from hopefear.tasks import recipe
from hopefear.tasks.tag.task import train
from hopefear_papers.frame import KeptRuns, find_data
from hopefear_papers.sapo.plan import Problem, Reader

QUICK = (300, 200)  # sentences of training and test
QUICK_PASSES = 2


def main() -> None:
    chosen = arguments()
    folder = find_data(chosen.data)
    if folder is None:
        raise SystemExit("no data; set HOPEFEAR_DATA, or give --data the folder of the corpora")
    cache = KeptRuns(chosen.out / "quick" if chosen.quick else chosen.out)
    results = []
    for row in plan.chosen(chosen.only):
        result = measured(row, folder, cache, chosen)
        print(show(result), file=sys.stderr, flush=True)
        results.append(result)
    print(f"\n{best_line(results)}", file=sys.stderr)
    text = json.dumps({"rows": results, "machine": common.machine()}, ensure_ascii=False) + "\n"
    if chosen.json == "-":
        sys.stdout.write(text)
    elif chosen.json is not None:
        Path(chosen.json).write_text(text, "utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of the corpora")
    parser.add_argument("--out", type=Path, default=Path("runs", "sequence-quality"), metavar="DIR")
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="ROW",
        help="a corpus, a set of templates, a learner, or a pattern CORPUS/TEMPLATES/LEARNER",
    )
    parser.add_argument("--seeds", type=int, metavar="N", help="at most so many seeds of a row")
    parser.add_argument("--epochs", type=int, metavar="N", help="passes instead of the default")
    parser.add_argument("--quick", action="store_true", help="a few sentences, to see that it runs")
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="also write as JSON")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.seeds, chosen.epochs = min(chosen.seeds or 2, 2), chosen.epochs or QUICK_PASSES
    if not plan.chosen(chosen.only):
        parser.error(f"no row is called {', '.join(chosen.only)}; there are\n{plan.listed()}")
    return chosen


def measured(row: Row, folder: Path, cache: KeptRuns, chosen: argparse.Namespace) -> dict[str, Any]:
    """All seeds of a row, and what they come to."""
    goal = None if chosen.quick else row.goal
    row_facts = {"row": row.key, "goal": goal, "peers": row.peers, "metric": row.metric}
    try:
        problem = read(row.corpus, row.features, folder, chosen.quick)
        seeds = range(1, min(row.seeds, chosen.seeds or row.seeds) + 1)
        runs = [one(row, problem, seed, chosen.epochs, cache) for seed in seeds]
    except HopefearError as error:
        return {**row_facts, "failed": str(error)}
    return {**row_facts, **summary([run["scores"] for run in runs], goal), "runs": runs}


def one(
    row: Row, problem: Problem, seed: int, epochs: int | None, cache: KeptRuns
) -> dict[str, Any]:
    """A run that was kept, or a new one."""
    learner = recipe(row.learner, "tag").build(Scale(n=len(problem.train)), **row.params)
    identity = {
        "signature": learner.signature(seed=seed, **row.how),
        "epochs": epochs,
        "train": problem.train.digest,
        "test": problem.test.digest,
    }
    make = partial(run, row, problem, seed, epochs)
    result: dict[str, Any] = cache.of(f"{row.key}-{seed}", identity, make)
    return result


def run(row: Row, problem: Problem, seed: int, epochs: int | None) -> dict[str, Any]:
    start = time.process_time()
    trained = train(
        *(problem.train, row.learner, row.params),
        **{"epochs": epochs, "seed": seed, "dev": problem.test, **row.how},
    )
    return {
        "seed": seed,
        "scores": [event["dev"][row.metric] for event in trained.fit.history],
        "nnz": int(trained.model.nnz),
        "seconds": round(time.process_time() - start, 2),  # with scoring, and compiling if need be
        "signature": trained.model.signature,
    }


@lru_cache(maxsize=1)  # rows of one problem stand together
def read(corpus: str, features: str, folder: Path, quick: bool) -> Problem:
    problem = Reader(plan.task(corpus, features), folder).read()
    if not quick:
        return problem
    train, test = (
        data.take(np.arange(min(n, len(data))))
        for data, n in zip((problem.train, problem.test), QUICK, strict=True)
    )
    return Problem(problem.task, train, test, train, test)


def summary(curves: Sequence[Sequence[float]], goal: float | None = None) -> dict[str, Any]:
    """Mean and spread over seeds of the last score, and the mean after each pass.

    >>> found = summary([[90.0, 93.0], [91.0, 94.0]], goal=93.4)
    >>> found["mean"], found["deviation"], found["by_pass"], found["verdict"]
    (93.5, 0.5, [90.5, 93.5], 'met')
    """
    last = np.array([curve[-1] for curve in curves])
    passes = min(len(curve) for curve in curves)
    mean = float(last.mean())
    return {
        "mean": mean,
        "deviation": float(last.std()),
        "least": float(last.min()),
        "most": float(last.max()),
        "passes": [len(curve) for curve in curves],
        "by_pass": np.mean([curve[:passes] for curve in curves], axis=0).tolist(),
        "verdict": "" if goal is None else "met" if mean >= goal else "MISSED",
    }


def show(result: dict[str, Any]) -> str:
    """A row as a line; after passes 1, 3 and 5 too."""
    head = f"{result['row']:40s} "
    if "failed" in result:
        return f"{head} failed: {result['failed']}"
    early = " ".join(f"{s:6.2f}" for k, s in enumerate(result["by_pass"], 1) if k in (1, 3, 5))
    goal = "" if result["goal"] is None else f"goal {result['goal']:g}"
    return (
        f"{head}{result['mean']:6.2f} ± {result['deviation']:.2f} ({result['least']:.2f} to "
        f"{result['most']:.2f}; {len(result['runs'])} runs of {max(result['passes']):3d})  "
        f"1,3,5: {early:20s}  {goal:9s} {result['verdict']:6s}  {result['peers']}"
    ).rstrip()


def best_line(results: list[dict[str, Any]]) -> str:
    """Returns the best chunker with free templates, which has a goal of its own."""
    rows = [f for f in results if f["row"].startswith("conll2000/") and "mean" in f]
    if not rows:
        return ""
    best = max(rows, key=lambda f: f["mean"])
    verdict = "met" if best["mean"] >= plan.BEST_CHUNKER else "MISSED"
    return f"best chunker: {best['row']} {best['mean']:.2f}, goal {plan.BEST_CHUNKER:g} {verdict}"


if __name__ == "__main__":
    main()
