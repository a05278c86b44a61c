"""Numbers in the words that tables have."""

from __future__ import annotations

import numpy as np

from hopefear.experiments.sapo.comparing import Difference, p_text
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


def gap_text(found: Difference) -> str:
    """A difference and its bounds."""
    return f"{found.points:+.2f} [{found.low:+.2f}, {found.high:+.2f}]"


def p_values(found: Difference) -> str:
    """By paired bootstrap and by approximate randomisation."""
    both = (found.p_bootstrap, found.p_randomisation)
    return " / ".join(p_text(p).removeprefix("= ") for p in both)
