"""What Gao, Xiao, Xu and He report (parse reranking, section 22), judged on test lists and folds.

The thresholds were set before any test list was looked at; docs/experiments/vrda-reranking.md says
which checks were put differently after the first run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from hopefear.experiments.claims import (
    AGREES,
    DISAGREES,
    OPEN,
    Difference,
    Verdict,
    all_of,
    better,
    compare_choices,
    not_worse,
)
from hopefear.experiments.frame import Trail, exponent, order_of
from hopefear.experiments.vrda_reranking.plan import (
    AVERAGED,
    GOAL,
    KEPT,
    LOSSES,
    SUPPORT,
    Plan,
    short,
)
from hopefear.experiments.vrda_reranking.runs import TABLE, Measured, at, at_most, sparse, tenth
from hopefear.metrics.lists.fmeasure import Brackets

# Learner, F, precision, recall, thousands of weights.
TABLE_1: tuple[tuple[str, float, float, float, int | None], ...] = (
    ("baseline", 0.8986, 0.8983, 0.8990, None),
    ("perceptron", 0.9164, 0.9191, 0.9143, 950),
    ("tg-hinge", 0.9172, 0.9198, 0.9127, 775),
    ("tg-logistic", 0.9165, 0.9190, 0.9139, 485),
    ("vrda-hinge", 0.9176, 0.9200, 0.9191, 542),
    ("vrda-logistic", 0.9179, 0.9205, 0.9153, 902),
)
# Strength: F and thousands of weights under hinge, and under logistic loss.
TABLE_2: dict[float, tuple[float, int, float, int]] = {
    0.0: (0.9171, 945, 0.9176, 936),
    1e-5: (0.9175, 900, 0.9179, 902),
    2e-5: (0.9175, 860, 0.9180, 857),
    5e-5: (0.9166, 713, 0.9165, 713),
    1e-4: (0.9176, 542, 0.9171, 542),
    2e-4: (0.9165, 374, 0.9170, 373),
    5e-4: (0.9135, 210, 0.9138, 209),
}
WORSE = (5e-4,)  # strengths whose F differs from that of 0 significantly


def compare(first: Sequence[np.ndarray], second: Sequence[np.ndarray], samples: int) -> Difference:
    """Paired bootstrap and approximate randomisation over lists, on F.

    Parameters
    ----------
    first, second, samples
        As in :func:`hopefear.experiments.claims.compare_choices`; counts of brackets.

    Examples
    --------
    >>> good, bad = np.array([[4, 4, 4]] * 50), np.array([[2, 4, 4]] * 50)
    >>> compare([good], [bad, bad], 100).points
    50.0
    """
    return compare_choices(Brackets(), "f1", first, second, samples)


def settled(trail: Trail, room: float) -> int:
    """Samples after which NNZ stays within ``room`` of where it ends.

    >>> samples = np.array([0, 10, 20, 30])
    >>> settled(Trail(0.0, samples, np.array([0, 90, 101, 100]), samples), 5.0)
    20
    """
    away = np.flatnonzero(np.abs(trail.nnz - trail.nnz[-1]) > room)
    return int(trail.samples[min(away[-1] + 1, trail.samples.size - 1)]) if away.size else 0


PLACES = ("test", "folds")
MARGIN = 0.5  # points of F within which two models count as equally good
as_good = partial(not_worse, margin=MARGIN)
SAME = 0.01  # share by which numbers of mistakes may differ and count as equal
ORDERED = 0.89  # rank correlation from which one number follows another
ROOM = 0.05  # of the perceptron's weights: how near to its end NNZ must stay to have settled


OURS = "our goal: "  # begins claims that are not the paper's


class Judge:
    """Compares choices of one measurement; the same pair is tested once."""

    def __init__(self, made: Measured, plan: Plan) -> None:
        self.made, self.plan = made, plan
        self._found: dict[tuple[str, str, str], Difference] = {}

    def against(self, first: str, second: str, where: str) -> Difference:
        """Two choices on test lists, seeds pooled, or over folds."""
        key = (first, second, where)
        if key not in self._found:
            a, b = (self.made.counts(name, where) for name in (first, second))
            self._found[key] = compare(a, b, self.plan.replicates)
        return self._found[key]

    def votes(self, name: str) -> Difference:
        """The average of a choice against the vote of its predictors, on test lists."""
        key = (name, f"{name} voted", "test")
        if key not in self._found:
            a, b = [s.counts for s in self.made.voters[name]], self.made.votes[name]
            self._found[key] = compare(a, b, self.plan.replicates)
        return self._found[key]

    def to_json(self) -> list[dict[str, Any]]:
        """All that was compared."""
        return [
            {"of": one, "against": two, "where": where, **asdict(found)}
            for (one, two, where), found in self._found.items()
        ]

    def share(self, first: str, second: str, where: str) -> float:
        """Weights of one choice as a share of another's."""
        return self.made.nnz(first, where) / max(1.0, self.made.nnz(second, where))


