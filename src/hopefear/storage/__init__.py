"""Atomic writes, and the container of models and checkpoints: the bottom layer."""

from hopefear.storage.atomic import atomic_file, write_atomically
from hopefear.storage.container import FORMAT, MAGIC, load, pack, save, unpack

__all__ = ["FORMAT", "MAGIC", "atomic_file", "load", "pack", "save", "unpack", "write_atomically"]
