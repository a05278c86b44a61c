"""Runs: phrase models pass by pass on development lists, then what the best choose from test lists.

A run that ends is kept on disk. A setting stands for a rule with a loss by its BLEU on development
lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.core.learner import Learner
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.dataset import ListDataset, cheapest
from hopefear.structures.nbest import NBest
from hopefear.training.decoders.lists import ListDecoder
from hopefear.training.predictors import LinearPredictor
from hopefear.translation.features import learned
from hopefear.translation.phrase_model import (
    KEPT,
    NAME,
    kept_weights,
    phrase_learner,
    phrase_passes,
)
from hopefear.translation.tuners.envelope import Step
from hopefear.translation.tuners.mert import Mert
from hopefear.translation.tuners.problem import TuningProblem
from hopefear_papers.claims import Difference, Tests
from hopefear_papers.dptm.plan import WINDOW, Part, Plan, Problem, Spec, at, bleu, find_problem
from hopefear_papers.frame import Call, KeptRuns, at_edges, at_most, grid_points, paced
from hopefear_papers.translations import METRIC, compare_bleu

LINE, MERT = "line", "mert"  # how a model is added: its weight alone is tuned, or all weights


class Mark(NamedTuple):
    """A model after some passes, on development lists."""

    passes: int
    kept: str
    bleu: float  # with the best weight of the model, the decoder's weights as they are
    weight: float  # that weight
    plain: float  # BLEU with weight 1
    nnz: int


@dataclass(frozen=True)
class Scored:
    """What a model, or the dense features alone, choose from test lists."""

    signature: str
    nnz: int
    weight: float  # of the model on the line
    dev: dict[str, float]  # BLEU on development lists, by how the model was added
    positions: dict[str, dict[str, list[int]]]  # by how, by test set: one candidate of each list


def build(spec: Spec, params: Mapping[str, float]) -> Learner:
    """The learner of a spec with these parameters."""
    values: dict[str, Any] = {
        k: v for k, v in params.items() if k not in ("inverse_temperature", "every")
    }
    if "every" in params:
        values["every"] = int(params["every"])
    if spec.rule == "tg-printed":
        return phrase_learner(spec.loss, "tg", power=0.5, **values)
    return phrase_learner(spec.loss, spec.rule, **values)


def follow(
    problem: Problem, spec: Spec, params: Mapping[str, float], seed: int, marks: Sequence[int]
) -> list[Mark]:
    """Learn as many passes as the last mark; test lists are not looked at."""
    readings = []
    for epoch, trainer in _passes(problem, spec, params, seed, marks[-1]):
        if epoch not in marks:
            continue
        for kept in KEPT:
            w = kept_weights(trainer, kept) / params["inverse_temperature"]
            points = pair_scores(problem.dev, w)
            step = line(problem, points)
            plain = bleu(problem.dev.chosen(best(problem.dev, problem.dev.b + points)))
            nnz = int(np.count_nonzero(w))
            readings.append(Mark(epoch, kept, step.worth, step.t, plain, nnz))
    return readings


def score(
    problem: Problem,
    spec: Spec,
    params: Mapping[str, float],
    passes: int,
    kept: str,
    seed: int,
    mert: Mert,
) -> Scored:
    """Learn, add the model to the dense features both ways, and choose from the test lists."""
    *_, (_, trainer) = _passes(problem, spec, params, seed, passes)
    w = kept_weights(trainer, kept) / params["inverse_temperature"]
    points = {name: pair_scores(part, w) for name, part in _parts(problem).items()}
    step = line(problem, points[""])
    tuned = retuned(problem, mert, seed, points[""], step.t)
    dev, positions = _choices(
        problem,
        lambda name, part: (
            part.b + step.t * points[name],
            part.lists.dense @ tuned[:-1] + tuned[-1] * points[name],
        ),
    )
    signature = build(spec, params).signature(
        inverse_temperature=f"{params['inverse_temperature']:g}",
        kept=kept,
        epochs=passes,
        seed=seed,
    )
    return Scored(signature, int(np.count_nonzero(w)), step.t, dev, positions)


def score_dense(problem: Problem, seed: int, mert: Mert) -> Scored:
    """The dense features alone, tuned anew by MERT; on the line they are the decoder's."""
    tuned = retuned(problem, mert, seed)
    dev, positions = _choices(problem, lambda _, part: (part.b, part.lists.dense @ tuned))
    return Scored(mert.signature(seed=seed), 0, 0.0, dev, positions)


