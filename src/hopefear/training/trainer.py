"""What the training loop drives: a learner at work on a structure, online or in batch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

Event = dict[str, Any]


class Trainer:
    """A learner at work; subclasses learn, answer, and can be saved and restored.

    Attributes
    ----------
    examples, updates, mistakes : int
        How many there were so far.
    loss : float
        Summed over all examples so far.
    brief : bool
        Passes are short steps: they are saved when it is time, not each of them.
    stuck : bool
        The last try to learn moved nothing, so that no further one would.
    spent : bool
        Set when nothing more will be learned: asking for the predictor may use up the books.
    """

    structure: Any
    learner: Any
    examples: Any
    updates: Any
    mistakes: Any
    loss: Any
    brief = False
    stuck = False
    spent = False

    def learn(self, data: Any, order: np.ndarray) -> None:
        """Learn from the rows named by ``order``."""
        raise NotImplementedError

    def learn_pieces(self, passes: Any, epoch: int = 0, skip: int = 0) -> Iterator[float]:
        """Learn a pass piece by piece, but for the first ``skip``; gives the seconds of each.

        Seconds are those of learning, without reading.
        """
        for rows, order in passes.pieces(epoch, skip):
            started = time.perf_counter()
            self.learn(rows, order)
            yield time.perf_counter() - started

    def learn_pass(self, passes: Any, epoch: int = 0) -> None:
        """Learn a whole pass."""
        for _ in self.learn_pieces(passes, epoch):
            pass

    def learn_passes(self, passes: Any, epochs: int) -> Iterator[int]:
        """Learn pass after pass, ``epochs`` at most; gives the number of each when it is over."""
        for epoch in range(epochs):
            for _ in self.learn_pieces(passes, epoch):
                pass
            yield epoch + 1
            if self.settled():
                return

    def detach(self) -> Any:
        """Returns what goes on learning when this run is over."""
        return self

    def predictor(self) -> Any:
        """What has been learned."""
        raise NotImplementedError

    def forget(self) -> None:
        """Let go what only further learning needs; what was counted stays."""

    def support(self) -> tuple[int, float]:
        """Number of non-zero weights now, and the sum of their sizes."""
        raise NotImplementedError

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later, as named arrays."""
        raise NotImplementedError

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take up what ``arrays`` gave."""
        raise NotImplementedError

    def restored(self, predictor: Any) -> Any:
        """A predictor of its own that comes from a checkpoint."""
        return predictor

    def settled(self) -> bool:
        """Whether more passes would change next to nothing."""
        return False

    def details(self) -> Event:
        """What else the event of a pass says."""
        return {}

    def annotate(self, event: Event) -> None:
        """Add to an event that goes out what its listeners alone shall know."""

    def whereabouts(self, epoch: int) -> str:
        """How far it has come, in words, when ``epoch`` passes are over."""
        return f"in pass {epoch + 1} after {self.examples:,} examples"

    def why_all_zero(self) -> str:
        """Why all weights may be zero, and what to do about it; empty where that is no trouble."""
        return ""

    def close(self) -> None:
        """Give back threads."""


def counts(trainer: Trainer) -> Event:
    """What has happened so far, as events say it."""
    return {
        "samples": trainer.examples,
        "updates": trainer.updates,
        "mistakes": trainer.mistakes,
        "loss_sum": trainer.loss,
    }
