"""Files of tokens that arrive bit by bit: whole sentences as soon as they are there."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from hopefear.data.conllu import declared_names, parse_conllu
from hopefear.data.crfsuite import AttributeFile, parse_crfsuite
from hopefear.data.files import ReadReport, check_on_error
from hopefear.data.sources import BOM, MAX_SENTENCE_BYTES, endless_sentence, open_bytes
from hopefear.data.token_files import (
    MARKS,
    MAX_SENTENCE_TOKENS,
    Lines,
    TokenFile,
    parse_columns,
)
from hopefear.data.token_files import guessed as guessed_format
from hopefear.data.token_objects import parse_objects
from hopefear.errors import InputError, Problem

_PIECE = 1 << 16
_NO_TOKEN = tuple(mark.encode() for mark in ("#", "@", *MARKS))


class SentenceBlock(NamedTuple):
    """Some lines of a file, and the sentences in them; None where they hold none."""

    text: bytes
    file: TokenFile | AttributeFile | None


def arriving(path: str | os.PathLike[str], piece_bytes: int | None = None) -> Iterator[bytes]:
    """Yields the unpacked bytes of a file as they arrive, or ``piece_bytes`` at a time."""
    with open_bytes(path) as stream:
        first = True
        while piece := stream.read1(_PIECE) if piece_bytes is None else stream.read(piece_bytes):
            if first and piece.startswith((b"\xff\xfe", b"\xfe\xff")):
                problem = Problem("the file is UTF-16: convert it first")
                raise InputError(os.fspath(path), 1, "UTF-8 text", problem)
            first = False
            yield piece


def arriving_text(path: str | os.PathLike[str]) -> Iterator[str]:
    """The same as text, without byte-order mark; bytes that are no UTF-8 are an InputError."""
    decoder, line, first = codecs.getincrementaldecoder("utf-8")(), 1, True
    for piece in chain(arriving(path), [b""]):
        try:
            text = decoder.decode(piece, final=not piece)
        except UnicodeDecodeError as error:
            line += error.object[: error.start].count(b"\n")
            problem = Problem(f"the byte 0x{error.object[error.start]:02x} is none")
            raise InputError(os.fspath(path), line, "UTF-8 text", problem) from None
        line += text.count("\n")
        if text:
            yield text.removeprefix("\ufeff") if first else text
            first = False


def blocks(pieces: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Lines up to a blank one: all that are there, as soon as a sentence is.

    >>> list(blocks(iter([b"a A", b"\\n\\nb", b" B\\n\\nc C\\n\\nd"]), "a.txt"))
    [b'a A\\n\\n', b'b B\\n\\nc C\\n\\n', b'd']
    """
    buffered, searched = bytearray(), 0
    for piece in pieces:
        buffered += piece
        after = buffered.rfind(b"\n") + 1
        cut, searched_now = 0, after
        while after > searched:
            begin = buffered.rfind(b"\n", 0, after - 1) + 1
            if not buffered[begin:after].strip():
                cut = after
                break
            after = begin
        searched = 0 if cut else searched_now
        if cut and _has_tokens(buffered[:cut]):
            yield bytes(buffered[:cut])
            del buffered[:cut]
        elif len(buffered) > MAX_SENTENCE_BYTES:
            raise endless_sentence(name, len(buffered))
    if buffered:
        yield bytes(buffered)


