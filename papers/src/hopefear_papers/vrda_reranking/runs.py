"""Runs: three readings of the weights scored at some of the passes; settings, votes, trails, folds.

Settings are chosen on development lists: the parameters of a learner, the number of passes, and
what is kept of the weights. Test lists are not looked at for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.learner import Learner
from hopefear.metrics.lists import Parseval
from hopefear.recipes import Scale
from hopefear.structures.nbest import NBest
from hopefear.tasks import recipe
from hopefear.training.online import OnlineTrainer
from hopefear.training.predictors import LinearPredictor
from hopefear_papers.claims import Difference, Tests, compare_choices
from hopefear_papers.frame import (
    Call,
    KeptRuns,
    Tell,
    Trail,
    at_edges,
    at_most,
    from_plain,
    grid_points,
    learn,
    paced,
    plain,
    short,
)
from hopefear_papers.parses import (
    Part,
    Problem,
    Split,
    brackets,
    chosen,
    f_score,
    find_problem,
)
from hopefear_papers.theorems.watched import Watched
from hopefear_papers.vrda_reranking.plan import (
    AVERAGED,
    GOAL,
    KEPT,
    LOSSES,
    SUPPORT,
    TG,
    Plan,
    Spec,
)


@dataclass(frozen=True)
class Run:
    """A learner at some of its passes; the first axis is ``KEPT``."""

    signature: str
    dev: np.ndarray  # float64[3, marks]: F on development lists, percent
    nnz: np.ndarray  # int64[3, marks]
    mistakes: np.ndarray  # int64[marks]: so far
    counts: np.ndarray  # int64[3, lists, 3]: brackets of test lists at the last mark; or no lists


def build(spec: Spec, params: Mapping[str, Any], n: int, averaging: str = "averaged") -> Learner:
    """The learner of a spec with these parameters, for so many lists a pass."""
    values = {**spec.fixed, **params, "averaging": averaging}
    return recipe(spec.recipe, "rerank").build(Scale(n=n), **values)


def run(
    spec: Spec,
    params: Mapping[str, Any],
    split: Split,
    seed: int,
    marks: Sequence[int],
    tested: bool = False,
) -> Run:
    """Train as many passes as the last mark, scoring development lists after each mark.

    Test lists are chosen from only if ``tested``, after the last pass.
    """
    learner = build(spec, params, len(split.train))
    trainer = OnlineTrainer(NBest(split.size), learner)
    dev, nnz, mistakes = [], [], []
    for epoch, _ in enumerate(learn(trainer, split.train, marks[-1], seed), 1):
        if epoch not in marks:
            continue
        predictors = readings(trainer, split.dense)
        dev.append([f_score(chosen(p, trainer.structure, split.dev)) for p in predictors])
        nnz.append([p.nnz for p in predictors])
        mistakes.append(trainer.mistakes)
    counts = np.zeros((len(KEPT), 0, 3), np.int64)
    if tested:
        counts = np.stack([chosen(p, trainer.structure, split.test) for p in predictors])
    return Run(
        learner.signature(epochs=marks[-1], seed=seed),
        np.array(dev).T,
        np.array(nnz).T,
        np.array(mistakes),
        counts,
    )


def vote(spec: Spec, params: Mapping[str, Any], split: Split, seed: int, passes: int) -> Any:
    """Brackets that the vote of all predictors there were chooses on test lists (Figure 2)."""
    learner = build(spec, params, len(split.train), "voted")
    trainer = OnlineTrainer(NBest(split.size), learner)
    for _ in learn(trainer, split.train, passes, seed):
        pass
    return chosen(trainer.predictor(), trainer.structure, split.test)


def follow(spec: Spec, params: Mapping[str, Any], split: Split, seed: int, passes: int) -> Trail:
    """Train, and note NNZ and mistakes ever more rarely in the first pass, then four times each."""
    trainer = OnlineTrainer(NBest(split.size), build(spec, params, len(split.train)))
    return Trail.of(params.get(spec.strength, 0.0), trainer, split.train, passes, seed)


@dataclass(frozen=True)
class Bounded:
    """Voted RDA beside Theorem 1 after each pass, for its average at the best scale."""

    strength: float
    samples: np.ndarray
    mistakes: np.ndarray
    theorem1: np.ndarray  # 0 where there is no bound


def bounded(spec: Spec, params: Mapping[str, Any], split: Split, seed: int, passes: int) -> Bounded:
    """Train, and put the bound beside the mistakes after each pass."""
    learner = build(spec, params, len(split.train))
    trainer, notes = Watched(NBest(split.size), learner, split.train.rows), []
    for _ in learn(trainer, split.train, passes, seed):
        limit = (trainer.bound() or {}).get("theorem1") or 0.0
        notes.append((trainer.examples, trainer.mistakes, limit))
    return Bounded(params.get(spec.strength, 0.0), *np.array(notes).T)


def readings(trainer: Any, dense: np.ndarray) -> list[LinearPredictor]:
    """In the order of ``KEPT``; an average on the last support has the dense features too."""
    mean, last = trainer.average().astype(np.float32), trainer.weights()
    support = last != 0.0
    support[dense] = True
    return [LinearPredictor(w) for w in (mean, np.where(support, mean, np.float32(0.0)), last)]


Trials = Mapping[str, Sequence["Trial"]]


class Trial(NamedTuple):
    """A setting and how it did on development lists, mean over seeds."""

    spec: str
    params: dict[str, float]
    passes: int
    kept: int
    dev: float
    nnz: float


def text_of(params: Mapping[str, float]) -> str:
    """Parameters in a line.

    >>> text_of({"rate": 0.1, "l1": 1e-4})
    'rate 0.1, l1 1e-4'
    """
    texts = (f"{k} {short(v) if k in ('l1', 'gravity') else f'{v:g}'}" for k, v in params.items())
    return ", ".join(texts)


def trials_of(
    spec: Spec, params: dict[str, float], runs: Sequence[Run], marks: Sequence[int]
) -> list[Trial]:
    """All that runs of several seeds say about the settings they hold."""
    dev, nnz = (np.mean([getattr(r, name) for r in runs], axis=0) for name in ("dev", "nnz"))
    return [
        Trial(spec.key, params, passes, kept, float(dev[kept, m]), float(nnz[kept, m]))
        for kept in spec.kept
        for m, passes in enumerate(marks)
    ]


def best(trials: Sequence[Trial]) -> Trial:
    """Highest F, then fewest weights."""
    return max(trials, key=lambda t: (t.dev, -t.nnz))


def sparsest(trials: Sequence[Trial], floor: float) -> Trial:
    """Fewest weights of those with an F of ``floor`` or more; the best where there is none.

    >>> few, many = Trial("a", {}, 1, 1, 86.0, 500.0), Trial("a", {}, 1, 0, 86.5, 9000.0)
    >>> sparsest([many, few], 85.9) is few, sparsest([many, few], 86.1) is many
    (True, True)
    """
    good = [t for t in trials if t.dev >= floor]
    return min(good, key=lambda t: (t.nnz, -t.dev)) if good else best(trials)


def within(trials: Sequence[Trial], level: float) -> Trial | None:
    """The best of those with at most so many weights; None where all have more."""
    small = [t for t in trials if 0.0 < t.nnz <= level]
    return best(small) if small else None


def choose(trials: Trials, plan: Plan) -> dict[str, Trial]:
    """Everything that is then run on test lists, by name.

    ``vrda-hinge`` is the best of a learner, ``vrda-hinge sparse`` its sparsest that is no worse
    than the perceptron, ``vrda-hinge of 10%`` its best with so many of the perceptron's weights,
    ``vrda-hinge ≤ 5000`` its best with so many weights, and ``vrda-hinge λ 1e-4, average`` its best
    at a strength with the same reading of the weights.
    """
    choices = {key: best(every) for key, every in trials.items()}
    floor = choices["perceptron"].dev
    for key in dict.fromkeys([*(s.key for s in plan.voted), *truncated()]):
        choices[sparse(key)] = sparsest(trials[key], floor)
        most = GOAL * choices["perceptron"].nnz
        choices[tenth(key)] = within(trials[key], most) or choices[sparse(key)]
    for key in (*(f"vrda-{loss}" for loss in LOSSES), *truncated()):
        for level in plan.levels:
            small = within(trials[key], level)
            if small is not None:
                choices[at_most(key, level)] = small
    for loss in LOSSES:
        for l1 in plan.sweep:
            alike = [t for t in trials[f"vrda-{loss}"] if t.params["l1"] == l1]
            for kept in (AVERAGED, SUPPORT):
                choices[at(loss, l1, kept)] = best([t for t in alike if t.kept == kept])
    return choices


def truncated() -> list[str]:
    """Truncated gradient with either rate and either loss."""
    return [f"{rule}-{loss}" for rule in TG for loss in LOSSES]


def sparse(key: str) -> str:
    return f"{key} sparse"


def tenth(key: str) -> str:
    return f"{key} of {GOAL:.0%}"


def at(loss: str, l1: float, kept: int = SUPPORT) -> str:
    return f"vrda-{loss} λ {short(l1)}, {KEPT[kept]}"


def edges(trial: Trial, grid: Mapping[str, Sequence[float]], marks: Sequence[int]) -> list[str]:
    """Parameters whose chosen value is an end of its grid."""
    return at_edges({**trial.params, "passes": trial.passes}, {**grid, "passes": marks})


def compare(first: Sequence[np.ndarray], second: Sequence[np.ndarray], samples: int) -> Difference:
    """Both tests over lists, on F, from counts of brackets by seed.

    >>> good, bad = np.array([[4, 4, 4]] * 50), np.array([[2, 4, 4]] * 50)
    >>> compare([good], [bad, bad], 100).points
    50.0
    """
    return compare_choices(Parseval(), "f1", first, second, samples)


TABLE = ("perceptron", *(f"{rule}-{loss}" for rule in (*TG, "vrda") for loss in LOSSES))
TOP = "best of all"
VOTED = " voted"
_STRIDE = 4  # runs from one report of progress to the next


class Scored(NamedTuple):
    """One choice on test lists."""

    signature: str
    dev: float
    nnz: int
    counts: np.ndarray  # int64[lists, 3]


@dataclass
class Results:
    """All numbers behind the page."""

    plan: Plan
    lists: dict[str, int]  # by part
    features: dict[str, int]  # by part
    baseline: dict[str, np.ndarray]  # counts of "test", "folds"
    oracle: dict[str, np.ndarray]
    trials: dict[str, list[Trial]] = field(default_factory=dict)
    choices: dict[str, Trial] = field(default_factory=dict)
    test: dict[str, list[Scored]] = field(default_factory=dict)  # by choice, one for every seed
    published: dict[str, list[Scored]] = field(default_factory=dict)
    votes: dict[str, list[np.ndarray]] = field(default_factory=dict)  # by choice: counts
    voters: dict[str, list[Scored]] = field(default_factory=dict)  # their averages
    trails: dict[str, list[Trail]] = field(default_factory=dict)  # by loss, and "perceptron"
    folds: dict[str, list[Scored]] = field(default_factory=dict)  # by choice, one for every fold
    bounds: dict[str, list[Bounded]] = field(default_factory=dict)  # by loss

    def __post_init__(self) -> None:
        self.against = Tests(self._compare, ("of", "against", "where"))

    def _compare(self, first: str, second: str, where: str) -> Difference:
        """Two choices on test lists, seeds pooled, or over folds; or an average and its vote."""
        if second == first + VOTED:
            averages = [s.counts for s in self.voters[first]]
            return compare(averages, self.votes[first], self.plan.replicates)
        return compare(self.counts(first, where), self.counts(second, where), self.plan.replicates)

    def share(self, first: str, second: str, where: str) -> float:
        """Weights of one choice as a share of another's."""
        return self.nnz(first, where) / max(1.0, self.nnz(second, where))

    def counts(self, name: str, where: str) -> list[np.ndarray]:
        """Counts of a choice on test lists, by seed, or on the lists of all folds."""
        if name in ("baseline", "oracle"):
            return [getattr(self, name)[where]]
        if where == "test":
            return [s.counts for s in self.test[name]]
        return [np.concatenate([s.counts for s in self.folds[name]])]

    def nnz(self, name: str, where: str = "test") -> float:
        """Mean over seeds, or folds."""
        return float(np.mean([s.nnz for s in getattr(self, where)[name]]))

    def has(self, name: str, where: str) -> bool:
        return name == "baseline" or name in getattr(self, where)


