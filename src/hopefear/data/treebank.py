"""Dependency treebanks: sentences whose words have a head and a relation to it.

CoNLL-U, the columns of the shared tasks of 2006 and 2007 (CoNLL-X), and lines of word, tag and
head are read into one shape, checked to be trees, and written back with other heads.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hopefear.core.arrays import frozen_as, stretches
from hopefear.core.component import kernel
from hopefear.data.conllu import NAMES, declaration, declared_names, parse_conllu
from hopefear.data.files import ReadReport, check_on_error
from hopefear.data.sequences import Column, ColumnTable, Sentences
from hopefear.data.sources import BOM, load
from hopefear.data.token_files import (
    Lines,
    TokenFile,
    named_tokens,
    parse_columns,
)
from hopefear.data.write_tokens import (
    Comments,
    Texts,
    repeated,
    with_columns,
    write_with_columns,
)
from hopefear.errors import HopefearError, InputError, Problem

# The columns of every treebank, whatever its file has; UPOS is the coarse tag, XPOS the fine one.
COLUMNS = ("form", "lemma", "upos", "xpos", "feats", "head", "deprel")
TAGS = ("upos", "xpos", "feats")  # those that taggers give
ALIASES = {"word": "form", "cpos": "upos", "pos": "xpos", "tag": "xpos"}
UPOS = {
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN"),
    *("PUNCT", "SCONJ", "SYM", "VERB", "X", "_"),
}
MISSING = "_"

_FEW = ("form", "xpos", "head", "deprel")  # of files of two to four columns
_HEAD = re.compile(r"[0-9]{1,9}")
_INT32 = np.dtype(np.int32)


@dataclass(frozen=True, eq=False)
class Treebank:
    """Sentences with a head and a relation for each word.

    Parameters
    ----------
    sentences : Sentences
        The columns ``form lemma upos xpos feats head deprel``, whatever the file had: ``upos`` is
        its coarse tag and ``xpos`` its fine one (``cpos`` and ``pos`` lead to them), and a
        column that it lacks reads ``_``. A file with one column of tags has it as both.
    heads : int32 array [words]
        Number of each word's head in its sentence, from 1; 0 is the root, and -1 is not known.
    relations : Column
        The relation of each word to its head.
    file : TokenFile, optional
        What was read, for :func:`write_trees`.
    format : {"conllu", "conllx", "columns", "memory"}
        What it came from.

    Examples
    --------
    >>> bank = parse_treebank(b"the\\tDT\\t2\\ncat\\tNN\\t3\\nsleeps\\tVBZ\\t0\\n")
    >>> len(bank), bank.n_tokens, bank.heads.tolist(), bank.projective.tolist()
    (1, 3, [2, 3, 0], [True])
    >>> bank.sentences.columns["pos"].texts()
    ['DT', 'NN', 'VBZ']
    """

    sentences: Sentences
    heads: np.ndarray
    relations: Column
    file: TokenFile | None = field(default=None, repr=False)
    format: str = "memory"

    @classmethod
    def of(cls, sentences: Sentences, heads: ArrayLike, relations: Sequence[str]) -> Treebank:
        """Trees that are in memory; heads that make none are an InputError.

        Parameters
        ----------
        sentences : Sentences
            Must have the column ``form`` or ``word``.
        heads : sequence of int
            One for each word of all sentences.
        relations : sequence of str
            One for each word.

        Examples
        --------
        >>> words = Sentences(np.array([0, 2]), {"word": Column.of(["It", "rains"])})
        >>> Treebank.of(words, [2, 0], ["expl", "root"]).roots.tolist()
        [1]
        """
        n = sentences.n_tokens
        numbers = np.asarray(heads)
        if numbers.shape != (n,) or not np.issubdtype(numbers.dtype, np.integer):
            raise HopefearError(f"{n} words need a whole number each as head")
        if len(relations) != n:
            raise HopefearError(f"{n} words need a relation each, not {len(relations)}")
        for _, k, expected, actual in faults(sentences.starts, numbers):
            raise InputError(sentences.source, sentences.place(k), expected, actual)
        column = Column.of(list(relations))
        named = _named(sentences, numbers, column)
        return cls(named, frozen_as(numbers, _INT32), column)

    @classmethod
    def bare(cls, sentences: Sentences) -> Treebank:
        """Words whose trees are not known.

        Examples
        --------
        >>> words = Sentences(np.array([0, 2]), {"word": Column.of(["It", "rains"])})
        >>> Treebank.bare(words).heads.tolist()
        [-1, -1]
        """
        no_relations, heads = _constant(sentences.n_tokens), np.full(sentences.n_tokens, -1)
        return cls(_named(sentences, None, no_relations), frozen_as(heads, _INT32), no_relations)

    def __len__(self) -> int:
        return len(self.sentences)

    @property
    def n_tokens(self) -> int:
        return self.sentences.n_tokens

    @property
    def starts(self) -> np.ndarray:
        """Sentence i has the words ``starts[i] .. starts[i + 1] - 1``."""
        return self.sentences.starts

    @property
    def source(self) -> str:
        return self.sentences.source

    @functools.cached_property
    def projective(self) -> np.ndarray:
        """Whether the arcs of each sentence, those of the root among them, do not cross."""
        mask = np.empty(len(self), np.bool_)
        _fill_projective(self.starts, self.heads, mask)
        return mask

    @functools.cached_property
    def roots(self) -> np.ndarray:
        """Number of words of each sentence whose head is the root."""
        before = np.concatenate([[0], np.cumsum(self.heads == 0)])
        return np.diff(before[self.starts])

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the content: sentences, columns and heads."""
        h = hashlib.sha256(self.starts.astype(np.int64).tobytes())
        for name in [name for name in COLUMNS if name != "head"]:
            h.update("\x1f".join([name, *self.sentences.columns[name].texts()]).encode())
        h.update(self.heads.tobytes())
        return h.hexdigest()

    def take(self, indices: Sequence[int] | np.ndarray) -> Treebank:
        """The sentences of these numbers, in this order.

        Written back, the file is whole: the sentences that were not taken stay as they are.
        """
        indices = np.asarray(indices, np.int64)
        words = stretches(self.starts[indices], np.diff(self.starts)[indices])
        file = self.file
        if file is not None:
            file = replace(file, sentences=file.sentences.take(indices))
        relations = Column(self.relations.strings, self.relations.ids[words])
        heads = frozen_as(self.heads[words], _INT32)
        return Treebank(self.sentences.take(indices), heads, relations, file, self.format)

    def with_heads(self, heads: np.ndarray) -> Treebank:
        """The same sentences and relations with other heads, as those of :func:`projectivise`."""
        sentences = _named(self.sentences, heads, self.relations)
        heads = frozen_as(heads, _INT32)
        return Treebank(sentences, heads, self.relations, self.file, self.format)

    def with_tags(self, tags: Mapping[str, Column]) -> Treebank:
        """The same trees, of whose words nothing is known but these columns of tags.

        Examples
        --------
        >>> bank = parse_treebank(b"Wait\\tVB\\t0\\n").with_tags({"upos": Column.of(["VERB"])})
        >>> [bank.sentences.columns[name].texts() for name in ("upos", "xpos", "lemma")]
        [['VERB'], ['_'], ['_']]
        """
        existing = self.sentences.columns
        blank = dict.fromkeys(("lemma", *TAGS), _constant(self.n_tokens))
        columns = ColumnTable({**dict(existing), **blank, **tags}, ALIASES)
        return replace(self, sentences=replace(self.sentences, columns=columns))

    def describe(self) -> str:
        """Size and oddities in one line.

        Examples
        --------
        >>> parse_treebank(b"Wait\\tVB\\t0\\n!\\t.\\t0\\n").describe()
        '1 sentence, 2 words; 1 with several roots'
        """
        crossing = several = 0
        if len(self.heads) and self.heads.min() >= 0:
            crossing, several = int((~self.projective).sum()), int((self.roots > 1).sum())
        return in_words(len(self), self.n_tokens, crossing, several)


