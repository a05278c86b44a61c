"""Examples as people look at them: words with spans, words that matter, brackets, trees, reasons.

Every view is text in a terminal and HTML on a page or in a notebook.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, Protocol

from hopefear.report.arcs import ArcDiagram, text_tree
from hopefear.report.looks import LIGHT, escape

Span = tuple[int, int, str]  # first word, word behind the last, label
_TERMINAL = (32, 34, 35, 36, 33, 31)  # green, blue, magenta, cyan, yellow, red
_SHOWN = 8  # features of a reason
_KINDS = 40  # in a list to choose from
BYTES = 1_200_000  # of examples on a page, so that it stays below 2 MB
DRAWN = 600_000  # of them, behind which trees are written and not drawn


class View(Protocol):
    """An example, or an output for it."""

    def to_html(self, prefix: str) -> str:
        """An element; ``prefix`` begins the ids inside."""

    def to_text(self, coloured: bool) -> str:
        """Lines for a terminal."""


@dataclass(frozen=True)
class MarkedText:
    """Words with labelled spans; those that are wrong stand out.

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
        done = 0
        for span in self.spans:
            yield from map(plain, self.words[done : span[0]])
            yield mark(span, " ".join(self.words[span[0] : span[1]]))
            done = span[1]
        yield from map(plain, self.words[done:])


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
        Another tree of the same words; brackets that it lacks stand out.

    Examples
    --------
    >>> BracketedText("(S (NP we) (VP go))", "(S (NP we) (NP go))").to_html("").count(" x")
    1
    """

    text: str
    other: str = ""

    def to_html(self, prefix: str = "") -> str:
        known = Counter(_brackets(self.other)) if self.other else None
        own, tokens = iter(_brackets(self.text)), _TOKENS.findall(self.text)
        parts: list[str] = []
        ends: list[str] = []  # of brackets that are open
        for token, following in zip(tokens, [*tokens[1:], ""], strict=True):
            if token[0] == "(":
                span = next(own)
                if known is not None and not known[span]:
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
    """HTML of anything that can be looked at; a string is itself, a tree is drawn or written."""
    if isinstance(view, str):
        return f'<p class="hf-text">{escape(view)}</p>'
    if isinstance(view, ArcDiagram) and not drawn:
        text = escape(" ".join(view.words))
        summary = f'<summary>{text}</summary><p class="hf-tree">A word, its head and its relation;'
        note = f"{summary} marked, what is right where that is wrong.</p>"
        return f'<details class="hf-tree">{note}{view.to_rows()}</details>'
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
    """One of the n best outputs."""

    text: str
    probability: float | None = None
    right: bool = False


def nbest_html(rivals: Sequence[Rival]) -> str:
    """The n best as bars.

    >>> nbest_html([Rival("spam", 0.75), Rival("ham", 0.25, True)]).count("<li")
    2
    """
    rows = []
    for rival in rivals:
        share = "" if rival.probability is None else f"{100 * rival.probability:.1f} %"
        share = "< 0.1 %" if share == "0.0 %" else share
        bar = "" if rival.probability is None else f' style="--p:{100 * rival.probability:.0f}%"'
        sign = '<em title="as it should be">✓</em> ' if rival.right else ""
        rows.append(f"<li{bar}><b>{escape(share)}</b><span>{sign}{escape(rival.text)}</span></li>")
    return f'<ol class="hf-nbest">{"".join(rows)}</ol>'


def reason_html(reason: Any, shown: int = _SHOWN) -> str:
    """Why an answer beat another: what fired and what it added, as bars to both sides.

    ``reason`` has ``label``, ``runner_up``, ``gap`` and ``contributions``.
    """
    top = max((abs(gain) for _, gain in reason.contributions), default=0.0) or 1.0
    rows = [
        f'<li class="{"for" if gain > 0 else "against"}" style="--p:{100 * abs(gain) / top:.0f}%">'
        f"<b>{gain:+.3f}</b><span>{escape(name)}</span></li>"
        for name, gain in reason.contributions[:shown]
    ]
    more = len(reason.contributions) - shown
    rest = f"<p><small>… and {more:,} more features.</small></p>" if more > 0 else ""
    return (
        f"<p>{escape(reason.label)}, not {escape(reason.runner_up)}, by {reason.gap:.3f}:</p>"
        f'<ul class="hf-why">{"".join(rows)}</ul>{rest}'
    )


@dataclass(frozen=True)
class Case:
    """An example that a model got wrong.

    Parameters
    ----------
    facts : mapping
        Where it stands and how wrong it is, in words and numbers: ``{"sentence": 3, "wrong
        tokens": 2}``.
    gold, predicted : View, ArcDiagram or str
        How it should be, and how it is; None where the other shows both.
    kinds, labels : sequences of str
        Kinds of error and labels in it, to choose by.
    rivals : sequence of Rival
        The n best.
    reason : Explanation, optional
        Why the answer beat the right one, of the first error where there are several.
    at : int
        Its place in the file, to put errors in the order they have there.
    """

    facts: Mapping[str, Any]
    gold: View | ArcDiagram | str | None
    predicted: View | ArcDiagram | str
    kinds: Sequence[str] = ()
    labels: Sequence[str] = ()
    rivals: Sequence[Rival] = ()
    reason: Any = None
    at: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The same for JSON."""
        if isinstance(self.predicted, ArcDiagram):
            return {**self.facts, "tree": asdict(self.predicted)}
        if self.gold is None:
            return {**self.facts, "text": view_text(self.predicted)}
        views = {"gold": self.gold, "predicted": self.predicted}
        return {**self.facts, **{name: view_text(view) for name, view in views.items()}}

    def to_html(self, prefix: str, drawn: bool = True) -> str:
        """An article; the n best and the reason are folded."""
        (name, place), *rest = self.facts.items()
        # Names of labels are among the kinds.
        words = [f"{value:g} {key}" for key, value in rest if not isinstance(value, str)]
        words += self.kinds
        views = view_html(self.predicted, f"{prefix}p", drawn)
        if self.gold is not None:
            gold = f"<dt>gold</dt><dd>{view_html(self.gold, f'{prefix}g')}</dd>"
            views = f"<dl>{gold}<dt>predicted</dt><dd>{views}</dd></dl>"
        more = nbest_html(self.rivals) if self.rivals else ""
        more += reason_html(self.reason) if self.reason is not None else ""
        if more:
            more = f"<details><summary>Why, and what came close</summary>{more}</details>"
        first = self.rivals[0].probability if self.rivals else None
        data = {"at": self.at, "kinds": "\n".join(self.kinds), "labels": "\n".join(self.labels)}
        data |= {} if first is None else {"p": f"{first:.4g}"}
        attributes = "".join(f' data-{key}="{escape(value)}"' for key, value in data.items())
        return (
            f'<article class="case"{attributes}>'
            f"<h3>{escape(name)} {escape(place)} <small>{escape(' · '.join(words))}</small></h3>"
            f"{views}{more}</article>"
        )


@dataclass(frozen=True)
class Cases:
    """Errors of a model, the worst first, of which a page shows as many as it has room for.

    Parameters
    ----------
    cases : sequence of Case
        The errors.
    wrong, total : int
        Examples with errors, and all of them.
    unit : str
        What they are: ``sentences``.
    order : str
        Which come first, in words.
    """

    cases: Sequence[Case] = ()
    wrong: int = 0
    total: int = 0
    unit: str = "examples"
    order: str = "worst"
    most: int = field(default=BYTES, repr=False)

    def to_html(self, prefix: str) -> str:
        """Articles, with controls that only the script of a page shows."""
        articles: list[str] = []
        size = 0
        for k, case in enumerate(self.cases):
            article = case.to_html(f"{prefix}-{k}", size < DRAWN)
            size += len(article.encode())
            if size > self.most:
                break
            articles.append(article)
        shown = self.cases[: len(articles)]
        rest = f"the {len(shown):,} {self.order} are here"
        text = f"{self.wrong:,} of {self.total:,} {self.unit} have errors; " + (
            "all are here." if len(shown) == self.wrong else f"{rest}."
        )
        return (
            f'<div class="cases" id="{prefix}"><p>{text}</p>{_controls(shown, prefix)}'
            + "\n".join(articles)
            + "</div>"
        )


def _controls(cases: Sequence[Case], prefix: str) -> str:
    boxes = []
    for name, values in (
        ("kinds", Counter(kind for case in cases for kind in set(case.kinds))),
        ("labels", Counter(label for case in cases for label in set(case.labels))),
    ):
        if len(values) > 1:
            choices = "".join(
                f'<option value="{escape(value)}">{escape(value)} ({n})</option>'
                for value, n in sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))[
                    :_KINDS
                ]
            )
            boxes.append(
                f'<label>{name[:-1]} <select data-by="{name}"><option value="">all</option>'
                f"{choices}</select></label>"
            )
    sure = '<option value="p">most probable first</option>'
    return (
        f'<div class="controls" role="search" aria-label="Errors" hidden>{"".join(boxes)}'
        '<label>text <input type="search" data-by="text"></label>'
        '<label>order <select data-by="order"><option value="">worst first</option>'
        f"{sure if any(case.rivals for case in cases) else ''}"
        '<option value="place">as in the file</option></select></label>'
        '<output aria-live="polite"></output></div>'
    )


def _look(label: str) -> int:
    """A colour for a label that is the same everywhere."""
    return zlib.crc32(label.encode("utf-8", "backslashreplace")) % len(LIGHT)
