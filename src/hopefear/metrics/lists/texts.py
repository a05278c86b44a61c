"""Metrics of texts counted in Python: chrF, TER, error rates, and the F-measure of words.

chrF (Popović, 2015 and 2017) and TER (Snover et al., 2006) are sacreBLEU's own statistics (Post,
2018). Uses of sacreBLEU's private functions are in `_prepared` and `_row`.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear.errors import HopefearError
from hopefear.metrics.base import FMeasure, ListMetric, Scores, Statistics, plain, ratio

References = Sequence[Sequence[str]]


def grouped(
    references: References, outputs: Sequence[str]
) -> tuple[NDArray[np.int64], list[Sequence[str]]]:
    """Returns the set of references of each candidate, and the sets.

    Neighbours with equal references share a set.

    Examples
    --------
    >>> grouped([["a"], ["a"], ["b", "c"]], ["x", "y", "z"])
    (array([0, 0, 1]), [['a'], ['b', 'c']])
    """
    if len(references) != len(outputs):
        raise HopefearError(
            f"{len(outputs)} texts and {len(references)} sets of references do not pair up; give "
            "as many of both"
        )
    groups: list[int] = []
    sets: list[Sequence[str]] = []
    for i, shared in enumerate(references):
        if not sets or (shared is not sets[-1] and shared != sets[-1]):
            if isinstance(shared, str):
                raise HopefearError(
                    f"references of candidate {i} are one string, {shared[:40]!r}; give a list of "
                    "strings, even if it has one"
                )
            if len(shared) == 0:
                raise HopefearError(
                    f"candidate {i} has no reference; give at least one, or a cost instead"
                )
            sets.append(shared)
        groups.append(len(sets) - 1)
    return np.array(groups, np.int64), sets


@dataclass(frozen=True)
class TextMetric(ListMetric):
    """Metric that counts candidates from their texts and those of their references."""

    def statistics(self, references: References, outputs: Sequence[str]) -> Statistics:
        """Returns the statistics of candidates, each with its own references.

        Neighbours with equal references share the work on them.
        """
        groups, sets = grouped(references, outputs)
        rows: list[Sequence[float]] = []
        last, prepared = -1, None
        for text, i in zip(outputs, groups.tolist(), strict=True):
            if i != last:
                prepared, last = self._prepared(sets[i]), i
            rows.append(self._row(text, prepared))
        return np.array(rows or np.zeros((0, len(self.columns)), np.int64))

    @abstractmethod
    def _prepared(self, references: Sequence[str]) -> Any:
        """Prepares references, once for all candidates that share them."""

    @abstractmethod
    def _row(self, text: str, prepared: Any) -> Sequence[float]:
        """Returns the statistics of one candidate."""


# A table of edits of more cells would take gigabytes.
_LARGEST = 1 << 27


@dataclass(frozen=True)
class _SacrebleuMetric(TextMetric):
    """Metric whose statistics are those of a scorer of sacreBLEU."""

    @property
    @abstractmethod
    def scorer(self) -> Any:
        """The scorer."""

    def _prepared(self, references: Sequence[str]) -> tuple[str, ...]:
        return tuple(references)

    def _row(self, text: str, prepared: tuple[str, ...]) -> Sequence[float]:
        return _row(self.scorer, prepared, text)


@functools.lru_cache(maxsize=1 << 12)
def _prepared(scorer: Any, references: tuple[str, ...]) -> Any:
    return scorer._extract_reference_info([scorer._preprocess_segment(line) for line in references])


@functools.lru_cache(maxsize=1 << 17)  # rounds of tuning read the lists of earlier ones again
def _row(scorer: Any, references: tuple[str, ...], text: str) -> tuple[float, ...]:
    prepared = _prepared(scorer, references)
    return tuple(scorer._compute_segment_statistics(scorer._preprocess_segment(text), prepared))


def signed(prefix: str, scorer: Any, n_references: int) -> str:
    """Returns the signature that sacreBLEU prints beside a score."""
    scorer.num_refs = n_references
    return f"{prefix}|{scorer.get_signature()}"


@dataclass(frozen=True)
class Chrf(_SacrebleuMetric):
    """F-measure of character n-grams, and optionally of word n-grams.

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
    >>> statistics = chrf.statistics([["abc"]] * 2, ["abc", "abd"])
    >>> statistics.tolist()
    [[3, 3, 3, 2, 2, 2], [3, 3, 2, 2, 2, 1]]
    >>> chrf.costs(statistics).round(3).tolist()
    [0.0, 0.417]
    """

    name: ClassVar[str] = "chrf"
    main: ClassVar[str] = "chrf"

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
        return tuple(f"{side}_{kind}" for kind in kinds for side in ("ours", "gold", "matched"))

    @property
    def scorer(self) -> Any:
        return _chrf(**self.parameters())

    def costs(self, statistics: ArrayLike) -> NDArray[np.float64]:
        """One minus sentence chrF."""
        return np.maximum(0.0, 1.0 - self._value(self.by_column(statistics)))

    def scores(self, sums: ArrayLike) -> Scores:
        return plain({"chrf": 100 * self._value(self.by_column(sums))})

    def signature_for(self, n_references: int) -> str:
        return signed(f"chrF{self.beta}" + "+" * self.word_order, self.scorer, n_references)

    def _value(self, rows: Any) -> Any:
        """chrF between 0 and 1 of statistics with their columns first."""
        precision = recall = orders = np.zeros(np.shape(rows)[1:])
        for i in range(0, len(rows), 3):
            predicted, gold, hits = rows[i : i + 3]
            # Orders that one side is too short for are left out of both means.
            long_enough = (predicted > 0) & (gold > 0)
            precision = precision + np.where(long_enough, ratio(hits, predicted), 0.0)
            recall = recall + np.where(long_enough, ratio(hits, gold), 0.0)
            orders = orders + long_enough
        precision, recall = ratio(precision, orders), ratio(recall, orders)
        factor = self.beta**2
        return ratio((1 + factor) * precision * recall, factor * precision + recall)


@functools.cache
def _chrf(**parameters: Any) -> Any:
    from sacrebleu.metrics import CHRF

    return CHRF(**parameters)


@dataclass(frozen=True)
class Ter(_SacrebleuMetric):
    """Translation edit rate, by sacreBLEU: as WER, but a phrase may move for one edit.

    ``TER = (insertions + deletions + substitutions + moves) / words of the reference``

    Parameters
    ----------
    lowercase : bool
        Ignore case, as Tercom does.
    normalized : bool
        Split punctuation off and mend entities first.

    Notes
    -----
    With several references the edits are those of the closest and the length is the mean, so
    statistics are not always whole. A candidate and a reference may have 2**27 pairs of words.

    Examples
    --------
    >>> Ter().statistics([["a b c"]], ["c a b"]).tolist()
    [[1, 3]]
    """

    name: ClassVar[str] = "ter"
    main: ClassVar[str] = "ter"
    higher: ClassVar[bool] = False

    lowercase: bool = True
    normalized: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return ("edits", "reference_length")

    @property
    def scorer(self) -> Any:
        return _ter(self.lowercase, self.normalized)

    def costs(self, statistics: ArrayLike) -> NDArray[np.float64]:
        """Edits for each word of the reference; above 1 where ours is much too long."""
        edits, length = self.by_column(statistics)
        return np.where(length > 0, ratio(edits, length), edits > 0)

    def scores(self, sums: ArrayLike) -> Scores:
        return plain({"ter": 100 * self.costs(sums)})

    def signature_for(self, n_references: int) -> str:
        return signed("TER", self.scorer, n_references)

    def _row(self, text: str, prepared: tuple[str, ...]) -> Sequence[float]:
        sizes = len(text.split()), max(len(line.split()) for line in prepared)
        if (sizes[0] + 1) * (sizes[1] + 1) > _LARGEST:
            raise HopefearError(
                f"ter of a candidate of {sizes[0]} words and a reference of {sizes[1]}: the "
                f"product may be at most {_LARGEST}; cut them into sentences"
            )
        edits, length = super()._row(text, prepared)
        return edits, length if length % 1.0 else int(length)


@functools.cache
def _ter(lowercase: bool, normalized: bool) -> Any:
    from sacrebleu.metrics import TER

    return TER(case_sensitive=not lowercase, normalized=normalized)


@dataclass(frozen=True)
class _ErrorRate(TextMetric):
    """Insertions, deletions and substitutions for each unit of the reference."""

    higher: ClassVar[bool] = False

    lowercase: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return ("edits", "reference_length")

    def costs(self, statistics: ArrayLike) -> NDArray[np.float64]:
        """Edits for each unit of the reference; above 1 where ours is much too long."""
        edits, length = self.by_column(statistics)
        return edits / np.maximum(length, 1)

    def scores(self, sums: ArrayLike) -> Scores:
        edits, length = self.by_column(sums)
        return plain({self.main: 100.0 * edits / np.maximum(length, 1)})

    @abstractmethod
    def _units(self, text: str) -> Sequence[str]:
        """Returns what is inserted, deleted and substituted."""

    def _prepared(self, references: Sequence[str]) -> tuple[Any, list[Sequence[str]]]:
        from rapidfuzz.distance import Levenshtein

        return Levenshtein.distance, [self._cut(line) for line in references]

    def _row(self, text: str, prepared: tuple[Any, list[Sequence[str]]]) -> Sequence[int]:
        distance, references = prepared
        predicted = self._cut(text)
        rows: list[tuple[int, int]] = [
            (distance(predicted, gold), len(gold)) for gold in references
        ]
        return min(rows, key=lambda row: row[0] / max(row[1], 1))

    def _cut(self, text: str) -> Sequence[str]:
        return self._units(text.lower() if self.lowercase else text)


@dataclass(frozen=True)
class WordErrors(_ErrorRate):
    """Word error rate; words are what white space separates.

    ``WER = (insertions + deletions + substitutions) / words of the reference``

    Parameters
    ----------
    lowercase : bool
        Ignore case.

    Notes
    -----
    With several references the one of the lowest rate counts. A reference without words counts
    as one of one word.

    Examples
    --------
    >>> wer = WordErrors()
    >>> statistics = wer.statistics([["a b d"]] * 2, ["a b c", "a c"])
    >>> statistics.tolist(), wer.scores(statistics.sum(axis=0))
    ([[1, 3], [2, 3]], {'wer': 50.0})
    """

    name: ClassVar[str] = "wer"
    main: ClassVar[str] = "wer"

    def _units(self, text: str) -> Sequence[str]:
        return text.split()


@dataclass(frozen=True)
class CharacterErrors(_ErrorRate):
    """Edit distance in characters, for each character of the reference.

    ``CER = (insertions + deletions + substitutions) / characters of the reference``

    Parameters
    ----------
    lowercase : bool
        Ignore case.

    Notes
    -----
    White space at the ends is left out. Otherwise as `WordErrors`.

    Examples
    --------
    >>> CharacterErrors().statistics([["rope"]], ["hope"]).tolist()
    [[1, 4]]
    """

    name: ClassVar[str] = "edit"
    main: ClassVar[str] = "cer"

    def _units(self, text: str) -> Sequence[str]:
        return text.strip()


@dataclass(frozen=True)
class WordF1(FMeasure, TextMetric):
    """F-measure of the words of a candidate and its reference, in any order.

    ``F = 2 matched / (gold + ours)``, words counted as often as both have them

    Parameters
    ----------
    lowercase : bool
        Ignore case.

    Notes
    -----
    Words are what white space separates. With several references the one of the highest F counts.
    Scores are of summed counts (micro), not means of sentences as for SQuAD.

    Examples
    --------
    >>> f1 = WordF1()
    >>> statistics = f1.statistics([["the cat sat"]] * 2, ["the cat", "a dog ran"])
    >>> statistics.tolist(), f1.costs(statistics).round(3).tolist()
    ([[2, 3, 2], [0, 3, 3]], [0.2, 1.0])
    """

    name: ClassVar[str] = "f1"

    lowercase: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return ("matched", "gold", "ours")

    def _prepared(self, references: Sequence[str]) -> list[Counter[str]]:
        return [self._bag(line) for line in references]

    def _row(self, text: str, prepared: list[Counter[str]]) -> Sequence[int]:
        bag = self._bag(text)
        rows = [((bag & gold).total(), gold.total(), bag.total()) for gold in prepared]
        return rows[0] if len(rows) == 1 else rows[int(np.argmin(self.costs(rows)))]

    def _bag(self, text: str) -> Counter[str]:
        return Counter((text.lower() if self.lowercase else text).split())
