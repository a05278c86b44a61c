"""Adam on weights and on rows of large tables, gradients cut to a length, weights averaged."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import torch

_FIRST, _SECOND, _TINY = 0.9, 0.999, 1e-8


class Slot:
    """Weights with what Adam and the average remember of them.

    ``last`` says up to where the average of each row has come, as the logarithm of the product of
    all shares so far: a row that no step meets stays as it is, so its average can wait.
    """

    def __init__(self, weights: torch.Tensor, table: bool, averaged: bool) -> None:
        self.weights = weights
        self.first, self.second = torch.zeros_like(weights), torch.zeros_like(weights)
        self.average = weights.clone() if averaged else None
        self.last = torch.zeros(len(weights), dtype=torch.float64) if table and averaged else None
        if self.last is not None:
            self.last = self.last.to(weights.device)

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Everything, by name."""
        for name in ("weights", "first", "second", "average", "last"):
            if (tensor := getattr(self, name)) is not None:
                yield name, tensor


class Adam:
    """Adam with decoupled weight decay; of tables, only rows that a step meets are moved.

    What is kept is ``average = share * average + (1 - share) * weights`` after every step, with
    shares that rise from 0.1 to ``share``, or the weights themselves where that is 0.

    Parameters
    ----------
    weights, tables : mapping of str to tensor
        What is moved; weights as a whole, tables by rows.
    l2 : float
        Every step takes this share, times the rate, off the weights.
    clip : float
        Longest gradient, of all weights together; 0 for any.
    share : float
        See above.

    Examples
    --------
    >>> w = torch.ones(2)
    >>> adam = Adam({"w": w}, {}, share=0.9)
    >>> adam.step({"w": torch.tensor([1.0, 0.0])}, {}, 0.1)
    >>> [round(x, 3) for x in w.tolist()], adam.steps
    ([0.9, 1.0], 1)
    """

    def __init__(
        self,
        weights: Mapping[str, torch.Tensor],
        tables: Mapping[str, torch.Tensor],
        l2: float = 0.0,
        clip: float = 0.0,
        share: float = 0.0,
    ) -> None:
        self.l2, self.clip, self.share = l2, clip, share
        self.steps, self.log_share = 0, 0.0
        self.slots = {name: Slot(w, False, share > 0.0) for name, w in weights.items()}
        self.tables = {name: Slot(w, True, share > 0.0) for name, w in tables.items()}

    @torch.no_grad()
    def step(
        self,
        gradients: Mapping[str, torch.Tensor],
        of_rows: Mapping[str, tuple[torch.Tensor, torch.Tensor]],
        rate: float,
    ) -> None:
        """Move all weights, and these rows (numbers, gradients) of tables."""
        all_ = [*gradients.values(), *(gradient for _, gradient in of_rows.values())]
        if self.clip > 0.0:
            length = torch.stack([gradient.norm() for gradient in all_]).norm()
            factor = (self.clip / (length + 1e-6)).clamp(max=1.0)
            for gradient in all_:
                gradient.mul_(factor)
        self.steps += 1
        t = self.steps
        share = min(self.share, t / (t + 9.0))
        scale = rate * math.sqrt(1.0 - _SECOND**t) / (1.0 - _FIRST**t)
        tiny = _TINY * math.sqrt(1.0 - _SECOND**t)
        for name, gradient in gradients.items():
            slot = self.slots[name]
            slot.first.lerp_(gradient, 1.0 - _FIRST)
            slot.second.mul_(_SECOND).addcmul_(gradient, gradient, value=1.0 - _SECOND)
            if self.l2:
                slot.weights.mul_(1.0 - rate * self.l2)
            slot.weights.addcdiv_(slot.first, slot.second.sqrt().add_(tiny), value=-scale)
            if slot.average is not None:
                slot.average.lerp_(slot.weights, 1.0 - share)
        log_share = self.log_share + math.log(share) if share > 0.0 else 0.0
        for name, (rows, gradient) in of_rows.items():
            self._step_rows(self.tables[name], rows, gradient, rate, scale, tiny, share, log_share)
        self.log_share = log_share

    def _step_rows(
        self,
        slot: Slot,
        rows: torch.Tensor,
        gradient: torch.Tensor,
        rate: float,
        scale: float,
        tiny: float,
        share: float,
        log_share: float,
    ) -> None:
        first = slot.first[rows].lerp_(gradient, 1.0 - _FIRST)
        second = slot.second[rows].mul_(_SECOND).addcmul_(gradient, gradient, value=1.0 - _SECOND)
        slot.first[rows], slot.second[rows] = first, second
        old = slot.weights[rows]
        new = old * (1.0 - rate * self.l2) if self.l2 else old
        new = torch.addcdiv(new, first, second.sqrt().add_(tiny), value=-scale)
        slot.weights[rows] = new
        if slot.average is not None and slot.last is not None:
            # Up to the step before the row was as it was.
            waited = (self.log_share - slot.last[rows]).exp().to(old.dtype)[:, None]
            average = old + waited * (slot.average[rows] - old)
            slot.average[rows] = average.lerp_(new, 1.0 - share)
            slot.last[rows] = log_share

    @torch.no_grad()
    def kept(self) -> dict[str, torch.Tensor]:
        """What has been learned: averages, or the weights as they are."""
        result = {}
        for name, slot in self.slots.items():
            result[name] = slot.weights if slot.average is None else slot.average
        for name, slot in self.tables.items():
            result[f"table.{name}"] = slot.weights
            if slot.average is not None and slot.last is not None:
                waited = (self.log_share - slot.last).exp().to(slot.weights.dtype)[:, None]
                result[f"table.{name}"] = slot.weights + waited * (slot.average - slot.weights)
        return result

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Everything that a checkpoint must hold beside the number of steps."""
        for name, slot in {
            **self.slots,
            **{f"table.{n}": s for n, s in self.tables.items()},
        }.items():
            for part, tensor in slot.tensors():
                yield f"{part}.{name}", tensor
