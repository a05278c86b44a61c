"""Names in files of weights: what they may hold, and how phrase pairs are spelled."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

BARS = " ||| "
PREFIX = "pp_"
DENSE, SPARSE, PHRASES, ABOUT = "dense", "sparse", "phrases", "about"

_ESCAPE = re.compile("(?:%[0-9A-Fa-f]{2})+")
# Characters that end a name, or that would be read as an escape.
_IN_NAME = re.compile(r"\s|%(?=[0-9A-Fa-f]{2})")
_IN_WORD = re.compile(r"[\s,~%=]")


class Parts(NamedTuple):
    """What a file of weights holds, before anyone has looked at it as a whole."""

    layout: tuple[tuple[str, int], ...]
    dense: list[float]
    sparse: dict[str, float]
    phrases: dict[str, float]
    about: dict[str, Any]


def escaped(name: str) -> str:
    """A name as one word: blanks, and what looks like an escape, as ``%XX`` of their bytes.

    The signs that begin a comment or a section are escaped where they come first.

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
    """What a name stands for where a file does not say: as in N-best lists, and phrase pairs.

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


def _percent(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode())


def _character(found: re.Match[str]) -> str:
    try:
        return bytes.fromhex(found[0].replace("%", "")).decode()
    except UnicodeDecodeError:
        return found[0]