def in_words(n: int, words: int, crossing: int, several: int) -> str:
    """Sentences, words, sentences whose arcs cross and those with several roots, in one line.

    >>> in_words(2, 9, 1, 0)
    '2 sentences, 9 words; 1 not projective'
    """
    odd = [f"{crossing:,} not projective"] if crossing else []
    odd += [f"{several:,} with several roots"] if several else []
    text = f"{n:,} sentence{'s' * (n != 1)}, {words:,} word{'s' * (words != 1)}"
    return "; ".join([text, *odd])


def read_treebank(
    path: str | os.PathLike[str],
    *,
    heads: bool = True,
    on_error: str = "raise",
    report: ReadReport | None = None,
) -> Treebank:
    """Read a dependency treebank: CoNLL-U, CoNLL-X, or word, tag and head.

    The first line that is not blank and does not begin with ``#`` tells the format by the columns
    that its tabs separate: ten or eight are CoNLL, three are word, tag and head, four have the
    relation behind them. Ten columns are CoNLL-U where the name ends so, a line is a comment or has
    an id like ``1-2`` or ``1.1``; else they are CoNLL-X where the ninth column holds a number or a
    tag is not in the universal inventory. The two differ only in the names of tags.

    Parameters
    ----------
    path : str or path
        Plain or compressed UTF-8 file; ``-`` is standard input.
    heads : bool
        Whether words must have a head, and the heads of a sentence must make a tree. Otherwise they
        are not looked at, and a file of columns may end behind the tag.
    on_error : {"raise", "skip"}
        Stop at the first bad line, or leave out the sentences that hold one.
    report : ReadReport, optional
        Filled in with the number of sentences and the messages of bad lines.

    Notes
    -----
    Several words may have the root as head; `Treebank.roots` counts them. Comments, multiword
    tokens and empty nodes are no words, and come back in :func:`write_trees`. In files of three or
    four columns only lines that begin with ``# `` and have another number of columns are comments.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as f:
    ...     _ = f.write("He\\tPRP\\t2\\nsleeps\\tVBZ\\t0\\n")
    ...     f.flush()
    ...     read_treebank(f.name).heads.tolist()
    [2, 0]
    """
    return parse_treebank(
        load(path), os.fspath(path), heads=heads, on_error=on_error, report=report
    )


