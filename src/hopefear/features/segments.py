"""Features of segments: those of their tokens, and those that only whole segments have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.arrays import (
    Strings,
    column_in_range,
    only_these,
    vector,
    whole_number,
)
from hopefear.core.hashing import KeyTable, mix
from hopefear.errors import HopefearError, ModelError
from hopefear.features.maps import MAX_COLUMNS
from hopefear.features.templates.loading import load_templates
from hopefear.features.templates.spec import (
    ON_EDGES,
    ON_LABELS,
    StringSource,
    StringView,
    Templates,
)
from hopefear.features.templates.string_features import Types, hashes_of, seen
from hopefear.features.templates.template_map import TemplateFeatures

MAX_LONGEST = 1000
# What is looked at in a whole segment: its words, their shapes, its last word.
WORDS, SHAPE, LAST = "words", "shape", "last"
_VIEWS = {
    WORDS: (StringView("lower"),),
    SHAPE: (StringView("short_shape"),),
    LAST: (StringView("lower"),),
}
# Spans that must have them. The words of a single span would tell that span by heart, which teaches
# nothing of others.
_LEAST = {WORDS: 2, SHAPE: 1, LAST: 2}
# Tokens whose segments are looked up together.
_CHUNK = 1 << 15


class SegmentAttributes(NamedTuple):
    """Attributes of tokens and of segments, as in ``SegmentRows``."""

    indptr: np.ndarray  # int64[tokens + 1]
    indices: np.ndarray  # int32[nnz]
    values: np.ndarray  # float32[nnz] or float32[0]
    span_indptr: np.ndarray  # int64[tokens * longest + 1]
    span_indices: np.ndarray  # int32[span nnz]


class SegmentFeatures:
    """Attributes that templates make of tokens, and those of segments of up to ``longest`` tokens.

    A segment has its length, its words in lower case, their shapes, its last word, and the names of
    the lexicons of the templates in which it is an entry. Words and last words count where two
    spans of the training data have them, shapes where one has. Numbers of tokens come first.

    Parameters
    ----------
    tokens : TemplateFeatures
        Attributes of tokens.
    column : str
        The column of words.
    longest : int
        Most tokens of a segment.
    keys : array of uint64
        Keys of the attributes of segments, in the order of their numbers.
    names : Strings, optional
        What they are called; without, ``#3`` and the like.

    Examples
    --------
    >>> from hopefear.data.sequences import Column, Sentences
    >>> text = Sentences(np.array([0, 3, 6]), {"word": Column.of(["in", "New", "York"] * 2)})
    >>> spans = np.array([1, 4]), np.array([3, 6])  # first tokens, and those behind the last
    >>> features, attributes = SegmentFeatures.fit_encode("pos", text, spans, longest=2)
    >>> segment = 1 * 2 + 2 - 1  # two tokens from token 1 on
    >>> first, last = attributes.span_indptr[segment : segment + 2]
    >>> features.names(attributes.span_indices[first:last])
    ['length=2', 'words=new york', 'shape=Xx Xx', 'last=york']
    """

    kind = "segments"
    edge_size = 0

    def __init__(
        self,
        tokens: TemplateFeatures,
        column: str,
        longest: int,
        keys: np.ndarray,
        names: Strings | None = None,
    ) -> None:
        self.tokens, self.column, self.longest = tokens, column, longest
        self._table, self._names = KeyTable(keys), names
        self._lexicons = [
            _Lexicon(source, entries) for source, entries in _lexicons_of(tokens).items()
        ]

    @classmethod
    def fit_encode(
        cls,
        templates: Any,
        sentences: Any,
        spans: tuple[np.ndarray, np.ndarray],
        longest: int,
        *,
        min_count: int = 1,
        hash_bits: int | None = None,
        keep_names: bool = True,
    ) -> tuple[SegmentFeatures, SegmentAttributes]:
        """Number the attributes of sentences and encode these.

        Parameters
        ----------
        templates : Templates or str
            Templates of tokens, or what ``load_templates`` reads; those on edges are left out.
        sentences : Sentences
            Training text.
        spans : pair of int arrays
            First tokens of the spans of the training text, and the tokens behind them.
        longest : int
            Most tokens of a segment.
        min_count, hash_bits, keep_names
            As of :meth:`hopefear.features.templates.TemplateFeatures.fit_encode`; attributes of
            segments are never hashed.
        """
        if not 1 <= longest <= MAX_LONGEST:
            raise HopefearError(f"segments have 1 to {MAX_LONGEST} tokens, not {longest}")
        options: Any = {"min_count": min_count, "hash_bits": hash_bits, "keep_names": keep_names}
        templates = load_templates(templates) if isinstance(templates, str) else templates
        tokens, attributes = TemplateFeatures.fit_encode(
            _without_edges(templates), sentences, **options
        )
        column = _word_column(tokens.needs, sentences)
        unnumbered = cls(tokens, column, longest, np.zeros(0, np.uint64))
        keys, names = unnumbered._numbered(sentences, spans, min_count)
        packed = Strings.pack(names) if keep_names else None
        features = cls(tokens, column, longest, keys, packed)
        return features, features._with_segments(sentences, attributes)

    def encode(self, sentences: Any) -> SegmentAttributes:
        """Attributes of other sentences; those never seen in training are left out."""
        return self._with_segments(sentences, self.tokens.encode(sentences))

    @property
    def size(self) -> int:
        return self.tokens.size + self._table.size

    @property
    def templates(self) -> Any:
        """The templates of the tokens."""
        return self.tokens.templates

    @property
    def needs(self) -> tuple[str, ...]:
        """Columns that sentences must have."""
        return tuple(dict.fromkeys((*self.tokens.needs, self.column)))

    @property
    def hash_bits(self) -> int | None:
        """Bits of hashed attributes of tokens, None where each has its own number."""
        return self.tokens.hash_bits

    def name(self, column: int) -> str:
        """Name of an attribute, such as ``word[0]=cat`` or ``words=the cat``."""
        column = column_in_range(column, self.size)
        if column < self.tokens.size:
            return self.tokens.name(column)
        return f"#{column}" if self._names is None else self._names.get(column - self.tokens.size)

    def names(self, columns: Iterable[int]) -> list[str]:
        return [self.name(c) for c in columns]

    def columns(self, ids: np.ndarray) -> np.ndarray:
        return self.tokens.columns(ids)

    def ids(self, columns: np.ndarray) -> np.ndarray:
        return self.tokens.ids(columns)

    def to_header(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "column": self.column,
            "longest": self.longest,
            "segments": self._table.size,
            "named": self._names is not None,
            "tokens": self.tokens.to_header(),
        }

    def arrays(self) -> dict[str, np.ndarray]:
        named = {} if self._names is None else self._names.arrays("segment_names")
        return {"segment_keys": self._table.keys, **named, **self.tokens.arrays()}

    @classmethod
    def from_parts(
        cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> SegmentFeatures:
        longest, size = (whole_number(header, *limits) for limits in _NUMBERS)
        column, named, inner = (header.get(key) for key in ("column", "named", "tokens"))
        if not isinstance(column, str) or not isinstance(named, bool):
            raise ModelError("feature map: segments without their column of words, or names")
        if not isinstance(inner, Mapping) or inner.get("kind") != TemplateFeatures.kind:
            raise ModelError("feature map: expected segments over templates of tokens")
        of_segments = {name: a for name, a in arrays.items() if name.startswith("segment_")}
        of_tokens = {name: a for name, a in arrays.items() if name not in of_segments}
        allowed = ("segment_names_text", "segment_names_offsets") if named else ()
        only_these(of_segments, ("segment_keys", *allowed))
        keys = vector(of_segments, "segment_keys", np.uint64)
        names = Strings.from_parts(of_segments, "segment_names") if named else None
        if len(keys) != size or len(np.unique(keys)) != size or not keys.all():
            raise ModelError(f"feature map: expected {size} different keys of segments")
        if names is not None and names.size != size:
            raise ModelError(f"feature map: {size} attributes of segments have {names.size} names")
        return cls(TemplateFeatures.from_parts(inner, of_tokens), column, longest, keys, names)

    def _with_segments(self, sentences: Any, attributes: Any) -> SegmentAttributes:
        """Attributes of segments behind those of their tokens."""
        pointers, indices, used = [np.zeros(1, np.int64)], [np.zeros(0, np.int32)], 0
        for _, keys in self._keys(sentences):
            numbers = self._table.find(keys.ravel()).reshape(keys.shape)
            numbered = numbers >= 0
            pointers.append(used + np.cumsum(numbered.sum(axis=1)))
            indices.append(numbers[numbered] + np.int32(self.tokens.size))
            used += len(indices[-1])
        segments = np.concatenate(pointers), np.concatenate(indices)
        return SegmentAttributes(
            attributes.indptr, attributes.indices, attributes.values, *segments
        )

    def _numbered(
        self, sentences: Any, spans: tuple[np.ndarray, np.ndarray], min_count: int
    ) -> tuple[np.ndarray, list[str]]:
        """Keys and names of attributes: all lengths and lexicons, and what spans have."""
        sizes = spans[1] - spans[0]
        segments = (spans[0] * self.longest + sizes - 1)[sizes <= self.longest]
        fixed = [_length(d) for d in range(1, self.longest + 1)]
        fixed += [lexicon.name for lexicon in self._lexicons]
        observed = [np.zeros((0, len(_VIEWS)), np.uint64)]
        for first, keys in self._keys(sentences):
            here = segments[(segments >= first) & (segments < first + len(keys))]
            observed.append(keys[here - first, 1 : 1 + len(_VIEWS)])
        keys, firsts, counts = np.unique(
            np.concatenate(observed).ravel(), return_index=True, return_counts=True
        )
        least = np.array([max(min_count, _LEAST[kind]) for kind in _VIEWS])
        frequent = counts >= least[firsts % len(_VIEWS)]
        order = np.argsort(firsts[frequent])
        keys, firsts = (array[frequent][order] for array in (keys, firsts))
        words = _SegmentWords(sentences, self.column)
        names = [
            words.name(
                list(_VIEWS)[kind % len(_VIEWS)], segments[kind // len(_VIEWS)], self.longest
            )
            for kind in firsts.tolist()
        ]
        return np.concatenate([_keys_of(fixed), keys]), [*fixed, *names]

    def _keys(self, sentences: Any) -> Iterator[tuple[int, np.ndarray]]:
        """Yields keys of segments, 0 where there is no attribute, and the first one's number."""
        words, starts = (
            _SegmentWords(sentences, self.column),
            np.asarray(sentences.starts, np.int64),
        )
        lengths = _keys_of([_length(d) for d in range(1, self.longest + 1)])
        runs = {name: words.hashes(views) for name, views in _VIEWS.items()}
        listed = [lexicon.hashes(sentences) for lexicon in self._lexicons]
        ends = np.repeat(starts[1:], np.diff(starts))
        for first in range(0, len(ends), _CHUNK):
            last = min(first + _CHUNK, len(ends))
            keys = np.zeros((last - first, self.longest, 1 + len(runs) + len(listed)), np.uint64)
            for d in range(self.longest):
                keys[:, d, 0] = lengths[d]
            for kind, (name, hashes) in enumerate(runs.items(), 1):
                keys[:, :, kind] = _run_keys(name, hashes, first, last, self.longest)
            for kind, lexicon in enumerate(self._lexicons, 1 + len(runs)):
                of_runs = _run_keys("", listed[kind - 1 - len(runs)], first, last, self.longest)
                keys[:, :, kind] = lexicon.keys(of_runs)
            room = ends[first:last] - np.arange(first, last)
            keys[np.arange(self.longest) >= room[:, None]] = 0
            yield first * self.longest, keys.reshape(-1, keys.shape[2])


