"""Counts first, a number from summed counts second.

A metric is a named tuple with ``rows(reference, output)``, statistics for each example;
``stats(reference, output)``, their sum; ``value(stats)``, scores by name, for one sum ``[S]`` or
for many ``[..., S]`` at once; and ``signature``, which says how the numbers were made. Sums of
parts add up to the sum of the whole, so scores of shards, resamples and swaps need no second look
at the outputs.
"""

from hopefear.metrics.classification import (
    Accuracy,
    Classification,
    Probabilities,
    classification_scores,
    score_names,
)
from hopefear.metrics.significance import (
    Comparison,
    Interval,
    approximate_randomisation,
    confidence_interval,
    paired_bootstrap,
)

__all__ = [
    "Accuracy",
    "Classification",
    "Comparison",
    "Interval",
    "Probabilities",
    "approximate_randomisation",
    "classification_scores",
    "confidence_interval",
    "paired_bootstrap",
    "score_names",
]
