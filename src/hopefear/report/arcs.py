"""Dependency trees as pictures: arcs over the words as SVG, and lines of text for a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hopefear.errors import HopefearError
from hopefear.report.plot import FONT, INK, MUTED, PAPER
from hopefear.report.theme import colour, escape, text_width

WORD, SMALL = 15.0, 11.5  # sizes of letters
STEP, CORNER, SLOT = 21.0, 9.0, 7.0  # between levels of arcs, of their corners, between their feet
GAP, EDGE = 18.0, 12.0  # between words, and around everything
WRONG, RIGHT = colour(1), colour(2)


class Arc(NamedTuple):
    """An arc from word ``head`` to word ``word``, from 1; head 0 is the root."""

    head: int
    word: int
    label: str

    @property
    def span(self) -> tuple[int, int]:
        return min(self.head, self.word), max(self.head, self.word)


@dataclass(frozen=True)
class ArcDiagram:
    """A sentence with the arcs of its tree above it; those of the right tree below where it errs.

    Parameters
    ----------
    words : sequence of str
        The sentence.
    heads : sequence of int
        Number of each word's head, from 1; 0 is the root, a negative number is none.
    relations : sequence of str, optional
        Labels of the arcs.
    tags : sequence of str, optional
        Shown under the words.
    gold_heads, gold_relations : sequences, optional
        The right tree. Arcs that differ from it are drawn in another colour, dashed where the head
        is wrong, and those that should be there stand below the words.
    title : str
        What screen readers announce; the sentence without.

    Examples
    --------
    >>> diagram = ArcDiagram(["It", "rains"], [2, 0], ["expl", "root"], gold_heads=[0, 1])
    >>> svg = diagram.to_svg()
    >>> svg.startswith("<svg") and svg.endswith("</svg>"), svg.count("stroke-dasharray")
    (True, 2)
    """

    words: Sequence[str]
    heads: Sequence[int]
    relations: Sequence[str] = ()
    tags: Sequence[str] = ()
    gold_heads: Sequence[int] | None = None
    gold_relations: Sequence[str] | None = None
    title: str = ""

    def __post_init__(self) -> None:
        n = len(self.words)
        for name in ("heads", "relations", "tags", "gold_heads", "gold_relations"):
            values = getattr(self, name)
            optional = values is None or (name in ("relations", "tags") and not len(values))
            if not optional and len(values) != n:
                raise HopefearError(f"{n} words need as many {name}, not {len(values)}")
        for heads in (self.heads, self.gold_heads if self.gold_heads is not None else ()):
            if any(h > n or h == m for m, h in enumerate(heads, 1)):
                raise HopefearError(f"heads of {n} words are other words, 0 to {n}: {list(heads)}")

    @property
    def arcs(self) -> list[Arc]:
        return _arcs(self.heads, self.relations)

    @property
    def missing(self) -> list[Arc]:
        """Arcs of the right tree that are not in this one."""
        if self.gold_heads is None:
            return []
        relations = self.relations if self.gold_relations is None else self.gold_relations
        return sorted(set(_arcs(self.gold_heads, relations)) - set(self.arcs), key=lambda a: a.word)

    def describe(self) -> str:
        """The tree in words, errors at the end."""
        text = [_sentence(self.words, arc) for arc in self.arcs]
        text += [f"It should be: {_sentence(self.words, arc)}" for arc in self.missing]
        return " ".join(text)

    def to_errors(self) -> str:
        """The sentence with its wrong arcs as HTML, in a twentieth of the picture's room.

        >>> diagram = ArcDiagram(["It", "rains"], [2, 0], ["expl", "root"], gold_heads=[2, 1])
        >>> print(diagram.to_errors())
        <p class="hf-text">It <u>rains</u></p><ul class="hf-arcs">\
