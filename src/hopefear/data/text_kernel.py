"""The kernels that read ``label<TAB>text`` lines into n-gram counts.

A token is a run of letters, digits and non-ASCII characters, with single ``'`` or ``_`` inside, or
one of ``! ? $`` alone. ASCII letters are folded to lower case here, unless case matters. General
punctuation (U+2000 to U+206F) and the marks of Latin-1 (U+0080 to U+00BF) separate tokens. If
``marks``, every mark of ASCII is a token.

N-grams of characters are those of each token with a blank before and behind it, so that the edges
of words are seen; a blank alone is none.

A line is done in steps, each over all its tokens: find them, hash them, look them up, then the same
for every length of n-gram. Each step prefetches the memory of the next one.
"""

from __future__ import annotations

import numpy as np

from hopefear.core.component import helper, kernel, prefetch
from hopefear.core.hashing import (
    entry_at,
    entry_key,
    load8,
    mix,
    plain_run,
    slot_of,
    text_hash,
    token_at,
    unigram_at,
)

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


_KIND = _kinds()


@helper(inline=True)
def character(text, i):
    """Returns ``(kind, bytes)`` of the character at ``i``."""
    kind = _KIND[text[i]]
    if kind != MAYBE:
        return kind, 1
    if text[i] == 0xC2:
        return SEPARATES, 2
    if text[i + 1] == 0x80 or text[i + 1] == 0x81:
        return SEPARATES, 3
    return WORD, 1


@helper(inline=True)
def fold(text, i, end):
    """ASCII letters of ``text[i:end]`` to lower case, in place."""
    for k in range(i, end):
        c = text[k]
        text[k] = c | np.uint8(32) if np.uint8(c - np.uint8(65)) < 26 else c


@helper(inline=True)
def next_token(text, i, end, punctuation):
    """``(where the next token begins, position behind it)``; begin = end: none."""
    begin = i
    while i < end:
        run = np.int64(plain_run(load8(text, i)))
        i += run
        if run == 8:
            continue
        kind = _KIND[text[i]]
        width = 1
        if kind != SEPARATES:
            kind, width = character(text, i)
            if i >= end:
                break
            if kind == JOINS:
                follows = i + 1 < end and character(text, i + 1)[0] == WORD
                kind = WORD if i > begin and follows else SEPARATES
            if kind == WORD:
                i += 1
                continue
        if punctuation and kind == SEPARATES and 32 < text[i] < 127:
            kind = ALONE
        if i > begin:
            return begin, i
        i += width
        if kind == ALONE:
            return begin, i
        begin = i
    return begin, end


@helper(inline=True)
def find_tokens(text, i, end, lower, punctuation, starts, sizes):
    """Find the tokens of ``text[i:end]``, folded if ``lower``; how many there are."""
    if lower:
        fold(text, i, end)
    count = 0
    while True:
        begin, i = next_token(text, i, end, punctuation)
        if begin >= i:
            return count
        starts[np.uint64(count)] = begin
        sizes[np.uint64(count)] = min(i - begin, MAX_TOKEN)
        count += 1


@helper(inline=True)
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


@helper(inline=True)
def text_line(text, i, bare):
    """Splits a line as split_line does; with ``bare``, its label may be missing."""
    code, tab, end, following = split_line(text, i)
    if bare and code != DONE:
        code, tab = DONE, (i if code == NO_LABEL else i - 1)
    return code, tab, end, following


