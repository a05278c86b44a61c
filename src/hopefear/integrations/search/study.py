"""A study of parameters by Optuna: its loop, sampler, pruner and journal."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from hopefear import __version__
from hopefear.core.interrupts import interruptible
from hopefear.errors import HopefearError
from hopefear.integrations.search.trials import Candidate, Measure, Plan, measure
from hopefear.training.checkpoints import InterruptedTrainingError
from hopefear.training.loop import LearningWarning
from hopefear.training.stopping import sign_of

OBJECTIVES = ("quality", "nonzeros", "seconds")
_NAME = "hopefear"
_UNPRUNED = 4  # trials of a learner that are finished before any of it is pruned
_OPENING = b'{"op_code":'  # of every line of a journal
_STEPS = 100_000  # steps between the first epochs of two folds, or of two learners
_LIFT = 1e6  # between the scores of two folds: the best so far is that of the fold under way


class _DroppedError(Exception):
    """A trial ends without a score."""


class Finding(NamedTuple):
    """A trial that has ended; pruned and failed ones have no score."""

    number: int
    learner: str
    params: dict[str, Any]
    state: str  # "complete", "pruned" or "failed"
    quality: float | None = None
    nonzeros: int | None = None
    seconds: float | None = None
    epochs: int | None = None
    curve: list[float] | None = None
    error: str | None = None
    defaults: str | None = None  # the learner, where all is as its recipe has it


@dataclass(frozen=True)
class Search:
    """Learners, their spaces, and the objectives of a search.

    Parameters
    ----------
    candidates : sequence of Candidate
        The learners and their spaces.
    plan : Plan
        How each trial is trained and scored.
    objectives : sequence of {"quality", "nonzeros", "seconds"}
        The score, few weights other than 0, little learning time. With several, a trial is good
        where no other is as good in all of them and better in one.
    journal : path, optional
        Optuna's journal of the trials, JSON lines; the search goes on where the file exists. None
        keeps trials in memory.

    Notes
    -----
    Optuna's ``MedianPruner`` gives up a trial after an epoch where its best score so far is worse
    than the median of what finished trials of the same learner had after that epoch of the same
    fold. With several objectives no trial is pruned: a worse one may be the smallest.

    Examples
    --------
    >>> from hopefear.data.generators import sparse_linear
    >>> from hopefear.integrations.search import folds
    >>> from hopefear.tasks import recipe
    >>> from hopefear.tasks.classify.task import Classification
    >>> data = sparse_linear(60, 20, per_row=(3, 6), true_weights=8, seed=3).dataset()
    >>> space = recipe("vrda").space()
    >>> defaults = {name: recipe("vrda").parameters()[name] for name in space}
    >>> vrda = Candidate("vrda", "vrda", Classification(), folds(data, 2, 1), space, defaults, {})
    >>> search = Search([vrda], Plan("accuracy", epochs=2))
    >>> study = search.open_study()
    >>> search.run(study, trials=3)
    >>> [finding.state for finding in search.findings(study)]
    ['complete', 'complete', 'complete']
    """

    candidates: Sequence[Candidate]
    plan: Plan
    objectives: Sequence[str] = ("quality",)
    journal: str | None = None

    def signature(self) -> dict[str, Any]:
        """Returns what a journal must agree with."""
        first = self.candidates[0].splits
        return {
            "version": __version__,
            "objectives": list(self.objectives),
            "data": [split.data.digest for split in first],
            "dev": [split.dev.digest for split in first],
            "task": repr(self.candidates[0].task),
            **{k: v for k, v in asdict(self.plan).items() if k != "n_jobs"},
            "learners": {
                candidate.label: {
                    "fixed": {name: str(value) for name, value in candidate.fixed.items()},
                    "space": {name: list(part) for name, part in candidate.space.items()},
                }
                for candidate in self.candidates
            },
        }

    def open_study(self) -> Any:
        """Returns the Optuna study; a journal of other data, learners or settings is refused."""
        optuna = _optuna()
        higher = sign_of(self.plan.metric) > 0
        directions = ["minimize"] * len(self.objectives)
        for k, name in enumerate(self.objectives):
            if name == "quality" and higher:
                directions[k] = "maximize"
        storage = None
        try:
            if self.journal is not None:
                # Optuna's lock is a link to this name, which must not be relative.
                path = os.path.realpath(self.journal)
                _check_lines(path)
                journal = optuna.storages.journal
                storage = optuna.storages.JournalStorage(journal.JournalFileBackend(path))
            pruner = optuna.pruners.MedianPruner(n_startup_trials=0, n_min_trials=_UNPRUNED)
            study = optuna.create_study(
                study_name=_NAME,
                storage=storage,
                directions=directions,
                pruner=pruner,
                load_if_exists=True,
            )
            earlier_signature = study.user_attrs.get("signature")
            self.findings(study)
        except OSError as error:
            raise HopefearError(f"cannot write {self.journal}: {error.strerror}") from None
        except Exception as error:  # Optuna does not check what it reads
            reason = str(error) or type(error).__name__
            raise HopefearError(
                f"{self.journal} is no journal of a search ({reason:.200}); give another name"
            ) from error
        signature = json.loads(json.dumps(self.signature()))
        if earlier_signature is None:
            study.set_user_attr("signature", signature)
        elif differing := [
            key for key in signature if signature[key] != earlier_signature.get(key)
        ]:
            raise HopefearError(
                f"{self.journal} holds a search with other {', '.join(differing)}; give the same "
                "files and options again, or another --study FILE"
            )
        return study

    def run(
        self,
        study: Any,
        trials: int,
        seconds: float | None = None,
        n_jobs: int = 1,
        on_finding: Callable[[Finding], None] = lambda finding: None,
        cluster: Any = None,
    ) -> None:
        """Tries until enough trials have ended, or the time is over.

        Parameters
        ----------
        study : optuna.Study
            As :meth:`open_study` returns it.
        trials : int
            How many in all, with those that the journal had already.
        seconds : float, optional
            After which no epoch begins; trials under way are dropped.
        n_jobs : int
            Threads that run trials. With more than one, the seed no longer determines which trials
            are drawn.
        on_finding : callable
            Called when a trial has ended.
        cluster : Runs, optional
            Cluster to run trials on instead, in parallel; none is pruned.
        """
        optuna = _optuna()
        if cluster is not None:
            n_jobs = max(1, cluster.room())
        deadline = None if seconds is None else time.monotonic() + seconds
        n_finished = len(self.findings(study))
        self._enqueue_defaults(study)
        with interruptible() as flag, warnings.catch_warnings():
            warnings.simplefilter("ignore", LearningWarning)  # the scores show it
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            study.sampler = self._sampler(n_finished, n_jobs)

            def check() -> None:
                if flag:
                    raise self._interrupted(flag.signum)
                if deadline is not None and time.monotonic() > deadline:
                    raise _DroppedError

            def end(study: Any, trial: Any) -> None:
                if _has_ended(trial):
                    on_finding(_finding(trial))
                if n_jobs == 1:
                    study.sampler = self._sampler(len(self.findings(study)), n_jobs)
                if flag:  # no training was there to heed it
                    study.stop()

            try:
                study.optimize(
                    lambda trial: self._try(trial, check, cluster),
                    n_trials=trials - n_finished,
                    timeout=seconds,
                    n_jobs=n_jobs,
                    catch=(_DroppedError,),
                    callbacks=[end],
                )
            except InterruptedTrainingError as error:
                raise self._interrupted(error.signum) from None
            if flag:
                raise self._interrupted(flag.signum)

    def findings(self, study: Any) -> list[Finding]:
        """Returns all trials that have ended, in their order."""
        return [_finding(trial) for trial in study.get_trials(deepcopy=False) if _has_ended(trial)]

    def front(self, study: Any) -> list[Finding]:
        """Returns trials that no other beats: as good in every objective, and better in one."""
        return sorted(_finding(trial) for trial in study.best_trials)

    def best(self, study: Any) -> Finding:
        """Returns the best trial by the first objective."""
        front = self.front(study)
        if not front:
            reasons = [finding.error for finding in self.findings(study) if finding.error]
            reason = f"the first failed: {reasons[0]}" if reasons else "none has ended"
            raise HopefearError(f"no trial was finished; {reason}")
        name = self.objectives[0]
        sign = -sign_of(self.plan.metric) if name == "quality" else 1
        return min(front, key=lambda finding: sign * getattr(finding, name))

    def _sampler(self, n_finished: int, n_jobs: int) -> Any:
        """Returns the sampler after ``n_finished`` trials; a fresh one makes resuming exact."""
        return _optuna().samplers.TPESampler(
            seed=(self.plan.seed * 1_000_003 + n_finished) % 2**32,
            multivariate=True,
            group=True,
            constant_liar=n_jobs > 1,
        )

    def _enqueue_defaults(self, study: Any) -> None:
        """Enqueues every learner's defaults, or the nearest point of its space, as first trials."""
        begun = {
            trial.user_attrs.get("first")
            for trial in study.get_trials(deepcopy=False)
            if _has_ended(trial) or trial.state.name == "WAITING"
        }
        for candidate in self.candidates:
            if candidate.label in begun:
                continue
            point = {
                f"{candidate.label} {name}": part.place(candidate.defaults[name])
                for name, part in candidate.space.items()
            }
            attributes = {"first": candidate.label}
            if all(part.holds(candidate.defaults[name]) for name, part in candidate.space.items()):
                attributes["defaults"] = candidate.label
            study.enqueue_trial({"learner": candidate.label, **point}, user_attrs=attributes)

    def _try(self, trial: Any, check: Callable[[], None], cluster: Any) -> list[float]:
        """Returns the objectives of a trial, and notes its facts."""
        labels = [candidate.label for candidate in self.candidates]
        label = trial.suggest_categorical("learner", labels)
        number = labels.index(label)
        space = self.candidates[number].space
        params = {name: part.draw(trial, f"{label} {name}") for name, part in space.items()}
        trial.set_user_attr("params", params)
        sign, epochs = sign_of(self.plan.metric), 0

        def see(fold: int, epoch: int, score: float) -> None:
            nonlocal epochs
            epochs += 1
            if len(self.objectives) == 1:
                step = (number * len(self.candidates[number].splits) + fold) * _STEPS + epoch
                trial.report(score + sign * fold * _LIFT, step)
            check()
            # The first epoch is not informative.
            if len(self.objectives) == 1 and epoch > 1 and trial.should_prune():
                trial.set_user_attr("epochs", epochs)
                raise _optuna().TrialPruned

        try:
            if cluster is None:
                result = measure(self.candidates[number], params, self.plan, see)
            else:
                (result,) = cluster.map(_measure_there, self, [(number, params)], watch=check)
        except InterruptedTrainingError:
            raise
        except HopefearError as error:
            trial.set_user_attr("error", str(error))
            raise _DroppedError from error
        for name, value in result._asdict().items():
            trial.set_user_attr(name, value)
        return [getattr(result, name) for name in self.objectives]

    def _interrupted(self, signum: int) -> InterruptedTrainingError:
        """Returns the error of an interrupt, which names the journal of the trials."""
        words = "trials that had ended count; with a journal (--study FILE) the search could go on"
        if self.journal is not None:
            words = f"trials that had ended are in {self.journal}; the same command goes on"
        return InterruptedTrainingError(f"interrupted; {words}", signum)


