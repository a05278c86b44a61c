"""Learners of structured SVMs and of the ramp loss in batch, the same for every kind of outputs."""

from __future__ import annotations

from typing import Any

from hopefear.recipes.base import BatchRecipe


def margin_recipes(
    l2: float, rate: Any, ramp_l2: float | None = None, **of_loss: Any
) -> tuple[Any, ...]:
    """Recipes of one kind of outputs.

    Parameters
    ----------
    l2 : float
        Strength of the penalty over all examples.
    rate : float or Auto
        Of subgradient steps between two searches for hopes.
    ramp_l2 : float, optional
        Strength for the ramp loss, where it is another.
    **of_loss
        Parameters of the loss, such as its cost.

    Examples
    --------
    >>> [recipe.name for recipe in margin_recipes(0.1, 0.1)]
    ['ssvm-cp', 'ssvm-bcfw', 'rampion-cccp']
    """
    return (
        BatchRecipe(
            "ssvm-cp",
            "structured SVM by cutting planes, 1-slack or n-slack (Joachims et al., 2009)",
            "hopefear.training.cutting_plane:CuttingPlane",
            {"l2": l2},
            "structured-hinge",
            of_loss,
        ),
        BatchRecipe(
            "ssvm-bcfw",
            "structured SVM by block-coordinate Frank-Wolfe (Lacoste-Julien et al., 2013)",
            "hopefear.training.frank_wolfe:FrankWolfe",
            {"l2": l2},
            "structured-hinge",
            of_loss,
        ),
        BatchRecipe(
            "rampion-cccp",
            "ramp loss, hopes fixed in an outer loop (Gimpel and Smith, 2012)",
            "hopefear.training.cccp:ConcaveConvex",
            {"l2": ramp_l2 or l2, "rate": rate},
            "ramp",
            of_loss,
        ),
    )
