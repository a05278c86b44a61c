"""Tag schemes: how labels of tokens spell spans, and which label may follow which.

A scheme can be detected from the labels of a corpus, read as spans, and spelt in another.
A label is a letter, a hyphen and a type: ``B-NP``. A bare letter has the empty type, as in word
segmentation. The schemes (Ramshaw and Marcus, 1995; Tjong Kim Sang and Veenstra, 1999):

    bio     B begins a span, I continues one                           also called IOB2
    iob1    I, and B only for a span right after one of its type
    iobes   B, I, E at the end, S alone                               also called BIOES
    bilou   B, I, L at the end, U alone
    bmes    B, M inside, E at the end, S alone
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear.data.sequences import Column
from hopefear.errors import HopefearError, InputError

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
    """Returns which labels may start, end and follow each other.

    Parameters
    ----------
    labels : sequence of str
        Label names.
    scheme : str
        Name of the scheme.

    Examples
    --------
    >>> result = legal(["O", "B-X", "I-X", "I-Y"], "bio")
    >>> result.start.tolist()
    [True, True, False, False]
    >>> result.step[1].tolist()
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
    same_type = (suffix[:, None] == suffix[None, :]).astype(np.int8)
    pairs = table.step[same_type, role[:, None], role[None, :]]
    return Constraints(table.start[role], table.end[role], pairs)


def table_of(scheme: str) -> RoleTable:
    """Returns the permitted roles and transitions of a scheme."""
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
    fresh, last_roles = [OUT, BEGIN, SINGLE], [OUT, END, SINGLE]
    start[fresh] = end[last_roles] = True
    for role in last_roles:
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
    *letters, last = list(LETTERS[scheme][1:])
    return f"{', '.join(letters)} or {last}"


LineOf = Callable[[int], tuple[str, int]]


class Spans(NamedTuple):
    """Spans in the order of the text: tokens ``first .. after - 1`` and the type."""

    first: NDArray[np.int64]
    after: NDArray[np.int64]
    kinds: Column


class _Read(NamedTuple):
    """Labels taken apart, token by token."""

    role: NDArray[np.int8]
    suffix: NDArray[np.int32]  # what follows the letter, hyphen included
    suffixes: list[str]
    opens: NDArray[np.bool_]  # the first token of a sentence
    closes: NDArray[np.bool_]  # the last one


def detect_scheme(
    labels: Column | Sequence[str],
    starts: ArrayLike | None = None,
    *,
    line_of: LineOf | None = None,
    errors: str = "raise",
) -> str | None:
    """Name of the scheme under which all label sequences are legal.

    Parameters
    ----------
    labels : Column or list of str
        One for each token.
    starts : int array, optional
        Sentence i has the tokens ``starts[i] .. starts[i + 1] - 1``; all are one without it.
    line_of : callable, optional
        ``line_of(k)`` is file and line of token k, for messages.
    errors : {"begin", "skip", "raise"}
        What becomes of illegal sequences, see `mend`: unless they are refused, the scheme to which
        most labels keep. Labels that it does not have cannot be mended.

    Returns
    -------
    str or None
        None where labels are not chunk tags, such as parts of speech.

    Raises
    ------
    InputError
        Where most labels are chunk tags, and one does not fit the scheme that the others have.

    Examples
    --------
    >>> detect_scheme(["B-X", "I-X", "O"]), detect_scheme(["I-X", "B-X"]), detect_scheme(["NN"])
    ('bio', 'iob1', None)
    """
    check_errors(errors)
    column = _column(labels)
    if not are_spans(column):
        return None
    raises = errors == "raise"
    # The scheme that most labels keep to is the one meant; of equals, one that can be mended, or
    # that fits longest.
    meant = min(
        (_faults(column, starts, scheme) for scheme in LETTERS),
        key=lambda faults: (
            faults.wrong.sum(),
            not raises and faults.outside.any(),
            -np.argmax(faults.wrong),
        ),
    )
    odd, wrong = meant.outside.any(), int(meant.wrong.sum())
    if not wrong or not (odd or raises) or errors == "skip":
        return meant.scheme
    k, expected = meant.first(None if raises else meant.outside)
    majority = f"as {len(column.ids) - wrong:,} others are"
    raise _error(line_of, k, f"one scheme in all labels: {expected}, {majority}", column)


def are_spans(labels: Column | Sequence[str]) -> bool:
    """Whether most labels look like those of a scheme, legal or not.

    >>> are_spans(["I-X", "O"]), are_spans(["NN", "O"])
    (True, False)
    """
    column = _column(labels)
    counts = np.bincount(column.ids, minlength=len(column.strings))
    counts_by_label = {s: int(c) for s, c in zip(column.strings, counts, strict=True) if c}
    tags = {
        s: c
        for s, c in counts_by_label.items()
        if any(split_label(s, scheme) for scheme in LETTERS)
    }
    if not any(s != "O" for s in tags) or 2 * sum(tags.values()) <= len(column.ids):
        return False
    # Single letters among other names are names too.
    return len(tags) == len(counts_by_label) or any(s[1:] for s in tags)


