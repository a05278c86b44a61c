"""Functions of strings for templates: affixes, shapes, classes, substrings, and their hashes.

A view is a function of one string and nothing else, so it is worked out once for every distinct
string of a column, never for every token. A part of an attribute is known by a 64-bit hash of its
string, which is the same in every process and for every file, so a model needs no strings to
recognise the attributes of new text.
"""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from hopefear.core.arrays import Texts, gathered
from hopefear.core.component import helper, kernel
from hopefear.core.hashing import mix
from hopefear.errors import HopefearError
from hopefear.features.templates.spec import StringView

_RUNS = re.compile(r"(.)\1+", re.DOTALL)
_GREEK_NAMES = (
    "alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|omicron|pi|rho|sigma|"
    "tau|upsilon|phi|chi|psi|omega"
)
_GREEK = frozenset(_GREEK_NAMES.split("|"))
_GREEK_LETTER = f"(?i:{_GREEK_NAMES})|[\u0391-\u03a9\u03b1-\u03c9]+"


class _Shapes(dict[int, str]):
    """X for a capital, x for other letters, d for a digit; filled on first use."""

    def __missing__(self, point: int) -> str:
        char = chr(point)
        if char.isupper():
            kind = "X"
        elif char.isalpha():
            kind = "x"
        else:
            kind = "d" if char.isdigit() else char
        self[point] = kind
        return kind


class _Digits(dict[int, str]):
    def __missing__(self, point: int) -> str:
        self[point] = "#" if chr(point).isdigit() else chr(point)
        return self[point]


_SHAPES, _DIGITS = _Shapes(), _Digits()


def lower(text: str) -> str:
    """Lower case."""
    return text.lower()


def normal(text: str) -> str:
    """Lower case with every digit as ``#``.

    >>> normal("IL-2")
    'il-#'
    """
    return text.lower().translate(_DIGITS)


def shape(text: str) -> str:
    """Capitals as ``X``, other letters as ``x``, digits as ``d``.

    >>> shape("IL-2a")
    'XX-dx'
    """
    return text.translate(_SHAPES)


def short_shape(text: str) -> str:
    """Shape with runs of one character cut to one.

    >>> short_shape("McDonald's")
    "XxXx'x"
    """
    return _without_runs(text.translate(_SHAPES))


def length(text: str) -> str:
    """Number of characters, 10 and more as ``10+``."""
    return str(len(text)) if len(text) < 10 else "10+"


def prefix(text: str, size: int) -> tuple[str, ...]:
    """First ``size`` characters; nothing of a shorter string."""
    return (text[:size],) if len(text) >= size else ()


def suffix(text: str, size: int) -> tuple[str, ...]:
    """Last ``size`` characters; nothing of a shorter string."""
    return (text[len(text) - size :],) if len(text) >= size else ()


def substrings(text: str, low: int, high: int) -> tuple[str, ...]:
    """Distinct substrings of ``low`` to ``high`` characters.

    >>> substrings("aba", 1, 2)
    ('a', 'ab', 'b', 'ba')
    """
    return tuple(
        dict.fromkeys(
            text[i : i + n]
            for i in range(len(text))
            for n in range(low, min(high, len(text) - i) + 1)
        )
    )


# In a shape every letter is X or x and every digit d, so most classes need no more than that.
# Patterns are matched against the whole, and are data, so that exported models can carry them.
SHAPE_CLASSES = {
    "initial-capital": "X.*",
    "has-capital": ".*X.*",
    "inner-capital": ".+X.*",
    "all-capitals": "X+",
    "mixed-case": "(?=.+X).*x.*",
    "lower-case": "x+",
    "initial": r"X\.",
    "has-digit": ".*d.*",
    "all-digits": "d+",
    "four-digits": "dddd",
    "number": r"[+-]?d+([.,:/]d+)*%?",
    "alphanumeric": "(?=.*d).*[Xx].*",
    "has-hyphen": ".*-.*",
    "has-period": r".*\..*",
    "has-punctuation": ".*[^Xxd].*",
    "punctuation": "[^Xxd]+",
}
TEXT_CLASSES = {
    "roman": "(?=.)M{0,3}(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})",
    "greek": _GREEK_LETTER,
    "has-greek": f"(.*-)?({_GREEK_LETTER})(-.*)?",
}
_PATTERNS = {
    name: re.compile(pattern, re.DOTALL) for name, pattern in (SHAPE_CLASSES | TEXT_CLASSES).items()
}
CLASSES = tuple(_PATTERNS)


