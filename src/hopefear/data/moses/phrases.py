"""Phrase pairs of derivations, from the field ``a-b=c-d a=c …`` behind the score."""

from __future__ import annotations

import numpy as np

from hopefear.core.component import kernel
from hopefear.core.hashing import StringTable
from hopefear.data.moses.parsing import RawBlock, skip, token_at
from hopefear.data.moses.word_hashes import NEWLINE, HashedText, at_bars
from hopefear.data.parse_numbers import is_blank
from hopefear.errors import InputError, Problem

DONE, BAD_PAIR, SOURCE, TARGET, NONE = range(5)
_DASH, _EQUALS, _SPACE, _BAR = 45, 61, 32, 124
_EXPECTED = {
    BAD_PAIR: "a phrase pair such as 0-1=0-2 or 3=4, of positions counted from 0",
    SOURCE: "positions within the source sentence",
    TARGET: "positions within the hypothesis",
    NONE: "a field of phrase pairs (0-1=0-2 3=4 …) behind the score",
}


class PhraseReader:
    """Numbers for the phrase pairs of candidates; names in order of first appearance.

    A pair that occurs twice in a derivation is entered once, because features are binary.

    Parameters
    ----------
    source : Sentences
        The sentences that were translated.
    """

    def __init__(self, source: HashedText) -> None:
        self.source = source
        self.table = StringTable()

    def read(self, raw: RawBlock) -> tuple[np.ndarray, np.ndarray]:
        """``(pairs of each candidate, their numbers)`` for a block."""
        spans, pair_offsets = self.spans(raw)
        scratch, source = raw.scratch, self.source
        offsets = np.zeros(len(spans) + 1, np.int64)
        here = (raw.buffer, scratch.starts, scratch.ends)
        there = (source.text, source.starts, source.ends)
        _sizes(spans, *here[1:], *there[1:], offsets)
        names = np.empty(int(offsets[-1]), np.uint8)
        _write(spans, *here, *there, offsets, names)
        numbers = self.table.intern_spans(names, offsets[:-1], offsets[1:])
        used = _distinct_numbers(pair_offsets, numbers)
        return np.diff(pair_offsets), numbers[:used]

    def spans(self, raw: RawBlock) -> tuple[np.ndarray, np.ndarray]:
        """Returns words of source and target of each pair, and the offsets of candidates."""
        rows, scratch, source = raw.rows, raw.scratch, self.source
        ids = scratch.ids[:rows]
        self._check_source(raw, ids)
        ends = np.append(scratch.lines[1:rows], len(raw.buffer))
        spans = np.empty((int(((ends - scratch.tails[:rows]) // 4 + 2).sum()), 4), np.int64)
        offsets = np.zeros(rows + 1, np.int64)
        code, i = _spans(
            *(raw.buffer, scratch.tails, ids, scratch.word_ptr, source.offsets, spans, offsets),
        )
        if code != DONE:
            line = raw.line(int(np.searchsorted(scratch.lines[:rows], i, "right")) - 1)
            actual = (
                Problem("there is none")
                if code == NONE
                else token_at(raw.buffer, i, len(raw.buffer))
            )
            raise InputError(raw.path, line, _EXPECTED[code], actual)
        return spans[: offsets[-1]], offsets

    def _check_source(self, raw: RawBlock, ids: np.ndarray) -> None:
        beyond = np.flatnonzero(ids >= self.source.size)
        if len(beyond):
            raise InputError(
                raw.path,
                raw.line(int(beyond[0])),
                f"a list of {self.source.name}, which has {self.source.size} lines (ids from 0)",
                Problem(f"this one is list {ids[beyond[0]]}"),
            )


@kernel
def _spans(text, tails, ids, word_ptr, source_ptr, spans, offsets):
    """First and last words of source and target of each pair, as numbers of words."""
    used = 0
    for c in range(len(ids)):
        first_source, first_target = source_ptr[ids[c]], word_ptr[c]
        sources = source_ptr[ids[c] + 1] - first_source
        targets = word_ptr[c + 1] - first_target
        i = skip(text, tails[c])
        if (text[i] == NEWLINE or at_bars(text, i)) and targets > 0:
            return NONE, tails[c] - 1
        while text[i] != NEWLINE and not at_bars(text, i):
            token = i
            s, last_s, i = _range(text, i)
            if i < 0 or text[i] != _EQUALS:
                return BAD_PAIR, token
            t, last_t, i = _range(text, i + 1)
            if i < 0 or not (is_blank(text[i]) or text[i] == NEWLINE):
                return BAD_PAIR, token
            if last_s >= sources:
                return SOURCE, token
            if last_t >= targets:
                return TARGET, token
            spans[used, 0], spans[used, 1] = first_source + s, first_source + last_s
            spans[used, 2], spans[used, 3] = first_target + t, first_target + last_t
            used += 1
            i = skip(text, i)
        offsets[c + 1] = used
    return DONE, 0


@kernel
def _distinct_numbers(offsets, numbers):
    """Move the different numbers of each candidate to the front, in order; how many in all.

    Derivations have a dozen pairs, so that putting each in its place is the fastest. Having an
    order, derivations of the same pairs add up to exactly the same score.
    """
    used = begin = 0
    for c in range(len(offsets) - 1):
        first, end = used, offsets[c + 1]
        for e in range(begin, end):
            number, k = numbers[e], used
            while k > first and numbers[k - 1] > number:
                k -= 1
            if k > first and numbers[k - 1] == number:
                continue
            for i in range(used, k, -1):
                numbers[i] = numbers[i - 1]
            numbers[k] = number
            used += 1
        begin, offsets[c + 1] = end, used
    return used


@kernel
def _range(text, i):
    """``(first, last, position)`` of ``a-b`` or ``a``; the position is -1 where it is neither."""
    first, after = _number(text, i)
    if after == i:
        return 0, 0, -1
    if text[after] != _DASH:
        return first, first, after
    i = after + 1
    last, after = _number(text, i)
    if after == i or last < first:
        return 0, 0, -1
    return first, last, after


@kernel
def _number(text, i):
    number = 0
    while 48 <= text[i] <= 57:
        number = min(number * 10 + np.int64(text[i] - 48), 1 << 40)
        i += 1
    return number, i


@kernel
def _sizes(spans, starts, ends, source_starts, source_ends, offsets):
    for e in range(len(spans)):
        size = 3  # bars; each word brings a blank
        for k in range(spans[e, 0], spans[e, 1] + 1):
            size += source_ends[k] - source_starts[k] + 1
        for k in range(spans[e, 2], spans[e, 3] + 1):
            size += ends[k] - starts[k] + 1
        offsets[e + 1] = offsets[e] + size


@kernel
def _write(spans, text, starts, ends, source_text, source_starts, source_ends, offsets, names):
    for e in range(len(spans)):
        p = offsets[e]
        for k in range(spans[e, 0], spans[e, 1] + 1):
            for q in range(source_starts[k], source_ends[k]):
                names[p] = source_text[q]
                p += 1
            names[p] = _SPACE
            p += 1
        names[p : p + 3] = _BAR
        p += 3
        for k in range(spans[e, 2], spans[e, 3] + 1):
            names[p] = _SPACE
            p += 1
            for q in range(starts[k], ends[k]):
                names[p] = text[q]
                p += 1
