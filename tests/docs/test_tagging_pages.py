"""The pages about sequence labelling: examples run, commands parse, tables are complete."""

from __future__ import annotations

import re

from doc_pages import (
    text_of,
)

from hopefear.core.learner import part_name
from hopefear.recipes import CHAIN_RECIPES, NetworkRecipe, Recipe


def test_the_table_of_learners_is_that_of_the_recipes():
    page = text_of("docs/tagging.md")
    lines = [line for line in page.splitlines() if re.match(r"\| `[a-z0-9-]+` \|", line)]
    rows = [line.split("|")[1:6] for line in lines]
    shown = {name.strip(" `"): [part.strip() for part in parts] for name, *parts in rows}
    expected = {}
    for name, made in CHAIN_RECIPES.items():
        if isinstance(made, Recipe):
            expected[name] = [
                *map(part_name, (made.loss, made.rule, made.averaging)),
                made.update_on,
            ]
        elif isinstance(made, NetworkRecipe):
            expected[name] = [part_name(made.loss), "adam", "averaged", "all"]
        else:
            loss = "log" if made.loss is None else part_name(made.loss)
            expected[name] = [loss, "batch", "last", "all at once"]
    assert shown == expected
