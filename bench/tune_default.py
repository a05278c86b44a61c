"""Rules for the epoch that an online tuner keeps where no lists are held out.

    python bench/tune_default.py choose     # rules compared on lists that are no test set
    python bench/tune_default.py show       # start, old default and new one on both test sets

Lists are those of Multi30k, 100 translations each. Their decoder's weights were tuned on val, so a
run on val that starts from them is the case in question: the start has seen the lists. ``choose``
judges rules by lists of train10k. It tunes on val, and on a thousand other lists of train10k: from
the decoder's weights, which have not seen these, and from weights that a tuner has found on the
same lists before. It reads no test set. ``show`` tunes on val from the decoder's weights, and tests
what the old and the new default keep in pairs against the start and against each other.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.dataset import ListDataset, counts_of
from hopefear.metrics.lists import compare_lists
from hopefear.recipes.scales import scale_of
from hopefear.translation.features import learned
from hopefear.translation.lists import read
from hopefear.translation.recipes import TUNE_RECIPES, TuneRecipe
from hopefear.translation.task import start_weights
from hopefear.translation.tuners.problem import TuningProblem
from hopefear_papers.frame import find_files
from hopefear_papers.translations import FOLDER, METRIC

TESTS = ("test_2016_flickr", "test_2017_flickr")
SEEDS = (1, 2, 3)
FOLDS = 5
SOME = 1000  # lists of train10k that are tuned on; each seed has others
# Where the weights at the start come from, and on which lists tuning goes on from them.
CASES = (
    ("val", "decoder (tuned on val)"),
    ("train10k", "decoder (tuned on val)"),
    ("train10k", "mert on the same lists"),
    ("train10k", "kbmira on the same lists"),
)


class Trail(NamedTuple):
    """One run: weights at the start and after each round, and how to run on other lists."""

    problem: TuningProblem
    weights: np.ndarray  # [rounds + 1, features]
    again: Callable[[TuningProblem], np.ndarray]


def best_round(trail: Trail, first: int) -> np.ndarray:
    """The best round on the tuning lists from this one on; 0 is the start, behind its equals."""
    scores = [trail.problem.score(weights) for weights in trail.weights[first:]]
    order = [*range(1, len(scores)), 0] if first == 0 else range(len(scores))
    return trail.weights[first + max(order, key=scores.__getitem__)]


def by_folds(trail: Trail) -> np.ndarray:
    """The round that is best on a fifth of the lists after tuning on the others, five times."""
    data, sums = trail.problem.data, 0.0
    for fold in np.array_split(np.random.default_rng(1).permutation(len(data)), FOLDS):
        held_out = data.take(np.sort(fold))
        training = data.take(np.setdiff1d(np.arange(len(data)), fold))
        problem = TuningProblem(training, METRIC, trail.problem.start)
        counts = counts_of(held_out, METRIC)
        choices = [problem.choice(weights, held_out) for weights in trail.again(problem)[1:]]
        sums = sums + np.stack([counts[choice].sum(axis=0) for choice in choices])
    return trail.weights[1 + int(np.argmax(trail.problem.worth(np.asarray(sums))))]


RULES: dict[str, Callable[[Trail], np.ndarray]] = {
    "start": lambda trail: trail.weights[0],
    "best or start": lambda trail: best_round(trail, 0),
    "best pass": lambda trail: best_round(trail, 1),
    "last": lambda trail: trail.weights[-1],
    "later half": lambda trail: trail.weights[len(trail.weights) // 2 :].mean(axis=0),
    "five folds": by_folds,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("part", choices=("choose", "show"))
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder that holds the lists")
    parser.add_argument("--tuners", nargs="+", default=["kbmira", "mira", "adagrad-risk"])
    options = parser.parse_args()
    sets = ("val", "train10k") if options.part == "choose" else ("val", *TESTS)
    files = [f"{name}.{end}" for name in sets for end in ("nbest.xz", "en")]
    folder = find_files(options.data, FOLDER, files, "lists of translations")
    lists = {name: read(folder / f"{name}.nbest.xz", folder / f"{name}.en") for name in sets}
    (choose if options.part == "choose" else show)(lists, options.tuners)


def problem_of(lists: CandidateLists) -> TuningProblem:
    """The dense features, from the decoder's weights."""
    data = learned(lists, METRIC, ("dense",))
    return TuningProblem(data, METRIC, start_weights(lists, "decoder").on(data.features))


