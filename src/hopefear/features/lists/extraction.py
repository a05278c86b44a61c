"""Which features a candidate gets: those its file names, those of its tree, its score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopefear.errors import HopefearError, ModelError
from hopefear.features.lists.consensus import consensus_keys, consensus_names
from hopefear.features.lists.keyed import Keyed
from hopefear.features.lists.named import SCORE, key_of, keys_of, score_keys
from hopefear.features.lists.numbering import side_by_side
from hopefear.features.lists.relative import Relative, relative
from hopefear.features.trees import TreeFamilies, families, tree_keys, tree_names

SETS = ("named", "score", "consensus")


@dataclass(frozen=True)
class Extraction:
    """What is looked at.

    Parameters
    ----------
    named : bool
        Features that the file names.
    score : bool
        The generator's score; otherwise it is ignored, or a fixed offset.
    trees : TreeFamilies, optional
        Features of trees.
    consensus : bool
        Agreement of a tree with the rest of its list.
    sharp : float
        Factor on the scores before agreement weighs candidates by their probability.

    Examples
    --------
    >>> Extraction.of("named,score").score
    True
    """

    named: bool = True
    score: bool = True
    trees: TreeFamilies | None = None
    consensus: bool = False
    sharp: float = 0.2

    @classmethod
    def of(cls, features: str) -> Extraction:
        """Read a comma list: ``named``, ``score``, ``consensus``, ``ptb``, and tree families."""
        asked = [part.strip() for part in features.split(",") if part.strip()]
        if not asked:
            raise HopefearError("features: expected a list such as named,score or ptb")
        rest = ",".join(part for part in asked if part not in SETS)
        return cls(
            "named" in asked,
            "score" in asked or bool(rest),
            families(rest) if rest else None,
            "consensus" in asked,
        )

    def extract(self, block: Any) -> Relative:
        """Features of a block of lists, relative within each."""
        parts: list[Keyed] = []
        if self.named and block.named is not None:
            used = used_ids(block.named.ids)
            keys = keys_of(block.named.names[i] for i in used.tolist())
            entries = keys[np.searchsorted(used, block.named.ids)]
            parts.append(Keyed(block.named.indptr, entries, block.named.values))
        if self.score:
            parts.append(score_keys(block.scores))
        if self.trees is not None:
            parts.append(tree_keys(self._trees(block), self.trees))
        if self.consensus:
            trees = self._trees(block)
            parts.append(consensus_keys(trees, block.starts, block.scores, self.sharp))
        if not parts:
            nothing = np.zeros(block.n_candidates + 1, np.int64)
            parts.append(Keyed(nothing, np.empty(0, np.uint64), np.empty(0)))
        with np.errstate(over="ignore"):
            return side_by_side([relative(block.starts, part) for part in parts], block.starts)

    def names(self, block: Any, wanted: np.ndarray) -> dict[int, str]:
        """Names of keys that occur in a block."""
        found: dict[int, str] = {}
        if self.named and block.named is not None:
            for i in used_ids(block.named.ids).tolist():
                name = block.named.names[i]
                found[key_of(name)] = name
        found[key_of(SCORE)] = SCORE
        if self.trees is not None:
            found |= tree_names(self._trees(block), self.trees, wanted)
        if self.consensus:
            trees = self._trees(block)
            inner = np.zeros(len(trees.symbols), bool)
            inner[trees.rows.labels[trees.rows.words < 0]] = True
            found |= consensus_names([trees.symbols[s] for s in np.flatnonzero(inner).tolist()])
        return found

    def _trees(self, block: Any) -> Any:
        if block.trees is None:
            raise HopefearError(
                f"{block.source}: these features are of trees, and the candidates are none; use "
                "features=named,score"
            )
        return block.trees

    def to_header(self) -> dict[str, Any]:
        return {
            "named": self.named,
            "score": self.score,
            "trees": None if self.trees is None else self.trees.to_header(),
            "consensus": self.consensus,
            "sharp": self.sharp,
        }

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> Extraction:
        """What ``to_header`` wrote; anything else is a ModelError."""
        try:
            flags = [header[key] for key in ("named", "score", "consensus")]
            trees, sharp = header["trees"], float(header["sharp"])
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"feature map: the extraction is incomplete: {error}") from error
        if not all(isinstance(flag, bool) for flag in flags) or not 0.0 < sharp < 1e6:
            raise ModelError("feature map: the extraction is not one of ours")
        made = None if trees is None else TreeFamilies.from_header(trees)
        return cls(flags[0], flags[1], made, flags[2], sharp)


def used_ids(ids: np.ndarray) -> np.ndarray:
    """Those that occur, in rising order: names of a whole file are not looked at block by block.

    >>> used_ids(np.array([7, 3, 7])).tolist()
    [3, 7]
    """
    ordered = np.sort(ids)
    return ordered[np.diff(ordered, prepend=-1) > 0]