@functools.lru_cache(1 << 14)
def classes(text: str) -> tuple[str, ...]:
    """Returns the names of the classes of a string.

    >>> classes("IL-2")[:4]
    ('initial-capital', 'has-capital', 'inner-capital', 'has-digit')
    """
    names = _classes_of_shape(text.translate(_SHAPES))
    found_classes = tuple(name for name in TEXT_CLASSES if _PATTERNS[name].fullmatch(text))
    return names + found_classes if found_classes else names


def all_classes(strings: Sequence[str]) -> list[tuple[str, ...]]:
    """`classes` of each string; hardly any could be of `TEXT_CLASSES`, and others are not asked.

    >>> all_classes(["IV", "beta-2"]) == [classes("IV"), classes("beta-2")]
    True
    """
    lowered = mapped("lower", strings)
    return [
        classes(text) if _could_be_more(text, low) else _classes_of_shape(s)
        for text, low, s in zip(strings, lowered, mapped("shape", strings), strict=True)
    ]


def _could_be_more(text: str, low: str) -> bool:
    """Whether a string could be a roman number, or have a Greek letter between its hyphens."""
    return (
        low in _GREEK
        or not text.strip("MDCLXVI")
        or ("-" in low and not _GREEK.isdisjoint(low.split("-")))
        or not low.isascii()
    )


@functools.lru_cache(1 << 14)
def is_class(text: str, name: str) -> tuple[str, ...]:
    """Returns ``yes`` if the string is of the class, else nothing."""
    shape = text.translate(_SHAPES) if name in SHAPE_CLASSES else text
    return ("yes",) if _PATTERNS[name].fullmatch(shape) else ()


@functools.lru_cache(1 << 14)
def _without_runs(s: str) -> str:
    return _RUNS.sub(r"\1", s)


@functools.lru_cache(1 << 14)
def _classes_of_shape(s: str) -> tuple[str, ...]:
    return tuple(name for name in SHAPE_CLASSES if _PATTERNS[name].fullmatch(s))


_ASCII_CLASSES = {
    "a": string.ascii_letters,
    "d": string.digits,
    "l": string.ascii_lowercase,
    "p": string.punctuation,
    "s": string.whitespace,
    "u": string.ascii_uppercase,
    "w": string.ascii_letters + string.digits,
}
_ATOM = re.compile(r"(\\?.)([*?]?)", re.DOTALL)


def match(text: str, pattern: str) -> tuple[str, ...]:
    """The first match of a pattern of Wapiti's in the string, empty where there is none.

    ``.``, ``x*`` (as few as will do), ``x?``, ``^`` at the beginning, ``$`` at the end, and the
    classes of ASCII ``\\a \\d \\l \\p \\s \\u \\w``, in upper case their complements.

    >>> match("Going", ".?.?.?$"), match("IL-2", "\\\\p\\\\d*$"), match("a", "b")
    (('ing',), ('-2',), ('',))
    """
    begin, end = _matched(text, pattern)
    return (text[begin : max(begin, end)],)


def match_lower(text: str, pattern: str) -> tuple[str, ...]:
    """The same in lower case."""
    return (match(text, pattern)[0].lower(),)


def is_match(text: str, pattern: str) -> tuple[str, ...]:
    """``true`` if the string holds a match, else ``false``."""
    return ("true" if _matched(text, pattern)[1] >= 0 else "false",)


