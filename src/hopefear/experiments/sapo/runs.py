"""Runs: pass after pass, last weights and average scored after each; and all runs of one task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.learner import Learner
from hopefear.data.sequences import SequenceDataset
from hopefear.experiments.claims import Difference, Tests, compare
from hopefear.experiments.frame import Call, KeptRuns, Tell, at_edges, learn
from hopefear.experiments.sapo.plan import (
    AVERAGED,
    BEAM,
    CRF,
    KEPT,
    SPECS,
    Entry,
    Plan,
    Problem,
    Spec,
    find_problems,
)
from hopefear.metrics import Tagging
from hopefear.metrics.tagging import READ_BY
from hopefear.recipes import Scale
from hopefear.structures.chain.chain import Chain
from hopefear.structures.chain.searches import search_named
from hopefear.tasks import recipe
from hopefear.tasks.tag.model import chain_of
from hopefear.training.decoding import Decoder
from hopefear.training.online import OnlineTrainer


@dataclass(frozen=True)
class Run:
    """A learner pass after pass; the first axis is the last weights and the average."""

    signature: str
    scores: np.ndarray  # float64[2, passes], percent
    magnitude: np.ndarray  # float64[2, passes]: mean size of all weights
    seconds: np.ndarray  # float64[passes]: CPU, to learn, with the average
    mistakes: np.ndarray  # int64[passes]: so far
    counts: np.ndarray  # int64[2, sentences, 7]: of test sentences, after the last pass


@dataclass(frozen=True)
class Setting:
    """A learner with all that a run of it depends on, but for data and seed."""

    spec: Spec
    params: Mapping[str, Any]
    passes: int
    search: str = "astar"

    def learner(self, n: int, readout: str = KEPT[AVERAGED]) -> Learner:
        """The learner for so many sentences a pass."""
        params = {**self.spec.fixed, **self.params, "readout": readout}
        learner: Learner = recipe(self.spec.recipe, "tag").build(Scale(n=n), **params)
        return learner

    def structure(self, data: SequenceDataset) -> Chain:
        """The chain; as in the paper, any label may follow any other."""
        return chain_of(data.features, data.labels, 1, search_named(self.search, BEAM))

    def trainer(self, data: SequenceDataset, readout: str = KEPT[AVERAGED]) -> OnlineTrainer:
        """At the start, and compiled on a sentence or two, so that no pass is timed with that."""
        few = data.take(np.arange(min(2, len(data))))
        learner = self.learner(len(data), readout)
        for _ in learn(OnlineTrainer(self.structure(few), learner), few, 1):
            pass
        return OnlineTrainer(self.structure(data), learner)

    def signature(self, n: int, seed: int) -> str:
        search = f"beam({BEAM})" if self.search == "beam" else self.search
        return self.learner(n).signature(search=search, epochs=self.passes, seed=seed)


def run(
    setting: Setting,
    train: SequenceDataset,
    test: SequenceDataset,
    metric: str,
    seed: int,
    every: bool = True,
) -> Run:
    """Train, and score after every pass, or after the last one only.

    >>> from hopefear.experiments.sapo.plan import QUICK, SPECS, Reader
    >>> problem = Reader(QUICK.tasks[0], None, quick=True).read()
    >>> perceptron = Setting(SPECS["perceptron"], {}, 2)
    >>> passes = run(perceptron, problem.rest, problem.held_out, "f1", seed=1)
    >>> passes.scores.shape, passes.counts.shape, bool(passes.scores[1, 1] > 80.0)
    ((2, 2), (2, 30, 7), True)
    """
    trainer, tagging, rows = setting.trainer(train), Tagging(), test.rows
    weights = (train.features.size + len(train.labels)) * len(train.labels)
    scores, sizes, seconds, mistakes = [], [], [], []
    for cost in learn(trainer, train, setting.passes, seed):
        seconds.append(cost)
        mistakes.append(trainer.mistakes)
        if not every and len(seconds) < setting.passes:
            continue
        both = (trainer.weights(), trainer.average().astype(np.float32))
        sizes.append([float(np.abs(w).sum(dtype=np.float64)) / weights for w in both])
        tags = (Decoder(trainer.structure, w).best(rows) for w in both)
        counts = [tagging.rows(rows.labels, t, rows.starts, test.labels) for t in tags]
        scores.append([float(tagging.scores(c.sum(axis=0))[metric]) for c in counts])
    return Run(
        setting.signature(len(train), seed),
        np.array(scores).T,
        np.array(sizes).T,
        np.array(seconds),
        np.array(mistakes),
        np.stack(counts),
    )


def seconds_a_pass(
    setting: Setting, readout: str, train: SequenceDataset, repeats: int
) -> np.ndarray:
    """CPU seconds of every pass, without scoring; the least of several runs."""
    seconds = [
        list(learn(setting.trainer(train, readout), train, setting.passes)) for _ in range(repeats)
    ]
    return np.array(seconds).min(axis=0)


def _seconds(setting: Setting, readout: str, train: SequenceDataset, repeats: int) -> Any:
    return seconds_a_pass(setting, readout, train, repeats).tolist()


def compare_counts(
    first: np.ndarray, second: np.ndarray, metric: str, replicates: int
) -> Difference:
    """Both tests over sentences, of counts as ``Tagging.rows`` gives, by ``f1`` or ``accuracy``."""
    # Equal counts are drawn together, so counts the score does not read are made equal.
    mask = np.isin(np.arange(first.shape[1]), READ_BY[metric])
    return compare(Tagging(), metric, first * mask, second * mask, replicates)


class Trial(NamedTuple):
    """A rate and a strength for the CRF, and its last weights on the held-out sentences."""

    rate: float
    lam: float
    score: float


class _Step(NamedTuple):
    cost: float
    title: str
    do: Callable[[], None]


@dataclass
class Results:
    """The numbers of one task."""

    problem: Problem
    plan: Plan
    trials: list[Trial] = field(default_factory=list)
    runs: dict[str, list[Run]] = field(default_factory=dict)  # by learner, one for every seed
    by_n: dict[int, list[Run]] = field(default_factory=dict)
    by_search: dict[str, list[Run]] = field(default_factory=dict)
    times: dict[str, np.ndarray] = field(default_factory=dict)  # "sapo last": CPU s of passes

    def __post_init__(self) -> None:
        self.against = Tests(self._against, ("of", "against"))

    @property
    def name(self) -> str:
        return self.problem.task.name

    @property
    def metric(self) -> str:
        return self.problem.task.metric

    @property
    def chosen(self) -> Trial:
        """The best trial; the first of equals."""
        return max(self.trials, key=lambda trial: trial.score)

    @property
    def edges(self) -> list[str]:
        """Parameters whose chosen value is an end of their grid."""
        grid = {k: sorted({getattr(t, k) for t in self.trials}) for k in ("rate", "lam")}
        return at_edges(self.chosen._asdict(), grid)

    def curve(self, entry: Entry) -> np.ndarray:
        """Test scores: float64[seeds, passes]."""
        return np.array([r.scores[entry.kept] for r in self.runs[entry.spec]])

    def magnitude(self, entry: Entry) -> np.ndarray:
        """Mean size of the weights after each pass, mean over seeds."""
        return np.asarray(np.mean([r.magnitude[entry.kept] for r in self.runs[entry.spec]], 0))

    def seconds(self, entry: Entry) -> float:
        """CPU seconds a pass; of the average, where nothing else was timed."""
        other = f"{entry.spec} averaged"
        return float(self.times[entry.timing if entry.timing in self.times else other].mean())

    def compare(self, first: list[Run], second: list[Run], kept: tuple[int, int]) -> Difference:
        """Two sides at the last pass, counts summed over seeds."""
        a, b = (
            np.sum([r.counts[k] for r in side], axis=0)
            for side, k in zip((first, second), kept, strict=True)
        )
        return compare_counts(a, b, self.metric, self.plan.replicates)

    def _against(self, first: Entry, second: Entry) -> Difference:
        runs = self.runs
        return self.compare(runs[first.spec], runs[second.spec], (first.kept, second.kept))


def measure(call: Call) -> list[Results]:
    """All tasks whose data is there."""
    call.progress("reading the data; then compiling, if this was not done before")
    readers, call.note = find_problems(call.data, call.plan, call.quick)
    whole, start = sum(reader.task.cost for reader in readers), 0.0
    tasks = []
    for reader in readers:
        share = reader.task.cost / whole
        tell = call.teller(start, share)
        tasks.append(measure_task(reader.read(), call.plan, call.runs, tell))
        start += share
    return tasks


def measure_task(problem: Problem, plan: Plan, store: KeptRuns, tell: Tell) -> Results:
    """Choose, train, vary n and the search, and time; ``tell`` gets the share done and the next."""
    bench = _Bench(Results(problem, plan), store)
    steps = bench.steps()
    whole, start = sum(step.cost for step in steps), 0.0
    for step in steps:
        tell(start / whole, f"{bench.results.name}: {step.title}")
        step.do()
        start += step.cost
    return bench.results


class _Bench:
    """Runs learners on one task, or takes up what they did."""

    def __init__(self, results: Results, store: KeptRuns) -> None:
        self.results, self.problem, self.plan = results, results.problem, results.plan
        self.store, self.task = store, results.problem.task

    def steps(self) -> list[_Step]:
        """What is done, in order, and what it costs in passes of a perceptron."""
        task, plan, steps = self.task, self.plan, []
        for rate in plan.rates:
            for lam in plan.lams:
                title = f"CRF, rate {rate:g}, λ {lam:g}, on held-out sentences"
                do = partial(self._try, rate, lam)
                steps.append(_Step(task.tuning_passes * SPECS["crf"].cost, title, do))
        for seed in plan.seeds:
            for spec in SPECS.values():
                do = partial(self._train, spec, seed)
                steps.append(_Step(task.passes * spec.cost, f"{spec.key}, seed {seed}", do))
        if task.lists:
            for n in plan.ns:
                for seed in plan.seeds:
                    do = partial(self._vary, seed, n=n)
                    steps.append(_Step(task.passes * (1.0 + n / 5), f"SAPO, n = {n}", do))
            for search in plan.searches:
                do = partial(self._vary, plan.seeds[0], search=search)
                steps.append(_Step(task.passes * 3.0, f"SAPO by {search}", do))
        cost = 12.0 * task.timed_passes * plan.repeats * len(plan.timed)
        return [*steps, _Step(cost, "timing", self._time)]

    def _try(self, rate: float, lam: float) -> None:
        setting = Setting(SPECS["crf"], {"rate": rate, "lam": lam}, self.task.tuning_passes)
        name = f"tune-crf-{rate:g}-{lam:g}"
        trial = self._run(name, setting, 1, held_out=True, every=False)
        self.results.trials.append(Trial(rate, lam, float(trial.scores[CRF.kept, -1])))

    def _train(self, spec: Spec, seed: int) -> None:
        setting = Setting(spec, self._params(spec), self.task.passes)
        runs = self.results.runs.setdefault(spec.key, [])
        runs.append(self._run(f"{spec.key}-{seed}", setting, seed))

    def _vary(self, seed: int, n: int | None = None, search: str = "astar") -> None:
        """SAPO with another n or another search; the run compared where nothing differs."""
        results, plan, spec = self.results, self.plan, SPECS["sapo"]
        if search == "astar" and n in (None, plan.n):
            variant = results.runs["sapo"][plan.seeds.index(seed)]
        else:
            params = {**self._params(spec), "n": n or plan.n}
            setting = Setting(spec, params, self.task.passes, search)
            variant = self._run(f"sapo-n{params['n']}-{search}-{seed}", setting, seed, every=False)
        if n is None:
            results.by_search.setdefault(search, []).append(variant)
        else:
            results.by_n.setdefault(n, []).append(variant)

    def _time(self) -> None:
        train, repeats = self.problem.train, self.plan.repeats
        for readout in self.plan.timed:
            for key, spec in SPECS.items():
                setting = Setting(spec, self._params(spec), self.task.timed_passes)
                signature = setting.signature(len(train), 1)
                seconds = self.store.of(
                    f"{self.results.name}-time-{key} {readout}",
                    {"signature": signature, "train": train.digest, "repeats": repeats},
                    partial(_seconds, setting, readout, train, repeats),
                )
                self.results.times[f"{key} {readout}"] = np.array(seconds)

    def _params(self, spec: Spec) -> dict[str, Any]:
        """Of the regularised: what was chosen for the CRF. Nothing was chosen for others."""
        if not spec.regularised:
            return {}
        return {"rate": self.results.chosen.rate, "lam": self.results.chosen.lam}

    def _run(
        self, name: str, setting: Setting, seed: int, held_out: bool = False, every: bool = True
    ) -> Run:
        problem, metric = self.problem, self.results.metric
        train, test = problem.train, problem.test
        if held_out:
            train, test = problem.rest, problem.held_out
        identity = {
            "signature": setting.signature(len(train), seed),
            "train": train.digest,
            "test": test.digest,
            "metric": metric,
        }
        make = partial(run, setting, train, test, metric, seed, every=every)
        whole: Run = self.store.record(Run, f"{self.results.name}-{name}", identity, make)
        return whole
