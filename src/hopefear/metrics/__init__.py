"""Statistics of examples first, a number from their sum second.

Every metric is a `Metric`: ``statistics(references, outputs)`` counts each example, ``total`` gives
their sum, ``scores(sums)`` numbers by name, and ``signature`` says how they were made. Metrics of
candidates are in :mod:`hopefear.metrics.lists`.
"""

from hopefear.metrics.base import ListMetric, Metric
from hopefear.metrics.calibration import (
    Reliability,
    Temperature,
    best_temperature,
    reliability,
    temperature_of,
)
from hopefear.metrics.classification import (
    Accuracy,
    Classification,
    Probabilities,
    classification_scores,
    joined_scores,
    score_names,
)
from hopefear.metrics.dependencies import Dependencies, Trees, tree_errors
from hopefear.metrics.significance import (
    Comparison,
    Interval,
    approximate_randomisation,
    compare_outputs,
    confidence_interval,
    paired_bootstrap,
)
from hopefear.metrics.tagging import (
    ChunkScores,
    Confusion,
    SpanErrors,
    Tagging,
    chunk_scores,
    label_confusion,
    span_errors,
    span_f1,
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
    "ListMetric",
    "Metric",
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
    "compare_outputs",
    "confidence_interval",
    "joined_scores",
    "label_confusion",
    "paired_bootstrap",
    "reliability",
    "score_names",
    "span_errors",
    "span_f1",
    "temperature_of",
    "tree_errors",
    "unknown_word_accuracy",
    "unknown_words",
]
