"""Choose the default of a task: cross-validation inside the training parts of all corpora.

    python bench/defaults.py tag                    # or texts, rows, lists, trees
    python bench/defaults.py tag --only wnut17 --sizes 500
    python bench/defaults.py tag --table            # of what is kept, without a run

Candidates are all recipes, and every loss with every rule and averaging that work together, on
every example and at the defaults of the rule. Successive halving: all at 500 training examples, the
best of them at 2,000, the best eight at all. Every corpus is cut into thirty blocks of neighbours;
a fold tests on a third of them. Test files are never opened. Training goes on for as many epochs as
could help and is scored after each, so one run tells of every number of epochs.

Runs are kept in ``--folder``, a line each, under what makes them what they are; a second call goes
on where the first one stopped. Times are CPU seconds of learning, on one thread.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import gzip
import io
import json
import lzma
import os
import random
import statistics
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import tagged_lists
from common import data_folder

FOLDS, BLOCKS = 3, 30
ALL = 10**9


class Corpus(NamedTuple):
    """Training part of a corpus: its file, options of ``compare``, and examples at most."""

    path: str
    options: str = ""
    max_size: int = ALL


class Stage(NamedTuple):
    """One step of the halving.

    Training examples, candidates that take part, how many of the best of them also with other step
    sizes, folds, and epochs.
    """

    size: int
    candidates: int
    varied: int
    folds: int
    epochs: int


RARE = "--on-error skip"  # small slices lack classes that others have
CORPORA: dict[str, dict[str, Corpus]] = {
    "tag": {
        "conll2000": Corpus("conll2000/train.txt.gz"),
        "jnlpba": Corpus("jnlpba/train.iob2.gz"),
        "wnut17": Corpus("wnut17/train.txt.gz"),
        "anem": Corpus("anem/train.txt.gz"),
        "ler_de": Corpus("ler_de/train.txt.gz"),
        "genia_pos": Corpus("genia_pos/train.tsv.gz"),
        "ewt": Corpus("ud_english_ewt/train.conllu.gz", "--column upos"),
        "spanish": Corpus("conll2007/spanish.train.conll.gz", "--column 4"),
    },
    "texts": {
        "banking77": Corpus("banking77/train.csv.gz", RARE),
        "clinc150": Corpus("clinc150/train.jsonl.gz", RARE),
        "tweet_emotion": Corpus("tweet_emotion/train.tsv.gz"),
        "rt_polarity": Corpus("rt_polarity/train.tsv.gz"),
        "subjectivity": Corpus("subjectivity/train.tsv.gz"),
    },
    "rows": {
        "a9a": Corpus("a9a/train.libsvm.gz"),
        "books": Corpus("amazon_mds/books.train.libsvm.gz"),
        "kitchen": Corpus("amazon_mds/kitchen.train.libsvm.gz"),
        "imdb": Corpus("imdb/train.libsvm.xz", max_size=12_000),
        "news20": Corpus("news20_bydate/train.libsvm.xz"),
    },
    "lists": {
        "ptb-nbest": Corpus("ptb-nbest/train.jsonl.xz"),
        "jnlpba F1": Corpus("jnlpba", "--metric f1", max_size=3_000),
        "jnlpba errors": Corpus("jnlpba", "--metric cost", max_size=3_000),
        "wnut17 F1": Corpus("wnut17", "--metric f1"),
        "wnut17 errors": Corpus("wnut17", "--metric cost"),
    },
    "trees": {
        "ewt": Corpus("ud_english_ewt/train.conllu.gz", "--order 1", max_size=4_500),
        "spanish": Corpus("conll2007/spanish.train.conll.gz", "--order 1", max_size=3_000),
    },
}
STAGES = {
    "tag": (Stage(500, ALL, 0, 1, 60), Stage(2_000, 12, 0, 1, 60), Stage(ALL, 8, 0, 1, 30)),
    "texts": (Stage(500, ALL, 0, 1, 60), Stage(2_000, 24, 4, 1, 30), Stage(ALL, 8, 0, 1, 10)),
    "rows": (Stage(500, ALL, 0, 1, 60), Stage(2_000, 24, 4, 1, 30), Stage(ALL, 8, 0, 1, 10)),
    "lists": (Stage(500, ALL, 0, 1, 10), Stage(ALL, 12, 3, 1, 10)),
    "trees": (Stage(100, ALL, 0, 1, 15), Stage(500, 24, 2, 1, 15), Stage(ALL, 6, 0, 1, 10)),
}
EPOCHS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 60)
# The recipe whose settings stand beside those of rules and losses in the grid.
BASE = {"tag": "sgd", "texts": "sgd", "rows": "sgd", "lists": "maxent", "trees": "adagrad"}
TASK = {"tag": "tag", "texts": "classify", "rows": "classify", "lists": "rerank", "trees": "parse"}
UNIT = {"tag": "\n\n", "texts": "\n", "rows": "\n", "lists": "\n", "trees": "\n\n"}
SHUFFLED = ("texts", "rows")  # files may be in order of their classes
# Features that candidates are tried with, as options of the command line.
FEATURES = {"texts": ("", "--ngrams 1 --chars 0 --no-marks --values counts")}
KINDS = ("loss", "rule", "averaging")
# Of lists, which learn in seconds and compile in minutes, only these parts are tried together.
TRIED = {
    "lists": (
        *("weighted-log", "log", "risk", "perceptron", "hope-fear", "structured-hinge", "ramp"),
        *("sgd", "adagrad", "adagrad-rda", "ftrl", "averaged"),
    )
}
AVERAGINGS = ("last", "averaged")  # votes keep every weight vector: no default for a small model
PATIENCE = 20  # epochs without a better score after which the last one stands for all that follow
STEPS = ("C", "rate", "r")  # the parameter that says how far a learner moves
FACTORS = (1 / 9, 1 / 3, 3.0)


class Candidate(NamedTuple):
    """A learner, parameters that differ from its recipe, and options that make its features.

    Parameters are ``name=value`` words.
    """

    recipe: str
    params: tuple[str, ...] = ()
    features: str = ""

    def __str__(self) -> str:
        return " ".join((self.recipe, *self.params, self.features)).strip()

    def settings(self) -> dict[str, str]:
        return dict(word.split("=", 1) for word in self.params)

    def varied(self, task: str) -> list[Candidate]:
        """Returns the learner with shorter and longer steps, where it has such a parameter."""
        from hopefear.tasks import recipes_of

        recipe, settings = recipes_of(TASK[task])[self.recipe], self.settings()
        parts = {kind: settings[kind] for kind in KINDS if kind in settings}
        values = recipe.with_parts(parts).parameters() if parts else recipe.parameters()
        for name in STEPS:
            if values.get(name) == "auto" and name not in settings:
                return [self._replace(params=(*self.params, f"{name}={f:.3g}x")) for f in FACTORS]
            if isinstance(values.get(name), float | int) and name not in settings:
                words = (f"{name}={values[name] * factor:.3g}" for factor in FACTORS)
                return [self._replace(params=(*self.params, word)) for word in words]
        return []


class Job(NamedTuple):
    """One training run."""

    task: str
    corpus: str
    size: int
    fold: int
    epochs: int
    candidate: Candidate

    def key(self) -> str:
        corpus = CORPORA[self.task][self.corpus]
        size = "all" if self.size >= ALL else self.size
        location = f"{self.corpus} {corpus.options} size:{size} fold:{self.fold}"
        return f"{location} epochs:{self.epochs} {self.candidate}"


def candidates(task: str) -> list[Candidate]:
    """Returns all recipes, and the parts that work together and that no recipe has."""
    from hopefear.errors import HopefearError
    from hopefear.recipes import LOSSES, RULES, NetworkRecipe
    from hopefear.tasks import recipes_of

    table = recipes_of(TASK[task])
    online = {name: recipe for name, recipe in table.items() if hasattr(recipe, "parts")}
    result = [Candidate(n) for n, recipe in table.items() if not isinstance(recipe, NetworkRecipe)]
    have = {recipe.parts[:3] for recipe in online.values()}
    for parts in product(LOSSES, RULES, AVERAGINGS):
        if not set(parts) <= set(TRIED.get(task, parts)):
            continue
        words = tuple(f"{kind}={name}" for kind, name in zip(KINDS, parts, strict=True))
        candidate = Candidate(BASE[task], words)
        with contextlib.suppress(HopefearError):
            online[BASE[task]].build(**candidate.settings())
            if parts not in have:
                result.append(candidate)
    return [c._replace(features=options) for options in FEATURES.get(task, ("",)) for c in result]


def file_of(corpus: Corpus) -> Path:
    """Returns the file of a corpus; lists of taggers are made where they are missing."""
    if corpus.path in tagged_lists.FILES:
        return tagged_lists.make(corpus.path)
    return data_folder() / corpus.path


def units(task: str, corpus: Corpus) -> list[str]:
    """Returns the sentences, lines or lists of a file."""
    path, mark = file_of(corpus), UNIT[task]
    opener: Any = {".gz": gzip.open, ".xz": lzma.open}[path.suffix]
    with opener(path, "rt", encoding="utf-8") as file:
        if ".csv" in corpus.path:  # whose texts may have several lines
            rows = [
                [cell.replace("\n", " ").replace('"', '""') for cell in r] for r in csv.reader(file)
            ]
            file = io.StringIO("\n".join(",".join(f'"{cell}"' for cell in row) for row in rows))
        parts = [part.strip("\n") + mark for part in file.read().split(mark) if part.strip()]
    if task in SHUFFLED:
        head = 1 if ".csv" in corpus.path else 0
        parts[head:] = random.Random(1).sample(parts[head:], len(parts) - head)
    return parts[: corpus.max_size]


def cut(parts: Sequence[str], size: int, fold: int) -> tuple[list[str], list[str]]:
    """Returns training and test examples of a fold; neighbours are often of one document."""
    bounds = [len(parts) * i // BLOCKS for i in range(BLOCKS + 1)]
    blocks = [parts[a:b] for a, b in pairwise(bounds)]
    order = [(7 * i + fold) % BLOCKS for i in range(BLOCKS)]  # from all over the file
    train = [part for i in order if i % FOLDS != fold for part in blocks[i]]
    test = [part for i in order if i % FOLDS == fold for part in blocks[i]]
    return train[:size], test[: min(max(size, 1_000), 2_000)]


@cache
def problem(task: str, name: str, size: int, fold: int, features: str, folder: str) -> Any:
    """Reads the training and test examples of a fold, as ``hopefear compare`` would."""
    from hopefear.cli import parsed
    from hopefear.cli.compare import read_study
    from hopefear.cli.console import Console

    corpus = CORPORA[task][name]
    suffixes = Path(file_of(corpus).name).suffixes
    suffix = next(s for s in reversed(suffixes) if s not in (".gz", ".xz"))
    all_parts = units(task, corpus)
    header = [all_parts.pop(0)] if suffix == ".csv" else []
    prefix = Path(folder) / f"{task}-{name}-{os.getpid()}".replace(" ", "-")
    files = [f"{prefix}.{part}{suffix}" for part in ("train", "test")]
    for file, content in zip(files, cut(all_parts, size, fold), strict=True):
        Path(file).write_text("".join([*header, *content]), encoding="utf-8")
    words = f"compare {TASK[task]} --train {files[0]} --test {files[1]} --learners perceptron"
    words += f" {corpus.options} {features}"
    study = read_study(parsed(words.split()), Console(quiet=True))
    for file in files:
        Path(file).unlink()
    return study


def run(job: Job, folder: str) -> dict[str, Any]:
    """Trains once; returns the score after every epoch, seconds and non-zero weights."""
    from hopefear.errors import HopefearError
    from hopefear.tasks.base import train
    from hopefear.training.stopping import Stopping

    study = problem(job.task, job.corpus, job.size, job.fold, job.candidate.features, folder)
    main = study.corpus.scores[0]
    row = {"key": job.key(), "corpus": job.corpus, "candidate": str(job.candidate)}
    began = time.process_time()
    events: list[dict[str, Any]] = []
    try:
        corpus = study.corpus.suiting(job.candidate.recipe, job.candidate.settings())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            train(
                corpus.adapted(study.task),
                corpus.data,
                job.candidate.recipe,
                job.candidate.settings(),
                epochs=None if "lbfgs" in job.candidate.recipe else job.epochs,
                dev=corpus.encoded(study.test),
                stopping=Stopping(main.name, PATIENCE),
                on_event=[events.append],
                calibrate=False,
                final=True,
            )
    except HopefearError as error:
        return {**row, "error": str(error), "cpu": round(time.process_time() - began, 2)}
    events = [event for event in events if "dev" in event]
    sign = 1.0 if main.higher else -1.0
    scores = [sign * event["dev"][main.name] for event in events]
    best = max(range(len(scores)), key=scores.__getitem__)
    bounds = {
        reference: events[0]["dev"].get(f"{reference}_{main.name}")
        for reference in ("baseline", "oracle")
    }
    return {
        **row,
        **{reference: round(score, 3) for reference, score in bounds.items() if score is not None},
        "score": round(scores[best], 3),
        "epoch": best + 1,
        "scores": [round(score, 3) for score in scores],
        "mistakes": [event["pass_mistakes"] for event in events],
        "non_zeros": events[best]["kept_nnz"],
        "cpu": round(time.process_time() - began, 2),
    }


def run_all(jobs: Sequence[Job], folder: str) -> list[dict[str, Any]]:
    return [run(job, folder) for job in jobs]


class Runs:
    """Runs that are kept, by key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        self.rows = {row["key"]: row for row in map(json.loads, lines)}

    def add(self, row: dict[str, Any]) -> None:
        self.rows[row["key"]] = row
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def make(self, jobs: Sequence[Job], n_jobs: int, minutes: float) -> None:
        """Makes the runs that are missing, until the CPU minutes are spent."""
        missing = [job for job in jobs if job.key() not in self.rows]
        # One process compiles what the runs of a candidate share; long runs go to all.
        groups: dict[Any, list[Job]] = {}
        for job in missing:
            groups.setdefault(job if job.size >= ALL else (job.fold, job.candidate), []).append(job)
        cpu_seconds, began, n = 0.0, time.monotonic(), 0
        with ProcessPoolExecutor(n_jobs) as pool:
            folder = str(self.path.parent)
            futures = [pool.submit(run_all, group, folder) for group in groups.values()]
            for future in as_completed(futures):
                for row in future.result():
                    self.add(row)
                    cpu_seconds += row["cpu"]
                    n += 1
                wall = time.monotonic() - began
                print(
                    f"{n}/{len(missing)} runs, {wall:.0f} s, {cpu_seconds:.0f} CPU s",
                    file=sys.stderr,
                )
                if cpu_seconds > 60 * minutes:
                    print(f"stopped after {minutes:.0f} CPU minutes", flush=True)
                    pool.shutdown(cancel_futures=True)
                    return


