"""Error rates: words (WER), characters, and translation edits (TER; Snover et al., 2006)."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear.metrics.classification import Scores, _plain
from hopefear.metrics.lists.base import Counts, columns_of, ratio
from hopefear.metrics.lists.bleu import signed
from hopefear.metrics.lists.lines import Lines
from hopefear.metrics.lists.ter_counts import ter_counts
from hopefear.metrics.lists.text import OneByOne, TextMetric


@dataclass(frozen=True)
class _Edits(OneByOne):
    """Insertions, deletions and substitutions for each unit of the reference."""

    higher: ClassVar[bool] = False

    lowercase: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return ("edits", "reference_length")

    def costs(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Edits for each unit of the reference; above 1 where ours is much too long."""
        edits, length = columns_of(counts, self)
        return edits / np.maximum(length, 1)

    def scores(self, sums: ArrayLike) -> Scores:
        edits, length = columns_of(sums, self)
        return _plain({self.main: 100.0 * edits / np.maximum(length, 1)})

    @abstractmethod
    def _units(self, text: str) -> Sequence[str]:
        """What is inserted, deleted and substituted."""

    def _prepared(self, references: Sequence[str]) -> tuple[Any, list[Sequence[str]]]:
        from rapidfuzz.distance import Levenshtein

        return Levenshtein.distance, [self._cut(line) for line in references]

    def _row(self, text: str, prepared: tuple[Any, list[Sequence[str]]]) -> Iterable[int]:
        distance, references = prepared
        ours = self._cut(text)
        rows: list[tuple[int, int]] = [(distance(ours, gold), len(gold)) for gold in references]
        closest: tuple[int, int] = min(rows, key=lambda row: row[0] / max(row[1], 1))
        return closest

    def _cut(self, text: str) -> Sequence[str]:
        return self._units(text.lower() if self.lowercase else text)


@dataclass(frozen=True)
class WordErrors(_Edits):
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
    >>> counts = wer.counts(["a b c", "a c"], [["a b d"]] * 2)
    >>> counts.tolist(), wer.scores(counts.sum(axis=0))
    ([[1, 3], [2, 3]], {'wer': 50.0})
    """

    name: ClassVar[str] = "wer"
    main: ClassVar[str] = "wer"

    def _units(self, text: str) -> Sequence[str]:
        return text.split()


@dataclass(frozen=True)
class CharacterErrors(_Edits):
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
    >>> CharacterErrors().counts(["hope"], [["rope"]]).tolist()
    [[1, 4]]
    """

    name: ClassVar[str] = "edit"
    main: ClassVar[str] = "cer"

    def _units(self, text: str) -> Sequence[str]:
        return text.strip()


@dataclass(frozen=True)
class Ter(TextMetric):
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
    counts are not always whole. A candidate and a reference may have 2**27 pairs of words.

    Examples
    --------
    >>> Ter().counts(["c a b"], [["a b c"]]).tolist()
    [[1.0, 3.0]]
    """

    name: ClassVar[str] = "ter"
    main: ClassVar[str] = "ter"
    higher: ClassVar[bool] = False
    whole: ClassVar[bool] = False

    lowercase: bool = True
    normalized: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return ("edits", "reference_length")

    def costs(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Edits for each word of the reference; above 1 where ours is much too long."""
        edits, length = columns_of(counts, self)
        return np.where(length > 0, ratio(edits, length), edits > 0)

    def scores(self, sums: ArrayLike) -> Scores:
        return _plain({"ter": 100 * self.costs(sums)})

    def signature(self, n_references: int = 1) -> str:
        return signed("TER", _scorer(self.lowercase, self.normalized), n_references)

    def line_counts(
        self, ours: Lines, which: np.ndarray, gold: Lines, starts: np.ndarray
    ) -> Counts:
        return ter_counts(self._side(ours), self._side(gold), which, starts)

    def _side(self, lines: Lines) -> Lines:
        if self.normalized:
            scorer = _scorer(self.lowercase, True)
            return lines.changed(lambda line: scorer.tokenizer(line.rstrip()))
        return lines.lowered() if self.lowercase else lines


@functools.cache
def _scorer(lowercase: bool, normalized: bool) -> Any:
    from sacrebleu.metrics import TER

    return TER(case_sensitive=not lowercase, normalized=normalized)
