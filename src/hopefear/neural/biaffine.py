"""Networks for dependency trees: biaffine scores of arcs and relations.

References
----------
Dozat, T. and Manning, C. D. Deep biaffine attention for neural dependency parsing. ICLR 2017.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from hopefear.core.arrays import gathered, stretches
from hopefear.data.tree_rows import TreeKind
from hopefear.errors import HopefearError
from hopefear.features.arcs.token_arcs import places_of
from hopefear.neural.batches import TreeScores, tree_batch
from hopefear.neural.encoders import Noise
from hopefear.neural.inputs import Inputs, InputTable, padded_places
from hopefear.neural.network import Rows, ScoreNetwork, families_of
from hopefear.neural.tree_loss import TreeLoss
from hopefear.structures.tree.searches import Projective
from hopefear.training.decoders.base import Decoder, KBest
from hopefear.training.decoders.trees import TreeDecoder
from hopefear.training.predictors import LinearPredictor

# Sentences whose trees are searched at a time; scores of all arcs and relations are kept meanwhile.
_AT_ONCE = 256


class BiaffineNetwork(ScoreNetwork):
    """Scores of arcs and, where there are several relations, of relations.

    The root is a word before all others, with a vector of its own.
    """

    def __init__(self, spec: Mapping[str, Any]) -> None:
        super().__init__(spec)
        width, labels = self.encoder.width, spec["labels"]
        arc, relation = spec["arc_dim"], spec["relation_dim"]
        self.root = nn.Parameter(torch.zeros(width))
        self.arc_word, self.arc_head = nn.Linear(width, arc), nn.Linear(width, arc)
        # A row more of the map is for what a head is worth whatever the word.
        self.arc_map = nn.Parameter(torch.zeros(arc + 1, arc))
        self.relation_word = self.relation_head = self.relation_map = None
        if labels > 1:
            self.relation_word = nn.Linear(width, relation)
            self.relation_head = nn.Linear(width, relation)
            self.relation_map = nn.Parameter(torch.zeros(labels, relation + 1, relation + 1))

    @classmethod
    def spec_of(cls, learner: Any, structure: Any, data: Any) -> dict[str, Any]:
        if structure.order != 1:
            raise HopefearError("a network scores arcs one by one; use order 1")
        sizes = {"arc_dim": learner.arc_dim, "relation_dim": learner.relation_dim}
        spec = super().spec_of(learner, structure, data)
        return {**spec, **sizes, "labels": structure.labels, "trees": learner.trees}

    def inputs(self, rows: Any) -> InputTable:
        indptr, entries = gathered(rows.morph_ptr, places_of(rows.starts))
        indices = rows.morphs[entries].astype(np.int32)
        return InputTable(families_of(self.spec), rows.starts, indptr, indices)

    def forward(
        self, inputs: Inputs, tables: Mapping[str, Rows], noise: Noise | None = None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """([B, N + 1, N + 1] of words and heads, [B, N + 1, N + 1, R] or None)."""
        words = self.encode(inputs, tables, noise)
        x = torch.cat([self.root.expand(len(words), 1, -1), words], dim=1)

        def view(layer: nn.Module) -> torch.Tensor:
            y = nn.functional.leaky_relu(layer(x), 0.1)
            return y if noise is None else noise.shared(y)

        arcs = with_one(view(self.arc_word)) @ self.arc_map @ view(self.arc_head).transpose(1, 2)
        if self.relation_map is None or self.relation_word is None or self.relation_head is None:
            return arcs, None
        word, head = with_one(view(self.relation_word)), with_one(view(self.relation_head))
        # [B, 1, N + 1, r] @ [R, r, r] @ [B, 1, r, N + 1]
        relations = word[:, None] @ self.relation_map @ head[:, None].transpose(2, 3)
        return arcs, relations.permute(0, 2, 3, 1)

    def gold(self, rows: Any, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Heads and relations, [B, N + 1] each."""
        lengths, labels = np.diff(rows.starts)[which], self.spec["labels"]
        codes = np.zeros(len(which) * int(lengths.max()), np.int64)
        codes[padded_places(lengths)] = rows.labels[stretches(rows.starts[which], lengths)]
        padded = np.pad(codes.reshape(len(which), -1), ((0, 0), (1, 0)))
        return padded // labels, padded % labels

    def criterion(self, learner: Any, structure: Any, n_jobs: int) -> Callable[..., torch.Tensor]:
        if not learner.trees:

            def words(scores: Any, gold: Any, lengths: torch.Tensor) -> torch.Tensor:
                (arcs, relations), (heads, names) = scores, gold
                return learner.loss.force * by_word(arcs, relations, heads, names, lengths)

            return words
        search = structure.search
        kind = TreeKind(1, isinstance(search, Projective), search.single)
        trees = TreeLoss(learner.loss, kind=kind, n_jobs=n_jobs, reduction="none")
        return lambda scores, gold, lengths: trees(*scores, *gold, lengths)

    def decoder(self, predictor: Any, structure: Any, temperature: float, n_jobs: int) -> Any:
        return BiaffineDecoder(structure, predictor, temperature, n_jobs)

    def bytes_of(self, tokens: int) -> int:
        scores = 12 * (self.spec["labels"] + 3) * (tokens + 1) ** 2
        return super().bytes_of(tokens) + scores


def with_one(x: torch.Tensor) -> torch.Tensor:
    """A column of ones behind the last.

    >>> with_one(torch.zeros(1, 1, 2)).tolist()
    [[[0.0, 0.0, 1.0]]]
    """
    return torch.cat([x, x.new_ones(*x.shape[:-1], 1)], dim=-1)


