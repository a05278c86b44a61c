"""The sizes of candidate lists that good step lengths depend on."""

from __future__ import annotations

from hopefear.data.lists.dataset import ListDataset
from hopefear.recipes.base import USUAL_COST, Scale
from hopefear.training.ranking import mean_distances, mean_regret


def scale_of(data: ListDataset) -> Scale:
    """The sizes that good step lengths depend on."""
    square, reach = mean_distances(data.rows).mean(axis=0).tolist()
    cost = mean_regret(data.rows)
    # Of candidates without any difference, rounding may leave a little less than 0.
    square, reach = (value if value > 0.0 else 1.0 for value in (square, reach))
    return Scale(square, len(data), reach, cost or USUAL_COST)
