"""F-measures: of bags of words, and of the brackets of parse trees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear.errors import HopefearError
from hopefear.metrics.interface import Scores, percent, plain, ratio
from hopefear.metrics.lists.base import ListMetric, columns_of
from hopefear.metrics.lists.text import OneByOne


@dataclass(frozen=True)
class _FMeasure(ListMetric):
    """``F = 2 matched / (gold + ours)``"""

    main: ClassVar[str] = "f1"
    higher: ClassVar[bool] = True

    def costs(self, counts: ArrayLike) -> NDArray[np.float64]:
        """``1 - F``; 0 where there is nothing to match and nothing was put forward."""
        matched, gold, ours = _wide(counts, self)
        return 1.0 - ratio(2 * matched, gold + ours, empty=1.0)

    def scores(self, sums: ArrayLike) -> Scores:
        matched, gold, ours = columns_of(sums, self)
        return plain(
            {
                "f1": percent(2 * matched, gold + ours),
                "precision": percent(matched, ours),
                "recall": percent(matched, gold),
            }
        )


@dataclass(frozen=True)
class WordF1(_FMeasure, OneByOne):
    """F-measure of the words of a candidate and its reference, in any order.

    ``F = 2 matched / (gold + ours)``, words counted as often as both have them

    Parameters
    ----------
    lowercase : bool
        Ignore case.

    Notes
    -----
    Words are what white space separates. With several references the one of the highest F counts.
    Scores come from summed counts (micro), not from the mean of sentences as for SQuAD.

    Examples
    --------
    >>> f1 = WordF1()
    >>> counts = f1.counts(["the cat", "a dog ran"], [["the cat sat"]] * 2)
    >>> counts.tolist(), f1.costs(counts).round(3).tolist()
    ([[2, 3, 2], [0, 3, 3]], [0.2, 1.0])
    """

    name: ClassVar[str] = "f1"

    lowercase: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return ("matched", "gold", "ours")

    def _prepared(self, references: Sequence[str]) -> list[Counter[str]]:
        return [self._bag(line) for line in references]

    def _row(self, text: str, prepared: list[Counter[str]]) -> Iterable[int]:
        bag = self._bag(text)
        rows = [((bag & gold).total(), gold.total(), bag.total()) for gold in prepared]
        return rows[0] if len(rows) == 1 else rows[int(np.argmin(self.costs(rows)))]

    def _bag(self, text: str) -> Counter[str]:
        return Counter((text.lower() if self.lowercase else text).split())


@dataclass(frozen=True)
class Brackets(_FMeasure):
    """Labelled brackets of parse trees, from counts that readers of trees make.

    ``F = 2 matched / (gold + test)``

    Parameters
    ----------
    cost : {"f1", "errors"}
        What a parse costs: ``1 - F``, or its wrong and missing brackets,
        ``gold + test - 2 matched``, which weighs long sentences more.

    Examples
    --------
    >>> Brackets().costs([[3, 4, 4], [4, 4, 4]]).tolist()
    [0.25, 0.0]
    >>> Brackets(cost="errors").costs([[3, 4, 4], [4, 4, 4]]).tolist()
    [2.0, 0.0]
    """

    name: ClassVar[str] = "parseval"
    made_by: ClassVar[str] = "readers of trees count brackets"

    cost: str = "f1"

    def __post_init__(self) -> None:
        if self.cost not in ("f1", "errors"):
            raise HopefearError(f"parseval has no cost {self.cost!r}; choose f1 or errors")

    @property
    def columns(self) -> tuple[str, ...]:
        return ("matched", "gold", "test")

    def signature_for(self, n_references: int) -> str:
        from hopefear.metrics.parseval import Parseval

        return Parseval().signature

    def costs(self, counts: ArrayLike) -> NDArray[np.float64]:
        """``1 - F``, or errors."""
        if self.cost == "f1":
            return super().costs(counts)
        matched, gold, test = _wide(counts, self)
        return (gold + test - 2 * matched).astype(np.float64)


def _wide(counts: ArrayLike, metric: ListMetric) -> NDArray[np.int64]:
    """Columns in which sums and products have room; counts may be kept in bytes."""
    return columns_of(counts, metric).astype(np.int64)
