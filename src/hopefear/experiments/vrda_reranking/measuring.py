"""Everything that is measured: settings, test scores, votes, trails, folds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from hopefear.experiments.common.kept_runs import KeptRuns
from hopefear.experiments.common.trails import Trail
from hopefear.experiments.vrda_reranking.choosing import (
    Trial,
    at,
    at_most,
    choose,
    sparse,
    tenth,
    text_of,
    trials_of,
)
from hopefear.experiments.vrda_reranking.plan import AVERAGED, KEPT, LOSSES, Plan, Spec
from hopefear.experiments.vrda_reranking.problems import Part, Problem, Split
from hopefear.experiments.vrda_reranking.runs import (
    Run,
    brackets,
    build,
    follow,
    run,
    vote,
)

TABLE = ("perceptron", *(f"{rule}-{loss}" for rule in ("tg", "vrda") for loss in LOSSES))
TOP = "best of all"
_TOLD = 4  # runs from one report of progress to the next


class Scored(NamedTuple):
    """One choice on test lists."""

    signature: str
    dev: float
    nnz: int
    counts: np.ndarray  # int64[lists, 3]


@dataclass
class Measured:
    """All numbers behind the page."""

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

    def __init__(self, problem: Problem, plan: Plan, kept: KeptRuns) -> None:
        self.problem, self.plan, self.kept = problem, plan, kept
        self._part: Part | None = None
        self._split: Split | None = None

    def split(self, part: Part) -> Split:
        """The lists of a part; only the latest is held in memory."""
        if part != self._part or self._split is None:
            self._split, self._part = None, None
            self._split, self._part = self.problem.cut(part), part
        return self._split

    def size(self, part: Part) -> int:
        """Features of a part."""
        return int(self._of(f"{part.label}-size", {}, lambda: self.split(part).size))

    def tune(self, spec: Spec, params: dict[str, float], seeds: Sequence[int]) -> list[Trial]:
        marks = self.plan.marks

        def make() -> Any:
            return [_plain(run(spec, params, self.split(Part()), s, marks)) for s in seeds]

        found = self._of(
            f"tune-{spec.key}-{text_of(params)}",
            {**_identity(spec, params), "marks": list(marks), "seeds": list(seeds)},
            make,
        )
        return trials_of(spec, params, [_run(content) for content in found], marks)

    def score(self, trial: Trial, part: Part, seed: int) -> Scored:
        spec = self.plan.spec(trial.spec)

        def make() -> Any:
            passes = (trial.passes,)
            return _plain(run(spec, trial.params, self.split(part), seed, passes, tested=True))

        found = _run(
            self._of(
                f"{part.label}-{spec.key}-{text_of(trial.params)}-{trial.passes}-{seed}",
                {**_identity(spec, trial.params), "passes": trial.passes, "seed": seed},
                make,
            )
        )
        k = trial.kept
        return Scored(
            found.signature, float(found.dev[k, -1]), int(found.nnz[k, -1]), found.counts[k]
        )

    def vote(self, trial: Trial, seed: int) -> np.ndarray:
        spec = self.plan.spec(trial.spec)

        def make() -> Any:
            return vote(spec, trial.params, self.split(Part()), seed, trial.passes).tolist()

        name = f"vote-{spec.key}-{text_of(trial.params)}-{trial.passes}-{seed}"
        identity = {**_identity(spec, trial.params), "passes": trial.passes, "seed": seed}
        return np.array(self._of(name, identity, make))

    def follow(self, key: str, params: dict[str, float]) -> Trail:
        spec, passes = self.plan.spec(key), self.plan.trail_passes

        def make() -> Any:
            split = self.split(Part())
            made = follow(spec, params, split.train, split.size, self.plan.seeds[0], passes)
            return _plain(made)

        identity = {**_identity(spec, params), "passes": passes, "seed": self.plan.seeds[0]}
        found = self._of(f"trail-{spec.key}-{text_of(params)}", identity, make)
        arrays = (np.array(found[name]) for name in ("samples", "nnz", "mistakes"))
        return Trail(found["strength"], *arrays)

    def _of(self, name: str, identity: Mapping[str, Any], make: Callable[[], Any]) -> Any:
        return self.kept.of(name, {**identity, "lists": self.problem.lists.digest}, make)


def measure(
    problem: Problem, plan: Plan, kept: KeptRuns, tell: Callable[[float, str], None]
) -> Measured:
    """Choose, test, vote, follow, cross-validate; ``tell`` gets the share done and what is next."""
    bench = _Bench(problem, plan, kept)
    made = _known(problem, plan)
    made.features = {part.label: bench.size(part) for part in (Part(), Part(published=True))}
    _tune(made, bench, tell)
    _test(made, bench, tell)
    tell(0.71, "votes")
    for loss in LOSSES:
        key = f"vrda-{loss}"
        trial = made.choices[key]._replace(kept=AVERAGED)
        made.votes[key] = [bench.vote(trial, seed) for seed in plan.seeds]
        made.voters[key] = [bench.score(trial, Part(), seed) for seed in plan.seeds]
    tell(0.74, "while training")
    made.trails["perceptron"] = [bench.follow("perceptron", {})]
    for loss in LOSSES:
        chosen = made.choices[f"vrda-{loss}"].params
        made.trails[loss] = [
            bench.follow(f"vrda-{loss}", {**chosen, "l1": l1}) for l1 in plan.paths
        ]
    _published(made, bench, tell)
    _cross(made, bench, tell)
    return made


def _known(problem: Problem, plan: Plan) -> Measured:
    """What is known before anything is trained."""
    lists = problem.lists
    tested = {
        "test": problem.which(Part())[2],
        "folds": np.concatenate([problem.which(Part(k, plan.folds))[2] for k in range(plan.folds)]),
    }
    first = brackets(lists, np.zeros(len(lists), np.int64))
    cheapest = brackets(lists, lists.rows.oracles)
    sizes = dict(zip(("train", "dev", "test"), map(len, problem.which(Part())), strict=True))
    return Measured(
        {**sizes, "folds": len(tested["folds"])},
        {},
        {where: first[which] for where, which in tested.items()},
        {where: cheapest[which] for where, which in tested.items()},
    )


def _tune(made: Measured, bench: _Bench, tell: Callable[[float, str], None]) -> None:
    plan = bench.plan
    total = sum(len(s.settings()) for s in plan.every)
    done = 0
    for spec in plan.every:
        often = spec in plan.specs or spec in plan.voted
        seeds = plan.tuning_seeds if often else plan.extension_seeds
        found: list[Trial] = []
        for n, params in enumerate(spec.settings()):
            if n % _TOLD == 0:
                tell(0.5 * done / total, f"choosing: {spec.title} {text_of(params)}".rstrip())
            found += bench.tune(spec, params, seeds)
            done += 1
        made.trials[spec.key] = found
    made.choices = choose(made.trials, plan)


def _test(made: Measured, bench: _Bench, tell: Callable[[float, str], None]) -> None:
    seeds, n = bench.plan.seeds, len(made.choices)
    for k, (name, trial) in enumerate(made.choices.items()):
        if k % _TOLD == 0:
            tell(0.5 + 0.2 * k / n, f"testing: {name}")
        made.test[name] = [bench.score(trial, Part(), seed) for seed in seeds]
    # One seed chose settings of the extensions; which learner is best, all seeds say.
    keys = [spec.key for spec in bench.plan.every]
    top = max(keys, key=lambda key: np.mean([s.dev for s in made.test[key]]))
    made.choices[TOP], made.test[TOP] = made.choices[top], made.test[top]


def _published(made: Measured, bench: _Bench, tell: Callable[[float, str], None]) -> None:
    part, seeds = Part(published=True), bench.plan.seeds
    tell(0.78, "published families of features")
    for name in (*TABLE, TOP):
        made.published[name] = [bench.score(made.choices[name], part, seed) for seed in seeds]


def _cross(made: Measured, bench: _Bench, tell: Callable[[float, str], None]) -> None:
    plan = bench.plan
    names = [name for name in _crossed(plan) if name in made.choices]
    for k in range(plan.folds):
        for n, name in enumerate(names):
            share = (k + n / len(names)) / plan.folds
            if n % _TOLD == 0:
                tell(0.8 + 0.15 * share, f"fold {k + 1} of {plan.folds}: {name}")
            found = bench.score(made.choices[name], Part(k, plan.folds), plan.seeds[0])
            made.folds.setdefault(name, []).append(found)


def _crossed(plan: Plan) -> Iterable[str]:
    """Choices that are tried on folds as well."""
    yield from (*TABLE, TOP)
    for key in (*(spec.key for spec in plan.voted), *(f"tg-{loss}" for loss in LOSSES)):
        yield from (sparse(key), tenth(key))
    for loss in LOSSES:
        yield from (at(loss, l1) for l1 in plan.fold_sweep)
        for level in plan.fold_levels:
            yield from (at_most(f"{rule}-{loss}", level) for rule in ("vrda", "tg"))


def _identity(spec: Spec, params: Mapping[str, float]) -> dict[str, Any]:
    return {"learner": build(spec, params, 1).signature(), "kept": list(KEPT)}


def _plain(made: Any) -> dict[str, Any]:
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in asdict(made).items()}


def _run(content: Mapping[str, Any]) -> Run:
    values: dict[str, Any] = {
        k: np.array(v) if isinstance(v, list) else v for k, v in content.items()
    }
    return Run(**values)
