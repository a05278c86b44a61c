"""The reference: an entry for every public name, a page for every package, its modules too."""

from __future__ import annotations

import importlib.util
import pkgutil
import re

import pytest
from doc_pages import ROOT

import hopefear

PROGRAMS = {"__main__", "cli"}
PUBLIC = {module.name for module in pkgutil.iter_modules(hopefear.__path__)} - PROGRAMS


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_package_has_a_page(name):
    page = (ROOT / f"docs/api/{name}.md").read_text("utf-8")
    assert re.findall(r"^::: (\S+)$", page, re.MULTILINE) == [f"hopefear.{name}"]
    assert f"api/{name}.md" in (ROOT / "mkdocs.yml").read_text("utf-8")


def test_pages_are_of_packages_that_exist():
    pages = {page.stem for page in (ROOT / "docs/api").glob("*.md")}
    assert pages == {*PUBLIC, "public", "internals"}


def test_every_name_at_the_root_has_an_entry():
    page = (ROOT / "docs/api/public.md").read_text("utf-8")
    entries = re.findall(r"^::: (\S+)\.(\w+)$", page, re.MULTILINE)
    assert sorted(name for _, name in entries) == sorted({*hopefear.__all__} - {"__version__"})
    for home, name in entries:
        assert getattr(importlib.import_module(home), name) is getattr(hopefear, name)
    assert "hopefear.__version__" in page


def test_internals_are_listed():
    page = (ROOT / "docs/api/internals.md").read_text("utf-8")
    assert set(re.findall(r"\[\w+\]\((\w+)\.md\)", page)) == PUBLIC - {"crfsuite", "testing"}


def test_the_catalogue_is_what_the_code_gives():
    spec = importlib.util.spec_from_file_location("catalogue", ROOT / "tools/learner_catalogue.py")
    catalogue = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(catalogue)
    assert catalogue.PAGE.read_text("utf-8") == catalogue.page(), (
        "run python tools/learner_catalogue.py --write"
    )


def test_pages_show_modules_below():
    assert "show_submodules: true" in (ROOT / "mkdocs.yml").read_text("utf-8")
