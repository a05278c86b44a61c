"""The pages about sequence labelling: examples run, commands parse, tables are complete."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from hopefear.cli.verbs import BY_TASK, parser_of
from hopefear.learner import part_name
from hopefear.recipes import CHAIN_RECIPES, Recipe

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/tagging.md", "docs/cli.md")


def commands():
    for page in PAGES:
        for line in (ROOT / page).read_text("utf-8").splitlines():
            if re.match(r"    hopefear \w+ (tag|--model chunks|--model small|--train)", line):
                yield pytest.param(line.split("#")[0], id=" ".join(line.split()[1:5]))


@pytest.mark.parametrize("page", ["README.md", "docs/tagging.md"])
def test_examples_are_true(page):
    """Interpreted, so that nothing is compiled for three sentences."""
    code = (
        "import doctest, sys; found = doctest.testfile(sys.argv[1], module_relative=False); "
        "print(found.failed, found.attempted)"
    )
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, str(ROOT / page)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert answer.returncode == 0, answer.stderr
    failed, tried = map(int, answer.stdout.split()[-2:])
    assert failed == 0, answer.stdout
    assert tried > 5


def test_the_files_of_the_tutorial_can_be_made(tmp_path, monkeypatch):
    page = (ROOT / "docs/tagging.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code.replace("1000", "10").replace("200", "5"), "tagging.md", "exec"), {})
    first = (tmp_path / "train.txt").read_text().splitlines()[0]
    assert first.split()[1].startswith("B-")
    assert {path.name for path in tmp_path.iterdir()} == {"train.txt", "dev.txt", "test.txt"}


@pytest.mark.parametrize("line", list(commands()))
def test_commands_are_understood(line):
    verb, *words = shlex.split(line)[1:]
    task = words.pop(0) if verb in BY_TASK else None
    module = importlib.import_module(f"hopefear.cli.{task + '.' if task else ''}{verb}")
    parser_of(verb, module, task).parse_args(words)


def test_the_table_of_learners_is_that_of_the_recipes():
    page = (ROOT / "docs/tagging.md").read_text("utf-8")
    lines = [line for line in page.splitlines() if re.match(r"\| `[a-z-]+` \|", line)]
    rows = [line.split("|")[1:6] for line in lines]
    shown = {name.strip(" `"): [part.strip() for part in parts] for name, *parts in rows}
    expected = {}
    for name, made in CHAIN_RECIPES.items():
        if isinstance(made, Recipe):
            expected[name] = [*map(part_name, (made.loss, made.rule, made.readout)), made.on]
        else:
            expected[name] = ["log", "batch", "last", "all at once"]
    assert shown == expected


def test_pages_of_the_reference_name_modules_that_exist():
    for page in (ROOT / "docs/api").glob("*.md"):
        for name in re.findall(r"^::: (\S+)", page.read_text("utf-8"), re.MULTILINE):
            assert importlib.util.find_spec(name) is not None, f"{page.name}: {name}"


def test_links_lead_somewhere():
    for page in ("tagging.md", "theory.md", "index.md", "files.md", "generators.md"):
        text = (ROOT / "docs" / page).read_text("utf-8")
        for target, anchor in re.findall(r"\]\(([a-z/_.-]*\.md)?(#[a-z-]+)?\)", text):
            where = ROOT / "docs" / (target or page)
            assert where.exists(), f"{page} links to {target}"
            heads = re.findall(r"^#+ (.+)$", where.read_text("utf-8"), re.MULTILINE)
            names = {"#" + re.sub(r"[^a-z0-9 -]", "", h.lower()).replace(" ", "-") for h in heads}
            assert not anchor or anchor in names, f"{page} links to {target}{anchor}"
