"""Runs: pass after pass, what is kept and the last weights scored after each; all that is measured.

Parameters are chosen on development lists, or on a part of the training rows that is held out; the
test is not looked at.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from hopefear.averaging.averaged import Averaged
from hopefear.core.learner import Learner
from hopefear.data.generators import sparse_linear
from hopefear.losses.hinge import Hinge
from hopefear.metrics import Accuracy, Classification, confidence_interval
from hopefear.metrics.lists import Parseval
from hopefear.recipes import Scale
from hopefear.rules.rda import RDA
from hopefear.structures.classes import Binary
from hopefear.structures.nbest import NBest
from hopefear.tasks import recipe
from hopefear.tasks.classify.task import structure_for
from hopefear.training.decoders.classes import ClassDecoder
from hopefear.training.decoders.lists import ListDecoder
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Pieces
from hopefear.training.predictors import LinearPredictor, Predictor
from hopefear_papers.claims import Difference, compare
from hopefear_papers.frame import Call, Tell, Trail, at_edges, first_marks, learn, short
from hopefear_papers.parses import brackets
from hopefear_papers.theorems.voted_rda import BoundReport, best_scaled, radius
from hopefear_papers.theorems.watched import Watched
from hopefear_papers.vrda_classification.plan import (
    LOSSES,
    SEED,
    Plan,
    Problem,
    Spec,
    find_problems,
)


class Classes:
    """Rows with a class each: a label is chosen, and accuracy decides."""

    metric = Accuracy()
    main, title = "accuracy", "accuracy"
    names = ("precision", "recall", "f1", "accuracy", "error")

    def structure(self, problem: Problem) -> Any:
        return structure_for(problem.train, 0.0)

    def choices(self, structure: Any, predictor: Predictor, data: Any) -> np.ndarray:
        return ClassDecoder(structure, predictor).predict(data.rows)

    def scores(self, data: Any, choices: np.ndarray) -> Mapping[str, Any]:
        """All scores, an array over passes each."""
        metric = Classification(len(data.classes))
        return metric.scores(np.array([metric.total(data.rows.labels, one) for one in choices]))

    def counts(self, data: Any, choices: np.ndarray) -> np.ndarray:
        """What ``metric`` counts, example by example, all passes added up."""
        right = (choices == data.rows.labels).sum(axis=0)
        return np.stack((right, np.full(right.size, len(choices))), axis=1)

    def error(self, data: Any, choices: np.ndarray) -> float:
        """Standard error of a mean over passes: ``sqrt(p (1 - p) / n)``, in points."""
        share = float((choices == data.rows.labels).mean())
        return 100.0 * math.sqrt(share * (1.0 - share) / len(data))


class Lists:
    """Lists of parses: a candidate is chosen, and F of its brackets decides."""

    metric = Parseval()
    main, title = "f1", "F"
    names = ("precision", "recall", "f1")

    def structure(self, problem: Problem) -> Any:
        return NBest(problem.n_features)

    def choices(self, structure: Any, predictor: Predictor, data: Any) -> np.ndarray:
        return ListDecoder(structure, predictor).predict(data.rows)

    def scores(self, data: Any, choices: np.ndarray) -> Mapping[str, Any]:
        sums = [brackets(data, one).sum(axis=0) for one in choices.astype(np.int64)]
        return self.metric.scores(np.array(sums))

    def counts(self, data: Any, choices: np.ndarray) -> np.ndarray:
        chosen = [brackets(data, one) for one in choices.astype(np.int64)]
        counts: np.ndarray = np.array(chosen, np.int64).sum(axis=0)
        return counts

    def error(self, data: Any, choices: np.ndarray) -> float:
        """By bootstrap over lists: a fourth of the 95 % interval."""
        interval = confidence_interval(self.metric, self.counts(data, choices), self.main)
        return (interval.high - interval.low) / 4.0


TASKS: dict[str, Classes | Lists] = {"classify": Classes(), "rerank": Lists()}


@dataclass(frozen=True)
class Scores:
    """How a sequence of predictors, one a pass, did on the test of a problem."""

    problem: Problem
    choices: np.ndarray  # int16[passes, examples]: labels, or positions in lists
    nnz: np.ndarray  # int64[passes]

    @property
    def task(self) -> Classes | Lists:
        return TASKS[self.problem.task]

    def series(self, name: str) -> np.ndarray:
        """One score after every pass, in percent."""
        return np.asarray(self.task.scores(self.problem.test, self.choices)[name], float)

    def summary(self, passes: slice = slice(None)) -> dict[str, float]:
        """Mean and standard deviation over passes of each score, and the mean of NNZ.

        ``main`` is the score that decides.
        """
        means: dict[str, float] = {"nnz": float(self.nnz[passes].mean())}
        scores = self.task.scores(self.problem.test, self.choices[passes])
        for name in self.task.names:
            values = np.asarray(scores[name], float)
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


def build(spec: Spec, setting: Mapping[str, float], problem: Problem, **more: Any) -> Learner:
    """The learner of a spec with these parameters."""
    # Rows of texts have unit length, so their rates mean the same; lists have a grid of their own.
    values = {**spec.fixed, **setting, **more}
    if problem.task == "rerank" and values.get("averaging") == "averaged":
        values["sparse_average"] = False  # the whole average, as on texts
    return recipe(spec.recipe, problem.task).build(Scale(1.0, len(problem.train)), **values)


def trainer_of(learner: Learner, problem: Problem) -> OnlineTrainer:
    return OnlineTrainer(TASKS[problem.task].structure(problem), learner)


def run(spec: Spec, setting: Mapping[str, float], problem: Problem, passes: int) -> Run:
    """Train, and score the average and the last weights after every pass.

    >>> from hopefear_papers.vrda_classification.plan import QUICK
    >>> from hopefear_papers.vrda_classification.plan import generated
    >>> problem, perceptron = generated(200, 100, 50), QUICK.specs[0]
    >>> passes = run(perceptron, {}, problem, passes=2)
    >>> passes.averaged.choices.shape, bool(passes.mistakes[1] > passes.mistakes[0])
    ((2, 100), True)
    """
    learner = build(spec, setting, problem)
    trainer = trainer_of(learner, problem)
    averaged, last = _Recorder(trainer.structure, problem), _Recorder(trainer.structure, problem)
    mistakes = []
    for _ in learn(trainer, problem.train, passes, SEED):
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


def follow(spec: Spec, setting: Mapping[str, float], problem: Problem, passes: int) -> Trail:
    """Train, and note NNZ and mistakes ever more rarely in the first pass, then four times each."""
    trainer = trainer_of(build(spec, setting, problem), problem)
    return Trail.of(setting.get(spec.strength, 0.0), trainer, problem.train, passes, SEED)


def seconds(learner: Learner, problem: Problem, passes: int) -> float:
    """CPU seconds to train, without scoring."""
    return sum(learn(trainer_of(learner, problem), problem.train, passes, SEED))


def compare_scores(first: Scores, second: Scores, passes: slice = slice(None)) -> Difference:
    """Paired bootstrap over examples of the scores that decide, over some of the passes."""
    task = first.task
    a, b = (task.counts(one.problem.test, one.choices[passes]) for one in (first, second))
    return compare(task.metric, task.main, a, b, 2000, randomise=False)


class _Recorder:
    """Collects what one predictor after another chooses from the test of a problem."""

    def __init__(self, structure: Any, problem: Problem) -> None:
        self.structure, self.problem = structure, problem
        self.choices: list[np.ndarray] = []
        self.nnz: list[int] = []

    def add(self, predictor: Predictor) -> None:
        task = TASKS[self.problem.task]
        self.choices.append(task.choices(self.structure, predictor, self.problem.test))
        self.nnz.append(predictor.nnz)

    def scores(self) -> Scores:
        return Scores(self.problem, np.array(self.choices, np.int16), np.array(self.nnz))


@dataclass(frozen=True)
class Trial:
    """A setting and how it did where it is chosen: means over passes, NNZ after the last."""

    setting: Mapping[str, float]
    score: float  # accuracy, or F of parses
    error: float  # its standard error
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
            if value not in tops or trial.score > tops[value].score:
                tops[value] = trial
        return [tops[value] for value in sorted(tops)]


def choose(spec: Spec, problem: Problem, passes: int) -> Choice:
    """Try the whole grid and pick by accuracy, or by F of parses."""
    task, trials = TASKS[problem.task], []
    for setting in spec.settings():
        trial = run(spec, setting, problem, passes)
        average, last = trial.averaged.summary(), trial.last.summary()
        nnz = int(trial.averaged.nnz[-1]), int(trial.last.nnz[-1])
        error = task.error(problem.test, trial.averaged.choices)
        trials.append(Trial(setting, average[task.main], error, average["f1"], *nnz, last["f1"]))
    return pick(spec, trials)


def pick(spec: Spec, trials: Sequence[Trial]) -> Choice:
    """Best: highest score, then fewest weights. Sparse: fewest last weights within one standard
    error of the best.

    >>> from hopefear_papers.vrda_classification.plan import QUICK
    >>> good = Trial({"l1": 0.0}, 90.0, 0.9, 90.0, 500, 400, 89.0)
    >>> small = Trial({"l1": 1e-4}, 89.5, 0.9, 89.5, 90, 50, 88.0)
    >>> poor = Trial({"l1": 1e-3}, 70.0, 1.5, 70.0, 9, 5, 60.0)
    >>> choice = pick(QUICK.specs[5], [good, small, poor])
    >>> choice.best is good, choice.sparse is small, choice.edges
    (True, True, ('l1',))
    """
    best = max(trials, key=lambda t: (t.score, -t.nnz))
    good = (t for t in trials if t.score >= best.score - best.error)
    sparse = min(good, key=lambda t: (t.last_nnz, -t.score))
    edges = at_edges(best.setting, {spec.strength: spec.strengths, "rate": spec.rates})
    return Choice(best, sparse, tuple(trials), tuple(edges))


@dataclass(frozen=True)
class Votes:
    """Real votes and the average of the same predictors, on the same test examples."""

    voted: Scores
    averaged: Scores
    seconds: tuple[float, float]  # CPU per 1,000 examples: voted, averaged
    predictors: int
    megabytes: tuple[float, float]


@dataclass
class Results:
    """The numbers behind one column of the page."""

    problem: Problem
    plan: Plan
    baseline: Scores | None = None  # the first of each list
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

    @property
    def task(self) -> Classes | Lists:
        return TASKS[self.problem.task]

    @property
    def visits(self) -> int:
        """Examples that a pass learns from; lists without a choice are left out."""
        return int(self.trails["perceptron"][0].samples[-1]) // self.plan.passes

    def ratio(self, loss: str, averaging: str) -> float:
        """CPU time of voted RDA for one pass, as a share of RDA's."""
        return self.times[f"vrda-{loss} {averaging}"] / self.times[f"rda-{loss} {averaging}"]


