"""Scores of a choice from lists, as numbers and as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from hopefear.metrics.classification import Scores
from hopefear.metrics.lists.base import ListMetric


class Choice(NamedTuple):
    """Scores of one candidate from each list, and 95 % bounds of the main one."""

    scores: Scores
    low: float
    high: float


@dataclass(frozen=True)
class ListScores:
    """What a model chose, beside what the generator put first and what the lists hold.

    Parameters
    ----------
    metric : ListMetric
        Where the scores come from.
    model, baseline, oracle, worst : Choice
        The model's candidates, the generator's 1-best, those of lowest and of highest cost.
    test : dict
        Model against baseline, as `compare_lists` says it.
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
    model: Choice
    baseline: Choice
    oracle: Choice
    worst: Choice
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
        return f"{self.metric.signature(self.n_references)}|{bounds}"

    def as_dict(self) -> dict[str, Any]:
        """Everything by name: ``f1``, ``f1_low``, ``baseline_f1``, ``p_value`` and so on."""
        main = self.metric.main
        found: dict[str, Any] = {}
        for who, choice in self._choices().items():
            found |= {f"{who}{name}": value for name, value in choice.scores.items()}
            found |= {f"{who}{main}_low": choice.low, f"{who}{main}_high": choice.high}
        return found | {
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
        """A table for people."""
        main = self.metric.main
        digits = 4 if main == "cost" else 2  # most scores are percentages, costs often below one
        others = [name for name in self.model.scores if name != main]
        heads = [main, "low", "high", *(others if len(others) < 4 else ())]
        lines = [f"{'':8}" + "".join(f"{head:>11}" for head in heads)]
        shown = ("model", "1-best", "oracle", "worst")
        for title, choice in zip(shown, self._choices().values(), strict=True):
            cells = choice.scores | {"low": choice.low, "high": choice.high}
            lines.append(f"{title:8}" + "".join(f"{cells[head]:11.{digits}f}" for head in heads))
        test, gap = self.test, self.gap_closed
        lines.append(
            f"model - 1-best: {test['difference']:+.{digits}f} "
            f"({test['low']:+.{digits}f} to {test['high']:+.{digits}f}), "
            f"p = {test['p_bootstrap']:.3g} (bootstrap), {test['p_randomisation']:.3g} "
            "(randomisation)"
        )
        closed = "" if gap is None else f"; {gap:.1f} % of the way to the oracle"
        lines.append(
            f"{self.candidates:,} candidates in {self.lists:,} lists: {self.better:,} better, "
            f"{self.worse:,} worse than 1-best{closed}"
        )
        rank = "" if self.oracle_rank is None else f"by the model {self.oracle_rank:.1f}, "
        lines.append(
            f"oracle chosen in {self.oracle_rate:.1f} % "
            f"(1-best {self.baseline_oracle_rate:.1f} %), its mean rank {rank}by the generator "
            f"{self.baseline_oracle_rank:.1f}"
        )
        return "\n".join([*lines, self.signature]) + "\n"

    def _choices(self) -> dict[str, Choice]:
        return {
            "": self.model,
            "baseline_": self.baseline,
            "oracle_": self.oracle,
            "worst_": self.worst,
        }
