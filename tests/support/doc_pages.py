"""What tests ask of pages: tables, examples, commands, links, and names of tests."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

from places import ROOT

from hopefear.cli import BY_TASK, parser_of


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


def examples_are_true(page: str, least: int) -> None:
    """Run the examples, more than ``least``; interpreted, so that nothing is compiled for a few."""
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
    assert tried > least


def command_is_understood(line: str) -> None:
    """Parse what stands behind ``hopefear``."""
    verb, *words = shlex.split(line)[1:]
    task = words.pop(0) if verb in BY_TASK else None
    if "--config" not in words:  # else the file has what is needed
        parser_of(verb, task).parse_args(words)


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
    source = "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", theory))
    assert len(named) > least
    assert sorted(name for name in named if f"def {name}(" not in source) == []