class _Bench:
    """Runs learners on parts of a problem; cuts a part when a run of it is not kept yet."""

    def __init__(self, problem: Problem, plan: Plan, store: KeptRuns) -> None:
        self.problem, self.plan, self.store = problem, plan, store
        self._part: Part | None = None
        self._split: Split | None = None
        store.always["lists"] = problem.lists.digest

    def split(self, part: Part) -> Split:
        """The lists of a part; only the latest is held in memory."""
        if part != self._part or self._split is None:
            self._split, self._part = None, None
            self._split, self._part = self.problem.cut(part), part
        return self._split

    def size(self, part: Part) -> int:
        """Features of a part."""
        return int(self.store.of(f"{part.label}-size", {}, lambda: self.split(part).size))

    def tune(self, spec: Spec, params: dict[str, float], seeds: Sequence[int]) -> list[Trial]:
        marks = self.plan.marks
        contents = self.store.of(
            f"tune-{spec.key}-{text_of(params)}",
            {**_identity(spec, params), "marks": list(marks), "seeds": list(seeds)},
            lambda: [plain(run(spec, params, self.split(Part()), s, marks)) for s in seeds],
        )
        return trials_of(spec, params, [from_plain(Run, content) for content in contents], marks)

    def score(self, trial: Trial, part: Part, seed: int) -> Scored:
        spec, passes, k = self.plan.spec(trial.spec), (trial.passes,), trial.kept
        whole = self.store.record(
            Run,
            f"{part.label}-{spec.key}-{text_of(trial.params)}-{trial.passes}-{seed}",
            {**_identity(spec, trial.params), "passes": trial.passes, "seed": seed},
            lambda: run(spec, trial.params, self.split(part), seed, passes, tested=True),
        )
        dev, nnz = float(whole.dev[k, -1]), int(whole.nnz[k, -1])
        return Scored(whole.signature, dev, nnz, whole.counts[k])

    def vote(self, trial: Trial, seed: int) -> np.ndarray:
        spec, params, passes = self.plan.spec(trial.spec), trial.params, trial.passes
        counts = self.store.of(
            f"vote-{spec.key}-{text_of(params)}-{passes}-{seed}",
            {**_identity(spec, params), "passes": passes, "seed": seed},
            lambda: vote(spec, params, self.split(Part()), seed, passes).tolist(),
        )
        return np.array(counts)

    def follow(self, key: str, params: dict[str, float]) -> Trail:
        spec, passes, seed = self.plan.spec(key), self.plan.trail_passes, self.plan.seeds[0]
        return self.store.record(
            Trail,
            f"trail-{spec.key}-{text_of(params)}",
            {**_identity(spec, params), "passes": passes, "seed": seed},
            lambda: follow(spec, params, self.split(Part()), seed, passes),
        )

    def bounded(self, key: str, params: dict[str, float]) -> Bounded:
        spec, passes, seed = self.plan.spec(key), self.plan.trail_passes, self.plan.seeds[0]
        return self.store.record(
            Bounded,
            f"bound-{spec.key}-{text_of(params)}",
            {**_identity(spec, params), "passes": passes, "seed": seed},
            lambda: bounded(spec, params, self.split(Part()), seed, passes),
        )


