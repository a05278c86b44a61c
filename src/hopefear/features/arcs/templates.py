"""Templates of arcs: combinations of fields of words, written as text.

A template is a line of fields, ``h.tag m.tag m-1.tag``, of a head ``h`` and its modifier ``m``.
Families of second order know one word more: ``s``, the modifier's sibling towards the head, and
``g``, the head's head. A field names a column, ``word``, ``lemma``, ``tag`` or ``coarse``, of the
word itself or of a neighbour (``m-1``, ``h+2``). Three fields stand for as many features as there
are values: ``h.morph`` and ``m.morph``, one for each morphological attribute, and ``between``, one
for each coarse tag between the two words. ``distance`` is the length of the arc in bins, ``commas``
how many marks of punctuation lie between, and ``like`` how many words with the head's coarse tag.
Whether words are left or right of each other is part of every feature.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hopefear.errors import HopefearError

COLUMNS = ("word", "lemma", "tag", "coarse")
FAMILIES = {"arc": "hm", "label": "hm", "sibling": "hsm", "grandparent": "ghm"}
# Words beyond the ends of a sentence that templates may look at, on either side.
REACH = 2
# Fields that are no columns of a word; their numbers follow those of the columns.
SPECIAL = ("distance", "commas", "like")
LISTS = ("morph of the first", "morph of the second", "between")
FIRST_MORPH, SECOND_MORPH, BETWEEN = 1, 2, 4
_FIELD = re.compile(r"([ghsm])([+-][12])?\.(\w+)")

_PAIRS = """
h.tag m.tag / h.word m.word / h.tag m.word / h.word m.tag / h.coarse m.coarse
h.word h.tag m.tag / h.tag m.word m.tag / h.word h.tag m.word m.tag
h.lemma m.lemma / h.lemma m.tag / h.tag m.lemma
"""
_AROUND = """
h.tag m.tag h-1.tag / h.tag m.tag h+1.tag / h.tag m.tag m-1.tag / h.tag m.tag m+1.tag
h.tag m.tag h-1.tag m-1.tag / h.tag m.tag h+1.tag m+1.tag / h.tag m.tag h-1.tag m+1.tag
h.tag m.tag h+1.tag m-1.tag / h.tag m.tag h-1.tag h+1.tag m-1.tag m+1.tag
h.coarse m.coarse h-1.coarse m-1.coarse / h.coarse m.coarse h+1.coarse m+1.coarse
h.coarse m.coarse h-1.coarse m+1.coarse / h.coarse m.coarse h+1.coarse m-1.coarse
"""
_MORPH = """
h.morph m.tag / h.tag m.morph / h.morph m.morph / h.morph h.tag m.morph m.tag
"""
ARC = f"""
distance / h.word / h.lemma / h.tag / h.coarse / h.word h.tag / m.word / m.tag / m.coarse
h.tag distance / m.tag distance / h.word distance / m.word distance
h.tag m.tag distance / h.word m.tag distance / h.tag m.word distance / h.word m.word distance
h.coarse m.coarse distance / h.morph distance / m.morph distance
h.tag h-1.tag / h.tag h+1.tag / h.tag h-1.tag h-2.tag / h.tag h+1.tag h+2.tag
m.tag m-1.tag / m.tag m+1.tag / m.tag m-1.tag m-2.tag / m.tag m+1.tag m+2.tag
h-1.word / h+1.word / m-1.word / m+1.word / h.tag m-1.word m.tag / h.tag m+1.word m.tag
{_PAIRS} {_AROUND}
h.tag m.tag h-1.tag m-1.tag distance / h.tag m.tag h+1.tag m+1.tag distance
h.tag m.tag h-1.tag m+1.tag distance / h.tag m.tag h+1.tag m-1.tag distance
h.tag m.tag between / h.coarse m.coarse between / h.word m.tag between / h.tag m.word between
h.tag m.tag commas / h.tag m.tag like / h.coarse m.coarse commas like / commas / like
{_MORPH} h.morph m.morph distance / h.word m.morph / h.morph m.word
"""
LABEL = f"""
m.word / m.lemma / m.tag / m.coarse / m.word m.tag / h.word / h.lemma / h.tag / h.word h.tag
m-1.word / m+1.word / m-1.tag / m+1.tag / h-1.tag / h+1.tag
m.tag m-1.tag / m.tag m+1.tag / m.tag m-1.tag m+1.tag / h.tag h-1.tag / h.tag h+1.tag
m.tag m-1.tag m-2.tag / m.tag m+1.tag m+2.tag
{_PAIRS}
h.tag m.tag distance / m.tag distance / h.coarse m.coarse distance / m.word distance
h.tag m.tag m-1.tag / h.tag m.tag m+1.tag / h.tag m.tag h-1.tag / h.tag m.tag h+1.tag
h.tag m.tag between
m.morph / h.morph / m.morph m.tag / h.morph m.tag / h.tag m.morph / h.morph m.morph
h.tag m.tag m.morph / h.word m.morph
"""
SIBLING = """
h.tag s.tag m.tag / h.word s.tag m.tag / h.tag s.word m.tag / h.tag s.tag m.word
h.word s.word m.tag / h.word s.tag m.word / h.tag s.word m.word / h.coarse s.coarse m.coarse
s.tag m.tag / s.word m.tag / s.tag m.word / s.word m.word / s.lemma m.lemma / h.tag s.tag
s.tag m.tag distance / h.tag s.tag m.tag distance / s.coarse m.coarse distance
s.morph m.morph / s.morph m.tag / s.tag m.morph / h.tag s.morph m.morph
s.tag m.tag s-1.tag / s.tag m.tag s+1.tag / s.tag m.tag m-1.tag / s.tag m.tag m+1.tag
s.tag m.tag s+1.tag m-1.tag / s.tag m.tag between / h.tag s.tag m.tag commas
"""
GRANDPARENT = """
g.tag h.tag m.tag / g.word h.tag m.tag / g.tag h.word m.tag / g.tag h.tag m.word
g.word h.word m.tag / g.word h.tag m.word / g.tag h.word m.word / g.coarse h.coarse m.coarse
g.tag m.tag / g.word m.tag / g.tag m.word / g.word m.word / g.lemma m.lemma
g.tag m.tag distance / g.tag h.tag m.tag distance / g.coarse m.coarse distance
g.morph m.morph / g.morph m.tag / g.tag m.morph / h.tag g.morph m.morph
g.tag m.tag m-1.tag / g.tag m.tag m+1.tag / g.tag m.tag g-1.tag / g.tag m.tag g+1.tag
g.tag h.tag m.tag commas
"""
# The set for pruning: quick, and good enough to leave the right head among ten.
LIGHT = f"""
distance / h.tag / h.word / m.tag distance / h.tag distance / h.tag m.tag distance
h.coarse m.coarse distance / h.tag m.tag / h.word m.tag / h.tag m.word / h.word m.word
{_AROUND} h.tag m.tag between / h.tag m.tag commas / h.morph m.tag / h.tag m.morph / h.morph m.morph
"""
BUILT_IN: dict[str, dict[str, str]] = {
    "standard": {"arc": ARC, "label": LABEL, "sibling": SIBLING, "grandparent": GRANDPARENT},
    "light": {"arc": LIGHT, "label": LABEL, "sibling": "", "grandparent": ""},
}


def lines(text: str | Sequence[str]) -> tuple[str, ...]:
    """Templates of a family, one a line or divided by slashes.

    >>> lines("h.tag / h.tag  m.tag")
    ('h.tag', 'h.tag m.tag')
    """
    parts = re.split(r"[/\n]", text) if isinstance(text, str) else text
    return tuple(dict.fromkeys(" ".join(part.split()) for part in parts if part.split()))


class ArcProgram(NamedTuple):
    """Templates of all families as kernels read them, in two arrays.

    Of family k, ``code[5 k : 5 k + 5]`` says: where its fields begin and how many there are, where
    its templates begin, how many there are, and where their seeds begin. A field is three numbers:
    which word (0 to 2, or -1 for fields of the whole), offset, column. A template is its number of
    fields, the lists it runs through, and then its fields.
    """

    code: np.ndarray  # int32
    seeds: np.ndarray  # uint64


def value_of(text: str, salt: str = "") -> int:
    """Hashes a text to 64 bits, alike on every machine.

    >>> value_of("cat") == value_of("cat") != value_of("cats")
    True
    """
    digest = hashlib.blake2b(
        text.encode("utf-8", "surrogatepass"), digest_size=8, key=salt.encode()
    )
    return int.from_bytes(digest.digest(), "little")


def compiled(
    family: str, templates: Sequence[str]
) -> tuple[list[tuple[int, int, int]], list[list[int]], list[int]]:
    """Fields, templates and seeds; what cannot be read is an error that names the template."""
    letters = FAMILIES[family]
    fields: dict[tuple[int, int, int], int] = {}
    steps, seeds = [], []
    for template in templates:
        kinds, slots = 0, []
        for field in template.split():
            if field in SPECIAL:
                key = (-1, 0, len(COLUMNS) + SPECIAL.index(field))
                slots.append(fields.setdefault(key, len(fields)))
                continue
            if field == "between":
                kinds |= BETWEEN
                continue
            match = _FIELD.fullmatch(field)
            if match is None or match[1] not in letters:
                raise HopefearError(
                    f"template {template!r} of the family {family}: {field!r} is no field; write "
                    f"such as {letters[-1]}.tag or {letters[0]}-1.word, or {', '.join(SPECIAL)}"
                )
            role, offset, column = letters.index(match[1]), int(match[2] or 0), match[3]
            if family == "sibling" and match[1] != "h" and abs(offset) > 1:
                raise HopefearError(
                    f"template {template!r}: siblings may be missing, so only the next neighbours "
                    f"of {match[1]} can be looked at, not {field}"
                )
            if column == "morph":
                pair = (letters[-2] if family != "grandparent" else "g", letters[-1])
                if match[1] not in pair or offset:
                    raise HopefearError(
                        f"template {template!r}: morph is that of {pair[0]} or {pair[1]} itself"
                    )
                kinds |= FIRST_MORPH if match[1] == pair[0] else SECOND_MORPH
            elif column in COLUMNS:
                key = (role, offset, COLUMNS.index(column))
                slots.append(fields.setdefault(key, len(fields)))
            else:
                raise HopefearError(
                    f"template {template!r}: there is no column {column!r}; there are "
                    f"{', '.join((*COLUMNS, 'morph'))}"
                )
        steps.append([len(slots), kinds, *slots])
        seeds.append(value_of(template, family))
    return list(fields), steps, seeds


@dataclass(frozen=True)
class ArcTemplates:
    """Templates of all families.

    Parameters
    ----------
    arc, label, sibling, grandparent : tuple of str
        Templates of arcs by themselves, of arcs with their relation, and of second order.

    Examples
    --------
    >>> templates = ArcTemplates.named("standard")
    >>> templates.arc[1], len(templates.label) > 40
    ('h.word', True)
    """

    arc: tuple[str, ...]
    label: tuple[str, ...] = ()
    sibling: tuple[str, ...] = ()
    grandparent: tuple[str, ...] = ()

    @classmethod
    def named(cls, name: str) -> ArcTemplates:
        """A built-in set: ``standard`` or ``light``."""
        if name not in BUILT_IN:
            raise HopefearError(
                f"arcs have the template sets {', '.join(BUILT_IN)}, not {name!r}; or give a file"
            )
        return cls.of(BUILT_IN[name])

    @classmethod
    def of(cls, families: Mapping[str, Any]) -> ArcTemplates:
        """From a mapping of families to their templates, as a TOML file has it."""
        unknown = sorted(set(families) - set(FAMILIES))
        if unknown:
            raise HopefearError(
                f"templates of arcs are in the families {', '.join(FAMILIES)}, not {unknown[0]!r}"
            )
        if not isinstance(families.get("arc"), str | list | tuple) or not lines(families["arc"]):
            raise HopefearError("templates of arcs need at least one in the family arc")
        templates = cls(**{family: lines(text) for family, text in families.items()})
        for family in FAMILIES:
            compiled(family, getattr(templates, family))
        return templates

    @property
    def name(self) -> str:
        """That of a built-in set, or a few letters that no other templates have.

        >>> ArcTemplates.named("light").name, ArcTemplates(("h.tag m.tag",)).name
        ('light', 'ecf86c2f3186')
        """
        for name, families in BUILT_IN.items():
            if self == ArcTemplates.of(families):
                return name
        return hashlib.sha256(repr(self).encode()).hexdigest()[:12]

    def program(self) -> ArcProgram:
        """All families, in the order of ``FAMILIES``."""
        code: list[int] = []
        heads: list[int] = []
        seeds: list[int] = []
        begin = 5 * len(FAMILIES)
        for family in FAMILIES:
            fields, steps, family_seeds = compiled(family, getattr(self, family))
            heads += [begin + len(code), len(fields)]
            code += [number for field in fields for number in field]
            heads += [begin + len(code), len(steps), len(seeds)]
            code += [number for step in steps for number in step]
            seeds += family_seeds
        return ArcProgram(np.array([*heads, *code], np.int32), np.array(seeds, np.uint64))
