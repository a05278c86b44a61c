"""The pages about the tuning estimator: examples run, and modules have a page."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_examples_run():
    page = ROOT / "docs/tuner.md"
    found = doctest.testfile(str(page), module_relative=False)
    assert found.attempted > 15 and found.failed == 0


@pytest.mark.parametrize("package", ["tuning", "tuner"])
def test_every_module_has_a_page(package):
    pages = "\n".join(path.read_text("utf-8") for path in (ROOT / "docs/api").glob("*.md"))
    shown = re.findall(r"^::: (\S+)$", pages, re.MULTILINE)
    path = importlib.import_module(f"hopefear.{package}").__path__
    wanted = {f"hopefear.{package}.{module.name}" for module in pkgutil.iter_modules(path)}
    assert sorted(wanted - set(shown)) == []
    assert sorted({name for name in shown if shown.count(name) > 1}) == []


def test_links_lead_somewhere():
    for page in ("tuner.md", "api/tuning.md", "api/tuner.md"):
        text = (ROOT / "docs" / page).read_text("utf-8")
        for target in re.findall(r"\]\(([a-z/_.-]+\.md)", text):
            assert (ROOT / "docs" / page).parent.joinpath(target).exists(), target
