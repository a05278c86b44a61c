"""Sets of templates before any data is read, and the lexicons that they name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hopefear.core.component import kernel
from hopefear.errors import HopefearError, InputError
from hopefear.storage import read_small

_MAX_LEXICON_BYTES = 1 << 28

ON_LABELS, ON_EDGES, ON_BOTH = "labels", "edges", "both"
ANYWHERE, FIRST_TOKEN, LAST_TOKEN = 0, 1, 2  # bits of Template.where
MAX_OFFSET = 1000
MAX_TEMPLATES = 60_000  # an attribute keeps its template in 16 bits


class StringView(NamedTuple):
    """A function of one string, by name, with its arguments: ``suffix`` with ``(3,)``."""

    name: str
    args: tuple[int | str, ...] = ()


class StringSource(NamedTuple):
    """Source of a term's strings: a column, or the matches of a lexicon in one.

    A number instead of a name is a place in the file, which CRF++ templates use.
    """

    column: str | int
    lexicon: str = ""
    views: tuple[StringView, ...] = ()  # applied to the column before the lexicon is matched

    def needs(self) -> str:
        """Name of the column, of a source whose places were resolved."""
        return str(self.column)


class Term(NamedTuple):
    """One piece of a template: a source, seen through views, some tokens away."""

    source: StringSource
    views: tuple[StringView, ...] = ()
    offset: int = 0


@dataclass(frozen=True)
class Template:
    """A feature template: the strings of its terms, joined, are an attribute of the token.

    Parameters
    ----------
    text : str
        As the user wrote it; parsing it again gives this template.
    pieces : tuple of str
        Text before, between and after the strings of the terms in a name.
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
        Whether pairs of labels get weights without features; ``B`` in a CRF++ file.
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
        Raises HopefearError for a missing column, unless the template has ``when``.
        """
        usable = [t for t in self.templates if all(name in columns for name in t.when)]
        for template in usable:
            for term in template.all_terms():
                _check_column(self, template, term.source.column, columns)
        return replace(
            self,
            templates=tuple(_resolved(t, list(columns)) for t in usable),
            lexicons={name: self.lexicons[name] for name in _lexicons_of(usable)},
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
        requested = f"column {column} (counted from 0)"
    elif column in columns:
        return
    else:
        requested = f"the column {column!r}"
    raise HopefearError(
        f"{templates.place(template)} needs {requested}, but the data has the columns "
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


POSITIONS = ("B", "I")  # strings of the column that matching makes


class Trie(NamedTuple):
    """Entries as paths of word numbers; node 0 is the root."""

    edges: np.ndarray  # int64, rising: node << 32 | word
    target: np.ndarray  # int64, node an edge leads to
    ends: np.ndarray  # bool[nodes], whether an entry ends there


class Lexicon:
    """Entries ready to be matched.

    Parameters
    ----------
    entries : sequence of str
        Words, or phrases with spaces between their words.
    view : callable
        Applied to every word of an entry, as the templates apply it to tokens; None drops the
        entry.

    Examples
    --------
    >>> lexicon = Lexicon(["new york", "york"], str.lower)
    >>> words = ["in", "new", "york"]
    >>> lexicon.match(np.array([0, 3]), words, np.array([0, 1, 2], np.int32)).tolist()
    [-1, 0, 1]
    """

    def __init__(self, entries: Sequence[str], view: Callable[[str], str | None]) -> None:
        self._code: dict[str, int] = {}
        children: list[dict[int, int]] = [{}]
        ends = [False]
        for entry in entries:
            words = [view(word) for word in entry.split()]
            if not words or None in words:
                continue
            node = 0
            for word in words:
                number = self._code.setdefault(str(word), len(self._code))
                if number not in children[node]:
                    children[node][number] = len(children)
                    children.append({})
                    ends.append(False)
                node = children[node][number]
            ends[node] = True
        edges = [
            (a << 32 | word, b) for a, below in enumerate(children) for word, b in below.items()
        ]
        edges.sort()
        table = np.array(edges, np.int64).reshape(-1, 2)
        self._trie = Trie(table[:, 0].copy(), table[:, 1].copy(), np.array(ends))

    def match(self, starts: np.ndarray, strings: Sequence[str], ids: np.ndarray) -> np.ndarray:
        """Returns, for every token, 0 at the start of an entry, 1 inside of one, -1 elsewhere.

        ``strings`` are the distinct strings of the tokens as the entries' view leaves them.
        """
        code = np.fromiter((self._code.get(s, -1) for s in strings), np.int64, len(strings))
        words = code[ids] if len(ids) else np.zeros(0, np.int64)
        return _match(np.array(starts, np.int64), words, self._trie)


def read_lexicon(path: Path, name: str) -> tuple[str, ...]:
    """Entries of a file, one on each line; empty lines do not count.

    Parameters
    ----------
    path : Path
        The file.
    name : str
        Template file that names it, for messages.
    """
    try:
        with path.open("rb") as file:
            raw = read_small(file, path, _MAX_LEXICON_BYTES)
    except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise InputError(name, 0, f"a readable lexicon ({reason})", str(path)) from None
    entries = []
    for number, row in enumerate(raw.removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
        try:
            entry = " ".join(row.decode("utf-8").split())
        except UnicodeDecodeError:
            raise InputError(str(path), number, "text in UTF-8", repr(row)) from None
        if entry:
            entries.append(entry)
    if not entries:
        raise InputError(str(path), 0, "at least one word or phrase")
    return tuple(dict.fromkeys(entries))


@kernel
def _match(starts, words, trie):
    matches = np.full(len(words), -1, np.int32)
    for i in range(len(starts) - 1):
        k = starts[i]
        while k < starts[i + 1]:
            node, p, size = 0, k, 0
            while p < starts[i + 1] and words[p] >= 0:
                key = np.int64(node) << 32 | words[p]
                edge = np.searchsorted(trie.edges, key)
                if edge == len(trie.edges) or trie.edges[edge] != key:
                    break
                node = trie.target[edge]
                p += 1
                if trie.ends[node]:
                    size = p - k
            for q in range(size):
                matches[k + q] = 0 if q == 0 else 1
            k += max(size, 1)
    return matches
