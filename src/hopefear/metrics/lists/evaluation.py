"""Scores of a choice from lists of candidates, beside the best choice and another choice.

Choices are compared by resampling whole lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear.errors import HopefearError
from hopefear.metrics.base import ListMetric, Scores
from hopefear.metrics.significance import confidence_interval, paired_tests


def checked_starts(starts: ArrayLike, candidates: int) -> NDArray[np.int64]:
    """``starts`` as an array, if it cuts ``candidates`` into lists none of which is empty."""
    bounds = np.asarray(starts, np.int64)
    if bounds.ndim != 1 or len(bounds) < 1 or bounds[0] != 0 or bounds[-1] != candidates:
        raise HopefearError(
            f"starts must run from 0 to the number of candidates, {candidates}; "
            f"they are {bounds.ravel()[:1].tolist()} .. {bounds.ravel()[-1:].tolist()}"
        )
    empty = np.flatnonzero(bounds[1:] <= bounds[:-1])
    if len(empty):
        raise HopefearError(
            f"list {empty[0]} has no candidates, and nothing can be chosen from it; leave it out"
        )
    return bounds


def first_lowest(values: NDArray[np.float64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of the candidate with the lowest value of each list; the first of equals.

    Examples
    --------
    >>> first_lowest(np.array([2.0, 1.0, 1.0, 5.0]), np.array([0, 3, 4])).tolist()
    [1, 3]
    """
    if len(starts) == 1:
        return np.zeros(0, np.int64)
    lowest = np.minimum.reduceat(values, starts[:-1])
    hits = np.flatnonzero(values == np.repeat(lowest, np.diff(starts)))
    return hits[np.searchsorted(hits, starts[:-1])]


