"""Sums and searches over label chains as batched tensor code, for scores that stay on a GPU.

A loop over positions is a loop over launches, so there is little in it: products of exponentials in
float64, as in ``hopefear.structures.lattice.marginals``, for both directions at once,

    a[t] = (a[t-1] E) n[t]        n, E: exponentials of scores, the largest taken off
    b[t] = E n[t+1] b[t+1]        the same loop on the reversed sequence

and rescaled every few steps. Gradients are marginals, written down; nothing is recorded on the way.
Needs nothing but PyTorch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

# Steps without rescaling, and the logarithm that products must stay above on the way.
_STEPS = 8
_SMALLEST = 700.0


def log_losses(
    nodes: Tensor, transitions: Tensor | None, gold: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor]:
    """(minus the log probability of gold for every sequence, whether all are exact and finite).

    Parameters
    ----------
    nodes : float[B, T, L]
        Scores of labels at positions; padding may hold anything.
    transitions : float[L, L], optional
        Scores of a label (last axis) behind another.
    gold, lengths : int64[B, T], int64[B]
        Right labels, in padding anything, and numbers of tokens.

    Notes
    -----
    Where the second is false, use :func:`log_losses_in_logarithms`.

    Examples
    --------
    >>> gold, lengths = torch.zeros(2, 3, dtype=torch.long), torch.tensor([3, 2])
    >>> values, exact = log_losses(torch.zeros(2, 3, 4), torch.zeros(4, 4), gold, lengths)
    >>> [round(value, 4) for value in values.tolist()], bool(exact)
    ([4.1589, 2.7726], True)
    """
    if transitions is None:
        transitions = nodes.new_zeros(nodes.shape[2], nodes.shape[2])
    return _LogLoss.apply(nodes, transitions, gold, lengths)


class _LogLoss(torch.autograd.Function):
    """Exponentials of all prefixes and suffixes are kept for the way back."""

    @staticmethod
    def forward(
        ctx: Any, nodes: Tensor, transitions: Tensor, gold: Tensor, lengths: Tensor
    ) -> tuple[Tensor, Tensor]:
        _, longest, labels = nodes.shape
        places = torch.arange(longest, device=nodes.device)
        within = places < lengths[:, None]
        scores, pairs = torch.where(within[:, :, None], nodes.double(), 0.0), transitions.double()
        gold = torch.where(within, gold, 0)
        top, highest = scores.amax(2), pairs.amax()
        heights = (scores - top[:, :, None]).exp()
        table = (pairs - highest).exp()
        back = (lengths[:, None] - 1 - places).clamp(min=0)[:, :, None].expand(-1, -1, labels)
        # [T, direction, B, L]: one product for both directions at every step.
        terms = torch.stack([heights, heights.gather(1, back)]).permute(2, 0, 1, 3).contiguous()
        tables = torch.stack([table, table.T])
        sums, scales = _products(terms, tables)
        last = (lengths - 1)[:, None]
        ends = sums[:, 0].gather(0, last[None].expand(-1, -1, labels))[0].sum(1)
        logs = torch.where(within, top + scales.T, 0.0).sum(1)
        total = ends.log() + logs + (lengths - 1) * highest
        value = total - path_scores(scores, pairs, gold, within)
        # How far products may have fallen between two rescalings.
        spread = _range(scores) + (_STEPS + 1) * _range(pairs)
        exact = torch.isfinite(value).all() & (spread < _SMALLEST)
        prefixes, suffixes = sums[:, 0].transpose(0, 1), sums[:, 1].transpose(0, 1).gather(1, back)
        ctx.save_for_backward(prefixes, suffixes, table, gold, within)
        ctx.mark_non_differentiable(exact)
        return value.to(nodes.dtype), exact

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> Any:
        prefixes, suffixes, table, gold, within = ctx.saved_tensors
        labels, dtype = table.shape[0], grad.dtype
        rest = torch.ones_like(prefixes)  # behind a label; nothing is behind the last
        rest[:, :-1] = torch.where(within[:, 1:, None], suffixes[:, 1:] @ table.T, 1.0)
        shares = prefixes * rest
        mass = shares.sum(2, keepdim=True)
        factors = (grad.double()[:, None] * within)[:, :, None]
        right = torch.nn.functional.one_hot(gold, labels).to(shares)
        nodes = (shares / mass - right) * factors
        transitions = None
        if ctx.needs_input_grad[1]:
            before = (prefixes / mass)[:, :-1].reshape(-1, labels)
            behind = (suffixes * factors)[:, 1:].reshape(-1, labels)
            first = right[:, :-1].reshape(-1, labels)
            second = (right * factors)[:, 1:].reshape(-1, labels)
            transitions = ((before.T @ behind) * table - first.T @ second).to(dtype)
        return nodes.to(dtype), transitions, None, None


def _products(terms: Tensor, tables: Tensor) -> tuple[Tensor, Tensor]:
    """(a[t] of both directions, logarithms that were taken off the first one at t)."""
    longest, _, n, _ = terms.shape
    sums = torch.empty_like(terms)
    scales = terms.new_zeros(longest, n)
    sums[0] = terms[0]
    for t in range(1, longest):
        torch.bmm(sums[t - 1], tables, out=sums[t])
        sums[t].mul_(terms[t])
        if t % _STEPS == 0:
            scale = sums[t].sum(2, keepdim=True)
            sums[t].div_(scale)
            scales[t] = scale[0, :, 0].log()
    return sums, scales


def _range(scores: Tensor) -> Tensor:
    """Largest minus smallest of all scores that are finite."""
    fine = torch.isfinite(scores)
    top = torch.where(fine, scores, -torch.inf).amax()
    return top - torch.where(fine, scores, torch.inf).amin()


def path_scores(nodes: Tensor, transitions: Tensor, paths: Tensor, within: Tensor) -> Tensor:
    """Score of one path for every sequence; gradients pass through."""
    own = nodes.gather(2, paths[:, :, None])[:, :, 0]
    pairs = transitions[paths[:, :-1], paths[:, 1:]]
    zero = own.new_zeros(())
    return torch.where(within, own, zero).sum(1) + torch.where(within[:, 1:], pairs, zero).sum(1)


def log_losses_in_logarithms(
    nodes: Tensor, transitions: Tensor | None, gold: Tensor, lengths: Tensor
) -> Tensor:
    """As :func:`log_losses`, exact whatever the scores, and some ten times as slow."""
    if transitions is None:
        transitions = nodes.new_zeros(nodes.shape[2], nodes.shape[2])
    longest = nodes.shape[1]
    within = torch.arange(longest, device=nodes.device) < lengths[:, None]
    nodes, gold = torch.where(within[:, :, None], nodes, 0.0), torch.where(within, gold, 0)
    total = nodes[:, 0]
    for t in range(1, longest):
        step = torch.logsumexp(total[:, :, None] + transitions, 1) + nodes[:, t]
        total = torch.where(within[:, t, None], step, total)
    return torch.logsumexp(total, 1) - path_scores(nodes, transitions, gold, within)


def best_paths(
    nodes: Tensor, transitions: Tensor | None, lengths: Tensor, n: int = 1
) -> tuple[Tensor, Tensor]:
    """The ``n`` best paths of every sequence: (int64[B, n, T], scores float[B, n]), best first.

    Every label keeps its n best completions, from the last position to the first (list Viterbi).
    Of equal paths the one with the lower label at the first difference comes first where n is 1.
    Where there are fewer than n, the rest have scores of minus infinity. Behind the end labels are
    those of no token.

    Examples
    --------
    >>> nodes = torch.tensor([[[0.0, 1.0], [0.0, -3.0], [0.0, 2.0]]])
    >>> paths, scores = best_paths(nodes, None, torch.tensor([3]), n=2)
    >>> paths.tolist(), scores.tolist()
    ([[[1, 0, 1], [0, 0, 1]]], [[3.0, 2.0]])
    """
    size, longest, labels = nodes.shape
    if transitions is None:
        transitions = nodes.new_zeros(labels, labels)
    ranks = torch.full((n,), -torch.inf, dtype=nodes.dtype, device=nodes.device)
    ranks[0] = 0.0
    # [B, label, rank]: scores of completions; behind the end there is one, which costs nothing.
    ends, table = ranks.expand(size, labels, n), ranks.expand(size, labels, n)
    choices = torch.empty((longest, size, labels, n), dtype=torch.long, device=nodes.device)
    for t in range(longest - 1, -1, -1):
        if t < longest - 1:
            ahead = transitions[:, :, None] + table[:, None]  # [B, label, next label, rank]
            table, choices[t] = _highest(ahead.flatten(2), n)
            table = torch.where((t + 1 < lengths)[:, None, None], table, ends)
        table = table + nodes[:, t, :, None]
    scores, first = _highest(table.flatten(1), n)
    paths = torch.empty((size, n, longest), dtype=torch.long, device=nodes.device)
    each = torch.arange(size, device=nodes.device)[:, None]
    state = first
    for t in range(longest):
        paths[:, :, t] = state // n
        if t < longest - 1:
            state = choices[t][each, state // n, state % n]
    return paths, scores


def _highest(values: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The ``n`` highest of the last axis, and where they are; of one, the first among equals."""
    if n == 1:
        best = values.max(-1, keepdim=True)
        return best.values, best.indices
    return values.topk(n, -1)