<li><b>rains</b> the root <mark>root of 1 It</mark></ul>
        """
        arcs = {arc.word: arc for arc in self.arcs}
        lines, wrong = [], set()
        for right in self.missing:
            wrong.add(right.word)
            word, predicted = escape(self.words[right.word - 1]), arcs.get(right.word)
            answer = "nothing" if predicted is None else escape(_end(self.words, predicted))
            gold = escape(_end(self.words, right))
            lines.append(f"<li><b>{word}</b> {answer} <mark>{gold}</mark>")
        words = [
            f"<u>{escape(word)}</u>" if m in wrong else escape(word)
            for m, word in enumerate(self.words, 1)
        ]
        return f'<p class="hf-text">{" ".join(words)}</p><ul class="hf-arcs">{"".join(lines)}</ul>'

    def to_svg(self, prefix: str = "tree") -> str:
        """The picture as one ``<svg>`` element, complete in itself and as wide as it needs.

        Parameters
        ----------
        prefix : str
            Begins the ids inside; pictures on one page need different ones.
        """
        arcs, missing = self.arcs, self.missing
        errors = {arc.word for arc in missing}
        centres, width = self._centres(arcs + missing)
        above, below = _levels(arcs), _levels(missing)
        top = EDGE + SMALL + STEP * max(above.values(), default=0) + 4
        tags = SMALL + 5 if len(self.tags) else 0.0
        bottom = top + WORD + 9 + tags  # where arcs below the words begin
        height = bottom + EDGE
        if missing:
            height += STEP * max(below.values()) + SMALL + 2
        gold = dict(enumerate(self.gold_heads or (), 1))
        # Elements of one look share a group, which keeps pictures small.
        groups: dict[str, list[tuple[str, str, str]]] = {MUTED: [], WRONG: [], RIGHT: []}
        feet = _feet(arcs, centres)
        for arc in sorted(arcs, key=lambda a: -above[a]):
            dashed = arc.word in errors and gold[arc.word] != arc.head
            look = WRONG if arc.word in errors else MUTED
            groups[look].append(_drawn(arc, feet, top, -STEP * above[arc], dashed))
        feet = _feet(missing, centres)
        for arc in sorted(missing, key=lambda a: -below[a]):
            groups[RIGHT].append(_drawn(arc, feet, bottom, STEP * below[arc], False))
        pieces = [_group(look, drawn) for look, drawn in groups.items() if drawn]
        for texts, y, size, fill in (
            (self.words, top + WORD + 2, WORD, INK),
            (self.tags, top + WORD + 4 + SMALL, SMALL, MUTED),
        ):
            inside = "".join(_text(text, centres[m], y) for m, text in enumerate(texts, 1))
            pieces.append(f'<g font-size="{size:g}" style="fill:{fill}">{inside}</g>')
        title = self.title or " ".join(self.words)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" role="img" '
            f'aria-labelledby="{prefix}-t {prefix}-d" font-family="{FONT}" text-anchor="middle">'
            f'<title id="{prefix}-t">{escape(title)}</title>'
            f'<desc id="{prefix}-d">{escape(self.describe())}</desc>{"".join(pieces)}</svg>'
        )

    def _centres(self, arcs: list[Arc]) -> tuple[list[float], float]:
        """Returns the middle of each word, from 1, and the width of all."""
        tags = self.tags if len(self.tags) else [""] * len(self.words)
        feet = [0] * (len(self.words) + 1)
        for arc in arcs:
            for m in (arc.head, arc.word):
                feet[max(m, 0)] += 1
        widths = [0.0]
        for m, (word, tag) in enumerate(zip(self.words, tags, strict=True), 1):
            room = max(text_width(word, WORD), text_width(tag, SMALL), SLOT * feet[m])
            root = [a.label for a in arcs if a.word == m and a.head == 0]
            widths.append(max(room, *(text_width(label, SMALL) for label in ["", *root])))
        centres = [0.0]
        right = EDGE
        ends: dict[int, list[Arc]] = {}
        for arc in arcs:
            ends.setdefault(arc.span[1], []).append(arc)
        for m in range(1, len(widths)):
            centre = right + widths[m] / 2
            for arc in ends.get(m, ()):
                if arc.head > 0:  # its label must fit between its ends
                    room = text_width(arc.label, SMALL) + 2 * CORNER
                    room += SLOT * (feet[arc.head] + feet[arc.word]) / 2
                    centre = max(centre, centres[arc.span[0]] + room)
            centres.append(centre)
            right = centre + widths[m] / 2 + GAP
        return centres, right - GAP + EDGE if len(widths) > 1 else 2 * EDGE


def text_tree(
    words: Sequence[str],
    heads: Sequence[int],
    relations: Sequence[str] = (),
    tags: Sequence[str] = (),
) -> str:
    """A dependency tree for a terminal: a word a line, arcs at the left, relations at the right.

    Parameters
    ----------
    words, heads, relations, tags
        As in `ArcDiagram`.

    Examples
    --------
    >>> words, relations = ["The", "cat", "sleeps", "."], ["det", "nsubj", "root", "punct"]
    >>> print(text_tree(words, [2, 3, 0, 3], relations))
      ╭─→ The     det
    ╭─┴─→ cat     nsubj
    ╰─┬─● sleeps  root
      ╰─→ .       punct
    """
    diagram = ArcDiagram(words, heads, relations, tags)
    arcs = [arc for arc in diagram.arcs if arc.head > 0]
    levels = _levels(arcs, joined=True)
    deep = max(levels.values(), default=0)
    grid = [[0] * (2 * deep) for _ in words]
    for arc in arcs:
        column = 2 * (deep - levels[arc])
        first, last = arc.span
        for row in range(first - 1, last):
            grid[row][column] |= (_UP if row > first - 1 else 0) | (_DOWN if row < last - 1 else 0)
        for row in (first - 1, last - 1):
            grid[row][column] |= _EAST
            for c in range(column + 1, 2 * deep):
                grid[row][c] |= _EAST | _WEST
    columns = [list(words), list(tags), list(relations)]
    columns = [texts for texts in columns if texts]
    room = [max(map(_cells, texts), default=0) for texts in columns]
    lines = []
    for m, cells in enumerate(grid):
        mark = "●" if heads[m] == 0 else "→" if heads[m] > 0 else " "
        fields = [
            texts[m] + " " * (width - _cells(texts[m]))
            for texts, width in zip(columns, room, strict=True)
        ]
        line = "".join(_BOX[cell] for cell in cells) + f"{mark} {'  '.join(fields)}"
        lines.append(line.rstrip())
    return "\n".join(lines)


_UP, _DOWN, _EAST, _WEST = 1, 2, 4, 8
_BOX = " ╵╷│╶╰╭├╴╯╮┤─┴┬┼"


def _cells(text: str) -> int:
    """Columns of a terminal that a text fills."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(bool(unicodedata.combining(char)) for char in text)


