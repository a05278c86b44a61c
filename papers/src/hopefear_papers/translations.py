"""Lists of translations on disk, and how choices from them are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from hopefear.data.lists.candidates import CandidateLists
from hopefear.metrics.lists import ListMetric
from hopefear.translation.lists import read, tuning_metric
from hopefear_papers.claims import Difference, compare_choices
from hopefear_papers.frame import find_files

FOLDER = "multi30k-nbest"
METRIC: ListMetric = tuning_metric("bleu")


def read_translations(
    data: Path | None, names: Iterable[str], tell: Callable[[str], None]
) -> dict[str, CandidateLists]:
    """Lists by name, from ``NAME.nbest.xz``, ``NAME.en`` (references) and ``NAME.de`` (sources)."""
    names = list(names)
    files = [f"{name}.{end}" for name in names for end in ("nbest.xz", "en", "de")]
    folder = find_files(data, FOLDER, files, "lists of translations", ", or use --quick")
    lists = {}
    for name in names:
        tell(f"reading {name}")
        nbest, references, source = (folder / f"{name}.{end}" for end in ("nbest.xz", "en", "de"))
        lists[name] = read(nbest, references, source=source)
    return lists


def compare_bleu(
    first: Sequence[np.ndarray], second: Sequence[np.ndarray], samples: int
) -> Difference:
    """As :func:`hopefear_papers.claims.compare_choices`, on BLEU.

    >>> good = np.array([[9, 8, 7, 6, 9, 8, 7, 6, 9, 9]] * 50)
    >>> bad = np.array([[9, 4, 3, 2, 9, 8, 7, 6, 9, 9]] * 50)
    >>> difference = compare_bleu([good], [bad, bad], 100)
    >>> round(difference.points, 1), difference.significant
    (48.3, True)
    """
    return compare_choices(METRIC, METRIC.main, first, second, samples)
