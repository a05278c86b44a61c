"""Hooks of the documentation build: mathematics as MathML.

A browser sets MathML by itself, so that pages need no script for formulas and work from a disk.
"""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path

from latex2mathml.converter import convert

sys.path.insert(0, str(Path(__file__).parent))
from formulas import codes, latex

_INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
_DISPLAYED = re.compile(r'<div class="arithmatex">\\\[(.*?)\\\]</div>', re.DOTALL)
_CODE = re.compile(r"<code>([^<]+)</code>")
_MARK = re.compile(r"<!-- snippets? .*?-->\n?", re.DOTALL)


def on_page_markdown(markdown, **_):
    """Leave out what only tests of the snippets read."""
    return _MARK.sub("", markdown)


def on_page_content(content, **_):
    """Replaces formulas, which `pymdownx.arithmatex` has marked, by MathML."""
    content = _INLINE.sub(lambda formula: math(formula[1], "inline"), content)
    content = _DISPLAYED.sub(lambda formula: math(formula[1], "block"), content)
    return _CODE.sub(_of_docstring, content)


def _of_docstring(code: re.Match[str]) -> str:
    """Code as mathematics where it is the formula of a docstring."""
    text = html.unescape(code[1])
    return convert(latex(text), display="inline") if text in codes() else code[0]


def math(formula: str, display: str) -> str:
    """Returns MathML of a formula from HTML."""
    return convert(html.unescape(formula), display=display)