def jobs_of(task: str, stage: Stage, chosen: Sequence[Candidate], only: Sequence[str]) -> list[Job]:
    names = [name for name in CORPORA[task] if not only or name in only]
    return [
        Job(task, name, stage.size, fold, stage.epochs, candidate)
        for fold in range(stage.folds)
        for candidate in chosen
        for name in names
    ]


class Ranked(NamedTuple):
    """A candidate, and its scores by corpus after the number of epochs that suits all best."""

    behind: float
    candidate: Candidate
    epochs: int
    scores: dict[str, float]


def ranking(runs: Runs, jobs: Sequence[Job]) -> list[Ranked]:
    """Returns candidates by their mean distance to the best of each corpus, best first.

    What cannot run on some corpus is left out.
    """
    rows: dict[Candidate, dict[str, list[list[float]]]] = {}
    for job in jobs:
        scores = runs.rows.get(job.key(), {}).get("scores")
        rows.setdefault(job.candidate, {}).setdefault(job.corpus, []).append(scores)
    means = {
        (candidate, epochs): {
            corpus: statistics.fmean(scores[min(epochs, len(scores)) - 1] for scores in folds)
            for corpus, folds in by_corpus.items()
        }
        for candidate, by_corpus in rows.items()
        if all(None not in folds for folds in by_corpus.values())
        for epochs in EPOCHS
        if epochs <= max(job.epochs for job in jobs)
    }
    best = {name: max(by[name] for by in means.values()) for name in next(iter(means.values()))}
    ranked: dict[Candidate, Ranked] = {}
    for (candidate, epochs), by in means.items():
        behind = statistics.fmean(best[name] - score for name, score in by.items())
        if candidate not in ranked or behind < ranked[candidate].behind:
            ranked[candidate] = Ranked(behind, candidate, epochs, by)
    return sorted(ranked.values())


