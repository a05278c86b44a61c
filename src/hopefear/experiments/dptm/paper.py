"""What Gao, Xiao, Xu and He report (German to English, Europarl; BLEU, case ignored)."""

from __future__ import annotations

BASELINE = 26.0  # on both test sets
# Rule and loss: BLEU on TEST1 and TEST2 with the marks of the paper.
TABLE_3: dict[str, tuple[str, str]] = {
    "sgd-risk": ("26.8 α", "26.7 α"),
    "sgd-hinge": ("26.4", "26.2"),
    "sgd-logistic": ("26.2", "26.3"),
    "sgd-log": ("26.6 α", "26.4"),
    "vrda-risk": ("26.9 α", "26.7 α"),
    "vrda-hinge": ("26.5 α", "26.4 αβ"),
    "vrda-logistic": ("26.6 αβ", "26.4"),
    "vrda-log": ("26.6 α", "26.6 αβ"),
}
# Strength, weights, BLEU on TEST1 and TEST2.
TABLE_4: tuple[tuple[float, int, str, str], ...] = (
    (0.0, 2_500_000, "26.9", "26.7"),
    (2e-8, 357_000, "26.9", "26.6"),
    (5e-8, 154_000, "26.7", "26.7"),
    (1e-7, 57_000, "26.6", "26.6"),
    (5e-7, 5_000, "26.3 α", "26.5 α"),
)
WORST_SHARE = TABLE_4[-1][1] / TABLE_4[0][1]  # weights that are left where BLEU falls