def parse_treebank(
    text: bytes,
    source: str = "memory",
    *,
    heads: bool = True,
    on_error: str = "raise",
    report: ReadReport | None = None,
) -> Treebank:
    """As :func:`read_treebank`, of text; ``source`` names it in messages.

    Examples
    --------
    >>> parse_treebank(b"He\\tPRP\\t2\\nsleeps\\tVBZ\\t1\\n")
    Traceback (most recent call last):
        ...
    hopefear.errors.InputError: memory:1: expected heads that make a tree; words 1, 2 form a cycle
    """
    check_on_error(on_error)
    report = ReadReport() if report is None else report
    lines = Lines.of(text.removeprefix(BOM), source, on_error == "skip", report)
    names, declared = _names(lines, heads)
    words, separator = _words(lines, names)
    form = format = "columns" if names == _FEW[: len(names)] else "conllu"
    file = TokenFile(words, form, separator, text)
    if form == "conllu" and not declared and not _is_conllu(source, lines, words):
        format = "conllx"
    if not heads:
        numbers = np.full(words.n_tokens, -1, np.int32)
    else:
        n_before = len(words)
        words, numbers = _with_trees(lines, words)
        if len(words) < n_before:
            file = replace(file, sentences=words)
    relations = words.columns.get("deprel") or _constant(words.n_tokens)
    named = _named(words, None, relations)
    return Treebank(named, frozen_as(numbers, _INT32), relations, file, format)


