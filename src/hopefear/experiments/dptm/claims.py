"""What Gao, Xiao, Xu and He report (German to English, Europarl; BLEU, case ignored), judged.

Thresholds were set before any phrase model was scored on test lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

from hopefear.experiments.claims import OPEN, Difference, Verdict, all_of, better, not_worse
from hopefear.experiments.dptm.plan import GOAL, LOSSES, Plan, at
from hopefear.experiments.dptm.runs import DECODER, LINE, MERT, POOLED, RETUNED, Measured, at_most
from hopefear.experiments.translations import compare

BASELINE = 26.0  # on both test sets
# Rule and loss: BLEU on TEST1 and TEST2 with the marks of the paper.
TABLE_3: dict[str, tuple[str, str]] = {
    "sgd-risk": ("26.8 α", "26.7 α"),
    "sgd-hinge": ("26.4", "26.2"),
    "sgd-logistic": ("26.2", "26.3"),
    "sgd-log": ("26.6 α", "26.4"),
    "vrda-risk": ("26.9 α", "26.7 α"),
    "vrda-hinge": ("26.5 α", "26.4 αβ"),
    "vrda-logistic": ("26.6 αβ", "26.4"),
    "vrda-log": ("26.6 α", "26.6 αβ"),
}
# Strength, weights, BLEU on TEST1 and TEST2.
TABLE_4: tuple[tuple[float, int, str, str], ...] = (
    (0.0, 2_500_000, "26.9", "26.7"),
    (2e-8, 357_000, "26.9", "26.6"),
    (5e-8, 154_000, "26.7", "26.7"),
    (1e-7, 57_000, "26.6", "26.6"),
    (5e-7, 5_000, "26.3 α", "26.5 α"),
)
WORST_SHARE = TABLE_4[-1][1] / TABLE_4[0][1]  # weights that are left where BLEU falls


MARGIN = 0.4  # points of BLEU within which two models count as equally good
as_good = partial(not_worse, margin=MARGIN)
OURS = "our question: "  # begins claims that are not the paper's
STEADY = f"{POOLED}, {LINE}"


def some_of(words: list[str]) -> str:
    """Agreement of any where none disagrees, and the other way round.

    >>> some_of(["agrees", "not shown"]), some_of(["agrees", "disagrees"])
    ('agrees', 'not shown')
    """
    found = set(words) - {OPEN}
    return found.pop() if len(found) == 1 else OPEN


class Judge:
    """Compares choices of one measurement; the same pair is tested once."""

    def __init__(self, made: Measured, plan: Plan) -> None:
        self.made, self.plan = made, plan
        self._found: dict[tuple[str, str, str, str], Difference] = {}

    def against(self, first: str, second: str, where: str, how: str = MERT) -> Difference:
        """Two choices on a test set, or on all; seeds pooled."""
        key = (first, second, where, how)
        if key not in self._found:
            a, b = (self.made.counts(name, where, how) for name in (first, second))
            self._found[key] = compare(a, b, self.plan.replicates)
        return self._found[key]

    def to_json(self) -> list[dict[str, Any]]:
        """All that was compared."""
        return [
            {"of": one, "against": two, "where": where, "added by": how, **asdict(found)}
            for (one, two, where, how), found in self._found.items()
        ]

    def share(self, l1: float) -> float:
        """Weights at a strength, as a share of those without."""
        return self.made.nnz(at(l1)) / max(1.0, self.made.nnz(at(0.0)))

    def tenth(self) -> float:
        """The least strength that leaves a tenth of the weights or fewer; else the largest."""
        fit = [l1 for l1 in self.plan.strengths if self.share(l1) <= GOAL]
        return min(fit, default=max(self.plan.strengths))

    def few(self) -> float:
        """The strength that leaves about the share of weights at which the paper's BLEU falls."""
        return min(self.plan.strengths[1:], key=lambda l1: abs(self.share(l1) - WORST_SHARE))


_Check = Callable[[Judge, str, str], tuple[str, str]]