_NUMBERS = (("longest", 1, MAX_LONGEST), ("segments", 0, MAX_COLUMNS))


class _SegmentWords:
    """The words of sentences, as segments look at them."""

    def __init__(self, sentences: Any, column: str) -> None:
        self._column = sentences.columns[column]
        self._types = Types(self._column.strings)

    def hashes(self, views: tuple[StringView, ...]) -> np.ndarray:
        """A hash for every token."""
        return self._types.values(views).hashes[self._column.ids]

    def name(self, kind: str, segment: int, longest: int) -> str:
        """The name of an attribute of a segment."""
        texts, first = self._types.mapped(_VIEWS[kind]), segment // longest
        ids = self._column.ids[first : first + segment % longest + 1].tolist()
        return f"{kind}={' '.join(texts[i] for i in (ids[-1:] if kind == LAST else ids))}"


class _Lexicon:
    """Entries of a lexicon, to be found among segments."""

    def __init__(self, source: StringSource, entries: Sequence[str]) -> None:
        self.name, self._source = f"lexicon={source.lexicon}", source
        words = [entry.split() for entry in entries]
        table = KeyTable()
        for size in sorted({len(entry) for entry in words} - {0}):
            flat = [word for entry in words if len(entry) == size for word in entry]
            hashes = hashes_of([seen(word, source.views)[0] for word in flat])
            table.count(_run_keys("", hashes, 0, len(flat), size)[::size, size - 1])
        self._table, self._key = table, _keys_of([self.name])[0]

    def hashes(self, sentences: Any) -> np.ndarray:
        """A hash for every token, as the templates look at it."""
        column = sentences.columns[self._source.needs()]
        return Types(column.strings).values(self._source.views).hashes[column.ids]

    def keys(self, of_runs: np.ndarray) -> np.ndarray:
        """The key of the lexicon for segments that are entries, else 0."""
        listed = self._table.find(np.ascontiguousarray(of_runs).ravel()) >= 0
        return np.where(listed.reshape(of_runs.shape), self._key, np.uint64(0))


