"""Settings of learners by trial: spaces beside the recipes, searched by Optuna."""

from __future__ import annotations

from hopefear.integrations.search.study import OBJECTIVES, Finding, Search
from hopefear.integrations.search.trials import Candidate, Plan, folds

__all__ = ["OBJECTIVES", "Candidate", "Finding", "Plan", "Search", "folds"]
