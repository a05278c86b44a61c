"""N-grams of words and characters as columns, kept by name or hashed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.arrays import (
    Strings,
    column_in_range,
    frozen,
    in_range,
    only_these,
    vector,
    whole_number,
)
from hopefear.core.hashing import (
    ENTRIES,
    TEXT,
    TOKENS,
    NGramTables,
    empty_tables,
    fill_slots,
    hash_tokens,
)
from hopefear.errors import HopefearError, ModelError
from hopefear.features.maps import MAX_COLUMNS

MAX_ORDER = 3
MAX_CHARS = 8
MAX_BITS = 30
MAX_NAMES = 1 << 16  # common n-grams have low numbers, so these columns are the interesting ones
_BYTES_PER_NAME = 24  # on average, at most


# What "auto" says of texts: of those that are read whole, and of streams, caches and rows of
# numbers, where frequencies are not known and characters would take most of the time.
WHOLE: Mapping[str, Any] = {"ngrams": 2, "chars": (2, 5), "marks": True, "values": "tfidf"}
PLAIN: Mapping[str, Any] = {"ngrams": 1, "chars": None, "marks": False, "values": "counts"}


def settled(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The options, with what is usual in place of ``"auto"``.

    >>> settled({"ngrams": "auto", "marks": False}, WHOLE)
    {'ngrams': 2, 'marks': False}
    """
    auto = {name for name, value in options.items() if name in defaults and value == "auto"}
    return {**options, **{name: defaults[name] for name in auto}}


class Grams(NamedTuple):
    """Selection of the n-grams of a text.

    Parameters
    ----------
    order : int
        Longest n-gram of words, at most 3; 0 for none.
    chars : tuple of two int, optional
        Shortest and longest n-gram of characters, at most 8, within words with a blank before and
        behind them; None for none.
    lowercase : bool
        Whether letters are folded to lower case.
    marks : bool
        Whether every punctuation mark of ASCII is a word, and not only ``! ? $``.
    """

    order: int = 1
    chars: tuple[int, int] | None = None
    lowercase: bool = True
    marks: bool = False

    def check(self) -> Grams:
        """These, if they can be counted."""
        if self.chars is not None:
            low, high = self.chars
            if not 1 <= low <= high <= MAX_CHARS:
                raise HopefearError(
                    f"n-grams of 1 to {MAX_CHARS} characters can be counted, not of {low} to {high}"
                )
        least = 1 if self.chars is None else 0
        if not least <= self.order <= MAX_ORDER:
            raise HopefearError(
                f"n-grams of {least} to {MAX_ORDER} tokens can be counted, not {self.order}"
            )
        return self

    def as_parameters(self) -> dict[str, Any]:
        """The same by the names that readers and estimators have for it."""
        fields = self._asdict()
        return {"ngrams": fields.pop("order"), **fields}

    def to_header(self) -> dict[str, Any]:
        defaults = Grams()
        header: dict[str, Any] = {"order": self.order}
        if self.chars != defaults.chars:
            header["chars"] = list(self.chars or ())
        if self.lowercase != defaults.lowercase:
            header["lowercase"] = self.lowercase
        if self.marks != defaults.marks:
            header["marks"] = self.marks
        return header

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> Grams:
        chars, defaults = header.get("chars"), cls()
        lowercase = header.get("lowercase", defaults.lowercase)
        marks = header.get("marks", defaults.marks)
        for name, flag in (("lowercase", lowercase), ("marks", marks)):
            if not isinstance(flag, bool):
                raise ModelError(
                    f"feature map: expected {name} to be true or false, found {flag!r:.60}"
                )
        if chars is not None:
            if not isinstance(chars, list | tuple) or len(chars) != 2:
                raise ModelError(f"feature map: expected chars of two lengths, found {chars!r:.60}")
            ends = dict(zip(("chars from", "chars to"), chars, strict=True))
            low = whole_number(ends, "chars from", 1, MAX_CHARS)
            chars = low, whole_number(ends, "chars to", low, MAX_CHARS)
        order = whole_number(header, "order", 1 if chars is None else 0, MAX_ORDER)
        return cls(order, chars, lowercase, marks)


def char_name(text: str) -> str:
    """Returns the name of an n-gram of characters; the edge of a word is a dot.

    >>> char_name(" goo")
    'c=·goo'
    """
    return "c=" + text.replace(" ", "·")


