"""Containers refuse every change; writes leave the old file or the new one, never less."""

from __future__ import annotations

import errno
import json
import os
import random
import stat
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
from hashlib import sha256

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load as safetensors_load
from safetensors.numpy import save as safetensors_save

from hopefear import storage
from hopefear.errors import HopefearError, ModelError
from hopefear.storage import atomic, load, pack, save, unpack, write_atomically

pytestmark = pytest.mark.interpreted

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]
PRELUDE = 52

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
finite_scalars = scalars.filter(lambda x: not isinstance(x, float) or abs(x) < float("inf"))
headers = st.dictionaries(
    st.text(),
    st.recursive(
        finite_scalars, lambda v: st.lists(v) | st.dictionaries(st.text(), v), max_leaves=8
    ),
    max_size=4,
)
some_arrays = st.dictionaries(
    st.text(min_size=1).filter(lambda name: name != "__metadata__"),
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, min_side=0, max_side=4))
    ),
    max_size=4,
)


def sample() -> bytes:
    rng = np.random.default_rng(3)
    arrays = {
        "w": rng.normal(size=17).astype(np.float32),
        "ids": np.arange(17, dtype=np.int64),
        "seen": rng.random(5) < 0.5,
    }
    return pack({"task": "classify", "labels": ["no", "yes"], "rate": 0.1}, arrays)


def forge(manifest: bytes, body: bytes, number: int = storage.FORMAT) -> bytes:
    """A container whose hashes are right, whatever it holds: what an attacker would write."""
    prelude = struct.pack("<8sIQ", storage.MAGIC, number, len(manifest))
    return prelude + sha256(prelude + manifest).digest() + manifest + body


def forge_arrays(body: bytes) -> bytes:
    section = {"length": len(body), "sha256": sha256(body).hexdigest()}
    manifest = {"format": 1, "kind": "model", "header": {}, "sections": {"arrays": section}}
    return forge(json.dumps(manifest).encode(), body)


def table(entries: object, data: bytes) -> bytes:
    text = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return len(text).to_bytes(8, "little") + text + data


# ---- the container ----------------------------------------------------------------------------


@given(headers, some_arrays)
@settings(max_examples=60, deadline=None)
def test_what_goes_in_comes_out(header, arrays):
    data = pack(header, arrays, kind="checkpoint")
    back, values = unpack(data, kind="checkpoint")
    assert back == header
    assert values.keys() == arrays.keys()
    for name, array in arrays.items():
        assert values[name].dtype == array.dtype
        assert values[name].shape == array.shape
        assert values[name].tobytes() == array.tobytes()
        assert not values[name].flags.writeable
        assert values[name].flags.aligned


def test_bytes_depend_on_content_alone():
    w, ids = np.arange(6, dtype=np.float64), np.arange(3, dtype=np.int32)
    data = pack({"a": 1, "b": {"d": 2, "c": 3}}, {"w": w, "ids": ids})
    assert data == pack({"b": {"c": 3, "d": 2}, "a": 1}, {"ids": ids, "w": w})
    strided = np.repeat(w, 2)[::2]
    assert data == pack({"a": 1, "b": {"d": 2, "c": 3}}, {"w": strided, "ids": ids.astype(">i4")})
    assert data != pack({"a": 1, "b": {"d": 2, "c": 4}}, {"w": w, "ids": ids})


def test_arrays_are_views_of_the_bytes_given():
    data = pack({}, {"w": np.zeros(250_000)})
    tracemalloc.start()
    try:
        _, arrays = unpack(data, kind="model")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < len(data) / 10
    assert arrays["w"].size == 250_000


def test_badly_aligned_bytes_are_copied_into_place():
    data = sample()
    shifted = memoryview(b"x" + data)[1:]
    _, arrays = unpack(shifted, kind="model")
    assert all(array.flags.aligned for array in arrays.values())
    assert arrays["ids"].tolist() == list(range(17))


def test_the_arrays_section_is_plain_safetensors():
    data = sample()
    (length,) = struct.unpack_from("<Q", data, 12)
    assert (PRELUDE + length) % 64 == 0
    theirs = safetensors_load(data[PRELUDE + length :])
    _, ours = unpack(data, kind="model")
    assert {name: array.tolist() for name, array in theirs.items()} == {
        name: array.tolist() for name, array in ours.items()
    }


