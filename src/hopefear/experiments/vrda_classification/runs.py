"""Runs: pass after pass, what is kept and the last weights scored after each; all that is measured.

Parameters are chosen on a part of the training rows that is held out; the test is not looked at.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.learner import Learner
from hopefear.data.generators import sparse_linear
from hopefear.data.sparse import SparseDataset
from hopefear.experiments.claims import Difference, compare
from hopefear.experiments.frame import Call, Tell, Trail, at_edges, first_marks, learn, short
from hopefear.experiments.vrda_classification.plan import (
    HELD_OUT,
    LOSSES,
    SEED,
    Plan,
    Problem,
    Spec,
    find_problems,
)
from hopefear.losses.hinge import Hinge
from hopefear.metrics import Accuracy, Classification
from hopefear.readouts.averaged import Averaged
from hopefear.readouts.observed import Observed
from hopefear.recipes import Scale
from hopefear.rules.rda import RDA
from hopefear.structures.classes import Binary
from hopefear.tasks import recipe
from hopefear.tasks.classify.task import structure_for
from hopefear.training.bounds.voted_rda import BoundReport, best_scaled, mistaken, radius
from hopefear.training.online import OnlineTrainer
from hopefear.training.predictors import LinearPredictor, Predictor


@dataclass(frozen=True)
class Scores:
    """How a sequence of predictors, one a pass, did on the same examples."""

    n_classes: int
    confusion: np.ndarray  # int64[passes, classes ** 2]
    nnz: np.ndarray  # int64[passes]
    right: np.ndarray  # bool[passes, examples]

    def series(self, name: str) -> np.ndarray:
        """One score after every pass, in percent."""
        return np.asarray(Classification(self.n_classes).scores(self.confusion)[name], float)

    def summary(self, passes: slice = slice(None)) -> dict[str, float]:
        """Mean and standard deviation over passes of each score, and the mean of NNZ."""
        means: dict[str, float] = {"nnz": float(self.nnz[passes].mean())}
        for name in ("precision", "recall", "f1", "accuracy", "error"):
            values = self.series(name)[passes]
            means[name], means[f"{name}_std"] = float(values.mean()), float(values.std())
        return means


@dataclass(frozen=True)
class Run:
    """A learner after all its passes."""

    setting: Mapping[str, float]
    signature: str
    mistakes: np.ndarray  # int64[passes]: so far
    averaged: Scores
    last: Scores


def build(spec: Spec, setting: Mapping[str, float], data: SparseDataset, **more: Any) -> Learner:
    """The learner of a spec with these parameters."""
    # Rows have unit length, so rates mean the same on every problem.
    return recipe(spec.recipe).build(Scale(1.0, len(data)), **{**spec.fixed, **setting, **more})


def run(
    spec: Spec, setting: Mapping[str, float], train: SparseDataset, test: SparseDataset, passes: int
) -> Run:
    """Train, and score the average and the last weights after every pass.

    >>> from hopefear.experiments.vrda_classification.plan import QUICK
    >>> from hopefear.experiments.vrda_classification.plan import generated
    >>> problem, perceptron = generated(200, 100, 50), QUICK.specs[0]
    >>> passes = run(perceptron, {}, problem.train, problem.test, passes=2)
    >>> passes.averaged.right.shape, bool(passes.mistakes[1] > passes.mistakes[0])
    ((2, 100), True)
    """
    learner = build(spec, setting, train)
    trainer = OnlineTrainer(structure_for(train, 0.0), learner)
    averaged, last = _Recorder(trainer.structure, test), _Recorder(trainer.structure, test)
    mistakes = []
    for _ in learn(trainer, train, passes, SEED):
        averaged.add(trainer.predictor())
        last.add(LinearPredictor(trainer.weights()))
        mistakes.append(trainer.mistakes)
    return Run(
        dict(setting),
        learner.signature(epochs=passes, seed=SEED),
        np.array(mistakes),
        averaged.scores(),
        last.scores(),
    )


def follow(spec: Spec, setting: Mapping[str, float], train: SparseDataset, passes: int) -> Trail:
    """Train, and note NNZ and mistakes ever more rarely in the first pass, then four times each."""
    trainer = OnlineTrainer(structure_for(train, 0.0), build(spec, setting, train))
    return Trail.of(setting.get(spec.strength, 0.0), trainer, train, passes, SEED)


def seconds(learner: Learner, train: SparseDataset, passes: int) -> float:
    """CPU seconds to train, without scoring."""
    return sum(learn(OnlineTrainer(structure_for(train, 0.0), learner), train, passes, SEED))


def compare_right(first: np.ndarray, second: np.ndarray) -> Difference:
    """Paired bootstrap over examples of two accuracies, each a mean over passes."""
    return compare(Accuracy(), "accuracy", _counts(first), _counts(second), 2000, randomise=False)


def _counts(right: np.ndarray) -> np.ndarray:
    right = np.atleast_2d(right)
    return np.stack((right.sum(axis=0), np.full(right.shape[1], len(right))), axis=1)


class _Recorder:
    """Collects scores of one predictor after another."""

    def __init__(self, structure: Any, test: SparseDataset) -> None:
        self.structure, self.test = structure, test
        self.metric = Classification(len(test.classes))
        self.passes: list[tuple[np.ndarray, int, np.ndarray]] = []

    def add(self, predictor: Predictor) -> None:
        labels, _ = predictor.decide(self.structure, self.test.rows)
        gold = self.test.rows.labels
        self.passes.append((self.metric.stats(gold, labels), predictor.nnz, gold == labels))

    def scores(self) -> Scores:
        confusion, nnz, right = zip(*self.passes, strict=True)
        return Scores(self.metric.n_classes, np.array(confusion), np.array(nnz), np.array(right))


@dataclass(frozen=True)
class Trial:
    """A setting and how it did on the held-out rows: means over passes, NNZ after the last."""

    setting: Mapping[str, float]
    accuracy: float
    f1: float
    nnz: int  # of the average
    last_nnz: int
    last_f1: float


@dataclass(frozen=True)
class Choice:
    """The best setting, the sparsest one that is about as good, and all that were tried."""

    best: Trial
    sparse: Trial
    trials: tuple[Trial, ...]
    edges: tuple[str, ...]  # parameters whose best value is an end of their grid

    def along(self, strength: str) -> list[Trial]:
        """The best trial at every strength of regularisation."""
        tops: dict[float, Trial] = {}
        for trial in self.trials:
            value = trial.setting.get(strength, 0.0)
            if value not in tops or trial.accuracy > tops[value].accuracy:
                tops[value] = trial
        return [tops[value] for value in sorted(tops)]


def choose(spec: Spec, rest: SparseDataset, held_out: SparseDataset, passes: int) -> Choice:
    """Try the whole grid on ``rest`` and pick by accuracy on ``held_out``."""
    trials = []
    for setting in spec.settings():
        trial = run(spec, setting, rest, held_out, passes)
        average, last = trial.averaged.summary(), trial.last.summary()
        nnz = int(trial.averaged.nnz[-1]), int(trial.last.nnz[-1])
        trials.append(Trial(setting, average["accuracy"], average["f1"], *nnz, last["f1"]))
    return pick(spec, trials, len(held_out))


def pick(spec: Spec, trials: Sequence[Trial], n: int) -> Choice:
    """Best: highest accuracy, then fewest weights. Sparse: fewest last weights within one standard
    error of the best, ``sqrt(p (1 - p) / n)``.

    >>> from hopefear.experiments.vrda_classification.plan import QUICK
    >>> good = Trial({"l1": 0.0}, 90.0, 90.0, 500, 400, 89.0)
    >>> small = Trial({"l1": 1e-4}, 89.5, 89.5, 90, 50, 88.0)
    >>> poor = Trial({"l1": 1e-3}, 70.0, 70.0, 9, 5, 60.0)
    >>> choice = pick(QUICK.specs[5], [good, small, poor], n=1000)
    >>> choice.best is good, choice.sparse is small, choice.edges
    (True, True, ('l1',))
    """
    best = max(trials, key=lambda t: (t.accuracy, -t.nnz))
    share = best.accuracy / 100.0
    enough = best.accuracy - 100.0 * math.sqrt(share * (1.0 - share) / n)
    sparse = min(
        (t for t in trials if t.accuracy >= enough), key=lambda t: (t.last_nnz, -t.accuracy)
    )
    edges = at_edges(best.setting, {spec.strength: spec.strengths, "rate": spec.rates})
    return Choice(best, sparse, tuple(trials), tuple(edges))


@dataclass(frozen=True)
class Votes:
    """Real votes and the average of the same predictors, on the same test examples."""

    voted: np.ndarray  # bool[examples]: right
    averaged: np.ndarray
    seconds: tuple[float, float]  # CPU per 1,000 examples: voted, averaged
    predictors: int
    megabytes: tuple[float, float]


@dataclass
class Results:
    """The numbers behind one column of the page."""

    problem: Problem
    plan: Plan
    choices: dict[str, Choice] = field(default_factory=dict)
    best: dict[str, Run] = field(default_factory=dict)
    sparse: dict[str, Run] = field(default_factory=dict)
    trails: dict[str, list[Trail]] = field(default_factory=dict)  # by loss, and "perceptron"
    votes: dict[str, Votes] = field(default_factory=dict)  # by loss
    times: dict[str, float] = field(default_factory=dict)  # "vrda-hinge averaged": CPU s a pass

    @property
    def whole(self) -> bool:
        """Whether figures show it too."""
        return not self.problem.table_only

    @property
    def name(self) -> str:
        return self.problem.name

    def ratio(self, loss: str, readout: str) -> float:
        """CPU time of voted RDA for one pass, as a share of RDA's."""
        return self.times[f"vrda-{loss} {readout}"] / self.times[f"rda-{loss} {readout}"]


