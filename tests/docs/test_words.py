"""The gate that counts names and sentences which are not the field's words."""

from __future__ import annotations

import importlib.util
from collections import Counter

import pytest
from places import ROOT

pytestmark = pytest.mark.interpreted
SPEC = importlib.util.spec_from_file_location("words", ROOT / "tools" / "words.py")
words = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(words)

SOURCE = '''
"""What threads write down."""

class Crew:
    """Threads of a crew."""

def seek(scores, desk):
    """Returns the best output of one example."""
    found = scores.max()
    return [other for other in scores if other is found]
'''


def test_flaws_of_a_module():
    flaws = Counter(flaw.kind for flaw in words.flaws_of(SOURCE, "core", "core/module.py"))

    assert flaws == {"openings": 1, "metaphors": 2, "sentences": 1, "glossary": 1, "pronouns": 2}


def test_names_of_the_field_are_no_flaws():
    source = (
        '"""Reads files."""\ndef argmax(scores):\n    """Returns the best."""\n    best = scores\n'
    )

    assert list(words.flaws_of(source, "core", "core/module.py")) == []


def test_only_a_rise_fails():
    allowed = words.read_allowed("core 0 2 0 0 1 0\n")

    assert words.risen(Counter({("core", "pronouns"): 2}), allowed) == []
    assert words.risen(Counter({("core", "pronouns"): 3}), allowed) == [("core", "pronouns")]
    assert words.read_allowed(words.written(allowed)) == +allowed