def measure(call: Call) -> Results:
    """All that is run; features of all lists are kept in ``out/lists.bin``."""
    if call.quick:
        call.note = "This version reads a few lists only: too few to conclude from."
    problem = find_problem(call.data, call.out, call.quick, call.progress)
    return measure_problem(problem, call.plan, call.runs, call.teller())


def measure_problem(problem: Problem, plan: Plan, store: KeptRuns, tell: Tell) -> Results:
    """Choose, test, vote, follow, cross-validate; ``tell`` gets the share done and what is next."""
    bench = _Bench(problem, plan, store)
    results = _known(problem, plan)
    results.features = {part.label: bench.size(part) for part in (Part(), Part(published=True))}
    _tune(results, bench, tell)
    _test(results, bench, tell)
    tell(0.71, "votes")
    for loss in LOSSES:
        key = f"vrda-{loss}"
        trial = results.choices[key]._replace(kept=AVERAGED)
        results.votes[key] = [bench.vote(trial, seed) for seed in plan.seeds]
        results.voters[key] = [bench.score(trial, Part(), seed) for seed in plan.seeds]
    tell(0.74, "while training")
    results.trails["perceptron"] = [bench.follow("perceptron", {})]
    for loss in LOSSES:
        key = f"vrda-{loss}"
        best_params = results.choices[key].params
        paths = [{**best_params, "l1": l1} for l1 in plan.paths]
        results.trails[loss] = [bench.follow(key, params) for params in paths]
        results.bounds[loss] = [bench.bounded(key, params) for params in paths]
    _published(results, bench, tell)
    _cross(results, bench, tell)
    return results


