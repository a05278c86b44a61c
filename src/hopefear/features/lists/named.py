"""Features that have a name: those of a file, and the generator's score."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from hopefear.features.lists.keyed import Keyed

SCORE = "score"


def key_of(name: str) -> int:
    """The key of a name.

    >>> key_of("score") == key_of("score") != key_of("scores")
    True
    """
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def keys_of(names: Iterable[str]) -> np.ndarray:
    """The keys of names (uint64)."""
    return np.array([key_of(name) for name in names], np.uint64)


def score_keys(scores: np.ndarray) -> Keyed:
    """The generator's score as a feature."""
    n = len(scores)
    return Keyed(np.arange(n + 1), np.full(n, key_of(SCORE), np.uint64), scores.astype(np.float64))