def _arcs(heads: Sequence[int], relations: Sequence[str]) -> list[Arc]:
    labels = relations if len(relations) else [""] * len(heads)
    pairs = zip(heads, labels, strict=True)
    return [Arc(int(h), m, label) for m, (h, label) in enumerate(pairs, 1) if h >= 0]


def _sentence(words: Sequence[str], arc: Arc) -> str:
    if arc.head == 0:
        return f"{words[arc.word - 1]} is the root."
    return f"{words[arc.word - 1]} is {arc.label or 'a dependent'} of {words[arc.head - 1]}."


def _end(words: Sequence[str], arc: Arc) -> str:
    """Describes the head of an arc and its relation; numbers distinguish equal words."""
    if arc.head == 0:
        return "the root"
    return f"{arc.label or 'below'}{' of' if arc.label else ''} {arc.head} {words[arc.head - 1]}"


def _levels(arcs: list[Arc], joined: bool = False) -> dict[Arc, int]:
    """Assigns each arc a level, from 1, above every shorter arc that overlaps it.

    The root's arcs, which stand over one word, go above all that span it. Where the ends of arcs
    are ``joined``, one that begins where another ends goes above it too, unless both have
    their head there.
    """
    levels: dict[Arc, int] = {}
    for arc in sorted(arcs, key=lambda a: (a.head == 0, a.span[1] - a.span[0], a.span)):
        first, last = (arc.word - 0.5, arc.word + 0.5) if arc.head == 0 else arc.span
        below = [0]
        for placed, level in levels.items():
            begin, end = placed.span
            touching = joined and (begin == last or end == first) and placed.head != arc.head
            if placed.head > 0 and ((begin < last and first < end) or touching):
                below.append(level)
        levels[arc] = 1 + max(below)
    return levels


