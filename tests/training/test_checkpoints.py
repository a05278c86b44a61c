"""Checkpoints that are damaged, newer or forged: said, never trusted, never overwritten."""

from __future__ import annotations

import os
import signal
import struct
from hashlib import sha256

import numpy as np
import pytest
from classes import train

from hopefear import storage
from hopefear.data.generators import sparse_linear
from hopefear.errors import HopefearError, ModelError, NewerFormatError
from hopefear.training.batch import Batch
from hopefear.training.checkpoints import (
    Checkpoints,
    CheckpointWarning,
    InterruptedTrainingError,
)
from hopefear.training.loop import Loop
from hopefear.training.stopping import Stopping

pytestmark = [pytest.mark.interpreted, pytest.mark.usefixtures("small_window")]
WINDOW = 16

DATA = sparse_linear(30, 12, per_row=(3, 6), true_weights=6, seed=2).dataset()
NAMES = ("checkpoint.0", "checkpoint.1")
LEARNERS = {
    "averaged": ("perceptron", {}),
    "voted": ("vrda", {"averaging": "voted"}),
    "last": ("rda", {}),
    "batch": (Batch(l2=0.1), {}),
}


class StopError(Exception):
    """A run that ends in its middle."""


def interrupt(folder, kind, after=3):
    """Leave the checkpoints of a run that was stopped."""

    def stop(event):
        if event["epoch"] >= after:
            raise StopError

    with pytest.raises(StopError):
        go_on(folder, kind, resume=False, on_event=[stop])


def go_on(folder, kind, **options):
    learner, params = LEARNERS[kind]
    options = {"resume": True, "epochs": 6, "dev": DATA, "stopping": Stopping()} | options
    places = Checkpoints(folder, every=0.0)
    return train(DATA, learner, params, checkpoints=places, pieces=2, **options)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def newest(folder):
    read = [(folder / name, *storage.load(folder / name, "checkpoint")) for name in NAMES]
    return max(read, key=lambda one: one[1]["number"])


def newer(data):
    """The same file as a later version would number it."""
    magic, number, length = struct.unpack_from("<8sIQ", data)
    prelude = struct.pack("<8sIQ", magic, number + 1, length)
    return prelude + sha256(prelude + data[52 : 52 + length]).digest() + data[52:]


