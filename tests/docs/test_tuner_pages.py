"""The pages about the tuning estimator: examples run, links lead somewhere."""

from __future__ import annotations

import doctest

from doc_pages import ROOT, links_lead_somewhere


def test_examples_run():
    page = ROOT / "docs/tuner.md"
    found = doctest.testfile(str(page), module_relative=False)
    assert found.attempted > 15 and found.failed == 0


def test_links_lead_somewhere():
    links_lead_somewhere("tuner.md", "api/translation.md")
