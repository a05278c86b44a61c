"""Feature maps: names, a trip through a model file, and no trust in what comes back."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hopefear.core.arrays import Strings
from hopefear.errors import HopefearError, ModelError
from hopefear.features import (
    FeatureMap,
    HashedFeatures,
    IdentityFeatures,
    NGramFeatures,
    TableFeatures,
    from_parts,
)

pytestmark = pytest.mark.interpreted

MAPS: dict[str, FeatureMap] = {
    "identity": IdentityFeatures(5),
    "named": IdentityFeatures(5, ["good", "naïve"]),
    "table": TableFeatures(np.array([3, 9, 2**62])),
    "ngrams": NGramFeatures(
        3, Strings.pack(["not", "só"]), np.array([-1, -1, 0, 2]), np.array([0, 1, 1, 0])
    ),
    "hashed": HashedFeatures(2, 10, 0.25),
}
NAMES = {
    "identity": ["0", "1", "2"],
    "named": ["0", "good", "naïve"],
    "table": ["3", "9", str(2**62)],
    "ngrams": ["not", "só", "not só"],
    "hashed": ["#0", "#1", "#2"],
}


@pytest.mark.parametrize("kind", MAPS)
def test_round_trip(kind: str) -> None:
    first = MAPS[kind]
    assert isinstance(first, FeatureMap)
    header = json.loads(json.dumps(first.to_header()))
    second = from_parts(header, first.arrays())
    assert type(second) is type(first)
    assert second.size == first.size
    assert second.names(range(3)) == first.names(range(3)) == NAMES[kind]
    assert second.to_header() == first.to_header()
    assert not any(a.flags.writeable for a in second.arrays().values())
    for column in (-1, first.size):
        with pytest.raises(HopefearError, match="does not exist"):
            second.name(column)


def test_ids_to_columns_and_back() -> None:
    for kind in ("identity", "table"):
        columns = np.arange(3, dtype=np.int32)
        ids = MAPS[kind].ids(columns)
        assert np.array_equal(MAPS[kind].columns(ids), columns)
        assert MAPS[kind].columns(np.array([2**63 - 1])).tolist() == [-1]
    for kind in ("ngrams", "hashed"):
        with pytest.raises(HopefearError, match="label<TAB>text"):
            MAPS[kind].columns(np.array([1]))


def parts(kind: str) -> tuple[dict, dict]:
    return MAPS[kind].to_header(), dict(MAPS[kind].arrays())


def ints(*values: int, dtype: type = np.int32) -> np.ndarray:
    return np.array(values, dtype)


BROKEN = {
    "no kind": ("table", {"kind": None}, {}),
    "unknown kind": ("table", {"kind": "pickle"}, {}),
    "kind of another type": ("table", {"kind": ["table"]}, {}),
    "size too large": ("identity", {"size": 2**40}, {}),
    "size negative": ("identity", {"size": -1}, {}),
    "size a float": ("identity", {"size": 5.0}, {}),
    "size true": ("identity", {"size": True}, {}),
    "named missing": ("identity", {"named": None}, {}),
    "array too many": ("identity", {}, {"x": ints(1)}),
    "names missing": ("identity", {"named": True}, {}),
    "table of another size": ("table", {"size": 4}, {}),
    "table not rising": ("table", {}, {"ids": ints(3, 2, 9, dtype=np.int64)}),
    "table negative": ("table", {}, {"ids": ints(-3, 2, 9, dtype=np.int64)}),
    "table of another type": ("table", {}, {"ids": ints(1, 2, 3)}),
    "table of two dimensions": ("table", {}, {"ids": np.zeros((3, 1), np.int64)}),
    "offsets backwards": ("ngrams", {}, {"tokens_offsets": ints(0, 9, 6, dtype=np.int64)}),
    "offsets beyond": ("ngrams", {}, {"tokens_offsets": ints(0, 3, 60, dtype=np.int64)}),
    "offsets empty": ("ngrams", {}, {"tokens_offsets": ints(dtype=np.int64)}),
    "token beyond": ("ngrams", {}, {"token": ints(0, 1, 2, 0)}),
    "token negative": ("ngrams", {}, {"token": ints(0, 1, -1, 0)}),
    "cycle": ("ngrams", {}, {"parent": ints(-1, -1, 3, 2)}),
    "own parent": ("ngrams", {}, {"parent": ints(-1, -1, 2, 2)}),
    "parent below": ("ngrams", {}, {"parent": ints(-1, -1, -2, 2)}),
    "too long": ("ngrams", {"order": 2}, {}),
    "order": ("ngrams", {"order": 99}, {}),
    "sizes differ": ("ngrams", {}, {"parent": ints(-1, -1, 0)}),
    "bits": ("hashed", {"bits": 63}, {}),
    "collisions": ("hashed", {"collisions": "many"}, {}),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_parts_are_refused(case: str) -> None:
    kind, new_header, new_arrays = BROKEN[case]
    header, arrays = parts(kind)
    with pytest.raises(ModelError, match="feature map"):
        from_parts(header | new_header, arrays | new_arrays)


def test_a_header_must_be_an_object() -> None:
    for header in (None, [], "identity"):
        with pytest.raises(ModelError, match="JSON object"):
            from_parts(header, {})  # type: ignore[arg-type]


def test_names_file(tmp_path) -> None:
    from hopefear.data.sidecars import read_names

    path = tmp_path / "names"
    path.write_bytes("a b\r\n\nü".encode())
    assert read_names(path, 6).names(range(6)) == ["0", "a b", "", "ü", "4", "5"]
    assert read_names(path, 2).names(range(2)) == ["0", "a b"]
    path.write_bytes(b"a\n\xff\n")
    with pytest.raises(HopefearError, match="names:2: expected UTF-8"):
        read_names(path, 6)
