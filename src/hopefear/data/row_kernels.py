"""Kernels over the arrays of sparse rows."""

from __future__ import annotations

import numpy as np

from hopefear.core.component import kernel

_FEW = 40  # below, sorting by comparison is quicker than by bytes


# Values beyond this are refused: sums of their squares must fit float32.
LARGEST = 1e15


@kernel
def transform_values(indptr, values, how, norm):
    """New values: 0 as they are, 1 presence, 2 signed log(1 + |v|); norm 1 is unit length."""
    new = np.empty(len(values), np.float32)
    for i in range(len(indptr) - 1):
        square = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            v = np.float64(values[k])
            if how == 1:
                v = 1.0 if v != 0.0 else 0.0
            elif how == 2:
                v = np.log1p(v) if v >= 0.0 else -np.log1p(-v)
            new[k] = v
            square += v * v
        if norm == 1 and square > 0.0:
            scale = 1.0 / np.sqrt(square)
            for k in range(indptr[i], indptr[i + 1]):
                new[k] = new[k] * scale
    return new


@kernel
def gather_rows(indptr, indices, values, chosen):
    """``(indptr, indices, values)`` of the chosen rows."""
    new_indptr = np.zeros(len(chosen) + 1, np.int64)
    for i in range(len(chosen)):
        new_indptr[i + 1] = new_indptr[i] + indptr[chosen[i] + 1] - indptr[chosen[i]]
    new_indices = np.empty(new_indptr[-1], indices.dtype)
    new_values = np.empty(new_indptr[-1], values.dtype)
    for i in range(len(chosen)):
        size = new_indptr[i + 1] - new_indptr[i]
        for k in range(size):
            new_indices[new_indptr[i] + k] = indices[indptr[chosen[i]] + k]
            new_values[new_indptr[i] + k] = values[indptr[chosen[i]] + k]
    return new_indptr, new_indices, new_values


@kernel
def drop_unknown(indptr, columns, values):
    """The same rows without the places whose column is -1."""
    new_indptr = np.zeros(len(indptr), np.int64)
    new_columns = np.empty(len(columns), np.int32)
    new_values = np.empty(len(values), np.float32)
    place = 0
    for i in range(len(indptr) - 1):
        for k in range(indptr[i], indptr[i + 1]):
            if columns[k] >= 0:
                new_columns[place] = columns[k]
                new_values[place] = values[k]
                place += 1
        new_indptr[i + 1] = place
    return new_indptr, new_columns[:place], new_values[:place]


@kernel
def sort_count_rows(indptr, indices, counts):
    """Order the places of each row by column, in the given arrays; counts are whole numbers."""
    longest = 0
    for i in range(len(indptr) - 1):
        longest = max(longest, indptr[i + 1] - indptr[i])
    keys, other = np.empty(longest, np.uint64), np.empty(longest, np.uint64)
    places = np.empty(257, np.int64)
    for i in range(len(indptr) - 1):
        begin, size = indptr[i], indptr[i + 1] - indptr[i]
        # Column and count in one integer: sorting those needs no permutation.
        largest = np.uint64(0)
        for k in range(size):
            column = np.uint64(indices[begin + k])
            largest = max(largest, column)
            keys[k] = (column << np.uint64(32)) | np.uint64(counts[begin + k])
        if size < _FEW:
            keys[:size].sort()
        else:
            keys, other = sort_by_bytes(keys, other, size, largest, places)
        for k in range(size):
            indices[begin + k] = keys[k] >> np.uint64(32)
            counts[begin + k] = keys[k] & np.uint64(0xFFFFFFFF)


@kernel
def sort_by_bytes(keys, other, size, largest, places):
    """Sort ``keys[:size]`` by their upper halves, byte after byte; ``(sorted, the other array)``.

    ``largest`` is the largest upper half; no more bytes are looked at than it has.
    """
    shift = np.uint64(32)
    while largest > 0:
        places[:] = 0
        for k in range(size):
            places[((keys[k] >> shift) & np.uint64(255)) + np.uint64(1)] += 1
        for b in range(256):
            places[b + 1] += places[b]
        for k in range(size):
            byte = (keys[k] >> shift) & np.uint64(255)
            other[np.uint64(places[byte])] = keys[k]
            places[byte] += 1
        keys, other = other, keys
        shift += np.uint64(8)
        largest >>= np.uint64(8)
    return keys, other


@kernel
def first_unusable(values):
    """Position of the first value that is nan or beyond LARGEST in size, -1 when there is none."""
    for k in range(len(values)):
        if not abs(values[k]) <= LARGEST:
            return k
    return -1


@kernel
def rows_sound(indptr, indices, labels, n_features, n_classes):
    """Whether every place a kernel would touch exists."""
    for i in range(len(indptr) - 1):
        if indptr[i] > indptr[i + 1] or labels[i] < -1 or labels[i] >= n_classes:
            return False
    smallest, largest = 0, -1
    for k in range(len(indices)):
        smallest, largest = min(smallest, indices[k]), max(largest, indices[k])
    return smallest >= 0 and largest < n_features