@kernel
def count_ngrams(
    text,
    i,
    stop,
    order,
    lower,
    punctuation,
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
    max_tokens = stop - i + 1
    token_starts, sizes = np.empty(max_tokens, np.int64), np.empty(max_tokens, np.int64)
    hashes, tokens = np.empty(max_tokens, np.uint64), np.empty(max_tokens, np.int64)
    entries = np.empty(max_tokens, np.int64)
    while i < stop:
        code, tab, end, following = text_line(text, i, bare)
        if code != DONE:
            return code, i, rows
        if end == i:
            i = following
            continue
        if not has_room(tables, labels, columns, indptr[rows], following - i, order, grow):
            return MORE_ROOM, i, rows
        codes[rows] = label_code(labels, text, i, tab)
        starts[rows] = i
        count = find_tokens(text, tab + 1, end, lower, punctuation, token_starts, sizes)
        if order == 0:
            count = 0
        for t in range(count):
            hashes[t] = text_hash(text, token_starts[t], sizes[t])
            prefetch(tables.token_slots, slot_of(tables.token_slots, hashes[t]))
        for t in range(count):
            token = token_at(tables, text, token_starts[t], sizes[t], hashes[t], grow)
            entry = unigram_at(tables, token, grow) if token >= 0 else np.int64(-1)
            tokens[t], entries[t] = token, entry
            if entry >= 0:
                prefetch(tables.seen, 2 * entry)
            else:
                unknown[0] += 1
        nnz = count_entries(
            tables.seen, rows_before + rows, entries[:count], columns, values, indptr[rows]
        )
        for k in range(2, min(order, count) + 1):
            longer_entries(tables, tokens, entries, hashes, k, count, grow)
            nnz = count_entries(
                tables.seen, rows_before + rows, entries[k - 1 : count], columns, values, nnz
            )
        rows += 1
        indptr[rows] = nnz
        i = following
    return DONE, i, rows


@helper(inline=True)
def longer_entries(tables, tokens, entries, hashes, k, count, grow):
    """From the entries of the (k - 1)-grams that end at each token to those of the k-grams."""
    # Backwards, so that the entry before a token is still that of the shorter n-gram.
    for t in range(count - 1, k - 2, -1):
        parent, token = entries[t - 1], tokens[t]
        if parent >= 0 and token >= 0:
            hashes[t] = mix(np.uint64(0), entry_key(parent, token))
            prefetch(tables.entry_slots, slot_of(tables.entry_slots, hashes[t]))
            entries[t] = parent
        else:
            entries[t] = -1
    for t in range(k - 1, count):
        if entries[t] >= 0:
            entries[t] = entry_at(tables, entries[t], tokens[t], hashes[t], grow)
            if entries[t] >= 0:
                prefetch(tables.seen, 2 * entries[t])


@helper(inline=True)
def count_entries(last_rows, row, entries, columns, values, nnz):
    """Add the entries of a row to it, the first time with a new place; the next free place."""
    for t in range(len(entries)):
        if entries[t] < 0:
            continue
        mark = np.uint64(2 * entries[t])
        if last_rows[mark] >> 32 == row:
            values[np.uint64(last_rows[mark] & 0xFFFFFFFF)] += 1
        else:
            last_rows[mark] = (row << 32) | nnz
            last_rows[mark + np.uint64(1)] += 1
            columns[np.uint64(nnz)] = entries[t]
            values[np.uint64(nnz)] = 1
            nnz += 1
    return nnz


@helper(inline=True)
def label_code(labels, text, i, tab):
    """Number of the label ``text[i:tab]``, -1 for none."""
    if tab <= i:
        return np.int64(-1)
    return token_at(labels, text, i, tab - i, text_hash(text, i, tab - i), True)


@helper(inline=True)
def has_room(tables, labels, columns, nnz, length, order, grow):
    """Whether the arrays have room for any line of ``length`` bytes."""
    if nnz + order * length > len(columns):
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


@kernel
def hash_ngrams(
    text,
    i,
    stop,
    order,
    bits,
    lower,
    punctuation,
    bare,
    owners,
    names,
    labels,
    codes,
    starts,
    indptr,
    columns,
    values,
    rows,
    collision_counts,
):
    """Like count_ngrams, for columns that are hashes.

    Columns may repeat in a row. ``owners`` holds the hash that claimed each column first (empty:
    not kept), ``names`` the n-grams of the first columns that were claimed; ``collision_counts``
    counts occurrences and those on a column of another n-gram.
    """
    max_tokens = stop - i + 1
    token_starts, sizes = np.empty(max_tokens, np.int64), np.empty(max_tokens, np.int64)
    tokens, hashes = np.empty(max_tokens, np.uint64), np.empty(max_tokens, np.uint64)
    shift = np.uint64(64 - bits)
    while i < stop:
        code, tab, end, following = text_line(text, i, bare)
        if code != DONE:
            return code, i, rows
        if end == i:
            i = following
            continue
        nnz = indptr[rows]
        if nnz + order * (following - i) > len(columns) or not (
            labels.used[0] + 1 <= len(labels.token_hash)
            and labels.used[1] + following - i <= len(labels.text)
        ):
            return MORE_ROOM, i, rows
        codes[rows] = label_code(labels, text, i, tab)
        starts[rows] = i
        count = find_tokens(text, tab + 1, end, lower, punctuation, token_starts, sizes)
        if order == 0:
            count = 0
        for t in range(count):
            tokens[t] = text_hash(text, token_starts[t], sizes[t])
            hashes[t] = 0
        for k in range(1, min(order, count) + 1):
            for t in range(count - 1, k - 2, -1):
                before = hashes[t - 1] if k > 1 else np.uint64(0)
                hashes[t] = mix(before, tokens[t])
                if len(owners):
                    prefetch(owners, np.int64(hashes[t] >> shift))
            for t in range(k - 1, count):
                column = hashes[t] >> shift
                columns[np.uint64(nnz)] = column
                values[np.uint64(nnz)] = 1
                nnz += 1
                if len(owners):
                    owner = hashes[t] | np.uint64(1)
                    if owners[column] == 0:
                        owners[column] = owner
                        keep_name(names, column, text, token_starts, sizes, t - k + 1, t + 1)
                    elif owners[column] != owner:
                        collision_counts[1] += 1
            collision_counts[0] += count - k + 1
        rows += 1
        indptr[rows] = nnz
        i = following
    return DONE, i, rows


_BLANK = 32


@helper(inline=True)
def pad(text, begin, end, word):
    """Copy a token to ``word`` with a blank before and behind it; the size of both and it."""
    size = min(end - begin, MAX_TOKEN)
    word[0] = _BLANK
    for k in range(size):
        word[k + 1] = text[begin + k]
    word[size + 1] = _BLANK
    return size + 2


@helper(inline=True)
def char_spans(word, size, low, high, starts, sizes):
    """Finds the n-grams of ``low`` to ``high`` characters in a padded token; returns how many."""
    count = 0
    for begin in range(size - 1):
        if word[begin] & 0xC0 == 0x80:  # inside a character
            continue
        end = begin
        for n in range(1, high + 1):
            end += 1
            while end < size and word[end] & 0xC0 == 0x80:
                end += 1
            if n >= low and end - begin > (begin == 0):
                starts[count] = begin
                sizes[count] = end - begin
                count += 1
            if end >= size:
                break
    return count


@kernel
def count_chars(
    text,
    row,
    i,
    low,
    high,
    punctuation,
    bare,
    tables,
    grow,
    starts,
    rows_before,
    indptr,
    columns,
    values,
    rows,
    unknown,
):
    """Counts character n-grams of the rows that count_ngrams read, in separate tables.

    ``(code, row, position)``; with MORE_ROOM the next call goes on in the middle of that row. The
    position -1 stands for the beginning of a row.
    """
    word = np.zeros(MAX_TOKEN + 16, np.uint8)
    max_grams = (high - low + 1) * (MAX_TOKEN + 2)
    gram_starts, sizes = np.empty(max_grams, np.int64), np.empty(max_grams, np.int64)
    hashes, entries = np.empty(max_grams, np.uint64), np.empty(max_grams, np.int64)
    while row < rows:
        _, tab, end, _ = text_line(text, starts[row], bare)
        if i < 0:
            i = tab + 1
            indptr[row + 1] = indptr[row]
        while True:
            begin, behind = next_token(text, i, end, punctuation)
            if begin >= behind:
                break
            size = pad(text, begin, behind, word)
            room = (high - low + 1) * size
            if indptr[row + 1] + room > len(columns) or (
                grow
                and (
                    tables.used[0] + room > len(tables.token_hash)
                    or tables.used[1] + room * high * 4 > len(tables.text)
                    or tables.used[2] + room > len(tables.parent)
                )
            ):
                return MORE_ROOM, row, i
            i = behind
            count = char_spans(word, size, low, high, gram_starts, sizes)
            for t in range(count):
                hashes[t] = text_hash(word, gram_starts[t], sizes[t])
                prefetch(tables.token_slots, slot_of(tables.token_slots, hashes[t]))
            for t in range(count):
                token = token_at(tables, word, gram_starts[t], sizes[t], hashes[t], grow)
                entries[t] = unigram_at(tables, token, grow) if token >= 0 else np.int64(-1)
                if entries[t] >= 0:
                    prefetch(tables.seen, 2 * entries[t])
                else:
                    unknown[0] += 1
            indptr[row + 1] = count_entries(
                tables.seen, rows_before + row, entries[:count], columns, values, indptr[row + 1]
            )
        row += 1
        i = np.int64(-1)
    return DONE, row, i


@kernel
def hash_chars(
    text,
    row,
    i,
    low,
    high,
    bits,
    punctuation,
    bare,
    owners,
    names,
    starts,
    indptr,
    columns,
    values,
    rows,
    collision_counts,
):
    """Like count_chars, for hashes: columns from ``2**bits`` on, which may repeat in a row."""
    word = np.zeros(MAX_TOKEN + 16, np.uint8)
    max_grams = (high - low + 1) * (MAX_TOKEN + 2)
    gram_starts, sizes = np.empty(max_grams, np.int64), np.empty(max_grams, np.int64)
    shift, first = np.uint64(64 - bits), np.int64(1) << bits
    while row < rows:
        _, tab, end, _ = text_line(text, starts[row], bare)
        if i < 0:
            i = tab + 1
            indptr[row + 1] = indptr[row]
        while True:
            begin, behind = next_token(text, i, end, punctuation)
            if begin >= behind:
                break
            size = pad(text, begin, behind, word)
            nnz = indptr[row + 1]
            if nnz + (high - low + 1) * size > len(columns):
                return MORE_ROOM, row, i
            i = behind
            count = char_spans(word, size, low, high, gram_starts, sizes)
            for t in range(count):
                h = mix(np.uint64(0), text_hash(word, gram_starts[t], sizes[t]))
                column = first + np.int64(h >> shift)
                columns[np.uint64(nnz + t)] = column
                values[np.uint64(nnz + t)] = 1
                if len(owners):
                    owner = h | np.uint64(1)
                    if owners[column] == 0:
                        owners[column] = owner
                        keep_name(names, column, word, gram_starts, sizes, t, t + 1)
                    elif owners[column] != owner:
                        collision_counts[1] += 1
            collision_counts[0] += count
            indptr[row + 1] = nnz + count
        row += 1
        i = np.int64(-1)
    return DONE, row, i


@kernel
def join_rows(indptr, columns, values, more_indptr, more_columns, more_values, offset):
    """Rows one behind the other: the columns of the second ones are ``offset`` higher."""
    n = len(indptr) - 1
    new_indptr = indptr + more_indptr
    new_columns = np.empty(new_indptr[n], np.int32)
    new_values = np.empty(new_indptr[n], np.float32)
    for i in range(n):
        out = new_indptr[i]
        for k in range(indptr[i], indptr[i + 1]):
            new_columns[out] = columns[k]
            new_values[out] = values[k]
            out += 1
        for k in range(more_indptr[i], more_indptr[i + 1]):
            new_columns[out] = more_columns[k] + offset
            new_values[out] = more_values[k]
            out += 1
    return new_indptr, new_columns, new_values


@kernel
def keep_name(names, column, text, starts, sizes, first, last):
    """Store the tokens from first to last, spaces between, as the name of a column, if it fits."""
    n = names.used[0]
    size = last - first - 1
    for t in range(first, last):
        size += sizes[t]
    at = names.offsets[n]
    if n == len(names.columns) or at + size > len(names.text):
        return
    for t in range(first, last):
        if t > first:
            names.text[at] = 32
            at += 1
        for k in range(sizes[t]):
            names.text[at] = text[starts[t] + k]
            at += 1
    names.columns[n] = column
    names.offsets[n + 1] = at
    names.used[0] = n + 1


@kernel
def merge_repeats(indptr, columns, values):
    """Add up repeated columns of sorted rows, in the given arrays; the new indptr."""
    merged = np.zeros(len(indptr), np.int64)
    out = 0
    for i in range(len(indptr) - 1):
        begin = out
        for k in range(indptr[i], indptr[i + 1]):
            if out > begin and columns[out - 1] == columns[k]:
                values[out - 1] += values[k]
            else:
                columns[out] = columns[k]
                values[out] = values[k]
                out += 1
        merged[i + 1] = out
    return merged
