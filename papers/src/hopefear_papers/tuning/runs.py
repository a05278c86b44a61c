"""Runs: a tuner with one seed, what it was worth after each round, what it chose; kept on disk."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.errors import HopefearError
from hopefear.recipes.scales import scale_of
from hopefear.translation.recipes import TUNE_RECIPES
from hopefear.translation.scoring import best, choice
from hopefear.translation.task import start_weights
from hopefear.translation.tuners.corpus import oracle_choice
from hopefear.translation.tuners.problem import Event
from hopefear_papers.claims import Difference, Tests
from hopefear_papers.frame import Call, KeptRuns, Tell
from hopefear_papers.translations import METRIC, compare_bleu
from hopefear_papers.tuning.plan import (
    TESTS,
    TIMES,
    VAL,
    Entry,
    Part,
    Plan,
    Sets,
    Watched,
    find_sets,
    problem_of,
)

_FEW = 8


@dataclass(frozen=True)
class Run:
    """What one seed came to; sets are ``train`` (tuned on), ``dev`` (held out) and tests."""

    signature: str = ""
    rounds: dict[str, list[float]] = field(default_factory=dict)  # BLEU after each, by set
    kept: int = 0  # the round the weights are from, from 1; 0 for the weights at the start
    scores: dict[str, float] = field(default_factory=dict)  # BLEU of those weights, by set
    seconds: float = 0.0  # CPU of tuning, looks at the tests taken off
    each: float = 0.0  # least seconds of a round
    nnz: int = 0
    choices: dict[str, list[int]] = field(default_factory=dict)  # candidates of each test set
    refused: str = ""  # why the tuner would not do it, where it would not


def signature(entry: Entry, params: Mapping[str, Any], problem: Watched, seed: int) -> str:
    """Exactly what a run would be."""
    return str(built(entry, params, problem).signature(seed=seed))


def built(entry: Entry, params: Mapping[str, Any], problem: Watched) -> Any:
    """The tuner; a parameter such as ``3×`` is so many times what the data's scale suggests."""
    recipe, scale = TUNE_RECIPES[entry.recipe], scale_of(problem.data)
    values = {
        key: float(value[:-1]) * recipe.auto(scale)
        if isinstance(value, str) and value.endswith(TIMES)
        else value
        for key, value in params.items()
    }
    return recipe.build(scale, **values)


def warm(entry: Entry, params: Mapping[str, Any], problem: Watched) -> None:
    """Compile what a run needs, on a few lists, so that no run pays for it."""
    few = problem.data.take(np.arange(min(_FEW, len(problem.data))))
    dev = None if problem.dev is None else problem.dev.take(np.arange(min(_FEW, len(problem.dev))))
    with contextlib.suppress(HopefearError):
        built(entry, params, problem).tune(replace(problem, data=few, dev=dev, tests={}, spent=[]))


def run(
    entry: Entry, params: Mapping[str, Any], problem: Watched, seed: int, tested: bool = True
) -> Run:
    """Tune; without ``tested`` nobody looks at test lists."""
    view = replace(problem, tests=problem.tests if tested else {}, spent=[])
    tuner = built(entry, params, problem)
    warm(entry, params, problem)
    name = str(tuner.signature(seed=seed))
    start = time.process_time()
    try:
        outcome = tuner.tune(view, seed=seed)
    except HopefearError as error:
        return Run(name, refused=str(error))
    seconds = time.process_time() - start - sum(view.spent)
    weights, history = outcome.weights, outcome.history
    every = [_scores(event) for event in history]
    return Run(
        name,
        {where: [scores[where] for scores in every] for where in (every[0] if every else ())},
        len(history) if outcome.best_epoch is None else int(outcome.best_epoch),
        _scores(view.report(weights)),
        seconds,
        min((float(event["seconds"]) for event in history), default=0.0),
        int(np.count_nonzero(weights)),
        {test: view.choice(weights, lists).tolist() for test, lists in view.tests.items()},
    )


def _scores(event: Event) -> dict[str, float]:
    """BLEU by set, of what was reported of a round."""
    scores = {
        where: float(event[where][METRIC.main]) for where in ("train", "dev") if where in event
    }
    return {**scores, **event["tests"]}


def val_score(run: Run) -> float:
    """BLEU on val, whether tuning was on it or beside it."""
    return run.scores.get("dev", run.scores["train"])


def best_so_far(run: Run) -> dict[str, list[float]]:
    """Rounds as a user who stops there would have them: of the best on val until then.

    >>> best_so_far(Run(rounds={"train": [2.0, 1.0, 3.0], "test_2016": [5.0, 6.0, 4.0]}))
    {'train': [2.0, 2.0, 3.0], 'test_2016': [5.0, 5.0, 4.0]}
    """
    scores = run.rounds.get("dev", run.rounds["train"])
    best = [int(np.argmax(scores[: k + 1])) for k in range(len(scores))]
    return {where: [values[k] for k in best] for where, values in run.rounds.items()}


Which = tuple[str, str]  # part and key


class Trial(NamedTuple):
    """A setting of the grid and its BLEU on val."""

    params: dict[str, Any]
    val: float


