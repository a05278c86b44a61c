"""Atomic writes, and the container of models and checkpoints: the bottom layer."""

from hopefear.storage.atomic import atomic_file, write_atomically
from hopefear.storage.container import (
    FORMAT,
    MAGIC,
    array_of,
    load,
    pack,
    save,
    unpack,
    untrusted,
)

__all__ = [
    "FORMAT",
    "MAGIC",
    "array_of",
    "atomic_file",
    "load",
    "pack",
    "save",
    "unpack",
    "untrusted",
    "write_atomically",
]
