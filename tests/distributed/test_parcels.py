"""Parcels lose no bit, and files of shards are those that were written."""

from __future__ import annotations

import socket

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopefear import distributed
from hopefear.data.generators import sparse_linear
from hopefear.distributed.cluster import Cluster, Filed, Worker, read_share, write_share
from hopefear.distributed.connection import Connection, versions
from hopefear.distributed.parcels import Places, packed, packed_update, unpacked, unpacked_update
from hopefear.errors import HopefearError
from hopefear.recipes import RECIPES
from hopefear.structures.classes import Binary
from hopefear.training.changes import Change, Sparse, Update
from hopefear.training.workers import Share

pytestmark = pytest.mark.interpreted

numbers = st.floats(-1e6, 1e6) | st.integers(-9, 9).map(float)


@given(st.lists(st.none() | numbers, max_size=80), st.integers(0, 300))
def test_parcels_hold_what_was_packed(values, more):
    ids = np.array([i for i, v in enumerate(values) if v is not None], np.int64)
    entries = np.array([[v for v in values if v is not None]], np.float64)
    n = len(values) + more
    change = Change(Sparse(ids, entries), (Sparse(ids, -entries),), (np.array([1.0, 2.0]),))
    parcel = packed(change, n, before=7)
    back = unpacked(parcel)
    for one, other in ((back.state, change.state), (back.gains[0], change.gains[0])):
        np.testing.assert_array_equal(one.ids, other.ids)
        assert one.values.tobytes() == other.values.tobytes()
    assert back.rest[0].tolist() == [1.0, 2.0] and parcel.sent > 7
    update = Update(ids, {"w": entries[0].astype(np.float32)}, np.ones(3), 5)
    again = unpacked_update(packed_update(update, n))
    np.testing.assert_array_equal(again.ids, ids)
    assert again.fields["w"].tobytes() == update.fields["w"].tobytes() and again.t == 5


def test_many_places_are_a_bitmap():
    assert Places.of(np.arange(64), 64).data.nbytes == 8
    assert Places.of(np.arange(2), 64).data.nbytes == 8


def test_files_of_shards_are_those_that_were_written(tmp_path):
    rows = sparse_linear(9, 5, per_row=(1, 3), true_weights=3, seed=1).dataset().rows
    path = tmp_path / "shard"
    digest = write_share(path, rows)
    for one, other in zip(read_share(str(path), digest, rows._fields), rows, strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(HopefearError, match="hash differs; give --cluster-folder"):
        read_share(str(path), "0" * 64, rows._fields)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(HopefearError, match="hash differs"):
        read_share(str(path), digest, rows._fields)
    path.unlink()
    with pytest.raises(HopefearError, match="missing on this worker"):
        read_share(str(path), digest, rows._fields)


def test_a_worker_is_a_shard(tmp_path):
    rows = sparse_linear(20, 6, per_row=(1, 3), true_weights=3, seed=1).dataset().rows
    learner = RECIPES["perceptron"].build()
    worker = Worker()
    digest = write_share(tmp_path / "shard", rows)
    order, parts = (1, True, False), (Binary(6), learner, np.float32)
    worker.open(Share, Filed(str(tmp_path / "shard"), digest, type(rows)), order, parts)
    state = learner.rule.init(6, np.float32)
    worker.begin(state, 0)
    report = worker.learn(0, 0, 1, 1)
    assert report.counts[0] == 20
    parcel = worker.change(0.5, learner.rule.merged_clock(state, [report.clock], [1.0], 20))
    both = worker.plus(parcel, parcel)
    values = unpacked(parcel).state.values
    np.testing.assert_array_equal(unpacked(both).state.values, values + values)
    assert both.sent > parcel.sent * 2


def test_a_pool_that_was_closed_knows_nothing_of_the_last_training(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    pool, fresh = Cluster("auto"), Cluster("auto")
    pool._begun, pool._round = ("a state", 7), [(0, 0, 1, 1)]
    pool.close()
    names = ("_begun", "_round", "_actors", "_openings")
    assert all(getattr(pool, name) == getattr(fresh, name) for name in names)


def test_another_version_on_a_worker_is_refused(monkeypatch):
    """Without Ray: what the worker says is what counts."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    pool = Cluster("auto")

    class Errors:
        class GetTimeoutError(Exception):
            pass

    class Ray:
        exceptions = Errors

        @staticmethod
        def get(answer, timeout=None):
            return answer

    class Actor:
        class versions:  # noqa: N801 - a method of an actor
            @staticmethod
            def remote():
                return {**versions(), "hopefear": "0.0.9"}

    pool._connection.ray, pool._actors = Ray, [Actor]
    with pytest.raises(HopefearError, match=r"shard 0 has hopefear 0\.0\.9 and this machine"):
        pool._open(0)


def test_the_package_needs_no_ray_to_be_imported():
    assert distributed.Cluster is Cluster


@pytest.mark.needs("ray")
def test_an_address_where_nothing_listens_is_said_at_once():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(HopefearError, match=f"no Ray cluster answers at 127.0.0.1:{port}"):
        Connection(f"127.0.0.1:{port}").open(2)
