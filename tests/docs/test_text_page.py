"""The page on text is true."""

from __future__ import annotations

import doctest

import pytest
from places import ROOT

pytestmark = pytest.mark.interpreted


def test_the_page_is_true() -> None:
    failed, tried = doctest.testfile(str(ROOT / "docs" / "text.md"), module_relative=False)
    assert tried > 5
    assert failed == 0
