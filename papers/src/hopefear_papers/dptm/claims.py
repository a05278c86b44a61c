"""What Gao, Xiao, Xu and He report (German to English, Europarl; BLEU, case ignored), judged.

Thresholds were set before any phrase model was scored on test lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from hopefear_papers.claims import (
    Claim,
    Difference,
    Finding,
    Verdict,
    all_of,
    better,
    not_worse,
    pairwise,
    some_of,
)
from hopefear_papers.dptm.plan import GOAL, LOSSES, TG, at
from hopefear_papers.dptm.runs import DECODER, LINE, MERT, POOLED, RETUNED, Results
from hopefear_papers.frame import at_most

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


def share(results: Results, l1: float) -> float:
    """Weights at a strength, as a share of those without."""
    return results.nnz(at(l1)) / max(1.0, results.nnz(at(0.0)))


def tenth(results: Results) -> float:
    """The least strength that leaves a tenth of the weights or fewer; else the largest."""
    strengths = results.plan.strengths
    return min((l1 for l1 in strengths if share(results, l1) <= GOAL), default=max(strengths))


def few(results: Results) -> float:
    """The strength that leaves about the share of weights at which the paper's BLEU falls."""
    strengths = results.plan.strengths[1:]
    return min(strengths, key=lambda l1: abs(share(results, l1) - WORST_SHARE))


def judge(results: Results) -> list[Verdict]:
    """All claims on both test sets and on their union."""
    places = [(where, where, MERT) for where in results.places] + [(STEADY, POOLED, LINE)]
    return [
        claim.judged(label, results, where, how)
        for claim in _claims(results)
        for label, where, how in places
        # Where the other weights stay, none are tuned anew.
        if not (how == LINE and claim.text.startswith(OURS))
    ]


def _claims(results: Results) -> Iterator[Claim]:
    rules = {"sgd": "SGD", "vrda": "VRDA"}
    both = [(f"vrda-{loss}", f"sgd-{loss}") for loss in LOSSES]
    for rule, title in rules.items():
        text = f"{title}: Bayes risk is better than the baseline"
        yield Claim(text, _better, (f"{rule}-risk", DECODER))
    every = ((f"vrda-{loss}", DECODER) for loss in LOSSES)
    yield Claim("VRDA: every loss is better than the baseline", _better, *every)
    for rule, title in rules.items():
        risk = ((f"{rule}-risk", f"{rule}-{loss}") for loss in LOSSES if loss != "risk")
        log = ((f"{rule}-log", f"{rule}-{loss}") for loss in ("hinge", "logistic"))
        yield Claim(f"{title}: Bayes risk is better than every other loss", _better, *risk)
        yield Claim(f"{title}: log loss is better than hinge and logistic loss", _better, *log)
    yield Claim("VRDA is as good as SGD, with every loss", _pairs, both, as_good)
    yield Claim("VRDA is better than SGD, with some loss", _pairs, both, better, some_of)
    l1, least = tenth(results), few(results)
    yield Claim(
        f"VRDA, Bayes risk: a tenth of the weights (λ {l1:g}, {share(results, l1):.1%}) is as good",
        *(_pairs, [(at(l1), at(0.0))], as_good),
    )
    yield Claim(
        f"VRDA, Bayes risk: as few weights as the paper's largest λ leaves (λ {least:g}, "
        f"{share(results, least):.2%}) are worse than all",
        *(_better, (at(0.0), at(least))),
    )
    sparse = results.plan.sparse_levels
    for tg, rate in TG.items():
        pairs = [pair for level, pair in levels(results, tg) if level <= sparse]
        text = f"with {sparse:,} weights or fewer VRDA is better than TG ({rate})"
        yield Claim(text, _pairs, pairs, better, some_of)
    anew = "dense features tuned anew"
    for rule in ("vrda", "sgd"):
        text = f"{OURS}Bayes risk ({rule.upper()}) is better than {anew}"
        yield Claim(text, _better, (f"{rule}-risk", RETUNED))
    yield Claim(f"{OURS}{anew} are better than the decoder's", _better, (RETUNED, DECODER))


def levels(results: Results, tg: str) -> list[tuple[int, tuple[str, str]]]:
    """Numbers of weights that both VRDA and TG (one of ``TG``) have a choice for."""
    pairs = [
        (level, (at_most("vrda-risk", level), at_most(f"{tg}-risk", level)))
        for level in results.plan.levels
    ]
    return [(level, pair) for level, pair in pairs if set(pair) <= results.scored.keys()]


def _better(results: Results, where: str, how: str, *pairs: tuple[str, str]) -> Finding:
    return _pairs(results, where, how, pairs, better)


def _pairs(
    results: Results,
    where: str,
    how: str,
    pairs: Sequence[tuple[str, str]],
    word: Callable[[Difference], str],
    together: Callable[[Iterable[str]], str] = all_of,
) -> Finding:
    """A claim on several pairs of choices."""
    names = {f"{a} and {b}": results.against(a, b, where, how) for a, b in pairs}
    return pairwise(names, word, together)
