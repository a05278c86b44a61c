"""Runs: pass after pass, last weights and average scored after each; all datasets side by side."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

import numpy as np

from hopefear.core.learner import Learner
from hopefear.training.decoders.chains import ChainDecoder
from hopefear.training.online import OnlineTrainer
from hopefear.training.predictors import LinearPredictor
from hopefear_papers.frame import Call, learn, violations
from hopefear_papers.swvp_synthetic.plan import (
    AVERAGED,
    CHECKED,
    LAST,
    VARIANTS,
    Plan,
    Problem,
    Variant,
    make_problem,
    perceptron,
)


@dataclass(frozen=True)
class Run:
    """A learner on a dataset, after all passes."""

    beta: float
    dev: np.ndarray  # float64[2, passes]: accuracy in percent; last weights, then their average
    test: np.ndarray
    right: np.ndarray  # int64[2, test items]: right tokens after the last pass
    mistakes: np.ndarray  # int64[passes]: in each pass; none follows one without a mistake
    counts: np.ndarray  # int64[4]: as in ``losses.swvp.Violations``


def train(problem: Problem, learner: Learner, passes: int, beta: float = 0.0) -> Run:
    """Train in the order of the data, at most ``passes`` times, until a pass makes no mistake.

    >>> from hopefear_papers.swvp_synthetic.plan import QUICK, perceptron
    >>> from hopefear_papers.swvp_synthetic.plan import make_problem
    >>> run = train(make_problem(QUICK, 1, 0), perceptron(), passes=2)
    >>> run.test.shape, run.right.shape, int(run.counts[0]) == int(run.mistakes.sum())
    ((2, 2), (2, 50), True)
    """
    trainer = OnlineTrainer(problem.structure, learner)
    dev, test = np.empty((2, passes)), np.empty((2, passes))
    right = np.empty((2, len(problem.rest) - problem.n_dev), np.int64)
    mistakes: list[int] = []
    for p, _ in enumerate(learn(trainer, problem.train, passes, shuffle=False)):
        mistakes.append(trainer.mistakes - sum(mistakes))
        for kept, weights in ((LAST, trainer.weights()), (AVERAGED, trainer.average())):
            hits = _hits(problem, weights.astype(np.float32))
            dev[kept, p:] = 100.0 * hits[: problem.n_dev].mean()
            test[kept, p:] = 100.0 * hits[problem.n_dev :].mean()
            right[kept] = hits[problem.n_dev :].sum(axis=1)
        if mistakes[-1] == 0:
            break
    return Run(beta, dev, test, right, np.array(mistakes), violations(trainer))


def _hits(problem: Problem, weights: np.ndarray) -> np.ndarray:
    """Which tokens of the items that are not trained on are right: bool[items, length]."""
    rows = problem.rest.rows
    hits = ChainDecoder(problem.structure, LinearPredictor(weights)).predict(rows) == rows.labels
    return hits.reshape(len(problem.rest), -1)


@dataclass(frozen=True)
class Dataset:
    """Every run on one dataset."""

    setting: int
    dataset: int
    seed: int
    digest: str
    best_possible: float
    csp: Run
    swvp: dict[str, tuple[Run, ...]]  # by title of the variant, a run for every beta

    def chosen(self, title: str, kept: int) -> Run:
        """The run whose beta does best on the development items; the smallest of equals."""
        runs = self.swvp[title]
        return runs[int(np.argmax([run.dev[kept, -1] for run in runs]))]


Settings = dict[int, list[Dataset]]


def train_all(plan: Plan, setting: int, dataset: int) -> Dataset:
    """Train everything on one dataset."""
    problem = make_problem(plan, setting, dataset)

    def every_beta(variant: Variant) -> tuple[Run, ...]:
        return tuple(train(problem, variant.learner(b), plan.passes, b) for b in plan.betas)

    return Dataset(
        setting,
        dataset,
        problem.seed,
        problem.train.digest,
        problem.best_possible,
        train(problem, perceptron(), plan.passes),
        {variant.title: every_beta(variant) for variant in (*VARIANTS, *CHECKED)},
    )


def measure(call: Call) -> Settings:
    """All datasets by setting; no corpora are needed."""
    call.progress("compiling, if this was not done before; then the first datasets")
    settings = measure_all(call.plan, call.progress)
    for datasets in settings.values():
        for one in datasets:
            call.saw(f"setting {one.setting}, dataset {one.dataset + 1}", one)
    return settings


def measure_all(
    plan: Plan, progress: Callable[[str], None], workers: int | None = None
) -> Settings:
    """All datasets by setting; kernels leave the interpreter free, so threads are enough.

    A dataset is a function of its seed alone, so the number of workers changes no number.
    """
    tasks = [(setting, d) for setting in plan.settings for d in range(plan.datasets)]
    results: dict[tuple[int, int], Dataset] = {}
    with ThreadPoolExecutor(workers or _cores()) as pool:
        futures = {pool.submit(train_all, plan, *task): task for task in tasks}
        try:
            for future in as_completed(futures):
                setting, dataset = futures[future]
                results[setting, dataset] = future.result()
                share = len(results) / len(tasks)
                progress(f"{share:4.0%}  setting {setting}, dataset {dataset + 1} done")
        except BaseException:
            for future in futures:
                future.cancel()
            raise
    return {s: [results[s, d] for d in range(plan.datasets)] for s in plan.settings}


def _cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
