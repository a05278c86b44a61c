"""Mistakes against Theorem 1, where the truth is known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hopefear.core.learner import Learner
from hopefear.data.generators import sparse_linear
from hopefear.experiments.vrda_classification.plan import SEED, Plan, short
from hopefear.experiments.vrda_classification.runs import first_marks
from hopefear.losses.hinge import Hinge
from hopefear.readouts.averaged import Averaged
from hopefear.readouts.observed import Observed
from hopefear.rules.rda import RDA
from hopefear.structures.classes import Binary
from hopefear.training.bounds.voted_rda import BoundReport, best_scaled, mistaken, radius
from hopefear.training.online import OnlineTrainer

SEPARATION = 0.2
STRENGTHS = (0.0, 1e-4)


@dataclass(frozen=True)
class BoundCurve:
    """A run of voted RDA beside its bound after more and more samples."""

    noise: float
    strength: float
    reports: tuple[BoundReport, ...]

    @property
    def label(self) -> str:
        return f"λ = {short(self.strength)}"


def bound_curves(plan: Plan) -> list[BoundCurve]:
    """Voted RDA (hinge), one pass, on separable and on noisy data; the comparator is the truth.

    The truth is scaled to give the lowest bound. The rate is the best one for a unit margin.
    """
    features = max(60, plan.bound_rows // 10)
    curves = []
    for noise in (0.0, 0.05):
        made = sparse_linear(
            plan.bound_rows,
            features,
            per_row=(10, 30),
            true_weights=features // 10,
            margin=SEPARATION,
            label_noise=noise,
            seed=11,
        )
        rows, structure = made.dataset().rows, Binary(features)
        order = np.random.default_rng(SEED).permutation(plan.bound_rows)
        longest = radius(structure, rows)
        rate = float(np.linalg.norm(made.truth)) / SEPARATION / (math.sqrt(2.0) * longest)
        for l1 in STRENGTHS:
            learner = Learner(Hinge(), RDA(rate, l1), Observed(Averaged()), on="mistakes")
            trainer = OnlineTrainer(structure, learner)
            outcome = np.zeros(order.size, np.uint8)
            reports, start = [], 0
            for end in first_marks(order.size):
                trainer.learn(rows, order[start:end], outcome[start:end])
                wrong, start = mistaken(order[:end], outcome[:end]), int(end)
                if wrong.size:
                    reports.append(best_scaled(trainer, rows, wrong, made.truth, longest)[1])
            curves.append(BoundCurve(noise, l1, tuple(reports)))
    return curves