def judge(judge: Judge) -> list[Verdict]:
    """All claims."""
    places = [(where, where, MERT) for where in judge.made.places] + [(STEADY, POOLED, LINE)]
    return [
        Verdict(claim, label, *check(judge, where, how))
        for claim, check in _checks(judge)
        for label, where, how in places
        # Where the other weights stay, none are tuned anew.
        if not (how == LINE and claim.startswith(OURS))
    ]


def _checks(judge: Judge) -> Iterator[tuple[str, _Check]]:
    for rule, title in (("sgd", "SGD"), ("vrda", "VRDA")):
        yield f"{title}: Bayes risk is better than the baseline", _better(f"{rule}-risk", DECODER)
    yield (
        "VRDA: every loss is better than the baseline",
        _all(better, [(f"vrda-{loss}", DECODER) for loss in LOSSES]),
    )
    for rule, title in (("sgd", "SGD"), ("vrda", "VRDA")):
        yield (
            f"{title}: Bayes risk is better than every other loss",
            _all(better, [(f"{rule}-risk", f"{rule}-{loss}") for loss in LOSSES if loss != "risk"]),
        )
        yield (
            f"{title}: log loss is better than hinge and logistic loss",
            _all(better, [(f"{rule}-log", f"{rule}-{loss}") for loss in ("hinge", "logistic")]),
        )
    yield (
        "VRDA is as good as SGD, with every loss",
        _all(as_good, [(f"vrda-{loss}", f"sgd-{loss}") for loss in LOSSES]),
    )
    yield (
        "VRDA is better than SGD, with some loss",
        _some([(f"vrda-{loss}", f"sgd-{loss}") for loss in LOSSES]),
    )
    l1, few = judge.tenth(), judge.few()
    yield (
        f"VRDA, Bayes risk: a tenth of the weights (λ {l1:g}, {judge.share(l1):.1%}) is as good",
        _all(as_good, [(at(l1), at(0.0))]),
    )
    yield (
        f"VRDA, Bayes risk: as few weights as the paper's largest λ leaves (λ {few:g}, "
        f"{judge.share(few):.2%}) are worse than all",
        _better(at(0.0), at(few)),
    )
    yield (
        f"with {judge.plan.sparse_levels:,} weights or fewer VRDA is better than TG",
        _some([pair for level, pair in levels(judge) if level <= judge.plan.sparse_levels]),
    )
    yield (
        f"{OURS}Bayes risk (VRDA) is better than dense features tuned anew",
        _better("vrda-risk", RETUNED),
    )
    yield (
        f"{OURS}Bayes risk (SGD) is better than dense features tuned anew",
        _better("sgd-risk", RETUNED),
    )
    yield (
        f"{OURS}dense features tuned anew are better than the decoder's",
        _better(RETUNED, DECODER),
    )


def levels(judge: Judge) -> list[tuple[int, tuple[str, str]]]:
    """Numbers of weights that both VRDA and TG have a choice for."""
    pairs = [
        (level, (at_most("vrda-risk", level), at_most("tg-risk", level)))
        for level in judge.plan.levels
    ]
    return [(level, pair) for level, pair in pairs if set(pair) <= judge.made.scored.keys()]


def _better(first: str, second: str) -> _Check:
    return _all(better, [(first, second)])


def _all(word: Callable[[Difference], str], pairs: list[tuple[str, str]]) -> _Check:
    def check(judge: Judge, where: str, how: str) -> tuple[str, str]:
        found = [judge.against(*pair, where, how) for pair in pairs]
        return all_of(map(word, found)), _evidence(pairs, found)

    return check


def _some(pairs: list[tuple[str, str]]) -> _Check:
    def check(judge: Judge, where: str, how: str) -> tuple[str, str]:
        found = [judge.against(*pair, where, how) for pair in pairs]
        return some_of([better(each) for each in found]), _evidence(pairs, found)

    return check


def _evidence(pairs: list[tuple[str, str]], found: list[Difference]) -> str:
    return "; ".join(
        f"{first} and {second}: {each.text()}"
        for (first, second), each in zip(pairs, found, strict=True)
    )
