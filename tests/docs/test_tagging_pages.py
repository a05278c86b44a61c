"""The pages about sequence labelling: examples run, commands parse, tables are complete."""

from __future__ import annotations

import re

import pytest
from doc_pages import (
    command_is_understood,
    examples_are_true,
    links_lead_somewhere,
    text_of,
)

from hopefear.core.learner import part_name
from hopefear.recipes import CHAIN_RECIPES, NetworkRecipe, Recipe

PAGES = ("README.md", "docs/tagging.md", "docs/cli.md")


def commands():
    for page in PAGES:
        for line in text_of(page).splitlines():
            if re.match(r"    hopefear \w+ (tag|--model chunks|--model small|--train)", line):
                yield pytest.param(line.split("#")[0], id=" ".join(line.split()[1:5]))


@pytest.mark.parametrize("page", ["README.md", "docs/tagging.md"])
def test_examples_are_true(page):
    examples_are_true(page, 5)


def test_the_files_of_the_tutorial_can_be_made(tmp_path, monkeypatch):
    page = text_of("docs/tagging.md")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code.replace("1000", "10").replace("200", "5"), "tagging.md", "exec"), {})
    first = (tmp_path / "train.txt").read_text().splitlines()[0]
    assert first.split()[1].startswith("B-")
    assert {path.name for path in tmp_path.iterdir()} == {"train.txt", "dev.txt", "test.txt"}


@pytest.mark.parametrize("line", list(commands()))
def test_commands_are_understood(line):
    command_is_understood(line)


def test_the_table_of_learners_is_that_of_the_recipes():
    page = text_of("docs/tagging.md")
    lines = [line for line in page.splitlines() if re.match(r"\| `[a-z0-9-]+` \|", line)]
    rows = [line.split("|")[1:6] for line in lines]
    shown = {name.strip(" `"): [part.strip() for part in parts] for name, *parts in rows}
    expected = {}
    for name, made in CHAIN_RECIPES.items():
        if isinstance(made, Recipe):
            expected[name] = [*map(part_name, (made.loss, made.rule, made.readout)), made.on]
        elif isinstance(made, NetworkRecipe):
            expected[name] = [part_name(made.loss), "adam", "averaged", "every"]
        else:
            loss = "log" if made.loss is None else part_name(made.loss)
            expected[name] = [loss, "batch", "last", "all at once"]
    assert shown == expected


def test_links_lead_somewhere():
    links_lead_somewhere("tagging.md", "theory.md", "index.md", "files.md", "generators.md")
