"""From keys to arrays of lists: relative values, numbers, blocks, and what datasets refuse."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from list_oracle import tiny_lists

from hopefear.core.hashing import KeyTable
from hopefear.data.lists.dataset import ListDataset, ListRows, cheapest
from hopefear.errors import HopefearError
from hopefear.features.lists.numbering import (
    Keyed,
    joined,
    numbered,
    pruned,
    relative,
    side_by_side,
)

# Keys that meet in a small hash table, and the largest there is.
KEYS = [1, 2, 3, 17, 1 << 32, 5 << 32, 1 << 40, (1 << 40) + 1, 1 << 63, (1 << 64) - 1]
KINDS = 16  # values that are told apart, 0 among them
few = settings(max_examples=60, deadline=None)


@st.composite
def blocks(draw, keys=tuple(KEYS)):
    """(starts, Keyed): lists of candidates with repeated keys, in small numbers or real ones."""
    sizes = draw(st.lists(st.integers(1, 5), max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    whole = draw(st.booleans())
    counts = rng.integers(0, 6, sum(sizes))
    n = int(counts.sum())
    values = rng.integers(-1, 3, n) if whole else rng.normal(size=n)
    keyed = Keyed(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        rng.choice(np.array(keys, np.uint64), n),
        values.astype(np.float32),
    )
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), keyed


def dense_lists(starts, keyed):
    """A table of values by key for every list; keys in order of appearance."""
    for first, last in itertools.pairwise(starts.tolist()):
        found: dict[int, np.ndarray] = {}
        for c in range(first, last):
            for e in range(keyed.indptr[c], keyed.indptr[c + 1]):
                row = found.setdefault(int(keyed.keys[e]), np.zeros(last - first))
                row[c - first] += float(keyed.values[e])
        yield found


def commonest(row):
    """0 before others, then the earliest; only the first kinds are told apart."""
    kinds = [0.0]
    for value in row:
        if value not in kinds and len(kinds) < KINDS:
            kinds.append(value)
    return max(kinds, key=lambda kind: (np.sum(row == kind), -kinds.index(kind)))


def tables(starts, block, names):
    """What arrays of lists say, as a table by name for every list."""
    for i, (first, last) in enumerate(itertools.pairwise(starts.tolist())):
        scope = names[block.scopes[i] : block.scopes[i + 1]].tolist()
        assert len(set(scope)) == len(scope)
        found = {name: np.zeros(last - first) for name in scope}
        for c in range(first, last):
            columns = block.columns[block.indptr[c] : block.indptr[c + 1]]
            assert (np.diff(columns) > 0).all()
            for e in range(block.indptr[c], block.indptr[c + 1]):
                found[scope[block.columns[e]]][c - first] = block.values[e]
        yield found


def same_tables(found, wanted):
    found, wanted = list(found), list(wanted)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert list(a) == list(b)
        for name in a:
            np.testing.assert_array_equal(a[name], b[name])


@few
@given(blocks())
def test_relative_values_are_those_of_a_slow_reference(block):
    starts, keyed = block
    wanted = []
    for table in dense_lists(starts, keyed):
        differences = {k: (row - commonest(row)).astype(np.float32) for k, row in table.items()}
        wanted.append({k: row for k, row in differences.items() if row.any()})
    found = relative(starts, keyed)
    same_tables(tables(starts, found, found.keys), wanted)
    assert (found.values != 0).all()
    assert (found.scopes[-1], found.indptr[-1]) == (len(found.keys), len(found.values))


@few
@given(blocks())
def test_differences_between_candidates_are_kept(block):
    """Exactly where values are whole numbers, and constants are gone."""
    starts, keyed = block
    found = relative(starts, keyed)
    exact = (keyed.values == np.rint(keyed.values)).all()
    pairs = zip(dense_lists(starts, keyed), tables(starts, found, found.keys), strict=True)
    for before, after in pairs:
        for key, row in before.items():
            kept = after.get(key, np.zeros(len(row)))
            np.testing.assert_allclose(
                np.subtract.outer(kept, kept),
                np.subtract.outer(row, row),
                rtol=0,
                atol=0 if exact else 1e-6,
            )
            assert (key in after) == bool(np.ptp(row) > 0)


def test_more_kinds_of_values_than_are_told_apart():
    """The commonest comes too late to be counted; differences are right all the same."""
    values = np.concatenate([np.arange(1.0, 31.0), np.full(10, 99.0)]).astype(np.float32)
    keyed = Keyed(np.arange(41), np.full(40, 7, np.uint64), values)
    found = relative(np.array([0, 40]), keyed)
    dense = np.zeros(40)
    owners = np.repeat(np.arange(40), np.diff(found.indptr))
    dense[owners] = found.values
    np.testing.assert_array_equal(dense, values - 1.0)


@pytest.mark.parametrize(
    ("values", "taken"),
    [([1, 0, 1, 0], 0), ([2, 1, 1, 2], 2), ([3, 3, 0, 3], 3), ([0, 0, 5, 5], 0), ([4, 4], 4)],
)
def test_which_of_equally_common_values_is_taken_off(values, taken):
    n = len(values)
    keyed = Keyed(np.arange(n + 1), np.full(n, 9, np.uint64), np.array(values, np.float32))
    found = relative(np.array([0, n]), keyed)
    wanted = np.array(values) - taken
    np.testing.assert_array_equal(found.values, wanted[wanted != 0])
    assert len(found.keys) == wanted.any()


def test_no_lists_and_lists_without_features():
    for starts, candidates in (([0], 0), ([0, 2, 3], 3)):
        keyed = Keyed(
            np.zeros(candidates + 1, np.int64), np.empty(0, np.uint64), np.empty(0, np.float32)
        )
        found = relative(np.array(starts), keyed)
        assert found.scopes.tolist() == [0] * len(starts)
        assert found.indptr.tolist() == [0] * (candidates + 1)
        assert len(found.keys) == len(found.values) == 0


@few
@given(st.lists(st.lists(st.sampled_from(KEYS), max_size=9), max_size=6))
def test_keys_are_numbered_in_order_of_appearance(batches):
    table, numbers, seen = KeyTable(), {}, {}
    for batch in batches:
        found = table.count(np.array(batch, np.uint64))
        for key in batch:
            numbers.setdefault(key, len(numbers))
            seen[key] = seen.get(key, 0) + 1
        assert found.dtype == np.int32
        assert found.tolist() == [numbers[key] for key in batch]
    assert table.size == len(numbers)
    assert table.keys.tolist() == list(numbers)
    assert table.seen.tolist() == list(seen.values())
    every = table.find(np.array(KEYS, np.uint64)).tolist()
    assert every == [numbers.get(key, -1) for key in KEYS]


def test_a_table_grows_and_keeps_its_numbers():
    rng = np.random.default_rng(1)
    keys = rng.integers(1, 1 << 62, 5000).astype(np.uint64)
    table = KeyTable(keys[:3])
    table.count(keys[1:3])
    for start in range(3, 5000, 700):
        table.count(keys[start : start + 700])
    np.testing.assert_array_equal(table.keys, keys)
    assert table.seen[:4].tolist() == [1, 2, 2, 1] and (table.seen[3:] == 1).all()
    np.testing.assert_array_equal(table.find(keys), np.arange(5000))
    np.testing.assert_array_equal(KeyTable(keys).find(keys[::-1]), np.arange(5000)[::-1])


@few
@given(blocks(), st.integers(0, 10**6))
def test_pruned_blocks_have_new_numbers_and_lose_the_rest(block, seed):
    starts, keyed = block
    found = relative(starts, keyed)
    table = KeyTable()
    whole = numbered(found, table.count(found.keys))
    keep = np.random.default_rng(seed).random(table.size) < 0.6
    new = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
    less = pruned(whole, starts, new)
    wanted = [
        {int(new[name]): row for name, row in t.items() if keep[name]}
        for t in tables(starts, whole, whole.features)
    ]
    same_tables(tables(starts, less, less.features), wanted)
    assert len(less.values) == less.indptr[-1] and len(less.features) == less.scopes[-1]


def test_keys_that_the_table_does_not_know_are_pruned():
    keyed = Keyed(
        np.array([0, 2, 2]), np.array([5, 6], np.uint64), np.array([1.0, 2.0], np.float32)
    )
    starts = np.array([0, 2])
    found = relative(starts, keyed)
    whole = numbered(found, KeyTable(np.array([6], np.uint64)).find(found.keys))
    less = pruned(whole, starts, np.array([3], np.int32))
    assert less.features.tolist() == [3]
    assert less.columns.tolist() == [0] and less.values.tolist() == [2.0]


@few
@given(st.integers(0, 10**6), st.integers(1, 3))
def test_blocks_side_by_side(seed, count):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, 3)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    parts, wanted = [], [{} for _ in sizes]
    for part in range(count):
        counts = rng.integers(0, 4, starts[-1])
        n = int(counts.sum())
        keys = (rng.integers(1, 5, n) + 10 * part).astype(np.uint64)  # parts share no keys
        keyed = Keyed(
            np.concatenate([[0], np.cumsum(counts)]), keys, rng.normal(size=n).astype(np.float32)
        )
        parts.append(relative(starts, keyed))
        for table, more in zip(wanted, tables(starts, parts[-1], parts[-1].keys), strict=True):
            table.update(more)
    found = side_by_side(parts, starts)
    same_tables(tables(starts, found, found.keys), wanted)


@few
@given(st.lists(blocks(), min_size=1, max_size=3))
def test_blocks_one_after_the_other(several):
    table, every, wanted = KeyTable(), [], []
    starts = [0]
    for more, keyed in several:
        found = relative(more, keyed)
        every.append(numbered(found, table.count(found.keys)))
        wanted += tables(more, every[-1], every[-1].features)
        starts += (starts[-1] + more[1:]).tolist()
    found = joined(every)
    assert every == []  # so that memory is held once
    same_tables(tables(np.array(starts), found, found.features), wanted)


@pytest.mark.parametrize("which", [[], [2], [3, 0, 0, 2], [4, 3, 2, 1, 0]], ids=str)
def test_lists_taken_from_a_dataset(which):
    rows = tiny_lists(5, sizes=(3, 1, 4, 2, 5), weights=[1, 2, 0, 0.5, 1])
    names = [f"s{i}" for i in range(5)]
    data = ListDataset(rows, None, np.arange(30).reshape(15, 2), "cost", names, "here")
    taken = data.take(which)
    assert len(taken) == len(which)
    assert taken.ids == [names[i] for i in which] and taken.source == "here"
    every = list(tables(rows.starts, rows, rows.features))
    same_tables(
        tables(taken.rows.starts, taken.rows, taken.rows.features), [every[i] for i in which]
    )
    for k, i in enumerate(which):
        old = slice(rows.starts[i], rows.starts[i + 1])
        new = slice(taken.rows.starts[k], taken.rows.starts[k + 1])
        for name in ("costs", "offsets"):
            np.testing.assert_array_equal(getattr(taken.rows, name)[new], getattr(rows, name)[old])
        np.testing.assert_array_equal(taken.counts[new], data.counts[old])
        assert taken.rows.oracles[k] == rows.oracles[i] and taken.rows.weights[k] == rows.weights[i]
    assert (taken.digest == data.digest) == (which == [0, 1, 2, 3, 4])


def good():
    return ListRows(
        [0, 2, 3],
        [0, 2, 3],
        [4, 7, 1],
        [0, 1, 3, 3],
        [1, 0, 1],
        [1.0, 2.0, -1.0],
        [0.0, 0.5, 0.0],
        [0.0, 1.0, 0.25],
        [0, 0],
        [1.0, 1.0],
    )


class Map:
    size = 8


ASTRAY = [
    ("starts", [0, 2, 4], "starts must be 3 numbers that rise from 0 to 3"),
    ("starts", [0, 3], "starts must be 3 numbers"),
    ("starts", [1, 2, 3], "starts must be"),
    ("starts", [0, 4, 3], "starts must be"),
    ("starts", [0, 0, 3], "list 1 has no candidates; leave it out"),
    ("starts", [[0, 2, 3]], "starts must have one dimension"),
    ("scopes", [0, 2, 4], "scopes must be 3 numbers that rise from 0 to 3"),
    ("scopes", [0, -1, 3], "scopes must be"),
    ("scopes", [0, 1, 3], "a column lies outside of the features of its list"),
    ("features", [4, 8, 1], "features go from 1 to 8, which is outside of 0 to 7"),
    ("features", [4, -1, 1], "features go from -1"),
    ("features", [4, 7], "scopes must be 3 numbers that rise from 0 to 2"),
    ("indptr", [0, 1, 3, 4], "indptr must be 4 numbers that rise from 0 to 3"),
    ("indptr", [0, 3, 1, 3], "indptr must be"),
    ("indptr", [0, 1, 3], "indptr must be"),
    ("columns", [1, 0, 2], "a column lies outside of the features of its list"),
    ("columns", [1, -1, 1], "a column lies outside"),
    ("columns", [1, 0], "indptr must be 4 numbers that rise from 0 to 2"),
    ("values", [1.0, 2.0], "values must be 3 numbers, not 2"),
    ("values", [1.0, np.nan, 1.0], "values must be finite"),
    ("values", [1.0, np.inf, 1.0], "values must be finite"),
    ("offsets", [0.0], "offsets must be 3 numbers, not 1"),
    ("offsets", [0.0, -np.inf, 0.0], "offsets must be finite"),
    ("costs", [0.0, np.nan, 0.0], "costs must be finite"),
    ("costs", [0.0, 1.0], "starts must be 3 numbers that rise from 0 to 2"),
    ("oracles", [2, 0], "an oracle lies outside of its list"),
    ("oracles", [0, -1], "an oracle lies outside of its list"),
    ("oracles", [0], "oracles must be 2 numbers, not 1"),
    ("weights", [1.0, -1.0], "weights of lists must be finite and not negative"),
    ("weights", [1.0, np.nan], "weights of lists must be finite"),
    ("weights", [1.0, np.inf], "weights of lists must be finite"),
    ("weights", [1.0], "starts must be 2 numbers"),
]


@pytest.mark.parametrize(("name", "array", "message"), ASTRAY)
def test_arrays_that_lead_astray_are_refused(name, array, message):
    with pytest.raises(HopefearError, match=f"^here: .*{message}"):
        ListDataset(good()._replace(**{name: array}), Map(), source="here")


def test_a_sound_dataset():
    data = ListDataset(good(), Map(), np.zeros((3, 2)), ids=["a", "b"])
    assert (len(data), data.n_candidates, data.name(1)) == (2, 3, "b")
    assert not any(array.flags.writeable for array in data.rows)
    assert ListDataset(good()).name(1) == "2"
    assert data.replaced(costs=[5.0, 1.0, 0.0], oracles=[1, 0]).rows.oracles.tolist() == [1, 0]
    with pytest.raises(HopefearError, match="an oracle lies outside"):
        data.replaced(oracles=[1, 1])
    with pytest.raises(HopefearError, match="3 candidates need as many rows of counts"):
        ListDataset(good(), None, np.zeros((2, 2)))
    assert data.digest != data.replaced(weights=[1.0, 2.0]).digest


@few
@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), max_size=5))
def test_oracles_are_the_first_of_the_cheapest(lists):
    starts = np.concatenate([[0], np.cumsum([len(x) for x in lists])]).astype(np.int64)
    costs = np.array([c for x in lists for c in x], np.float64)
    assert cheapest(costs, starts).tolist() == [x.index(min(x)) for x in lists]