def _feet(arcs: list[Arc], centres: list[float]) -> dict[tuple[Arc, int], float]:
    """Places the ends of each arc, so that arcs of one word do not touch.

    From left to right: arcs to the left, short before long, then those to the right, long before
    short; the root's between them.
    """
    ends: dict[int, list[tuple[tuple[int, int], Arc]]] = {}
    for arc in arcs:
        for m in {arc.head, arc.word} - {0}:
            opposite = arc.head + arc.word - m
            side = 0 if arc.head == 0 else (-1 if opposite < m else 1)
            ends.setdefault(m, []).append(((side, -side * abs(opposite - m)), arc))
    feet = {}
    for m, row in ends.items():
        for k, (_, arc) in enumerate(sorted(row)):
            feet[arc, m] = centres[m] + SLOT * (k - (len(row) - 1) / 2)
    return feet


def _drawn(
    arc: Arc, feet: dict[tuple[Arc, int], float], ground: float, rise: float, dashed: bool
) -> tuple[str, str, str]:
    """An arc, its point, and its label; ``rise`` is negative above the words."""
    up = 1.0 if rise < 0 else -1.0
    end, crest = feet[arc, arc.word], ground + rise
    dash = ' stroke-dasharray="5 3.5"' if dashed else ""
    if arc.head == 0:
        middle, path = end, f"M{_n(end)} {_n(crest + 4 * up)}V{_n(ground - 4 * up)}"
        label = arc.label or "root"
    else:
        start = feet[arc, arc.head]
        side = 1.0 if end > start else -1.0
        corner = min(CORNER, abs(end - start) / 2)
        a, b = start + side * corner, end - side * corner
        x, y, bend = _n(end), _n(crest), _n(crest + corner * up)
        path = (
            f"M{_n(start)} {_n(ground)}V{bend}Q{_n(start)} {y} {_n(a)} {y}H{_n(b)}"
            f"Q{x} {y} {x} {bend}V{_n(ground - 4 * up)}"
        )
        middle, label = (start + end) / 2, arc.label
    point = f"M{_n(end)} {_n(ground)}l-3.2 {_n(-7 * up)}h6.4z"
    baseline = crest + SMALL * 0.35 if arc.head else crest + (0.0 if up > 0 else SMALL * 0.75)
    return f'<path d="{path}"{dash}/>', point, _text(label, middle, baseline)


def _group(look: str, drawn: Sequence[tuple[str, str, str]]) -> str:
    """Arcs of one look, and their labels in front of them."""
    arcs, points, labels = ("".join(parts) for parts in zip(*drawn, strict=True))
    # A wide stroke in the colour of the paper keeps lines away from the letters.
    halo = f"stroke:{PAPER};stroke-width:5;stroke-linejoin:round;paint-order:stroke"
    ink = INK if look == MUTED else look
    return (
        f'<g style="color:{look}" fill="none" stroke="currentColor" stroke-width="1.4">{arcs}'
        f'<path d="{points}" fill="currentColor" stroke="none"/>'
        f'<g font-size="{SMALL:g}" style="fill:{ink};{halo}">{labels}</g></g>'
    )


def _n(value: float) -> str:
    """A coordinate in few letters."""
    return f"{value:.1f}".removesuffix(".0")


def _text(text: str, x: float, y: float) -> str:
    return f'<text x="{_n(x)}" y="{_n(y)}">{escape(text)}</text>' if text else ""