@pytest.fixture(scope="module", params=LEARNERS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def saved(kind, small_window, tmp_path_factory):
    folder = tmp_path_factory.mktemp(kind)
    interrupt(folder, kind)
    return contents(folder)


@pytest.fixture
def folder(saved, tmp_path):
    for name, data in saved.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


def test_a_run_interrupted_in_the_last_piece_of_a_pass_goes_on(kind, tmp_path, monkeypatch):
    whole = train(DATA, *LEARNERS[kind], epochs=6, dev=DATA, stopping=Stopping(), pieces=2)
    heed = Loop._heed

    def at_the_end(loop, interruption):
        if (loop.progress.epoch, loop.progress.piece) == (2, loop.passes.n_pieces):
            os.kill(os.getpid(), signal.SIGINT)
        heed(loop, interruption)

    with monkeypatch.context() as patch:
        patch.setattr(Loop, "_heed", at_the_end)
        with pytest.raises(InterruptedTrainingError):
            go_on(tmp_path, kind, resume=False)
    assert go_on(tmp_path, kind).model.to_bytes() == whole.model.to_bytes()


def test_one_damaged_of_two_is_said_and_the_other_used(folder, kind, tmp_path_factory):
    whole = train(DATA, *LEARNERS[kind], epochs=6, dev=DATA, stopping=Stopping(), pieces=2)
    path, *_ = newest(folder)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.warns(CheckpointWarning, match=rf"{path.name} is .*; the other checkpoint is used"):
        again = go_on(folder, kind)
    assert again.model.to_bytes() == whole.model.to_bytes()


@pytest.mark.parametrize("both", [False, True])
def test_nothing_is_begun_anew_over_what_cannot_be_read(folder, kind, both):
    if not both:
        (folder / NAMES[0]).unlink()
    for name in NAMES[not both :]:
        (folder / name).write_bytes((folder / name).read_bytes()[:-7])
    before = contents(folder)
    with pytest.raises(ModelError, match=r"no checkpoint can be read: .*nothing was changed: re"):
        go_on(folder, kind)
    assert contents(folder) == before


def test_a_newer_checkpoint_is_neither_passed_over_nor_overwritten(folder, kind):
    path, *_ = newest(folder)
    path.write_bytes(newer(path.read_bytes()))
    before = contents(folder)
    with pytest.raises(NewerFormatError, match=r"newer version .*upgrade hopefear, or start again"):
        go_on(folder, kind)
    assert contents(folder) == before


def refused(folder, kind, header, arrays):
    """A forged checkpoint is one error of ours, and stays as it is."""
    for name in NAMES:
        storage.save(folder / name, "checkpoint", header, arrays)
    before = contents(folder)
    with pytest.raises(ModelError, match=str(folder)):
        go_on(folder, kind)
    assert contents(folder) == before


def test_every_array_must_be_there_in_its_type_and_shape(folder, kind):
    _, header, arrays = newest(folder)
    for name, array in arrays.items():
        others = {k: a for k, a in arrays.items() if k != name}
        refused(folder, kind, header, others)
        refused(folder, kind, header, arrays | {name: np.zeros((2, 2, 2), array.dtype)})
        refused(folder, kind, header, arrays | {name: np.append(array.ravel(), [1, 2, 3])})
        wrong = np.int32 if array.dtype.kind == "f" else np.float32
        if name != "best.weights.values":  # of any type, made float32
            refused(folder, kind, header, arrays | {name: array.astype(wrong)})


def test_numbers_that_lead_out_of_arrays_are_refused(folder, kind):
    _, header, arrays = newest(folder)
    places = ("closed", "counts", "ends", "coordinates", "ids", "begin", "end", "starts")
    for name, array in arrays.items():
        if name.endswith(places):
            for value in (-1, 10**6) if name.split(".")[-1] != "counts" else (-1,):
                forged = array.copy()
                forged.flat[-1:] = value
                if array.size:
                    refused(folder, kind, header, arrays | {name: forged})


@pytest.mark.parametrize("value", [None, [], {}, "x", -1, 10**30, 1.5, float("nan"), [[[]]], True])
def test_headers_of_wrong_types_are_refused(folder, kind, value):
    _, header, arrays = newest(folder)
    progress, stopping = header["progress"], header["stopping"]
    if value != value:  # what JSON should not hold is not written, so it cannot come back
        with pytest.raises(HopefearError, match="without NaN"):
            storage.pack({"number": value}, {})
        return
    for key in ("number", "identity", "progress"):
        if value != {} or key != "identity":  # that is another run
            refused(folder, kind, header | {key: value}, arrays)
    for key in progress:
        refused(folder, kind, header | {"progress": progress | {key: value}}, arrays)
    if value is not None and value not in (-1, 10**30, 1.5):
        refused(folder, kind, header | {"stopping": stopping | {"best": value}}, arrays)
    if value != -1:
        refused(folder, kind, header | {"stopping": stopping | {"best_epoch": value}}, arrays)
    for key in progress["history"][0]:
        if key not in ("dev", "seconds", "kept_nnz", "objective", "evaluations"):
            history = [event | {key: value} for event in progress["history"]]
            if not (isinstance(value, int | float) and value is not True and key != "epoch"):
                forged = progress | {"history": history}
                refused(folder, kind, header | {"progress": forged}, arrays)


def test_a_missing_key_is_said(folder, kind):
    _, header, arrays = newest(folder)
    for key in ("number", "identity", "progress", "stopping"):
        refused(folder, kind, {k: v for k, v in header.items() if k != key}, arrays)
    for key in ("epoch", "before"):
        forged = {k: v for k, v in header["progress"].items() if k != key} | {"more": 1}
        refused(folder, kind, header | {"progress": forged}, arrays)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes and locks of POSIX")
@pytest.mark.parametrize("resume", [False, True])
def test_a_pipe_among_checkpoints_is_not_read_or_written(tmp_path, resume):
    os.mkfifo(tmp_path / "checkpoint.0")
    with pytest.raises(ModelError, match=r"checkpoint\.0 is no file; remove it"):
        go_on(tmp_path, "last", resume=resume)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes and locks of POSIX")
@pytest.mark.parametrize("resume", [False, True])
def test_one_run_at_a_time_in_a_folder(tmp_path, resume):
    def begin(event):
        with pytest.raises(HopefearError, match=r"another run saves its checkpoints there now"):
            go_on(tmp_path, "last", resume=resume)

    first = go_on(tmp_path, "last", on_event=[begin])
    assert len(first.fit.history) == 6
    assert len(go_on(tmp_path, "last").fit.history) == 6  # it has ended
    interrupt(tmp_path, "last")  # nor does one that failed keep it
    assert len(go_on(tmp_path, "last").fit.history) == 6
