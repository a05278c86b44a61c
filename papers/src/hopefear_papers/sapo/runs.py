"""All runs of a task: what is chosen, trained, varied and timed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from hopefear.data.sequences import Sentences, SequenceDataset
from hopefear.metrics import Tagging
from hopefear.metrics.tagging import RIGHT
from hopefear.tasks.tag.task import dataset
from hopefear_papers.claims import Difference, Tests, compare
from hopefear_papers.frame import Call, KeptRuns, Tell, at_edges, learn, paced
from hopefear_papers.sapo.plan import (
    CRF,
    NETWORKS,
    SPECS,
    Entry,
    Plan,
    Problem,
    Spec,
    find_problems,
    like,
)
from hopefear_papers.sapo.settings import (
    ENCODERS,
    NetworkSetting,
    Run,
    Setting,
    grid_setting,
    run,
)

LETTER = ("sapo", "crf", "perceptron")  # learners that are run with features to the letter
_Step = tuple[str, Callable[[], None]]  # what comes next, in words, and what does it


def seconds_a_pass(
    setting: Setting, averaging: str, train: SequenceDataset, repeats: int
) -> np.ndarray:
    """CPU seconds of every pass, without scoring; the least of several runs."""
    seconds = [
        list(learn(setting.trainer(train, averaging), train, setting.passes))
        for _ in range(repeats)
    ]
    return np.array(seconds).min(axis=0)


def _seconds(setting: Setting, averaging: str, train: SequenceDataset, repeats: int) -> Any:
    return seconds_a_pass(setting, averaging, train, repeats).tolist()


def t_test(first: np.ndarray, second: np.ndarray) -> float:
    """p of the paper's test: paired, over sentences, of tokens that are right (its footnote 7).

    >>> counts = np.zeros((3, 7), np.int64)
    >>> counts[:, 3] = [4, 5, 7]
    >>> better = counts.copy()
    >>> better[:, 3] += [1, 2, 1]
    >>> round(t_test(better, counts), 3)
    0.057
    """
    difference = (first - second)[:, RIGHT].astype(np.float64)
    if difference.size < 2 or difference.std() == 0.0:
        return 0.0 if difference.size > 1 and difference.any() else 1.0
    return float(stats.ttest_1samp(difference, 0.0).pvalue)


def compare_counts(
    first: np.ndarray, second: np.ndarray, metric: str, replicates: int
) -> Difference:
    """Both tests over sentences, of counts as ``Tagging.rows`` gives, by ``f1`` or ``accuracy``."""
    # Equal counts are drawn together, so counts the score does not read are made equal.
    mask = np.isin(np.arange(first.shape[1]), Tagging.reads[metric])
    return compare(Tagging(), metric, first * mask, second * mask, replicates)


class Trial(NamedTuple):
    """A rate and a strength for the CRF, and its last weights on the held-out sentences."""

    rate: float
    lam: float
    score: float


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
    grid: dict[tuple[str, str], list[Run]] = field(default_factory=dict)  # by loss and encoder
    letter: dict[str, list[Run]] = field(default_factory=dict)  # with features to the letter

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

    def has(self, entry: Entry) -> bool:
        """Whether it was run here."""
        return entry.spec in self.runs

    @property
    def networks(self) -> tuple[Entry, ...]:
        """Those of the paper's networks that were run."""
        return tuple(entry for entry in NETWORKS if self.has(entry))

    def curve(self, entry: Entry) -> np.ndarray:
        """Test scores: float64[seeds, passes]."""
        return np.array([r.scores[entry.kept] for r in self.runs[entry.spec]])

    def magnitude(self, entry: Entry) -> np.ndarray:
        """Mean size of the weights after each pass, mean over seeds."""
        return np.asarray(np.mean([r.magnitude[entry.kept] for r in self.runs[entry.spec]], 0))

    def seconds(self, entry: Entry) -> float:
        """CPU seconds a pass; of the average, where nothing else was timed."""
        if entry.network:
            return float(min(np.median(r.seconds) for r in self.runs[entry.spec]))
        other = f"{entry.spec} averaged"
        return float(self.times[entry.timing if entry.timing in self.times else other].mean())

    def compare(self, first: list[Run], second: list[Run], kept: tuple[int, int]) -> Difference:
        """Two sides at the last pass, counts summed over seeds."""
        return compare_counts(*_summed(first, second, kept), self.metric, self.plan.replicates)

    def t_test(self, first: Entry, second: Entry) -> float:
        """p of the paper's test."""
        return t_test(*_summed(*self._sides(first, second), (first.kept, second.kept)))

    def _against(self, first: Entry, second: Entry) -> Difference:
        return self.compare(*self._sides(first, second), (first.kept, second.kept))

    def _sides(self, first: Entry, second: Entry) -> tuple[list[Run], list[Run]]:
        """Runs of the seeds that both have: networks may have fewer."""
        sides = self.runs[first.spec], self.runs[second.spec]
        n = min(map(len, sides))
        return sides[0][:n], sides[1][:n]


