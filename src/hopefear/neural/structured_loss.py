"""Losses on scores that a network makes: chains, lists and classes.

Forward gives the loss, backward ``-mu`` times what comes back, both out of the library's kernels,
which run over the examples of a batch in threads. Results do not depend on how many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
from torch.autograd.function import once_differentiable

from hopefear.core.learner import check_part, check_served
from hopefear.errors import HopefearError
from hopefear.losses.log import Log
from hopefear.neural.batches import (
    Batch,
    ChainScores,
    chain_batch,
    class_batch,
    list_batch,
    losses_of,
)
from hopefear.neural.tensor_chains import best_paths, log_losses, log_losses_in_logarithms
from hopefear.structures.chain.theta import Limits
from hopefear.training.decoders.base import KBest
from hopefear.training.decoders.chains import ChainDecoder
from hopefear.training.predictors import LinearPredictor

REDUCTIONS = ("mean", "sum", "none")
# Label pairs of a batch from which tensor code is quicker on a GPU. Measured on an H200, 16 cores,
# forward and backward: 0.6 million take 2.9 ms by kernels and 4.9 by tensor code, 21 million 17.6
# and 6.2; in between times were taken to be straight lines.
_LARGE = 4_000_000
_NOT_FINITE = "scores of the network are not finite; lower the learning rate, or clip gradients"
# Scores are computed in one of these; narrower ones are widened.
_WIDE = (torch.float32, torch.float64)

# Named as a type, or checkers without PyTorch take it for a variable.
Array: TypeAlias = np.ndarray | torch.Tensor


class StructuredLoss(torch.nn.Module):
    """Any loss of the library on scores; one class for each structure says what those are.

    Parameters
    ----------
    loss : Loss
        A component, such as ``Log()`` or the ``loss`` of a learner.
    reduction : {"mean", "sum", "none"}
        Over the examples of a batch; ``"none"`` gives every example its own loss.
    n_jobs : int, optional
        Threads; as many as PyTorch uses unless given. No result depends on it.

    Notes
    -----
    The gradient of a smooth loss is exact; of others it is the subgradient that the linear learner
    takes. The direction of n-best MIRA is the whole change that its programme asks for.
    """

    def __init__(self, loss: Any, *, reduction: str = "mean", n_jobs: int | None = None) -> None:
        super().__init__()
        check_part(loss)
        if reduction not in REDUCTIONS:
            raise HopefearError(f"reduction is one of {', '.join(REDUCTIONS)}, not {reduction!r}")
        self.loss, self.reduction, self.n_jobs = loss, reduction, n_jobs
        self._spaces: dict[Any, Any] = {}

    def extra_repr(self) -> str:
        return f"{self.loss}, reduction={self.reduction!r}"

    def _apply_kernels(self, make: Callable[..., Batch], *scores: Any) -> torch.Tensor:
        """The loss of the batch that ``make`` builds of arrays of scores."""
        return self._reduced(_Kernels.apply(self, make, *scores))

    def _check_numbers(self, *scores: np.ndarray | None) -> None:
        """Refuse scores, padding left out, that are no numbers.

        Losses that have probabilities are no numbers then, either, and need no look at the scores.
        """
        if not self.loss.probabilistic() and any(
            part is not None and np.isnan(part).any() for part in scores
        ):
            raise HopefearError(_NOT_FINITE)

    def _reduced(self, values: torch.Tensor) -> torch.Tensor:
        return values if self.reduction == "none" else getattr(values, self.reduction)()

    @property
    def _jobs(self) -> int:
        return max(1, self.n_jobs or torch.get_num_threads())


class _Kernels(torch.autograd.Function):
    """Losses of single examples; gradients of scores that examples share are added up."""

    @staticmethod
    def forward(
        ctx: Any, module: StructuredLoss, make: Callable[..., Any], *scores: Any
    ) -> torch.Tensor:
        batch = make(*_hosts(scores))
        check_served(batch.structure, module.loss)
        values, gradients = losses_of(batch, module.loss, module._spaces, module._jobs)
        if not np.isfinite(values).all():
            raise _refusal(batch, int(np.flatnonzero(~np.isfinite(values))[0]))
        each = iter(gradients)
        # From a GPU scores were copied here; gradients begin their way back at once.
        ctx.gradients = [
            None if score is None else (score.shape, score.dtype, _returned(next(each), score))
            for score in scores
        ]
        return torch.from_numpy(values).to(scores[0])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        factors: Any = grad if grad.is_cuda else host_array(grad)
        results: list[torch.Tensor | None] = []
        for needed, part in zip(ctx.needs_input_grad[2:], ctx.gradients, strict=True):
            if not needed:
                results.append(None)
                continue
            shape, dtype, gradient = part
            product = gradient * factors.reshape(-1, *[1] * (gradient.ndim - 1))
            if product.shape != shape:
                product = product.sum(axis=0)  # one example after the other
            results.append(torch.as_tensor(product).to(dtype))
        return None, None, *results


def host_array(scores: torch.Tensor | None) -> np.ndarray | None:
    if scores is None:
        return None
    scores = scores.detach()
    return (scores if scores.dtype in _WIDE else scores.float()).cpu().numpy()


def _hosts(scores: Any) -> list[np.ndarray | None]:
    """Arrays of all scores; copies from a GPU run at the same time."""
    if not scores[0].is_cuda:
        return [host_array(part) for part in scores]
    copies = [
        None
        if part is None
        else torch.empty(
            part.shape, dtype=part.dtype if part.dtype in _WIDE else torch.float32, pin_memory=True
        ).copy_(part.detach(), non_blocking=True)
        for part in scores
    ]
    torch.cuda.current_stream(scores[0].device).synchronize()
    return [None if copy is None else copy.numpy() for copy in copies]


def _returned(gradient: np.ndarray, scores: torch.Tensor) -> Any:
    """A gradient where its scores are: an array on the host, a tensor on a GPU."""
    if not scores.is_cuda:
        return gradient
    pinned = torch.from_numpy(np.ascontiguousarray(gradient)).pin_memory()
    return pinned.to(scores.device, non_blocking=True)


def _refusal(batch: Batch, i: int) -> HopefearError:
    """Why the loss of an example is no finite number."""
    if np.isnan(batch.weights).any() or (batch.weights == np.inf).any():
        return HopefearError(_NOT_FINITE)
    return HopefearError(
        f"example {i + 1} of the batch: what is right there is forbidden, by the limits of the "
        "structure or by scores of minus infinity; mend the data, or loosen the limits"
    )


def whole_numbers(numbers: Any, shape: tuple[int, ...], name: str) -> np.ndarray:
    """Whole numbers out of a tensor or an array."""
    if isinstance(numbers, torch.Tensor):
        numbers = numbers.detach().cpu().numpy()
    array = np.asarray(numbers)
    if array.shape != shape or not np.issubdtype(array.dtype, np.integer):
        raise HopefearError(
            f"{name}: expected whole numbers of the shape {shape}, found {array.dtype} of the "
            f"shape {array.shape}"
        )
    return array.astype(np.int64, copy=False)


def lengths_of(lengths: Any, n: int, longest: int, what: str) -> np.ndarray:
    if lengths is None:
        lengths = np.full(n, longest)
    lengths = whole_numbers(lengths, (n,), "lengths")
    if n == 0 or lengths.min(initial=1) < 1 or lengths.max(initial=0) > longest:
        raise HopefearError(
            f"a batch has at least one example, each of 1 to {longest} {what} here; lengths are "
            f"{lengths.min(initial=longest)} to {lengths.max(initial=0)}"
        )
    return lengths


def check_shape(scores: torch.Tensor, shape: tuple[Any, ...], name: str) -> None:
    """``None`` in the shape stands for any size."""
    fits = scores.ndim == len(shape) and all(
        b in (None, a) for a, b in zip(scores.shape, shape, strict=True)
    )
    if not fits:
        shown = ", ".join("any" if size is None else str(size) for size in shape)
        raise HopefearError(f"{name}: expected the shape ({shown}), found {tuple(scores.shape)}")


def check_gold(gold: np.ndarray, within: np.ndarray, classes: int, name: str) -> None:
    known = gold[within]
    if known.size and not 0 <= known.min() <= known.max() < classes:
        raise HopefearError(
            f"{name} are numbers from 0 to {classes - 1} here, but lie between {known.min()} and "
            f"{known.max()}"
        )


class ChainLoss(StructuredLoss):
    """A loss on label sequences, given scores of labels at positions and of label pairs.

    Parameters
    ----------
    loss : Loss
        See :class:`StructuredLoss`.
    labels : int, optional
        Number of labels; any unless given.
    limits : Limits, optional
        Which labels may start, end and follow each other (``hopefear.structures.chain``); scores of
        minus infinity forbid labels too.
    tensors : bool, optional
        Whether the log loss and searches are tensor code on the device of the scores. Unless given,
        they are for batches on a GPU that are large: the kernels, to which scores are copied, were
        measured to be the quicker way for small ones. Other losses always take the kernels.

    Examples
    --------
    >>> import torch
    >>> from hopefear.losses.log import Log
    >>> nodes = torch.zeros(2, 3, 4, requires_grad=True)  # 2 sequences, 3 tokens, 4 labels
    >>> loss = ChainLoss(Log())(nodes, None, torch.zeros(2, 3, dtype=torch.long), [3, 2])
    >>> round(loss.item(), 4)  # 4 labels are equal at 5 tokens, and there are 2 sequences
    3.4657
    >>> loss.backward()
    >>> nodes.grad[1].tolist()[1:]  # the third token of the second is padding
    [[-0.375, 0.125, 0.125, 0.125], [0.0, 0.0, 0.0, 0.0]]
    """

    def __init__(
        self,
        loss: Any,
        labels: int | None = None,
        limits: Limits | None = None,
        *,
        reduction: str = "mean",
        n_jobs: int | None = None,
        tensors: bool | None = None,
    ) -> None:
        super().__init__(loss, reduction=reduction, n_jobs=n_jobs)
        self.labels, self.tensors = labels, tensors
        self.limits = None if limits is None else Limits(*map(np.array, limits))

    def forward(
        self,
        nodes: torch.Tensor,
        transitions: torch.Tensor | None,
        gold: Array,
        lengths: Any = None,
        start: torch.Tensor | None = None,
        end: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The loss of a padded batch.

        Parameters
        ----------
        nodes : float[B, T, L]
            Scores of labels at positions; padding may hold anything.
        transitions : float[L, L] or float[B, T - 1, L, L], optional
            Scores of a label (last axis) behind another: for all, or for every position.
        gold : int[B, T]
            Right labels; padding may hold anything.
        lengths : int[B], optional
            Tokens of every sequence; all ``T`` unless given.
        start, end : float[L], optional
            Scores of labels at the first and the last token.
        """
        sizes, scores = self._scores(nodes, transitions, lengths, start, end)
        n, longest, labels = nodes.shape
        codes = whole_numbers(gold, (n, longest), "gold labels")
        within = np.arange(longest) < sizes[:, None]
        check_gold(codes, within, labels, "gold labels")

        if type(self.loss) is Log and self._as_tensors(scores):
            return self._reduced(self.loss.force * self._log_losses(scores, codes, sizes))

        def make(*parts: Any) -> Batch:
            nodes, transitions, *ends = parts
            rich = transitions is not None and transitions.ndim == 4
            self._check_numbers(nodes[within], transitions[within[:, 1:]] if rich else transitions)
            self._check_numbers(*ends)
            return chain_batch(ChainScores(*parts), codes, sizes, self.limits)

        return self._apply_kernels(make, *scores)

    def best(
        self,
        nodes: torch.Tensor,
        transitions: torch.Tensor | None = None,
        lengths: Any = None,
        start: torch.Tensor | None = None,
        end: torch.Tensor | None = None,
    ) -> np.ndarray:
        """The best labels (int64[B, T]), -1 behind the end; arguments are those of ``forward``.

        >>> import torch
        >>> from hopefear.losses.log import Log
        >>> ChainLoss(Log()).best(torch.eye(3)[None], lengths=[2]).tolist()
        [[0, 1, -1]]
        """
        sizes, scores = self._scores(nodes, transitions, lengths, start, end)
        if self._as_tensors(scores):
            paths, points = best_paths(*self._limited(scores, sizes))
            if points.isfinite().all():
                best = paths[:, 0].cpu().numpy()
                return np.where(np.arange(best.shape[1]) < sizes[:, None], best, -1)
        decoder, rows = self.answers(nodes, transitions, lengths, start, end)
        out = np.full(nodes.shape[:2], -1, np.int64)
        out.reshape(-1)[rows.indices] = decoder.predict(rows)
        return out

    def nbest(
        self,
        nodes: torch.Tensor,
        transitions: torch.Tensor | None = None,
        lengths: Any = None,
        start: torch.Tensor | None = None,
        end: torch.Tensor | None = None,
        *,
        n: int,
    ) -> list[KBest]:
        """The ``n`` best outputs of every sequence, with scores and probabilities."""
        sizes, scores = self._scores(nodes, transitions, lengths, start, end)
        if n >= 1 and self._as_tensors(scores):
            limited = self._limited(scores, sizes)
            paths, points = best_paths(*limited, n)
            values, exact = log_losses(*limited[:2], paths[:, 0], limited[2])
            if exact:
                return _ranked(paths, points, values, sizes)
        decoder, rows = self.answers(nodes, transitions, lengths, start, end)
        return decoder.k_best(rows, n)

    def marginals(
        self,
        nodes: torch.Tensor,
        transitions: torch.Tensor | None = None,
        lengths: Any = None,
        start: torch.Tensor | None = None,
        end: torch.Tensor | None = None,
    ) -> np.ndarray:
        """Probabilities of labels at positions (float64[B, T, L]), 0 behind the end."""
        decoder, rows = self.answers(nodes, transitions, lengths, start, end)
        out = np.zeros(nodes.shape)
        out.reshape(-1, nodes.shape[2])[rows.indices] = decoder.probabilities(rows)
        return out

    def answers(
        self,
        nodes: torch.Tensor,
        transitions: torch.Tensor | None = None,
        lengths: Any = None,
        start: torch.Tensor | None = None,
        end: torch.Tensor | None = None,
        gold: Array | None = None,
        temperature: float = 1.0,
    ) -> tuple[ChainDecoder, Any]:
        """(decoder, rows): every question that weights on chains can be asked.

        Token k of the rows lies at ``rows.indices[k]`` of the padded batch.
        """
        sizes, scores = self._scores(nodes, transitions, lengths, start, end)
        codes = None if gold is None else whole_numbers(gold, tuple(nodes.shape[:2]), "gold labels")
        batch = chain_batch(ChainScores(*map(host_array, scores)), codes, sizes, self.limits)
        predictor = LinearPredictor(batch.weights)
        return ChainDecoder(batch.structure, predictor, temperature, self._jobs), batch.rows

    def _scores(
        self, nodes: torch.Tensor, transitions: Any, lengths: Any, start: Any, end: Any
    ) -> tuple[np.ndarray, ChainScores]:
        check_shape(nodes, (None, None, self.labels), "scores of labels")
        n, longest, labels = nodes.shape
        if transitions is not None:
            shared = transitions.ndim == 2
            shape = (labels, labels) if shared else (n, longest - 1, labels, labels)
            check_shape(transitions, shape, "scores of transitions")
        for part, name in ((start, "first"), (end, "last")):
            if part is not None:
                check_shape(part, (labels,), f"scores of {name} labels")
        scores = ChainScores(nodes, transitions, start, end)
        return lengths_of(lengths, n, longest, "tokens"), scores

    def _as_tensors(self, scores: ChainScores) -> bool:
        if scores.transitions is not None and scores.transitions.ndim == 4:
            return False
        if self.tensors is not None:
            return self.tensors
        n, longest, labels = scores.nodes.shape
        return scores.nodes.is_cuda and n * longest * labels * labels >= _LARGE

    def _log_losses(self, scores: ChainScores, gold: np.ndarray, sizes: np.ndarray) -> torch.Tensor:
        nodes, transitions, lengths = self._limited(scores, sizes)
        codes = torch.as_tensor(gold, device=nodes.device)
        values, exact = log_losses(nodes, transitions, codes, lengths)
        if not exact:  # waits for the device: once for a batch
            values = log_losses_in_logarithms(nodes, transitions, codes, lengths)
            if not values.isfinite().all():
                batch = chain_batch(ChainScores(*map(host_array, scores)), gold, sizes, self.limits)
                raise _refusal(batch, int((~values.isfinite()).nonzero()[0]))
        return values

    def _limited(
        self, scores: ChainScores, sizes: np.ndarray
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(scores of labels, of transitions, lengths), with what is forbidden and both ends in."""
        nodes, transitions, start, end = scores
        device, labels = nodes.device, nodes.shape[2]
        if nodes.dtype not in _WIDE:
            nodes = nodes.float()
        lengths = torch.as_tensor(sizes, device=device)
        if transitions is None:
            transitions = nodes.new_zeros(labels, labels)
        if self.limits is not None and self.limits.step.size:
            first, last, step = (torch.as_tensor(a, device=device) for a in self.limits[:3])
            width = len(first)
            transitions = transitions + step.reshape(width, width)[:labels, :labels].T
            start = first[:labels] + (0.0 if start is None else start)
            end = last[:labels] + (0.0 if end is None else end)
        places = torch.arange(nodes.shape[1], device=device)
        for part, at in ((start, lengths * 0), (end, lengths - 1)):
            if part is not None:  # not a product, which would make numbers of 0 times infinity
                nodes = nodes + torch.where((places == at[:, None])[:, :, None], part, 0.0)
        return nodes, transitions, lengths


def _ranked(
    paths: torch.Tensor, points: torch.Tensor, values: torch.Tensor, sizes: np.ndarray
) -> list[KBest]:
    """The n best outputs, given minus the log probability of the best."""
    labels, scores = paths.cpu().numpy(), points.double().cpu().numpy()
    logs = -values.double().cpu().numpy()
    ranked = []
    for i, T in enumerate(sizes.tolist()):
        count = int(np.isfinite(scores[i]).sum())
        best = scores[i, :count]
        within = np.exp(best - best[0])
        whole = np.minimum(1.0, within * np.exp(logs[i]))
        ranked.append(KBest(labels[i, :count, :T], best, whole, within / within.sum()))
    return ranked


class ClassLoss(StructuredLoss):
    """A loss on classes, given a score of each.

    Examples
    --------
    >>> import torch
    >>> from hopefear.losses.hinge import Hinge
    >>> scores = torch.tensor([[0.0, 0.25]], requires_grad=True)
    >>> loss = ClassLoss(Hinge())(scores, torch.tensor([0]))
    >>> loss.backward()
    >>> loss.item(), scores.grad.tolist()
    (1.25, [[-1.0, 1.0]])
    """

    def forward(self, scores: torch.Tensor, gold: Array) -> torch.Tensor:
        """The loss of ``scores`` (float[B, C]), given the right classes (int[B])."""
        check_shape(scores, (None, None), "scores of classes")
        n, classes = scores.shape
        codes = whole_numbers(gold, (n,), "gold classes")
        if n == 0 or classes < 2:
            raise HopefearError(f"{n} examples of {classes} classes; there must be 1 of 2 at least")
        check_gold(codes, np.ones(n, bool), classes, "gold classes")
        return self._apply_kernels(lambda scores: class_batch(scores, codes), scores)


class ListLoss(StructuredLoss):
    """A loss on lists of candidates, given the score and the cost of each.

    Parameters
    ----------
    loss : Loss
        See :class:`StructuredLoss`.
    tied : bool
        Whether all of the cheapest candidates are right, or one.

    Examples
    --------
    >>> import torch
    >>> from hopefear.losses.risk import Risk
    >>> scores = torch.zeros(1, 2, requires_grad=True)
    >>> loss = ListLoss(Risk())(scores, torch.tensor([[0.0, 1.0]]))
    >>> loss.backward()
    >>> loss.item(), scores.grad.tolist()
    (0.5, [[-0.25, 0.25]])
    """

    def __init__(
        self,
        loss: Any,
        tied: bool = False,
        *,
        reduction: str = "mean",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(loss, reduction=reduction, n_jobs=n_jobs)
        self.tied = tied

    def forward(
        self, scores: torch.Tensor, costs: Array, gold: Array | None = None, lengths: Any = None
    ) -> torch.Tensor:
        """The loss of padded lists.

        Parameters
        ----------
        scores, costs : float[B, N]
            Of all candidates; padding may hold anything.
        gold : int[B], optional
            The candidate to learn of every list; the first of the cheapest unless given.
        lengths : int[B], optional
            Candidates of every list; all ``N`` unless given.
        """
        check_shape(scores, (None, None), "scores of candidates")
        n, longest = scores.shape
        sizes = lengths_of(lengths, n, longest, "candidates")
        prices = costs.detach().cpu().numpy() if isinstance(costs, torch.Tensor) else costs
        prices = np.asarray(prices, np.float64)
        within = np.arange(longest) < sizes[:, None]
        if prices.shape != (n, longest) or not np.isfinite(prices[within]).all():
            raise HopefearError(
                f"costs: expected finite numbers of the shape {(n, longest)}, found the shape "
                f"{prices.shape}"
            )
        oracles = np.where(within, prices, np.inf).argmin(axis=1)
        if gold is not None:
            oracles = whole_numbers(gold, (n,), "gold candidates")
            if ((oracles < 0) | (oracles >= sizes)).any():
                raise HopefearError("gold candidates are numbers below the length of their list")

        def make(scores: np.ndarray) -> Batch:
            self._check_numbers(scores[within])
            return list_batch(scores, prices, oracles, sizes, self.tied)

        return self._apply_kernels(make, scores)