def no_spans(labels: Sequence[str]) -> str:
    """Explains that labels spell no spans, and what nearly makes them do.

    >>> no_spans(["NN", "VB"])
    'no spans'
    >>> no_spans(["O", "B_PER", "I_PER"])
    "no spans: labels such as 'B_PER' need a hyphen, 'B-PER'"
    """
    entities = [label for label in labels if label != "O"]
    lowercase = [label for label in entities if _LOW.fullmatch(label)]
    if lowercase and 2 * len(lowercase) > len(entities):
        label = lowercase[0]
        return f"no spans: labels such as {label!r} need a hyphen, {label[0] + '-' + label[2:]!r}"
    if "O" in labels and entities and not any(split_label(label, "bio") for label in entities):
        label = entities[0]
        return (
            f"no spans: {label!r} beside 'O' does not say where a span begins; "
            f"{'B-' + label!r} and {'I-' + label!r} would"
        )
    return "no spans"


ERRORS = ("begin", "skip", "raise")
_LOW = re.compile(r"[BIESLUM][_:/.][^\s]+")
_LISTED = 5


class RepairedLabels(NamedTuple):
    """Labels that keep to a scheme, which sentences are left, and what was done, in words."""

    labels: Column  # of the sentences that are left
    keep: NDArray[np.bool_]  # bool[sentences]
    changes: int  # labels that were changed, or sentences that were left out
    message: str  # empty where nothing was wrong