def _summed(
    first: list[Run], second: list[Run], kept: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Counts of either side, over seeds."""
    a, b = (
        np.sum([r.counts[k] for r in side], axis=0)
        for side, k in zip((first, second), kept, strict=True)
    )
    return a, b


def measure(call: Call) -> list[Results]:
    """All tasks whose data is there."""
    call.progress("reading the data; then compiling, if this was not done before")
    readers, call.note = find_problems(call.data, call.plan, call.quick)
    if any(reader.task.network_passes for reader in readers):
        _, missing = call.plan.networks.found(readers[0].folder)
        call.note = " ".join(filter(None, (call.note, missing)))
    share = 1.0 / len(readers)
    return [
        measure_task(reader.read(), call.plan, call.runs, call.teller(n * share, share))
        for n, reader in enumerate(readers)
    ]


def measure_task(problem: Problem, plan: Plan, store: KeptRuns, tell: Tell) -> Results:
    """Choose, train, vary n and the search, and time; ``tell`` gets the share done and the next."""
    bench = _Bench(Results(problem, plan), store)
    steps = [*bench.steps(), *bench.network_steps()]
    for _, do in paced(tell, 0.0, 1.0, steps, lambda step: f"{bench.results.name}: {step[0]}"):
        do()
    return bench.results


class _Bench:
    """Runs learners on one task, or takes up what they did."""

    def __init__(self, results: Results, store: KeptRuns) -> None:
        self.results, self.problem, self.plan = results, results.problem, results.plan
        self.store, self.task = store, results.problem.task

    def steps(self) -> Iterator[_Step]:
        """What is done with the paper's learners, in order."""
        task, plan = self.task, self.plan
        for rate, lam in itertools.product(plan.rates, plan.lams):
            title = f"CRF, rate {rate:g}, λ {lam:g}, on held-out sentences"
            yield title, partial(self._try, rate, lam)
        for seed, spec in itertools.product(plan.seeds, SPECS.values()):
            yield f"{spec.key}, seed {seed}", partial(self._train, spec, seed)
        if task.lists:
            for n, seed in itertools.product(plan.ns, plan.seeds):
                yield f"SAPO, n = {n}", partial(self._vary, seed, n=n)
            for search in plan.searches:
                yield f"SAPO by {search}", partial(self._vary, plan.seeds[0], search=search)
        for key in LETTER if task.letter else ():
            title = f"{key} with the features {task.letter}"
            yield title, partial(self._to_the_letter, SPECS[key])
        yield "timing", self._time

    def network_steps(self) -> Iterator[_Step]:
        """The paper's networks, and all losses on all encoders."""
        task, plan = self.task, self.plan.networks
        params, _ = plan.found(self.problem.folder)
        if params is None:
            return
        for seed, entry in itertools.product(plan.seeds if task.network_passes else (), NETWORKS):
            yield f"{entry.title}, seed {seed}", partial(self._net, entry, seed, params)
        losses = plan.losses if task.grid else ()
        for loss, encoder, seed in itertools.product(losses, ENCODERS, plan.grid_seeds):
            do = partial(self._cell, loss, encoder, seed, params)
            yield f"{loss}, {encoder}, seed {seed}", do

    def _net(self, entry: Entry, seed: int, params: Mapping[str, Any]) -> None:
        task = self.task
        setting = NetworkSetting(entry.spec, params, task.network_passes, task.features)
        runs = self.results.runs.setdefault(entry.spec, [])
        text = self.problem.text
        name = f"{entry.spec}-{seed}"
        runs.append(self._network_run(name, setting, seed, text["train"], text["test"]))

    def _cell(self, loss: str, encoder: str, seed: int, params: Mapping[str, Any]) -> None:
        plan, problem = self.plan.networks, self.problem
        setting = grid_setting(plan, params, loss, encoder, self.task.features)
        which = np.arange(min(plan.sentences, len(problem.train)))
        name = f"grid-{loss}-{encoder}-{seed}"
        if isinstance(setting, Setting):
            sides = (problem.train.take(which), problem.test)
            one = self._run(name, setting, seed, every=False, sides=sides)
        else:
            text = problem.text
            few = text["train"].take(which)
            one = self._network_run(name, setting, seed, few, text["test"], every=False)
        self.results.grid.setdefault((loss, encoder), []).append(one)

    def _network_run(
        self,
        name: str,
        setting: NetworkSetting,
        seed: int,
        train: Sentences,
        test: Sentences,
        every: bool = True,
    ) -> Run:
        problem, metric = self.problem, self.results.metric
        identity = {
            "signature": setting.signature(seed),
            "train": problem.train.digest,
            "sentences": len(train),
            "test": problem.test.digest,
            "metric": metric,
        }
        make = partial(setting.run, train, test, metric, seed, every=every)
        return self.store.record(Run, f"{self.results.name}-{name}", identity, make)

    def _try(self, rate: float, lam: float) -> None:
        setting = Setting(SPECS["crf"], {"rate": rate, "lam": lam}, self.task.tuning_passes)
        name = f"tune-crf-{rate:g}-{lam:g}"
        held_out = (self.problem.rest, self.problem.held_out)
        trial = self._run(name, setting, 1, every=False, sides=held_out)
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

    def _to_the_letter(self, spec: Spec) -> None:
        """Learners of the first seed with the features of the paper's words."""
        train = dataset(self.problem.text["train"], self.task.letter, keep_names=False)
        sides = train, like(train, self.problem.text["test"])
        setting = Setting(spec, self._params(spec), self.task.passes)
        one = self._run(f"letter-{spec.key}", setting, self.plan.seeds[0], False, sides)
        self.results.letter[spec.key] = [one]

    def _time(self) -> None:
        train, repeats = self.problem.train, self.plan.repeats
        for averaging in self.plan.timed:
            for key, spec in SPECS.items():
                setting = Setting(spec, self._params(spec), self.task.timed_passes)
                signature = setting.signature(len(train), 1)
                seconds = self.store.of(
                    f"{self.results.name}-time-{key} {averaging}",
                    {"signature": signature, "train": train.digest, "repeats": repeats},
                    partial(_seconds, setting, averaging, train, repeats),
                )
                self.results.times[f"{key} {averaging}"] = np.array(seconds)

    def _params(self, spec: Spec) -> dict[str, Any]:
        """Of the regularised: what was chosen for the CRF. Nothing was chosen for others."""
        if not spec.regularised:
            return {}
        return {"rate": self.results.chosen.rate, "lam": self.results.chosen.lam}

    def _run(
        self,
        name: str,
        setting: Setting,
        seed: int,
        every: bool = True,
        sides: tuple[SequenceDataset, SequenceDataset] | None = None,
    ) -> Run:
        metric = self.results.metric
        train, test = sides or (self.problem.train, self.problem.test)
        identity = {
            "signature": setting.signature(len(train), seed),
            "train": train.digest,
            "test": test.digest,
            "metric": metric,
        }
        make = partial(run, setting, train, test, metric, seed, every=every)
        whole: Run = self.store.record(Run, f"{self.results.name}-{name}", identity, make)
        return whole