def objects(pieces: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Whole lines: all that are there, as soon as one is.

    >>> list(objects(iter([b"{}", b"\\n{}\\n{", b"}"]), "a.jsonl"))
    [b'{}\\n{}\\n', b'{}']
    """
    buffered = bytearray()
    for piece in pieces:
        buffered += piece
        if cut := buffered.rfind(b"\n") + 1:
            yield bytes(buffered[:cut])
            del buffered[:cut]
        elif len(buffered) > MAX_SENTENCE_BYTES:
            problem = Problem(f"there are {len(buffered):,} bytes without the end of a line")
            raise InputError(name, 0, "a JSON object a line", problem)
    if buffered:
        yield bytes(buffered)


def _has_tokens(text: bytearray) -> bool:
    """Whether a line is a token; comments and marks belong to the next sentence."""
    return any(line.strip() and not line.startswith(_NO_TOKEN) for line in text.split(b"\n"))


def read_parts(
    path: str | os.PathLike[str],
    *,
    format: str = "auto",
    columns: Sequence[str] | None = None,
    optional: int = 0,
    on_error: str = "raise",
    report: ReadReport | None = None,
    piece_bytes: int | None = None,
) -> Iterator[SentenceBlock]:
    """Yields the sentences of a file as they arrive; memory holds one read at most.

    Parameters
    ----------
    path : str or path
        Plain or compressed UTF-8 file; ``-`` is standard input.
    format : {"auto", "columns", "conllu", "crfsuite", "json"}
        As for :func:`hopefear.data.token_files.read_sentences`; and CRFsuite's.
    columns, optional, on_error, report
        As there.
    piece_bytes : int, optional
        Bytes to collect before sentences are read; by default those of one read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as f:
    ...     _ = f.write("He PRP\\nsleeps VBZ\\n\\nWhy WRB\\n")
    ...     f.flush()
    ...     [len(part.file.sentences) for part in read_parts(f.name)]
    [1, 1]
    """
    check_on_error(on_error)
    reader = _BlockReader(os.fspath(path), format, columns, optional, on_error == "skip")
    reader.report = ReadReport() if report is None else report
    pieces = arriving(path, piece_bytes)
    cut = objects if format == "json" else blocks
    for block in cut(pieces, reader.name):
        yield from reader.read(block)
    if not reader.lines:
        raise InputError(os.fspath(path), 0, "at least one token", Problem("the file is empty"))


class _BlockReader:
    """State from block to block: format, columns, and the number of lines read."""

    report: ReadReport

    def __init__(
        self, name: str, form: str, columns: Sequence[str] | None, optional: int, skip: bool
    ) -> None:
        self.name, self.form, self.columns = name, form, columns
        self.optional, self.skip = optional, skip
        self.lines, self.sentences = 0, False
        self.names: Sequence[str] = ()  # of the columns of CoNLL-U

    def read(self, block: bytes) -> Iterator[SentenceBlock]:
        try:
            file = self._parsed(block)
        except InputError as error:
            # Comments may end a file, and where bad sentences are left out a block may be all bad.
            empty = not error.line and (self.skip or self.sentences)
            if not empty and not self.skip:
                raise
            sentences = [] if empty else list(blocks(iter(block.splitlines(True)), self.name))
            if len(sentences) > 1:  # the first line is wrong; find the sentences that are not
                for sentence in sentences:
                    yield from self.read(sentence)
                return
            if not empty:
                self.report.skip(str(error))
            file = None
        self.lines += block.count(b"\n") or 1
        self.sentences |= file is not None
        yield SentenceBlock(block, file)

    def _parsed(self, block: bytes) -> TokenFile | AttributeFile:
        text = block.removeprefix(BOM) if not self.lines else block
        lines = replace(Lines.of(text, self.name, self.skip, self.report), before=self.lines)
        if self.form == "auto":
            self.form = guessed_format(self.name, lines.text, self.columns)
        if self.form == "crfsuite":
            return parse_crfsuite(lines)
        if self.form == "json":
            sentences = parse_objects(lines, MAX_SENTENCE_TOKENS)
            return TokenFile(sentences, self.form, b"\t", block)
        if self.form == "conllu":
            self.names = self.names or declared_names(lines)
            return TokenFile(parse_conllu(lines, self.names), self.form, b"\t", block)
        sentences, separator = parse_columns(lines, self.columns, self.optional)
        self.columns, self.optional = tuple(sentences.columns), 0
        return TokenFile(sentences, self.form, separator, block)
