"""Weights as Moses has them: a ``[weight]`` section, and a file beside it for sparse ones."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from hopefear.data.files import open_bytes
from hopefear.data.moses.words import check_text
from hopefear.errors import HopefearError, InputError
from hopefear.translation.weights_names import ABOUT, DENSE, Parts, is_phrase_name
from hopefear.translation.weights_text import (
    MARK,
    NAMED,
    Collector,
    about_lines,
    add_lines,
    dense_lines,
    named_lines,
)

SIDECAR = ".sparse"
_SECTION = re.compile(r"\[\s*([^\]\s]+)\s*\]")


def is_section(line: str) -> bool:
    """Whether a line is a heading such as ``[weight]``."""
    return _SECTION.fullmatch(line.partition("#")[0].strip()) is not None


def read_moses_ini(path: str, lines: Sequence[str]) -> Parts:
    """Weights of a ``moses.ini``; its other sections are left alone.

    Parameters
    ----------
    path : str
        For messages, and because the file that ``[weight-file]`` names lies beside it.
    lines : sequence of str
        The lines, without their ends.

    Examples
    --------
    >>> lines = ["[feature]", "Distortion", "", "[weight]", "Distortion0= 0.3", "TM0= 1 2"]
    >>> read_moses_ini("moses.ini", lines).layout
    (('Distortion0', 1), ('TM0', 2))
    """
    collector = Collector(path)
    section, sections, sidecars = "", set(), []
    for number, line in enumerate(lines, 1):
        if line.startswith(f"{MARK} {ABOUT} "):
            collector.describe(number, line.removeprefix(f"{MARK} {ABOUT} "))
        text = line.partition("#")[0].strip()
        heading = _SECTION.fullmatch(text)
        if heading:
            section = heading[1]
            sections.add(section)
        elif text and section == "weight":
            collector.add(number, text, DENSE)
        elif text and section == "weight-file":
            sidecars.append((number, text))
    if "weight" not in sections:
        found = ", ".join(f"[{name}]" for name in sorted(sections))
        raise InputError(path, 0, "a section [weight], as Moses has from version 1.0 on", found)
    if len(sidecars) > 1:
        collector.refuse(sidecars[1][0], "one file under [weight-file]", sidecars[1][1])
    parts = collector.finish()
    for number, name in sidecars:
        more = _read_sidecar(path, number, name, [name for name, _ in parts.layout])
        parts = parts._replace(sparse=more.sparse, phrases=more.phrases)
    return parts


def _read_sidecar(path: str, line: int, name: str, dense: list[str]) -> Parts:
    beside = os.path.join(os.path.dirname(path), name)
    try:
        found = read_lines(beside)
    except InputError:
        raise
    except HopefearError as error:
        raise InputError(path, line, f"a file of sparse weights ({error})", name) from error
    collector = Collector(beside, dense, bare=True)
    add_lines(collector, enumerate(found, 1), NAMED)
    parts = collector.finish()
    if parts.layout:
        raise InputError(beside, 0, "sparse weights only, for dense ones are in " + path)
    return parts


def read_lines(path: str | os.PathLike[str]) -> list[str]:
    """Lines of a plain or compressed UTF-8 file, without their ends; ``-`` is standard input."""
    with open_bytes(path) as stream:
        data = stream.read()
    check_text(data, os.fspath(path), 1)
    return data.decode("utf-8-sig").split("\n")


def write_moses_ini(parts: Parts, sidecar: str) -> Iterator[str]:
    """Lines of a ``[weight]`` section, and of one that names the file of sparse weights.

    Parameters
    ----------
    parts : Parts
        The weights.
    sidecar : str
        Name of that file as it is to stand there.

    Examples
    --------
    >>> for line in write_moses_ini(Parts((("LM0", 1),), [0.5], {"a_b": 1.0}, {}, {}), "w.sparse"):
    ...     print(line)
    [weight]
    LM0= 0.5
    <BLANKLINE>
    [weight-file]
    w.sparse
    """
    yield from about_lines(parts)
    yield "[weight]"
    # Moses takes the rest of a line for a comment wherever it meets the sign.
    yield from (line.replace("#", "%23") for line in dense_lines(parts))
    if parts.sparse or parts.phrases:
        yield from ("", "[weight-file]", sidecar)


def write_sidecar(parts: Parts) -> Iterator[str]:
    """Lines ``NAME NUMBER`` of sparse weights and phrase pairs."""
    return named_lines(parts, any(map(is_phrase_name, parts.sparse)), " ")
