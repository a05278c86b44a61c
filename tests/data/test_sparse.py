"""The dataset: what it takes, what it refuses, transforms and parts of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from hopefear.data.sparse import SparseDataset, SparseRows
from hopefear.errors import HopefearError, InputError


@pytest.fixture
def data() -> SparseDataset:
    rng = np.random.default_rng(0)
    X = sparse.random(60, 40, 0.2, "csr", rng=rng)
    X.data = rng.integers(-3, 9, X.nnz).astype(float)
    return SparseDataset.from_csr(X, rng.integers(3, size=60), rng.random(60))


def test_types_and_contiguity(data: SparseDataset) -> None:
    assert [a.dtype.str for a in data.rows] == ["<i8", "<i4", "<f4", "<i4", "<f4"]
    assert all(a.flags.c_contiguous and not a.flags.writeable for a in data.rows)


def test_matrices_of_all_kinds_agree(data: SparseDataset) -> None:
    X = data.to_csr()
    y = data.rows.labels
    kinds = [X.toarray(), X.tocsc(), X.tocoo(), X.astype(np.float64), X.toarray().tolist()]
    digests = {SparseDataset.from_csr(k, y).digest for k in kinds if not isinstance(k, list)}
    explicit = SparseDataset.from_csr(sparse.csr_array(X.toarray()), y)
    assert explicit.digest in digests
    assert np.array_equal(explicit.to_csr().toarray(), X.toarray())


def test_float32_is_shared_and_the_caller_may_still_write() -> None:
    X = sparse.csr_array(np.eye(3, dtype=np.float32))
    data = SparseDataset.from_csr(X)
    assert np.shares_memory(data.rows.values, X.data)
    X.data[0] = 5
    assert data.rows.values[0] == 5


def test_unsorted_and_repeated_columns_are_put_right() -> None:
    X = sparse.csr_array(
        (np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3)
    )
    rows = SparseDataset.from_csr(X).rows
    assert (rows.indices.tolist(), rows.values.tolist()) == ([0, 2], [2.0, 5.0])
    assert X.nnz == 3


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_refuses_what_is_not_finite(bad: float) -> None:
    X = np.zeros((3, 4))
    X[2, 1] = bad
    with pytest.raises(InputError, match=r"X\[2, 1\]: expected a number of at most"):
        SparseDataset.from_csr(X)


def test_refuses_what_does_not_fit() -> None:
    X = np.eye(2)
    for options in (
        {"y": [1]},
        {"y": [[1], [2]]},
        {"sample_weight": [1.0]},
        {"sample_weight": [1.0, -1.0]},
        {"sample_weight": [1.0, np.nan]},
        {"y": [1.0, np.nan]},
    ):
        with pytest.raises(HopefearError):
            SparseDataset.from_csr(X, **options)
    with pytest.raises(HopefearError):
        SparseDataset.from_csr([["a", "b"]])


@pytest.mark.parametrize(
    ("y", "classes", "codes"),
    [
        ([2, 10, 2], ("2", "10"), [0, 1, 0]),
        ([1.0, -1.0, 0.5], ("-1", "0.5", "1"), [2, 0, 1]),
        (["b", "a", "b"], ("a", "b"), [1, 0, 1]),
        ([True, False, True], ("0", "1"), [1, 0, 1]),
        (np.array(["x", 1, "x"], object), ("1", "x"), [1, 0, 1]),
    ],
)
def test_labels(y, classes, codes) -> None:
    data = SparseDataset.from_csr(np.eye(3), y)
    assert (data.classes, data.rows.labels.tolist()) == (classes, codes)
    given = SparseDataset.from_csr(np.eye(3), y, classes=classes[:1])
    assert given.rows.labels.tolist() == [0 if c == 0 else -1 for c in codes]


@pytest.mark.parametrize("values", ["counts", "presence", "log"])
@pytest.mark.parametrize("norm", ["none", "l2"])
def test_transforms_against_numpy(data: SparseDataset, values: str, norm: str) -> None:
    X = data.to_csr().toarray().astype(np.float64)
    X = {"counts": X, "presence": (X != 0) * 1.0, "log": np.sign(X) * np.log1p(abs(X))}[values]
    if norm == "l2":
        length = np.sqrt((X**2).sum(axis=1, keepdims=True))
        X = X / np.where(length > 0, length, 1)
    new = data.transformed(values, norm)
    np.testing.assert_allclose(new.to_csr().toarray(), X, rtol=1e-6)
    assert new.rows.indices is data.rows.indices or np.shares_memory(
        new.rows.indices, data.rows.indices
    )
    with pytest.raises(HopefearError, match="one of counts, presence, log, tfidf, nb"):
        data.transformed("bm25")
    with pytest.raises(HopefearError, match="one of none, l2"):
        data.transformed(norm="l1")


def test_take_and_split(data: SparseDataset) -> None:
    X = data.to_csr().toarray()
    part = data.take([5, 3, 5])
    assert np.array_equal(part.to_csr().toarray(), X[[5, 3, 5]])
    assert np.array_equal(part.rows.weights, data.rows.weights[[5, 3, 5]])
    with pytest.raises(HopefearError, match="outside 0 to 59"):
        data.take([60])
    rest, held = data.split(0.25, seed=3)
    assert (len(rest), len(held)) == (45, 15)
    assert held.digest == data.split(0.25, seed=3)[1].digest != data.split(0.25, seed=4)[1].digest
    both = np.concatenate([rest.to_csr().toarray(), held.to_csr().toarray()])
    assert np.array_equal(both[np.lexsort(both.T)], X[np.lexsort(X.T)])
    for fraction in (0, 1, -1):
        with pytest.raises(HopefearError):
            data.split(fraction)


def test_digest_sees_every_array(data: SparseDataset) -> None:
    seen = {data.digest}
    for field in ("values", "labels", "weights"):
        changed = getattr(data.rows, field).copy()
        changed[3] += 1
        rows = data.rows._replace(**{field: changed})
        seen.add(SparseDataset(rows, data.n_features, data.classes).digest)
    seen.add(SparseDataset(data.rows, data.n_features, ("a", "b", "c")).digest)
    assert len(seen) == 5
    assert all(len(d) == 64 for d in seen)


def test_feature_map_must_fit(data: SparseDataset) -> None:
    with pytest.raises(HopefearError, match="a dataset of 41 columns"):
        SparseDataset(data.rows, 41, data.classes, data.features)
    assert SparseDataset(SparseRows(*data.rows), 40, data.classes).features.name(7) == "7"
