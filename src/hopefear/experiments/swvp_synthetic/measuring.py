"""All runs on one dataset, and all datasets side by side."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

import numpy as np

from hopefear.experiments.swvp_synthetic.plan import CHECKED, VARIANTS, Plan, Variant, perceptron
from hopefear.experiments.swvp_synthetic.problems import make_problem
from hopefear.experiments.swvp_synthetic.runs import Run, train


@dataclass(frozen=True)
class Measured:
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


def measure(plan: Plan, setting: int, dataset: int) -> Measured:
    """Train everything on one dataset."""
    problem = make_problem(plan, setting, dataset)

    def every_beta(variant: Variant) -> tuple[Run, ...]:
        return tuple(train(problem, variant.learner(b), plan.passes, b) for b in plan.betas)

    return Measured(
        setting,
        dataset,
        problem.seed,
        problem.train.digest,
        problem.best_possible,
        train(problem, perceptron(), plan.passes),
        {variant.title: every_beta(variant) for variant in (*VARIANTS, *CHECKED)},
    )


def measure_all(
    plan: Plan, progress: Callable[[str], None], workers: int | None = None
) -> dict[int, list[Measured]]:
    """All datasets by setting; kernels leave the interpreter free, so threads are enough.

    A dataset is a function of its seed alone, so the number of workers changes no number.
    """
    tasks = [(setting, d) for setting in plan.settings for d in range(plan.datasets)]
    done: dict[tuple[int, int], Measured] = {}
    with ThreadPoolExecutor(workers or _cores()) as pool:
        futures = {pool.submit(measure, plan, *task): task for task in tasks}
        try:
            for future in as_completed(futures):
                setting, dataset = futures[future]
                done[setting, dataset] = future.result()
                share = len(done) / len(tasks)
                progress(f"{share:4.0%}  setting {setting}, dataset {dataset + 1} done")
        except BaseException:
            for future in futures:
                future.cancel()
            raise
    return {s: [done[s, d] for d in range(plan.datasets)] for s in plan.settings}


def _cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
