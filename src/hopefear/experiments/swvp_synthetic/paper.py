"""What Dror and Reichart report (The Structured Weighted Violations Perceptron Algorithm)."""

from __future__ import annotations

from typing import NamedTuple


class Reported(NamedTuple):
    """A cell of Table 1."""

    accuracy: float
    std: float
    wins: int | None = None
    generalises: int | None = None


# By setting, then by learner; wins and generalisation out of 10.
TABLE_1: dict[int, dict[str, Reported]] = {
    1: {
        "B-WM": Reported(75.47, 3.05, 9, 10),
        "B-WMR": Reported(75.96, 2.42, 8, 10),
        "A-WM": Reported(74.18, 2.16, 7, 10),
        "A-WMR": Reported(75.17, 3.07, 7, 10),
        "CSP": Reported(72.24, 3.45),
    },
    2: {
        "B-WM": Reported(63.18, 1.32, 9, 10),
        "B-WMR": Reported(63.02, 2.49, 9, 10),
        "A-WM": Reported(61.65, 2.30, 9, 10),
        "A-WMR": Reported(61.02, 1.93, 8, 10),
        "CSP": Reported(57.89, 2.85),
    },
    3: {
        "B-WM": Reported(28.48, 1.9, 5, 10),
        "B-WMR": Reported(24.31, 5.2, 4, 10),
        "A-WM": Reported(30.45, 1.0, 6, 10),
        "A-WMR": Reported(25.8, 3.18, 2, 10),
        "CSP": Reported(25.27, 8.55),
    },
}
BETTER_ON_DEV_ONLY = 1  # of 120 comparisons


def best_variant(setting: int) -> str:
    """The variant with the paper's highest accuracy.

    >>> [best_variant(setting) for setting in (1, 2, 3)]
    ['B-WMR', 'B-WM', 'A-WM']
    """
    cells = {key: cell for key, cell in TABLE_1[setting].items() if key != "CSP"}
    return max(cells, key=lambda key: cells[key].accuracy)


def gain(setting: int, variant: str) -> float:
    """Points over CSP.

    >>> round(gain(1, "B-WMR"), 2)
    3.72
    """
    return TABLE_1[setting][variant].accuracy - TABLE_1[setting]["CSP"].accuracy
