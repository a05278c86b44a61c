"""Theme of pages: text escaped for HTML and SVG, colours, marker shapes, widths of words."""

from __future__ import annotations

import html
import re
import unicodedata
from itertools import accumulate, takewhile

_INLINE = re.compile(
    r"`(?P<code>[^`\n]+)`"
    r"|\*\*(?P<bold>[^\s*](?:[^*]*[^\s*])?)\*\*"
    r"|\[(?P<label>[^\[\]\n]+)\]\((?P<url>[^()\s]+)\)"
)
_SAFE_URL = re.compile(r"(?:https?://|mailto:|#|[^:/?#]*(?:[/?#]|$))", re.IGNORECASE)
# XML 1.0 has no place for these, not even escaped.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def escape(text: object) -> str:
    """``str(text)`` fit for element content and quoted attributes of HTML and XML.

    Examples
    --------
    >>> escape('<b class="x">')
    '&lt;b class=&quot;x&quot;&gt;'
    """
    return html.escape(_FORBIDDEN.sub("\ufffd", str(text)))


def inline(text: str) -> str:
    """Escaped text in which ```code```, ``**bold**`` and ``[label](url)`` become elements.

    A link whose address could run code stays plain text.

    Examples
    --------
    >>> inline("a < **b** and `c**d`")
    'a &lt; <strong>b</strong> and <code>c**d</code>'
    >>> inline("[x](javascript:alert)")
    '[x](javascript:alert)'
    """
    out, end = [], 0
    for match in _INLINE.finditer(text):
        out += [escape(text[end : match.start()]), _element(match)]
        end = match.end()
    return "".join(out) + escape(text[end:])


def paragraphs(text: str) -> str:
    """Paragraphs, separated by blank lines in ``text``, each through :func:`inline`.

    Examples
    --------
    >>> paragraphs("One.\\n\\nTwo.")
    '<p>One.</p>\\n<p>Two.</p>'
    """
    parts = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    return "\n".join(f"<p>{inline(part)}</p>" for part in parts if part)


def _element(match: re.Match[str]) -> str:
    if match["code"] is not None:
        return f"<code>{escape(match['code'])}</code>"
    if match["bold"] is not None:
        return f"<strong>{inline(match['bold'])}</strong>"
    if not _SAFE_URL.match(match["url"]):
        return escape(match[0])
    return f'<a href="{escape(match["url"])}">{inline(match["label"])}</a>'


# Found by search: at least 3:1 contrast with the paper, and far apart (CIE 1976: 15 for any two,
# 24 among the first five) to normal, red-blind, green-blind and blue-blind eyes alike.
LIGHT = ("#204273", "#ea621d", "#13a075", "#c261dd", "#6a4f19", "#9c3659", "#1d6f8f", "#2b2626")
DARK = ("#118bdb", "#f1781f", "#27fad1", "#af77a7", "#dcd884", "#de4273", "#81d4ff", "#b9a7ac")
PAPER = {"light": "#ffffff", "dark": "#15181c"}

# Relative paths around a centre, about seven pixels across and of equal visual weight.
MARKERS = (
    "m-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0-6.8 0z",
    "m-3-3h6v6h-6z",
    "m0-4l4 7h-8z",
    "m0-4.3l4.3 4.3l-4.3 4.3l-4.3-4.3z",
    "m0 4l4-7h-8z",
    "m-1.3-4h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7v-2.6h2.7z",
    "m-4-1.8l2.2-2.2l1.8 2.2l1.8-2.2l2.2 2.2l-2.2 1.8l2.2 1.8l-2.2 2.2l-1.8-2.2l-1.8 2.2"
    "l-2.2-2.2l2.2-1.8z",
    "m0-4.8l1.2 3.1l3.4 0.2l-2.6 2.1l0.8 3.3l-2.8-1.8l-2.8 1.8l0.8-3.3l-2.6-2.1l3.4-0.2z",
)

_NARROW, _WIDE = frozenset("iljtfrI.,:;'|!()[] "), frozenset("mwMW@%")


def colour(look: int) -> str:
    """CSS colour of a look: the page's variable, with the light colour for a lone file."""
    i = look % len(LIGHT)
    return f"var(--hf-{i},{LIGHT[i]})"


def marker(look: int) -> str:
    """Relative path of a look's marker; shapes shift when the colours start again."""
    return MARKERS[(look + look // len(LIGHT)) % len(MARKERS)]


def text_width(text: str, size: float) -> float:
    """Pixels a text needs at a font size, estimated on the generous side."""
    return sum(map(_em, text)) * size


def _em(char: str) -> float:
    """Width of a character at font size 1."""
    if unicodedata.east_asian_width(char) in "WF":
        return 1.0
    if char in _NARROW:
        return 0.32
    if char in _WIDE:
        return 0.9
    return 0.66 if char.isupper() else 0.56


def shorten(text: str, width: float, size: float) -> str:
    """The text, cut with an ellipsis where it would not fit.

    Examples
    --------
    >>> shorten("a rather long label", 60, 12)
    'a rather l…'
    """
    if text_width(text, size) <= width:
        return text
    ems = accumulate(map(_em, text))
    fitting = sum(1 for _ in takewhile(lambda em: (em + _em("…")) * size <= width, ems))
    return text[:fitting].rstrip() + "…"


def wrap(text: str, width: float, size: float) -> list[str]:
    """Lines of whole words that fit; a word longer than a line is cut short.

    Examples
    --------
    >>> wrap("one two three", 50, 12)
    ['one two', 'three']
    """
    lines: list[str] = []
    for word in text.split():
        if lines and text_width(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(shorten(word, width, size))
    return lines
