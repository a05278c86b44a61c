"""PARSEVAL: labelled brackets of parse trees (Black et al., 1991), as EVALB scores them.

Scores are percentages, 0 to 100.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear import __version__
from hopefear.errors import HopefearError
from hopefear.features.brackets import (
    CROSSING,
    ERRORS,
    FEW,
    GOLD,
    MATCHED,
    TAGS,
    TEST,
    UNCROSSED,
    VALID,
    WHOLE,
    WORDS,
    Trees,
    bracket_costs,
    bracket_counts,
    evaluation_counts,
)
from hopefear.metrics.interface import Scores, percent, plain


class Parseval(NamedTuple):
    """Labelled precision, recall and F1 of brackets.

    ``precision = matched / test, recall = matched / gold, f1 = 2 matched / (gold + test)``

    Parameters
    ----------
    tags : {"gold", "own"}
        Whose tags say which words are punctuation and deleted. ``gold``: those of the gold tree,
        for both trees; every pair is scored, and a row has the three counts alone. ``own``: each
        tree's, as EVALB does; pairs whose words then differ are counted as errors and left out, and
        rows hold everything that EVALB prints.

    Notes
    -----
    EVALB with COLLINS.prm: ADVP equals PRT, function tags are cut off, ``TOP``, punctuation and
    traces are deleted. Beyond it, ``S1``, ``ROOT`` and roots without label are not scored.

    Examples
    --------
    >>> from hopefear.data.lists.trees import parse_trees
    >>> gold = parse_trees(["(S1 (S (NP (PRP it)) (VP (VBZ is)) (. .)))"])
    >>> trees = parse_trees(["(S1 (S (NP (PRP it)) (FRAG (VBZ is)) (. .)))"])
    >>> metric = Parseval()
    >>> metric.stats(gold, trees).tolist(), round(metric.scores([2, 3, 3])["f1"], 2)
    ([2, 3, 3], 66.67)
    >>> scores = Parseval(tags="own").scores(Parseval(tags="own").stats(gold, trees))
    >>> scores["exact"], scores["crossing"], scores["tag_accuracy"], scores["errors"]
    (0.0, 0.0, 100.0, 0)
    """

    tags: str = "gold"

    def rows(self, reference: Trees, output: Trees) -> NDArray[np.int64]:
        """Counts of each pair of trees."""
        if self.tags not in ("gold", "own"):
            raise HopefearError(f"tags must be gold or own, not {self.tags!r}")
        if self.tags == "gold":
            return bracket_counts(reference, output, np.arange(len(reference)))
        return evaluation_counts(reference, output)

    def stats(self, reference: Trees, output: Trees) -> NDArray[np.int64]:
        return self.rows(reference, output).sum(axis=0)

    def scores(self, sums: ArrayLike) -> Scores:
        sums = np.moveaxis(np.asarray(sums), -1, 0)
        matched, gold, test = sums[MATCHED], sums[GOLD], sums[TEST]
        scores: dict[str, Any] = {
            "f1": percent(2 * matched, gold + test),
            "precision": percent(matched, test),
            "recall": percent(matched, gold),
        }
        if len(sums) > 3:
            valid = sums[VALID]
            scores |= {
                "exact": percent(sums[WHOLE], valid),
                "crossing": percent(sums[CROSSING], valid) / 100.0,
                "no_crossing": percent(sums[UNCROSSED], valid),
                "two_or_less_crossing": percent(sums[FEW], valid),
                "tag_accuracy": percent(sums[TAGS], sums[WORDS]),
                "sentences": valid,
                "errors": sums[ERRORS],
            }
        return plain(scores)

    def costs(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """``1 - F1`` of each row of counts; 0 where neither tree has a bracket."""
        return bracket_costs(np.asarray(counts))

    @property
    def signature(self) -> str:
        return f"metric:parseval|rules:collins|tags:{self.tags}|v:{__version__}"


def parseval_scores(sums: ArrayLike) -> Scores:
    """F1, precision and recall in percent from summed ``matched, gold, test``; 0 without brackets.

    Examples
    --------
    >>> {name: round(value, 2) for name, value in parseval_scores([8252, 9560, 9644]).items()}
    {'f1': 85.94, 'precision': 85.57, 'recall': 86.32}
    >>> parseval_scores([0, 0, 0])["f1"]
    0.0
    """
    return Parseval().scores(np.asarray(sums)[..., :3])