def show(runs: Runs, task: str, stage: Stage, jobs: Sequence[Job]) -> None:
    """Prints the table of a stage as Markdown."""
    ranked = ranking(runs, jobs)
    names = list(ranked[0].scores)
    size = "all" if stage.size >= ALL else f"{stage.size:,}"
    print(f"\n{task}, {size} training examples\n")
    print(f"| learner | behind | epochs | {' | '.join(names)} | CPU s | non-zeros |")
    print("|---|" + "--:|" * (len(names) + 4))
    for reference in ("baseline", "oracle"):  # of lists
        rows = [runs.rows.get(job.key(), {}) for job in jobs]
        bounds = {row["corpus"]: row[reference] for row in rows if reference in row}
        if bounds:
            cells = " | ".join(f"{bounds[name]:.2f}" for name in names)
            print(f"| {'1-best' if reference == 'baseline' else reference} | | | {cells} | | |")
    for behind, candidate, epochs, scores in ranked[:24]:
        rows = [runs.rows[job.key()] for job in jobs if job.candidate == candidate]
        seconds = statistics.fmean(row["cpu"] / len(row["scores"]) for row in rows) * epochs
        non_zeros = statistics.median(row["non_zeros"] for row in rows)
        print(
            f"| {candidate} | {behind:.2f} | {epochs} | "
            f"{' | '.join(f'{abs(score):.2f}' for score in scores.values())} | "
            f"{seconds:.1f} | {non_zeros:,.0f} |"
        )