class Measurement(NamedTuple):
    """All problems, and Theorem 1 beside them."""

    problems: list[Results]
    curves: list[BoundCurve]


def measure(call: Call) -> Measurement:
    """All problems whose data is there."""
    call.progress("reading the data")
    problems, call.note = find_problems(call.data, call.quick)
    share, results = 1.0 / len(problems), []
    for n, problem in enumerate(problems):
        results.append(measure_problem(problem, call.plan, call.teller(n * share, share)))
    call.progress(" 99%  bounds")
    return Measurement(results, bound_curves(call.plan))


def measure_problem(problem: Problem, plan: Plan, tell: Tell) -> Results:
    """Choose, train, follow, vote and time; ``tell`` gets the share done and what is next."""
    results = Results(problem, plan)
    rest, held_out = problem.train.split(HELD_OUT, SEED)
    for n, spec in enumerate(plan.specs):
        tell(0.7 * n / len(plan.specs), f"{problem.name}: {spec.title}")
        choice = choose(spec, rest, held_out, plan.tuning_passes)
        results.choices[spec.key] = choice
        results.best[spec.key] = _test(spec, choice.best.setting, problem, plan)
        results.sparse[spec.key] = (
            results.best[spec.key]
            if choice.sparse is choice.best
            else _test(spec, choice.sparse.setting, problem, plan)
        )
    if problem.table_only:
        return results
    specs = {spec.key: spec for spec in plan.specs}
    tell(0.7, f"{problem.name}: while training")
    results.trails["perceptron"] = [follow(specs["perceptron"], {}, problem.train, plan.passes)]
    for loss in LOSSES:
        spec, setting = specs[f"vrda-{loss}"], results.choices[f"vrda-{loss}"].best.setting
        results.trails[loss] = [
            follow(spec, {**setting, "l1": l1}, problem.train, plan.passes) for l1 in plan.paths
        ]
    for n, loss in enumerate(LOSSES):
        tell(0.8 + 0.07 * n, f"{problem.name}: voting ({loss})")
        key = f"vrda-{loss}"
        results.votes[loss] = vote(specs[key], results.choices[key], problem, plan)
    tell(0.95, f"{problem.name}: timing")
    results.times = time_all(specs, results.choices, problem, plan)
    return results


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
        for _ in learn(trainer, problem.train, 1, SEED):
            pass
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
            each = seconds(learner, problem.train, plan.timed_passes) / plan.timed_passes
            if repeat:  # the first one may have compiled
                least[name] = min(least[name], each)
    return {name: float(value) for name, value in least.items()}


