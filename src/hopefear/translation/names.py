"""Names of weights: what they may hold, how phrase pairs are spelled, dense ones in order."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from itertools import chain
from typing import Any, NamedTuple

from hopefear.data.lists.candidates import Layout, dense_names
from hopefear.errors import HopefearError

BARS = " ||| "
PREFIX = "pp_"
DENSE, SPARSE, PHRASES, ABOUT = "dense", "sparse", "phrases", "about"

_ESCAPE = re.compile("(?:%[0-9A-Fa-f]{2})+")
# Characters that end a name, or that would be read as an escape.
_IN_NAME = re.compile(r"\s|%(?=[0-9A-Fa-f]{2})")
_IN_WORD = re.compile(r"[\s,~%=]")


class WeightParts(NamedTuple):
    """Content of a weights file before it is checked."""

    layout: tuple[tuple[str, int], ...]
    dense: list[float]
    sparse: dict[str, float]
    phrases: dict[str, float]
    about: dict[str, Any]


def escaped(name: str) -> str:
    """A name as one word: blanks, and what looks like an escape, as ``%XX`` of their bytes.

    The signs that begin a comment or a section are escaped at the start of a name.

    Examples
    --------
    >>> escaped("wt_50%~x"), escaped("a b"), escaped("#_1")
    ('wt_50%~x', 'a%20b', '%23_1')
    """
    name = _IN_NAME.sub(_percent, name)
    return f"%{ord(name[0]):02X}{name[1:]}" if name.startswith(("#", "[", "{")) else name


def unescaped(name: str) -> str:
    """The name that :func:`escaped` was given; escapes that are no UTF-8 stay as they are."""
    return _ESCAPE.sub(_character, name) if "%" in name else name


def phrase_name(pair: str) -> str:
    """The name of a phrase pair, as Moses spells such features.

    Parameters
    ----------
    pair : str
        ``source words ||| target words``.

    Examples
    --------
    >>> phrase_name("das haus , ||| the house ,")
    'pp_das,haus,%2C~the,house,%2C'
    """
    source, _, target = pair.partition(BARS)
    return f"{PREFIX}{_joined(source)}~{_joined(target)}"


def phrase_pair(name: str) -> str:
    """The phrase pair with this name; see :func:`is_phrase_name`.

    Examples
    --------
    >>> phrase_pair("pp_das,haus,%2C~the,house,%2C")
    'das haus , ||| the house ,'
    """
    source, _, target = name.removeprefix(PREFIX).partition("~")
    return f"{_split(source)}{BARS}{_split(target)}"


def is_phrase_name(name: str) -> bool:
    """Whether a name is ``pp_…~…``: words, one tilde, words."""
    return name.startswith(PREFIX) and name.count("~") == 1


def kind_of(name: str, width: int) -> str:
    """Guesses the kind of a name where a file lacks it: as in N-best lists, and phrase pairs.

    Examples
    --------
    >>> kind_of("LM0", 1), kind_of("a_b", 4), kind_of("a_b", 1), kind_of("pp_a~b", 1)
    ('dense', 'dense', 'sparse', 'phrases')
    """
    if width == 1 and is_phrase_name(name):
        return PHRASES
    return DENSE if width > 1 or "_" not in name else SPARSE


def _joined(words: str) -> str:
    return ",".join(_IN_WORD.sub(_percent, word) for word in words.split(" "))


def _split(words: str) -> str:
    return " ".join(map(unescaped, words.split(",")))


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


def _character(match: re.Match[str]) -> str:
    try:
        return bytes.fromhex(match[0].replace("%", "")).decode()
    except UnicodeDecodeError:
        return match[0]


def slices_by_name(layout: Layout) -> dict[str, slice]:
    """Returns the slice of the dense vector for each name.

    >>> slices_by_name((("LM0", 1), ("TM0", 2)))
    {'LM0': slice(0, 1, None), 'TM0': slice(1, 3, None)}
    """
    slices, first = {}, 0
    for name, width in layout:
        slices[name] = slice(first, first + width)
        first += width
    return slices


def check_same(
    expected: Layout, actual: Layout, owner: str = "the weights", source: str = "the lists"
) -> None:
    """HopefearError, naming the first that differs, unless the features of two are the same.

    Parameters
    ----------
    ours, theirs : tuple of (str, int)
        The features of weights and of lists.
    whose, source : str
        Who has them, for the message.
    """
    for k in range(max(len(expected), len(actual))):
        expected_feature, actual_feature = (_feature(layout, k) for layout in (expected, actual))
        if expected_feature != actual_feature:
            raise HopefearError(
                f"dense features differ: {expected_feature} in {owner}, {actual_feature} in "
                f"{source}; use lists of the decoder that the weights are for"
            )


def _feature(layout: Layout, k: int) -> str:
    if k >= len(layout):
        return "no more dense features"
    name, width = layout[k]
    return f"{name} ({width} number{'s' if width > 1 else ''})"


def check_parts(parts: WeightParts) -> None:
    """HopefearError where names are empty or double, or a weight is missing or not finite."""
    names = [name for name, _ in parts.layout]
    twice = next((name for name in names if names.count(name) > 1 or name in parts.sparse), None)
    if twice is not None:
        raise HopefearError(f"weights: the dense feature {twice!r} is there twice; rename one")
    if "" in names or "" in parts.sparse or any(width < 1 for _, width in parts.layout):
        raise HopefearError("weights: a feature has a name and at least one number")
    expanded = dense_names(parts.layout)
    if len(expanded) != len(parts.dense):
        raise HopefearError(
            f"weights: the layout has {len(expanded)} dense numbers, dense has {len(parts.dense)}"
        )
    for pair in parts.phrases:
        if BARS not in pair:
            raise HopefearError(
                f"weights: a phrase pair is 'source words{BARS}target words', not {pair!r}"
            )
    dense = zip(expanded, parts.dense, strict=True)
    for name, value in chain(dense, parts.sparse.items(), parts.phrases.items()):
        if not math.isfinite(value):
            raise HopefearError(f"weights: the weight of {name!r} is {value}, not finite")


def plain(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Returns metadata as JSON represents it, so that a file reads back the same."""
    try:
        return json.loads(json.dumps(dict(metadata), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise HopefearError(f"weights: about holds what JSON cannot: {error}") from error