def _matched(text: str, pattern: str) -> tuple[int, int]:
    """Begin and end of the first match; an end below 0 where there is none."""
    atoms, anchored, closed = _atoms(pattern)
    n = len(text)
    # ends[j]: where a match of the atoms that follow ends, if it begins at j; -1 without one.
    ends = [-1] * n + [n] if closed else list(range(n + 1))
    for chars, complement, often in reversed(atoms):
        fits = [(c in chars) != complement for c in text]
        new = ends[:] if often else [-1] * (n + 1)
        for j in reversed(range(n)):
            if fits[j] and often == "*":
                new[j] = ends[j] if ends[j] >= 0 else new[j + 1]
            elif fits[j] and (not often or ends[j + 1] >= 0):
                new[j] = ends[j + 1]
        ends = new
    for begin in range(1 if anchored else n + 1):
        if ends[begin] >= 0:
            return begin, ends[begin]
    return 0, -1


@functools.lru_cache(1 << 10)
def _atoms(pattern: str) -> tuple[list[tuple[str, bool, str]], bool, bool]:
    """Characters, whether all others are meant, and how often; anchors at both ends."""
    anchored, inner = pattern.startswith("^"), pattern.removeprefix("^")
    closed = inner.endswith("$") and not inner.endswith("\\$")
    atoms = []
    for atom, often in _ATOM.findall(inner[:-1] if closed else inner):
        char, kind = atom[-1], atom[-1].lower()
        if atom in ("*", "?", "\\"):
            raise HopefearError(f"{atom!r} without a character before or behind it, in {pattern!r}")
        if atom == ".":
            atoms.append(("", True, often))
        elif len(atom) == 2 and kind in _ASCII_CLASSES:
            atoms.append((_ASCII_CLASSES[kind], char.isupper(), often))
        else:
            atoms.append((char, False, often))
    return atoms, anchored, closed


# One string of each string, one or none, any number. Arguments: "size", "sizes" or "class".
MAPS: dict[str, Callable[[str], str]] = {
    "lower": lower,
    "normal": normal,
    "shape": shape,
    "short_shape": short_shape,
    "length": length,
}
CUTS: dict[str, Callable[..., tuple[str, ...]]] = {"prefix": prefix, "suffix": suffix}
LISTS: dict[str, Callable[..., tuple[str, ...]]] = {
    "substrings": substrings,
    "classes": classes,
    "is": is_class,
}
# Those of Wapiti's patterns, which template files have other names for.
PATTERNS: dict[str, Callable[[str, str], tuple[str, ...]]] = {
    "match": match,
    "match-lower": match_lower,
    "test": is_match,
}
ARGUMENTS = {"prefix": "size", "suffix": "size", "substrings": "sizes", "is": "class"}
SEVERAL = frozenset({"substrings", "classes"})


def seen(text: str, views: tuple[StringView, ...]) -> tuple[str, ...]:
    """The strings that views make of one string, the first view first.

    >>> seen("Going", (StringView("lower"), StringView("suffix", (3,))))
    ('ing',)
    """
    values: tuple[str, ...] = (text,)
    for name, args in views:
        values = tuple(_values(name, args, values))
    return values


def _values(name: str, args: tuple[int | str, ...], texts: tuple[str, ...]) -> Iterator[str]:
    for text in texts:
        if name in MAPS:
            yield MAPS[name](text)
        else:
            yield from (CUTS | LISTS | PATTERNS)[name](text, *args)


class Values(NamedTuple):
    """String i has the values ``hashes[ptr[i]:ptr[i + 1]]``, in the order of ``views.seen``."""

    ptr: np.ndarray  # int64[strings + 1]
    hashes: np.ndarray  # uint64


class Packed(NamedTuple):
    """Strings as code points: string i is ``points[ends[i] - sizes[i]:ends[i]]``."""

    points: np.ndarray  # uint32
    ends: np.ndarray  # int64
    sizes: np.ndarray  # int64


