"""The kernel that reads lines of ``label id:value id:value …``."""

from __future__ import annotations

import numpy as np

from hopefear.core.component import kernel
from hopefear.core.hashing import load8
from hopefear.data.numbers import (
    WHOLE_POWERS,
    count_digits,
    parse_number,
    parse_plain,
    whole_number,
)
from hopefear.data.row_kernels import LARGEST

DONE, BAD_LABEL, BAD_PAIR, BAD_ID, BAD_VALUE, NOT_FINITE, ORDER, REPEATED, BAD_QID = range(9)

EXPECTED = {
    BAD_LABEL: "a number as the label",
    BAD_PAIR: "id:value",
    BAD_ID: "a feature id from 0 to 2**63 - 1 before ':'",
    BAD_VALUE: "a number after ':'",
    NOT_FINITE: "a finite number of at most 1e15 in size",
    ORDER: "feature ids in rising order",
    REPEATED: "each feature id once in a line",
    BAD_QID: "a whole number after 'qid:'",
}

_COLON, _NEWLINE, _HASH, _SPACE = 58, 10, 35, 32
_LARGEST_TENTH = (2**63 - 1) // 10


@kernel
def is_blank(c):
    """Space, tab, carriage return, vertical tab or form feed."""
    return c == _SPACE or c == 9 or c == 13 or c == 11 or c == 12


@kernel
def parse_rows(text, i, end, bare, ids, values, indptr, labels, starts, rows):
    """Parse ``text[i:end]`` from a line start; ``(code, position, rows)``.

    Rows are added behind the ``rows`` that are there. A bad line stops the kernel: the row is
    not added and the position is that of the bad text. ``bare`` lets a line begin with
    ``id:value``; its label is nan.
    """
    nnz = indptr[rows]
    while i < end:
        while is_blank(text[i]):
            i += 1
        start = i
        if text[i] == _NEWLINE or text[i] == _HASH:
            i = behind_line(text, i)
            continue
        label, j, ok = parse_number(text, i)
        if bare and ok and text[j] == _COLON:
            label, j = np.nan, i
        elif not ok or not ends_token(text[j]):
            return BAD_LABEL, start, rows
        elif not np.isfinite(label):
            return NOT_FINITE, start, rows
        code, i, nnz = parse_pairs(text, j, ids, values, nnz)
        if code != DONE:
            return code, i, rows
        labels[rows] = label
        starts[rows] = start
        rows += 1
        indptr[rows] = nnz
    return DONE, i, rows


@kernel
def parse_pairs(text, i, ids, values, k):
    """The pairs of one line, written from place k on; ``(code, position, next place)``."""
    last = np.int64(-1)
    while True:
        while is_blank(text[i]):
            i += 1
        i, k, last, ended = parse_plain_pairs(text, i, ids, values, k, last)
        if ended:
            return DONE, i, k
        if is_blank(text[i]):
            continue
        c = text[i]
        if c == _NEWLINE:
            return DONE, i + 1, k
        if c == _HASH:
            return DONE, behind_line(text, i), k
        token = i
        number = np.int64(0)
        while 48 <= text[i] <= 57:
            digit = np.int64(text[i] - 48)
            if number >= _LARGEST_TENTH and (number > _LARGEST_TENTH or digit > 7):
                return BAD_ID, token, k
            number = number * 10 + digit
            i += 1
        if text[i] != _COLON or i == token:
            if is_qid(text, token):
                i = token + 4
                while 48 <= text[i] <= 57:
                    i += 1
                if i == token + 4 or not ends_token(text[i]):
                    return BAD_QID, token, k
                continue
            return (BAD_ID if has_colon(text, token) else BAD_PAIR), token, k
        if number <= last:
            return (REPEATED if number == last else ORDER), token, k
        last = number
        i += 1
        value, after, ok = parse_number(text, i)
        if not ok or not ends_token(text[after]):
            return (NOT_FINITE if names_non_finite(text, i) else BAD_VALUE), token, k
        values[k] = value
        if not abs(values[k]) <= LARGEST:
            return NOT_FINITE, token, k
        i = after
        ids[k] = number
        k += 1


@kernel
def parse_plain_pairs(text, i, ids, values, k, last):
    """Pairs of ids below 10**15 and plain values with one space between: nearly all there are.

    ``(position, next place, last id, whether the line ended)``. Stops before whatever needs a
    closer look; nothing is refused here.
    """
    while True:
        word = load8(text, i)
        count = count_digits(word)
        if count == 0:
            return i, k, last, False
        number = np.int64(whole_number(word, count))
        colon = i + np.int64(count)
        if count == 8:
            word = load8(text, colon)
            count = count_digits(word)
            if count == 8:
                return i, k, last, False
            if count > 0:
                more = np.int64(whole_number(word, count))
                number = number * np.int64(WHOLE_POWERS[count]) + more
            colon += np.int64(count)
        behind = (word >> (count << np.uint64(3))) & np.uint64(255)
        if behind != np.uint64(_COLON) or number <= last:
            return i, k, last, False
        value, after = parse_plain(text, colon + 1)
        if after < 0:
            return i, k, last, False
        ids[np.uint64(k)] = last = number
        values[np.uint64(k)] = value
        k += 1
        i = after + 1
        if text[np.uint64(after)] == _NEWLINE:
            return i, k, last, True


@kernel
def ends_token(c):
    """Whether this byte may follow a token."""
    return is_blank(c) or c in (_NEWLINE, _HASH)


@kernel
def behind_line(text, i):
    """Position behind the next newline."""
    while text[i] != _NEWLINE:
        i += 1
    return i + 1


@kernel
def is_qid(text, i):
    """Whether ``qid:`` stands at i."""
    return text[i] == 113 and text[i + 1] == 105 and text[i + 2] == 100 and text[i + 3] == _COLON


@kernel
def has_colon(text, i):
    """Whether the token at i has a colon in it."""
    while not ends_token(text[i]):
        if text[i] == _COLON:
            return True
        i += 1
    return False


@kernel
def names_non_finite(text, i):
    """Whether the value at i is a spelling of nan or infinity."""
    if text[i] == 43 or text[i] == 45:
        i += 1
    c = text[i] | 32
    return c == 110 or c == 105
