"""Words of trees as ids for a network's tables, and arcs with scores from a network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import ArcFeatures
from hopefear.errors import ModelError
from hopefear.features.arcs.arc_map import WordTable
from hopefear.features.arcs.feature_hashing import BEFORE, EXTRA
from hopefear.features.token_ids import TokenIds, TokenIdSettings


class ArcPad(NamedTuple):
    """Buffer of the coordinate of one part."""

    keys: np.ndarray  # int64[1]


@component(ArcFeatures)
class ArcScores(NamedTuple):
    """One feature a part: the place of its score in a padded batch.

    Parts with a word more lie behind the arcs of all sentences, at ``lasts``, ``siblings`` and
    ``grands``; -1 where they have no scores.
    """

    plain: int
    rows: int
    side: int  # words of the longest sentence, and the root
    pace: int  # from one arc to the next, in rows of relations
    lasts: int = -1
    siblings: int = -1
    grands: int = -1

    def new_buffer(self, data):
        return ArcPad(np.zeros(1, np.int64))

    def max_keys(self, data):
        return 2 * self.side * self.side

    def arc_keys(self, x, h, m, pad):
        pad.keys[0] = (x.i * self.side + m) * self.side + h
        return 1

    def label_keys(self, x, h, m, pad):
        pad.keys[0] = ((x.i * self.side + m) * self.side + h) * self.pace
        return 1

    def sibling_keys(self, x, h, s, m, pad):
        pad.keys[0] = self.siblings + ((x.i * self.side + m) * self.side + h) * self.side + s
        return 1 if self.siblings >= 0 else 0

    def outermost_child_keys(self, x, h, m, pad):
        pad.keys[0] = self.lasts + (x.i * self.side + m) * self.side + h
        return 1 if self.lasts >= 0 else 0

    def grandparent_keys(self, x, g, h, m, pad):
        pad.keys[0] = self.grands + ((x.i * self.side + m) * self.side + h) * self.side + g
        return 1 if self.grands >= 0 else 0


class TokenArcs:
    """Inputs of a network from the words of trees; all arcs are candidates.

    The numbers of a word take the place of morphological attributes in other maps.

    Parameters
    ----------
    ids : TokenIds
        The numbers.
    columns : tuple of str
        The columns that are word, lemma, tag and coarse tag, and morphological attributes; an empty
        name is for what is not read.
    """

    kind = "token-arcs"

    def __init__(self, ids: TokenIds, columns: tuple[str, ...]) -> None:
        self.ids, self.columns = ids, columns

    @classmethod
    def fit(cls, settings: TokenIdSettings, sentences: Any, columns: tuple[str, ...]) -> TokenArcs:
        """Number the words of trees, and their tags unless the settings name other columns."""
        word, _, fine, coarse, _ = columns
        selected = settings.columns or tuple(dict.fromkeys((word, fine, coarse)))
        ids, _ = replace(settings, columns=selected).fit_encode(sentences)
        tag = next((name for name in (fine, coarse) if name in selected), word)
        return cls(ids, (selected[0], "", tag, coarse if coarse in selected else tag, ""))

    def __getattr__(self, name: str) -> Any:
        if name in ("families", "slots", "tables", "lower", "vectors", "size", "needs"):
            return getattr(self.ids, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def description(self) -> dict[str, Any]:
        """Returns the fields that signatures have of the map."""
        return {"columns": ",".join(self.columns)}

    def component(self) -> ArcScores:
        """Returns the component of a structure before there are any scores."""
        return ArcScores(0, 0, 1, 1)

    def words(self, sentences: Any) -> WordTable:
        """The numbers, as the columns of a tree dataset."""
        attributes, starts = self.ids.encode(sentences), np.asarray(sentences.starts)
        rows = int(starts[-1]) + EXTRA * (len(starts) - 1)
        counts = np.zeros(rows, np.int64)
        counts[places_of(starts)] = np.diff(attributes.indptr)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        none, zeros = np.zeros(rows, np.uint8), np.zeros(rows, np.uint64)
        numbers = attributes.indices.astype(np.uint64)
        return WordTable(zeros, none, none, offsets, numbers)

    def arcs(self, sentences: Any) -> tuple[np.ndarray, np.ndarray]:
        """All heads of all words."""
        lengths = np.diff(sentences.starts)
        heads = [every_head(n) for n in lengths.tolist()]
        offsets = np.concatenate([[0], np.cumsum(np.repeat(lengths, lengths))])
        return offsets, np.concatenate([np.empty(0, np.int32), *heads])

    def to_header(self) -> dict[str, Any]:
        """Returns the fields of a model file's header."""
        return {**self.ids.to_header(), "kind": self.kind, "arcs": list(self.columns)}

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns the arrays of a model file."""
        return self.ids.arrays()

    @classmethod
    def from_parts(cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> TokenArcs:
        """The map that :meth:`to_header` and :meth:`arrays` were taken from; nothing is trusted."""
        columns = header.get("arcs")
        if not isinstance(columns, list) or len(columns) != 5:
            raise ModelError("feature map: expected five names of columns")
        if not all(type(name) is str for name in columns):
            raise ModelError("feature map: names of columns are not text")
        return cls(TokenIds.from_parts(header, arrays), tuple(columns))


def places_of(starts: np.ndarray) -> np.ndarray:
    """Rows of all words among those that sentences have in a tree dataset.

    >>> places_of(np.array([0, 1, 3])).tolist()
    [3, 9, 10]
    """
    sentences = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return np.arange(int(starts[-1])) + EXTRA * sentences + BEFORE + 1


def every_head(n: int) -> np.ndarray:
    """All heads of the words of a sentence, one word after another.

    >>> every_head(2).tolist()
    [0, 2, 0, 1]
    """
    heads = np.broadcast_to(np.arange(n + 1, dtype=np.int32), (n, n + 1))
    return heads[heads != np.arange(1, n + 1)[:, None]]
