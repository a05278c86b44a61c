"""The kernel that reads lines of ``ID ||| words ||| Name= v v … ||| score [||| …]``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.component import inlined, kernel
from hopefear.core.hashing import mix
from hopefear.data.moses.words import NEWLINE, at_bars, split_words
from hopefear.data.numbers import (
    LARGEST,
    behind_line,
    is_blank,
    names_non_finite,
    parse_number,
    parse_plain,
)

DONE, BAD_ID, FEW_FIELDS, NO_NAME, APPEARED, VANISHED, REPEATED, WIDTH, ONE_VALUE = range(9)
BAD_VALUE, NOT_FINITE, BAD_SCORE, NO_BARS = range(9, 13)
_EQUALS, _UNDERSCORE = 61, 95
_LONGEST_ID = 18  # digits


class Layout(NamedTuple):
    """What a kernel knows of names: those of the dense blocks, and others that may come and go.

    Dense name k is ``text[offsets[k]:offsets[k + 1]]``, its ``=`` included, and has the columns
    ``columns[k] .. columns[k + 1] - 1``; declared sparse names lie in ``loose`` in the same way.
    """

    text: np.ndarray  # uint8
    offsets: np.ndarray  # int64[names + 1]
    columns: np.ndarray  # int64[names + 1]
    loose: np.ndarray  # uint8
    loose_offsets: np.ndarray  # int64


class Scratch(NamedTuple):
    """Room for the candidates of a block, used again for the next."""

    ids: np.ndarray  # int64
    lines: np.ndarray  # int64, where each line begins
    tails: np.ndarray  # int64, behind the bars that follow the score, or the newline
    scores: np.ndarray  # float32
    dense: np.ndarray  # float32, row after row
    word_ptr: np.ndarray  # int64[n + 1]
    begins: np.ndarray  # int64[words]
    ends: np.ndarray  # int64[words]
    words: np.ndarray  # uint64[words]
    named_ptr: np.ndarray  # int64[n + 1]
    name_begins: np.ndarray  # int64[named]
    name_ends: np.ndarray  # int64[named]
    values: np.ndarray  # float32[named]
    seen: np.ndarray  # int64[names], the last row that had each


@kernel
def parse_lines(text, i, end, layout, out, rows):
    """Parse ``text[i:end]``, whole lines, behind so many rows; ``(code, position, rows, name)``.

    Where the code is not DONE, the position is that of what is wrong in a line and the name the
    number of the dense name it is about; nothing of that line is among the rows.
    """
    out.seen[:] = -1
    while i < end:
        i = skip(text, i)
        if text[i] == NEWLINE:
            i += 1
            continue
        start = i
        number = np.int64(0)
        while 48 <= text[i] <= 57 and i - start < _LONGEST_ID:
            number = number * 10 + np.int64(text[i] - 48)
            i += 1
        if i == start or not (is_blank(text[i]) or text[i] == NEWLINE):
            return BAD_ID, start, rows, -1
        i = skip(text, i)
        if not at_bars(text, i):
            return (FEW_FIELDS if text[i] == NEWLINE else BAD_ID), start, rows, -1
        i, words, more = split_words(
            text, i + 3, out.begins, out.ends, out.words, out.word_ptr[rows], True
        )
        if not more:
            return FEW_FIELDS, start, rows, -1
        code, i, named, k = parse_features(text, i + 3, layout, out, rows)
        if code != DONE:
            return code, i, rows, k
        i = skip(text, i + 3)
        value, after, ok = parse_number(text, i)
        if not ok or not (is_blank(text[after]) or text[after] == NEWLINE):
            if text[i] == NEWLINE:
                return FEW_FIELDS, start, rows, -1
            return (NOT_FINITE if names_non_finite(text, i) else BAD_SCORE), i, rows, -1
        if not abs(value) <= LARGEST:
            return NOT_FINITE, i, rows, -1
        i = skip(text, after)
        if text[i] != NEWLINE and not at_bars(text, i):
            return NO_BARS, i, rows, -1
        out.ids[rows] = number
        out.lines[rows] = start
        out.tails[rows] = i if text[i] == NEWLINE else i + 3
        out.scores[rows] = value
        rows += 1
        out.word_ptr[rows] = words
        out.named_ptr[rows] = named
        i = behind_line(text, i)
    return DONE, i, rows, -1


@kernel
def parse_features(text, i, layout, out, row):
    """The features of one line, up to ``|||``; ``(code, position, named so far, name)``."""
    n = len(layout.offsets) - 1
    base = row * layout.columns[n]
    named = out.named_ptr[row]
    missing, usual = n, 0
    while True:
        i = skip(text, i)
        if text[i] == NEWLINE:
            return FEW_FIELDS, i, named, -1
        if at_bars(text, i):
            break
        found = -1
        if usual < n and is_name(text, i, layout.text, layout.offsets, usual):
            found = usual  # names come in the same order on nearly every line
        else:
            found = find_name(text, i, layout.text, layout.offsets)
        if found >= 0:
            if out.seen[found] == row:
                return REPEATED, i, named, found
            out.seen[found] = row
            missing -= 1
            usual = found + 1
            name = i
            i += layout.offsets[found + 1] - layout.offsets[found]
            for c in range(base + layout.columns[found], base + layout.columns[found + 1]):
                code, i, value = parse_value(text, i)
                if code != DONE:
                    return code, (name if code == WIDTH else i), named, found
                out.dense[c] = value
            if has_value(text, i):
                return WIDTH, name, named, found
            continue
        stop = token_end(text, i)
        if text[stop - 1] != _EQUALS or stop - 1 == i:
            return NO_NAME, i, named, -1
        if not (
            has_underscore(text, i, stop)
            or find_name(text, i, layout.loose, layout.loose_offsets) >= 0
        ):
            return APPEARED, i, named, -1
        code, after, value = parse_value(text, stop)
        if code == WIDTH or (code == DONE and has_value(text, after)):
            return ONE_VALUE, i, named, -1
        if code != DONE:
            return code, after, named, -1
        out.name_begins[named], out.name_ends[named] = i, stop - 1
        out.values[named] = value
        named += 1
        i = after
    if missing > 0:
        for k in range(n):
            if out.seen[k] != row:
                return VANISHED, i, named, k
    return DONE, i, named, -1


@inlined
def parse_value(text, i):
    """``(code, position, value)`` of the number behind blanks; WIDTH where none comes."""
    i = skip(text, i)
    value, after = parse_plain(text, i)
    if after < 0:
        value, after, ok = parse_number(text, i)
        if not ok or not (is_blank(text[after]) or text[after] == NEWLINE):
            if text[i] == NEWLINE or at_bars(text, i) or text[token_end(text, i) - 1] == _EQUALS:
                return WIDTH, i, value
            return (NOT_FINITE if names_non_finite(text, i) else BAD_VALUE), i, value
    if not abs(value) <= LARGEST:
        return NOT_FINITE, i, value
    return DONE, after, value


@inlined
def has_value(text, i):
    """Whether another number comes."""
    i = skip(text, i)
    c = text[i]
    if not (48 <= c <= 57 or c == 45 or c == 43 or c == 46):
        return False
    return text[token_end(text, i) - 1] != _EQUALS


@inlined
def skip(text, i):
    """Position behind blanks."""
    while is_blank(text[i]):
        i += 1
    return i


@inlined
def token_end(text, i):
    """Position of the blank or newline behind a token."""
    while not (is_blank(text[i]) or text[i] == NEWLINE):
        i += 1
    return i


@inlined
def is_name(text, i, names, offsets, k):
    """Whether name k stands at ``text[i]``."""
    for p in range(offsets[k], offsets[k + 1]):
        if names[p] != text[i]:  # names hold no newline, so this ends before the padding does
            return False
        i += 1
    return is_blank(text[i]) or text[i] == NEWLINE


@kernel
def find_name(text, i, names, offsets):
    """Number of the name at ``text[i]``, -1 where it is none of them."""
    for k in range(len(offsets) - 1):
        if is_name(text, i, names, offsets, k):
            return k
    return -1


@inlined
def has_underscore(text, i, stop):
    """Whether the token has an underscore, as sparse names do."""
    while i < stop and text[i] != _UNDERSCORE:
        i += 1
    return i < stop


@kernel
def candidate_keys(word_ptr, words, dense, named_ptr, names, values, keys):
    """A 64-bit hash of the words and features of each candidate; values come as their bits."""
    rows = len(keys)
    width = len(dense) // max(rows, 1)
    for c in range(rows):
        h = np.uint64(word_ptr[c + 1] - word_ptr[c])
        for k in range(word_ptr[c], word_ptr[c + 1]):
            h = mix(h, words[k])
        for k in range(c * width, (c + 1) * width):
            h = mix(h, np.uint64(dense[k]))
        total = np.uint64(0)
        for k in range(named_ptr[c], named_ptr[c + 1]):
            # A sum, because sparse features come in any order.
            total += mix(np.uint64(names[k] + 1), np.uint64(values[k]))
        keys[c] = mix(h, total)


@kernel
def first_of_each(keys, starts, longest, keep):
    """Mark in each list the first candidate of every key; how many are kept."""
    size = 16
    while size < 2 * longest:
        size *= 2
    slots = np.zeros(size, np.int64)
    kept = 0
    for i in range(len(starts) - 1):
        slots[:] = 0
        for c in range(starts[i], starts[i + 1]):
            slot = np.int64(keys[c] & np.uint64(size - 1))
            while slots[slot] != 0 and keys[slots[slot] - 1] != keys[c]:
                slot = (slot + 1) & (size - 1)
            keep[c] = slots[slot] == 0
            if keep[c]:
                slots[slot] = c + 1
                kept += 1
    return kept


@kernel
def repeated_name(ptr, names, last, before):
    """The first entry whose candidate has that name already, -1 where there is none.

    ``last`` is the last candidate of each name, in a count that goes on from ``before``.
    """
    for c in range(len(ptr) - 1):
        for k in range(ptr[c], ptr[c + 1]):
            if last[names[k]] == before + c:
                return k
            last[names[k]] = before + c
    return -1