def _choices(
    problem: Problem, values: Callable[[str, Part], tuple[np.ndarray, np.ndarray]]
) -> tuple[dict[str, float], dict[str, dict[str, list[int]]]]:
    """BLEU on development lists and positions in test lists, from scores of either way."""
    dev: dict[str, float] = {}
    positions: dict[str, dict[str, list[int]]] = {LINE: {}, MERT: {}}
    for name, part in _parts(problem).items():
        for how, points in zip((LINE, MERT), values(name, part), strict=True):
            choice = best(part, points)
            if name:
                positions[how][name] = choice.tolist()
            else:
                dev[how] = bleu(part.chosen(choice))
    return dev, positions


def retuned(
    problem: Problem, mert: Mert, seed: int, points: np.ndarray | None = None, weight: float = 0.0
) -> np.ndarray:
    """Weights of the dense features, and of the model's score if there is one, by MERT."""
    lists, start = problem.dev.lists, problem.start
    if points is not None:
        lists, start = _with_column(lists, points), np.append(start, weight)
    data: ListDataset = learned(lists, METRIC, ("dense",))
    return mert.tune(TuningProblem(data, METRIC, start), seed=seed).weights


def line(problem: Problem, points: np.ndarray) -> Step:
    """The best weight of a model on development lists, the other weights as they are."""
    return problem.search.best(problem.dev.b, points, low=0.0, smooth="average", window=WINDOW)


def pair_scores(part: Part, w: np.ndarray) -> np.ndarray:
    """Scores of all candidates by their phrase pairs."""
    return ListDecoder(NBest(len(w)), LinearPredictor(w)).scores(part.pairs.rows)


def best(part: Part, values: np.ndarray) -> np.ndarray:
    """Position of the best candidate of each list; of equals the first."""
    return cheapest(-values, part.lists.starts).astype(np.int64)


def _passes(
    problem: Problem, spec: Spec, params: Mapping[str, float], seed: int, passes: int
) -> Any:
    b = problem.train.rows.offsets.astype(np.float64)
    data = problem.train.replaced(offsets=params["inverse_temperature"] * b)
    return phrase_passes(data, build(spec, params), passes, seed)


def _with_column(lists: CandidateLists, points: np.ndarray) -> CandidateLists:
    dense = np.hstack([lists.dense, points.astype(np.float32)[:, None]])
    return replace(lists, layout=(*lists.layout, (NAME, 1)), dense=frozen(dense))


def _parts(problem: Problem) -> dict[str, Part]:
    return {"": problem.dev, **problem.tests}


AVERAGE, SUPPORT, LAST = KEPT


class Trial(NamedTuple):
    """A setting after some passes, on development lists; means over seeds."""

    spec: str
    params: dict[str, float]
    passes: int
    kept: str
    dev: float
    plain: float
    nnz: float


def text_of(params: Mapping[str, float]) -> str:
    """Parameters in a line.

    >>> text_of({"inverse_temperature": 10.0, "l1": 1e-05})
    'inverse_temperature=10 l1=1e-05'
    """
    return " ".join(f"{name}={value:g}" for name, value in params.items())


def trials_of(spec: Spec, params: dict[str, float], runs: Sequence[Sequence[Mark]]) -> list[Trial]:
    """One for every mark and every reading, from the runs of several seeds."""
    trials = []
    for marks in zip(*runs, strict=True):
        means = (np.mean([getattr(m, name) for m in marks]) for name in ("bleu", "plain", "nnz"))
        trials.append(Trial(spec.key, params, marks[0].passes, marks[0].kept, *map(float, means)))
    return trials


def top(trials: Iterable[Trial]) -> Trial | None:
    """The trial of highest BLEU on development lists; of equals the first."""
    return max(trials, key=lambda trial: trial.dev, default=None)


def choose(
    table: Mapping[str, list[Trial]], sweeps: Mapping[str, list[Trial]], plan: Plan
) -> dict[str, Trial]:
    """All choices by name."""
    choices: dict[str, Trial | None] = {}
    for spec in plan.table:
        trials = [t for t in table[spec.key] if t.kept != SUPPORT]
        choices[spec.key] = top(trials)
        choices[as_is(spec.key)] = top(t for t in trials if t.params["inverse_temperature"] == 1.0)
    voted = [t for t in sweeps["vrda-risk"] if t.kept != AVERAGE]
    for l1 in plan.strengths:
        choices[at(l1)] = top([t for t in voted if t.params["l1"] == l1])
    for key, trials in sweeps.items():
        for level in plan.levels:
            choices[at_most(key, level)] = top([t for t in trials if 0 < t.nnz <= level])
    return {name: trial for name, trial in choices.items() if trial is not None}


