"""Pages of experiments as data: text in ``page.md``, tables and plots by name, one way to print.

``page.md`` has the title, the paper, and sections of paragraphs. ``{name}`` in a paragraph is a
value of the report, and a paragraph ``[[name]]`` its table, plots or other blocks: what the method
of that name returns. A section whose every block has nothing to show is left out. What stands
between ``<details> Title`` and ``</details>`` is folded away.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from hopefear.report import Page
from hopefear.report.page import Best
from hopefear.report.plot import Plot
from hopefear_papers.claims import Verdict, tally

_BLOCK = re.compile(r"\[\[(\w+)\]\]")
_FOLDED = re.compile(r"<details> (.+)")


class Table(NamedTuple):
    """A table; fields as in :meth:`hopefear.report.Page.table`."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str = ""
    align: str | None = None
    highlight: Mapping[str, Best] | None = None
    notes: str | None = None


class Heading(NamedTuple):
    """Begins a section; level 3 is a part of a section."""

    title: str
    level: Any = 2


class Code(NamedTuple):
    """Text with its spacing."""

    text: str


class Details(NamedTuple):
    """Blocks that are folded away."""

    title: str
    blocks: Iterable[Block]


# Text is paragraphs, a mapping names and values, and plots of a list stand side by side.
Block: TypeAlias = (
    "Table | Heading | Code | Details | Plot | Sequence[Plot] | Mapping[str, Any] | str"
)


class Report:
    """What a page shows: a method for each ``[[name]]`` of its ``page.md``.

    Parameters
    ----------
    results : object
        What was measured.
    verdicts : sequence of Verdict
        On the claims of the paper.
    call : Call
        See :class:`hopefear_papers.frame.Call`.
    """

    place = ""  # what results.json calls the place of a verdict; empty where there is one place
    place_title = ""  # its head in a table, where it is another
    claim = "claim of the paper"  # head of the table of verdicts
    ours: Sequence[str] = ()  # beginnings of claims that are not the paper's

    def __init__(self, results: Any, verdicts: Sequence[Verdict], call: Any) -> None:
        self.results, self.all_verdicts, self.call, self.plan = results, verdicts, call, call.plan

    def places(self) -> Mapping[Any, str]:
        """Columns of the table of verdicts: places and their heads."""
        raise NotImplementedError

    def values(self) -> dict[str, Any]:
        """What ``{name}`` stands for in every page."""
        theirs = [v for v in self.all_verdicts if not v.claim.startswith(tuple(self.ours))]
        return {
            "plan": self.plan,
            "n_seeds": len(getattr(self.plan, "seeds", ())),
            "note": f"**{self.call.note}**" if self.call.note else "",
            "checks": len(theirs),
            "tally": tally(theirs),
        }

    def verdicts(self) -> Iterator[Block]:
        """A row a claim, a column a place; the numbers are there to be opened."""
        places, words = self.places(), {(v.claim, v.where): v.verdict for v in self.all_verdicts}
        claims = dict.fromkeys(v.claim for v in self.all_verdicts if v.where in places)
        rows = [[text, *(words.get((text, where)) for where in places)] for text in claims]
        yield Table([self.claim, *places.values()], rows, "Verdicts.")
        heads = ["claim", self.place_title or self.place, "verdict", "evidence"]
        numbers = Table(heads, [list(v) for v in self.all_verdicts], align="llll")
        yield Details("The numbers behind each verdict", [numbers])


def blocks_of(template: str, report: Report) -> list[Block]:
    """Reads the sections of a template and fills them.

    >>> from types import SimpleNamespace
    >>> report = Report(None, [], SimpleNamespace(plan=None, note=""))
    >>> report.none, report.sizes = list, lambda: Table(["n"], [[1]])
    >>> text = "## Sizes\\n\\n{checks} checks.\\n\\n[[sizes]]\\n\\n## Times\\n\\n[[none]]"
    >>> [type(block).__name__ for block in blocks_of(text, report)]
    ['Heading', 'str', 'Table']
    """
    values = report.values()
    return [
        block
        for section in re.split(r"(?m)^(?=## )", template)
        for block in _section(re.split(r"\n\s*\n", section.strip()), report, values)
    ]


def _section(parts: Sequence[str], report: Report, values: Mapping[str, Any]) -> list[Block]:
    """Blocks of a section, from its paragraphs."""
    names = [match[1] for part in parts if (match := _BLOCK.fullmatch(part))]
    blocks_by_name = {name: _as_blocks(getattr(report, name)()) for name in names}
    if names and not any(blocks_by_name.values()):
        return []
    blocks: list[Block] = []
    target = blocks
    for part in parts:
        if match := _BLOCK.fullmatch(part):
            target.extend(blocks_by_name[match[1]])
        elif match := _FOLDED.fullmatch(part):
            target = []
            blocks.append(Details(match[1].format_map(values), target))
        elif part == "</details>":
            target = blocks
        elif part.startswith("#"):
            marks, _, title = part.partition(" ")
            target.append(Heading(title, len(marks)))
        elif text := part.format_map(values):
            target.append(text)
    return blocks


def _as_blocks(value: Any) -> list[Block]:
    """Blocks of what a method returned: one of them, plots side by side, several, or nothing."""
    if value is None or isinstance(value, Table | Heading | Code | Details | Plot | Mapping | str):
        return [] if value is None else [value]
    several = list(value)
    return [several] if several and all(isinstance(one, Plot) for one in several) else several


def show(page: Page, blocks: Iterable[Block]) -> Page:
    """Adds blocks to a page."""
    for block in blocks:
        match block:
            case Table():
                page.table(*block)
            case Heading(title, level):
                page.section(title, level)
            case Code(text):
                page.code(text)
            case Details(title, inside):
                with page.details(title):
                    show(page, inside)
            case str():
                page.text(block)
            case Plot():
                page.plot(block)
            case Mapping():
                page.keyvalues(block)
            case _:
                page.figures(block)
    return page


def crossed(
    head: str,
    rows: Mapping[str, Any],
    places: Iterable[Any],
    heads: Any,
    cells: Any,
    caption: str = "",
) -> Table:
    """A table with a row for each of ``rows`` (by title) and one or more columns for each place.

    Parameters
    ----------
    head : str
        Of the titles.
    rows, places
        What is crossed.
    heads : callable
        From a place to the heads of its columns.
    cells : callable
        From a row and a place to as many cells.
    caption : str
        Of the table.
    """
    places = list(places)
    columns = [head, *(name for place in places for name in heads(place))]
    body = [[title, *(c for p in places for c in cells(row, p))] for title, row in rows.items()]
    return Table(columns, body, caption, "lr")