_Check = Callable[[Judge, str], tuple[str, str]]


def judge(judge: Judge) -> list[Verdict]:
    """All claims."""
    found = [
        Verdict(claim, where, *check(judge, where))
        for claim, check in _checks(judge.plan)
        for where in PLACES
    ]
    return found + [
        Verdict(claim, "training", *check(judge, "training")) for claim, check in _TRAINING
    ]


def _beat_baseline(judge: Judge, where: str) -> tuple[str, str]:
    found = {name: judge.against(name, "baseline", where) for name in TABLE}
    evidence = "; ".join(f"{name}: {f.text()}" for name, f in found.items())
    return all_of(map(better, found.values())), evidence


def _as_perceptron(name: str) -> _Check:
    def check(judge: Judge, where: str) -> tuple[str, str]:
        found = judge.against(name, "perceptron", where)
        return as_good(found), found.text()

    return check


def _better_than_perceptron(judge: Judge, where: str) -> tuple[str, str]:
    found = {name: judge.against(name, "perceptron", where) for name in TABLE[1:]}
    evidence = "; ".join(f"{name}: {f.text()}" for name, f in found.items())
    return all_of(map(better, found.values())), evidence


def _sparser(name: str, most: float) -> _Check:
    """Fewer weights at an F as good as the perceptron's."""

    def check(judge: Judge, where: str) -> tuple[str, str]:
        found = judge.against(name, "perceptron", where)
        share = judge.share(name, "perceptron", where)
        few = AGREES if share <= most else DISAGREES
        return all_of([as_good(found), few]), (
            f"{judge.made.nnz(name, where):,.0f} weights, {share:.1%} of the perceptron's; "
            f"F {found.text()}"
        )

    return check


def levels(judge: Judge, loss: str, where: str) -> list[tuple[int, Difference]]:
    """VRDA against TG, each the best with at most so many weights."""
    found = []
    for level in judge.plan.levels:
        ours, theirs = (at_most(f"{rule}-{loss}", level) for rule in ("vrda", "tg"))
        if judge.made.has(ours, where) and judge.made.has(theirs, where):
            found.append((level, judge.against(ours, theirs, where)))
    return found


def _ahead_of_tg(loss: str, dense: bool) -> _Check:
    def check(judge: Judge, where: str) -> tuple[str, str]:
        limit = judge.plan.sparse_levels
        found = [(n, f) for n, f in levels(judge, loss, where) if (n > limit) == dense]
        evidence = "; ".join(f"≤ {n:,}: {f.text()}" for n, f in found)
        words = (as_good(f) if dense else better(f) for _, f in found)
        return (all_of(words), evidence) if found else (OPEN, "no such models")

    return check


def alike(made: Measured, plan: Plan, loss: str, l1: float) -> float:
    """Our λ that leaves about the share of weights that this λ leaves in the paper.

    The weakest of Table 2 that leaves at most that share. Sums of directions are compared with
    λ times their number, so that the same λ prunes more where more is learnt from.
    """
    column = 1 if loss == "hinge" else 3
    share = TABLE_2[l1][column] / TABLE_2[0.0][column]
    free = made.nnz(at(loss, 0.0))
    found = [ours for ours in plan.sweep if made.nnz(at(loss, ours)) <= share * free]
    return min(found, default=plan.sweep[-1])


