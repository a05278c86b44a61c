"""The pages about the tuning estimator: examples run, and modules have a page."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest
from doc_pages import ROOT, links_lead_somewhere, shown_modules


def test_examples_run():
    page = ROOT / "docs/tuner.md"
    found = doctest.testfile(str(page), module_relative=False)
    assert found.attempted > 15 and found.failed == 0


@pytest.mark.parametrize("package", ["translation", "translation.tuners"])
def test_every_module_has_a_page(package):
    shown = shown_modules()
    path = importlib.import_module(f"hopefear.{package}").__path__
    wanted = {
        f"hopefear.{package}.{module.name}"
        for module in pkgutil.iter_modules(path)
        if not module.ispkg
    }
    assert sorted(wanted - set(shown)) == []
    assert sorted({name for name in shown if shown.count(name) > 1}) == []


def test_links_lead_somewhere():
    links_lead_somewhere("tuner.md", "api/tuning.md", "api/tuner.md")
