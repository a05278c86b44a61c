"""Many short strings in two arrays: their bytes one after another, and where each begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from hopefear.errors import ModelError
from hopefear.features.checks import frozen, vector


class Strings(NamedTuple):
    """``text[offsets[i]:offsets[i + 1]]`` is string i, in UTF-8.

    Examples
    --------
    >>> Strings.pack(["hope", "fear"]).get(1)
    'fear'
    """

    text: np.ndarray  # uint8
    offsets: np.ndarray  # int64[n + 1]

    @classmethod
    def pack(cls, strings: Iterable[str]) -> Strings:
        pieces = [s.encode("utf-8", "replace") for s in strings]
        offsets = np.zeros(len(pieces) + 1, np.int64)
        np.cumsum([len(p) for p in pieces], out=offsets[1:])
        return cls(frozen(np.frombuffer(b"".join(pieces), np.uint8)), frozen(offsets))

    @classmethod
    def from_parts(cls, arrays: Mapping[str, np.ndarray], prefix: str) -> Strings:
        text = vector(arrays, f"{prefix}_text", np.uint8)
        offsets = vector(arrays, f"{prefix}_offsets", np.int64)
        if offsets.size == 0 or offsets[0] != 0 or offsets[-1] != text.size:
            raise ModelError(f"feature map: {prefix!r} offsets do not span their text")
        if (np.diff(offsets) < 0).any():
            raise ModelError(f"feature map: {prefix!r} offsets go backwards")
        return cls(text, offsets)

    @property
    def size(self) -> int:
        return len(self.offsets) - 1

    def get(self, i: int) -> str:
        piece = self.text[self.offsets[i] : self.offsets[i + 1]]
        return piece.tobytes().decode("utf-8", "replace")

    def arrays(self, prefix: str) -> dict[str, np.ndarray]:
        return {f"{prefix}_text": self.text, f"{prefix}_offsets": self.offsets}
