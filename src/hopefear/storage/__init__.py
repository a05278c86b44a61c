"""Atomic writes, and the container of models and checkpoints: the bottom layer."""

from hopefear.storage.atomic import (
    atomic_file,
    check_writable,
    is_beside,
    read_small,
    write_atomically,
)
from hopefear.storage.container import (
    FORMAT,
    MAGIC,
    array_of,
    check_plain,
    field_of,
    load,
    names_of,
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
    "check_plain",
    "check_writable",
    "field_of",
    "is_beside",
    "load",
    "names_of",
    "pack",
    "read_small",
    "save",
    "unpack",
    "untrusted",
    "write_atomically",
]
