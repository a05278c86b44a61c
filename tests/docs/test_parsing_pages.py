"""The guide to parsing: commands parse, code runs, keys exist."""

from __future__ import annotations

import re

import pytest
from doc_pages import command_is_understood, links_lead_somewhere, table, text_of

from hopefear.data.treebank import read_treebank
from hopefear.metrics.dependencies import READ_BY
from hopefear.tasks.parse.task import templates_of

pytestmark = [pytest.mark.interpreted, pytest.mark.filterwarnings("ignore:overflow")]
PAGE = text_of("docs/parsing.md")
CODE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
LINES = [line for line in PAGE.splitlines() if line.startswith("    hopefear ")]


@pytest.mark.parametrize("line", LINES)
def test_commands_are_understood(line):
    command_is_understood(line)


def test_the_files_of_the_guide_can_be_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(CODE[0].replace("500", "5").replace("100", "3"), "parsing.md", "exec"), {})
    assert [len(read_treebank(f"{name}.conllu")) for name in ("train", "dev", "test")] == [5, 3, 3]


def test_the_example_of_python_is_true():
    exec(compile(CODE[1].replace("order=1,", 'order=1, features="light", hash_bits=12,'),
                 "parsing.md", "exec"), {})  # fmt: skip


def test_the_scores_are_there():
    assert set(table(PAGE, "key")) <= {*READ_BY, "recall"}


def test_the_template_file_can_be_read(tmp_path):
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "mine.toml").write_text(text)
    templates = templates_of(str(tmp_path / "mine.toml"))
    assert len(templates.arc) == 4 and templates.grandparent


def test_links_lead_somewhere():
    links_lead_somewhere("parsing.md", "index.md")
