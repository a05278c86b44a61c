"""What Xu, Gao, Xiao and Regan report (Online Classification Using a Voted RDA Method)."""

from __future__ import annotations

# Parse reranking, section 22 of the Penn Treebank; means over 20 passes; thousands of weights.
TABLE_1: tuple[tuple[str, float, float, float, int | None], ...] = (
    ("Baseline", 0.8983, 0.8990, 0.8986, None),
    ("Perceptron", 0.9191, 0.9143, 0.9164, 939),
    ("TG (hinge)", 0.9198, 0.9127, 0.9172, 775),
    ("TG (log)", 0.9190, 0.9139, 0.9165, 485),
    ("vRDA (hinge)", 0.9211, 0.9150, 0.9175, 932),
    ("vRDA (log)", 0.9204, 0.9144, 0.9174, 173),
)
TIME_RATIO = {"hinge": 0.897, "log": 0.872}  # CPU time of voted RDA, as a share of RDA's
SETTINGS = "hinge: η = 0.05, λ = 1e-5; log: η = 1000, λ = 1e-4"
