"""Pictures of the documentation: each is shown, small, and taken or drawn by a script."""

from __future__ import annotations

import re

import pytest
from places import ROOT

pytestmark = pytest.mark.interpreted
PICTURES = sorted((ROOT / "docs/img").glob("*.png"))
LARGEST = 150_000


def test_pictures_are_small_and_few():
    assert len(PICTURES) <= 8
    assert {path.name: size for path in PICTURES if (size := path.stat().st_size) > LARGEST} == {}


def test_every_picture_is_shown_and_taken_by_the_script():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = "".join(page.read_text("utf-8") for page in pages)
    shown = {name.rpartition("/")[2] for name in re.findall(r"!\[[^]]+\]\(([^)\s]+\.png)\)", text)}
    assert shown == {path.name for path in PICTURES}
    script = (ROOT / "tools/screenshots.py").read_text("utf-8")
    assert [path.stem for path in PICTURES if f'"{path.stem}"' not in script] == []
