"""What templates see of a string: affixes, shapes, classes, substrings.

A view is a function of one string and nothing else, so it is worked out once for every distinct
string of a column, never for every token.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from hopefear.features.templates.spec import View

_RUNS = re.compile(r"(.)\1+", re.DOTALL)
_NUMBER = re.compile(r"[+-]?\d+([.,:/]\d+)*%?")
_ROMAN = re.compile(r"M{0,3}(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})")
_GREEK = re.compile(
    "alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|omicron|pi|rho|"
    "sigma|tau|upsilon|phi|chi|psi|omega",
    re.IGNORECASE,
)


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
    return _RUNS.sub(r"\1", text.translate(_SHAPES))


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


# Tests of (text, its shape). In a shape every letter is X or x and every digit d.
CLASSES: dict[str, Callable[[str, str], object]] = {
    "initial-capital": lambda text, s: s.startswith("X"),
    "has-capital": lambda text, s: "X" in s,
    "inner-capital": lambda text, s: "X" in s[1:],
    "all-capitals": lambda text, s: s and not s.strip("X"),
    "mixed-case": lambda text, s: "X" in s[1:] and "x" in s,
    "lower-case": lambda text, s: s and not s.strip("x"),
    "initial": lambda text, s: s == "X.",
    "has-digit": lambda text, s: "d" in s,
    "all-digits": lambda text, s: s and not s.strip("d"),
    "four-digits": lambda text, s: s == "dddd",
    "number": lambda text, s: "d" in s and _NUMBER.fullmatch(text),
    "alphanumeric": lambda text, s: "d" in s and ("X" in s or "x" in s),
    "has-hyphen": lambda text, s: "-" in s,
    "has-period": lambda text, s: "." in s,
    "has-punctuation": lambda text, s: s.strip("Xxd"),
    "punctuation": lambda text, s: s and not ("X" in s or "x" in s or "d" in s),
    "roman": lambda text, s: s and not s.strip("X") and _ROMAN.fullmatch(text),
    "greek": lambda text, s: _is_greek(text),
    "has-greek": lambda text, s: any(_is_greek(part) for part in text.split("-")),
}


def classes(text: str) -> tuple[str, ...]:
    """Names of the classes a string belongs to.

    >>> classes("IL-2")
    ('initial-capital', 'has-capital', 'inner-capital', 'has-digit', 'alphanumeric', 'has-hyphen', \
'has-punctuation')
    """
    s = shape(text)
    return tuple(name for name, test in CLASSES.items() if test(text, s))


def is_class(text: str, name: str) -> tuple[str, ...]:
    """``yes`` if the string belongs to the class, else nothing."""
    return ("yes",) if CLASSES[name](text, shape(text)) else ()


def _is_greek(text: str) -> bool:
    if _GREEK.fullmatch(text):
        return True
    return bool(text) and all("\u0370" <= c <= "\u03ff" and c.isalpha() for c in text)


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
