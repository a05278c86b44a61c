"""The training loop: passes, events, evaluation, early stopping, checkpoints."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict, dataclass, field
from numbers import Integral
from typing import Any

import numpy as np

from hopefear import storage
from hopefear.core.interfaces import n_weights
from hopefear.core.interrupts import interruptible
from hopefear.errors import HopefearError, ModelError
from hopefear.training.checkpoints import Checkpoints, InterruptedTrainingError
from hopefear.training.online import OnlineTrainer
from hopefear.training.predictors import Predictor, predictor_from_arrays
from hopefear.training.stopping import Stopping
from hopefear.training.trainer import Event, Trainer, counts

__all__ = [
    "Event",
    "Fit",
    "LearningWarning",
    "Loop",
    "counts",
    "epoch_line",
    "fit",
    "trainer_of",
    "training_error",
]


class LearningWarning(UserWarning):
    """Training went on, but probably not as the user meant."""


@dataclass
class Fit:
    """What a training run made."""

    predictor: Predictor
    trainer: Any
    history: list[Event] = field(default_factory=list)
    best_epoch: int | None = None
    converged: bool = False


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
    learner: Any,
    passes: Any,
    *,
    epochs: int | None = None,
    dtype: Any = np.float32,
    evaluate: Callable[[Predictor], dict[str, float]] | None = None,
    stopping: Stopping | None = None,
    on_event: Sequence[Callable[[Event], None]] = (),
    trace: bool = False,
    checkpoints: Checkpoints | None = None,
    resume: bool = False,
    identity: dict[str, Any] | None = None,
    start: np.ndarray | None = None,
    n_jobs: int = 1,
    trainer: Trainer | None = None,
    final: bool = False,
) -> Fit:
    """Train a learner, online or in batch, on a structure.

    Parameters
    ----------
    structure, learner
        What is predicted, and how it is learned.
    passes : Passes
        The data and its order.
    epochs : int, optional
        Passes over the data, at most: 5, or as many iterations as the batch learner says.
    dtype : numpy dtype
        Of the weights that an online learner reads.
    evaluate : callable, optional
        Scores of a predictor on held-out data; called after each pass.
    stopping : Stopping, optional
        Stop early on those scores and return the best predictor, not the last.
    on_event : sequence of callables
        Each gets every event (a dict) as it happens. ``seconds`` of a pass is the time spent
        learning, without reading, evaluating and saving. Of a batch learner ``objective`` is what
        it minimises. Networks search for no output: their ``mistakes`` are examples whose gold has
        at most half of the probability, and their events say ``"counted": "unsure"``.
    trace : bool
        Also make an event after each piece of a pass, with the number of non-zero weights.
    checkpoints, resume
        Where to save progress, and whether to go on from what is there.
    identity : dict
        What makes this run this run; a checkpoint of another one is refused.
    start : float array, optional
        Weights that a batch learner starts from.
    n_jobs : int
        Threads of a batch learner. The model does not depend on it.
    trainer : Trainer, optional
        Go on with this one instead of starting from zero.
    final : bool
        The trainer of the result will learn nothing more; saves memory.

    Examples
    --------
    >>> from hopefear.data.generators import sparse_linear
    >>> from hopefear.recipes import RECIPES
    >>> from hopefear.structures.classes import Binary
    >>> from hopefear.training.passes import Passes
    >>> data = sparse_linear(300, 40, per_row=(5, 10), true_weights=10, seed=1).dataset()
    >>> learner = RECIPES["perceptron"].build()
    >>> result = fit(Binary(40), learner, Passes(data), epochs=2)
    >>> [event["epoch"] for event in result.history], result.trainer.examples
    ([1, 2], 600)
    """
    if learner.batch:
        epochs = learner.max_iter if epochs is None else epochs
        passes = passes.whole()
    if passes.n == 0:
        raise HopefearError("there are no examples to learn from, of weight above 0")
    epochs = 5 if epochs is None else epochs
    if stopping is not None:
        stopping.suit(learner, epochs)
    trainer = trainer or trainer_of(structure, learner, passes, dtype, start, n_jobs)
    identity = dict(identity or {})
    identity.setdefault("signature", learner.signature())
    loop = Loop(trainer, passes, epochs, evaluate, stopping, trace)
    loop.checkpoints, loop.identity = checkpoints, identity
    with (
        contextlib.closing(trainer),
        checkpoints.locked() if checkpoints else contextlib.nullcontext(),
    ):
        if checkpoints is not None and resume:
            loop.resume()
        with contextlib.closing(loop.events()) as events:
            for event in events:
                for listener in on_event:
                    listener(event)
    trainer.spent = final
    result = loop.result()
    if not loop.warned and result.predictor.nnz == 0:
        why = trainer.why_all_zero() if trainer.updates > 0 else "nothing in the data moved them"
        warnings.warn(
            f"the model is empty: all weights are zero{why and f'; {why}'}",
            LearningWarning,
            stacklevel=2,
        )
    return result


def trainer_of(
    structure: Any,
    learner: Any,
    passes: Any,
    dtype: Any = np.float32,
    start: np.ndarray | None = None,
    n_jobs: int = 1,
) -> Trainer:
    """The trainer of a learner, at the beginning."""
    if learner.batch:
        return learner.trainer(structure, passes.rows, start, n_jobs)
    if hasattr(learner, "trainer"):  # a network, which this layer does not know
        return learner.trainer(structure, passes, n_jobs)
    return OnlineTrainer(structure, learner, dtype)


@dataclass
class Loop:
    """A run on its way: iterate over :meth:`events`, then ask for the :meth:`result`.

    Parameters
    ----------
    trainer, passes
        What learns, and from what.
    epochs : int
        Passes over the data, at most.
    evaluate, stopping, trace, checkpoints, identity
        As in :func:`fit`.

    Examples
    --------
    >>> from hopefear.data.generators import sparse_linear
    >>> from hopefear.recipes import RECIPES
    >>> from hopefear.structures.classes import Binary
    >>> from hopefear.training.passes import Passes
    >>> data = sparse_linear(300, 40, per_row=(5, 10), true_weights=10, seed=1).dataset()
    >>> trainer = OnlineTrainer(Binary(40), RECIPES["perceptron"].build())
    >>> [event["samples"] for event in Loop(trainer, Passes(data), 2).events()]
    [300, 600]
    """

    trainer: Trainer
    passes: Any
    epochs: int = 1
    evaluate: Callable[[Predictor], dict[str, float]] | None = None
    stopping: Stopping | None = None
    trace: bool = False
    checkpoints: Checkpoints | None = None
    identity: dict[str, Any] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)
    best: Predictor | None = None
    warned: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.epochs, Integral) or self.epochs < 1:
            raise HopefearError(f"epochs must be a whole number of at least 1, not {self.epochs!r}")

    def events(self) -> Generator[Event]:
        """Train; one event for each pass, and for each piece of it but the last."""
        progress, trainer, passes = self.progress, self.trainer, self.passes
        with interruptible() as interruption:
            while not self.is_over():
                self._heed(interruption)
                seconds = 0.0
                for spent in trainer.learn_pieces(passes, progress.epoch, progress.piece):
                    seconds += spent
                    progress.piece += 1
                    if trainer.stuck:
                        break
                    if progress.piece < passes.n_pieces:
                        share = progress.piece / passes.n_pieces
                        support = _support(trainer) if self.trace else {}
                        event = {"epoch": progress.epoch + share, **counts(trainer), **support}
                        trainer.annotate(event)
                        yield event
                    self._heed(interruption)
                    if progress.piece < passes.n_pieces:
                        self._save(at_once=False)
                if trainer.stuck:
                    break
                event = {**self._end_pass(), "seconds": round(seconds, 6)}
                trainer.annotate(event)
                yield event
                self._save(at_once=not trainer.brief)
        if trainer.brief:
            self._save()

    def is_over(self) -> bool:
        """Whether there is nothing left to do; a finished run may be resumed."""
        progress, stopping = self.progress, self.stopping
        if progress.epoch >= self.epochs or (progress.piece == 0 and self.trainer.settled()):
            return True
        return stopping is not None and self.best is not None and stopping.is_over(progress.epoch)

    def result(self) -> Fit:
        """What the run made: the best predictor where there was a choice, else the last."""
        converged = self.trainer.stuck or self.trainer.settled()
        predictor = self.trainer.predictor() if self.best is None else self.best
        chosen = self.stopping is not None and self.best is not None
        best_epoch = self.stopping.best_epoch if self.stopping is not None and chosen else None
        return Fit(predictor, self.trainer, self.progress.history, best_epoch, converged)

    def resume(self) -> None:
        """Go on from the newest checkpoint, where there is one."""
        assert self.checkpoints is not None
        saved = self.checkpoints.load(self.identity)
        if saved is None:
            return
        header, arrays = saved
        remedy = "start again in another folder; nothing was changed"
        with storage.untrusted(f"the checkpoint in {self.checkpoints.folder}", remedy):
            self._take_up(header, arrays)

    def _take_up(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Stand where a checkpoint stood; nothing that it says is trusted."""
        self.trainer.restore(arrays)
        self.progress = _progress_of(header["progress"], self.passes.n_pieces)
        best = {k.removeprefix("best."): a for k, a in arrays.items() if k.startswith("best.")}
        if best:
            size = n_weights(self.trainer.structure)
            self.best = self.trainer.restored(predictor_from_arrays(best, size))
            if not self.best.fits(size):
                raise ModelError(f"the best predictor is not one of {size} coordinates")
        if self.stopping is None:
            return
        value, epoch = (header["stopping"][name] for name in ("best", "best_epoch"))
        if (value is None) != (not best) or (value is not None and not _is_number(value)):
            raise ModelError(f"the best score is {value!r:.60}, and its predictor does not say so")
        if type(epoch) is not int or not -1 <= epoch <= self.progress.epoch:
            raise ModelError(f"the best pass is {epoch!r:.60}")
        self.stopping.best, self.stopping.best_epoch = value, epoch

    def _end_pass(self) -> Event:
        """The event of a finished pass, which is also evaluated."""
        progress, trainer = self.progress, self.trainer
        before, progress.before = (
            progress.before,
            {"mistakes": trainer.mistakes, "updates": trainer.updates, "loss": trainer.loss},
        )
        event = {
            "epoch": progress.epoch + 1,
            **counts(trainer),
            **_support(trainer),
            "loss": (trainer.loss - before["loss"]) / self.passes.n,
            **trainer.details(),
            "pass_mistakes": trainer.mistakes - before["mistakes"],
            "pass_updates": trainer.updates - before["updates"],
        }
        first = progress.epoch == 0
        progress.epoch, progress.piece = progress.epoch + 1, 0
        progress.history.append(event)
        if self.evaluate is not None:
            predictor = trainer.predictor()
            event["dev"], event["kept_nnz"] = self.evaluate(predictor), predictor.nnz
            if self.stopping is not None and self.stopping.see(progress.epoch, event["dev"]):
                self.best = predictor
        empty = first and not trainer.brief and event["nnz"] == 0 and trainer.updates > 0
        if empty and (why := trainer.why_all_zero()):
            self.warned = True
            warnings.warn(
                f"all weights are zero after {trainer.updates:,} updates, so every score is a tie "
                f"and every example an update, for ever; {why}",
                LearningWarning,
                stacklevel=4,
            )
        return event

    def _save(self, at_once: bool = True) -> None:
        """Write a checkpoint, where any are asked for, now or if it is time."""
        if self.checkpoints is None or not (at_once or self.checkpoints.due()):
            return
        arrays = self.trainer.arrays()
        if self.best is not None:
            arrays |= {f"best.{name}": array for name, array in self.best.arrays().items()}
        header = {
            "identity": self.identity,
            "progress": asdict(self.progress),
            "stopping": None if self.stopping is None else asdict(self.stopping),
        }
        self.checkpoints.save(header, arrays)

    def _heed(self, interruption: Any) -> None:
        """Save and stop where control-C or SIGTERM has come."""
        if not interruption:
            return
        place = "nothing was saved"
        if self.checkpoints is not None:
            self._save()
            place = f"saved in {self.checkpoints.folder}; the same command with --resume goes on"
        reached = self.trainer.whereabouts(self.progress.epoch)
        raise InterruptedTrainingError(f"interrupted {reached}; {place}", interruption.signum)


