"""The guide to networks: commands parse, examples are true, the table of learners is complete."""

from __future__ import annotations

import pytest
from doc_pages import table, text_of

from hopefear.neural.learner import Network
from hopefear.recipes import CHAIN_RECIPES, NetworkRecipe

pytestmark = pytest.mark.interpreted
PAGE = text_of("docs/neural.md")


def test_the_table_has_all_networks():
    names = {name for name, one in CHAIN_RECIPES.items() if isinstance(one, NetworkRecipe)}
    assert set(table(PAGE, "learner")) == names


def test_the_defaults_are_those_of_the_learner():
    for line in PAGE.split("| parameter |")[1].splitlines()[2:9]:
        names, values = (cell.replace("`", "").strip() for cell in line.split("|")[1:3])
        pairs = zip(names.split(", "), values.split(", "), strict=True)
        assert all(str(getattr(Network(), name)) == value for name, value in pairs)
