"""Losses on scores of arcs, and of arcs with a word more, that a network makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from hopefear.data.tree_rows import TreeKind
from hopefear.errors import HopefearError
from hopefear.neural.batches import Batch, TreeScores, tree_batch
from hopefear.neural.structured_loss import (
    Array,
    StructuredLoss,
    check_gold,
    check_shape,
    host_array,
    lengths_of,
    whole_numbers,
)
from hopefear.structures.tree.searches import tree_search
from hopefear.training.decoders.base import KBest
from hopefear.training.decoders.trees import TreeDecoder
from hopefear.training.predictors import LinearPredictor


class TreeLoss(StructuredLoss):
    """A loss on dependency trees, given scores of arcs and more.

    Parameters
    ----------
    loss : Loss
        See :class:`StructuredLoss`.
    labels : int, optional
        Number of relations; any unless given.
    kind : TreeKind
        Which trees there are; of the second order siblings and grandparents may have scores.

    Examples
    --------
    >>> import torch
    >>> from hopefear.losses.log import Log
    >>> arcs = torch.zeros(1, 3, 3, requires_grad=True)  # a sentence of two words
    >>> heads = torch.tensor([[0, 0, 1]])  # the first hangs on the root, the second on the first
    >>> loss = TreeLoss(Log())(arcs, None, heads)
    >>> loss.backward()
    >>> round(loss.item(), 4), arcs.grad[0, 2].numpy().round(3)  # one tree out of three
    (1.0986, array([ 0.667, -0.667,  0.   ], dtype=float32))
    """

    def __init__(
        self,
        loss: Any,
        labels: int | None = None,
        kind: TreeKind = TreeKind(order=1),  # noqa: B008 - frozen
        *,
        reduction: str = "mean",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(loss, reduction=reduction, n_jobs=n_jobs)
        self.labels, self.kind = labels, kind
        self._search = tree_search(*kind)

    def forward(
        self,
        arcs: torch.Tensor,
        relations: torch.Tensor | None,
        heads: Array,
        labels: Array | None = None,
        lengths: Any = None,
        *,
        siblings: torch.Tensor | None = None,
        lasts: torch.Tensor | None = None,
        grandparents: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The loss of padded sentences; word 0 is the root.

        Parameters
        ----------
        arcs : float[B, N + 1, N + 1]
            Scores of heads (last axis) of words; minus infinity: not looked at.
        relations : float[B, N + 1, N + 1, R], optional
            Scores of relations, added to those of the arcs.
        heads, labels : int[B, N + 1]
            Right heads and relations; at the root and in padding anything.
        lengths : int[B], optional
            Words of every sentence, without the root; all ``N`` unless given.
        siblings, lasts, grandparents : float tensors, optional
            Scores of [word, head, next child nearer to the head, or 0], of [word, head] where the
            word is the outermost child, and of [word, head, head of the head].
        """
        sizes, scores = self._scores(arcs, relations, lengths, siblings, lasts, grandparents)
        n, side, _ = arcs.shape
        within = np.arange(side) <= sizes[:, None]
        within[:, 0] = False
        parents, names = whole_numbers(heads, (n, side), "heads"), None
        most = np.broadcast_to(sizes[:, None] + 1, (n, side))
        if ((parents < 0) | (parents >= most))[within].any():
            raise HopefearError("heads are numbers from 0, the root, to the length of the sentence")
        _check_trees(parents, within, self.kind.single)
        if scores.relations is not None:
            if labels is None:
                raise HopefearError("relations have scores, but the right ones were not given")
            names = whole_numbers(labels, (n, side), "relations")
            check_gold(names, within, scores.relations.shape[3], "relations")

        def make(*parts: Any) -> Batch:
            present = np.arange(side) <= sizes[:, None]
            pairs = within[:, :, None] & present[:, None] & ~np.eye(side, dtype=bool)
            tree = TreeScores(*parts)
            # Of siblings and grandparents most are in no tree, and those may hold anything.
            some = (tree.arcs, tree.relations, tree.lasts)
            self._check_numbers(*(None if part is None else part[pairs] for part in some))
            return tree_batch(tree, parents, names, sizes, self._search)

        return self._apply_kernels(make, *scores)

    def best(
        self,
        arcs: torch.Tensor,
        relations: torch.Tensor | None = None,
        lengths: Any = None,
        **more: Any,
    ) -> tuple[np.ndarray, np.ndarray]:
        """(heads, relations) of the best trees (int64[B, N + 1]), -1 for the root and padding."""
        decoder, rows = self.answers(arcs, relations, lengths, **more)
        return self.unpacked(decoder.predict(rows), decoder.structure.labels, rows, arcs.shape[1])

    def nbest(
        self,
        arcs: torch.Tensor,
        relations: torch.Tensor | None = None,
        lengths: Any = None,
        *,
        n: int,
        **more: Any,
    ) -> list[KBest]:
        """The ``n`` best trees of every sentence; labels are ``head * relations + relation``."""
        decoder, rows = self.answers(arcs, relations, lengths, **more)
        return decoder.k_best(rows, n)

    def marginals(
        self,
        arcs: torch.Tensor,
        relations: torch.Tensor | None = None,
        lengths: Any = None,
        **more: Any,
    ) -> np.ndarray:
        """Probabilities of arcs (float64[B, N + 1, N + 1]), relations summed."""
        decoder, rows = self.answers(arcs, relations, lengths, **more)
        out = np.zeros(arcs.shape)
        words = np.repeat(np.flatnonzero(_within(rows, arcs.shape[1])), np.diff(rows.ptr))
        out.reshape(-1, arcs.shape[1])[words, rows.heads] = decoder.probabilities(rows)
        return out

    def answers(
        self,
        arcs: torch.Tensor,
        relations: torch.Tensor | None = None,
        lengths: Any = None,
        *,
        siblings: torch.Tensor | None = None,
        lasts: torch.Tensor | None = None,
        grandparents: torch.Tensor | None = None,
        temperature: float = 1.0,
    ) -> tuple[TreeDecoder, Any]:
        """(decoder, rows): every question that weights on trees can be asked."""
        sizes, scores = self._scores(arcs, relations, lengths, siblings, lasts, grandparents)
        arrays = TreeScores(*map(host_array, scores))
        batch = tree_batch(arrays, None, None, sizes, self._search)
        predictor = LinearPredictor(batch.weights)
        return TreeDecoder(batch.structure, predictor, temperature, self._jobs), batch.rows

    @staticmethod
    def unpacked(
        codes: np.ndarray, labels: int, rows: Any, side: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Labels of all words of some rows, as padded heads and relations."""
        out = np.full((2, rows.weights.size, side), -1, np.int64)
        out[:, _within(rows, side)] = codes // labels, codes % labels
        return out[0], out[1]

    def _scores(
        self, arcs: torch.Tensor, relations: Any, lengths: Any, *pairs: Any
    ) -> tuple[np.ndarray, TreeScores]:
        check_shape(arcs, (None, None, None), "scores of arcs")
        n, side, heads = arcs.shape
        if side != heads or side < 2:
            raise HopefearError(f"scores of arcs: expected words by heads, found {arcs.shape}")
        if relations is not None:
            check_shape(relations, (n, side, side, self.labels), "scores of relations")
            if relations.shape[3] == 1:  # decides nothing, but counts
                arcs, relations = arcs + relations[..., 0], None
        square = (n, side, side)
        for part, shape, name in zip(
            pairs,
            ((*square, side), square, (*square, side)),
            ("scores of siblings", "scores of outermost children", "scores of grandparents"),
            strict=True,
        ):
            if part is not None:
                check_shape(part, shape, name)
                if self.kind.order == 1:
                    raise HopefearError(f"{name} need trees of the second order: TreeKind(order=2)")
        return lengths_of(lengths, n, side - 1, "words"), TreeScores(arcs, relations, *pairs)


def _within(rows: Any, side: int) -> np.ndarray:
    """Which places of a padded batch are words."""
    words = np.arange(side)
    return (words > 0) & (words <= np.diff(rows.starts)[:, None])


def _check_trees(heads: np.ndarray, within: np.ndarray, single: bool) -> None:
    """Refuse heads that go round in a circle, and several roots where one is due."""
    roots = ((heads == 0) & within).sum(axis=1)
    if single and (roots > 1).any():
        i = int(np.argmax(roots > 1))
        raise HopefearError(f"sentence {i + 1}: {roots[i]} words hang on the root, not one")
    above = np.where(within, heads, 0)
    for _ in range(int(heads.shape[1]).bit_length()):  # twice as far up each time
        above = np.take_along_axis(above, above, axis=1)
    if above.any():
        i, m = np.argwhere(above)[0]
        raise HopefearError(f"sentence {i + 1}: the heads of word {m} go round in a circle")
