"""Parameters, chosen on a part of the training rows that is held out; the test is not looked at."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hopefear.data.sparse import SparseDataset
from hopefear.experiments.vrda_classification.plan import Spec
from hopefear.experiments.vrda_classification.runs import run


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
        done = run(spec, setting, rest, held_out, passes)
        kept, last = done.averaged.summary(), done.last.summary()
        trials.append(
            Trial(
                setting,
                kept["accuracy"],
                kept["f1"],
                int(done.averaged.nnz[-1]),
                int(done.last.nnz[-1]),
                last["f1"],
            )
        )
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
    edges = []
    for name, values in ((spec.strength, spec.strengths), ("rate", spec.rates)):
        if len(values) > 1 and best.setting[name] in (values[0], values[-1]):
            edges.append(name)
    return Choice(best, sparse, tuple(trials), tuple(edges))
