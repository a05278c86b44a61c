"""Tokens as numbers that a network looks up: words, shapes, columns, characters, templates."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hopefear.core.arrays import Strings, column_in_range, gathered, only_these, whole_number
from hopefear.errors import HopefearError, ModelError
from hopefear.features.attributes import Attributes
from hopefear.features.maps import MAX_COLUMNS
from hopefear.features.templates import TemplateFeatures

# Characters of a word that are kept: half at its beginning, half at its end.
LONGEST = 32
_RUNS = re.compile(r"(.)\1{2,}")
_PLAIN = str.maketrans(
    dict.fromkeys("abcdefghijklmnopqrstuvwxyz", "x")
    | dict.fromkeys("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "X")
    | dict.fromkeys("0123456789", "0")
)


def shape_of(word: str) -> str:
    """The kinds of a word's characters, long runs cut to two.

    >>> [shape_of(word) for word in ("Reagan", "IBM", "1,024.5", "U.S.", "Ärzte")]
    ['Xxx', 'XX', '0,00.0', 'X.X.', 'Xxx']
    """
    if not word.isascii():
        word = "".join(
            "X" if c.isupper() else "x" if c.isalpha() else "0" if c.isdigit() else c for c in word
        )
    return _RUNS.sub(r"\1\1", word.translate(_PLAIN))


@dataclass(frozen=True)
class TokenIdSettings:
    """Settings from which :class:`TokenIds` is made on training text.

    Parameters
    ----------
    columns : tuple of str, optional
        Columns to look at, the words first; None: the words, and parts of speech in a column
        that is called ``pos``.
    lower : bool
        Words are looked up in lower case; shapes and characters keep what that loses.
    vectors : Vectors, optional
        Pretrained vectors of words; part of the map, but not of model files.
    unseen : bool
        Words that have a vector get a number although no sentence has them.
    templates : Templates or str, optional
        Sparse features beside the words.

    Examples
    --------
    >>> from types import SimpleNamespace as Space
    >>> words = Space(strings=["The", "cat"], ids=np.array([0, 1, 0], np.int32))
    >>> sentences = Space(starts=np.array([0, 3]), columns={"word": words}, source="memory")
    >>> features, attributes = TokenIdSettings(vectors=Space(words=("dog",))).fit_encode(sentences)
    >>> [features.name(a) for a in attributes.indices[:3].tolist()]
    ['word=the', 'shape=Xxx', 'character=T']
    >>> features.families["word"], features.size
    (range(0, 4), 14)
    """

    columns: tuple[str, ...] | None = None
    lower: bool = True
    vectors: Any = None
    unseen: bool = True
    templates: Any = None

    def fit_encode(
        self,
        sentences: Any,
        *,
        min_count: int = 1,
        hash_bits: int | None = None,
        keep_names: bool = True,
    ) -> tuple[TokenIds, Attributes]:
        """Number what sentences hold, and encode them; options are those of templates.

        Words with fewer than ``min_count`` occurrences share one number.
        """
        columns = self.columns or usual_columns(sentences.columns)
        for name in columns:
            if name not in sentences.columns:
                raise HopefearError(
                    f"{sentences.source} has no column {name!r} for the network to read; there "
                    f"are {', '.join(sentences.columns)}"
                )
        if dotted := [name for name in columns[1:] if "." in name]:
            raise HopefearError(
                f"{sentences.source}: a network cannot read the column {dotted[0]!r}, whose name "
                "has a dot; give it another name"
            )
        if clash := {"word", "shape", "character", "template"} & set(columns[1:]):
            raise HopefearError(
                f"{sentences.source}: a column called {min(clash)} cannot stand beside the "
                f"{min(clash)} of words; give it another name"
            )
        column = sentences.columns[columns[0]]
        counts = np.bincount(column.ids, minlength=len(column.strings)).tolist()
        number: Counter[str] = Counter()
        for text, n in zip(column.strings, counts, strict=True):
            if n:
                number[_folded(text, self.lower)] += n
        frequent = [word for word, n in number.items() if n >= min_count]
        vocabulary = dict.fromkeys(frequent)
        if self.vectors is not None and self.unseen:
            vocabulary |= dict.fromkeys(_folded(word, self.lower) for word in self.vectors.words)
        present = [text for text, n in zip(column.strings, counts, strict=True) if n]
        tables = {
            "word": list(vocabulary),
            "shape": list(dict.fromkeys(map(shape_of, present))),
            **{
                name: [sentences.columns[name].strings[i] for i in _present(sentences, name)]
                for name in columns[1:]
            },
            "character": list(dict.fromkeys(c for text in present for c in text)),
        }
        templates, sparse = None, None
        if self.templates is not None:
            templates, sparse = TemplateFeatures.fit_encode(
                self.templates,
                sentences,
                min_count=min_count,
                hash_bits=hash_bits,
                keep_names=keep_names,
            )
            if templates.edge_size:
                raise HopefearError(
                    f"{templates.templates.source} has templates of label pairs, whose scores a "
                    "network cannot take in; leave them out of a wide network"
                )
        features = TokenIds(tuple(columns), tables, self.lower, len(frequent), templates)
        features.vectors = self.vectors
        return features, features.encode(sentences, sparse)


class TokenIds:
    """Every token as a row of numbers: its word, shape and columns, its characters, its templates.

    Each family of numbers has a range of its own, and its first number stands for what training
    has not seen. A row has one number of each column, the characters in order, then templates.

    Parameters
    ----------
    columns : tuple of str
        Columns that are read, the words first.
    tables : mapping of str to list of str
        What has a number, by family: ``word``, ``shape``, further columns, ``character``.
    lower : bool
        Words are in lower case.
    seen : int
        So many words, the first ones, are from training text.
    templates : TemplateFeatures, optional
        What sparse features mean.
    """

    kind = "token-ids"
    edge_size = 0
    hash_bits = None
    vectors: Any = None  # what words begin with in training

    def __init__(
        self,
        columns: tuple[str, ...],
        tables: Mapping[str, Sequence[str]],
        lower: bool,
        n_frequent: int,
        templates: TemplateFeatures | None = None,
    ) -> None:
        self.columns, self.tables, self.lower, self.n_frequent = (
            columns,
            dict(tables),
            lower,
            n_frequent,
        )
        self.sparse = templates
        sizes = {name: len(strings) + 1 for name, strings in tables.items()}
        sizes["template"] = 0 if templates is None else templates.size
        ends = np.cumsum([0, *sizes.values()]).tolist()
        self.families = {
            name: range(a, b) for name, a, b in zip(sizes, ends[:-1], ends[1:], strict=True)
        }
        self.size = ends[-1]
        self._numbers = {
            name: {text: i + 1 for i, text in enumerate(strings)}
            for name, strings in self.tables.items()
        }

    @property
    def slots(self) -> tuple[str, ...]:
        """Families of which every token has one number, in the order of a row."""
        return tuple(name for name in self.tables if name != "character")

    @property
    def needs(self) -> tuple[str, ...]:
        """Columns that sentences must have."""
        sparse_needs = () if self.sparse is None else self.sparse.needs
        return tuple(dict.fromkeys((*self.columns, *sparse_needs)))

    @cached_property
    def known_words(self) -> frozenset[str]:
        """Words of the training text, also capitalised where words are in lower case."""
        words = self.tables["word"][: self.n_frequent]
        if not self.lower:
            return frozenset(words)
        return frozenset(form for word in words for form in (word, word.title(), word.upper()))

    def encode(self, sentences: Any, sparse: Attributes | None = None) -> Attributes:
        """The numbers of all tokens; ``sparse`` are those of templates, where they are known."""
        if missing := [name for name in self.columns if name not in sentences.columns]:
            raise HopefearError(
                f"{getattr(sentences, 'source', 'the data')} has no column {missing[0]!r}, which "
                f"the network reads; there are {', '.join(sentences.columns)}"
            )
        words, n = sentences.columns[self.columns[0]], int(sentences.starts[-1])
        texts, numbers = words.strings, self._numbers
        columns = [
            self._looked_up("word", [_folded(text, self.lower) for text in texts])[words.ids],
            self._looked_up("shape", map(shape_of, texts))[words.ids],
        ]
        for name in self.columns[1:]:
            column = sentences.columns[name]
            columns.append(self._looked_up(name, column.strings)[column.ids])
        first, code_of = self.families["character"].start, numbers["character"]
        spelled = [[code_of.get(c, 0) + first for c in _cut(text)] for text in texts]
        ends = np.concatenate([[0], np.cumsum([len(codes) for codes in spelled])]).astype(np.int64)
        letters = np.array([number for codes in spelled for number in codes], np.int32)
        indptr, where = gathered(ends, np.asarray(words.ids, np.int64))
        parts = [
            (np.full(n, len(columns)), np.stack(columns, axis=1).ravel()),
            (np.diff(indptr), letters[where]),
        ]
        if self.sparse is not None:
            sparse = self.sparse.encode(sentences) if sparse is None else sparse
            if sparse.values.size:
                raise HopefearError(
                    "templates with values are not for networks; leave them out of wide"
                )
            indices = sparse.indices + np.int32(self.families["template"].start)
            parts.append((np.diff(sparse.indptr), indices))
        counts = np.stack([count for count, _ in parts], axis=1)
        ends = np.concatenate([[0], np.cumsum(counts.sum(axis=1))]).astype(np.int64)
        out = np.empty(int(ends[-1]), np.int32)
        starts = ends[:-1]
        for count, values in parts:
            inside = np.arange(len(values)) - np.repeat(np.cumsum(count) - count, count)
            out[np.repeat(starts, count) + inside] = values
            starts = starts + count
        no_values, none = np.empty(0, np.float32), np.empty(0, np.int32)
        return Attributes(ends, out, no_values, np.zeros(1, np.int64), none, no_values)

    def _looked_up(self, family: str, texts: Iterable[str]) -> np.ndarray:
        code_of, first = self._numbers[family], self.families[family].start
        return np.array([code_of.get(text, 0) + first for text in texts], np.int32)

    def name(self, column: int) -> str:
        """Returns the name of a column."""
        column = column_in_range(column, self.size)
        for family, numbers in self.families.items():
            if column in numbers:
                i = column - numbers.start
                if family == "template":
                    return self.sparse.name(i)  # type: ignore[union-attr]
                return f"{family}={self.tables[family][i - 1] if i else '(unknown)'}"
        raise AssertionError  # families have all numbers

    def to_header(self) -> dict[str, Any]:
        """Returns the fields of a model file's header."""
        return {
            "kind": self.kind,
            "columns": list(self.columns),
            "lower": self.lower,
            "seen": self.n_frequent,
            "named": True,
            "sparse": None if self.sparse is None else self.sparse.to_header(),
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns the arrays of a model file."""
        arrays: dict[str, np.ndarray] = {}
        for i, strings in enumerate(self.tables.values()):
            arrays |= Strings.pack(strings).arrays(f"table{i}")
        if self.sparse is not None:
            arrays |= {f"sparse.{name}": array for name, array in self.sparse.arrays().items()}
        return arrays

    @classmethod
    def from_parts(cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> TokenIds:
        """The map that :meth:`to_header` and :meth:`arrays` were taken from; nothing is trusted."""
        columns, lower = header.get("columns"), header.get("lower")
        if not isinstance(columns, list) or not all(type(name) is str for name in columns):
            raise ModelError("feature map: expected columns to be a list of names")
        families = ("word", "shape", *columns[1:], "character")
        if not columns or len(set(families)) < len(families) or type(lower) is not bool:
            raise ModelError("feature map: columns of token ids are missing or there twice")
        within = {
            name.removeprefix("sparse."): array
            for name, array in arrays.items()
            if name.startswith("sparse.")
        }
        dense_arrays = {
            name: array for name, array in arrays.items() if not name.startswith("sparse.")
        }
        parts = [f"table{i}_{part}" for i in range(len(families)) for part in ("text", "offsets")]
        only_these(dense_arrays, tuple(parts))
        tables = {}
        for i, name in enumerate(families):
            strings = Strings.from_parts(dense_arrays, f"table{i}")
            tables[name] = [strings.get(k) for k in range(strings.size)]
            if len(set(tables[name])) < strings.size:
                raise ModelError(f"feature map: something is twice in the table of {name!r:.60}")
        n_frequent = whole_number(header, "seen", 0, min(MAX_COLUMNS, len(tables["word"])))
        templates = None
        if header.get("sparse") is not None:
            templates = TemplateFeatures.from_parts(header["sparse"], within)
        elif within:
            raise ModelError("feature map: templates that the header does not name")
        return cls(tuple(columns), tables, lower, n_frequent, templates)


def usual_columns(columns: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the default columns of a network: words, and parts of speech in columns named pos.

    >>> usual_columns({"word": 0, "pos": 0, "label": 0}), usual_columns({"token": 0, "label": 0})
    (('word', 'pos'), ('token',))
    """
    word = "word" if "word" in columns else next(iter(columns))
    # Other names for a column do not count: in CoNLL-U pos is another name of xpos, gold as well.
    return (word, *(["pos"] if "pos" in list(columns) else []))


def _folded(text: str, lower: bool) -> str:
    return text.lower() if lower else text


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST // 2] + text[-LONGEST // 2 :]


def _present(sentences: Any, name: str) -> list[int]:
    return np.unique(sentences.columns[name].ids).tolist()
