"""Files of weights: which format, and a file that is whole or not there."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from hopefear.errors import HopefearError, InputError
from hopefear.storage import write_atomically
from hopefear.translation.weights_json import read_json, write_json
from hopefear.translation.weights_moses import (
    SIDECAR,
    is_section,
    read_lines,
    read_moses_ini,
    write_moses_ini,
    write_sidecar,
)
from hopefear.translation.weights_names import Parts
from hopefear.translation.weights_text import read_text, write_text

FORMATS = ("text", "moses", "json")

_SUFFIXES = {".ini": "moses", ".json": "json"}
_PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: gzip.compress(data, mtime=0),  # equal weights, equal bytes
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
}


def read_parts(path: str | os.PathLike[str]) -> Parts:
    """Weights of a file in any format; its content says which."""
    name = os.fspath(path)
    lines = read_lines(path)
    begin = next((line.lstrip() for line in lines if line.strip()), "")
    if begin.startswith("{"):
        parts = read_json(name, "\n".join(lines))
    elif any(map(is_section, lines)):
        parts = read_moses_ini(name, lines)
    else:
        parts = read_text(name, lines)
    if not (parts.layout or parts.sparse or parts.phrases):
        raise InputError(name, 0, "at least one weight (NAME= NUMBER …)", "none")
    return parts


def write_parts(parts: Parts, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write weights; see :meth:`hopefear.translation.weights.Weights.write`."""
    name = os.fspath(path)
    format = format or format_of(name)
    if format not in FORMATS:
        raise HopefearError(f"weights are written as {', '.join(FORMATS)}, not {format!r}")
    if not (parts.layout or parts.sparse or parts.phrases):
        raise HopefearError(f"{name}: there are no weights to write; tune some first")
    if format == "json":
        _put(name, write_json(parts))
    elif format == "text":
        _put(name, write_text(parts))
    else:
        _put_moses(parts, name)


def format_of(name: str) -> str:
    """The format that a name asks for: ``.ini`` is ``moses``, ``.json`` JSON, any other text.

    Examples
    --------
    >>> format_of("moses.ini"), format_of("weights.json.gz"), format_of("weights")
    ('moses', 'json', 'text')
    """
    stem, suffix = os.path.splitext(name)
    if suffix in _PACKERS:
        suffix = os.path.splitext(stem)[1]
    return _SUFFIXES.get(suffix, "text")


def _put_moses(parts: Parts, name: str) -> None:
    sidecar = name + SIDECAR
    lines = write_moses_ini(parts, os.path.basename(sidecar))
    if not (parts.sparse or parts.phrases):
        _put(name, lines)
        return
    if name == "-":
        raise HopefearError(
            "the format moses keeps sparse weights in a second file, for which standard output "
            "has no place; give a path, or use text or json"
        )
    with _kept(sidecar):
        _put(sidecar, write_sidecar(parts))
        _put(name, lines)


@contextmanager
def _kept(path: str) -> Iterator[None]:
    """Have the file as it was again when what is done here fails."""
    path = os.path.realpath(path)
    # A second name for the old file: bringing it back must not need room on a full disk.
    backup = f"{path}.{secrets.token_hex(8)}"
    existed = os.path.exists(path)
    with suppress(OSError):
        os.link(path, backup)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            if existed:
                os.replace(backup, path)
            else:
                os.unlink(path)
        raise
    finally:
        with suppress(OSError):
            os.unlink(backup)


def _put(name: str, lines: Iterable[str]) -> None:
    suffix = os.path.splitext(name)[1]
    if suffix == ".zst":
        raise HopefearError(f"{name}: weights are not packed as .zst; use .gz, .xz or .bz2")
    try:
        data = "".join(f"{line}\n" for line in lines).encode()
    except UnicodeEncodeError as error:
        found = error.object[max(0, error.start - 10) : error.end + 10]
        raise HopefearError(f"{name}: a name that is no Unicode text: {found!a}") from error
    if name == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        write_atomically(name, _PACKERS.get(suffix, bytes)(data))
