"""Text into HTML and SVG: everything escaped, a little emphasis allowed."""

from __future__ import annotations

import html
import re

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
