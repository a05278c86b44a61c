"""Tag schemes: how labels of tokens spell spans, and which label may follow which.

A label is a letter, a hyphen and a type: ``B-NP``. A bare letter has the empty type, as in word
segmentation. The schemes (Ramshaw and Marcus, 1995; Tjong Kim Sang and Veenstra, 1999):

    bio     B begins a span, I goes on                                also called IOB2
    iob1    I, and B only for a span right after one of its type
    iobes   B, I, E at the end, S alone                               also called BIOES
    bilou   B, I, L at the end, U alone
    bmes    B, M inside, E at the end, S alone
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopefear.errors import HopefearError

OUT, BEGIN, INSIDE, END, SINGLE = range(5)
LETTERS = {"bio": "OBI", "iob1": "OBI", "iobes": "OBIES", "bilou": "OBILU", "bmes": "OBMES"}
ALIASES = {"iob2": "bio", "iob": "bio", "bioes": "iobes", "bieso": "iobes", "bmeso": "bmes"}


class Constraints(NamedTuple):
    """Labels a sequence may start with and end with, and steps ``step[previous, next]``."""

    start: NDArray[np.bool_]
    end: NDArray[np.bool_]
    step: NDArray[np.bool_]


class RoleTable(NamedTuple):
    """Legal roles: at the start, at the end, and ``step[same type, previous, next]``."""

    start: NDArray[np.bool_]
    end: NDArray[np.bool_]
    step: NDArray[np.bool_]


def legal(labels: Sequence[str], scheme: str) -> Constraints:
    """Which labels may start, end and follow each other.

    Parameters
    ----------
    labels : sequence of str
        Label names.
    scheme : str
        Name of the scheme.

    Examples
    --------
    >>> found = legal(["O", "B-X", "I-X", "I-Y"], "bio")
    >>> found.start.tolist()
    [True, True, False, False]
    >>> found.step[1].tolist()
    [True, True, True, False]
    """
    scheme = scheme_name(scheme)
    parts = [split_label(label, scheme) for label in labels]
    for label, part in zip(labels, parts, strict=True):
        if part is None:
            raise HopefearError(
                f"label {label!r} is outside the scheme {scheme.upper()}; "
                f"its labels are O and, before a hyphen and a type, {_letters(scheme)}"
            )
    role = np.array([part[0] for part in parts if part], np.int8)
    suffix = np.array([part[1] for part in parts if part], object)
    table = table_of(scheme)
    same = (suffix[:, None] == suffix[None, :]).astype(np.int8)
    pairs = table.step[same, role[:, None], role[None, :]]
    return Constraints(table.start[role], table.end[role], pairs)


def table_of(scheme: str) -> RoleTable:
    """What the scheme allows."""
    start, end = np.zeros(5, bool), np.zeros(5, bool)
    step = np.zeros((2, 5, 5), bool)
    if scheme in ("bio", "iob1"):
        spans_ = [BEGIN, INSIDE]
        fresh = [OUT, BEGIN if scheme == "bio" else INSIDE]
        end[[OUT, *spans_]] = True
        step[:, OUT, fresh] = True
        for role in spans_:
            step[:, role, fresh] = True
            step[1, role, spans_] = True
        start[fresh] = True
        return RoleTable(start, end, step)
    fresh, done = [OUT, BEGIN, SINGLE], [OUT, END, SINGLE]
    start[fresh] = end[done] = True
    for role in done:
        step[:, role, fresh] = True
    for role in (BEGIN, INSIDE):
        step[1, role, [INSIDE, END]] = True
    return RoleTable(start, end, step)


def split_label(label: str, scheme: str) -> tuple[int, str] | None:
    """Role and suffix; None for labels outside the scheme."""
    role = LETTERS[scheme].find(label[:1]) if label else -1
    if role < 0 or (role == OUT and label != "O") or label[1:2] not in ("", "-"):
        return None
    return role, label[1:]


def scheme_name(scheme: str) -> str:
    """The name used here of a scheme with several, in any case."""
    name = ALIASES.get(scheme.lower(), scheme.lower())
    if name not in LETTERS:
        raise HopefearError(f"no tag scheme {scheme!r}; choose one of {', '.join(LETTERS)}")
    return name


def _letters(scheme: str) -> str:
    *some, last = list(LETTERS[scheme][1:])
    return f"{', '.join(some)} or {last}"
