"""Runs: pass after pass, last weights and average scored after each; and all runs of one task."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.learner import Learner
from hopefear.data.sequences import SequenceDataset
from hopefear.experiments.frame import KeptRuns
from hopefear.experiments.sapo.plan import (
    AVERAGED,
    BEAM,
    CRF,
    KEPT,
    LAST,
    SPECS,
    Entry,
    Plan,
    Problem,
    Spec,
)
from hopefear.metrics import Tagging
from hopefear.recipes import Scale
from hopefear.structures.chain.chain import Chain
from hopefear.structures.chain.searches import search_named
from hopefear.tasks import recipe
from hopefear.tasks.tag.model import chain_of
from hopefear.training.decoding import Decoder
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes


@dataclass(frozen=True)
class Run:
    """A learner pass after pass; the first axis is the last weights and the average."""

    signature: str
    scores: np.ndarray  # float64[2, passes], percent
    magnitude: np.ndarray  # float64[2, passes]: mean size of all weights
    seconds: np.ndarray  # float64[passes]: CPU, to learn, with the average
    mistakes: np.ndarray  # int64[passes]: so far
    counts: np.ndarray  # int64[2, sentences, 7]: of test sentences, after the last pass

    def plain(self) -> dict[str, Any]:
        """What JSON can hold."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in values.items()}

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Run:
        """The run that `plain` was called on."""
        values: dict[str, Any] = {
            k: np.array(v) if isinstance(v, list) else v for k, v in content.items()
        }
        return cls(**values)


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
        made: Learner = recipe(self.spec.recipe, "tag").build(Scale(n=n), **params)
        return made

    def structure(self, data: SequenceDataset) -> Chain:
        """The chain; as in the paper, any label may follow any other."""
        return chain_of(data.features, data.labels, 1, search_named(self.search, BEAM))

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

    >>> from hopefear.experiments.sapo.plan import QUICK, SPECS
    >>> from hopefear.experiments.sapo.plan import Reader
    >>> made = Reader(QUICK.tasks[0], None, quick=True).read()
    >>> done = run(Setting(SPECS["perceptron"], {}, 2), made.rest, made.held_out, "f1", seed=1)
    >>> done.scores.shape, done.counts.shape, bool(done.scores[1, 1] > 80.0)
    ((2, 2), (2, 30, 7), True)
    """
    structure = setting.structure(train)
    trainer = OnlineTrainer(structure, setting.learner(len(train)))
    _compile(setting, train)
    passes, metrics = Passes(train, seed), Tagging()  # type: ignore[arg-type]
    weights = (train.features.size + len(train.labels)) * len(train.labels)
    scores, sizes, seconds, mistakes = [], [], [], []
    for epoch in range(setting.passes):
        seconds.append(_learn(trainer, passes, epoch))
        mistakes.append(trainer.mistakes)
        if not every and epoch < setting.passes - 1:
            continue
        both = {LAST: trainer.weights(), AVERAGED: trainer.average().astype(np.float32)}
        sizes.append([float(np.abs(both[k]).sum(dtype=np.float64)) / weights for k in both])
        counts = [_counts(metrics, structure, both[k], test) for k in both]
        scores.append([float(metrics.value(c.sum(axis=0))[metric]) for c in counts])
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
    _compile(setting, train, readout)
    found = []
    for _ in range(repeats):
        trainer = OnlineTrainer(setting.structure(train), setting.learner(len(train), readout))
        passes = Passes(train, 1)  # type: ignore[arg-type]
        found.append([_learn(trainer, passes, epoch) for epoch in range(setting.passes)])
    return np.array(found).min(axis=0)


def _learn(trainer: OnlineTrainer, passes: Passes, epoch: int) -> float:
    pieces = list(passes.pieces(epoch))
    start = time.process_time()
    for rows, order in pieces:
        trainer.learn(rows, order)
    return time.process_time() - start


def _compile(setting: Setting, train: SequenceDataset, readout: str = KEPT[AVERAGED]) -> None:
    """Learn from a sentence or two, so that no pass is timed with its compilation."""
    few = train.take(np.arange(min(2, len(train))))
    trainer = OnlineTrainer(setting.structure(few), setting.learner(len(train), readout))
    _learn(trainer, Passes(few, 1), 0)  # type: ignore[arg-type]


def _counts(
    metric: Tagging, structure: Chain, weights: np.ndarray, test: SequenceDataset
) -> np.ndarray:
    rows = test.rows
    tags = Decoder(structure, weights).tags(rows)
    return metric.rows(rows.labels, tags, rows.starts, test.labels)


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
class Measured:
    """The numbers of one task."""

    problem: Problem
    trials: list[Trial] = field(default_factory=list)
    runs: dict[str, list[Run]] = field(default_factory=dict)  # by learner, one for every seed
    by_n: dict[int, list[Run]] = field(default_factory=dict)
    by_search: dict[str, list[Run]] = field(default_factory=dict)
    times: dict[str, np.ndarray] = field(default_factory=dict)  # "sapo last": CPU s of passes

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
        found = []
        for name in ("rate", "lam"):
            values = sorted({getattr(trial, name) for trial in self.trials})
            if len(values) > 1 and getattr(self.chosen, name) in (values[0], values[-1]):
                found.append(name)
        return found

    def curve(self, entry: Entry) -> np.ndarray:
        """Test scores: float64[seeds, passes]."""
        return np.array([r.scores[entry.kept] for r in self.runs[entry.spec]])

    def magnitude(self, entry: Entry) -> np.ndarray:
        """Mean size of the weights after each pass, mean over seeds."""
        found: np.ndarray = np.mean([r.magnitude[entry.kept] for r in self.runs[entry.spec]], 0)
        return found

    def counts(self, entry: Entry) -> np.ndarray:
        """Counts of test sentences after the last pass, summed over seeds."""
        found: np.ndarray = sum(r.counts[entry.kept] for r in self.runs[entry.spec])
        return found

    def seconds(self, entry: Entry) -> float:
        """CPU seconds a pass; of the average, where nothing else was timed."""
        other = f"{entry.spec} averaged"
        return float(self.times[entry.timing if entry.timing in self.times else other].mean())


def measure(
    problem: Problem, plan: Plan, kept: KeptRuns, tell: Callable[[float, str], None]
) -> Measured:
    """Choose, train, vary n and the search, and time; ``tell`` gets the share done and the next."""
    made = Measured(problem)
    steps = _steps(made, plan, kept)
    whole, done = sum(step.cost for step in steps), 0.0
    for step in steps:
        tell(done / whole, f"{made.name}: {step.title}")
        step.do()
        done += step.cost
    return made


def _steps(made: Measured, plan: Plan, kept: KeptRuns) -> list[_Step]:
    """What is done, in order, and what it costs in passes of a perceptron."""
    task, steps = made.problem.task, []
    for rate in plan.rates:
        for lam in plan.lams:
            title = f"CRF, rate {rate:g}, λ {lam:g}, on held-out sentences"
            do = partial(_try, made, kept, rate, lam)
            steps.append(_Step(task.tuning_passes * SPECS["crf"].cost, title, do))
    for seed in plan.seeds:
        for spec in SPECS.values():
            do = partial(_train, made, kept, spec, seed)
            steps.append(_Step(task.passes * spec.cost, f"{spec.key}, seed {seed}", do))
    if task.lists:
        for n in plan.ns:
            for seed in plan.seeds:
                do = partial(_vary, made, kept, plan, seed, n=n)
                steps.append(_Step(task.passes * (1.0 + n / 5), f"SAPO, n = {n}", do))
        for search in plan.searches:
            do = partial(_vary, made, kept, plan, plan.seeds[0], search=search)
            steps.append(_Step(task.passes * 3.0, f"SAPO by {search}", do))
    cost = 12.0 * task.timed_passes * plan.repeats * len(plan.timed)
    steps.append(_Step(cost, "timing", partial(_time, made, kept, plan)))
    return steps


def _try(made: Measured, kept: KeptRuns, rate: float, lam: float) -> None:
    problem = made.problem
    setting = Setting(SPECS["crf"], {"rate": rate, "lam": lam}, problem.task.tuning_passes)
    name = f"{made.name}-tune-crf-{rate:g}-{lam:g}"
    done = _kept(made, kept, name, setting, 1, held_out=True, every=False)
    made.trials.append(Trial(rate, lam, float(done.scores[CRF.kept, -1])))


def _train(made: Measured, kept: KeptRuns, spec: Spec, seed: int) -> None:
    setting = Setting(spec, _params(made, spec), made.problem.task.passes)
    done = _kept(made, kept, f"{made.name}-{spec.key}-{seed}", setting, seed)
    made.runs.setdefault(spec.key, []).append(done)


def _vary(
    made: Measured,
    kept: KeptRuns,
    plan: Plan,
    seed: int,
    n: int | None = None,
    search: str = "astar",
) -> None:
    """SAPO with another n or another search; the run of the comparison where nothing differs."""
    spec = SPECS["sapo"]
    if search == "astar" and n in (None, plan.n):
        done = made.runs["sapo"][plan.seeds.index(seed)]
    else:
        params = {**_params(made, spec), "n": n or plan.n}
        setting = Setting(spec, params, made.problem.task.passes, search)
        name = f"{made.name}-sapo-n{params['n']}-{search}-{seed}"
        done = _kept(made, kept, name, setting, seed, every=False)
    if n is None:
        made.by_search.setdefault(search, []).append(done)
    else:
        made.by_n.setdefault(n, []).append(done)


def _time(made: Measured, kept: KeptRuns, plan: Plan) -> None:
    train, passes = made.problem.train, made.problem.task.timed_passes
    settings = {key: Setting(spec, _params(made, spec), passes) for key, spec in SPECS.items()}
    for readout in plan.timed:
        for key, setting in settings.items():
            name = f"{key} {readout}"
            identity = {
                "signature": setting.signature(len(train), 1),
                "train": train.digest,
                "repeats": plan.repeats,
            }
            make = partial(_seconds, setting, readout, train, plan.repeats)
            made.times[name] = np.array(kept.of(f"{made.name}-time-{name}", identity, make))


def _seconds(setting: Setting, readout: str, train: SequenceDataset, repeats: int) -> list[float]:
    found: list[float] = seconds_a_pass(setting, readout, train, repeats).tolist()
    return found


def _params(made: Measured, spec: Spec) -> dict[str, Any]:
    """Of the regularised: what was chosen for the CRF. Nothing was chosen for others."""
    if not spec.regularised:
        return {}
    return {"rate": made.chosen.rate, "lam": made.chosen.lam}


def _kept(
    made: Measured,
    kept: KeptRuns,
    name: str,
    setting: Setting,
    seed: int,
    held_out: bool = False,
    every: bool = True,
) -> Run:
    problem = made.problem
    train, test = (problem.rest, problem.held_out) if held_out else (problem.train, problem.test)
    identity = {
        "signature": setting.signature(len(train), seed),
        "train": train.digest,
        "test": test.digest,
        "metric": made.metric,
    }
    make = partial(run, setting, train, test, made.metric, seed, every=every)
    return Run.of(kept.of(name, identity, lambda: make().plain()))