SEPARATION = 0.2
STRENGTHS = (0.0, 1e-4)


@dataclass(frozen=True)
class BoundCurve:
    """A run of voted RDA beside its bound after more and more samples."""

    noise: float
    strength: float
    reports: tuple[BoundReport, ...]

    @property
    def label(self) -> str:
        return f"λ = {short(self.strength)}"


def bound_curves(plan: Plan) -> list[BoundCurve]:
    """Voted RDA (hinge), one pass, on separable and on noisy data; the comparator is the truth.

    The truth is scaled to give the lowest bound. The rate is the best one for a unit margin.
    """
    features = max(60, plan.bound_rows // 10)
    curves = []
    for noise in (0.0, 0.05):
        generated = sparse_linear(
            plan.bound_rows,
            features,
            per_row=(10, 30),
            true_weights=features // 10,
            margin=SEPARATION,
            label_noise=noise,
            seed=11,
        )
        rows, structure = generated.dataset().rows, Binary(features)
        order = np.random.default_rng(SEED).permutation(plan.bound_rows)
        longest = radius(structure, rows)
        rate = float(np.linalg.norm(generated.truth)) / SEPARATION / (math.sqrt(2.0) * longest)
        for l1 in STRENGTHS:
            learner = Learner(Hinge(), RDA(rate, l1), Observed(Averaged()), on="mistakes")
            trainer = OnlineTrainer(structure, learner)
            outcome = np.zeros(order.size, np.uint8)
            reports, start = [], 0
            for end in first_marks(order.size):
                trainer.learn(rows, order[start:end], outcome[start:end])
                wrong, start = mistaken(order[:end], outcome[:end]), int(end)
                if wrong.size:
                    reports.append(best_scaled(trainer, rows, wrong, generated.truth, longest)[1])
            curves.append(BoundCurve(noise, l1, tuple(reports)))
    return curves