def _words(lines: Lines, names: tuple[str, ...]) -> tuple[Sentences, bytes]:
    """The sentences of lines with these columns, and what separates the columns."""
    if names == _FEW[: len(names)]:
        return parse_columns(lines, names, marks=())
    return parse_conllu(lines, names), b"\t"


def _with_trees(lines: Lines, words: Sentences) -> tuple[Sentences, np.ndarray]:
    """The sentences that are trees, and their heads."""
    numbers = _numbers(words.columns["head"])
    good = _trees(lines, words, numbers)
    if len(good) == len(words):
        return words, numbers
    lines.report.rows -= len(words) - len(good)
    if not len(good):
        raise InputError(lines.source, 0, "at least one tree", lines.emptiness())
    numbers = numbers[stretches(words.starts[good], np.diff(words.starts)[good])]
    return words.take(good), numbers


def write_trees(
    out: str | os.PathLike[str],
    treebank: Treebank,
    heads: ArrayLike,
    relations: Column | Sequence[str] | None = None,
    *,
    comments: Comments | None = None,
) -> None:
    """Write the file back as it was, every byte, with these heads and relations.

    Comments, multiword tokens, empty nodes, ``DEPS`` and all other columns stay. A file of two or
    three columns gets the columns that it lacks.

    Parameters
    ----------
    out : str or path
        Replaced only when all is written; ``-`` is standard output.
    treebank : Treebank
        What was read from a file.
    heads : int array [words]
        New heads.
    relations : Column or sequence of str, optional
        New relations; without, the column of a CoNLL file reads ``_``.
    comments : sequence of iterables of str, optional
        Lines to put before each sentence, with ``# `` before them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> bank = parse_treebank(b"He\\tPRP\\nsleeps\\tVBZ\\n", heads=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "trees")
    ...     write_trees(path, bank, [2, 0])
    ...     path.read_text()
    'He\\tPRP\\t2\\nsleeps\\tVBZ\\t0\\n'
    """
    file, columns = _written(treebank, heads, relations)
    write_with_columns(out, file, columns, comments=comments, replace=True)


def with_trees(
    treebank: Treebank,
    heads: ArrayLike,
    relations: Column | Sequence[str] | None = None,
    *,
    comments: Comments | None = None,
    more: Mapping[str, Texts] | None = None,
    counts: Sequence[int] | np.ndarray | None = None,
) -> Iterator[bytes]:
    """Yields the file of :func:`write_trees` in pieces.

    Parameters
    ----------
    treebank, heads, relations, comments
        As of :func:`write_trees`.
    more : mapping of str to texts, optional
        Further columns; in CoNLL files they go to the last one, as ``Name=text``.
    counts : sequence of int, optional
        How often each sentence is written; heads and all else are those of every copy.

    Examples
    --------
    >>> bank = parse_treebank(b"Wait\\tVB\\t0\\n")
    >>> b"".join(with_trees(bank, [0], more={"p": ["0.9"]}))
    b'Wait\\tVB\\t0\\t0.9\\n'
    """
    file, columns = _written(treebank, heads, relations, counts)
    return with_columns(file, {**columns, **(more or {})}, comments=comments, replace=True)


def _written(
    treebank: Treebank, heads: ArrayLike, relations: Any, counts: Any = None
) -> tuple[TokenFile, dict[str, Any]]:
    """Returns the file to write, and the columns that are new."""
    file, numbers = treebank.file, np.asarray(heads)
    if file is None:
        raise HopefearError("trees in memory have no file to be written back; read one")
    columns: dict[str, Any] = {"head": _head_column(numbers)}
    if relations is not None:
        columns["deprel"] = relations
    elif "deprel" in file.sentences.columns:
        columns["deprel"] = _constant(len(numbers))
    return file if counts is None else repeated(file, counts), columns


