"""A study: trials one after another or side by side, in a journal that outlives the process.

Trial k is drawn from what the finished trials came to, by a generator that is seeded with k. So a
study that was interrupted goes on as if it had not been, and the same seed gives the same trials.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import Any, NamedTuple

from hopefear import __version__
from hopefear.core.interrupts import interruptible
from hopefear.errors import HopefearError
from hopefear.neighbours.search.trials import STEPS, Candidate, Plan, measure
from hopefear.training.checkpoints import InterruptedTrainingError
from hopefear.training.stopping import sign_of

OBJECTIVES = ("quality", "nonzeros", "seconds")
_NAME = "hopefear"
_UNPRUNED = 4  # trials of a learner that are finished before any of it is given up
_SPARED = 1  # passes after which none is: fast beginnings say little
_OPENING = b'{"op_code":'  # of every line of a journal
_POLL = 0.1  # seconds between two looks at what other processes did


class _LateError(Exception):
    """The time of the search is over."""


class _BehindError(Exception):
    """A trial has fallen behind others."""


class Finding(NamedTuple):
    """A trial that has ended.

    Of what was given up or failed there is no measure.
    """

    number: int
    learner: str
    params: dict[str, Any]
    state: str  # "complete", "pruned" or "failed"
    quality: float | None = None
    nonzeros: int | None = None
    seconds: float | None = None
    passes: int | None = None
    curve: list[float] | None = None
    error: str | None = None
    usual: str | None = None  # the learner, where all is as its recipe has it


@dataclass(frozen=True)
class Search:
    """What is searched, and what is sought.

    Parameters
    ----------
    candidates : sequence of Candidate
        The learners and their spaces.
    plan : Plan
        How each trial is trained and scored.
    objectives : sequence of {"quality", "nonzeros", "seconds"}
        What is to be good: the score, few weights other than 0, little learning time. With
        several, a trial is good where no other is as good in all of them and better in one.
    journal : path, optional
        The file that trials are written to, JSON lines; it is gone on with where it exists. None
        keeps them in memory.

    Notes
    -----
    A trial is given up after a pass where its best score so far is worse than the median of what
    finished trials of the same learner had after that pass; with several objectives none is, since
    a trial that is worse may be the smallest or the fastest.

    Examples
    --------
    >>> from hopefear.data.generators import sparse_linear
    >>> from hopefear.neighbours.search import folds
    >>> from hopefear.tasks import recipe
    >>> from hopefear.tasks.classify.task import Classification
    >>> data = sparse_linear(60, 20, per_row=(3, 6), true_weights=8, seed=3).dataset()
    >>> space = recipe("vrda").space()
    >>> usual = {name: recipe("vrda").parameters()[name] for name in space}
    >>> vrda = Candidate("vrda", "vrda", Classification(), folds(data, 2, 1), space, usual, {})
    >>> search = Search([vrda], Plan("accuracy", epochs=2))
    >>> with search.opened() as study:
    ...     search.run(study, trials=3)
    ...     [finding.state for finding in search.findings(study)]
    ['complete', 'complete', 'complete']
    """

    candidates: Sequence[Candidate]
    plan: Plan
    objectives: Sequence[str] = ("quality",)
    journal: str | None = None

    def signature(self) -> dict[str, Any]:
        """What makes this study this study."""
        first = self.candidates[0].splits
        return {
            "version": __version__,
            "objectives": list(self.objectives),
            "data": [split.data.digest for split in first],
            "dev": [split.dev.digest for split in first],
            "task": repr(self.candidates[0].task),
            **{k: v for k, v in asdict(self.plan).items() if k != "n_jobs"},
            "learners": {
                each.label: {
                    "fixed": {name: str(value) for name, value in each.fixed.items()},
                    "space": {name: list(part) for name, part in each.space.items()},
                }
                for each in self.candidates
            },
        }

    @contextlib.contextmanager
    def opened(self) -> Iterator[Any]:
        """The Optuna study; one of other data, learners or settings is refused."""
        optuna = _optuna()
        storage = None
        try:
            if self.journal is not None:
                # Optuna's lock is a link to this name, so a relative one would lead astray.
                path = os.path.realpath(self.journal)
                _cut_back(optuna, path)
                journal = optuna.storages.journal
                storage = optuna.storages.JournalStorage(journal.JournalFileBackend(path))
            study = optuna.create_study(
                study_name=_NAME,
                storage=storage,
                directions=[
                    "maximize" if name == "quality" and sign_of(self.plan.metric) > 0
                    else "minimize"
                    for name in self.objectives
                ],
                load_if_exists=True,
            )  # fmt: skip
            theirs = study.user_attrs.get("signature")
            for trial in filter(_ended, study.get_trials(deepcopy=False)):
                _check(trial)
        except OSError as error:
            raise HopefearError(f"cannot write {self.journal}: {error.strerror}") from None
        except Exception as error:  # Optuna reads what it is given without checks of its own
            reason = str(error) or type(error).__name__
            raise HopefearError(
                f"{self.journal} is no journal of a search ({reason:.200}); give another name"
            ) from error
        mine = json.loads(json.dumps(self.signature()))
        if theirs is None:
            study.set_user_attr("signature", mine)
        elif differing := [key for key in mine if mine[key] != theirs.get(key)]:
            raise HopefearError(
                f"{self.journal} holds a search with other {', '.join(differing)}; give the same "
                "files and options again, or another --study FILE"
            )
        yield study

    def run(
        self,
        study: Any,
        trials: int,
        seconds: float | None = None,
        jobs: int = 1,
        on_finding: Callable[[Finding], None] | None = None,
        cluster: Any = None,
    ) -> None:
        """Go on until so many trials have ended, or the time is over.

        Parameters
        ----------
        study : optuna.Study
            The one that is :meth:`opened`.
        trials : int
            How many in all, with those that the journal had already.
        seconds : float, optional
            After which no pass begins; trials under way are dropped.
        jobs : int
            Processes that try side by side. With more than one, which trials are drawn depends on
            which ended first.
        on_finding : callable, optional
            Called when a trial has ended.
        cluster : Runs, optional
            Where to try instead, as many side by side as it has room for.
        """
        deadline = None if seconds is None else time.time() + seconds
        if cluster is not None:
            jobs = max(1, cluster.room())
        round_ = _Round(uuid.uuid4().hex, trials, deadline, jobs)
        on_finding = on_finding or (lambda finding: None)
        if jobs > 1:
            self._enqueue_defaults(study, len(self.candidates))
        if cluster is not None:
            self._send(study, round_, cluster, on_finding)
        elif jobs > 1:
            self._share(study, round_, on_finding)
        else:
            self._work(study, round_, on_finding)

    def findings(self, study: Any) -> list[Finding]:
        """All trials that have ended, in their order."""
        return [_finding(trial) for trial in study.get_trials(deepcopy=False) if _ended(trial)]

    def best(self, findings: Sequence[Finding]) -> Finding:
        """The best by the first objective; of equals the one that came first."""
        complete = [finding for finding in findings if finding.state == "complete"]
        if not complete:
            reasons = [finding.error for finding in findings if finding.error]
            reason = f"the first failed: {reasons[0]}" if reasons else "none has ended"
            raise HopefearError(f"no trial was finished; {reason}")
        return min(complete, key=lambda finding: self._losses(finding)[0])

    def front(self, findings: Sequence[Finding]) -> list[Finding]:
        """Trials that no other beats: as good in every objective, and better in one."""
        complete = [finding for finding in findings if finding.state == "complete"]
        losses = [self._losses(finding) for finding in complete]

        def beaten(mine: tuple[float, ...]) -> bool:
            return any(
                other != mine and all(a <= b for a, b in zip(other, mine, strict=True))
                for other in losses
            )

        return [f for f, mine in zip(complete, losses, strict=True) if not beaten(mine)]

    def _losses(self, finding: Finding) -> tuple[float, ...]:
        signs = {"quality": -sign_of(self.plan.metric)}
        return tuple(signs.get(name, 1.0) * getattr(finding, name) for name in self.objectives)

    def _enqueue_defaults(self, study: Any, most: int) -> None:
        """Try the defaults of every learner first, or what is next to them in its space."""
        known = {
            trial.user_attrs.get("first", trial.user_attrs.get("usual"))
            for trial in study.get_trials(deepcopy=False)
            if _ended(trial) or trial.state.name == "WAITING"
        }
        for each in [each for each in self.candidates if each.label not in known][:most]:
            places = {
                f"{each.label} {name}": part.place(each.usual[name])
                for name, part in each.space.items()
            }
            point = {"learner": each.label, **places}
            marks = {"first": each.label}
            if all(part.holds(each.usual[name]) for name, part in each.space.items()):
                marks["usual"] = each.label
            study.enqueue_trial(point, user_attrs=marks)

    def _work(self, study: Any, round_: _Round, on_finding: Callable[[Finding], None]) -> None:
        """Try until enough is tried, or a signal asks to stop."""
        with interruptible() as flag:
            while not round_.late() and self._try_next(study, round_, on_finding):
                if flag:  # it came when no training was there to heed it
                    raise self._interrupted(flag.signum)

    def _try_next(self, study: Any, round_: _Round, on_finding: Callable[[Finding], None]) -> bool:
        """Draw a trial and try it; False where there are enough."""
        trial = self._next(study, round_)
        if trial is None:
            return False
        try:
            outcome = self._attempt(self._point(study, trial), round_)
        except BaseException as error:  # an interrupt, or the end of memory
            study.tell(trial, state=_states().FAIL)
            if isinstance(error, InterruptedTrainingError):
                raise self._interrupted(error.signum) from None
            raise
        self._tell(study, trial, outcome, on_finding)
        return True

    def _next(self, study: Any, round_: _Round) -> Any:
        """The next trial; None where enough have ended or are under way."""
        trials = study.get_trials(deepcopy=False)
        if sum(_ended(each) or round_.has(each) for each in trials) >= round_.trials:
            return None
        if round_.jobs == 1:  # one at a time, so that an interrupt does not change their order
            self._enqueue_defaults(study, 1)
        # Side by side, those that have begun count: others must not draw the same.
        k = len(trials) if round_.jobs > 1 else sum(map(_ended, trials))
        study.sampler = _sampler(self.plan.seed, k, round_.jobs)
        trial = study.ask()
        trial.set_user_attr("round", round_.name)
        if self._beyond(study, trial.number, round_):
            study.tell(trial, state=_states().FAIL)
            return None
        return trial

    def _beyond(self, study: Any, number: int, round_: _Round) -> bool:
        """Whether other processes have meanwhile begun all trials that are left."""
        before = (
            _ended(each) or (each.number < number and round_.has(each))
            for each in study.get_trials(deepcopy=False)
        )
        return sum(before) >= round_.trials

    def _point(self, study: Any, trial: Any) -> _Point:
        """What a trial is to try, drawn from the space."""
        labels = [each.label for each in self.candidates]
        with _quiet(_optuna()):
            label = trial.suggest_categorical("learner", labels)
            space = self.candidates[labels.index(label)].space
            params = {name: part.draw(trial, f"{label} {name}") for name, part in space.items()}
        trial.set_user_attr("params", params)
        return _Point(label, params, self._rivals(study, label) if self._pruning() else [])

    def _pruning(self) -> bool:
        """Whether trials that fall behind are given up."""
        return len(self.objectives) == 1

    def _attempt(self, point: _Point, round_: _Round) -> _Outcome:
        """Train and score a point of the space."""
        candidate = next(each for each in self.candidates if each.label == point.label)
        sign, folds = sign_of(self.plan.metric), dict[int, list[float]]()
        scores: dict[int, float] = {}

        def see(step: int, score: float) -> None:
            scores[step] = score
            seen = folds.setdefault(step // STEPS, [])
            seen.append(sign * score)
            if round_.late():
                raise _LateError
            others = [sign * rival[step] for rival in point.rivals if step in rival]
            if len(seen) > _SPARED and _falls_behind(max(seen), others):
                raise _BehindError

        try:
            result = measure(candidate, point.params, self.plan, see)
        except _BehindError:
            return _Outcome("PRUNED", {"passes": len(scores)}, scores)
        except _LateError:
            return _Outcome("FAIL", {}, scores)
        except InterruptedTrainingError:
            raise
        except HopefearError as error:
            return _Outcome("FAIL", {"error": str(error)}, scores)
        return _Outcome("COMPLETE", result._asdict(), scores)

    def _tell(
        self, study: Any, trial: Any, outcome: _Outcome, on_finding: Callable[[Finding], None]
    ) -> None:
        """Write down what a trial has come to."""
        if self._pruning():
            for step, score in outcome.scores.items():
                trial.report(score, step)
        for name, value in outcome.facts.items():
            trial.set_user_attr(name, value)
        state = _states()[outcome.state]
        complete = state == _states().COMPLETE
        values = [outcome.facts[name] for name in self.objectives] if complete else None
        study.tell(trial, values, state=state)
        if _ended(ended := study.get_trials(deepcopy=False)[trial.number]):
            on_finding(_finding(ended))

    def _send(
        self, study: Any, round_: _Round, cluster: Any, on_finding: Callable[[Finding], None]
    ) -> None:
        """Let machines try; what to try next is drawn here when one of them has ended."""
        numbers, under_way = count(), dict[int, Any]()

        def points() -> Iterator[_Point]:
            while not round_.late() and (trial := self._next(study, round_)) is not None:
                under_way[next(numbers)] = trial
                yield self._point(study, trial)

        alone = replace(self, plan=replace(self.plan, n_jobs=1))
        with interruptible() as flag:

            def watch() -> None:
                if flag:
                    raise self._interrupted(flag.signum)

            shared = alone, round_
            runs = cluster.stream(_attempt_there, shared, points(), round_.jobs, watch)
            try:
                for k, outcome in runs:
                    self._tell(study, under_way.pop(k), outcome, on_finding)
            finally:
                for trial in under_way.values():
                    study.tell(trial, state=_states().FAIL)

    def _interrupted(self, signum: int) -> InterruptedTrainingError:
        """What to say of an interrupt: trials that ended are not lost where there is a journal."""
        words = "trials that had ended count; with a journal (--study FILE) the search could go on"
        if self.journal is not None:
            words = f"trials that had ended are in {self.journal}; the same command goes on"
        return InterruptedTrainingError(f"interrupted; {words}", signum)

    def _rivals(self, study: Any, label: str) -> list[Mapping[int, float]]:
        """Scores by step of finished trials of the same learner."""
        return [
            trial.intermediate_values
            for trial in study.get_trials(deepcopy=False)
            if trial.state.name == "COMPLETE" and trial.params.get("learner") == label
        ]

    def _share(self, study: Any, round_: _Round, on_finding: Callable[[Finding], None]) -> None:
        """Let processes try, which share the journal, and watch what they write there."""
        if self.journal is None:
            raise HopefearError("several processes share a journal: give --study FILE")
        message = pickle.dumps((self, round_), protocol=5)
        command = [
            sys.executable,
            "-c",
            "from hopefear.neighbours.search.study import work; work()",
        ]
        paths = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        before = {finding.number for finding in self.findings(study)}
        with contextlib.ExitStack() as scope:
            workers = []
            for _ in range(round_.jobs):
                question = scope.enter_context(tempfile.TemporaryFile())
                question.write(message)
                question.seek(0)
                workers.append(
                    # A session of its own: control-C is for the process that asks.
                    subprocess.Popen(command, stdin=question, env=paths, start_new_session=True)
                )
                scope.callback(_end, workers[-1])
            flag = scope.enter_context(interruptible())
            while running := [worker for worker in workers if worker.poll() is None]:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    running[0].wait(_POLL)
                for finding in self.findings(study):
                    if finding.number not in before:
                        before.add(finding.number)
                        on_finding(finding)
                if flag:
                    raise self._interrupted(flag.signum)
            if failed := [worker.returncode for worker in workers if worker.returncode]:
                raise HopefearError(
                    f"a process of the search has ended (exit {failed[0]}); was it killed for want "
                    "of memory? use fewer --jobs; the same command goes on where it stopped"
                )
        for finding in self.findings(study):
            if finding.number not in before:
                on_finding(finding)


class _Round(NamedTuple):
    """One run of a study, in one process or several."""

    name: str
    trials: int
    deadline: float | None
    jobs: int

    def late(self) -> bool:
        return self.deadline is not None and time.time() > self.deadline

    def has(self, trial: Any) -> bool:
        """Whether a trial belongs to this run, and is under way."""
        return trial.state.name == "RUNNING" and trial.user_attrs.get("round") == self.name


class _Point(NamedTuple):
    """What a trial is to try, and how others of the learner did: their scores by step."""

    label: str
    params: dict[str, Any]
    rivals: list[Mapping[int, float]]


class _Outcome(NamedTuple):
    """What a trial has come to: its state as Optuna has it, and scores by step."""

    state: str
    facts: dict[str, Any]
    scores: dict[int, float]


def _attempt_there(shared: tuple[Search, _Round], point: _Point) -> _Outcome:
    """Try on another machine."""
    search, round_ = shared
    return search._attempt(point, round_)


def work() -> None:
    """Be one of several processes: try what standard input says."""
    search, round_ = pickle.load(sys.stdin.buffer)
    search = replace(search, plan=replace(search.plan, n_jobs=1))
    try:
        with search.opened() as study:
            search._work(study, round_, lambda finding: None)
    except (InterruptedTrainingError, KeyboardInterrupt):
        raise SystemExit(0) from None


def _cut_back(optuna: Any, path: str) -> None:
    """Leave out a last line that was cut short, as a process that was killed leaves it.

    Optuna would append to it. A file that is no journal is left as it is, and refused.
    """
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        return
    with open(path, "rb") as file:
        if not file.read(len(_OPENING)).startswith(_OPENING):
            raise ValueError(f"it does not begin with {_OPENING.decode()}")
        file.seek(-1, os.SEEK_END)
        if file.read() == b"\n":
            return
    # Under the lock no other process is in the middle of a line.
    lock = optuna.storages.journal.JournalFileSymlinkLock(path)
    lock.acquire()
    try:
        with open(path, "rb+") as file:
            content = file.read()
            whole = content.rfind(b"\n") + 1
            if whole == len(content):
                return
            file.truncate(whole)
    finally:
        lock.release()
    warnings.warn(f"the last line of {path} was cut short and is left out", stacklevel=4)


def _end(worker: subprocess.Popen[bytes]) -> None:
    """Let a process drop its trial and end."""
    if worker.poll() is None:
        worker.send_signal(signal.SIGTERM)
        try:
            worker.wait(20)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()


def _falls_behind(best: float, rivals: Sequence[float]) -> bool:
    """Whether a trial is worse than most were at the same step.

    >>> _falls_behind(1.0, [2.0, 3.0, 0.0, 4.0]), _falls_behind(1.0, [2.0])
    (True, False)
    """
    return len(rivals) >= _UNPRUNED and best < statistics.median(rivals)


def _ended(trial: Any) -> bool:
    """Whether a trial has come to something; what was interrupted has not."""
    name = trial.state.name
    return name in ("COMPLETE", "PRUNED") or (name == "FAIL" and "error" in trial.user_attrs)


def _finding(trial: Any) -> Finding:
    state = {"COMPLETE": "complete", "PRUNED": "pruned"}.get(trial.state.name, "failed")
    known = {name: value for name, value in trial.user_attrs.items() if name in Finding._fields}
    params = known.pop("params", {})
    return Finding(trial.number, trial.params["learner"], params, state, **known)


_FACTS = {"quality": float, "nonzeros": int, "seconds": float, "passes": int, "curve": list}


def _check(trial: Any) -> None:
    """ValueError where a journal lacks what is written of every trial that has ended."""
    if type(trial.params.get("learner")) is not str:
        raise ValueError(f"trial {trial.number} names no learner")
    finding = _finding(trial)
    kinds = {"params": dict, **(_FACTS if finding.state == "complete" else {})}
    for name, kind in kinds.items():
        if type(value := getattr(finding, name)) is not kind:
            raise ValueError(f"{name} of trial {trial.number} is {value!r:.60}")
    numbers = (*(trial.values or ()), *trial.intermediate_values.values(), *(finding.curve or ()))
    if not all(type(number) in (int, float) for number in numbers):
        raise ValueError(f"trial {trial.number} has scores that are no numbers")


def _sampler(seed: int, k: int, jobs: int) -> Any:
    """What draws trial k: at random at first, then near what was good (Bergstra et al., 2011)."""
    optuna = _optuna()
    with _quiet(optuna):
        return optuna.samplers.TPESampler(
            seed=(seed * 1_000_003 + k) % 2**32,
            multivariate=True,
            group=True,
            constant_liar=jobs > 1,
        )


@contextlib.contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Without what Optuna says of parts that may still change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield


def _states() -> Any:
    return _optuna().trial.TrialState


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise HopefearError(
            "a search needs Optuna, which is not installed: pip install 'hopefear[search]'"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