def _known(problem: Problem, plan: Plan) -> Results:
    """What is known before anything is trained."""
    lists = problem.lists
    which = {
        "test": problem.which(Part())[2],
        "folds": np.concatenate([problem.which(Part(k, plan.folds))[2] for k in range(plan.folds)]),
    }
    first = brackets(lists, np.zeros(len(lists), np.int64))
    cheapest = brackets(lists, lists.rows.oracles)
    sizes = dict(zip(("train", "dev", "test"), map(len, problem.which(Part())), strict=True))
    return Results(
        plan,
        {**sizes, "folds": len(which["folds"])},
        {},
        {where: first[numbers] for where, numbers in which.items()},
        {where: cheapest[numbers] for where, numbers in which.items()},
    )


def _tune(results: Results, bench: _Bench, tell: Tell) -> None:
    plan = bench.plan
    grids = {spec.key: grid_points(spec.grid) for spec in plan.every}
    total, start = sum(map(len, grids.values())), 0
    for spec in plan.every:
        often = spec in plan.specs or spec in plan.voted
        seeds = plan.tuning_seeds if often else plan.extension_seeds
        trials: list[Trial] = []
        for n, params in enumerate(grids[spec.key], start):
            if (n - start) % _STRIDE == 0:
                tell(0.5 * n / total, f"choosing: {spec.title} {text_of(params)}".rstrip())
            trials += bench.tune(spec, params, seeds)
        start += len(grids[spec.key])
        results.trials[spec.key] = trials
    results.choices = choose(results.trials, plan)