def mutate(data: bytes, rng: random.Random) -> bytes:
    n = len(data)
    at = rng.randrange(n)
    # Half of the edits go to sizes, hashes and manifest: few bytes, and the most dangerous ones.
    if rng.random() < 0.5:
        at = rng.randrange(min(n, 400))
    piece = data[at : at + rng.randrange(1, 40)]
    match rng.randrange(8):
        case 0:
            return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        case 1:
            return data[:at] + rng.randbytes(1) + data[at + 1 :]
        case 2:
            return data[:at]
        case 3:
            return data[:at] + rng.randbytes(rng.randrange(1, 20)) + data[at:]
        case 4:
            size = rng.choice([0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1, n, n + 1])
            field = rng.choice([8, 12, PRELUDE, at])
            return data[:field] + size.to_bytes(8, "little") + data[field + 8 :]
        case 5:
            to = rng.randrange(n)
            return data[:to] + piece + data[to + len(piece) :]
        case 6:
            return data[:at] + data[at + len(piece) :]
        case _:
            other = rng.randrange(n)
            low, high = sorted((at, other))
            return data[:low] + data[high:] + data[low:high]


def test_two_thousand_mutations_are_refused():
    data, rng = sample(), random.Random(20)
    slowest = 0.0
    tried = 0
    while tried < 2000:
        changed = mutate(data, rng)
        if changed == data:
            continue
        tried += 1
        start = time.perf_counter()
        with pytest.raises(ModelError):
            unpack(changed, kind="model")
        slowest = max(slowest, time.perf_counter() - start)
    assert slowest < 1.0


def test_every_bit_and_every_length_matters():
    data = sample()
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 1 << at % 8
        with pytest.raises(ModelError):
            unpack(flipped, kind="model")
        with pytest.raises(ModelError):
            unpack(data[:at], kind="model")
    with pytest.raises(ModelError, match="1 bytes follow its end"):
        unpack(data + b"\0", kind="model")


def test_a_size_field_cannot_make_it_allocate():
    data = bytearray(pack({}, {"w": np.zeros(100_000)}))
    data[12:20] = (2**62).to_bytes(8, "little")
    tracemalloc.start()
    try:
        with pytest.raises(ModelError, match="truncated or damaged"):
            unpack(data, kind="model")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * len(data)


ENTRY = {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}
FORGED = {
    "offsets past the end": table({"w": ENTRY}, bytes(8)),
    "a hole before": table({"w": {**ENTRY, "data_offsets": [8, 24]}}, bytes(24)),
    "overlap": table({"v": ENTRY, "w": {**ENTRY, "data_offsets": [8, 24]}}, bytes(24)),
    "bytes nobody owns": table({"w": ENTRY}, bytes(24)),
    "a shape that does not fit": table({"w": {**ENTRY, "shape": [3]}}, bytes(16)),
    "negative sides": table({"w": {**ENTRY, "shape": [-1, -2]}}, bytes(16)),
    "a shape that overflows": table({"w": {**ENTRY, "shape": [2**62, 4, 2]}}, bytes(16)),
    "too many dimensions": table({"w": {**ENTRY, "shape": [2] + [1] * 99}}, bytes(16)),
    "a side past 64 bits": table(
        {"w": {**ENTRY, "shape": [2**70, 0], "data_offsets": [0, 0]}}, b""
    ),
    "fractional offsets": table({"w": {**ENTRY, "data_offsets": [0.0, 16.0]}}, bytes(16)),
    "an object dtype": table({"w": {**ENTRY, "dtype": "O"}}, bytes(16)),
    "a list for a table": table([1], b""),
    "an entry that is a number": table({"w": 3}, b""),
    "no JSON": table(b"\xff{", b""),
    "deep JSON": table(b"[" * 200_000, b""),
    "a table longer than the file": (2**63).to_bytes(8, "little") + b"{}",
    "nothing": b"",
    "booleans that are neither": table(
        {"b": {"dtype": "BOOL", "shape": [2], "data_offsets": [0, 2]}}, b"\x01\x02"
    ),
}


@pytest.mark.parametrize("body", FORGED.values(), ids=FORGED.keys())
def test_forged_arrays_with_right_hashes_are_refused(body):
    with pytest.raises(ModelError, match="layout of its arrays"):
        unpack(forge_arrays(body), kind="model")


def test_forging_itself_is_sound():
    body = safetensors_save({"w": np.ones(2)})
    assert unpack(forge_arrays(body), kind="model")[1]["w"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "manifest",
    [b"", b"[]", b"{}", b"[" * 200_000, b'{"format":1,"kind":"model","sections":{}}', b"9" * 9000],
)
def test_forged_manifests_with_right_hashes_are_refused(manifest):
    with pytest.raises(ModelError, match="its manifest"):
        unpack(forge(manifest, b""), kind="model")


