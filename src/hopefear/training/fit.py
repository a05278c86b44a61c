"""The training loop: passes, events, evaluation, early stopping, checkpoints."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from numbers import Integral
from typing import Any

import numpy as np

from hopefear.core.learner import Learner
from hopefear.errors import HopefearError
from hopefear.rules.rda import RDA
from hopefear.training.checkpoints import Checkpoints, InterruptedTrainingError, interruptible
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes
from hopefear.training.predictors import Predictor, predictor_from_arrays
from hopefear.training.stopping import Stopping

Event = dict[str, Any]


class LearningWarning(UserWarning):
    """Training went on, but probably not as the user meant."""


@dataclass
class Fit:
    """What a training run made."""

    predictor: Predictor
    trainer: OnlineTrainer
    history: list[Event] = field(default_factory=list)
    best_epoch: int | None = None


@dataclass
class Progress:
    """Where a run stands; everything but the learner's own arrays."""

    epoch: int = 0
    piece: int = 0
    history: list[Event] = field(default_factory=list)
    before: dict[str, float] = field(
        default_factory=lambda: {"mistakes": 0, "updates": 0, "loss": 0.0}
    )


def fit(
    structure: Any,
    learner: Learner,
    passes: Passes,
    *,
    epochs: int = 5,
    dtype: Any = np.float32,
    evaluate: Callable[[Predictor], dict[str, float]] | None = None,
    stopping: Stopping | None = None,
    on_event: Sequence[Callable[[Event], None]] = (),
    trace: bool = False,
    checkpoints: Checkpoints | None = None,
    resume: bool = False,
    identity: dict[str, Any] | None = None,
    trainer: OnlineTrainer | None = None,
) -> Fit:
    """Train a learner on a structure.

    Parameters
    ----------
    structure, learner
        What is predicted, and how it is learned.
    passes : Passes
        The data and its order.
    epochs : int
        Passes over the data, at most.
    evaluate : callable, optional
        Scores of a predictor on held-out data; called after each pass.
    stopping : Stopping, optional
        Stop early on those scores and return the best predictor, not the last.
    on_event : sequence of callables
        Each gets every event (a dict) as it happens. ``seconds`` of a pass is the time spent
        learning, without reading, evaluating and saving.
    trace : bool
        Also make an event after each piece of a pass, with the number of non-zero weights.
    checkpoints, resume
        Where to save progress, and whether to go on from what is there.
    identity : dict
        What makes this run this run; a checkpoint of another one is refused.
    trainer : OnlineTrainer, optional
        Go on with this one instead of starting from zero.

    Examples
    --------
    >>> from hopefear.data.generators import sparse_linear
    >>> from hopefear.recipes import RECIPES
    >>> from hopefear.structures.classes import Binary
    >>> data = sparse_linear(300, 40, per_row=(5, 10), true_weights=10, seed=1).dataset()
    >>> learner = RECIPES["perceptron"].build()
    >>> result = fit(Binary(40), learner, Passes(data), epochs=2)
    >>> [event["epoch"] for event in result.history], result.trainer.examples
    ([1, 2], 600)
    """
    if not isinstance(epochs, Integral) or epochs < 1:
        raise HopefearError(f"epochs must be a whole number of at least 1, not {epochs!r}")
    if passes.n == 0:
        raise HopefearError("there are no examples to learn from")
    trainer = trainer or OnlineTrainer(structure, learner, dtype)
    progress, best = Progress(), None
    identity = {"signature": learner.signature(), **(identity or {})}
    if resume and checkpoints is not None:
        progress, best = _resumed(checkpoints, identity, trainer, stopping)
    if checkpoints is not None:
        checkpoints.make_folder()
    emit = _Emitter(on_event)
    with interruptible() as interruption:
        while progress.epoch < epochs:
            seconds = 0.0
            for rows, order in passes.pieces(progress.epoch, skip=progress.piece):
                started = time.perf_counter()
                trainer.learn(rows, order)
                seconds += time.perf_counter() - started
                progress.piece += 1
                last_piece = progress.piece == passes.n_pieces
                emit(
                    {
                        "epoch": progress.epoch + progress.piece / passes.n_pieces,
                        **counts(trainer),
                        **(_support(trainer) if trace else {}),
                    },
                    final=last_piece,
                )
                if interruption:
                    _stop(checkpoints, identity, progress, trainer, stopping, best, interruption)
                if checkpoints is not None and not last_piece and checkpoints.due():
                    _save(checkpoints, identity, progress, trainer, stopping, best)
            event, predictor = _end_of_pass(progress, trainer, evaluate, passes.n)
            emit({**event, "seconds": round(seconds, 6)})
            progress.epoch, progress.piece = progress.epoch + 1, 0
            if stopping is not None and evaluate is not None:
                if stopping.see(progress.epoch, event["dev"]):
                    best = predictor
                if stopping.is_over(progress.epoch):
                    break
            if checkpoints is not None:
                _save(checkpoints, identity, progress, trainer, stopping, best)
    if stopping is None or best is None:
        return Fit(trainer.predictor(), trainer, progress.history)
    return Fit(best, trainer, progress.history, stopping.best_epoch)


