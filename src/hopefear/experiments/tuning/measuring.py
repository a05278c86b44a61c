"""All runs of the plan, each kept on disk when it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.experiments.common.kept_runs import KeptRuns
from hopefear.experiments.common.translations import METRIC
from hopefear.experiments.tuning import runs
from hopefear.experiments.tuning.plan import Entry, Part, Plan
from hopefear.experiments.tuning.problems import TESTS, VAL, Sets, Watched, problem_of
from hopefear.experiments.tuning.runs import Run, val_score
from hopefear.translation.scoring import best, choice
from hopefear.translation.task import start_weights
from hopefear.translation.tuners.corpus import oracle_choice

Tell = Callable[[float, str], None]


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
        found = [val_score(run) if where == VAL else run.scores[where] for run in self.runs]
        return np.array(found)

    @property
    def seconds(self) -> float:
        """CPU seconds of a run, mean over seeds."""
        return float(np.mean([run.seconds for run in self.runs]))


@dataclass
class Measured:
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

    lists: dict[str, tuple[int, int]]
    counts: dict[str, np.ndarray]
    features: dict[str, int] = field(default_factory=dict)
    fixed: dict[str, dict[str, float]] = field(default_factory=dict)
    chosen: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    results: dict[str, dict[str, Result]] = field(default_factory=dict)

    def of(self, part: str, key: str) -> Result:
        return self.results[part][key]

    def has(self, part: str, key: str) -> bool:
        """Whether there is such a tuner, and it did not refuse."""
        return key in self.results.get(part, {}) and not self.of(part, key).refused

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
        found = [r for r in self.results[part].values() if not r.refused]
        return max(found, key=lambda result: float(result.scores(VAL).mean()))


def measure(sets: Sets, plan: Plan, kept: KeptRuns, tell: Tell) -> Measured:
    """Tune with everyone; ``tell`` gets the share done and what is next."""
    made = known(sets)
    total = sum(len(part.entries) for part in plan.parts)
    done = 0
    for part in plan.parts:
        tell(done / total, f"features of: {part.title}")
        problem = problem_of(sets, part)
        made.features[part.key] = len(problem.start)
        found = made.results[part.key] = {}
        for entry in part.entries:
            tell(done / total, f"{part.title}: {entry.title}")
            found[entry.key] = _result(part, entry, problem, plan, kept)
            done += 1
    return made


def known(sets: Sets) -> Measured:
    """What is known before anything is tuned."""
    made = Measured(
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
            made.fixed.setdefault(way, {})[name] = float(METRIC.scores(sums)[METRIC.main])
            made.chosen.setdefault(way, {})[name] = numbers
    return made


def _result(part: Part, entry: Entry, problem: Watched, plan: Plan, kept: KeptRuns) -> Result:
    """Choose a setting by one seed on val, then run all seeds."""

    def one(params: Mapping[str, Any], seed: int, tested: bool) -> Run:
        identity = {
            "signature": runs.signature(entry, params, problem, seed),
            "lists": problem.data.digest,
            "others": [d.digest for d in (problem.dev, *problem.tests.values()) if d is not None],
            "tested": tested,
        }
        shown = "-".join(f"{k}={v}" for k, v in params.items())
        name = f"{part.key}-{entry.key}-{shown}-{seed}" + ("" if tested else "-trial")
        content = kept.of(
            name, identity, lambda: asdict(runs.run(entry, params, problem, seed, tested))
        )
        return Run(**content)

    settings = entry.settings()
    trials: list[Trial] = []
    if len(settings) > 1:
        for params in settings:
            found = one(params, plan.seeds[0], False)
            if not found.refused:
                trials.append(Trial(params, val_score(found)))
    chosen = max(trials, key=lambda trial: trial.val).params if trials else settings[0]
    seeds = plan.seeds[:1] if entry.once else plan.seeds
    done: list[Run] = []
    for seed in seeds:
        done.append(one(chosen, seed, True))
        if done[-1].refused:
            break
    return Result(part.key, entry, chosen, tuple(trials), tuple(done))