def _run_keys(name: str, hashes: np.ndarray, first: int, last: int, longest: int) -> np.ndarray:
    """Keys (never 0) of all segments that begin at some tokens, as if sentences had no ends."""
    padded = np.concatenate([hashes[first : last + longest - 1], np.zeros(longest, np.uint64)])
    seed = hashes_of([name])[0]
    keys = np.empty((last - first, longest), np.uint64)
    running = np.full(last - first, seed)
    for d in range(longest):
        running = mix(
            np.full(last - first, seed) if name == LAST else running, padded[d : d + last - first]
        )
        keys[:, d] = running
    return np.where(keys == 0, np.uint64(1), keys)


def _length(d: int) -> str:
    """Name of the attribute that a segment of d tokens has.

    >>> _length(3)
    'length=3'
    """
    return f"length={d}"


def _keys_of(names: Sequence[str]) -> np.ndarray:
    """Keys of attributes that are numbered by their names alone."""
    hashes = hashes_of(names)
    return np.where(hashes == 0, np.uint64(1), hashes)


def _without_edges(templates: Templates) -> Templates:
    """The templates that fire on labels; segments have no pairs of labels inside."""
    on_labels = (t for t in templates.templates if t.on != ON_EDGES)
    return replace(templates, templates=tuple(replace(t, on=ON_LABELS) for t in on_labels))


def _lexicons_of(features: TemplateFeatures) -> dict[StringSource, tuple[str, ...]]:
    """The lexicons of templates, with the columns and views they are looked up in."""
    templates = features.templates
    terms = (term for template in templates.templates for term in template.all_terms())
    sources = dict.fromkeys(term.source for term in terms if term.source.lexicon)
    return {source: templates.lexicons[source.lexicon] for source in sources}


def _word_column(needs: Sequence[str], sentences: Any) -> str:
    """The column of words: by its name, else the first that templates look at."""
    named = [name for name in ("word", "form") if name in sentences.columns]
    return [*named, *needs, *sentences.columns][0]
