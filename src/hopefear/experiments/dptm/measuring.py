"""Everything that is measured: settings on development lists, then choices on test lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from hopefear.experiments.common.kept_runs import KeptRuns
from hopefear.experiments.dptm.choosing import Trial, choose, text_of, trials_of
from hopefear.experiments.dptm.plan import Plan, Spec
from hopefear.experiments.dptm.problems import Problem, bleu
from hopefear.experiments.dptm.runs import (
    LINE,
    MERT,
    Mark,
    Scored,
    build,
    follow,
    score,
    score_dense,
)
from hopefear.translation.tuners.mert import Mert

DECODER, RETUNED = "decoder", "dense, tuned anew"
POOLED = "pooled"
Tell = Callable[[float, str], None]


@dataclass
class Measured:
    """All numbers behind the page."""

    problem: Problem
    table: dict[str, list[Trial]] = field(default_factory=dict)
    sweeps: dict[str, list[Trial]] = field(default_factory=dict)
    choices: dict[str, Trial] = field(default_factory=dict)
    scored: dict[str, list[Scored]] = field(default_factory=dict)  # by choice, one for every seed

    @property
    def places(self) -> tuple[str, ...]:
        """Test sets, and all of them together."""
        return (*self.problem.tests, POOLED)

    def counts(self, name: str, where: str, how: str = MERT) -> list[np.ndarray]:
        """Counts of what a choice chooses, by seed."""
        if name == DECODER:
            return self.counts(RETUNED, where, LINE)[:1]
        if where == POOLED:
            every = [self.counts(name, test, how) for test in self.problem.tests]
            return [np.concatenate(parts) for parts in zip(*every, strict=True)]
        part = self.problem.tests[where]
        return [part.chosen(np.array(s.positions[how][where])) for s in self.scored[name]]

    def bleus(self, name: str, where: str, how: str = MERT) -> np.ndarray:
        """BLEU of each seed."""
        return np.array([bleu(counts) for counts in self.counts(name, where, how)])

    def nnz(self, name: str) -> float:
        """Mean over seeds."""
        return float(np.mean([s.nnz for s in self.scored[name]]))

    def dev(self, name: str, how: str = MERT) -> float:
        """BLEU on development lists, mean over seeds."""
        if name == DECODER:
            return self.scored[RETUNED][0].dev[LINE]
        return float(np.mean([s.dev[how] for s in self.scored[name]]))


class _Bench:
    """Runs learners, or remembers what they did."""

    def __init__(self, problem: Problem, plan: Plan, kept: KeptRuns) -> None:
        self.problem, self.plan, self.kept = problem, plan, kept
        self.mert = Mert(restarts=plan.restarts)

    def trials(self, spec: Spec, params: dict[str, float], seeds: Sequence[int]) -> list[Trial]:
        marks = self.plan.marks

        def make() -> Any:
            return [follow(self.problem, spec, params, seed, marks) for seed in seeds]

        found = self._of(
            f"choose-{spec.key}-{text_of(params)}",
            {**_identity(spec, params), "marks": list(marks), "seeds": list(seeds)},
            make,
        )
        return trials_of(spec, params, [[Mark(*mark) for mark in run] for run in found])

    def score(self, trial: Trial, seed: int) -> Scored:
        spec = Spec(trial.spec)

        def make() -> Any:
            made = score(
                self.problem, spec, trial.params, trial.passes, trial.kept, seed, self.mert
            )
            return asdict(made)

        identity = {
            **_identity(spec, trial.params),
            "passes": trial.passes,
            "kept": trial.kept,
            "seed": seed,
            "mert": self.mert.signature(),
        }
        name = f"score-{spec.key}-{text_of(trial.params)}-{trial.passes}-{trial.kept}-{seed}"
        return Scored(**self._of(name, identity, make))

    def dense(self, seed: int) -> Scored:
        identity = {"seed": seed, "mert": self.mert.signature()}
        return Scored(
            **self._of(
                f"dense-{seed}",
                identity,
                lambda: asdict(score_dense(self.problem, seed, self.mert)),
            )
        )

    def _of(self, name: str, identity: Mapping[str, Any], make: Callable[[], Any]) -> Any:
        return self.kept.of(name, {**identity, "lists": self.problem.digest}, make)


def measure(problem: Problem, plan: Plan, kept: KeptRuns, tell: Tell) -> Measured:
    """Choose, then test; ``tell`` gets the share done and what is next."""
    bench, made = _Bench(problem, plan, kept), Measured(problem)
    total = sum(len(spec.settings()) for spec in (*plan.table, *plan.sweeps))
    done = 0
    for specs, into, seeds in (
        (plan.table, made.table, plan.tuning_seeds),
        (plan.sweeps, made.sweeps, plan.sweep_seeds),
    ):
        for spec in specs:
            tell(0.6 * done / total, f"choosing: {spec.title}")
            into[spec.key] = [
                trial for params in spec.settings() for trial in bench.trials(spec, params, seeds)
            ]
            done += len(spec.settings())
    made.choices = choose(made.table, made.sweeps, plan)
    made.scored[RETUNED] = [bench.dense(seed) for seed in plan.seeds]
    for k, (name, trial) in enumerate(made.choices.items()):
        if k % 4 == 0:
            tell(0.6 + 0.35 * k / len(made.choices), f"testing: {name}")
        seeds = plan.seeds if name in plan.main else plan.level_seeds
        made.scored[name] = [bench.score(trial, seed) for seed in seeds]
    return made


def _identity(spec: Spec, params: Mapping[str, float]) -> dict[str, Any]:
    return {"learner": build(spec, params).signature(), "sharp": params["sharp"]}