def projectivise(starts: np.ndarray, heads: np.ndarray) -> np.ndarray:
    """Heads of projective trees: arcs that cross are lifted to the head of their head.

    While a sentence has an arc over a word that does not descend from its head, the shortest
    such arc ``h -> m`` (the leftmost of equals) becomes ``head(h) -> m``.

    Parameters
    ----------
    starts : int64 array
        Sentence i has the words ``starts[i] .. starts[i + 1] - 1``.
    heads : int32 array [words]
        Trees.

    References
    ----------
    Nivre and Nilsson (2005). Pseudo-Projective Dependency Parsing. ACL. Relations are left alone:
    nothing tells a later reader which arcs were lifted.

    Examples
    --------
    >>> projectivise(np.array([0, 4]), np.array([3, 4, 0, 3], np.int32)).tolist()
    [3, 3, 0, 3]
    """
    lifted = np.array(heads, np.int32)
    _lift(np.asarray(starts, np.int64), lifted)
    return lifted


def faults(starts: np.ndarray, heads: np.ndarray) -> Iterator[tuple[int, int, str, str]]:
    """``(sentence, word, expected, found)`` of the first fault of each sentence that is no tree.

    Examples
    --------
    >>> list(faults(np.array([0, 2]), np.array([0, 3])))
    [(0, 1, 'a head from 0 (the root) to 2', '3')]
    """
    lengths = np.diff(starts)
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    position = np.arange(len(heads)) - starts[sentence]
    wrong = (heads < 0) | (heads > lengths[sentence]) | (heads == position + 1)
    top = len(heads)  # stands for the root, and is its own ancestor
    ancestor = np.append(np.where(wrong | (heads == 0), top, starts[sentence] + heads - 1), top)
    for _ in range(int(lengths.max(initial=1)).bit_length()):
        ancestor = ancestor[ancestor]
    circling = ancestor[:-1] != top
    for s in np.unique(sentence[wrong | circling]).tolist():
        first, after = int(starts[s]), int(starts[s + 1])
        if wrong[first:after].any():
            k = first + int(np.argmax(wrong[first:after]))
            actual = str(heads[k])
            if heads[k] == position[k] + 1:
                actual = Problem(f"{heads[k]} is the word itself")
            yield s, k, f"a head from 0 (the root) to {after - first}", actual
        else:
            on_cycle = int(ancestor[first + int(np.argmax(circling[first:after]))]) - first
            cycle = _cycle(heads[first:after], on_cycle)
            yield s, first + cycle[0] - 1, "heads that make a tree", _cycle_problem(cycle)


def _cycle(heads: np.ndarray, k: int) -> list[int]:
    """Returns the numbers of the words on the cycle of word ``k``, counted from 0."""
    words, m = [], k + 1
    while m not in words:
        words.append(m)
        m = int(heads[m - 1])
    return sorted(words)


def _cycle_problem(cycle: list[int]) -> Problem:
    rest_of_cycle = ", ..." if len(cycle) > 8 else ""
    return Problem(f"words {', '.join(map(str, cycle[:8]))}{rest_of_cycle} form a cycle")


def _names(lines: Lines, heads: bool) -> tuple[tuple[str, ...], bool]:
    """Names of the columns, and whether the file declares them.

    Others have as many as the first token, or the first that may be one where bad lines are
    skipped.
    """
    if declaration(lines.text):
        names = declared_names(lines)
        if heads and "head" not in names:
            expected = "a column HEAD in global.columns, for the trees"
            raise InputError(lines.source, 0, expected, " ".join(names))
        return names, True
    rows = lines.words() > 0
    plain = rows & ~lines.starting([b"#"])
    rows = plain if plain.any() else rows  # every word may be #
    if not rows.any():
        raise InputError(lines.source, 0, "at least one token", lines.emptiness())
    widths = lines.count(lines.buffer == 9) + 1
    good = rows & np.isin(widths, (3, 4, 8, 10) if heads else (2, 3, 4, 8, 10))
    first = int(np.argmax(rows))
    if good[first] or (lines.skip and good.any()):
        width = int(widths[np.argmax(good)])
        return (_FEW if width <= len(_FEW) else NAMES)[:width], False
    raise InputError(
        lines.source,
        lines.before + first + 1,
        "10 or 8 columns (CoNLL) or 3 (word, tag, head) separated by tabs",
        Problem(f"this line has {widths[first]}: {lines.shown(first)!r}"),
    )