def by_word(
    arcs: torch.Tensor,
    relations: torch.Tensor | None,
    heads: np.ndarray,
    names: np.ndarray,
    lengths: torch.Tensor,
) -> torch.Tensor:
    """Cross entropy of the heads of all words, and of their relations to these, a sentence each.

    Examples
    --------
    >>> heads = np.array([[0, 0, 1]])
    >>> by_word(torch.zeros(1, 3, 3), None, heads, heads, torch.tensor([2])).numpy().round(3)
    array([1.386], dtype=float32)
    """
    device, side = arcs.device, arcs.shape[1]
    places, ends = torch.arange(side, device=device), lengths.to(device)[:, None]
    own = torch.eye(side, dtype=torch.bool, device=device)
    outside = (places > ends)[:, None, :] | own
    right = torch.as_tensor(heads, device=device)
    logs = arcs.masked_fill(outside, -torch.inf)[:, 1:].log_softmax(2)
    value = -logs.gather(2, right[:, 1:, None])[:, :, 0]
    if relations is not None:
        at = right[:, 1:, None, None].expand(-1, -1, 1, relations.shape[3])
        logs = relations[:, 1:].gather(2, at)[:, :, 0].log_softmax(2)
        value = value - logs.gather(2, torch.as_tensor(names, device=device)[:, 1:, None])[:, :, 0]
    return torch.where(places[1:] <= ends, value, 0.0).sum(1)


class BiaffineDecoder(Decoder):
    """A network on trees, decoded batch by batch."""

    sums = True  # of the first order there are sums over all trees
    proved = None  # and all trees found are the best

    def predict(self, rows: Any) -> np.ndarray:
        """The best label of every token: ``head * relations + relation`` (int32)."""
        out = np.zeros(rows.labels.size, np.int32)
        for which, decoder, some in self._batches(rows):
            lengths = np.diff(some.starts)
            out[stretches(rows.starts[which], lengths)] = decoder.predict(some)
        return out

    def scores(self, rows: Any) -> np.ndarray:
        """Score of the best tree of every sentence."""
        return self._each(rows, "scores")

    def k_best(self, rows: Any, k: int) -> list[KBest]:
        """The ``k`` best trees of every sentence, with probabilities."""
        nothing = KBest(np.empty((0, 0), np.int32), *np.empty((3, 0)))  # of no words
        ranked = [nothing] * (len(rows.starts) - 1)
        for which, decoder, some in self._batches(rows):
            for i, one in zip(which.tolist(), decoder.k_best(some, k), strict=True):
                ranked[i] = one
        return ranked

    def probabilities(self, rows: Any) -> np.ndarray:
        """Probability of every arc of the rows, relations summed."""
        out, firsts = np.zeros(rows.heads.size), rows.ptr[rows.starts]
        for which, decoder, some in self._batches(rows):
            sizes = np.diff(some.ptr[some.starts])
            out[stretches(firsts[which], sizes)] = decoder.probabilities(some)
        return out

    def log_likelihoods(self, rows: Any) -> np.ndarray:
        """Log probability of the trees that ``rows`` has, for every sentence."""
        return self._each(rows, "log_likelihoods")

    def log_totals(self, rows: Any) -> np.ndarray:
        """Log of the summed ``exp(score / temperature)`` of all trees, for every sentence."""
        return self._each(rows, "log_totals")

    def _each(self, rows: Any, question: str) -> np.ndarray:
        out = np.zeros(len(rows.starts) - 1)
        for which, decoder, some in self._batches(rows):
            out[which] = getattr(decoder, question)(some)
        return out

    def _batches(self, rows: Any) -> Any:
        """(numbers of sentences, decoder, their rows), a batch each."""
        for numbers, scores in self.predictor.run(rows, self.n_jobs):
            for first in range(0, len(numbers), _AT_ONCE):
                part = slice(first, first + _AT_ONCE)
                arcs, relations = (
                    None if s is None else s[part].float().cpu().numpy() for s in scores
                )
                yield self._linear(rows, numbers[part], arcs, relations)

    def _linear(
        self, rows: Any, which: np.ndarray, arcs: Any, relations: np.ndarray | None
    ) -> tuple[np.ndarray, TreeDecoder, Any]:
        lengths, tree = np.diff(rows.starts)[which], self.structure
        tokens = stretches(rows.starts[which], lengths)
        ptr, entries = gathered(rows.ptr, tokens)
        # Only the heads that the rows name are looked at.
        n, side, _ = arcs.shape
        within = np.zeros((n, side), bool)
        within[:, 1:] = np.arange(side - 1) < lengths[:, None]
        words = np.repeat(np.flatnonzero(within), np.diff(ptr))
        named = np.full((n * side, side), -np.inf, arcs.dtype)
        named[words, rows.heads[entries]] = arcs.reshape(-1, side)[words, rows.heads[entries]]
        scores = TreeScores(named.reshape(arcs.shape), relations)
        batch = tree_batch(scores, None, None, lengths, tree.search)
        limits = tree.limits
        if limits.size:
            limits = limits.reshape(-1, tree.labels)[tokens].ravel()
        some = batch.rows._replace(labels=rows.labels[tokens])
        structure = batch.structure._replace(limits=limits)
        decoder = TreeDecoder(
            structure, LinearPredictor(batch.weights), self.temperature, self.n_jobs
        )
        return which, decoder, some
