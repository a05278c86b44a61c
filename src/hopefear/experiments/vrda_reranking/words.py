"""Numbers in the words that tables have."""

from __future__ import annotations

import numpy as np

from hopefear.experiments.vrda_reranking.measuring import TOP, Measured
from hopefear.experiments.vrda_reranking.plan import Plan
from hopefear.experiments.vrda_reranking.results import scores_of


def title_of(made: Measured, plan: Plan, name: str) -> str:
    """Name of the learner of a choice."""
    title = plan.spec(made.choices[name].spec).title
    return f"Best by dev: {title}" if name == TOP else title


def mean_f(made: Measured, name: str, where: str) -> float:
    """F of a choice, mean over seeds."""
    return float(scores_of(made.counts(name, where))["f1"].mean())


def mean_dev(made: Measured, name: str) -> float:
    """F of a choice on development lists, mean over seeds."""
    return float(np.mean([s.dev for s in made.test[name]]))
