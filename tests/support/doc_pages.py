"""What tests ask of pages: tables, examples, commands, links, and names of tests."""

from __future__ import annotations

import re

from places import ROOT


def text_of(page: str) -> str:
    """The page at this place below the root."""
    return (ROOT / page).read_text("utf-8")


def table(page: str, head: str) -> dict[str, list[str]]:
    """Cells of the table whose first line starts with ``head``, by the names in the first."""
    lines = page.split(f"\n| {head} |", 1)[1].splitlines()[2:]
    found = {}
    for line in lines[: next(k for k, line in enumerate(lines) if not line.startswith("|"))]:
        first, *cells = (cell.strip() for cell in line.strip("|").split(" | "))
        for name in re.findall(r"`([^`]+)`", first):
            found[name] = cells
    return found


def links_lead_somewhere(*pages: str) -> None:
    """Pages and headings that pages below docs link to must exist."""
    for page in pages:
        here = ROOT / "docs" / page
        for target, anchor in re.findall(
            r"\]\(([a-z/_.-]*\.md)?(#[a-z0-9-]+)?\)", here.read_text("utf-8")
        ):
            where = here.parent / target if target else here
            assert where.exists(), f"{page} links to {target}"
            heads = re.findall(r"^#+ (.+)$", where.read_text("utf-8"), re.MULTILINE)
            names = {"#" + re.sub(r"[^a-z0-9 -]", "", h.lower()).replace(" ", "-") for h in heads}
            assert not anchor or anchor in names, f"{page} links to {target}{anchor}"


def named_tests_exist(section: str, least: int) -> None:
    """Tests that this section of the theory names, more than ``least``, must exist."""
    theory = text_of("docs/theory.md").split(f"\n## {section}\n")[1]
    folders = ROOT / "tests", ROOT / "papers" / "tests"
    paths = [path for folder in folders for path in folder.rglob("test_*.py")]
    source = "".join(path.read_text("utf-8") for path in paths)
    named = set(re.findall(r"`(test_\w+)`", theory))
    assert len(named) > least
    assert sorted(name for name in named if f"def {name}(" not in source) == []