class Types:
    """The distinct strings of one column, and every view of them worked out once.

    Parameters
    ----------
    strings : sequence of str
        The distinct strings.

    Examples
    --------
    >>> types = Types(["going", "a"])
    >>> types.values((StringView("suffix", (3,)),)).ptr.tolist()
    [0, 1, 1]
    """

    def __init__(self, strings: Sequence[str]) -> None:
        self._mapped: dict[tuple[StringView, ...], Sequence[str]] = {(): strings}
        self._packed: dict[tuple[StringView, ...], Packed] = {}

    def mapped(self, views: tuple[StringView, ...]) -> Sequence[str]:
        """The strings through views that give one string each."""
        if views not in self._mapped:
            self._mapped[views] = mapped(views[-1].name, self.mapped(views[:-1]))
        return self._mapped[views]

    def values(self, views: tuple[StringView, ...]) -> Values:
        """Hashes of the strings through any views; only the last may give none or several."""
        if not views or views[-1].name in MAPS:
            packed = self._pack(views)
            return _whole_strings(packed)
        name, args = views[-1]
        if name in ("prefix", "suffix"):
            return _affixes(self._pack(views[:-1]), int(args[0]), name == "suffix")
        if name == "substrings":
            return _all_substrings(self._pack(views[:-1]), int(args[0]), int(args[1]))
        strings = self.mapped(views[:-1])
        if name == "classes":
            return _of_lists(all_classes(strings))
        view = (LISTS | PATTERNS)[name]
        return _of_lists([view(text, *args) for text in strings])

    def _pack(self, views: tuple[StringView, ...]) -> Packed:
        if views not in self._packed:
            packed = None
            if views and views[-1].name in _ASCII and views not in self._mapped:
                packed = _mapped_ascii(views[-1].name, self._pack(views[:-1]))
            self._packed[views] = pack(self.mapped(views)) if packed is None else packed
        return self._packed[views]


def mapped(name: str, strings: Sequence[str]) -> list[str]:
    """Applies one of `MAPS` to each string; those of characters are computed for all at once.

    >>> mapped("normal", ["IL-2", "Am"]), mapped("short_shape", ["", "McDonald's"])
    (['il-#', 'am'], ['', "XxXx'x"])
    """
    if name == "short_shape":
        return list(map(_without_runs, mapped("shape", strings)))
    if name == "length":
        return list(map(length, strings))
    # Behind a sigma that ends a string there is still no letter, so that lower() sees it does.
    texts = MAPS[name]("\0".join(strings)).split("\0")
    return texts if len(texts) == len(strings) else list(map(MAPS[name], strings))


def pack(strings: Sequence[str]) -> Packed:
    """Code points of strings; lone surrogates, which no file can hold, become ``?``."""
    if isinstance(strings, Texts) and strings.packed.text.max(initial=0) < 128:
        text, offsets = strings.packed
        return Packed(text.astype(np.uint32), offsets[1:], np.diff(offsets))
    joined = "".join(strings).encode("utf-32-le", "replace")
    sizes = np.fromiter(map(len, strings), np.int64, len(strings))
    return Packed(np.frombuffer(joined, "<u4").astype(np.uint32), np.cumsum(sizes), sizes)


# What becomes of each character of ASCII, by views that look at one at a time.
_ASCII = {
    name: np.array([ord(MAPS[name](chr(point))) for point in range(128)], np.uint32)
    for name in ("lower", "normal", "shape")
}
_ASCII["short_shape"] = _ASCII["shape"]


def _mapped_ascii(name: str, packed: Packed) -> Packed | None:
    """Applies `mapped` to strings of ASCII; returns None for others."""
    if packed.points.max(initial=0) >= 128:
        return None
    points, ends = _map_points(packed, _ASCII[name], name == "short_shape")
    return Packed(points, ends, np.diff(ends, prepend=0))


def hashes_of(strings: Sequence[str]) -> np.ndarray:
    """Hash of each string.

    >>> int(hashes_of(["hope"])[0]) == int(hashes_of(["hope"])[0])
    True
    """
    with np.errstate(over="ignore"):  # hashes wrap; only uncompiled kernels warn
        return _whole_strings(pack(strings)).hashes


