"""Views of examples: words with spans, weighted words, brackets, trees, reasons.

Every view is text in a terminal and HTML on a page or in a notebook.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, NamedTuple, Protocol

from hopefear.report.arcs import ArcDiagram, text_tree
from hopefear.report.theme import LIGHT, escape

Span = tuple[int, int, str]  # first word, word behind the last, label
_TERMINAL = (32, 34, 35, 36, 33, 31)  # green, blue, magenta, cyan, yellow, red
_N_FEATURES = 8  # features of a reason


class View(Protocol):
    """An example, or an output for it."""

    def to_html(self, prefix: str) -> str:
        """An element; ``prefix`` begins the ids inside."""

    def to_text(self, coloured: bool) -> str:
        """Lines for a terminal."""


@dataclass(frozen=True)
class MarkedText:
    """Words with labelled spans; wrong ones are highlighted.

    Parameters
    ----------
    words : sequence of str
        The text.
    spans : sequence of (first, after, label)
        Stretches of words from ``first`` to ``after - 1``, in order.
    wrong : collection of the same
        Which of them are errors.

    Examples
    --------
    >>> MarkedText(["Ann", "left"], [(0, 1, "PER")]).to_text(False)
    '[PER Ann] left'
    """

    words: Sequence[str]
    spans: Sequence[Span]
    wrong: Collection[Span] = ()

    def to_html(self, prefix: str = "") -> str:
        def mark(span: Span, text: str) -> str:
            error = ' x" title="wrong' if span in self.wrong else ""
            look, label = _look(span[2]), escape(span[2])
            return f'<mark class="k{look}{error}">{escape(text)}<i>{label}</i></mark>'

        return f'<p class="hf-text">{" ".join(self._pieces(mark, escape))}</p>'

    def to_text(self, coloured: bool = False) -> str:
        def mark(span: Span, text: str) -> str:
            if not coloured:
                return f"[{span[2]} {text}]"
            colour = _TERMINAL[_look(span[2]) % len(_TERMINAL)]
            return f"\x1b[1;{colour}m{text}\x1b[0;2m {span[2]}\x1b[0m"

        return " ".join(self._pieces(mark, str))

    def _pieces(self, mark: Any, plain: Any) -> Iterator[str]:
        n_written = 0
        for span in self.spans:
            yield from map(plain, self.words[n_written : span[0]])
            yield mark(span, " ".join(self.words[span[0] : span[1]]))
            n_written = span[1]
        yield from map(plain, self.words[n_written:])


@dataclass(frozen=True)
class WeighedText:
    """Words, each shaded by what it adds to an answer (above zero) or takes from it.

    Examples
    --------
    >>> WeighedText.of("Good, good fun!", [("good", 0.5), ("not", 2.0)]).gains
    [0.5, 0.5, 0.0]
    """

    words: Sequence[str]
    gains: Sequence[float]

    @classmethod
    def of(cls, text: str, contributions: Iterable[tuple[str, float]]) -> WeighedText:
        """A text with what its features of words add: an n-gram counts for each of its words."""
        words = text.split()
        bare = [re.sub(r"^\W+|\W+$", "", word).lower() for word in words]
        gains, grams = [0.0] * len(words), dict(contributions)
        longest = max((name.count(" ") for name in grams), default=0) + 1
        for n in range(1, min(longest, 3) + 1):
            for i in range(len(words) - n + 1):
                gain = grams.get(" ".join(bare[i : i + n]), 0.0) / n
                for j in range(i, i + n):
                    gains[j] += gain
        return cls(words, gains)

    def to_html(self, prefix: str = "") -> str:
        top = max((abs(gain) for gain in self.gains), default=0.0) or 1.0
        parts = []
        for word, gain in zip(self.words, self.gains, strict=True):
            share = round(100 * abs(gain) / top)
            if share < 4:
                parts.append(escape(word))
            else:
                side = "for" if gain > 0 else "against"
                parts.append(
                    f'<mark class="{side}" style="--p:{share}%" title="{gain:+.3f}">'
                    f"{escape(word)}</mark>"
                )
        return f'<p class="hf-text">{" ".join(parts)}</p>'

    def to_text(self, coloured: bool = False) -> str:
        if not coloured:
            return " ".join(self.words)
        top = max((abs(gain) for gain in self.gains), default=0.0) or 1.0
        return " ".join(
            f"\x1b[{32 if gain > 0 else 31}m{word}\x1b[0m" if abs(gain) > 0.25 * top else word
            for word, gain in zip(self.words, self.gains, strict=True)
        )


@dataclass(frozen=True)
class BracketedText:
    """A bracketed tree, ``(S (NP we) (VP go))``, as boxes in boxes; other text as it is.

    Parameters
    ----------
    text : str
        The tree.
    other : str
        Another tree of the same words; brackets that it lacks are highlighted.

    Examples
    --------
    >>> BracketedText("(S (NP we) (VP go))", "(S (NP we) (NP go))").to_html("").count(" x")
    1
    """

    text: str
    other: str = ""

    def to_html(self, prefix: str = "") -> str:
        other_brackets = Counter(_brackets(self.other)) if self.other else None
        brackets, tokens = iter(_brackets(self.text)), _TOKENS.findall(self.text)
        parts: list[str] = []
        ends: list[str] = []  # of brackets that are open
        for token, following in zip(tokens, [*tokens[1:], ""], strict=True):
            if token[0] == "(":
                span = next(brackets)
                if other_brackets is not None and not other_brackets[span]:
                    ends.append("</span>")
                    parts.append(
                        f' <span class="b x" title="not in the other tree"><i>{escape(span[2])}</i>'
                    )
                elif following[:1] in ("(", ""):
                    ends.append("</span>")
                    parts.append(f' <span class="b"><i>{escape(span[2])}</i>')
                else:  # the tag of a word, on which both trees agree
                    ends.append("")
            elif token == ")":
                parts.append(ends.pop() if ends else token)
            else:
                parts.append(f" {escape(token)}")
        return f'<p class="hf-text">{"".join([*parts, *ends[::-1]])}</p>'

    def to_text(self, coloured: bool = False) -> str:
        return self.text


@dataclass(frozen=True)
class ChangedText:
    """A text in which the words are highlighted that another text lacks there.

    Examples
    --------
    >>> ChangedText("a red house", "a house").to_html()
    '<p class="hf-text">a <mark class="k6">red</mark> house</p>'
    """

    text: str
    other: str

    def to_html(self, prefix: str = "") -> str:
        words, other_words = self.text.split(), self.other.split()
        parts = []
        for kind, _, _, first, after in SequenceMatcher(
            None, other_words, words, False
        ).get_opcodes():
            words_html = escape(" ".join(words[first:after]))
            if words_html:
                parts.append(
                    words_html if kind == "equal" else f'<mark class="k6">{words_html}</mark>'
                )
        return f'<p class="hf-text">{" ".join(parts)}</p>'

    def to_text(self, coloured: bool = False) -> str:
        return self.text


_TOKENS = re.compile(r"\([^\s()]*|\)|[^\s()]+")


def _brackets(text: str) -> list[Span]:
    """(first word, word behind the last, label) of every bracket, in the order they open."""
    spans: list[Span] = []
    waiting: list[int] = []
    words = 0
    for token in _TOKENS.findall(text):
        if token[0] == "(":
            waiting.append(len(spans))
            spans.append((words, words, token[1:]))
        elif token != ")":
            words += 1
        elif waiting:
            k = waiting.pop()
            spans[k] = spans[k][0], words, spans[k][2]
    return spans


def view_html(view: View | ArcDiagram | str, prefix: str = "v", drawn: bool = True) -> str:
    """Returns HTML of any view; for a tree that is not drawn, a list of its errors."""
    if isinstance(view, str):
        return f'<p class="hf-text">{escape(view)}</p>'
    if isinstance(view, ArcDiagram) and not drawn:
        return view.to_errors()
    if isinstance(view, ArcDiagram):
        box = '<div class="scroll" tabindex="0" role="region" aria-label="tree">'
        return f"{box}{view.to_svg(prefix)}</div>"
    return view.to_html(prefix)


def view_text(view: View | ArcDiagram | str, coloured: bool = False) -> str:
    """The same for a terminal."""
    if isinstance(view, ArcDiagram):
        return text_tree(view.words, view.heads, view.relations, view.tags)
    return view if isinstance(view, str) else view.to_text(coloured)


class Rival(NamedTuple):
    """One of the k best outputs; ``note`` replaces an unknown probability."""

    text: str
    probability: float | None = None
    right: bool = False
    note: str = ""


def nbest_html(rivals: Sequence[Rival]) -> str:
    """The n best as bars.

    >>> nbest_html([Rival("spam", 0.75), Rival("ham", 0.25, True)]).count("<li")
    2
    """
    rows = []
    for rival in rivals:
        share, bar = rival.note, ""
        if rival.probability is not None:
            share = f"{100 * rival.probability:.1f} %"
            bar = f' style="--p:{100 * rival.probability:.0f}%"'
        share = "< 0.1 %" if share == "0.0 %" else share
        sign = '<em title="as it should be">✓</em> ' if rival.right else ""
        rows.append(f"<li{bar}><b>{escape(share)}</b><span>{sign}{escape(rival.text)}</span></li>")
    return f'<ol class="hf-nbest">{"".join(rows)}</ol>'


def reason_html(reason: Any, n_shown: int = _N_FEATURES) -> str:
    """Returns the reasons of an answer: the contribution of each feature, as bars to both sides.

    ``reason`` has ``label``, ``runner_up``, ``gap`` and ``contributions``.
    """
    top = max((abs(gain) for _, gain in reason.contributions), default=0.0) or 1.0
    rows = [
        f'<li class="{"for" if gain > 0 else "against"}" style="--p:{100 * abs(gain) / top:.0f}%">'
        f"<b>{gain:+.3f}</b><span>{escape(name)}</span></li>"
        for name, gain in reason.contributions[:n_shown]
    ]
    n_hidden = len(reason.contributions) - n_shown
    remainder = f"<p><small>… and {n_hidden:,} more features.</small></p>" if n_hidden > 0 else ""
    return (
        f"<p>{escape(reason.label)}, not {escape(reason.runner_up)}, by {reason.gap:.3f}:</p>"
        f'<ul class="hf-why">{"".join(rows)}</ul>{remainder}'
    )


def _look(label: str) -> int:
    """A colour for a label that is the same everywhere."""
    return zlib.crc32(label.encode("utf-8", "backslashreplace")) % len(LIGHT)