def test_messages_say_what_is_wrong():
    data = sample()
    cases = {
        b"": "is empty",
        b"1 3:0.5 7:1\n": "is not a hopefear file",
        data[:5]: "truncated: it ends after 5 bytes",
        data[:-9]: rf"truncated: {len(data) - 9:,} of {len(data):,} bytes",
        forge(b"{}", b"", number=7): r"newer version \(format 7, this one reads up to 1\); up",
        data[:8] + b"\x02" + data[9:]: r"newer version \(format 2, .*unless it is damaged",
    }
    for changed, message in cases.items():
        with pytest.raises(ModelError, match=message):
            unpack(changed, kind="model")
    with pytest.raises(ModelError, match="the data is a model, not a checkpoint"):
        unpack(data, kind="checkpoint")


def test_what_a_file_cannot_hold_is_refused_when_saving(tmp_path):
    path = tmp_path / "m"
    refused = [
        ({"x": float("nan")}, {}, "plain JSON"),
        ({"x": {1, 2}}, {}, "plain JSON"),
        ({}, {"w": np.zeros(2, complex)}, "array w is complex128"),
        ({}, {"w": np.array([None])}, "array w is object"),
        ({}, {"w": np.array(["a"])}, "array w is <U1"),
        ({}, {"__metadata__": np.zeros(2)}, "__metadata__"),
    ]
    for header, arrays, message in refused:
        with pytest.raises(HopefearError, match=message):
            save(path, "model", header, arrays)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_non_finite_weights_are_refused_with_their_place(tmp_path, bad, dtype):
    w = np.zeros(9, dtype)
    w[4] = bad
    with pytest.raises(HopefearError, match=r"array w holds .* at 4"):
        save(tmp_path / "m", "model", {}, {"w": w}, finite=["w"])
    assert os.listdir(tmp_path) == []
    _, arrays = unpack(pack({}, {"w": w}), kind="model")
    assert np.array_equal(arrays["w"], w, equal_nan=True)


def test_large_finite_weights_are_not_taken_for_infinite():
    w = np.full(3, np.finfo(np.float64).max)
    assert pack({}, {"w": w, "n": np.arange(3)}, finite=["w", "n"])


# ---- files ------------------------------------------------------------------------------------


def test_load_names_the_file(tmp_path):
    path = tmp_path / "news.model"
    save(path, "model", {"task": "classify"}, {"w": np.ones(3)})
    header, arrays = load(path, "model")
    assert header == {"task": "classify"}
    assert arrays["w"].tolist() == [1, 1, 1]
    with pytest.raises(ModelError, match=r"news\.model is a model, not a checkpoint"):
        load(path, "checkpoint")
    with pytest.raises(ModelError, match=r"cannot read .*missing: No such file"):
        load(tmp_path / "missing", "model")
    with pytest.raises(ModelError, match=r"cannot read .*: Is a directory"):
        load(tmp_path, "model")


def test_a_huge_file_of_another_sort_is_not_read(tmp_path):
    path = tmp_path / "huge"
    path.touch()
    os.truncate(path, 2**33)
    tracemalloc.start()
    try:
        with pytest.raises(ModelError, match="not a hopefear file"):
            load(path, "model")
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_loading_holds_the_file_once(tmp_path):
    path = tmp_path / "m"
    save(path, "model", {}, {"w": np.ones(500_000)})
    tracemalloc.start()
    try:
        load(path, "model")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.1 * path.stat().st_size


def test_permissions_and_links_survive(tmp_path):
    path, link = tmp_path / "real", tmp_path / "link"
    before = os.umask(0o027)
    try:
        write_atomically(path, b"1")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
    finally:
        os.umask(before)
    path.chmod(0o604)
    link.symlink_to(path)
    write_atomically(link, b"2")
    assert link.is_symlink()
    assert path.read_bytes() == b"2"
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_devices_are_written_to_and_stay(tmp_path):
    write_atomically("/dev/null", b"gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, [b"a", b"b"])
    reader.join(5)
    assert got == [b"ab"]


def test_missing_folder_and_folder_as_target(tmp_path):
    with pytest.raises(HopefearError, match=r"cannot write .*no/m: No such file or directory"):
        write_atomically(tmp_path / "no" / "m", b"x")
    with pytest.raises(HopefearError, match="Is a directory"):
        write_atomically(tmp_path, b"x")


@pytest.mark.parametrize("call", ["open", "fsync", "chmod", "replace"])
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=repr
)
def test_any_failing_step_leaves_the_old_file(tmp_path, monkeypatch, call, error):
    path = tmp_path / "m"
    path.write_bytes(b"old")

    def fail(*args, **kwargs):
        raise error

    expected = HopefearError if isinstance(error, OSError) else KeyboardInterrupt
    with monkeypatch.context() as patch:
        patch.setattr(atomic.os, call, fail)
        with pytest.raises(expected) as raised:
            write_atomically(path, b"new" * 1000)
    if call == "fsync" and expected is HopefearError:
        assert str(path) in str(raised.value)
        assert "at least 3,000 bytes" in str(raised.value)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m"]