def _measure_there(search: Search, point: tuple[int, Mapping[str, Any]]) -> Measure:
    """Measures a point on another machine."""
    number, params = point
    return measure(search.candidates[number], params, search.plan, lambda *progress: None)


def _check_lines(path: str) -> None:
    """Raises ValueError where a file has lines that no journal has, or a last one cut short."""
    if not os.path.exists(path):
        return
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if not (line.startswith(_OPENING) and line.endswith(b"}\n")):
                raise ValueError(f"line {number} does not go from {_OPENING.decode()} to a brace")


def _has_ended(trial: Any) -> bool:
    """Whether a trial has a result; interrupted ones have none."""
    name = trial.state.name
    return name in ("COMPLETE", "PRUNED") or (name == "FAIL" and "error" in trial.user_attrs)


_STATES = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}
_FACTS: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    "complete": {
        "quality": float,
        "nonzeros": int,
        "seconds": float,
        "epochs": int,
        "curve": lambda scores: [float(score) for score in scores],
    },
    "pruned": {"epochs": int},
    "failed": {"error": str},
}


def _finding(trial: Any) -> Finding:
    """Returns a trial that has ended; ValueError or the like where its journal is damaged."""
    state, attributes = _STATES[trial.state.name], trial.user_attrs
    for number in (*(trial.values or ()), *trial.intermediate_values.values()):
        float(number)
    return Finding(
        trial.number,
        str(trial.params["learner"]),
        dict(attributes["params"]),
        state,
        defaults=attributes.get("defaults"),
        **{name: kind(attributes[name]) for name, kind in _FACTS[state].items()},
    )


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise HopefearError(
            "a search needs Optuna, which is not installed: pip install 'hopefear[search]'"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    return optuna
