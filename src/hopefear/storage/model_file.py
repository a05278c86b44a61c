"""What every model can do with its file: write it, read it back, from a path or from memory."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from hopefear.storage.container import load, pack, save, unpack


class ModelFile:
    """A model that is kept as a header and arrays.

    Subclasses write ``_header``, ``_arrays`` and ``from_file_parts``, which trusts nothing.
    """

    def to_bytes(self) -> bytes:
        """The model file, in memory."""
        return pack(self._header(), self._arrays(), kind="model", finite=self._finite())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file, atomically; the same model gives the same bytes."""
        save(path, "model", self._header(), self._arrays(), finite=self._finite())

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> Any:
        """The model that :meth:`to_bytes` gave."""
        return cls.from_file_parts(*unpack(data, kind="model"))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Any:
        """Read a model file; any changed byte is refused."""
        return cls.from_file_parts(*load(path, "model"))

    @classmethod
    def from_file_parts(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
        """A model from what its file holds; nothing in it is trusted."""
        raise NotImplementedError

    def _header(self) -> dict[str, Any]:
        raise NotImplementedError

    def _arrays(self) -> dict[str, np.ndarray]:
        raise NotImplementedError

    def _finite(self) -> list[str]:
        return [name for name, array in self._arrays().items() if array.dtype.kind == "f"]
