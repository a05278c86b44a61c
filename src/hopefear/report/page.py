"""A page: one HTML file with everything inside, for screens, paper and screen readers.

It is complete without its script, which sorts tables, hides curves and filters errors. Numbers in
a column of a table share their decimals and are aligned; the best ones are highlighted.
"""

from __future__ import annotations

import base64
import hashlib
import math
import numbers
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import Literal

from hopefear import __version__
from hopefear.report.arcs import ArcDiagram
from hopefear.report.error_examples import ErrorExamples
from hopefear.report.examples import view_html
from hopefear.report.plot import Plot
from hopefear.report.theme import DARK, LIGHT, escape, inline, paragraphs

Cell = object
Best = Literal["max", "min"]
ABSENT = "–"
_NUMERIC = re.compile(r"[-−+<>≤≥~≈]?\s*\d[\d,.]*(?:[eE][-+]?\d+)?\s*(?:%|±.*|×|s|ms|[kMG]B?)?")
_ALIGN = {"l": "", "r": ' class="r"', "c": ' class="c"'}


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    caption: str = "",
    align: str | None = None,
    highlight: Mapping[str, Best] | None = None,
    notes: str | Sequence[str] | None = None,
) -> str:
    """HTML of a table; see :meth:`Page.table`."""
    for i, row in enumerate(rows):
        if len(row) != len(columns):
            raise ValueError(
                f"row {i} has {len(row)} cells but the table has {len(columns)} "
                "columns; give one cell per column (None leaves it empty)"
            )
    if align is not None and (not 0 < len(align) <= len(columns) or set(align) - set(_ALIGN)):
        raise ValueError(
            f"align {align!r} does not fit {len(columns)} columns; "
            "give one letter of 'l', 'r', 'c' per column, the last one for all that follow"
        )
    cells = [[row[j] for row in rows] for j in range(len(columns))]
    sides = align and align.ljust(len(columns), align[-1])
    sides = sides or "".join("r" if _is_numeric(column) else "l" for column in cells)
    texts = [_format(column) for column in cells]
    best = _best(columns, cells, highlight or {})
    head = "".join(
        f'<th scope="col"{_ALIGN[a]}>{escape(c)}</th>' for c, a in zip(columns, sides, strict=True)
    )
    body = []
    for i in range(len(rows)):
        line = []
        for j, side in enumerate(sides):
            text = escape(texts[j][i])
            if j == 0 and side == "l":
                short = ' class="n"' if len(texts[j][i]) <= 40 else ""
                line.append(f'<th scope="row"{short}>{text}</th>')
            elif i in best.get(j, ()):
                line.append(
                    f'<td class="{"" if side == "l" else side} best"><strong>{text}</strong></td>'
                )
            else:
                line.append(f"<td{_ALIGN[side]}>{text}</td>")
        body.append(f"<tr>{''.join(line)}</tr>")
    title = f"<caption>{inline(caption)}</caption>" if caption else ""
    name = escape(caption or "table")
    lines = [notes] if isinstance(notes, str) else list(notes or ())
    under = "".join(f"<p>{inline(line)}</p>" for line in lines)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{name}">'
        f"{'<table class=sort>' if len(rows) > 1 else '<table>'}{title}"
        f"<thead><tr>{head}</tr></thead>\n<tbody>"
        + "\n".join(body)
        + "</tbody></table></div>"
        + (f'<div class="notes">{under}</div>' if under else "")
    )


