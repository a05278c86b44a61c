"""What Gao, Xiao, Xu and He report (parse reranking, section 22 of the Penn Treebank)."""

from __future__ import annotations

# Learner, F, precision, recall, thousands of weights.
TABLE_1: tuple[tuple[str, float, float, float, int | None], ...] = (
    ("baseline", 0.8986, 0.8983, 0.8990, None),
    ("perceptron", 0.9164, 0.9191, 0.9143, 950),
    ("tg-hinge", 0.9172, 0.9198, 0.9127, 775),
    ("tg-logistic", 0.9165, 0.9190, 0.9139, 485),
    ("vrda-hinge", 0.9176, 0.9200, 0.9191, 542),
    ("vrda-logistic", 0.9179, 0.9205, 0.9153, 902),
)
# Strength: F and thousands of weights under hinge, and under logistic loss.
TABLE_2: dict[float, tuple[float, int, float, int]] = {
    0.0: (0.9171, 945, 0.9176, 936),
    1e-5: (0.9175, 900, 0.9179, 902),
    2e-5: (0.9175, 860, 0.9180, 857),
    5e-5: (0.9166, 713, 0.9165, 713),
    1e-4: (0.9176, 542, 0.9171, 542),
    2e-4: (0.9165, 374, 0.9170, 373),
    5e-4: (0.9135, 210, 0.9138, 209),
}
WORSE = (5e-4,)  # strengths whose F differs from that of 0 significantly
