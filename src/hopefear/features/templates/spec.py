"""What a set of templates says, before any data is seen."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from hopefear.errors import HopefearError

ON_LABELS, ON_EDGES, ON_BOTH = "labels", "edges", "both"
ANYWHERE, FIRST_TOKEN, LAST_TOKEN = 0, 1, 2  # bits of Template.where
MAX_OFFSET = 1000
MAX_TEMPLATES = 60_000  # an attribute keeps its template in 16 bits


class View(NamedTuple):
    """A function of one string, by name, with its arguments: ``suffix`` with ``(3,)``."""

    name: str
    args: tuple[int | str, ...] = ()


class Source(NamedTuple):
    """Where the strings of a term come from: a column, or the matches of a lexicon in one.

    A number instead of a name is a place in the file, which CRF++ templates use.
    """

    column: str | int
    lexicon: str = ""
    views: tuple[View, ...] = ()  # applied to the column before the lexicon is asked

    def needs(self) -> str:
        """Name of the column, of a source whose places were resolved."""
        return str(self.column)


class Term(NamedTuple):
    """One piece of a template: a source, seen through views, some tokens away."""

    source: Source
    views: tuple[View, ...] = ()
    offset: int = 0


@dataclass(frozen=True)
class Template:
    """A feature template: the strings of its terms, joined, are an attribute of the token.

    Parameters
    ----------
    text : str
        As the user wrote it; parsing it again gives this template.
    pieces : tuple of str
        What stands before, between and behind the strings of the terms in a name.
    terms : tuple of Term
        In the order of the name; at most one gives several strings.
    number : Term, optional
        Its string, read as a number, is the value of the attribute; 1 without.
    where : int
        Bits: only at the first, only at the last token of a sentence.
    on : str
        ``labels``, ``edges`` (pairs of labels) or ``both``.
    line : int
        Line in the file, 0 if unknown.
    when : tuple of str
        Columns without which the template is left out.
    optional : bool
        May fire on nothing; without, that is refused as a slip.
    """

    text: str
    pieces: tuple[str, ...]
    terms: tuple[Term, ...] = ()
    number: Term | None = None
    where: int = ANYWHERE
    on: str = ON_LABELS
    line: int = 0
    when: tuple[str, ...] = ()
    optional: bool = False

    def all_terms(self) -> tuple[Term, ...]:
        """Terms, with the number."""
        return self.terms if self.number is None else (*self.terms, self.number)


@dataclass(frozen=True)
class Templates:
    """A template file: its templates and what holds for all of them.

    Parameters
    ----------
    templates : tuple of Template
        In the order of the file, which is the order of a token's attributes.
    padding : bool
        Outside the sentence stand ``_B-1``, ``_B+1`` and so on; if false, a template that reaches
        outside does not fire.
    syntax : str
        ``toml`` or ``crfpp``: how the texts of the templates are read.
    transitions : bool
        Whether pairs of labels get a weight by themselves; a CRF++ file says so with ``B``.
    lexicons : mapping of str to tuple of str
        Entries by the name of the lexicon.
    source : str
        File, for messages.

    Examples
    --------
    >>> from hopefear.features.templates import load_templates
    >>> len(load_templates("crfsuite-chunking"))
    21
    """

    templates: tuple[Template, ...]
    padding: bool = False
    syntax: str = "toml"
    transitions: bool = True
    lexicons: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    source: str = "memory"

    def __len__(self) -> int:
        return len(self.templates)

    def place(self, template: Template) -> str:
        """``path:line: template 'text'``, for messages."""
        line = f":{template.line}" if template.line else ""
        return f"{self.source}{line}: template {template.text!r}"

    def for_columns(self, columns: Collection[str]) -> Templates:
        """The templates that apply to a file with these columns, every column by its name.

        ``in`` decides what is there, so that a table of columns may know other names for them.
        Raises HopefearError for a column that is not there, unless the template says ``when``.
        """
        kept = [t for t in self.templates if all(name in columns for name in t.when)]
        for template in kept:
            for term in template.all_terms():
                _check_column(self, template, term.source.column, columns)
        return replace(
            self,
            templates=tuple(_resolved(t, list(columns)) for t in kept),
            lexicons={name: self.lexicons[name] for name in _lexicons_of(kept)},
        )

    def columns(self) -> tuple[str, ...]:
        """Columns that are needed, by name where the file gives names, else by place."""
        return tuple(
            dict.fromkeys(str(s.source.column) for t in self.templates for s in t.all_terms())
        )


def _check_column(
    templates: Templates, template: Template, column: str | int, columns: Collection[str]
) -> None:
    if isinstance(column, int):
        if column < len(columns):
            return
        asked = f"column {column} (counted from 0)"
    elif column in columns:
        return
    else:
        asked = f"the column {column!r}"
    raise HopefearError(
        f"{templates.place(template)} needs {asked}, but the data has the columns "
        f"{', '.join(columns) or 'none'}; correct the template, or name the columns of the data"
    )


def _resolved(template: Template, columns: Sequence[str]) -> Template:
    if not any(isinstance(term.source.column, int) for term in template.terms):
        return template
    terms = tuple(
        t._replace(source=t.source._replace(column=columns[int(t.source.column)]))
        if isinstance(t.source.column, int)
        else t
        for t in template.terms
    )
    return replace(template, terms=terms)


def _lexicons_of(templates: Iterable[Template]) -> dict[str, None]:
    return dict.fromkeys(
        term.source.lexicon for t in templates for term in t.all_terms() if term.source.lexicon
    )