def _support(trainer: Trainer) -> Event:
    nonzero, size = trainer.support()
    return {"nnz": nonzero, "mean_abs_weight": size / nonzero if nonzero else 0.0}


def _progress_of(header: Any, pieces: int) -> Progress:
    """Where a checkpoint says its run stood, or ModelError."""
    progress = Progress(**header)
    epoch, piece, history = progress.epoch, progress.piece, progress.history
    # A run that was interrupted in the last piece of a pass has all of them, and is to end it.
    if not (type(epoch) is type(piece) is int and epoch >= 0 and 0 <= piece <= pieces):
        raise ModelError(f"it stands at pass {epoch!r:.60}, piece {piece!r:.60} of {pieces}")
    before = progress.before
    if before.keys() != Progress().before.keys() or not all(map(_is_number, before.values())):
        raise ModelError(f"it counts {before!r:.60} before its pass")
    if not isinstance(history, list) or len(history) != epoch:
        raise ModelError(f"it has no events of its {epoch} passes")
    for number, event in enumerate(history, 1):
        numbers, scores = [event[name] for name in _COUNTED], event.get("dev", {})
        if numbers[0] != number or not all(map(_is_number, numbers)) or type(scores) is not dict:
            raise ModelError(f"the event of pass {number} is {event!r:.60}")
    return progress


