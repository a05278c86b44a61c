"""The reference: a page for every package, which shows all of its modules."""

from __future__ import annotations

import pkgutil
import re

import pytest
from doc_pages import ROOT, links_lead_somewhere

import hopefear

PROGRAMS = {"__main__", "cli", "experiments"}
PUBLIC = {module.name for module in pkgutil.iter_modules(hopefear.__path__)} - PROGRAMS


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_package_has_a_page(name):
    page = (ROOT / f"docs/api/{name}.md").read_text("utf-8")
    assert re.findall(r"^::: (\S+)$", page, re.MULTILINE) == [f"hopefear.{name}"]
    assert f"api/{name}.md" in (ROOT / "mkdocs.yml").read_text("utf-8")


def test_pages_are_of_packages_that_exist():
    assert {page.stem for page in (ROOT / "docs/api").glob("*.md")} == PUBLIC


def test_pages_show_modules_below():
    assert "show_submodules: true" in (ROOT / "mkdocs.yml").read_text("utf-8")


def test_links_lead_somewhere():
    links_lead_somewhere("index.md")
