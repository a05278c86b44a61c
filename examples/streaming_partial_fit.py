"""Learn from a stream, a chunk at a time, and test on each chunk before learning from it.

Run: python examples/streaming_partial_fit.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import hopefear
from hopefear.data.generators import sparse_linear


def stream(chunks: int, rows: int) -> Iterator[tuple[Any, np.ndarray]]:
    """Chunks of a sparse problem; a real one would read them from a queue or a large file."""
    data = sparse_linear(chunks * rows, 2000, per_row=(10, 40), true_weights=200, seed=3).dataset()
    X, y = data.to_csr(), np.array(data.classes)[data.rows.labels]
    for start in range(0, chunks * rows, rows):
        yield X[start : start + rows], y[start : start + rows]


def main() -> None:
    # With numbers for rate and intercept the chunks of one pass give what fit would give at once.
    model = hopefear.Classifier(learner="adagrad-rda", rate=0.5, l1=1e-4, intercept=0.1)
    for number, (X, y) in enumerate(stream(chunks=20, rows=500)):
        if number == 0:
            model.partial_fit(X, y, classes=["-1", "1"])
            continue
        accuracy = model.score(X, y)
        model.partial_fit(X, y)
        if number % 5 == 4:
            print(
                f"chunk {number + 1:2}: accuracy before learning {accuracy:.3f}, "
                f"{model.model_.nnz} non-zero weights"
            )

    try:
        model.partial_fit(X, np.full(X.shape[0], "maybe"))
    except ValueError as error:
        print("refused:", error)


if __name__ == "__main__":
    main()
