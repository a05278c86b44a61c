"""Counts first, a number from summed counts second.

A metric has ``scores(sums)``, scores by name, for one sum of statistics ``[S]`` or for many
``[..., S]`` at once, and ``signature``, which says how the numbers were made. Statistics come from
``rows(reference, output)``, those of each example, and ``stats(reference, output)``, their sum.
Sums of parts add up to the sum of the whole, so scores of shards, resamples and swaps need no
second look at the outputs.
"""

from hopefear.metrics.calibration import (
    Reliability,
    Temperature,
    best_temperature,
    fit_temperature,
    reliability,
)
from hopefear.metrics.classification import (
    Accuracy,
    Classification,
    Probabilities,
    classification_scores,
    score_names,
)
from hopefear.metrics.dependencies import Dependencies, Trees, compare_trees, tree_errors
from hopefear.metrics.significance import (
    Comparison,
    Interval,
    approximate_randomisation,
    confidence_interval,
    paired_bootstrap,
)
from hopefear.metrics.tagging import (
    ChunkScores,
    Confusion,
    SpanErrors,
    Tagging,
    chunk_scores,
    compare_taggings,
    label_confusion,
    span_errors,
    span_f1,
    tagging_counts,
    unknown_word_accuracy,
    unknown_words,
)

__all__ = [
    "Accuracy",
    "ChunkScores",
    "Classification",
    "Comparison",
    "Confusion",
    "Dependencies",
    "Interval",
    "Probabilities",
    "Reliability",
    "SpanErrors",
    "Tagging",
    "Temperature",
    "Trees",
    "approximate_randomisation",
    "best_temperature",
    "chunk_scores",
    "classification_scores",
    "compare_taggings",
    "compare_trees",
    "confidence_interval",
    "fit_temperature",
    "label_confusion",
    "paired_bootstrap",
    "reliability",
    "score_names",
    "span_errors",
    "span_f1",
    "tagging_counts",
    "tree_errors",
    "unknown_word_accuracy",
    "unknown_words",
]
