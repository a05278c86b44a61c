"""Features computed from the candidates' text: consensus and n-grams.

Decoders write none of them; whoever has the words of candidates can make them. *Consensus* is how
much of a translation the other candidates of its list have too: choosing the candidate with the
most is consensus decoding, a relative of minimum Bayes risk; here it is a dense feature beside
others, and tuning says what it is worth. *N-grams* are sparse features.

References
----------
Tromble, Kumar, Och and Macherey, *Lattice minimum Bayes-risk decoding for statistical machine
translation*, EMNLP 2008. DeNero, Chiang and Knight, *Fast consensus decoding over translation
forests*, ACL 2009.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hopefear.core.arrays import Strings, Texts, frozen
from hopefear.core.component import helper, kernel
from hopefear.core.hashing import StringTable, key_slot, mix
from hopefear.data.files import PADDING
from hopefear.data.lists.candidates import CandidateLists, NamedEntries, interleaved, packed
from hopefear.data.moses.word_hashes import NEWLINE, split_lines
from hopefear.errors import HopefearError
from hopefear.translation.names import BARS, phrase_name
from hopefear.translation.weights import Weights

CONSENSUS = "Consensus0"
ORDERS = 4  # as in BLEU


def with_consensus(lists: CandidateLists, inverse_temperature: float = 3.0) -> CandidateLists:
    """The lists with one dense feature of four numbers more, ``Consensus0``.

    ``Σ_g p(g)`` over the different n-grams g of a candidate, for n = 1..4, where ``p(g)`` is the
    probability of the candidates that have g, and candidates have
    ``softmax(inverse_temperature · decoder score)`` within their list. Words are told apart by
    64-bit hashes.

    Parameters
    ----------
    lists : CandidateLists
        With texts, and with scores of one decoder: scores of runs under different weights do not
        compare.
    inverse_temperature : float
        Factor on the scores. Larger listens to the decoder's first choices only, 0 to all alike.

    Examples
    --------
    >>> from hopefear.translation.lists import lists_in_memory
    >>> lists = lists_in_memory([[("a b", {"LM0": -1.0}), ("a c", {"LM0": -2.0})]])
    >>> result = with_consensus(lists)
    >>> result.layout, result.dense[0].tolist()
    ((('LM0', 1), ('Consensus0', 4)), [-1.0, 1.5, 0.5, 0.0, 0.0])
    """
    if not (math.isfinite(inverse_temperature) and inverse_temperature >= 0.0):
        raise HopefearError(
            f"inverse_temperature is a factor on scores, 0 or more, not {inverse_temperature}"
        )
    if has_consensus(lists):
        raise HopefearError(f"{lists.source} has a feature {CONSENSUS} already; do not add another")
    dense = np.empty((lists.n_candidates, lists.dense.shape[1] + ORDERS), np.float32)
    dense[:, :-ORDERS] = lists.dense
    for a, b, block in candidate_words(lists, "consensus"):
        out = np.empty((b - a, ORDERS))
        scores = lists.scores[a:b].astype(np.float64)
        consensus(
            *(block.words, block.ptr, block.starts, scores, float(inverse_temperature)),
            *(block.grams(ORDERS), out),
        )
        dense[a:b, -ORDERS:] = out
    return replace(lists, layout=(*lists.layout, (CONSENSUS, ORDERS)), dense=frozen(dense))


def has_consensus(lists: CandidateLists) -> bool:
    """Whether the lists have the feature already."""
    return any(name == CONSENSUS for name, _ in lists.layout)


PREFIX = "ng_"


def with_ngrams(lists: CandidateLists, orders: int = 3) -> CandidateLists:
    """The lists with sparse features more: how often a candidate has an n-gram, ``ng_the,house``.

    N-grams that all candidates of a list have equally often are left out there: they add the same
    to every score and change no choice. So a list of one candidate has none. Commas and the like
    within words are spelled as in names of phrase pairs: ``ng_%2C``.

    Parameters
    ----------
    lists : CandidateLists
        With texts.
    orders : int
        Words of the longest n-grams. More gives more features, most of them rare.

    Examples
    --------
    >>> from hopefear.translation.lists import lists_in_memory
    >>> lists = lists_in_memory([[("a b", {"LM0": -1.0}), ("a c", {"LM0": -2.0})]])
    >>> list(with_ngrams(lists, orders=2).sparse.names)
    ['ng_a,b', 'ng_b', 'ng_a,c', 'ng_c']
    """
    if orders < 1:
        raise HopefearError(f"orders={orders}: n-grams have at least one word")
    if has_ngrams(lists):
        raise HopefearError(f"{lists.source} has features {PREFIX}… already; do not add more")
    before = lists.sparse
    table = StringTable() if before is None else StringTable.of(packed(before.names))
    sizes, ids, counts = [np.zeros(1, np.int64)], [np.zeros(0, np.int32)], [np.zeros(0, np.float32)]
    for a, b, words in candidate_words(lists, "ngrams"):
        grams = _telling_grams(words, b - a, orders)
        sizes.append(np.diff(grams.indptr))
        ids.append(_interned(table, words, grams)[grams.grams])
        counts.append(grams.counts.copy())
    ngrams = NamedEntries(
        Texts(table.strings()),
        frozen(np.cumsum(np.concatenate(sizes))),
        frozen(np.concatenate(ids)),
        frozen(np.concatenate(counts)),
    )
    return replace(lists, sparse=ngrams if before is None else _interleaved(before, ngrams))


def has_ngrams(lists: CandidateLists) -> bool:
    """Whether the lists have such features already."""
    if lists.sparse is None:
        return False
    text, offsets = packed(lists.sparse.names)
    name_starts = offsets[:-1][np.diff(offsets) >= len(PREFIX)]
    has_prefix = np.ones(len(name_starts), bool)
    for k, sign in enumerate(PREFIX.encode()):
        has_prefix &= text[name_starts + k] == sign
    return bool(has_prefix.any())


def _telling_grams(words: CandidateWords, candidates: int, orders: int) -> TellingGrams:
    """Returns the n-grams that distinguish the candidates of a list."""
    max_entries, longest = words.max_grams(orders), int(np.diff(words.starts).max(initial=1))
    position, having, low, high, gram, times = np.empty((6, max_entries), np.int32)
    counts = GramCounts(position, having, low, high, gram, times, np.empty(longest, np.int64))
    room = orders * int(words.ptr[-1])
    grams = TellingGrams(
        np.empty(room, np.int64),
        np.empty(room, np.int32),
        np.zeros(candidates + 1, np.int64),
        np.empty(room, np.int32),
        np.empty(room, np.float32),
    )
    size = telling(
        *(words.words, words.ptr, words.starts, orders, words.grams(orders), counts, grams),
    )
    entries = int(grams.indptr[-1])
    return TellingGrams(
        *(grams.first[:size], grams.order[:size]),
        *(grams.indptr, grams.grams[:entries], grams.counts[:entries]),
    )


def _spelled() -> np.ndarray:
    """Returns, for every byte, its spelling in a name and the length of that."""
    table = np.zeros((256, 4), np.uint8)
    table[:, 0], table[:, 1] = 1, np.arange(256)
    for byte in range(128):
        code = phrase_name(f"x{BARS}{chr(byte)}").partition("~")[2].encode()
        table[byte, 0] = len(code)
        table[byte, 1 : len(code) + 1] = list(code)
    return frozen(table)


_SPELLED = _spelled()


def _interned(table: StringTable, words: CandidateWords, telling: TellingGrams) -> np.ndarray:
    """Numbers of the names of n-grams, new ones where they are new."""
    grams = (words.text, words.begins, words.ends, telling.first, telling.order)
    offsets = np.zeros(len(telling.first) + 1, np.int64)
    name_sizes(*grams, len(PREFIX), _SPELLED, offsets)
    names = np.empty(int(offsets[-1]), np.uint8)
    prefix = np.frombuffer(PREFIX.encode(), np.uint8)
    write_names(*grams, prefix, _SPELLED, offsets, names)
    return table.intern_spans(names, offsets[:-1], offsets[1:])


def _interleaved(before: NamedEntries, added: NamedEntries) -> NamedEntries:
    """Entries of both, whose names are in one table."""
    values = np.ones(len(before.ids), np.float32) if before.values is None else before.values
    assert added.values is not None
    parts = (before.indptr, before.ids, values), (added.indptr, added.ids, added.values)
    return NamedEntries(added.names, *map(frozen, interleaved(parts)))


class _Group(NamedTuple):
    kind: str  # the features they go with
    add: Callable[[CandidateLists], CandidateLists]
    there: Callable[[CandidateLists], bool]
    is_needed: Callable[[Weights], bool]
    dense: tuple[str, ...] = ()  # names of dense features


DERIVED = {
    "consensus": _Group(
        "dense",
        with_consensus,
        has_consensus,
        lambda weights: any(name == CONSENSUS for name, _ in weights.layout),
        (CONSENSUS,),
    ),
    "ngrams": _Group(
        "sparse",
        with_ngrams,
        has_ngrams,
        lambda weights: any(name.startswith(PREFIX) for name in weights.sparse),
    ),
}


def derived(lists: CandidateLists, groups: Sequence[str]) -> CandidateLists:
    """The lists with these features too; those that they have already stay as they are.

    Parameters
    ----------
    lists : CandidateLists
        With texts.
    groups : sequence of {"consensus", "ngrams"}
        See :func:`with_consensus` and :func:`with_ngrams`, whose defaults are used.

    Examples
    --------
    >>> from hopefear.translation.lists import lists_in_memory
    >>> lists = lists_in_memory([[("a b", {"LM0": -1.0}), ("a c", {"LM0": -2.0})]])
    >>> result = derived(lists, ["consensus", "ngrams"])
    >>> len(result.names), len(result.sparse.names)
    (5, 4)
    """
    check_groups(groups)
    for group in groups:
        if not DERIVED[group].there(lists):
            lists = DERIVED[group].add(lists)
    return lists


def check_groups(groups: Sequence[str]) -> None:
    """HopefearError where a name is none of these groups."""
    for group in groups:
        if group not in DERIVED:
            names = ", ".join(DERIVED)
            raise HopefearError(f"features that words tell are {names}, not {group!r}")


def needed(weights: Weights) -> tuple[str, ...]:
    """The groups that weights speak of and that decoders do not write.

    Examples
    --------
    >>> needed(Weights((("LM0", 1),), [0.5], {"ng_the,house": 0.1}))
    ('ngrams',)
    """
    return tuple(name for name, group in DERIVED.items() if group.is_needed(weights))


# Lists that are looked at together: enough to be fast, few enough to be small.
_BLOCK = 500


class CandidateWords(NamedTuple):
    """Candidate c of a block has the words ``ptr[c] .. ptr[c + 1] - 1``."""

    starts: np.ndarray  # int64[lists + 1]: candidates of each list
    text: np.ndarray  # uint8
    ptr: np.ndarray  # int64[candidates + 1]
    begins: np.ndarray  # int64[words]
    ends: np.ndarray  # int64[words]
    words: np.ndarray  # uint64[words], their hashes

    def max_grams(self, orders: int) -> int:
        """N-grams of the longest list, or a few more."""
        return orders * int(np.diff(self.ptr[self.starts]).max(initial=1))

    def grams(self, orders: int) -> GramTable:
        """Space for the n-grams of any of the lists."""
        max_grams = self.max_grams(orders)
        return GramTable(
            np.empty(1 << max(4, (2 * max_grams).bit_length()), np.int32),
            np.empty(max_grams, np.uint64),
            np.empty(max_grams, np.int64),
            np.empty(max_grams, np.int32),
            np.empty(max_grams, np.int64),
            np.empty(max_grams),
            np.empty(max_grams, np.int32),
        )


def candidate_words(
    lists: CandidateLists, purpose: str
) -> Iterator[tuple[int, int, CandidateWords]]:
    """``(first candidate, last + 1, words)`` of some lists at a time, split as `str.split` does.

    Parameters
    ----------
    lists : CandidateLists
        With texts.
    purpose : str
        What needs the words, for the message where there are none.
    """
    if not lists.texts:
        raise HopefearError(
            f"{lists.source}: {purpose} needs the words of candidates, and those were not kept; "
            "read the lists with texts=True"
        )
    texts = packed(lists.texts)
    for begin in range(0, len(lists), _BLOCK):
        starts = lists.starts[begin : begin + _BLOCK + 1]
        a, b = int(starts[0]), int(starts[-1])
        yield a, b, _split(texts, a, b, starts - a)


def _split(texts: Strings, a: int, b: int, starts: np.ndarray) -> CandidateWords:
    offsets = texts.offsets[a : b + 1]
    size = int(offsets[-1] - offsets[0]) + b - a
    text = np.full(size + PADDING, NEWLINE, np.uint8)
    write_lines(texts.text, offsets, text)
    room = size // 2 + 1
    ptr = np.zeros(b - a + 1, np.int64)
    starts_of_words, ends = np.empty(room, np.int64), np.empty(room, np.int64)
    words = np.empty(room, np.uint64)
    split_lines(text, b - a, ptr, starts_of_words, ends, words)
    return CandidateWords(starts, text, ptr, starts_of_words, ends, words)


_BLANK, _NEWLINE, _COMMA = 32, 10, 44


class GramTable(NamedTuple):
    """The n-grams of one list, numbered in order of appearance, and space for work on them."""

    slots: np.ndarray  # int32[power of two]: n-gram + 1, 0 if empty
    keys: np.ndarray  # uint64[n-grams]
    first: np.ndarray  # int64[n-grams]: a word that it begins at
    order: np.ndarray  # int32[n-grams]: how many words it has
    last: np.ndarray  # int64[n-grams]: the candidate that was last seen to have it
    share: np.ndarray  # float64[n-grams]: probability of the candidates that have it
    numbers: np.ndarray  # int32[occurrences]: the n-gram of each


class TellingGrams(NamedTuple):
    """N-grams that distinguish candidates of a block of lists, each with its count."""

    first: np.ndarray  # int64[n-grams]: a word that it begins at
    order: np.ndarray  # int32[n-grams]
    indptr: np.ndarray  # int64[candidates + 1]
    grams: np.ndarray  # int32[entries]: position of the n-gram
    counts: np.ndarray  # float32[entries]


class GramCounts(NamedTuple):
    """Counts of each n-gram in the candidates of one list."""

    position: np.ndarray  # int32[n-grams]: its entry for the current candidate, then its position
    having: np.ndarray  # int32[n-grams]: candidates that have it
    low: np.ndarray  # int32[n-grams]: how often at least, where it is
    high: np.ndarray  # int32[n-grams]: how often at most
    gram: np.ndarray  # int32[entries]
    times: np.ndarray  # int32[entries]
    ends: np.ndarray  # int64[candidates]


@kernel
def write_lines(text, offsets, lines):
    """Copy strings, each with a newline behind it; newlines within become blanks."""
    p = 0
    for c in range(len(offsets) - 1):
        for q in range(offsets[c], offsets[c + 1]):
            lines[p] = _BLANK if text[q] == _NEWLINE else text[q]
            p += 1
        lines[p] = _NEWLINE
        p += 1


@helper(inline=True)
def number_grams(words, offsets, first, last, orders, grams):
    """Number the n-grams of the candidates ``first .. last - 1``; how many there are.

    Occurrences are ordered by candidate, word and length of the n-gram.
    """
    size = 16
    while size < 2 * orders * (offsets[last] - offsets[first]):
        size *= 2
    slots = grams.slots[:size]
    slots[:] = 0
    n, e = 0, 0
    for c in range(first, last):
        for k in range(offsets[c], offsets[c + 1]):
            h = np.uint64(0)
            for m in range(min(orders, offsets[c + 1] - k)):
                h = mix(h, words[k + m])
                slot = key_slot(slots, grams.keys, h)
                if slots[slot] == 0:
                    grams.keys[n] = h
                    grams.first[n] = k
                    grams.order[n] = m + 1
                    grams.last[n] = -1
                    n += 1
                    slots[slot] = n
                grams.numbers[e] = slots[slot] - 1
                e += 1
    return n


@helper(inline=True)
def occurrences(size, orders):
    """Returns how many n-grams ``size`` words have."""
    total = 0
    for m in range(min(orders, size)):
        total += size - m
    return total


@kernel
def consensus(words, offsets, starts, scores, inverse_temperature, grams, out):
    """Sums over the different n-grams of each candidate of their probability in the list."""
    orders = out.shape[1]
    sums = np.zeros(orders)
    for i in range(len(starts) - 1):
        first, last = starts[i], starts[i + 1]
        n = number_grams(words, offsets, first, last, orders, grams)
        grams.share[:n] = 0.0
        top = scores[first:last].max()
        total = 0.0
        for c in range(first, last):
            total += math.exp(inverse_temperature * (scores[c] - top))
        e = 0
        for c in range(first, last):
            share = math.exp(inverse_temperature * (scores[c] - top)) / total
            for _ in range(occurrences(offsets[c + 1] - offsets[c], orders)):
                g = grams.numbers[e]
                if grams.last[g] != c:  # one twice in a candidate is one
                    grams.last[g] = c
                    grams.share[g] += share
                e += 1
        e = 0
        for c in range(first, last):
            sums[:] = 0.0
            for _ in range(occurrences(offsets[c + 1] - offsets[c], orders)):
                g = grams.numbers[e]
                if grams.last[g] != -2 - c:
                    grams.last[g] = -2 - c
                    sums[grams.order[g] - 1] += grams.share[g]
                e += 1
            out[c] = sums


@kernel
def telling(words, offsets, starts, orders, grams, counts, out):
    """Fill ``out``; how many n-grams it has.

    One that all candidates of a list have equally often is left out.
    """
    size, used = 0, 0
    for i in range(len(starts) - 1):
        first, last = starts[i], starts[i + 1]
        n = number_grams(words, offsets, first, last, orders, grams)
        count_grams(offsets, first, last, orders, n, grams, counts)
        for g in range(n):
            counts.position[g] = -1
            if counts.having[g] < last - first or counts.low[g] < counts.high[g]:
                counts.position[g] = size
                out.first[size] = grams.first[g]
                out.order[size] = grams.order[g]
                size += 1
        e = 0
        for c in range(first, last):
            while e < counts.ends[c - first]:
                position = counts.position[counts.gram[e]]
                if position >= 0:
                    out.grams[used] = position
                    out.counts[used] = counts.times[e]
                    used += 1
                e += 1
            out.indptr[c + 1] = used
    return size


@helper(inline=True)
def count_grams(offsets, first, last, orders, n, grams, counts):
    """Count the n-grams of each candidate, in order of appearance."""
    counts.having[:n] = 0
    e, used = 0, 0
    for c in range(first, last):
        begin = used
        for _ in range(occurrences(offsets[c + 1] - offsets[c], orders)):
            g = grams.numbers[e]
            e += 1
            if grams.last[g] == c:
                counts.times[counts.position[g]] += 1
            else:
                grams.last[g] = c
                counts.position[g] = used
                counts.gram[used] = g
                counts.times[used] = 1
                used += 1
        for q in range(begin, used):
            g, times = counts.gram[q], counts.times[q]
            counts.low[g] = times if counts.having[g] == 0 else min(times, counts.low[g])
            counts.high[g] = times if counts.having[g] == 0 else max(times, counts.high[g])
            counts.having[g] += 1
        counts.ends[c - first] = used


@kernel
def name_sizes(text, starts, ends, first, order, prefix, spelled, offsets):
    """Computes the offsets of the names of n-grams, one after another."""
    for g in range(len(first)):
        size = prefix + order[g] - 1
        for k in range(first[g], first[g] + order[g]):
            for q in range(starts[k], ends[k]):
                size += spelled[text[q], 0]
        offsets[g + 1] = offsets[g] + size


@kernel
def write_names(text, starts, ends, first, order, prefix, spelled, offsets, names):
    """The names: a prefix, then words that are joined by commas and spelled byte by byte."""
    for g in range(len(first)):
        p = offsets[g]
        for q in range(len(prefix)):
            names[p] = prefix[q]
            p += 1
        for k in range(first[g], first[g] + order[g]):
            if k > first[g]:
                names[p] = _COMMA
                p += 1
            for q in range(starts[k], ends[k]):
                for b in range(spelled[text[q], 0]):
                    names[p] = spelled[text[q], b + 1]
                    p += 1
