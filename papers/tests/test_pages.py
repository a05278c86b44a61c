"""Every page of an experiment names what its report has, and links lead somewhere."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest
from doc_pages import links_lead_somewhere, text_of
from places import ROOT

from hopefear.report import Page
from hopefear.report.plot import Plot
from hopefear_papers import EXPERIMENTS, pages
from hopefear_papers.frame import Experiment
from hopefear_papers.pages import Code, Details, Heading, Table, show

pytestmark = pytest.mark.interpreted
DOCS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "papers").glob("*/*.md"))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_page_has_each_table_and_plot_of_its_report(name):
    text = files(f"hopefear_papers.{name.replace('-', '_')}").joinpath("page.md").read_text("utf-8")
    title, paper, sections = text.split("\n\n", 2)
    assert title.startswith("# ") and paper and sections.startswith("## ")
    named = re.findall(r"^\[\[(\w+)\]\]$", text, re.MULTILINE)
    report = Experiment(name).page.Report
    assert "verdicts" in named and len(named) == len(set(named))
    assert [one for one in named if not callable(getattr(report, one, None))] == []
    methods = {one for one in vars(report) if callable(getattr(report, one)) and one[0] != "_"}
    source = text_of(f"papers/src/hopefear_papers/{name.replace('-', '_')}/page.py")
    unnamed = methods - {*named, "values", "places"}
    assert [one for one in unnamed if f"self.{one}(" not in source] == []


def test_blocks_are_printed_in_their_order():
    class Report(pages.Report):
        def sizes(self):
            yield Table(["n"], [[7]], "Sizes.")
            yield {"seed": 1}

        def plots(self):
            return [Plot("a plot"), Plot("beside it")]

        def nothing(self):
            return []

        def lines(self):
            return Code("a  b")

    call = type("Call", (), {"plan": None, "note": "A note."})
    text = (
        "## First\n\n{note}\n\n[[sizes]]\n\n[[nothing]]\n\n## Second\n\nUnseen.\n\n[[nothing]]\n\n"
        "## Third\n\n### Part\n\n[[plots]]\n\n<details> More\n\n[[lines]]\n\n</details>"
    )
    blocks = pages.blocks_of(text, Report(None, [], call))
    kinds = [Heading, str, Table, dict, Heading, Heading, list, Details]
    assert [type(block) for block in blocks] == kinds
    assert blocks[1] == "**A note.**" and blocks[5] == Heading("Part", 3)
    html = show(Page("x"), blocks).html().partition("<main")[2]
    parts = (">First<", ">A note.<", "Sizes.", ">Third<", "a plot", "beside it", "a  b")
    places = [html.index(part) for part in parts]
    assert places == sorted(places) and "Unseen" not in html and "Second" not in html


def test_the_readme_has_every_experiment():
    readme = text_of("papers/README.md")
    for name in EXPERIMENTS:
        assert f"`hopefear reproduce {name}`" in readme and f"(docs/{name}.md)" in readme


@pytest.mark.parametrize("page", ["papers/README.md", *DOCS])
def test_links_lead_somewhere(page):
    links_lead_somewhere(f"../{page}")
    for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text_of(page)):
        assert (ROOT / page).parent.joinpath(picture).is_file(), picture