# Numbers that the event of every pass has.
_COUNTED = (
    *("epoch", "samples", "updates", "mistakes", "loss_sum", "nnz", "mean_abs_weight"),
    *("loss", "pass_mistakes", "pass_updates"),
)


def _is_number(value: object) -> bool:
    if type(value) is int:
        return abs(value) < 2**63
    return type(value) is float and math.isfinite(value)


def epoch_line(event: Event, score: str | None = None) -> str:
    """Returns a line on an epoch: its score on held-out data, training error, size, seconds.

    Parameters
    ----------
    event : dict
        The event of the epoch.
    score : str, optional
        The score to show; all of them unless said.

    Examples
    --------
    >>> event = {"epoch": 2, "samples": 40, "pass_mistakes": 1, "nnz": 7000, "seconds": 0.1}
    >>> epoch_line({**event, "dev": {"f1": 71.25, "recall": 70.0}}, "f1")
    'epoch 2: dev f1 71.25, training error 5.00 %, 7,000 non-zeros, 0.10 s'
    """
    dev, words = event.get("dev", {}), list[str]()
    names = [score] if score is not None and score in dev else [*dev]
    for name in names:
        words.append(f"dev {name} {_digits(name, dev[name])}")
        if f"baseline_{name}" in dev:
            first, best = (_digits(name, dev[f"{who}_{name}"]) for who in ("baseline", "oracle"))
            words[-1] += f" (1-best {first}, oracle {best})"
    words.append(f"training error {training_error(event):.2f} %")
    words += [f"{event['nnz']:,} non-zeros"] if "nnz" in event else []
    words += [f"{event['seconds']:.2f} s"] if "seconds" in event else []
    return f"epoch {event['epoch']}: {', '.join(words)}"


def training_error(event: Event) -> float:
    """Returns mistakes of an epoch in percent; examples of weight above one come more than once."""
    return 100.0 * event["pass_mistakes"] * event["epoch"] / event["samples"]


def _digits(name: str, value: float) -> str:
    return f"{value:.4f}" if name.endswith("cost") else f"{value:.2f}"
