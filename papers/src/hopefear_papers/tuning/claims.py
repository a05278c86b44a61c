"""What the slides say of tuners, judged by what was measured on both test sets together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from hopefear_papers.claims import (
    AGREES,
    OPEN,
    Claim,
    Difference,
    Finding,
    Verdict,
    all_of,
    better,
    not_worse,
    p_text,
    says,
    within,
)
from hopefear_papers.tuning.plan import AWAY, CORPORA, TESTS, TOWARD, VAL, choice_key
from hopefear_papers.tuning.runs import Results, Which

FEATURES = {"dense": 15, "extended": 2250}  # of the two feature sets of the slides
SOURCE = "Moses tools on the same lists"


class Peer(NamedTuple):
    """Mean of three seeds (train10k: one), BLEU on val and both tests; CPU seconds."""

    val: float
    test_2016: float
    test_2017: float
    seconds: str


PEERS: dict[str, dict[str, Peer]] = {
    "dense": {
        "start": Peer(39.59, 40.07, 34.90, ""),
        "decoder": Peer(41.11, 40.60, 35.29, ""),
        "mert": Peer(41.49, 40.57, 35.47, "57–63"),
        "kbmira": Peer(41.17, 40.98, 35.72, "2.7–3.2"),
        "pro": Peer(40.72, 40.31, 35.74, "5.2–6.5"),
        "oracle": Peer(60.80, 61.29, 55.17, ""),
    },
    "train": {"kbmira": Peer(40.69, 40.91, 36.16, "28.4")},
    "extended": {"kbmira": Peer(40.69, 40.74, 36.32, "29.5")},
}
# The extended row is that of 10,188 phrase pairs and C = 0.01, both kbmira rows are those of the
# tool with its filter of duplicates corrected.


MARGIN = 0.5  # points of BLEU within which two tuners count as equally good
as_good = partial(not_worse, margin=MARGIN)
alike = partial(within, margin=MARGIN)
FAR = 5.0  # points of BLEU below the oracle that count as far from it
SLOWER = 10.0  # times the CPU seconds of another tuner that count as no longer suitable
SHORTEST = 0.05  # CPU seconds below which times are noise
# Claims that begin so are no words of the slides: what their curves compare, which came without
# numbers, and what others say.
DRAWN, NOT_THEIRS = "drawn, not said: ", "not in the slides: "

Pairs = list[tuple[str, Which, Which]]
NOT_RUN: Finding = OPEN, "not run here"


def text_of(difference: Difference) -> str:
    """In a line, with the p-values of bootstrap and randomisation.

    >>> text_of(Difference(38.0, 38.1, -0.3, 0.1, 0.782, 0.713))
    '38.00 against 38.10 (-0.10 [-0.30, +0.10], p = 0.782, 0.713)'
    """
    first, second = p_text(difference.p_bootstrap), p_text(difference.p_randomisation)
    if first[0] == second[0]:
        second = second[2:]
    scores = f"{difference.first:.2f} against {difference.second:.2f}"
    return f"{scores} ({difference.gap}, p {first}, {second})"


def judge(results: Results) -> list[Verdict]:
    """All claims."""
    return [claim.judged(None, results) for claim in CLAIMS]


def _pairs(results: Results, pairs: Pairs, word: Callable[[Difference], str]) -> Finding:
    """A claim about several pairs, all of which must agree."""
    differences: dict[str, Difference] = {}
    for name, *tuners in pairs:
        if not results.has(*tuners):
            return OPEN, f"{name}: not run here"
        differences[name] = results.against(*tuners)
    evidence = "; ".join(f"{name}: {text_of(one)}" for name, one in differences.items())
    return all_of(map(word, differences.values())), evidence


def _slow(results: Results) -> Finding:
    tuners = [(part, key) for part in ("dense", "many") for key in ("mert", "kbmira")]
    if not results.has(*tuners):
        return NOT_RUN
    seconds = {which: results.of(*which).seconds for which in tuners}
    many = seconds["many", "mert"] / max(1e-9, seconds["many", "kbmira"])
    times = "; ".join(
        f"{key}, {results.features[part]} features: {seconds[part, key]:.1f} CPU s"
        for part, key in tuners
    )
    if min(seconds.values()) < SHORTEST:
        return OPEN, f"too quick to compare: {times}"
    return says(many >= SLOWER), times


def _overfits(results: Results) -> Finding:
    """More features than before: better on the tuning lists, and no better on tests?"""
    many, few = ("many", "mert"), ("dense", "mert")
    if not results.has(many, few):
        return NOT_RUN
    before, after = (results.of(*which).scores(VAL).mean() for which in (few, many))
    gain, difference = float(after - before), results.against(many, few)
    words = [says(gain > 0.0), says(better(difference) != AGREES)]
    return all_of(words), f"val {gain:+.2f}; tests {text_of(difference)}"


def _far_from_oracle(results: Results) -> Iterator[Finding]:
    """Even the tuner that turned out best on a test set, which nobody could have chosen."""
    tuners = [r for part in results.results.values() for r in part.values() if not r.refused]
    for test in TESTS:
        means = [float(r.scores(test).mean()) for r in tuners]
        top, score = tuners[int(np.argmax(means))], max(means)
        oracle, base = (results.fixed[way][test] for way in ("oracle", "start"))
        share = (score - base) / max(1e-9, oracle - base)
        evidence = (
            f"{test}: the best of all is {top.entry.title} ({top.part}) with {score:.2f}; oracle "
            f"{oracle:.2f}; {share:.0%} of the way from untuned weights"
        )
        yield says(oracle - score > FAR), evidence


def _between(first: str, second: str, part: str = "dense") -> Pairs:
    return [(f"{first} − {second}", (part, first), (part, second))]


def _others(corpus: str) -> Pairs:
    ours = ("dense", choice_key("hope", "fear", corpus))
    return [
        (f"{toward}/{away}", ours, ("dense", choice_key(toward, away, corpus)))
        for toward in TOWARD
        for away in AWAY
        if (toward, away) != ("hope", "fear")
    ]


def _corpora(memory: str) -> Pairs:
    first, second = (choice_key("hope", "fear", corpus) for corpus in (memory, "sentence"))
    return [(f"pseudo-corpus {memory}", ("dense", first), ("dense", second))]


def _more_features(*keys: str) -> Pairs:
    return [(key, ("extended", key), ("train", key)) for key in keys]


UNTUNED: Pairs = [(k, ("dense", k), ("fixed", "start")) for k in ("mert", "kbmira", "pro")]
CLAIMS = [
    Claim(f"{DRAWN}few features: each beats untuned weights", _pairs, UNTUNED, better),
    *(
        Claim(f"{DRAWN}few features: {a} is about as good as {b}", _pairs, _between(*tuners), alike)
        for a, b, *tuners in (
            ("MIRA", "MERT", "kbmira", "mert"),
            ("PRO", "MERT", "pro", "mert"),
            ("PRO", "MIRA", "pro", "kbmira"),
        )
    ),
    Claim(
        f"MERT no longer suitable: with hundreds of features it takes {SLOWER:g} times as long as "
        "MIRA, or more",
        _slow,
    ),
    Claim(
        "MERT no longer suitable: with hundreds it gains on the tuning lists and not on tests",
        _overfits,
    ),
    *(
        Claim(
            f"{name} handles many features: as good with them as with few", _pairs, pairs, as_good
        )
        for name, pairs in (
            ("MIRA", _more_features("kbmira", "mira")),
            (f"{DRAWN}PRO", _more_features("pro")),
        )
    ),
    Claim(f"{DRAWN}many features help MIRA", _pairs, _more_features("kbmira", "mira"), better),
    Claim(
        f"{DRAWN}many features: PRO is about as good as MIRA",
        *(_pairs, _between("pro", "kbmira", "extended"), alike),
    ),
    *(
        Claim(
            f"BLEU is not for sentences: a pseudo-corpus (memory {m}) is better",
            *(_pairs, _corpora(m), better),
        )
        for m in CORPORA
        if m != "sentence"
    ),
    *(
        Claim(
            f"{NOT_THEIRS}hope and fear are as good as any choice ({c})",
            *(_pairs, _others(c), as_good),
        )
        for c in CORPORA
    ),
    Claim("still far from reaching the oracles", _far_from_oracle),
    Claim(
        f"{NOT_THEIRS}MERT overfits: MIRA is better on tests",
        *(_pairs, _between("kbmira", "mert"), better),
    ),
]
