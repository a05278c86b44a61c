"""The pages on searches and neighbours: what they show runs, where its package is installed."""

from __future__ import annotations

import doctest
import importlib.util
import re

import pytest
from doc_pages import command_is_understood, links_lead_somewhere, text_of

pytestmark = [pytest.mark.interpreted, pytest.mark.filterwarnings("ignore")]
PARTS = re.split(r"^##+ (.*)$", text_of("docs/neighbours.md"), flags=re.MULTILINE)
PACKAGES = ("pandas", "polars", "datasets", "tensorboardX", "spacy")


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    from hopefear import Classifier, Tagger

    return {"Classifier": Classifier, "Tagger": Tagger, "folder": tmp_path_factory.mktemp("page")}


@pytest.mark.parametrize(
    ("title", "text"), [(t, x) for t, x in zip(PARTS[1::2], PARTS[2::2], strict=True) if ">>>" in x]
)
def test_examples(title, text, names):
    package = "pandas" if title == "Tables" else title
    if package in PACKAGES and importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    example = doctest.DocTestParser().get_doctest(text, dict(names), title, None, None)
    runner = doctest.DocTestRunner()
    assert runner.run(example).attempted and not runner.failures


@pytest.mark.parametrize("page", ["docs/search.md", "docs/neighbours.md"])
def test_commands_and_links(page):
    commands = re.findall(r"^    (hopefear .*)$", text_of(page), re.MULTILINE)
    assert commands
    for line in commands:
        command_is_understood(line)
    links_lead_somewhere(page.removeprefix("docs/"))
