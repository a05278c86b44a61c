"""N-grams of translations as sparse features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.core.hashing import StringTable
from hopefear.data.moses.lists import NamedEntries, TuningLists
from hopefear.data.moses.pile import Pile
from hopefear.errors import HopefearError
from hopefear.translation.candidate_words import Words, candidate_words
from hopefear.translation.derived_kernels import (
    Found,
    Tally,
    interleave,
    name_sizes,
    telling,
    write_names,
)
from hopefear.translation.weights_names import BARS, phrase_name

PREFIX = "ng_"


def with_ngrams(lists: TuningLists, orders: int = 3) -> TuningLists:
    """The lists with sparse features more: how often a candidate has an n-gram, ``ng_the,house``.

    N-grams that all candidates of a list have equally often are left out there: they add the same
    to every score and change no choice. So a list of one candidate has none. Commas and the like
    within words are spelled as in names of phrase pairs: ``ng_%2C``.

    Parameters
    ----------
    lists : TuningLists
        With texts.
    orders : int
        Words of the longest n-grams. More gives more features, most of them rare.

    Examples
    --------
    >>> from hopefear.translation.memory import lists_in_memory
    >>> lists = lists_in_memory([[("a b", {"LM0": -1.0}), ("a c", {"LM0": -2.0})]])
    >>> names = with_ngrams(lists, orders=2).sparse.names
    >>> [names.get(j) for j in range(names.size)]
    ['ng_a,b', 'ng_b', 'ng_a,c', 'ng_c']
    """
    if orders < 1:
        raise HopefearError(f"orders={orders}: n-grams have at least one word")
    if has_ngrams(lists):
        raise HopefearError(f"{lists.source} has features {PREFIX}… already; do not add more")
    before = lists.sparse
    table = StringTable() if before is None else StringTable.of(before.names)
    sizes, ids, counts = Pile(np.int32), Pile(np.int32), Pile(np.float32)
    for a, b, words in candidate_words(lists, "ngrams"):
        found = _found(words, b - a, orders)
        sizes.append(np.diff(found.indptr))
        ids.append(_interned(table, words, found)[found.grams])
        counts.append(found.counts)
    indptr = np.concatenate([[0], np.cumsum(sizes.take(), dtype=np.int64)])
    more = NamedEntries(table.strings(), frozen(indptr), frozen(ids.take()), frozen(counts.take()))
    return replace(lists, sparse=more if before is None else _interleaved(before, more))


def has_ngrams(lists: TuningLists) -> bool:
    """Whether the lists have such features already."""
    if lists.sparse is None:
        return False
    text, offsets = lists.sparse.names
    begins = offsets[:-1][np.diff(offsets) >= len(PREFIX)]
    same = np.ones(len(begins), bool)
    for k, sign in enumerate(PREFIX.encode()):
        same &= text[begins + k] == sign
    return bool(same.any())


def _found(words: Words, candidates: int, orders: int) -> Found:
    """N-grams that tell the candidates of a list apart."""
    most, longest = words.most(orders), int(np.diff(words.starts).max(initial=1))
    place, having, low, high, which, times = np.empty((6, most), np.int32)
    tally = Tally(place, having, low, high, which, times, np.empty(longest, np.int64))
    room = orders * int(words.ptr[-1])
    found = Found(
        np.empty(room, np.int64),
        np.empty(room, np.int32),
        np.zeros(candidates + 1, np.int64),
        np.empty(room, np.int32),
        np.empty(room, np.float32),
    )
    with np.errstate(over="ignore"):  # uncompiled kernels warn where compiled ones do not
        kept = telling(
            *(words.words, words.ptr, words.starts, orders, words.grams(orders), tally, found),
        )
    used = int(found.indptr[-1])
    return Found(
        *(found.first[:kept], found.order[:kept]),
        *(found.indptr, found.grams[:used], found.counts[:used]),
    )


def _spelled() -> np.ndarray:
    """For every byte how many stand for it in a name, and which: as in names of phrase pairs."""
    table = np.zeros((256, 4), np.uint8)
    table[:, 0], table[:, 1] = 1, np.arange(256)
    for byte in range(128):
        code = phrase_name(f"x{BARS}{chr(byte)}").partition("~")[2].encode()
        table[byte, 0] = len(code)
        table[byte, 1 : len(code) + 1] = list(code)
    return frozen(table)


_SPELLED = _spelled()


def _interned(table: StringTable, words: Words, found: Found) -> np.ndarray:
    """Numbers of the names of n-grams, new ones where they are new."""
    grams = (words.text, words.begins, words.ends, found.first, found.order)
    offsets = np.zeros(len(found.first) + 1, np.int64)
    name_sizes(*grams, len(PREFIX), _SPELLED, offsets)
    names = np.empty(int(offsets[-1]), np.uint8)
    prefix = np.frombuffer(PREFIX.encode(), np.uint8)
    write_names(*grams, prefix, _SPELLED, offsets, names)
    return table.intern_spans(names, offsets[:-1], offsets[1:])


def _interleaved(before: NamedEntries, more: NamedEntries) -> NamedEntries:
    """Entries of both, whose names are in one table."""
    values = np.ones(len(before.ids), np.float32) if before.values is None else before.values
    indptr = before.indptr + more.indptr
    ids, numbers = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    interleave(
        *(before.indptr, before.ids, values, more.indptr, more.ids, more.values),
        *(ids, numbers),
    )
    return NamedEntries(more.names, frozen(indptr), frozen(ids), frozen(numbers))
