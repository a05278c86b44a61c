"""Everything that is measured on one problem."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from hopefear.experiments.common.trails import Trail
from hopefear.experiments.vrda_classification.choosing import Choice, choose
from hopefear.experiments.vrda_classification.plan import HELD_OUT, LOSSES, SEED, Plan, Spec
from hopefear.experiments.vrda_classification.problems import Problem
from hopefear.experiments.vrda_classification.runs import (
    Run,
    build,
    follow,
    run,
    seconds,
)
from hopefear.tasks.classify.task import structure_for
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes


@dataclass(frozen=True)
class Votes:
    """Real votes and the average of the same predictors, on the same test examples."""

    voted: np.ndarray  # bool[examples]: right
    averaged: np.ndarray
    seconds: tuple[float, float]  # CPU per 1,000 examples: voted, averaged
    predictors: int
    megabytes: tuple[float, float]


@dataclass
class Measured:
    """The numbers behind one column of the page."""

    problem: Problem
    choices: dict[str, Choice] = field(default_factory=dict)
    best: dict[str, Run] = field(default_factory=dict)
    sparse: dict[str, Run] = field(default_factory=dict)
    trails: dict[str, list[Trail]] = field(default_factory=dict)  # by loss, and "perceptron"
    votes: dict[str, Votes] = field(default_factory=dict)  # by loss
    times: dict[str, float] = field(default_factory=dict)  # "vrda-hinge averaged": CPU s a pass

    @property
    def name(self) -> str:
        return self.problem.name

    def ratio(self, loss: str, readout: str) -> float:
        """CPU time of voted RDA for one pass, as a share of RDA's."""
        return self.times[f"vrda-{loss} {readout}"] / self.times[f"rda-{loss} {readout}"]


def measure(problem: Problem, plan: Plan, tell: Callable[[float, str], None]) -> Measured:
    """Choose, train, follow, vote and time; ``tell`` gets the share done and what is next."""
    made = Measured(problem)
    rest, held_out = problem.train.split(HELD_OUT, SEED)
    for n, spec in enumerate(plan.specs):
        tell(0.7 * n / len(plan.specs), f"{problem.name}: {spec.title}")
        choice = choose(spec, rest, held_out, plan.tuning_passes)
        made.choices[spec.key] = choice
        made.best[spec.key] = _test(spec, choice.best.setting, problem, plan)
        made.sparse[spec.key] = (
            made.best[spec.key]
            if choice.sparse is choice.best
            else _test(spec, choice.sparse.setting, problem, plan)
        )
    if problem.table_only:
        return made
    specs = {spec.key: spec for spec in plan.specs}
    tell(0.7, f"{problem.name}: while training")
    made.trails["perceptron"] = [follow(specs["perceptron"], {}, problem.train, plan.passes)]
    for loss in LOSSES:
        spec, chosen = specs[f"vrda-{loss}"], made.choices[f"vrda-{loss}"].best.setting
        made.trails[loss] = [
            follow(spec, {**chosen, "l1": l1}, problem.train, plan.passes) for l1 in plan.paths
        ]
    for n, loss in enumerate(LOSSES):
        tell(0.8 + 0.07 * n, f"{problem.name}: voting ({loss})")
        key = f"vrda-{loss}"
        made.votes[loss] = vote(specs[key], made.choices[key], problem, plan)
    tell(0.95, f"{problem.name}: timing")
    made.times = time_all(specs, made.choices, problem, plan)
    return made


def _test(spec: Spec, setting: Mapping[str, float], problem: Problem, plan: Plan) -> Run:
    return run(spec, setting, problem.train, problem.test, plan.passes)


def vote(spec: Spec, choice: Choice, problem: Problem, plan: Plan) -> Votes:
    """One pass, then Algorithm 2 and the average on the first test examples."""
    few = problem.test.take(np.arange(min(plan.vote_rows, len(problem.test))))
    structure = structure_for(problem.train, 0.0)
    right, cost, size, predictors = [], [], [], 0
    for readout in ("voted", "averaged"):
        learner = build(spec, choice.best.setting, problem.train, readout=readout)
        trainer = OnlineTrainer(structure, learner)
        for rows, order in Passes(problem.train, SEED).pieces(0):
            trainer.learn(rows, order)
        predictor = trainer.predictor()
        predictor.decide(structure, few.take([0]).rows)  # compiled before it is timed
        start = time.process_time()
        labels, _ = predictor.decide(structure, few.rows)
        cost.append((time.process_time() - start) * 1000.0 / len(few))
        right.append(labels == few.rows.labels)
        size.append(sum(a.nbytes for a in predictor.arrays().values()) / 1e6)
        predictors = trainer.updates + 1
    return Votes(right[0], right[1], (cost[0], cost[1]), predictors, (size[0], size[1]))


def time_all(
    specs: dict[str, Spec], choices: dict[str, Choice], problem: Problem, plan: Plan
) -> dict[str, float]:
    """CPU seconds a pass of RDA and voted RDA, taken in turn; the least of several."""
    learners = {
        f"{rule}-{loss} {readout}": build(
            specs[f"{rule}-{loss}"],
            choices[f"{rule}-{loss}"].best.setting,
            problem.train,
            readout=readout,
        )
        for loss in LOSSES
        for rule in ("rda", "vrda")
        for readout in ("averaged", "last")
    }
    least = dict.fromkeys(learners, np.inf)
    for repeat in range(plan.repeats + 1):
        for name, learner in learners.items():
            took = seconds(learner, problem.train, plan.timed_passes) / plan.timed_passes
            if repeat:  # the first one may have compiled
                least[name] = min(least[name], took)
    return {name: float(value) for name, value in least.items()}