def _whole_strings(packed: Packed) -> Values:
    starts = packed.ends - packed.sizes
    return Values(np.arange(len(starts) + 1), _hash_spans(packed.points, starts, packed.ends))


def _affixes(packed: Packed, size: int, last: bool) -> Values:
    return Values(*_hash_affixes(packed.points, packed.ends, packed.sizes, size, last))


def _all_substrings(packed: Packed, low: int, high: int) -> Values:
    sizes = packed.sizes
    counts = np.zeros(len(sizes), np.int64)
    for n in range(low, high + 1):
        counts += np.maximum(sizes - n + 1, 0)
    hashes = np.empty(int(counts.sum()), np.uint64)
    offsets = np.zeros(len(sizes) + 1, np.int64)
    room = 1 << (2 * int(np.max(counts, initial=0))).bit_length()
    used = _substrings(
        packed, low, high, hashes, offsets, np.zeros(room, np.int64), np.zeros(room, np.uint64)
    )
    return Values(offsets, hashes[:used].copy())


def _of_lists(lists: list[tuple[str, ...]]) -> Values:
    """Values of strings, most of which have the same as others."""
    kinds = {values: k for k, values in enumerate(dict.fromkeys(lists))}
    hashes = hashes_of([value for values in kinds for value in values])
    offsets = _pointers(np.fromiter(map(len, kinds), np.int64, len(kinds)))
    kind = np.fromiter(map(kinds.__getitem__, lists), np.int64, len(lists))
    offsets, value_rows = gathered(offsets, kind)
    return Values(offsets, hashes[value_rows])


def _pointers(counts: np.ndarray) -> np.ndarray:
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


@helper(inline=True)
def _finish(h, size):
    return mix(h, np.uint64(size))


@helper(inline=True)
def _hash(points, begin, end):
    h = np.uint64(0)
    for p in range(begin, end):
        h = mix(h, np.uint64(points[p]))
    return _finish(h, end - begin)


@kernel
def _map_points(packed, points_of, once):
    """Maps each code point; with ``once``, runs of the same result become one."""
    points, ends, n = np.empty_like(packed.points), np.empty_like(packed.ends), 0
    for i in range(len(packed.ends)):
        first = n
        for p in range(packed.ends[i] - packed.sizes[i], packed.ends[i]):
            point = points_of[packed.points[p]]
            if not once or n == first or points[n - 1] != point:
                points[n] = point
                n += 1
        ends[i] = n
    return points[:n], ends


@kernel
def _hash_spans(points, starts, ends):
    hashes = np.empty(len(starts), np.uint64)
    for i in range(len(starts)):
        hashes[i] = _hash(points, starts[i], ends[i])
    return hashes


@kernel
def _hash_affixes(points, ends, sizes, size, last):
    offsets, hashes, used = np.zeros(len(ends) + 1, np.int64), np.empty(len(ends), np.uint64), 0
    for i in range(len(ends)):
        if sizes[i] >= size:
            begin = ends[i] - (size if last else sizes[i])
            hashes[used] = _hash(points, begin, begin + size)
            used += 1
        offsets[i + 1] = used
    return offsets, hashes[:used]


@kernel
def _substrings(packed, low, high, hashes, offsets, stamps, table):
    """Hashes the distinct substrings of every string; ``stamps``: strings of table slots."""
    used = 0
    for i in range(len(packed.ends)):
        begin, end = packed.ends[i] - packed.sizes[i], packed.ends[i]
        for first in range(begin, end):
            h = np.uint64(0)
            for p in range(first, min(end, first + high)):
                h = mix(h, np.uint64(packed.points[p]))
                size = p - first + 1
                if size < low:
                    continue
                value = _finish(h, size)
                slot = np.int64(value & np.uint64(len(table) - 1))
                while stamps[slot] == i + 1 and table[slot] != value:
                    slot = (slot + 1) & (len(table) - 1)
                if stamps[slot] != i + 1:
                    stamps[slot] = i + 1
                    table[slot] = value
                    hashes[used] = value
                    used += 1
        offsets[i + 1] = used
    return used