@dataclass(frozen=True)
class Result:
    """A tuner in one part: the setting that was chosen, and a run for each seed."""

    part: str
    entry: Entry
    params: Mapping[str, Any]
    trials: tuple[Trial, ...]
    runs: tuple[Run, ...]

    @property
    def refused(self) -> str:
        return self.runs[0].refused

    def scores(self, where: str) -> np.ndarray:
        """BLEU of each seed; ``val`` is known in every part."""
        return np.array([val_score(r) if where == VAL else r.scores[where] for r in self.runs])

    @property
    def seconds(self) -> float:
        """CPU seconds of a run, mean over seeds."""
        return float(np.mean([run.seconds for run in self.runs]))


@dataclass
class Results:
    """Everything the page shows; ``fixed`` are the start, the decoder's first and the oracle."""

    plan: Plan
    lists: dict[str, tuple[int, int]]  # lists and candidates of each set
    counts: dict[str, np.ndarray]  # of the metric, of all candidates of each test set
    features: dict[str, int] = field(default_factory=dict)  # of each part
    fixed: dict[str, dict[str, float]] = field(default_factory=dict)  # BLEU by set
    chosen: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)  # their candidates
    results: dict[str, dict[str, Result]] = field(default_factory=dict)  # by part and key

    def __post_init__(self) -> None:
        self.against = Tests(self._compare, ("of", "against"))

    def _compare(self, first: Which, second: Which) -> Difference:
        """Two tuners on both test sets, seeds pooled."""
        return compare_bleu(self.tested(*first), self.tested(*second), self.plan.replicates)

    def of(self, part: str, key: str) -> Result:
        return self.results[part][key]

    def has(self, *tuners: Which) -> bool:
        """Whether there are such tuners, and they did not refuse; ``fixed`` is always there."""
        return all(
            part == "fixed"
            or (key in self.results.get(part, {}) and not self.of(part, key).refused)
            for part, key in tuners
        )

    def tested(self, part: str, key: str) -> list[np.ndarray]:
        """Counts of the choices of each seed, both test sets in one; ``fixed`` has the others."""
        if part == "fixed":
            return [np.concatenate([self.counts[t][self.chosen[key][t]] for t in TESTS])]
        return [
            np.concatenate([self.counts[t][np.array(run.choices[t])] for t in TESTS])
            for run in self.of(part, key).runs
        ]


def measure(call: Call) -> Results:
    """Tune with everyone."""
    if call.quick:
        call.note = "This version has a few made-up lists only: too few to conclude from."
    sets = find_sets(call.data, call.quick, lambda text: call.progress(f"  0%  {text}"))
    return measure_sets(sets, call.plan, call.runs, call.teller(share=0.95))


def measure_sets(sets: Sets, plan: Plan, store: KeptRuns, tell: Tell) -> Results:
    """Tune on these lists; ``tell`` gets the share done and what is next."""
    results = known(sets, plan)
    total, start = sum(len(part.entries) for part in plan.parts), 0
    for part in plan.parts:
        tell(start / total, f"features of: {part.title}")
        problem = problem_of(sets, part)
        results.features[part.key] = len(problem.start)
        tuners = results.results[part.key] = {}
        for n, entry in enumerate(part.entries, start):
            tell(n / total, f"{part.title}: {entry.title}")
            tuners[entry.key] = _result(part, entry, problem, plan, store)
        start += len(part.entries)
    return results


def known(sets: Sets, plan: Plan) -> Results:
    """What is known before anything is outcome."""
    results = Results(
        plan,
        {name: (len(lists), lists.n_candidates) for name, lists in sets.items()},
        {test: frozen(np.asarray(sets[test].counts)) for test in TESTS},
    )
    start = start_weights(sets[VAL], "moses")
    for name in (VAL, *TESTS):
        lists = sets[name]
        assert lists.counts is not None
        ways = {
            "start": choice(lists, start),
            "decoder": best(lists.scores, lists),
            "oracle": oracle_choice(lists, METRIC),
        }
        for way, positions in ways.items():
            numbers = lists.starts[:-1] + positions
            sums = lists.counts[numbers].sum(axis=0, dtype=np.float64)
            results.fixed.setdefault(way, {})[name] = float(METRIC.scores(sums)[METRIC.main])
            results.chosen.setdefault(way, {})[name] = numbers
    return results


def _result(part: Part, entry: Entry, problem: Watched, plan: Plan, store: KeptRuns) -> Result:
    """Choose a setting by one seed on val, then run all seeds."""

    def one(params: Mapping[str, Any], seed: int, tested: bool) -> Run:
        identity = {
            "signature": signature(entry, params, problem, seed),
            "lists": problem.data.digest,
            "others": [d.digest for d in (problem.dev, *problem.tests.values()) if d is not None],
            "tested": tested,
        }
        values = "-".join(f"{k}={v}" for k, v in params.items())
        name = f"{part.key}-{entry.key}-{values}-{seed}" + ("" if tested else "-trial")
        return store.record(Run, name, identity, lambda: run(entry, params, problem, seed, tested))

    settings = entry.settings()
    trials: list[Trial] = []
    if len(settings) > 1:
        for params in settings:
            trial = one(params, plan.seeds[0], False)
            if not trial.refused:
                trials.append(Trial(params, val_score(trial)))
    best_params = max(trials, key=lambda trial: trial.val).params if trials else settings[0]
    runs: list[Run] = []
    for seed in plan.seeds[:1] if entry.once else plan.seeds:
        runs.append(one(best_params, seed, True))
        if runs[-1].refused:
            break
    return Result(part.key, entry, best_params, tuple(trials), tuple(runs))