class NGramFeatures:
    """Column j is the n-gram ``parent[j]`` followed by ``token[j]``; names are exact.

    N-grams of characters have the columns behind those of words.

    Parameters
    ----------
    grams : Grams or int
        Which n-grams there are; a number is the longest n-gram of words, and there are no others.
    tokens : Strings
        The distinct tokens.
    parent, token : arrays of int32
        For each column of words the column of its first n - 1 tokens (-1 for a single token) and
        its last token.
    chars : Strings, optional
        The n-grams of characters, a blank for the edge of a word.
    ignored : array of int32, optional
        Columns that are not counted, as too many texts have them; longer n-grams may begin with
        them.

    Examples
    --------
    >>> import numpy as np
    >>> words = Strings.pack(["not", "good"])
    >>> parent, token = np.array([-1, -1, 0]), np.array([0, 1, 1])
    >>> NGramFeatures(2, words, parent, token).names([1, 2])
    ['good', 'not good']
    >>> more = NGramFeatures(Grams(2, (2, 3)), words, parent, token, Strings.pack(["od "]))
    >>> more.size, more.name(3)
    (4, 'c=od·')
    """

    kind = "ngrams"

    def __init__(
        self,
        grams: Grams | int,
        tokens: Strings,
        parent: np.ndarray,
        token: np.ndarray,
        chars: Strings | None = None,
        ignored: np.ndarray | None = None,
    ) -> None:
        self.grams = grams if isinstance(grams, Grams) else Grams(grams)
        self._tokens = tokens
        self._parent = frozen(np.asarray(parent, np.int32))
        self._token = frozen(np.asarray(token, np.int32))
        self._chars = Strings.pack([]) if chars is None else chars
        self.ignored = frozen(np.asarray([] if ignored is None else ignored, np.int32))
        self._tables: tuple[NGramTables, NGramTables] | None = None

    @property
    def order(self) -> int:
        return self.grams.order

    @property
    def split(self) -> int:
        """The first column of characters."""
        return int(self._parent.size)

    @property
    def size(self) -> int:
        return self.split + self._chars.size

    def name(self, column: int) -> str:
        column = column_in_range(column, self.size)
        if column >= self.split:
            return char_name(self._chars.get(column - self.split))
        words = []
        while column >= 0:
            words.append(self._tokens.get(int(self._token[column])))
            column = int(self._parent[column])
        return " ".join(reversed(words))

    def names(self, columns: Iterable[int]) -> list[str]:
        return [self.name(c) for c in columns]

    def columns(self, ids: np.ndarray) -> np.ndarray:
        raise HopefearError(
            "these features are n-grams of texts, which a file of numeric ids lacks; "
            "give lines of label<TAB>text"
        )

    def ids(self, columns: np.ndarray) -> np.ndarray:
        # Many readers take ids from 1 only.
        return columns.astype(np.int64) + 1

    def tables(self) -> tuple[NGramTables, NGramTables]:
        """Hash tables for a reader that looks n-grams up, of words and characters; built once."""
        if self._tables is None:
            alone = np.arange(self._chars.size, dtype=np.int32)
            self._tables = (
                _tables_of(self._tokens, self._parent, self._token),
                _tables_of(self._chars, np.full(alone.size, -1, np.int32), alone),
            )
        return self._tables

    def to_header(self) -> dict[str, Any]:
        return {"kind": self.kind, "size": self.size, **self.grams.to_header()}

    def arrays(self) -> dict[str, np.ndarray]:
        arrays = self._tokens.arrays("tokens") | {"parent": self._parent, "token": self._token}
        if self.grams.chars is not None:
            arrays |= self._chars.arrays("chars")
        return arrays | ({"ignored": self.ignored} if self.ignored.size else {})

    @classmethod
    def from_parts(
        cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> NGramFeatures:
        size = whole_number(header, "size", 0, MAX_COLUMNS)
        grams = Grams.from_header(header)
        of_chars = () if grams.chars is None else ("chars_text", "chars_offsets")
        of_words = ("tokens_text", "tokens_offsets", "parent", "token")
        only_these(arrays, (*of_words, *of_chars, "ignored"))
        tokens = Strings.from_parts(arrays, "tokens")
        chars = Strings.from_parts(arrays, "chars") if of_chars else Strings.pack([])
        parent, token = vector(arrays, "parent", np.int32), vector(arrays, "token", np.int32)
        if not parent.size == token.size == size - chars.size:
            raise ModelError(
                f"feature map: the header says {size} n-grams, the arrays have "
                f"{parent.size} and {token.size} of words and {chars.size} of characters"
            )
        in_range(token, "token", 0, tokens.size - 1)
        in_range(parent, "parent", -1, parent.size - 1)
        # A parent before its child rules out cycles, so every name ends.
        if (parent >= np.arange(parent.size)).any():
            raise ModelError("feature map: an n-gram stands before its own beginning")
        depth = np.ones(parent.size, np.int64)
        for _ in range(grams.order):
            depth = np.where(parent < 0, 1, depth[parent] + 1) if parent.size else depth
        if parent.size and int(np.max(depth)) > grams.order:
            raise ModelError(f"feature map: an n-gram is longer than {grams.order} tokens")
        ignored = vector(arrays, "ignored", np.int32) if "ignored" in arrays else None
        if ignored is not None:
            in_range(ignored, "ignored", 0, size - 1)
        return cls(grams, tokens, parent, token, chars, ignored)


def _tables_of(tokens: Strings, parent: np.ndarray, token: np.ndarray) -> NGramTables:
    count, size = tokens.size, parent.size
    tables = empty_tables(max(1, count), max(1, tokens.text.size), max(1, size))
    tables.text[: tokens.text.size] = tokens.text
    tables.offsets[: count + 1] = tokens.offsets
    tables.parent[:size] = parent
    tables.token[:size] = token
    tables.used[TOKENS], tables.used[TEXT] = count, tokens.text.size
    tables.used[ENTRIES] = size
    alone = np.flatnonzero(parent < 0)
    tables.unigram[token[alone]] = alone
    with np.errstate(over="ignore"):  # hashes wrap; only uncompiled kernels warn
        hash_tokens(tables)
        fill_slots(tables)
    return tables


def ngrams_from_tables(
    words: NGramTables, chars: NGramTables, grams: Grams, min_count: int, max_rows: float = np.inf
) -> tuple[NGramFeatures, np.ndarray, np.ndarray]:
    """The n-grams seen in at least min_count rows, and the new column of each entry of both tables.

    That column is -1 for what is not counted: n-grams seen less often, and those in more than
    ``max_rows`` rows. Every beginning of an n-gram is seen at least as often, so it is kept too.
    """
    column, tokens, parent, token = _selected(words, min_count)
    char_column, char_texts, _, _ = _selected(chars, min_count)
    char_column[char_column >= 0] += parent.size
    ignored = []
    for tables, columns in ((words, column), (chars, char_column)):
        often = np.flatnonzero(tables.seen[1 : 2 * len(columns) : 2] > max_rows)
        ignored.append(columns[often])
        columns[often] = -1
    several = np.concatenate(ignored)
    features = NGramFeatures(grams, tokens, parent, token, char_texts, several[several >= 0])
    return features, column, char_column


def _selected(tables: NGramTables, min_count: int) -> tuple[np.ndarray, Strings, np.ndarray, Any]:
    """New column of each entry, and tokens, parents and last tokens of those that stay."""
    size, count = int(tables.used[ENTRIES]), int(tables.used[TOKENS])
    keep = tables.seen[1 : 2 * size : 2] >= min_count
    column = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
    keep_token = keep[tables.unigram[:count]] if count else np.zeros(0, bool)
    number = (np.cumsum(keep_token) - 1).astype(np.int32)
    parent = tables.parent[:size][keep]
    parent = np.where(parent < 0, -1, column[parent]).astype(np.int32)
    lengths = np.diff(tables.offsets[: count + 1])
    offsets = np.zeros(int(keep_token.sum()) + 1, np.int64)
    np.cumsum(lengths[keep_token], out=offsets[1:])
    text = tables.text[: tables.used[TEXT]][np.repeat(keep_token, lengths)]
    words = Strings(frozen(text), frozen(offsets))
    return column, words, parent, number[tables.token[:size][keep]]


class NameSample(NamedTuple):
    """Names that a kernel collects: the n-gram that came first on each of the first columns."""

    columns: np.ndarray  # int32[most], in the order they came
    offsets: np.ndarray  # int64[most + 1]
    text: np.ndarray  # uint8
    used: np.ndarray  # int64[1], names

    def sorted(self) -> tuple[np.ndarray, Strings]:
        """Columns in rising order, and their names."""
        n = int(self.used[0])
        order = np.argsort(self.columns[:n])
        starts, sizes = self.offsets[:n][order], np.diff(self.offsets[: n + 1])[order]
        offsets = np.zeros(n + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        bytes_sorted = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)
        return self.columns[:n][order], Strings(frozen(self.text[bytes_sorted]), frozen(offsets))


def empty_names(max_names: int) -> NameSample:
    """Allocates a sample of ``max_names`` names."""
    return NameSample(
        np.zeros(max_names, np.int32),
        np.zeros(max_names + 1, np.int64),
        np.zeros(_BYTES_PER_NAME * max_names, np.uint8),
        np.zeros(1, np.int64),
    )


class HashedFeatures:
    """Column of an n-gram is the top ``bits`` bits of its hash; memory never grows.

    With n-grams of characters, words have the lower half of the columns and they the upper one.

    Parameters
    ----------
    grams : Grams or int
        Which n-grams are counted; a number is the longest n-gram of words, and there are no others.
    bits : int
        Number of columns is ``2**bits``; more bits mean fewer collisions and more memory.
    collisions : float
        Share of the n-gram occurrences read in training that fell on a column another n-gram had
        claimed first; nan before training.
    columns : array of int32, optional
        Columns whose first n-gram is known, rising.
    names : Strings, optional
        Those n-grams. Others may share the column: see ``collisions``.

    Examples
    --------
    >>> features = HashedFeatures(1, 10, 0.0, np.array([3]), Strings.pack(["good"]))
    >>> features.names([3, 4])
    ['good', '#4']
    """

    kind = "hashed"

    def __init__(
        self,
        grams: Grams | int,
        bits: int,
        collisions: float = float("nan"),
        columns: np.ndarray | None = None,
        names: Strings | None = None,
    ) -> None:
        self.grams = grams if isinstance(grams, Grams) else Grams(grams)
        least = 1 if self.grams.chars is None else 2
        if not least <= bits <= MAX_BITS:
            raise HopefearError(f"hash_bits must be {least} to {MAX_BITS}, not {bits}")
        self.bits, self.collisions = bits, collisions
        named_columns = np.zeros(0, np.int32) if columns is None else columns
        self._columns = frozen(np.asarray(named_columns, np.int32))
        self._names = Strings.pack([]) if names is None else names

    @property
    def order(self) -> int:
        return self.grams.order

    @property
    def half(self) -> int:
        """Bits of the hash that choose among the columns of words, or of characters."""
        return self.bits - (self.grams.chars is not None)

    @property
    def split(self) -> int:
        """The first column of characters."""
        return 1 << self.half

    @property
    def size(self) -> int:
        return 1 << self.bits

    def name(self, column: int) -> str:
        column = column_in_range(column, self.size)
        index = int(np.searchsorted(self._columns, column))
        if index < len(self._columns) and self._columns[index] == column:
            name = self._names.get(index)
            return name if column < self.split else char_name(name)
        return f"#{column}"

    def names(self, columns: Iterable[int]) -> list[str]:
        return [self.name(c) for c in columns]

    def columns(self, ids: np.ndarray) -> np.ndarray:
        raise HopefearError(
            "these features are hashed n-grams of texts, which a file of numeric ids lacks; "
            "give lines of label<TAB>text"
        )

    def ids(self, columns: np.ndarray) -> np.ndarray:
        return columns.astype(np.int64) + 1

    def to_header(self) -> dict[str, Any]:
        is_measured = self.collisions == self.collisions
        return {
            "kind": self.kind,
            **self.grams.to_header(),
            "bits": self.bits,
            "collisions": self.collisions if is_measured else None,
        }

    def arrays(self) -> dict[str, np.ndarray]:
        return {"columns": self._columns} | self._names.arrays("names")

    @classmethod
    def from_parts(
        cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> HashedFeatures:
        grams = Grams.from_header(header)
        bits = whole_number(header, "bits", 1, MAX_BITS)
        only_these(arrays, ("columns", "names_text", "names_offsets"))
        columns, names = vector(arrays, "columns", np.int32), Strings.from_parts(arrays, "names")
        if len(columns) != names.size:
            raise ModelError(f"feature map: {len(columns)} columns have {names.size} names")
        if columns.size and (columns[0] < 0 or (columns[1:] <= columns[:-1]).any()):
            raise ModelError("feature map: the named columns are not rising from 0 or more")
        if columns.size and columns[-1] >= 1 << bits:
            raise ModelError(f"feature map: a name for column {columns[-1]} of {1 << bits}")
        rate = header.get("collisions")
        if rate is None:
            return cls(grams, bits, columns=columns, names=names)
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
            raise ModelError(f"feature map: expected collisions from 0 to 1, found {rate!r:.60}")
        return cls(grams, bits, float(rate), columns, names)
