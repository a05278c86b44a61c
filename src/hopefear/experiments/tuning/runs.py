"""Runs: a tuner with one seed, what it was worth after each round, what it chose; kept on disk."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.errors import HopefearError
from hopefear.experiments.claims import Difference, Tests
from hopefear.experiments.frame import Call, KeptRuns, Tell
from hopefear.experiments.translations import METRIC, compare_bleu
from hopefear.experiments.tuning.plan import (
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
from hopefear.recipes.scales import scale_of
from hopefear.translation.recipes import TUNE_RECIPES
from hopefear.translation.scoring import best, choice
from hopefear.translation.task import start_weights
from hopefear.translation.tuners.corpus import oracle_choice

_FEW = 8


@dataclass(frozen=True)
class Run:
    """What one seed came to.

    Parameters
    ----------
    rounds : dict of str to list of float
        BLEU of the tuning lists (``train``), of held-out ones (``dev``) and of each test set after
        each round.
    kept : int
        The round the weights are from, from 1; 0 for the weights at the start.
    scores : dict of str to float
        BLEU of the weights that were kept, by set.
    seconds, each : float
        CPU seconds of tuning, looks at the tests taken off; least seconds of a round.
    nnz : int
        Weights that are not 0.
    choices : dict of str to list of int
        Numbers of the candidates chosen from each test set.
    refused : str
        Why the tuner would not do it, where it would not.
    """

    signature: str = ""
    rounds: dict[str, list[float]] = field(default_factory=dict)
    kept: int = 0
    scores: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    each: float = 0.0
    nnz: int = 0
    choices: dict[str, list[int]] = field(default_factory=dict)
    refused: str = ""


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
    watched = replace(problem, tests=problem.tests if tested else {}, spent=[])
    tuner = built(entry, params, problem)
    warm(entry, params, problem)
    name = str(tuner.signature(seed=seed))
    began = time.process_time()
    try:
        tuned = tuner.tune(watched, seed=seed)
    except HopefearError as error:
        return Run(name, refused=str(error))
    seconds = time.process_time() - began - sum(watched.spent)
    main, history = METRIC.main, tuned.history
    rounds: dict[str, list[float]] = {
        where: [float(event[where][main]) for event in history]
        for where in ("train", "dev")
        if history and where in history[0]
    }
    rounds |= {test: [event["tests"][test] for event in history] for test in watched.tests}
    last = watched.report(tuned.weights)
    scores: dict[str, float] = {
        where: float(last[where][main]) for where in ("train", "dev") if where in last
    }
    kept = tuned.best_epoch if tuned.best_epoch is not None else len(history)
    return Run(
        name,
        rounds,
        int(kept),
        {**scores, **last["tests"]},
        seconds,
        min((float(event["seconds"]) for event in history), default=0.0),
        int(np.count_nonzero(tuned.weights)),
        {
            test: watched.choice(tuned.weights, lists).tolist()
            for test, lists in watched.tests.items()
        },
    )


def val_score(run: Run) -> float:
    """BLEU on val, whether tuning was on it or beside it."""
    return run.scores.get("dev", run.scores["train"])


def best_so_far(run: Run) -> dict[str, list[float]]:
    """Rounds as a user who stops there would have them: of the best on val until then.

    >>> best_so_far(Run(rounds={"train": [2.0, 1.0, 3.0], "test_2016": [5.0, 6.0, 4.0]}))
    {'train': [2.0, 2.0, 3.0], 'test_2016': [5.0, 5.0, 4.0]}
    """
    judged = run.rounds.get("dev", run.rounds["train"])
    best = [int(np.argmax(judged[: k + 1])) for k in range(len(judged))]
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
    """Everything the page shows.

    Parameters
    ----------
    lists : dict
        Lists and candidates of each set.
    features : dict
        Features of each part.
    fixed : dict of str to dict
        BLEU of the start, of the decoder's first candidates and of the oracle, by set.
    counts : dict of str to array
        Counts of the metric of all candidates of each test set.
    chosen : dict of str to dict
        Numbers of the candidates that the start, the decoder and the oracle choose, by test set.
    results : dict
        By part and key of the entry.
    """

    plan: Plan
    lists: dict[str, tuple[int, int]]
    counts: dict[str, np.ndarray]
    features: dict[str, int] = field(default_factory=dict)
    fixed: dict[str, dict[str, float]] = field(default_factory=dict)
    chosen: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    results: dict[str, dict[str, Result]] = field(default_factory=dict)

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

    def best(self, part: str) -> Result:
        """The tuner with the highest mean on val."""
        tuners = [r for r in self.results[part].values() if not r.refused]
        return max(tuners, key=lambda result: float(result.scores(VAL).mean()))


def measure(call: Call) -> Results:
    """Tune with everyone."""
    if call.quick:
        call.note = "This version has a few made-up lists only: too few to conclude from."
    sets = find_sets(call.data, call.quick, lambda text: call.progress(f"  0%  {text}"))
    return measure_sets(sets, call.plan, call.runs, call.teller(share=0.95))


def measure_sets(sets: Sets, plan: Plan, kept: KeptRuns, tell: Tell) -> Results:
    """Tune on these lists; ``tell`` gets the share done and what is next."""
    results = known(sets, plan)
    total = sum(len(part.entries) for part in plan.parts)
    done = 0
    for part in plan.parts:
        tell(done / total, f"features of: {part.title}")
        problem = problem_of(sets, part)
        results.features[part.key] = len(problem.start)
        tuners = results.results[part.key] = {}
        for entry in part.entries:
            tell(done / total, f"{part.title}: {entry.title}")
            tuners[entry.key] = _result(part, entry, problem, plan, kept)
            done += 1
    return results


def known(sets: Sets, plan: Plan) -> Results:
    """What is known before anything is tuned."""
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


def _result(part: Part, entry: Entry, problem: Watched, plan: Plan, kept: KeptRuns) -> Result:
    """Choose a setting by one seed on val, then run all seeds."""

    def one(params: Mapping[str, Any], seed: int, tested: bool) -> Run:
        identity = {
            "signature": signature(entry, params, problem, seed),
            "lists": problem.data.digest,
            "others": [d.digest for d in (problem.dev, *problem.tests.values()) if d is not None],
            "tested": tested,
        }
        shown = "-".join(f"{k}={v}" for k, v in params.items())
        name = f"{part.key}-{entry.key}-{shown}-{seed}" + ("" if tested else "-trial")
        content = kept.of(name, identity, lambda: asdict(run(entry, params, problem, seed, tested)))
        return Run(**content)

    settings = entry.settings()
    trials: list[Trial] = []
    if len(settings) > 1:
        for params in settings:
            trial = one(params, plan.seeds[0], False)
            if not trial.refused:
                trials.append(Trial(params, val_score(trial)))
    chosen = max(trials, key=lambda trial: trial.val).params if trials else settings[0]
    seeds = plan.seeds[:1] if entry.once else plan.seeds
    done: list[Run] = []
    for seed in seeds:
        done.append(one(chosen, seed, True))
        if done[-1].refused:
            break
    return Result(part.key, entry, chosen, tuple(trials), tuple(done))
