"""The feature map of arcs: inputs of templates, candidate arcs, features of gold trees."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hopefear.core.arrays import Strings, vector, whole_number
from hopefear.core.checks import check_at_least
from hopefear.core.component import helper, kernel
from hopefear.core.workspace import Example
from hopefear.errors import HopefearError, ModelError
from hopefear.features.arcs.feature_hashing import BEFORE, EXTRA, HashedArcs, hashed_arcs, lookup
from hopefear.features.arcs.templates import COLUMNS, FAMILIES, ArcTemplates, value_of

PLAIN_BITS, ROW_BITS = 22, 20
_MOST_BLOCKS = 1 << 20
# Coarse tags that are distinguished between two words; the others share the last number.
_MOST_COARSE = 64
# Arcs are candidates up to ``_SLACK`` times the longest training arc between two tags, and always
# up to ``_NEAR`` words.
_SLACK, _NEAR = 1.5, 4
# Bits of the keys of features while those of gold trees are collected, and how many are collected
# before duplicates are removed.
_KEY_BITS, _MAX_KEYS = 32, 1 << 23
_ROOT, _FRONT, _BACK = "<root>", "<front>", "<back>"


class WordTable(NamedTuple):
    """Inputs of templates: the words of all sentences, with the root and padding at the ends.

    Word p of sentence i, from 1, has the row ``starts[i] + 5 i + 2 + p``; the root is word 0.
    """

    words: np.ndarray  # uint64[rows * columns]: values of word, lemma, tag, coarse
    coarse: np.ndarray  # uint8[rows]: number of the coarse tag
    marks: np.ndarray  # uint8[rows]: 1 for punctuation
    morph_ptr: np.ndarray  # int64[rows + 1]
    morphs: np.ndarray  # uint64: values of morphological attributes


@dataclass(frozen=True)
class ArcMap:
    """Features of arcs in a table of weights that all of them share.

    Parameters
    ----------
    templates : ArcTemplates
        Templates of arcs.
    columns : tuple of str
        The columns of a sentence that are word, lemma, tag and coarse tag, and the morphological
        attributes; an empty name is for what there is not.
    coarse, tags : tuple of str
        Coarse and fine tags of the training data, the first in the order of their numbers.
    reach : int16 array
        ``[tag of head, tag of modifier, side]``: the longest arc between such words that is looked
        at: half as long again as in the training data, and 4 at least; the root is the last head.
    plain_bits, row_bits : int
        Coordinates of features without relations, and places of rows of those with relations.
    known : tuple of uint32 arrays, optional
        A dictionary: keys of the features without relations and of the others, both rising. No
        other feature counts, and none share a weight; bits then have no meaning.
    blocks : int
        Places of rows that the relations of one feature fill, where there is a dictionary.
    """

    kind: ClassVar[str] = "arcs"
    templates: ArcTemplates
    columns: tuple[str, ...]
    coarse: tuple[str, ...]
    tags: tuple[str, ...]
    reach: np.ndarray = field(repr=False)
    plain_bits: int = PLAIN_BITS
    row_bits: int = ROW_BITS
    known: tuple[np.ndarray, np.ndarray] | None = field(default=None, repr=False)
    blocks: int = 1

    @classmethod
    def fit(
        cls,
        sentences: Any,
        heads: np.ndarray,
        templates: ArcTemplates,
        columns: tuple[str, ...],
        plain_bits: int = PLAIN_BITS,
        row_bits: int = ROW_BITS,
    ) -> ArcMap:
        """Look at the trees of a treebank: which tags there are, how far arcs reach."""
        for name, bits in (("plain_bits", plain_bits), ("row_bits", row_bits)):
            check_at_least(name, bits, 8)
            if bits > 30:
                raise HopefearError(f"{name} is at most 30, not {bits}")
        tags, fine_tags = sentences.columns[columns[3]], sentences.columns[columns[2]]
        names = tags.strings
        reach = np.zeros((len(names) + 1, len(names), 2), np.int16)
        measure(sentences.starts, np.array(tags.ids, np.int32), heads.astype(np.int32), reach)
        coarse, fine = np.unique(tags.ids), np.unique(fine_tags.ids)
        # Strings that are in no row have no number.
        reach = reach[np.ix_(np.append(coarse, len(names)), coarse, np.arange(2))]
        wide = np.minimum(np.ceil(_SLACK * reach.astype(np.float64)), 32767)
        wide[:-1] = np.maximum(wide[:-1], _NEAR)
        coarse_tags, fine_names = (
            tuple(strings[k] for k in used.tolist())
            for strings, used in ((names, coarse), (fine_tags.strings, fine))
        )
        return cls(
            templates, columns, coarse_tags, fine_names, wide.astype(np.int16), plain_bits, row_bits
        )

    def with_dictionary(self, rows: Any, heads: np.ndarray, order: int, blocks: int) -> ArcMap:
        """Returns the same templates, with the features of these trees and no others."""
        plain, labelled = map(np.unique, gold_keys(self.component(), rows, heads, order))
        return replace(self, known=(plain, labelled), blocks=blocks)

    @property
    def plain(self) -> int:
        """Coordinates of features without relations."""
        return 1 << self.plain_bits if self.known is None else len(self.known[0])

    @property
    def size(self) -> int:
        """Coordinates of features without relations and places of the others."""
        rows = 1 << self.row_bits if self.known is None else len(self.known[1])
        return self.plain + rows

    @property
    def description(self) -> dict[str, Any]:
        """Returns the fields that signatures have of the map."""
        return {
            "features": self.templates.name,
            "columns": ",".join(self.columns),
            "bits": f"{self.plain_bits},{self.row_bits}",
            **({} if self.known is None else {"dictionary": self.size}),
        }

    def component(self) -> HashedArcs:
        """Returns the component from which a structure gets the features of its parts."""
        arcs = hashed_arcs(self.templates, self.plain_bits, self.row_bits)
        if self.known is None:
            return arcs
        plain, rows = self.known
        tables = lookup(plain), lookup(rows, self.blocks)
        return HashedArcs(arcs.program, len(plain), len(rows) * self.blocks, *tables)

    def number(self, key: int, family: str) -> int | None:
        """Number of the feature of 32 bits; None where it is unknown."""
        of_rows = family == "label"
        if self.known is None:
            return key & ((1 << (self.row_bits if of_rows else self.plain_bits)) - 1)
        keys = self.known[of_rows]
        at = int(np.searchsorted(keys, np.uint32(key)))
        if at == len(keys) or keys[at] != key:
            return None
        return at * self.blocks if of_rows else at

    def words(self, sentences: Any) -> WordTable:
        """The columns that templates look at, as numbers."""
        starts = sentences.starts
        n = int(starts[-1])
        rows_of_tokens = np.arange(n) + EXTRA * np.repeat(
            np.arange(len(starts) - 1), np.diff(starts)
        )
        rows_of_tokens += BEFORE + 1
        rows = n + EXTRA * (len(starts) - 1)
        roots = starts[:-1] + EXTRA * np.arange(len(starts) - 1) + BEFORE
        words = np.empty((rows, len(COLUMNS)), np.uint64)
        for c, name in enumerate(COLUMNS):
            words[:, c] = value_of(_BACK, name)
            words[np.concatenate([roots - 1, roots - 2]), c] = value_of(_FRONT, name)
            words[roots, c] = value_of(_ROOT, name)
            if self.columns[c]:
                column = sentences.columns[self.columns[c]]
                fold = str.lower if c == 0 else str
                table = [value_of(fold(text), name) for text in column.strings]
                words[rows_of_tokens, c] = np.array(table, np.uint64)[column.ids]
            else:
                words[rows_of_tokens, c] = 0
        coarse = np.zeros(rows, np.uint8)
        number = {tag: min(k, _MOST_COARSE - 2) for k, tag in enumerate(self.coarse)}
        column = sentences.columns[self.columns[3]]
        fallback = _MOST_COARSE - 1
        numbers = [number.get(tag, fallback) for tag in column.strings]
        coarse[rows_of_tokens] = np.array(numbers, np.uint8)[column.ids]
        coarse[roots] = fallback
        is_punctuation = np.zeros(rows, np.uint8)
        form = sentences.columns[self.columns[0]]
        is_punctuation[rows_of_tokens] = np.array(
            [is_mark(text) for text in form.strings], np.uint8
        )[form.ids]
        return WordTable(
            words.ravel(), coarse, is_punctuation, *self._morphs(sentences, rows_of_tokens, rows)
        )

    def _morphs(
        self, sentences: Any, rows_of_tokens: np.ndarray, rows: int
    ) -> tuple[np.ndarray, np.ndarray]:
        counts = np.zeros(rows, np.int64)
        if not self.columns[4]:
            return np.zeros(rows + 1, np.int64), np.empty(0, np.uint64)
        column = sentences.columns[self.columns[4]]
        lists = [
            [value_of(part, "morph") for part in text.split("|")] if text not in ("_", "") else []
            for text in column.strings
        ]
        sizes = np.array([len(values) for values in lists], np.int64)
        counts[rows_of_tokens] = sizes[column.ids]
        value_offsets = np.concatenate([[0], np.cumsum(counts)])
        flat = np.array([value for one in lists for value in one], np.uint64)
        starts = np.concatenate([[0], np.cumsum(sizes)])[:-1]
        lengths = sizes[column.ids]
        offsets = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return value_offsets, flat[np.repeat(starts[column.ids], lengths) + offsets]

    def arcs(self, sentences: Any) -> tuple[np.ndarray, np.ndarray]:
        """Heads worth a look: those of word k are ``heads[ptr[k]:ptr[k + 1]]``, in order.

        The preceding word is always a candidate, so that every sentence has a tree.
        """
        column = sentences.columns[self.columns[3]]
        number = {tag: k for k, tag in enumerate(self.coarse)}
        table = np.array([number.get(tag, -1) for tag in column.strings], np.int32)
        ids = table[column.ids]
        offsets = np.zeros(ids.size + 1, np.int64)
        no_heads = np.empty(0, np.int32)
        count_arcs(sentences.starts, ids, self.reach, offsets, no_heads)
        heads = np.empty(int(offsets[-1]), np.int32)
        count_arcs(sentences.starts, ids, self.reach, offsets, heads)
        return offsets, heads

    def to_header(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "templates": {name: list(getattr(self.templates, name)) for name in FAMILIES},
            "columns": list(self.columns),
            "plain_bits": self.plain_bits,
            "row_bits": self.row_bits,
            **({} if self.known is None else {"blocks": self.blocks}),
        }

    def arrays(self) -> dict[str, np.ndarray]:
        known = {}
        if self.known is not None:
            known = {"known": self.known[0], "known_rows": self.known[1]}
        return {
            **known,
            "reach": self.reach.ravel(),
            **Strings.pack(self.coarse).arrays("coarse"),
            **Strings.pack(self.tags).arrays("tags"),
        }

    @classmethod
    def from_parts(cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> ArcMap:
        columns = header.get("columns")
        if not isinstance(columns, list) or len(columns) != 5:
            raise ModelError("features of arcs: the columns are five names")
        families = header.get("templates")
        if not isinstance(families, dict) or not all(
            type(text) is str and len(text) < 200 for part in families.values() for text in part
        ):
            raise ModelError("features of arcs: templates are lists of texts, by family")
        try:
            templates = ArcTemplates.of(families)
        except HopefearError as error:
            raise ModelError(f"features of arcs: {error}") from error
        coarse, tags = (_texts(arrays, name) for name in ("coarse", "tags"))
        reach, n = vector(arrays, "reach", np.int16), len(coarse)
        if reach.size != 2 * n * (n + 1):
            raise ModelError(f"features of arcs: {n} tags have {2 * n * (n + 1)} reaches")
        known, blocks = None, 1
        if "blocks" in header:
            known = (vector(arrays, "known", np.uint32), vector(arrays, "known_rows", np.uint32))
            if not all((keys[1:] > keys[:-1]).all() for keys in known):
                raise ModelError("features of arcs: keys of the dictionary are not rising")
            blocks = whole_number(header, "blocks", 1, _MOST_BLOCKS)
            if max(len(known[0]), len(known[1]) * blocks) >= 1 << 31:
                raise ModelError("features of arcs: the dictionary has over 2^31 places")
        return cls(
            templates,
            tuple(map(str, columns)),
            coarse,
            tags,
            reach.reshape(n + 1, n, 2),
            whole_number(header, "plain_bits", 8, 31),
            whole_number(header, "row_bits", 8, 31),
            known,
            blocks,
        )


def _texts(arrays: Mapping[str, np.ndarray], name: str) -> tuple[str, ...]:
    strings = Strings.from_parts(arrays, name)
    return tuple(strings.get(k) for k in range(strings.size))


def is_mark(text: str) -> bool:
    """Whether all characters are punctuation in Unicode.

    >>> is_mark("..."), is_mark("$"), is_mark("a.")
    (True, False, False)
    """
    return bool(text) and all(unicodedata.category(c).startswith("P") for c in text)


@kernel
def measure(starts, tags, heads, reach):
    """The longest arc between words of two tags, for either side."""
    root = reach.shape[0] - 1
    for i in range(starts.size - 1):
        start = starts[i]
        for m in range(1, starts[i + 1] - start + 1):
            h = heads[start + m - 1]
            tag = tags[start + h - 1] if h > 0 else root
            side = 0 if h < m else 1
            length = min(abs(h - m), 32767)
            reach[tag, tags[start + m - 1], side] = max(
                np.int64(reach[tag, tags[start + m - 1], side]), length
            )


@kernel
def count_arcs(starts, tags, reach, offsets, heads):
    """Count the arcs within reach, or write them where there is room for them."""
    root, writing, count = reach.shape[0] - 1, heads.size > 0, 0
    for i in range(starts.size - 1):
        start, n = starts[i], starts[i + 1] - starts[i]
        for m in range(1, n + 1):
            own_tag = tags[start + m - 1]
            for h in range(n + 1):
                if h == m:
                    continue
                tag = tags[start + h - 1] if h > 0 else root
                side = 0 if h < m else 1
                limited = own_tag >= 0 and tag >= 0
                if limited and abs(h - m) > reach[tag, own_tag, side] and h != m - 1:
                    continue
                if writing:
                    heads[count] = h
                count += 1
            offsets[start + m] = count


def gold_keys(
    arcs: HashedArcs, rows: Any, heads: np.ndarray, order: int
) -> tuple[np.ndarray, np.ndarray]:
    """Keys of 32 bits, rising: those of features without relations, and of the others.

    Parameters
    ----------
    arcs : HashedArcs
        Templates.
    rows : TreeRows
        Sentences.
    heads : int array
        The head of every word, 0 for the root.
    order : int
        2: siblings and grandparents have features too.
    """
    wide = arcs._replace(plain=1 << _KEY_BITS, rows=1 << _KEY_BITS)
    pad = wide.new_buffer(rows)
    plain, labelled = (np.empty(_MAX_KEYS + 16 * len(pad.keys), np.uint32) for _ in range(2))
    keys_found = [np.empty(0, np.uint32), np.empty(0, np.uint32)]
    at = np.zeros(2, np.int64)
    counts = np.zeros(2, np.int64)
    heads = np.ascontiguousarray(heads, np.int32)
    while at[0] < len(rows.weights):
        counts[:] = 0
        collect(wide, rows, heads, order, pad, plain, labelled, _MAX_KEYS, at, counts)
        for group, keys in enumerate((plain, labelled)):
            keys_found[group] = np.union1d(keys_found[group], keys[: counts[group]])
    return keys_found[0], keys_found[1]


@kernel
def collect(arcs, data, heads, order, pad, plain, labelled, max_keys, at, counts):
    """Collects keys of trees until there are ``max_keys``; ``at`` is where it resumes."""
    while at[0] < data.weights.size:
        x = Example(data, at[0])
        start, n = data.starts[x.i], data.starts[x.i + 1] - data.starts[x.i]
        while at[1] < n:
            if max(counts[0], counts[1]) > max_keys:
                return
            m = at[1] + 1
            h = np.int64(heads[start + m - 1])
            put(pad, arcs.arc_keys(x, h, m, pad), plain, counts, 0)
            put(pad, arcs.label_keys(x, h, m, pad), labelled, counts, 1)
            if order == 2:
                step = 1 if h < m else -1
                s = m - step
                while s != h and heads[start + s - 1] != h:
                    s -= step
                put(pad, arcs.sibling_keys(x, h, 0 if s == h else s, m, pad), plain, counts, 0)
                e = m + step
                while 1 <= e <= n and heads[start + e - 1] != h:
                    e += step
                if not 1 <= e <= n:
                    put(pad, arcs.outermost_child_keys(x, h, m, pad), plain, counts, 0)
                if h > 0:
                    g = np.int64(heads[start + h - 1])
                    put(pad, arcs.grandparent_keys(x, g, h, m, pad), plain, counts, 0)
            at[1] += 1
        at[0] += 1
        at[1] = 0


@helper
def put(pad, count, keys, counts, group):
    """Append the keys of a pad."""
    for k in range(count):
        keys[counts[group] + k] = pad.keys[k]
    counts[group] += count
