"""Caches of trees: treebanks of any size, read once, piece by piece, as arrays on disk.

The arrays are those that :func:`hopefear.tasks.parse.task.dataset` makes of the whole treebank,
byte for byte. What must be known of all trees before the first can be encoded (which columns hold
anything, whether arcs cross, how far they reach, which arcs a pruner leaves) is found in passes
over a file of numbers next to the cache.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hopefear.core.memory import trim
from hopefear.data.cache import Spool, further_arrays, open_cache, write_cache
from hopefear.data.sequences import Column, ColumnTable, Sentences
from hopefear.data.tree_rows import DTYPES, TreeDataset, TreeRows
from hopefear.data.treebank import ALIASES, COLUMNS, MISSING, Treebank, in_words, projectivise
from hopefear.errors import HopefearError
from hopefear.features.arcs.arc_map import ArcMap
from hopefear.features.arcs.templates import ArcTemplates
from hopefear.tasks.parse.model import encoded
from hopefear.tasks.parse.pruning import HEADS, Pruner
from hopefear.tasks.parse.task import (
    bits_for,
    check_choice,
    columns_among,
    kind_of,
    relations_of,
    row_blocks,
    templates_of,
)

KIND = "trees"
_TEXTS = tuple(name for name in COLUMNS if name != "head")
_PRUNER = "pruner."


class TreeCache:
    """Takes a treebank piece by piece, and writes a cache when all of it has come.

    Memory is that of a piece, of the distinct texts of every column, and of the pruner.

    Parameters
    ----------
    cache_path : str or path
        The cache.
    """

    def __init__(self, cache_path: str | os.PathLike[str]) -> None:
        self._path = Path(cache_path)
        self._folder = self._path.absolute().parent
        self._spool = Spool(self._folder)
        self._strings: dict[str, dict[str, int]] = {name: {} for name in _TEXTS}
        self._used: dict[str, np.ndarray] = {name: np.empty(0, np.int64) for name in _TEXTS}
        self._n = self._crossing = self._several = self._rootless = 0
        self._source = "memory"

    def __enter__(self) -> TreeCache:
        return self

    def __exit__(self, *error: object) -> None:
        self._spool.__exit__(*error)

    def add(self, bank: Treebank) -> None:
        """Some more trees."""
        self._source = bank.source
        ids = {}
        for name in _TEXTS:
            column = bank.relations if name == "deprel" else bank.sentences.columns[name]
            table = self._strings[name]
            numbers = [table.setdefault(text, len(table)) for text in column.strings]
            ids[name] = np.array(numbers, np.int32)[column.ids]
            self._used[name] = np.union1d(self._used[name], ids[name])
        self._n += len(bank)
        self._crossing += int((~bank.projective).sum())
        self._several += int((bank.roots > 1).sum())
        self._rootless += int((bank.roots < 1).sum())
        self._spool.add(starts=np.asarray(bank.starts, np.int64), head=bank.heads, **ids)

    def write(
        self,
        header: Mapping[str, Any],
        order: int | None = None,
        tree: str = "auto",
        *,
        features: str | ArcTemplates = "standard",
        tags: str | None = None,
        labelled: bool = True,
        heads: int = HEADS,
        plain_bits: int | None = None,
        row_bits: int | None = None,
        dictionary: bool = False,
        seed: int = 1,
        n_jobs: int = 1,
    ) -> None:
        """Write the cache.

        Parameters
        ----------
        header : mapping
            Its ``source``, ``options`` and ``facts``; facts of the treebank are added to these.
        order, tree, features, tags, labelled, heads, plain_bits, row_bits, dictionary, seed, n_jobs
            As of :func:`hopefear.tasks.parse.task.dataset`.
        """
        n, words = self._n, self._spool.totals.get("head", 0)
        if n == 0:
            raise HopefearError(f"{self._source}: there are no sentences to learn from")
        order = 2 if order is None else order
        check_choice(order, tree, heads)
        single = self._several == self._rootless == 0
        kind = kind_of(order, tree, self._crossing / n, single)
        flat = kind.projective and self._crossing > 0
        labels = relations_of(self._names("deprel")) if labelled else ()
        columns = columns_among(self._filled, self._known(tags))
        bits = plain_bits or bits_for(words, order), row_bits or bits_for(words, 1) - 2
        whole = ((bank.sentences, bank.heads) for bank, _ in self._banks(flat, whole=True))
        mapping = ArcMap.fit_parts(whole, templates_of(features), columns, *bits)
        if dictionary:
            parts = ((data.rows, gold) for data, gold, _ in self._encoded(flat, mapping, (), kind))
            mapping = mapping.with_dictionary(parts, order, row_blocks(labels))
        totals, lifted = dict.fromkeys(TreeRows._fields, 0), 0
        for data, _, count in self._encoded(flat, mapping, (), kind):
            lifted += count
            for name, array in data.rows._asdict().items():
                totals[name] += array.size
        room = {
            name: (dtype, totals[name])
            for name, dtype in zip(TreeRows._fields, DTYPES, strict=True)
        }
        about = {"labels": list(labels), "kind": list(kind), "lifted": lifted}
        facts = {
            **header.get("facts", {}),
            "described": in_words(n, words, self._crossing, self._several),
            "crossing": self._crossing,
            "pruner": None,
        }
        pruner = None
        if heads > 0:
            pruner = self._pruner(flat, mapping, kind, room, header, heads, seed)
            facts["pruner"] = pruner.to_header()
        pieces = self._pieces(flat, mapping, labels, kind, pruner, n_jobs)
        own = {**header, "trees": about, "facts": facts}
        further = {} if pruner is None else pruner.arrays()
        write_cache(self._path, KIND, pieces, room, mapping, own, further=further)

    def _pruner(
        self,
        flat: bool,
        features: ArcMap,
        kind: Any,
        room: Mapping[str, Any],
        header: Mapping[str, Any],
        heads: int,
        seed: int,
    ) -> Pruner:
        """Learned from all arcs, which lie in a cache of their own until it is done."""
        with tempfile.TemporaryDirectory(dir=self._folder, prefix=".hopefear-") as scratch:
            path = Path(scratch, "arcs")
            about = {"labels": [], "kind": list(kind), "lifted": 0}
            pieces = self._pieces(flat, features, (), kind, None)
            whole = {**header, "trees": about}
            write_cache(path, KIND, pieces, room, features, whole, lambda _: "not asked for")
            data = open_cache(path, check_source=False)
        trim()  # what reading and encoding freed is a third of what is in use
        # The map outlives its name: a process that is killed while it learns leaves nothing.
        return Pruner.fit(data, heads, seed)

    def _pieces(
        self,
        flat: bool,
        features: ArcMap,
        labels: Any,
        kind: Any,
        pruner: Pruner | None,
        n_jobs: int = 1,
    ) -> Iterator[dict[str, np.ndarray]]:
        for data, gold, _ in self._encoded(flat, features, labels, kind):
            final = data if pruner is None else pruner.chosen(data, gold, n_jobs)
            yield final.rows._asdict()

    def _encoded(
        self, flat: bool, features: ArcMap, labels: Any, kind: Any
    ) -> Iterator[tuple[TreeDataset, np.ndarray, int]]:
        """Pieces as arrays with all arcs, their heads, and how many of these were lifted."""
        for bank, lifted in self._banks(flat):
            yield encoded(bank, features, labels, kind), bank.heads, lifted

    def _banks(self, flat: bool, whole: bool = False) -> Iterator[tuple[Treebank, int]]:
        """Pieces as they came, with arcs that cross lifted where trees are to be flat.

        The columns have the strings of ``whole`` columns, or those of the piece alone.
        """
        strings = {name: list(table) for name, table in self._strings.items()}
        for piece in self._spool.pieces():
            starts, heads = np.array(piece["starts"]), np.array(piece["head"])
            column: Callable[..., Column] = Column if whole else _narrowed
            columns = {name: column(strings[name], piece[name]) for name in _TEXTS}
            learned = projectivise(starts, heads) if flat else heads
            lifted = int(np.count_nonzero(learned != heads))
            sentences = Sentences(starts, ColumnTable(columns, ALIASES), self._source)
            yield Treebank(sentences, learned, columns["deprel"]), lifted

    def _names(self, column: str) -> Iterable[str]:
        """Texts that some word has in a column."""
        strings = list(self._strings[column])
        return (strings[k] for k in self._used[column].tolist())

    def _filled(self, column: str) -> bool:
        return any(text != MISSING for text in self._names(column))

    def _known(self, tags: str | None) -> str | None:
        if tags is not None and tags not in (*_TEXTS, *ALIASES):
            raise HopefearError(
                f"{self._source} has no column {tags!r} for tags; there are {', '.join(_TEXTS)}"
            )
        return tags


def completed(data: TreeDataset, header: Mapping[str, Any]) -> TreeDataset:
    """The trees of a cache with the pruner that it holds."""
    pruner = header["facts"]["pruner"]
    if pruner is not None:
        data.pruner = Pruner.from_parts(pruner, further_arrays(data, header, _PRUNER))
    return data


def _narrowed(strings: Sequence[str], ids: np.ndarray) -> Column:
    """A column with the strings that are in it."""
    used, own = np.unique(ids, return_inverse=True)
    return Column([strings[k] for k in used.tolist()], own.astype(np.int32))
