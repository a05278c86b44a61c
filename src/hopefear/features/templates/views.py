"""What templates see of a string: affixes, shapes, classes, substrings.

A view is a function of one string and nothing else, so it is worked out once for every distinct
string of a column, never for every token.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator

from hopefear.features.templates.spec import View

_RUNS = re.compile(r"(.)\1+", re.DOTALL)
_NUMBER = re.compile(r"[+-]?d+([.,:/]d+)*%?")
_ROMAN = re.compile(r"M{0,3}(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})")
_GREEK_LETTER = (
    "(?i:alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|omicron|pi|rho|"
    "sigma|tau|upsilon|phi|chi|psi|omega)|[\u0391-\u03a9\u03b1-\u03c9]+"
)
_GREEK = re.compile(_GREEK_LETTER)
_HAS_GREEK = re.compile(f"(?:^|-)(?:{_GREEK_LETTER})(?:-|$)")


class _Shapes(dict[int, str]):
    """X for a capital, x for other letters, d for a digit; filled in as characters come."""

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


# In a shape every letter is X or x and every digit d, so most tests need no more than that.
_SHAPE_CLASSES: dict[str, Callable[[str], object]] = {
    "initial-capital": lambda s: s.startswith("X"),
    "has-capital": lambda s: "X" in s,
    "inner-capital": lambda s: "X" in s[1:],
    "all-capitals": lambda s: s and not s.strip("X"),
    "mixed-case": lambda s: "X" in s[1:] and "x" in s,
    "lower-case": lambda s: s and not s.strip("x"),
    "initial": lambda s: s == "X.",
    "has-digit": lambda s: "d" in s,
    "all-digits": lambda s: s and not s.strip("d"),
    "four-digits": lambda s: s == "dddd",
    "number": _NUMBER.fullmatch,
    "alphanumeric": lambda s: "d" in s and ("X" in s or "x" in s),
    "has-hyphen": lambda s: "-" in s,
    "has-period": lambda s: "." in s,
    "has-punctuation": lambda s: s.strip("Xxd"),
    "punctuation": lambda s: s and not ("X" in s or "x" in s or "d" in s),
}
_TEXT_CLASSES: dict[str, Callable[[str], object]] = {
    "roman": lambda text: text and _ROMAN.fullmatch(text),
    "greek": _GREEK.fullmatch,
    "has-greek": _HAS_GREEK.search,
}
CLASSES = (*_SHAPE_CLASSES, *_TEXT_CLASSES)


def classes(text: str) -> tuple[str, ...]:
    """Names of the classes a string belongs to.

    >>> classes("IL-2")[:4]
    ('initial-capital', 'has-capital', 'inner-capital', 'has-digit')
    """
    found = _classes_of_shape(text.translate(_SHAPES))
    more = tuple(name for name, test in _TEXT_CLASSES.items() if test(text))
    return found + more if more else found


def is_class(text: str, name: str) -> tuple[str, ...]:
    """``yes`` if the string belongs to the class, else nothing."""
    test = _SHAPE_CLASSES.get(name)
    holds = test(text.translate(_SHAPES)) if test else _TEXT_CLASSES[name](text)
    return ("yes",) if holds else ()


@functools.lru_cache(1 << 14)
def _without_runs(s: str) -> str:
    return _RUNS.sub(r"\1", s)


@functools.lru_cache(1 << 14)
def _classes_of_shape(s: str) -> tuple[str, ...]:
    return tuple(name for name, test in _SHAPE_CLASSES.items() if test(s))


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
ARGUMENTS = {"prefix": "size", "suffix": "size", "substrings": "sizes", "is": "class"}
SEVERAL = frozenset({"substrings", "classes"})


def seen(text: str, views: tuple[View, ...]) -> tuple[str, ...]:
    """The strings that views make of one string, the first view first.

    >>> seen("Going", (View("lower"), View("suffix", (3,))))
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
            yield from (CUTS.get(name) or LISTS[name])(text, *args)
