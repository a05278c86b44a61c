"""Runs: pass after pass, the average scored on development and test trees after each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hopefear.data.sequences import Column
from hopefear.data.tree_rows import TreeDataset
from hopefear.metrics import Accuracy, Dependencies, Trees
from hopefear.metrics.dependencies import HEADS
from hopefear.tasks.parse.task import Parsing
from hopefear.training.decoders.trees import TreeDecoder
from hopefear.training.online import OnlineTrainer
from hopefear.training.predictors import Predictor
from hopefear_papers.claims import Difference, Tests, compare
from hopefear_papers.frame import Call, Entrant, KeptRuns, Tell, learn, violations
from hopefear_papers.swvp_parsing.plan import (
    BWM,
    CSP,
    NEAR,
    OTHERS,
    PLAIN,
    SCORES,
    Bank,
    Plan,
    Problem,
    Work,
    find_banks,
    learner_of,
    split_of,
)


@dataclass(frozen=True)
class Run:
    """A learner pass after pass; scores are of the average, in the order of ``SCORES``."""

    beta: float  # 0 for CSP
    signature: str
    dev: np.ndarray  # float64[scores, passes], percent; two scores where there are no relations
    test: np.ndarray
    last: np.ndarray  # float64[2, scores]: last weights after the last pass, dev and test
    right: np.ndarray  # int64[passes, test sentences]: right heads
    seconds: np.ndarray  # float64[passes]: CPU, to learn
    mistakes: np.ndarray  # int64[passes]: in each pass
    counts: np.ndarray  # int64[4]: as in ``losses.swvp.Violations``


def run(problem: Problem, entrant: Entrant, beta: float, passes: int) -> Run:
    """Train in the order of the file, so many times.

    >>> from hopefear_papers.swvp_parsing.plan import CSP, Bank, split_of
    >>> problem = Problem(split_of(Bank("few", "trees", generated=(6, 2, 2)), None), 1, 12)
    >>> csp = run(problem, CSP, 0.0, passes=2)
    >>> csp.test.shape, csp.right.shape, bool(csp.dev[0, -1] > 60.0)
    ((4, 2), (2, 2), True)
    """
    train = problem.train
    learner = learner_of(entrant, beta, int(np.diff(train.rows.starts).max()))
    trainer = OnlineTrainer(Parsing(train.kind).structure(train), learner)
    dev, test, right = [], [], []
    seconds: list[float] = []
    mistakes: list[int] = []
    for cost in learn(trainer, train, passes, shuffle=False):
        seconds.append(cost)
        mistakes.append(trainer.mistakes - sum(mistakes))
        average = trainer.predictor()
        dev.append(scores(problem.dev, rows_of(trainer, average, problem.dev)))
        rows = rows_of(trainer, average, problem.test)
        test.append(scores(problem.test, rows))
        right.append(rows[:, HEADS])
    newest = trainer.linear(trainer.weights())
    last = [scores(part, rows_of(trainer, newest, part)) for part in (problem.dev, problem.test)]
    return Run(
        beta,
        learner.signature(order=problem.order, tree=train.kind.name, epochs=passes, shuffle=False),
        np.array(dev).T,
        np.array(test).T,
        np.array(last),
        np.array(right),
        np.array(seconds),
        np.array(mistakes),
        violations(trainer),
    )


def rows_of(trainer: OnlineTrainer, predictor: Predictor, data: TreeDataset) -> np.ndarray:
    """Counts of each sentence, as ``Dependencies`` has them."""
    codes = TreeDecoder.of(trainer.structure, predictor).predict(data.rows)
    n, gold = len(data.labels), Trees.of(data.bank)
    if not data.labels:
        gold = gold._replace(relations=None)
        return Dependencies().statistics(gold, gold._replace(heads=codes))
    relations = Column(data.labels, codes % n)
    return Dependencies().statistics(gold, gold._replace(heads=codes // n, relations=relations))


def scores(data: TreeDataset, rows: np.ndarray) -> list[float]:
    """In the order of ``SCORES``, as many as there are."""
    metric = Dependencies(labelled=bool(data.labels))
    values = metric.scores(rows.sum(axis=0))
    return [float(values[name]) for name in SCORES if name in values]


class Pick(NamedTuple):
    """The average of a run after one of its passes."""

    run: Run
    place: int  # of the pass, from 0

    @property
    def dev(self) -> float:
        return float(self.run.dev[0, self.place])

    @property
    def test(self) -> float:
        return float(self.run.test[0, self.place])

    @property
    def right(self) -> np.ndarray:
        """Right heads of each test sentence."""
        heads: np.ndarray = self.run.right[self.place]
        return heads

    def score(self, name: str) -> float | None:
        """A score on test trees; None where there are no relations."""
        place = SCORES.index(name)
        return float(self.run.test[place, self.place]) if place < len(self.run.test) else None


def ends(runs: Iterable[Run]) -> list[Pick]:
    """Each run after its last pass."""
    return [Pick(one, one.test.shape[1] - 1) for one in runs]


def all_passes(runs: Iterable[Run]) -> list[Pick]:
    """Each run after each of its passes."""
    return [Pick(one, place) for one in runs for place in range(one.test.shape[1])]


def tuned(picks: Sequence[Pick]) -> Pick:
    """The best on development trees; the first of equals."""
    return max(picks, key=lambda pick: pick.dev)


def top(picks: Sequence[Pick]) -> Pick:
    """Of those within 0.1 points of the best on development trees, the best on test trees."""
    least = tuned(picks).dev - NEAR - 1e-9
    return on_test([pick for pick in picks if pick.dev >= least])


def on_test(picks: Sequence[Pick]) -> Pick:
    """The best on test trees: a bound on what any choice can give."""
    return max(picks, key=lambda pick: pick.test)


CHOICES = {"": tuned, "Top ": top, "Test ": on_test}
TABLE = ("CSP", "B-WM", "Top B-WM", "Test B-WM")
CONTROL = tuple(f"{how}{who}, pass chosen" for who in ("CSP", "B-WM") for how in CHOICES)


@dataclass
class Results:
    """All runs on one treebank with trees of one order."""

    bank: Bank
    work: Work
    words: np.ndarray  # int64[test sentences]
    facts: dict[str, Any]
    replicates: int
    runs: dict[str, list[Run]] = field(default_factory=dict)  # B-WM has one for every beta

    def __post_init__(self) -> None:
        self.against = Tests(self._against, ("of", "against"))

    @property
    def picks(self) -> dict[str, Pick]:
        """Systems of Table 2, those that choose their pass too, and the variants, by title."""
        csp, bwm = self.runs["CSP"], self.runs["B-WM"]
        picks = {"CSP": ends(csp)[0]}
        picks |= {f"{how}B-WM": choose(ends(bwm)) for how, choose in CHOICES.items()}
        for who, runs in (("CSP", csp), ("B-WM", bwm)):
            for how, choose in CHOICES.items():
                picks[f"{how}{who}, pass chosen"] = choose(all_passes(runs))
        if plain := [one for one in bwm if one.beta == PLAIN]:
            picks["B-WM, β 1"] = ends(plain)[0]
        return picks | {key: ends(self.runs[key])[0] for key in self.work.others}

    def counts(self, title: str) -> np.ndarray:
        """Right heads and words of each test sentence."""
        return np.stack((self.picks[title].right, self.words), axis=1)

    def _against(self, first: str, second: str) -> Difference:
        return over_sentences([self], first, second, self.replicates)


def over_sentences(
    several: Sequence[Results], first: str, second: str, replicates: int
) -> Difference:
    """Both paired tests of UAS over the test sentences of these treebanks, put together."""
    a, b = (np.concatenate([one.counts(title) for one in several]) for title in (first, second))
    return compare(Accuracy("head"), "accuracy", a, b, replicates)


def measure(call: Call) -> list[Results]:
    """All work whose treebank is there."""
    plan: Plan = call.plan
    call.progress("reading treebanks; then compiling, if this was not done before")
    banks, folder, call.note = find_banks(call.data, plan)
    works = [work for work in plan.works if work.bank in banks]
    whole, start, results = sum(work.whole_cost for work in works), 0.0, []
    splits = {name: split_of(bank, folder) for name, bank in banks.items()}
    for work in works:
        problem = Problem(splits[work.bank], work.order, plan.hash_bits)
        share = work.whole_cost / whole
        tell = call.teller(start, share)
        results.append(measure_work(problem, work, plan.replicates, call.runs, tell))
        start += share
    return results


def measure_work(
    problem: Problem, work: Work, replicates: int, store: KeptRuns, tell: Tell
) -> Results:
    """Every run on one treebank with trees of one order, made or taken up."""
    bank = problem.split.bank
    trials = [(CSP, 0.0), *((BWM, beta) for beta in work.betas)]
    trials += [(OTHERS[key], PLAIN) for key in work.others]
    words = np.diff(problem.split.test.starts)
    facts = store.of(f"{work.title}-facts", problem.identity, problem.facts)
    results = Results(bank, work, words, facts, replicates)
    for k, (entrant, beta) in enumerate(trials):
        title = f"{entrant.key}, β {beta:g}" if beta else entrant.key
        tell(k / len(trials), f"{work.title}: {title}")
        identity = {**problem.identity, "passes": work.passes, "beta": beta, **entrant.fixed}
        make = partial(run, problem, entrant, beta, work.passes)
        one = store.record(Run, f"{work.title}-{title}", identity, make)
        results.runs.setdefault(entrant.key, []).append(one)
    return results