def mend(
    labels: Column | Sequence[str],
    starts: ArrayLike | None,
    scheme: str,
    errors: str = "begin",
    *,
    line_of: LineOf | None = None,
    strangers: bool = False,
) -> RepairedLabels:
    """Labels without steps that their scheme forbids.

    Parameters
    ----------
    labels, starts, line_of
        As in `detect_scheme`.
    scheme : str
        Name of the scheme.
    errors : {"begin", "skip", "raise"}
        Begin a span where one is meant, as the ``conlleval`` script does; leave the sentence out;
        or refuse it.
    strangers : bool
        Whether labels outside the scheme stay as they are, as in held-out data; without it they
        are refused, or their sentences left out.

    Examples
    --------
    >>> result = mend(["I-X", "I-Y", "O"], None, "bio")
    >>> result.labels.texts(), result.changes
    (['B-X', 'B-Y', 'O'], 2)
    >>> mend(["I-X", "O"], [0, 1, 2], "bio", "skip").keep.tolist()
    [False, True]
    """
    check_errors(errors)
    scheme, column = scheme_name(scheme), _column(labels)
    faults = _faults(column, starts, scheme)
    bounds = np.asarray([0, len(column.ids)] if starts is None else starts, np.int64)
    keep = np.ones(len(bounds) - 1, bool)
    wrong = faults.wrong & ~faults.outside if strangers else faults.wrong
    if not wrong.any():
        return RepairedLabels(column, keep, 0, "")
    if errors == "raise" or (errors == "begin" and faults.outside.any() and not strangers):
        k, expected = faults.first(None if errors == "raise" else faults.outside)
        raise _error(line_of, k, expected, column)
    location = line_of if line_of is not None else lambda k: ("memory", k + 1)
    if errors == "skip":
        sentence = np.searchsorted(bounds, np.flatnonzero(wrong), "right") - 1
        keep[sentence] = False
        tokens = np.repeat(keep, np.diff(bounds))
        listed = [f"{_spot(location, k)} {column[k]!r}" for k in np.flatnonzero(wrong)[:_LISTED]]
        count = int((~keep).sum())
        summary = _counted(count, "sentence", scheme)
        message = f"{summary} left out: {_listed(listed, int(wrong.sum()))}"
        remaining = Column(column.strings, column.ids[tokens]).texts()
        return RepairedLabels(Column.of(remaining), keep, count, message)
    before = column.texts()
    inner = Column([s if split_label(s, scheme) else "O" for s in column.strings], column.ids)
    after = convert(inner, starts, scheme, scheme, repair=True).texts()
    for k in np.flatnonzero(faults.outside).tolist():
        after[k] = before[k]
    changed = [k for k, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    listed = [f"{_spot(location, k)} {before[k]!r} as {after[k]!r}" for k in changed[:_LISTED]]
    count = len(changed)
    message = f"{_counted(count, 'label', scheme)} mended: {_listed(listed, count)}"
    return RepairedLabels(Column.of(after), keep, count, message)


def check_scheme(
    labels: Column | Sequence[str],
    starts: ArrayLike | None,
    scheme: str,
    errors: str = "begin",
    *,
    line_of: LineOf | None = None,
) -> None:
    """InputError where labels cannot be mended, or where another scheme than this fits them all.

    Parameters
    ----------
    labels, starts, scheme, errors, line_of
        As in `mend`.

    Examples
    --------
    >>> check_scheme(["I-X", "O", "B-X"], None, "bio")
    >>> check_scheme(["B-X", "O"], None, "iobes")
    Traceback (most recent call last):
    hopefear.errors.InputError: memory:2: expected a label that IOBES allows after 'B-X', found 'O'
    """
    column = _column(labels)
    fits_another = any(not _faults(column, starts, name).wrong.any() for name in LETTERS)
    mend(column, starts, scheme, "raise" if fits_another else errors, line_of=line_of)


def check_errors(errors: str) -> None:
    """HopefearError unless the word is known."""
    if errors not in ERRORS:
        raise HopefearError(f"scheme_errors must be {', '.join(ERRORS)}, not {errors!r}")


def _counted(count: int, unit: str, scheme: str) -> str:
    is_single = count == 1
    broken = f"breaks {scheme.upper()} and is" if is_single else f"break {scheme.upper()} and are"
    return f"{count:,} {unit}{'' if is_single else 's'} {broken}"


def _spot(line_of: LineOf, k: int) -> str:
    path, line = line_of(int(k))
    return f"{path}:{line}" if line else path


def _listed(listed: list[str], count: int) -> str:
    remainder = f" and {count - len(listed):,} more" if count > len(listed) else ""
    return ", ".join(listed) + remainder


def spans(
    labels: Column | Sequence[str],
    starts: ArrayLike | None,
    scheme: str,
    *,
    line_of: LineOf | None = None,
    repair: bool = False,
) -> Spans:
    """Spans that labels spell.

    Parameters
    ----------
    labels, starts, line_of
        As in `detect_scheme`.
    scheme : str
        Name of the scheme.
    repair : bool
        Read illegal sequences too, as the ``conlleval`` script does: a span begins where one may,
        after ``O`` and where the type changes, and ends before the next. Without it they are
        refused.

    Examples
    --------
    >>> result = spans(["B-X", "E-X", "O", "S-Y"], None, "iobes")
    >>> result.first.tolist(), result.after.tolist(), result.kinds.texts()
    ([0, 3], [2, 4], ['X', 'Y'])
    """
    read = _read_checked(_column(labels), starts, scheme_name(scheme), line_of, repair)
    is_first, ends = _bounds(read)
    first = np.flatnonzero(is_first)
    kinds = Column([s[1:] for s in read.suffixes], read.suffix[first])
    return Spans(first, np.flatnonzero(ends) + 1, kinds)


@overload
def convert(
    labels: Column,
    starts: ArrayLike | None,
    source: str,
    target: str,
    *,
    line_of: LineOf | None = ...,
    repair: bool = ...,
) -> Column: ...
@overload
def convert(
    labels: Sequence[str],
    starts: ArrayLike | None,
    source: str,
    target: str,
    *,
    line_of: LineOf | None = ...,
    repair: bool = ...,
) -> list[str]: ...
def convert(
    labels: Column | Sequence[str],
    starts: ArrayLike | None,
    source: str,
    target: str,
    *,
    line_of: LineOf | None = None,
    repair: bool = False,
) -> Column | list[str]:
    """Spell the same spans in another scheme; a Column gives a Column, a list a list.

    Parameters
    ----------
    labels, starts, line_of, repair
        As in `spans`.
    source, target : str
        Names of the schemes.

    Examples
    --------
    >>> convert(["B-X", "I-X", "B-X"], None, "bio", "iobes")
    ['B-X', 'E-X', 'S-X']
    >>> convert(["O", "I-X"], None, "bio", "bio", repair=True)
    ['O', 'B-X']
    """
    target = scheme_name(target)
    read = _read_checked(_column(labels), starts, scheme_name(source), line_of, repair)
    is_first, ends = _bounds(read)
    role = np.where(read.role == OUT, OUT, INSIDE)
    if target == "iob1":
        touches = ~read.opens & (_before(read.role) != OUT)
        role[is_first & touches & (_before(read.suffix) == read.suffix)] = BEGIN
    else:
        role[is_first] = BEGIN
    if len(LETTERS[target]) > SINGLE:
        role[ends] = END
        role[is_first & ends] = SINGLE
    n = len(read.suffixes)
    names = [c if c == "O" else c + s for c in LETTERS[target] for s in read.suffixes]
    column = _compact(names, role * n + read.suffix)
    return column if isinstance(labels, Column) else column.texts()


def _read(column: Column, starts: ArrayLike | None, scheme: str) -> _Read:
    """Roles and types; role -1 where a label is outside the scheme."""
    n = len(column.ids)
    bounds = np.array([0, n]) if starts is None else np.asarray(starts, np.int64)
    if bounds[0] != 0 or bounds[-1] != n or (np.diff(bounds) < 0).any():
        raise HopefearError(f"starts must rise from 0 to the number of labels, {n}")
    bounds = bounds[:-1][np.diff(bounds) > 0]
    opens = np.zeros(n, bool)
    opens[bounds] = True
    closes = np.ones(n, bool)
    closes[:-1] = opens[1:]
    suffixes: dict[str, int] = {}
    role = np.full(len(column.strings), -1, np.int8)
    suffix = np.zeros(len(column.strings), np.int32)
    for i, label in enumerate(column.strings):
        part = split_label(label, scheme)
        if part is not None:
            role[i], suffix[i] = part[0], suffixes.setdefault(part[1], len(suffixes))
    return _Read(role[column.ids], suffix[column.ids], list(suffixes), opens, closes)


def _read_checked(column: Any, starts: Any, scheme: Any, line_of: Any, repair: bool) -> _Read:
    if repair:
        read = _read(column, starts, scheme)
        if (read.role < 0).any():
            k = int(np.argmax(read.role < 0))
            raise _error(line_of, k, f"a label of the scheme {scheme.upper()}", column)
        return read
    faults = _faults(column, starts, scheme)
    if faults.wrong.any():
        raise _error(line_of, *faults.first(), column)
    return faults.read


class _Faults(NamedTuple):
    """Violations of a scheme, token by token."""

    column: Column
    scheme: str
    read: _Read
    wrong: NDArray[np.bool_]
    outside: NDArray[np.bool_]  # labels that the scheme does not have
    follows: NDArray[np.bool_]  # whether a label may follow the one before

    def first(self, among: NDArray[np.bool_] | None = None) -> tuple[int, str]:
        """Returns the first wrong token, and the labels that the scheme permits there."""
        k, name = int(np.argmax(self.wrong if among is None else among)), self.scheme.upper()
        if self.outside[k]:
            return k, f"a label of the scheme {name}"
        if self.follows[k]:
            return k, f"a label that {name} allows at the end of a sentence"
        opens = self.read.opens[k]
        where = "at the start of a sentence" if opens else f"after {self.column[k - 1]!r}"
        return k, f"a label that {name} allows {where}"


def _faults(column: Column, starts: ArrayLike | None, scheme: str) -> _Faults:
    read, table = _read(column, starts, scheme), table_of(scheme)
    outside = read.role < 0
    role, before = np.maximum(read.role, OUT), np.maximum(_before(read.role), OUT)
    same_type = (_before(read.suffix) == read.suffix).astype(np.int8)
    follows = np.where(read.opens, table.start[role], table.step[same_type, before, role])
    wrong = outside | ~follows | (read.closes & ~table.end[role])
    return _Faults(column, scheme, read, wrong, outside, follows)


def _bounds(read: _Read) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether a span begins with a token, and whether one ends with it."""
    inside = read.role != OUT
    before = _before(read.role)
    is_first = inside & (
        read.opens
        | (read.role == BEGIN)
        | (read.role == SINGLE)
        | (before == OUT)
        | (before == END)
        | (before == SINGLE)
        | (_before(read.suffix) != read.suffix)
    )
    ends = inside & read.closes
    ends[:-1] |= inside[:-1] & (is_first[1:] | ~inside[1:])
    return is_first, ends


def _before(array: np.ndarray) -> np.ndarray:
    """The value of the token before; of the first, its own."""
    return np.concatenate([array[:1], array[:-1]])


def _column(labels: Column | Sequence[str]) -> Column:
    return labels if isinstance(labels, Column) else Column.of(labels)


def _compact(names: list[str], ids: NDArray[np.integer]) -> Column:
    """A column of these names without those that no row has; equal names become one."""
    used_ids = np.flatnonzero(np.bincount(ids, minlength=len(names)))
    strings = list(dict.fromkeys(names[i] for i in used_ids))
    new_ids = np.zeros(len(names), np.int32)
    new_ids[used_ids] = [strings.index(names[i]) for i in used_ids]
    return Column(strings, new_ids[ids])


def _error(line_of: LineOf | None, k: int, expected: str, column: Column) -> InputError:
    path, line = line_of(k) if line_of is not None else ("memory", k + 1)
    return InputError(path, line, expected, column[k])
