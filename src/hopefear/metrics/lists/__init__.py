"""Candidates against references: statistics, costs of each, scores of a choice, how sure they are.

A `ListMetric` counts each candidate once. From the counts come the costs that learners train
on, and, summed over the chosen candidates, the scores that people read: sacreBLEU's for BLEU, chrF
and TER, EVALB's for parses.
"""

from hopefear.metrics.lists.base import GivenCost, ListMetric
from hopefear.metrics.lists.bleu import Bleu
from hopefear.metrics.lists.chrf import Chrf
from hopefear.metrics.lists.edits import CharacterErrors, Ter, WordErrors
from hopefear.metrics.lists.evaluation import ListScores, compare_lists, evaluate_lists
from hopefear.metrics.lists.fmeasure import Brackets, WordF1
from hopefear.metrics.lists.table import LIST_METRICS, metric_named

__all__ = [
    "LIST_METRICS",
    "Bleu",
    "Brackets",
    "CharacterErrors",
    "Chrf",
    "GivenCost",
    "ListMetric",
    "ListScores",
    "Ter",
    "WordErrors",
    "WordF1",
    "compare_lists",
    "evaluate_lists",
    "metric_named",
]
