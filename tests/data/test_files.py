"""Opening files: compression, damage, marks, blocks of whole lines, atomic writes."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import tracemalloc
from pathlib import Path

import pytest
import zstandard

from hopefear.data.files import read_blocks
from hopefear.data.sources import open_bytes
from hopefear.errors import HopefearError, InputError
from hopefear.storage import atomic_file

TEXT = b"".join(b"1 %d:1 %d:2\n" % (i, i + 7) for i in range(3000))
PACK = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress, "": bytes}
PACKED = {suffix: pack for suffix, pack in PACK.items() if suffix} | {".zst": zstandard.compress}
# Padding that the format allows behind a member, and a frame of it that holds no data.
PADDING = {".gz": b"\0" * 5, ".xz": b"\0" * 8, ".zst": b"\x50\x2a\x4d\x18\3\0\0\0abc"}


def joined(path: str | Path, size: int = 1000) -> bytes:
    blocks = list(read_blocks(path, size))
    line = 1
    for block, first in blocks:
        assert first == line
        assert block.endswith(b"\n")
        line += block.count(b"\n")
    return b"".join(block for block, _ in blocks)


@pytest.mark.parametrize("suffix", PACK)
def test_compressed_files_read_alike(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.svm{suffix}"
    path.write_bytes(PACK[suffix](TEXT))
    assert joined(path) == TEXT
    hidden = tmp_path / "named-otherwise"
    hidden.write_bytes(PACK[suffix](TEXT))
    assert joined(hidden) == TEXT


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_damage_names_the_file(suffix: str, tmp_path: Path) -> None:
    packed = PACK[suffix](TEXT)
    path = tmp_path / f"a.svm{suffix}"
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(HopefearError, match=r"a\.svm.*cut short"):
        joined(path)
    path.write_bytes(packed[:40] + b"\xff" * 60 + packed[100:])
    with pytest.raises(HopefearError, match=r"a\.svm"):
        joined(path)
    for wrong in (b"", b"1 1:1\n"):
        path.write_bytes(wrong)
        with pytest.raises(HopefearError, match="as the name says"):
            joined(path)


def test_zstandard_that_is_missing_is_named(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "a.svm.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd\x00\x00")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(HopefearError, match=r"install hopefear\[zstd\]"):
        open_bytes(path)


def test_zstandard(tmp_path: Path) -> None:
    path = tmp_path / "a.svm.zst"
    packed = zstandard.compress(TEXT) + zstandard.compress(TEXT)
    path.write_bytes(packed)
    assert joined(path) == TEXT + TEXT
    path.write_bytes(packed[:-20])
    with pytest.raises(HopefearError, match="cut short"):
        joined(path)


@pytest.mark.parametrize("suffix", PACKED)
def test_no_member_of_a_compressed_file_is_lost(suffix: str, tmp_path: Path) -> None:
    members = [PACKED[suffix](text) for text in (TEXT, b"", TEXT[:1200], b"1 1:1\n")]
    read = TEXT + TEXT[:1200] + b"1 1:1\n"
    path = tmp_path / f"a.svm{suffix}"
    for padding in (b"", PADDING.get(suffix, b"")):
        path.write_bytes(padding.join(members) + padding)
        assert joined(path) == read
    if suffix == ".zst":  # as parallel packers write it
        path.write_bytes(padding + padding.join(members))
        assert joined(path) == read


@pytest.mark.parametrize("suffix", PACKED)
def test_what_stands_behind_a_member_is_never_passed_over(suffix: str, tmp_path: Path) -> None:
    first, second = PACKED[suffix](TEXT), PACKED[suffix](TEXT[:1200])
    damaged = second[:20] + bytes(255 - c for c in second[20:40]) + second[40:]
    wrong = [damaged, second[1:], second[:5], second[: len(second) // 2], b"more", b"\0more"]
    if suffix == ".xz":  # padding comes in fours
        wrong += [b"\0" * 5, b"\0\0" + second, b"\0" * 4096 + b"\0" * 3]
    path = tmp_path / f"a.svm{suffix}"
    for behind in wrong:
        path.write_bytes(first + behind)
        with pytest.raises(HopefearError, match=r"a\.svm.*(damaged|cut short)"):
            joined(path)


def test_zeros_that_were_packed_are_not_unpacked_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.zst"
    packer = zstandard.ZstdCompressor().compressobj()
    zeros = bytes(1 << 24)
    path.write_bytes(b"".join(packer.compress(zeros) for _ in range(64)) + packer.flush())
    tracemalloc.start()
    with open_bytes(path) as stream:
        for _ in range(100):
            assert not any(stream.read1(1 << 20))
        assert tracemalloc.get_traced_memory()[1] < 1 << 28
    tracemalloc.stop()


@pytest.mark.parametrize("what", ["missing", "folder", "nul"])
def test_files_that_cannot_be_opened(what: str, tmp_path: Path) -> None:
    path = {"missing": tmp_path / "no.svm", "folder": tmp_path, "nul": "a\0b"}[what]
    with pytest.raises(HopefearError, match="cannot be read"):
        open_bytes(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_no_permission(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.touch(0)
    with pytest.raises(HopefearError, match="Permission denied"):
        open_bytes(path)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (TEXT, gzip.compress(TEXT)):
        stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)))
        monkeypatch.setattr(sys, "stdin", stdin)
        assert joined("-") == TEXT
        assert not stdin.closed


@pytest.mark.parametrize("size", [1, 2, 3, 5, 64])
def test_marks_ends_and_long_lines(size: int, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\xef\xbb\xbfa\r\n\nlonger than a block\nlast")
    assert joined(path, size) == b"a\r\n\nlonger than a block\nlast\n"
    path.write_bytes(b"")
    assert joined(path, size) == b""


def test_long_lines_have_a_limit(tmp_path: Path) -> None:
    from hopefear.data.files import fill_blocks

    path = tmp_path / "a"
    path.write_bytes(b"x\n" + b"y" * 1000)
    with pytest.raises(InputError, match=r"a:2: expected lines of at most 64 bytes"):
        list(fill_blocks(path, 16, max_line=64))


def write_half(path: Path) -> None:
    with atomic_file(path) as out:
        out.write(b"new")
        raise RuntimeError("stop")


def test_atomic_write_leaves_nothing_half_done(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError, match="stop"):
        write_half(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out"]
    with pytest.raises(HopefearError, match="cannot write"):
        write_half(tmp_path / "no folder" / "out")
