"""chrF and chrF++ (Popović, 2015 and 2017), counted and summed as sacreBLEU does."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear.errors import HopefearError
from hopefear.metrics.classification import Scores, _plain
from hopefear.metrics.lists.base import Counts, columns_of, ratio
from hopefear.metrics.lists.bleu import signed
from hopefear.metrics.lists.chrf_counts import chrf_counts
from hopefear.metrics.lists.lines import Lines
from hopefear.metrics.lists.text import TextMetric


@dataclass(frozen=True)
class Chrf(TextMetric):
    """F-measure of character n-grams, and of word n-grams where asked for.

    ``chrF = (1 + beta**2) P R / (beta**2 P + R)``, P and R means over the orders

    Parameters
    ----------
    char_order : int
        Longest n-gram of characters; white space is left out.
    word_order : int
        Longest n-gram of words: 0 is chrF, 2 is chrF++.
    beta : int
        How many times as much recall matters as precision.
    lowercase : bool
        Ignore case.

    Notes
    -----
    With several references the one of the highest sentence score counts.

    Examples
    --------
    >>> chrf = Chrf(char_order=2)
    >>> counts = chrf.counts(["abc", "abd"], [["abc"]] * 2)
    >>> counts.tolist()
    [[3, 3, 3, 2, 2, 2], [3, 3, 2, 2, 2, 1]]
    >>> chrf.costs(counts).round(3).tolist()
    [0.0, 0.417]
    """

    name: ClassVar[str] = "chrf"
    main: ClassVar[str] = "chrf"
    higher: ClassVar[bool] = True

    char_order: int = 6
    word_order: int = 0
    beta: int = 2
    lowercase: bool = False

    def __post_init__(self) -> None:
        if self.char_order < 1 or self.word_order < 0 or self.beta < 1:
            raise HopefearError(
                f"chrf with char_order={self.char_order}, word_order={self.word_order}, "
                f"beta={self.beta}: give at least 1, 0 and 1"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        kinds = [f"char_{n + 1}" for n in range(self.char_order)]
        kinds += [f"word_{n + 1}" for n in range(self.word_order)]
        return tuple(f"{what}_{kind}" for kind in kinds for what in ("ours", "gold", "matched"))

    def costs(self, counts: ArrayLike) -> NDArray[np.float64]:
        """One minus sentence chrF."""
        return np.maximum(0.0, 1.0 - self._value(columns_of(counts, self)))

    def scores(self, sums: ArrayLike) -> Scores:
        return _plain({"chrf": 100 * self._value(columns_of(sums, self))})

    def signature(self, n_references: int = 1) -> str:
        prefix = f"chrF{self.beta}" + "+" * self.word_order
        return signed(prefix, _scorer(*self.parameters().values()), n_references)

    def _value(self, rows: Any) -> Any:
        """chrF between 0 and 1 of counts with their columns first."""
        precision = recall = orders = np.zeros(np.shape(rows)[1:])
        for i in range(0, len(rows), 3):
            ours, gold, hits = rows[i : i + 3]
            # Orders that one side is too short for are left out of both means.
            met = (ours > 0) & (gold > 0)
            precision = precision + np.where(met, ratio(hits, ours), 0.0)
            recall = recall + np.where(met, ratio(hits, gold), 0.0)
            orders = orders + met
        precision, recall = ratio(precision, orders), ratio(recall, orders)
        factor = self.beta**2
        return ratio((1 + factor) * precision * recall, factor * precision + recall)

    def line_counts(
        self, ours: Lines, which: np.ndarray, gold: Lines, starts: np.ndarray
    ) -> Counts:
        if self.lowercase:
            ours, gold = ours.lowered(), gold.lowered()
        orders = self.char_order, self.word_order
        return chrf_counts(ours, gold, which, starts, *orders, self.beta)


@functools.cache
def _scorer(char_order: int, word_order: int, beta: int, lowercase: bool) -> Any:
    from sacrebleu.metrics import CHRF

    return CHRF(char_order=char_order, word_order=word_order, beta=beta, lowercase=lowercase)