def value_text(value: object) -> str:
    """One value as text: short for numbers, ``key=value`` for mappings, a dash for nothing.

    Examples
    --------
    >>> value_text(0.1), value_text(None), value_text({"a": 1, "b": True})
    ('0.1', '–', 'a=1, b=yes')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, numbers.Integral):
        return f"{int(value):,}"
    if isinstance(value, numbers.Real):
        return f"{float(value):.6g}"
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{k}={value_text(v)}" for k, v in value.items() if k != "name")
        return f"{value['name']}({pairs})" if "name" in value else pairs or ABSENT
    if isinstance(value, (list, tuple)):
        return ", ".join(value_text(v) for v in value) or ABSENT
    return str(value)


def _format(column: Sequence[Cell]) -> list[str]:
    fractions = [_fraction(value) for value in column]
    decimals = _decimals([f for f in fractions if f is not None and math.isfinite(f)])
    return [
        value_text(value) if fraction is None else _number(fraction, decimals)
        for value, fraction in zip(column, fractions, strict=True)
    ]


def _decimals(values: Sequence[float]) -> int | None:
    """Decimals for a whole column, or None where its values are too far apart for one choice."""
    top = max((abs(v) for v in values), default=0.0)
    max_decimals = 4 if top < 1 else 2 if top < 1e3 else 1 if top < 1e4 else 0
    if top >= 1e12 or any(0 < abs(v) < 0.5 * 10**-max_decimals for v in values):
        return None
    enough = (
        d for d in range(max_decimals) if all(round(v, d) == round(v, max_decimals) for v in values)
    )
    return max(next(enough, max_decimals), min(max_decimals, 1))


def _number(value: float, decimals: int | None) -> str:
    if math.isnan(value):
        return ABSENT
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.3g}" if decimals is None else f"{value:,.{decimals}f}"
    return text.replace("-", "−", 1) if text.startswith("-") else text


def _best(
    columns: Sequence[str], cells: Sequence[Sequence[Cell]], highlight: Mapping[str, Best]
) -> dict[int, set[int]]:
    best = {}
    for name, kind in highlight.items():
        if name not in columns:
            raise ValueError(
                f"highlight names column {name!r}, which the table lacks; "
                f"it has {', '.join(columns)}"
            )
        if kind not in ("max", "min"):
            raise ValueError(f"highlight of {name!r} is {kind!r}; use 'max' or 'min'")
        j = list(columns).index(name)
        values = {i: v for i, v in enumerate(map(_as_number, cells[j])) if v is not None}
        # Among fewer than two there is nothing to be better than.
        if len(values) > 1:
            target = max(values.values()) if kind == "max" else min(values.values())
            best[j] = {i for i, v in values.items() if v == target}
    return best


def _as_number(value: Cell) -> float | None:
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return None if math.isnan(float(value)) else float(value)
    match = (
        re.match(r"\s*[-−+]?\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?", value)
        if isinstance(value, str)
        else None
    )
    return float(match[0].replace(",", "").replace("−", "-")) if match else None


def _fraction(value: Cell) -> float | None:
    real = isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral)
    return float(value) if real else None  # type: ignore[arg-type]


def _is_numeric(column: Sequence[Cell]) -> bool:
    has_number = False
    for value in column:
        if value is None or (isinstance(value, str) and value.strip() in ("", ABSENT, "-", "—")):
            continue
        number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not number and not (isinstance(value, str) and _NUMERIC.fullmatch(value.strip())):
            return False
        has_number = True
    return has_number


# Pages fetch nothing and run nothing but their own script, whatever a cell contains.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'; base-uri 'none'; "
    "form-action 'none'"
)
_SMALL_WIDTH, _SMALL_HEIGHT = 480, 330


class Page:
    """A report built from top to bottom, then written as one self-contained file.

    Parameters
    ----------
    title : str
        Heading of the page and name of its tab.
    subtitle : str
        One line under the heading; may hold ```code```, ``**bold**`` and links.
    signature : str
        Origin of the numbers, for the footer under the version. May have several lines.

    Examples
    --------
    >>> page = Page("Two learners", "on a made-up problem", signature="seed:1")
    >>> page = page.section("Results").text("Error in **percent**.")
    >>> page = page.table(["learner", "error"], [["perceptron", 4.0], ["vrda", 3.5]],
    ...                   highlight={"error": "min"})
    >>> "<strong>3.5</strong>" in page.html()
    True
    """

    def __init__(self, title: str, subtitle: str = "", *, signature: str = "") -> None:
        self.title, self.subtitle, self.signature = title, subtitle, signature
        self._body: list[str] = []
        self._sections: list[tuple[str, str]] = []
        self._in_section = False
        self._plots = 0

    def section(self, title: str, level: Literal[2, 3] = 2) -> Page:
        """Start a section; level 2 is listed in the table of contents, level 3 is not."""
        if level == 3:
            return self._put(f"<h3>{escape(title)}</h3>")
        if self._in_section:
            self._put("</section>")
        name = f"s{len(self._sections) + 1}"
        self._sections.append((name, title))
        self._in_section = True
        return self._put(f'<section aria-labelledby="{name}"><h2 id="{name}">{escape(title)}</h2>')

    def text(self, text: str) -> Page:
        """Add paragraphs; a blank line parts them, ```code```, ``**bold**``, links work."""
        return self._put(paragraphs(text))

    def table(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[Cell]],
        caption: str = "",
        align: str | None = None,
        highlight: Mapping[str, Best] | None = None,
        notes: str | Sequence[str] | None = None,
    ) -> Page:
        """Adds a table; columns of numbers are aligned right and share their decimals.

        Parameters
        ----------
        columns : sequence of str
            Headings.
        rows : sequence of sequences
            Cells: numbers, texts pairs as they are, or None for none.
        caption : str
            Says what the table shows.
        align : str, optional
            A letter per column: ``l``, ``r`` or ``c``; the last one is for all further columns.
        highlight : mapping, optional
            From a column to ``"max"`` or ``"min"``: its best values are set bold.
        notes : str or sequence of str, optional
            Lines under the table.
        """
        return self._put(table(columns, rows, caption, align, highlight, notes))

    def matrix(
        self, labels: Sequence[str], values: Sequence[Sequence[float]], caption: str = ""
    ) -> Page:
        """Add a square of numbers: counts shaded by their share of the row, or signed weights.

        Examples
        --------
        >>> "<table" in Page("x").matrix(["a", "b"], [[3, 1], [0, 2]], "Confusion.").html()
        True
        """
        if len(values) != len(labels) or any(len(row) != len(labels) for row in values):
            raise ValueError(f"{len(labels)} labels do not fit the numbers; give a square of them")
        is_integral = all(isinstance(v, numbers.Integral) for row in values for v in row)
        top = max((abs(v) for row in values for v in row), default=0.0) or 1.0
        head = "".join(f'<th scope="col" class="r">{escape(name)}</th>' for name in labels)
        lines = []
        for name, row in zip(labels, values, strict=True):
            scale, decimals = (max(1, sum(row)), 0) if is_integral else (top, 2)
            cells = "".join(
                f'<td class="r"{_shade(v / scale)}>'
                f"{'·' if not is_integral and abs(v) < 0.005 else _number(v, decimals)}</td>"
                for v in row
            )
            lines.append(f'<tr><th scope="row" class="n">{escape(name)}</th>{cells}</tr>')
        label = escape(caption or "matrix")
        title = f"<caption>{inline(caption)}</caption>" if caption else ""
        return self._put(
            f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">'
            f'<table class="matrix">{title}'
            f"<thead><tr><td></td>{head}</tr></thead>\n<tbody>{''.join(lines)}</tbody></table></div>"
        )

    def plot(self, plot: Plot, caption: str = "") -> Page:
        """Add one plot with a caption under it."""
        return self._put(self._figure(plot, caption))

    def figures(self, plots: Sequence[Plot], captions: Sequence[str] | None = None) -> Page:
        """Adds small plots side by side, as many in a row as fit the window."""
        below = list(captions) if captions is not None else [""] * len(plots)
        if len(below) != len(plots):
            raise ValueError(f"{len(below)} captions for {len(plots)} plots; give equally many")
        inside = "\n".join(
            self._figure(p, c, _SMALL_WIDTH, _SMALL_HEIGHT)
            for p, c in zip(plots, below, strict=True)
        )
        return self._put(f'<div class="figures">\n{inside}\n</div>')

    def tree(self, diagram: ArcDiagram, caption: str = "") -> Page:
        """Add the picture of a dependency tree; a long sentence scrolls in its own box."""
        self._plots += 1
        below = f"<figcaption>{inline(caption)}</figcaption>" if caption else ""
        return self._put(f"<figure>{view_html(diagram, f'p{self._plots}')}{below}</figure>")

    def cases(self, cases: ErrorExamples) -> Page:
        """Add the errors of a model, which the script of the page filters."""
        self._plots += 1
        return self._put(cases.to_html(f"p{self._plots}"))

    def choices(self, title: str, parts: Mapping[str, Callable[[], Page]], chosen: str) -> Page:
        """Add several parts of which one is seen, and buttons to choose it by.

        Parameters
        ----------
        title : str
            What the choice is about.
        parts : mapping
            From the name of each part to what adds it to the page.
        chosen : str
            The name of the part that is seen first.

        Examples
        --------
        >>> page = Page("Two")
        >>> parts = {name: lambda name=name: page.text(name) for name in ("one", "two")}
        >>> page.choices("Number", parts, "two").html().count('type="radio"')
        2
        """
        self._plots += 1
        group = f"p{self._plots}"
        # Inputs precede the parts, so that style alone can show the chosen one.
        boxes = "".join(
            f'<label><input type="radio" name="{group}" value="{k}"'
            f"{' checked' if name == chosen else ''}> {escape(name)}</label>"
            for k, name in enumerate(parts)
        )
        self._put(
            f'<div class="choices"><fieldset><legend>{escape(title)}</legend>{boxes}</fieldset>'
        )
        for k, add in enumerate(parts.values()):
            self._put(f'<div class="part part{k}">')
            add()
            self._put("</div>")
        return self._put("</div>")

    def keyvalues(self, values: Mapping[str, object]) -> Page:
        """Add names and values, one pair per line."""
        pairs = "\n".join(
            f"<dt>{escape(k)}</dt><dd>{escape(value_text(v))}</dd>" for k, v in values.items()
        )
        return self._put(f"<dl>\n{pairs}\n</dl>")

    @contextmanager
    def details(self, title: str, open: bool = False) -> Iterator[Page]:
        """Fold away what is added inside the ``with`` block; it opens with mouse or keyboard.

        Examples
        --------
        >>> page = Page("Run")
        >>> with page.details("Settings"):
        ...     _ = page.keyvalues({"rate": 0.1})
        """
        self._put(f"<details{' open' if open else ''}><summary>{escape(title)}</summary>")
        before = len(self._sections)
        yield self
        if len(self._sections) != before:
            raise ValueError(
                f"a section began inside details {title!r}; begin it before or after, "
                "or give it level 3"
            )
        self._put("</details>")

    def code(self, text: str) -> Page:
        """Add text with its spacing kept, such as a command or a file."""
        return self._put(f'<pre tabindex="0"><code>{escape(text)}</code></pre>')

    def html(self) -> str:
        """The whole page as text."""
        subtitle = f'\n<p class="subtitle">{inline(self.subtitle)}</p>' if self.subtitle else ""
        end = "\n</section>" if self._in_section else ""
        signature = "".join(
            f"<p><code>{escape(line)}</code></p>" for line in self.signature.splitlines()
        )
        script = _file("script.js")
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY.format(digest)}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n'
            f"<title>{escape(self.title)}</title>\n<style>\n{_style()}</style>\n</head>\n<body>\n"
            '<a class="skip" href="#main">Skip to the content</a>\n'
            f"<header>\n<h1>{escape(self.title)}</h1>{subtitle}\n{self._contents()}</header>\n"
            '<main id="main">\n' + "\n".join(self._body) + f"{end}\n</main>\n"
            f"<footer><p>hopefear {escape(__version__)}</p>{signature}</footer>\n"
            f"<script>{script}</script>\n</body>\n</html>\n"
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the page; a reader sees the old file or the new one, never half of it."""
        from hopefear.storage import write_atomically

        write_atomically(path, self.html().encode("utf-8"))

    def _put(self, element: str) -> Page:
        self._body.append(element)
        return self

    def _figure(self, plot: Plot, caption: str, width: int = 760, height: int = 400) -> str:
        self._plots += 1
        below = f"<figcaption>{inline(caption)}</figcaption>" if caption else ""
        return f"<figure>{plot.to_svg(width, height, f'p{self._plots}')}{below}</figure>"

    def _contents(self) -> str:
        if len(self._sections) < 2:
            return ""
        links = "".join(
            f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title in self._sections
        )
        return f'<nav class="contents" aria-label="Contents"><ul>{links}</ul></nav>\n'


def _shade(share: float) -> str:
    """A background for a share of a whole from -1 to 1; the two signs differ in colour."""
    percent = round(55 * min(1.0, abs(share)))
    if not percent:
        return ""
    colour = f"var(--hf-{0 if share > 0 else 1})"
    return f' style="background:color-mix(in srgb,{colour} {percent}%,transparent)"'


def _style() -> str:
    text = _file("style.css") + _file("examples.css")
    for mark, colours in (("LIGHT_COLOURS", LIGHT), ("DARK_COLOURS", DARK)):
        text = text.replace(mark, " ".join(f"--hf-{i}: {c};" for i, c in enumerate(colours)))
    return text


@cache
def _file(name: str) -> str:
    return files("hopefear.report").joinpath(name).read_text(encoding="utf-8")