def test_a_producer_that_fails_keeps_its_own_error(tmp_path):
    path = tmp_path / "m"
    path.write_bytes(b"old")

    def produce(error):
        yield b"x" * 100_000
        raise error

    for error in (ValueError("bad line"), KeyboardInterrupt(), OSError(errno.EIO, "input died")):
        with pytest.raises(type(error)) as raised:
            write_atomically(path, produce(error))
        assert raised.value is error
        assert path.read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["m"]


def run_child(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
    )


SAVE = """
import resource, sys
import numpy as np
from hopefear.errors import HopefearError
from hopefear.storage import save
limit = int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
try:
    save(sys.argv[1], "model", {}, {"w": np.ones(1_000_000)})
except HopefearError as error:
    print(error)
"""


def test_no_room_for_the_file(tmp_path):
    path = tmp_path / "m"
    save(path, "model", {"n": 1}, {})
    answer = run_child(SAVE, path, 1_000_000)
    assert answer.returncode == 0, answer.stderr
    assert f"cannot write {path}: File too large" in answer.stdout
    assert "at least 8,000," in answer.stdout
    assert load(path, "model")[0] == {"n": 1}
    assert os.listdir(tmp_path) == ["m"]


def test_full_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(mount, capture_output=True).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("needs the right to mount a small tmpfs; test_no_room_for_the_file covers it")
    try:
        save(disk / "m", "model", {"n": 1}, {})
        answer = run_child(SAVE, disk / "m", 0)
        assert "No space left on device (it needs at least 8,000," in answer.stdout, answer.stderr
        assert load(disk / "m", "model")[0] == {"n": 1}
        assert os.listdir(disk) == ["m"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_read_only_folder(tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir()
    path = folder / "m"
    path.write_bytes(b"old")
    # Root ignores modes, so the child gives root up before it tries.
    code = """
import os, sys
from hopefear.errors import HopefearError
from hopefear.storage import write_atomically
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    write_atomically(sys.argv[1], b"new")
except HopefearError as error:
    print(error)
"""
    folder.chmod(0o555)
    above = [parent for parent in tmp_path.parents if parent.stat().st_uid == os.getuid()]
    modes = {parent: stat.S_IMODE(parent.stat().st_mode) for parent in (tmp_path, *above)}
    opened = {parent: mode for parent, mode in modes.items() if not mode & 0o001}
    try:
        if os.getuid() == 0:
            for parent, mode in opened.items():
                parent.chmod(mode | 0o001)
        answer = run_child(code, path)
    finally:
        folder.chmod(0o755)
        for parent, mode in opened.items():
            parent.chmod(mode)
    assert answer.stdout == f"cannot write {path}: Permission denied\n", answer.stderr
    assert path.read_bytes() == b"old"
    assert os.listdir(folder) == ["m"]


def test_killed_writer_leaves_a_whole_file(tmp_path):
    path = tmp_path / "m"
    save(path, "model", {"round": -1}, {"w": np.zeros(10_000)})
    code = """
import sys
import numpy as np
from hopefear.storage import save
print("ready", flush=True)
for i in range(100_000):
    save(sys.argv[1], "model", {"round": i}, {"w": np.full(10_000 + i % 7, float(i))})
"""
    rng = random.Random(4)
    for _ in range(4):
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True
        )
        with child:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            time.sleep(rng.uniform(0.01, 0.1))
            child.kill()
        header, arrays = load(path, "model")
        assert np.all(arrays["w"] == max(header["round"], 0))


def test_two_writers_one_path(tmp_path):
    path = tmp_path / "m"
    save(path, "model", {"who": 0}, {"w": np.zeros(50_000)})
    seen = set()

    def write(who):
        for _ in range(15):
            save(path, "model", {"who": who}, {"w": np.full(50_000, float(who))})

    writers = [threading.Thread(target=write, args=(who,)) for who in (1, 2)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        header, arrays = load(path, "model")
        assert np.all(arrays["w"] == header["who"])
        seen.add(header["who"])
    for writer in writers:
        writer.join()
    assert load(path, "model")[0]["who"] in (1, 2)
    assert seen <= {0, 1, 2}
    assert os.listdir(tmp_path) == ["m"]