def as_is(key: str) -> str:
    """The baseline's score not scaled."""
    return f"{key}, b as is"


def edges(trial: Trial, spec: Spec, marks: Sequence[int]) -> list[str]:
    """Parameters whose chosen value is an end of its grid."""
    return at_edges({**trial.params, "passes": trial.passes}, {**spec.grid, "passes": tuple(marks)})


DECODER, RETUNED = "decoder", "dense, tuned anew"
POOLED = "pooled"


@dataclass
class Results:
    """All numbers behind the page."""

    problem: Problem
    plan: Plan
    table: dict[str, list[Trial]] = field(default_factory=dict)
    sweeps: dict[str, list[Trial]] = field(default_factory=dict)
    choices: dict[str, Trial] = field(default_factory=dict)
    scored: dict[str, list[Scored]] = field(default_factory=dict)  # by choice, one for every seed

    def __post_init__(self) -> None:
        self.tests = Tests(self._compare, ("of", "against", "where", "added by"))

    def against(self, first: str, second: str, where: str, how: str = MERT) -> Difference:
        """Two choices on a test set, or on all; seeds pooled."""
        return self.tests(first, second, where, how)

    def _compare(self, first: str, second: str, where: str, how: str) -> Difference:
        a, b = (self.counts(name, where, how) for name in (first, second))
        return compare_bleu(a, b, self.plan.replicates)

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
    """Runs learners, or takes up what they did."""

    def __init__(self, problem: Problem, plan: Plan, store: KeptRuns) -> None:
        self.problem, self.plan, self.store = problem, plan, store
        self.mert = Mert(restarts=plan.restarts)
        store.always["lists"] = problem.digest

    def trials(self, spec: Spec, params: dict[str, float], seeds: Sequence[int]) -> list[Trial]:
        plan = self.plan
        runs = self.store.of(
            f"choose-{spec.key}-{text_of(params)}",
            {**_identity(spec, params), "marks": list(plan.marks), "seeds": list(seeds)},
            lambda: [follow(self.problem, spec, params, seed, plan.marks) for seed in seeds],
        )
        return trials_of(spec, params, [[Mark(*mark) for mark in run] for run in runs])

    def score(self, trial: Trial, seed: int) -> Scored:
        spec, params, passes, kept = Spec(trial.spec), trial.params, trial.passes, trial.kept
        identity = {"passes": passes, "kept": kept, "seed": seed, "mert": self.mert.signature()}
        return self.store.record(
            Scored,
            f"score-{spec.key}-{text_of(params)}-{passes}-{kept}-{seed}",
            {**_identity(spec, params), **identity},
            lambda: score(self.problem, spec, params, passes, kept, seed, self.mert),
        )

    def dense(self, seed: int) -> Scored:
        return self.store.record(
            Scored,
            f"dense-{seed}",
            {"seed": seed, "mert": self.mert.signature()},
            lambda: score_dense(self.problem, seed, self.mert),
        )


def measure(call: Call) -> Results:
    """Choose, then test."""
    plan, tell = call.plan, call.teller()
    if call.quick:
        call.note = "This version uses generated lists: nothing can be concluded from it."
    problem = find_problem(call.data, call.quick, call.progress)
    bench, results = _Bench(problem, plan, call.runs), Results(problem, plan)
    specs = [(spec, results.table, plan.tuning_seeds) for spec in plan.table]
    specs += [(spec, results.sweeps, plan.sweep_seeds) for spec in plan.sweeps]
    total, n = sum(len(grid_points(spec.grid)) for spec, *_ in specs), 0
    for spec, trials, seeds in specs:
        tell(0.6 * n / total, f"choosing: {spec.title}")
        points = grid_points(spec.grid)
        trials[spec.key] = [t for params in points for t in bench.trials(spec, params, seeds)]
        n += len(points)
    results.choices = choose(results.table, results.sweeps, plan)
    results.scored[RETUNED] = [bench.dense(seed) for seed in plan.seeds]
    for name in paced(tell, 0.6, 0.95, results.choices, "testing: {}".format, by=4):
        seeds = plan.seeds if name in plan.main else plan.level_seeds
        results.scored[name] = [bench.score(results.choices[name], seed) for seed in seeds]
    return results


def _identity(spec: Spec, params: Mapping[str, float]) -> dict[str, Any]:
    return {
        "learner": build(spec, params).signature(),
        "inverse_temperature": params["inverse_temperature"],
    }
