"""The guide to parsing: commands parse, code runs, keys exist."""

from __future__ import annotations

import re

import pytest
from doc_pages import table, text_of

from hopefear.metrics import Dependencies
from hopefear.tasks.parse.prepare import templates_of

pytestmark = [pytest.mark.interpreted, pytest.mark.filterwarnings("ignore:overflow")]
PAGE = text_of("docs/parsing.md")


def test_the_scores_are_there():
    assert set(table(PAGE, "key")) <= {*Dependencies.reads, "recall"}


def test_the_template_file_can_be_read(tmp_path):
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "mine.toml").write_text(text)
    templates = templates_of(str(tmp_path / "mine.toml"))
    assert len(templates.arc) == 4 and templates.grandparent