def _is_conllu(source: str, lines: Lines, words: Sentences) -> bool:
    """Whether the columns are those of Universal Dependencies, which are ten."""
    if len(words.columns) < len(NAMES):
        return False
    if named_tokens(source) == "conllu" or _has_other_lines(lines, words):
        return True
    if _has_second_heads(words):
        return False
    return UPOS.issuperset(words.columns["upos"].strings)


def _has_other_lines(lines: Lines, words: Sentences) -> bool:
    """Whether a line is no word: a comment, a multiword token, an empty node."""
    return int(np.count_nonzero(lines.words())) > words.n_tokens


def _has_second_heads(words: Sentences) -> bool:
    """Whether the ninth column holds a number, as in CoNLL-X."""
    return any(_HEAD.fullmatch(text) for text in words.columns["deps"].strings)


def _numbers(column: Column) -> np.ndarray:
    """Heads as numbers; -1 for other text."""
    table = [int(text) if _HEAD.fullmatch(text) else -1 for text in column.strings]
    return np.array(table, np.int32)[column.ids]


def _trees(lines: Lines, words: Sentences, heads: np.ndarray) -> np.ndarray:
    """Numbers of the sentences that are trees; the others are reported."""
    assert words.lines is not None
    good = np.ones(len(words), bool)
    for s, k, expected, actual in faults(words.starts, heads):
        actual_text = words.columns["head"][k] if heads[k] < 0 else actual
        lines.bad(int(words.lines[k]) - 1, expected, actual_text)
        good[s] = False
    return np.flatnonzero(good)


def _named(sentences: Sentences, heads: np.ndarray | None, relations: Column) -> Sentences:
    """The sentences with the columns of every treebank."""
    columns, n = sentences.columns, sentences.n_tokens
    no_column = _constant(n)
    table = {name: columns.get(name) or no_column for name in COLUMNS}
    table["form"] = columns.get("form") or columns.get("word") or no_column
    tags = columns.get("xpos") or columns.get("pos") or columns.get("upos") or no_column
    table["xpos"] = tags
    table["upos"] = columns.get("upos") or tags
    table["deprel"] = relations
    if heads is not None:
        table["head"] = _head_column(heads)
    return Sentences(
        sentences.starts, ColumnTable(table, ALIASES), sentences.source, sentences.lines
    )


def _head_column(heads: np.ndarray) -> Column:
    texts = [str(h) for h in range(int(heads.max(initial=0)) + 1)]
    return Column(texts, heads.astype(np.int32))


def _constant(n: int) -> Column:
    return Column([MISSING], np.zeros(n, np.int32))


@kernel
def _fill_projective(starts, heads, mask):
    for i in range(len(mask)):
        first, n = starts[i], starts[i + 1] - starts[i]
        mask[i] = True
        for m in range(1, n + 1):
            h = heads[first + m - 1]
            low, high = min(h, m), max(h, m)
            # In a tree, arcs cross if and only if some arc spans a word with its head outside.
            for k in range(low + 1, high):
                if heads[first + k - 1] < low or heads[first + k - 1] > high:
                    mask[i] = False
                    break
            if not mask[i]:
                break


@kernel
def _lift(starts, heads):
    for i in range(len(starts) - 1):
        first, n = starts[i], starts[i + 1] - starts[i]
        while True:
            shortest, best = n + 1, 0
            for m in range(1, n + 1):
                h = heads[first + m - 1]
                low, high = min(h, m), max(h, m)
                if h == 0 or high - low >= shortest:
                    continue
                for k in range(low + 1, high):
                    ancestor = k
                    while ancestor != h and ancestor != 0:
                        ancestor = heads[first + ancestor - 1]
                    if ancestor == 0:
                        shortest, best = high - low, m
                        break
            if best == 0:
                break
            heads[first + best - 1] = heads[first + heads[first + best - 1] - 1]
