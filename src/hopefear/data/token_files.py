"""Files of tokens, one to a line: columns (the CoNLL formats) or CoNLL-U, read into sentences.

Lines are kept as arrays (where they are, which are tokens, where sentences begin), so that a file
can be written back. CoNLL-U has ten columns, with multiword tokens and empty nodes between the
words.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress, islice
from typing import NamedTuple

import numpy as np

from hopefear.core.arrays import Texts
from hopefear.core.hashing import StringTable
from hopefear.data.conllu import declaration, declared_names, parse_conllu
from hopefear.data.files import ReadReport, check_on_error, count_lines
from hopefear.data.parse_numbers import find_words
from hopefear.data.sequences import Column, ColumnTable, Sentences
from hopefear.data.sources import BOM, Source, load, utf8_wanted
from hopefear.data.token_objects import begins_with_object, parse_objects
from hopefear.errors import HopefearError, InputError, Problem

_LOOKED_AT = 100  # sentences in which every word must be its number to be taken for one
MAX_TOKEN_BYTES = 1_000_000
MAX_SENTENCE_TOKENS = 1_000_000
WHITE = b" \t\n\r\x0b\x0c"  # what bytes.split() splits at

_ENDINGS = {"conllu": r"\.conllup?", "crfsuite": r"\.crfsuite(\.txt)?"}
_ATTRIBUTE = re.compile(rb"=|:[-+]?[0-9.]+(e[-+]?[0-9]+)?$")


def named_tokens(path: str) -> str | None:
    """Returns the format of tokens by the name of a file; None for other names."""
    packed = r"(\.(gz|xz|bz2|zst))?$"
    return next((f for f, end in _ENDINGS.items() if re.search(end + packed, path, re.I)), None)


def has_attributes(lines: Sequence[bytes]) -> bool:
    """Whether the first token looks as in CRFsuite's files.

    >>> has_attributes([b"B-NP\\tw[0]=He\\tpos=PRP"]), has_attributes([b"He\\tPRP\\tB-NP"])
    (True, False)
    """
    spoken = (line for line in lines if line.strip() and line[:1] not in b"#@")
    first, *fields = next(spoken, b"").split(b"\t")
    fields = [name for name in fields if name.strip()]
    if (first.isdigit() and len(fields) == 9) or declaration(b"\n".join([*lines, b""])):
        return False  # CoNLL-U
    return 2 * sum(map(bool, map(_ATTRIBUTE.search, fields))) > len(fields)


def token_format(path: str, form: str, columns: Sequence[str] | None = None) -> str:
    """Returns the requested format, or that of name or content, or ``auto`` for the reader."""
    if form != "auto":
        return form
    if columns is not None:
        return "columns"
    if named := named_tokens(path):
        return named
    first = [*islice(Source(path).look(), 50)]
    if begins_with_object(b"\n".join(first)):
        return "json"
    return "crfsuite" if has_attributes(first) else "auto"


@dataclass(frozen=True)
class Lines:
    """Text cut at newlines: line k, from 0, is ``text[starts[k]:ends[k]]``.

    Parameters
    ----------
    text : bytes
        The file without byte-order mark, its lines ended by a newline alone.
    source : str
        Name of the file, for messages.
    skip : bool
        Count bad lines in the report instead of raising the first.
    report : ReadReport
        Where lines and sentences are counted.
    before : int
        Lines of the file that came before these, for messages.
    """

    text: bytes
    source: str
    skip: bool
    report: ReadReport
    before: int = 0

    @classmethod
    def of(cls, text: bytes, source: str, skip: bool, report: ReadReport) -> Lines:
        """A text whose lines may end with a carriage return, too."""
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").removesuffix(b"\r")
        return cls(text, source, skip, report)

    @cached_property
    def buffer(self) -> np.ndarray:
        return np.frombuffer(self.text, np.uint8)

    @cached_property
    def _words(self) -> _LineWords:
        lines, room = count_lines(self.buffer) + 1, len(self.text) // 2 + 2
        int_type = np.int32 if len(self.text) < 2**31 else np.int64
        ends, before = np.empty(lines, int_type), np.empty(lines, int_type)
        spans = np.empty(room, int_type), np.empty(room, int_type)
        count = find_words(self.buffer, ends, before, *spans)
        ends[-1] = len(self.text)
        return _LineWords(ends, np.diff(before, prepend=0), ByteSpans(*(a[:count] for a in spans)))

    @property
    def ends(self) -> np.ndarray:
        return self._words.lines

    @cached_property
    def starts(self) -> np.ndarray:
        return np.append(self.ends.dtype.type(0), self.ends[:-1] + 1)

    @cached_property
    def _heads(self) -> np.ndarray:
        """The first byte of every line; a newline of those that are empty."""
        return self.buffer[np.minimum(self.starts, len(self.text) - 1)]

    def __len__(self) -> int:
        return len(self.starts)

    def line(self, k: int) -> bytes:
        return self.text[self.starts[k] : self.ends[k]]

    def words(self) -> np.ndarray:
        """Number of stretches without white space in each line."""
        return self._words.counts

    def count(self, mask: np.ndarray) -> np.ndarray:
        """Number of marked bytes in each line."""
        counts = np.searchsorted(np.flatnonzero(mask), np.append(self.starts, len(self.text)))
        return np.diff(counts)

    def starting(self, prefixes: Sequence[bytes]) -> np.ndarray:
        """Lines that begin with one of these."""
        mask = np.zeros(len(self), bool)
        nonempty = tuple(p for p in prefixes if p)
        if not nonempty or not self.text:
            return mask
        for head in {p[0] for p in nonempty}:
            for k in np.flatnonzero(self._heads == head).tolist():
                mask[k] = self.text.startswith(nonempty, self.starts[k], self.ends[k])
        return mask

    def join(self, mask: np.ndarray, glue: bytes) -> bytes:
        """The marked lines, one behind the other."""
        return glue.join(compress(self.text.split(b"\n"), mask.tolist()))

    def words_in(self, mask: np.ndarray) -> ByteSpans:
        """Returns the words of the lines in ``mask``."""
        return _marked(*self._words.spans, np.repeat(mask, self._words.counts))

    def fields_in(self, mask: np.ndarray) -> ByteSpans:
        """Returns the fields between tabs of the lines in ``mask``."""
        closing = np.flatnonzero((self.buffer == 9) | (self.buffer == 10))
        ends = np.append(closing, len(self.text))
        starts = np.concatenate([[0], closing + 1])
        return _marked(starts, ends, np.repeat(mask, self.count(self.buffer == 9) + 1))

    def bad(self, k: int, expected: str, actual: str) -> None:
        """Raise what is wrong with line k, from 0, or count it where bad lines are skipped."""
        error = InputError(self.source, self.before + k + 1, expected, actual)
        if not self.skip:
            raise error
        self.report.skip(str(error))

    def shown(self, k: int) -> str:
        return self.line(k)[:100].decode("utf-8", "backslashreplace")

    def undecodable(self) -> np.ndarray:
        """Lines that are not UTF-8."""
        mask = np.zeros(len(self), bool)
        if self.text.isascii():
            return mask
        try:
            self.text.decode()
        except UnicodeDecodeError as error:
            first = int(np.searchsorted(self.ends, error.start))
            for k in range(first, len(self)):
                try:
                    self.line(k).decode()
                except UnicodeDecodeError:
                    self.bad(k, utf8_wanted(self.line(k)), self.shown(k))
                    mask[k] = True
        return mask

    def too_long(self, token: np.ndarray, separator: bytes) -> np.ndarray:
        """Token lines with a field beyond the limit."""
        mask = np.zeros(len(self), bool)
        for k in np.flatnonzero(token & (self.ends - self.starts > MAX_TOKEN_BYTES)).tolist():
            fields = self.line(k).split(separator if separator == b"\t" else None)
            longest = max(map(len, fields))
            if longest > MAX_TOKEN_BYTES:
                self.bad(
                    k,
                    f"fields of at most {MAX_TOKEN_BYTES:,} bytes",
                    Problem(f"one has {longest:,}"),
                )
                mask[k] = True
        return mask

    def without_sentences(
        self, token: np.ndarray, boundary: np.ndarray, bad: np.ndarray
    ) -> np.ndarray:
        """The token lines of sentences that hold no bad line."""
        if not bad.any():
            return token
        sentence = np.cumsum(boundary)
        broken = np.zeros(int(sentence[-1]) + 1, bool)
        broken[sentence[bad]] = True
        return token & ~broken[sentence]

    def short_enough(self, token: np.ndarray, boundary: np.ndarray) -> np.ndarray:
        """The token lines of sentences within the limit."""
        if np.count_nonzero(token) <= MAX_SENTENCE_TOKENS:
            return token
        sentence = np.cumsum(boundary)
        sizes = np.bincount(sentence[token])
        bad = np.zeros(len(self), bool)
        for s in np.flatnonzero(sizes > MAX_SENTENCE_TOKENS).tolist():
            k = int(np.flatnonzero(token & (sentence == s))[0])
            limit = f"sentences of at most {MAX_SENTENCE_TOKENS:,} tokens"
            self.bad(k, limit, Problem(f"this one has {sizes[s]:,}"))
            bad[k] = True
        return self.without_sentences(token, boundary, bad)

    def hollow(self, token: np.ndarray) -> np.ndarray:
        """Token lines with nothing between two tabs, or before or behind one."""
        edge = np.concatenate([[10], self.buffer, [10]])
        closed = (edge == 9) | (edge == 10)
        empty = (edge[1:-1] == 9) & (closed[:-2] | closed[2:])
        mask = token & (self.count(empty) > 0)
        for k in np.flatnonzero(mask).tolist():
            self.bad(k, "text in every column", Problem(f"one is empty: {self.shown(k)!r}"))
        return mask

    def sentences(
        self,
        names: Sequence[str],
        aliases: dict[str, str],
        fields: ByteSpans,
        token: np.ndarray,
        boundary: np.ndarray,
    ) -> Sentences:
        """Encode fields, row after row of the token lines; a boundary line ends a sentence."""
        line_numbers = np.flatnonzero(token)
        if not len(line_numbers):
            raise InputError(self.source, 0, "at least one token", self.emptiness())
        fresh = np.searchsorted(line_numbers, np.flatnonzero(boundary))  # tokens behind boundaries
        starts = np.concatenate([[0], fresh, [len(line_numbers)]]).astype(np.int64)
        starts = starts[np.append(np.diff(starts) > 0, True)]
        self.report.rows += len(starts) - 1
        columns = {name: self.column(fields, c, len(names)) for c, name in enumerate(names)}
        line_numbers += 1
        return Sentences(starts, ColumnTable(columns, aliases), self.source, line_numbers)

    def column(self, fields: ByteSpans, column: int, width: int) -> Column:
        """Returns every ``width``-th field, starting at ``column``, as a column."""
        # No Python object for each token: they would take ten times the memory of the text.
        table = StringTable()
        ids = table.intern_spans(self.buffer, *fields, column, width)
        return Column(Texts(table.strings()), ids)

    def emptiness(self) -> Problem:
        """Describes the content of a file without tokens."""
        if not self.text:
            return Problem("the file is empty")
        if self.report.skipped:
            return Problem("all lines with tokens are bad and were skipped")
        return Problem("there are only blank lines, comments and -DOCSTART-")


class ByteSpans(NamedTuple):
    """Stretches of a text, in its order."""

    starts: np.ndarray
    ends: np.ndarray


class _LineWords(NamedTuple):
    """The end of each line of a text, its number of words, and their spans."""

    lines: np.ndarray
    counts: np.ndarray
    spans: ByteSpans


def _marked(starts: np.ndarray, ends: np.ndarray, mask: np.ndarray) -> ByteSpans:
    return ByteSpans(starts, ends) if mask.all() else ByteSpans(starts[mask], ends[mask])


MARKS = ("-DOCSTART-", "###MEDLINE")


def default_names(width: int) -> tuple[str, ...]:
    """Returns default names of the columns of a file.

    The first is ``word``, the last of two or more ``label``, the middle one of three ``pos``; the
    others bear their number, from 0.

    Examples
    --------
    >>> default_names(3), default_names(4)
    (('word', 'pos', 'label'), ('word', '1', '2', 'label'))
    """
    if width < 2:
        return ("word",)
    inner = ("pos",) if width == 3 else tuple(str(c) for c in range(1, width - 1))
    return ("word", *inner, "label")


def parse_columns(
    lines: Lines,
    names: Sequence[str] | None = None,
    optional: int = 0,
    marks: Sequence[str] = MARKS,
    comments: bool | None = None,
) -> tuple[Sentences, bytes]:
    """Sentences of a file of columns, and what separates its columns.

    Columns are separated by tabs where the first token line has one, else by any white space of
    ASCII. A line that begins with ``#`` and a blank or tab is a comment unless it has as many
    columns as a token: ``#`` is a word too. A first line that names columns is no token.

    Parameters
    ----------
    lines : Lines
        The text.
    names : sequence of str, optional
        Names of the columns; :func:`default_names` without.
    optional : int
        So many of the last names may be without a column.
    marks : sequence of str
        Lines that begin with one of these end a sentence and are no tokens.
    comments : bool, optional
        Whether every line that begins with ``# `` is a comment, or none is.
    """
    if header := _header(lines, names):
        marks = (*marks, header)
    sentences, separator = _columns_in(lines, names, optional, marks, comments)
    if names is None:
        _check_words_first(sentences)
    return sentences, separator


_WORDS = {"word", "words", "token", "tokens", "form", "forms"}
_HEADER_NAMES = {
    "id",
    "lemma",
    "pos",
    "postag",
    "upos",
    "xpos",
    "chunk",
    "chunktag",
    "tag",
    "label",
}
_HEADER_NAMES |= {"ner", "nertag", "entity", "iob", "bio", "tags", "postags", "nertags", "labels"}
_FIRST_LINE = re.compile(rb"(?:(?:#[^\n]*)?\n)*([^\n]*)")  # behind comments


def _header(lines: Lines, names: Sequence[str] | None) -> str:
    """The first line where it names columns; empty where it is a token, or no line."""
    match = _FIRST_LINE.match(lines.text)
    assert match is not None  # it may be empty
    line, end = match[1], match.end()
    fields = line.decode("ascii", "replace").split("\t" if b"\t" in line else None)
    plain = [name.strip().lower().replace("_", "").replace("-", "") for name in fields]
    called = _WORDS.intersection(plain)
    if (
        lines.before
        or len(plain) < 2
        or not called
        or not _HEADER_NAMES.issuperset({*plain} - called)
    ):
        return ""
    last = line[line.rindex(fields[-1].encode()) - 1 :] + b"\n"
    if lines.text.count(last) > lines.text.count(line + b"\n"):
        return ""  # a label that others have, too
    number = lines.text.count(b"\n", 0, end) + 1
    if names is None and plain[0] not in _WORDS:
        listed = ",".join("word" if name in called else name for name in plain)
        raise InputError(lines.source, number, _words_first(listed), lines.shown(number - 1))
    lines.report.notes.append(
        f"{lines.source}:{number}: {line.decode()!r} names the columns and is no token"
    )
    return line.decode()


def _words_first(names: str) -> str:
    return f"words in the first column, or names for the columns (--columns {names})"


def _check_words_first(sentences: Sentences) -> None:
    """InputError where the first column of several numbers the tokens of every sentence."""
    starts = sentences.starts[: _LOOKED_AT + 1]
    lengths = np.diff(starts)
    if len(sentences.columns) < 3 or lengths.max(initial=0) < 3:
        return
    numbers = np.arange(1, starts[-1] + 1) - np.repeat(starts[:-1], lengths)
    words = sentences.columns["word"]
    strings = [words.strings[i] for i in words.ids[: starts[-1]].tolist()]
    if strings == list(map(str, numbers.tolist())):
        names = ",".join(["id", "word", *list(sentences.columns)[2:]])
        raise InputError(
            sentences.source,
            sentences.place(0),
            _words_first(names),
            Problem("the first column numbers tokens"),
        )


def _columns_in(
    lines: Lines,
    names: Sequence[str] | None,
    optional: int,
    marks: Sequence[str],
    comments: bool | None,
) -> tuple[Sentences, bytes]:
    """Returns what `parse_columns` does, of lines without a header."""
    broken = lines.undecodable()
    mark = lines.starting([m.encode() for m in marks])
    words = lines.words()
    boundary = (words == 0) | mark
    comment = lines.starting([b"# "]) | (lines.starting([b"#"]) & (lines.ends - lines.starts == 1))
    content = ~boundary & ~broken
    tabbed = lines.starting([b"#\t"])  # as in GermEval's files; where there is more, no tokens
    if (content & ~comment & ~tabbed).any():
        comment |= tabbed
    if comments is False:
        comment[:] = False
    if not (content & ~comment).any():
        empty = ByteSpans(np.zeros(0, np.int64), np.zeros(0, np.int64))
        return lines.sentences((), {}, empty, np.zeros(len(lines), bool), boundary), b" "
    first = int(np.argmax(content & ~comment))
    separator = b"\t" if b"\t" in lines.line(first) else b" "
    if separator == b"\t" and _blanks_behind(lines, content & ~comment, words, first):
        separator = b" "
        lines.report.notes.append(
            f"{lines.source}: a tab behind the word and blanks behind it; both are taken to "
            f"separate {words[first]} columns"
        )
    counts = lines.count(lines.buffer == 9) + 1 if separator == b"\t" else words
    width = int(counts[first])
    chosen = _chosen(lines, names, optional, width, first)
    token = content & (counts == width)
    bad = content & ~token & ~comment
    if comments:
        token &= ~comment
    for k in np.flatnonzero(bad).tolist():
        lines.bad(
            k,
            f"{_columns(width)} as in line {lines.before + first + 1}",
            Problem(f"this line has {counts[k]}: {lines.shown(k)!r}"),
        )
    if separator == b"\t":
        bad |= lines.hollow(token)
    bad |= broken | lines.too_long(token, separator)
    token = lines.without_sentences(token, boundary, bad)
    token = lines.short_enough(token, boundary)
    fields = lines.fields_in(token) if separator == b"\t" else lines.words_in(token)
    return lines.sentences(chosen, _aliases(chosen), fields, token, boundary), separator


def _aliases(names: Sequence[str]) -> dict[str, str]:
    return {str(c): name for c, name in enumerate(names) if str(c) not in names}


def _blanks_behind(lines: Lines, token: np.ndarray, words: np.ndarray, first: int) -> bool:
    """Whether every token is a word, a tab, and columns with blanks between, equally many."""
    word, _, remainder = lines.line(first).partition(b"\t")
    tabs = lines.count(lines.buffer == 9)[token]
    return (
        len(word.split()) == 1
        and b"\t" not in remainder
        and len(remainder.split()) > 1
        and bool((tabs == 1).all())
        and bool((words[token] == words[first]).all())
        and int(token.sum()) > 1
    )


def _chosen(
    lines: Lines, names: Sequence[str] | None, optional: int, width: int, first: int
) -> tuple[str, ...]:
    if names is None:
        return default_names(width)
    if len(set(names)) < len(names) or not all(names):
        raise HopefearError(f"columns need different names, not {', '.join(map(repr, names))}")
    if not len(names) - optional <= width <= len(names):
        least = f"{len(names) - optional} to " if optional else ""
        raise InputError(
            lines.source,
            lines.before + first + 1,
            f"{least}{_columns(len(names))} ({', '.join(names)})",
            Problem(f"the file has {width}: {lines.shown(first)!r}"),
        )
    return tuple(names[:width])


def _columns(width: int) -> str:
    return f"{width} column{'s' * (width != 1)}"


FORMATS = ("auto", "columns", "conllu", "json")

# What no one means by a word and a label: a number, then only column:value.
_SVMLIGHT_LINE = re.compile(rb"[-+]?\d+(\.\d+)?([ \t]+\d+:[-+.\deE]+)+[ \t]*(#.*)?")
_CONLLU_LINE = re.compile(rb"(#[^\n]*\n|[ \t\r]*\n)*(1|1-[0-9]+|0\.1)(\t[^\t\n]+){9}\r?(\n|$)")


@dataclass(frozen=True)
class TokenFile:
    """Sentences, and the text they came from.

    Parameters
    ----------
    sentences : Sentences
        The tokens, with the line of each.
    format : {"columns", "conllu", "json"}
        How they were written.
    separator : bytes
        Separator of columns: a tab or a blank.
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

    *Columns* are separated by tabs where the first token has one, else by white space, as they are
    where every token is a word, a tab, and equally many columns with blanks between. Every
    token has as many columns as the first; a line that begins with ``# `` and has another number
    is a comment, as ``#`` is a word too. Without ``columns`` the first column is ``word``, the last
    of two or more ``label``, the middle one of three ``pos``, and any can be called by its number,
    from ``"0"``.

    *CoNLL-U* has the columns ``id form lemma upos xpos feats head deprel deps misc``, and ``word``
    for ``form``. Comments, multiword tokens and empty nodes are no tokens. *CoNLL-U Plus* has the
    columns that its comment ``# global.columns = ID FORM …`` names.

    *JSON lines* are objects with a list of strings under ``tokens`` and others as long, as
    :func:`hopefear.data.token_objects.parse_objects` has them.

    Parameters
    ----------
    path : str or path
        Plain or compressed UTF-8 file; ``-`` is standard input.
    format : {"auto", "columns", "conllu", "json"}
        ``auto`` chooses by the name of the file and by its first token.
    columns : sequence of str, optional
        Names for the columns of a file of columns, one each.
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

    text, report = load(path), ReadReport() if report is None else report
    lines = Lines.of(text.removeprefix(BOM), name, on_error == "skip", report)
    form = guessed(name, lines.text, columns) if format == "auto" else format
    if form == "columns":
        sentences, separator = parse_columns(lines, columns, optional, skip, comments)
        return TokenFile(sentences, form, separator, text)
    if columns is not None:
        kind = "CoNLL-U" if form == "conllu" else "JSON"
        raise HopefearError(f"{name}: {kind} has its own column names; leave out columns")
    if form == "json":
        sentences = parse_objects(lines, MAX_SENTENCE_TOKENS)
    else:
        sentences = parse_conllu(lines, declared_names(lines))
    return TokenFile(sentences, form, b"\t", text)


def guessed(name: str, text: bytes, columns: Sequence[str] | None) -> str:
    """The format of a file, by its name and its first token; InputError for one of vectors.

    >>> guessed("a.txt", b"1 3:0.5 7:1\\n-1 2:1 9:0.25\\n", None)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    hopefear.errors.InputError: a.txt:1: expected tokens, one to a line ...
    """
    if columns is not None:
        return "columns"
    first = [line for line in text[:4096].split(b"\n")[:20] if line.strip()]
    if first and all(_SVMLIGHT_LINE.fullmatch(line.rstrip()) for line in first[:10]):
        raise InputError(
            name,
            1,
            "tokens, one to a line (format columns reads any columns as such)",
            Problem(
                f"this is svmlight, for train classify: {first[0][:20].decode(errors='replace')!r}"
            ),
        )
    if begins_with_object(text):
        return "json"
    conllu = named_tokens(name) == "conllu" or _CONLLU_LINE.match(text) or declaration(text)
    return "conllu" if conllu else "columns"
