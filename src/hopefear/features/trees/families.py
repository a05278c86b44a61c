"""Which features of trees to take: families, their variants and named sets of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hopefear.errors import HopefearError, ModelError
from hopefear.features.trees.kinds import KINDS, OWN, family_of

FAMILIES = tuple(dict.fromkeys(map(family_of, KINDS)))
_DEFINITIONS = 1  # raised when a kind of features comes to mean something else


def _members(name: str) -> list[str]:
    return [kind for kind in KINDS if kind == name or family_of(kind) == name]


_SETS = {
    "ptb": tuple(kind for kind in KINDS if family_of(kind) not in OWN),
    "rich": tuple(KINDS),
}


@dataclass(frozen=True)
class TreeFamilies:
    """Kinds of features to take from trees.

    Parameters
    ----------
    kinds : tuple of str
        Names such as ``Rule.up``, in the order of `KINDS`.
    lower : bool
        Words are compared in lower case.
    """

    kinds: tuple[str, ...] = _SETS["ptb"]
    lower: bool = True

    def __post_init__(self) -> None:
        for name in self.kinds:
            if name not in KINDS:
                raise HopefearError(_unknown(name))
        object.__setattr__(self, "kinds", tuple(kind for kind in KINDS if kind in set(self.kinds)))

    def to_header(self) -> dict[str, Any]:
        """What a model file says of them."""
        return {"definitions": _DEFINITIONS, "kinds": list(self.kinds), "lower": self.lower}

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> TreeFamilies:
        """Families a model file names; ModelError where it asks for what is not here."""
        if header.get("definitions") != _DEFINITIONS:
            raise ModelError(
                f"tree features: the file has definitions {header.get('definitions')!r:.40}, this "
                f"version of hopefear has {_DEFINITIONS}; train the model again"
            )
        kinds, lower = header.get("kinds"), header.get("lower")
        if not isinstance(lower, bool) or not isinstance(kinds, list):
            raise ModelError("tree features: expected a list of kinds and a truth value for lower")
        for name in kinds:
            if not isinstance(name, str) or name not in KINDS:
                raise ModelError(f"tree features: no kind is called {name!r:.60}")
        return cls(tuple(kinds), lower)


def families(text: str, lower: bool = True) -> TreeFamilies:
    """Families from a named set or a list of names; a name behind ``-`` is taken away.

    Parameters
    ----------
    text : str
        ``ptb`` (what Charniak and Johnson, 2005, published), ``rich`` (everything), families such
        as ``Rule``, kinds such as ``Rule.up``; several with commas, read from left to right.
    lower : bool
        Words are compared in lower case.

    Examples
    --------
    >>> families("Word,Heavy,-Word.3").kinds
    ('Word.1', 'Word.2', 'Heavy')
    """
    kinds: dict[str, None] = {}
    for item in text.split(","):
        name = item.strip()
        taken = name.removeprefix("-")
        members = _SETS.get(taken) or _members(taken)
        if not members:
            raise HopefearError(_unknown(taken))
        for kind in members:
            if taken == name:
                kinds[kind] = None
            else:
                kinds.pop(kind, None)
    if not kinds:
        raise HopefearError(f"tree features: {text!r:.60} leaves no family; name one, or ptb")
    return TreeFamilies(tuple(kinds), lower)


def _unknown(name: str) -> str:
    parts = [kind for kind in KINDS if family_of(kind) == family_of(name)]
    known = parts or [*_SETS, *FAMILIES]
    return f"tree features: nothing is called {name!r:.60}; known are {', '.join(known)}"