class Measurement(NamedTuple):
    """All problems, and Theorem 1 beside them."""

    problems: list[Results]
    curves: list[BoundCurve]


def measure(call: Call) -> Measurement:
    """All problems whose data is there."""
    call.progress("reading the data")
    problems, call.note = find_problems(call.data, call.quick)
    share, results = 1.0 / len(problems), []
    for problem in problems:
        call.saw(f"{problem.name}, training", problem.train)
        call.saw(f"{problem.name}, test", problem.test)
    for n, problem in enumerate(problems):
        results.append(measure_problem(problem, call.plan, call.teller(n * share, share)))
    call.progress(" 99%  bounds")
    return Measurement(results, bound_curves(call.plan))


def measure_problem(problem: Problem, plan: Plan, tell: Tell) -> Results:
    """Choose, train, follow, vote and time; ``tell`` gets the share done and what is next."""
    results, tuning = Results(problem, plan), problem.tuning()
    if problem.task == "rerank":
        first = np.zeros((1, len(problem.test)), np.int16)
        results.baseline = Scores(problem, first, np.zeros(1, np.int64))
    learners = plan.learners(problem)
    for n, spec in enumerate(learners):
        tell(0.7 * n / len(learners), f"{problem.name}: {spec.title}")
        choice = choose(spec, tuning, plan.tuning_passes)
        results.choices[spec.key] = choice
        results.best[spec.key] = run(spec, choice.best.setting, problem, plan.passes)
        results.sparse[spec.key] = (
            results.best[spec.key]
            if choice.sparse is choice.best
            else run(spec, choice.sparse.setting, problem, plan.passes)
        )
    if problem.table_only:
        return results
    specs = {spec.key: spec for spec in learners}
    tell(0.7, f"{problem.name}: while training")
    results.trails["perceptron"] = [follow(specs["perceptron"], {}, problem, plan.passes)]
    for loss in LOSSES:
        spec, setting = specs[f"vrda-{loss}"], results.choices[f"vrda-{loss}"].best.setting
        results.trails[loss] = [
            follow(spec, {**setting, "l1": l1}, problem, plan.passes)
            for l1 in plan.strengths(problem)
        ]
    for n, loss in enumerate(LOSSES):
        tell(0.8 + 0.07 * n, f"{problem.name}: voting ({loss})")
        key = f"vrda-{loss}"
        results.votes[loss] = vote(specs[key], results.choices[key], problem, plan)
    tell(0.95, f"{problem.name}: timing")
    results.times = time_all(specs, results.choices, problem, plan)
    return results