def _test(results: Results, bench: _Bench, tell: Tell) -> None:
    for name in paced(tell, 0.5, 0.7, results.choices, "testing: {}".format, _STRIDE):
        trial = results.choices[name]
        results.test[name] = [bench.score(trial, Part(), seed) for seed in bench.plan.seeds]
    # One seed chose settings of the extensions; which learner is best, all seeds say.
    keys = [spec.key for spec in bench.plan.every]
    top = max(keys, key=lambda key: np.mean([s.dev for s in results.test[key]]))
    results.choices[TOP], results.test[TOP] = results.choices[top], results.test[top]


def _published(results: Results, bench: _Bench, tell: Tell) -> None:
    part, seeds = Part(published=True), bench.plan.seeds
    tell(0.78, "published families of features")
    for name in (*TABLE, TOP):
        results.published[name] = [bench.score(results.choices[name], part, seed) for seed in seeds]


def _cross(results: Results, bench: _Bench, tell: Tell) -> None:
    plan = bench.plan
    names = [name for name in _crossed(plan) if name in results.choices]
    for k in range(plan.folds):
        start, end = (0.8 + 0.15 * n / plan.folds for n in (k, k + 1))
        title = f"fold {k + 1} of {plan.folds}: {{}}".format
        for name in paced(tell, start, end, names, title, _STRIDE):
            scores = bench.score(results.choices[name], Part(k, plan.folds), plan.seeds[0])
            results.folds.setdefault(name, []).append(scores)


def _crossed(plan: Plan) -> Iterable[str]:
    """Choices that are tried on folds as well."""
    yield from (*TABLE, TOP)
    for key in (*(spec.key for spec in plan.voted), *truncated()):
        yield from (sparse(key), tenth(key))
    for loss in LOSSES:
        yield from (at(loss, l1) for l1 in plan.fold_sweep)
        for level in plan.fold_levels:
            yield from (at_most(f"{rule}-{loss}", level) for rule in ("vrda", *TG))


def _identity(spec: Spec, params: Mapping[str, float]) -> dict[str, Any]:
    return {"learner": build(spec, params, 1).signature(), "kept": list(KEPT)}