def ranks(
    scores: NDArray[np.float64], starts: NDArray[np.int64], chosen: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Rank, from 1, of a candidate of each list by falling score; of equals the first is ahead.

    Examples
    --------
    >>> starts = np.array([0, 3, 5])
    >>> ranks(np.array([1.0, 3.0, 3.0, 0.0, 0.0]), starts, np.array([2, 3])).tolist()
    [2, 1]
    """
    if len(starts) == 1:
        return np.zeros(0, np.int64)
    sizes = np.diff(starts)
    chosen_scores = np.repeat(scores[chosen], sizes)
    earlier = np.arange(len(scores)) < np.repeat(chosen, sizes)
    ahead = (scores > chosen_scores) | ((scores == chosen_scores) & earlier)
    return 1 + np.add.reduceat(ahead.astype(np.int64), starts[:-1])


def numbered(
    positions: ArrayLike, starts: NDArray[np.int64], argument: str = "chosen"
) -> NDArray[np.int64]:
    """Numbers of candidates, from their positions in their lists."""
    indices = np.asarray(positions)
    sizes = np.diff(starts)
    if indices.shape != sizes.shape or indices.dtype.kind not in "iu":
        raise HopefearError(
            f"{argument} has shape {indices.shape} and type {indices.dtype}; give one whole number "
            f"for each of the {len(sizes)} lists, the position of a candidate"
        )
    wrong = np.flatnonzero((indices < 0) | (indices >= sizes))
    if len(wrong):
        i = wrong[0]
        raise HopefearError(
            f"{argument}[{i}] is {indices[i]}, but list {i} has the candidates 0 .. {sizes[i] - 1}"
        )
    return starts[:-1] + indices.astype(np.int64)


def values_of(values: ArrayLike, candidates: int, argument: str) -> NDArray[np.float64]:
    """One number for each candidate, if that is what ``values`` are."""
    numbers: NDArray[Any] = np.asarray(values, np.float64)
    if numbers.shape != (candidates,):
        raise HopefearError(
            f"{argument} has shape {numbers.shape}; give one number for each of {candidates} "
            "candidates"
        )
    wrong = np.flatnonzero(np.isnan(numbers))
    if len(wrong):
        raise HopefearError(f"{argument}[{wrong[0]}] is not a number; give every candidate a value")
    return numbers


def compare_lists(
    metric: ListMetric,
    counts: ArrayLike,
    starts: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    *,
    score: str | None = None,
    samples: int = 1000,
    seed: int = 1,
    n_references: int = 1,
) -> Scores:
    """Is one choice of candidates better than another by more than chance?

    Both are scored on the same resamples of lists (Koehn, 2004), and trade places by coin
    (Noreen, 1989).

    Parameters
    ----------
    metric : ListMetric
        Turns summed counts into scores.
    counts : array [candidates, S]
        Statistics of the candidates.
    starts : int array
        List i has the candidates ``starts[i] .. starts[i + 1] - 1``.
    first, second : int arrays
        Position of the chosen candidate in each list.
    score : str, optional
        Which score; the metric's main one otherwise.
    samples : int
        Resamples and shuffles; more make p steadier.
    seed : int
        Same seed, same result.
    n_references : int
        How many references candidates were compared with, -1 where lists differ; for the signature.

    Returns
    -------
    dict
        ``first``, ``second``, ``difference`` with its 95 % bounds ``low`` and ``high``,
        ``p_bootstrap``, ``p_randomisation`` and ``signature``.

    Examples
    --------
    >>> from hopefear.metrics.lists import WordErrors
    >>> counts = np.array([[0, 4], [2, 4]] * 30)
    >>> starts = np.arange(0, 61, 2)
    >>> result = compare_lists(WordErrors(), counts, starts, [0] * 30, [0] * 10 + [1] * 20)
    >>> round(result["difference"], 1), result["p_bootstrap"] < 0.01
    (-33.3, True)
    """
    rows = _checked(metric, counts)
    starts = checked_starts(starts, len(rows))
    a = rows[numbered(first, starts, "first")]
    b = rows[numbered(second, starts, "second")]
    return _tests(metric, a, b, score or metric.main, samples, seed, n_references)


class ScoredChoice(NamedTuple):
    """Scores of one candidate from each list, 95 % bounds of the main one, and what was counted."""

    scores: Scores
    low: float
    high: float
    rows: NDArray[Any]


@dataclass(frozen=True, repr=False, eq=False)
class ListScores:
    """Scores of a model's choice, beside the first candidates and the best of the lists.

    Parameters
    ----------
    metric : ListMetric
        Source of the scores.
    model, baseline, oracle, worst : Choice
        The model's candidates, the generator's 1-best, those of lowest and of highest cost.
    test : dict
        Model against baseline, as from `compare_lists`.
    oracle_rate, baseline_oracle_rate : float
        Percent of lists where the model, the generator, put a candidate of lowest cost first.
    oracle_rank, baseline_oracle_rank : float
        Mean rank, from 1, of the oracle by the model's scores (None without them) and by the
        generator's.
    better, worse : int
        Lists where the model's candidate costs less, and more, than the generator's.
    lists, candidates : int
        How many there were.
    samples, seed : int
        Resamples behind bounds and p-values.
    n_references : int
        For the signature.
    """

    metric: ListMetric
    model: ScoredChoice
    baseline: ScoredChoice
    oracle: ScoredChoice
    worst: ScoredChoice
    test: Scores
    oracle_rate: float
    baseline_oracle_rate: float
    oracle_rank: float | None
    baseline_oracle_rank: float
    better: int
    worse: int
    lists: int
    candidates: int
    samples: int
    seed: int
    n_references: int = 1

    @property
    def gap_closed(self) -> float | None:
        """Percent of the way from the generator's 1-best to the oracle; None if there is none."""
        name = self.metric.main
        start = self.baseline.scores[name]
        gap = self.oracle.scores[name] - start
        return 100.0 * (self.model.scores[name] - start) / gap if gap else None

    @property
    def signature(self) -> str:
        bounds = f"bounds:bootstrap(n={self.samples},seed={self.seed})"
        return f"{self.metric.signature_for(self.n_references)}|{bounds}"

    def as_dict(self) -> dict[str, Any]:
        """Everything by name: ``f1``, ``f1_low``, ``baseline_f1``, ``p_value`` and so on."""
        main = self.metric.main
        scores: dict[str, Any] = {}
        for prefix, choice in self._choices().items():
            scores |= {f"{prefix}{name}": value for name, value in choice.scores.items()}
            scores |= {f"{prefix}{main}_low": choice.low, f"{prefix}{main}_high": choice.high}
        return scores | {
            "difference": self.test["difference"],
            "difference_low": self.test["low"],
            "difference_high": self.test["high"],
            "p_value": self.test["p_bootstrap"],
            "p_randomisation": self.test["p_randomisation"],
            "gap_closed": self.gap_closed,
            "oracle_rate": self.oracle_rate,
            "baseline_oracle_rate": self.baseline_oracle_rate,
            "oracle_rank": self.oracle_rank,
            "baseline_oracle_rank": self.baseline_oracle_rank,
            "better": self.better,
            "worse": self.worse,
            "lists": self.lists,
            "candidates": self.candidates,
            "metric": self.metric.name,
            "signature": self.signature,
        }

    def text(self) -> str:
        """Returns the scores as a table."""
        heads, rows = self._table()
        lines = [f"{'':8}" + "".join(f"{head:>11}" for head in heads)]
        lines += [f"{row[0]:8}" + "".join(f"{cell:>11}" for cell in row[1:]) for row in rows]
        return "\n".join([*lines, *self._words()]) + "\n"

    def __repr__(self) -> str:
        return self.text().rstrip("\n")

    def _repr_html_(self) -> str:
        heads, rows = self._table()
        lines = "".join(
            f"<tr>{''.join(f'<t{kind}>{escape(cell)}</t{kind}>' for cell in row)}</tr>"
            for kind, row in [("h", ["", *heads]), *(("d", row) for row in rows)]
        )
        return f"<table>{lines}</table>" + "".join(f"<p>{escape(w)}</p>" for w in self._words())

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Names of scores, and for each choice its title and scores."""
        main, digits = self.metric.main, self._digits
        further = [name for name in self.model.scores if name != main]
        heads = [main, "low", "high", *(further if len(further) < 4 else ())]
        rows = []
        titles = ("model", "1-best", "oracle", "worst")
        for title, choice in zip(titles, self._choices().values(), strict=True):
            cells = choice.scores | {"low": choice.low, "high": choice.high}
            rows.append([title, *(f"{cells[head]:.{digits}f}" for head in heads)])
        return heads, rows

    def _words(self) -> list[str]:
        test, gap, digits = self.test, self.gap_closed, self._digits
        closed = "" if gap is None else f"; {gap:.1f} % of the way to the oracle"
        rank = "" if self.oracle_rank is None else f"by the model {self.oracle_rank:.1f}, "
        return [
            f"model - 1-best: {test['difference']:+.{digits}f} "
            f"({test['low']:+.{digits}f} to {test['high']:+.{digits}f}), "
            f"p = {test['p_bootstrap']:.3g} (bootstrap), {test['p_randomisation']:.3g} "
            "(randomisation)",
            f"{self.candidates:,} candidates in {self.lists:,} lists: {self.better:,} better, "
            f"{self.worse:,} worse than 1-best{closed}",
            f"oracle chosen in {self.oracle_rate:.1f} % "
            f"(1-best {self.baseline_oracle_rate:.1f} %), its mean rank {rank}by the generator "
            f"{self.baseline_oracle_rank:.1f}",
            self.signature,
        ]

    @property
    def _digits(self) -> int:
        return 4 if self.metric.main == "cost" else 2  # most are percentages, costs often below one

    def _choices(self) -> dict[str, ScoredChoice]:
        return {
            "": self.model,
            "baseline_": self.baseline,
            "oracle_": self.oracle,
            "worst_": self.worst,
        }


def evaluate_lists(
    metric: ListMetric,
    counts: ArrayLike,
    starts: ArrayLike,
    chosen: ArrayLike,
    costs: ArrayLike | None = None,
    *,
    scores: ArrayLike | None = None,
    model_scores: ArrayLike | None = None,
    n_references: int = 1,
    samples: int = 1000,
    seed: int = 1,
) -> ListScores:
    """Score the candidates a model chose, the generator's own, the best and the worst ones.

    Parameters
    ----------
    metric : ListMetric
        Turns summed counts into scores.
    counts : array [candidates, S]
        Statistics of the candidates.
    starts : int array
        List i has the candidates ``starts[i] .. starts[i + 1] - 1``.
    chosen : int array
        Position of the chosen candidate in each list.
    costs : float array, optional
        Cost of each candidate; ``metric.costs(counts)`` otherwise.
    scores : float array, optional
        What the generator thought of each candidate; more is better. Without them it thought
        best of the first.
    model_scores : float array, optional
        The model's score of each candidate; only the rank of the oracle needs it.
    n_references : int
        References of a list, for the signature; -1 where lists have different numbers.
    samples : int
        Resamples of whole lists behind bounds and p-values; more make them steadier.
    seed : int
        Same seed, same bounds.

    Notes
    -----
    The oracle is the candidate of lowest cost of each list, the first of equals: the usual
    sentence-level oracle. For scores that are no sums over sentences (F, BLEU) another choice
    may score a little higher.

    Examples
    --------
    >>> from hopefear.metrics.lists import WordErrors
    >>> counts = [[1, 4], [0, 4], [1, 4], [2, 4]]
    >>> result = evaluate_lists(WordErrors(), counts, [0, 2, 4], [1, 0], samples=100)
    >>> result.model.scores, result.baseline.scores, result.worst.scores, result.gap_closed
    ({'wer': 12.5}, {'wer': 25.0}, {'wer': 37.5}, 100.0)
    """
    rows = _checked(metric, counts)
    starts = checked_starts(starts, len(rows))
    if len(starts) == 1:
        raise HopefearError(f"no lists to score with {metric.name}; give at least one")
    cost = values_of(metric.costs(rows) if costs is None else costs, len(rows), "costs")
    opinion = None if scores is None else values_of(scores, len(rows), "scores")
    model = numbered(chosen, starts)
    oracle = first_lowest(cost, starts)
    baseline = starts[:-1] if opinion is None else first_lowest(-opinion, starts)
    worst = first_lowest(-cost, starts)
    points = np.zeros(len(rows)) if opinion is None else opinion
    return ListScores(
        metric,
        model=_choice(metric, rows[model], samples, seed),
        baseline=_choice(metric, rows[baseline], samples, seed),
        oracle=_choice(metric, rows[oracle], samples, seed),
        worst=_choice(metric, rows[worst], samples, seed),
        test=_tests(
            *(metric, rows[model], rows[baseline], metric.main, samples, seed, n_references)
        ),
        oracle_rate=100.0 * float(np.mean(cost[model] == cost[oracle])),
        baseline_oracle_rate=100.0 * float(np.mean(cost[baseline] == cost[oracle])),
        oracle_rank=_mean_rank(model_scores, starts, oracle),
        baseline_oracle_rank=float(ranks(points, starts, oracle).mean()),
        better=int(np.sum(cost[model] < cost[baseline])),
        worse=int(np.sum(cost[model] > cost[baseline])),
        lists=len(starts) - 1,
        candidates=len(rows),
        samples=samples,
        seed=seed,
        n_references=n_references,
    )


def _checked(metric: ListMetric, counts: ArrayLike) -> NDArray[Any]:
    return np.moveaxis(metric.by_column(counts), 0, -1)


def _tests(
    metric: ListMetric,
    first: NDArray[Any],
    second: NDArray[Any],
    name: str,
    samples: int,
    seed: int,
    n_references: int,
) -> dict[str, Any]:
    """Tests of two choices; their signature has the number of references, which rows lack."""
    test = dict(paired_tests(metric, first, second, name, samples, seed))
    signature = metric.signature_for(n_references)
    return test | {"signature": str(test["signature"]).replace(metric.signature, signature, 1)}


def _choice(metric: ListMetric, rows: NDArray[Any], samples: int, seed: int) -> ScoredChoice:
    interval = confidence_interval(metric, rows, metric.main, replicates=samples, seed=seed)
    return ScoredChoice(metric.scores(rows.sum(axis=0)), interval.low, interval.high, rows)


def _mean_rank(
    scores: ArrayLike | None, starts: NDArray[Any], oracle: NDArray[Any]
) -> float | None:
    if scores is None:
        return None
    opinions = values_of(scores, int(starts[-1]), "model_scores")
    return float(ranks(opinions, starts, oracle).mean())
