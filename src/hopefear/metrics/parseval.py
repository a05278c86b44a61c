"""PARSEVAL: labelled brackets of parse trees (Black et al., 1991), as EVALB scores them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear import __version__
from hopefear.errors import HopefearError
from hopefear.features.brackets import (
    CROSSING,
    ERRORS,
    EXACT,
    FEW,
    TAGS,
    UNCROSSED,
    VALID,
    WORDS,
    BracketTrees,
    bracket_counts,
    evaluation_counts,
)
from hopefear.metrics.base import FMeasure, Scores, percent, plain


@dataclass(frozen=True)
class Parseval(FMeasure):
    """Labelled precision, recall and F1 of brackets.

    ``precision = matched / test, recall = matched / gold, f1 = 2 matched / (gold + test)``

    Parameters
    ----------
    cost : {"f1", "errors"}
        What a parse costs: ``1 - F``, or its wrong and missing brackets,
        ``gold + test - 2 matched``, which weighs long sentences more.

    Notes
    -----
    EVALB with COLLINS.prm: ADVP equals PRT, function tags are cut off, ``TOP``, punctuation and
    traces are deleted. Beyond it, ``S1``, ``ROOT`` and roots without label are not scored. The tags
    of the gold tree say which words of both trees are punctuation and deleted, so every pair is
    scored; `Evalb` uses the tags of each tree.

    Examples
    --------
    >>> from hopefear.data.lists.trees import parse_trees
    >>> gold = parse_trees(["(S1 (S (NP (PRP it)) (VP (VBZ is)) (. .)))"])
    >>> trees = parse_trees(["(S1 (S (NP (PRP it)) (FRAG (VBZ is)) (. .)))"])
    >>> metric = Parseval()
    >>> metric.total(gold, trees).tolist(), round(metric.scores([2, 3, 3])["f1"], 2)
    ([2, 3, 3], 66.67)
    >>> Parseval().costs([[3, 4, 4]]).tolist(), Parseval(cost="errors").costs([[3, 4, 4]]).tolist()
    ([0.25], [2.0])
    """

    name: ClassVar[str] = "parseval"
    made_by: ClassVar[str] = "readers of trees count brackets"
    tags: ClassVar[str] = "gold"

    cost: str = "f1"

    def __post_init__(self) -> None:
        if self.cost not in ("f1", "errors"):
            raise HopefearError(f"parseval has no cost {self.cost!r}; choose f1 or errors")

    @property
    def columns(self) -> tuple[str, ...]:
        return ("matched", "gold", "test")

    def statistics(self, references: Any, outputs: Any) -> NDArray[np.int64]:
        """Returns the counts of each pair of trees."""
        if not isinstance(references, BracketTrees):
            return super().statistics(references, outputs)
        return bracket_counts(references, outputs, np.arange(len(references)))

    def costs(self, statistics: ArrayLike) -> NDArray[np.float64]:
        """``1 - F``, or errors."""
        if self.cost == "f1":
            return super().costs(statistics)
        matched, gold, test = self.by_column(statistics).astype(np.int64)
        return (gold + test - 2 * matched).astype(np.float64)

    def signature_for(self, n_references: int) -> str:
        return f"metric:parseval|rules:collins|tags:{self.tags}|v:{__version__}"


@dataclass(frozen=True)
class Evalb(Parseval):
    """All scores that EVALB prints, by the tags of each tree itself.

    Pairs of which other words remain are counted as errors and left out.

    Examples
    --------
    >>> from hopefear.data.lists.trees import parse_trees
    >>> gold = parse_trees(["(S1 (S (NP (PRP it)) (VP (VBZ is)) (. .)))"])
    >>> trees = parse_trees(["(S1 (S (NP (PRP it)) (FRAG (VBZ is)) (. .)))"])
    >>> scores = Evalb().scores(Evalb().total(gold, trees))
    >>> scores["exact"], scores["crossing"], scores["tag_accuracy"], scores["errors"]
    (0.0, 0.0, 100.0, 0)
    """

    tags: ClassVar[str] = "own"

    @property
    def columns(self) -> tuple[str, ...]:
        brackets = *super().columns, "whole", "crossing", "uncrossed", "few_crossing"
        return *brackets, "tags", "words", "valid", "errors", "empty"

    def statistics(self, references: BracketTrees, outputs: BracketTrees) -> NDArray[np.int64]:
        return evaluation_counts(references, outputs)

    def scores(self, sums: ArrayLike) -> Scores:
        columns = self.by_column(sums)
        valid = columns[VALID]
        return super().scores(sums) | plain(
            {
                "exact": percent(columns[EXACT], valid),
                "crossing": percent(columns[CROSSING], valid) / 100.0,
                "no_crossing": percent(columns[UNCROSSED], valid),
                "two_or_less_crossing": percent(columns[FEW], valid),
                "tag_accuracy": percent(columns[TAGS], columns[WORDS]),
                "sentences": valid,
                "errors": columns[ERRORS],
            }
        )
