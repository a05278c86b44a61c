"""The kernels that read ``label<TAB>text`` lines into n-gram counts.

A token is a run of letters, digits and non-ASCII characters, with single ``'`` or ``_`` inside, or
one of ``! ? $`` alone. ASCII letters are folded to lower case here. General punctuation (U+2000 to
U+206F) and the marks of Latin-1 (U+0080 to U+00BF) separate tokens.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hopefear.features.ngram_tables import entry_at, mix, text_hash, token_at

DONE, NO_TAB, NO_LABEL, MORE_ROOM = range(4)

EXPECTED = {
    NO_TAB: "label<TAB>text",
    NO_LABEL: "a label before the tab",
}

MAX_TOKEN = 1 << 10  # bytes; the rest of a longer run is cut off
_TAB, _NEWLINE, _CR = 9, 10, 13


SEPARATES, WORD, ALONE, JOINS, MAYBE = range(5)


def _kinds() -> np.ndarray:
    kinds = np.zeros(256, np.uint8)
    for c in range(128):
        kinds[c] = WORD if chr(c).isalnum() else SEPARATES
    kinds[128:] = WORD
    kinds[[ord(c) for c in "!?$"]] = ALONE
    kinds[[ord(c) for c in "'_"]] = JOINS
    kinds[[0xC2, 0xE2]] = MAYBE
    kinds.flags.writeable = False
    return kinds


def _lower() -> np.ndarray:
    lower = np.array([ord(chr(c).lower()) if c < 128 else c for c in range(256)], np.uint8)
    lower.flags.writeable = False
    return lower


_KIND, _LOWER = _kinds(), _lower()


@njit(cache=True, nogil=True)
def character(text, i):
    """``(kind, bytes)`` of what stands at i."""
    kind = _KIND[text[i]]
    if kind != MAYBE:
        return kind, 1
    if text[i] == 0xC2:
        return SEPARATES, 2
    if text[i + 1] == 0x80 or text[i + 1] == 0x81:
        return SEPARATES, 3
    return WORD, 1


@njit(cache=True, nogil=True)
def next_token(text, i, end, word):
    """Copy the next token, folded, into word; ``(its size, position behind it)``; 0 at the end."""
    size = 0
    while i < end:
        # Most bytes are plain word bytes; the newline behind every line ends this loop.
        while _KIND[text[i]] == WORD:
            if size < len(word):
                word[size] = _LOWER[text[i]]
                size += 1
            i += 1
        if i >= end:
            break
        kind, width = character(text, i)
        if kind == JOINS:
            follows = i + 1 < end and character(text, i + 1)[0] == WORD
            kind = WORD if size and follows else SEPARATES
        if kind == WORD:
            if size < len(word):
                word[size] = text[i]
                size += 1
            i += 1
        elif size:
            return size, i
        else:
            i += width
            if kind == ALONE:
                word[0] = text[i - 1]
                return 1, i
    return size, end


@njit(cache=True, nogil=True)
def split_line(text, i):
    """``(code, tab, end of text, next line)`` of the line at i."""
    tab = -1
    end = i
    while text[end] != _NEWLINE:
        if tab < 0 and text[end] == _TAB:
            tab = end
        end += 1
    following = end + 1
    if end > i and text[end - 1] == _CR:
        end -= 1
    if tab < 0:
        return (DONE if end == i else NO_TAB), -1, end, following
    return (DONE if tab > i else NO_LABEL), tab, end, following


@njit(cache=True, nogil=True)
def count_ngrams(
    text,
    i,
    stop,
    order,
    bare,
    tables,
    grow,
    labels,
    codes,
    starts,
    rows_before,
    indptr,
    columns,
    values,
    rows,
    unknown,
):
    """Rows of n-gram counts from ``text[i:stop]``; ``(code, position, rows)``.

    ``labels`` are tables of their own whose tokens are the label strings; ``codes`` get their
    numbers, -1 for none. MORE_ROOM means that the line at the position may not fit.
    """
    word = np.empty(MAX_TOKEN, np.uint8)
    before = np.empty(order + 1, np.int64)
    chain = np.empty(order + 1, np.int64)
    while i < stop:
        code, tab, end, following = split_line(text, i)
        if bare and code != DONE:
            code, tab = DONE, (i if code == NO_LABEL else i - 1)
        if code != DONE:
            return code, i, rows
        if end == i:
            i = following
            continue
        if not has_room(tables, labels, columns, indptr[rows], following - i, order, grow):
            return MORE_ROOM, i, rows
        codes[rows] = (
            -1
            if tab <= i
            else token_at(labels, text[i:tab], tab - i, text_hash(text[i:tab], tab - i), True)
        )
        starts[rows] = i
        place = indptr[rows]
        row = rows_before + rows
        before[:] = -1
        at = tab + 1
        while True:
            size, at = next_token(text, at, end, word)
            if size == 0:
                break
            token = token_at(tables, word, size, text_hash(word, size), grow)
            for k in range(1, order + 1):
                entry = np.int64(-1)
                if token >= 0 and k == 1:
                    entry = np.int64(tables.unigram[token])
                    if entry < 0:
                        entry = entry_at(tables, -1, token, grow)
                elif token >= 0 and before[k - 1] >= 0:
                    entry = entry_at(tables, before[k - 1], token, grow)
                chain[k] = entry
                if entry < 0:
                    unknown[0] += 1 if k == 1 else 0
                elif tables.row[entry] == row:
                    values[tables.place[entry]] += 1
                else:
                    if grow and k == 1:
                        tables.unigram[token] = entry
                    tables.row[entry] = row
                    tables.place[entry] = place
                    tables.documents[entry] += 1
                    columns[place] = entry
                    values[place] = 1
                    place += 1
            before[:] = chain
        rows += 1
        indptr[rows] = place
        i = following
    return DONE, i, rows


@njit(cache=True, nogil=True)
def has_room(tables, labels, columns, place, length, order, grow):
    """Whether the arrays can take whatever a line of this length may hold."""
    if place + order * length > len(columns):
        return False
    if labels.used[0] + 1 > len(labels.token_hash) or labels.used[1] + length > len(labels.text):
        return False
    if not grow:
        return True
    return (
        tables.used[0] + length <= len(tables.token_hash)
        and tables.used[1] + length <= len(tables.text)
        and tables.used[2] + order * length <= len(tables.parent)
    )


@njit(cache=True, nogil=True)
def hash_ngrams(
    text,
    i,
    stop,
    order,
    bits,
    bare,
    owners,
    labels,
    codes,
    starts,
    indptr,
    columns,
    values,
    rows,
    seen,
):
    """Like count_ngrams, for columns that are hashes.

    Columns may repeat in a row. ``owners`` holds the hash that claimed each column first (empty:
    not kept); ``seen`` counts occurrences and those on a column of another n-gram.
    """
    word = np.empty(MAX_TOKEN, np.uint8)
    hashes = np.empty(order + 1, np.uint64)
    shift = np.uint64(64 - bits)
    while i < stop:
        code, tab, end, following = split_line(text, i)
        if bare and code != DONE:
            code, tab = DONE, (i if code == NO_LABEL else i - 1)
        if code != DONE:
            return code, i, rows
        if end == i:
            i = following
            continue
        place = indptr[rows]
        if place + order * (following - i) > len(columns) or not (
            labels.used[0] + 1 <= len(labels.token_hash)
            and labels.used[1] + following - i <= len(labels.text)
        ):
            return MORE_ROOM, i, rows
        codes[rows] = (
            -1
            if tab <= i
            else token_at(labels, text[i:tab], tab - i, text_hash(text[i:tab], tab - i), True)
        )
        starts[rows] = i
        at = tab + 1
        count = 0
        while True:
            size, at = next_token(text, at, end, word)
            if size == 0:
                break
            token = text_hash(word, size)
            for k in range(min(order, count + 1), 0, -1):
                h = mix(np.uint64(0), token) if k == 1 else mix(hashes[k - 1], token)
                hashes[k] = h
                column = np.int64(h >> shift)
                columns[place] = column
                values[place] = 1
                place += 1
                if len(owners):
                    seen[0] += 1
                    if owners[column] == 0:
                        owners[column] = h | np.uint64(1)
                    elif owners[column] != h | np.uint64(1):
                        seen[1] += 1
            count += 1
        rows += 1
        indptr[rows] = place
        i = following
    return DONE, i, rows


@njit(cache=True, nogil=True)
def merge_repeats(indptr, columns, values):
    """Add up repeated columns of sorted rows, in the given arrays; the new indptr."""
    merged = np.zeros(len(indptr), np.int64)
    place = 0
    for i in range(len(indptr) - 1):
        begin = place
        for k in range(indptr[i], indptr[i + 1]):
            if place > begin and columns[place - 1] == columns[k]:
                values[place - 1] += values[k]
            else:
                columns[place] = columns[k]
                values[place] = values[k]
                place += 1
        merged[i + 1] = place
    return merged
