"""Files of tokens: columns or CoNLL-U, read into sentences and kept for writing back."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from hopefear.data.columns import MARKS, parse_columns
from hopefear.data.conllu import parse_conllu
from hopefear.data.report import ReadReport
from hopefear.data.sequences import Sentences
from hopefear.data.svmlight_blocks import check_on_error
from hopefear.data.token_lines import BOM, Lines, load
from hopefear.errors import HopefearError

FORMATS = ("auto", "columns", "conllu")

_CONLLU_NAME = re.compile(r"\.conllu(\.(gz|xz|bz2|zst))?$", re.IGNORECASE)
_CONLLU_LINE = re.compile(rb"(#[^\n]*\r?\n|\s*\n)*(1|1-[0-9]+|0\.1)(\t[^\t\n]+){9}\r?(\n|$)")


@dataclass(frozen=True)
class TokenFile:
    """Sentences, and the text they came from.

    Parameters
    ----------
    sentences : Sentences
        The tokens, with the line of each.
    format : {"columns", "conllu"}
        How they were written.
    separator : bytes
        What stands between columns: a tab or a blank.
    text : bytes
        The file as it was, unpacked.
    """

    sentences: Sentences
    format: str
    separator: bytes
    text: bytes = field(repr=False)


def read_sentences(
    path: str | os.PathLike[str],
    *,
    format: str = "auto",
    columns: Sequence[str] | None = None,
    optional: int = 0,
    skip: Sequence[str] = MARKS,
    comments: bool | None = None,
    on_error: str = "raise",
    report: ReadReport | None = None,
) -> TokenFile:
    """Read a file of tokens, one to a line, with blank lines between sentences.

    *Columns* are separated by tabs where the first token has one, else by white space. Every
    token has as many columns as the first; a line that begins with ``# `` and has another number
    is a comment, as ``#`` is a word too. Without ``columns`` the first column is ``word``, the last
    of two or more ``label``, the middle one of three ``pos``, and any can be called by its number,
    from ``"0"``.

    *CoNLL-U* has the columns ``id form lemma upos xpos feats head deprel deps misc``, and ``word``
    for ``form``. Comments, multiword tokens and empty nodes are no tokens.

    Parameters
    ----------
    path : str or path
        Plain or compressed UTF-8 file; ``-`` is standard input.
    format : {"auto", "columns", "conllu"}
        ``auto`` goes by the name of the file and by its first token.
    columns : sequence of str, optional
        Names for the columns of a file of columns; it must have as many.
    optional : int
        So many of the last names may be without a column, as labels are in new text.
    skip : sequence of str
        In files of columns, lines that begin so end a sentence and are no tokens.
    comments : bool, optional
        In files of columns, whether every line that begins with ``# `` is a comment, or none is,
        however many columns it has.
    on_error : {"raise", "skip"}
        Stop at the first bad line, or leave out the sentences that hold one.
    report : ReadReport, optional
        Filled in with the number of sentences and the messages of bad lines.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as f:
    ...     _ = f.write("He PRP B-NP\\nsleeps VBZ B-VP\\n\\nWhy WRB O\\n")
    ...     f.flush()
    ...     sentences = read_sentences(f.name).sentences
    >>> list(sentences.columns), sentences.starts.tolist(), sentences.columns["pos"].texts()
    (['word', 'pos', 'label'], [0, 2, 3], ['PRP', 'VBZ', 'WRB'])
    """
    check_on_error(on_error)
    if format not in FORMATS:
        raise HopefearError(f"format must be one of {', '.join(FORMATS)}, not {format!r}")
    name = os.fspath(path)
    text = load(path)
    report = ReadReport() if report is None else report
    lines = Lines.of(text.removeprefix(BOM), name, on_error == "skip", report)
    if format == "auto":
        format = _guessed(name, lines.text, columns)
    if format == "columns":
        sentences, separator = parse_columns(lines, columns, optional, skip, comments)
        return TokenFile(sentences, format, separator, text)
    if columns is not None:
        raise HopefearError(f"{name}: CoNLL-U has its own column names; leave out columns")
    return TokenFile(parse_conllu(lines), format, b"\t", text)


def _guessed(name: str, text: bytes, columns: Sequence[str] | None) -> str:
    if columns is not None:
        return "columns"
    conllu = _CONLLU_NAME.search(name) or _CONLLU_LINE.match(text)
    return "conllu" if conllu else "columns"
