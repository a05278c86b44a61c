"""What is run: variants, values of beta, sizes and seeds."""

from __future__ import annotations

from dataclasses import dataclass

from hopefear.core.learner import Learner
from hopefear.losses.swvp import AGGRESSIVE, BALANCED, OWN, SWVP, WM, WMR, substructures
from hopefear.readouts.averaged import Averaged
from hopefear.rules.sgd import SGD

LENGTH = 8  # tokens of every sequence, as in the paper
KEPT = ("last", "averaged")  # which weights are scored
LAST, AVERAGED = range(2)
TOLERANCE = (
    0.5  # points by which the chosen beta may miss the best one on test and still "generalise"
)


@dataclass(frozen=True)
class Variant:
    """A column of choices: which mixed assignments, how weighted, condition (2) checked or not."""

    key: str
    approach: int
    weighting: int
    checked: bool = False

    @property
    def title(self) -> str:
        return self.key + (", checked" if self.checked else "")

    def learner(self, beta: float) -> Learner:
        """The learner, with one beta.

        >>> VARIANTS[0].learner(2.0).loss.beta
        2.0
        """
        loss = SWVP(self.approach, self.weighting, beta, checked=self.checked)
        return Learner(loss, SGD(), Averaged(), on="mistakes")


VARIANTS = (
    Variant("B-WM", BALANCED, WM),
    Variant("B-WMR", BALANCED, WMR),
    Variant("A-WM", AGGRESSIVE, WM),
    Variant("A-WMR", AGGRESSIVE, WMR),
)
# Aggressive weights keep condition (2) always, so checking them changes nothing.
CHECKED = tuple(Variant(v.key, v.approach, v.weighting, True) for v in VARIANTS[:2])


def perceptron() -> Learner:
    """CSP, as the special case JJ = {all positions} of SWVP: one kernel serves all runs."""
    loss = SWVP(jj=OWN, own=substructures([range(LENGTH)]))
    return Learner(loss, SGD(), Averaged(), on="mistakes")


@dataclass(frozen=True)
class Plan:
    """How much is run."""

    settings: tuple[int, ...]
    datasets: int
    items: tuple[int, int, int]  # training, development, test
    betas: tuple[float, ...]
    passes: int

    def seed(self, setting: int, dataset: int) -> int:
        """Of a dataset's model and sample.

        >>> FULL.seed(setting=2, dataset=7)
        207
        """
        return 100 * setting + dataset


FULL = Plan(
    settings=(1, 2, 3),
    datasets=10,
    items=(7000, 2000, 1000),
    betas=tuple(k / 2 for k in range(1, 11)),
    passes=10,
)
QUICK = Plan(settings=(1, 3), datasets=3, items=(350, 100, 50), betas=(0.5, 2.0, 5.0), passes=4)