def stages(task: str, sizes: Sequence[int]) -> Iterator[Stage]:
    for stage in STAGES[task]:
        if not sizes or stage.size in sizes or (stage.size >= ALL and 0 in sizes):
            yield stage


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=CORPORA)
    parser.add_argument("--only", nargs="+", default=[], help="corpora")
    parser.add_argument("--learners", nargs="+", help="'NAME PARAMETER=VALUE … --OPTION …'")
    parser.add_argument("--sizes", nargs="+", type=int, default=[], help="0 is all examples")
    parser.add_argument("--epochs", type=int, help="instead of those of the stage")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--minutes", type=float, default=90, help="of CPU, for each stage")
    parser.add_argument("--folder", type=Path, default=Path("runs/defaults"))
    parser.add_argument("--table", action="store_true", help="print what is kept, run nothing")
    args = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    args.folder.mkdir(parents=True, exist_ok=True)
    runs = Runs(args.folder / f"{args.task}.jsonl")
    chosen = candidates(args.task)
    if args.learners:
        words = [learner.split() for learner in args.learners]
        options = [
            " ".join(word for word in parameters if "=" not in word) for _, *parameters in words
        ]
        chosen = [
            Candidate(name, tuple(word for word in more if "=" in word), features)
            for (name, *more), features in zip(words, options, strict=True)
        ]
    print(f"{len(chosen)} candidates", file=sys.stderr)
    for stage in stages(args.task, args.sizes):
        stage = stage._replace(epochs=args.epochs or stage.epochs)
        best = chosen[: stage.varied]
        chosen = chosen[: stage.candidates]
        chosen += [variant for candidate in best for variant in candidate.varied(args.task)]
        jobs = jobs_of(args.task, stage, chosen, args.only)
        if not args.table:
            runs.make(jobs, args.jobs, args.minutes)
        show(runs, args.task, stage, jobs)
        chosen = [row.candidate for row in ranking(runs, jobs)]


if __name__ == "__main__":
    main()
