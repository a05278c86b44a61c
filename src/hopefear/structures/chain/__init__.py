"""Label chains: the structure, its parts, its two linear maps and its searches."""

from hopefear.structures.chain.chain import Chain

__all__ = ["Chain"]