class _Emitter:
    """Sends events on; an event inside a pass is dropped when the pass's own event follows."""

    def __init__(self, listeners: Sequence[Callable[[Event], None]]) -> None:
        self.listeners = listeners

    def __call__(self, event: Event, final: bool = False) -> None:
        if not final:
            for listener in self.listeners:
                listener(event)


def counts(trainer: OnlineTrainer) -> Event:
    """What has happened so far, as events say it."""
    return {
        "samples": trainer.examples,
        "updates": trainer.updates,
        "mistakes": trainer.mistakes,
        "loss_sum": trainer.loss,
    }


def _support(trainer: OnlineTrainer) -> Event:
    nonzero, size = trainer.support()
    return {"nnz": nonzero, "mean_abs_weight": size / nonzero if nonzero else 0.0}


def _end_of_pass(progress: Progress, trainer: OnlineTrainer, evaluate: Any, n: int):
    """The event of a finished pass, and the predictor if it had to be made for it."""
    before = progress.before
    event = {
        "epoch": progress.epoch + 1,
        **counts(trainer),
        **_support(trainer),
        "loss": (trainer.loss - before["loss"]) / n,
        "pass_mistakes": trainer.mistakes - before["mistakes"],
        "pass_updates": trainer.updates - before["updates"],
    }
    progress.before = {
        "mistakes": trainer.mistakes,
        "updates": trainer.updates,
        "loss": trainer.loss,
    }
    predictor = None
    if evaluate is not None:
        predictor = trainer.predictor()
        event["dev"] = evaluate(predictor)
        event["kept_nnz"] = predictor.nnz
    if event["nnz"] == 0 and trainer.updates > 0 and progress.epoch == 0:
        warnings.warn(_all_zero(trainer), LearningWarning, stacklevel=3)
    progress.history.append(event)
    return event, predictor


def _all_zero(trainer: OnlineTrainer) -> str:
    rule = trainer.learner.rule
    remedy = "the steps are too short to be seen in float32: raise the rate, or scale the values up"
    for key in ("l1", "gravity"):
        if getattr(rule, key, 0.0) > 0.0:
            remedy = f"{key}={getattr(rule, key):g} is too large for this data: make it smaller"
    if isinstance(rule, RDA) and rule.l1 > 0.0:
        largest = float(np.abs(trainer.state.m).max()) / trainer.ticks
        remedy = (
            f"l1={rule.l1:g} is above the largest mean direction, {largest:.3g}: "
            f"try {largest / 10:.1g} or less"
        )
    return (
        f"all weights are zero after {trainer.updates:,} updates, so every score is a tie and "
        f"every example an update, for ever; {remedy}"
    )


def _header(identity: Event, progress: Progress, stopping: Stopping | None, best: Any) -> Event:
    return {
        "identity": identity,
        "progress": asdict(progress),
        "stopping": None if stopping is None else asdict(stopping),
        "best": None if best is None else type(best).__name__,
    }


def _save(checkpoints, identity, progress, trainer, stopping, best) -> None:
    arrays = trainer.arrays()
    if best is not None:
        arrays |= {f"best.{name}": array for name, array in best.arrays().items()}
    checkpoints.save(_header(identity, progress, stopping, best), arrays)


def _stop(checkpoints, identity, progress, trainer, stopping, best, interruption) -> None:
    saved = "nothing was saved; use --checkpoint DIR to be able to go on"
    if checkpoints is not None:
        _save(checkpoints, identity, progress, trainer, stopping, best)
        saved = f"saved in {checkpoints.folder}; the same command with --resume goes on"
    raise InterruptedTrainingError(
        f"interrupted in pass {progress.epoch + 1} after {trainer.examples:,} examples; {saved}",
        interruption.signum,
    )


def _resumed(checkpoints, identity, trainer, stopping) -> tuple[Progress, Any]:
    found = checkpoints.load(identity)
    if found is None:
        return Progress(), None
    header, arrays = found
    trainer.restore(arrays)
    if stopping is not None and header["stopping"] is not None:
        stopping.best, stopping.best_epoch = (
            header["stopping"]["best"],
            header["stopping"]["best_epoch"],
        )
    best = None
    if header["best"] is not None:
        best = predictor_from_arrays(
            {
                name.removeprefix("best."): array
                for name, array in arrays.items()
                if name.startswith("best.")
            }
        )
    return Progress(**header["progress"]), best
