"""Every learner of every task that is searched has a space, and all of it can be built."""

from __future__ import annotations

import pytest

from hopefear.cli.surface import task_names
from hopefear.errors import HopefearError
from hopefear.recipes import NetworkRecipe, Scale
from hopefear.recipes.spaces import Range
from hopefear.tasks import recipes_of

pytestmark = pytest.mark.interpreted
LEARNERS = [
    pytest.param(
        task, name, marks=pytest.mark.needs("neural") if isinstance(recipe, NetworkRecipe) else ()
    )
    for task in task_names()
    for name, recipe in recipes_of(task).items()
]
SCALE = Scale(n=100, square=3.0, reach=4.0)


@pytest.mark.parametrize(("task", "name"), LEARNERS)
def test_the_ends_and_the_default_of_a_space_can_be_built(task, name):
    recipe = recipes_of(task)[name]
    space, usual = recipe.space(), recipe.parameters()
    assert space and all(isinstance(part, Range) for part in space.values())
    for name, part in space.items():
        assert part.low < part.high and (part.low > 0 or not part.log)
        assert part.low <= part.place(usual[name]) <= part.high
    default = recipe.build(SCALE)
    places = {name: part.value(part.place(usual[name])) for name, part in space.items()}
    assert recipe.build(SCALE, **places).signature() == default.signature()
    low, high = (
        {name: part.value(getattr(part, end)) for name, part in space.items()}
        for end in ("low", "high")
    )
    signatures = [recipe.build(SCALE, **point).signature() for point in (low, high)]
    assert signatures[0] not in (signatures[1], default.signature())


def test_automatic_rates_can_be_multiplied():
    rda = recipes_of("classify")["rda"]
    assert rda.build(SCALE, rate="3x").rule.rate == pytest.approx(3 * rda.build(SCALE).rule.rate)
    ramp = recipes_of("rerank")["rampion-cccp"]
    assert ramp.build(SCALE, rate="2x").rate == pytest.approx(2 * ramp.build(SCALE).rate)
    with pytest.raises(HopefearError, match="adagrad has no automatic rate"):
        recipes_of("classify")["adagrad"].build(SCALE, rate="3x")
    with pytest.raises(HopefearError, match="automatic rate, such as 3x, must be a number"):
        rda.build(SCALE, rate="3..x")
