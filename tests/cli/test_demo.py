"""Sentences of the demo, small and interpreted; test_process runs all of it."""

from __future__ import annotations

import pytest

from hopefear.cli import demo
from hopefear.cli.console import Console
from hopefear.data.generators import news
from hopefear.errors import HopefearError
from hopefear.report import Page

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("terminal", [True, False])
def test_sentences_have_colours_on_a_terminal_and_brackets_elsewhere(monkeypatch, capsys, terminal):
    monkeypatch.setattr(demo, "_CHAINS", (("sapo", "sapo", {"n": 2}),))
    monkeypatch.delenv("NO_COLOR", raising=False)
    console, page = Console(), Page("demo").section("Names")
    console.terminal = terminal
    demo._language(console, page, demo._study_chains(console, 20, 5, 1))
    said, html = capsys.readouterr().err, page.html()
    assert ("\x1b[1;" in said) == terminal and "\x1b" not in html
    for word in ("three best readings", "Why is “in Washington”", " %  "):
        assert word in said and word in html
    assert ("[PER " in said or "[ORG " in said or "[LOC " in said) and "Airways" in html


def test_news_is_legal_repeatable_and_ambiguous():
    text = news(400, seed=1)
    words, labels = (text.columns[name].texts() for name in ("word", "label"))
    assert (words, labels) == tuple(news(400, seed=1).columns[n].texts() for n in ("word", "label"))
    for before, label in zip(["O", *labels], labels, strict=False):
        assert not label.startswith("I-") or before[2:] == label[2:]
    seen = {}
    for word, label in zip(words, labels, strict=True):
        seen.setdefault(word, set()).add(label[2:])
    assert {"PER", "LOC", "ORG"} <= seen["Washington"] and seen["trouble"] == {""}
    with pytest.raises(HopefearError, match="n_sentences"):
        news(0)
