"""BLEU (Papineni et al., 2002), counted and summed as sacreBLEU does (Post, 2018)."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear.errors import HopefearError
from hopefear.metrics.classification import Scores, _plain
from hopefear.metrics.lists.base import Counts, columns_of, ratio
from hopefear.metrics.lists.bleu_counts import COLUMNS, ORDERS, BleuCounts
from hopefear.metrics.lists.lines import Lines
from hopefear.metrics.lists.text import TextMetric

# The value each smoothing uses where none is given; None where it needs none.
SMOOTHINGS: dict[str, float | None] = {
    "none": None,
    "floor": 0.1,
    "add-k": 1.0,
    "exp": None,
    "add-one": None,
}


@dataclass(frozen=True)
class Bleu(TextMetric):
    """Matched n-grams of one to four words, with a penalty for brevity.

    ``BLEU = min(1, exp(1 - r / c)) * (p1 p2 p3 p4) ** (1 / 4)``

    Parameters
    ----------
    smoothing : {"add-one", "none", "floor", "add-k", "exp"}
        What a sentence without matches of some order gets, in costs only. ``add-one`` adds 1 to
        matches and totals of the orders above 1 (Lin and Och, 2004); the others are sacreBLEU's.
    value : float, optional
        What ``floor`` counts for no match (0.1) or ``add-k`` adds (1). Larger brings the costs of
        poor sentences closer together.
    tokenize : str
        How sacreBLEU splits text: ``13a``, ``intl``, ``zh``, ``char``, or ``none`` for text that
        is split already.
    lowercase : bool
        Ignore case.

    Notes
    -----
    The score of a corpus is sacreBLEU's own, with its own smoothing (``exp``), which matters only
    where a whole corpus has no match of some order. Costs leave out the orders a sentence is too
    short for, as sacreBLEU's sentence scores do.

    References
    ----------
    Chen and Cherry (2014), A systematic comparison of smoothing techniques for sentence-level
    BLEU.

    Examples
    --------
    >>> bleu = Bleu(tokenize="none")
    >>> counts = bleu.counts(["the cat sat", "a cat"], [["the cat sat"]] * 2)
    >>> counts.tolist()
    [[3, 2, 1, 0, 3, 2, 1, 0, 3, 3], [1, 0, 0, 0, 2, 1, 0, 0, 2, 3]]
    >>> bleu.costs(counts).round(3).tolist()
    [0.0, 0.571]
    """

    name: ClassVar[str] = "bleu"
    main: ClassVar[str] = "bleu"
    higher: ClassVar[bool] = True

    smoothing: str = "add-one"
    value: float | None = None
    tokenize: str = "13a"
    lowercase: bool = False

    def __post_init__(self) -> None:
        if self.smoothing not in SMOOTHINGS:
            raise HopefearError(
                f"bleu has no smoothing {self.smoothing!r}; choose one of {', '.join(SMOOTHINGS)}"
            )
        if self.value is not None and SMOOTHINGS[self.smoothing] is None:
            raise HopefearError(
                f"smoothing {self.smoothing} takes no value; leave {self.value:g} out, or use "
                "floor or add-k"
            )
        if self.value is not None and not 0.0 < self.value < np.inf:
            raise HopefearError(f"smoothing value {self.value:g} must be a number above 0")
        _scorer(self.tokenize, self.lowercase)

    @property
    def columns(self) -> tuple[str, ...]:
        return COLUMNS

    def costs(self, counts: ArrayLike) -> NDArray[np.float64]:
        """One minus smoothed sentence BLEU."""
        score = _bleu(columns_of(counts, self), self.smoothing, self.value, effective=True)
        return np.maximum(0.0, 1.0 - score)

    def scores(self, sums: ArrayLike) -> Scores:
        """``bleu``, and what it is made of."""
        rows = columns_of(sums, self)
        length, wanted = rows[-2], rows[-1]
        precision = {
            f"precision_{n + 1}": 100.0 * ratio(rows[n], rows[ORDERS + n]) for n in range(ORDERS)
        }
        return _plain(
            {
                "bleu": _corpus_bleu(rows),
                **precision,
                "brevity_penalty": 100.0 * _brevity(length, wanted),
                "length_ratio": 100.0 * ratio(length, wanted),
            }
        )

    def signature(self, n_references: int = 1) -> str:
        return signed("BLEU", _scorer(self.tokenize, self.lowercase), n_references)

    def line_counts(
        self, ours: Lines, which: np.ndarray, gold: Lines, starts: np.ndarray
    ) -> Counts:
        mine, theirs = self._side(ours).units(), self._side(gold).units()
        return BleuCounts().word_counts(
            *(mine.word_numbers(), mine.word_ptr, which),
            *(theirs.word_numbers(), theirs.word_ptr, starts),
        )

    def _side(self, lines: Lines) -> Lines:
        if self.tokenize != "none":
            return lines.changed(lambda line: " ".join(self.words(line)))
        return lines.lowered() if self.lowercase else lines

    def words(self, text: str) -> list[str]:
        """The words of a line, as they are counted."""
        text = text.lower() if self.lowercase else text
        if self.tokenize == "none":
            return text.split()
        return _scorer(self.tokenize, self.lowercase).tokenizer(text.rstrip()).split()


def signed(prefix: str, scorer: Any, n_references: int) -> str:
    """The signature that sacreBLEU prints beside a score."""
    scorer.num_refs = n_references
    return f"{prefix}|{scorer.get_signature()}"


@functools.cache
def _scorer(tokenize: str, lowercase: bool) -> Any:
    from sacrebleu.metrics import BLEU

    if tokenize not in BLEU.TOKENIZERS:
        raise HopefearError(
            f"bleu has no tokenize {tokenize!r}; choose one of {', '.join(BLEU.TOKENIZERS)}"
        )
    try:
        return BLEU(tokenize=tokenize, lowercase=lowercase)
    except Exception as problem:  # some tokenizers need packages or downloads of their own
        raise HopefearError(
            f"sacreBLEU cannot make its tokenizer {tokenize}: {problem}; choose another, or split "
            "the text beforehand and use none"
        ) from problem


def _corpus_bleu(rows: NDArray[Any]) -> NDArray[np.float64]:
    if rows.ndim > 1:
        return 100.0 * _bleu(rows, "exp", None, effective=False)
    # One sum is what people quote: sacreBLEU's arithmetic, to the last digit.
    from sacrebleu.metrics import BLEU

    *counts, length, wanted = (int(n) for n in rows)
    found = BLEU.compute_bleu(counts[:ORDERS], counts[ORDERS:], length, wanted, smooth_method="exp")
    return np.asarray(found.score)


def _bleu(
    rows: NDArray[Any], smoothing: str, value: float | None, effective: bool
) -> NDArray[np.float64]:
    """BLEU between 0 and 1 of counts with their columns first."""
    hits, totals = rows[:ORDERS].astype(np.float64), rows[ORDERS : 2 * ORDERS].astype(np.float64)
    any_hit = (hits > 0).any(axis=0)
    if value is None:
        value = SMOOTHINGS[smoothing]
    if smoothing in ("add-k", "add-one"):
        hits[1:] += value or 1.0
        totals[1:] += value or 1.0
    missed = hits == 0
    if smoothing == "floor":
        hits[missed] = value or 0.0
    elif smoothing == "exp":
        hits = np.where(missed, 0.5 ** np.cumsum(missed & (totals > 0), axis=0), hits)
    used = np.logical_and.accumulate(totals > 0, axis=0)
    precision = ratio(hits, totals)
    with np.errstate(divide="ignore"):
        logs = np.where(used, np.log(precision), 0.0 if effective else -np.inf)
    orders = np.maximum(used.sum(axis=0), 1) if effective else ORDERS
    score = _brevity(rows[-2], rows[-1]) * np.exp(logs.sum(axis=0) / orders)
    return np.where(any_hit, score, 0.0)


def _brevity(length: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.float64]:
    return np.exp(np.minimum(0.0, 1.0 - ratio(wanted, length, empty=np.inf)))
