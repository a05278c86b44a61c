"""What is run: variants, values of beta, sizes, seeds, and chains with the paper's indicators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hopefear.averaging.averaged import Averaged
from hopefear.core.learner import Learner
from hopefear.data.generators import HMMSample, hmm
from hopefear.data.sequences import SequenceDataset, TokenRows
from hopefear.losses.swvp import AGGRESSIVE, BALANCED, OWN, SWVP, WM, WMR, substructures
from hopefear.rules.sgd import SGD
from hopefear.structures.chain.chain import Chain

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
        return Learner(loss, SGD(), Averaged(), update_on="mistakes")


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
    return Learner(loss, SGD(), Averaged(), update_on="mistakes")


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


SETTINGS = {
    1: "simple(++), learnable(+++)",
    2: "simple(++), learnable(++)",
    3: "simple(+), learnable(+)",
}


class Sizes(NamedTuple):
    """Numbers of attributes."""

    size: int
    edge_size: int


@dataclass(frozen=True)
class Problem:
    """One dataset: what is learned from, what is scored, and how well one could do."""

    setting: int
    dataset: int
    seed: int
    train: SequenceDataset
    rest: SequenceDataset  # development items, then test items
    n_dev: int
    structure: Chain
    best_possible: float  # test accuracy in percent of the most probable states under the model


def make_problem(plan: Plan, setting: int, dataset: int) -> Problem:
    """Draw a model and its items.

    >>> from hopefear_papers.swvp_synthetic.plan import QUICK
    >>> problem = make_problem(QUICK, setting=1, dataset=0)
    >>> len(problem.train), len(problem.rest), problem.n_dev
    (350, 150, 100)
    """
    n_train, n_dev, n_test = plan.items
    seed = plan.seed(setting, dataset)
    whole = hmm(setting, sum(plan.items), LENGTH, seed)
    train, dev_and_test = whole.split((n_train, n_dev + n_test))
    test = whole.split(plan.items)[2]
    n_states, n_symbols = whole.emission.shape
    sizes = _sizes(n_symbols)
    return Problem(
        setting,
        dataset,
        seed,
        sequences(train),
        sequences(dev_and_test),
        n_dev,
        Chain.new(sizes.size, n_states, sizes.edge_size),
        100.0 * float((most_probable(test) == test.hidden).mean()),
    )


def sequences(sample: HMMSample) -> SequenceDataset:
    """The indicators {x_i, y_i, y_{i-1}, (x_i, y_i), (y_i, y_{i-1}), (x_i, y_i, y_{i-1})}.

    Attributes that fire on a label: the symbol, one that is always there (y_i), and one on all but
    the last token (y_{i-1} of the next). Pairs of labels fire by themselves and with the symbol.
    The product of the paper starts at i = 1, so y_0 is taken for a start state: two more
    attributes on the first token, alone and with its symbol. Indicators of x_i alone and of y_0
    alone are the same for every output and drop out.
    """
    symbols = sample.observed.astype(np.int64)
    n, length = symbols.shape
    n_symbols = sample.emission.shape[1]
    always, followed, start = n_symbols, n_symbols + 1, n_symbols + 2
    cells = np.full((n, length, 5), -1, np.int64)
    cells[:, :, 0] = symbols
    cells[:, :, 1] = always
    cells[:, :-1, 2] = followed
    cells[:, 0, 3] = start
    cells[:, 0, 4] = start + 1 + symbols[:, 0]
    fires = cells.reshape(n * length, 5) >= 0
    indptr = np.concatenate(([0], np.cumsum(fires.sum(axis=1))))
    pairs = np.ones((n, length), np.int64)
    pairs[:, 0] = 0
    rows = TokenRows(
        np.arange(n + 1) * length,
        indptr,
        cells.reshape(-1, 5)[fires],
        np.empty(0, np.float32),
        np.concatenate(([0], np.cumsum(pairs.ravel()))),
        symbols[:, 1:].ravel(),
        np.empty(0, np.float32),
        sample.hidden.ravel(),
        np.ones(n, np.float32),
    )
    names = [f"state {k}" for k in range(sample.emission.shape[0])]
    return SequenceDataset(rows, names, _sizes(n_symbols), source="hmm")


def most_probable(sample: HMMSample) -> np.ndarray:
    """The most probable state at every place under the true model: no learner can expect more."""
    n, length = sample.observed.shape
    emitted = sample.emission.T[sample.observed]
    before = np.empty((n, length, len(sample.prior)))
    after = np.ones_like(before)
    before[:, 0] = sample.prior * emitted[:, 0]
    for t in range(1, length):
        before[:, t] = (before[:, t - 1] @ sample.transition) * emitted[:, t]
    for t in range(length - 2, -1, -1):
        after[:, t] = (after[:, t + 1] * emitted[:, t + 1]) @ sample.transition.T
    best: np.ndarray = (before * after).argmax(axis=2)
    return best


def _sizes(n_symbols: int) -> Sizes:
    return Sizes(2 * n_symbols + 3, n_symbols)