def _as_unregularised(loss: str, l1: float) -> _Check:
    def check(judge: Judge, where: str) -> tuple[str, str]:
        ours = alike(judge.made, judge.plan, loss, l1)
        first, second = at(loss, ours), at(loss, 0.0)
        if not (judge.made.has(first, where) and judge.made.has(second, where)):
            return OPEN, f"λ {short(ours)} was not run here"
        found = judge.against(first, second, where)
        share = judge.share(first, second, where)
        fewer = AGREES if share < 1.0 else DISAGREES
        return all_of([as_good(found), fewer]), (
            f"our λ {short(ours)}, {share:.0%} of the weights; F {found.text()}"
        )

    return check


def _strong_is_worse(loss: str, l1: float) -> _Check:
    def check(judge: Judge, where: str) -> tuple[str, str]:
        ours = alike(judge.made, judge.plan, loss, l1)
        first, second = at(loss, 0.0), at(loss, ours)
        if not (judge.made.has(first, where) and judge.made.has(second, where)):
            return OPEN, f"λ {short(ours)} was not run here"
        found = judge.against(first, second, where)
        return better(found), f"our λ {short(ours)}; {found.text()}"

    return check


def _falls_with_strength(judge: Judge, where: str) -> tuple[str, str]:
    """At the same rate and number of passes, mean over seeds."""
    plan, words, parts = judge.plan, [], []
    for loss in LOSSES:
        key = f"vrda-{loss}"
        fixed = {k: v for k, v in judge.made.choices[key].params.items() if k != "l1"}
        for kept in (SUPPORT, AVERAGED):
            counts = [
                next(
                    t.nnz
                    for t in judge.made.trials[key]
                    if t.params == {**fixed, "l1": l1}
                    and (t.passes, t.kept) == (plan.marks[-1], kept)
                )
                for l1 in plan.sweep
            ]
            words.append(_follows(-order_of(plan.sweep, counts)))
            parts.append(f"{loss}, {KEPT[kept]}: " + ", ".join(f"{n:,.0f}" for n in counts))
    return all_of(words), f"after {plan.marks[-1]} passes; " + "; ".join(parts)


def _follows(correlation: float) -> str:
    return AGREES if correlation >= ORDERED else DISAGREES if correlation <= 0.0 else OPEN


def _ends_sparser(judge: Judge, where: str) -> tuple[str, str]:
    return _by_strength(judge, lambda t: float(t.nnz[-1]), -1.0, "weights at the end")


def _settles_sooner(judge: Judge, where: str) -> tuple[str, str]:
    room = ROOM * float(judge.made.trails["perceptron"][0].nnz[-1])
    return _by_strength(judge, lambda t: float(settled(t, room)), -1.0, "samples until settled")


def _more_mistakes(judge: Judge, where: str) -> tuple[str, str]:
    return _by_strength(judge, lambda t: float(t.mistakes[-1]), 1.0, "mistakes in all passes")


def _by_strength(
    judge: Judge, measure: Callable[[Trail], float], sign: float, what: str
) -> tuple[str, str]:
    words, parts = [], []
    for loss in LOSSES:
        trails = judge.made.trails[loss]
        values = [measure(t) for t in trails]
        words.append(_follows(sign * order_of([t.strength for t in trails], values)))
        shown = ", ".join(
            f"λ {short(t.strength)}: {v:,.0f}" for t, v in zip(trails, values, strict=True)
        )
        parts.append(f"{loss}: {shown}")
    return all_of(words), f"{what}; " + "; ".join(parts)


def first_pass(trail: Trail, n: int) -> int:
    """Mistakes in the first pass."""
    return int(trail.mistakes[np.searchsorted(trail.samples, n)])


def _no_more_mistakes(loss: str) -> _Check:
    def check(judge: Judge, where: str) -> tuple[str, str]:
        n = visits(judge.made, judge.plan)
        ours = first_pass(judge.made.trails[loss][0], n)
        theirs = first_pass(judge.made.trails["perceptron"][0], n)
        change = ours / max(1, theirs) - 1.0
        word = AGREES if change <= 0.0 else DISAGREES if change > SAME else OPEN
        evidence = f"{ours:,} mistakes in the first pass, perceptron {theirs:,} ({change:+.1%})"
        if loss == "hinge":
            evidence += "; but for ties they are the same learner, as λ = 0 leaves a multiple "
            evidence += "of the perceptron's weights"
            word = AGREES if change <= SAME else word
        return word, evidence

    return check


