"""Conditional random fields in batch: L-BFGS, or OWL-QN where L1 asks for zeros."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from hopefear import __version__
from hopefear.data.sequences import TokenRows
from hopefear.errors import CombinationError, HopefearError
from hopefear.training.batch_objective import CRFObjective
from hopefear.training.checkpoints import Checkpoints, InterruptedTrainingError, interruptible
from hopefear.training.lbfgs import Minimiser, has_settled
from hopefear.training.predictors import LinearPredictor, predictor_from_arrays
from hopefear.training.stopping import Stopping

Event = dict[str, Any]


@dataclass(frozen=True)
class BatchCRF:
    """A conditional random field trained on all sentences at once (Lafferty et al., 2001).

    ``min_w  -log likelihood + l2 * sum_j w_j**2 + l1 * sum_j |w_j|``

    Parameters
    ----------
    l1 : float
        Above 0, weights that do not pay become exactly 0 (OWL-QN); larger means fewer weights.
    l2 : float
        Larger means smaller weights; CRFsuite's ``c2``.
    max_iter : int
        Iterations at most. Fewer is faster and, like a larger ``l2``, keeps weights small.
    memory : int
        Steps that L-BFGS remembers.
    tolerance, period : float, int
        Stop when ``period`` iterations made the objective smaller by less than this share of it.
    observed : bool
        Only pairs of attribute and label that occur together get a weight, as in CRFsuite; False
        gives one to all pairs, as in Wapiti: slower, larger, often better with L1.
    n_jobs : int
        Threads. The model does not depend on it.

    Examples
    --------
    >>> BatchCRF(l1=0.5).signature()
    'loss:log|rule:owl-qn(l1=0.5,l2=1,max_iter=300,memory=6,tolerance=1e-05,period=10,\
observed=true)|readout:last|v:0.1.0'
    """

    l1: float = 0.0
    l2: float = 1.0
    max_iter: int = 300
    memory: int = 6
    tolerance: float = 1e-5
    period: int = 10
    observed: bool = True
    n_jobs: int = 1

    def __post_init__(self) -> None:
        for name in ("l1", "l2", "tolerance"):
            value = getattr(self, name)
            if not 0.0 <= value < math.inf:
                raise CombinationError(
                    f"BatchCRF: {name} must be finite and not negative, but is {value!r}"
                )
        for name in ("max_iter", "memory", "period", "n_jobs"):
            if (value := getattr(self, name)) < 1:
                raise CombinationError(f"BatchCRF: {name} must be at least 1, but is {value}")

    def fit(
        self,
        structure: Any,
        rows: TokenRows,
        *,
        epochs: int | None = None,
        n_jobs: int | None = None,
        **more: Any,
    ) -> BatchFit:
        """Train by :func:`fit_batch`; ``epochs`` replaces ``max_iter``, ``n_jobs`` the threads."""
        crf = replace(self, max_iter=epochs or self.max_iter, n_jobs=n_jobs or self.n_jobs)
        return fit_batch(structure, crf, rows, **more)

    def objective(self, structure: Any, rows: Any) -> Any:
        """What is minimised, but for L1."""
        return CRFObjective(structure, rows, self.l2, self.observed, self.n_jobs)

    def parameters(self) -> dict[str, Any]:
        """All parameters that the model depends on."""
        return {key: value for key, value in asdict(self).items() if key != "n_jobs"}

    def signature(self, **more: Any) -> str:
        """One line that says exactly what this learner is; goes into models and reports."""
        shown = ",".join(f"{name}={_short(value)}" for name, value in self.parameters().items())
        method = "owl-qn" if self.l1 > 0.0 else "l-bfgs"
        parts = {"loss": "log", "rule": f"{method}({shown})", "readout": "last", **more}
        return "|".join(f"{key}:{value}" for key, value in {**parts, "v": __version__}.items())


class BatchTrainer:
    """A CRF at work on one set of sentences; counts what online trainers count.

    Parameters
    ----------
    structure, crf, rows
        What is predicted, how it is learned, and from what.
    w0 : float array, optional
        Weights at all coordinates of the structure to start from.
    """

    def __init__(
        self, structure: Any, crf: BatchCRF, rows: TokenRows, w0: np.ndarray | None = None
    ) -> None:
        self.structure, self.learner = structure, crf
        self.objective = crf.objective(structure, rows)
        start = np.zeros(self.objective.n) if w0 is None else self.objective.gather(w0)
        self.search = Minimiser(self.objective, start, l1=crf.l1, memory=crf.memory)
        self.sentences = int(np.count_nonzero(rows.weights))
        self.updates = self.examples = self.mistakes = 0
        self.loss = 0.0
        self.values = [self.search.value]

    def learn(self) -> bool:
        """One iteration; False when nothing makes the objective smaller any more."""
        if not self.search.step():
            return False
        # A search ends with the evaluation it accepts, so these are of the new weights.
        self.examples += self.sentences
        self.updates += 1
        self.mistakes += self.objective.mistakes
        self.loss += self.objective.loss
        self.values.append(self.search.value)
        return True

    def has_converged(self) -> bool:
        crf = self.learner
        return has_settled(self.values, crf.period, crf.tolerance)

    def predictor(self) -> LinearPredictor:
        """The weights as they are now."""
        return LinearPredictor(self.objective.spread(self.search.w))

    def support(self) -> tuple[int, float]:
        """Number of non-zero weights now, and the sum of their sizes."""
        return int(np.count_nonzero(self.search.w)), float(np.abs(self.search.w).sum())

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later, as named arrays."""
        return {
            **{f"search.{name}": array for name, array in self.search.arrays().items()},
            "tally.counts": np.array([self.examples, self.updates, self.mistakes], np.int64),
            "tally.loss": np.array([self.loss]),
            "tally.values": np.array(self.values),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take up what ``arrays`` gave."""
        self.search.restore(
            {k.removeprefix("search."): a for k, a in arrays.items() if k.startswith("search.")}
        )
        self.examples, self.updates, self.mistakes = map(int, arrays["tally.counts"])
        self.loss, self.values = float(arrays["tally.loss"][0]), arrays["tally.values"].tolist()


@dataclass
class BatchFit:
    """What a training run in batch made."""

    predictor: LinearPredictor
    trainer: BatchTrainer
    history: list[Event] = field(default_factory=list)
    best_epoch: int | None = None
    converged: bool = False

    @property
    def n_iter(self) -> int:
        return self.trainer.search.iterations


def fit_batch(
    structure: Any,
    crf: BatchCRF,
    rows: TokenRows,
    *,
    evaluate: Callable[[LinearPredictor], dict[str, float]] | None = None,
    stopping: Stopping | None = None,
    on_event: Sequence[Callable[[Event], None]] = (),
    checkpoints: Checkpoints | None = None,
    resume: bool = False,
    identity: dict[str, Any] | None = None,
    w0: np.ndarray | None = None,
) -> BatchFit:
    """Train a CRF in batch; an iteration is what a pass is to online learners.

    Parameters
    ----------
    structure, crf, rows
        What is predicted, how it is learned, and from what.
    evaluate : callable, optional
        Scores of a predictor on held-out data; called after each iteration.
    stopping : Stopping, optional
        Stop early on those scores and return the best predictor, not the last.
    on_event : sequence of callables
        Each gets the event (a dict) of every iteration. ``loss`` is minus the log likelihood of a
        sentence, ``objective`` what is minimised; ``mistakes`` counts sentences whose gold labels
        have at most half of the probability, which needs no search.
    checkpoints, resume
        Where to save progress, and whether to go on from what is there.
    identity : dict
        What makes this run this run; a checkpoint of another one is refused.
    w0 : float array, optional
        Weights at all coordinates of the structure to start from.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from hopefear.data.sequences import SequenceDataset
    >>> from hopefear.structures.chain.chain import Chain
    >>> rows = TokenRows([0, 2], [0, 1, 2], [0, 1], [], [0], [], [], [0, 1], [1.0])
    >>> data = SequenceDataset(rows, ("N", "V"), SimpleNamespace(size=2, edge_size=0))
    >>> result = fit_batch(Chain.new(attributes=2, labels=2), BatchCRF(l2=0.1), data.rows)
    >>> result.converged, result.predictor.nnz
    (True, 3)
    """
    if not rows.weights.any():
        raise HopefearError("there are no sentences to learn from, of weight above 0")
    identity = {"signature": crf.signature(), **(identity or {})}
    trainer = BatchTrainer(structure, crf, rows, w0)
    try:
        run = _Run(trainer, identity, stopping, checkpoints)
        if checkpoints is not None:
            if resume:
                run.resume()
            checkpoints.make_folder()
        return run.go(evaluate, on_event)
    finally:
        trainer.objective.close()


class _Run:
    """A run on its way: the trainer, its history and the best so far."""

    def __init__(
        self,
        trainer: BatchTrainer,
        identity: dict[str, Any],
        stopping: Stopping | None,
        checkpoints: Checkpoints | None,
    ) -> None:
        self.trainer, self.identity = trainer, identity
        self.stopping, self.checkpoints = stopping, checkpoints
        self.history: list[Event] = []
        self.best: Any = None

    def go(self, evaluate: Any, on_event: Sequence[Callable[[Event], None]]) -> BatchFit:
        trainer, stopping = self.trainer, self.stopping
        converged = trainer.has_converged()  # a finished run may be resumed
        with interruptible() as interruption:
            while trainer.updates < trainer.learner.max_iter and not converged:
                if (
                    stopping is not None
                    and self.best is not None
                    and stopping.is_over(trainer.updates)
                ):
                    break
                started, mistakes = time.perf_counter(), trainer.mistakes
                if not trainer.learn():
                    converged = True
                    break
                seconds = time.perf_counter() - started
                event = self._event(trainer.mistakes - mistakes)
                predictor = None
                if evaluate is not None:
                    predictor = trainer.predictor()
                    event["dev"], event["kept_nnz"] = evaluate(predictor), predictor.nnz
                    if stopping is not None and stopping.see(trainer.updates, event["dev"]):
                        self.best = predictor
                self.history.append(event)
                for listener in on_event:
                    listener({**event, "seconds": round(seconds, 6)})
                converged = trainer.has_converged()
                if interruption:
                    self._stop(interruption.signum)
                if self.checkpoints is not None and self.checkpoints.due():
                    self._save()
        if self.checkpoints is not None:
            self._save()
        best_epoch = None if stopping is None or self.best is None else stopping.best_epoch
        predictor = trainer.predictor() if self.best is None else self.best
        return BatchFit(predictor, trainer, self.history, best_epoch, converged)

    def _event(self, mistakes: int) -> Event:
        trainer = self.trainer
        nonzero, size = trainer.support()
        return {
            "epoch": trainer.updates,
            "samples": trainer.examples,
            "updates": trainer.updates,
            "mistakes": trainer.mistakes,
            "loss_sum": trainer.loss,
            "nnz": nonzero,
            "mean_abs_weight": size / nonzero if nonzero else 0.0,
            "loss": trainer.objective.loss / trainer.sentences,
            "objective": trainer.search.value,
            "evaluations": trainer.search.evaluations,
            "pass_mistakes": mistakes,
            "pass_updates": 1,
        }

    def _save(self) -> None:
        arrays = self.trainer.arrays()
        if self.best is not None:
            arrays |= {f"best.{name}": array for name, array in self.best.arrays().items()}
        header = {
            "identity": self.identity,
            "history": self.history,
            "stopping": None if self.stopping is None else asdict(self.stopping),
        }
        assert self.checkpoints is not None
        self.checkpoints.save(header, arrays)

    def _stop(self, signum: int) -> None:
        saved = "nothing was saved; use --checkpoint DIR to be able to go on"
        if self.checkpoints is not None:
            self._save()
            saved = f"saved in {self.checkpoints.folder}; the same command with --resume goes on"
        raise InterruptedTrainingError(
            f"interrupted after iteration {self.trainer.updates}; {saved}", signum
        )

    def resume(self) -> None:
        assert self.checkpoints is not None
        found = self.checkpoints.load(self.identity)
        if found is None:
            return
        header, arrays = found
        self.trainer.restore(arrays)
        self.history = header["history"]
        if self.stopping is not None and header["stopping"] is not None:
            self.stopping.best = header["stopping"]["best"]
            self.stopping.best_epoch = header["stopping"]["best_epoch"]
        best = {k.removeprefix("best."): a for k, a in arrays.items() if k.startswith("best.")}
        self.best = predictor_from_arrays(best) if best else None


def _short(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value).lower()