def run(name: str, problem: TuningProblem, seed: int) -> Trail:
    """Every round of a tuner with its usual parameters."""
    tuner = TUNE_RECIPES[name].build(scale_of(problem.data))

    def again(problem: TuningProblem) -> np.ndarray:
        rounds = (round_.weights for round_ in tuner.each_round(problem, seed))
        return np.stack([problem.start, *rounds])

    return Trail(problem, again(problem), again)


def choose(lists: dict[str, CandidateLists], tuners: Iterable[str]) -> None:
    """Prints the scores of every rule on lists of train10k, a mean over seeds."""
    val, train = problem_of(lists["val"]), problem_of(lists["train10k"])
    print("| tuned on | start | tuner | " + " | ".join(RULES) + " |")
    print("|---" * (3 + len(RULES)) + "|")
    for where, start in CASES:
        for name in tuners:
            scores = []
            for seed in SEEDS:
                problem, held_out = val, train.data
                if where == "train10k":
                    problem, held_out = parts(train, seed)
                if "same" in start:
                    problem = tuned_before(start.partition(" ")[0], problem, seed)
                trail = run(name, problem, seed)
                scores.append([problem.score(rule(trail), held_out) for rule in RULES.values()])
            cells = " | ".join(f"{score:.2f}" for score in np.mean(scores, axis=0))
            print(f"| {where} | {start} | {name} | {cells} |", flush=True)


def parts(train: TuningProblem, seed: int) -> tuple[TuningProblem, ListDataset]:
    """Some lists to tune on, and all others."""
    indices = np.arange(len(train.data))
    drawn = indices[(seed - 1) * SOME :][:SOME]
    problem = TuningProblem(train.data.take(drawn), METRIC, train.start)
    return problem, train.data.take(np.setdiff1d(indices, drawn))


def tuned_before(name: str, problem: TuningProblem, seed: int) -> TuningProblem:
    """The problem, starting from what a tuner finds on the same lists with another seed."""
    recipe = TUNE_RECIPES[name]
    keep = {"keep": "best"} if isinstance(recipe, TuneRecipe) else {}  # as the old default did
    tuner = recipe.build(scale_of(problem.data), **keep)
    weights = tuner.tune(problem, seed=seed + 10).weights
    return TuningProblem(problem.data, METRIC, weights / np.abs(weights).sum())


def show(lists: dict[str, CandidateLists], tuners: Iterable[str]) -> None:
    """Print scores on both test sets, and what the new default gains with p-values."""
    problem = problem_of(lists["val"])
    tests = [problem.data.features.encode(lists[name], METRIC) for name in TESTS]
    columns = " | ".join(
        f"{name.removesuffix('_flickr')}: start, old, new | new − start (p) | new − old (p)"
        for name in TESTS
    )
    print(f"| tuner | seed | val: start, old, new | {columns} |")
    print("|---" * 9 + "|")
    for name in tuners:
        for seed in SEEDS:
            old, new = defaults(name, problem, seed)
            three = (problem.start, old, new)
            cells = [", ".join(f"{problem.score(weights):.2f}" for weights in three)]
            for test in tests:
                cells.append(", ".join(f"{problem.score(weights, test):.2f}" for weights in three))
                cells += [gain(problem, test, new, baseline) for baseline in (problem.start, old)]
            print(f"| {name} | {seed} | {' | '.join(cells)} |", flush=True)


def defaults(name: str, problem: TuningProblem, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the weights kept before and now, without held-out lists."""
    recipe = TUNE_RECIPES[name]
    if isinstance(recipe, TuneRecipe):
        trail = run(name, problem, seed)
        return RULES["best or start"](trail), RULES["last"](trail)
    weights = recipe.build(scale_of(problem.data)).tune(problem, seed=seed).weights
    return weights, weights


def gain(problem: TuningProblem, test: ListDataset, new: np.ndarray, old: np.ndarray) -> str:
    """Describes the gain of new weights, with the p-values of bootstrap and randomisation."""
    if np.array_equal(new, old):
        return "the same"
    starts = test.rows.starts
    first, second = (problem.choice(weights, test) - starts[:-1] for weights in (new, old))
    tested = compare_lists(METRIC, counts_of(test, METRIC), starts, first, second)
    p_values = f"{tested['p_bootstrap']:.3f}, {tested['p_randomisation']:.3f}"
    return f"{tested['difference']:+.2f} ({p_values})"


if __name__ == "__main__":
    main()
