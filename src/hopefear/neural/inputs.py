"""From rows of token ids to padded tensors: what an encoder reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from hopefear.core.arrays import gathered, stretches
from hopefear.features.token_ids import LONGEST

# Numbers of a row are told apart by their ranges; characters stand behind those of the slots.
_CHARACTER, _TEMPLATE = "character", "template"


class Inputs(NamedTuple):
    """Sentences of one batch: tensors are padded with 0, and 0 is also what nobody has seen."""

    lengths: torch.Tensor  # int64[B], on the CPU
    slots: Mapping[str, torch.Tensor]  # int64[B, T] of each family
    spellings: torch.Tensor  # int64[U, W]: characters of the different words, from 1 on
    spelled: torch.Tensor  # int64[B, T]: which of them a token has
    sparse: tuple[torch.Tensor, torch.Tensor] | None  # ids, and where those of each token start

    @property
    def shape(self) -> tuple[int, int]:
        """Sentences, and tokens of the longest."""
        return int(self.lengths.numel()), int(self.lengths.max())

    @property
    def equal(self) -> bool:
        """Whether all sentences have the same length, so that nothing is padding."""
        return bool((self.lengths == self.lengths[0]).all())


class InputTable:
    """The token ids of a dataset, by family, ready to be cut into batches.

    Parameters
    ----------
    families : mapping of str to range
        Ranges of ids, as :class:`hopefear.features.token_ids.TokenIds` has them.
    starts, indptr, indices : arrays
        Sentences and rows of ids, as :class:`hopefear.data.sequences.TokenRows` has them.
    """

    def __init__(
        self,
        families: Mapping[str, range],
        starts: np.ndarray,
        indptr: np.ndarray,
        indices: np.ndarray,
    ) -> None:
        self.starts, self.lengths = np.asarray(starts), np.diff(starts)
        names = [name for name in families if name not in (_CHARACTER, _TEMPLATE)]
        self.slots = {
            name: indices[indptr[:-1] + k].astype(np.int64) - families[name].start
            for k, name in enumerate(names)
        }
        letters, sparse = families[_CHARACTER], families[_TEMPLATE]
        owner = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        in_letters = (indices >= letters.start) & (indices < letters.stop)
        counts = np.bincount(owner[in_letters], minlength=len(indptr) - 1)
        table = np.zeros(
            (len(indptr) - 1, min(LONGEST, int(np.max(counts, initial=1)) or 1)), np.int32
        )
        places = np.arange(in_letters.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        table[owner[in_letters], places] = indices[in_letters] - letters.start + 1
        # As strings of bytes, rows are sorted in an eighth of the time.
        bytes_of = np.dtype((np.void, table.itemsize * table.shape[1]))
        _, first, spelled = np.unique(table.view(bytes_of), return_index=True, return_inverse=True)
        self.spellings, self.spelled = table[first], spelled.reshape(-1)
        self.sparse: tuple[np.ndarray, np.ndarray] | None = None
        if len(sparse):
            in_sparse = indices >= sparse.start
            counts = np.bincount(owner[in_sparse], minlength=len(indptr) - 1)
            ends = np.concatenate([[0], np.cumsum(counts)])
            self.sparse = ends, (indices[in_sparse] - sparse.start).astype(np.int64)

    def batch(self, which: np.ndarray, device: Any = "cpu") -> Inputs:
        """These sentences, padded to the longest."""
        lengths = self.lengths[which]
        tokens = stretches(self.starts[which], lengths)
        places = padded_places(lengths)
        size = len(which) * int(lengths.max())

        def padded(values: np.ndarray) -> torch.Tensor:
            out = np.zeros(size, np.int64)
            out[places] = values
            return torch.from_numpy(out.reshape(len(which), -1)).to(device, non_blocking=True)

        words, spelled = np.unique(self.spelled[tokens], return_inverse=True)
        spellings = self.spellings[words]
        spellings = spellings[:, : max(1, int((spellings > 0).sum(axis=1).max(initial=1)))]
        sparse = None
        if self.sparse is not None:
            ends, entries = gathered(self.sparse[0], tokens)
            counts = np.zeros(size, np.int64)
            counts[places] = np.diff(ends)
            offsets = np.cumsum(counts) - counts
            sparse = (
                torch.from_numpy(self.sparse[1][entries]).to(device),
                torch.from_numpy(offsets).to(device),
            )
        return Inputs(
            torch.from_numpy(lengths.astype(np.int64)),
            {name: padded(values[tokens]) for name, values in self.slots.items()},
            torch.from_numpy(spellings.astype(np.int64)).to(device, non_blocking=True),
            padded(spelled.reshape(-1)),
            sparse,
        )


def padded_places(lengths: np.ndarray) -> np.ndarray:
    """Where tokens, one sentence after the other, stand in a table padded to the longest.

    >>> padded_places(np.array([1, 3])).tolist()
    [0, 3, 4, 5]
    """
    rows = np.arange(len(lengths), dtype=np.int64) * int(lengths.max(initial=0))
    return stretches(rows, lengths)


def bucketed(
    order: np.ndarray, lengths: np.ndarray, size: int, most: int, rng: Any = None
) -> list[np.ndarray]:
    """Sentences in batches of about the same length, in random order where there is a generator.

    Parameters
    ----------
    order : int array
        Sentences as they would come; those of one length stay in this order.
    lengths : int array
        Tokens of each sentence.
    size, most : int
        Sentences of a batch, and padded tokens, at most; a longer sentence is a batch of its own.

    Examples
    --------
    >>> [b.tolist() for b in bucketed(np.array([2, 0, 1, 3]), np.array([5, 1, 5, 1]), 2, 100)]
    [[1, 3], [2, 0]]
    """
    ranked = order[np.argsort(lengths[order], kind="stable")]
    batches, start = [], 0
    while start < len(ranked):
        after = min(start + size, len(ranked))
        # Lengths rise, so the last sentence says how wide the batch is.
        while after > start + 1 and (after - start) * lengths[ranked[after - 1]] > most:
            after = start + max(1, min(after - start - 1, most // int(lengths[ranked[after - 1]])))
        batches.append(ranked[start:after])
        start = after
    if rng is not None:
        batches = [batches[k] for k in rng.permutation(len(batches))]
    return batches
