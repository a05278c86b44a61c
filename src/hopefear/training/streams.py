"""Learning from a stream: once, in bounded memory, each example predicted before it is learnt."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from hopefear.training.passes import Passes


class Standing(NamedTuple):
    """Sums over the examples of a stream so far, each as it was before it was learnt."""

    examples: int = 0
    weight: float = 0.0
    loss: float = 0.0
    mistakes: int = 0

    def since(self, before: Standing) -> Standing:
        """What has come after an earlier standing."""
        return Standing(
            self.examples - before.examples,
            self.weight - before.weight,
            self.loss - before.loss,
            self.mistakes - before.mistakes,
        )

    @property
    def mean_loss(self) -> float:
        return self.loss / self.examples if self.examples else 0.0

    @property
    def error(self) -> float:
        """Share of the examples that were wrong, in percent."""
        return 100.0 * self.mistakes / self.examples if self.examples else 0.0


def learn_stream(
    trainer: Any,
    datasets: Iterable[Any],
    *,
    report: Callable[[Standing, Standing], None] = lambda now, recent: None,
    save: Callable[[Any], None] = lambda recent: None,
    every: int | None = None,
    seconds: float | None = None,
) -> Standing:
    """Learn from datasets as they come, once; progressive validation costs nothing beside.

    The online error is one of progressive validation: weights that score an example have not seen
    it. Examples of whole weights above 1 come so many times, as in every pass.

    Parameters
    ----------
    trainer : OnlineTrainer
        What learns.
    datasets : iterable
        Blocks of the stream.
    report : callable
        Gets the standing after 1, 2, 4, 8, … examples and at the end, and what is new in it.
    save : callable
        Called when the model is to be saved, with the newest block.
    every, seconds : int, float, optional
        Save after each so many examples, exactly; and when so much time has gone by.

    Examples
    --------
    >>> from hopefear.data.generators import sparse_linear
    >>> from hopefear.recipes import RECIPES
    >>> from hopefear.structures.classes import Binary
    >>> from hopefear.training.online import OnlineTrainer
    >>> data = sparse_linear(100, 40, per_row=(5, 10), true_weights=10, seed=1).dataset()
    >>> counts = []
    >>> _ = learn_stream(
    ...     OnlineTrainer(Binary(40), RECIPES["perceptron"].build()),
    ...     [data.take(range(70)), data.take(range(70, 100))],
    ...     report=lambda now, recent: counts.append((now.examples, recent.examples)),
    ... )
    >>> counts
    [(1, 1), (2, 1), (4, 2), (8, 4), (16, 8), (32, 16), (64, 32), (100, 36)]
    """
    stream = _Stream(trainer, datasets, every)
    before, began = Standing(), time.monotonic()
    for _ in trainer.learn_pieces(stream):
        if trainer.examples == stream.due:
            now = stream.standing()
            report(now, now.since(before))
            before, stream.due = now, 2 * stream.due
        if every is not None and trainer.examples == stream.saved:
            save(stream.data)
            stream.saved = trainer.examples + every
        if seconds is not None and stream.paused and time.monotonic() - began >= seconds:
            save(stream.data)
            began = time.monotonic()
    now = stream.standing()
    if now.examples > before.examples:
        report(now, now.since(before))
    return now


class _Stream:
    """A pass over datasets as they come, cut where something is due."""

    def __init__(self, trainer: Any, datasets: Iterable[Any], every: int | None) -> None:
        self._trainer, self._datasets = trainer, datasets
        self.due, self.saved = 1, every  # the next report, and the next save
        self.data: Any = None  # the newest
        self.paused = False  # whether a piece of it ends here
        self._weight = 0.0

    def standing(self) -> Standing:
        trainer = self._trainer
        return Standing(trainer.examples, self._weight, trainer.loss, trainer.mistakes)

    def pieces(self, epoch: int, skip: int) -> Iterator[tuple[Any, np.ndarray]]:
        for data in self._datasets:
            self.data = data
            for rows, order in Passes(data, shuffle=False).pieces(0):
                while order.size:
                    ahead = self.due if self.saved is None else min(self.due, self.saved)
                    part, order = np.split(order, [ahead - self._trainer.examples])
                    self._weight += float(np.sum(rows.weights[part], dtype=np.float64))
                    self.paused = not order.size
                    yield rows, part