def visits(made: Measured, plan: Plan) -> int:
    """Lists that a pass learns from; those without a choice are left out."""
    return int(made.trails["perceptron"][0].samples[-1]) // plan.trail_passes


def _sublinear(passes: bool) -> _Check:
    """Within the first pass, or from pass to pass."""

    def check(judge: Judge, where: str) -> tuple[str, str]:
        n, words, parts = visits(judge.made, judge.plan), [], []
        for name, (trail, *_) in judge.made.trails.items():
            b = exponent(trail, n)
            ends = n * np.arange(judge.plan.trail_passes + 1)
            a_pass = np.diff(trail.mistakes[np.searchsorted(trail.samples, ends)])
            title = name if name == "perceptron" else f"VRDA {name}, λ 0"
            if passes:
                words.append(AGREES if a_pass[-1] < 0.9 * a_pass[0] else DISAGREES)
                parts.append(f"{title}: {a_pass[0]:,} in the first, {a_pass[-1]:,} in the last")
            else:
                words.append(AGREES if b < 0.95 else DISAGREES if b >= 1.0 else OPEN)
                parts.append(f"{title}: like samples^{b:.2f}, {a_pass[0]:,} of {n:,} lists")
        return all_of(words), "; ".join(parts)

    return check


def _checks(plan: Plan) -> list[tuple[str, _Check]]:
    made: list[tuple[str, _Check]] = [
        ("every trained model is better than the baseline", _beat_baseline),
        ("VRDA and TG are better than the perceptron", _better_than_perceptron),
    ]
    titles = {key: plan.spec(key).title for key in TABLE}
    for key in TABLE[1:]:
        made.append((f"{titles[key]} is as good as the perceptron", _as_perceptron(key)))
    for loss in LOSSES:
        key = f"vrda-{loss}"
        less = f"{titles[key]} is as good as the perceptron with fewer weights"
        made.append((less, _sparser(sparse(key), 1.0)))
    for naming, says in (
        (sparse, f"where its dev F is no worse, {GOAL:.0%} of its weights are enough"),
        (tenth, f"the best with {GOAL:.0%} of its weights is as good"),
    ):
        for spec in plan.voted:
            goal = f"{OURS}{spec.title} beside the perceptron, {says}"
            made.append((goal, _sparser(naming(spec.key), GOAL)))
    for loss in LOSSES:
        limit = f"{plan.sparse_levels:,}"
        made.append(
            (
                f"{loss}: sparse (≤ {limit} weights), VRDA is better than TG",
                _ahead_of_tg(loss, False),
            )
        )
        made.append((f"{loss}: with more weights, VRDA is as good as TG", _ahead_of_tg(loss, True)))
    for loss in LOSSES:
        for l1, check in ((1e-4, _as_unregularised), (5e-4, _strong_is_worse)):
            says = "is worse than λ 0" if l1 in WORSE else "is as good as λ 0, and sparser"
            made.append((f"{loss}: a λ like the paper's {short(l1)} {says}", check(loss, l1)))
    return made


_TRAINING: list[tuple[str, _Check]] = [
    ("more λ, fewer weights (Table 2)", _falls_with_strength),
    ("more λ, fewer weights at the end of training (Figure 5)", _ends_sparser),
    ("more λ, NNZ settles sooner (Figure 5)", _settles_sooner),
    ("mistakes grow more slowly than samples in the first pass (Figure 6)", _sublinear(False)),
    ("mistakes grow more slowly than samples from pass to pass (Figure 6)", _sublinear(True)),
    ("λ = 0 makes no more mistakes than the perceptron (hinge)", _no_more_mistakes("hinge")),
    ("λ = 0 makes no more mistakes than the perceptron (logistic)", _no_more_mistakes("logistic")),
    ("more λ, more mistakes (Figure 6)", _more_mistakes),
]