def vote(spec: Spec, choice: Choice, problem: Problem, plan: Plan) -> Votes:
    """One pass, then Algorithm 2 and the average on the first test examples."""
    few = problem.test.take(np.arange(min(plan.vote_rows, len(problem.test))))
    some, task = replace(problem, test=few), TASKS[problem.task]
    scores, cost, size, predictors = [], [], [], 0
    for averaging in ("voted", "averaged"):
        trainer = trainer_of(
            build(spec, choice.best.setting, problem, averaging=averaging), problem
        )
        for _ in learn(trainer, problem.train, 1, SEED):
            pass
        predictor, recorder = trainer.predictor(), _Recorder(trainer.structure, some)
        task.choices(trainer.structure, predictor, few.take(np.arange(1)))  # compiled, then timed
        start = time.process_time()
        recorder.add(predictor)
        cost.append((time.process_time() - start) * 1000.0 / len(few))
        scores.append(recorder.scores())
        size.append(sum(a.nbytes for a in predictor.arrays().values()) / 1e6)
        predictors = trainer.updates + 1
    return Votes(scores[0], scores[1], (cost[0], cost[1]), predictors, (size[0], size[1]))


def time_all(
    specs: dict[str, Spec], choices: dict[str, Choice], problem: Problem, plan: Plan
) -> dict[str, float]:
    """CPU seconds a pass of RDA and voted RDA, taken in turn; the least of several."""
    learners = {
        f"{rule}-{loss} {averaging}": build(
            specs[f"{rule}-{loss}"],
            choices[f"{rule}-{loss}"].best.setting,
            problem,
            averaging=averaging,
        )
        for loss in LOSSES
        for rule in ("rda", "vrda")
        for averaging in ("averaged", "last")
    }
    least = dict.fromkeys(learners, np.inf)
    for repeat in range(plan.repeats + 1):
        for name, learner in learners.items():
            each = seconds(learner, problem, plan.timed_passes) / plan.timed_passes
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
        parts, longest = np.split(order, first_marks(order.size)[:-1]), radius(structure, rows)
        rate = float(np.linalg.norm(generated.truth)) / SEPARATION / (math.sqrt(2.0) * longest)
        for l1 in STRENGTHS:
            learner = Learner(Hinge(), RDA(rate, l1), Averaged(), update_on="mistakes")
            trainer = Watched(structure, learner, rows)
            reports = []
            for _ in trainer.learn_pieces(Pieces(rows, parts)):
                wrong = trainer.mistaken
                if wrong.size:
                    reports.append(best_scaled(trainer, rows, wrong, generated.truth, longest)[1])
            curves.append(BoundCurve(noise, l1, tuple(reports)))
    return curves
