"""Caches of sentences: labelled tokens that are read in chunks, as attributes on disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hopefear.data.cache import Spool, write_cache
from hopefear.data.sequences import Column, TokenRows
from hopefear.features.templates.program import renumber


class SentenceCache:
    """Encodes sentences chunk by chunk, and writes a cache at the end.

    Memory is that of a piece and of the feature map. The dataset is the one that the whole text
    would give in memory, byte for byte.

    Parameters
    ----------
    cache_path : str or path
        The cache.
    templates : StreamedTemplates
        What attributes are made of.
    """

    def __init__(self, cache_path: str | os.PathLike[str], templates: Any) -> None:
        self._path, self._templates = os.fspath(cache_path), templates
        self._spool = Spool(os.path.dirname(os.path.abspath(self._path)))
        self._labels: dict[str, int] = {}

    def __enter__(self) -> SentenceCache:
        return self

    def __exit__(self, *error: object) -> None:
        self._spool.__exit__(*error)

    @property
    def n_sentences(self) -> int:
        return self._spool.totals.get("weights", 0)

    def add(self, sentences: Any, gold: Column) -> None:
        """Some more sentences, and a label for each of their tokens."""
        attributes = self._templates.encode(sentences)
        numbers = [self._labels.setdefault(name, len(self._labels)) for name in gold.strings]
        codes = np.array(numbers, np.int32)[gold.ids]
        weights = np.ones(len(sentences.starts) - 1, np.float32)
        arrays = (np.asarray(sentences.starts, np.int64), *attributes, codes, weights)
        self._spool.add(**dict(zip(TokenRows._fields, arrays, strict=True)))

    def write(
        self,
        header: Mapping[str, Any],
        order: Callable[[Sequence[str]], Sequence[str]] = lambda names: names,
    ) -> None:
        """Write the cache.

        Parameters
        ----------
        header : mapping
            Its ``source``, ``options`` and ``facts``.
        order : callable
            The labels in the order of their final numbers, given them in that of appearance.
        """
        features, numbers = self._templates.finish()
        labels = list(order(list(self._labels)))
        code_of = {name: code for code, name in enumerate(labels)}
        codes = np.array([code_of[name] for name in self._labels], np.int32)

        def final() -> Any:
            for piece in self._spool.chunks():
                piece["labels"] = codes[piece["labels"]]
                for new, edge in zip(numbers or (None, None), ("", "edge_"), strict=True):
                    if new is not None:
                        _renumber(piece, new, edge)
                yield piece

        complete = {**header, "labels": labels}
        write_cache(self._path, "sentences", final(), features, complete)


def _renumber(piece: dict[str, np.ndarray], new: np.ndarray, edge: str) -> None:
    """Give the attributes of a piece their final numbers; those without one are left out."""
    names = [f"{edge}{name}" for name in ("indptr", "indices", "values")]
    indptr, indices, values = (np.array(piece[name]) for name in names)
    if not indices.size:
        return
    used = renumber(new, indptr, indices, values)
    arrays = indptr, indices[:used], values[:used]
    piece.update(zip(names, arrays, strict=True))
