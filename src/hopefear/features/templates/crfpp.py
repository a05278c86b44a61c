"""CRF++ template files, read as they are (and Wapiti patterns of the same form).

``U02:%x[0,0]/%x[1,1]`` is an attribute of a token, ``B…`` of a pair of labels, ``*…`` (Wapiti) of
both; ``%x[row,column]`` is the string so many tokens away in a column counted from 0. Lines with
the same text around their macros share attributes, which makes bags of words.
"""

from __future__ import annotations

import re

from hopefear.errors import InputError
from hopefear.features.templates.spec import (
    MAX_OFFSET,
    MAX_TEMPLATES,
    ON_BOTH,
    ON_EDGES,
    ON_LABELS,
    Source,
    Template,
    Templates,
    Term,
)

_MACRO = re.compile(r"%x\[\s*([+-]?\d+)\s*,\s*(\d+)\s*\]")
_OTHER_MACRO = re.compile(r"%[A-Za-z]\S*")
_LINE = re.compile(r"[UuBb*](\S*[:%]|\d*$)")
_ON = {"U": ON_LABELS, "B": ON_EDGES, "*": ON_BOTH}
_MAX_COLUMN = 999


def looks_like_crfpp(text: str) -> bool:
    """Whether the first line with content is a CRF++ template.

    >>> looks_like_crfpp("# Unigram\\nU00:%x[-2,0]"), looks_like_crfpp("padding = true")
    (True, False)
    """
    for line in text.splitlines():
        line = line.strip()
        if line and not line.startswith("#"):
            return _LINE.match(line) is not None
    return False


def parse_crfpp(text: str, source: str) -> Templates:
    """Read the text of a CRF++ template file."""
    found: list[Template] = []
    transitions = False
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        template = template_of(line, source, number)
        if template.on != ON_LABELS and not template.terms:
            transitions = True
            if template.on == ON_EDGES:
                continue
        found.append(template)
    if not found and not transitions:
        raise InputError(source, 0, "at least one CRF++ template such as U00:%x[0,0]")
    if len(found) > MAX_TEMPLATES:
        raise InputError(source, 0, f"at most {MAX_TEMPLATES} templates", str(len(found)))
    return Templates(tuple(found), True, "crfpp", transitions, source=source)


def template_of(line: str, source: str, number: int) -> Template:
    """The template on one line.

    >>> t = template_of("U05:%x[-1,0]/%x[0,0]", "template", 7)
    >>> t.pieces, [term.offset for term in t.terms]
    (('U05:', '/', ''), [-1, 0])
    """
    on = _ON.get(line[0].upper())
    if on is None:
        raise InputError(source, number, "a template that begins with U, B or *", line)
    terms: list[Term] = []
    for row, column in _MACRO.findall(line):
        # Digits without end would be refused by int() itself.
        if len(row) > 6 or not -MAX_OFFSET <= int(row) <= MAX_OFFSET:
            raise InputError(source, number, f"rows from -{MAX_OFFSET} to {MAX_OFFSET}", row)
        if len(column) > 6 or int(column) > _MAX_COLUMN:
            raise InputError(source, number, f"columns from 0 to {_MAX_COLUMN}", column)
        terms.append(Term(Source(int(column)), (), int(row)))
    pieces = tuple(_MACRO.split(line)[::3])
    for piece in pieces:
        other = _OTHER_MACRO.search(piece)
        if other is not None:
            raise InputError(
                source,
                number,
                "only %x[row,column] macros (regular expressions and forms such as %X, %t and %m "
                "are Wapiti's; use a TOML file with views)",
                other.group(),
            )
    return Template(line, pieces, tuple(terms), on=on, line=number)
